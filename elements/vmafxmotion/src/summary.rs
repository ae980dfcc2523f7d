// SPDX-License-Identifier: MPL-2.0

//! Pooled scores of a session that is still running, in constant memory.

use vmaf_motion::FinalScore;

use crate::messages::FeatureSummary;

/// Running pools of the three features.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionSummary {
    features: [Pool; 3],
}

impl SessionSummary {
    pub(crate) fn add(&mut self, score: &FinalScore) {
        let values = [score.motion, score.motion2, score.motion3];
        for (pool, value) in self.features.iter_mut().zip(values) {
            pool.add(value);
        }
    }

    pub(crate) fn frames(&self) -> u64 {
        self.features[0].count
    }

    pub(crate) fn features(&self) -> [FeatureSummary; 3] {
        self.features.each_ref().map(Pool::result)
    }
}

#[derive(Debug, Clone, Default)]
struct Pool {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    reciprocals: f64,
}

impl Pool {
    fn add(&mut self, value: f64) {
        if self.count == 0 || value < self.min {
            self.min = value;
        }
        if self.count == 0 || value > self.max {
            self.max = value;
        }
        self.count += 1;
        self.sum += value;
        self.reciprocals += 1.0 / (value + 1.0);
    }

    fn result(&self) -> FeatureSummary {
        let count = self.count as f64;
        FeatureSummary {
            min: self.min,
            max: self.max,
            mean: self.sum / count,
            harmonic_mean: count / self.reciprocals - 1.0,
        }
    }
}
