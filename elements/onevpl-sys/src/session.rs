// SPDX-License-Identifier: MPL-2.0

//! [`Session`]: a session and its decoder, closed when nothing of it is in use any more.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bindings::*;
use crate::dispatcher::DirectRuntime;
use crate::functions::SessionFunctions;
use crate::loader::Loader;
use crate::status::MfxStatus;
use crate::surface::{PictureInfo, Surface, SyncPoint};
use crate::va::VaDisplay;

/// Where a session came from; it has to outlive the session.
#[derive(Debug)]
pub(crate) enum Home {
    /// A loader of the dispatcher.
    Dispatcher(#[allow(dead_code, reason = "held, not read")] Arc<Loader>),
    /// A runtime without the dispatcher; it is never unloaded.
    Direct,
}

/// Decides when a session may be closed: gets what closes it, and calls that or not. A session whose closing
/// was not called is leaked, with its loader.
pub type Closer = Box<dyn FnOnce(Box<dyn FnOnce()>) + Send + Sync>;

/// A bitstream for one call (`mfxBitstream`).
pub struct Input<'a> {
    raw: mfxBitstream,
    data: PhantomData<&'a mut [u8]>,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("offset", &self.raw.DataOffset)
            .field("length", &self.raw.DataLength)
            .field("timestamp", &self.raw.TimeStamp)
            .finish_non_exhaustive()
    }
}

impl<'a> Input<'a> {
    /// `flags` are `MFX_BITSTREAM_*`. Of more than 4 GiB the beginning is shown.
    pub fn new(data: &'a mut [u8], timestamp: u64, flags: u16) -> Self {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Self {
            raw: mfxBitstream {
                Data: data.as_mut_ptr(),
                DataLength: length,
                MaxLength: length,
                TimeStamp: timestamp,
                DataFlag: flags,
                ..Default::default()
            },
            data: PhantomData,
        }
    }

    /// Bytes that calls have taken.
    pub fn taken(&self) -> usize {
        self.raw.DataOffset.min(self.raw.MaxLength) as usize
    }
}

/// What a decoder is asked for, and what it answers (`mfxVideoParam`).
#[derive(Clone)]
pub struct Parameters {
    /// `ExtParam` is null outside of calls.
    raw: mfxVideoParam,
    surface_limit: u32,
}

// SAFETY: the one pointer in it is null outside of calls.
unsafe impl Send for Parameters {}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters")
            .field("picture", &self.picture())
            .field("async_depth", &self.raw.AsyncDepth)
            .finish_non_exhaustive()
    }
}

impl Parameters {
    /// For a decoder into system memory.
    pub fn new(codec: u32) -> Self {
        let mut raw = mfxVideoParam {
            IOPattern: MFX_IOPATTERN_OUT_SYSTEM_MEMORY as u16,
            ..Default::default()
        };
        raw.__bindgen_anon_1.mfx = mfxInfoMFX {
            CodecId: codec,
            ..Default::default()
        };
        Self {
            raw,
            surface_limit: 0,
        }
    }

    /// `AsyncDepth`.
    pub fn set_async_depth(&mut self, depth: u16) {
        self.raw.AsyncDepth = depth;
    }

    /// Most surfaces that the runtime allocates (`mfxExtAllocationHints`); 0: as the runtime likes.
    pub fn set_surface_limit(&mut self, limit: u32) {
        self.surface_limit = limit;
    }

    /// `mfx.FrameInfo`.
    pub fn picture(&self) -> PictureInfo {
        // SAFETY: the union's arms are integers.
        let mfx = unsafe { &self.raw.__bindgen_anon_1.mfx };
        PictureInfo::new(&mfx.FrameInfo)
    }

    /// Calls with the extension buffers attached.
    fn with(&mut self, call: impl FnOnce(*mut mfxVideoParam) -> MfxStatus) -> MfxStatus {
        if self.surface_limit == 0 {
            return call(&mut self.raw);
        }
        let mut hints = mfxExtAllocationHints {
            AllocationPolicy: MFX_ALLOCATION_LIMITED,
            NumberToPreAllocate: self.surface_limit,
            ..Default::default()
        };
        hints.Header.BufferId = MFX_EXTBUFF_ALLOCATION_HINTS;
        hints.Header.BufferSz = size_of::<mfxExtAllocationHints>() as u32;
        let mut buffers = [std::ptr::from_mut(&mut hints).cast::<mfxExtBuffer>()];
        self.raw.ExtParam = buffers.as_mut_ptr();
        self.raw.NumExtParam = 1;
        let status = call(&mut self.raw);
        self.raw.ExtParam = std::ptr::null_mut();
        self.raw.NumExtParam = 0;
        status
    }
}

/// What `DecodeFrameAsync` gave.
#[derive(Debug)]
pub struct DecodeCall {
    /// The returned status.
    pub status: MfxStatus,
    /// `surface_out`.
    pub surface: Option<Surface>,
    /// `syncp`.
    pub sync: Option<SyncPoint>,
}

/// An `mfxSession`. Surfaces and sync points hold it; it is closed with the last of them.
pub struct Session {
    raw: mfxSession,
    functions: SessionFunctions,
    /// Between Init and Close.
    initialised: AtomicBool,
    closer: Option<Closer>,
    display: Option<VaDisplay>,
    home: ManuallyDrop<Home>,
}

// SAFETY: the API allows calls of a session from any thread.
unsafe impl Send for Session {}
// SAFETY: as above; concurrent calls are the runtime's to order, as the specification asks of it.
unsafe impl Sync for Session {}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("raw", &self.raw)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(raw: mfxSession, functions: SessionFunctions, home: Home) -> Self {
        Self {
            raw,
            functions,
            initialised: AtomicBool::new(false),
            closer: None,
            display: None,
            home: ManuallyDrop::new(home),
        }
    }

    /// `MFXInitialize` of a runtime, without the dispatcher.
    ///
    /// # Errors
    /// The runtime's status.
    pub fn direct(runtime: &DirectRuntime) -> Result<Self, MfxStatus> {
        let mut raw = std::ptr::null_mut();
        let parameters = mfxInitializationParam::default();
        // SAFETY: the address is valid.
        let status = unsafe { (runtime.runtime.MFXInitialize)(parameters, &mut raw) };
        if status.is_error() {
            return Err(status);
        }
        Ok(Self::new(raw, runtime.session, Home::Direct))
    }

    /// Closing goes through `closer`.
    pub fn set_closer(&mut self, closer: Closer) {
        self.closer = Some(closer);
    }

    /// `MFXVideoCORE_SetHandle` with a VA display, which the session keeps.
    ///
    /// # Errors
    /// The runtime's status.
    pub fn set_display(&mut self, display: VaDisplay) -> Result<(), MfxStatus> {
        let set = self.functions.MFXVideoCORE_SetHandle;
        // SAFETY: the display is valid and lives as long as the session.
        let status = unsafe { set(self.raw, MFX_HANDLE_VA_DISPLAY, display.as_ptr()) };
        self.display = Some(display);
        if status.is_error() {
            return Err(status);
        }
        Ok(())
    }

    /// `MFXQueryVersion`, major and minor.
    ///
    /// # Errors
    /// The runtime's status.
    pub fn version(&self) -> Result<(u16, u16), MfxStatus> {
        let mut version = mfxVersion::default();
        // SAFETY: session and address are valid.
        let status = unsafe { (self.functions.MFXQueryVersion)(self.raw, &mut version) };
        if status.is_error() {
            return Err(status);
        }
        // SAFETY: the version's arms are integers.
        let version = unsafe { version.__bindgen_anon_1 };
        Ok((version.Major, version.Minor))
    }

    /// `MFXVideoDECODE_DecodeHeader`.
    pub fn decode_header(&self, input: &mut Input<'_>, parameters: &mut Parameters) -> MfxStatus {
        let call = self.functions.MFXVideoDECODE_DecodeHeader;
        // SAFETY: all three are valid for the call.
        unsafe { call(self.raw, &mut input.raw, &mut parameters.raw) }
    }

    /// `MFXVideoDECODE_Query`: whether the decoder supports the parameters; it may correct them.
    pub fn query(&self, parameters: &mut Parameters) -> MfxStatus {
        let mut out = parameters.clone();
        let call = self.functions.MFXVideoDECODE_Query;
        // SAFETY: session and structures are valid.
        unsafe { call(self.raw, &mut parameters.raw, &mut out.raw) }
    }

    /// `MFXVideoDECODE_Init`.
    pub fn init(&self, parameters: &mut Parameters) -> MfxStatus {
        let call = self.functions.MFXVideoDECODE_Init;
        let status = parameters.with(|raw| {
            // SAFETY: session and structure are valid.
            unsafe { call(self.raw, raw) }
        });
        if !status.is_error() {
            self.initialised.store(true, Ordering::Release);
        }
        status
    }

    /// Whether the decoder is between Init and Close.
    pub fn is_initialised(&self) -> bool {
        self.initialised.load(Ordering::Acquire)
    }

    /// `MFXVideoDECODE_Reset`.
    pub fn reset(&self, parameters: &mut Parameters) -> MfxStatus {
        let call = self.functions.MFXVideoDECODE_Reset;
        parameters.with(|raw| {
            // SAFETY: session and structure are valid.
            unsafe { call(self.raw, raw) }
        })
    }

    /// `MFXVideoDECODE_GetVideoParam`.
    pub fn video_param(&self, parameters: &mut Parameters) -> MfxStatus {
        // SAFETY: session and structure are valid.
        unsafe { (self.functions.MFXVideoDECODE_GetVideoParam)(self.raw, &mut parameters.raw) }
    }

    /// `MFXVideoDECODE_Close`. Some runtimes free their surfaces with it: not while any is in use.
    pub fn close_decoder(&self) -> MfxStatus {
        self.initialised.store(false, Ordering::Release);
        // SAFETY: the session is valid.
        unsafe { (self.functions.MFXVideoDECODE_Close)(self.raw) }
    }

    /// `MFXVideoDECODE_DecodeFrameAsync` with surfaces of the runtime; `None` drains.
    pub fn decode(self: &Arc<Self>, input: Option<&mut Input<'_>>) -> DecodeCall {
        let (mut surface, mut sync) = (std::ptr::null_mut(), std::ptr::null_mut());
        let bitstream = input.map_or(std::ptr::null_mut(), |input| &raw mut input.raw);
        let call = self.functions.MFXVideoDECODE_DecodeFrameAsync;
        // SAFETY: every pointer is valid, or null where null is allowed.
        let status = unsafe {
            call(
                self.raw,
                bitstream,
                std::ptr::null_mut(),
                &mut surface,
                &mut sync,
            )
        };
        DecodeCall {
            status,
            // SAFETY: the runtime gives one reference with the pointer, which nothing else takes over.
            surface: unsafe { Surface::new(surface, self) },
            sync: SyncPoint::new(sync, self),
        }
    }

    /// `MFXVideoCORE_SyncOperation`.
    pub(crate) fn sync(&self, sync: mfxSyncPoint, wait: u32) -> MfxStatus {
        // SAFETY: the sync point came from this session.
        unsafe { (self.functions.MFXVideoCORE_SyncOperation)(self.raw, sync, wait) }
    }
}

/// What is left of a session when it is closed.
struct Closing {
    raw: mfxSession,
    functions: SessionFunctions,
    initialised: bool,
    display: Option<VaDisplay>,
    home: ManuallyDrop<Home>,
}

impl Closing {
    fn close(mut self) {
        if self.initialised {
            // SAFETY: nothing of the session is in use.
            unsafe { (self.functions.MFXVideoDECODE_Close)(self.raw) };
        }
        // SAFETY: the session is not used again.
        unsafe { (self.functions.MFXClose)(self.raw) };
        drop(self.display.take());
        // SAFETY: it is dropped here alone.
        unsafe { ManuallyDrop::drop(&mut self.home) };
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the field is not used again.
        let home = unsafe { ManuallyDrop::take(&mut self.home) };
        let closing = ManuallyDrop::new(Closing {
            raw: self.raw,
            functions: self.functions,
            initialised: self.is_initialised(),
            display: self.display.take(),
            home: ManuallyDrop::new(home),
        });
        // A closer that does not call this leaks everything, the display too.
        let close = move || ManuallyDrop::into_inner(closing).close();
        match self.closer.take() {
            Some(closer) => closer(Box::new(close)),
            None => close(),
        }
    }
}
