// SPDX-License-Identifier: MPL-2.0

//! A film that is scored in chunks and merged equals the film scored whole, byte for byte, on real
//! video, for every option set of the goldens.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use e2e::workspace_root;
use gst::ClockTime;
use gst::prelude::*;
use serde_json::Value;
use tempfile::TempDir;
use vmaf_motion::chunks::needed_preroll;
use vmaf_motion::sad::Distance;
use vmafx_scores::merge::merge;

/// Frames of a film, at most: enough for seven chunks under every option.
const FRAMES: usize = 60;

/// A decoded film.
struct Film {
    caps: gst::Caps,
    frames: Vec<gst::Buffer>,
}

fn decode(path: &Path, decoder: &str) -> Film {
    let launch = format!(
        "filesrc name=source ! {decoder} ! videoconvert ! video/x-raw,format=I420 \
         ! appsink name=sink sync=false"
    );
    let pipeline = gst::parse::launch(&launch).expect("Debian's decoders");
    let pipeline = pipeline.downcast::<gst::Pipeline>().expect("a pipeline");
    let source = pipeline.by_name("source").expect("the source");
    source.set_property("location", path.to_str());
    let sink = pipeline.by_name("sink").expect("the sink");
    let sink = sink.downcast::<gst_app::AppSink>().expect("an appsink");
    pipeline.set_state(gst::State::Playing).expect("plays");
    let mut film = Film {
        caps: gst::Caps::new_empty(),
        frames: Vec::new(),
    };
    while film.frames.len() < FRAMES
        && let Ok(sample) = sink.pull_sample()
    {
        film.caps = sample.caps_owned().expect("caps");
        let frame = film.frames.len() as u64;
        let mut buffer = sample
            .buffer()
            .expect("a buffer")
            .copy_deep()
            .expect("a copy");
        let inner = buffer.get_mut().expect("one owner");
        inner.set_pts(ClockTime::from_mseconds(40 * frame));
        inner.set_duration(ClockTime::from_mseconds(40));
        inner.unset_flags(gst::BufferFlags::DISCONT);
        film.frames.push(buffer);
    }
    pipeline.set_state(gst::State::Null).expect("stops");
    assert_eq!(film.frames.len(), FRAMES, "{} is too short", path.display());
    film
}

/// The option sets of the goldens, extractor included, each once.
fn option_sets() -> Vec<Value> {
    let folder = workspace_root().join("tests/data/goldens");
    let mut sets = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("goldens") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            let text = std::fs::read_to_string(path).expect("a golden");
            let golden: Value = serde_json::from_str(&text).expect("JSON");
            for run in golden["runs"].as_array().expect("runs") {
                let set =
                    serde_json::json!({"extractor": run["extractor"], "options": run["options"]});
                sets.insert(set.to_string());
            }
        }
    }
    let parse = |set: &String| serde_json::from_str(set).expect("what was written");
    sets.iter().map(parse).collect()
}

fn flag(set: &Value, name: &str) -> bool {
    set["options"][name] == Value::Bool(true)
}

/// Scores the film's frames `start..end` as a chunk.
fn score(film: &Film, set: &Value, start: usize, end: usize, path: &Path) {
    let distance = if flag(set, "motion_five_frame_window") {
        Distance::Two
    } else {
        Distance::One
    };
    let preroll = needed_preroll(distance, flag(set, "motion_moving_average")) as usize;
    let before = start.min(preroll);
    let after = (film.frames.len() - end).min(1);

    let element = gst::ElementFactory::make("vmafxmotion")
        .build()
        .expect("the element");
    if set["extractor"] == "float_motion" {
        element.set_property_from_str("extractor", "float");
    }
    for (name, value) in set["options"].as_object().expect("options") {
        if name != "debug" {
            element.set_property_from_str(&name.replace('_', "-"), &value.to_string());
        }
    }
    element.set_property("scores-path", path.to_str());
    element.set_property_from_str("messages", "0");
    element.set_property("n-stats", 0.5);
    element.set_property("first-frame", start as u64);
    element.set_property("preroll-frames", before as u32);
    element.set_property("postroll-frames", after as u32);
    let mut harness = gst_check::Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_drop_buffers(true);
    harness.set_src_caps(film.caps.clone());
    for buffer in &film.frames[start - before..end + after] {
        harness.push(buffer.clone()).expect("scored");
    }
    harness.push_event(gst::event::Eos::new());
    element.set_state(gst::State::Null).expect("stops");
}

#[test]
fn chunked_equals_whole() {
    gst::init().expect("GStreamer starts");
    gstvmafxmotion::plugin_register_static().expect("the plugin registers");
    let films = [
        decode(
            &test_streams::named("test-25fps.h264").path,
            "h264parse ! avdec_h264",
        ),
        decode(
            &test_streams::named("bbb.h265").path,
            "h265parse ! avdec_h265",
        ),
        decode(
            &test_streams::named("test-25fps.vp9").path,
            "ivfparse ! vp9dec",
        ),
    ];
    let sets = option_sets();
    assert!(sets.len() >= 20, "only {} option sets", sets.len());
    let folder = TempDir::new().expect("a temporary folder");
    let mut merged = 0;
    for film in &films {
        for set in &sets {
            if flag(set, "motion_add_scale1") && flag(set, "motion_add_uv") {
                // Not defined for 4:2:0.
                continue;
            }
            let whole = folder.path().join("whole.ndjson");
            score(film, set, 0, FRAMES, &whole);
            let whole = std::fs::read_to_string(&whole).expect("the whole film's scores");
            assert_eq!(whole.matches("\"type\":\"frame\"").count(), FRAMES);
            for chunks in [2, 3, 7] {
                let cut = |chunk: usize| chunk * FRAMES / chunks;
                let mut parts: Vec<PathBuf> = Vec::new();
                for chunk in 0..chunks {
                    let path = folder.path().join(format!("part{chunk}.ndjson"));
                    score(film, set, cut(chunk), cut(chunk + 1), &path);
                    parts.push(path);
                }
                // The order of the files does not matter.
                parts.reverse();
                let mut out = Vec::new();
                let frames =
                    merge(&parts, &mut out, || ()).unwrap_or_else(|e| panic!("{set}: {e}"));
                assert_eq!(frames, FRAMES as u64);
                let out = String::from_utf8(out).expect("text");
                for (ours, theirs) in out.lines().zip(whole.lines()) {
                    assert_eq!(ours, theirs, "{set} in {chunks} chunks");
                }
                assert_eq!(out.len(), whole.len());
                merged += 1;
            }
        }
    }
    println!("{merged} films in {} option sets", sets.len());
}
