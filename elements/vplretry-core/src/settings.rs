// SPDX-License-Identifier: MPL-2.0

//! The limits of the loop and their defaults.

use std::time::Duration;

/// What becomes of a frame whose surface carries corruption flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CorruptedFrames {
    /// Published; the driver is told the flags.
    #[default]
    Mark,
    /// Discarded, counted, the reason named.
    Drop,
    /// Decoding ends with [`crate::Error::Corrupted`].
    Error,
}

/// Limits and policies. Every limit is a limit: no value means "for ever".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Frames that may be in flight at once: a frame is waited for when this many are pending.
    /// 0 counts as 1. Default 1: every frame is published as soon as it is decoded.
    pub async_depth: usize,
    /// Pause before a busy call is repeated. Default 1000 us; less than 1 us counts as 1 us.
    pub retry_interval: Duration,
    /// Busy or starved calls without progress before the loop gives up. 0 counts as 1.
    /// Default 60000.
    pub max_attempts: u32,
    /// Time without progress before the loop gives up; the attempts are checked first. Zero: the
    /// first busy call is the last. Default 60 s.
    pub retry_timeout: Duration,
    /// Longest wait for one sync point, before the device counts as lost. Default 60 s.
    pub sync_timeout: Duration,
    /// Longest single call of a wait; between two the loop looks whether it is cancelled.
    /// Zero counts as `retry_interval`. Default 20 ms.
    pub sync_slice: Duration,
    /// Calls that are repeated without a pause and make no progress, and access units of which
    /// nothing is consumed, before the loop gives up. 0 counts as 1. Default 1000.
    pub spin_guard: u32,
    /// Frames that one call of the loop may yield without consuming a byte. Default 1024.
    pub frame_guard: u32,
    /// New sessions after a device loss, without a frame in between, before the loop gives up.
    /// Default 3.
    pub device_retries: u32,
    /// Pause before the second new session in a row, doubled for each further one, at most
    /// [`Settings::MAX_RECOVERY_DELAY`]. The first is made at once. Default 100 ms.
    pub recovery_delay: Duration,
    /// Errors of the kind [`crate::Damage::UntilKeyframe`] in a row, without a frame in between,
    /// that make the loop ask for a new session. 0 counts as 1. Default 3.
    pub damage_streak: u32,
    /// Shortest time between two [`crate::Event::Retry`], and between two
    /// [`crate::Event::Starved`]. Default 1 s.
    pub report_interval: Duration,
    /// What becomes of corrupted frames.
    pub corrupted_frames: CorruptedFrames,
}

impl Settings {
    /// Longest pause between two new sessions.
    pub const MAX_RECOVERY_DELAY: Duration = Duration::from_secs(2);

    pub(crate) fn pause(&self) -> Duration {
        self.retry_interval.max(Duration::from_micros(1))
    }

    pub(crate) fn slice(&self) -> Duration {
        if self.sync_slice.is_zero() {
            self.pause()
        } else {
            self.sync_slice
        }
    }

    /// Pause before the new session number `done + 1` in a row.
    pub(crate) fn recovery_pause(&self, done: u32) -> Duration {
        match done.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => self
                .recovery_delay
                .saturating_mul(2_u32.saturating_pow(doublings))
                .min(Self::MAX_RECOVERY_DELAY),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            async_depth: 1,
            retry_interval: Duration::from_micros(1000),
            max_attempts: 60_000,
            retry_timeout: Duration::from_secs(60),
            sync_timeout: Duration::from_secs(60),
            sync_slice: Duration::from_millis(20),
            spin_guard: 1000,
            frame_guard: 1024,
            device_retries: 3,
            recovery_delay: Duration::from_millis(100),
            damage_streak: 3,
            report_interval: Duration::from_secs(1),
            corrupted_frames: CorruptedFrames::Mark,
        }
    }
}
