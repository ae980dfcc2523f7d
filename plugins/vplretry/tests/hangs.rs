// SPDX-License-Identifier: MPL-2.0

//! A runtime call that never returns: stopping, flushing and seeking go through while it is held, and playing
//! ends with an error on the limits. The call is held for ever, so each hang has a process of its own, and
//! what is asserted is that the other side goes on at all.

mod common;

use std::time::Duration;

use common::{Child, Player, in_child_with, source, wait_for};
use gst::prelude::*;
use test_streams::named;

/// Where each call hangs. Close hangs when the element stops.
const HANGS: [(&str, &str); 4] = [
    ("init-hang", "MFXVideoDECODE_Init"),
    ("decode-hang=9", "MFXVideoDECODE_DecodeFrameAsync"),
    ("sync-hang=9", "MFXVideoCORE_SyncOperation"),
    ("map-hang=9", "Map"),
];

fn player(properties: &str) -> Player {
    Player::new(&format!(
        "{} ! vplretrydec name=dec implementation=software {properties}",
        source(&named("test-25fps.h264"))
    ))
}

/// Plays until the stream stands still.
fn play_into_the_hang(player: &mut Player) {
    player.play();
    // The runtime says on stderr that it hangs; from outside, nothing comes any more.
    let mut quiet = 0;
    while quiet < 10 {
        let sample = player
            .sink
            .try_pull_sample(gst::ClockTime::from_mseconds(30));
        quiet = if sample.is_some() { 0 } else { quiet + 1 };
    }
}

fn each_hang(test: &str, act: impl Fn(&str, &str)) {
    if common::is_child() {
        let faults = std::env::var("VPLSOFT_FAULTS").expect("the parent sets it");
        let hang = HANGS.iter().find(|(name, _)| *name == faults);
        let (faults, call) = hang.expect("one of them");
        in_child_with(test, &Child::default(), || act(faults, call));
        return;
    }
    for (faults, _) in HANGS {
        let setup = Child {
            faults,
            ..Child::default()
        };
        in_child_with(test, &setup, || ());
    }
}

#[test]
fn null_is_reached_while_the_call_is_held() {
    each_hang("null_is_reached_while_the_call_is_held", |faults, _| {
        let mut player = player("");
        play_into_the_hang(&mut player);
        let took = player.stop();
        // The hang is for ever: that this line is reached is the proof.
        println!("{faults}: NULL in {took:?}");
        let held = player.pipeline.current_state();
        assert_eq!(held, gst::State::Null);
    });
}

#[test]
fn seeking_and_flushing_go_through_while_the_call_is_held() {
    each_hang(
        "seeking_and_flushing_go_through_while_the_call_is_held",
        |_, _| {
            let mut player = player("");
            play_into_the_hang(&mut player);
            let pad = player.decoder().static_pad("sink").expect("a sink pad");
            for _ in 0..3 {
                assert!(pad.send_event(gst::event::FlushStart::new()));
                assert!(pad.send_event(gst::event::FlushStop::new(true)));
            }
            player.stop();
        },
    );
}

#[test]
fn playing_ends_with_an_error_that_names_the_call() {
    each_hang(
        "playing_ends_with_an_error_that_names_the_call",
        |faults, call| {
            let mut player = player("retry-timeout=100 sync-timeout=100");
            player.play();
            player.pull(usize::MAX);
            let error = player.played.error().clone();
            assert!(
                error.matches(gst::ResourceError::Failed),
                "{faults}: {error:?}"
            );
            let begin = format!("{call} has not returned for ");
            assert!(error.message().starts_with(&begin), "{faults}: {error}");
            player.stop();
            player.played.assert_accounts();
        },
    );
}

#[test]
fn a_hanging_close_holds_up_nobody() {
    let setup = Child {
        faults: "close-hang",
        ..Child::default()
    };
    in_child_with("a_hanging_close_holds_up_nobody", &setup, || {
        let mut first = player("");
        first.play();
        first.pull(usize::MAX);
        assert!(first.played.eos);
        let took = first.stop();
        println!("NULL in {took:?}");

        // The same element again, and another: the device is wedged, and they say so.
        let mut second = player("");
        for player in [&mut first, &mut second] {
            player.played = Default::default();
            player.play();
            player.pull(usize::MAX);
            let error = player.played.error();
            assert!(error.matches(gst::ResourceError::Failed), "{error:?}");
            assert!(error.message().contains("is wedged"), "{error}");
            player.stop();
        }
    });
}

#[test]
fn null_to_ready_and_back_needs_no_stream() {
    common::in_child("null_to_ready_and_back_needs_no_stream", || {
        let decoder = gst::ElementFactory::make("vplretrydec")
            .build()
            .expect("an element");
        for _ in 0..20 {
            decoder.set_state(gst::State::Ready).expect("READY");
            let name = decoder.property::<Option<String>>("implementation-name");
            assert_eq!(name.as_deref(), Some("vplsoft"));
            decoder.set_state(gst::State::Null).expect("NULL");
        }
        let tasks = || {
            std::fs::read_dir("/proc/self/task")
                .expect("Linux has it")
                .count()
        };
        wait_for("the session threads end", || tasks() < 12);
    });
}

#[test]
fn stopping_does_not_wait_for_slow_frames() {
    common::in_child("stopping_does_not_wait_for_slow_frames", || {
        common::set_faults("latency-us=3600000000:3600000000:3600000000");
        let mut player = player("");
        player.play();
        std::thread::sleep(Duration::from_millis(200));
        player.stop();
        common::assert_no_surfaces();
        common::set_faults("busy=forever");
        let mut player = self::player("retry-interval=1000000");
        player.play();
        std::thread::sleep(Duration::from_millis(200));
        player.stop();
        common::assert_no_surfaces();
    });
}
