// SPDX-License-Identifier: MPL-2.0

//! How windows are made.

use std::num::NonZeroU64;

use super::{ConfigError, MAX_HISTORY};
use crate::chunks::MAX_FIRST_FRAME;
use crate::clock::Cut;
use crate::pool::Methods;

/// How the windows of a session work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Pooling methods, the same for all windows.
    pub methods: Methods,
    /// Windows pool the frames whose index is a multiple of this.
    pub n_subsample: NonZeroU64,
    /// Final frames kept for late windows and [`super::Windows::frame_score`]; at most
    /// [`MAX_HISTORY`].
    pub history: usize,
    /// Index of the first frame, at most [`MAX_FIRST_FRAME`].
    pub first_frame: u64,
    /// Consecutive windows the whole stream is cut into, if any.
    pub cut: Option<Cut>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            methods: Methods::ALL,
            n_subsample: NonZeroU64::MIN,
            history: 4096,
            first_frame: 0,
            cut: None,
        }
    }
}

impl Config {
    /// Whether windows pool the frame.
    pub(super) fn is_scored(&self, frame: u64) -> bool {
        frame.is_multiple_of(self.n_subsample.get())
    }

    /// Whether it can be.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let Self {
            history,
            first_frame,
            ..
        } = *self;
        if history > MAX_HISTORY {
            return Err(ConfigError::History { history });
        }
        if first_frame > MAX_FIRST_FRAME {
            return Err(ConfigError::FirstFrame { first_frame });
        }
        Ok(())
    }

    /// The first pooled frame of `first..=last`, if any is.
    pub(super) fn first_scored(&self, first: u64, last: u64) -> Option<u64> {
        let frame = first.checked_next_multiple_of(self.n_subsample.get())?;
        (frame <= last).then_some(frame)
    }

    /// The last pooled frame at or before `frame`.
    pub(super) fn scored_until(&self, frame: u64) -> u64 {
        frame - frame % self.n_subsample
    }
}
