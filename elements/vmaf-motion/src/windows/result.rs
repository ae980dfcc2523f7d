// SPDX-License-Identifier: MPL-2.0

//! What windows answer.

use thiserror::Error;

use super::MAX_RANKED;
use crate::clock::Span;
use crate::derive::FinalScore;
use crate::pool::Pooled;

/// Names a window within its session; ids increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowId(pub u64);

/// A window's answer, given once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowResult {
    /// The window.
    pub id: WindowId,
    /// First frame, as asked for.
    pub first: u64,
    /// Last frame, as asked for.
    pub last: u64,
    /// Frames of the range that the stream had, counted from `first`; 0 if it failed.
    pub n_frames: u64,
    /// Those of them that were pooled; 0 if it failed.
    pub n_scored: u64,
    /// The stream ended before `last`, or the clock cut the window short.
    pub partial: bool,
    /// Number and bounds, for a window that the clock cut.
    pub span: Option<Span>,
    /// The pooled scores.
    pub outcome: Result<Pooled, Failure>,
}

/// Why a window or a frame has no scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Failure {
    /// It starts before the stream.
    #[error("the stream starts at frame {first}")]
    BeforeStream {
        /// The stream's first frame.
        first: u64,
    },
    /// It starts behind the end of the stream.
    #[error("the stream ended before frame {fed}")]
    AfterStream {
        /// Index after the stream's last frame.
        fed: u64,
    },
    /// It was asked for too late.
    #[error("scores before frame {oldest} are no longer kept")]
    LeftHistory {
        /// The oldest frame that is kept.
        oldest: u64,
    },
    /// Subsampling pools none of its frames.
    #[error("no frame of the window is pooled under this subsampling")]
    NothingScored,
    /// A percentile over more than [`MAX_RANKED`] frames.
    #[error("percentiles cannot rank more than {MAX_RANKED} frames")]
    TooLong,
    /// The stream ended and this frame of the window has no score.
    #[error("the stream ended without a score of frame {frame}")]
    NoScore {
        /// The first such frame.
        frame: u64,
    },
    /// The frame has not been fed yet.
    #[error("the stream has not reached the frame: frame {fed} comes next")]
    NotFed {
        /// Index after the last frame that was fed.
        fed: u64,
    },
    /// The session ended first.
    #[error("the session ended first")]
    Ended,
}

impl Failure {
    /// The kind of failure, a word for reports: `range`, `not-found` or `ended`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::BeforeStream { .. }
            | Self::AfterStream { .. }
            | Self::LeftHistory { .. }
            | Self::NothingScored
            | Self::TooLong => "range",
            Self::NoScore { .. } | Self::NotFed { .. } => "not-found",
            Self::Ended => "ended",
        }
    }
}

/// State of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "lives on the stack for a moment; no allocation"
)]
pub enum Poll {
    /// Not answered yet.
    Pending,
    /// Answered.
    Done(WindowResult),
    /// Never asked for, taken, cancelled, or pushed out by newer results.
    Unknown,
}

/// State of a frame's scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameScore {
    /// The frame was fed and is not final yet.
    Pending,
    /// Never revised.
    Final(FinalScore),
    /// There is none. [`Failure::NotFed`] never speaks of a frame that was fed.
    Failed(Failure),
}
