// SPDX-License-Identifier: MPL-2.0

//! The derivation as libvmaf has it, at the flush: one loop over a finished stream.

use vmaf_motion::derive::Rules;

/// `a` if `a < b`, else `b`.
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// `motion`, `motion2`, `motion3` of a whole stream of `motion` (integer), at the flush.
pub(crate) fn flushed_integer(weighted: &[f64], rules: &Rules) -> Vec<[f64; 3]> {
    let m = rules.distance as usize;
    let n = weighted.len();
    let (f, o, cap) = (rules.blend_factor, rules.blend_offset, rules.max_val);
    let s: Vec<f64> = weighted.iter().map(|w| smaller(*w, cap)).collect();
    let processed = |v: f64| smaller(v * f + (1.0 - f) * smaller(o, v), cap);
    let stamp = if n > m { processed(s[m]) } else { 0.0 };
    let mut previous = 0.0;
    let mut out = Vec::new();
    for i in 0..n {
        if i < m {
            out.push([0.0, 0.0, stamp]);
            previous = stamp;
            continue;
        }
        let v = if i == n - 1 {
            s[i]
        } else if i - (m - 1) >= m {
            smaller(s[i - (m - 1)], s[i + 1])
        } else {
            s[i + 1]
        };
        let p = processed(v);
        let motion3 = if rules.moving_average {
            (p + previous) / 2.0
        } else {
            p
        };
        out.push([s[i], v, motion3]);
        previous = p;
    }
    out
}

/// Frames below the first scored one have no score: the caller passes 0.
pub(crate) fn unscored_head(mut weighted: Vec<f64>, rules: &Rules) -> Vec<f64> {
    weighted
        .iter_mut()
        .take(rules.distance as usize)
        .for_each(|s| *s = 0.0);
    weighted
}
