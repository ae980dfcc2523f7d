// SPDX-License-Identifier: MPL-2.0

//! [`PinnedBuffer`]: host memory that is locked in place, so that a copy into it runs by itself. A copy into
//! ordinary memory is asynchronous in name only.

use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::{Context, CuError, Error};

/// Locked host memory, initialised, of a fixed size.
pub struct PinnedBuffer {
    context: Arc<Context>,
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: it is plain memory that only its owner reaches; a copy in flight owns it (`PendingCopy`).
unsafe impl Send for PinnedBuffer {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for PinnedBuffer {}

impl PinnedBuffer {
    /// Allocates `size` bytes, all zero.
    ///
    /// # Errors
    /// What the driver says (it may be slow: it locks every page), [`Error::Parameter`] for no bytes.
    pub fn new(context: &Arc<Context>, size: usize) -> Result<Self, Error> {
        if size == 0 || isize::try_from(size).is_err() {
            return Err(Error::Parameter(format!(
                "a pinned buffer of {size} bytes cannot be"
            )));
        }
        let mut start: *mut c_void = ptr::null_mut();
        let start = context.with(|| {
            // SAFETY: the pointer is a local's; no flag is set.
            unsafe { (context.driver().functions().cuMemHostAlloc)(&mut start, size, 0) }
                .check("cuMemHostAlloc")?;
            NonNull::new(start.cast::<u8>()).ok_or(CuError {
                call: "cuMemHostAlloc",
                code: crate::CuResult::OUT_OF_MEMORY,
            })
        })?;
        // SAFETY: the driver allocated `size` bytes.
        unsafe { ptr::write_bytes(start.as_ptr(), 0, size) };
        Ok(Self {
            context: context.clone(),
            start,
            size,
        })
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `size` bytes were allocated and initialised, and no copy is in flight: it would own `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the reference is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.size) }
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        let functions = self.context.driver().functions();
        // A failure means that the context is lost; the driver frees its memory with it.
        let _ = self.context.with(|| {
            // SAFETY: the memory was allocated by `new` and is given up here.
            unsafe { (functions.cuMemFreeHost)(self.start.as_ptr().cast()) }.check("cuMemFreeHost")
        });
    }
}

impl fmt::Debug for PinnedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer({} bytes)", self.size)
    }
}
