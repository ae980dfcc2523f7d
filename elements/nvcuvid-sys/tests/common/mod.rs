// SPDX-License-Identifier: MPL-2.0

//! Tests in child processes, with libraries of their own: what the loader finds is fixed when a process starts.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Set in a child.
const CHILD: &str = "NVCUVID_SYS_TEST_CHILD";

/// What a child finds on its library path, and its environment.
pub struct World {
    folder: TempDir,
    environment: Vec<(&'static str, String)>,
}

impl World {
    /// Nothing on the path.
    pub fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self {
            folder,
            environment: Vec::new(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn set(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// The stub of libcuda, built with these definitions.
    pub fn cuda(self, definitions: &[&str]) -> Self {
        self.build("libcuda", "libcuda.so.1", definitions, &[])
    }

    /// The stub of libnvcuvid, built with these definitions. It needs the one of libcuda.
    pub fn nvcuvid(self, definitions: &[&str]) -> Self {
        self.build(
            "libnvcuvid",
            "libnvcuvid.so.1",
            definitions,
            &["-l:libcuda.so.1"],
        )
    }

    /// A library that was built elsewhere.
    pub fn library(self, from: &Path, name: &str) -> Self {
        std::fs::copy(from, self.folder().join(name)).expect("the library is copied");
        self
    }

    /// A file that is no library.
    pub fn rubbish(self, name: &str) -> Self {
        std::fs::write(self.folder().join(name), "not a library").expect("a file is written");
        self
    }

    fn build(self, source: &str, name: &str, definitions: &[&str], libraries: &[&str]) -> Self {
        let stubs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-o"])
            .arg(self.folder().join(name))
            .arg(format!("-Wl,-soname,{name}"))
            .args(
                definitions
                    .iter()
                    .map(|definition| format!("-D{definition}")),
            )
            .arg(stubs.join(source).with_extension("c"))
            .arg(format!("-L{}", self.folder().display()))
            .args(libraries)
            .output()
            .expect("a C compiler (Debian: apt install gcc libc6-dev libffmpeg-nvenc-dev)");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        self
    }

    /// The lines that the stubs have logged.
    pub fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs the test that calls this again, in a child, which runs `body` instead; answers what it printed,
    /// or `None` in the child.
    pub fn child(world: impl FnOnce() -> Self, body: impl FnOnce()) -> Option<(Self, String)> {
        if std::env::var_os(CHILD).is_some() {
            body();
            return None;
        }
        let world = world();
        let test = std::thread::current();
        let output = Command::new(std::env::current_exe().expect("the test's own path"))
            .args(["--exact", "--nocapture"])
            .arg(test.name().expect("a test's thread has its name"))
            .env(CHILD, "1")
            .env("LD_LIBRARY_PATH", world.folder())
            .env("STUB_LOG", world.folder().join("log"))
            .envs(world.environment.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("the child runs");
        Some((world, said(&output)))
    }
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
    text.into_owned()
}
