// SPDX-License-Identifier: MPL-2.0

//! `cuvidCtxLock`: a lock that one thread may take again, and whose holder has the context current.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{ThreadId, current};

use nvcuvid_sys::CuResult;

use crate::lock;
use crate::report::mistake;

#[derive(Debug, Default)]
struct Holder {
    thread: Option<ThreadId>,
    depth: usize,
}

/// One lock.
#[derive(Debug)]
pub struct ContextLock {
    /// `CUcontext`.
    pub context: usize,
    holder: Mutex<Holder>,
    released: Condvar,
}

impl ContextLock {
    /// An open lock.
    pub fn new(context: usize) -> Self {
        Self {
            context,
            holder: Mutex::default(),
            released: Condvar::new(),
        }
    }

    /// Takes it.
    pub fn acquire(&self) {
        let me = Some(current().id());
        let mut holder = lock(&self.holder);
        while holder.depth > 0 && holder.thread != me {
            holder = self
                .released
                .wait(holder)
                .unwrap_or_else(PoisonError::into_inner);
        }
        holder.thread = me;
        holder.depth += 1;
    }

    /// Gives it back.
    ///
    /// # Errors
    /// This thread does not have it.
    pub fn release(&self) -> Result<(), CuResult> {
        let mut holder = lock(&self.holder);
        if holder.depth == 0 || holder.thread != Some(current().id()) {
            drop(holder);
            mistake("cuvidCtxUnlock by a thread that does not hold the lock");
            return Err(CuResult::NOT_PERMITTED);
        }
        holder.depth -= 1;
        if holder.depth == 0 {
            holder.thread = None;
            self.released.notify_one();
        }
        Ok(())
    }
}
