// SPDX-License-Identifier: MPL-2.0

//! What is said where oneVPL, or the runtime that was asked for, is not there.

use std::path::Path;
use std::process::Command;

use onevpl_sys::{DirectRuntime, LoadError, dispatcher};

/// The child's part of the test below: the loader's path is fixed when a process starts.
const CHILD: &str = "ONEVPL_SYS_TEST_CHILD";

#[test]
fn a_dispatcher_that_cannot_be_loaded_is_an_error_that_says_what_to_install() {
    if std::env::var_os(CHILD).is_some() {
        let error = dispatcher().expect_err("the file that was found first is no library");
        assert!(matches!(error, LoadError::NoDispatcher { .. }));
        println!("said: {error}");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["libvpl.so.2", "libvpl.so"] {
        std::fs::write(folder.path().join(name), "not a library").expect("a file is written");
    }
    let child = Command::new(std::env::current_exe().expect("the test's own path"))
        .args(["--exact", "--nocapture"])
        .arg("a_dispatcher_that_cannot_be_loaded_is_an_error_that_says_what_to_install")
        .env(CHILD, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .expect("the child runs");
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(
        said.contains("said: the oneVPL dispatcher libvpl.so.2 cannot be loaded"),
        "{said}"
    );
    assert!(said.contains("install the package libvpl2"), "{said}");
    assert!(
        said.contains("file too short") || said.contains("invalid ELF"),
        "the reason is told: {said}"
    );
}

#[test]
fn the_dispatcher_has_every_function_and_is_opened_once() {
    let first = dispatcher().expect("libvpl2 is installed (Debian: apt install libvpl2)");
    let second = dispatcher().expect("as before");
    assert!(std::ptr::eq(first, second));
}

#[test]
fn a_runtime_that_does_not_exist_is_named() {
    let error =
        DirectRuntime::open(Path::new("/nonexistent/libvplnone.so")).expect_err("no such file");
    assert!(
        error.to_string().contains("/nonexistent/libvplnone.so"),
        "{error}"
    );
}

#[test]
fn a_library_that_is_no_runtime_is_refused_with_the_missing_name() {
    let error = DirectRuntime::open(Path::new("libc.so.6")).expect_err("libc is no oneVPL runtime");
    assert!(matches!(error, LoadError::Incomplete { .. }), "{error}");
    assert!(error.to_string().contains("MFXInitialize"), "{error}");
}
