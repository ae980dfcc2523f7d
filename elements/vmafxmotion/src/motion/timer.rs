// SPDX-License-Identifier: MPL-2.0

//! Wakes at a time of the element's clock: `max-hold` must release a buffer while upstream stalls.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use gst::prelude::*;
use gst::{ClockTime, SingleShotClockId};

/// When to wake.
type Alarm = (gst::Clock, ClockTime);

#[derive(Debug, Default)]
struct Slot {
    alarm: Option<Alarm>,
    /// What the thread waits for right now.
    waiting: Option<SingleShotClockId>,
    stopped: bool,
}

#[derive(Debug, Default)]
struct Shared {
    slot: Mutex<Slot>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the slot and ends the wait that goes on. A wait that is only about to begin is ended
    /// by it too: the clock remembers.
    fn change(&self, change: impl FnOnce(&mut Slot)) {
        let waiting = {
            let mut slot = self.lock();
            change(&mut slot);
            slot.waiting.take()
        };
        if let Some(waiting) = waiting {
            waiting.unschedule();
        }
        self.changed.notify_one();
    }
}

/// One thread with one alarm.
#[derive(Debug)]
pub(super) struct Timer {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl Timer {
    /// `wake` is called on the timer's thread, without a lock held.
    pub(super) fn start(wake: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = {
            let shared = shared.clone();
            move || run(&shared, wake)
        };
        let thread = std::thread::Builder::new()
            .name("vmafxmotion-hold".to_owned())
            .spawn(thread)?;
        Ok(Self { shared, thread })
    }

    /// Sets the alarm in the place of the one before.
    pub(super) fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// Ends the thread. Nothing may block `wake` any more.
    pub(super) fn stop(self) {
        self.shared.change(|slot| slot.stopped = true);
        // A panic of the thread was reported by it.
        let _ = self.thread.join();
    }
}

/// Sets the alarm of a timer from any thread.
#[derive(Debug, Clone)]
pub(super) struct Handle(Arc<Shared>);

impl Handle {
    /// In the place of the alarm before.
    pub(super) fn set(&self, alarm: Option<Alarm>) {
        self.0.change(|slot| slot.alarm = alarm);
    }
}

fn run(shared: &Shared, wake: impl Fn()) {
    loop {
        let id = {
            let idle = |slot: &mut Slot| slot.alarm.is_none() && !slot.stopped;
            let waited = shared.changed.wait_while(shared.lock(), idle);
            let mut slot = waited.unwrap_or_else(PoisonError::into_inner);
            if slot.stopped {
                return;
            }
            let Some((clock, time)) = slot.alarm.take() else {
                continue;
            };
            let id = clock.new_single_shot_id(time);
            slot.waiting = Some(id.clone());
            id
        };
        let (result, _) = id.wait();
        if !matches!(result, Err(gst::ClockError::Unscheduled)) {
            shared.lock().waiting = None;
            wake();
        }
    }
}
