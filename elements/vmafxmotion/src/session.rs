// SPDX-License-Identifier: MPL-2.0

//! One session: the frames between two events that end it.
//!
//! Its picture side, the [`Scorer`], is taken out of the element's state while a picture is scored;
//! its score side, the [`Session`], stays there for whoever asks.

use std::collections::VecDeque;

use gst::ClockTime;
use thiserror::Error;
use vmaf_motion::chunks::Part;
use vmaf_motion::float::Component;
use vmaf_motion::pool::Feature;
use vmaf_motion::session::{Event, Session as Scores};
use vmaf_motion::stream::StreamError;
use vmaf_motion::windows::{
    Config, ConfigError, FeedError, FrameScore, Poll, SubmitError, WindowId, WindowResult,
};
use vmaf_motion::{Finals, MotionOptions, MotionStream, Plane, Step};

use crate::messages::{FeatureSummary, FrameMessage, SummaryMessage, WindowMessage};
use crate::meta::{FinalFrames, MotionScore};
use crate::picture::{Layout, PictureError, Staging};
use crate::times::FrameTimes;

/// Windows of one session are told from those of another by the upper half of their ids.
const SESSION_SHIFT: u32 = 32;

/// Why a buffer was not scored.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum ScoreError {
    #[error(transparent)]
    Picture(#[from] PictureError),
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// What every session of a run is made with.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) options: MotionOptions,
    pub(crate) part: Part,
    pub(crate) windows: Config,
    pub(crate) threads: usize,
}

/// The picture side of a session: the earlier luma planes and what is computed from them.
#[derive(Debug)]
pub(crate) struct Scorer {
    stream: MotionStream,
    staging: Staging,
}

impl Scorer {
    pub(crate) fn new(plan: &Plan, layout: &Layout) -> Result<Self, StreamError> {
        Ok(Self {
            stream: MotionStream::with_chroma(
                &plan.options,
                layout.geometry(),
                layout.chroma_geometry(),
            )?
            .with_threads(plan.threads)?,
            staging: Staging::default(),
        })
    }

    /// Scores the next picture; nothing changes when that fails.
    pub(crate) fn score(
        &mut self,
        layout: &Layout,
        buffer: &gst::BufferRef,
    ) -> Result<Step, ScoreError> {
        let Self { stream, staging } = self;
        let chroma = stream.needs_chroma();
        let read = |luma: &Plane<'_>, chroma: Option<[Component<'_>; 2]>| match chroma {
            Some(chroma) => stream.push_with_chroma(luma, chroma),
            None => stream.push(luma),
        };
        Ok(layout.with_picture(buffer, chroma, staging, read)??)
    }

    /// The pictures have ended: the frames that were not final yet.
    pub(crate) fn finish(&mut self) -> Finals {
        self.stream.flush()
    }
}

/// What became known in one step, in the order in which it did.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// At most two frames become final in one step.
    pub(crate) frames: [Option<FrameMessage>; 2],
    pub(crate) windows: Vec<WindowMessage>,
}

impl News {
    pub(crate) fn frames(&self) -> impl Iterator<Item = FrameMessage> + '_ {
        self.frames.iter().flatten().copied()
    }

    fn push_frame(&mut self, message: FrameMessage) {
        if let Some(free) = self.frames.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(message);
        }
    }
}

/// The score side of a session.
#[derive(Debug)]
pub(crate) struct Session {
    number: u64,
    scores: Scores,
    times: Timeline,
    frames_without_timestamp: u64,
    discontinuities: u64,
}

impl Session {
    pub(crate) fn new(number: u64, plan: &Plan) -> Result<Self, ConfigError> {
        let scores = Scores::new(plan.part, plan.windows)?;
        Ok(Self {
            number,
            scores,
            times: Timeline::new(plan),
            frames_without_timestamp: 0,
            discontinuities: 0,
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Frames taken so far, with those that are not reported.
    pub(crate) fn frames(&self) -> u64 {
        self.scores.fed()
    }

    pub(crate) fn discontinuities(&self) -> u64 {
        self.discontinuities
    }

    /// Counts an interruption; before the first frame there is nothing to interrupt.
    pub(crate) fn discontinuity(&mut self) {
        if self.frames() > 0 {
            self.discontinuities += 1;
        }
    }

    /// Takes a scored picture: the score for its buffer, `None` for a frame of the preroll, and what
    /// became known by it.
    pub(crate) fn take(
        &mut self,
        step: &Step,
        times: FrameTimes,
        discont: bool,
    ) -> Result<(Option<MotionScore>, News), FeedError> {
        if discont {
            self.discontinuity();
        }
        if times.timestamp.is_none() {
            self.frames_without_timestamp += 1;
            self.discontinuities += 1;
        }
        let frame = self.reported_index(step.frame);
        if frame.is_some() {
            self.times.push(times);
        }
        let timestamp = times.timestamp.map(ClockTime::nseconds);
        let (taken, news) = self.listen(|scores, emit| {
            scores.feed(timestamp, &mut *emit)?;
            step.finals
                .iter()
                .try_for_each(|&score| scores.score(score, &mut *emit))
        });
        taken?;
        let score = frame.map(|frame| MotionScore {
            session: self.number,
            frame,
            motion: step.motion,
            finals: finals(&news),
            is_final: false,
        });
        Ok((score, news))
    }

    /// Ends the session: the frames that were not final yet, the windows that were open, the
    /// summary. No summary where no frame was reported.
    pub(crate) fn finish(&mut self, finals: &Finals) -> (News, Option<SummaryMessage>) {
        let ((), news) = self.listen(|scores, emit| {
            for &score in finals.iter() {
                // Frames come in order and were fed: this cannot fail.
                let _ = scores.score(score, &mut *emit);
            }
            scores.flush(emit);
        });
        let summary = (self.scores.summary().frames() > 0).then(|| self.summary());
        (news, summary)
    }

    /// The session never had a frame and never will: its windows fail.
    pub(crate) fn abandon(&mut self) -> News {
        self.listen(|scores, emit| scores.abandon(emit)).1
    }

    /// Lets `act` work on the scores, and collects what becomes known by it.
    fn listen<T>(
        &mut self,
        act: impl FnOnce(&mut Scores, &mut dyn FnMut(Event)) -> T,
    ) -> (T, News) {
        let mut news = News::default();
        let Self {
            scores,
            times,
            number,
            ..
        } = self;
        let done = act(scores, &mut |event| tell(&mut news, *number, times, event));
        (done, news)
    }

    fn summary(&self) -> SummaryMessage {
        let summary = self.scores.summary();
        let last = self.scores.part().first_frame() + summary.frames().saturating_sub(1);
        SummaryMessage {
            session: self.number,
            n_frames: summary.frames(),
            frames_without_timestamp: self.frames_without_timestamp,
            discontinuities: self.discontinuities,
            features: Feature::ALL.map(|feature| FeatureSummary::of(summary, feature)),
            times: self.times.until(last),
        }
    }

    /// The film's index of a frame of the stream; `None` for the preroll.
    fn reported_index(&self, local: u64) -> Option<u64> {
        let part = self.scores.part();
        Some(part.first_frame() + local.checked_sub(part.preroll())?)
    }

    /// Asks for a window; its id, and its answer where it has one already.
    pub(crate) fn submit(&mut self, first: u64, last: u64) -> Result<(u64, News), SubmitError> {
        let (id, news) = self.listen(|scores, emit| scores.submit(first, last, emit));
        Ok((global(self.number, id?), news))
    }

    /// The local id of a window of this session.
    pub(crate) fn owns(&self, id: u64) -> Option<WindowId> {
        let local = (id & u64::from(u32::MAX)).checked_sub(1)?;
        (id >> SESSION_SHIFT == self.number).then_some(WindowId(local))
    }

    pub(crate) fn poll(&self, id: WindowId) -> WindowState {
        match self.scores.poll(id) {
            Poll::Pending => WindowState::Pending,
            Poll::Unknown => WindowState::Unknown,
            Poll::Done(result) => {
                WindowState::Done(Box::new(window_message(self.number, &self.times, &result)))
            }
        }
    }

    pub(crate) fn cancel(&mut self, id: WindowId) -> bool {
        self.scores.cancel(id)
    }

    pub(crate) fn frame_score(&self, frame: u64) -> FrameScore {
        self.scores.frame_score(frame)
    }
}

/// Where a window stands.
#[derive(Debug)]
pub(crate) enum WindowState {
    Pending,
    Unknown,
    Done(Box<WindowMessage>),
}

fn global(session: u64, id: WindowId) -> u64 {
    (session << SESSION_SHIFT) + id.0 + 1
}

/// Turns an event into a message.
fn tell(news: &mut News, session: u64, times: &Timeline, event: Event) {
    match event {
        Event::Frame(reported) => news.push_frame(FrameMessage {
            session,
            score: reported.score,
            times: times.of(reported.score.frame).unwrap_or_default(),
        }),
        Event::Window(result) => news.windows.push(window_message(session, times, &result)),
    }
}

/// The frames that became final, which have equal scores where they are two.
fn finals(news: &News) -> Option<FinalFrames> {
    let first = news.frames().next()?;
    let last = news.frames().last()?;
    Some(FinalFrames {
        first: first.score.frame,
        last: last.score.frame,
        motion2: last.score.motion2,
        motion3: last.score.motion3,
    })
}

fn window_message(session: u64, times: &Timeline, result: &WindowResult) -> WindowMessage {
    let first = times.of(result.first).unwrap_or_default();
    let pooled_last = result.first + result.n_frames.saturating_sub(1);
    let end = times.of(pooled_last).and_then(|times| times.end());
    let span = result.span;
    WindowMessage {
        session,
        window: span.map_or_else(|| global(session, result.id), |span| span.window),
        submitted: span.is_none(),
        first: result.first,
        last: result.last,
        start: span.map_or(first.timestamp, |span| {
            span.start.map(ClockTime::from_nseconds)
        }),
        end: span.map_or(end, |span| span.end.map(ClockTime::from_nseconds)),
        n_frames: result.n_frames,
        n_scored: result.n_scored,
        partial: result.partial,
        outcome: result.outcome.map(Into::into).map_err(Into::into),
        times: FrameTimes {
            duration: end
                .zip(first.timestamp)
                .and_then(|(end, start)| end.checked_sub(start)),
            ..first
        },
    }
}

/// The times of the newest reported frames: those that wait for their scores, and as many as have
/// scores to be asked for.
#[derive(Debug)]
struct Timeline {
    times: VecDeque<FrameTimes>,
    /// Index of the first one kept.
    first: u64,
    capacity: usize,
    start: Option<FrameTimes>,
}

impl Timeline {
    /// More frames than this are only kept when they come: a large history costs nothing before.
    const ROOM: usize = 8192;

    fn new(plan: &Plan) -> Self {
        let waiting = 4 + plan.part.postroll() as usize;
        let capacity = plan.windows.history + waiting;
        Self {
            times: VecDeque::with_capacity(capacity.min(Self::ROOM)),
            first: plan.part.first_frame(),
            capacity,
            start: None,
        }
    }

    fn push(&mut self, times: FrameTimes) {
        if self.times.len() == self.capacity {
            self.times.pop_front();
            self.first += 1;
        }
        self.times.push_back(times);
        self.start.get_or_insert(times);
    }

    fn of(&self, frame: u64) -> Option<FrameTimes> {
        let index = usize::try_from(frame.checked_sub(self.first)?).ok()?;
        self.times.get(index).copied()
    }

    /// The first frame's times with the duration from there to the end of frame `last`.
    fn until(&self, last: u64) -> FrameTimes {
        let first = self.start.unwrap_or_default();
        let end = self.of(last).and_then(|times| times.end());
        FrameTimes {
            duration: end
                .zip(first.timestamp)
                .and_then(|(end, start)| end.checked_sub(start)),
            ..first
        }
    }
}
