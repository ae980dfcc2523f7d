// SPDX-License-Identifier: MPL-2.0

//! Faults that cost patience alone: nothing is lost, or the loop ends with the limit that was reached.

use std::time::Duration;

use test_streams::named;
use vplretry_core::{End, Error, ErrorKind, Event, Exhausted, Limit, Reason, Settings};

use crate::books::Fate;
use crate::client::stage::{in_child, md5_of};
use crate::play::{Cancel, Downstream, Played, Setup, play};
use crate::units::Source;

/// Eight times an I, a P and a B picture, shown in another order than coded.
pub(crate) fn short() -> Source {
    Source::repeated(&named("64x64-I-P-B-P.h264"), usize::MAX, 8)
}

/// 250 pictures with 4 key frames.
pub(crate) fn long() -> Source {
    Source::of(&named("test-25fps.h264"))
}

/// Plays it and expects every picture, as it should be.
pub(crate) fn loses_nothing(source: &Source, setup: &Setup) -> Played {
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
                    cancel: Some(Cancel {
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
