// SPDX-License-Identifier: MPL-2.0

//! Events: marks in a stream.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use nvcuvid_sys::CuResult;

use crate::report::mistake;
use crate::stream::Stream;
use crate::{lock, new_handle};

#[derive(Default)]
struct Marks {
    recorded: u64,
    reached: u64,
}

/// A mark that can be set again and again: the last one counts.
#[derive(Default)]
pub struct Event {
    marks: Mutex<Marks>,
    changed: Condvar,
}

static EVENTS: Mutex<BTreeMap<usize, Arc<Event>>> = Mutex::new(BTreeMap::new());

/// `cuEventCreate`.
pub fn create() -> usize {
    let handle = new_handle();
    lock(&EVENTS).insert(handle, Arc::default());
    handle
}

/// # Errors
/// No such event.
pub fn get(handle: usize) -> Result<Arc<Event>, CuResult> {
    let event = lock(&EVENTS).get(&handle).cloned();
    event.ok_or_else(|| {
        mistake("an event that does not exist");
        CuResult::INVALID_HANDLE
    })
}

/// `cuEventDestroy`.
///
/// # Errors
/// No such event.
pub fn destroy(handle: usize) -> Result<(), CuResult> {
    get(handle)?;
    lock(&EVENTS).remove(&handle);
    Ok(())
}

/// How many events there are.
pub fn live() -> usize {
    lock(&EVENTS).len()
}

impl Event {
    /// `cuEventRecord`.
    pub fn record(self: &Arc<Self>, stream: &Stream) {
        let mark = {
            let mut marks = lock(&self.marks);
            marks.recorded += 1;
            marks.recorded
        };
        let event = self.clone();
        stream.submit(move || {
            let mut marks = lock(&event.marks);
            marks.reached = marks.reached.max(mark);
            event.changed.notify_all();
        });
    }

    /// `cuEventQuery`.
    pub fn is_reached(&self) -> bool {
        let marks = lock(&self.marks);
        marks.reached == marks.recorded
    }

    fn wait_for(&self, mark: u64) {
        let mut marks = lock(&self.marks);
        while marks.reached < mark {
            marks = self
                .changed
                .wait(marks)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// `cuEventSynchronize`.
    pub fn synchronize(&self) {
        let mark = lock(&self.marks).recorded;
        self.wait_for(mark);
    }

    /// `cuStreamWaitEvent`: for the mark that is the last now.
    pub fn hold_back(self: &Arc<Self>, stream: &Stream) {
        let mark = lock(&self.marks).recorded;
        let event = self.clone();
        stream.submit(move || event.wait_for(mark));
    }
}
