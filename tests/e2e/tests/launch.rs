// SPDX-License-Identifier: MPL-2.0

//! `vmafxmotion` on the command lines of `gst-launch-1.0` and `gst-inspect-1.0`: what it says of itself,
//! and what a user sees who gets something wrong.

mod common;

use std::fs;
use std::process::Command;

use common::clips::Clip;
use common::{scores, write_raw};
use e2e::{Stage, command, run, workspace_root};
use gst_video::VideoFormat;
use tempfile::TempDir;

fn stage() -> Stage {
    Stage::fresh(&["vmafxmotion"])
}

/// `gst-launch-1.0 -q` with a pipeline in one string.
fn launch(stage: &Stage, pipeline: &str) -> Command {
    let mut command = command(stage, "gst-launch-1.0");
    command.arg("-q").args(pipeline.split(' '));
    command
}

#[test]
fn gst_inspect_reads_as_documentation() {
    let stage = stage();
    let shown = run(command(&stage, "gst-inspect-1.0").arg("vmafxmotion")).success();
    assert_eq!(shown.stderr, "");
    let shown = shown.stdout;
    for said in [
        "Filter/Analyzer/Video",
        "VMAF",
        "none (0)",
        "MPL",
        "libgstvmafxmotion.so",
        "I420_10LE",
        "GRAY16_LE",
        "motion-force-zero",
        "motion-fps-weight",
        "motion-max-val",
        "motion-blend-factor",
        "motion-blend-offset",
        "motion-five-frame-window",
        "motion-moving-average",
        "messages",
        "scores-path",
        "scores-append",
        "stats",
        "Range:               0 -           10000 Default:           10000",
    ] {
        assert!(shown.contains(said), "no {said:?} in\n{shown}");
    }
    assert!(!shown.contains("memory:"), "system memory only\n{shown}");
    let staged = stage.plugins().join("libgstvmafxmotion.so");
    assert!(
        shown.contains(&staged.display().to_string()),
        "another plugin than the staged one\n{shown}"
    );
}

#[test]
fn a_value_out_of_range_is_refused_with_a_warning_and_the_stream_goes_on() {
    let stage = stage();
    let dir = TempDir::new().expect("a temporary folder");
    let file = dir.path().join("scores.ndjson");
    let pipeline = format!(
        "videotestsrc num-buffers=3 ! vmafxmotion motion-max-val=10001 scores-path={} ! fakesink",
        file.display()
    );
    // GLib's warning is the refusal here, so it may not be fatal.
    let done = run(launch(&stage, &pipeline).env_remove("G_DEBUG")).success();
    assert!(
        done.stderr.contains("motion-max-val") && done.stderr.contains("10001"),
        "{done}"
    );
    let scores = scores(&file);
    assert_eq!(scores.frames.len(), 3);
    assert_eq!(scores.header.options["motion-max-val"], 10_000.0);
}

#[test]
fn what_cannot_start_is_refused_with_one_error() {
    let stage = stage();
    for (pipeline, said) in [
        (
            "videotestsrc ! video/x-raw,format=RGB ! vmafxmotion ! fakesink",
            "vmafxmotion0 can't handle caps video/x-raw, format=(string)RGB",
        ),
        (
            "videotestsrc ! vmafxmotion scores-path=/nowhere/scores.ndjson ! fakesink",
            "/nowhere/scores.ndjson",
        ),
        (
            "videotestsrc ! vmafxmotion plough=1 ! fakesink",
            "no property \"plough\"",
        ),
    ] {
        let done = run(&mut launch(&stage, pipeline));
        // 1 or 255, by the stage it fails at.
        assert!(done.status.code().is_some_and(|code| code != 0), "{done}");
        assert_eq!(done.stderr.matches(said).count(), 1, "{pipeline}: {done}");
        assert!(!done.stderr.contains("panicked"), "{pipeline}: {done}");
    }
}

/// Not by gst-launch-1.0: that of GStreamer 1.22 may hang, with any elements, when two errors come while
/// it prerolls, and the source posts the second one.
#[test]
fn sizes_that_cannot_be_scored_are_refused() {
    let stage = stage();
    for (width, height) in [(2, 64), (64, 2)] {
        let pipeline = format!(
            "videotestsrc ! video/x-raw,format=I420,width={width},height={height} \
             ! vmafxmotion ! fakesink name=reader"
        );
        let reader = workspace_root().join("pipelines/examples/read-scores.py");
        let mut command = command(&stage, "/usr/bin/python3");
        let done = run(command.arg(reader).arg(pipeline)).failure(1);
        let said = format!("vmafxmotion0: Cannot score: picture size {width}x{height}");
        assert!(done.stderr.starts_with(&said), "{done}");
        assert_eq!(done.stdout, "", "{done}");
    }
}

#[test]
fn a_truncated_raw_file_gives_the_scores_of_its_whole_frames() {
    gst::init().expect("GStreamer starts");
    let stage = stage();
    let dir = TempDir::new().expect("a temporary folder");
    let clip = Clip {
        formula: "box".to_owned(),
        w: 176,
        h: 144,
        depth: 8,
        subsampling: 420,
        frames: 5,
    };
    let luma: Vec<Vec<u8>> = (0..clip.frames).map(|t| clip.plane(t, 0)).collect();
    let raw = dir.path().join("clip.yuv");
    let frame = write_raw(&clip, &luma, VideoFormat::I420, &raw);
    let score = |bytes: usize| {
        let cut = dir.path().join("cut.yuv");
        let whole = fs::read(&raw).expect("the clip was written");
        fs::write(&cut, &whole[..bytes]).expect("the folder is writable");
        let file = dir.path().join("cut.ndjson");
        let pipeline = format!(
            "filesrc location={} ! rawvideoparse format=i420 width=176 height=144 \
             ! vmafxmotion scores-path={} ! fakesink",
            cut.display(),
            file.display()
        );
        let pipeline = pipeline.replace("             ", "");
        let done = run(&mut launch(&stage, &pipeline)).success();
        assert_eq!(done.stderr, "");
        scores(&file).frames
    };
    let three = score(3 * frame);
    assert_eq!(three.len(), 3);
    assert_eq!(score(3 * frame + frame / 2), three);
    assert_eq!(score(4 * frame - 1), three);
    assert_eq!(score(4 * frame).len(), 4);
}

#[test]
fn a_file_name_of_any_kind_can_hold_scores() {
    let stage = stage();
    let dir = TempDir::new().expect("a temporary folder");
    for name in ["a b.ndjson", "ä.ndjson", "-o", "it's.ndjson"] {
        let file = dir.path().join(name);
        // In one argument, as a shell's quotes make it; gst-launch wants quotes of its own.
        let mut command = command(&stage, "gst-launch-1.0");
        command
            .args(["-q", "videotestsrc", "num-buffers=2", "!", "vmafxmotion"])
            .arg(format!("scores-path=\"{}\"", file.display()))
            .args(["!", "fakesink"]);
        run(&mut command).success();
        assert_eq!(scores(&file).frames.len(), 2, "{name}");
    }
}

/// Runs a program under GStreamer's leaks tracer; the objects that are alive when it shuts GStreamer down.
fn leaks(command: &mut Command) -> Vec<String> {
    // The tracer also warns, which would end the program before it has listed what it found.
    let done = run(command
        .env_remove("G_DEBUG")
        .env("GST_TRACERS", "leaks")
        .env("GST_DEBUG", "GST_TRACER:7,leaks:6")
        .env("GST_DEBUG_NO_COLOR", "1"))
    .success();
    assert!(done.stderr.contains("GST_TRACER"), "no tracer: {done}");
    let lines = done.stderr.lines();
    // The tracer describes its records before it writes any: those lines have no address.
    let alive = lines.filter(|l| l.contains("object-alive") && l.contains("address=(gpointer)0x"));
    alive.map(str::to_owned).collect()
}

#[test]
fn nothing_leaks() {
    let stage = stage();
    let dir = TempDir::new().expect("a temporary folder");
    let file = dir.path().join("scores.ndjson");
    for pipeline in [
        &format!(
            "videotestsrc num-buffers=10 ! vmafxmotion scores-path={} ! fakesink",
            file.display()
        ),
        "videotestsrc num-buffers=10 ! vmafxmotion motion-five-frame-window=true ! queue ! fakesink",
        "videotestsrc num-buffers=10 ! vmafxmotion ! x264enc ! h264parse ! avdec_h264 ! fakesink",
    ] {
        let alive = leaks(&mut launch(&stage, pipeline));
        assert_eq!(alive, Vec::<String>::new(), "{pipeline}");
    }
}

#[test]
fn what_is_alive_counts_as_leaked() {
    let program = "import gi; gi.require_version('Gst', '1.0'); from gi.repository import Gst; \
        Gst.init(None); kept = Gst.ElementFactory.make('vmafxmotion'); Gst.deinit()";
    let mut command = command(&stage(), "/usr/bin/python3");
    let alive = leaks(command.args(["-c", program]));
    assert!(
        alive.iter().any(|line| line.contains("GstVmafxMotion")),
        "{alive:?}"
    );
}
