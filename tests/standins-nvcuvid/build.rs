// SPDX-License-Identifier: MPL-2.0

//! Compiles the shim over libdav1d, whose structures differ from one version to the next.

fn main() {
    println!("cargo::rerun-if-changed=src/dav1d.c");
    let library = match pkg_config::Config::new()
        .atleast_version("1.0")
        .probe("dav1d")
    {
        Ok(library) => library,
        Err(error) => {
            eprintln!("libdav1d is needed (Debian: apt install libdav1d-dev)\n{error}");
            std::process::exit(1);
        }
    };
    cc::Build::new()
        .file("src/dav1d.c")
        .includes(library.include_paths)
        .warnings_into_errors(true)
        .compile("standin_dav1d");
}
