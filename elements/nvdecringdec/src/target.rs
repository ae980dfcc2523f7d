// SPDX-License-Identifier: MPL-2.0

//! Where pictures are copied to: page-locked host memory, or GStreamer's buffers in device memory.

use std::sync::{Arc, Mutex, PoisonError};

use nvcuvid_sys::{MappedSurface, PendingCopy};
use nvdecring_core::GpuError;
use nvdecring_gpu::{
    Destination, Gpu, HostFrame, HostMemory, Nvdec, PictureLayout, StreamFormat, failure,
};

use crate::caps;
use crate::gstcuda::{CudaContext, DeviceBuffer, GstCuda, Pool};

/// The decoder library as this element uses it.
pub(crate) type Api = Nvdec<Target>;

/// A session of it.
pub(crate) type Session = nvdecring_core::Session<Api>;

/// A decoded picture.
pub(crate) type Picture = nvdecring_core::Picture<Api>;

/// Where a session's pictures go.
pub(crate) enum Target {
    Host(HostMemory),
    Device(DeviceMemory),
}

/// A copy under way.
pub(crate) enum Pending {
    Host(<HostMemory as Destination>::Pending),
    Device(PendingCopy<DeviceBuffer>, Arc<Gpu>),
}

/// A picture's memory.
pub(crate) enum Frame {
    Host(HostFrame),
    Device(gst::Buffer),
}

/// Buffers in device memory, of the format of the last picture.
pub(crate) struct DeviceMemory {
    library: &'static GstCuda,
    context: CudaContext,
    pool: Mutex<Option<(StreamFormat, Arc<Pool>)>>,
}

impl DeviceMemory {
    pub(crate) fn new(library: &'static GstCuda, context: CudaContext) -> Self {
        Self {
            library,
            context,
            pool: Mutex::default(),
        }
    }

    fn pool(&self, format: &StreamFormat) -> Result<Arc<Pool>, GpuError> {
        const CALL: &str = "gst_cuda_buffer_pool_new";
        let known = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, pool)) = &*known
            && of == format
        {
            return Ok(pool.clone());
        }
        drop(known);
        let (caps, size) = caps::device_caps(format)
            .ok_or_else(|| failure::refused(CALL, "the format has no caps".to_owned()))?;
        let pool = self
            .library
            .pool(&self.context, &caps, size)
            .map_err(|error| failure::refused(CALL, error.to_string()))?;
        let pool = Arc::new(pool);
        let mut known = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.replace((format.clone(), pool.clone()));
        drop(known);
        drop(before);
        Ok(pool)
    }

    fn begin(
        &self,
        gpu: &Arc<Gpu>,
        format: &StreamFormat,
        surface: &Arc<MappedSurface>,
    ) -> Result<Pending, GpuError> {
        const CALL: &str = "cuMemcpy2DAsync";
        let fit = || {
            failure::refused(
                CALL,
                format!("{:?} is no surface of this stream", surface.layout()),
            )
        };
        let layout = PictureLayout::new(format).ok_or_else(fit)?;
        let mut planes = layout.copies(format, &surface.layout()).ok_or_else(fit)?;
        let buffer = self
            .pool(format)?
            .acquire()
            .map_err(|flow| failure::refused("gst_buffer_pool_acquire_buffer", flow.to_string()))?;
        for (plane, (offset, stride)) in planes.iter_mut().zip(buffer.planes()) {
            (plane.target, plane.target_pitch) = (offset, stride);
        }
        let event = gpu.event().map_err(failure::of_driver)?;
        match buffer.copy(surface, &planes, event) {
            Ok(copy) => Ok(Pending::Device(copy, gpu.clone())),
            Err(refused) => {
                if let Some(event) = refused.event {
                    gpu.reuse(event);
                }
                Err(failure::of_call(CALL, refused.error))
            }
        }
    }
}

impl Destination for Target {
    type Pending = Pending;
    type Frame = Frame;

    fn begin(
        &self,
        gpu: &Arc<Gpu>,
        format: &StreamFormat,
        surface: &Arc<MappedSurface>,
    ) -> Result<Pending, GpuError> {
        match self {
            Self::Host(host) => host.begin(gpu, format, surface).map(Pending::Host),
            Self::Device(device) => device.begin(gpu, format, surface),
        }
    }

    fn finish(&self, pending: Pending) -> Result<Frame, GpuError> {
        match (self, pending) {
            (Self::Host(host), Pending::Host(pending)) => host.finish(pending).map(Frame::Host),
            (_, Pending::Host(_)) => Err(failure::refused(
                "cuEventSynchronize",
                "a copy of another target".to_owned(),
            )),
            (_, Pending::Device(copy, gpu)) => {
                let copied = copy.wait().map_err(failure::of_driver)?;
                gpu.reuse(copied.event);
                copied
                    .target
                    .into_buffer()
                    .map(Frame::Device)
                    .ok_or_else(|| {
                        failure::refused("gst_buffer_unmap", "the buffer is gone".to_owned())
                    })
            }
        }
    }
}
