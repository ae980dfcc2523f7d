// SPDX-License-Identifier: MPL-2.0

//! Waiting for frames: slices, timeouts, order, async depth, and what a failed wait costs.

use std::time::Duration;

use vplretry_core::{Damage, End, ErrorKind, Event, Fault, FrameLoop, Reason, Settings, Status};

use crate::double::{Double, Wait, say, token};
use crate::ledger::Fate;

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

#[test]
fn a_wait_goes_in_slices_until_the_frame_is_complete() {
    let mut double = Double::with_units(1);
    double.latency = ms(50);
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log,
        [
            "decode 0 frame 0",
            "wait 0 1",
            "wait 0 1",
            "wait 0 0",
            "format 320",
            "publish 0"
        ]
    );
    // The waits themselves are the pause.
    assert!(decode.driver().pauses.is_empty());
    assert_eq!(decode.driver().ledger.now(), ms(50));
}

#[test]
fn a_wait_that_does_not_wait_is_paused() {
    let mut decode = Double::with_units(1)
        .waits([Wait::Status(1), Wait::Status(2), Wait::Status(9)])
        .into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().pauses, [ms(1); 3]);
    assert_eq!(decode.driver().ledger.published(), [0]);
}

#[test]
fn a_wait_that_never_ends_is_a_lost_device() {
    for wait in [Wait::Hang, Wait::Status(1), Wait::Status(77)] {
        let mut double = Double::with_units(1);
        double.then_wait = wait;
        let mut decode = double.into_loop(Settings {
            device_retries: 0,
            sync_timeout: ms(130),
            ..Settings::default()
        });
        let error = decode.feed().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeviceLost);
        assert_eq!(decode.driver().ledger.now(), ms(130));
        assert_eq!(decode.stats().sync_timeouts, 1);
        assert_eq!(decode.driver().ledger.live(), 0);
    }
}

#[test]
fn a_long_wait_is_told_once_per_interval() {
    let mut double = Double::with_units(1);
    double.latency = ms(3500);
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    let told: Vec<_> = decode.driver().events.iter().map(|(at, _)| *at).collect();
    assert_eq!(told, [ms(1000), ms(2000), ms(3000)]);
    assert_eq!(
        decode.driver().events[1].1,
        Event::Waiting {
            status: Status::IN_EXECUTION,
            elapsed: ms(2000)
        }
    );
}

#[test]
fn a_token_that_never_ends_is_a_lost_device() {
    let mut double = Double::with_units(1).script([token(2)]);
    double.waits = [Wait::Hang; 4].into();
    let mut decode = double.into_loop(Settings {
        sync_timeout: ms(70),
        ..Settings::default()
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().sync_timeouts, 1);
    assert_eq!(decode.stats().recoveries, 1);
    assert_eq!(decode.driver().ledger.now(), ms(70));
    assert_eq!(decode.driver().ledger.published(), [0]);
}

#[test]
fn a_token_wait_that_lasts_is_the_pause() {
    let mut double = Double::with_units(1).script([token(2), token(2), token(13)]);
    double.latency = Duration::from_micros(400);
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    let log = &decode.driver().log;
    assert_eq!(
        log[..8],
        [
            "decode 2",
            "token 0",
            "decode 2",
            "token 0",
            "pause 600 us",
            "decode 13",
            "token 0",
            "pause 600 us"
        ]
    );
    assert_eq!(decode.stats().tokens, 3);
    assert_eq!(decode.stats().busy_time, Duration::from_micros(2400));

    let mut double = Double::with_units(1).script([token(2), token(2)]);
    double.latency = ms(3);
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert!(decode.driver().pauses.is_empty());
}

#[test]
fn a_lost_frame_is_told_and_the_next_one_comes() {
    for (status, damage) in [
        (-12, Damage::Unit),
        (-9, Damage::Unit),
        (-1, Damage::UntilKeyframe),
    ] {
        let mut decode = Double::with_units(2)
            .waits([Wait::Status(status)])
            .into_loop(Settings::default());
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        let status = Status(status);
        assert_eq!(
            decode.driver().ledger.fates(),
            [
                (0, Some(Fate::Discarded(Reason::WaitFailed(status)))),
                (1, Some(Fate::Published))
            ]
        );
        assert_eq!(
            decode.driver().events[0].1,
            Event::FrameLost { status, damage }
        );
    }
}

#[test]
fn a_fatal_wait_ends_decoding() {
    let mut decode = Double::with_units(2)
        .waits([Wait::Status(-8)])
        .into_loop(Settings::default());
    let error = decode.feed().unwrap_err();
    assert!(matches!(
        error,
        vplretry_core::Error::Fatal {
            fault: Fault::Usage,
            ..
        }
    ));
    assert_eq!(
        decode.driver().ledger.fates()[0],
        (0, Some(Fate::Discarded(Reason::Failed)))
    );
    assert_eq!(decode.driver().ledger.live(), 0);
}

/// Five units, each frame complete 10 ms after its decode call.
fn with_depth(async_depth: usize) -> FrameLoop<Double> {
    let mut double = Double::with_units(5);
    double.latency = ms(10);
    let mut decode = double.into_loop(Settings {
        async_depth,
        ..Settings::default()
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    decode
}

#[test]
fn async_depth_is_the_number_of_frames_in_flight() {
    for (depth, pending, most_live) in [(0, 0, 1), (1, 0, 1), (2, 1, 2), (3, 2, 3), (8, 5, 5)] {
        let mut decode = with_depth(depth);
        assert_eq!(decode.pending(), pending, "depth {depth}");
        assert_eq!(decode.driver().ledger.most_live(), most_live);
        assert_eq!(decode.drain(), Ok(End::Drained));
        assert_eq!(decode.pending(), 0);
        assert_eq!(decode.driver().ledger.published(), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn frames_that_are_complete_are_published_without_a_wait() {
    let mut decode = with_depth(8);
    assert!(decode.driver().ledger.published().is_empty());
    assert_eq!(decode.driver().ledger.now(), ms(0));
    decode.driver().ledger.pass(ms(9));
    assert_eq!(decode.poll(), Ok(End::NeedInput));
    assert_eq!(decode.pending(), 5);
    decode.driver().ledger.pass(ms(1));
    assert_eq!(decode.poll(), Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [0, 1, 2, 3, 4]);
    assert_eq!(decode.driver().ledger.now(), ms(10));
}

#[test]
fn asking_for_complete_frames_meets_failures_too() {
    let mut decode = with_depth(8);
    decode.driver_mut().waits = [Wait::Status(-12), Wait::Status(-13)].into();
    assert_eq!(decode.poll(), Ok(End::NeedInput));
    assert_eq!(decode.stats().recoveries, 1);
    assert_eq!(decode.pending(), 0);
    let device_lost = Fate::Discarded(Reason::DeviceLost(Status::DEVICE_LOST));
    let aborted = Fate::Discarded(Reason::WaitFailed(Status::ABORTED));
    assert_eq!(
        decode.driver().ledger.fates(),
        [aborted, device_lost, device_lost, device_lost, device_lost]
            .into_iter()
            .enumerate()
            .map(|(id, fate)| (id as u32, Some(fate)))
            .collect::<Vec<_>>()
    );
    assert!(matches!(
        decode.driver().events.last().unwrap().1,
        Event::Recovered { frames_lost: 4, .. }
    ));
}

#[test]
fn an_output_that_refuses_ends_the_call() {
    let mut double = Double::with_units(3);
    double.publish_error = Some("not linked");
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.feed().unwrap_err().to_string(), "not linked");
    assert_eq!(decode.driver().ledger.live(), 0);
}

#[test]
fn pauses_are_never_zero() {
    let mut decode = Double::with_units(1)
        .script([say(2); 5])
        .into_loop(Settings {
            retry_interval: Duration::ZERO,
            ..Settings::default()
        });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().pauses, [Duration::from_micros(1); 5]);
}
