// SPDX-License-Identifier: MPL-2.0

//! Reset, re-initialisation, a new session, and what is given up.

use super::{FrameLoop, Run, Stop};
use crate::classify::{Action, Damage, Fault, Otherwise, Outcome, classify};
use crate::driver::{Reset, VplDecodeDriver, Wake};
use crate::error::Error;
use crate::event::{Event, Reason};
use crate::status::Status;

impl<D: VplDecodeDriver> FrameLoop<D> {
    /// Resets the runtime; a runtime that cannot be reset is replaced.
    pub(super) fn reset(&mut self, why: Reset) -> Run<(), D> {
        self.stats.resets += 1;
        let status = self.driver.reset(why).map_err(Stop::driver)?;
        if status.is_error() {
            return Err(self.recover(status));
        }
        self.reset_due = false;
        Ok(())
    }

    pub(super) fn reset_aborted(&mut self) -> Run<(), D> {
        self.publish_all()?;
        self.reset(Reset::Aborted)
    }

    /// Drains, publishes everything and initialises the runtime from the bytes it did not consume.
    pub(super) fn reinit(&mut self, otherwise: Otherwise) -> Run<(), D> {
        match self.run_dry() {
            Ok(()) | Err(Stop::Damaged { .. }) => {}
            result => return result,
        }
        self.publish_all()?;
        self.stats.reinits += 1;
        self.params_due = false;
        let status = self.driver.reinit().map_err(Stop::driver)?;
        self.reset_due = false;
        if !status.is_error() {
            return Ok(());
        }
        Err(match self.hard_stop(status) {
            Some(stop) => stop,
            None if status == Status::MEMORY_ALLOC => self.fatal(status, Fault::NoMemory),
            None => self.reinit_refused(status, otherwise),
        })
    }

    /// A re-initialisation that failed, or a second request within one access unit.
    pub(super) fn reinit_refused(
        &mut self,
        status: Status,
        otherwise: Otherwise,
    ) -> Stop<D::Error> {
        match otherwise {
            Otherwise::Soft => self.damaged(status, Damage::UntilKeyframe),
            Otherwise::Fatal => self.fatal(status, Fault::NoMemory),
        }
    }

    /// What an error of a call other than `DecodeFrameAsync` leads to where it means the same
    /// everywhere: a lost device, and what no call can mend.
    pub(super) fn hard_stop(&mut self, status: Status) -> Option<Stop<D::Error>> {
        let outcome = Outcome {
            status,
            has_surface: false,
            has_sync: false,
        };
        match classify(outcome, true) {
            Action::DeviceLost => Some(self.recover(status)),
            Action::Fatal(fault) => Some(self.fatal(status, fault)),
            _ => None,
        }
    }

    pub(super) fn damaged(&mut self, status: Status, damage: Damage) -> Stop<D::Error> {
        self.stats.damaged += 1;
        match self.note_streak(status, damage) {
            Ok(()) => Stop::Damaged { status, damage },
            Err(stop) => stop,
        }
    }

    /// Counts damage that lasts until a key frame; a streak of it calls for a new session while
    /// there is one to be had.
    pub(super) fn note_streak(&mut self, status: Status, damage: Damage) -> Run<(), D> {
        if damage == Damage::Unit {
            return Ok(());
        }
        self.damage_streak += 1;
        if self.damage_streak >= self.settings.damage_streak.max(1)
            && self.recoveries.used() < self.settings.device_retries
        {
            return Err(self.recover(status));
        }
        Ok(())
    }

    /// Gives the lost session up and makes a new one: [`Stop::Recovered`], or why there is none.
    pub(super) fn recover(&mut self, cause: Status) -> Stop<D::Error> {
        self.lost = Some(cause);
        let frames_lost = self.discard_pending(Reason::DeviceLost(cause));
        let mut status = cause;
        loop {
            let used = self.recoveries.used();
            if self.driver.cancelled() {
                return Stop::Cancelled;
            }
            if used >= self.settings.device_retries {
                return Stop::Failed(Error::DeviceLost {
                    status,
                    recoveries: used,
                    implementation: self.driver.implementation().to_owned(),
                });
            }
            let pause = self.settings.recovery_pause(used);
            if !pause.is_zero() && self.driver.backoff(pause) == Wake::Cancelled {
                return Stop::Cancelled;
            }
            self.recoveries.take();
            self.stats.recoveries += 1;
            status = match self.driver.recover(cause) {
                Ok(status) => status,
                Err(error) => return Stop::driver(error),
            };
            if !status.is_error() {
                break;
            }
        }
        self.lost = None;
        self.params_due = false;
        self.reset_due = false;
        self.damage_streak = 0;
        self.hungry = 0;
        self.stall = Default::default();
        self.unfinished = self.driver.bitstream_len() > 0;
        let event = Event::Recovered {
            cause,
            attempts: self.recoveries.used(),
            frames_lost,
        };
        self.driver.on_event(&event, &self.stats);
        Stop::Recovered
    }
}
