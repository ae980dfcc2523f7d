// SPDX-License-Identifier: MPL-2.0

//! What simpler retry loops get wrong, one test each.

use std::time::Duration;

use crate::double::{Double, Say, Unit, Wait, frame, say, token};
use crate::ledger::Fate;
use vplretry_core::{
    CorruptedFrames, Corruption, Damage, End, Error, ErrorKind, Event, Limit, Reason, Settings,
    Status, VplDecodeDriver,
};

fn settings() -> Settings {
    Settings::default()
}

/// Units 0 to 2 pending behind a latency of 10 ms, an async depth of 4.
fn three_pending() -> vplretry_core::FrameLoop<Double> {
    let mut double = Double::with_units(3);
    double.latency = Duration::from_millis(10);
    let mut decode = double.into_loop(Settings {
        async_depth: 4,
        ..settings()
    });
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.pending(), 3);
    decode.driver_mut().log.clear();
    decode
}

fn hand_over(double: &mut Double, id: u32) {
    double.hand_over(Unit {
        id,
        len: 100,
        key: false,
    });
}

#[test]
fn s01_a_sync_point_without_a_surface_is_no_frame() {
    let mut decode = Double::with_units(1)
        .script([token(2)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log,
        [
            "decode 2",
            "token 0",
            "decode 0 frame 0",
            "wait 0 0",
            "format 320",
            "publish 0"
        ]
    );

    // Some runtimes set one on every call; with an error it means nothing.
    let mut decode = Double::with_units(1)
        .script([token(-10)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().log, ["decode -10"]);
}

#[test]
fn s01_sync_points_that_never_wait_do_not_spin() {
    let mut decode = Double::with_units(1).then(token(2)).into_loop(Settings {
        max_attempts: 100,
        ..settings()
    });
    let error = decode.feed().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(decode.stats().attempts, 100);
    // The first one alone is repeated without a pause.
    assert_eq!(decode.driver().pauses.len(), 98);
}

#[test]
fn s02_a_surface_without_a_sync_point_is_published_and_released() {
    for status in [0, 3, 5] {
        let say = Say::Status {
            status,
            surface: true,
            sync: false,
        };
        let mut decode = Double::with_units(1).script([say]).into_loop(settings());
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        assert_eq!(decode.driver().log[1], "wait 0 itself 0");
        assert_eq!(decode.driver().ledger.published(), [0]);
        assert_eq!(decode.driver().ledger.live(), 0);
    }
}

#[test]
fn s02_a_surface_with_an_error_is_released_with_its_reason() {
    let mut decode = Double::with_units(1)
        .script([frame(-16)])
        .into_loop(settings());
    assert_eq!(
        decode.feed(),
        Ok(End::Damaged {
            status: Status::UNDEFINED_BEHAVIOR,
            damage: Damage::UntilKeyframe
        })
    );
    assert_eq!(
        decode.driver().ledger.fates(),
        [(
            0,
            Some(Fate::Discarded(Reason::ErrorStatus(
                Status::UNDEFINED_BEHAVIOR
            )))
        )]
    );
    assert_eq!(decode.stats().discarded, 1);
    assert_eq!(decode.driver().ledger.live(), 0);
}

#[test]
fn s03_busy_publishes_the_oldest_pending_frame_before_it_pauses() {
    let mut decode = three_pending();
    let double = decode.driver_mut();
    hand_over(double, 3);
    double.script = [say(2), say(2), say(2), say(2)].into();
    double.latency = Duration::ZERO;
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log,
        [
            "decode 2",
            "wait 0 0",
            "format 320",
            "publish 0",
            "decode 2",
            "wait 1 0",
            "publish 1",
            "decode 2",
            "wait 2 0",
            "publish 2",
            "decode 2",
            "pause 1000 us",
            "decode 0 frame 3",
            "wait 3 0",
            "publish 3"
        ]
    );
}

#[test]
fn s04_busy_and_spinning_have_budgets_of_their_own() {
    let limits = Settings {
        max_attempts: 15,
        spin_guard: 15,
        ..settings()
    };
    // 14 of each in any mixture are within both.
    let mixed = std::iter::repeat_n([say(2), say(5)], 14).flatten();
    let mut decode = Double::with_units(1)
        .script(mixed)
        .into_loop(limits.clone());
    assert_eq!(decode.feed(), Ok(End::NeedInput));

    for (status, limit) in [
        (2, Limit::Attempts),
        (5, Limit::SpinGuard),
        (0, Limit::SpinGuard),
    ] {
        let mut decode = Double::with_units(1)
            .then(say(status))
            .into_loop(limits.clone());
        let error = decode.feed().unwrap_err();
        assert!(matches!(error, Error::Exhausted(e) if e.limit == limit && e.attempts == 15));
        let spins = if limit == Limit::SpinGuard { 15 } else { 0 };
        assert_eq!(decode.stats().spins, spins);
    }

    // Both together: the text has the number of calls.
    let mut decode = Double::with_units(1)
        .script([say(5); 10])
        .then(say(2))
        .into_loop(limits);
    let text = decode.feed().unwrap_err().to_string();
    assert!(text.starts_with("DecodeFrameAsync yielded no frame after 25 attempts"));
}

#[test]
fn s04_pauses_that_last_longer_end_at_the_deadline() {
    let mut double = Double::with_units(1).then(say(2));
    double.oversleep = 3;
    let mut decode = double.into_loop(settings());
    let text = decode.feed().unwrap_err().to_string();
    assert!(text.starts_with("DecodeFrameAsync yielded no frame after 20001 attempts"));
    assert!(text.contains("60000 ms without progress"), "{text}");

    // Slow calls without a pause, too.
    let mut double = Double::with_units(1).then(say(0));
    double.decode_time = Duration::from_secs(1);
    let mut decode = double.into_loop(settings());
    let text = decode.feed().unwrap_err().to_string();
    assert!(text.starts_with("DecodeFrameAsync yielded no frame after 60 attempts"));
}

#[test]
fn s04_the_last_pause_ends_at_the_deadline() {
    let mut decode = Double::with_units(1).then(say(2)).into_loop(Settings {
        retry_interval: Duration::from_millis(40),
        retry_timeout: Duration::from_millis(100),
        ..settings()
    });
    assert!(decode.feed().is_err());
    let pauses = &decode.driver().pauses;
    assert_eq!(pauses, &[40, 40, 20].map(Duration::from_millis));
}

#[test]
fn s05_progress_starts_the_budgets_again() {
    let limits = Settings {
        max_attempts: 10,
        spin_guard: 10,
        retry_timeout: Duration::from_millis(10),
        ..settings()
    };
    // Four bites of an access unit, nine busy answers before each.
    let script = (0..4).flat_map(|_| std::iter::repeat_n(say(2), 9).chain([Say::Natural]));
    let mut double = Double::with_units(1).script(script);
    double.bite = 25;
    let mut decode = double.into_loop(limits.clone());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().busy, 36);

    // A frame is progress as well.
    let script = (0..4).flat_map(|_| std::iter::repeat_n(say(2), 9).chain([frame(0)]));
    let mut double = Double::default().script(script);
    double.delay = 4;
    for id in 0..4 {
        hand_over(&mut double, id);
    }
    let mut decode = double.into_loop(limits.clone());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [0, 1, 2, 3]);

    // And so is a pending frame that is published: 12 busy answers, but never 10 in a row.
    let mut decode = three_pending();
    *decode.settings_mut() = Settings {
        async_depth: 4,
        ..limits
    };
    let double = decode.driver_mut();
    hand_over(double, 3);
    double.script = [say(2); 12].into();
    assert_eq!(decode.feed(), Ok(End::NeedInput));
}

#[test]
fn s05_what_is_no_progress_does_not_start_them_again() {
    let limits = Settings {
        max_attempts: 10,
        spin_guard: 10,
        ..settings()
    };
    // A successful wait for a sync point, parameters read, a status of the other kind.
    for (script, spins) in [
        (vec![token(2), say(2)], false),
        (vec![token(5), say(5)], true),
        (vec![say(3)], true),
    ] {
        let mut decode = Double::with_units(1)
            .script(script.into_iter().cycle().take(100))
            .into_loop(limits.clone());
        let error = decode.feed().unwrap_err();
        let kind = if spins {
            ErrorKind::NoProgress
        } else {
            ErrorKind::Busy
        };
        assert_eq!(error.kind(), kind);
        assert_eq!(decode.stats().attempts, 10);
    }
}

#[test]
fn s05_a_full_buffer_of_which_nothing_is_consumed_is_an_error() {
    let mut double = Double::with_units(1).then(say(-10));
    double.buffer_size = 100;
    let mut decode = double.into_loop(settings());
    let error = decode.feed().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bitstream buffer of 100 bytes is full and the runtime asks for more data without \
         consuming any, implementation double"
    );
    assert_eq!(error.kind(), ErrorKind::NoProgress);
    assert_eq!(decode.stats().attempts, 1);

    // At the end of the input it is a rest that the drain drops.
    let mut double = Double::with_units(1).then(say(-10));
    double.buffer_size = 100;
    double.eof = true;
    let mut decode = double.into_loop(settings());
    assert_eq!(decode.run(), Ok(End::Drained));
    assert_eq!(
        decode.driver().ledger.fates(),
        [(0, Some(Fate::Dropped(Reason::Leftover)))]
    );
}

#[test]
fn s05_more_data_after_some_was_consumed_is_normal() {
    // A full buffer of which a byte is consumed, and an empty one, of which nothing can be.
    for script in [vec![Say::Nibble(-10)], vec![Say::Eat(2), say(-10)]] {
        let mut double = Double::with_units(1).script(script);
        double.buffer_size = 99;
        let mut decode = double.into_loop(Settings {
            spin_guard: 1,
            ..settings()
        });
        assert_eq!(decode.feed(), Ok(End::NeedInput));
    }
}

#[test]
fn s05_units_of_which_nothing_is_consumed_are_counted() {
    let mut decode = Double::with_units(2000)
        .then(say(-10))
        .into_loop(settings());
    let error = decode.feed().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("DecodeFrameAsync yielded no frame after 1000 attempts"),
        "{error}"
    );
    assert!(matches!(error, Error::Exhausted(e) if e.limit == Limit::NoConsumption));

    // Also when every unit is a call of its own; but consumption starts the count again.
    let script = (0..2000).map(|n| {
        if n % 1000 == 998 {
            Say::Natural
        } else {
            say(-10)
        }
    });
    let mut decode = Double::default().script(script).into_loop(settings());
    for id in 0..1998 {
        hand_over(decode.driver_mut(), id);
        assert_eq!(decode.feed(), Ok(End::NeedInput), "unit {id}");
    }
}

#[test]
fn s06_starvation_is_told_apart_from_a_busy_device() {
    for status in [13, -11] {
        let mut decode = Double::with_units(1)
            .then(say(status))
            .into_loop(settings());
        let error = decode.feed().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Starved);
        assert_eq!(decode.stats().starved, 60_000);
        assert_eq!(decode.stats().busy, 0);
        let double = decode.driver();
        assert_eq!(double.events.len(), 60);
        assert_eq!(
            double.events[1],
            (
                Duration::from_secs(1),
                Event::Starved {
                    status: Status(status),
                    attempts: 1001,
                    elapsed: Duration::from_secs(1)
                }
            )
        );
    }
}

#[test]
fn s07_incompatible_parameters_drain_and_initialise_anew() {
    for status in [-14, -22, -15, -4] {
        let mut double = Double::with_units(4);
        double.delay = 2;
        let mut decode = double.into_loop(settings());
        for _ in 0..3 {
            assert_eq!(decode.feed(), Ok(End::NeedInput));
        }
        let double = decode.driver_mut();
        assert_eq!(double.ledger.published(), [0, 1]);
        hand_over(double, 4);
        double.script = [say(status)].into();
        double.log.clear();
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        assert_eq!(
            decode.driver().log,
            [
                format!("decode {status}").as_str(),
                "drain 0 frame 2",
                "wait 2 0",
                "publish 2",
                "drain 0 frame 3",
                "wait 3 0",
                "publish 3",
                "drain -10",
                "reinit",
                "decode -10"
            ]
        );
        assert_eq!(decode.stats().reinits, 1);
        assert_eq!(decode.drain(), Ok(End::Drained));
        assert_eq!(decode.driver().ledger.published(), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn s07_one_reinitialisation_per_access_unit() {
    let mut decode = Double::with_units(2)
        .script([say(-14), say(-10), say(-14)])
        .into_loop(settings());
    assert_eq!(
        decode.feed(),
        Ok(End::Damaged {
            status: Status::INCOMPATIBLE_VIDEO_PARAM,
            damage: Damage::UntilKeyframe
        })
    );
    assert_eq!(decode.stats().reinits, 1);
    // The next access unit has its own.
    decode.driver_mut().script = [say(-14), say(-10)].into();
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.stats().reinits, 2);
    assert_eq!(
        decode.driver().ledger.fates(),
        [
            (
                0,
                Some(Fate::Dropped(Reason::Damaged(
                    Status::INCOMPATIBLE_VIDEO_PARAM
                )))
            ),
            (1, Some(Fate::Published))
        ]
    );

    // Out of memory twice ends it.
    let mut decode = Double::with_units(1)
        .script([say(-4), say(-10), say(-4)])
        .into_loop(settings());
    let error = decode.feed().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoMemory);
    assert_eq!(
        error.to_string(),
        "out of memory, also after a re-initialisation: MFX_ERR_MEMORY_ALLOC (-4), \
         implementation double"
    );
}

#[test]
fn s07_a_lost_device_is_replaced() {
    for status in [-13, -17, -21] {
        let mut decode = Double::with_units(2)
            .script([say(status)])
            .into_loop(settings());
        assert_eq!(decode.feed(), Ok(End::NeedInput));
        let double = decode.driver();
        assert_eq!(double.log[1], format!("recover {status}"));
        // The first unit is a key frame and is fed again.
        assert_eq!(double.ledger.published(), [0, 1]);
        assert_eq!(
            double.events_where(|event| matches!(event, Event::Recovered { .. })),
            [Event::Recovered {
                cause: Status(status),
                attempts: 1,
                frames_lost: 0
            }]
        );
        assert_eq!(decode.stats().recoveries, 1);
    }
}

#[test]
fn s08_changed_parameters_are_read_again_without_a_frame() {
    let mut decode = Double::with_units(1)
        .script([say(3), token(3)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(
        decode.driver().log[..5],
        ["decode 3", "params", "decode 3", "token 0", "params"]
    );
    assert!(decode.driver().pauses.is_empty());
    assert_eq!(decode.stats().params_changed, 2);
    assert_eq!(decode.driver().ledger.published(), [0]);
}

#[test]
fn s08_a_silent_change_of_the_format_is_seen_on_the_surface() {
    let mut double = Double::with_units(5);
    double.formats = [(2, 640), (3, 640)].into();
    let mut decode = double.into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    let said: Vec<_> = decode
        .driver()
        .log
        .iter()
        .filter(|line| line.starts_with("format") || line.starts_with("publish"))
        .collect();
    assert_eq!(
        said,
        [
            "format 320",
            "publish 0",
            "publish 1",
            "format 640",
            "publish 2",
            "publish 3",
            "format 320",
            "publish 4"
        ]
    );
    assert_eq!(decode.stats().format_changes, 3);
}

#[test]
fn s09_corruption_flags_are_read_after_the_wait_and_acted_on() {
    let corruption = Corruption {
        flags: 0x12,
        partial_output: false,
    };
    let run = |corrupted_frames| {
        let mut double = Double::with_units(3);
        double.corruption = [(1, 0x12)].into();
        let mut decode = double.into_loop(Settings {
            corrupted_frames,
            ..settings()
        });
        (decode.feed(), decode)
    };
    let (end, decode) = run(CorruptedFrames::Mark);
    assert_eq!(end, Ok(End::NeedInput));
    assert!(decode.driver().log.contains(&"publish 1 corrupted".into()));
    assert!(decode.driver().log.contains(&"publish 2".into()));
    assert_eq!(decode.driver().events[0].1, Event::Corrupted(corruption));
    assert_eq!(decode.stats().corrupted, 1);
    assert_eq!(decode.stats().frames, 3);

    let (end, decode) = run(CorruptedFrames::Drop);
    assert_eq!(end, Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [0, 2]);
    assert_eq!(
        decode.driver().ledger.fates()[1],
        (1, Some(Fate::Discarded(Reason::Corrupted(corruption))))
    );
    assert_eq!(decode.stats().corrupted, 1);

    let (end, decode) = run(CorruptedFrames::Error);
    let error = end.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stream);
    assert_eq!(
        error.to_string(),
        "corrupted frame (major, corrupted reference frame), and corrupted frames are to be \
         treated as an error"
    );
    assert_eq!(decode.driver().ledger.live(), 0);
}

#[test]
fn s09_partial_output_is_corruption() {
    let mut decode = Double::with_units(1)
        .waits([Wait::Status(12)])
        .into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().log.last().unwrap(), "publish 0 corrupted");
    assert_eq!(
        decode.driver().events[0].1,
        Event::Corrupted(Corruption {
            flags: 0,
            partial_output: true
        })
    );
}

#[test]
fn s10_a_pause_ends_when_the_loop_is_cancelled() {
    let mut decode = Double::with_units(1).then(say(2)).into_loop(settings());
    decode.driver().ledger.cancel_after(1000);
    assert_eq!(decode.feed(), Ok(End::Cancelled));
    assert!(decode.driver().log.len() < 1000);
    assert_eq!(decode.stats().cancelled, 1);
    // It is no error, and the access unit is still there.
    let double = decode.driver_mut();
    double.ledger.clear_cancel();
    double.then = Say::Natural;
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.driver().ledger.published(), [0]);
}

#[test]
fn s11_a_drained_runtime_is_reset_before_it_is_fed_again() {
    let mut double = Double::with_units(3);
    double.delay = 8;
    let mut decode = double.into_loop(settings());
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    // More data is no end while there is a bitstream.
    assert_eq!(decode.driver().log, ["decode -10"; 3]);
    decode.driver_mut().log.clear();
    decode.driver_mut().script = [say(2), Say::Natural, say(13)].into();
    assert_eq!(decode.drain(), Ok(End::Drained));
    assert_eq!(
        decode.driver().log,
        [
            "drain 2",
            "pause 1000 us",
            "drain 0 frame 0",
            "wait 0 0",
            "format 320",
            "publish 0",
            "drain 13",
            "pause 1000 us",
            "drain 0 frame 1",
            "wait 1 0",
            "publish 1",
            "drain 0 frame 2",
            "wait 2 0",
            "publish 2",
            "drain -10",
            "reset Drained"
        ]
    );
    hand_over(decode.driver_mut(), 3);
    assert_eq!(decode.feed(), Ok(End::NeedInput));
    assert_eq!(decode.drain(), Ok(End::Drained));
    assert_eq!(decode.driver().ledger.published(), [0, 1, 2, 3]);
}

#[test]
fn s12_input_that_cannot_be_read_is_an_error() {
    let mut double = Double::with_units(2);
    double.refill_errors = [None, Some("disk gone")].into();
    let mut decode = double.into_loop(settings());
    let error = decode.feed().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Driver);
    assert_eq!(
        error,
        Error::Driver(crate::double::DriverError("disk gone"))
    );
    assert_eq!(decode.driver().ledger.published(), [0]);
}

mod s13_the_double_checks_what_the_loop_does {
    use super::*;

    #[test]
    fn a_leak_is_seen() {
        let mut double = Double::with_units(1);
        double.refill().unwrap();
        let decoded = double.decode_async(vplretry_core::Input::Bitstream);
        std::mem::forget(decoded.surface.unwrap());
        assert_eq!(double.ledger.live(), 1);
    }

    #[test]
    #[should_panic(expected = "a surface released twice")]
    fn a_double_release_is_seen() {
        let mut double = Double::with_units(1);
        double.refill().unwrap();
        let surface = double
            .decode_async(vplretry_core::Input::Bitstream)
            .surface
            .unwrap();
        surface.release_behind_its_back();
        drop(surface);
    }

    #[test]
    #[should_panic(expected = "used before its wait")]
    fn a_frame_published_before_its_wait_is_seen() {
        let mut double = Double::with_units(1);
        double.refill().unwrap();
        let decoded = double.decode_async(vplretry_core::Input::Bitstream);
        let _ = double.publish(decoded.surface.unwrap(), Corruption::default());
    }

    #[test]
    #[should_panic(expected = "accounted for twice")]
    fn a_unit_accounted_for_twice_is_seen() {
        let double = Double::with_units(1);
        double.ledger.account(0, Fate::Published);
        double.ledger.account(0, Fate::Errored);
    }
}
