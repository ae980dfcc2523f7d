// SPDX-License-Identifier: MPL-2.0

//! Why a call of the session failed.

use std::time::Duration;

use crate::api::{FrameToken, GpuError};
use crate::calls::Call;

/// Why a call of [`Session`](crate::Session) failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting is out of its range.
    #[error("{0}")]
    Config(String),
    /// The ring is full and the session was told to refuse. Nothing was consumed: the same packet can be
    /// submitted again.
    #[error(
        "ring overflow: all {depth} slots are taken; submit the packet again later or let it wait"
    )]
    Overflow {
        /// Slots in use.
        depth: u8,
    },
    /// A token that is not greater than the one before it. The packet was not taken.
    #[error("token {} does not follow {}: tokens must grow", .got.0, .last.0)]
    Token {
        /// The packet's.
        got: FrameToken,
        /// The last one taken.
        last: FrameToken,
    },
    /// A flush is under way. The packet was not taken.
    #[error("the session is being flushed")]
    Flushing,
    /// The session was stopped. The packet was not taken.
    #[error("the session is stopped")]
    Stopped,
    /// The device cannot decode the stream.
    #[error("unsupported stream: {0}")]
    Unsupported(String),
    /// The device or library could not be opened.
    #[error("cannot open: {0}")]
    Open(GpuError),
    /// Another session's call into the same device does not return.
    #[error("the device is held by another session's {0}, which does not return")]
    DeviceBusy(Call),
    /// A new decoder and a new context did not help.
    #[error("the decoder failed, and failed again after a new decoder and a new context: {0}")]
    DeviceLost(GpuError),
    /// A call does not return. Stop the session: its threads are abandoned.
    #[error("{call} has not returned for {elapsed:?}")]
    Wedged {
        /// The call.
        call: Call,
        /// For how long.
        elapsed: Duration,
    },
    /// A flush could not end in time because the output still has a picture in its hands.
    #[error("the output has not returned for {0:?}")]
    OutputBusy(Duration),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// A thread of the session panicked: a defect of this program.
    #[error("the {0} thread panicked")]
    Panicked(&'static str),
}
