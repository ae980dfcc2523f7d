// SPDX-License-Identifier: MPL-2.0

//! The loop: feed an access unit, drain, flush.
//!
//! Each public call runs until its work is done, a limit is reached or the driver says that it is
//! cancelled. Between two calls the loop holds at most [`Settings::async_depth`] - 1 frames, whose
//! waits are not over.

mod publish;
mod repair;
mod step;

use std::collections::VecDeque;

use crate::budget::{RateLimit, Recoveries, Stall};
use crate::classify::{Damage, Fault};
use crate::driver::{Reset, VplDecodeDriver};
use crate::error::{Error, Limit};
use crate::event::Reason;
use crate::settings::Settings;
use crate::stats::Stats;
use crate::status::Status;

/// How a call of the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything the driver had was fed.
    NeedInput,
    /// The runtime has given everything and is reset.
    Drained,
    /// Everything that was pending is discarded and the runtime is reset.
    Flushed,
    /// An access unit could not be decoded and its rest was dropped, or a drain met an error before
    /// its end. The loop can go on.
    Damaged {
        /// The status that told it.
        status: Status,
        /// What is lost.
        damage: Damage,
    },
    /// The driver said that the loop is cancelled. What was pending still is; a
    /// [`flush`](FrameLoop::flush) discards it, [`feed`](FrameLoop::feed) goes on with it.
    Cancelled,
}

/// Why the work of a call stopped before its end.
#[derive(Debug)]
enum Stop<E> {
    Cancelled,
    Damaged {
        status: Status,
        damage: Damage,
    },
    /// A new session has replaced the old one; nothing of the old one is left to work on.
    Recovered,
    Failed(Error<E>),
}

impl<E> Stop<E> {
    fn driver(error: E) -> Self {
        Self::Failed(Error::Driver(error))
    }
}

type Run<T, D> = Result<T, Stop<<D as VplDecodeDriver>::Error>>;

/// A decoded frame whose wait is not over.
struct Pending<D: VplDecodeDriver> {
    surface: D::Surface,
    sync: Option<D::Sync>,
}

/// The decode loop. It owns its driver, and is `Send` where the driver and its types are.
pub struct FrameLoop<D: VplDecodeDriver> {
    /// Oldest first. Before the driver: surfaces go before the session.
    pending: VecDeque<Pending<D>>,
    driver: D,
    settings: Settings,
    stats: Stats,
    stall: Stall,
    recoveries: Recoveries,
    /// Access units in a row of which the runtime consumed nothing.
    hungry: u32,
    /// Frames since bytes were last consumed.
    frames_without_input: u32,
    /// Errors of the kind `Damage::UntilKeyframe` since a frame last came out.
    damage_streak: u32,
    /// Format of the last published frame.
    format: Option<D::Format>,
    /// The session is lost and not replaced yet.
    lost: Option<Status>,
    /// The parameters changed and were not read again yet.
    params_due: bool,
    /// The runtime was drained, or a drain was begun.
    reset_due: bool,
    /// The bitstream holds bytes to be fed without a refill: an access unit that was cancelled, or
    /// that the driver puts up again after a recovery.
    unfinished: bool,
    retry_reports: RateLimit,
    starved_reports: RateLimit,
}

impl<D: VplDecodeDriver> FrameLoop<D> {
    /// A loop without any input yet.
    pub fn new(driver: D, settings: Settings) -> Self {
        Self {
            pending: VecDeque::new(),
            driver,
            settings,
            stats: Stats::default(),
            stall: Stall::default(),
            recoveries: Recoveries::default(),
            hungry: 0,
            frames_without_input: 0,
            damage_streak: 0,
            format: None,
            lost: None,
            params_due: false,
            reset_due: false,
            unfinished: false,
            retry_reports: RateLimit::default(),
            starved_reports: RateLimit::default(),
        }
    }

    /// Decodes what the driver has: refills the bitstream and feeds it until the runtime wants more
    /// and the driver has no more. Frames that are complete by then are published.
    ///
    /// After [`End::Damaged`] the driver may have more; feed again.
    ///
    /// # Errors
    /// A limit was reached or decoding cannot go on; pending frames are discarded with
    /// [`Reason::Failed`].
    pub fn feed(&mut self) -> Result<End, Error<D::Error>> {
        let result = self.feed_all();
        self.settle(result, End::NeedInput)
    }

    /// Takes everything out of the runtime and resets it, so that it can be fed again.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn drain(&mut self) -> Result<End, Error<D::Error>> {
        let result = self.drain_all();
        self.settle(result, End::Drained)
    }

    /// For an input that the driver reads itself: feeds until its end, then drains.
    /// [`End::NeedInput`] where the driver has no input but is not at its end.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn run(&mut self) -> Result<End, Error<D::Error>> {
        match self.feed()? {
            End::NeedInput if self.driver.is_eof() => self.drain(),
            end => Ok(end),
        }
    }

    /// Publishes the pending frames that are complete, without waiting for any: for the time
    /// between two access units.
    ///
    /// # Errors
    /// As [`feed`](Self::feed).
    pub fn poll(&mut self) -> Result<End, Error<D::Error>> {
        let result = self.publish_ready();
        self.settle(result, End::NeedInput)
    }

    /// Discards everything that was fed and not published, and resets the runtime. Waits for
    /// nothing but the runtime's own reset.
    ///
    /// # Errors
    /// The runtime can neither be reset nor replaced.
    pub fn flush(&mut self) -> Result<End, Error<D::Error>> {
        self.discard_pending(Reason::Flushed);
        self.driver.drop_unit(Reason::Flushed);
        self.unfinished = false;
        self.hungry = 0;
        let result = match self.lost {
            Some(cause) => Err(self.recover(cause)),
            None => self.reset(Reset::Flushed),
        };
        self.settle(result, End::Flushed)
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, to hand it an access unit for example.
    pub fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Frames that are decoded and not published yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The limits, to change them between two calls.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Ends the loop and gives the driver back; pending frames are released.
    pub fn into_driver(self) -> D {
        self.driver
    }

    fn feed_all(&mut self) -> Run<(), D> {
        self.make_ready()?;
        loop {
            if self.refill()? {
                self.recoveries.renew();
                self.unit()?;
            } else if self.unfinished {
                self.unit()?;
            } else {
                match self.publish_ready() {
                    Err(Stop::Recovered) => {}
                    result => return result,
                }
            }
        }
    }

    fn refill(&mut self) -> Run<bool, D> {
        if self.driver.cancelled() {
            return Err(Stop::Cancelled);
        }
        Ok(self.driver.refill().map_err(Stop::driver)? > 0)
    }

    fn drain_all(&mut self) -> Run<(), D> {
        self.make_ready()?;
        self.recoveries.renew();
        let mut damage = None;
        loop {
            let result = if self.unfinished { self.unit() } else { Ok(()) };
            let result = note_damage(result, &mut damage)
                .and_then(|()| note_damage(self.run_dry(), &mut damage))
                .and_then(|()| self.publish_all())
                .and_then(|()| self.reset_drained());
            match result {
                Err(Stop::Recovered) if self.unfinished => {}
                Ok(()) | Err(Stop::Recovered) => break,
                Err(stop) => return Err(stop),
            }
        }
        match damage {
            Some((status, damage)) => Err(Stop::Damaged { status, damage }),
            None => Ok(()),
        }
    }

    /// The end of a drain: bytes that the runtime never took would stand before the parameter sets
    /// of what comes next.
    fn reset_drained(&mut self) -> Run<(), D> {
        if self.driver.bitstream_len() > 0 {
            self.driver.drop_unit(Reason::Leftover);
        }
        self.reset(Reset::Drained)
    }

    /// Brings the runtime back into a state in which it takes input, if an earlier call was
    /// cancelled on the way there.
    fn make_ready(&mut self) -> Run<(), D> {
        let result = if let Some(cause) = self.lost {
            Err(self.recover(cause))
        } else if self.reset_due {
            self.publish_all().and_then(|()| self.reset(Reset::Drained))
        } else {
            Ok(())
        };
        match result {
            Err(Stop::Recovered) => Ok(()),
            result => result,
        }
    }

    fn settle(&mut self, result: Run<(), D>, done: End) -> Result<End, Error<D::Error>> {
        match result {
            Ok(()) | Err(Stop::Recovered) => Ok(done),
            Err(Stop::Damaged { status, damage }) => Ok(End::Damaged { status, damage }),
            Err(Stop::Cancelled) => {
                self.stats.cancelled += 1;
                Ok(End::Cancelled)
            }
            Err(Stop::Failed(error)) => {
                self.discard_pending(Reason::Failed);
                Err(error)
            }
        }
    }

    fn fatal(&self, status: Status, fault: Fault) -> Stop<D::Error> {
        Stop::Failed(Error::Fatal {
            fault,
            status,
            implementation: self.driver.implementation().to_owned(),
        })
    }

    fn exhausted(&self, limit: Limit, attempts: u32, status: Status) -> Stop<D::Error> {
        Stop::Failed(Error::Exhausted(crate::Exhausted {
            attempts,
            limit,
            status,
            elapsed: self.stall.elapsed(self.driver.now()),
            pending: self.pending.len(),
            implementation: self.driver.implementation().to_owned(),
        }))
    }
}

/// A drain goes on past damage and tells it at its end.
fn note_damage<E>(
    result: Result<(), Stop<E>>,
    first: &mut Option<(Status, Damage)>,
) -> Result<(), Stop<E>> {
    match result {
        Err(Stop::Damaged { status, damage }) => {
            first.get_or_insert((status, damage));
            Ok(())
        }
        result => result,
    }
}
