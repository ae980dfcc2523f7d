// SPDX-License-Identifier: MPL-2.0

//! The shape of an OBS filter (obs-gstreamer): one buffer is pushed and one is waited for, the
//! framerate is unknown, and the buffer's memory is used for the next frame right after.

mod common;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use common::{assert_same_score, expected, init, luma};
use gst::ClockTime;
use gst::prelude::*;
use vmaf_motion::{FinalScore, MotionOptions};
use vmafxmotion::{FrameMessage, MotionScore};

const SIZE: (usize, usize) = (32, 18);

struct Filter {
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    sink: gst_app::AppSink,
}

impl Filter {
    fn new(element: &str) -> Self {
        init();
        let launch = format!(
            "appsrc name=source format=time ! {element} name=motion ! appsink name=sink sync=false max-buffers=1 enable-last-sample=false"
        );
        let pipeline = gst::parse::launch(&launch)
            .unwrap()
            .downcast::<gst::Pipeline>()
            .unwrap();
        let source = pipeline
            .by_name("source")
            .unwrap()
            .downcast::<gst_app::AppSrc>()
            .unwrap();
        let sink = pipeline
            .by_name("sink")
            .unwrap()
            .downcast::<gst_app::AppSink>()
            .unwrap();
        let caps = gst_video::VideoCapsBuilder::new()
            .format(gst_video::VideoFormat::Gray8)
            .width(SIZE.0 as i32)
            .height(SIZE.1 as i32)
            .framerate(gst::Fraction::new(0, 1))
            .build();
        source.set_caps(Some(&caps));
        pipeline.set_state(gst::State::Playing).unwrap();
        Self {
            pipeline,
            source,
            sink,
        }
    }

    /// Pushes the frame and waits for what comes out. The test would hang where the filter did.
    fn filter(&self, buffer: gst::Buffer) -> gst::Buffer {
        self.source.push_buffer(buffer).unwrap();
        let sample = self.sink.try_pull_sample(ClockTime::from_seconds(20));
        let sample = sample.expect("the filter holds the frame back: OBS would stand still");
        sample.buffer_owned().unwrap()
    }

    fn frames(&self) -> Vec<FinalScore> {
        let bus = self.pipeline.bus().unwrap();
        let frame = |message: gst::Message| FrameMessage::try_from(message.structure()?).ok();
        std::iter::from_fn(|| bus.pop())
            .filter_map(frame)
            .map(|message| message.score)
            .collect()
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        self.pipeline.set_state(gst::State::Null).unwrap();
    }
}

/// Overwrites the memory of a buffer that nobody else may have.
fn paint(mut buffer: gst::Buffer, frame: usize) -> gst::Buffer {
    // The sink's thread may still be on its way out of the push.
    let deadline = Instant::now() + Duration::from_secs(20);
    while buffer.get_mut().is_none() {
        assert!(Instant::now() < deadline, "the filter keeps the buffer");
        std::thread::yield_now();
    }
    let before = buffer.map_readable().unwrap().as_ptr();
    let inner = buffer.make_mut();
    inner.set_pts(ClockTime::from_mseconds(16 * frame as u64));
    let mut map = inner
        .map_writable()
        .expect("memory that the filter let go of");
    for (byte, sample) in map.iter_mut().zip(luma(SIZE.0, SIZE.1, frame, 8)) {
        *byte = sample as u8;
    }
    assert_eq!(
        map.as_ptr(),
        before,
        "the memory was copied: somebody holds it"
    );
    drop(map);
    buffer
}

#[test]
fn ten_thousand_frames_in_reused_memory() {
    let frames = 10_000;
    let filter = Filter::new("vmafxmotion");
    let new = || gst::Buffer::from_mut_slice(vec![0u8; SIZE.0 * SIZE.1]);
    // appsink keeps the first buffer as its preroll and the newest in its sample: the memory of the
    // frame before the last is used again.
    let mut free = VecDeque::from([new(), new(), new()]);
    let mut scores = Vec::new();
    for frame in 0..frames {
        let buffer = free.pop_front().unwrap();
        let out = filter.filter(paint(buffer, frame));
        assert_eq!(MotionScore::from_buffer(&out).unwrap().frame, frame as u64);
        scores.extend(filter.frames());
        if frame > 0 {
            free.push_back(out);
        }
    }
    let film = expected(&MotionOptions::default(), (SIZE.0, SIZE.1, 8), frames);
    assert_eq!(scores.len(), frames - 1);
    for (ours, expected) in scores.iter().zip(&film) {
        assert_same_score(ours, expected);
    }
}

#[test]
fn a_limited_hold_goes_on_too() {
    let filter = Filter::new("vmafxmotion hold=true max-hold=20");
    for frame in 0..50 {
        let buffer = gst::Buffer::from_mut_slice(vec![0u8; SIZE.0 * SIZE.1]);
        let out = filter.filter(paint(buffer, frame));
        let score = MotionScore::from_buffer(&out).unwrap();
        // Each is waited for alone, so no next frame can make it final.
        assert_eq!((score.frame, score.is_final), (frame as u64, false));
    }
    let film = expected(&MotionOptions::default(), (SIZE.0, SIZE.1, 8), 50);
    let scores = filter.frames();
    assert_eq!(scores.len(), 49);
    for (ours, expected) in scores.iter().zip(&film) {
        assert_same_score(ours, expected);
    }
}
