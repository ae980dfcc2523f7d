// SPDX-License-Identifier: MPL-2.0

//! Cancelling at any place, and flushing.

use std::time::Duration;

use vplretry_core::{End, Reason, Settings, Status};

use crate::double::{Double, Say, Unit, Wait, frame, say, token};
use crate::ledger::Fate;

fn deep() -> Settings {
    Settings {
        async_depth: 4,
        ..Settings::default()
    }
}

#[test]
fn a_cancelled_loop_makes_no_call() {
    let mut decode = Double::with_units(1).into_loop(Settings::default());
    decode.driver().ledger.cancel_now();
    assert_eq!(decode.feed(), Ok(End::Cancelled));
    assert_eq!(decode.drain(), Ok(End::Cancelled));
    assert!(decode.driver().log.is_empty());
    assert_eq!(decode.stats().cancelled, 2);
}

#[test]
fn a_wait_ends_when_the_loop_is_cancelled() {
    for wait in [Wait::Hang, Wait::Status(1)] {
        let mut double = Double::with_units(1);
        double.then_wait = wait;
        let mut decode = double.into_loop(Settings::default());
        decode.driver().ledger.cancel_after(200);
        assert_eq!(decode.feed(), Ok(End::Cancelled));
        assert!(decode.driver().ledger.now() < Duration::from_secs(5));
        assert_eq!(decode.pending(), 1);
        assert_eq!(decode.stats().recoveries, 0);
    }
    let mut double = Double::with_units(1).then(token(2));
    double.then_wait = Wait::Hang;
    let mut decode = double.into_loop(Settings::default());
    decode.driver().ledger.cancel_after(200);
    assert_eq!(decode.feed(), Ok(End::Cancelled));
    assert_eq!(decode.stats().attempts, 1);
}

#[test]
fn frames_that_were_pending_when_it_was_cancelled_come_later() {
    let mut double = Double::with_units(3);
    double.latency = Duration::from_millis(500);
    let mut decode = double.into_loop(deep());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    decode.driver().ledger.cancel_now();
    assert_eq!(decode.drain(), Ok(End::Cancelled));
    assert_eq!(decode.poll(), Ok(End::Cancelled));
    assert_eq!(decode.pending(), 3);
    decode.driver().ledger.clear_cancel();
    assert_eq!(decode.drain(), Ok(End::Drained));
    assert_eq!(decode.driver().ledger.published(), [0, 1, 2]);
}

#[test]
fn a_drain_that_was_cancelled_is_completed_before_the_next_input() {
    let mut double = Double::with_units(4);
    double.delay = 8;
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    decode.driver_mut().script = [Say::Natural, say(-10)].into();
    decode.driver_mut().then_wait = Wait::Hang;
    decode.driver_mut().cancel_on = Some("wait 0");
    assert_eq!(decode.drain(), Ok(End::Cancelled));
    let double = decode.driver_mut();
    double.ledger.clear_cancel();
    double.then_wait = Wait::Natural;
    double.script.clear();
    double.delay = 0;
    double.hand_over(Unit {
        id: 4,
        len: 100,
        key: true,
    });
    double.log.clear();
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log,
        [
            "wait 0 0",
            "format 320",
            "publish 0",
            "reset Drained",
            "decode 0 frame 4",
            "wait 4 0",
            "publish 4"
        ]
    );
}

#[test]
fn changed_parameters_are_read_after_a_cancelled_call_too() {
    for answer in [frame(3), token(3)] {
        let mut double = Double::with_units(1).script([answer]);
        double.waits = [Wait::Hang].into();
        double.cancel_on = Some("decode");
        let mut decode = double.into_loop(Settings::default());
        assert_eq!(decode.feed(), Ok(End::Cancelled));
        let double = decode.driver_mut();
        double.ledger.clear_cancel();
        double.waits.clear();
        double.hand_over(Unit {
            id: 1,
            len: 100,
            key: false,
        });
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        assert_eq!(decode.stats().params_changed, 1);
        assert_eq!(decode.driver().ledger.published(), [0, 1]);
    }
}

#[test]
fn a_recovery_that_was_cancelled_is_taken_up_again() {
    let mut double = Double::with_units(1).script([say(-13)]);
    double.recovers = [-17, -17, 0].into();
    double.cancel_on = Some("recover");
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.feed(), Ok(End::Cancelled));
    assert_eq!(decode.stats().recoveries, 1);
    decode.driver().ledger.clear_cancel();
    // Again, in the pause before the second one.
    decode.driver_mut().cancel_on = Some("pause");
    assert_eq!(decode.feed(), Ok(End::Cancelled));
    assert_eq!(decode.stats().recoveries, 1);
    decode.driver().ledger.clear_cancel();
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().recoveries, 3);
    assert_eq!(decode.driver().ledger.published(), [0]);
}

#[test]
fn a_flush_discards_everything_and_waits_for_nothing() {
    let mut double = Double::with_units(5);
    double.delay = 2;
    double.latency = Duration::from_millis(500);
    let mut decode = double.into_loop(deep());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.pending(), 3);
    let double = decode.driver_mut();
    double.hand_over(Unit {
        id: 5,
        len: 100,
        key: false,
    });
    double.log.clear();
    assert_eq!(decode.flush(), Ok(End::Flushed));
    assert_eq!(
        decode.driver().log,
        [
            "discard 0 flushed",
            "discard 1 flushed",
            "discard 2 flushed",
            "drop [5] flushed",
            "reset Flushed"
        ]
    );
    let flushed = Some(Fate::Discarded(Reason::Flushed));
    let inside = Some(Fate::LostInside("reset"));
    let fates = decode.driver().ledger.fates();
    assert_eq!(
        fates.iter().map(|(_, fate)| *fate).collect::<Vec<_>>(),
        [
            flushed,
            flushed,
            flushed,
            inside,
            inside,
            Some(Fate::Dropped(Reason::Flushed))
        ]
    );
    assert_eq!(decode.driver().ledger.now(), Duration::ZERO);
    assert_eq!(decode.driver().ledger.live(), 0);
}

#[test]
fn a_flush_replaces_a_lost_session() {
    let mut double = Double::with_units(1).script([say(-13)]);
    double.recovers = [-17, 0].into();
    double.cancel_on = Some("recover");
    let mut decode = double.into_loop(Settings {
        device_retries: 2,
        ..Settings::default()
    });
    assert_eq!(decode.feed(), Ok(End::Cancelled));
    decode.driver().ledger.clear_cancel();
    assert_eq!(decode.flush(), Ok(End::Flushed));
    assert_eq!(decode.stats().resets, 0);
    assert_eq!(decode.stats().recoveries, 2);
    let double = decode.driver_mut();
    double.hand_over(Unit {
        id: 1,
        len: 100,
        key: true,
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [1]);
    assert_eq!(
        decode.driver().ledger.fates()[0].1,
        Some(Fate::Dropped(Reason::Flushed))
    );
}

#[test]
fn a_flush_whose_reset_fails_makes_a_new_session() {
    let mut double = Double::with_units(1);
    double.resets = [-14].into();
    let mut decode = double.into_loop(Settings::default());
    assert_eq!(decode.flush(), Ok(End::Flushed));
    assert_eq!(
        decode.driver().log.last().unwrap(),
        &format!("recover {}", Status::INCOMPATIBLE_VIDEO_PARAM.0)
    );
}
