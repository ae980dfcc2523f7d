// SPDX-License-Identifier: MPL-2.0

//! The scores of a whole session in constant memory.

use std::num::NonZeroU64;

use crate::derive::FinalScore;
use crate::pool::{Accumulator, Feature, Method, pooled_name};

/// Running summary of every frame of a session: `min`, `max`, `mean` and `harmonic-mean` of each
/// feature, with the bits of [`crate::pool::pool`] over the scored frames. The percentiles would
/// need the scores themselves and are left to windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    n_subsample: NonZeroU64,
    frames: u64,
    scored: Accumulator,
}

impl Summary {
    /// The methods a summary has.
    pub const METHODS: [Method; 4] = [Method::Min, Method::Max, Method::Mean, Method::HarmonicMean];

    /// Of no frame yet; frames whose index is a multiple of `n_subsample` will be pooled.
    pub fn new(n_subsample: NonZeroU64) -> Self {
        Self {
            n_subsample,
            frames: 0,
            scored: Accumulator::default(),
        }
    }

    /// Takes the next final frame.
    pub fn push(&mut self, score: FinalScore) {
        self.frames += 1;
        if score.frame.is_multiple_of(self.n_subsample.get()) {
            self.scored.push(&score.into());
        }
    }

    /// Frames taken.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames pooled.
    pub fn scored(&self) -> u64 {
        self.scored.count()
    }

    /// One pooled score; `None` when no frame was pooled and for the percentiles.
    pub fn get(&self, feature: Feature, method: Method) -> Option<f64> {
        self.scored.feature(feature).pool(method)
    }

    /// Name and value of every pooled score, by feature, then method; none when no frame was
    /// pooled.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        Feature::ALL.into_iter().flat_map(move |feature| {
            Self::METHODS.into_iter().filter_map(move |method| {
                let value = self.get(feature, method)?;
                Some((pooled_name(feature, method), value))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pool::{Methods, Scores, pool};

    fn score(frame: u64, [motion, motion2, motion3]: Scores) -> FinalScore {
        FinalScore {
            frame,
            motion,
            motion2,
            motion3,
        }
    }

    #[test]
    fn nothing_scored() {
        let mut summary = Summary::new(NonZeroU64::new(2).expect("not zero"));
        assert_eq!(summary.iter().count(), 0);
        summary.push(score(1, [1.0; 3]));
        assert_eq!((summary.frames(), summary.scored()), (1, 0));
        assert_eq!(summary.get(Feature::Motion, Method::Mean), None);
    }

    proptest! {
        #[test]
        fn equals_the_pool_over_the_stream(
            frames in prop::collection::vec(prop::array::uniform3(0.0..40.0), 0..60),
            n in 1..5_u64,
        ) {
            let mut summary = Summary::new(NonZeroU64::new(n).unwrap());
            for (frame, scores) in (0..).zip(&frames) {
                summary.push(score(frame, *scores));
            }
            let scored: Vec<Scores> = frames.iter().copied().step_by(n as usize).collect();
            prop_assert_eq!(summary.frames(), frames.len() as u64);
            prop_assert_eq!(summary.scored(), scored.len() as u64);
            let whole = pool(&scored, Methods::ALL);
            for feature in Feature::ALL {
                for method in Method::ALL {
                    let expected = whole
                        .filter(|_| Summary::METHODS.contains(&method))
                        .and_then(|pooled| pooled.get(feature, method));
                    prop_assert_eq!(
                        summary.get(feature, method).map(f64::to_bits),
                        expected.map(f64::to_bits)
                    );
                }
            }
            prop_assert_eq!(summary.iter().count(), if scored.is_empty() { 0 } else { 12 });
        }
    }
}
