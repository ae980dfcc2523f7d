// SPDX-License-Identifier: MPL-2.0

//! [`Destination`]: where pictures are copied to.

use std::sync::Arc;

use nvcuvid_sys::MappedSurface;
use nvdecring_core::GpuError;

use crate::format::StreamFormat;
use crate::gpu::Gpu;

/// Where pictures are copied to. Both calls come on the worker thread.
pub trait Destination: Send + Sync + 'static {
    /// A copy under way.
    type Pending: Send;
    /// A picture that has been copied.
    type Frame: Send;

    /// Puts a copy into the surface's stream.
    ///
    /// # Errors
    /// Nothing reads the surface then.
    fn begin(
        &self,
        gpu: &Arc<Gpu>,
        format: &StreamFormat,
        surface: &Arc<MappedSurface>,
    ) -> Result<Self::Pending, GpuError>;

    /// Waits for it. The surface is not referred to any more when this returns.
    ///
    /// # Errors
    /// The pixels are lost.
    fn finish(&self, pending: Self::Pending) -> Result<Self::Frame, GpuError>;
}
