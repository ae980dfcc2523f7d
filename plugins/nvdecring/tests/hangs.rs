// SPDX-License-Identifier: MPL-2.0

//! Calls that never return: going to NULL returns while they are still held, and whoever waits is told.

mod common;

use std::time::{Duration, Instant};

use common::{Bench, Hand, LONG, h264_caps};
use gst::prelude::*;
use standin_world::child::in_child_of;
use standin_world::streams::h264;
use standin_world::{World, live, mistakes};

/// What the test does while a call hangs.
#[derive(Clone, Copy, PartialEq)]
enum Meanwhile {
    /// Go to NULL before anybody has noticed.
    Stop,
    /// Wait for the error, then go to NULL.
    Wait,
    /// Flush, as a seek does.
    Flush,
}

#[track_caller]
fn hangs(faults: &str, properties: &str, meanwhile: Meanwhile, text: &str) {
    in_child_of(
        || {
            World::new()
                .set("NVSTANDIN_FAULTS", faults)
                .set("NVSTANDIN_STRICT", "1")
        },
        || {
            let made = h264("96x64", 60, "bframes=0");
            let bench = Bench::file(&made.path(), properties, "");
            bench
                .pipeline
                .set_state(gst::State::Playing)
                .expect("it starts");
            // The hang begins when nothing comes out any more.
            let least = if faults == "init-hang" { 0 } else { 10 };
            settle(&bench, least);
            match meanwhile {
                Meanwhile::Stop => {}
                Meanwhile::Wait => bench.wait(),
                Meanwhile::Flush => {
                    // As a seek does.
                    let pad = bench.decoder().static_pad("sink").expect("a pad");
                    pad.send_event(gst::event::FlushStart::new());
                    pad.send_event(gst::event::FlushStop::new(true));
                    bench.wait();
                }
            }
            let begun = Instant::now();
            let out = bench.stop();
            println!("NULL after {:?}", begun.elapsed());
            assert!(live() > 0, "the call is still held");
            if meanwhile != Meanwhile::Stop {
                assert!(
                    out.errors.iter().any(|error| error.contains(text)),
                    "{:?}",
                    out.errors
                );
            }
            assert_eq!(mistakes(), 0);
        },
    );
}

/// Waits until the number of pictures stands still, at that many or more.
fn settle(bench: &Bench, least: usize) {
    let count = || bench.out.lock().expect("no panic").pictures.len();
    let deadline = Instant::now() + Duration::from_secs(LONG.seconds());
    let mut before = count();
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(400));
        let now = count();
        if now == before && now >= least {
            return;
        }
        before = now;
    }
    panic!("it does not hang");
}

const PATIENT: &str = "decode-timeout=600000";
const SHORT: &str = "decode-timeout=100";

#[test]
fn null_is_reached_while_a_decode_hangs() {
    hangs("decode-hang=20", PATIENT, Meanwhile::Stop, "");
}

#[test]
fn null_is_reached_while_a_map_hangs() {
    hangs("map-hang=20", PATIENT, Meanwhile::Stop, "");
}

#[test]
fn null_is_reached_while_a_picture_is_never_done() {
    // Nothing hangs but the engine: the status says so, and the surfaces stay with the decoder.
    in_child_of(
        || World::new().set("NVSTANDIN_FAULTS", "sync-hang=20"),
        || {
            let made = h264("96x64", 60, "bframes=0");
            let bench = Bench::file(&made.path(), PATIENT, "");
            bench
                .pipeline
                .set_state(gst::State::Playing)
                .expect("it starts");
            settle(&bench, 10);
            let out = bench.stop();
            assert!(out.errors.is_empty(), "{:?}", out.errors);
            standin_world::assert_nothing_is_left();
        },
    );
}

#[test]
fn null_is_reached_while_creating_the_decoder_hangs() {
    hangs("init-hang", PATIENT, Meanwhile::Stop, "");
}

#[test]
fn null_is_reached_while_destroying_the_decoder_hangs() {
    in_child_of(
        || World::new().set("NVSTANDIN_FAULTS", "close-hang"),
        || {
            let made = h264("96x64", 60, "bframes=0");
            let out = Bench::file(&made.path(), "", "").run();
            assert!(out.eos, "{:?}", out.errors);
            assert_eq!(out.pictures.len(), 60);
            assert!(live() > 0, "the call is still held");
        },
    );
}

#[test]
fn a_decode_that_hangs_is_told() {
    hangs(
        "decode-hang=20",
        SHORT,
        Meanwhile::Wait,
        "decoding a picture",
    );
}

#[test]
fn a_map_that_hangs_is_told() {
    hangs("map-hang=20", SHORT, Meanwhile::Wait, "mapping a picture");
}

#[test]
fn a_map_that_hangs_at_the_end_of_the_stream_is_told() {
    // Nothing is submitted any more: the drain watches.
    hangs("map-hang=59", SHORT, Meanwhile::Wait, "mapping a picture");
}

#[test]
fn a_map_that_hangs_is_told_while_nothing_comes_in() {
    in_child_of(
        || World::new().set("NVSTANDIN_FAULTS", "map-hang=9"),
        || {
            let made = h264("96x64", 10, "bframes=0");
            let units = nvdecring_gpu::InputFile::read(&made.bytes(), None).expect("a stream");
            let hand = Hand::new(SHORT);
            hand.source.set_caps(Some(&h264_caps()));
            for (at, unit) in units.packets.iter().enumerate() {
                hand.push(at as u64, unit);
            }
            // No more frames and no end of the stream: the element looks after its calls by itself.
            hand.bench.wait();
            let out = hand.bench.stop();
            assert_eq!(out.errors.len(), 1, "{:?}", out.errors);
            assert!(
                out.errors[0].contains("mapping a picture"),
                "{:?}",
                out.errors
            );
            assert_eq!(out.warnings.len(), 1, "{:?}", out.warnings);
            assert!(live() > 0, "the call is still held");
        },
    );
}

#[test]
fn a_flush_ends_while_a_decode_hangs() {
    hangs(
        "decode-hang=20",
        SHORT,
        Meanwhile::Flush,
        "decoding a picture",
    );
}

#[test]
fn a_device_that_hangs_refuses_the_next_decoder() {
    in_child_of(
        || World::new().set("NVSTANDIN_FAULTS", "init-hang"),
        || {
            let made = h264("96x64", 20, "bframes=0");
            let first = Bench::file(&made.path(), "decode-timeout=100", "");
            first
                .pipeline
                .set_state(gst::State::Playing)
                .expect("it starts");
            settle(&first, 0);
            first.stop();
            let out = Bench::file(&made.path(), "decode-timeout=100", "").run();
            assert_eq!(out.errors.len(), 1, "{:?}", out.errors);
            assert!(
                out.errors[0].contains("held by another decoder"),
                "{:?}",
                out.errors
            );
        },
    );
}
