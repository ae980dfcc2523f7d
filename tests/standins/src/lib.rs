// SPDX-License-Identifier: MPL-2.0

//! A libcuda without a GPU: enough of the driver interface for contexts, streams, events, memory and copies,
//! as NVDEC clients use them.
//!
//! | module | idea |
//! |---|---|
//! | [`context`] | contexts, the stack of current ones a thread has, and sticky errors |
//! | [`stream`] | work that runs in order on a thread of its own |
//! | [`event`] | marks in a stream |
//! | [`memory`] | device and pinned memory; a device address is no address of the host |
//! | [`copy`] | copies; their target is poisoned until they are done |
//! | [`report`] | what a client does wrong is said, counted, and on request fatal |
//! | [`exports`] | the C interface |
//! | [`unsupported`] | names that clients insist on and never need here |
//!
//! What makes it of use in tests is that it is not kinder than a device: work is late, memory is poisoned
//! before it is written and after it is freed, a handle is a number that is looked up, and a call without a
//! context fails.
//!
//! | variable | effect |
//! |---|---|
//! | `NVSTANDIN_STRICT` | set: the first mistake of a client aborts the process |
//! | `NVSTANDIN_COPY_US` | microseconds that an asynchronous copy takes (100) |
//! | `NVSTANDIN_DEVICES` | how many devices there are (1) |

pub mod context;
pub mod copy;
pub mod event;
pub mod exports;
pub mod memory;
pub mod report;
pub mod stream;
pub mod unsupported;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A number that stands for an object of the driver. No handle is an address, and none is used twice.
pub(crate) fn new_handle() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0x5700_0010);
    NEXT.fetch_add(0x10, Ordering::Relaxed)
}

/// A panic elsewhere does not make this library's tables wrong: each change is one statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number from the environment.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(default)
}
