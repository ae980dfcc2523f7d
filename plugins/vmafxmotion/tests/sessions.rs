// SPDX-License-Identifier: MPL-2.0

//! What ends a session, what does not, and what is posted then.

mod common;

use std::sync::{Arc, Mutex};

use common::{Bench, assert_same_score, expected, gray, gray_caps, timed};
use gst::ClockTime;
use gst::prelude::*;
use vmaf_motion::MotionOptions;
use vmafxmotion::{FrameMessage, MotionScore};

const SIZE: (usize, usize) = (16, 12);

fn bench() -> Bench {
    Bench::gray(SIZE.0, SIZE.1, |_| {})
}

fn push(bench: &mut Bench, frames: std::ops::Range<usize>) -> Vec<MotionScore> {
    frames
        .map(|frame| bench.score(gray(SIZE.0, SIZE.1, frame)))
        .collect()
}

fn segment() -> gst::Event {
    gst::event::Segment::new(&gst::FormattedSegment::<ClockTime>::new())
}

/// The event ends the session after three frames; the next buffer starts session 1 with frame 0.
fn ends(events: impl FnOnce() -> Vec<gst::Event>) {
    let mut bench = bench();
    push(&mut bench, 0..3);
    assert_eq!(bench.messages().frames.len(), 2);
    for event in events() {
        assert!(bench.harness.push_event(event));
    }
    let posted = bench.messages();
    let last: Vec<_> = posted
        .frames
        .iter()
        .map(|message| message.score.frame)
        .collect();
    assert_eq!(last, [2], "the last frame becomes final");
    assert_eq!(posted.summaries.len(), 1);
    assert_eq!(
        (posted.summaries[0].session, posted.summaries[0].n_frames),
        (0, 3)
    );
    assert_eq!(posted.summaries[0].discontinuities, 0);
    let next = bench
        .harness
        .push_and_pull(gray(SIZE.0, SIZE.1, 3))
        .unwrap();
    let next = MotionScore::from_buffer(&next).unwrap();
    assert_eq!((next.session, next.frame, next.motion), (1, 0, 0.0));
}

/// The event does not end the session; it counts as `discontinuities`.
fn goes_on(events: impl FnOnce() -> Vec<gst::Event>, discontinuities: u64) {
    let mut bench = bench();
    push(&mut bench, 0..3);
    for event in events() {
        assert!(bench.harness.push_event(event));
    }
    let next = push(&mut bench, 3..4);
    assert_eq!((next[0].session, next[0].frame), (0, 3));
    assert_ne!(next[0].motion, 0.0);
    bench.harness.push_event(gst::event::Eos::new());
    let posted = bench.messages();
    assert_eq!(posted.summaries.len(), 1);
    assert_eq!(posted.summaries[0].discontinuities, discontinuities);
    assert_eq!(bench.stat("discontinuities"), discontinuities);
    let scores = expected(&MotionOptions::default(), (SIZE.0, SIZE.1, 8), 4);
    for (message, score) in posted.frames.iter().zip(&scores) {
        assert_same_score(&message.score, score);
    }
}

#[test]
fn stream_start_ends_a_session() {
    ends(|| {
        vec![
            gst::event::StreamStart::new("another"),
            gst::event::Caps::new(&gray_caps(SIZE.0, SIZE.1)),
            segment(),
        ]
    });
}

#[test]
fn flush_ends_a_session() {
    ends(|| {
        vec![
            gst::event::FlushStart::new(),
            gst::event::FlushStop::new(true),
            segment(),
        ]
    });
}

#[test]
fn eos_ends_a_session() {
    let mut bench = bench();
    push(&mut bench, 0..3);
    bench.harness.push_event(gst::event::Eos::new());
    let posted = bench.messages();
    assert_eq!((posted.frames.len(), posted.summaries.len()), (3, 1));
    // A second EOS has nothing to end.
    bench.harness.push_event(gst::event::Eos::new());
    assert!(bench.messages().summaries.is_empty());
}

#[test]
fn another_size_ends_a_session() {
    let mut bench = bench();
    push(&mut bench, 0..3);
    bench.harness.set_src_caps(gray_caps(8, 8));
    let posted = bench.messages();
    assert_eq!((posted.frames.len(), posted.summaries.len()), (3, 1));
    let next = bench.score(gray(8, 8, 3));
    assert_eq!((next.session, next.frame), (1, 0));
}

#[test]
fn another_format_of_the_same_depth_ends_a_session() {
    let mut bench = bench();
    push(&mut bench, 0..3);
    let caps = gst_video::VideoCapsBuilder::new()
        .format(gst_video::VideoFormat::Nv12)
        .width(SIZE.0 as i32)
        .height(SIZE.1 as i32)
        .framerate(gst::Fraction::new(25, 1))
        .build();
    bench.harness.set_src_caps(caps);
    assert_eq!(bench.messages().summaries.len(), 1);
}

#[test]
fn stopping_ends_a_session() {
    let mut bench = bench();
    push(&mut bench, 0..3);
    bench.element.set_state(gst::State::Ready).unwrap();
    let posted = bench.messages();
    assert_eq!((posted.frames.len(), posted.summaries.len()), (3, 1));
}

#[test]
fn a_segment_does_not_end_a_session() {
    goes_on(|| vec![segment()], 1);
}

#[test]
fn a_gap_does_not_end_a_session() {
    let gap = || gst::event::Gap::builder(ClockTime::from_mseconds(120)).build();
    goes_on(|| vec![gap()], 1);
}

#[test]
fn segment_done_does_not_end_a_session() {
    goes_on(
        || vec![gst::event::SegmentDone::new(ClockTime::from_mseconds(120))],
        0,
    );
}

#[test]
fn another_framerate_does_not_end_a_session() {
    let caps = || {
        let mut caps = gray_caps(SIZE.0, SIZE.1);
        caps.make_mut().set("framerate", gst::Fraction::new(50, 1));
        gst::event::Caps::new(&caps)
    };
    goes_on(|| vec![caps()], 1);
}

#[test]
fn equal_caps_are_no_interruption() {
    goes_on(
        || vec![gst::event::Caps::new(&gray_caps(SIZE.0, SIZE.1))],
        0,
    );
}

#[test]
fn tags_and_custom_events_are_no_interruption() {
    let custom = || gst::event::CustomDownstream::new(gst::Structure::new_empty("custom"));
    goes_on(
        || vec![gst::event::Tag::new(gst::TagList::new()), custom()],
        0,
    );
}

#[test]
fn interruptions_before_the_first_frame_do_not_count() {
    let mut bench = bench();
    bench.harness.push_event(segment());
    bench
        .harness
        .push_event(gst::event::Gap::builder(ClockTime::ZERO).build());
    let mut first = gray(SIZE.0, SIZE.1, 0);
    first.make_mut().set_flags(gst::BufferFlags::DISCONT);
    bench.score(first);
    bench.harness.push_event(gst::event::Eos::new());
    assert_eq!(bench.messages().summaries[0].discontinuities, 0);
}

#[test]
fn discont_and_missing_timestamps_count() {
    let mut bench = bench();
    push(&mut bench, 0..2);
    let mut discont = gray(SIZE.0, SIZE.1, 2);
    discont.make_mut().set_flags(gst::BufferFlags::DISCONT);
    assert_eq!(bench.score(discont).frame, 2);
    let mut untimed = gray(SIZE.0, SIZE.1, 3);
    untimed.make_mut().set_pts(None);
    assert_eq!(bench.score(untimed).frame, 3);
    bench.harness.push_event(gst::event::Eos::new());
    let posted = bench.messages();
    assert_eq!(posted.frames[3].times.timestamp, None);
    assert_eq!(posted.frames[3].times.running_time, None);
    assert_eq!(posted.summaries[0].discontinuities, 2);
    assert_eq!(posted.summaries[0].frames_without_timestamp, 1);
}

#[test]
fn serialised_events_keep_their_place() {
    let mut bench = bench();
    // Those of the start are out of the way.
    bench.score(gray(SIZE.0, SIZE.1, 0));
    while bench.harness.try_pull_event().is_some() {}
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let pad = bench.element.static_pad("src").unwrap();
    let mask = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(mask, move |_, info| {
        let what = match &info.data {
            Some(gst::PadProbeData::Buffer(buffer)) => format!("buffer {}", buffer.pts().unwrap()),
            Some(gst::PadProbeData::Event(event)) => event.structure().unwrap().name().to_string(),
            _ => return gst::PadProbeReturn::Ok,
        };
        seen.lock().unwrap().push(what);
        gst::PadProbeReturn::Ok
    });
    let mark = |name: &str| gst::event::CustomDownstream::new(gst::Structure::new_empty(name));
    bench.harness.push_event(mark("one"));
    bench.score(gray(SIZE.0, SIZE.1, 1));
    bench.harness.push_event(mark("two"));
    bench.score(gray(SIZE.0, SIZE.1, 2));
    assert_eq!(
        *order.lock().unwrap(),
        [
            "one",
            "buffer 0:00:00.040000000",
            "two",
            "buffer 0:00:00.080000000"
        ]
    );
}

#[test]
fn messages_carry_the_times_of_the_frame_they_speak_of() {
    let mut bench = Bench::new(|_| {});
    bench.harness.set_src_caps(gray_caps(SIZE.0, SIZE.1));
    let mut segment = gst::FormattedSegment::<ClockTime>::new();
    segment.set_start(ClockTime::from_mseconds(40));
    segment.set_time(ClockTime::from_seconds(10));
    segment.set_base(ClockTime::from_seconds(5));
    bench.harness.push_event(gst::event::Segment::new(&segment));
    for frame in 1..4 {
        let mut buffer = gray(SIZE.0, SIZE.1, frame);
        if frame == 2 {
            // The caps' framerate stands in.
            buffer.make_mut().set_duration(None);
        }
        bench.score(buffer);
    }
    bench.harness.push_event(gst::event::Eos::new());
    let posted = bench.messages();
    for (frame, message) in posted.frames.iter().enumerate() {
        let times = message.times;
        let offset = ClockTime::from_mseconds(40 * frame as u64);
        assert_eq!(message.score.frame, frame as u64);
        assert_eq!(times.timestamp, Some(ClockTime::from_mseconds(40) + offset));
        assert_eq!(
            times.stream_time,
            Some(ClockTime::from_seconds(10) + offset)
        );
        assert_eq!(
            times.running_time,
            Some(ClockTime::from_seconds(5) + offset)
        );
        assert_eq!(times.duration, Some(ClockTime::from_mseconds(40)));
    }
    let times = posted.summaries[0].times;
    assert_eq!(times.timestamp, Some(ClockTime::from_mseconds(40)));
    assert_eq!(times.running_time, Some(ClockTime::from_seconds(5)));
    assert_eq!(times.duration, Some(ClockTime::from_mseconds(120)));
}

#[test]
fn the_summary_pools_every_frame() {
    let mut bench = bench();
    push(&mut bench, 0..9);
    bench.harness.push_event(gst::event::Eos::new());
    let posted = bench.messages();
    let summary = &posted.summaries[0];
    let motion2: Vec<f64> = posted
        .frames
        .iter()
        .map(|message| message.score.motion2)
        .collect();
    let pooled = summary.features[1];
    assert_eq!(
        pooled.min,
        motion2.iter().copied().fold(f64::INFINITY, f64::min)
    );
    assert_eq!(pooled.max, motion2.iter().copied().fold(0.0, f64::max));
    assert_eq!(pooled.mean, motion2.iter().sum::<f64>() / 9.0);
    let reciprocals: f64 = motion2.iter().map(|score| 1.0 / (score + 1.0)).sum();
    assert_eq!(pooled.harmonic_mean, 9.0 / reciprocals - 1.0);
}

#[test]
fn messages_can_be_turned_off() {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, |element| {
        element.set_property_from_str("messages", "summary");
    });
    push(&mut bench, 0..3);
    bench.harness.push_event(gst::event::Eos::new());
    let posted = bench.messages();
    assert_eq!((posted.frames.len(), posted.summaries.len()), (0, 1));
}

#[test]
fn a_message_is_posted_before_its_buffer_is_pushed_and_may_call_back() {
    let mut bench = bench();
    let (frames, element) = (Arc::new(Mutex::new(Vec::new())), bench.element.clone());
    let seen = frames.clone();
    bench.bus.set_sync_handler(move |_, message| {
        if let gst::MessageView::Element(message) = message.view()
            && let Ok(frame) = FrameMessage::try_from(message.structure().unwrap())
        {
            // Reads and writes of properties from inside the handler do not deadlock.
            let stats: gst::Structure = element.property("stats");
            element.set_property("meta", true);
            let frames: u64 = stats.get("frames").unwrap();
            seen.lock().unwrap().push((frame.score.frame, frames));
        }
        gst::BusSyncReply::Drop
    });
    let order = frames.clone();
    let pad = bench.element.static_pad("src").unwrap();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let finals = info
            .buffer()
            .and_then(|buffer| MotionScore::from_buffer(buffer)?.finals);
        if let Some(finals) = finals {
            let posted = order.lock().unwrap().last().map(|&(frame, _)| frame);
            assert_eq!(posted, Some(finals.last));
        }
        gst::PadProbeReturn::Ok
    });
    push(&mut bench, 0..4);
    assert_eq!(*frames.lock().unwrap(), [(0, 2), (1, 3), (2, 4)]);
}

#[test]
fn statistics_count_over_sessions() {
    let mut bench = bench();
    push(&mut bench, 0..3);
    bench.harness.push_event(gst::event::FlushStart::new());
    bench.harness.push_event(gst::event::FlushStop::new(true));
    bench.harness.push_event(segment());
    push(&mut bench, 3..5);
    let counts = [
        "session",
        "sessions",
        "frames",
        "final-frames",
        "lines-dropped",
    ];
    assert_eq!(counts.map(|name| bench.stat(name)), [1, 2, 5, 4, 0]);
    // READY forgets the stream.
    bench.stop();
    bench.element.set_state(gst::State::Paused).unwrap();
    assert_eq!(counts.map(|name| bench.stat(name)), [0; 5]);
}

#[test]
fn an_empty_stream_posts_nothing() {
    let mut bench = bench();
    bench.harness.push_event(gst::event::Eos::new());
    let posted = bench.messages();
    assert!(posted.frames.is_empty() && posted.summaries.is_empty());
}

#[test]
fn two_elements_in_a_row_score_alike() {
    common::init();
    let mut harness = gst_check::Harness::new_parse("vmafxmotion ! vmafxmotion name=second");
    harness.set_src_caps(gray_caps(SIZE.0, SIZE.1));
    for frame in 0..3 {
        let out = harness
            .push_and_pull(timed(gray(SIZE.0, SIZE.1, frame), frame))
            .unwrap();
        assert_eq!(MotionScore::from_buffer(&out).unwrap().frame, frame as u64);
        assert_eq!(out.iter_meta::<gst::Meta>().count(), 1);
    }
}

#[test]
fn fifty_state_cycles() {
    let mut bench = bench();
    for _ in 0..50 {
        push(&mut bench, 0..2);
        bench.element.set_state(gst::State::Null).unwrap();
        let posted = bench.messages();
        assert_eq!((posted.frames.len(), posted.summaries.len()), (2, 1));
        bench.element.set_state(gst::State::Playing).unwrap();
        bench
            .harness
            .push_event(gst::event::StreamStart::new("again"));
        bench
            .harness
            .push_event(gst::event::Caps::new(&gray_caps(SIZE.0, SIZE.1)));
        bench.harness.push_event(segment());
    }
}
