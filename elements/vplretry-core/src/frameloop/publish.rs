// SPDX-License-Identifier: MPL-2.0

//! Waiting for frames and handing them out, oldest first.

use std::time::Duration;

use super::{FrameLoop, Run, Stop};
use crate::classify::{Damage, Fault, SyncAction, classify_sync};
use crate::driver::{Corruption, VplDecodeDriver, Wake};
use crate::error::Error;
use crate::event::{Event, Reason};
use crate::settings::{CorruptedFrames, Settings};
use crate::stats::Stats;
use crate::status::Status;

/// How a wait ended.
enum Waited {
    Done { partial_output: bool },
    NotYet,
    FrameLost(Status, Damage),
    DeviceLost(Status),
    TimedOut(Status),
    Fatal(Status, Fault),
    Cancelled,
}

impl From<Status> for Waited {
    fn from(status: Status) -> Self {
        match classify_sync(status) {
            SyncAction::Done => Self::Done {
                partial_output: false,
            },
            SyncAction::DonePartial => Self::Done {
                partial_output: true,
            },
            SyncAction::WaitAgain => Self::NotYet,
            SyncAction::FrameLost(damage) => Self::FrameLost(status, damage),
            SyncAction::DeviceLost => Self::DeviceLost(status),
            SyncAction::Fatal(fault) => Self::Fatal(status, fault),
        }
    }
}

/// Waits in slices, at most for the sync timeout. `wait` makes one call of at most the given time.
fn wait_sliced<D: VplDecodeDriver>(
    driver: &mut D,
    settings: &Settings,
    stats: &Stats,
    wait: impl Fn(&mut D, Duration) -> Status,
) -> Waited {
    let started = driver.now();
    let mut slice = settings.slice().min(settings.sync_timeout);
    let mut reported = started;
    loop {
        if driver.cancelled() {
            return Waited::Cancelled;
        }
        let called = driver.now();
        let status = wait(driver, slice);
        let waited = Waited::from(status);
        if !matches!(waited, Waited::NotYet) {
            return waited;
        }
        let now = driver.now();
        let left = settings
            .sync_timeout
            .saturating_sub(now.saturating_sub(started));
        if left.is_zero() {
            return Waited::TimedOut(status);
        }
        if now.saturating_sub(reported) >= settings.report_interval {
            reported = now;
            let elapsed = now.saturating_sub(started);
            driver.on_event(&Event::Waiting { status, elapsed }, stats);
        }
        // A call that returned before its time did not wait: do not spin.
        if now.saturating_sub(called) < slice
            && driver.backoff(settings.pause().min(left)) == Wake::Cancelled
        {
            return Waited::Cancelled;
        }
        slice = settings.slice().min(left);
    }
}

impl<D: VplDecodeDriver> FrameLoop<D> {
    /// Waits for the oldest pending frame and publishes it; without one, nothing.
    pub(super) fn publish_oldest(&mut self) -> Run<(), D> {
        let Some(front) = self.pending.front() else {
            return Ok(());
        };
        let waited = wait_sliced(
            &mut self.driver,
            &self.settings,
            &self.stats,
            |driver, slice| driver.wait_frame(&front.surface, front.sync.as_ref(), slice),
        );
        self.conclude(waited)
    }

    pub(super) fn publish_all(&mut self) -> Run<(), D> {
        while !self.pending.is_empty() {
            self.publish_oldest()?;
        }
        Ok(())
    }

    /// Publishes from the front what is complete, without waiting.
    pub(super) fn publish_ready(&mut self) -> Run<(), D> {
        while let Some(front) = self.pending.front() {
            if self.driver.cancelled() {
                return Err(Stop::Cancelled);
            }
            let status =
                self.driver
                    .wait_frame(&front.surface, front.sync.as_ref(), Duration::ZERO);
            match Waited::from(status) {
                Waited::NotYet => break,
                waited => self.conclude(waited)?,
            }
        }
        Ok(())
    }

    /// Acts on the end of a wait for the oldest pending frame.
    fn conclude(&mut self, waited: Waited) -> Run<(), D> {
        match waited {
            Waited::Done { partial_output } => match self.pending.pop_front() {
                Some(frame) => self.deliver(frame.surface, partial_output),
                None => Ok(()),
            },
            Waited::FrameLost(status, damage) => {
                if let Some(frame) = self.pending.pop_front() {
                    self.discard(frame.surface, Reason::WaitFailed(status));
                }
                let event = Event::FrameLost { status, damage };
                self.driver.on_event(&event, &self.stats);
                self.note_streak(status, damage)
            }
            other => self.conclude_lost(other),
        }
    }

    /// The ends of a wait that mean the same with and without a frame.
    fn conclude_lost(&mut self, waited: Waited) -> Run<(), D> {
        match waited {
            Waited::DeviceLost(status) => Err(self.recover(status)),
            Waited::TimedOut(status) => {
                self.stats.sync_timeouts += 1;
                Err(self.recover(status))
            }
            Waited::Fatal(status, fault) => Err(self.fatal(status, fault)),
            Waited::Cancelled => Err(Stop::Cancelled),
            Waited::Done { .. } | Waited::NotYet | Waited::FrameLost(..) => Ok(()),
        }
    }

    /// Waits for a sync point that came without a surface and returns how long that took. It is
    /// no progress however it ends, and no frame hangs on it.
    pub(super) fn wait_token(&mut self, token: &D::Sync) -> Run<Duration, D> {
        let started = self.driver.now();
        let waited = wait_sliced(
            &mut self.driver,
            &self.settings,
            &self.stats,
            |driver, slice| driver.wait_token(token, slice),
        );
        let took = self.driver.now().saturating_sub(started);
        self.stats.tokens += 1;
        self.stats.busy_time += took;
        self.conclude_lost(waited)?;
        Ok(took)
    }

    fn deliver(&mut self, surface: D::Surface, partial_output: bool) -> Run<(), D> {
        self.progress();
        self.recoveries.note_frame();
        self.damage_streak = 0;
        let corruption = Corruption {
            flags: self.driver.corruption(&surface),
            partial_output,
        };
        if !corruption.is_clean() {
            self.stats.corrupted += 1;
            self.driver
                .on_event(&Event::Corrupted(corruption), &self.stats);
            match self.settings.corrupted_frames {
                CorruptedFrames::Mark => {}
                CorruptedFrames::Drop => {
                    self.discard(surface, Reason::Corrupted(corruption));
                    return Ok(());
                }
                CorruptedFrames::Error => {
                    self.discard(surface, Reason::Corrupted(corruption));
                    return Err(Stop::Failed(Error::Corrupted(corruption)));
                }
            }
        }
        let format = self.driver.format(&surface);
        if self.format.as_ref() != Some(&format) {
            self.stats.format_changes += 1;
            self.driver.format_changed(&format).map_err(Stop::driver)?;
            self.format = Some(format);
        }
        self.stats.frames += 1;
        self.driver
            .publish(surface, corruption)
            .map_err(Stop::driver)
    }

    pub(super) fn discard(&mut self, surface: D::Surface, reason: Reason) {
        self.stats.discarded += 1;
        self.driver.discard(surface, reason);
    }

    /// Discards all pending frames, oldest first; returns how many.
    pub(super) fn discard_pending(&mut self, reason: Reason) -> u32 {
        let mut count = 0;
        while let Some(frame) = self.pending.pop_front() {
            self.discard(frame.surface, reason);
            count += 1;
        }
        count
    }
}
