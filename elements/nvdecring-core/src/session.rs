// SPDX-License-Identifier: MPL-2.0

//! The session: what a caller holds.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{GpuApi, Packet};
use crate::calls::{Call, Role};
use crate::clock::{Clock, Join};
use crate::config::{Config, Overflow};
use crate::error::Error;
use crate::gate::DeviceGate;
use crate::ledger::Stats;
use crate::output::{Observer, Sink};
use crate::parser::Parser;
use crate::state::{Job, Party, Shared, Step};
use crate::sync::{Mutex, PoisonError};
use crate::worker::Worker;

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// The calls that did not return. Their threads are abandoned: each keeps what it needs alive, and ends
    /// by itself if the call returns one day. Empty when everything was destroyed, or when a thread is in
    /// the output.
    pub stuck: Vec<Call>,
    /// Whether both threads have ended.
    pub clean: bool,
    /// The account.
    pub stats: Stats,
}

/// A decoding session with its two threads.
///
/// Packets go in with [`submit`](Self::submit), from one thread; pictures come out of the [`Sink`]. Every
/// other call may come from any thread at any time. No call waits without a limit for the device; for the
/// output [`submit`](Self::submit) and [`drain`](Self::drain) wait as long as it blocks, and a flush or stop
/// ends that.
pub struct Session<G: GpuApi> {
    shared: Arc<Shared<G>>,
    threads: Mutex<Vec<Join>>,
}

/// Says that a thread has ended, also by a panic.
struct Exit<G: GpuApi> {
    shared: Arc<Shared<G>>,
    role: Role,
}

impl<G: GpuApi> Drop for Exit<G> {
    fn drop(&mut self) {
        let panicked = std::thread::panicking();
        if self.role == Role::Worker {
            // Nobody will empty the slots now. They may be the last to keep the decoder, if the parser thread
            // did not wait for this one.
            let slots = self.shared.with(|state| state.take_slots());
            drop(slots);
        }
        self.shared.with(|state| {
            if panicked {
                state.fail(Error::Panicked(self.role.name()));
                state.calls.leave(self.role);
                state.delivering &= self.role != Role::Worker;
            }
            state.exited[self.role as usize] = true;
        });
    }
}

impl<G: GpuApi> Session<G> {
    /// Starts the threads and opens a context and a parser.
    ///
    /// # Errors
    /// [`Error::Config`], [`Error::Thread`], [`Error::Open`], [`Error::DeviceBusy`], or [`Error::Wedged`]
    /// where opening does not return within `open_timeout`.
    pub fn open(
        api: Arc<G>,
        gate: Arc<DeviceGate>,
        config: Config,
        sink: Box<dyn Sink<G>>,
        observer: Observer,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        config.check()?;
        let shared = Arc::new(Shared::new(config, clock, observer));
        let session = Self {
            shared: shared.clone(),
            threads: Mutex::default(),
        };
        // Where a thread cannot be started its guard is dropped, and so counts as ended.
        let [on_worker, on_parser] = [Role::Worker, Role::Parser].map(|role| Exit {
            shared: shared.clone(),
            role,
        });
        let worker = Worker::new(shared.clone(), api.clone(), sink);
        session.spawn(on_worker, move || worker.run())?;
        let parser = Parser::new(shared.clone(), api, gate);
        session.spawn(on_parser, move || parser.run())?;
        // On an error the session is dropped here, which stops it.
        shared.watch(|state, _| match (&state.fatal, state.opened) {
            (Some(error), _) => Step::Done(Err(error.clone())),
            (None, true) => Step::Done(Ok(())),
            (None, false) => Step::Wait(None),
        })?;
        Ok(session)
    }

    fn spawn(&self, exit: Exit<G>, body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = self.shared.clock.spawn(
            &format!("nvdecring-{}", exit.role.name()),
            Box::new(move || {
                let _exit = exit;
                body();
            }),
        );
        match thread {
            Ok(join) => {
                self.threads
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(join);
                Ok(())
            }
            Err(error) => Err(Error::Thread(error.to_string())),
        }
    }

    /// Gives a packet to the parser and waits until it has been parsed, and the pictures it showed have slots;
    /// with [`packets_ahead`](Config::packets_ahead), until there is room for it among the packets that wait to
    /// be parsed. `Ok` means that it was taken: its token comes out of the sink, or is counted as flushed.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Token`], [`Error::Flushing`], [`Error::Stopped`]: not taken. All
    /// others: the session cannot go on; stop it.
    pub fn submit(&self, packet: Packet) -> Result<(), Error> {
        let mut packet = Some(packet);
        let ahead = self.shared.config.ahead();
        let job = self.shared.watch(|state, now| {
            if let Some(error) = state.refusal() {
                return Step::Done(Err(error));
            }
            if state.unfinished() > ahead {
                return Step::Wait(None);
            }
            if self.shared.config.overflow == Overflow::Fail && state.ring.is_full() {
                state.ledger.stats.overflows += 1;
                return Step::Done(Err(Error::Overflow {
                    depth: state.ring.depth(),
                }));
            }
            let Some(packet) = packet.take() else {
                return Step::Done(Err(Error::Stopped));
            };
            if let Err(error) = state.ledger.submit(packet.token, now) {
                return Step::Done(Err(error));
            }
            Step::Done(Ok(state.post(Job::Packet(packet))))
        })?;
        self.shared.wake(Party::Parser);
        if ahead > 0 {
            return Ok(());
        }
        self.finish(job)
    }

    /// Shows and hands out everything that was submitted, and returns when the output has it. The next
    /// packet starts a new stream.
    ///
    /// # Errors
    /// [`Error::Flushing`] where a flush overtakes it, [`Error::Stopped`]; all others as at
    /// [`submit`](Self::submit).
    pub fn drain(&self) -> Result<(), Error> {
        let (job, epoch) = self.shared.watch(|state, _| {
            if let Some(error) = state.refusal() {
                return Step::Done(Err(error));
            }
            if state.unfinished() > 0 {
                return Step::Wait(None);
            }
            Step::Done(Ok((state.post(Job::Drain), state.epoch)))
        })?;
        self.shared.wake(Party::Parser);
        self.finish(job)?;
        if self.shared.read(|state| state.epoch != epoch) {
            return Err(Error::Flushing);
        }
        Ok(())
    }

    /// Forgets everything on its way and replaces the parser; the decoder stays. When this returns, no
    /// picture submitted before reaches the output any more. Gives the number of packets that were
    /// overtaken. Must not be called by the sink.
    ///
    /// # Errors
    /// [`Error::OutputBusy`] where the output still holds a picture after `wedge_timeout`;
    /// [`Error::Stopped`]; all others: the session cannot go on.
    pub fn flush(&self) -> Result<u64, Error> {
        let (flushed, started, jobs) = self.shared.watch(|state, now| {
            if let Some(error) = state.end() {
                return Step::Done(Err(error));
            }
            if state.flushing {
                return Step::Wait(None);
            }
            state.flushing = true;
            state.epoch += 1;
            state.ring.abandon();
            state.dropped.clear();
            state.pictures.forget_tokens();
            let jobs = state.take_jobs_back();
            Step::Done(Ok((state.ledger.flush(), now, jobs)))
        })?;
        self.shared.wake_all();
        drop(jobs);
        let result = self.finish_flush(started);
        self.shared.with(|state| state.flushing = false);
        result.map(|()| flushed)
    }

    fn finish_flush(&self, started: Duration) -> Result<(), Error> {
        let limit = self.shared.config.wedge_timeout;
        let job = self.shared.watch(|state, now| {
            if let Some(error) = state.end() {
                Step::Done(Err(error))
            } else if state.unfinished() > 0 {
                Step::Wait(None)
            } else if state.delivering && now >= started + limit {
                Step::Done(Err(Error::OutputBusy(limit)))
            } else if state.delivering {
                Step::Wait(Some(started + limit))
            } else {
                Step::Done(Ok(state.post(Job::Flush)))
            }
        })?;
        self.shared.wake(Party::Parser);
        self.finish(job)
    }

    /// Waits for a job.
    fn finish(&self, job: u64) -> Result<(), Error> {
        self.shared.watch(|state, _| {
            if let Some(error) = state.end() {
                Step::Done(Err(error))
            } else if state.is_done(job) {
                Step::Done(Ok(()))
            } else {
                Step::Wait(None)
            }
        })
    }

    /// Ends the session: waits `stop_timeout` for its threads, then abandons them. Nothing reaches the
    /// output any more that was not in its hands already. Calling it again waits again.
    pub fn stop(&self) -> Stopped {
        let deadline = self.shared.clock.now() + self.shared.config.stop_timeout;
        self.shared.with(|state| {
            state.stopping = true;
            state.ring.abandon();
            state.dropped.clear();
        });
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let (clean, stuck) = self.shared.wait(Party::Caller, |state, now| {
            let clean = state.exited.iter().all(|exited| *exited);
            if !clean && now < deadline {
                return Step::Wait(Some(deadline));
            }
            let stuck = Role::ALL.iter().filter_map(|role| state.calls.of(*role));
            Step::Done((clean, stuck.collect()))
        });
        if clean {
            for join in threads {
                join();
            }
        }
        Stopped {
            stuck,
            clean,
            stats: self.stats(),
        }
    }

    /// The account so far.
    pub fn stats(&self) -> Stats {
        self.shared.read(|state| Stats {
            surfaces_held: state.pictures.holds(),
            ..state.ledger.stats()
        })
    }

    /// Looks after the session's calls, as every other call of the caller does: for one that has nothing
    /// to submit.
    ///
    /// # Errors
    /// The session cannot go on.
    pub fn check(&self) -> Result<(), Error> {
        let mut looked = false;
        self.shared.watch(|state, now| match state.end() {
            Some(error) => Step::Done(Err(error)),
            None if looked => Step::Done(Ok(())),
            None => {
                looked = true;
                Step::Wait(Some(now))
            }
        })
    }
}

impl<G: GpuApi> Drop for Session<G> {
    fn drop(&mut self) {
        let threads = self.threads.get_mut();
        // Who has stopped it has waited already.
        if !threads.unwrap_or_else(PoisonError::into_inner).is_empty() {
            self.stop();
        }
    }
}
