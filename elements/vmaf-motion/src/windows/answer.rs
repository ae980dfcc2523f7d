// SPDX-License-Identifier: MPL-2.0

//! When a window is answered, and how.

use super::{End, Failure, MAX_KEPT, Open, Origin, WindowResult, Windows};

impl Windows {
    /// Answers every open window that can be.
    pub(super) fn settle(&mut self, mut emit: impl FnMut(&WindowResult)) {
        let mut position = 0;
        while let Some(window) = self.open.get(position) {
            let Some(verdict) = self.verdict(window) else {
                position += 1;
                continue;
            };
            let window = self.open.remove(position);
            let result = self.answer(&window, verdict);
            if window.origin == Origin::Asked {
                if self.kept.len() == MAX_KEPT {
                    self.kept.pop_front();
                }
                self.kept.push_back(result);
            }
            emit(&result);
        }
    }

    /// Whether a window can be answered: with its frames up to which one, or why not.
    fn verdict(&self, window: &Open) -> Option<Result<u64, Failure>> {
        let Open { first, last, .. } = *window;
        let config = &self.config;
        let (fed, finals) = (self.fed, self.history.next());
        if window.origin == Origin::Cut(None) {
            return None;
        }
        if first < config.first_frame {
            let first = config.first_frame;
            return Some(Err(Failure::BeforeStream { first }));
        }
        if config.first_scored(first, last).is_none() {
            return Some(Err(Failure::NothingScored));
        }
        if let Some(missed) = window.missed {
            return Some(Err(missed));
        }
        if self.is_too_long(window) {
            return Some(Err(Failure::TooLong));
        }
        if last < fed && config.scored_until(last) < finals {
            return Some(Ok(last));
        }
        if self.end? == End::Abandoned {
            return Some(Err(Failure::Ended));
        }
        if fed <= first {
            return Some(Err(Failure::AfterStream { fed }));
        }
        let end = last.min(fed - 1);
        Some(match config.first_scored(first.max(finals), end) {
            Some(frame) => Err(Failure::NoScore { frame }),
            None if config.first_scored(first, end).is_none() => Err(Failure::NothingScored),
            None => Ok(end),
        })
    }

    /// The result of a window over its frames up to the one of the verdict.
    fn answer(&mut self, window: &Open, verdict: Result<u64, Failure>) -> WindowResult {
        let Open { first, last, .. } = *window;
        let config = self.config;
        let outcome = verdict.and_then(|end| {
            let ranked = self
                .history
                .range(first, end)
                .filter(move |(frame, _)| config.is_scored(*frame))
                .map(|(_, scores)| scores);
            let pooled = window
                .pooled
                .pooled(config.methods, ranked, &mut self.scratch);
            pooled.ok_or(Failure::NothingScored)
        });
        let (n_frames, n_scored) = match verdict {
            Ok(end) => (end - first + 1, window.pooled.count()),
            Err(_) => (0, 0),
        };
        let span = match window.origin {
            Origin::Asked => None,
            Origin::Cut(span) => span,
        };
        WindowResult {
            id: window.id,
            first,
            last,
            n_frames,
            n_scored,
            partial: (self.end.is_some() && self.fed <= last)
                || span.is_some_and(|span| span.partial),
            span,
            outcome,
        }
    }
}
