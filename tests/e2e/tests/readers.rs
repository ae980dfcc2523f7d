// SPDX-License-Identifier: MPL-2.0

//! The scores as programs in C, Python and Rust read them, from buffers and from the bus, next to the score
//! file of the same run; and what becomes of the meta on the way through converters and codecs.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Scores, scores};
use e2e::{Stage, command, profile_dir, run, workspace_root};
use tempfile::TempDir;

/// A line of a reader's output: what it speaks of, and its fields.
#[derive(Debug)]
struct Line {
    kind: String,
    fields: BTreeMap<String, String>,
}

impl Line {
    fn parse(line: &str) -> Self {
        let (kind, fields) = line.split_once(' ').expect("a kind before the fields");
        let fields = fields.split(' ').filter_map(|field| field.split_once('='));
        Self {
            kind: kind.to_owned(),
            fields: fields.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        }
    }

    #[track_caller]
    fn get<T: std::str::FromStr>(&self, field: &str) -> T {
        let value = self.fields.get(field);
        value
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no {field} in {self:?}"))
    }

    #[track_caller]
    fn bits(&self, field: &str) -> u64 {
        self.get::<f64>(field).to_bits()
    }
}

/// One of the readers of `pipelines/examples`, ready to start.
struct Reader {
    name: &'static str,
    arguments: Vec<PathBuf>,
}

/// The readers; the C one is compiled into `dir`, the Rust one with the workspace.
fn readers(dir: &Path) -> [Reader; 3] {
    let examples = workspace_root().join("pipelines/examples");
    let flags = run(Command::new("pkg-config").args(["--cflags", "--libs", "gstreamer-1.0"]));
    let flags = flags.success().stdout;
    let program = dir.join("read-scores");
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(examples.join("read-scores.c"))
        .args(flags.split_whitespace()))
    .success();
    [
        Reader {
            name: "C",
            arguments: vec![program],
        },
        Reader {
            name: "Python",
            arguments: vec!["/usr/bin/python3".into(), examples.join("read-scores.py")],
        },
        Reader {
            name: "Rust",
            arguments: vec![profile_dir().join("read-scores")],
        },
    ]
}

impl Reader {
    /// Reads a pipeline's scores; the lines of each kind in their order.
    fn read(&self, stage: &Stage, pipeline: &str) -> BTreeMap<String, Vec<Line>> {
        let mut command = command(stage, &self.arguments[0]);
        let done = run(command.args(&self.arguments[1..]).arg(pipeline)).success();
        assert_eq!(done.stderr, "", "{}", self.name);
        let mut kinds = BTreeMap::<String, Vec<Line>>::new();
        for line in done.stdout.lines().map(Line::parse) {
            kinds.entry(line.kind.clone()).or_default().push(line);
        }
        kinds
    }
}

/// Whether the buffers carry the scores of the file: each frame once and in order, its own motion, and
/// what became final with it. `m` is the distance of the frames compared.
#[track_caller]
fn check_buffers(name: &str, buffers: &[Line], scores: &Scores, m: usize) {
    assert_eq!(buffers.len(), scores.frames.len(), "{name}");
    for (i, (buffer, frame)) in buffers.iter().zip(&scores.frames).enumerate() {
        let context = format!("{name}: {buffer:?}");
        assert_eq!(buffer.get::<usize>("frame"), i, "{context}");
        assert_eq!(buffer.get::<u64>("session"), 0, "{context}");
        assert_eq!(buffer.bits("motion"), frame.motion.to_bits(), "{context}");
        assert!(!buffer.get::<bool>("final"), "{context}");
        if i < m {
            assert!(!buffer.fields.contains_key("final-frame"), "{context}");
            continue;
        }
        let first = if i == m { 0 } else { i - 1 };
        assert_eq!(buffer.get::<usize>("final-first"), first, "{context}");
        assert_eq!(buffer.get::<usize>("final-frame"), i - 1, "{context}");
        for frame in &scores.frames[first..i] {
            assert_eq!(buffer.bits("motion2"), frame.motion2.to_bits(), "{context}");
            assert_eq!(buffer.bits("motion3"), frame.motion3.to_bits(), "{context}");
        }
    }
}

const SOURCE: &str = "videotestsrc num-buffers=24 pattern=ball ! \
    video/x-raw,format=I420,width=320,height=240,framerate=25/1";

#[test]
fn c_python_and_rust_read_what_the_file_says() {
    let stage = Stage::fresh(&["vmafxmotion"]);
    let dir = TempDir::new().expect("a temporary folder");
    for reader in readers(dir.path()) {
        for (m, options) in [
            (1, ""),
            (2, "motion-five-frame-window=true motion-max-val=18"),
        ] {
            let file = dir.path().join(format!("{}{m}.ndjson", reader.name));
            let pipeline = format!(
                "{SOURCE} ! vmafxmotion {options} scores-path={} ! fakesink name=reader",
                file.display()
            );
            let read = reader.read(&stage, &pipeline);
            let scores = scores(&file);
            assert_eq!(scores.frames.len(), 24);
            assert!(scores.frames[20].motion > 0.1, "the ball moves");
            check_buffers(reader.name, &read["buffer"], &scores, m);

            let messages = &read["message"];
            assert_eq!(messages.len(), 24, "{}", reader.name);
            for (message, frame) in messages.iter().zip(&scores.frames) {
                assert_eq!(message.get::<u64>("frame"), frame.frame);
                assert_eq!(Some(message.get::<u64>("timestamp")), frame.timestamp);
                assert_eq!(message.bits("motion"), frame.motion.to_bits());
                assert_eq!(message.bits("motion2"), frame.motion2.to_bits());
                assert_eq!(message.bits("motion3"), frame.motion3.to_bits());
            }
            let [summary] = &read["summary"][..] else {
                panic!("{}: not one summary", reader.name);
            };
            let written = scores.summary.expect("the session ends");
            assert_eq!(summary.get::<u64>("n-frames"), 24);
            assert_eq!(
                Some(summary.get::<f64>("motion2.mean")),
                written.values["motion2.mean"].as_f64()
            );
        }
    }
}

#[test]
fn each_is_an_example_that_can_be_read_at_a_glance() {
    let examples = workspace_root().join("pipelines/examples");
    for file in ["read-scores.c", "read-scores.py", "read-scores/src/main.rs"] {
        let text = std::fs::read_to_string(examples.join(file)).expect("the example");
        assert!(text.lines().count() < 100, "{file} has grown");
    }
}

#[test]
fn the_rust_reader_needs_no_plugin_path() {
    let nothing = TempDir::new().expect("a temporary folder");
    let stage = Stage::fresh(&["vmafxmotion"]);
    let mut command = command(&stage, profile_dir().join("read-scores"));
    let done = run(command
        .env("GST_PLUGIN_PATH", nothing.path())
        .env("GST_REGISTRY", nothing.path().join("registry.bin"))
        .arg(format!("{SOURCE} ! vmafxmotion ! fakesink name=reader")))
    .success();
    assert_eq!(done.stdout.matches("message ").count(), 24, "{done}");
}

#[test]
fn the_meta_survives_converters_a_tee_and_a_codec() {
    let stage = Stage::fresh(&["vmafxmotion"]);
    let dir = TempDir::new().expect("a temporary folder");
    for reader in readers(dir.path()) {
        let file = dir.path().join(format!("{}.ndjson", reader.name));
        // B-frames on purpose: the decoder puts the frames in order again.
        let pipeline = format!(
            "{SOURCE} ! vmafxmotion scores-path={} \
             ! videoconvert ! video/x-raw,format=Y444 ! videoscale ! video/x-raw,width=160,height=120 \
             ! queue ! tee name=tee \
             tee. ! queue ! videoconvert ! x264enc bframes=2 ! h264parse ! avdec_h264 ! fakesink name=reader \
             tee. ! queue ! fakesink",
            file.display()
        );
        let read = reader.read(&stage, &pipeline);
        check_buffers(reader.name, &read["buffer"], &scores(&file), 1);
    }
}

#[test]
fn the_readers_say_what_is_wrong() {
    let stage = Stage::fresh(&["vmafxmotion"]);
    let dir = TempDir::new().expect("a temporary folder");
    for reader in readers(dir.path()) {
        let none = reader.read(&stage, "videotestsrc num-buffers=2 ! fakesink name=reader");
        let without: Vec<_> = none["buffer"].iter().map(|line| &line.fields).collect();
        assert_eq!(without, [&BTreeMap::new(), &BTreeMap::new()]);
        for (pipeline, said) in [
            (
                "videotestsrc ! nonsense name=reader",
                "no element \"nonsense\"",
            ),
            ("videotestsrc ! fakesink", "no element named reader"),
            (
                "filesrc location=/nowhere ! fakesink name=reader",
                "Resource not found",
            ),
        ] {
            let mut command = command(&stage, &reader.arguments[0]);
            let done = run(command.args(&reader.arguments[1..]).arg(pipeline)).failure(1);
            assert!(done.stderr.contains(said), "{}: {done}", reader.name);
        }
    }
}
