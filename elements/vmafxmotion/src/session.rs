// SPDX-License-Identifier: MPL-2.0

//! One session: the frames between two events that end it.

use std::num::NonZeroU64;

use gst::ClockTime;
use thiserror::Error;
use vmaf_motion::pool::Feature;
use vmaf_motion::stream::StreamError;
use vmaf_motion::summary::Summary;
use vmaf_motion::{Finals, MotionOptions, MotionStream};

use crate::messages::{FeatureSummary, FrameMessage, SummaryMessage};
use crate::meta::{FinalFrames, MotionScore};
use crate::picture::{Layout, PictureError};
use crate::times::FrameTimes;

/// Frames that wait for their scores, at most: the newest one, and two more at the start of a
/// five-frame window. A power of two for the ring.
const WAITING: usize = 4;

/// Why a buffer was not scored.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum ScoreError {
    #[error(transparent)]
    Picture(#[from] PictureError),
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// What one buffer brought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scored {
    pub(crate) score: MotionScore,
    pub(crate) finals: FinalMessages,
}

/// The messages of the frames that became final in one step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FinalMessages([Option<FrameMessage>; 2]);

impl FinalMessages {
    pub(crate) fn iter(&self) -> impl Iterator<Item = FrameMessage> + '_ {
        self.0.iter().flatten().copied()
    }
}

/// A running session. Constant in size; keeps no buffer.
#[derive(Debug)]
pub(crate) struct Session {
    number: u64,
    stream: MotionStream,
    /// For planes that cannot be read in place.
    staging: Vec<u8>,
    /// Times of the frames that are not final yet, by frame index.
    waiting: [FrameTimes; WAITING],
    first: FrameTimes,
    end: Option<ClockTime>,
    frames_without_timestamp: u64,
    discontinuities: u64,
    summary: Summary,
}

impl Session {
    pub(crate) fn new(
        number: u64,
        layout: &Layout,
        options: &MotionOptions,
    ) -> Result<Self, StreamError> {
        Ok(Self {
            number,
            stream: MotionStream::new(options, layout.geometry())?,
            staging: Vec::new(),
            waiting: [FrameTimes::default(); WAITING],
            first: FrameTimes::default(),
            end: None,
            frames_without_timestamp: 0,
            discontinuities: 0,
            summary: Summary::new(NonZeroU64::MIN),
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Frames taken so far.
    pub(crate) fn frames(&self) -> u64 {
        self.stream.frames()
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

    /// Scores the next buffer; the session does not change when that fails.
    pub(crate) fn score(
        &mut self,
        layout: &Layout,
        buffer: &gst::BufferRef,
        times: FrameTimes,
    ) -> Result<Scored, ScoreError> {
        let Self {
            stream, staging, ..
        } = self;
        let step = layout.with_luma(buffer, staging, |luma| stream.push(luma))??;
        if step.frame == 0 {
            self.first = times;
        } else if buffer.flags().contains(gst::BufferFlags::DISCONT) {
            self.discontinuities += 1;
        }
        if times.timestamp.is_none() {
            self.frames_without_timestamp += 1;
            self.discontinuities += 1;
        }
        self.end = self.end.max(times.end());
        self.waiting[step.frame as usize % WAITING] = times;
        let finals = match &step.finals[..] {
            [] => None,
            [first, ..] => step.finals.last().map(|last| FinalFrames {
                first: first.frame,
                last: last.frame,
                motion2: last.motion2,
                motion3: last.motion3,
            }),
        };
        Ok(Scored {
            score: MotionScore {
                session: self.number,
                frame: step.frame,
                motion: step.motion,
                finals,
                is_final: finals.is_some_and(|finals| finals.last == step.frame),
            },
            finals: self.messages(&step.finals),
        })
    }

    /// Ends the session: the frames that were not final yet, and the summary.
    pub(crate) fn finish(mut self) -> (FinalMessages, SummaryMessage) {
        let finals = self.stream.flush();
        let finals = self.messages(&finals);
        let duration = match (self.first.timestamp, self.end) {
            (Some(start), Some(end)) => end.checked_sub(start),
            _ => None,
        };
        let summary = SummaryMessage {
            session: self.number,
            n_frames: self.summary.frames(),
            frames_without_timestamp: self.frames_without_timestamp,
            discontinuities: self.discontinuities,
            features: Feature::ALL.map(|feature| FeatureSummary::of(&self.summary, feature)),
            times: FrameTimes {
                duration,
                ..self.first
            },
        };
        (finals, summary)
    }

    fn messages(&mut self, finals: &Finals) -> FinalMessages {
        let mut messages = FinalMessages::default();
        for (message, score) in messages.0.iter_mut().zip(finals.iter()) {
            self.summary.push(*score);
            *message = Some(FrameMessage {
                session: self.number,
                score: *score,
                times: self.waiting[score.frame as usize % WAITING],
            });
        }
        messages
    }
}
