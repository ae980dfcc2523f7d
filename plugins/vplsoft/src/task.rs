// SPDX-License-Identifier: MPL-2.0

//! Operations in flight.
//!
//! Decoding itself is done when `DecodeFrameAsync` returns. An operation stays in flight for the latency
//! that was asked for; that is a point in time and needs no thread, so none outlives a session.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use av_backend::Engines;
use onevpl_sys::{MfxStatus, mfxSyncPoint};

use crate::memory::lock;
use crate::pin;
use crate::surface::Surface;

/// Operations whose result is kept for a client that asks late.
const RESULTS_KEPT: usize = 128;

/// One operation.
#[derive(Debug)]
pub(crate) struct Task {
    /// When it is complete.
    pub(crate) done_at: Instant,
    /// Its result.
    pub(crate) result: MfxStatus,
    /// Waiting for it never ends.
    pub(crate) hangs: bool,
    /// The surface whose meta data becomes final with it.
    pub(crate) surface: Weak<Surface>,
    /// A client's surface that is locked until then.
    pub(crate) locked: Option<crate::external::Locked>,
}

impl Task {
    fn is_done(&self) -> bool {
        Instant::now() >= self.done_at
    }
}

/// The operations of one session.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    state: Mutex<State>,
    closing: Condvar,
}

#[derive(Debug, Default)]
struct State {
    issued: usize,
    tasks: BTreeMap<usize, Arc<Task>>,
    closed: bool,
}

impl Tasks {
    /// Adds an operation and gives its sync point.
    pub(crate) fn submit(&self, task: Arc<Task>) -> mfxSyncPoint {
        let mut state = lock(&self.state);
        state.issued += 1;
        let number = state.issued;
        state.tasks.insert(number, task);
        let mut finished = Vec::new();
        while state.tasks.len() > RESULTS_KEPT {
            match state.tasks.first_entry() {
                Some(first) if first.get().is_done() => finished.push(first.remove()),
                _ => break,
            }
        }
        drop(state);
        finished.iter().for_each(|task| complete(task));
        // The number alone is the sync point: nothing is ever read through it.
        std::ptr::without_provenance_mut(number)
    }

    /// Operations that are not complete. Locks on surfaces of complete ones are taken back.
    pub(crate) fn running(&self) -> usize {
        let tasks: Vec<_> = lock(&self.state).tasks.values().cloned().collect();
        let mut running = 0;
        for task in tasks {
            if task.is_done() {
                unlock(&task);
            } else {
                running += 1;
            }
        }
        running
    }

    /// `MFXVideoCORE_SyncOperation`.
    pub(crate) fn sync(&self, sync_point: mfxSyncPoint, wait: u32) -> MfxStatus {
        let number = sync_point.addr();
        let task = {
            let state = lock(&self.state);
            match state.tasks.get(&number) {
                Some(task) => Arc::clone(task),
                // An operation whose result was already given.
                None if (1..=state.issued).contains(&number) => return MfxStatus::ERR_NONE,
                None => return MfxStatus::ERR_INVALID_HANDLE,
            }
        };
        let status = self.wait(&task, wait);
        if status != MfxStatus::WRN_IN_EXECUTION {
            lock(&self.state).tasks.remove(&number);
        }
        status
    }

    /// Waits for an operation.
    pub(crate) fn wait(&self, task: &Task, milliseconds: u32) -> MfxStatus {
        if task.hangs {
            pin::hang("waiting for a picture");
        }
        let deadline = Instant::now().checked_add(Duration::from_millis(milliseconds.into()));
        let mut state = lock(&self.state);
        loop {
            let now = Instant::now();
            if now >= task.done_at {
                break;
            }
            if state.closed {
                return MfxStatus::ERR_ABORTED;
            }
            let until = deadline.map_or(task.done_at, |deadline| deadline.min(task.done_at));
            if now >= until {
                return MfxStatus::WRN_IN_EXECUTION;
            }
            state = self
                .closing
                .wait_timeout(state, until - now)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        drop(state);
        complete(task);
        task.result
    }

    /// Ends every wait and gives every client's surface back.
    pub(crate) fn close(&self) {
        let tasks = {
            let mut state = lock(&self.state);
            state.closed = true;
            self.closing.notify_all();
            std::mem::take(&mut state.tasks)
        };
        tasks.values().for_each(|task| complete(task));
    }

    /// Gives every client's surface back, at the end of a decoder.
    pub(crate) fn abandon(&self) {
        let tasks: Vec<_> = lock(&self.state).tasks.values().cloned().collect();
        tasks.iter().for_each(|task| unlock(task));
    }
}

fn complete(task: &Task) {
    if let Some(surface) = task.surface.upgrade() {
        surface.finish();
    }
    unlock(task);
}

fn unlock(task: &Task) {
    if let Some(locked) = &task.locked {
        locked.release();
    }
}

/// When an operation of that length, begun now, is complete on a device with so many engines.
pub(crate) fn schedule(length: Duration, engines: Option<u64>) -> Instant {
    /// The device is one for the whole process.
    static ENGINES: Engines = Engines::new();
    match engines {
        Some(count) => ENGINES.schedule(length, count),
        None => Instant::now() + length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(in_milliseconds: u64, result: MfxStatus) -> Arc<Task> {
        Arc::new(Task {
            done_at: Instant::now() + Duration::from_millis(in_milliseconds),
            result,
            hangs: false,
            surface: Weak::new(),
            locked: None,
        })
    }

    #[test]
    fn a_sync_point_gives_its_result_once_and_then_success() {
        let tasks = Tasks::default();
        let point = tasks.submit(task(0, MfxStatus::ERR_ABORTED));
        assert_eq!(tasks.sync(point, 0), MfxStatus::ERR_ABORTED);
        assert_eq!(tasks.sync(point, 0), MfxStatus::ERR_NONE);
    }

    #[test]
    fn what_was_never_issued_is_refused() {
        let tasks = Tasks::default();
        tasks.submit(task(0, MfxStatus::ERR_NONE));
        for number in [0, 2, usize::MAX] {
            let point = std::ptr::without_provenance_mut(number);
            assert_eq!(tasks.sync(point, 0), MfxStatus::ERR_INVALID_HANDLE);
        }
    }

    #[test]
    fn a_wait_that_expires_is_no_result_and_a_close_ends_it() {
        let tasks = Tasks::default();
        let point = tasks.submit(task(3_600_000, MfxStatus::ERR_NONE));
        assert_eq!(tasks.sync(point, 1), MfxStatus::WRN_IN_EXECUTION);
        assert_eq!(tasks.running(), 1);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| tasks.sync(std::ptr::without_provenance_mut(1), u32::MAX));
            tasks.close();
            let status = waiter.join().expect("the waiter returns");
            // Whether it had begun to wait or comes too late to find the operation.
            assert!([MfxStatus::ERR_ABORTED, MfxStatus::ERR_NONE].contains(&status));
        });
    }

    #[test]
    fn one_engine_does_one_picture_after_the_other() {
        let length = Duration::from_secs(100);
        let (first, second) = (schedule(length, Some(1)), schedule(length, Some(1)));
        assert!(second >= first + length);
        assert!(schedule(length, None) < second);
    }
}
