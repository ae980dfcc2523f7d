// SPDX-License-Identifier: MPL-2.0

//! A film scored in chunks equals the film scored whole, bit for bit: every chunk of every short
//! film under every kind of options, and no frame of preroll or postroll can be left out.

use vmaf_motion::chunks::{
    MAX_FIRST_FRAME, MAX_POSTROLL, Part, PartError, PartSpan, Reported, Reporter, join,
    needed_postroll, needed_preroll,
};
use vmaf_motion::derive::{Derivation, Rules};
use vmaf_motion::sad::Distance;

const LONGEST: u64 = 11;

fn all_rules() -> Vec<Rules> {
    let mut all = Vec::new();
    for distance in [Distance::One, Distance::Two] {
        for moving_average in [false, true] {
            for (blend_factor, max_val) in [(1.0, 10_000.0), (0.3, 10_000.0), (0.3, 18.0)] {
                all.push(Rules {
                    distance,
                    blend_factor,
                    blend_offset: 5.0,
                    max_val,
                    moving_average,
                    blend_uncapped: false,
                });
            }
        }
    }
    all
}

/// The score of the film's frame against the frame `distance` before it: any number, no two alike.
fn film_score(seed: u64, frame: u64, distance: Distance) -> f64 {
    let mut key = (seed << 32) + (frame << 2) + distance as u64;
    for _ in 0..3 {
        key = (key ^ (key >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    (key >> 11) as f64 / (1_u64 << 53) as f64 * 30.0
}

fn timestamp(film_frame: u64) -> Option<u64> {
    (film_frame % 3 != 1).then_some(film_frame * 40)
}

/// Scores frames `start..end` of the film as a stream of its own.
fn score_stream(seed: u64, rules: Rules, part: Part, start: u64, end: u64) -> Vec<Reported> {
    let mut derivation = Derivation::new(rules);
    let mut reporter = Reporter::new(part);
    let mut out: Vec<Reported> = Vec::new();
    let mut certain = Vec::new();
    for frame in start..end {
        certain.extend(reporter.feed(timestamp(frame)));
        let score = match frame - start < rules.distance as u64 {
            true => 0.0,
            false => film_score(seed, frame, rules.distance),
        };
        for score in derivation.push(score).expect("in order").iter() {
            reporter.score(*score);
        }
        out.extend(std::iter::from_fn(|| reporter.next_final()));
        let last_certain = certain.last().map(|(frame, _)| *frame);
        assert!(
            out.last().map(|r| r.score.frame) <= last_certain,
            "reported too early"
        );
    }
    for score in derivation.flush().iter() {
        reporter.score(*score);
    }
    out.extend(std::iter::from_fn(|| reporter.next_final()));
    let reported: Vec<_> = out.iter().map(|r| (r.score.frame, r.timestamp)).collect();
    assert_eq!(certain, reported, "frames announced and frames reported");
    out
}

fn whole(seed: u64, rules: Rules, length: u64) -> Vec<Reported> {
    score_stream(seed, rules, Part::default(), 0, length)
}

fn assert_same(chunk: &[Reported], film: &[Reported], what: impl Fn() -> String) {
    let bits = |all: &[Reported]| -> Vec<_> {
        all.iter()
            .map(|r| {
                let values = [r.score.motion, r.score.motion2, r.score.motion3];
                (r.score.frame, r.timestamp, values.map(f64::to_bits))
            })
            .collect()
    };
    assert_eq!(bits(chunk), bits(film), "{}", what());
}

/// Each non-empty chunk `first..=last` of a film of `length` frames.
fn chunks(length: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..length).flat_map(move |first| (first..length).map(move |last| (first, last)))
}

#[test]
fn every_chunk_of_every_short_film() {
    for rules in all_rules() {
        let before = needed_preroll(rules.distance, rules.moving_average);
        for (seed, length) in (0..3).flat_map(|seed| (0..=LONGEST).map(move |n| (seed, n))) {
            let film = whole(seed, rules, length);
            assert_eq!(film.len() as u64, length);
            for (first, last) in chunks(length) {
                let after = needed_postroll(rules.distance, last);
                for extra in 0..3 {
                    let preroll = (before + extra).min(first);
                    let postroll = (after + extra).min(length - 1 - last);
                    let part = Part::new(
                        first,
                        preroll,
                        postroll,
                        rules.distance,
                        rules.moving_average,
                    )
                    .expect("enough preroll");
                    let (start, end) = (first - preroll, last + postroll + 1);
                    let chunk = score_stream(seed, rules, part, start, end);
                    assert_same(&chunk, &film[first as usize..=last as usize], || {
                        format!("{first}..={last} of {length} with {part:?} under {rules:?}")
                    });
                }
            }
        }
    }
}

/// Whether some film shows another score in the chunk when it is scored with so many frames around.
fn differs(rules: Rules, (first, last): (u64, u64), preroll: u64, postroll: u64) -> bool {
    (0..8).any(|seed| {
        let film = whole(seed, rules, LONGEST);
        let start = first - preroll;
        // A part too short of preroll cannot be made, so the frames are cut out by hand.
        let stream = score_stream(seed, rules, Part::default(), start, last + postroll + 1);
        (first..=last).any(|frame| {
            let mut score = stream[(frame - start) as usize].score;
            score.frame = frame;
            score != film[frame as usize].score
        })
    })
}

#[test]
fn one_frame_less_shows() {
    for rules in all_rules() {
        let before = needed_preroll(rules.distance, rules.moving_average);
        for (first, last) in chunks(LONGEST) {
            let after = needed_postroll(rules.distance, last);
            let here = || format!("{first}..={last} under {rules:?}");
            let (enough_before, enough_after) = (before.min(first), after.min(LONGEST - 1 - last));
            assert!(
                !differs(rules, (first, last), enough_before, enough_after),
                "{}",
                here()
            );
            // The film's last frame takes its own score, not its neighbours'. That this saves a
            // frame is of no use: a chunk does not know that it is the last one.
            let own_score_only =
                first == LONGEST - 1 && rules.distance == Distance::Two && !rules.moving_average;
            if first >= 1 {
                assert_eq!(
                    differs(rules, (first, last), enough_before - 1, enough_after),
                    !own_score_only,
                    "{}",
                    here()
                );
            }
            if last + 1 < LONGEST {
                assert!(
                    differs(rules, (first, last), enough_before, enough_after - 1),
                    "{}",
                    here()
                );
            }
        }
    }
}

#[test]
fn parts_of_a_film_join() {
    let (seed, length) = (5, 60);
    for rules in all_rules() {
        let film = whole(seed, rules, length);
        for count in [1, 2, 3, 7, 60] {
            let mut spans = Vec::new();
            let mut scored = Vec::new();
            for n in 0..count {
                let (first, next) = (n * length / count, (n + 1) * length / count);
                let preroll = needed_preroll(rules.distance, rules.moving_average).min(first);
                let postroll = needed_postroll(rules.distance, next - 1).min(length - next);
                let part = Part::new(
                    first,
                    preroll,
                    postroll,
                    rules.distance,
                    rules.moving_average,
                )
                .expect("enough preroll");
                let chunk = score_stream(seed, rules, part, first - preroll, next + postroll);
                spans.push(PartSpan {
                    first_frame: part.first_frame(),
                    frames: chunk.len() as u64,
                    preroll: part.preroll(),
                    postroll: part.postroll(),
                });
                scored.push(chunk);
            }
            spans.reverse();
            scored.reverse();
            let joined = join(&spans, rules.distance, rules.moving_average).expect("they meet");
            assert_eq!((joined.first_frame, joined.frames), (0, length));
            let merged: Vec<_> = joined
                .order
                .iter()
                .flat_map(|n| scored[*n].clone())
                .collect();
            assert_same(&merged, &film, || format!("{count} parts under {rules:?}"));
        }
    }
}

#[test]
fn a_stream_that_ends_within_the_preroll_or_the_postroll_reports_nothing() {
    let rules = all_rules()[0];
    let part = Part::new(10, 3, 2, rules.distance, rules.moving_average).expect("enough");
    for frames in 0..=5 {
        assert_eq!(score_stream(0, rules, part, 7, 7 + frames), []);
    }
    assert_eq!(score_stream(0, rules, part, 7, 13).len(), 1);
}

#[test]
fn fed_frames_are_known_before_they_are_reported() {
    let part = Part::new(10, 3, 2, Distance::One, false).expect("enough");
    let mut reporter = Reporter::new(part);
    assert_eq!(*reporter.part(), part);
    for _ in 0..3 {
        assert_eq!(reporter.feed(None), None);
    }
    assert!(!reporter.was_fed(10) && !reporter.was_fed(9));
    assert_eq!(reporter.feed(Some(7)), None);
    assert!(reporter.was_fed(10) && !reporter.was_fed(11) && !reporter.was_fed(9));
    assert_eq!(reporter.feed(None), None);
    assert_eq!(reporter.feed(None), Some((10, Some(7))));
}

#[test]
fn impossible_parts_are_refused_with_the_number() {
    let too_little = PartError::TooLittlePreroll {
        preroll: 3,
        first_frame: 100,
        needed: 4,
    };
    assert_eq!(Part::new(100, 3, 1, Distance::Two, true), Err(too_little));
    assert!(too_little.to_string().contains("need 4"));
    let at_the_start = PartError::TooLittlePreroll {
        preroll: 1,
        first_frame: 2,
        needed: 2,
    };
    assert_eq!(Part::new(2, 1, 1, Distance::Two, true), Err(at_the_start));
    let too_much = PartError::TooMuchPreroll {
        preroll: 3,
        first_frame: 2,
    };
    assert_eq!(Part::new(2, 3, 1, Distance::One, false), Err(too_much));
    assert!(Part::new(2, 2, MAX_POSTROLL, Distance::Two, true).is_ok());
    let postroll = MAX_POSTROLL + 1;
    assert_eq!(
        Part::new(2, 2, postroll, Distance::Two, true),
        Err(PartError::TooMuchPostroll { postroll })
    );
    assert!(Part::new(MAX_FIRST_FRAME, 4, 1, Distance::Two, true).is_ok());
    let first_frame = MAX_FIRST_FRAME + 1;
    assert_eq!(
        Part::new(first_frame, 4, 1, Distance::Two, true),
        Err(PartError::FirstFrame { first_frame })
    );
}
