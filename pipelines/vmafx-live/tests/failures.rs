// SPDX-License-Identifier: MPL-2.0

//! What goes wrong is said on the page and on standard error, and the exit status is not 0.

mod common;

use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;

use common::{Live, live_pipeline};
use e2e::run;
use nix::sys::signal::Signal;

const HEADER: &str = "{\"type\":\"header\",\"schema\":1,\"extractor\":\"integer\",\"format\":\"I420\",\"width\":64,\"height\":48,\"depth\":8,\"session\":0}\n";
const FRAME: &str =
    "{\"type\":\"frame\",\"frame\":0,\"timestamp\":0,\"motion\":0,\"motion2\":0,\"motion3\":0}\n";

/// Runs until it failed, and checks that page and standard error say `expected`.
#[track_caller]
fn fails(arguments: &[&str], expected: &[&str]) {
    let mut command = Live::command(["--linger", "forever"]);
    let live = Live::start(command.args(arguments));
    check_failed(live, expected);
}

#[track_caller]
fn check_failed(live: Live, expected: &[&str]) {
    let state = live.wait_for("the failure", |state| state["phase"] == "failed");
    let told = state["failure"].as_str().expect("a reason").to_owned();
    live.signal(Signal::SIGINT);
    let (status, said) = live.finish();
    assert_eq!(status, Some(1), "{said}");
    for text in expected {
        assert!(told.contains(text), "no {text:?} in {told:?}");
    }
    assert!(said.contains(&told), "{told:?} is not in {said:?}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_port_in_use() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = other.local_addr().expect("an address").to_string();
    let done = run(&mut Live::command_on(&address, ["--stdin"])).failure(1);
    let expected = format!("cannot listen on {address}: Address already in use");
    assert!(done.stderr.contains(&expected), "{done}");
}

#[test]
fn an_address_of_another_machine() {
    let done = run(&mut Live::command_on("192.0.2.1:1", ["--stdin"])).failure(1);
    assert!(
        done.stderr.contains("cannot listen on 192.0.2.1:1"),
        "{done}"
    );
}

#[test]
fn a_wrong_uri() {
    fails(
        &["--uri", "file:///nowhere/film.mp4"],
        &["/nowhere/film.mp4", "no frame was scored"],
    );
    fails(
        &["--uri", "film.mp4"],
        &["--uri", "is no address such as file://"],
    );
    fails(&["--uri", "quux://host/film"], &["quux"]);
}

#[test]
fn a_file_without_video() {
    let manifest = concat!("file://", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    fails(&["--uri", manifest], &["no frame was scored"]);
    let desk = tempfile::tempdir().expect("a temporary folder");
    let sound = desk.path().join("sound.ogg");
    let encode = "audiotestsrc num-buffers=20 ! vorbisenc ! oggmux ! filesink";
    let mut launch = e2e::command(&e2e::Stage::fresh(&[]), "gst-launch-1.0");
    launch.args(encode.split(' '));
    run(launch.arg(format!("location={}", sound.display()))).success();
    let uri = format!("file://{}", sound.display());
    fails(&["--uri", &uri], &["there is no video in it"]);
}

#[test]
fn a_pipeline_that_fails_midway() {
    let pipeline = "videotestsrc ! video/x-raw,format=I420,width=64,height=48 ! \
        identity name=breaks error-after=40 ! vmafxmotion ! fakesink";
    fails(&["--launch", pipeline], &["breaks: ", "frames were scored"]);
}

#[test]
fn a_pipeline_that_is_none() {
    fails(
        &["--launch", "videotestsrc ! nosuchelement ! fakesink"],
        &["--launch: ", "nosuchelement"],
    );
    fails(
        &["--launch", "videotestsrc ! fakesink"],
        &["no vmafxmotion in the pipeline"],
    );
    let two = "videotestsrc ! vmafxmotion ! vmafxmotion ! fakesink";
    fails(&["--launch", two], &["2 vmafxmotion in the pipeline"]);
    fails(&["--launch", "videotestsrc !"], &["--launch: "]);
}

#[test]
fn a_missing_plugin() {
    let mut command = Live::command(["--linger", "forever", "--launch", "vmafxmotion"]);
    let registry = tempfile::tempdir().expect("a temporary folder");
    command
        .env_remove("GST_PLUGIN_PATH")
        .env("HOME", registry.path())
        .env("GST_REGISTRY", registry.path().join("registry"));
    check_failed(
        Live::start(&mut command),
        &["no element vmafxmotion", "GST_PLUGIN_PATH"],
    );
}

#[test]
fn malformed_records_on_standard_input() {
    for (input, expected) in [
        (
            format!("{HEADER}{FRAME}what?\n"),
            "standard input, line 3, column 1: not a score record",
        ),
        (
            format!("{HEADER}{}\n", FRAME.trim().replace("\"motion2\":0,", "")),
            "line 2, column ",
        ),
        (FRAME.to_owned(), "line 1: a frame line before any header"),
        (HEADER.replace("\"schema\":1", "\"schema\":9"), "schema 9"),
        (
            format!("{HEADER}{}", &FRAME[..30]),
            "line 2: ends after 30 bytes, in the middle of a record",
        ),
        (String::new(), "no header line"),
    ] {
        let mut live =
            Live::start(Live::command(["--stdin", "--linger", "forever"]).stdin(Stdio::piped()));
        live.stdin().write_all(input.as_bytes()).expect("it reads");
        check_failed(live, &[expected]);
    }
}

#[test]
fn a_pipeline_that_does_not_end_is_given_up() {
    let pipeline = live_pipeline("").replace(
        "vmafxmotion",
        "vmafxmotion ! queue ! identity sleep-time=30000000",
    );
    let live = Live::start(&mut Live::command([
        "--stop-timeout",
        "0.5",
        "--launch",
        &pipeline,
    ]));
    live.wait_for("a frame", |state| state["phase"] == "running");
    live.signal(Signal::SIGINT);
    let (status, said) = live.finish();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("did not end within"), "{said}");
}

#[test]
fn wrong_usage() {
    for arguments in [
        &[][..],
        &["--stdin", "--launch", "x"],
        &["--stdin", "--listen", "here"],
    ] {
        let done = run(Live::command::<&str>([]).args(arguments)).failure(2);
        assert!(done.stderr.contains("Usage"), "{done}");
    }
}
