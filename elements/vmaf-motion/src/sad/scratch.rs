// SPDX-License-Identifier: MPL-2.0

//! Scratch memory of the kernels.

use std::ops::{Deref, DerefMut};

/// Size of a cache line and of the widest vector, in bytes.
const LINE: usize = 64;

/// A slice whose first element stands on a cache line.
#[derive(Debug, Clone)]
pub(super) struct Aligned<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// `len` zeros.
    pub(super) fn new(len: usize) -> Self {
        let memory = vec![T::default(); len + LINE / size_of::<T>()];
        let start = memory.as_ptr().align_offset(LINE);
        // Where the platform cannot tell, the first element will do: it costs speed alone.
        let start = if start + len <= memory.len() {
            start
        } else {
            0
        };
        Self { memory, start, len }
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Reflects the two samples at each end of a row of `width` samples that starts at `first`.
#[inline]
pub(super) fn reflect_ends<T: Copy>(row: &mut [T], first: usize, width: usize) {
    let end = first + width;
    row[first - 2] = row[first + 2];
    row[first - 1] = row[first + 1];
    row[end] = row[end - 2];
    row[end + 1] = row[end - 3];
}
