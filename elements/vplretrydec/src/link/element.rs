// SPDX-License-Identifier: MPL-2.0

//! What the element's threads do with a [`Link`].

use super::*;

impl Link {
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
}
