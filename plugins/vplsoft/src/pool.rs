// SPDX-License-Identifier: MPL-2.0

//! How many surfaces a decoder may give out, and those that came back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::memory::lock;
use crate::surface::{self, Surface};

/// Surfaces of all pools that clients hold.
static LIVE: AtomicU32 = AtomicU32::new(0);

/// Surfaces that clients hold at this moment, in the whole process.
pub(crate) fn live_surfaces() -> u32 {
    LIVE.load(Ordering::SeqCst)
}

/// How a pool behaves when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Surfaces that may be out at once.
    pub(crate) limit: Option<u32>,
    /// How long a call waits for one.
    pub(crate) wait: Duration,
}

/// The surfaces of one decoder.
#[derive(Debug)]
pub(crate) struct Pool {
    policy: Policy,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    out: u32,
    free: Vec<Arc<Surface>>,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(policy: Policy) -> Arc<Self> {
        Arc::new(Self {
            policy,
            state: Mutex::default(),
            returned: Condvar::new(),
        })
    }

    /// A surface with one reference, or `None` where the limit is reached and the wait expired.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Arc<Surface>> {
        let deadline = Instant::now() + self.policy.wait;
        let mut state = lock(&self.state);
        while self.policy.limit.is_some_and(|limit| state.out >= limit) {
            let now = Instant::now();
            if now >= deadline {
                return None;
            }
            state = self
                .returned
                .wait_timeout(state, deadline - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.out += 1;
        let used = state.free.pop();
        drop(state);
        LIVE.fetch_add(1, Ordering::SeqCst);
        let surface = used.unwrap_or_else(|| Surface::new(Arc::clone(self)));
        surface.revive();
        Some(surface)
    }

    /// A surface's last reference is gone.
    pub(crate) fn give_back(&self, surface: Arc<Surface>) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
        let mut state = lock(&self.state);
        state.out -= 1;
        if state.closed {
            drop(state);
            surface::forget(&surface);
            return;
        }
        state.free.push(surface);
        self.returned.notify_one();
    }

    /// Surfaces that clients hold.
    pub(crate) fn out(&self) -> u32 {
        lock(&self.state).out
    }

    /// Frees what is not out; what is out is freed when it comes back.
    pub(crate) fn close(&self) {
        let free = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.free)
        };
        free.iter().for_each(surface::forget);
    }
}
