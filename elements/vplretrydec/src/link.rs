// SPDX-License-Identifier: MPL-2.0

//! [`Link`]: what the element's threads and the session thread share. None holds its lock over a call.
//!
//! Commands go one way, replies the other, and surfaces that were handed out come back. The session thread
//! says which runtime call it is in, so that the element knows a call that hangs.
//!
//! The streaming thread listens to replies while it waits for a command to end. Those that come while it is
//! elsewhere wake the task of the source pad, which otherwise sleeps ([`Link::wait_unheard`]).

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onevpl_sys::MappedSurface;
use vplretry_core::{Stats, Wake};

use crate::reply::Reply;
use crate::session::Command;
use crate::spare::Spare;

/// A call may take this long, whatever the limits are.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);
/// A call that hangs is looked for this often. In the tests never: who is not woken hangs there.
const WATCH: Duration = Duration::from_secs(if cfg!(test) { 1 << 20 } else { 1 });

/// How long a listener waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// To this moment.
    Moment(Instant),
    /// Until the command with this number, and so all before it, have ended and every reply is heard.
    Done(u64),
}

/// What a listener hears.
#[derive(Debug)]
pub(crate) enum News {
    Reply(Reply),
    /// A flush or a stop.
    Interrupted,
    /// A runtime call does not return.
    Hung {
        call: &'static str,
        elapsed: Duration,
    },
    /// The thread is gone.
    Ended,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// `retry-timeout`.
    Work,
    /// `sync-timeout`.
    Wait,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    name: &'static str,
    kind: CallKind,
    since: Instant,
}

/// A command on its way.
pub(crate) struct Order {
    pub(crate) number: u64,
    /// The flush that it came after; those of before the last flush are passed over.
    pub(crate) epoch: u64,
    pub(crate) command: Command,
}

#[derive(Default)]
struct State {
    orders: VecDeque<Order>,
    replies: VecDeque<Reply>,
    returned: Vec<MappedSurface>,
    /// For the next picture.
    spare: Option<Spare>,
    /// Surfaces with the element or downstream.
    out: usize,
    /// The session thread waits for surfaces.
    wants_surfaces: bool,
    last_number: u64,
    /// The last command that a listener knows to have ended.
    last_done: u64,
    epoch: u64,
    /// Replies are heard by who has a [`Listening`].
    listening: bool,
    /// A flush is under way: nothing is waited for.
    interrupted: bool,
    /// The element stops: nothing is waited for, and what is unheard stays so.
    stopped: bool,
    /// Nobody waits for orders up to this one.
    given_up: u64,
    /// The thread ends when it can.
    ending: bool,
    /// The thread has ended.
    ended: bool,
    call: Option<Call>,
    limits: [Duration; 2],
    stats: Stats,
    implementation: Option<(String, String)>,
}

#[derive(Default)]
pub(crate) struct Link {
    state: Mutex<State>,
    /// For the session thread.
    work: Condvar,
    /// For who listens.
    news: Condvar,
    /// For who hears what nobody listens to.
    unheard: Condvar,
}

/// While this lives, replies wake who waits in [`Link::next`], and nobody else.
#[derive(Debug)]
pub(crate) struct Listening<'a>(&'a Link);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.listening = false;
        let missed = !state.replies.is_empty();
        drop(state);
        if missed {
            self.0.unheard.notify_all();
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The element's side.

    /// Hands a command over; its number.
    pub(crate) fn send(&self, command: Command) -> u64 {
        let mut state = self.lock();
        state.last_number += 1;
        let number = state.last_number;
        let epoch = state.epoch;
        state.orders.push_back(Order {
            number,
            epoch,
            command,
        });
        // Who is woken finds the lock free.
        drop(state);
        self.work.notify_all();
        number
    }

    /// Lays a buffer ready for the next picture; `None` takes back what lies there.
    pub(crate) fn lay_ready(&self, spare: Option<Spare>) {
        let before = std::mem::replace(&mut self.lock().spare, spare);
        // A buffer goes back to its pool without the lock.
        drop(before);
    }

    /// Takes back what lies ready.
    pub(crate) fn take_spare(&self) -> Option<Spare> {
        self.lock().spare.take()
    }

    /// Whether a buffer lies ready.
    pub(crate) fn has_spare(&self) -> bool {
        self.lock().spare.is_some()
    }

    /// The limits of calls, in the order of [`CallKind`].
    pub(crate) fn set_limits(&self, work: Duration, wait: Duration) {
        self.lock().limits = [work, wait].map(|limit| limit.max(SHORTEST_LIMIT));
    }

    /// From now on nothing is waited for, until [`resume`](Self::resume).
    pub(crate) fn interrupt(&self) {
        self.lock().interrupted = true;
        self.wake_all();
    }

    /// Ends an interruption. What was sent before is passed over.
    pub(crate) fn resume(&self) {
        let mut state = self.lock();
        state.interrupted = false;
        state.epoch += 1;
        drop(state);
        self.wake_all();
    }

    /// The element stops: nothing is waited for, and no flush changes that, until [`start`](Self::start).
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.wake_all();
    }

    /// The element starts.
    pub(crate) fn start(&self) {
        self.lock().stopped = false;
        self.resume();
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.news.notify_all();
        self.unheard.notify_all();
    }

    /// Nobody waits for this command any more.
    pub(crate) fn give_up(&self, number: u64) {
        let mut state = self.lock();
        state.given_up = state.given_up.max(number);
        self.work.notify_all();
    }

    /// The thread ends when it can, whatever it does now. Nobody reads replies any more.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ending = true;
        // Surfaces in them come back through this very lock.
        let replies = std::mem::take(&mut state.replies);
        let spare = state.spare.take();
        drop(state);
        drop((replies, spare));
        self.wake_all();
    }

    /// From now on replies are heard here.
    pub(crate) fn listen(&self) -> Listening<'_> {
        self.lock().listening = true;
        Listening(self)
    }

    /// Waits for the next reply, a hang, or what `until` says: `None`.
    pub(crate) fn next(&self, until: Until, heed_interrupts: bool) -> Option<News> {
        let mut state = self.lock();
        loop {
            if heed_interrupts && (state.interrupted || state.stopped || state.ending) {
                return Some(News::Interrupted);
            }
            if let Some(reply) = state.hear() {
                return Some(News::Reply(reply));
            }
            if state.ended {
                return Some(News::Ended);
            }
            let now = Instant::now();
            let mut wait = match state.hang(now) {
                Ok(left) => left,
                Err(hung) => return Some(hung),
            };
            match until {
                Until::Moment(moment) if moment <= now => return None,
                Until::Moment(moment) => wait = wait.min(moment - now),
                Until::Done(number) if state.last_done >= number => return None,
                Until::Done(_) => {}
            }
            state = self
                .news
                .wait_timeout(state, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits for something that nobody listens to: a reply, or a call that hangs. False where there will be nothing
    /// to hear any more, for the element stops.
    pub(crate) fn wait_unheard(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.stopped || state.ending || state.ended {
                return false;
            }
            let mut wait = WATCH;
            if !state.listening && !state.interrupted {
                match state.hang(Instant::now()) {
                    Ok(left) if state.replies.is_empty() => wait = left,
                    _ => return true,
                }
            }
            state = self
                .unheard
                .wait_timeout(state, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits until the command has ended, or until the call that the thread is in has taken `patience`, or
    /// until `most` has passed; whether the command has ended. Replies are discarded.
    pub(crate) fn settle(&self, number: u64, patience: Duration, most: Duration) -> bool {
        let started = Instant::now();
        let _listening = self.listen();
        let mut state = self.lock();
        loop {
            if let Some(reply) = state.hear() {
                // A surface in it comes back through this very lock.
                drop(state);
                drop(reply);
                state = self.lock();
                continue;
            }
            if state.last_done >= number || state.ended {
                return true;
            }
            let now = Instant::now();
            let mut left = most.saturating_sub(now.saturating_duration_since(started));
            if let Some(call) = state.call {
                let elapsed = now.saturating_duration_since(call.since);
                left = left.min(patience.saturating_sub(elapsed));
            }
            if left.is_zero() {
                return false;
            }
            state = self
                .news
                .wait_timeout(state, left.min(patience))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The counters of the session.
    pub(crate) fn stats(&self) -> Stats {
        self.lock().stats
    }

    /// Name and API version of the implementation.
    pub(crate) fn implementation(&self) -> Option<(String, String)> {
        self.lock().implementation.clone()
    }

    /// The epoch of what is sent now.
    pub(crate) fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    /// Takes a surface back, from any thread. It is freed by the session thread: every runtime call is.
    pub(crate) fn give_back(&self, surface: MappedSurface) {
        self.take_back(surface, true);
    }

    /// The same for a surface that was copied while the stream goes on: it is freed before the next command, and
    /// the session thread is woken for it only where it waits.
    pub(crate) fn give_back_copied(&self, surface: MappedSurface) {
        self.take_back(surface, false);
    }

    fn take_back(&self, surface: MappedSurface, at_once: bool) {
        let mut state = self.lock();
        if state.ended {
            drop(state);
            drop(surface);
        } else {
            state.returned.push(surface);
            if at_once || state.wants_surfaces || state.ending {
                self.work.notify_all();
            }
        }
    }

    // The session thread's side.

    /// The next command; `None` when the thread is to end and no surface is out.
    pub(crate) fn take(&self) -> Option<Order> {
        let mut state = self.lock();
        loop {
            if !state.returned.is_empty() {
                state = self.free(state);
                continue;
            }
            if state.ending {
                if state.out == 0 {
                    return None;
                }
            } else if let Some(order) = state.orders.pop_front() {
                return Some(order);
            }
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the thread is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.lock().ending
    }

    /// Frees the surfaces that came back, without the lock.
    fn free<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let returned = std::mem::take(&mut state.returned);
        let count = returned.len();
        drop(state);
        self.call("Release", CallKind::Work, || drop(returned));
        let mut state = self.lock();
        state.out -= count;
        state
    }

    /// Frees the surfaces that came back.
    pub(crate) fn reclaim(&self) {
        let state = self.lock();
        if !state.returned.is_empty() {
            drop(self.free(state));
        }
    }

    /// Makes a runtime call that the other side can see.
    pub(crate) fn call<T>(&self, name: &'static str, kind: CallKind, act: impl FnOnce() -> T) -> T {
        /// Calls nest: closing a session happens within others.
        struct Ended<'a>(&'a Link, Option<Call>);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.lock().call = self.1;
            }
        }
        let outer = self.lock().call.replace(Call {
            name,
            kind,
            since: Instant::now(),
        });
        let _ended = Ended(self, outer);
        act()
    }

    /// Whether a command is not to go on.
    pub(crate) fn cancelled(&self, number: u64, epoch: u64) -> bool {
        self.lock().cancelled(number, epoch)
    }

    /// Pauses; surfaces that come back meanwhile are freed.
    pub(crate) fn pause(&self, number: u64, epoch: u64, pause: Duration) -> Wake {
        let deadline = Instant::now() + pause;
        let mut state = self.lock();
        loop {
            if state.cancelled(number, epoch) {
                return Wake::Cancelled;
            }
            if !state.returned.is_empty() {
                state = self.free(state);
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Wake::Elapsed;
            }
            state.wants_surfaces = true;
            state = self
                .work
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            state.wants_surfaces = false;
        }
    }

    /// Tells something; to nobody when the thread is to end.
    pub(crate) fn tell(&self, reply: Reply) {
        let mut state = self.lock();
        if state.ending {
            drop(state);
            drop(reply);
        } else {
            state.replies.push_back(reply);
            let listening = state.listening;
            drop(state);
            if listening {
                self.news.notify_all();
            } else {
                self.unheard.notify_all();
            }
        }
    }

    /// The buffer that lies ready, where no surface is out: the element may need it for that one first, and it may
    /// be the last of its pool.
    pub(crate) fn spare_for_next(&self) -> Option<Spare> {
        let mut state = self.lock();
        if state.out > state.returned.len() {
            return None;
        }
        state.spare.take()
    }

    /// Surfaces that are out.
    pub(crate) fn surfaces_out(&self) -> usize {
        self.lock().out
    }

    /// A surface goes out.
    pub(crate) fn note_out(&self) {
        self.lock().out += 1;
    }

    /// Waits until no more than `most` surfaces are out, or the command is cancelled.
    pub(crate) fn wait_for_surfaces(&self, number: u64, epoch: u64, most: usize) {
        let mut state = self.lock();
        loop {
            if !state.returned.is_empty() {
                state = self.free(state);
            } else if state.out <= most || state.cancelled(number, epoch) {
                return;
            } else {
                state.wants_surfaces = true;
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.wants_surfaces = false;
            }
        }
    }

    /// The counters now.
    pub(crate) fn set_stats(&self, stats: Stats) {
        self.lock().stats = stats;
    }

    /// What the session runs on.
    pub(crate) fn set_implementation(&self, name: String, api: String) {
        self.lock().implementation = Some((name, api));
    }

    /// The thread ends.
    pub(crate) fn note_end(&self) {
        let mut state = self.lock();
        state.ended = true;
        // Nobody will free them but this.
        let returned = std::mem::take(&mut state.returned);
        drop(state);
        self.wake_all();
        drop(returned);
    }
}

impl State {
    fn cancelled(&self, number: u64, epoch: u64) -> bool {
        self.interrupted
            || self.stopped
            || self.ending
            || self.epoch != epoch
            || self.given_up >= number
    }

    /// The next reply.
    fn hear(&mut self) -> Option<Reply> {
        let reply = self.replies.pop_front();
        if let Some(Reply::Done(number, _)) = &reply {
            self.last_done = *number;
        }
        reply
    }

    /// Time until the call at hand hangs, or is looked at again.
    fn hang(&self, now: Instant) -> Result<Duration, News> {
        let Some(call) = self.call else {
            return Ok(WATCH);
        };
        let elapsed = now.saturating_duration_since(call.since);
        let left = self.limits[call.kind as usize].saturating_sub(elapsed);
        if left.is_zero() {
            return Err(News::Hung {
                call: call.name,
                elapsed,
            });
        }
        Ok(left.min(WATCH))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// What [`Link::wait_unheard`] answers to a thread, again and again until it is false.
    fn task(link: &Arc<Link>) -> mpsc::Receiver<bool> {
        let (sender, receiver) = mpsc::channel();
        let link = Arc::clone(link);
        std::thread::spawn(move || {
            loop {
                let more = link.wait_unheard();
                // A listener that polls, as the task of the pad is.
                let listening = link.listen();
                while more && link.next(Until::Done(0), false).is_some() {}
                drop(listening);
                if sender.send(more).is_err() || !more {
                    break;
                }
            }
        });
        receiver
    }

    fn link() -> Arc<Link> {
        let link = Arc::new(Link::default());
        link.set_limits(Duration::MAX, Duration::MAX);
        link
    }

    #[test]
    fn what_nobody_listens_to_wakes_the_task() {
        let link = link();
        let task = task(&link);
        for _ in 0..1000 {
            link.tell(Reply::NeedKeyFrame);
            assert_eq!(task.recv(), Ok(true));
        }
        link.stop();
        assert_eq!(task.recv(), Ok(false));
    }

    #[test]
    fn who_listens_is_woken_and_the_task_has_the_rest() {
        let link = link();
        let task = task(&link);
        for number in 1..=1000 {
            let listening = link.listen();
            let teller = Arc::clone(&link);
            let session = std::thread::spawn(move || {
                teller.tell(Reply::Done(number, Ok(())));
                teller.tell(Reply::NeedKeyFrame);
            });
            let heard = link.next(Until::Done(number), true);
            assert!(
                matches!(heard, Some(News::Reply(Reply::Done(..)))),
                "{heard:?}"
            );
            session.join().expect("it tells");
            // Left behind: one reply, of which the task has not been told yet.
            assert_eq!(task.try_recv(), Err(mpsc::TryRecvError::Empty));
            drop(listening);
            assert_eq!(task.recv(), Ok(true));
        }
        link.end();
        assert_eq!(task.recv(), Ok(false));
    }

    #[test]
    fn a_wait_ends_with_the_command_and_with_all_that_was_told_before() {
        let link = link();
        let listening = link.listen();
        assert!(link.next(Until::Done(0), true).is_none());
        link.tell(Reply::NeedKeyFrame);
        link.tell(Reply::Done(2, Ok(())));
        for _ in 0..2 {
            assert!(matches!(
                link.next(Until::Done(1), true),
                Some(News::Reply(_))
            ));
        }
        assert!(link.next(Until::Done(1), true).is_none());
        assert!(link.next(Until::Done(2), true).is_none());
        let moment = Instant::now();
        assert!(link.next(Until::Moment(moment), true).is_none());
        drop(listening);
        assert!(link.settle(2, Duration::MAX, Duration::MAX));
    }

    #[test]
    fn nothing_is_heard_during_a_flush_and_a_stop_outlasts_it() {
        let link = link();
        let interrupted = || matches!(link.next(Until::Done(9), true), Some(News::Interrupted));
        link.tell(Reply::NeedKeyFrame);
        link.interrupt();
        assert!(interrupted());
        let task = task(&link);
        link.resume();
        assert_eq!(task.recv(), Ok(true));

        link.stop();
        assert_eq!(task.recv(), Ok(false));
        link.interrupt();
        link.resume();
        assert!(interrupted());
        assert!(!link.wait_unheard());
        assert!(link.cancelled(1, link.epoch()));
        link.start();
        assert!(!link.cancelled(1, link.epoch()));
    }

    #[test]
    fn a_call_that_hangs_is_heard_by_who_listens_and_by_the_task() {
        let link = link();
        link.set_limits(Duration::ZERO, Duration::ZERO);
        let (held, hold) = mpsc::channel::<()>();
        let caller = Arc::clone(&link);
        let session = std::thread::spawn(move || {
            caller.call("Hang", CallKind::Work, || hold.recv().is_err());
        });
        let hung = loop {
            // Before the call has begun there is nothing to hear.
            if link.lock().call.is_some() {
                break link.next(Until::Done(1), true);
            }
        };
        assert!(
            matches!(hung, Some(News::Hung { call: "Hang", elapsed }) if elapsed >= SHORTEST_LIMIT)
        );
        assert!(link.wait_unheard());
        drop(held);
        session.join().expect("it returns");
    }
}
