// SPDX-License-Identifier: MPL-2.0

//! What end-to-end tests share: where the workspace and its staged plugins are, and child processes
//! in a clean environment.
//!
//! `cargo test` builds no cdylib: `tests/run.sh` builds and stages them first, and [`Stage::fresh`]
//! refuses a plugin that is missing or older than its sources. Everything here panics on failure,
//! for that is how a test fails.

pub mod child;
pub mod stage;

use std::path::{Path, PathBuf};

pub use child::{Finished, command, run};
pub use stage::Stage;

/// The workspace's root.
pub fn workspace_root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("this package lies two folders below the root")
}

/// The folder of the profile this test was built with, such as `target/debug`.
pub fn profile_dir() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let profile = test.ancestors().nth(2);
    profile.expect("tests lie in PROFILE/deps").to_owned()
}

/// The name of that profile as the scripts know it.
pub fn profile() -> &'static str {
    if profile_dir().ends_with("release") {
        "release"
    } else {
        "debug"
    }
}
