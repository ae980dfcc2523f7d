// SPDX-License-Identifier: MPL-2.0

//! Access units are fed ahead of the session. Nothing waits for the next one for that: what is decoded while
//! upstream has nothing more comes out, hangs and failures are told, and stopping works wherever its push is.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Child, Player, assert_no_surfaces, in_child, in_child_with, wait_for};
use gst::prelude::*;
use test_streams::{Stream, named};

/// Whole frames, one picture each: with a depth of 1 the runtime holds none back.
const CAPS: &str = "video/x-vp8,width=320,height=240";

fn stream() -> (Stream, Vec<Vec<u8>>) {
    let stream = named("test-25fps.vp8");
    let units = stream.ivf_frames().expect("VP8 comes in IVF");
    (stream, units)
}

/// The element behind an appsrc.
struct Fed {
    player: Player,
    source: gst_app::AppSrc,
}

impl Fed {
    fn new(properties: &str) -> Self {
        let player = Player::new(&format!(
            "appsrc name=src format=time caps={CAPS},framerate=25/1 ! \
             vplretrydec name=dec implementation=software {properties}"
        ));
        let source = player.pipeline.by_name("src").expect("it is there");
        Self {
            source: source.downcast().expect("an appsrc"),
            player,
        }
    }

    fn feed(&self, number: usize, unit: &[u8]) {
        let mut buffer = gst::Buffer::from_slice(unit.to_vec());
        let inner = buffer.get_mut().expect("it is new");
        inner.set_pts(gst::ClockTime::from_mseconds(40 * number as u64));
        self.source.push_buffer(buffer).expect("it is taken");
    }

    /// The error that comes when units are fed one at a time, so that the one it is about is the last.
    fn error_of_the_last(&mut self, units: &[Vec<u8>]) -> String {
        self.player.play();
        for (number, unit) in units.iter().enumerate() {
            self.feed(number, unit);
            self.player.pull(1);
            if !self.player.played.errors.is_empty() {
                break;
            }
        }
        self.player.played.error().message().to_owned()
    }
}

#[test]
fn a_frame_comes_out_before_the_next_unit_goes_in() {
    in_child("a_frame_comes_out_before_the_next_unit_goes_in", || {
        let (stream, units) = stream();
        for properties in ["async-depth=1", "async-depth=1 zero-copy=true"] {
            let mut fed = Fed::new(properties);
            fed.player.play();
            for (number, unit) in units.iter().enumerate().take(60) {
                fed.feed(number, unit);
                fed.player.pull(1);
                let frames = &fed.player.played.frames;
                assert_eq!(frames.len(), number + 1, "{:?}", fed.player.played.errors);
                let expected = stream.expected();
                let sum = expected.checksum(&frames[number].pixels);
                assert_eq!(sum, expected.list()[number]);
            }
            fed.source.end_of_stream().expect("it is taken");
            fed.player.pull(usize::MAX);
            fed.player.stop();
            fed.player.played.assert_clean();
        }
        assert_no_surfaces();
    });
}

#[test]
fn all_but_the_depth_comes_out_while_upstream_waits() {
    in_child("all_but_the_depth_comes_out_while_upstream_waits", || {
        let (_, units) = stream();
        for depth in 1..=4 {
            let mut fed = Fed::new(&format!("async-depth={depth}"));
            fed.player.play();
            for (number, unit) in units.iter().enumerate().take(10) {
                fed.feed(number, unit);
            }
            // It hangs where one is missing.
            fed.player.pull(11 - depth);
            fed.player.stop();
        }
    });
}

#[test]
fn a_hang_is_told_while_upstream_waits() {
    let setup = Child {
        faults: "decode-hang=9",
        ..Child::default()
    };
    in_child_with("a_hang_is_told_while_upstream_waits", &setup, || {
        let (_, units) = stream();
        let mut fed = Fed::new("async-depth=1 retry-timeout=100");
        let message = fed.error_of_the_last(&units);
        let call = "MFXVideoDECODE_DecodeFrameAsync has not returned for ";
        assert!(message.starts_with(call), "{message}");
        assert!(fed.player.played.frames.len() < 12);
        fed.player.stop();
        fed.player.played.assert_accounts();
    });
}

#[test]
fn a_busy_device_is_given_up_while_upstream_waits() {
    in_child("a_busy_device_is_given_up_while_upstream_waits", || {
        common::set_faults("script=_*5,2*1000");
        let (_, units) = stream();
        let mut fed = Fed::new("async-depth=1 retry-interval=1000 max-attempts=20");
        let message = fed.error_of_the_last(&units);
        let begin = "DecodeFrameAsync yielded no frame after 20 attempts";
        assert!(message.starts_with(begin), "{message}");
        fed.player.stop();
        fed.player.played.assert_accounts();
        assert_no_surfaces();
    });
}

#[test]
fn upstream_is_told_what_downstream_answered() {
    in_child("upstream_is_told_what_downstream_answered", || {
        let (_, units) = stream();
        let decoder = gst::ElementFactory::make("vplretrydec")
            .property_from_str("implementation", "software")
            .property("async-depth", 1_u32)
            .build()
            .expect("an element");
        let mut harness = gst_check::Harness::with_element(&decoder, Some("sink"), Some("src"));
        harness.set_src_caps(CAPS.parse().expect("caps"));
        let pushed = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&pushed);
        let pad = decoder.static_pad("src").expect("a source pad");
        // It answers in downstream's place, once.
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            if counter.fetch_add(1, Ordering::SeqCst) != 2 {
                return gst::PadProbeReturn::Ok;
            }
            info.flow_res = Err(gst::FlowError::NotLinked);
            info.data = None;
            gst::PadProbeReturn::Handled
        });
        let mut answers = Vec::new();
        for (number, unit) in units.iter().enumerate().take(6) {
            let mut buffer = gst::Buffer::from_slice(unit.clone());
            let inner = buffer.get_mut().expect("it is new");
            inner.set_pts(gst::ClockTime::from_mseconds(40 * number as u64));
            answers.push(harness.push(buffer).map(|_| ()));
            wait_for("it is decoded", || {
                pushed.load(Ordering::SeqCst) == number + 1
            });
        }
        // Of the third: in its own call, or in the next.
        let told: Vec<usize> = (0..6).filter(|&n| answers[n].is_err()).collect();
        assert!(told == [2] || told == [3], "{answers:?}");
        assert_eq!(answers[told[0]], Err(gst::FlowError::NotLinked));
        assert_eq!(harness.buffers_in_queue(), 5);
    });
}

#[test]
fn stopping_goes_through_while_a_push_is_held() {
    in_child("stopping_goes_through_while_a_push_is_held", || {
        let (_, units) = stream();
        for _ in 0..20 {
            let fed = Fed::new("async-depth=1");
            let decoder = fed.player.decoder();
            let held = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&held);
            let pad = decoder.static_pad("src").expect("a source pad");
            let hold = gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER;
            pad.add_probe(hold, move |_, _| {
                counter.fetch_add(1, Ordering::SeqCst);
                gst::PadProbeReturn::Ok
            });
            fed.player.play();
            fed.feed(0, &units[0]);
            wait_for("a push is held", || held.load(Ordering::SeqCst) == 1);
            // The decoder alone: downstream does not let go of it.
            decoder.set_state(gst::State::Null).expect("it stops");
        }
        assert_no_surfaces();
    });
}

#[test]
fn stopping_goes_through_while_the_sink_prerolls() {
    in_child("stopping_goes_through_while_the_sink_prerolls", || {
        let (_, units) = stream();
        for _ in 0..20 {
            let mut fed = Fed::new("async-depth=1");
            fed.player
                .pipeline
                .set_state(gst::State::Paused)
                .expect("it starts");
            for (number, unit) in units.iter().enumerate().take(3) {
                fed.feed(number, unit);
            }
            let (done, state, _) = fed.player.pipeline.state(gst::ClockTime::from_seconds(60));
            done.expect("it prerolls");
            assert_eq!(state, gst::State::Paused);
            fed.player.stop();
        }
        assert_no_surfaces();
    });
}

#[test]
fn flushing_goes_through_while_a_push_is_held() {
    in_child("flushing_goes_through_while_a_push_is_held", || {
        let (stream, units) = stream();
        let mut fed = Fed::new("async-depth=1");
        let held = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&held);
        let pad = fed.player.decoder().static_pad("src").expect("it has one");
        let hold = gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER;
        let probe = pad.add_probe(hold, move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            gst::PadProbeReturn::Ok
        });
        fed.player.play();
        fed.feed(0, &units[0]);
        wait_for("a push is held", || held.load(Ordering::SeqCst) == 1);
        fed.source.send_event(gst::event::FlushStart::new());
        pad.remove_probe(probe.expect("it was added"));
        fed.source.send_event(gst::event::FlushStop::new(true));
        // What comes behind the flush is decoded as if nothing had been.
        for (number, unit) in units.iter().enumerate().take(20) {
            fed.feed(number, unit);
            fed.player.pull(1);
            let expected = stream.expected();
            let sum = expected.checksum(&fed.player.played.frames[number].pixels);
            assert_eq!(sum, expected.list()[number]);
        }
        fed.player.stop();
        assert_eq!(fed.player.played.stat("frames-in"), 21);
        assert_no_surfaces();
    });
}

#[test]
fn each_frame_has_the_caps_that_it_came_with() {
    in_child("each_frame_has_the_caps_that_it_came_with", || {
        let (_, units) = stream();
        let mut fed = Fed::new("async-depth=1");
        fed.player.play();
        for (number, unit) in units.iter().enumerate().take(40) {
            let caps = format!("{CAPS},framerate={}/1", 25 + number / 2);
            fed.source.set_caps(Some(&caps.parse().expect("caps")));
            fed.feed(number, unit);
        }
        fed.source.end_of_stream().expect("it is taken");
        fed.player.pull(usize::MAX);
        fed.player.stop();
        fed.player.played.assert_clean();
        let rates: Vec<gst::Fraction> = fed
            .player
            .played
            .frames
            .iter()
            .map(|frame| {
                let structure = frame.caps.structure(0).expect("fixed caps");
                structure.get("framerate").expect("a rate")
            })
            .collect();
        let expected: Vec<gst::Fraction> = (0..40)
            .map(|number| gst::Fraction::new(25 + number / 2, 1))
            .collect();
        assert_eq!(rates, expected);
    });
}
