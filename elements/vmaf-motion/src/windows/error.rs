// SPDX-License-Identifier: MPL-2.0

//! What windows refuse.

use thiserror::Error;

use super::{MAX_HISTORY, MAX_OPEN};
use crate::chunks::MAX_FIRST_FRAME;

/// A configuration that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// [`super::Config::history`] is more than [`MAX_HISTORY`].
    #[error("a history of {history} frames is more than {MAX_HISTORY}")]
    History {
        /// Frames, as asked.
        history: usize,
    },
    /// [`super::Config::first_frame`] is more than [`MAX_FIRST_FRAME`].
    #[error("first frame {first_frame} is beyond {MAX_FIRST_FRAME}")]
    FirstFrame {
        /// Index, as asked.
        first_frame: u64,
    },
}

/// A window that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The range is empty.
    #[error("window's first frame {first} comes after its last frame {last}")]
    Order {
        /// First frame.
        first: u64,
        /// Last frame.
        last: u64,
    },
    /// [`MAX_OPEN`] windows are open.
    #[error("{MAX_OPEN} windows are open, which is the limit: cancel one or wait for one")]
    Busy,
}

/// A step the caller got wrong; it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FeedError {
    /// After the end of the stream.
    #[error("frame {frame} comes after the end of the stream")]
    Ended {
        /// The frame.
        frame: u64,
    },
    /// Final scores come in order, after their frames were fed.
    #[error("final scores of frame {frame} where frame {expected} comes next and {fed} were fed")]
    Order {
        /// The frame.
        frame: u64,
        /// The next frame to become final.
        expected: u64,
        /// The index after the last frame that was fed.
        fed: u64,
    },
}
