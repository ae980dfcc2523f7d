// SPDX-License-Identifier: MPL-2.0

//! A `vmafx-live` under test, and a plain client of it.

// Each test program uses its own part of it.
#![allow(dead_code)]

pub mod browser;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use e2e::{Stage, command};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// After this long something hangs.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A live pipeline of 30 frames a second; `vmafxmotion` has what `motion` says.
pub fn live_pipeline(motion: &str) -> String {
    format!(
        "videotestsrc is-live=true pattern=ball ! \
         video/x-raw,format=I420,width=320,height=180,framerate=30/1 ! vmafxmotion {motion} ! fakesink sync=true"
    )
}

/// Asks again and again until there is an answer.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_within(LIMIT, what, ask)
}

/// The same where the answer may take longer.
#[track_caller]
pub fn until_within<T>(limit: Duration, what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(answer) = ask() {
            return answer;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{what}: not within {limit:?}");
}

/// The program, running.
pub struct Live {
    child: Child,
    address: SocketAddr,
    said: Arc<Mutex<String>>,
    listening: Option<JoinHandle<()>>,
}

impl Live {
    /// The command, which listens on a free port of this machine.
    pub fn command<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Command {
        Self::command_on("127.0.0.1:0", arguments)
    }

    /// The command, which listens on `address`.
    pub fn command_on<I: AsRef<OsStr>>(
        address: &str,
        arguments: impl IntoIterator<Item = I>,
    ) -> Command {
        let stage = Stage::fresh(&["vmafxmotion"]);
        let mut command = command(&stage, env!("CARGO_BIN_EXE_vmafx-live"));
        command.arg("--listen").arg(address).args(arguments);
        command
    }

    /// Starts it; its port is open when this returns.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let said = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let heard = said.clone();
        let listening = thread::spawn(move || {
            for line in stderr.lines() {
                let line = line.expect("standard error is text");
                *heard.lock().expect("no test panics with it") += &(line + "\n");
            }
        });
        let mut live = Self {
            child,
            address: ([127, 0, 0, 1], 0).into(),
            said,
            listening: Some(listening),
        };
        live.address = until("the address", || {
            let said = live.said();
            let (_, rest) = said.split_once("vmafx-live: http://")?;
            let (address, _) = rest.split_once('/')?;
            Some(address.parse().expect("an address"))
        });
        live
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A place on it.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it has written to standard error.
    pub fn said(&self) -> String {
        self.said.lock().expect("no test panics with it").clone()
    }

    /// Its standard input, which was piped.
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("it is piped")
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("it is our child");
    }

    /// Its exit status (`None` for a signal's) and what it said.
    #[track_caller]
    pub fn finish(mut self) -> (Option<i32>, String) {
        let status = until("the end of the program", || {
            self.child.try_wait().expect("it is our child")
        });
        let listening = self.listening.take().expect("it is joined once");
        listening.join().expect("reading does not panic");
        (status.code(), self.said())
    }

    /// Its state as JSON.
    pub fn state(&self) -> Value {
        let (head, body) = self.get("/state");
        assert!(head.starts_with("HTTP/1.0 200"), "{head}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Waits until its state is as `wanted`.
    #[track_caller]
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until(what, || Some(self.state()).filter(&wanted))
    }

    /// Head and body of an answer.
    pub fn get(&self, path: &str) -> (String, String) {
        let host = self.address.to_string();
        self.request(&format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n"))
    }

    /// Head and body of the answer to a request, written out.
    pub fn request(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("not 0");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    /// The events, as they come.
    pub fn events(&self) -> Events {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("not 0");
        // Version 1.0 has no chunks.
        let request = format!("GET /events HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).expect("it reads");
        Events(BufReader::new(stream))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Gone already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Server-sent events of one connection: kind and data. Ends with the connection.
pub struct Events(BufReader<TcpStream>);

impl Iterator for Events {
    type Item = (String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let mut kind = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("events come") == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("event: ") {
                text.clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((kind, serde_json::from_str(data).expect("JSON")));
            }
        }
    }
}

/// The numbers of the frames in a state or in news.
pub fn frames(value: &Value) -> Vec<u64> {
    let rows = value["frames"].as_array().map_or(&[][..], Vec::as_slice);
    rows.iter()
        .map(|row| row[0].as_u64().expect("a frame's number"))
        .collect()
}
