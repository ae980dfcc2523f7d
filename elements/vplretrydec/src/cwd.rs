// SPDX-License-Identifier: MPL-2.0

//! Libraries in the current folder, which the dispatcher of Debian 12 loads and runs.
//!
//! The dispatcher up to API 2.10 or so searches the current folder for runtimes. Whoever can put a file into
//! the folder that a pipeline is started from could run code in it, so the element looks first.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the dispatcher looks besides the current folder; what lies there is loaded anyway.
const SYSTEM_FOLDERS: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu",
    "/lib",
    "/usr/lib",
    "/lib64",
    "/usr/lib64",
];
const SEARCH_VARIABLES: [&str; 3] = [
    "ONEVPL_PRIORITY_PATH",
    "LD_LIBRARY_PATH",
    "ONEVPL_SEARCH_PATH",
];

/// Whether the dispatcher takes a file of this name for a runtime (`mfx_dispatcher_vpl_loader.cpp`).
fn is_runtime_name(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        // What it does with such a name is not known.
        return true;
    };
    match name {
        "libmfx-gen.so.1.2" | "libmfxhw64.so.1" => true,
        _ => name.starts_with("libvpl") && name.contains(".so") && !name.starts_with("libvpl.so"),
    }
}

/// The first library in `folder` that the dispatcher would load from there, and that is not `own`.
pub(crate) fn stray_runtime(folder: &Path, own: Option<&Path>) -> Option<PathBuf> {
    let variables = SEARCH_VARIABLES.iter().filter_map(std::env::var_os);
    let named: Vec<PathBuf> = variables
        .flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>())
        .chain(SYSTEM_FOLDERS.map(PathBuf::from))
        .collect();
    stray_beyond(folder, own, &named)
}

fn stray_beyond(folder: &Path, own: Option<&Path>, named: &[PathBuf]) -> Option<PathBuf> {
    if named.iter().any(|other| same_file(folder, other)) {
        return None;
    }
    let mut strays: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter(|entry| is_runtime_name(&entry.file_name()))
        .map(|entry| entry.path())
        .filter(|path| !own.is_some_and(|own| is_own(path, own)))
        .collect();
    strays.sort();
    strays.into_iter().next()
}

/// The runtime itself, or a copy of it under its name.
fn is_own(path: &Path, own: &Path) -> bool {
    same_file(path, own)
        || (path.file_name() == own.file_name()
            && matches!((fs::read(path), fs::read(own)), (Ok(a), Ok(b)) if a == b))
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_dispatcher_loads() {
        for name in [
            "libvplsoft.so",
            "libvpl_x.so.3",
            "libmfx-gen.so.1.2",
            "libmfxhw64.so.1",
        ] {
            assert!(is_runtime_name(name.as_ref()), "{name}");
        }
        for name in [
            "libvpl.so",
            "libvpl.so.2",
            "libmfx-gen.so",
            "mylibvpl.so",
            "libvplsoft.txt",
        ] {
            assert!(!is_runtime_name(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn a_library_is_a_stray_unless_it_is_our_own_or_found_anyway() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        assert_eq!(stray_beyond(folder, None, &[]), None);
        let own = folder.join("libvplsoft.so");
        fs::write(&own, "ours").expect("a file is written");
        assert_eq!(stray_beyond(folder, None, &[]), Some(own.clone()));
        assert_eq!(stray_beyond(folder, Some(&own), &[]), None);
        assert_eq!(stray_beyond(folder, None, &[folder.to_owned()]), None);

        let elsewhere = tempfile::tempdir().expect("a temporary folder");
        let copy = elsewhere.path().join("libvplsoft.so");
        fs::write(&copy, "ours").expect("a file is written");
        assert_eq!(stray_beyond(folder, Some(&copy), &[]), None);
        fs::write(&copy, "other").expect("a file is written");
        assert_eq!(stray_beyond(folder, Some(&copy), &[]), Some(own.clone()));

        let stray = folder.join("libvplevil.so");
        fs::write(&stray, "ours").expect("a file is written");
        assert_eq!(stray_beyond(folder, Some(&own), &[]), Some(stray));
    }
}
