// SPDX-License-Identifier: MPL-2.0

//! Child processes that see the staged plugins and nothing of the environment that cargo or the
//! caller made.

use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Stage, profile_dir};

/// After this long a child hangs. No test takes a tenth of it.
const LIMIT: Duration = Duration::from_secs(300);

/// `program` with the staged plugins, a registry of the tests' own, no inherited `LD_LIBRARY_PATH`
/// (cargo puts its build folder there), and GLib's warnings fatal.
pub fn command(stage: &Stage, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("GST_")) {
        command.env_remove(name);
    }
    command
        .env_remove("LD_LIBRARY_PATH")
        .env("G_DEBUG", "fatal_warnings")
        .env("GST_PLUGIN_PATH", stage.plugins())
        .env("GST_REGISTRY", profile_dir().join("gst-registry.bin"))
        .stdin(Stdio::null());
    command
}

/// What a child left.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// The child, if it ended with status 0.
    ///
    /// # Panics
    ///
    /// Otherwise, with all that the child wrote.
    #[track_caller]
    pub fn success(self) -> Self {
        assert!(self.status.success(), "the child failed: {self}");
        self
    }

    /// The child, if it ended with this status.
    ///
    /// # Panics
    ///
    /// Otherwise, with all that the child wrote.
    #[track_caller]
    pub fn failure(self, status: i32) -> Self {
        assert_eq!(self.status.code(), Some(status), "{self}");
        self
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.status, self.stdout, self.stderr
        )
    }
}

/// Runs `command` to its end with its output caught.
///
/// # Panics
///
/// If it does not start, or hangs; then it is killed first.
#[track_caller]
pub fn run(command: &mut Command) -> Finished {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let stdout = catch(child.stdout.take());
    let stderr = catch(child.stderr.take());
    let status = wait(&mut child, LIMIT);
    let text = |reader: thread::JoinHandle<Vec<u8>>| {
        let bytes = reader.join().expect("reading does not panic");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    match status {
        Some(status) => Finished {
            status,
            stdout,
            stderr,
        },
        None => panic!("{command:?} hangs\n--- stdout\n{stdout}\n--- stderr\n{stderr}"),
    }
}

fn catch(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes)
                .expect("the child's output can be read");
        }
        bytes
    })
}

/// How a child ends; one that takes longer than `limit` is killed: `None`.
///
/// # Panics
///
/// If the system does not let it be waited for.
pub fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("a child that runs can be killed");
    child.wait().expect("a killed child ends");
    None
}
