// SPDX-License-Identifier: MPL-2.0

//! Time, waiting and threads, behind one trait: the real ones here, virtual ones in tests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A count of changes that threads can wait on.
///
/// Who waits reads the count under the lock that guards the condition, lets go of the lock and waits for
/// another count; who changes the condition rings afterwards. So no change is missed, and a virtual clock
/// can tell who may go on by looking at the counts.
#[derive(Debug, Clone, Default)]
pub struct Bell(Arc<Rung>);

#[derive(Debug, Default)]
struct Rung {
    state: Mutex<RungState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RungState {
    count: u64,
    /// Threads that wait. Waking nobody would be a system call all the same.
    waiting: u32,
}

impl Bell {
    /// Counts a change and wakes everyone who waits.
    pub fn ring(&self) {
        let mut state = self.lock();
        state.count += 1;
        let awaited = state.waiting > 0;
        drop(state);
        if awaited {
            self.0.changed.notify_all();
        }
    }

    /// How often it was rung.
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    /// Blocks until the count differs from `seen`.
    pub fn wait(&self, seen: u64) {
        let mut state = self.lock();
        state.waiting += 1;
        while state.count == seen {
            state = self
                .0
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
    }

    /// Blocks until the count differs from `seen` or `limit` has passed. May return early.
    pub fn wait_at_most(&self, seen: u64, limit: Duration) {
        let mut state = self.lock();
        if state.count == seen {
            state.waiting += 1;
            let waited = self.0.changed.wait_timeout(state, limit);
            waited.unwrap_or_else(PoisonError::into_inner).0.waiting -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, RungState> {
        // The counts are valid at every moment, whatever a panicking thread was at.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the end of a thread that has already said it is done.
pub type Join = Box<dyn FnOnce() + Send>;

/// The body of a thread.
pub type Body = Box<dyn FnOnce() + Send>;

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Time since an origin that does not change. Never goes back.
    fn now(&self) -> Duration;

    /// Blocks until `bell` counts something other than `seen` or `deadline` (on [`now`](Clock::now)'s
    /// axis) has come. May return early: callers look again.
    fn wait(&self, bell: &Bell, seen: u64, deadline: Option<Duration>);

    /// Starts a thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    fn spawn(&self, name: &str, body: Body) -> std::io::Result<Join>;
}

/// The monotonic clock and the threads of the system.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wait(&self, bell: &Bell, seen: u64, deadline: Option<Duration>) {
        match deadline {
            None => bell.wait(seen),
            Some(deadline) => bell.wait_at_most(seen, deadline.saturating_sub(self.now())),
        }
    }

    fn spawn(&self, name: &str, body: Body) -> std::io::Result<Join> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)?;
        Ok(Box::new(move || {
            // A panic has been reported through the session's state already.
            let _ = thread.join();
        }))
    }
}
