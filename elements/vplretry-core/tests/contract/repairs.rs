// SPDX-License-Identifier: MPL-2.0

//! Resets, re-initialisations, new sessions, soft errors, and what bounds them.

use std::time::Duration;

use vplretry_core::{Damage, End, Error, ErrorKind, Event, Reason, Settings, Status};

use crate::double::{Double, Say, Unit, Wait, frame, say};
use crate::ledger::Fate;

fn settings() -> Settings {
    Settings::default()
}

fn damaged(status: i32, damage: Damage) -> Result<End, Error<crate::double::DriverError>> {
    Ok(End::Damaged {
        status: Status(status),
        damage,
    })
}

#[test]
fn aborted_is_answered_with_one_reset() {
    let mut decode = Double::with_units(1)
        .script([say(-12)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log[..3],
        ["decode -12", "reset Aborted", "decode 0 frame 0"]
    );
    assert_eq!(decode.stats().resets, 1);

    let mut decode = Double::with_units(1)
        .script([say(-12), say(-12)])
        .into_loop(settings());
    assert_eq!(decode.feed(), damaged(-12, Damage::Unit));
    assert_eq!(decode.stats().resets, 1);
    assert_eq!(decode.stats().damaged, 1);
}

#[test]
fn pending_frames_are_published_before_a_reset() {
    let mut double = Double::with_units(3).script([Say::Natural, Say::Natural, say(-12)]);
    double.latency = Duration::from_millis(5);
    let mut decode = double.into_loop(Settings {
        async_depth: 4,
        ..settings()
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    let log = &decode.driver().log;
    let position = |line: &str| log.iter().position(|l| l == line).unwrap();
    assert!(position("publish 1") < position("reset Aborted"));
}

#[test]
fn a_small_buffer_is_enlarged_once() {
    for (can_grow, answers, published) in [(true, 1, true), (true, 2, false), (false, 1, false)] {
        let mut double = Double::with_units(1).script(std::iter::repeat_n(say(-5), answers));
        double.can_grow = can_grow;
        let mut decode = double.into_loop(settings());
        let end = decode.feed();
        if published {
            assert_eq!(end, Ok(End::NeedInput));
        } else {
            assert_eq!(end, damaged(-5, Damage::Unit));
        }
        let grown = decode.driver().log.iter().filter(|line| *line == "grow");
        assert_eq!(grown.count(), 1);
    }
}

#[test]
fn a_soft_error_costs_its_access_unit_and_no_other() {
    for (answer, damage) in [
        (say(-7), Damage::Unit),
        (say(-999), Damage::Unit),
        (Say::Eat(-23), Damage::Unit),
        (say(-1), Damage::UntilKeyframe),
    ] {
        let mut decode = Double::with_units(3)
            .script([frame(0), answer])
            .into_loop(settings());
        let end = decode.feed().unwrap();
        let End::Damaged { status, damage: d } = end else {
            panic!("{end:?}");
        };
        assert_eq!(d, damage);
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        assert_eq!(decode.driver().ledger.published(), [0, 2]);
        assert_eq!(
            decode.driver().ledger.fates()[1],
            (1, Some(Fate::Dropped(Reason::Damaged(status))))
        );
    }
}

#[test]
fn a_streak_of_damage_calls_for_a_new_session() {
    let run = |units: u32, script: Vec<Say>, settings: Settings| {
        let mut decode = Double::with_units(units).script(script).into_loop(settings);
        while matches!(decode.feed().unwrap(), End::Damaged { .. }) {}
        decode
    };
    let decode = run(5, vec![say(-1), say(-16), say(-1)], settings());
    assert_eq!(decode.stats().recoveries, 1);
    assert_eq!(decode.driver().ledger.published(), [3, 4]);
    // A frame in between, or damage of another kind, is no streak.
    let mixed = vec![say(-1), say(-1), frame(0), say(-1), say(-1), say(-7)];
    let decode = run(7, mixed, settings());
    assert_eq!(decode.stats().recoveries, 0);
    assert_eq!(decode.stats().damaged, 5);
    // Where no new session may be made, it stays with soft errors.
    let none = Settings {
        device_retries: 0,
        ..settings()
    };
    let decode = run(5, vec![say(-1); 4], none);
    assert_eq!(decode.stats().recoveries, 0);
    assert_eq!(decode.stats().damaged, 4);
    assert_eq!(decode.driver().ledger.published(), [4]);
}

#[test]
fn failed_waits_count_to_the_streak() {
    let mut decode = Double::with_units(5)
        .waits([Wait::Status(-1); 2])
        .into_loop(Settings {
            async_depth: 4,
            damage_streak: 2,
            ..settings()
        });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().recoveries, 1);
}

#[test]
fn new_sessions_are_bounded_and_ever_further_apart() {
    let mut decode = Double::with_units(1).then(say(-21)).into_loop(Settings {
        device_retries: 8,
        ..settings()
    });
    let error = decode.feed().unwrap_err();
    assert_eq!(
        error,
        Error::DeviceLost {
            status: Status::GPU_HANG,
            recoveries: 8,
            implementation: "double".into()
        }
    );
    assert_eq!(decode.stats().attempts, 9);
    assert_eq!(
        decode.driver().pauses,
        [100, 200, 400, 800, 1600, 2000, 2000].map(Duration::from_millis)
    );
}

#[test]
fn a_session_that_cannot_be_made_is_tried_again() {
    let mut double = Double::with_units(1).script([say(-13)]);
    double.recovers = [-17, -3, 0].into();
    let mut decode = double.into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [0]);
    assert_eq!(
        decode.driver().events[0].1,
        Event::Recovered {
            cause: Status::DEVICE_LOST,
            attempts: 3,
            frames_lost: 0
        }
    );

    let mut double = Double::with_units(1).script([say(-13)]);
    double.recovers = [-17, -17, -3].into();
    let mut decode = double.into_loop(settings());
    let error = decode.feed().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost);
    // The text names what stood in the way last.
    assert!(error.to_string().contains("MFX_ERR_UNSUPPORTED"), "{error}");
    // The session is still lost: the next call tries no further either.
    assert_eq!(decode.feed().unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(decode.stats().recoveries, 3);
}

#[test]
fn a_frame_renews_the_new_sessions_for_the_next_unit_only() {
    // Every unit loses the device once before its frame: each has its own budget.
    let mut double = Double::default();
    for id in 0..10 {
        double.hand_over(Unit {
            id,
            len: 100,
            key: true,
        });
    }
    double.script = (0..10).flat_map(|_| [say(-13), Say::Natural]).collect();
    let mut decode = double.into_loop(Settings {
        device_retries: 1,
        ..settings()
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().recoveries, 10);
    assert_eq!(decode.stats().frames, 10);

    // Without a frame in between the units share one budget.
    let mut decode = Double::with_units(5).then(say(-13)).into_loop(settings());
    decode.driver_mut().input.pop_front();
    assert_eq!(decode.feed().unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(decode.stats().recoveries, 3);
    assert_eq!(decode.stats().attempts, 4);
}

#[test]
fn pending_frames_of_a_lost_device_are_discarded_and_counted() {
    let mut double = Double::with_units(4).script([Say::Natural, Say::Natural, frame(-17)]);
    double.latency = Duration::from_millis(5);
    let mut decode = double.into_loop(Settings {
        async_depth: 4,
        ..settings()
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    let lost = Fate::Discarded(Reason::DeviceLost(Status::DEVICE_FAILED));
    let fates = decode.driver().ledger.fates();
    assert_eq!(fates[0].1, Some(lost));
    assert_eq!(fates[1].1, Some(lost));
    assert_eq!(
        fates[2].1,
        Some(Fate::Discarded(Reason::ErrorStatus(Status::DEVICE_FAILED)))
    );
    assert!(matches!(
        decode.driver().events[0].1,
        Event::Recovered { frames_lost: 2, .. }
    ));
    assert_eq!(decode.stats().discarded, 3);
}

#[test]
fn what_a_new_session_is_fed_first_is_decoded_in_the_same_call() {
    for drain in [false, true] {
        // The device is lost in the wait for the only frame.
        let mut double = Double::with_units(1).waits([Wait::Status(1), Wait::Status(-13)]);
        double.replay = Some(Unit {
            id: 1,
            len: 100,
            key: true,
        });
        if !drain {
            double.waits.pop_front();
        }
        let mut decode = double.into_loop(Settings {
            async_depth: 4,
            ..settings()
        });
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        if drain {
            assert_eq!(decode.stats().recoveries, 0);
            assert_eq!(decode.drain(), Ok(End::Drained));
            assert_eq!(decode.driver().log.last().unwrap(), "reset Drained");
        }
        assert_eq!(decode.stats().recoveries, 1);
        assert_eq!(decode.driver().ledger.published(), [1]);
    }
}

#[test]
fn a_session_lost_in_a_drain_leaves_nothing_to_drain() {
    let mut decode = Double::with_units(0)
        .script([say(-13)])
        .into_loop(settings());
    assert_eq!(decode.drain(), Ok(End::Drained));
    assert_eq!(decode.driver().log, ["drain -13", "recover -13"]);
}

#[test]
fn limits_can_be_changed_between_calls() {
    let mut decode = Double::with_units(1).then(say(2)).into_loop(settings());
    decode.settings_mut().max_attempts = 2;
    assert_eq!(decode.feed().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(decode.stats().attempts, 2);
}

#[test]
fn a_failed_reset_makes_a_new_session() {
    let mut double = Double::with_units(1);
    double.resets = [-1].into();
    let mut decode = double.into_loop(settings());
    assert_eq!(decode.drain(), Ok(End::Drained));
    assert_eq!(decode.driver().log[1..], ["reset Drained", "recover -1"]);
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [0]);
}

#[test]
fn a_failed_reinitialisation_costs_the_access_unit() {
    for (status, end) in [
        (-15, damaged(-15, Damage::UntilKeyframe)),
        (-10, damaged(-10, Damage::UntilKeyframe)),
        (-13, Ok(End::NeedInput)),
    ] {
        let mut double = Double::with_units(1).script([say(-14), say(-10)]);
        double.reinits = [status].into();
        let mut decode = double.into_loop(settings());
        assert_eq!(decode.feed(), end);
    }
    for (cause, status, kind) in [
        (-14, -3, ErrorKind::Unsupported),
        (-14, -4, ErrorKind::NoMemory),
        (-4, -15, ErrorKind::NoMemory),
    ] {
        let mut double = Double::with_units(1).script([say(cause), say(-10)]);
        double.reinits = [status].into();
        let mut decode = double.into_loop(settings());
        assert_eq!(decode.feed().unwrap_err().kind(), kind);
    }
}

#[test]
fn an_error_within_the_drain_of_a_reinitialisation_does_not_stop_it() {
    let mut decode = Double::with_units(1)
        .script([say(-14), say(-16)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log[..3],
        ["decode -14", "drain -16", "reinit"]
    );
    // A lost device does: the new session needs no re-initialisation.
    let mut decode = Double::with_units(1)
        .script([say(-14), say(-13)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().reinits, 0);
    assert_eq!(decode.driver().ledger.published(), [0]);
}

#[test]
fn an_error_within_a_drain_ends_it_and_is_told() {
    let mut double = Double::with_units(3);
    double.delay = 8;
    double.latency = Duration::from_millis(5);
    let mut decode = double.into_loop(Settings {
        async_depth: 4,
        ..settings()
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    decode.driver_mut().script = [Say::Natural, say(-16)].into();
    assert_eq!(decode.drain(), damaged(-16, Damage::UntilKeyframe));
    // What was decoded is published, and the runtime is ready for more.
    assert_eq!(decode.driver().ledger.published(), [0]);
    assert_eq!(decode.driver().log.last().unwrap(), "reset Drained");
    assert_eq!(decode.feed(), Ok(End::NeedInput));
}

#[test]
fn parameters_that_cannot_be_read_are_told() {
    let mut double = Double::with_units(1).script([say(3)]);
    double.params = [-15].into();
    let mut decode = double.into_loop(settings());
    assert_eq!(decode.feed(), damaged(-15, Damage::Unit));
    let mut double = Double::with_units(1).script([say(3)]);
    double.params = [-8].into();
    let mut decode = double.into_loop(settings());
    assert_eq!(decode.feed().unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn frames_without_end_and_without_input_are_an_error() {
    let run = |units: u32| {
        let mut double = Double::with_units(units);
        double.delay = 100;
        let mut decode = double.into_loop(Settings {
            frame_guard: 10,
            ..settings()
        });
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        (decode.drain(), decode)
    };
    let (end, _) = run(10);
    assert_eq!(end, Ok(End::Drained));
    let (end, decode) = run(11);
    let error = end.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoProgress);
    assert_eq!(
        error.to_string(),
        "the runtime delivered 11 frames without consuming any data, implementation double"
    );
    assert_eq!(decode.driver().ledger.live(), 0);
}

#[test]
fn an_empty_bitstream_is_not_fed() {
    // Warnings and frames alike: what is used up is not offered again, except to a busy device.
    let mut decode = Double::with_units(2)
        .script([Say::Eat(5), Say::Eat(2)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log,
        ["decode 5", "decode 2", "pause 1000 us", "decode -10"]
    );
}

#[test]
fn a_plain_file_is_decoded_to_its_end() {
    let mut double = Double::with_units(4);
    double.delay = 2;
    let mut decode = double.into_loop(settings());
    // Not at its end yet: no drain.
    assert_eq!(decode.run(), Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [0, 1]);
    decode.driver_mut().eof = true;
    assert_eq!(decode.run(), Ok(End::Drained));
    assert_eq!(decode.driver().ledger.published(), [0, 1, 2, 3]);
    assert_eq!(decode.into_driver().ledger.live(), 0);
}
