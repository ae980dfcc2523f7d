// SPDX-License-Identifier: MPL-2.0

//! Each key of the grammar that a client can survive, or has to end with, as the guide of the loop promises.

use std::time::Duration;

use test_streams::named;
use vplretry_core::{
    CorruptedFrames, Damage, End, Error, ErrorKind, Event, Exhausted, Limit, Reason, Settings,
    Status,
};

use crate::books::Fate;
use crate::client::stage::{in_child, md5_of};
use crate::play::{Downstream, Played, Reference, Setup, play};
use crate::units::Source;

/// Eight times an I, a P and a B picture, shown in another order than coded.
fn short() -> Source {
    Source::repeated(&named("64x64-I-P-B-P.h264"), usize::MAX, 8)
}

/// 250 pictures with 4 key frames.
fn long() -> Source {
    Source::of(&named("test-25fps.h264"))
}

/// Plays it and expects every picture, as it should be.
fn loses_nothing(source: &Source, setup: &Setup) -> Played {
    let played = play(source, setup);
    assert_eq!(played.end, Ok(End::Drained), "{:?}", setup.faults);
    assert_eq!(
        played.checksums(),
        source.expected.list(),
        "{:?}",
        setup.faults
    );
    assert!(played.damages.is_empty(), "{:?}", played.damages);
    played
}

fn exhausted(played: &Played) -> &Exhausted {
    match &played.end {
        Err(Error::Exhausted(exhausted)) => exhausted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_busy_device_loses_nothing() {
    in_child("faults::a_busy_device_loses_nothing", "", || {
        let source = short();
        for depth in [1, 4] {
            let played = loses_nothing(&source, &Setup::with("busy=25").async_depth(depth));
            assert_eq!(played.stats.busy, 25);
            assert_eq!(played.stats.max_attempts_per_frame, 26);
            let told = |event: &&Event| matches!(event, Event::Retry { .. });
            // 25 pauses of 1 ms are less than a report interval.
            assert_eq!(played.events.iter().filter(told).count(), 1);

            let played =
                loses_nothing(&source, &Setup::with("busy-with-sync=9").async_depth(depth));
            assert_eq!((played.stats.busy, played.stats.tokens), (9, 9));
        }
    });
}

#[test]
fn a_device_that_stays_busy_ends_the_loop_with_the_number_of_attempts() {
    in_child(
        "faults::a_device_that_stays_busy_ends_the_loop_with_the_number_of_attempts",
        "",
        || {
            let source = short();
            let defaults = Settings::default();
            let few = Settings {
                max_attempts: 7,
                ..Settings::default()
            };
            let deadline = Settings {
                retry_timeout: Duration::from_millis(50),
                ..Settings::default()
            };
            for (settings, attempts, limit) in [
                (defaults, 60_000, Limit::Attempts),
                (few, 7, Limit::Attempts),
                // A pause of 1 ms behind each: the 51st call finds the time over.
                (deadline, 51, Limit::Deadline),
            ] {
                let setup = Setup {
                    settings,
                    ..Setup::with("busy=forever")
                };
                let played = play(&source, &setup);
                let error = exhausted(&played);
                assert_eq!((error.attempts, error.limit), (attempts, limit));
                assert_eq!(played.without_progress, attempts, "calls that were made");
                assert_eq!(played.stats.attempts, u64::from(attempts));
                let text = played.end.as_ref().expect_err("an error").to_string();
                let begin =
                    format!("DecodeFrameAsync yielded no frame after {attempts} attempts: ");
                assert!(text.starts_with(&begin), "{text}");
                assert!(text.contains("MFX_WRN_DEVICE_BUSY (2)"), "{text}");
                assert_eq!(
                    played.end.as_ref().map_err(Error::kind),
                    Err(ErrorKind::Busy)
                );
                assert_eq!(played.books.with(|fate| *fate == Fate::Errored), [0]);
            }
        },
    );
}

#[test]
fn a_busy_device_lets_go_when_it_is_told_to() {
    in_child(
        "faults::a_busy_device_lets_go_when_it_is_told_to",
        "",
        || {
            for flush in [false, true] {
                let setup = Setup {
                    cancel: Some(crate::play::Cancel {
                        at: 0,
                        questions: 20,
                        flush,
                    }),
                    settings: Settings {
                        max_attempts: 40,
                        ..Settings::default()
                    },
                    ..Setup::with("busy=25")
                };
                let played = play(&short(), &setup);
                assert_eq!(played.stats.cancelled, 1);
                assert_eq!(played.end, Ok(End::Drained));
                // What was flushed is gone, and the next key frame begins anew.
                let flushed = played
                    .books
                    .with(|fate| *fate == Fate::Dropped(Reason::Flushed));
                assert_eq!(flushed, if flush { vec![0] } else { vec![] });
                assert_eq!(played.pictures.len() == played.books.len(), !flush);
            }
        },
    );
}

#[test]
fn a_script_of_warnings_loses_nothing() {
    in_child("faults::a_script_of_warnings_loses_nothing", "", || {
        let source = short();
        for depth in [1, 4] {
            let script =
                "script=2*3,_,3sf,2s,13*4,3*2,5f,1s*3,8,9s,4sf,2sf,-11*2,7,10s,-10000,12sf,13f";
            let played = loses_nothing(&source, &Setup::with(script).async_depth(depth));
            let stats = &played.stats;
            assert_eq!((stats.busy, stats.starved), (3 + 1 + 3 + 2 + 1, 4 + 2));
            assert_eq!(stats.params_changed, 1 + 2);
            assert_eq!((stats.reinits, stats.damaged, stats.discarded), (0, 0, 0));
        }
    });
}

#[test]
fn a_script_of_errors_costs_what_the_table_says() {
    in_child(
        "faults::a_script_of_errors_costs_what_the_table_says",
        "",
        || {
            let source = short();
            let reference = Reference::of(&source);
            // The first call of all is that of a key frame, which nothing was taken of.
            for (script, lost, damages) in [
                ("-7", vec![0], vec![Damage::Unit]),
                ("-1", vec![0, 1, 2], vec![Damage::UntilKeyframe]),
                ("-12", vec![], vec![]),
                ("-12,-12", vec![0], vec![Damage::Unit]),
                ("-14", vec![], vec![]),
                ("-14,-14", vec![0, 1, 2], vec![Damage::UntilKeyframe]),
                ("-4", vec![], vec![]),
                ("-5", vec![0], vec![Damage::Unit]),
                ("-13", vec![], vec![]),
                ("-999", vec![0], vec![Damage::Unit]),
            ] {
                // A drain within a re-initialisation is a call too.
                let script = script.replace("-14,-14", "-14,_,-14");
                let played = play(&source, &Setup::with(&format!("script={script}")));
                assert_eq!(played.end, Ok(End::Drained), "{script}");
                reference.compare(&played);
                let told: Vec<Damage> = played.damages.iter().map(|(_, damage)| *damage).collect();
                assert_eq!(told, damages, "{script}");
                let dropped = played.books.with(|fate| {
                    matches!(fate, Fate::Dropped(Reason::Damaged(_)) | Fate::NoKeyFrame)
                });
                assert_eq!(dropped, lost, "{script}");
                if lost.is_empty() {
                    assert_eq!(played.checksums(), source.expected.list(), "{script}");
                }
            }
            let surface = play(&source, &Setup::with("script=-7sf"));
            assert_eq!(surface.stats.discarded, 1);
            let reason = Reason::ErrorStatus(Status::LOCK_MEMORY);
            assert_eq!(
                surface
                    .books
                    .with(|fate| *fate == Fate::Discarded(reason))
                    .len(),
                1
            );

            for (script, kind) in [
                ("-4,_,-4", ErrorKind::NoMemory),
                ("-3", ErrorKind::Unsupported),
                ("-6", ErrorKind::Internal),
                ("0*5000", ErrorKind::NoProgress),
                ("-10*5000", ErrorKind::NoProgress),
                ("13*100000", ErrorKind::Starved),
            ] {
                let played = play(&long(), &Setup::with(&format!("script={script}")));
                if script == "-10*5000" {
                    // Fewer access units than the guard allows: nothing was taken when the stream ended.
                    assert_eq!(played.end, Ok(End::Drained));
                    let leftover = Fate::Dropped(Reason::Leftover);
                    assert_eq!(played.books.with(|fate| *fate == leftover).len(), 250);
                    continue;
                }
                assert_eq!(
                    played.end.as_ref().map_err(Error::kind),
                    Err(kind),
                    "{script}"
                );
            }
        },
    );
}

#[test]
fn slow_pictures_are_waited_for() {
    in_child("faults::slow_pictures_are_waited_for", "", || {
        for depth in [1, 4] {
            let setup = Setup::with("latency-us=9000:4000:1500").async_depth(depth);
            loses_nothing(&short(), &setup);
        }
        // The runtime takes fewer at once than the loop would have pending.
        let mut setup = Setup::with("latency-us=9000:4000:1500").async_depth(4);
        setup.runtime_depth = 2;
        assert!(loses_nothing(&short(), &setup).stats.busy > 0);
    });
}

#[test]
fn a_picture_that_never_comes_costs_the_session() {
    in_child(
        "faults::a_picture_that_never_comes_costs_the_session",
        "",
        || {
            let settings = Settings {
                sync_timeout: Duration::from_millis(60),
                ..Settings::default()
            };
            let late = "latency-us=3600000000:0:0";
            let setup = Setup {
                settings: settings.clone(),
                ..Setup::with(late)
            };
            let played = play(&short(), &setup);
            assert_eq!(
                (played.stats.sync_timeouts, played.stats.recoveries),
                (1, 1)
            );
            assert_eq!(played.end, Ok(End::Drained));
            // Its picture had been given out: the key frame is not fed again.
            let cause = Reason::DeviceLost(Status::IN_EXECUTION);
            assert_eq!(
                played.books.with(|fate| *fate == Fate::Discarded(cause)),
                [0]
            );

            let setup = Setup {
                settings,
                ..Setup::with(late)
            }
            .in_sessions(9);
            let played = play(&short(), &setup);
            assert!(
                matches!(&played.end, Err(Error::DeviceLost { recoveries: 3, .. })),
                "{:?}",
                played.end
            );
            assert_eq!(played.stats.sync_timeouts, 4);
        },
    );
}

#[test]
fn a_pool_that_is_empty_is_told_from_a_busy_device() {
    in_child(
        "faults::a_pool_that_is_empty_is_told_from_a_busy_device",
        "",
        || {
            let source = short();
            // The loop itself holds them: publishing gives them back.
            let slow = Setup::with("pool=2;latency-us=2000:2000:2000").async_depth(4);
            let played = loses_nothing(&source, &slow);
            assert!(played.stats.starved > 0);
            assert!(played.events.is_empty(), "{:?}", played.events);

            let mut setup = Setup::with("pool=2").async_depth(4);
            setup.downstream = Downstream::GivesOneBackPerPause;
            let played = loses_nothing(&source, &setup);
            assert!(
                matches!(played.events[..], [Event::Starved { .. }]),
                "{:?}",
                played.events
            );

            setup.downstream = Downstream::KeepsAll;
            setup.settings.max_attempts = 50;
            let played = play(&source, &setup);
            assert_eq!(played.pictures.len(), 2);
            assert_eq!(exhausted(&played).attempts, 50);
            assert_eq!(
                played.end.as_ref().map_err(Error::kind),
                Err(ErrorKind::Starved)
            );
        },
    );
}

#[test]
fn an_access_unit_that_fails_costs_what_refers_to_it() {
    in_child(
        "faults::an_access_unit_that_fails_costs_what_refers_to_it",
        "",
        || {
            let source = long();
            let reference = Reference::of(&source);
            let next_key = source.units.iter().find(|unit| unit.key && unit.id > 60);
            let next_key = next_key.expect("the stream has several").id;
            for depth in [1, 4] {
                let played = play(&source, &Setup::with("fail-decode=60").async_depth(depth));
                assert_eq!(played.end, Ok(End::Drained));
                assert_eq!(played.damages, [(Status::UNKNOWN, Damage::UntilKeyframe)]);
                let failed = Fate::Dropped(Reason::Damaged(Status::UNKNOWN));
                assert_eq!(played.books.with(|fate| *fate == failed), [60]);
                let skipped: Vec<u64> = (61..next_key).collect();
                assert_eq!(played.books.with(|fate| *fate == Fate::NoKeyFrame), skipped);
                reference.compare(&played);
                // The runtime marks the picture that follows a loss.
                assert_eq!(played.stats.corrupted, 1);
            }
        },
    );
}

#[test]
fn a_picture_whose_wait_fails_is_discarded_and_told() {
    in_child(
        "faults::a_picture_whose_wait_fails_is_discarded_and_told",
        "",
        || {
            let source = short();
            let reference = Reference::of(&source);
            for depth in [1, 4] {
                let played = play(&source, &Setup::with("status-error=5").async_depth(depth));
                assert_eq!(played.end, Ok(End::Drained));
                reference.compare(&played);
                let reason = Reason::WaitFailed(Status::ABORTED);
                assert_eq!(
                    played
                        .books
                        .with(|fate| *fate == Fate::Discarded(reason))
                        .len(),
                    1
                );
                assert_eq!(played.pictures.len() + 1, source.expected.len());
                let told = Event::FrameLost {
                    status: Status::ABORTED,
                    damage: Damage::Unit,
                };
                assert_eq!(played.events, [told]);
            }
        },
    );
}

/// `device-lost` counts the sessions of a process, so each case has a process of its own.
fn device_lost(test: &str, faults: &str, body: impl FnOnce(&Source, &Reference, &Setup)) {
    in_child(test, "", || {
        let source = long();
        // The first of the sessions that are counted.
        let reference = Reference::of(&source);
        body(&source, &reference, &Setup::with(faults).in_sessions(9));
    });
}

#[test]
fn a_lost_device_is_replaced_and_a_key_frame_waited_for() {
    device_lost(
        "faults::a_lost_device_is_replaced_and_a_key_frame_waited_for",
        "device-lost=100:2",
        |source, reference, setup| {
            let played = play(source, setup);
            assert_eq!(played.end, Ok(End::Drained));
            assert_eq!(played.stats.recoveries, 1);
            let told = |event: &Event| {
                matches!(
                    event,
                    Event::Recovered {
                        cause: Status::DEVICE_LOST,
                        attempts: 1,
                        ..
                    }
                )
            };
            assert!(played.events.iter().any(told), "{:?}", played.events);
            reference.compare(&played);
            let lost = played
                .books
                .with(|fate| *fate == Fate::LostInside("device lost"));
            assert!(lost.contains(&100), "{lost:?}");
            let next_key = source.units.iter().find(|unit| unit.key && unit.id > 100);
            let next_key = next_key.expect("the stream has several").id;
            let skipped = played.books.with(|fate| *fate == Fate::NoKeyFrame);
            assert_eq!(skipped, (101..next_key).collect::<Vec<u64>>());
            let shown = played.pictures.len() + lost.len() + skipped.len();
            assert_eq!(shown, source.expected.len());
        },
    );
}

#[test]
fn a_key_frame_that_loses_the_device_is_fed_again() {
    device_lost(
        "faults::a_key_frame_that_loses_the_device_is_fed_again",
        "device-lost=0:3",
        |source, _, setup| {
            let played = loses_nothing(source, setup);
            assert_eq!(played.stats.recoveries, 2);
        },
    );
}

#[test]
fn a_device_that_is_lost_again_and_again_ends_the_loop() {
    device_lost(
        "faults::a_device_that_is_lost_again_and_again_ends_the_loop",
        "device-lost=0:100",
        |source, _, setup| {
            let played = play(source, setup);
            match &played.end {
                Err(Error::DeviceLost {
                    status, recoveries, ..
                }) => {
                    assert_eq!((*status, *recoveries), (Status::DEVICE_LOST, 3));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(played.books.with(|fate| *fate == Fate::Errored), [0]);
        },
    );
}

#[test]
fn a_corrupted_picture_is_marked_dropped_or_an_error() {
    in_child(
        "faults::a_corrupted_picture_is_marked_dropped_or_an_error",
        "",
        || {
            let source = short();
            let reference = Reference::of(&source);
            for depth in [1, 4] {
                let mut setup = Setup::with("corrupt=7").async_depth(depth);
                let played = loses_nothing(&source, &setup);
                let marked = |n: &usize| !played.pictures[*n].corruption.is_clean();
                assert_eq!(
                    (0..played.pictures.len())
                        .filter(marked)
                        .collect::<Vec<_>>(),
                    [7]
                );
                assert!(
                    matches!(played.events[..], [Event::Corrupted(corruption)] if corruption.flags == 2)
                );

                setup.settings.corrupted_frames = CorruptedFrames::Drop;
                let played = play(&source, &setup);
                assert_eq!(played.end, Ok(End::Drained));
                assert_eq!(played.pictures.len() + 1, source.expected.len());
                reference.compare(&played);

                setup.settings.corrupted_frames = CorruptedFrames::Error;
                let played = play(&source, &setup);
                assert_eq!(
                    played.end.as_ref().map_err(Error::kind),
                    Err(ErrorKind::Stream)
                );
                assert_eq!(played.pictures.len(), 7);
            }
        },
    );
}

#[test]
fn a_resize_that_is_not_told_is_seen_on_the_surface() {
    in_child(
        "faults::a_resize_that_is_not_told_is_seen_on_the_surface",
        "",
        || {
            let stream = named("resolution_change_500frames-vp9.ivf");
            let source = Source::of(&stream);
            let played = play(&source, &Setup::with("silent-resize"));
            assert_eq!(played.end, Ok(End::Drained));
            assert_eq!((played.stats.reinits, played.stats.params_changed), (0, 0));
            assert_eq!(played.stats.format_changes, 5);
            let mut widths: Vec<u16> = played
                .pictures
                .iter()
                .map(|picture| picture.width)
                .collect();
            widths.dedup();
            assert_eq!(widths, [640, 426, 640, 854, 1280]);
            let path = stream.path.to_str().expect("a plain path");
            assert_eq!(played.md5s(), md5_of(path, "nv12"));
        },
    );
}
