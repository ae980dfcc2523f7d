// SPDX-License-Identifier: MPL-2.0

//! `vmafx-scores report`, `plot` and `csv`: what they write, and what they refuse. The page is opened in a
//! browser (Debian's chromium), whose document is read after the script has run.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{FRAME_TIME, film, score};
use tempfile::TempDir;

fn scores<I: AsRef<OsStr>>(args: impl IntoIterator<Item = I>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmafx-scores"))
        .args(args)
        .output()
        .expect("the command starts")
}

#[track_caller]
fn done(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
fn refused(output: Output, status: i32, said: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert!(stderr.contains(said), "no {said:?} in {stderr}");
}

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("the temporary folder is writable");
        path
    }

    /// The document of a page as a browser has it once the page's script has run.
    fn browse(&self, page: &Path, fragment: &str) -> String {
        let profile = format!("--user-data-dir={}", self.path("profile").display());
        let address = format!("file://{}#{fragment}", page.display());
        let output = Command::new("chromium")
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", &profile])
            .args(["--virtual-time-budget=60000", "--dump-dom", &address])
            .env("HOME", self.0.path())
            .output()
            .expect("Debian's chromium starts (tests/run.sh installs it)");
        let document = done(output);
        // The script's own text is behind what it made.
        let (shown, _) = document
            .split_once("<script type=\"application/json\"")
            .unwrap_or_else(|| panic!("no report in {document}"));
        shown.to_owned()
    }
}

/// The text of a document's table, cell by cell.
fn cells(document: &str, table: &str) -> Vec<String> {
    let begin = format!("<table id=\"{table}\">");
    let rest = document.split_once(&begin).expect("the table").1;
    let table = rest.split_once("</table>").expect("its end").0;
    let cells = table.split("<td").skip(1);
    let inner = cells.map(|cell| cell.split_once("</td>").expect("its end").0);
    inner.map(text).collect()
}

/// What stands between the tags, from inside a tag on.
fn text(html: &str) -> String {
    let pieces = html.split('>').skip(1);
    pieces
        .map(|piece| piece.split('<').next().unwrap_or_default())
        .collect()
}

#[test]
fn a_browser_shows_the_exact_values() {
    let desk = Desk::new();
    // More than one block of frames.
    let count = 20_000;
    let file = desk.file("film.ndjson", &film(count));
    let page = desk.path("page.html");
    done(scores([
        "report".as_ref(),
        file.as_os_str(),
        "-o".as_ref(),
        page.as_os_str(),
    ]));
    let html = fs::read_to_string(&page).expect("the page");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "the page asks for {outside}");
    }

    let frame = 17_123;
    let shown = desk.browse(&page, &format!("frame={frame}&theme=dark"));
    assert!(shown.contains("<title>film</title>"));
    assert!(shown.contains("data-theme=\"dark\""));
    assert!(!shown.contains("cannot be shown"), "{shown}");
    let pinned = cells(&shown, "pinned-table");
    assert_eq!(pinned[..2], ["film".to_owned(), frame.to_string()]);
    let time = frame * FRAME_TIME / 1_000_000;
    let clock = format!(
        "0:{:02}:{:02}.{:03}",
        time / 60_000,
        time / 1000 % 60,
        time % 1000
    );
    assert_eq!(pinned[2], clock);
    for (cell, value) in pinned[3..6].iter().zip(score(frame, count)) {
        let read: f64 = cell.parse().expect("a number");
        assert_eq!(read.to_bits(), value.to_bits(), "{cell}");
    }
    assert!(pinned[6].starts_with("171: 17100-17199, motion2 mean "));
    let sessions = cells(&shown, "sessions");
    assert!(sessions.contains(&"20000".to_owned()), "{sessions:?}");
    assert!(
        sessions.contains(&"640×360 I420, 8 bit".to_owned()),
        "{sessions:?}"
    );
    assert!(shown.contains("1–25 of 20000"), "all frames are listed");

    let cuts = desk.browse(&page, "list=cuts&axis=frame");
    // One each 1000 frames.
    assert!(cuts.contains("1–20 of 20<"), "cuts");
    assert_eq!(cells(&cuts, "list")[0], "500");
    let windows = desk.browse(&page, "list=windows&from=100&to=199");
    assert!(windows.contains("1–25 of 200<"), "windows");
    assert_eq!(cells(&windows, "list")[1], "0-99");
}

#[test]
fn several_files_and_sessions_are_told_apart_and_names_are_no_markup() {
    let desk = Desk::new();
    let nasty = "a</script><script>document.title='taken'<!--.ndjson".replace('/', "\u{2215}");
    let one = desk.file(&nasty, &film(50));
    let untimed = film(30).replace("\"timestamp\":", "\"timestamp\":null,\"was\":");
    let two = desk.file("two.ndjson", &(untimed.clone() + &film(40)));
    let page = desk.path("page.html");
    let title = "a </title></script> & b";
    done(
        Command::new(env!("CARGO_BIN_EXE_vmafx-scores"))
            .args(["report", "--title", title, "-o"])
            .args([&page, &one, &two])
            .output()
            .expect("the command starts"),
    );
    let shown = desk.browse(&page, "frame=35");
    assert!(
        shown.contains("<title>a &lt;/title&gt;&lt;/script&gt; &amp; b</title>"),
        "{shown}"
    );
    assert!(shown.contains("3 sessions, 120 frames"), "{shown}");
    let pinned = cells(&shown, "pinned-table");
    // The session of 30 frames has no frame 35; both of the same file have their numbers.
    let names: Vec<&String> = pinned.iter().step_by(8).collect();
    assert_eq!(names.len(), 2);
    assert!(names[0].starts_with("a&lt;"), "{names:?}");
    assert_eq!(names[1], "two, session 0");
    assert!(
        shown.contains("id=\"by-time\" type=\"button\" disabled"),
        "no time axis for all"
    );
}

#[test]
fn pictures_have_labels_on_a_machine_without_fonts() {
    let desk = Desk::new();
    let file = desk.file("film.ndjson", &film(3000));
    let plot = |more: &[&str], name: &str| {
        let out = desk.path(name);
        let output = Command::new(env!("CARGO_BIN_EXE_vmafx-scores"))
            .arg("plot")
            .arg(&file)
            .arg("-o")
            .arg(&out)
            .args(more)
            .env("HOME", desk.0.path())
            .env("FONTCONFIG_FILE", "/nowhere")
            .output()
            .expect("the command starts");
        done(output);
        fs::read(out).expect("a picture")
    };
    let svg = String::from_utf8(plot(&[], "a.svg")).expect("an SVG is text");
    for said in [
        "<svg",
        "motion2",
        "motion3",
        "film",
        "window mean",
        "likely scene cut",
        "1:30",
    ] {
        assert!(svg.contains(said), "no {said} in the picture");
    }
    let one = String::from_utf8(plot(&["--feature", "motion"], "b.svg")).expect("text");
    assert!(!one.contains("motion2"), "only what was asked for");

    let png = plot(&["--width", "800", "--height", "400"], "a.png");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((number(16), number(20)), (800, 400));
    // Text changes the picture: a longer name has more ink.
    let longer = desk.file("a film with a longer name.ndjson", &film(3000));
    let out = desk.path("c.png");
    done(scores([
        "plot".as_ref(),
        longer.as_os_str(),
        "--width=800".as_ref(),
        "--height=400".as_ref(),
        "-o".as_ref(),
        out.as_os_str(),
    ]));
    assert_ne!(fs::read(out).expect("a picture"), png);
}

#[test]
fn memory_does_not_grow_with_the_film() {
    let desk = Desk::new();
    // The scores alone are eight megabytes, twenty as text; the program may have nine for everything.
    let count = 200_000;
    let film = desk.file("film.ndjson", &film(count));
    for command in ["report", "plot", "csv"] {
        let out = desk.path(if command == "plot" { "a.png" } else { "a.out" });
        let limited = "ulimit -d 9216; exec \"$@\"";
        let output = Command::new("bash")
            .args([
                "-c",
                limited,
                "bash",
                env!("CARGO_BIN_EXE_vmafx-scores"),
                command,
            ])
            .arg(&film)
            .arg("-o")
            .arg(&out)
            .output()
            .expect("bash starts");
        done(output);
        assert!(fs::metadata(out).expect("a result").len() > 10_000);
    }
}

#[test]
fn a_table_for_other_programs() {
    let desk = Desk::new();
    let file = desk.file("film.ndjson", &film(300));
    let table = done(scores(["csv".as_ref(), file.as_os_str()]));
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 301);
    for (i, row) in rows[1..].iter().enumerate() {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!(cells[..2], ["0", &i.to_string()]);
        for (cell, value) in cells[3..].iter().zip(score(i as u64, 300)) {
            assert_eq!(
                cell.parse::<f64>().expect("a number").to_bits(),
                value.to_bits()
            );
        }
    }
    let out = desk.path("windows.csv");
    let said = done(scores([
        "csv".as_ref(),
        "--windows".as_ref(),
        file.as_os_str(),
        "-o".as_ref(),
        out.as_os_str(),
    ]));
    assert_eq!(said, "");
    let windows = fs::read_to_string(out).expect("a table");
    assert_eq!(windows.lines().count(), 4, "{windows}");
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_nothing() {
    let desk = Desk::new();
    let good = desk.file("good.ndjson", &film(3));
    let torn = desk.file(
        "broken.ndjson",
        &film(3).replacen("\"motion2\"", "motion2", 1),
    );
    let missing = desk.path("missing.ndjson");
    let page = desk.path("page.html");
    let run = |command: &str, inputs: &[&Path], out: &Path| {
        Command::new(env!("CARGO_BIN_EXE_vmafx-scores"))
            .arg(command)
            .args(inputs)
            .arg("-o")
            .arg(out)
            .output()
            .expect("the command starts")
    };
    refused(
        run("report", &[&good, &missing], &page),
        1,
        "missing.ndjson: No such file",
    );
    refused(
        run("report", &[&torn], &page),
        1,
        "broken.ndjson: line 2, column ",
    );
    refused(run("report", &[&good], &good), 1, "would be overwritten");
    refused(run("report", &[&good], desk.0.path()), 1, "is a folder");
    refused(
        run("report", &[&good], &desk.path("no/page.html")),
        1,
        "no/page.html",
    );
    refused(
        run("plot", &[&torn], &desk.path("a.png")),
        1,
        "broken.ndjson: line 2",
    );
    refused(
        run("plot", &[&good], &desk.path("a.pdf")),
        2,
        "must end in .png or .svg",
    );
    refused(
        run("csv", &[&torn], &desk.path("a.csv")),
        1,
        "broken.ndjson: line 2",
    );
    refused(scores(["report", "a.ndjson"]), 2, "Usage");
    refused(
        scores(["plot", "a", "-o", "a.png", "--feature", "vmaf"]),
        2,
        "motion2 or motion3",
    );
    refused(
        scores(["plot", "a", "-o", "a.png", "--width", "3"]),
        2,
        "--width",
    );
    let mut left: Vec<_> = fs::read_dir(desk.0.path())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["broken.ndjson", "good.ndjson"]);
}

#[test]
fn an_empty_session_and_a_torn_line_make_a_page_and_a_picture() {
    let desk = Desk::new();
    let empty = film(0);
    let file = desk.file("empty.ndjson", &(empty + "{\"type\":\"fra"));
    let (page, picture) = (desk.path("page.html"), desk.path("a.svg"));
    for (command, out) in [("report", &page), ("plot", &picture)] {
        let output = scores([
            command.as_ref(),
            file.as_os_str(),
            "-o".as_ref(),
            out.as_os_str(),
        ]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        done(output);
        assert!(stderr.contains("is incomplete"), "{stderr}");
    }
    let shown = desk.browse(&page, "frame=0");
    assert!(shown.contains("no frame was scored"), "{shown}");
    assert!(!shown.contains("cannot be shown"), "{shown}");
    let svg = fs::read_to_string(picture).expect("a picture");
    assert!(svg.contains("no frame was scored"));
}
