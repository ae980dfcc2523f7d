// SPDX-License-Identifier: MPL-2.0

//! What the threads of a session share, under one lock that is never held over a call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{DisplayInfo, FrameToken, GpuApi, Packet, SurfacePlan};
use crate::calls::{Call, Calls, Role, Watch};
use crate::clock::{Bell, Clock};
use crate::config::Config;
use crate::error::Error;
use crate::health::Health;
use crate::ledger::{End, Ledger};
use crate::output::{DropReason, Event, Observer, Times};
use crate::pictures::{Decoded, Hold, PictureTable};
use crate::ring::Ring;
use crate::sync::{Mutex, PoisonError};

/// A decoder and what it is set up for.
pub(crate) struct Open<G: GpuApi> {
    pub(crate) decoder: Arc<G::Decoder>,
    pub(crate) format: Arc<G::Format>,
    pub(crate) plan: SurfacePlan,
}

impl<G: GpuApi> Clone for Open<G> {
    fn clone(&self) -> Self {
        Self {
            decoder: self.decoder.clone(),
            format: self.format.clone(),
            plan: self.plan,
        }
    }
}

/// A shown picture in its slot.
pub(crate) struct Waiting<G: GpuApi> {
    pub(crate) token: FrameToken,
    pub(crate) shown: DisplayInfo,
    pub(crate) decoded: Decoded,
    /// Let go, outside the lock, once the picture was copied.
    pub(crate) open: Option<Open<G>>,
    /// Given back at the same time.
    pub(crate) hold: Option<Hold>,
    pub(crate) times: Times,
}

/// What the parser thread is asked to do.
pub(crate) enum Job {
    Packet(Packet),
    /// Show and hand out everything.
    Drain,
    /// Forget everything.
    Flush,
}

pub(crate) struct State<G: GpuApi> {
    pub(crate) ring: Ring<Waiting<G>>,
    pub(crate) pictures: PictureTable,
    pub(crate) ledger: Ledger,
    pub(crate) health: Health,
    pub(crate) calls: Calls,
    /// When somebody who watches the calls looks again at the latest; `None` while nobody is sure to.
    watched_until: Option<Duration>,
    /// The parser thread waits for the worker to be in no call.
    pub(crate) waits_for_quiet: bool,
    /// The decoder in use, for looking after surfaces in quarantine.
    pub(crate) open: Option<Open<G>>,
    /// Whether the decoder answers to status queries; true until it has refused.
    pub(crate) has_status: bool,
    /// Counts flushes: a job of an earlier epoch ends without effect.
    pub(crate) epoch: u64,
    pub(crate) flushing: bool,
    pub(crate) stopping: bool,
    /// Why the session cannot go on.
    pub(crate) fatal: Option<Error>,
    pub(crate) opened: bool,
    pub(crate) jobs: VecDeque<Job>,
    jobs_posted: u64,
    jobs_done: u64,
    /// Frames without a picture, on their way to the output.
    pub(crate) dropped: VecDeque<(FrameToken, DropReason)>,
    /// The worker is in a call of the output.
    pub(crate) delivering: bool,
    /// Since when the oldest picture has nothing ahead of it.
    pub(crate) head_since: Duration,
    pub(crate) exited: [bool; 2],
}

impl<G: GpuApi> State<G> {
    fn new(config: &Config) -> Self {
        Self {
            ring: Ring::new(config.ring_depth.get()),
            pictures: PictureTable::default(),
            ledger: Ledger::default(),
            health: Health::default(),
            calls: Calls::default(),
            watched_until: None,
            waits_for_quiet: false,
            open: None,
            has_status: true,
            epoch: 0,
            flushing: false,
            stopping: false,
            fatal: None,
            opened: false,
            jobs: VecDeque::new(),
            jobs_posted: 0,
            jobs_done: 0,
            dropped: VecDeque::new(),
            delivering: false,
            head_since: Duration::ZERO,
            exited: [false; 2],
        }
    }

    pub(crate) fn fail(&mut self, error: Error) {
        self.fatal.get_or_insert(error);
    }

    /// A frame has no picture: it leaves by way of the worker, once.
    pub(crate) fn drop_frame(&mut self, token: FrameToken, reason: DropReason) {
        let end = if reason.is_failure() {
            End::Failed
        } else {
            End::Dropped
        };
        if self.ledger.end(token, end) {
            self.dropped.push_back((token, reason));
        }
    }

    /// Why nothing can be done any more.
    pub(crate) fn end(&self) -> Option<Error> {
        self.fatal
            .clone()
            .or_else(|| self.stopping.then_some(Error::Stopped))
    }

    /// Why nothing can be taken.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.end()
            .or_else(|| self.flushing.then_some(Error::Flushing))
    }

    /// Gives the parser thread a job, and its number.
    pub(crate) fn post(&mut self, job: Job) -> u64 {
        self.jobs.push_back(job);
        self.jobs_posted += 1;
        self.jobs_posted
    }

    /// Jobs that the parser thread has not ended.
    pub(crate) fn unfinished(&self) -> u64 {
        self.jobs_posted - self.jobs_done
    }

    /// Whether the parser thread has ended this job and all before it.
    pub(crate) fn is_done(&self, job: u64) -> bool {
        self.jobs_done >= job
    }

    /// The parser thread has ended a job.
    pub(crate) fn end_job(&mut self) {
        self.jobs_done += 1;
    }

    /// Takes back the jobs that the parser thread has not begun.
    pub(crate) fn take_jobs_back(&mut self) -> VecDeque<Job> {
        let jobs = std::mem::take(&mut self.jobs);
        self.jobs_done += jobs.len() as u64;
        jobs
    }

    /// Empties all slots: nobody will.
    pub(crate) fn take_slots(&mut self) -> Ring<Waiting<G>> {
        let empty = Ring::new(self.ring.depth());
        std::mem::replace(&mut self.ring, empty)
    }

    /// Nothing is on its way to the output.
    pub(crate) fn is_drained(&self) -> bool {
        self.ring.is_empty() && self.dropped.is_empty() && !self.delivering
    }

    /// No thread but the parser's is in the decoder or has a reason to call it.
    pub(crate) fn decoder_is_quiet(&self) -> bool {
        self.ring.is_empty() && self.calls.of(Role::Worker).is_none()
    }
}

/// Who waits for changes of the state: each has a bell of its own, so that a picture on its way wakes only who
/// takes it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    /// The threads that call the session.
    Caller,
    /// The parser thread.
    Parser,
    /// The worker thread.
    Worker,
}

impl Party {
    const ALL: [Self; 3] = [Self::Caller, Self::Parser, Self::Worker];
}

/// What to do after a look at the state.
pub(crate) enum Step<T> {
    Done(T),
    /// Look again when something changes, or at this time.
    Wait(Option<Duration>),
}

pub(crate) struct Shared<G: GpuApi> {
    pub(crate) config: Config,
    pub(crate) clock: Arc<dyn Clock>,
    observer: Observer,
    bells: [Bell; Party::ALL.len()],
    state: Mutex<State<G>>,
}

impl<G: GpuApi> Shared<G> {
    pub(crate) fn new(config: Config, clock: Arc<dyn Clock>, observer: Observer) -> Self {
        Self {
            state: Mutex::new(State::new(&config)),
            config,
            clock,
            observer,
            bells: Default::default(),
        }
    }

    /// Looks without changing anything.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State<G>) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn bell(&self, party: Party) -> &Bell {
        &self.bells[party as usize]
    }

    /// Says that something has changed that `party` waits for.
    pub(crate) fn wake(&self, party: Party) {
        self.bell(party).ring();
    }

    /// Says to everyone that something has changed.
    pub(crate) fn wake_all(&self) {
        for party in Party::ALL {
            self.wake(party);
        }
    }

    /// Changes the state and wakes whoever waits for a change.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State<G>) -> T) -> T {
        let result = self.quietly(change);
        self.wake_all();
        result
    }

    /// The same for a change that nobody but `party` waits for.
    pub(crate) fn with_word_to<T>(
        &self,
        party: Party,
        change: impl FnOnce(&mut State<G>) -> T,
    ) -> T {
        let result = self.quietly(change);
        self.wake(party);
        result
    }

    /// Changes what nobody waits for.
    pub(crate) fn quietly<T>(&self, change: impl FnOnce(&mut State<G>) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks, with the time, until there is something to do. `look` must change nothing when it waits; who has
    /// to know what it changes in the end is woken by the caller.
    pub(crate) fn wait<T>(
        &self,
        me: Party,
        mut look: impl FnMut(&mut State<G>, Duration) -> Step<T>,
    ) -> T {
        let bell = self.bell(me);
        loop {
            let now = self.clock.now();
            let (step, seen) = {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                // The count is read under the lock, so that no change after this look is missed.
                (look(&mut state, now), bell.count())
            };
            match step {
                Step::Done(result) => return result,
                Step::Wait(deadline) => self.clock.wait(bell, seen, deadline),
            }
        }
    }

    /// The same for the caller's threads, which also look after the session's: a call that does not
    /// return is reported, and then ends the session.
    pub(crate) fn watch<T>(
        &self,
        mut look: impl FnMut(&mut State<G>, Duration) -> Step<Result<T, Error>>,
    ) -> Result<T, Error> {
        enum Seen<T> {
            Result(Result<T, Error>),
            Wedged(Error),
            Stalled(Call, Duration),
        }
        loop {
            let seen = self.wait(Party::Caller, |state, now| match look(state, now) {
                Step::Done(result) => {
                    state.watched_until = None;
                    Step::Done(Seen::Result(result))
                }
                Step::Wait(deadline) => match state.calls.watch(&self.config, now) {
                    Watch::Fine(next) => {
                        let deadline = earlier(deadline, next);
                        state.watched_until = deadline;
                        Step::Wait(deadline)
                    }
                    Watch::Stalled(call, elapsed) => Step::Done(Seen::Stalled(call, elapsed)),
                    Watch::Wedged(error) => {
                        state.fail(error.clone());
                        Step::Done(Seen::Wedged(error))
                    }
                },
            });
            match seen {
                Seen::Result(result) => return result,
                Seen::Wedged(error) => {
                    self.wake_all();
                    return Err(error);
                }
                Seen::Stalled(call, elapsed) => self.tell(Event::Stalled { call, elapsed }),
            }
        }
    }

    /// Makes a call of the library, known to the watchdog.
    pub(crate) fn call<T>(&self, role: Role, call: Call, make: impl FnOnce() -> T) -> T {
        self.enter(role, call);
        let result = make();
        self.leave(role);
        result
    }

    /// A call begins. Who watches is woken only if it would look too late: there are many calls to a picture.
    pub(crate) fn enter(&self, role: Role, call: Call) {
        let now = self.clock.now();
        let in_time = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.calls.enter(role, call, now);
            let report = now + call.reported_after(&self.config);
            state.watched_until.is_some_and(|until| until <= report)
        };
        if !in_time {
            self.wake(Party::Caller);
        }
    }

    /// A call has ended. Only who waits for the worker to be in none has to know at once.
    pub(crate) fn leave(&self, role: Role) {
        let awaited = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.calls.leave(role);
            state.waits_for_quiet
        };
        if awaited {
            self.wake(Party::Parser);
        }
    }

    pub(crate) fn tell(&self, event: Event) {
        (self.observer)(event);
    }
}

pub(crate) fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
