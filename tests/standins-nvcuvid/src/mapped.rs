// SPDX-License-Identifier: MPL-2.0

//! Output surfaces: device memory into which a decoded picture is converted, in the order of a stream.
//!
//! The memory holds poison whenever it is nobody's, and from the map until the stream has come to the
//! conversion: who reads without the stream's order reads poison.

use std::sync::{Arc, Mutex};

use nvcuvid_sys::CuResult;

use crate::cuda::Cuda;
use crate::lock;
use crate::pixels::{Output, Pixels};

/// What memory holds that is not written yet; the same as libcuda's.
const POISON: u8 = 0xdb;

#[derive(Debug, Default)]
struct Use {
    /// The decode surface that it shows.
    shows: Option<usize>,
    /// Counts maps: a conversion that comes too late finds another number.
    generation: u64,
}

/// One output surface.
#[derive(Debug)]
pub struct OutputSurface {
    /// On the device.
    pub address: usize,
    /// Bytes a row.
    pub pitch: usize,
    size: usize,
    state: Mutex<Use>,
}

impl OutputSurface {
    /// Allocates memory for rows of `width` bytes, and for half as many rows of chroma.
    ///
    /// # Errors
    /// Memory is short.
    pub fn new(cuda: &Cuda, width: usize, height: usize) -> Result<Self, CuResult> {
        let rows = height + height.div_ceil(2);
        let (address, pitch) = cuda.alloc(width, rows)?;
        Ok(Self {
            address,
            pitch,
            size: pitch * rows,
            state: Mutex::default(),
        })
    }

    /// Whether it is mapped.
    pub fn is_mapped(&self) -> bool {
        lock(&self.state).shows.is_some()
    }

    /// Maps it for decode surface `index`, unless it is in use.
    pub fn claim(&self, index: usize) -> bool {
        let mut state = lock(&self.state);
        if state.shows.is_some() {
            return false;
        }
        state.shows = Some(index);
        state.generation += 1;
        true
    }

    /// Puts the conversion into a stream.
    ///
    /// # Errors
    /// The stream does not exist, or the context is lost.
    pub fn fill(
        self: &Arc<Self>,
        cuda: &'static Cuda,
        stream: usize,
        pixels: Option<Arc<Pixels>>,
        output: Output,
    ) -> Result<(), CuResult> {
        let generation = lock(&self.state).generation;
        self.poison(cuda);
        let surface = self.clone();
        cuda.launch(stream, move || {
            let state = lock(&surface.state);
            if state.shows.is_none() || state.generation != generation {
                return;
            }
            let Ok(start) = cuda.host(surface.address, surface.size) else {
                return;
            };
            // SAFETY: libcuda says that the bytes are an allocation's, which is freed only once its streams
            // are done; the lock keeps other conversions away.
            let memory = unsafe { std::slice::from_raw_parts_mut(start, surface.size) };
            match pixels {
                Some(pixels) => pixels.show(&output, memory),
                None => memory.fill(0x80),
            }
        })
    }

    /// Takes it back: the decode surface that it showed, or `None` if it was not mapped.
    pub fn release(&self, cuda: &Cuda) -> Option<usize> {
        let shown = {
            let mut state = lock(&self.state);
            state.generation += 1;
            state.shows.take()
        };
        if shown.is_some() && !self.is_read(cuda) {
            self.poison(cuda);
        }
        shown
    }

    /// Whether a copy that is queued needs it.
    pub fn is_read(&self, cuda: &Cuda) -> bool {
        cuda.is_in_use(self.address, self.size)
    }

    fn poison(&self, cuda: &Cuda) {
        let _state = lock(&self.state);
        if let Ok(start) = cuda.host(self.address, self.size) {
            // SAFETY: the bytes are an allocation's, and no copy in flight needs them.
            unsafe { std::ptr::write_bytes(start, POISON, self.size) };
        }
    }

    /// Frees the memory, which nobody has mapped.
    pub fn free(&self, cuda: &Cuda) {
        // A failure means that the context is lost, and the memory with it.
        let _ = cuda.free(self.address);
    }
}
