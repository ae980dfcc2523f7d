// SPDX-License-Identifier: MPL-2.0

//! [`Gpu`]: a context with what belongs to it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nvcuvid_sys::{Context, CuError, Event, PinnedBuffer, Stream};

/// A CUDA context, the stream in which pictures are mapped and copied, and what is reused from picture to
/// picture. Its locks are held for a push or pop and never over a call.
pub struct Gpu {
    context: Arc<Context>,
    stream: Arc<Stream>,
    events: Mutex<Vec<Event>>,
    buffers: Arc<BufferPool>,
}

impl Gpu {
    /// Makes a stream in a context.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(context: Arc<Context>) -> Result<Self, CuError> {
        let stream = Stream::new(&context)?;
        Ok(Self {
            context,
            stream,
            events: Mutex::default(),
            buffers: Arc::default(),
        })
    }

    /// The context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The stream of maps and copies.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// An event, made if none is left over.
    ///
    /// # Errors
    /// What the driver says.
    pub fn event(&self) -> Result<Event, CuError> {
        let left = self
            .events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        left.map_or_else(|| Event::new(&self.context), Ok)
    }

    /// Takes an event back.
    pub fn reuse(&self, event: Event) {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(event);
    }

    /// The pinned buffers that nobody uses.
    pub(crate) fn buffers(&self) -> &Arc<BufferPool> {
        &self.buffers
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({:?})", self.context)
    }
}

/// Pinned buffers between two uses. Locking host memory is slow, and freeing it waits for the device: so a
/// buffer comes back here from whichever thread drops a picture, and only the thread that copies allocates
/// and frees.
#[derive(Debug, Default)]
pub(crate) struct BufferPool(Mutex<Vec<PinnedBuffer>>);

impl BufferPool {
    /// A buffer of that size, if there is one. Those of another size are freed: the format has changed.
    pub(crate) fn take(&self, size: usize) -> Option<PinnedBuffer> {
        let (found, others) = {
            let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let (fitting, others): (Vec<_>, Vec<_>) =
                free.drain(..).partition(|buffer| buffer.size() == size);
            *free = fitting;
            (free.pop(), others)
        };
        drop(others);
        found
    }

    pub(crate) fn give(&self, buffer: PinnedBuffer) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(buffer);
    }
}
