// SPDX-License-Identifier: MPL-2.0

//! The lock and the condition variable everything here is built on. One module, so that the loom tests
//! can compile the other modules against loom's.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
