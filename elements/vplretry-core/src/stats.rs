// SPDX-License-Identifier: MPL-2.0

//! Counters of the loop.

use std::time::Duration;

/// Counters since the loop was made; none is ever reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Frames published.
    pub frames: u64,
    /// `DecodeFrameAsync` calls.
    pub attempts: u64,
    /// Calls that found the device busy.
    pub busy: u64,
    /// Calls that found no free surface.
    pub starved: u64,
    /// Calls repeated without a pause and without progress.
    pub spins: u64,
    /// Time spent in pauses and in waits for sync points without a frame.
    pub busy_time: Duration,
    /// Sync points without a surface that were waited for.
    pub tokens: u64,
    /// Most calls that one step of progress (a frame, or bytes consumed) has needed.
    pub max_attempts_per_frame: u32,
    /// Re-initialisations within the session.
    pub reinits: u64,
    /// Resets of the runtime.
    pub resets: u64,
    /// New sessions made after a device loss.
    pub recoveries: u64,
    /// Frames that carried corruption flags.
    pub corrupted: u64,
    /// Surfaces that were not published, for whatever reason.
    pub discarded: u64,
    /// Access units, or ends of a drain, with a soft error.
    pub damaged: u64,
    /// Waits that ended at the sync timeout.
    pub sync_timeouts: u64,
    /// Parameters read again after `MFX_WRN_VIDEO_PARAM_CHANGED`.
    pub params_changed: u64,
    /// Changes of the output format, the first frame's included.
    pub format_changes: u64,
    /// Calls of the loop that were cancelled.
    pub cancelled: u64,
}
