// SPDX-License-Identifier: MPL-2.0

//! Why the loop gave up.

use std::time::Duration;

use thiserror::Error as ThisError;

use crate::classify::Fault;
use crate::driver::Corruption;
use crate::status::Status;

/// Which limit ended a stretch without progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// [`crate::Settings::max_attempts`].
    Attempts,
    /// [`crate::Settings::retry_timeout`].
    Deadline,
    /// [`crate::Settings::spin_guard`], of calls repeated without a pause.
    SpinGuard,
    /// [`crate::Settings::spin_guard`], of access units of which nothing was consumed.
    NoConsumption,
}

impl Limit {
    fn explanation(self) -> &'static str {
        match self {
            Self::Attempts => "attempt limit reached",
            Self::Deadline => "time limit reached",
            Self::SpinGuard => "the runtime neither delivers nor consumes",
            Self::NoConsumption => "the runtime asks for more data and consumes none",
        }
    }
}

/// A stretch without progress that reached a limit.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
#[error(
    "DecodeFrameAsync yielded no frame after {attempts} attempts: {}; last status {status}, \
     {} ms without progress, {pending} frames pending, implementation {implementation}",
    limit.explanation(),
    elapsed.as_millis()
)]
pub struct Exhausted {
    /// Calls without progress.
    pub attempts: u32,
    /// The limit that was reached.
    pub limit: Limit,
    /// Status of the last call.
    pub status: Status,
    /// Time since the first of these calls began; zero with [`Limit::NoConsumption`], where the
    /// access units may have come any time apart.
    pub elapsed: Duration,
    /// Decoded frames that were pending.
    pub pending: usize,
    /// The implementation's name.
    pub implementation: String,
}

/// Why the loop gave up. `E` is the driver's own error.
#[derive(Debug, Clone, PartialEq, Eq, ThisError)]
pub enum Error<E> {
    /// A limit was reached without progress.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The device was lost and no new session could be made, or none gave a frame.
    #[error(
        "device lost with {status}, no frame after {recoveries} new sessions, \
         implementation {implementation}"
    )]
    DeviceLost {
        /// The last status that told the loss.
        status: Status,
        /// New sessions that were tried.
        recoveries: u32,
        /// The implementation's name.
        implementation: String,
    },
    /// A status that no call can mend.
    #[error("{}: {status}, implementation {implementation}", fault_text(*.fault))]
    Fatal {
        /// What it means.
        fault: Fault,
        /// The status.
        status: Status,
        /// The implementation's name.
        implementation: String,
    },
    /// The bitstream buffer is full and the runtime consumes nothing of it.
    #[error(
        "the bitstream buffer of {size} bytes is full and the runtime asks for more data \
         without consuming any, implementation {implementation}"
    )]
    BitstreamFull {
        /// Bytes in the buffer.
        size: usize,
        /// The implementation's name.
        implementation: String,
    },
    /// The runtime goes on delivering frames without consuming anything.
    #[error(
        "the runtime delivered {frames} frames without consuming any data, \
         implementation {implementation}"
    )]
    Runaway {
        /// Frames it delivered.
        frames: u32,
        /// The implementation's name.
        implementation: String,
    },
    /// A corrupted frame, where the settings ask to end with one.
    #[error("corrupted frame ({0}), and corrupted frames are to be treated as an error")]
    Corrupted(Corruption),
    /// The driver's own error.
    #[error(transparent)]
    Driver(E),
}

fn fault_text(fault: Fault) -> &'static str {
    match fault {
        Fault::Usage => "the runtime refuses the call as wrong",
        Fault::Unsupported => "the stream or a function is not supported",
        Fault::NoMemory => "out of memory, also after a re-initialisation",
        Fault::NotForDecoding => "the runtime returned a status that decoding cannot return",
    }
}

/// The kinds of [`Error`] that an application tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The device stayed busy.
    Busy,
    /// No surface became free: downstream holds them.
    Starved,
    /// The runtime answers but gets nowhere.
    NoProgress,
    /// The device is gone.
    DeviceLost,
    /// The implementation cannot decode this.
    Unsupported,
    /// Out of memory.
    NoMemory,
    /// A wrong call or a status that does not belong here: a defect of the driver or the runtime.
    Internal,
    /// The stream is damaged.
    Stream,
    /// The driver's own.
    Driver,
}

impl<E> Error<E> {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Exhausted(Exhausted { limit, status, .. }) => match limit {
                Limit::SpinGuard | Limit::NoConsumption => ErrorKind::NoProgress,
                Limit::Attempts | Limit::Deadline if status.is_starvation() => ErrorKind::Starved,
                Limit::Attempts | Limit::Deadline => ErrorKind::Busy,
            },
            Self::DeviceLost { .. } => ErrorKind::DeviceLost,
            Self::Fatal { fault, .. } => match fault {
                Fault::Unsupported => ErrorKind::Unsupported,
                Fault::NoMemory => ErrorKind::NoMemory,
                Fault::Usage | Fault::NotForDecoding => ErrorKind::Internal,
            },
            Self::BitstreamFull { .. } | Self::Runaway { .. } => ErrorKind::NoProgress,
            Self::Corrupted(_) => ErrorKind::Stream,
            Self::Driver(_) => ErrorKind::Driver,
        }
    }
}
