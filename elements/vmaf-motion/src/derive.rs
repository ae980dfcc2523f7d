// SPDX-License-Identifier: MPL-2.0

//! `motion2` and `motion3` of a frame as soon as they are final.
//!
//! libvmaf derives them all at the flush. Frame `i` depends on nothing later than the score of
//! frame `i + 1` (and, below the first scored frame, on that one), so it is final as soon as the
//! scores of frames 0 to `max(i + 1, first scored)` are known. The statements here are libvmaf's in
//! its order, so every value has the same bits as at the flush.

use std::collections::BTreeMap;
use std::ops::Deref;

use thiserror::Error;

use crate::sad::Distance;
use crate::score::cmin;

/// The scores of one frame, never revised.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FinalScore {
    /// Frame index in its stream, from 0.
    pub frame: u64,
    /// Score against the earlier frame of the window (libvmaf's `motion_sad` and `motion`).
    pub motion: f64,
    /// Smaller score of the two neighbours.
    pub motion2: f64,
    /// `motion2` blended, capped and, if asked, averaged.
    pub motion3: f64,
}

/// The frames that became final in one step: none, one, or the first two of a five-frame window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Finals {
    scores: [FinalScore; 2],
    len: usize,
}

impl Finals {
    fn push(&mut self, score: FinalScore) {
        self.scores[self.len] = score;
        self.len += 1;
    }
}

impl Deref for Finals {
    type Target = [FinalScore];

    fn deref(&self) -> &[FinalScore] {
        &self.scores[..self.len]
    }
}

/// What [`Derivation`] does with the scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Distance of the compared frames; also the first frame that has a score.
    pub distance: Distance,
    /// Share of `motion3` that follows `motion2`, 0 to 1.
    pub blend_factor: f64,
    /// Cap of the other share, 0 to 1000.
    pub blend_offset: f64,
    /// Cap of every score, 0 to 10000.
    pub max_val: f64,
    /// `motion3` is the mean of this frame's and the previous frame's processed value.
    pub moving_average: bool,
    /// `float_motion` blends the score as it was before the cap; `motion` the capped one.
    pub blend_uncapped: bool,
}

impl Rules {
    /// First frame that has a score of its own.
    fn first_scored(&self) -> u64 {
        self.distance as u64
    }

    /// The processing that leads to `motion3`: blend, then cap. `weighted` is not capped yet.
    fn process(&self, weighted: f64) -> f64 {
        let v = if self.blend_uncapped {
            weighted
        } else {
            cmin(weighted, self.max_val)
        };
        let blended =
            v * self.blend_factor + (1.0 - self.blend_factor) * cmin(self.blend_offset, v);
        cmin(blended, self.max_val)
    }
}

/// A score that cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DerivationError {
    /// Scores are written once.
    #[error("frame {frame} has a score already")]
    Duplicate {
        /// The frame.
        frame: u64,
    },
    /// The stream was flushed.
    #[error("frame {frame} comes after the end of the stream")]
    Ended {
        /// The frame.
        frame: u64,
    },
    /// [`Derivation::push`] while later scores wait for this one, so that more frames become final
    /// than [`Finals`] holds.
    #[error("frame {frame} closes a gap before frame {waiting}: insert it instead")]
    Waiting {
        /// The frame.
        frame: u64,
        /// The first score that waits.
        waiting: u64,
    },
}

/// The derivation of one stream. Its state is constant in size while scores arrive in order; scores
/// that arrive early wait until the gap before them closes.
#[derive(Debug, Clone)]
pub struct Derivation {
    rules: Rules,
    /// Weighted, uncapped scores of the last three frames of the contiguous prefix, newest last.
    last: [f64; 3],
    /// Length of the contiguous prefix of known scores.
    known: u64,
    /// First frame that is not derived yet.
    next: u64,
    /// Processed value of the previous frame, before averaging.
    previous: f64,
    early: BTreeMap<u64, f64>,
    flushed: bool,
}

impl Derivation {
    /// A stream of no frames.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            last: [0.0; 3],
            known: 0,
            next: 0,
            previous: 0.0,
            early: BTreeMap::new(),
            flushed: false,
        }
    }

    /// Frames whose scores are known without a gap.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// Frames that are final, counted from 0.
    pub fn finals(&self) -> u64 {
        self.next
    }

    /// Takes the next frame's score (weighted, uncapped; 0 for frames below the first scored one)
    /// and gives the frames that became final by it.
    ///
    /// # Errors
    /// [`DerivationError`]; the state does not change.
    pub fn push(&mut self, weighted: f64) -> Result<Finals, DerivationError> {
        if let Some((&waiting, _)) = self.early.first_key_value() {
            let frame = self.known;
            return Err(DerivationError::Waiting { frame, waiting });
        }
        let mut finals = Finals::default();
        self.insert(self.known, weighted, |score| finals.push(score))?;
        Ok(finals)
    }

    /// Takes the score of any frame, in any order, and emits the frames that became final by it, in
    /// ascending order.
    ///
    /// # Errors
    /// [`DerivationError`]; the state does not change and nothing is emitted.
    pub fn insert(
        &mut self,
        frame: u64,
        weighted: f64,
        mut emit: impl FnMut(FinalScore),
    ) -> Result<(), DerivationError> {
        if self.flushed {
            return Err(DerivationError::Ended { frame });
        }
        if frame < self.known || self.early.contains_key(&frame) {
            return Err(DerivationError::Duplicate { frame });
        }
        if frame > self.known {
            self.early.insert(frame, weighted);
            return Ok(());
        }
        self.grow(weighted, &mut emit);
        while let Some(weighted) = self.early.remove(&self.known) {
            self.grow(weighted, &mut emit);
        }
        Ok(())
    }

    /// Ends the stream: emits what is not final yet, up to the first gap. A second flush emits
    /// nothing.
    pub fn flush_each(&mut self, mut emit: impl FnMut(FinalScore)) {
        self.flushed = true;
        self.early.clear();
        let first_scored = self.rules.first_scored();
        while self.next < self.known {
            if self.known <= first_scored {
                self.emit_unscored(0.0, &mut emit);
            } else {
                self.emit_scored(self.last[2], self.last[2], &mut emit);
            }
        }
    }

    /// [`Derivation::flush_each`], collected.
    pub fn flush(&mut self) -> Finals {
        let mut finals = Finals::default();
        self.flush_each(|score| finals.push(score));
        finals
    }

    /// Extends the contiguous prefix by one score and derives what it makes final.
    fn grow(&mut self, weighted: f64, emit: &mut impl FnMut(FinalScore)) {
        self.last = [self.last[1], self.last[2], weighted];
        self.known += 1;
        let newest = self.known - 1;
        let first_scored = self.rules.first_scored();
        if newest == first_scored {
            let stamp = self.rules.process(weighted);
            while self.next < first_scored {
                self.emit_unscored(stamp, emit);
            }
        } else if newest > first_scored {
            let [before, own, after] = self.last;
            let window = match self.rules.distance {
                Distance::One => cmin(own, after),
                // The frame before the first scored one has no score to compare with.
                Distance::Two if newest - 1 == first_scored => after,
                Distance::Two => cmin(before, after),
            };
            self.emit_scored(window, own, emit);
        }
    }

    /// A frame that has no score of its own: `stamp` is the first score there is, processed.
    fn emit_unscored(&mut self, stamp: f64, emit: &mut impl FnMut(FinalScore)) {
        emit(FinalScore {
            frame: self.next,
            motion: 0.0,
            motion2: 0.0,
            motion3: stamp,
        });
        self.previous = stamp;
        self.next += 1;
    }

    /// A frame with a score: `window` is the smaller score of its neighbours, `own` its own.
    fn emit_scored(&mut self, window: f64, own: f64, emit: &mut impl FnMut(FinalScore)) {
        let processed = self.rules.process(window);
        emit(FinalScore {
            frame: self.next,
            motion: cmin(own, self.rules.max_val),
            motion2: cmin(window, self.rules.max_val),
            motion3: if self.rules.moving_average {
                (processed + self.previous) / 2.0
            } else {
                processed
            },
        });
        self.previous = processed;
        self.next += 1;
    }
}
