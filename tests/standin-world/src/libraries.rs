// SPDX-License-Identifier: MPL-2.0

//! The stand-ins: built, installed in a folder, and asked what their client does wrong or leaves behind.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nvcuvid_sys::{CuResult, Driver, Nvcuvid};

/// The target folder's profile folder that this program runs from.
pub fn profile_folder() -> PathBuf {
    let program = std::env::current_exe().expect("the program's own path");
    // target/debug/deps/test or target/debug/program
    let folder = program.parent().expect("a program lies in a folder");
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("deps" | "examples") => folder.parent().expect("a profile folder").to_owned(),
        _ => folder.to_owned(),
    }
}

/// Builds what Cargo does not build for the tests of a package, in the profile that these run in.
fn cargo_build(arguments: &[&str]) -> PathBuf {
    let folder = profile_folder();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--locked"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    if folder.file_name().is_some_and(|name| name == "release") {
        command.arg("--release");
    }
    let output = command.output().expect("cargo runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder
}

/// Builds the stand-ins, once a process: Cargo builds no library of C's kind for another package's tests.
fn build() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| cargo_build(&["-p", "standins", "-p", "standins-nvcuvid"]))
}

/// An example program of a package. Cargo builds examples only for all tests of their package at once.
pub fn example_program(package: &str, example: &str) -> PathBuf {
    let folder = cargo_build(&["-p", package, "--example", example]);
    folder.join("examples").join(example)
}

/// Installs both stand-ins under the names that clients look for.
pub fn install(folder: &Path) {
    let built = build();
    for (library, name, other) in [
        ("libstandin_cuda.so", "libcuda.so.1", "libcuda.so"),
        ("libstandin_nvcuvid.so", "libnvcuvid.so.1", "libnvcuvid.so"),
    ] {
        std::fs::copy(built.join(library), folder.join(name))
            .unwrap_or_else(|error| panic!("{library}: {error}"));
        // One file under both names: two would be two libraries for the loader, each with a device of its own.
        std::os::unix::fs::symlink(name, folder.join(other))
            .unwrap_or_else(|error| panic!("{other}: {error}"));
    }
}

fn export<F: Copy>(address: Option<*mut std::ffi::c_void>, name: &str) -> F {
    let address = address.unwrap_or_else(|| panic!("{name} is exported: this is no stand-in"));
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: each caller names the function with its type.
    unsafe { std::mem::transmute_copy(&address) }
}

fn of_cuda<F: Copy>(name: &str) -> F {
    export(
        Driver::load().expect("libcuda starts").extension(name),
        name,
    )
}

fn of_nvcuvid<F: Copy>(name: &str) -> F {
    export(
        Nvcuvid::load().expect("libnvcuvid loads").extension(name),
        name,
    )
}

/// How often the client has used either library wrongly.
pub fn mistakes() -> usize {
    of_cuda::<extern "C" fn() -> usize>("standin_cuda_mistakes")()
}

/// What exists in both libraries.
pub fn live() -> usize {
    of_cuda::<extern "C" fn() -> usize>("standin_cuda_live")()
        + of_nvcuvid::<extern "C" fn() -> usize>("standin_nvcuvid_live")()
}

/// Faults of parsers and decoders that are created from now on; `None` for none but the environment's.
pub fn set_faults(text: Option<&str>) {
    type Set = unsafe extern "C" fn(*const c_char) -> CuResult;
    let set: Set = of_nvcuvid("standin_nvcuvid_set_faults");
    let text = text.map(|text| CString::new(text).expect("a text without zeroes"));
    let pointer = text.as_deref().map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: it is null or a C string that outlives the call.
    let answer = unsafe { set(pointer) };
    assert_eq!(answer, CuResult::SUCCESS, "{text:?} is understood");
}

/// Nothing is left in the libraries, and they were used rightly. What other threads are just letting go of is
/// waited for.
#[track_caller]
pub fn assert_nothing_is_left() {
    let deadline = Instant::now() + Duration::from_secs(10);
    while live() != 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(
        live(),
        0,
        "contexts, streams, events, memory, parsers, decoders"
    );
    assert_eq!(mistakes(), 0, "see the standard error for which");
}
