// SPDX-License-Identifier: MPL-2.0

//! GStreamer's libgstcuda, opened at run time: sharing a CUDA context with other elements, and buffers in device
//! memory.
//!
//! The library calls itself unstable and changed functions under one name from 1.22 to 1.24. What is used here
//! is what did not change (header files of both), and it is used with the version alone that the tests of this
//! project run on.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::{Arc, OnceLock};

use gst::glib;
use gst::glib::translate::{FromGlibPtrFull, ToGlibPtr};
use gst::prelude::*;
use libloading::Library;
use nvcuvid_sys as nv;

/// The version whose libgstcuda the tests of this project run on.
const TESTED: (u32, u32) = (1, 22);

/// `GST_MAP_CUDA` (gstcudamemory.h): `GST_MAP_FLAG_LAST << 1`.
const MAP_CUDA: u32 = gst::ffi::GST_MAP_FLAG_LAST << 1;

type ContextPtr = *mut gst::ffi::GstObject;

/// The functions that are used, with their signatures in 1.22 and 1.24.
pub(crate) struct GstCuda {
    ensure_element_context: unsafe extern "C" fn(
        *mut gst::ffi::GstElement,
        c_int,
        *mut ContextPtr,
    ) -> glib::ffi::gboolean,
    handle_set_context: unsafe extern "C" fn(
        *mut gst::ffi::GstElement,
        *mut gst::ffi::GstContext,
        c_int,
        *mut ContextPtr,
    ) -> glib::ffi::gboolean,
    handle_context_query: unsafe extern "C" fn(
        *mut gst::ffi::GstElement,
        *mut gst::ffi::GstQuery,
        ContextPtr,
    ) -> glib::ffi::gboolean,
    context_get_handle: unsafe extern "C" fn(ContextPtr) -> *mut c_void,
    buffer_pool_new: unsafe extern "C" fn(ContextPtr) -> *mut gst::ffi::GstBufferPool,
}

/// A `GstCudaContext`, which elements of a pipeline share.
#[derive(Clone)]
pub(crate) struct CudaContext(gst::Object);

/// A symbol, or its name.
fn symbol<T: Copy>(library: &Library, name: &'static str) -> Result<T, String> {
    // SAFETY: the types are those of libgstcuda's headers, see `GstCuda`.
    let symbol = unsafe { library.get::<T>(name) };
    symbol
        .map(|symbol| *symbol)
        .map_err(|_| format!("libgstcuda lacks {name}"))
}

impl GstCuda {
    /// Opens the library, once a process.
    ///
    /// # Errors
    /// Why CUDA memory cannot be given out here.
    pub(crate) fn get() -> Result<&'static Self, &'static str> {
        static OPENED: OnceLock<Result<GstCuda, String>> = OnceLock::new();
        OPENED
            .get_or_init(Self::open)
            .as_ref()
            .map_err(String::as_str)
    }

    fn open() -> Result<Self, String> {
        let (major, minor, ..) = gst::version();
        if (major, minor) != TESTED {
            return Err(format!(
                "GStreamer is {major}.{minor}, and CUDA memory has been tested with {}.{} alone",
                TESTED.0, TESTED.1
            ));
        }
        // SAFETY: it is a library of GStreamer's, whose set-up does nothing of its own.
        let library = unsafe { Library::new("libgstcuda-1.0.so.0") }.map_err(|error| {
            format!(
                "libgstcuda-1.0.so.0 cannot be loaded ({error}): install gstreamer1.0-plugins-bad"
            )
        })?;
        // Its types are registered for the life of the process.
        let library: &'static Library = Box::leak(Box::new(library));
        if symbol::<*mut c_void>(library, "gst_cuda_stream_new").is_ok() {
            return Err("libgstcuda has the interface of 1.24, which is not tested".to_owned());
        }
        let load: unsafe extern "C" fn() -> glib::ffi::gboolean =
            symbol(library, "gst_cuda_load_library")?;
        let init: unsafe extern "C" fn() = symbol(library, "gst_cuda_memory_init_once")?;
        // SAFETY: it takes nothing.
        if unsafe { load() } == glib::ffi::GFALSE {
            return Err("libgstcuda cannot load libcuda".to_owned());
        }
        // SAFETY: it takes nothing, and may be called again.
        unsafe { init() };
        Ok(Self {
            ensure_element_context: symbol(library, "gst_cuda_ensure_element_context")?,
            handle_set_context: symbol(library, "gst_cuda_handle_set_context")?,
            handle_context_query: symbol(library, "gst_cuda_handle_context_query")?,
            context_get_handle: symbol(library, "gst_cuda_context_get_handle")?,
            buffer_pool_new: symbol(library, "gst_cuda_buffer_pool_new")?,
        })
    }

    /// The context that the element shares with its neighbours: theirs, or a new one.
    pub(crate) fn context(&self, element: &gst::Element, device: u32) -> Option<CudaContext> {
        let mut raw: ContextPtr = std::ptr::null_mut();
        let device = c_int::try_from(device).unwrap_or(c_int::MAX);
        // SAFETY: the element is alive, and the pointer a local's.
        let found = unsafe { (self.ensure_element_context)(element.as_ptr(), device, &mut raw) };
        if found == glib::ffi::GFALSE || raw.is_null() {
            return None;
        }
        // SAFETY: the function gives a reference away.
        Some(CudaContext(unsafe { gst::Object::from_glib_full(raw) }))
    }

    /// A context that somebody gives the element.
    pub(crate) fn take_context(
        &self,
        element: &gst::Element,
        offered: &gst::Context,
        device: u32,
        current: Option<CudaContext>,
    ) -> Option<CudaContext> {
        let mut raw: ContextPtr =
            current.map_or(std::ptr::null_mut(), |context| context.0.to_glib_full());
        let device = c_int::try_from(device).unwrap_or(c_int::MAX);
        // SAFETY: all are alive; the function takes the reference in `raw` and may put another there.
        unsafe {
            (self.handle_set_context)(element.as_ptr(), offered.to_glib_none().0, device, &mut raw)
        };
        // SAFETY: what stands there now is a reference of ours, or null.
        (!raw.is_null()).then(|| CudaContext(unsafe { gst::Object::from_glib_full(raw) }))
    }

    /// Answers a neighbour's query for the context.
    pub(crate) fn answer(
        &self,
        element: &gst::Element,
        query: &mut gst::QueryRef,
        context: &CudaContext,
    ) -> bool {
        let context: ContextPtr = context.0.as_ptr();
        // SAFETY: all are alive, and the query is writable.
        let answered =
            unsafe { (self.handle_context_query)(element.as_ptr(), query.as_mut_ptr(), context) };
        answered != glib::ffi::GFALSE
    }

    /// The context for calls of the driver. It keeps the shared object.
    pub(crate) fn driver_context(
        &self,
        context: &CudaContext,
    ) -> Result<Arc<nv::Context>, nv::LoadError> {
        let driver = nv::Driver::load()?;
        // SAFETY: the object is alive.
        let raw = unsafe { (self.context_get_handle)(context.0.as_ptr()) };
        let owner: Box<dyn Any + Send + Sync> = Box::new(context.clone());
        // SAFETY: the handle is the object's context, which it destroys when it goes; the owner keeps it.
        Ok(unsafe { nv::Context::borrow(driver, raw.cast(), owner) })
    }

    /// Buffers in device memory.
    ///
    /// # Errors
    /// The pool does not take the caps, or cannot be started.
    pub(crate) fn pool(
        &self,
        context: &CudaContext,
        caps: &gst::Caps,
        size: u32,
    ) -> Result<Pool, glib::BoolError> {
        // SAFETY: the context is alive.
        let raw = unsafe { (self.buffer_pool_new)(context.0.as_ptr()) };
        if raw.is_null() {
            return Err(glib::bool_error!("libgstcuda gives no buffer pool"));
        }
        // SAFETY: the function gives a reference away.
        let pool = unsafe { gst::BufferPool::from_glib_full(raw) };
        let mut config = pool.config();
        config.set_params(Some(caps), size, 0, 0);
        config.add_option("GstBufferPoolOptionVideoMeta");
        pool.set_config(config)?;
        pool.set_active(true)?;
        Ok(Pool(pool))
    }
}

impl fmt::Debug for CudaContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaContext({:?})", self.0.as_ptr())
    }
}

/// A started pool of buffers in device memory. Its buffers keep it; it stops when nobody asks any more.
#[derive(Debug)]
pub(crate) struct Pool(gst::BufferPool);

impl Pool {
    /// A buffer, mapped for the device.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn acquire(&self) -> Result<DeviceBuffer, gst::FlowError> {
        DeviceBuffer::new(self.0.acquire_buffer(None)?).ok_or(gst::FlowError::Error)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Buffers that are out go when they come back.
        let _ = self.0.set_active(false);
    }
}

/// A buffer that is mapped for the device to write.
pub(crate) struct DeviceBuffer {
    /// There until it is unmapped.
    buffer: Option<gst::Buffer>,
    info: Box<gst::ffi::GstMapInfo>,
}

// SAFETY: buffers may be mapped and unmapped in any thread, and the pointers of the map are not read.
unsafe impl Send for DeviceBuffer {}

impl DeviceBuffer {
    fn new(buffer: gst::Buffer) -> Option<Self> {
        let mut info = std::mem::MaybeUninit::zeroed();
        let flags = gst::ffi::GST_MAP_WRITE | MAP_CUDA;
        // SAFETY: the buffer is ours alone, and the structure a local's.
        let mapped =
            unsafe { gst::ffi::gst_buffer_map(buffer.as_mut_ptr(), info.as_mut_ptr(), flags) };
        if mapped == glib::ffi::GFALSE {
            return None;
        }
        Some(Self {
            buffer: Some(buffer),
            // SAFETY: the call has filled it.
            info: Box::new(unsafe { info.assume_init() }),
        })
    }

    /// Where it lies on the device, and its bytes.
    pub(crate) fn place(&self) -> (u64, usize) {
        (self.info.data as u64, self.info.size)
    }

    /// Where its planes lie: offset and stride.
    pub(crate) fn planes(&self) -> Vec<(usize, usize)> {
        let meta = self
            .buffer
            .as_ref()
            .and_then(|buffer| buffer.meta::<gst_video::VideoMeta>());
        meta.map_or_else(Vec::new, |meta| {
            let strides = meta
                .stride()
                .iter()
                .map(|stride| usize::try_from(*stride).unwrap_or(0));
            meta.offset().iter().copied().zip(strides).collect()
        })
    }

    fn unmap(&mut self) -> Option<gst::Buffer> {
        let buffer = self.buffer.take()?;
        // SAFETY: it was mapped by `new` with this structure, and is unmapped once.
        unsafe { gst::ffi::gst_buffer_unmap(buffer.as_mut_ptr(), &mut *self.info) };
        Some(buffer)
    }

    /// The device has written it.
    pub(crate) fn into_buffer(mut self) -> Option<gst::Buffer> {
        self.unmap()
    }

    /// Puts a copy of a surface into the surface's stream.
    ///
    /// # Errors
    /// As for [`nv::MappedSurface::copy_to_device`].
    pub(crate) fn copy(
        self,
        surface: &Arc<nv::MappedSurface>,
        planes: &[nv::PlaneCopy],
        event: nv::Event,
    ) -> Result<nv::PendingCopy<Self>, nv::CopyError<Self>> {
        let (start, size) = self.place();
        // SAFETY: the buffer is mapped for the device's writes, `size` bytes long, ours alone until the copy is
        // done, and kept by it.
        unsafe { surface.copy_to_device(self, start, size, planes, event) }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        drop(self.unmap());
    }
}
