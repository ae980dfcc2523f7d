// SPDX-License-Identifier: MPL-2.0

//! The window clock: cuts a stream into consecutive windows by time or by count.
//!
//! Pure integer logic, independent of scores. By time, a frame belongs to window `(t - t0) / length`
//! where `t0` is the first frame's timestamp; by count, to `(index - first index) / length`. Windows
//! without a frame are skipped: the number jumps. What timestamps may do:
//!
//! | timestamp | the frame |
//! |---|---|
//! | missing, or beyond `i64::MAX` ns | belongs to the window of the frame before it |
//! | the first one after missing ones at the start | sets `t0`; all of them belong to window 0 |
//! | earlier than the frame before, still inside the open window | belongs to the open window |
//! | earlier than the open window | closes it as partial and starts the next window number with a new `t0` |
//!
//! So a loop, a seek or a restarted source goes on being cut, and no window by time ever spans more
//! than its length of timestamps.

use std::num::NonZeroU64;

use thiserror::Error;

/// Longest window by time, in seconds: what fits 63 bits of nanoseconds.
pub const MAX_SECONDS: f64 = 9.2e9;

/// Latest timestamp, in nanoseconds.
const LATEST: u64 = i64::MAX as u64;

/// Length of the windows a stream is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// By time, in nanoseconds.
    Time(NonZeroU64),
    /// By frame count.
    Frames(NonZeroU64),
}

/// A length that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum CutError {
    /// Negative, not finite or too long.
    #[error("window length {seconds} s is not within 0 and {MAX_SECONDS} s")]
    Seconds {
        /// What was asked for.
        seconds: f64,
    },
    /// Rounds to no nanosecond.
    #[error("window length {seconds} s rounds to 0 ns")]
    TooShort {
        /// What was asked for.
        seconds: f64,
    },
    /// Both lengths are set.
    #[error("window length is set as {seconds} s and as {frames} frames: set one to 0")]
    Both {
        /// Length by time.
        seconds: f64,
        /// Length by count.
        frames: u64,
    },
}

impl Cut {
    /// By time: `seconds` is rounded half to even to whole nanoseconds.
    ///
    /// # Errors
    /// [`CutError::Seconds`] and [`CutError::TooShort`].
    pub fn seconds(seconds: f64) -> Result<Self, CutError> {
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            return Err(CutError::Seconds { seconds });
        }
        NonZeroU64::new((seconds * 1e9).round_ties_even() as u64)
            .map(Self::Time)
            .ok_or(CutError::TooShort { seconds })
    }

    /// From two settings of which 0 means unset: `None` when both are.
    ///
    /// # Errors
    /// Those of [`Cut::seconds`], and [`CutError::Both`].
    pub fn from_settings(seconds: f64, frames: u64) -> Result<Option<Self>, CutError> {
        match NonZeroU64::new(frames) {
            None if seconds == 0.0 => Ok(None),
            None => Self::seconds(seconds).map(Some),
            Some(count) if seconds == 0.0 => Ok(Some(Self::Frames(count))),
            Some(_) => Err(CutError::Both { seconds, frames }),
        }
    }
}

/// A window of consecutive frames that the clock closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Number of the window, from 0; jumps over empty ones.
    pub window: u64,
    /// Index of its first frame.
    pub first: u64,
    /// Index of its last frame.
    pub last: u64,
    /// Frames seen in it.
    pub n_frames: u64,
    /// Nanoseconds. By time: where the window starts. By count: its first frame's timestamp.
    pub start: Option<u64>,
    /// Nanoseconds. By time: where the next window would start, at most `i64::MAX`. By count: its
    /// last frame's timestamp.
    pub end: Option<u64>,
    /// The stream ended, or its timestamps went back, before the window was full.
    pub partial: bool,
}

/// A frame the clock cannot take; it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ClockError {
    /// Indices must increase.
    #[error("frame {index} does not come after frame {last}")]
    Order {
        /// The refused frame.
        index: u64,
        /// The frame before it.
        last: u64,
    },
    /// After [`WindowClock::finish`].
    #[error("frame {index} comes after the end of the stream")]
    Finished {
        /// The refused frame.
        index: u64,
    },
}

/// Where windows by time count from.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    time: u64,
    window: u64,
}

/// Cuts one stream. Constant in size.
#[derive(Debug, Clone)]
pub struct WindowClock {
    cut: Cut,
    first_index: u64,
    anchor: Option<Anchor>,
    open: Option<Span>,
    finished: bool,
}

impl WindowClock {
    /// For a stream of no frames.
    pub fn new(cut: Cut) -> Self {
        Self {
            cut,
            first_index: 0,
            anchor: None,
            open: None,
            finished: false,
        }
    }

    /// First frame of the window that is open.
    pub fn open_first(&self) -> Option<u64> {
        self.open.map(|span| span.first)
    }

    /// Takes the next frame (indices increase, gaps count) and its timestamp in nanoseconds. Gives
    /// the window that this frame closed by not belonging to it.
    ///
    /// # Errors
    /// [`ClockError`]; nothing changes.
    pub fn frame(
        &mut self,
        index: u64,
        timestamp: Option<u64>,
    ) -> Result<Option<Span>, ClockError> {
        if self.finished {
            return Err(ClockError::Finished { index });
        }
        let timestamp = timestamp.filter(|t| *t <= LATEST);
        let Some(mut open) = self.open else {
            self.first_index = index;
            self.anchor = timestamp.map(|time| Anchor { time, window: 0 });
            self.open = Some(self.opened(0, index, timestamp));
            return Ok(None);
        };
        if index <= open.last {
            let last = open.last;
            return Err(ClockError::Order { index, last });
        }
        let went_back = match (self.cut, timestamp, open.start) {
            (Cut::Time(_), Some(time), Some(start)) => time < start,
            _ => false,
        };
        let window = match (self.cut, timestamp) {
            (Cut::Frames(length), _) => (index - self.first_index) / length,
            (Cut::Time(_), None) => open.window,
            (Cut::Time(length), Some(time)) => {
                let next = Anchor {
                    time,
                    window: open.window.saturating_add(u64::from(went_back)),
                };
                let anchor = match self.anchor {
                    Some(anchor) if !went_back => anchor,
                    _ => *self.anchor.insert(next),
                };
                anchor.window.saturating_add((time - anchor.time) / length)
            }
        };
        if window != open.window {
            self.open = Some(self.opened(window, index, timestamp));
            open.partial = went_back;
            return Ok(Some(open));
        }
        open.last = index;
        open.n_frames += 1;
        match self.cut {
            Cut::Time(_) => (open.start, open.end) = self.bounds(window),
            Cut::Frames(_) => open.end = timestamp,
        }
        self.open = Some(open);
        Ok(None)
    }

    /// Ends the stream: gives the window that is open. A second call gives nothing.
    pub fn finish(&mut self) -> Option<Span> {
        self.finished = true;
        let mut span = self.open.take()?;
        span.partial = match self.cut {
            Cut::Time(_) => true,
            Cut::Frames(length) => !(span.last - self.first_index + 1).is_multiple_of(length.get()),
        };
        Some(span)
    }

    /// A window of one frame.
    fn opened(&self, window: u64, index: u64, timestamp: Option<u64>) -> Span {
        let (start, end) = match self.cut {
            Cut::Time(_) => self.bounds(window),
            Cut::Frames(_) => (timestamp, timestamp),
        };
        Span {
            window,
            first: index,
            last: index,
            n_frames: 1,
            start,
            end,
            partial: false,
        }
    }

    /// Start and end of a window by time; unknown before the first timestamp.
    fn bounds(&self, window: u64) -> (Option<u64>, Option<u64>) {
        let (Cut::Time(length), Some(anchor)) = (self.cut, self.anchor) else {
            return (None, None);
        };
        let offset = (window - anchor.window).saturating_mul(length.get());
        let start = anchor.time.saturating_add(offset).min(LATEST);
        let end = start.saturating_add(length.get()).min(LATEST);
        (Some(start), Some(end))
    }
}

#[cfg(test)]
mod tests;
