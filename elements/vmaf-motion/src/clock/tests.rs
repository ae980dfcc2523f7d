// SPDX-License-Identifier: MPL-2.0

use proptest::prelude::*;

use super::*;

fn time(length: u64) -> WindowClock {
    WindowClock::new(Cut::Time(NonZeroU64::new(length).expect("not zero")))
}

fn frames(length: u64) -> WindowClock {
    WindowClock::new(Cut::Frames(NonZeroU64::new(length).expect("not zero")))
}

/// Every span of a stream, the one at the end included.
fn spans(mut clock: WindowClock, stream: &[(u64, Option<u64>)]) -> Vec<Span> {
    let mut out = Vec::new();
    for (index, timestamp) in stream {
        out.extend(clock.frame(*index, *timestamp).expect("increasing"));
    }
    out.extend(clock.finish());
    assert_eq!(clock.finish(), None);
    out
}

/// Window, first, last, frames, start, end, partial.
type Row = (u64, u64, u64, u64, Option<u64>, Option<u64>, bool);

fn rows(spans: &[Span]) -> Vec<Row> {
    spans
        .iter()
        .map(|s| {
            (
                s.window, s.first, s.last, s.n_frames, s.start, s.end, s.partial,
            )
        })
        .collect()
}

#[test]
fn seconds_round_half_to_even() {
    let ns = |seconds| match Cut::seconds(seconds) {
        Ok(Cut::Time(ns)) => ns.get(),
        other => panic!("{other:?}"),
    };
    assert_eq!(ns(1.0), 1_000_000_000);
    assert_eq!(ns(0.04), 40_000_000);
    assert_eq!(ns(1.5e-9), 2);
    assert_eq!(ns(2.5e-9), 2);
    assert_eq!(ns(MAX_SECONDS), 9_200_000_000_000_000_000);
    for seconds in [0.0, 0.5e-9] {
        assert_eq!(Cut::seconds(seconds), Err(CutError::TooShort { seconds }));
    }
    for seconds in [-1.0, 9.3e9, f64::INFINITY] {
        assert_eq!(Cut::seconds(seconds), Err(CutError::Seconds { seconds }));
    }
    assert!(matches!(
        Cut::seconds(f64::NAN),
        Err(CutError::Seconds { .. })
    ));
}

#[test]
fn one_setting_or_none() {
    assert_eq!(Cut::from_settings(0.0, 0), Ok(None));
    assert_eq!(Cut::from_settings(2.0, 0), Cut::seconds(2.0).map(Some));
    let five = NonZeroU64::new(5).map(Cut::Frames);
    assert_eq!(Cut::from_settings(0.0, 5), Ok(five));
    let both = CutError::Both {
        seconds: 2.0,
        frames: 5,
    };
    assert_eq!(Cut::from_settings(2.0, 5), Err(both));
    let seconds = -2.0;
    assert_eq!(
        Cut::from_settings(seconds, 0),
        Err(CutError::Seconds { seconds })
    );
}

#[test]
fn by_time_with_a_gap_and_a_partial_end() {
    let stream = [(0, 100), (1, 104), (2, 109), (3, 110), (4, 137), (5, 139)];
    let stream = stream.map(|(i, t)| (i, Some(t)));
    assert_eq!(
        rows(&spans(time(10), &stream)),
        [
            (0, 0, 2, 3, Some(100), Some(110), false),
            (1, 3, 3, 1, Some(110), Some(120), false),
            (3, 4, 5, 2, Some(130), Some(140), true),
        ]
    );
}

#[test]
fn by_count_gaps_count_and_a_full_end_is_whole() {
    let stream = [
        (5, Some(50)),
        (6, None),
        (7, Some(70)),
        (8, Some(80)),
        (13, Some(99)),
    ];
    assert_eq!(
        rows(&spans(frames(3), &stream)),
        [
            (0, 5, 7, 3, Some(50), Some(70), false),
            (1, 8, 8, 1, Some(80), Some(80), false),
            (2, 13, 13, 1, Some(99), Some(99), false),
        ]
    );
    let short = spans(frames(3), &stream[..2]);
    assert_eq!(rows(&short), [(0, 5, 6, 2, Some(50), None, true)]);
}

#[test]
fn a_missing_timestamp_stays_in_the_window() {
    let stream = [
        (0, None),
        (1, None),
        (2, Some(1_000)),
        (3, Some(u64::MAX)),
        (4, Some(1_009)),
        (5, Some(1_010)),
        (6, None),
    ];
    assert_eq!(
        rows(&spans(time(10), &stream)),
        [
            (0, 0, 4, 5, Some(1_000), Some(1_010), false),
            (1, 5, 6, 2, Some(1_010), Some(1_020), true),
        ]
    );
    let never = spans(time(10), &[(0, None), (1, None)]);
    assert_eq!(rows(&never), [(0, 0, 1, 2, None, None, true)]);
}

#[test]
fn timestamps_that_go_back_start_a_new_window() {
    let times = [500, 509, 512, 511, 510, 3, 12, 13, 600];
    let stream: Vec<_> = (0..).zip(times.map(Some)).collect();
    assert_eq!(
        rows(&spans(time(10), &stream)),
        [
            (0, 0, 1, 2, Some(500), Some(510), false),
            (1, 2, 4, 3, Some(510), Some(520), true),
            (2, 5, 6, 2, Some(3), Some(13), false),
            (3, 7, 7, 1, Some(13), Some(23), false),
            (61, 8, 8, 1, Some(593), Some(603), true),
        ]
    );
}

#[test]
fn bounds_saturate() {
    let stream = [(0, Some(LATEST - 5)), (1, Some(LATEST))];
    let all = spans(time(u64::MAX), &stream);
    assert_eq!(
        rows(&all),
        [(0, 0, 1, 2, Some(LATEST - 5), Some(LATEST), true)]
    );
}

#[test]
fn a_refused_frame_changes_nothing() {
    let mut clock = frames(2);
    clock.frame(3, None).expect("first");
    for index in [3, 2] {
        assert_eq!(
            clock.frame(index, None),
            Err(ClockError::Order { index, last: 3 })
        );
    }
    assert_eq!(clock.open_first(), Some(3));
    assert_eq!(clock.frame(4, None), Ok(None));
    let span = clock.finish().expect("open");
    assert_eq!(
        (span.first, span.last, span.n_frames, span.partial),
        (3, 4, 2, false)
    );
    assert_eq!(clock.open_first(), None);
    assert_eq!(clock.frame(5, None), Err(ClockError::Finished { index: 5 }));
    assert_eq!(frames(2).finish(), None);
}

proptest! {
    /// Timestamps that do not go back: windows are the runs of frames with one quotient.
    #[test]
    fn windows_are_runs_of_one_quotient(
        steps in prop::collection::vec((1..4_u64, 0..30_u64), 1..60),
        length in 1..25_u64,
        by_count: bool,
    ) {
        let mut stream = Vec::new();
        let (mut index, mut now) = (0, 0);
        for (skip, step) in steps {
            (index, now) = (index + skip, now + step);
            stream.push((index, now));
        }
        let (i0, t0) = stream[0];
        let quotient = |(i, t): &(u64, u64)| if by_count { i - i0 } else { t - t0 } / length;
        let runs: Vec<_> = stream.chunk_by(|a, b| quotient(a) == quotient(b)).collect();
        let clock = if by_count { frames(length) } else { time(length) };
        let given: Vec<_> = stream.iter().map(|(i, t)| (*i, Some(*t))).collect();
        let all = spans(clock, &given);
        prop_assert_eq!(all.len(), runs.len());
        for (n, (span, run)) in all.iter().zip(&runs).enumerate() {
            let (k, first, last) = (quotient(&run[0]), run[0], run[run.len() - 1]);
            prop_assert_eq!((span.window, span.first, span.last), (k, first.0, last.0));
            prop_assert_eq!(span.n_frames, run.len() as u64);
            let bounds = if by_count {
                (first.1, last.1)
            } else {
                (t0 + k * length, t0 + (k + 1) * length)
            };
            prop_assert_eq!((span.start, span.end), (Some(bounds.0), Some(bounds.1)));
            let cut_short = !by_count || last.0 - i0 != (k + 1) * length - 1;
            prop_assert_eq!(span.partial, n + 1 == runs.len() && cut_short);
        }
    }

    /// Window numbers and bounds saturate instead of overflowing.
    #[test]
    fn no_timestamp_overflows(
        timestamps in prop::collection::vec(prop::option::of(any::<u64>()), 1..60),
        length in 1..4_u64,
    ) {
        let stream: Vec<_> = (0..).zip(timestamps).collect();
        let all = spans(time(length), &stream);
        prop_assert_eq!(all.iter().map(|s| s.n_frames).sum::<u64>(), stream.len() as u64);
    }

    /// Any timestamps: every frame lies in exactly one window, in order, numbers increase, and
    /// timestamps lie within the bounds.
    #[test]
    fn any_timestamps_are_cut(
        timestamps in prop::collection::vec(
            prop::option::of(prop_oneof![0..100_u64, 0..1_u64 << 50, Just(u64::MAX)]), 1..60),
        length in prop_oneof![1..40_u64, any::<u64>().prop_map(|l| l.max(1))],
    ) {
        let stream: Vec<_> = (0..).zip(timestamps.iter().copied()).collect();
        let all = spans(time(length), &stream);
        let mut next = 0;
        for pair in all.windows(2) {
            prop_assert!(pair[0].window < pair[1].window);
        }
        for span in all {
            prop_assert_eq!(span.first, next);
            prop_assert_eq!(span.n_frames, span.last - span.first + 1);
            next = span.last + 1;
            for frame in span.first..=span.last {
                let t = timestamps[frame as usize].filter(|t| *t <= LATEST);
                if let (Some(t), Some(start), Some(end)) = (t, span.start, span.end) {
                    prop_assert!(start <= t && (t < end || end == LATEST));
                }
            }
        }
        prop_assert_eq!(next, timestamps.len() as u64);
    }
}
