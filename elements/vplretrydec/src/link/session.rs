// SPDX-License-Identifier: MPL-2.0

//! What the session thread does with a [`Link`].

use super::*;

impl Link {
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
