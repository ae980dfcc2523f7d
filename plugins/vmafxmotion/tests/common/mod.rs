// SPDX-License-Identifier: MPL-2.0

//! What the tests of the element share: pictures, a harness, the bus.

// Each test program uses its own part of it.
#![allow(dead_code)]

use std::path::Path;
use std::sync::Once;

use gst::ClockTime;
use gst::prelude::*;
use gst_check::Harness;
use score_records::Record;
use vmaf_motion::{FinalScore, Geometry, MotionOptions, MotionStream, Plane, SampleFormat};
use vmafxmotion::{FrameMessage, MotionScore, SummaryMessage, WindowMessage};

/// Initialises GStreamer and registers the plugin, once.
pub fn init() {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        gst::init().expect("GStreamer starts");
        gstvmafxmotion::plugin_register_static().expect("the plugin registers");
    });
}

/// A small picture that changes from frame to frame, different in every sample.
pub fn luma(width: usize, height: usize, frame: usize, depth: u32) -> Vec<u16> {
    let max = (1u32 << depth) - 1;
    let sample = |x: usize, y: usize| {
        let hash = (x * 7 + y * 13 + frame * 31 + (x * y * (frame % 5 + 1)) / 3) as u32;
        (hash.wrapping_mul(2_654_435_761) >> 7 & max) as u16
    };
    (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .map(|(x, y)| sample(x, y))
        .collect()
}

/// The scores of these frames, from the motion crate.
pub fn expected(
    options: &MotionOptions,
    (width, height, depth): (usize, usize, u32),
    frames: usize,
) -> Vec<FinalScore> {
    let format = SampleFormat::low(depth).expect("a depth");
    let geometry = Geometry::new(width as u32, height as u32, format).expect("a size");
    let mut stream = MotionStream::new(options, geometry).expect("a stream");
    let mut scores = Vec::new();
    for frame in 0..frames {
        let samples = luma(width, height, frame, depth);
        let bytes: Vec<u8> = match depth {
            8 => samples.iter().map(|&sample| sample as u8).collect(),
            _ => samples
                .iter()
                .flat_map(|sample| sample.to_le_bytes())
                .collect(),
        };
        let plane = Plane::new(&bytes, geometry.row_bytes(), geometry).expect("a plane");
        scores.extend(stream.push(&plane).expect("a step").finals.iter());
    }
    scores.extend(stream.flush().iter());
    scores
}

/// Frame `frame` of [`luma`] as a buffer of GRAY8, 40 ms a frame.
pub fn gray(width: usize, height: usize, frame: usize) -> gst::Buffer {
    let info =
        gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, width as u32, height as u32)
            .build()
            .expect("an info");
    let mut bytes = vec![0xAA; info.size()];
    let stride = info.stride()[0] as usize;
    for (row, samples) in bytes
        .chunks_mut(stride)
        .zip(luma(width, height, frame, 8).chunks(width))
    {
        for (byte, sample) in row.iter_mut().zip(samples) {
            *byte = *sample as u8;
        }
    }
    timed(gst::Buffer::from_mut_slice(bytes), frame)
}

/// Gives a buffer the times of frame `frame` at 25 frames a second.
pub fn timed(mut buffer: gst::Buffer, frame: usize) -> gst::Buffer {
    let inner = buffer.make_mut();
    inner.set_pts(ClockTime::from_mseconds(40 * frame as u64));
    inner.set_duration(ClockTime::from_mseconds(40));
    buffer
}

/// Caps of GRAY8 at 25 frames a second.
pub fn gray_caps(width: usize, height: usize) -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format(gst_video::VideoFormat::Gray8)
        .width(width as i32)
        .height(height as i32)
        .framerate(gst::Fraction::new(25, 1))
        .build()
}

/// The element in a harness, with a bus to read.
pub struct Bench {
    pub harness: Harness,
    pub element: gst::Element,
    pub bus: gst::Bus,
}

impl Bench {
    /// With `set` applied before it starts; no caps yet.
    pub fn new(set: impl FnOnce(&gst::Element)) -> Self {
        init();
        let element = gst::ElementFactory::make("vmafxmotion")
            .build()
            .expect("an element");
        set(&element);
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let harness = Harness::with_element(&element, Some("sink"), Some("src"));
        Self {
            harness,
            element,
            bus,
        }
    }

    /// For GRAY8 pictures of this size.
    pub fn gray(width: usize, height: usize, set: impl FnOnce(&gst::Element)) -> Self {
        let mut bench = Self::new(set);
        bench.harness.set_src_caps(gray_caps(width, height));
        bench
    }

    /// Pushes a buffer and gives the scores on the one that comes out.
    pub fn score(&mut self, buffer: gst::Buffer) -> MotionScore {
        let out = self
            .harness
            .push_and_pull(buffer)
            .expect("a buffer comes out");
        MotionScore::from_buffer(&out).expect("scores on the buffer")
    }

    /// Frame and summary messages posted since the last call.
    pub fn messages(&self) -> Posted {
        let mut posted = Posted::default();
        while let Some(message) = self.bus.pop() {
            match message.view() {
                gst::MessageView::Element(message) => {
                    let structure = message.structure().expect("a structure");
                    if let Ok(frame) = FrameMessage::try_from(structure) {
                        posted.frames.push(frame);
                    } else if let Ok(window) = WindowMessage::try_from(structure) {
                        posted.windows.push(window);
                    } else {
                        let summary = SummaryMessage::try_from(structure);
                        posted
                            .summaries
                            .push(summary.expect("a frame or a summary"));
                    }
                }
                gst::MessageView::Error(error) => posted.errors.push(error.error().to_string()),
                gst::MessageView::Warning(warning) => {
                    posted.warnings.push(warning.error().to_string());
                }
                _ => {}
            }
        }
        posted
    }

    pub fn stat(&self, name: &str) -> u64 {
        let stats: gst::Structure = self.element.property("stats");
        stats
            .get(name)
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Stops the element, so that its file is complete.
    pub fn stop(&self) {
        self.element.set_state(gst::State::Null).expect("stops");
    }
}

/// What the element posted.
#[derive(Debug, Default)]
pub struct Posted {
    pub frames: Vec<FrameMessage>,
    pub windows: Vec<WindowMessage>,
    pub summaries: Vec<SummaryMessage>,
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

/// The lines of a score file.
pub fn read_scores(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).expect("a score file");
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    text.lines().map(parse).collect()
}

/// Equal to the last bit.
#[track_caller]
pub fn assert_same_score(ours: &FinalScore, expected: &FinalScore) {
    let bits = |score: &FinalScore| {
        (
            score.frame,
            [score.motion, score.motion2, score.motion3].map(f64::to_bits),
        )
    };
    assert_eq!(bits(ours), bits(expected), "{ours:?} is not {expected:?}");
}
