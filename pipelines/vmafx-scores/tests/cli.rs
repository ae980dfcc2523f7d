// SPDX-License-Identifier: MPL-2.0

//! The command as a user calls it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn command<I: AsRef<OsStr>>(args: impl IntoIterator<Item = I>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmafx-scores"));
    command.args(args).stdin(Stdio::null());
    command
}

fn table(file: impl AsRef<OsStr>) -> Output {
    command([OsStr::new("table"), file.as_ref()])
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is UTF-8")
}

fn header(session: u64) -> String {
    format!(
        r#"{{"type":"header","schema":1,"version":"0.1.0","extractor":"integer","options":{{"motion-blend-factor":1.0,"motion-five-frame-window":false,"motion-max-val":18.0}},"feature-names":{{"motion2":"integer_motion2_mmxv_18"}},"format":"I420","width":320,"height":240,"depth":8,"session":{session}}}"#
    ) + "\n"
}

/// A session of 25 frames a second: motion 1, and a cut at frame 30.
fn session(session: u64, frames: u64) -> String {
    let mut text = header(session);
    for i in 0..frames {
        let motion = match i {
            0 => 0.0,
            30 => 18.0,
            _ => 1.0,
        };
        let motion2 = if i == 0 { 0.0 } else { 1.0 };
        writeln!(
            text,
            r#"{{"type":"frame","frame":{i},"timestamp":{},"motion":{motion:?},"motion2":{motion2:?},"motion3":1.0}}"#,
            i * 40_000_000
        )
        .expect("a string takes text");
        if i % 25 == 24 {
            writeln!(
                text,
                r#"{{"type":"window","window":{},"first":{},"last":{i},"n-frames":25,"n-scored":25,"partial":false,"motion2.mean":1.0}}"#,
                i / 25,
                i - 24
            )
            .expect("a string takes text");
        }
    }
    writeln!(
        text,
        r#"{{"type":"summary","session":{session},"n-frames":{frames},"frames-without-timestamp":1,"discontinuities":3}}"#
    )
    .expect("a string takes text");
    text
}

fn frame(frame: u64, time: &str) -> String {
    format!(
        r#"{{"type":"frame","frame":{frame},"timestamp":{time},"motion":0.5,"motion2":0.5,"motion3":0.5}}"#
    ) + "\n"
}

fn file(dir: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, content).expect("the temporary folder is writable");
    path
}

#[test]
fn a_session_is_shown_in_full() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let output = table(file(&dir, "a.ndjson", &session(0, 50)));
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
    let shown = text(&output.stdout);
    let rows = (0..20).map(|row| {
        let (first, last) = (row * 50 / 20, (row + 1) * 50 / 20 - 1);
        let (min, mean) = match row {
            0 => (0.0, 0.5),
            _ => (1.0, 1.0),
        };
        let bar = "█".repeat(if row == 0 { 12 } else { 24 });
        format!(
            "  {:>17}  {:>14}  {min:>9.4} {mean:>9.4} {:>9.4}  {bar}\n",
            format!("{first}-{last}"),
            format!("0:00:0{}.{:03}", first * 40 / 1000, first * 40 % 1000),
            1.0
        )
    });
    // Harmonic mean of motion: 50 / (1 / 1 + 48 / 2 + 1 / 19) - 1.
    let expected = format!(
        "session 0: 320x240 I420, 8 bit, integer motion, 50 frames, 0:00:00.000 to 0:00:01.960
  options: motion-max-val=18.0
  2 discontinuities in the stream; scores go on over them

             frames            time        min      mean       max  motion2, mean
{}
                 min      mean       max harmonic mean  (all frames)
  motion      0.0000    1.3200   18.0000        0.9958
  motion2     0.0000    0.9800    1.0000        0.9608
  motion3     1.0000    1.0000    1.0000        1.0000

  highest peaks of motion
           frame 30     0:00:01.200    18.0000  likely a scene cut
            frame 1     0:00:00.040     1.0000
",
        rows.collect::<String>()
    );
    assert_eq!(shown, expected);
}

#[test]
fn every_session_of_a_file_is_shown() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let content = session(0, 3) + &session(1, 0) + &session(2, 2);
    let output = table(file(&dir, "three.ndjson", &content));
    assert!(output.status.success());
    let shown = text(&output.stdout);
    let heads: Vec<&str> = shown
        .lines()
        .filter(|line| line.starts_with("session "))
        .collect();
    assert_eq!(heads.len(), 3, "{shown}");
    assert!(
        heads[1].ends_with("0 frames, without timestamps"),
        "{shown}"
    );
    assert!(shown.contains("no frame was scored"), "{shown}");
    assert!(shown.ends_with("\n3 sessions, 5 frames\n"), "{shown}");
}

#[test]
fn missing_timestamps_frames_and_summary_are_said() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let content = header(0) + &frame(0, "0") + &frame(1, "null") + &frame(5, "80");
    let output = table(file(&dir, "gaps.ndjson", &content));
    assert!(output.status.success());
    let shown = text(&output.stdout);
    assert!(shown.contains("  3 frame lines missing"), "{shown}");
    assert!(shown.contains("  1 frame without timestamp"), "{shown}");
    assert!(shown.contains("  no summary line"), "{shown}");
}

#[test]
fn a_stream_with_one_timestamp_has_none_worth_naming() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let summary = "{\"type\":\"summary\",\"frames-without-timestamp\":2,\"discontinuities\":2}\n";
    let content = header(0) + &frame(0, "0") + &frame(1, "null") + &frame(2, "null") + summary;
    let output = table(file(&dir, "raw.ndjson", &content));
    assert!(output.status.success());
    let shown = text(&output.stdout);
    assert!(shown.contains("3 frames, without timestamps\n"), "{shown}");
    assert!(!shown.contains("discontinuit"), "{shown}");
}

#[test]
fn a_torn_last_line_is_left_out_and_said() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let whole = session(0, 10);
    let torn = &whole[..whole.len() - 20];
    let output = table(file(&dir, "torn.ndjson", torn));
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("10 frames"));
    let said = text(&output.stderr);
    assert!(
        said.contains("incomplete") && said.contains("torn.ndjson"),
        "{said}"
    );
}

#[test]
fn bad_input_exits_with_1_and_says_where() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let good = session(0, 3);
    let missing = dir.path().join("missing.ndjson");
    let broken = good.replacen("\"motion2\"", "motion2", 1);
    // The first such name stands in the header.
    let cases = [
        (missing, "No such file"),
        (dir.path().to_owned(), "is a directory"),
        (file(&dir, "empty.ndjson", ""), "the file is empty"),
        (file(&dir, "broken.ndjson", &broken), "line 1, column "),
        (
            file(&dir, "prose.ndjson", "Dear reader,\n"),
            "line 1, column 1: not a score record",
        ),
        (
            file(&dir, "binary.ndjson", "\0\x01\x02\n"),
            "line 1, column 1",
        ),
        (
            file(&dir, "beheaded.ndjson", &good[header(0).len()..]),
            "line 1: a frame line before any header line",
        ),
        (
            file(
                &dir,
                "future.ndjson",
                &good.replace("schema\":1", "schema\":9"),
            ),
            "schema 9",
        ),
    ];
    for (path, reason) in cases {
        let output = table(&path);
        assert_eq!(output.status.code(), Some(1), "{}", path.display());
        let said = text(&output.stderr);
        assert!(
            said.starts_with("vmafx-scores: ") && said.contains(reason),
            "{said}"
        );
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
}

#[test]
fn sessions_before_a_bad_line_are_still_shown() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let content = session(0, 3) + &session(1, 3) + "oops\n";
    let output = table(file(&dir, "late.ndjson", &content));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("session 0: "));
    assert!(text(&output.stderr).contains("line 11, column 1"));
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [
        vec![],
        vec!["table"],
        vec!["table", "a", "b"],
        vec!["plough"],
        vec!["table", "--fast", "a"],
    ] {
        let output = command(&args).output().expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains("Usage"), "{args:?}");
    }
}

#[test]
fn standard_input_is_read_for_a_dash() {
    let mut child = command(["table", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    child
        .stdin
        .take()
        .expect("stdin is piped")
        .write_all(session(4, 5).as_bytes())
        .expect("the command reads");
    let output = child.wait_with_output().expect("the command ends");
    assert!(output.status.success());
    assert!(text(&output.stdout).starts_with("session 4: "));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    // Far more output than a pipe holds.
    let content: String = (0..2000).map(|i| session(i, 1)).collect();
    let path = file(&dir, "many.ndjson", &content);
    let mut child = command([OsStr::new("table"), path.as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut first = [0; 9];
    stdout.read_exact(&mut first).expect("there is output");
    assert_eq!(&first, b"session 0");
    drop(stdout);
    let output = child.wait_with_output().expect("the command ends");
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(text(&output.stderr), "");
}
