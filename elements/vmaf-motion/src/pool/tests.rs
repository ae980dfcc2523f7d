// SPDX-License-Identifier: MPL-2.0

use proptest::prelude::*;

use super::*;

/// The methods as libvmaf writes them, over a finished slice.
fn reference(scores: &[f64], method: Method) -> f64 {
    let n = scores.len();
    let ranked = |q: f64| {
        let mut sorted = scores.to_vec();
        sorted.sort_by(f64::total_cmp);
        let p = q * (n - 1) as f64 / 100.0;
        let (l, r) = (p.floor(), p.ceil());
        if l == r {
            sorted[l as usize]
        } else {
            sorted[l as usize] * (r - p) + sorted[r as usize] * (p - l)
        }
    };
    match method {
        Method::Min => scores
            .iter()
            .fold(scores[0], |m, s| if *s < m { *s } else { m }),
        Method::Max => scores
            .iter()
            .fold(scores[0], |m, s| if *s > m { *s } else { m }),
        Method::Mean => scores.iter().fold(0.0, |sum, s| sum + s) / n as f64,
        Method::HarmonicMean => {
            n as f64 / scores.iter().fold(0.0, |sum, s| sum + 1.0 / (s + 1.0)) - 1.0
        }
        Method::Median => ranked(50.0),
        Method::Perc5 => ranked(5.0),
        Method::Perc10 => ranked(10.0),
        Method::Perc20 => ranked(20.0),
    }
}

fn one(scores: &[f64], method: Method) -> f64 {
    let frames: Vec<Scores> = scores.iter().map(|s| [0.0, *s, 0.0]).collect();
    let pooled = pool(&frames, method.into()).expect("not empty");
    pooled.get(Feature::Motion2, method).expect("asked for")
}

#[test]
fn numpy_percentiles_in_any_order() {
    for scores in [[1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 3.0, 2.0]] {
        assert_eq!(one(&scores, Method::Perc5), 1.15);
        assert_eq!(one(&scores, Method::Perc10), 1.3_f64.next_down());
        assert_eq!(one(&scores, Method::Perc20), 1.6);
        assert_eq!(one(&scores, Method::Median), 2.5);
    }
    assert_eq!(one(&[3.0, 9.0, 1.0], Method::Median), 3.0);
    assert_eq!(one(&[6.0], Method::Perc5), 6.0);
    assert_eq!(percentile(&mut [], 5.0), None);
}

#[test]
fn minimum_and_maximum_start_at_the_first_score() {
    assert_eq!(one(&[58.38, 60.0], Method::Min), 58.38);
    assert_eq!(one(&[-3.0, -5.0], Method::Max), -3.0);
}

#[test]
fn harmonic_mean_is_shifted() {
    assert_eq!(one(&[0.0, 0.0], Method::HarmonicMean), 0.0);
    assert_eq!(one(&[1.0, 3.0], Method::HarmonicMean), 2.0 / 0.75 - 1.0);
    assert_eq!(one(&[-1.0, 3.0], Method::HarmonicMean), -1.0);
}

#[test]
fn no_frame_pools_to_nothing() {
    assert_eq!(pool(&[], Methods::ALL), None);
    assert_eq!(Running::default().pool(Method::Min), None);
}

#[test]
fn sets_of_methods() {
    assert_eq!(Methods::from_bits(0), None);
    assert_eq!(Methods::from_bits(1), None);
    assert_eq!(Methods::from_bits(1 << 9), None);
    assert_eq!(Methods::from_bits(0x1fe), Some(Methods::ALL));
    let set = Method::Min | Method::Perc20;
    assert_eq!(set.bits(), 1 << 1 | 1 << 8);
    assert_eq!(Methods::from_bits(set.bits()), Some(set));
    assert_eq!(set | Method::Min, set);
    assert!(set.iter().eq([Method::Min, Method::Perc20]));
    assert!(Methods::ALL.iter().eq(Method::ALL));
    for method in Method::ALL {
        let ranks = !matches!(method as u8, 1..=4);
        assert_eq!(Methods::from(method).rank_scores(), ranks, "{method:?}");
        assert_eq!(Method::from_name(method.name()), Some(method));
    }
    assert!(!(Method::Min | Method::Max | Method::Mean | Method::HarmonicMean).rank_scores());
    assert_eq!(Method::from_name("average"), None);
}

#[test]
fn names_are_those_of_the_parts() {
    for feature in Feature::ALL {
        for method in Method::ALL {
            let name = format!("{}.{}", feature.name(), method.name());
            assert_eq!(pooled_name(feature, method), name);
        }
    }
}

#[test]
fn only_what_was_asked_for() {
    let pooled = pool(&[[1.0, 2.0, 3.0]], Method::Mean | Method::Perc5).expect("a frame");
    assert_eq!(pooled.methods(), Method::Mean | Method::Perc5);
    assert_eq!(pooled.get(Feature::Motion2, Method::Min), None);
    let all: Vec<_> = pooled.iter().collect();
    assert_eq!(
        all,
        [
            ("motion.mean", 1.0),
            ("motion.perc5", 1.0),
            ("motion2.mean", 2.0),
            ("motion2.perc5", 2.0),
            ("motion3.mean", 3.0),
            ("motion3.perc5", 3.0),
        ]
    );
}

proptest! {
    #[test]
    fn every_method_equals_the_reference(
        frames in prop::collection::vec(prop::array::uniform3(
            prop_oneof![Just(0.0), Just(7.0), 0.0..40.0]), 1..200),
    ) {
        let pooled = pool(&frames, Methods::ALL).unwrap();
        for feature in Feature::ALL {
            let scores: Vec<f64> = frames.iter().map(|f| f[feature as usize]).collect();
            for method in Method::ALL {
                let value = pooled.get(feature, method).unwrap();
                prop_assert_eq!(value.to_bits(), reference(&scores, method).to_bits());
            }
        }
    }
}
