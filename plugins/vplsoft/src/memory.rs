// SPDX-License-Identifier: MPL-2.0

//! Pointers that clients pass, locks, and what is known by an address.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use onevpl_sys::MfxStatus;

/// Takes a lock. A thread that panicked while it held it has told its own caller; the data is whole,
/// because no code here leaves it half-changed across a call that can panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a client's pointer points to.
///
/// # Errors
/// `ERR_NULL_PTR`, and `ERR_INVALID_HANDLE` for an address that no such object can have.
///
/// # Safety
/// A pointer that is neither null nor misaligned has to point to a valid object for as long as the result
/// is used, and nothing else may use it meanwhile. The interface demands that of its clients.
pub(crate) unsafe fn deref<'a, T>(pointer: *mut T) -> Result<&'a mut T, MfxStatus> {
    if pointer.is_null() {
        return Err(MfxStatus::ERR_NULL_PTR);
    }
    // The structures are packed to 4 bytes in C, so their pointers are no more aligned than that; the
    // compiler's own layout says 8 for those with pointers, and clients allocate them accordingly.
    if !pointer.is_aligned() {
        return Err(MfxStatus::ERR_INVALID_HANDLE);
    }
    // SAFETY: the caller vouches for it.
    Ok(unsafe { &mut *pointer })
}

/// What exists, by the address or number that clients know it by.
///
/// Statics are not dropped when a library is unloaded, so an empty registry holds no memory.
#[derive(Debug)]
pub(crate) struct Registry<T>(Mutex<BTreeMap<usize, T>>);

impl<T> Registry<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn insert(&self, key: usize, value: T) {
        lock(&self.0).insert(key, value);
    }

    pub(crate) fn remove(&self, key: usize) -> Option<T> {
        let mut known = lock(&self.0);
        let removed = known.remove(&key);
        if known.is_empty() {
            *known = BTreeMap::new(); // the emptied tree keeps a node
        }
        removed
    }
}

impl<T: Clone> Registry<T> {
    pub(crate) fn get(&self, key: usize) -> Option<T> {
        lock(&self.0).get(&key).cloned()
    }
}
