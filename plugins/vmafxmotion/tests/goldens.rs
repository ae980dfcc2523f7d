// SPDX-License-Identifier: MPL-2.0

//! Every golden of both extractors through the element, bit for bit, for every option set.

#[path = "../../../elements/vmaf-motion/tests/common/clips.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod clips;
mod common;

use clips::{Clip, goldens};
use common::Bench;
use gst::prelude::*;
use gst_video::{VideoFormat, VideoInfo};
use serde_json::Value;
use vmafxmotion::FrameMessage;

/// GStreamer's formats for a clip; without chroma where it has none of that kind.
fn formats(clip: &Clip) -> Vec<VideoFormat> {
    use VideoFormat as F;
    match (clip.subsampling, clip.depth) {
        (400, 8) => vec![F::Gray8],
        (420, 8) => vec![F::I420, F::Nv12],
        (420, 10) => vec![F::I42010le, F::P01010le],
        (420, 12) => vec![F::I42012le, F::P012Le],
        (422, 8) => vec![F::Y42b],
        (444, 8) => vec![F::Y444],
        (444, 10) => vec![F::Y44410le],
        (_, 16) => vec![F::Gray16Le, F::P016Le],
        other => panic!("no format for {other:?}"),
    }
}

/// A frame of the clip; GStreamer rounds odd chroma sizes up, the clip's formulas go on there.
fn buffer(clip: &Clip, info: &VideoInfo, frame: u32) -> gst::Buffer {
    let format = info.format_info();
    let mut bytes = vec![0u8; info.size()];
    for component in 0..format.n_components() as usize {
        let start = info.offset()[format.plane()[component] as usize];
        let stride = info.stride()[format.plane()[component] as usize] as usize;
        let (offset, step) = (
            format.poffset()[component] as usize,
            format.pixel_stride()[component] as usize,
        );
        for y in 0..info.comp_height(component as u8) {
            for x in 0..info.comp_width(component as u8) {
                let sample =
                    clip.sample(x, y, frame, component as u32) << format.shift()[component];
                let at = start + y as usize * stride + x as usize * step + offset;
                match clip.depth {
                    8 => bytes[at] = sample as u8,
                    _ => bytes[at..at + 2].copy_from_slice(&sample.to_le_bytes()),
                }
            }
        }
    }
    common::timed(gst::Buffer::from_mut_slice(bytes), frame as usize)
}

fn set_options(element: &gst::Element, run: &Value) {
    if run["extractor"] == "float_motion" {
        element.set_property_from_str("extractor", "float");
    }
    for (name, value) in run["options"].as_object().expect("options") {
        // The element always has what `debug` adds.
        if name != "debug" {
            element.set_property_from_str(&name.replace('_', "-"), &value.to_string());
        }
    }
}

fn compare(what: &str, run: &Value, frames: &[FrameMessage]) -> usize {
    let mut values = 0;
    for (output, get) in [
        (
            "motion_sad",
            (|f| f.score.motion) as fn(&FrameMessage) -> f64,
        ),
        ("motion", |f| f.score.motion),
        ("motion2", |f| f.score.motion2),
        ("motion3", |f| f.score.motion3),
    ] {
        let Some(expected) = run[output].as_array() else {
            continue;
        };
        assert_eq!(frames.len(), expected.len(), "{what}");
        for (message, expected) in frames.iter().zip(expected) {
            let (ours, expected) = (get(message), expected.as_f64().expect("a number"));
            let frame = message.score.frame;
            assert_eq!(
                ours.to_bits(),
                expected.to_bits(),
                "{what} {output} of frame {frame}: {ours} is not {expected}"
            );
            values += 1;
        }
    }
    values
}

#[test]
fn every_golden_in_every_format() {
    common::init();
    let (mut runs, mut values) = ([0, 0], 0);
    for golden in goldens() {
        let Some(clip) = Clip::of_golden(&golden) else {
            continue;
        };
        // The large ones are the crate's tests' business.
        if clip.w > 640 {
            continue;
        }
        for format in formats(&clip) {
            let info = VideoInfo::builder(format, clip.w, clip.h)
                .fps(gst::Fraction::new(25, 1))
                .build()
                .unwrap();
            let buffers: Vec<_> = (0..clip.frames)
                .map(|frame| buffer(&clip, &info, frame))
                .collect();
            for run in golden["runs"].as_array().expect("runs") {
                let chroma = run["options"].get("motion_add_uv").is_some();
                let odd = clip.subsampling != 444 && (clip.w % 2, clip.h % 2) != (0, 0);
                if chroma && (odd || info.n_components() < 3) {
                    continue;
                }
                let mut bench = Bench::new(|element| set_options(element, run));
                bench.harness.set_src_caps(info.to_caps().unwrap());
                for buffer in &buffers {
                    bench.harness.push(buffer.clone()).unwrap();
                }
                bench.harness.push_event(gst::event::Eos::new());
                let what = format!(
                    "{} {} {} as {}",
                    golden["id"],
                    run["extractor"],
                    run["set"],
                    format.to_str()
                );
                values += compare(&what, run, &bench.messages().frames);
                runs[usize::from(run["extractor"] == "float_motion")] += 1;
            }
        }
    }
    println!("{runs:?} runs, {values} values");
    assert!(
        runs[0] >= 461 && runs[1] >= 135 && values >= 14_604,
        "only {runs:?} runs, {values} values"
    );
}
