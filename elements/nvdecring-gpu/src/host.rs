// SPDX-License-Identifier: MPL-2.0

//! Pictures in pinned host memory.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nvcuvid_sys::{MappedSurface, PendingCopy, PinnedBuffer};
use nvdecring_core::GpuError;

use crate::destination::Destination;
use crate::failure;
use crate::format::StreamFormat;
use crate::gpu::{BufferPool, Gpu};
use crate::layout::PictureLayout;

/// A picture in host memory. Its buffer goes back to the decoder when it is dropped, or is freed if the
/// decoder is gone.
pub struct HostFrame {
    /// There until it is dropped.
    buffer: Option<PinnedBuffer>,
    layout: Arc<PictureLayout>,
    pool: Weak<BufferPool>,
}

impl HostFrame {
    /// Where its planes lie.
    pub fn layout(&self) -> &Arc<PictureLayout> {
        &self.layout
    }

    /// The rows of a plane, without what lies between them; none where there is no such plane.
    pub fn rows(&self, plane: usize) -> impl Iterator<Item = &[u8]> {
        let bytes = self.as_ref();
        self.layout
            .planes
            .get(plane)
            .into_iter()
            .flat_map(move |plane| {
                (0..plane.rows).filter_map(move |row| {
                    let start = plane.offset + row * plane.stride;
                    bytes.get(start..start + plane.row)
                })
            })
    }
}

impl AsRef<[u8]> for HostFrame {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], PinnedBuffer::as_slice)
    }
}

impl AsMut<[u8]> for HostFrame {
    fn as_mut(&mut self) -> &mut [u8] {
        self.buffer
            .as_mut()
            .map_or(&mut [], PinnedBuffer::as_mut_slice)
    }
}

impl Drop for HostFrame {
    fn drop(&mut self) {
        if let (Some(buffer), Some(pool)) = (self.buffer.take(), self.pool.upgrade()) {
            pool.give(buffer);
        }
    }
}

impl fmt::Debug for HostFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostFrame({:?})", self.layout)
    }
}

/// Copies pictures to pinned host memory.
#[derive(Debug, Default)]
pub struct HostMemory {
    /// The layout of the last format.
    layout: Mutex<Option<(StreamFormat, Arc<PictureLayout>)>>,
}

/// A copy to host memory under way.
#[derive(Debug)]
pub struct PendingFrame {
    copy: PendingCopy<PinnedBuffer>,
    layout: Arc<PictureLayout>,
    gpu: Arc<Gpu>,
}

impl HostMemory {
    fn layout(&self, format: &StreamFormat) -> Option<Arc<PictureLayout>> {
        let mut known = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, layout)) = &*known
            && of == format
        {
            return Some(layout.clone());
        }
        let layout = Arc::new(PictureLayout::new(format)?);
        *known = Some((format.clone(), layout.clone()));
        Some(layout)
    }
}

impl Destination for HostMemory {
    type Pending = PendingFrame;
    type Frame = HostFrame;

    fn begin(
        &self,
        gpu: &Arc<Gpu>,
        format: &StreamFormat,
        surface: &Arc<MappedSurface>,
    ) -> Result<PendingFrame, GpuError> {
        const CALL: &str = "cuMemcpy2DAsync";
        let fit = || {
            failure::refused(
                CALL,
                format!("{:?} is no surface of this stream", surface.layout()),
            )
        };
        let layout = self.layout(format).ok_or_else(fit)?;
        let planes = layout.copies(format, &surface.layout()).ok_or_else(fit)?;
        let event = gpu.event().map_err(failure::of_driver)?;
        let buffer = match gpu.buffers().take(layout.size) {
            Some(buffer) => buffer,
            None => PinnedBuffer::new(gpu.context(), layout.size)
                .map_err(|error| failure::of_call("cuMemHostAlloc", error))?,
        };
        match surface.copy_to_host(buffer, &planes, event) {
            Ok(copy) => Ok(PendingFrame {
                copy,
                layout,
                gpu: gpu.clone(),
            }),
            Err(refused) => {
                if let Some(buffer) = refused.target {
                    gpu.buffers().give(buffer);
                }
                if let Some(event) = refused.event {
                    gpu.reuse(event);
                }
                Err(failure::of_call(CALL, refused.error))
            }
        }
    }

    fn finish(&self, pending: PendingFrame) -> Result<HostFrame, GpuError> {
        let PendingFrame { copy, layout, gpu } = pending;
        let copied = copy.wait().map_err(failure::of_driver)?;
        gpu.reuse(copied.event);
        Ok(HostFrame {
            buffer: Some(copied.target),
            layout,
            pool: Arc::downgrade(gpu.buffers()),
        })
    }
}
