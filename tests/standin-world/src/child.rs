// SPDX-License-Identifier: MPL-2.0

//! The child: the test program once more, for one test alone, with the stand-ins on its library path.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::libraries::{install, profile_folder};

/// Set in a child.
const CHILD: &str = "STANDIN_WORLD_CHILD";

/// A child that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(150);

/// What a child sees.
#[derive(Debug)]
pub struct World {
    libraries: TempDir,
    environment: Vec<(String, String)>,
}

impl World {
    /// Both stand-ins.
    pub fn new() -> Self {
        let world = Self::without_libraries();
        install(world.folder());
        world
    }

    /// Neither of them.
    pub fn without_libraries() -> Self {
        Self {
            libraries: tempfile::tempdir().expect("a temporary folder"),
            environment: Vec::new(),
        }
    }

    /// The folder that is the library path.
    pub fn folder(&self) -> &Path {
        self.libraries.path()
    }

    /// Sets a variable.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Prepares a program: nothing of the user's plugins and libraries, and a registry of these tests' own.
    pub fn prepare(&self, command: &mut Command) {
        // What a plugin of others does when it is scanned may be a mistake: strict worlds file it as broken.
        let strict = self
            .environment
            .iter()
            .any(|(name, _)| name == "NVSTANDIN_STRICT");
        let registry = match (self.folder().join("libcuda.so.1").exists(), strict) {
            (true, true) => "strict-registry.bin",
            (true, false) => "standin-registry.bin",
            (false, _) => "bare-registry.bin",
        };
        for name in [
            "GST_PLUGIN_PATH",
            "GST_PLUGIN_PATH_1_0",
            "GST_REGISTRY_1_0",
            "GST_DEBUG",
            "LD_PRELOAD",
        ] {
            if name != "GST_DEBUG" || std::env::var_os("STANDIN_WORLD_DEBUG").is_none() {
                command.env_remove(name);
            }
        }
        command
            .env("LD_LIBRARY_PATH", self.folder())
            .env("GST_REGISTRY", profile_folder().join(registry))
            .env("G_DEBUG", "fatal_warnings")
            .env("RUST_BACKTRACE", "1")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs `body` in a child that sees the stand-ins, with mistakes ending it at once.
pub fn in_child(body: impl FnOnce()) {
    in_child_of(|| World::new().set("NVSTANDIN_STRICT", "1"), body);
}

/// Runs `body` in a child in that world. It fails if the child does, or hangs.
pub fn in_child_of(world: impl FnOnce() -> World, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let world = world();
    let test = std::thread::current();
    let mut command = Command::new(std::env::current_exe().expect("the program's own path"));
    command
        .args(["--exact", "--nocapture", "--test-threads=1"])
        .arg(test.name().expect("a test's thread has its name"))
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    world.prepare(&mut command);
    let (success, text) = finish(command.spawn().expect("the child starts"));
    assert!(success, "{text}");
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
    println!("{text}");
}

/// Whether this GStreamer is that of Debian 12, 1.22; says so where it is not. Its `nvh264dec` and the like use
/// NVIDIA's parser; those of newer ones parse by themselves, which the stand-in does not serve, and this project's
/// CUDA memory is for 1.22 alone.
pub fn gstreamer_is_1_22() -> bool {
    let output = Command::new("gst-inspect-1.0").arg("--version").output();
    let output = output.expect("gst-inspect-1.0 runs (Debian: apt install gstreamer1.0-tools)");
    let text = String::from_utf8_lossy(&output.stdout);
    let is = text.contains(" 1.22.");
    if !is {
        println!("skipped: it takes GStreamer 1.22, and this is another: {text}");
    }
    is
}

/// Waits for a child and takes what it says; one that hangs is ended.
pub fn finish(child: Child) -> (bool, String) {
    finish_within(child, LIMIT)
}

/// The same with a limit of the caller's.
pub fn finish_within(mut child: Child, limit: Duration) -> (bool, String) {
    let readers: Vec<_> = [
        child
            .stdout
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        child
            .stderr
            .take()
            .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    ]
    .into_iter()
    .flatten()
    .map(|mut pipe| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    })
    .collect();
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait().expect("the child can be waited for") {
            Some(status) => break Some(status),
            None if Instant::now() >= deadline => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text: String = readers
        .into_iter()
        .map(|reader| reader.join().unwrap_or_default())
        .collect();
    match status {
        Some(status) => (status.success(), text),
        None => (false, format!("the child hung for {limit:?}\n{text}")),
    }
}
