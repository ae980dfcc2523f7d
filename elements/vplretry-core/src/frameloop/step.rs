// SPDX-License-Identifier: MPL-2.0

//! One `DecodeFrameAsync` call after the other.

use std::time::Duration;

use super::{FrameLoop, Pending, Run, Stop};
use crate::budget::{Repairs, Stall};
use crate::classify::{Action, Damage, Retry, classify};
use crate::driver::{Input, VplDecodeDriver, Wake};
use crate::error::{Error, Limit};
use crate::event::{Event, Reason};
use crate::status::Status;

/// What follows a step.
enum Step {
    /// Call again.
    Again,
    /// The access unit is used up, or the drain is complete.
    Done,
}

/// A call that has been classified. A surface is here only where it is a frame.
enum Call<D: VplDecodeDriver> {
    Frame {
        frame: Pending<D>,
        reread: bool,
    },
    Other {
        action: Action,
        token: Option<D::Sync>,
    },
}

/// The facts of a call that later decisions need.
#[derive(Clone, Copy)]
struct Facts {
    status: Status,
    /// When the call began.
    started: Duration,
    /// Bytes were consumed.
    consumed: bool,
}

impl<D: VplDecodeDriver> FrameLoop<D> {
    /// Feeds what is in the bitstream until it is used up or the runtime wants more.
    pub(super) fn unit(&mut self) -> Run<(), D> {
        self.unfinished = false;
        self.stall = Stall::default();
        self.frames_without_input = 0;
        let mut repairs = Repairs::default();
        loop {
            match self.step(Input::Bitstream, &mut repairs) {
                Ok(Step::Again) => {}
                Err(Stop::Recovered) if self.driver.bitstream_len() > 0 => {
                    self.unfinished = false;
                }
                Ok(Step::Done) | Err(Stop::Recovered) => return Ok(()),
                Err(stop) => {
                    match stop {
                        Stop::Damaged { status, .. } => {
                            self.driver.drop_unit(Reason::Damaged(status));
                        }
                        Stop::Cancelled => self.unfinished = self.driver.bitstream_len() > 0,
                        Stop::Recovered | Stop::Failed(_) => {}
                    }
                    return Err(stop);
                }
            }
        }
    }

    /// Takes out what the runtime holds.
    pub(super) fn run_dry(&mut self) -> Run<(), D> {
        self.reset_due = true;
        self.stall = Stall::default();
        self.frames_without_input = 0;
        let mut repairs = Repairs::default();
        while let Step::Again = self.step(Input::Drain, &mut repairs)? {}
        Ok(())
    }

    fn step(&mut self, input: Input, repairs: &mut Repairs) -> Run<Step, D> {
        // A call that was cancelled may have left this undone.
        self.read_parameters()?;
        let (call, facts) = self.decode(input)?;
        let status = facts.status;
        let (action, token) = match call {
            Call::Frame { frame, reread } => {
                self.params_due |= reread;
                self.accept(frame)?;
                self.read_parameters()?;
                return Ok(self.more(input));
            }
            Call::Other { action, token } => (action, token),
        };
        match action {
            Action::Retry(retry) => self.retry(retry, None, facts, input),
            Action::SyncThenRetry(retry) => self.retry(retry, token, facts, input),
            Action::NeedInput => self.need_input(facts),
            Action::Eos => Ok(Step::Done),
            Action::Reset if repairs.reset.take() => {
                self.reset_aborted().map(|()| self.more(input))
            }
            Action::Grow if repairs.grow.take() && self.driver.grow() => Ok(Step::Again),
            Action::Reset | Action::Grow => Err(self.damaged(status, Damage::Unit)),
            Action::Reinit(otherwise) => {
                if repairs.reinit.take() {
                    self.reinit(otherwise).map(|()| self.more(input))
                } else {
                    Err(self.reinit_refused(status, otherwise))
                }
            }
            Action::DeviceLost => Err(self.recover(status)),
            Action::Soft(damage) => Err(self.damaged(status, damage)),
            Action::Fatal(fault) => Err(self.fatal(status, fault)),
            // `decode` gives frames a call of their own.
            Action::Frame { .. } => Ok(self.more(input)),
        }
    }

    /// Makes one call and classifies it. A surface that is no frame is discarded here.
    fn decode(&mut self, input: Input) -> Run<(Call<D>, Facts), D> {
        if self.driver.cancelled() {
            return Err(Stop::Cancelled);
        }
        let before = self.driver.bitstream_len();
        let started = self.driver.now();
        let decoded = self.driver.decode_async(input);
        self.stats.attempts += 1;
        let facts = Facts {
            status: decoded.status,
            started,
            consumed: self.driver.bitstream_len() < before,
        };
        if facts.consumed {
            self.frames_without_input = 0;
            self.progress();
        }
        let action = classify(decoded.outcome(), input == Input::Drain);
        let call = match (action, decoded.surface) {
            (Action::Frame { reread }, Some(surface)) => {
                self.progress();
                Call::Frame {
                    frame: Pending {
                        surface,
                        sync: decoded.sync,
                    },
                    reread,
                }
            }
            (action, surface) => {
                if let Some(surface) = surface {
                    self.discard(surface, Reason::ErrorStatus(facts.status));
                }
                Call::Other {
                    action,
                    token: decoded.sync,
                }
            }
        };
        Ok((call, facts))
    }

    /// Bytes were consumed or a frame came: a new stretch begins.
    pub(super) fn progress(&mut self) {
        let calls = self.stall.attempts().saturating_add(1);
        self.stats.max_attempts_per_frame = self.stats.max_attempts_per_frame.max(calls);
        self.stall = Stall::default();
        self.hungry = 0;
    }

    /// An access unit that is used up is not fed again: an empty bitstream is no input.
    fn more(&self, input: Input) -> Step {
        if input == Input::Bitstream && self.driver.bitstream_len() == 0 {
            Step::Done
        } else {
            Step::Again
        }
    }

    fn accept(&mut self, frame: Pending<D>) -> Run<(), D> {
        self.pending.push_back(frame);
        self.frames_without_input += 1;
        if self.frames_without_input > self.settings.frame_guard {
            return Err(Stop::Failed(Error::Runaway {
                frames: self.frames_without_input,
                implementation: self.driver.implementation().to_owned(),
            }));
        }
        while self.pending.len() >= self.settings.async_depth.max(1) {
            self.publish_oldest()?;
        }
        Ok(())
    }

    /// Reads the parameters again if they changed.
    fn read_parameters(&mut self) -> Run<(), D> {
        if !std::mem::take(&mut self.params_due) {
            return Ok(());
        }
        self.stats.params_changed += 1;
        let status = self.driver.read_parameters().map_err(Stop::driver)?;
        if !status.is_error() {
            return Ok(());
        }
        Err(match self.hard_stop(status) {
            Some(stop) => stop,
            None => self.damaged(status, Damage::Unit),
        })
    }

    fn need_input(&mut self, facts: Facts) -> Run<Step, D> {
        let len = self.driver.bitstream_len();
        if facts.consumed || len == 0 {
            return Ok(Step::Done);
        }
        if len >= self.driver.buffer_size() && !self.driver.is_eof() {
            return Err(Stop::Failed(Error::BitstreamFull {
                size: len,
                implementation: self.driver.implementation().to_owned(),
            }));
        }
        self.hungry = self.hungry.saturating_add(1);
        if self.hungry >= self.settings.spin_guard.max(1) {
            return Err(self.exhausted(Limit::NoConsumption, self.hungry, facts.status));
        }
        Ok(Step::Done)
    }

    /// A call that brought nothing: charges it, waits as its kind asks, and lets it be repeated.
    fn retry(
        &mut self,
        retry: Retry,
        token: Option<D::Sync>,
        facts: Facts,
        input: Input,
    ) -> Run<Step, D> {
        self.stall.charge(retry, facts.started);
        match retry {
            Retry::Now | Retry::ReadParams => {
                self.stats.spins += 1;
                self.params_due |= retry == Retry::ReadParams;
                self.check_limits(facts.status)?;
                if let Some(token) = token {
                    self.wait_token(&token)?;
                }
                self.read_parameters()?;
                return Ok(self.more(input));
            }
            Retry::Busy => self.stats.busy += 1,
            Retry::Starved => self.stats.starved += 1,
        }

        let mut pause = self.settings.pause();
        if let Some(token) = &token
            && !self.stall.token_used
        {
            if self.pending.is_empty() {
                self.check_limits(facts.status)?;
            }
            self.stall.token_used = true;
            self.wait_token(token)?;
            return Ok(Step::Again);
        }
        if !self.pending.is_empty() {
            self.publish_oldest()?;
            return Ok(Step::Again);
        }
        self.check_limits(facts.status)?;
        self.report(retry, facts.status);
        if let Some(token) = &token {
            // A wait that lasted was pause enough; some runtimes give sync points that never do.
            pause = pause.saturating_sub(self.wait_token(token)?);
        }
        self.back_off(pause)?;
        Ok(Step::Again)
    }

    fn check_limits(&self, status: Status) -> Run<(), D> {
        match self.stall.exceeded(&self.settings, self.driver.now()) {
            Some(limit) => Err(self.exhausted(limit, self.stall.attempts(), status)),
            None => Ok(()),
        }
    }

    fn report(&mut self, retry: Retry, status: Status) {
        let now = self.driver.now();
        let interval = self.settings.report_interval;
        let attempts = self.stall.attempts();
        let elapsed = self.stall.elapsed(now);
        let event = match retry {
            Retry::Starved if self.starved_reports.allows(now, interval) => Event::Starved {
                status,
                attempts,
                elapsed,
            },
            Retry::Busy if self.retry_reports.allows(now, interval) => Event::Retry {
                status,
                attempts,
                elapsed,
            },
            _ => return,
        };
        self.driver.on_event(&event, &self.stats);
    }

    /// Pauses, but not past the deadline.
    fn back_off(&mut self, pause: Duration) -> Run<(), D> {
        let started = self.driver.now();
        let left = self
            .settings
            .retry_timeout
            .saturating_sub(self.stall.elapsed(started));
        let pause = pause.min(left);
        if pause.is_zero() {
            return Ok(());
        }
        let wake = self.driver.backoff(pause);
        self.stats.busy_time += self.driver.now().saturating_sub(started);
        match wake {
            Wake::Elapsed => Ok(()),
            Wake::Cancelled => Err(Stop::Cancelled),
        }
    }
}
