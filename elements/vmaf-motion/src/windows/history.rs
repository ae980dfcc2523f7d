// SPDX-License-Identifier: MPL-2.0

//! The newest final scores.

use std::collections::VecDeque;

use crate::pool::Scores;

/// Final scores of consecutive frames up to the newest one.
#[derive(Debug)]
pub(super) struct History {
    scores: VecDeque<Scores>,
    next: u64,
}

impl History {
    /// Of no frame; the first one will be `next`. Makes room for so many frames.
    pub(super) fn new(next: u64, room: usize) -> Self {
        Self {
            scores: VecDeque::with_capacity(room + 1),
            next,
        }
    }

    /// The frame that becomes final next.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The oldest frame that is kept; `next` when there is none.
    pub(super) fn first(&self) -> u64 {
        self.next - self.scores.len() as u64
    }

    /// One frame, if it is kept.
    pub(super) fn get(&self, frame: u64) -> Option<Scores> {
        let position = frame.checked_sub(self.first())?;
        self.scores.get(usize::try_from(position).ok()?).copied()
    }

    /// The kept frames of `first..=last`, in order.
    pub(super) fn range(
        &self,
        first: u64,
        last: u64,
    ) -> impl Iterator<Item = (u64, &Scores)> + Clone {
        let oldest = self.first();
        let end = last.saturating_add(1).min(self.next).max(oldest);
        let start = first.clamp(oldest, end);
        let positions = (start - oldest) as usize..(end - oldest) as usize;
        (start..end).zip(self.scores.range(positions))
    }

    /// Takes the next frame. Forgets those before `needed` that are not among the newest `keep`.
    pub(super) fn push(&mut self, scores: Scores, keep: usize, needed: u64) {
        self.scores.push_back(scores);
        self.next += 1;
        let beyond = self.scores.len().saturating_sub(keep);
        let unneeded = needed.saturating_sub(self.first());
        let excess = usize::try_from(unneeded).unwrap_or(beyond).min(beyond);
        self.scores.drain(..excess);
    }

    /// Makes room for so many frames in all.
    pub(super) fn reserve(&mut self, frames: usize) {
        self.scores
            .reserve((frames + 1).saturating_sub(self.scores.len()));
    }

    /// Frames there is room for.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.scores.capacity()
    }
}
