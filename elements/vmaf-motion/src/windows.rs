// SPDX-License-Identifier: MPL-2.0

//! Score windows: pooled scores over an inclusive range of frames, complete as soon as the range is
//! final, never revised.
//!
//! A window may be asked for before, during or after its frames; windows may overlap, repeat, come
//! out of order or lie ahead of the stream. It is answered once. Under `motion2` and `motion3` that
//! is with the frame after its last one, or at the end of the stream.
//!
//! | state | [`Poll`] | how it gets there |
//! |---|---|---|
//! | pending | `Pending` | asked for |
//! | complete | `Done`, outcome `Ok` | every scored frame is final; `partial` if the stream ended inside |
//! | failed | `Done`, outcome [`Failure`] | no frame to pool, frames gone from the history, no end of the stream |
//! | gone | `Unknown` | taken, cancelled, or pushed out by newer results |
//!
//! What is bounded, whatever is asked and however long the stream:
//!
//! | | bound |
//! |---|---|
//! | open windows that were asked for | [`MAX_OPEN`]; one more is [`SubmitError::Busy`] |
//! | results kept for [`Windows::poll`] | [`MAX_KEPT`], then the oldest goes; every result was emitted before |
//! | final scores kept | [`Config::history`] frames, more only while an open window ranks older ones, up to [`MAX_RANKED`] frames (24 bytes each) |
//!
//! `min`, `max`, `mean` and `harmonic-mean` run along with the stream. Percentiles need the scores,
//! which are stored once for all windows; room is made when a window is asked for (up to
//! [`RESERVED`] frames, since a window may be asked for that the stream never fills) and grows with
//! the stream after that.

mod answer;
mod config;
mod error;
mod history;
mod result;

use std::collections::VecDeque;

pub use config::Config;
pub use error::{ConfigError, FeedError, SubmitError};
pub use result::{Failure, FrameScore, Poll, WindowId, WindowResult};

use crate::clock::{Cut, Span, WindowClock};
use crate::derive::FinalScore;
use crate::pool::{Accumulator, Scores};
use history::History;

/// Most windows that were asked for and are open at one time.
pub const MAX_OPEN: usize = 1024;

/// Most results that are kept until they are taken.
pub const MAX_KEPT: usize = 1024;

/// Longest history that can be configured, in frames.
pub const MAX_HISTORY: usize = 1 << 20;

/// Longest window that can rank its scores, in frames: 4.8 hours of 60 a second, 25 MB.
pub const MAX_RANKED: u64 = 1 << 20;

/// Frames for which room is made before they come.
pub const RESERVED: usize = 1 << 16;

/// The same for windows that are cut by time, whose frames are not known: a minute of 60 a second.
const RESERVED_BY_TIME: u64 = 3600;

/// Windows for which room is made beyond those that are open: the clock's come without a request.
const SPARE: usize = 4;

/// How the stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Flushed,
    Abandoned,
}

/// A window that is not answered yet.
#[derive(Debug, Clone)]
struct Open {
    id: WindowId,
    first: u64,
    /// `u64::MAX` while a window that the clock cuts has no end yet.
    last: u64,
    origin: Origin,
    /// Frames that were gone when the window was asked for.
    missed: Option<Failure>,
    /// The final, scored frames of the range so far.
    pooled: Accumulator,
}

/// Who wants the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Asked,
    /// The clock; its span once that is closed.
    Cut(Option<Span>),
}

/// The windows of one session. Feeding allocates nothing, save where the module says so.
#[derive(Debug)]
pub struct Windows {
    config: Config,
    /// Index after the last frame that was fed.
    fed: u64,
    end: Option<End>,
    history: History,
    clock: Option<WindowClock>,
    /// In the order of their ids.
    open: Vec<Open>,
    kept: VecDeque<WindowResult>,
    next_id: u64,
    scratch: Vec<f64>,
}

impl Windows {
    /// For a stream of no frames.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let first_frame = config.first_frame;
        let mut windows = Self {
            config,
            fed: first_frame,
            end: None,
            history: History::new(first_frame, config.history.min(RESERVED)),
            clock: config.cut.map(WindowClock::new),
            open: Vec::with_capacity(SPARE),
            kept: VecDeque::new(),
            next_id: 0,
            scratch: Vec::new(),
        };
        if config.methods.rank_scores() {
            match config.cut {
                None => {}
                Some(Cut::Frames(length)) => windows.reserve_ranked(length.get()),
                Some(Cut::Time(_)) => windows.reserve_ranked(RESERVED_BY_TIME),
            }
        }
        Ok(windows)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Windows that were asked for and are open.
    pub fn open(&self) -> usize {
        let asked = |window: &&Open| window.origin == Origin::Asked;
        self.open.iter().filter(asked).count()
    }

    /// Asks for the frames `first..=last`. If they are final already, or can never be pooled, the
    /// result is emitted right away.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing changes.
    pub fn submit(
        &mut self,
        first: u64,
        last: u64,
        emit: impl FnMut(&WindowResult),
    ) -> Result<WindowId, SubmitError> {
        if first > last {
            return Err(SubmitError::Order { first, last });
        }
        if self.open() >= MAX_OPEN {
            return Err(SubmitError::Busy);
        }
        self.open.reserve(SPARE + 1);
        self.kept
            .reserve((self.open.len() + 1).min(MAX_KEPT - self.kept.len()));
        if self.config.methods.rank_scores() {
            self.reserve_ranked((last - first).saturating_add(1));
        }
        let id = self.start(first, last, Origin::Asked);
        self.settle(emit);
        Ok(id)
    }

    /// The state of a window. A result stays until it is taken, cancelled or pushed out.
    pub fn poll(&self, id: WindowId) -> Poll {
        if let Some(result) = self.kept.iter().find(|result| result.id == id) {
            return Poll::Done(*result);
        }
        let asked = |window: &Open| window.id == id && window.origin == Origin::Asked;
        match self.open.iter().any(asked) {
            true => Poll::Pending,
            false => Poll::Unknown,
        }
    }

    /// [`Windows::poll`] that forgets a result it gives.
    pub fn take(&mut self, id: WindowId) -> Poll {
        let state = self.poll(id);
        self.kept.retain(|result| result.id != id);
        state
    }

    /// Forgets a window: an open one will never be emitted, a result is dropped. Says whether there
    /// was one.
    pub fn cancel(&mut self, id: WindowId) -> bool {
        let known = self.poll(id) != Poll::Unknown;
        if known {
            self.open.retain(|window| window.id != id);
            self.kept.retain(|result| result.id != id);
        }
        known
    }

    /// The scores of one frame.
    pub fn frame_score(&self, frame: u64) -> FrameScore {
        let first = self.config.first_frame;
        let fed = self.fed;
        match self.history.get(frame) {
            Some([motion, motion2, motion3]) => FrameScore::Final(FinalScore {
                frame,
                motion,
                motion2,
                motion3,
            }),
            None if frame < first => FrameScore::Failed(Failure::BeforeStream { first }),
            None if frame < self.history.first() => {
                let oldest = self.history.first();
                FrameScore::Failed(Failure::LeftHistory { oldest })
            }
            None => FrameScore::Failed(match (frame < fed, self.end) {
                (true, None) => return FrameScore::Pending,
                (true, Some(_)) => Failure::Ended,
                (false, None) => Failure::NotFed { fed },
                (false, Some(_)) => Failure::AfterStream { fed },
            }),
        }
    }

    /// A frame was fed, with its timestamp in nanoseconds; gives its index. Its scores may follow at
    /// any time.
    ///
    /// # Errors
    /// [`FeedError::Ended`]; nothing changes.
    pub fn feed(
        &mut self,
        timestamp: Option<u64>,
        emit: impl FnMut(&WindowResult),
    ) -> Result<u64, FeedError> {
        let frame = self.fed;
        let ended = FeedError::Ended { frame };
        if self.end.is_some() {
            return Err(ended);
        }
        if let Some(clock) = &mut self.clock {
            let closed = clock.frame(frame, timestamp).map_err(|_| ended)?;
            let opened = clock.open_first() == Some(frame);
            if let Some(span) = closed {
                self.close_cut(span);
            }
            if opened {
                self.start(frame, u64::MAX, Origin::Cut(None));
            }
        }
        self.fed += 1;
        self.settle(emit);
        Ok(frame)
    }

    /// A frame is final. Frames become final in order, each after it was fed.
    ///
    /// # Errors
    /// [`FeedError::Order`], and [`FeedError::Ended`] after the end; nothing changes.
    pub fn push(
        &mut self,
        score: FinalScore,
        emit: impl FnMut(&WindowResult),
    ) -> Result<(), FeedError> {
        let (frame, expected, fed) = (score.frame, self.history.next(), self.fed);
        if self.end.is_some() {
            return Err(FeedError::Ended { frame });
        }
        if frame != expected || frame >= fed {
            return Err(FeedError::Order {
                frame,
                expected,
                fed,
            });
        }
        let scores = Scores::from(score);
        if self.config.is_scored(frame) {
            for window in &mut self.open {
                if (window.first..=window.last).contains(&frame) {
                    window.pooled.push(&scores);
                }
            }
        }
        let needed = self.oldest_ranked();
        self.history.push(scores, self.config.history, needed);
        self.settle(emit);
        Ok(())
    }

    /// The stream ended and no further frame becomes final: every open window is answered, those
    /// that reach beyond the last frame as partial. A second call emits nothing.
    pub fn flush(&mut self, emit: impl FnMut(&WindowResult)) {
        self.finish(End::Flushed, emit);
    }

    /// The session goes away before its stream ended: open windows fail with [`Failure::Ended`].
    /// After a flush it emits nothing.
    pub fn abandon(&mut self, emit: impl FnMut(&WindowResult)) {
        self.finish(End::Abandoned, emit);
    }

    fn finish(&mut self, end: End, emit: impl FnMut(&WindowResult)) {
        self.end.get_or_insert(end);
        if let Some(span) = self.clock.as_mut().and_then(WindowClock::finish) {
            self.close_cut(span);
        }
        self.settle(emit);
    }

    /// Opens a window and pools what is final already.
    fn start(&mut self, first: u64, last: u64, origin: Origin) -> WindowId {
        let id = WindowId(self.next_id);
        self.next_id += 1;
        let config = self.config;
        let oldest = self.history.first();
        let missed = config
            .first_scored(first, last)
            .is_some_and(|frame| frame < oldest);
        let mut pooled = Accumulator::default();
        for (frame, scores) in self.history.range(first, last) {
            if config.is_scored(frame) {
                pooled.push(scores);
            }
        }
        self.open.push(Open {
            id,
            first,
            last,
            origin,
            missed: missed.then_some(Failure::LeftHistory { oldest }),
            pooled,
        });
        id
    }

    /// Gives the window that the clock had open its end.
    fn close_cut(&mut self, span: Span) {
        let growing = |window: &&mut Open| window.origin == Origin::Cut(None);
        if let Some(window) = self.open.iter_mut().find(growing) {
            window.last = span.last;
            window.origin = Origin::Cut(Some(span));
        }
    }

    /// The oldest frame whose scores an open window will rank.
    fn oldest_ranked(&self) -> u64 {
        if !self.config.methods.rank_scores() {
            return u64::MAX;
        }
        let ranking = self.open.iter().filter(|window| !self.is_too_long(window));
        ranking.map(|window| window.first).min().unwrap_or(u64::MAX)
    }

    /// Whether more frames of the window are final than can be ranked.
    fn is_too_long(&self, window: &Open) -> bool {
        let end = window.last.saturating_add(1).min(self.history.next());
        self.config.methods.rank_scores() && end.saturating_sub(window.first) > MAX_RANKED
    }

    /// Makes room to rank a window of so many frames.
    fn reserve_ranked(&mut self, frames: u64) {
        let frames = usize::try_from(frames).unwrap_or(RESERVED).min(RESERVED);
        self.history.reserve(self.config.history + frames);
        self.scratch.reserve(frames);
    }
}

#[cfg(test)]
mod tests;
