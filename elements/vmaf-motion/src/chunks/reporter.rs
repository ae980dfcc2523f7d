// SPDX-License-Identifier: MPL-2.0

//! From a chunk's own frame indices to the film's.

use std::collections::VecDeque;

use super::Part;
use crate::derive::FinalScore;

/// A final score under the film's frame index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reported {
    /// The scores; `frame` is the film's index.
    pub score: FinalScore,
    /// The frame's timestamp in nanoseconds, if it had one.
    pub timestamp: Option<u64>,
}

/// Drops a chunk's preroll and postroll and renumbers the rest from its first frame.
///
/// Whether a frame belongs to the postroll shows only when enough frames have come after it, so a
/// frame is reported once it is final *and* `postroll` frames were fed after it. A postroll of 0 or
/// 1 delays nothing, since a final frame has a frame after it.
#[derive(Debug, Clone)]
pub struct Reporter {
    part: Part,
    /// Frames fed, preroll included.
    fed: u64,
    /// Final frames taken, preroll included.
    scored: u64,
    /// Final frames that may yet turn out to be postroll, oldest first.
    held: VecDeque<FinalScore>,
    /// Timestamps of the frames behind the preroll that are not reported yet.
    timestamps: VecDeque<Option<u64>>,
}

impl Reporter {
    /// For the stream of one chunk.
    pub fn new(part: Part) -> Self {
        Self {
            part,
            fed: 0,
            scored: 0,
            held: VecDeque::new(),
            timestamps: VecDeque::new(),
        }
    }

    /// The chunk.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Takes the stream's next frame. Gives the film's index and the timestamp of the frame that is
    /// now known to be reported, which is this one unless there is a postroll.
    pub fn feed(&mut self, timestamp: Option<u64>) -> Option<(u64, Option<u64>)> {
        let behind_preroll = self.fed >= self.part.preroll;
        self.fed += 1;
        if behind_preroll {
            self.timestamps.push_back(timestamp);
        }
        let newest = self.certain().checked_sub(1)?;
        let reported = self.scored.saturating_sub(self.part.preroll) - self.held.len() as u64;
        let position = (newest - reported) as usize;
        let timestamp = self.timestamps.get(position).copied().flatten();
        Some((self.part.first_frame + newest, timestamp))
    }

    /// Takes the stream's next final score, under the stream's own index. [`Reporter::next_final`]
    /// then gives what can be reported.
    pub fn score(&mut self, local: FinalScore) {
        self.scored += 1;
        if local.frame < self.part.preroll {
            return;
        }
        self.held.push_back(FinalScore {
            frame: self.part.first_frame + (local.frame - self.part.preroll),
            ..local
        });
    }

    /// The stream's own index of the final score that comes next.
    pub fn next_score(&self) -> u64 {
        self.scored
    }

    /// The next frame to report, if it is final and known to be no postroll.
    pub fn next_final(&mut self) -> Option<Reported> {
        let score = *self.held.front()?;
        if score.frame - self.part.first_frame >= self.certain() {
            return None;
        }
        self.held.pop_front();
        Some(Reported {
            score,
            timestamp: self.timestamps.pop_front().flatten(),
        })
    }

    /// Whether that frame of the film was fed, be it as a frame that may turn out to be postroll.
    pub fn was_fed(&self, frame: u64) -> bool {
        frame
            .checked_sub(self.part.first_frame)
            .is_some_and(|n| n < self.fed.saturating_sub(self.part.preroll))
    }

    /// Frames known to be reported: behind the preroll, with the postroll's length after them.
    fn certain(&self) -> u64 {
        self.fed
            .saturating_sub(self.part.preroll)
            .saturating_sub(self.part.postroll)
    }
}
