// SPDX-License-Identifier: MPL-2.0

//! What the loop tells its driver while it runs.

use std::fmt;
use std::time::Duration;

use crate::classify::Damage;
use crate::driver::Corruption;
use crate::status::Status;

/// Something worth a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The device is busy and the loop is about to pause. At most one per report interval.
    Retry {
        /// The status that was returned.
        status: Status,
        /// Calls without progress so far.
        attempts: u32,
        /// Time since the first of them.
        elapsed: Duration,
    },
    /// No surface is free, no frame is pending, and the loop is about to pause: everything is held
    /// downstream. At most one per report interval.
    Starved {
        /// The status that was returned.
        status: Status,
        /// Calls without progress so far.
        attempts: u32,
        /// Time since the first of them.
        elapsed: Duration,
    },
    /// A wait for a frame or a sync point goes on; told once per report interval.
    Waiting {
        /// The status that was returned last.
        status: Status,
        /// Time since the wait began.
        elapsed: Duration,
    },
    /// A new session replaces a lost one.
    Recovered {
        /// The status that told the loss.
        cause: Status,
        /// New sessions that were tried, this one included.
        attempts: u32,
        /// Decoded frames that were pending and are lost.
        frames_lost: u32,
    },
    /// A frame carries corruption flags. Told before the frame is published or discarded.
    Corrupted(Corruption),
    /// The wait for a decoded frame failed; the frame was discarded.
    FrameLost {
        /// The status of the wait.
        status: Status,
        /// What is lost with it.
        damage: Damage,
    },
}

/// Why a frame or an access unit was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The surface came with an error status.
    ErrorStatus(Status),
    /// The wait for the frame failed.
    WaitFailed(Status),
    /// The device was lost while the frame was pending.
    DeviceLost(Status),
    /// The frame is corrupted and corrupted frames are not wanted.
    Corrupted(Corruption),
    /// The runtime could not decode the access unit.
    Damaged(Status),
    /// A flush.
    Flushed,
    /// The stream was drained and the runtime never took these bytes.
    Leftover,
    /// Decoding ended with an error while the frame was pending.
    Failed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ErrorStatus(status) => write!(f, "surface returned with {status}"),
            Self::WaitFailed(status) => write!(f, "waiting for the frame failed with {status}"),
            Self::DeviceLost(status) => write!(f, "device lost with {status}"),
            Self::Corrupted(corruption) => write!(f, "corrupted ({corruption})"),
            Self::Damaged(status) => write!(f, "not decodable, {status}"),
            Self::Flushed => f.write_str("flushed"),
            Self::Leftover => f.write_str("never taken by the runtime before the drain"),
            Self::Failed => f.write_str("decoding ended with an error"),
        }
    }
}
