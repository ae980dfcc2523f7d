// SPDX-License-Identifier: MPL-2.0

//! The derivation frame by frame against libvmaf's derivation at the flush, written a second time
//! (`reference`) as libvmaf has it: one loop over a finished stream.

mod reference;

use proptest::prelude::*;
use vmaf_motion::derive::{Derivation, DerivationError, FinalScore, Rules};
use vmaf_motion::sad::Distance;

use reference::{flushed_integer, smaller, unscored_head};

const DEFAULTS: Rules = Rules {
    distance: Distance::One,
    blend_factor: 1.0,
    blend_offset: 40.0,
    max_val: 10_000.0,
    moving_average: false,
    blend_uncapped: false,
};

/// The same for `float_motion`, whose cap comes after the smaller of two and after the blend.
fn flushed_float(raw: &[f64], weight: f64, rules: &Rules) -> Vec<[f64; 3]> {
    let n = raw.len();
    let (f, o, cap) = (rules.blend_factor, rules.blend_offset, rules.max_val);
    let processed = |v: f64| {
        let v = v * weight;
        smaller(v * f + (1.0 - f) * smaller(o, v), cap)
    };
    (0..n)
        .map(|i| match i {
            0 => [0.0, 0.0, if n > 1 { processed(raw[1]) } else { 0.0 }],
            _ => {
                let v = if i == n - 1 {
                    raw[i]
                } else {
                    smaller(raw[i], raw[i + 1])
                };
                [
                    smaller(raw[i] * weight, cap),
                    smaller(v * weight, cap),
                    processed(v),
                ]
            }
        })
        .collect()
}

fn bits(values: impl IntoIterator<Item = [f64; 3]>) -> Vec<[u64; 3]> {
    values.into_iter().map(|v| v.map(f64::to_bits)).collect()
}

fn values(scores: &[FinalScore]) -> Vec<[f64; 3]> {
    scores
        .iter()
        .map(|s| [s.motion, s.motion2, s.motion3])
        .collect()
}

/// In order, with the flush: all scores of the stream.
fn derive_all(weighted: &[f64], rules: Rules) -> Vec<FinalScore> {
    let mut derivation = Derivation::new(rules);
    let mut out = Vec::new();
    for w in weighted {
        out.extend_from_slice(&derivation.push(*w).expect("in order"));
    }
    out.extend_from_slice(&derivation.flush());
    out
}

fn assert_stream(weighted: &[f64], rules: Rules, motion2: &[f64], motion3: &[f64]) {
    let scores = derive_all(weighted, rules);
    let frames: Vec<u64> = scores.iter().map(|s| s.frame).collect();
    assert_eq!(frames, (0..weighted.len() as u64).collect::<Vec<_>>());
    let got2: Vec<f64> = scores.iter().map(|s| s.motion2).collect();
    let got3: Vec<f64> = scores.iter().map(|s| s.motion3).collect();
    assert_eq!(got2, motion2, "motion2 of {weighted:?} under {rules:?}");
    assert_eq!(got3, motion3, "motion3 of {weighted:?} under {rules:?}");
}

fn five_frame(rules: Rules) -> Rules {
    Rules {
        distance: Distance::Two,
        ..rules
    }
}

fn averaged(rules: Rules) -> Rules {
    Rules {
        moving_average: true,
        ..rules
    }
}

#[test]
fn short_streams() {
    assert_stream(&[], DEFAULTS, &[], &[]);
    assert_stream(&[0.0], DEFAULTS, &[0.0], &[0.0]);
    assert_stream(&[0.0, 7.0], DEFAULTS, &[0.0, 7.0], &[7.0, 7.0]);
    assert_stream(&[0.0, 7.0], averaged(DEFAULTS), &[0.0, 7.0], &[7.0, 7.0]);
    assert_stream(
        &[0.0, 7.0, 5.0],
        DEFAULTS,
        &[0.0, 5.0, 5.0],
        &[7.0, 5.0, 5.0],
    );
    let five = five_frame(DEFAULTS);
    assert_stream(&[], five, &[], &[]);
    assert_stream(&[0.0], five, &[0.0], &[0.0]);
    assert_stream(&[0.0, 0.0], five, &[0.0, 0.0], &[0.0, 0.0]);
    assert_stream(&[0.0, 0.0, 7.0], five, &[0.0, 0.0, 7.0], &[7.0, 7.0, 7.0]);
}

#[test]
fn worked_examples() {
    let s = [0.0, 7.0, 9.0, 4.0, 4.0, 12.0];
    let motion2 = [0.0, 7.0, 4.0, 4.0, 4.0, 12.0];
    assert_stream(&s, DEFAULTS, &motion2, &[7.0, 7.0, 4.0, 4.0, 4.0, 12.0]);
    assert_stream(
        &s,
        averaged(DEFAULTS),
        &motion2,
        &[7.0, 7.0, 5.5, 4.0, 4.0, 8.0],
    );

    let s = [0.0, 0.0, 7.0, 9.0, 4.0, 12.0];
    let motion2 = [0.0, 0.0, 9.0, 4.0, 9.0, 12.0];
    let five = five_frame(DEFAULTS);
    assert_stream(&s, five, &motion2, &[7.0, 7.0, 9.0, 4.0, 9.0, 12.0]);
    assert_stream(
        &s,
        averaged(five),
        &motion2,
        &[7.0, 7.0, 8.0, 6.5, 6.5, 10.5],
    );

    let blend = Rules {
        blend_factor: 0.3,
        blend_offset: 5.0,
        max_val: 20.0,
        ..DEFAULTS
    };
    assert_stream(&[0.0, 12.5], blend, &[0.0, 12.5], &[7.25, 7.25]);
    let p = 2.9999999999999996;
    assert_stream(&[0.0, 3.0], blend, &[0.0, 3.0], &[p, p]);
}

/// Frame 3 is final with the score of frame 4 and not before: the fault of a derivation that
/// takes frame i for final once the score of frame i is in.
#[test]
fn a_frame_is_final_with_the_next_score_and_not_before() {
    for (rules, first_emission) in [(DEFAULTS, 1), (five_frame(DEFAULTS), 2)] {
        let mut derivation = Derivation::new(rules);
        for frame in 0..20_u64 {
            let finals = derivation.push(frame as f64).expect("in order");
            let frames: Vec<u64> = finals.iter().map(|s| s.frame).collect();
            let expected: Vec<u64> = match frame {
                f if f < first_emission => vec![],
                f if f == first_emission => (0..f).collect(),
                f => vec![f - 1],
            };
            assert_eq!(frames, expected, "after the score of frame {frame}");
            assert_eq!(derivation.known(), frame + 1);
            assert_eq!(
                derivation.finals(),
                if frame < first_emission { 0 } else { frame }
            );
        }
    }
}

#[test]
fn a_retried_flush_emits_nothing() {
    for n in 0..6 {
        for rules in [DEFAULTS, five_frame(DEFAULTS)] {
            let mut derivation = Derivation::new(rules);
            for i in 0..n {
                derivation.push(f64::from(i)).expect("in order");
            }
            let known = derivation.known();
            derivation.flush();
            assert_eq!(derivation.finals(), known);
            assert!(derivation.flush().is_empty());
            let after = derivation.push(1.0);
            assert_eq!(after, Err(DerivationError::Ended { frame: known }));
            let after = derivation.insert(known, 1.0, |s| panic!("{s:?} after the flush"));
            assert_eq!(after, Err(DerivationError::Ended { frame: known }));
            assert!(derivation.flush().is_empty());
        }
    }
}

#[test]
fn scores_are_written_once() {
    let mut derivation = Derivation::new(DEFAULTS);
    let refuse = |s: FinalScore| panic!("{s:?} was emitted by a refused score");
    derivation.insert(0, 0.0, refuse).expect("first");
    derivation.insert(3, 3.0, refuse).expect("early");
    assert_eq!(
        derivation.insert(0, 9.0, refuse),
        Err(DerivationError::Duplicate { frame: 0 })
    );
    assert_eq!(
        derivation.insert(3, 9.0, refuse),
        Err(DerivationError::Duplicate { frame: 3 })
    );
    assert_eq!(
        derivation.push(1.0),
        Err(DerivationError::Waiting {
            frame: 1,
            waiting: 3
        })
    );
    let mut out = Vec::new();
    derivation.insert(1, 1.0, |s| out.push(s)).expect("second");
    derivation
        .insert(2, 2.0, |s| out.push(s))
        .expect("closes the gap");
    assert_eq!(
        values(&out),
        [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    );
    assert_eq!(out.last().map(|s| s.frame), Some(2));
}

/// More frames than a push can hand back become final when a gap closes.
#[test]
fn a_push_that_would_close_a_gap_is_refused() {
    let mut derivation = Derivation::new(DEFAULTS);
    for frame in 1..=4 {
        derivation.insert(frame, 1.0, |_| {}).expect("early");
    }
    let refused = derivation.push(0.0);
    assert_eq!(
        refused,
        Err(DerivationError::Waiting {
            frame: 0,
            waiting: 1
        })
    );
    let mut frames = Vec::new();
    derivation
        .insert(0, 0.0, |s| frames.push(s.frame))
        .expect("closes the gap");
    assert_eq!(frames, [0, 1, 2, 3]);
}

#[test]
fn a_gap_ends_the_stream_before_it() {
    let mut derivation = Derivation::new(DEFAULTS);
    let mut out = Vec::new();
    for frame in [0, 1, 2, 4, 5] {
        derivation
            .insert(frame, frame as f64, |s| out.push(s))
            .expect("new");
    }
    derivation.flush_each(|s| out.push(s));
    assert_eq!(
        values(&out),
        [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    );
}

fn rules() -> impl Strategy<Value = Rules> {
    (
        any::<bool>(),
        prop_oneof![Just(0.0), Just(0.3), Just(1.0), 0.0..=1.0],
        prop_oneof![Just(0.0), Just(2.0), Just(40.0), 0.0..30.0],
        prop_oneof![Just(10_000.0), Just(18.0), Just(0.5), 0.0..30.0],
        any::<bool>(),
    )
        .prop_map(
            |(five, blend_factor, blend_offset, max_val, moving_average)| Rules {
                distance: if five { Distance::Two } else { Distance::One },
                blend_factor,
                blend_offset,
                max_val,
                moving_average,
                blend_uncapped: false,
            },
        )
}

/// Scores of 0 to 40 frames, with ties, and an arrival order: in order, or each score delayed by
/// less than `spread` places.
fn stream() -> impl Strategy<Value = (Vec<f64>, Vec<u64>)> {
    let score = prop_oneof![Just(0.0), Just(7.0), Just(f64::MIN_POSITIVE), 0.0..30.0];
    (prop::collection::vec(score, 0..=40), 1..45_u64)
        .prop_flat_map(|(scores, spread)| {
            let delays = prop::collection::vec(0..spread, scores.len());
            (Just(scores), delays)
        })
        .prop_map(|(scores, delays)| {
            let mut order: Vec<u64> = (0..scores.len() as u64).collect();
            order.sort_by_key(|i| (i + delays[*i as usize], *i));
            (scores, order)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn incremental_equals_the_flush_in_any_arrival_order(
        (weighted, order) in stream(),
        rules in rules(),
    ) {
        let weighted = unscored_head(weighted, &rules);
        let expected = flushed_integer(&weighted, &rules);
        let m = rules.distance as u64;
        let mut derivation = Derivation::new(rules);
        let mut out: Vec<FinalScore> = Vec::new();
        let mut arrived = vec![false; weighted.len()];
        for &frame in &order {
            derivation.insert(frame, weighted[frame as usize], |s| out.push(s)).unwrap();
            arrived[frame as usize] = true;
            let known = arrived.iter().take_while(|a| **a).count() as u64;
            prop_assert_eq!(derivation.known(), known);
            prop_assert_eq!(out.len() as u64, if known > m { known - 1 } else { 0 });
            prop_assert_eq!(derivation.finals(), out.len() as u64);
        }
        derivation.flush_each(|s| out.push(s));
        prop_assert!(out.iter().map(|s| s.frame).eq(0..weighted.len() as u64));
        prop_assert_eq!(bits(values(&out)), bits(expected));
    }

    #[test]
    fn in_order_equals_the_flush((weighted, _) in stream(), rules in rules()) {
        let weighted = unscored_head(weighted, &rules);
        let out = derive_all(&weighted, rules);
        prop_assert!(out.iter().map(|s| s.frame).eq(0..weighted.len() as u64));
        prop_assert_eq!(bits(values(&out)), bits(flushed_integer(&weighted, &rules)));
    }

    #[test]
    fn float_motion_equals_its_flush(
        (raw, _) in stream(),
        weight in prop_oneof![Just(1.0), 0.0..5.0],
        rules in rules(),
    ) {
        let rules = Rules {
            distance: Distance::One,
            moving_average: false,
            blend_uncapped: true,
            ..rules
        };
        let raw = unscored_head(raw, &rules);
        let weighted: Vec<f64> = raw.iter().map(|s| s * weight).collect();
        let out = derive_all(&weighted, rules);
        prop_assert_eq!(bits(values(&out)), bits(flushed_float(&raw, weight, &rules)));
    }
}
