// SPDX-License-Identifier: MPL-2.0

//! The NDJSON file: what stands in it, and that it never holds up the stream.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::{Bench, assert_same_score, expected, gray, read_scores};
use gst::prelude::*;
use nix::sys::stat::Mode;
use score_records::Record;
use vmaf_motion::{FinalScore, MotionOptions};

const SIZE: (usize, usize) = (16, 12);

fn bench(path: &Path, set: impl FnOnce(&gst::Element)) -> Bench {
    Bench::gray(SIZE.0, SIZE.1, |element| {
        element.set_property("scores-path", path.to_str());
        set(element);
    })
}

fn run(path: &Path, frames: usize, set: impl FnOnce(&gst::Element)) -> Bench {
    let mut bench = bench(path, set);
    for frame in 0..frames {
        bench.score(gray(SIZE.0, SIZE.1, frame));
    }
    bench
}

fn frames(records: &[Record]) -> Vec<FinalScore> {
    let score = |record: &Record| match record {
        Record::Frame(frame) => Some(FinalScore {
            frame: frame.frame,
            motion: frame.motion,
            motion2: frame.motion2,
            motion3: frame.motion3,
        }),
        _ => None,
    };
    records.iter().filter_map(score).collect()
}

#[test]
fn header_frames_summary() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scores.ndjson");
    let mut bench = run(&path, 5, |element| {
        element.set_property("motion-max-val", 18.0)
    });
    bench.harness.push_event(gst::event::Eos::new());
    // Complete at EOS already, before the element stops.
    let records = read_scores(&path);
    bench.stop();
    assert_eq!(records, read_scores(&path));

    let Record::Header(header) = &records[0] else {
        panic!("{:?} is no header", records[0]);
    };
    assert_eq!((header.schema, header.session), (1, 0));
    assert_eq!((header.width, header.height, header.depth), (16, 12, 8));
    assert_eq!(
        (header.format.as_str(), header.extractor.as_str()),
        ("GRAY8", "integer")
    );
    assert_eq!(header.options["motion-max-val"].as_f64(), Some(18.0));
    assert_eq!(header.feature_names["motion2"], "integer_motion2_mmxv_18");

    let options = MotionOptions {
        max_val: 18.0,
        ..MotionOptions::default()
    };
    let scores = expected(&options, (SIZE.0, SIZE.1, 8), 5);
    for (ours, score) in frames(&records).iter().zip(&scores) {
        assert_same_score(ours, score);
    }
    let Record::Frame(frame) = &records[4] else {
        panic!("{:?} is no frame", records[4]);
    };
    assert_eq!((frame.frame, frame.timestamp), (3, Some(120_000_000)));

    let Some(Record::Summary(summary)) = records.last() else {
        panic!("{:?} is no summary", records.last());
    };
    assert_eq!(
        (summary.count("session"), summary.count("n-frames")),
        (Some(0), Some(5))
    );
    assert_eq!(records.len(), 7);
    assert_eq!(bench.messages().warnings, Vec::<String>::new());
}

#[test]
fn frame_lines_do_not_depend_on_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scores.ndjson");
    let bench = run(&path, 3, |element| {
        element.set_property_from_str("messages", "0")
    });
    bench.stop();
    assert_eq!(frames(&read_scores(&path)).len(), 3);
    assert!(bench.messages().frames.is_empty());
}

#[test]
fn a_missing_timestamp_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scores.ndjson");
    let mut bench = bench(&path, |_| {});
    let mut untimed = gray(SIZE.0, SIZE.1, 0);
    untimed.make_mut().set_pts(None);
    bench.score(untimed);
    bench.stop();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#""timestamp":null,"motion":0.0"#), "{text}");
}

#[test]
fn each_session_has_its_header_and_summary() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scores.ndjson");
    let mut bench = run(&path, 2, |_| {});
    bench.harness.set_src_caps(common::gray_caps(8, 8));
    bench.score(gray(8, 8, 0));
    bench.stop();
    let kinds: String = read_scores(&path)
        .iter()
        .map(|record| match record {
            Record::Header(_) => 'h',
            Record::Frame(_) => 'f',
            Record::Summary(_) => 's',
            _ => '?',
        })
        .collect();
    assert_eq!(kinds, "hffshfs");
}

#[test]
fn a_new_run_replaces_the_file_or_appends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scores.ndjson");
    // Half a line of a writer that was killed.
    std::fs::write(&path, "{\"type\":\"note\"}\n{\"type\":\"fra").unwrap();
    run(&path, 2, |element| {
        element.set_property("scores-append", true)
    })
    .stop();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "{\"type\":\"fra");
    assert!(lines[2].starts_with("{\"type\":\"header\""), "{}", lines[2]);
    assert_eq!(lines.len(), 6);

    run(&path, 2, |element| {
        element.set_property("scores-append", true)
    })
    .stop();
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 10);
    run(&path, 2, |_| {}).stop();
    assert_eq!(read_scores(&path).len(), 4);
}

#[test]
fn a_full_disk_warns_once_and_the_stream_goes_on() {
    let mut bench = run(Path::new("/dev/full"), 200, |_| {});
    bench.harness.push_event(gst::event::Eos::new());
    bench.stop();
    let posted = bench.messages();
    assert_eq!(posted.frames.len(), 200);
    assert_eq!(posted.errors, Vec::<String>::new());
    assert_eq!(posted.warnings.len(), 1, "{:?}", posted.warnings);
    assert!(
        posted.warnings[0].contains("No space left"),
        "{:?}",
        posted.warnings
    );
}

fn fifo(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("fifo");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    path
}

#[test]
fn a_fifo_that_nobody_reads_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut bench = bench(&fifo(folder.path()), |element| {
        element.set_property_from_str("messages", "0");
    });
    // More than the queue holds.
    for _ in 0..9_000 {
        bench.score(gray(SIZE.0, SIZE.1, 0));
    }
    assert!(bench.stat("lines-dropped") > 0);
    let warnings = bench.messages().warnings;
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("too slowly"), "{warnings:?}");
    let before = Instant::now();
    bench.stop();
    assert!(before.elapsed() < Duration::from_secs(5));
    assert!(bench.messages().warnings.is_empty(), "warned twice");
}

#[test]
fn a_fifo_is_read_live() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(folder.path());
    let mut bench = bench(&path, |_| {});
    let (lines, received) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let file = BufReader::new(std::fs::File::open(path).unwrap());
        for line in file.lines() {
            lines.send(line.unwrap()).unwrap();
        }
    });
    bench.score(gray(SIZE.0, SIZE.1, 0));
    let line = || {
        received
            .recv_timeout(Duration::from_secs(20))
            .expect("a line while it runs")
    };
    assert!(line().contains("header"));
    bench.score(gray(SIZE.0, SIZE.1, 1));
    assert!(line().contains(r#""frame":0"#));
    bench.stop();
    assert!(line().contains(r#""frame":1"#));
    assert!(line().contains("summary"));
    reader.join().unwrap();
}

#[test]
fn a_reader_that_goes_away_ends_neither_stream_nor_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(folder.path());
    let mut bench = bench(&path, |_| {});
    let reader = std::thread::spawn(move || {
        let mut first = [0; 10];
        std::fs::File::open(path)
            .unwrap()
            .read_exact(&mut first)
            .unwrap();
    });
    bench.score(gray(SIZE.0, SIZE.1, 0));
    reader.join().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while bench.stat("lines-dropped") == 0 {
        assert!(Instant::now() < deadline, "the loss is never noticed");
        bench.score(gray(SIZE.0, SIZE.1, 1));
    }
    bench.stop();
    let warnings = bench.messages().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}
