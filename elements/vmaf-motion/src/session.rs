// SPDX-License-Identifier: MPL-2.0

//! Everything that happens to the final scores of one stream: renumbering, reports, summary and
//! windows, in one order.

use crate::chunks::{Part, Reported, Reporter};
use crate::derive::FinalScore;
use crate::summary::Summary;
use crate::windows::{
    Config, ConfigError, Failure, FeedError, FrameScore, Poll, SubmitError, WindowId, WindowResult,
    Windows,
};

/// Something that happened once and is never revised.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "copied, never boxed: a session does not allocate"
)]
pub enum Event {
    /// A frame's scores, under the film's index. Comes before the windows it completes.
    Frame(Reported),
    /// A window's answer.
    Window(WindowResult),
}

/// The scores of one stream from the moment they are final. Feeding allocates nothing in the steady
/// state.
#[derive(Debug)]
pub struct Session {
    reporter: Reporter,
    windows: Windows,
    summary: Summary,
    fed: u64,
    ended: bool,
}

impl Session {
    /// For a stream that is `part` of a film (`Part::default()` for a whole one).
    /// [`Config::first_frame`] is taken from the part.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(part: Part, config: Config) -> Result<Self, ConfigError> {
        Ok(Self {
            windows: Windows::new(Config {
                first_frame: part.first_frame(),
                ..config
            })?,
            reporter: Reporter::new(part),
            summary: Summary::new(config.n_subsample),
            fed: 0,
            ended: false,
        })
    }

    /// The chunk of the film that the stream is.
    pub fn part(&self) -> &Part {
        self.reporter.part()
    }

    /// Frames fed, preroll and postroll included.
    pub fn fed(&self) -> u64 {
        self.fed
    }

    /// Whether the stream ended.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The summary of the frames reported so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// A frame was fed, with its timestamp in nanoseconds; gives the stream's own index of it.
    ///
    /// # Errors
    /// [`FeedError::Ended`]; nothing changes.
    pub fn feed(
        &mut self,
        timestamp: Option<u64>,
        mut emit: impl FnMut(Event),
    ) -> Result<u64, FeedError> {
        let frame = self.fed;
        if self.ended {
            return Err(FeedError::Ended { frame });
        }
        self.fed += 1;
        if let Some((_, timestamp)) = self.reporter.feed(timestamp) {
            self.windows
                .feed(timestamp, |result| emit(Event::Window(*result)))?;
        }
        self.report(emit)?;
        Ok(frame)
    }

    /// A frame is final, under the stream's own index. Frames come in order, each after it was fed,
    /// as [`crate::Derivation`] emits them.
    ///
    /// # Errors
    /// [`FeedError`]: the frame is not the next one, was not fed, or comes after the end.
    pub fn score(&mut self, local: FinalScore, emit: impl FnMut(Event)) -> Result<(), FeedError> {
        let frame = local.frame;
        if self.ended {
            return Err(FeedError::Ended { frame });
        }
        if frame != self.reporter.next_score() || frame >= self.fed {
            return Err(FeedError::Order {
                frame,
                expected: self.reporter.next_score(),
                fed: self.fed,
            });
        }
        self.reporter.score(local);
        self.report(emit)
    }

    /// The stream ended and no further frame becomes final: answers every open window. A second call
    /// emits nothing.
    pub fn flush(&mut self, mut emit: impl FnMut(Event)) {
        self.ended = true;
        self.windows.flush(|result| emit(Event::Window(*result)));
    }

    /// The session goes away before its stream ended: open windows fail. After a flush it emits
    /// nothing.
    pub fn abandon(&mut self, mut emit: impl FnMut(Event)) {
        self.ended = true;
        self.windows.abandon(|result| emit(Event::Window(*result)));
    }

    /// [`Windows::submit`]; frames are the film's.
    ///
    /// # Errors
    /// [`SubmitError`]; nothing changes.
    pub fn submit(
        &mut self,
        first: u64,
        last: u64,
        mut emit: impl FnMut(Event),
    ) -> Result<WindowId, SubmitError> {
        self.windows
            .submit(first, last, |result| emit(Event::Window(*result)))
    }

    /// [`Windows::poll`].
    pub fn poll(&self, id: WindowId) -> Poll {
        self.windows.poll(id)
    }

    /// [`Windows::take`].
    pub fn take(&mut self, id: WindowId) -> Poll {
        self.windows.take(id)
    }

    /// [`Windows::cancel`].
    pub fn cancel(&mut self, id: WindowId) -> bool {
        self.windows.cancel(id)
    }

    /// The scores of one frame of the film. A frame that was fed is pending until it is final, also
    /// while it may yet turn out to belong to the postroll.
    pub fn frame_score(&self, frame: u64) -> FrameScore {
        match self.windows.frame_score(frame) {
            FrameScore::Failed(Failure::NotFed { .. }) if self.reporter.was_fed(frame) => {
                FrameScore::Pending
            }
            other => other,
        }
    }

    /// Reports what is final and certain.
    fn report(&mut self, mut emit: impl FnMut(Event)) -> Result<(), FeedError> {
        while let Some(reported) = self.reporter.next_final() {
            self.summary.push(reported.score);
            emit(Event::Frame(reported));
            self.windows
                .push(reported.score, |result| emit(Event::Window(*result)))?;
        }
        Ok(())
    }
}
