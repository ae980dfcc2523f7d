// SPDX-License-Identifier: MPL-2.0

//! Pooling as libvmaf does it, in one pass.

/// Minimum, mean, maximum and harmonic mean of the values pushed so far.
///
/// Sums run in the order of the pushes, so that the results have the bits of
/// `vmaf_feature_score_pooled`. The harmonic mean is libvmaf's: that of `value + 1`, minus 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pool {
    count: u64,
    sum: f64,
    sum_of_inverses: f64,
    min: f64,
    max: f64,
}

/// What a [`Pool`] holds once it has seen a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Smallest value.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Largest value.
    pub max: f64,
    /// Harmonic mean of `value + 1`, minus 1.
    pub harmonic_mean: f64,
}

impl Pool {
    /// Adds one value.
    pub fn push(&mut self, value: f64) {
        if self.count == 0 || value < self.min {
            self.min = value;
        }
        if self.count == 0 || value > self.max {
            self.max = value;
        }
        self.count += 1;
        self.sum += value;
        self.sum_of_inverses += 1.0 / (value + 1.0);
    }

    /// The pooled values, or `None` before the first push.
    #[must_use]
    pub fn pooled(&self) -> Option<Pooled> {
        let count = self.count as f64;
        (self.count > 0).then(|| Pooled {
            min: self.min,
            mean: self.sum / count,
            max: self.max,
            harmonic_mean: count / self.sum_of_inverses - 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_pushed_is_nothing_pooled() {
        assert_eq!(Pool::default().pooled(), None);
    }

    #[test]
    fn known_values() {
        let mut pool = Pool::default();
        for value in [3.0, 0.0, 1.0] {
            pool.push(value);
        }
        let pooled = pool.pooled().expect("three values");
        assert_eq!((pooled.min, pooled.max), (0.0, 3.0));
        assert_eq!(pooled.mean, 4.0 / 3.0);
        assert_eq!(pooled.harmonic_mean, 3.0 / (0.25 + 1.0 + 0.5) - 1.0);
    }
}
