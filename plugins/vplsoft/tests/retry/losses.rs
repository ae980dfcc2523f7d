// SPDX-License-Identifier: MPL-2.0

//! Faults that cost pictures, or the session: what is lost is accounted for, and the rest goes on.

use std::time::Duration;

use vplretry_core::{
    CorruptedFrames, Damage, End, Error, ErrorKind, Event, Reason, Settings, Status,
};

use crate::books::Fate;
use crate::client::stage::in_child;
use crate::faults::{long, loses_nothing, short};
use crate::play::{Reference, Setup, play};
use crate::units::Source;

#[test]
fn a_script_of_errors_costs_what_the_table_says() {
    in_child(
        "losses::a_script_of_errors_costs_what_the_table_says",
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
        },
    );
}

#[test]
fn a_script_that_nothing_mends_ends_the_loop_with_its_kind() {
    in_child(
        "losses::a_script_that_nothing_mends_ends_the_loop_with_its_kind",
        "",
        || {
            let source = long();
            for (script, kind) in [
                ("-4,_,-4", ErrorKind::NoMemory),
                ("-3", ErrorKind::Unsupported),
                ("-6", ErrorKind::Internal),
                ("0*5000", ErrorKind::NoProgress),
                ("-10*5000", ErrorKind::NoProgress),
                ("13*100000", ErrorKind::Starved),
            ] {
                let mut setup = Setup::with(&format!("script={script}"));
                setup.settings.spin_guard = 100;
                let played = play(&source, &setup);
                assert_eq!(
                    played.end.as_ref().map_err(Error::kind),
                    Err(kind),
                    "{script}"
                );
                assert!(played.pictures.is_empty(), "{script}");
            }
            // The guard allows more access units than the stream has, of which nothing is taken.
            let played = play(&source, &Setup::with("script=-10*5000"));
            assert_eq!(played.end, Ok(End::Drained));
            let leftover = Fate::Dropped(Reason::Leftover);
            assert_eq!(played.books.with(|fate| *fate == leftover).len(), 250);
        },
    );
}

#[test]
fn a_picture_that_never_comes_costs_the_session() {
    in_child(
        "losses::a_picture_that_never_comes_costs_the_session",
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
fn an_access_unit_that_fails_costs_what_refers_to_it() {
    in_child(
        "losses::an_access_unit_that_fails_costs_what_refers_to_it",
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
        "losses::a_picture_whose_wait_fails_is_discarded_and_told",
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
        "losses::a_lost_device_is_replaced_and_a_key_frame_waited_for",
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
        "losses::a_key_frame_that_loses_the_device_is_fed_again",
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
        "losses::a_device_that_is_lost_again_and_again_ends_the_loop",
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
        "losses::a_corrupted_picture_is_marked_dropped_or_an_error",
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
