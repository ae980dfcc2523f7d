// SPDX-License-Identifier: MPL-2.0

//! `vmafx-scores merge`: parts that meet make a film, everything else is refused by name.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A part of frames `first..first + frames`, as the element writes it.
fn part(first: u64, frames: u64, change: impl Fn(String) -> String) -> String {
    let header = format!(
        r#"{{"type":"header","schema":1,"version":"0.1.0","extractor":"integer","options":{{"motion-moving-average":false}},"feature-names":{{}},"format":"I420","width":64,"height":48,"depth":8,"session":0,"first-frame":{first},"preroll-frames":{},"postroll-frames":1,"n-stats":0.0,"n-stats-frames":4,"n-subsample":1,"pool":["mean"]}}"#,
        first.min(1)
    );
    let mut text = change(header) + "\n";
    for frame in first..first + frames {
        let score = frame as f64 / 8.0;
        text += &format!(
            "{{\"type\":\"frame\",\"frame\":{frame},\"timestamp\":{},\"motion\":{score:?},\"motion2\":{score:?},\"motion3\":{score:?}}}\n",
            frame * 40
        );
    }
    let (start, length) = (first * 40, frames * 40);
    text + &format!(
        "{{\"type\":\"summary\",\"discontinuities\":2,\"duration\":{length},\"frames-without-timestamp\":0,\"n-frames\":{frames},\"session\":0,\"timestamp\":{start}}}\n"
    )
}

fn write(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

fn merge(parts: &[&Path], more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmafx-scores"))
        .arg("merge")
        .args(parts)
        .args(more)
        .output()
        .expect("the program starts")
}

#[track_caller]
fn refused(parts: &[&Path], said: &[&str]) {
    let done = merge(parts, &[]);
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    for part in said {
        assert!(stderr.contains(part), "no `{part}` in {stderr}");
    }
}

fn same(header: String) -> String {
    header
}

#[test]
fn parts_that_meet() {
    let folder = TempDir::new().expect("a folder");
    let first = write(&folder, "a.ndjson", &part(0, 6, same));
    let second = write(&folder, "b.ndjson", &part(6, 4, same));
    let out = folder.path().join("film.ndjson");
    let done = merge(&[&second, &first], &["-o", out.to_str().expect("a path")]);
    assert!(done.status.success(), "{done:?}");
    let film = std::fs::read_to_string(&out).expect("the film");
    let kinds: Vec<&str> = film.lines().map(|line| &line[9..10]).collect();
    // Windows of four frames: 0-3, 4-7 over the cut, and 8-9 at the end.
    assert_eq!(kinds.concat(), "hffffwffffwffws", "{film}");
    let windows: Vec<serde_json::Value> = film
        .lines()
        .filter(|line| line.contains("\"window\""))
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(windows[1]["first"], 4);
    assert_eq!(
        windows[1]["motion2.mean"],
        (4.0 + 5.0 + 6.0 + 7.0) / 8.0 / 4.0
    );
    assert_eq!(windows[2]["partial"], true);
    let summary: serde_json::Value =
        serde_json::from_str(film.lines().last().expect("a line")).expect("JSON");
    assert_eq!(summary["n-frames"], 10);
    assert_eq!(summary["discontinuities"], 4);
    assert_eq!(summary["duration"], 400);
    assert_eq!(summary["motion2.max"], 9.0 / 8.0);
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        3
    );
}

#[test]
fn gap_and_overlap() {
    let folder = TempDir::new().expect("a folder");
    let first = write(&folder, "a.ndjson", &part(0, 6, same));
    let late = write(&folder, "late.ndjson", &part(8, 4, same));
    refused(
        &[&first, &late],
        &["frames 6 to 7 are missing", "late.ndjson"],
    );
    let early = write(&folder, "early.ndjson", &part(5, 4, same));
    refused(
        &[&first, &early],
        &["frames 5 to 5 are in part 0 and in part 1", "early.ndjson"],
    );
}

#[test]
fn headers_must_agree() {
    let folder = TempDir::new().expect("a folder");
    let first = write(&folder, "a.ndjson", &part(0, 6, same));
    for (from, to, field) in [
        ("\"width\":64", "\"width\":65", "size"),
        ("\"integer\"", "\"float\"", "extractor"),
        ("average\":false", "average\":true", "options"),
        ("\"I420\"", "\"NV12\"", "format"),
        ("\"mean\"", "\"max\"", "pool"),
    ] {
        let other = part(6, 4, |header| header.replace(from, to));
        let other = write(&folder, "b.ndjson", &other);
        refused(
            &[&first, &other],
            &[&format!("differ in {field}"), "a.ndjson", "b.ndjson"],
        );
    }
}

#[test]
fn too_little_around_a_part() {
    let folder = TempDir::new().expect("a folder");
    let first = write(&folder, "a.ndjson", &part(0, 6, same));
    let bare = part(6, 4, |header| {
        header.replace("\"preroll-frames\":1", "\"preroll-frames\":0")
    });
    let bare = write(&folder, "b.ndjson", &bare);
    refused(&[&first, &bare], &["exact scores need 1"]);
}

#[test]
fn files_that_are_no_parts() {
    let folder = TempDir::new().expect("a folder");
    let first = write(&folder, "a.ndjson", &part(0, 6, same));
    let cut = part(6, 4, same);
    let cut = write(
        &folder,
        "cut.ndjson",
        cut.split("{\"type\":\"summary\"").next().expect("a part"),
    );
    refused(&[&first, &cut], &["cut.ndjson", "no summary"]);
    let two = write(
        &folder,
        "two.ndjson",
        &(part(6, 4, same) + &part(10, 4, same)),
    );
    refused(&[&first, &two], &["two.ndjson", "more than one session"]);
    let hole = part(6, 4, same).replace("\"frame\":8,", "\"frame\":9,");
    let hole = write(&folder, "hole.ndjson", &hole);
    refused(
        &[&first, &hole],
        &["hole.ndjson", "has frame 9 where frame 8 belongs"],
    );
    let text = write(&folder, "text.ndjson", "hello\n");
    refused(&[&first, &text], &["text.ndjson", "line 1"]);
    refused(
        &[&first, &folder.path().join("none.ndjson")],
        &["none.ndjson", "No such file"],
    );
}

#[test]
fn a_failed_merge_leaves_no_film() {
    let folder = TempDir::new().expect("a folder");
    let late = write(&folder, "late.ndjson", &part(8, 4, same));
    let first = write(&folder, "a.ndjson", &part(0, 6, same));
    let out = folder.path().join("film.ndjson");
    let done = merge(&[&late, &first], &["-o", out.to_str().expect("a path")]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        2
    );
    let nowhere = merge(&[&first], &["-o", "/nonexistent/film.ndjson"]);
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("/nonexistent/film.ndjson"));
}

#[test]
fn usage() {
    let done = merge(&[], &[]);
    assert_eq!(done.status.code(), Some(2));
}
