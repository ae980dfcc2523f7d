// SPDX-License-Identifier: MPL-2.0

//! With `hold` each buffer carries its own scores, and nothing is held for ever.

mod common;

use common::{Bench, expected, gray, gray_caps};
use gst::ClockTime;
use gst::prelude::*;
use vmaf_motion::MotionOptions;
use vmafxmotion::MotionScore;

const SIZE: (usize, usize) = (16, 12);

fn bench(set: impl FnOnce(&gst::Element)) -> Bench {
    Bench::gray(SIZE.0, SIZE.1, |element| {
        element.set_property("hold", true);
        set(element);
    })
}

fn push(bench: &mut Bench, frame: usize) {
    bench.harness.push(gray(SIZE.0, SIZE.1, frame)).unwrap();
}

fn pull(bench: &mut Bench) -> Option<MotionScore> {
    let buffer = bench.harness.try_pull()?;
    Some(MotionScore::from_buffer(&buffer).expect("scores on the buffer"))
}

/// Every buffer carries its own final scores, in order.
fn own_scores(five: bool) {
    let frames = 6;
    let mut bench = bench(|element| element.set_property("motion-five-frame-window", five));
    let options = MotionOptions {
        five_frame_window: five,
        ..MotionOptions::default()
    };
    let film = expected(&options, (SIZE.0, SIZE.1, 8), frames);
    let mut out = Vec::new();
    for frame in 0..frames {
        push(&mut bench, frame);
        out.extend(std::iter::from_fn(|| pull(&mut bench)));
        let waiting = if five && frame < 2 { frame + 1 } else { 1 };
        assert_eq!(out.len(), frame + 1 - waiting, "after frame {frame}");
    }
    bench.harness.push_event(gst::event::Eos::new());
    out.extend(std::iter::from_fn(|| pull(&mut bench)));
    assert_eq!(out.len(), frames);
    for (frame, (score, expected)) in out.iter().zip(&film).enumerate() {
        let frame = frame as u64;
        let finals = score.finals.expect("final scores");
        assert_eq!(
            (score.frame, finals.first, finals.last, score.is_final),
            (frame, frame, frame, true)
        );
        assert_eq!(score.motion.to_bits(), expected.motion.to_bits());
        assert_eq!(finals.motion2.to_bits(), expected.motion2.to_bits());
        assert_eq!(finals.motion3.to_bits(), expected.motion3.to_bits());
    }
    assert_eq!(bench.stat("unfinished-frames"), 0);
}

#[test]
fn three_frame_window() {
    own_scores(false);
}

#[test]
fn five_frame_window() {
    own_scores(true);
}

#[test]
fn serialised_events_stay_behind_the_held_frame() {
    let mut bench = bench(|_| {});
    push(&mut bench, 0);
    while bench.harness.try_pull_event().is_some() {}
    let mark = gst::event::CustomDownstream::new(gst::Structure::new_empty("mark"));
    assert!(bench.harness.push_event(mark));
    let tag = gst::event::Tag::new(gst::TagList::new());
    assert!(bench.harness.push_event(tag));
    assert!(
        bench.harness.try_pull_event().is_none(),
        "the event overtook its frame"
    );
    push(&mut bench, 1);
    assert_eq!(pull(&mut bench).unwrap().frame, 0);
    let types: Vec<_> = std::iter::from_fn(|| bench.harness.try_pull_event())
        .map(|event| event.type_())
        .collect();
    assert_eq!(
        types,
        [gst::EventType::CustomDownstream, gst::EventType::Tag]
    );
}

#[test]
fn out_of_band_events_do_not_wait() {
    let mut bench = bench(|_| {});
    push(&mut bench, 0);
    while bench.harness.try_pull_event().is_some() {}
    let mark = gst::event::CustomDownstreamOob::new(gst::Structure::new_empty("mark"));
    assert!(bench.harness.push_event(mark));
    assert!(bench.harness.try_pull_event().is_some());
    assert_eq!(pull(&mut bench), None);
}

#[test]
fn another_size_drains_first() {
    let mut bench = bench(|_| {});
    push(&mut bench, 0);
    push(&mut bench, 1);
    assert_eq!(pull(&mut bench).unwrap().frame, 0);
    bench.harness.set_src_caps(gray_caps(8, 8));
    let last = pull(&mut bench).expect("the last frame of the old size");
    assert_eq!((last.session, last.frame, last.is_final), (0, 1, true));
    bench.harness.push(gray(8, 8, 0)).unwrap();
    bench.harness.push(gray(8, 8, 1)).unwrap();
    let next = pull(&mut bench).unwrap();
    assert_eq!((next.session, next.frame), (1, 0));
}

#[test]
fn a_serialised_query_takes_what_is_before_it_along() {
    let mut bench = bench(|_| {});
    push(&mut bench, 0);
    assert_eq!(pull(&mut bench), None);
    let srcpad = bench.harness.srcpad().unwrap();
    srcpad.peer_query(&mut gst::query::Drain::new());
    let score = pull(&mut bench).expect("the held frame");
    assert_eq!(
        (score.frame, score.is_final, score.finals),
        (0, false, None)
    );
    assert_eq!(bench.stat("unfinished-frames"), 1);
    // Its scores are told all the same.
    push(&mut bench, 1);
    let frames: Vec<_> = bench
        .messages()
        .frames
        .iter()
        .map(|message| message.score.frame)
        .collect();
    assert_eq!(frames, [0]);
}

#[test]
fn a_flush_drops_the_held_frame_and_keeps_its_scores() {
    let mut bench = bench(|_| {});
    push(&mut bench, 0);
    push(&mut bench, 1);
    assert_eq!(pull(&mut bench).unwrap().frame, 0);
    bench.harness.push_event(gst::event::FlushStart::new());
    bench.harness.push_event(gst::event::FlushStop::new(true));
    let segment = gst::FormattedSegment::<ClockTime>::new();
    bench.harness.push_event(gst::event::Segment::new(&segment));
    let posted = bench.messages();
    assert_eq!((posted.frames.len(), posted.summaries.len()), (2, 1));
    push(&mut bench, 2);
    push(&mut bench, 3);
    let next = pull(&mut bench).unwrap();
    assert_eq!(
        (next.session, next.frame),
        (1, 0),
        "a frame of the flushed session came out"
    );
}

#[test]
fn latency_is_told() {
    let mut bench = bench(|_| {});
    bench
        .harness
        .set_upstream_latency(ClockTime::from_mseconds(10));
    assert_eq!(
        bench.harness.query_latency(),
        Some(ClockTime::from_mseconds(50))
    );
    let latency_messages = |bench: &Bench| {
        std::iter::from_fn(|| bench.bus.pop())
            .filter(|message| message.type_() == gst::MessageType::Latency)
            .count()
    };
    assert_eq!(latency_messages(&bench), 1);
    let mut caps = gray_caps(SIZE.0, SIZE.1);
    caps.make_mut().set("framerate", gst::Fraction::new(50, 1));
    bench.harness.set_src_caps(caps);
    assert_eq!(latency_messages(&bench), 1);
    assert_eq!(
        bench.harness.query_latency(),
        Some(ClockTime::from_mseconds(30))
    );
}

#[test]
fn the_five_frame_window_has_two_frames_of_latency() {
    let bench = bench(|element| element.set_property("motion-five-frame-window", true));
    assert_eq!(
        bench.harness.query_latency(),
        Some(ClockTime::from_mseconds(80))
    );
}

#[test]
fn more_buffers_are_asked_for() {
    let bench = bench(|_| {});
    let sinkpad = bench.harness.sinkpad().unwrap();
    sinkpad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, |_, info| {
        if let Some(query) = info.query_mut()
            && let gst::QueryViewMut::Allocation(allocation) = query.view_mut()
        {
            allocation.add_allocation_pool(None::<&gst::BufferPool>, 1024, 5, 5);
            allocation.add_allocation_pool(None::<&gst::BufferPool>, 1024, 2, 0);
            return gst::PadProbeReturn::Handled;
        }
        gst::PadProbeReturn::Ok
    });
    let mut query = gst::query::Allocation::new(Some(&gray_caps(SIZE.0, SIZE.1)), true);
    assert!(bench.harness.srcpad().unwrap().peer_query(&mut query));
    let pools: Vec<_> = query
        .allocation_pools()
        .map(|pool| (pool.2, pool.3))
        .collect();
    assert_eq!(pools, [(6, 6), (3, 0)]);
}

/// With a test clock, so that no time passes but what the test lets pass.
fn limited(ms: u32) -> Bench {
    let mut bench = bench(|element| element.set_property("max-hold", ms));
    bench.harness.use_testclock();
    bench
}

#[test]
fn max_hold_releases_an_unfinished_frame() {
    let mut bench = limited(50);
    push(&mut bench, 0);
    assert_eq!(pull(&mut bench), None);
    bench.harness.crank_single_clock_wait().unwrap();
    let out = bench.harness.pull().expect("released on the clock");
    let score = MotionScore::from_buffer(&out).unwrap();
    assert_eq!(
        (score.frame, score.is_final, score.finals),
        (0, false, None)
    );
    assert_eq!(
        bench.harness.testclock().unwrap().time(),
        ClockTime::from_mseconds(50)
    );
    // The next frame goes on as if nothing had been.
    push(&mut bench, 1);
    assert_eq!(pull(&mut bench), None);
    push(&mut bench, 2);
    let score = pull(&mut bench).unwrap();
    assert_eq!((score.frame, score.is_final), (1, true));
    let frames: Vec<_> = bench
        .messages()
        .frames
        .iter()
        .map(|message| message.score.frame)
        .collect();
    assert_eq!(frames, [0, 1]);
}

#[test]
fn the_clock_waits_for_the_frame_that_is_held_now() {
    let mut bench = limited(50);
    push(&mut bench, 0);
    bench
        .harness
        .set_time(ClockTime::from_mseconds(30))
        .unwrap();
    push(&mut bench, 1);
    assert_eq!(pull(&mut bench).unwrap().frame, 0);
    bench.harness.crank_single_clock_wait().unwrap();
    let out = bench.harness.pull().unwrap();
    assert_eq!(MotionScore::from_buffer(&out).unwrap().frame, 1);
    assert_eq!(
        bench.harness.testclock().unwrap().time(),
        ClockTime::from_mseconds(80)
    );
}

#[test]
fn events_behind_a_released_frame_follow_it() {
    let mut bench = limited(50);
    push(&mut bench, 0);
    while bench.harness.try_pull_event().is_some() {}
    let mark = gst::event::CustomDownstream::new(gst::Structure::new_empty("mark"));
    bench.harness.push_event(mark);
    bench.harness.crank_single_clock_wait().unwrap();
    bench.harness.pull().unwrap();
    assert_eq!(
        bench.harness.pull_event().unwrap().type_(),
        gst::EventType::CustomDownstream
    );
}

#[test]
fn max_hold_bounds_the_latency_of_an_unknown_framerate() {
    let mut bench = limited(20);
    let mut caps = gray_caps(SIZE.0, SIZE.1);
    caps.make_mut().set("framerate", gst::Fraction::new(0, 1));
    bench.harness.set_src_caps(caps);
    assert_eq!(
        bench.harness.query_latency(),
        Some(ClockTime::from_mseconds(20))
    );
}

#[test]
fn stopping_with_a_held_frame_and_a_running_clock() {
    for _ in 0..50 {
        let mut bench = limited(50);
        push(&mut bench, 0);
        bench.stop();
        let posted = bench.messages();
        assert_eq!((posted.frames.len(), posted.summaries.len()), (1, 1));
    }
}

#[test]
fn postroll_frames_leave_without_final_scores() {
    let mut bench = bench(|element| {
        element.set_property("first-frame", 5u64);
        element.set_property("preroll-frames", 1u32);
        element.set_property("postroll-frames", 2u32);
    });
    for frame in 4..10 {
        push(&mut bench, frame);
    }
    bench.harness.push_event(gst::event::Eos::new());
    let mut out = Vec::new();
    while let Some(buffer) = bench.harness.try_pull() {
        let score = MotionScore::from_buffer(&buffer);
        out.push(score.map(|score| (score.frame, score.is_final)));
    }
    let expected = [
        None,
        Some((5, true)),
        Some((6, true)),
        Some((7, true)),
        Some((8, false)),
        Some((9, false)),
    ];
    assert_eq!(out, expected);
    let frames: Vec<_> = bench
        .messages()
        .frames
        .iter()
        .map(|message| message.score.frame)
        .collect();
    assert_eq!(frames, [5, 6, 7]);
}

#[test]
fn another_clock_starts_the_hold_anew() {
    let mut bench = limited(50);
    push(&mut bench, 0);
    let clock = gst_check::TestClock::with_start_time(ClockTime::from_seconds(1000));
    bench.element.set_clock(Some(&clock)).unwrap();
    push(&mut bench, 1);
    assert_eq!(pull(&mut bench).unwrap().frame, 0);
    assert!(clock.crank());
    let out = bench.harness.pull().unwrap();
    assert_eq!(MotionScore::from_buffer(&out).unwrap().frame, 1);
    let end = ClockTime::from_seconds(1000) + ClockTime::from_mseconds(50);
    assert_eq!(clock.time(), end);
}
