// SPDX-License-Identifier: MPL-2.0

//! Every golden as a raw file through `gst-launch-1.0`: what the score file holds has the bits that
//! libvmaf computed, whatever the raw format that carries the luma plane. Chroma is not looked at here:
//! the raw files hold none that means anything, so the sets with `motion_add_uv` are left out.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::clips::{Clip, goldens};
use common::{scores, write_raw};
use e2e::{Stage, command, run};
use gst_video::VideoFormat;
use score_records::Frame;
use serde_json::Value;
use tempfile::TempDir;

/// The formats that carry a clip: all option sets go through the first, the defaults through all.
fn formats(clip: &Clip) -> &'static [VideoFormat] {
    use VideoFormat::*;
    match (clip.depth, clip.subsampling) {
        (8, 400) => &[Gray8],
        (8, 420) => &[I420, Nv12, Yv12, Nv21, Gray8],
        (8, 422) => &[Y42b],
        (8, 444) => &[Y444],
        (10, 420) => &[I42010le, P01010le, I42210le],
        (10, 444) => &[Y44410le],
        (12, 420) => &[I42012le, P012Le],
        (16, 420) => &[P016Le, Gray16Le],
        other => panic!("no format for depth and subsampling {other:?}"),
    }
}

/// A run's extractor and options as properties; `debug` only adds an output that the element always has.
fn properties(run: &Value) -> Vec<String> {
    let extractor = match run["extractor"].as_str() {
        Some("motion") => "extractor=integer",
        Some("float_motion") => "extractor=float",
        other => panic!("no extractor {other:?}"),
    };
    let options = run["options"].as_object().expect("options are an object");
    let options = options.iter().filter(|(name, _)| *name != "debug");
    let options = options.map(|(name, value)| format!("{}={value}", name.replace('_', "-")));
    [extractor.to_owned()].into_iter().chain(options).collect()
}

/// A feature's name and its bits in a line of a score file.
type Feature = (&'static str, fn(&Frame) -> u64);

/// Whether the frames of a score file have the bits of a golden's run.
#[track_caller]
fn check_bits(frames: &[Frame], set: &Value, context: &str) {
    let features: [Feature; 3] = [
        ("motion", |frame| frame.motion.to_bits()),
        ("motion2", |frame| frame.motion2.to_bits()),
        ("motion3", |frame| frame.motion3.to_bits()),
    ];
    for (feature, value) in features {
        // `motion` goes by another name, or is left out, by extractor and option `debug`.
        let arrays = if feature == "motion" {
            &["motion", "motion_sad"][..]
        } else {
            &[feature]
        };
        let Some(expected) = arrays.iter().find_map(|&name| set.get(name)) else {
            assert_eq!(set["set"], "nodebug", "{context} without {feature}");
            continue;
        };
        let got: Vec<u64> = frames.iter().map(value).collect();
        assert_eq!(got, bits(expected), "{context} {feature}");
    }
}

fn bits(values: &Value) -> Vec<u64> {
    let values = values.as_array().expect("an array of scores");
    values
        .iter()
        .map(|value| value.as_f64().expect("a number").to_bits())
        .collect()
}

/// Scores the raw file and compares; says what differs.
fn check(stage: &Stage, clip: &Clip, format: VideoFormat, raw: &Path, golden: &Value, set: &Value) {
    let context = format!(
        "{} {} {} {format:?}",
        golden["id"], set["extractor"], set["set"]
    );
    let file = raw.with_extension("ndjson");
    let mut launch = command(stage, "gst-launch-1.0");
    launch
        .args(["-q", "filesrc"])
        .arg(format!("location={}", raw.display()))
        .args(["!", "rawvideoparse", "framerate=25/1"])
        .arg(format!(
            "format={}",
            format.to_str().to_lowercase().replace('_', "-")
        ))
        .arg(format!("width={}", clip.w))
        .arg(format!("height={}", clip.h))
        .args(["!", "vmafxmotion"])
        .args(properties(set))
        .arg(format!("scores-path={}", file.display()))
        .args(["!", "fakesink"]);
    let done = run(&mut launch).success();
    assert_eq!(done.stderr, "", "{context}");

    let scores = scores(&file);
    let header = &scores.header;
    assert_eq!(
        (header.width, header.height, header.depth),
        (clip.w, clip.h, clip.depth),
        "{context}"
    );
    assert_eq!(header.format, format.to_str().as_str(), "{context}");
    for feature in ["motion2", "motion3"] {
        assert_eq!(
            Some(header.feature_names[feature].as_str()),
            set["names"][feature].as_str(),
            "{context}"
        );
    }
    let indices: Vec<u64> = scores.frames.iter().map(|frame| frame.frame).collect();
    assert_eq!(
        indices,
        Vec::from_iter(0..u64::from(clip.frames)),
        "{context}"
    );
    let times: Vec<Option<u64>> = scores.frames.iter().map(|frame| frame.timestamp).collect();
    let expected = (0..u64::from(clip.frames)).map(|i| Some(i * 40_000_000));
    assert_eq!(times, Vec::from_iter(expected), "{context}");
    check_bits(&scores.frames, set, &context);
    let summary = scores.summary.expect("the session ends");
    assert_eq!(
        summary.count("n-frames"),
        Some(clip.frames.into()),
        "{context}"
    );
}

/// All runs of one golden; returns how many pipelines ran.
fn check_golden(stage: &Stage, dir: &Path, golden: &Value) -> usize {
    let Some(clip) = Clip::of_golden(golden) else {
        return 0;
    };
    let luma = clip.luma(golden);
    let runs = golden["runs"].as_array().expect("a golden has runs");
    let sets: Vec<&Value> = runs
        .iter()
        .filter(|run| run["options"].get("motion_add_uv").is_none())
        .collect();
    let mut count = 0;
    for (i, &format) in formats(&clip).iter().enumerate() {
        let id = golden["id"].as_str().expect("a golden has an id");
        let raw = dir.join(format!("{id}.{}", format.to_str()));
        write_raw(&clip, &luma, format, &raw);
        let all = sets.iter().filter(|set| i == 0 || set["set"] == "default");
        for set in all {
            check(stage, &clip, format, &raw, golden, set);
            count += 1;
        }
        std::fs::remove_file(&raw).expect("the raw file was written");
    }
    count
}

#[test]
fn score_files_have_libvmaf_s_bits() {
    gst::init().expect("GStreamer starts");
    let stage = Stage::fresh(&["vmafxmotion"]);
    let dir = TempDir::new().expect("a temporary folder");
    let goldens = goldens();
    let (next, pipelines) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let workers = thread::available_parallelism().map_or(1, |n| n.get());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(golden) = goldens.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = check_golden(&stage, dir.path(), golden);
                    pipelines.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    let pipelines = pipelines.into_inner();
    println!("{pipelines} pipelines");
    assert!(pipelines > 200, "only {pipelines} pipelines ran");
}

/// A clip that GStreamer itself makes, scored on its way into a file: the file is the one that the
/// golden was made from, so the pictures pass untouched.
#[test]
fn a_clip_of_gstreamer_s_own_passes_untouched() {
    let goldens = goldens();
    let golden = goldens.iter().find(|golden| golden["id"] == "tool_gstball");
    let golden = golden.expect("the golden is there");
    let stage = Stage::fresh(&["vmafxmotion"]);
    let dir = TempDir::new().expect("a temporary folder");
    let (clip, file) = (dir.path().join("clip.yuv"), dir.path().join("clip.ndjson"));
    let mut launch = command(&stage, "gst-launch-1.0");
    launch
        .args(["-q", "videotestsrc", "num-buffers=17", "pattern=ball", "!"])
        .arg("video/x-raw,format=I420,width=576,height=324,framerate=24/1")
        .args([
            "!",
            "vmafxmotion",
            &format!("scores-path={}", file.display()),
        ])
        .args(["!", "filesink", &format!("location={}", clip.display())]);
    run(&mut launch).success();
    let md5 = run(std::process::Command::new("md5sum").arg(&clip)).success();
    let md5 = md5.stdout.split(' ').next().map(str::to_owned);
    assert_eq!(md5.as_deref(), golden["md5"].as_str());
    check_bits(&scores(&file).frames, &golden["runs"][0], "tool_gstball");
}
