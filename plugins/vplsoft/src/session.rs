// SPDX-License-Identifier: MPL-2.0

//! Sessions and their handles. A handle is a number that is looked up, so a closed one is an error.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use elementary_stream::{Header, find_header};
use onevpl_sys::*;

use crate::decoder::{Decoder, Input};
use crate::external::Allocator;
use crate::faults::SessionFaults;
use crate::memory::{Registry, deref, lock};
use crate::params;
use crate::pin;
use crate::pool::Pool;
use crate::query::{allocation_hints, depth_status};
use crate::task::Tasks;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    /// Held for the length of a decode call; a second call at the same time finds the device busy.
    pub(crate) decoder: Mutex<Option<Decoder>>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) faults: Mutex<SessionFaults>,
    pub(crate) allocator: Mutex<Option<Allocator>>,
    handles: Mutex<BTreeMap<mfxHandleType, usize>>,
    priority: Mutex<mfxPriority>,
}

static SESSIONS: Registry<Arc<Session>> = Registry::new();

/// The next handle. It looks like a pointer to whoever prints it, is never null and never given twice.
static NEXT: AtomicUsize = AtomicUsize::new(0x1000);

/// The session of a handle.
///
/// # Errors
/// `ERR_INVALID_HANDLE`.
pub(crate) fn find(handle: mfxSession) -> Result<Arc<Session>, MfxStatus> {
    SESSIONS
        .get(handle.addr())
        .ok_or(MfxStatus::ERR_INVALID_HANDLE)
}

/// Opens a session.
///
/// # Errors
/// `ERR_UNSUPPORTED` where the faults that were asked for are not understood; the text goes to stderr.
pub(crate) fn open() -> Result<mfxSession, MfxStatus> {
    let faults = SessionFaults::for_new_session().map_err(|text| {
        eprintln!("vplsoft: {text}; the session is refused");
        MfxStatus::ERR_UNSUPPORTED
    })?;
    let session = Arc::new(Session {
        decoder: Mutex::new(None),
        tasks: Arc::default(),
        faults: Mutex::new(faults),
        allocator: Mutex::new(None),
        handles: Mutex::default(),
        priority: Mutex::new(MFX_PRIORITY_NORMAL),
    });
    let handle = NEXT.fetch_add(16, Ordering::Relaxed);
    SESSIONS.insert(handle, session);
    Ok(std::ptr::without_provenance_mut(handle))
}

/// `MFXClose`.
pub(crate) fn close(handle: mfxSession) -> MfxStatus {
    let removed = SESSIONS.remove(handle.addr());
    let Some(session) = removed else {
        return MfxStatus::ERR_INVALID_HANDLE;
    };
    session.close_decoder();
    session.tasks.close();
    MfxStatus::ERR_NONE
}

impl Session {
    /// `MFXVideoDECODE_DecodeHeader`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn decode_header(
        bs: *mut mfxBitstream,
        par: *mut mfxVideoParam,
    ) -> Result<(), MfxStatus> {
        // SAFETY: the caller vouches for it.
        let bs = unsafe { deref(bs) }?;
        // SAFETY: as above.
        let par = unsafe { deref(par) }?;
        let codec = params::codec_of(params::mfx(par).CodecId).ok_or(MfxStatus::ERR_UNSUPPORTED)?;
        let mut input = Input::new(bs)?;
        match find_header(codec, input.data(), input.is_whole()) {
            Header::Found { offset, sequence } => {
                input.consume(offset);
                params::fill(par, codec, &sequence);
                Ok(())
            }
            Header::Missing { skip } => {
                input.consume(skip);
                Err(MfxStatus::ERR_MORE_DATA)
            }
        }
    }

    /// `MFXVideoDECODE_Init`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn init(&self, par: *mut mfxVideoParam) -> MfxStatus {
        // SAFETY: the caller vouches for it.
        let par = match unsafe { deref(par) } {
            Ok(par) => par,
            Err(status) => return status,
        };
        let mut checked = *par;
        let Ok(codec) = params::check(&mut checked) else {
            return MfxStatus::ERR_INVALID_VIDEO_PARAM;
        };
        // SAFETY: as above; the list belongs to the structure.
        let hints = match unsafe { allocation_hints(par) } {
            Ok(hints) => hints,
            Err(status) => return status,
        };
        let mut decoder = lock(&self.decoder);
        if decoder.is_some() {
            return MfxStatus::ERR_UNDEFINED_BEHAVIOR;
        }
        let mut faults = lock(&self.faults);
        if faults.is_lost() {
            return MfxStatus::ERR_DEVICE_LOST;
        }
        if faults.settings().init_hang {
            drop(faults);
            drop(decoder);
            pin::hang("MFXVideoDECODE_Init");
        }
        faults.begin_decoding();
        let mut policy = hints.unwrap_or_default();
        if let Some(limit) = faults.settings().pool {
            policy.limit = Some(u32::try_from(limit).unwrap_or(u32::MAX));
        }
        let silent_resize = faults.settings().silent_resize;
        *decoder = Some(Decoder::new(codec, par, Pool::new(policy), silent_resize));
        depth_status(par)
    }

    /// `MFXVideoDECODE_Reset`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn reset(&self, par: *mut mfxVideoParam) -> MfxStatus {
        // SAFETY: the caller vouches for it.
        let par = match unsafe { deref(par) } {
            Ok(par) => par,
            Err(status) => return status,
        };
        let mut guard = lock(&self.decoder);
        let Some(decoder) = guard.as_mut() else {
            return MfxStatus::ERR_NOT_INITIALIZED;
        };
        let faults = lock(&self.faults);
        if faults.is_lost() {
            return MfxStatus::ERR_DEVICE_LOST;
        }
        let mut checked = *par;
        let Ok(codec) = params::check(&mut checked) else {
            return MfxStatus::ERR_INVALID_VIDEO_PARAM;
        };
        if codec != decoder.codec {
            return MfxStatus::ERR_INVALID_VIDEO_PARAM;
        }
        let (old, new) = (
            params::size(decoder.info()),
            params::size(&params::mfx(par).FrameInfo),
        );
        let grows = new.Width > old.Width || new.Height > old.Height;
        let other_format = params::mfx(par).FrameInfo.FourCC != decoder.info().FourCC;
        if decoder.external && (grows || other_format) {
            // The client's surfaces were made for the old parameters.
            return MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM;
        }
        let mut fresh = Decoder::new(
            codec,
            par,
            Arc::clone(&decoder.pool),
            faults.settings().silent_resize,
        );
        fresh.external = decoder.external;
        fresh.counters = decoder.counters;
        *decoder = fresh;
        depth_status(par)
    }

    /// `MFXVideoDECODE_Close`.
    pub(crate) fn close_decoder(&self) -> MfxStatus {
        let hangs = lock(&self.faults).settings().close_hang;
        if hangs && lock(&self.decoder).is_some() {
            pin::hang("MFXVideoDECODE_Close");
        }
        let Some(decoder) = lock(&self.decoder).take() else {
            return MfxStatus::ERR_NOT_INITIALIZED;
        };
        self.tasks.abandon();
        if decoder.pool.out() > 0 {
            // The client still holds surfaces, and their functions are code of this library.
            pin::keep_loaded();
        }
        decoder.pool.close();
        MfxStatus::ERR_NONE
    }

    /// `MFXVideoDECODE_GetVideoParam`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn get_video_param(&self, par: *mut mfxVideoParam) -> Result<(), MfxStatus> {
        // SAFETY: the caller vouches for it.
        let par = unsafe { deref(par) }?;
        let guard = lock(&self.decoder);
        let decoder = guard.as_ref().ok_or(MfxStatus::ERR_NOT_INITIALIZED)?;
        let (list, count) = (par.ExtParam, par.NumExtParam);
        *par = decoder.param;
        (par.ExtParam, par.NumExtParam) = (list, count);
        Ok(())
    }

    /// `MFXVideoDECODE_GetDecodeStat`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn get_decode_stat(&self, stat: *mut mfxDecodeStat) -> Result<(), MfxStatus> {
        // SAFETY: the caller vouches for it.
        let stat = unsafe { deref(stat) }?;
        let guard = lock(&self.decoder);
        let decoder = guard.as_ref().ok_or(MfxStatus::ERR_NOT_INITIALIZED)?;
        *stat = mfxDecodeStat {
            NumFrame: decoder.counters.pictures,
            NumSkippedFrame: decoder.counters.skipped,
            NumError: decoder.counters.errors,
            NumCachedFrame: decoder.queue.len() as u32,
            ..Default::default()
        };
        Ok(())
    }

    /// `MFXMemory_GetSurfaceForDecode`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn get_surface(
        &self,
        out: *mut *mut mfxFrameSurface1,
    ) -> Result<(), MfxStatus> {
        // SAFETY: the caller vouches for it.
        let out = unsafe { deref(out) }?;
        *out = std::ptr::null_mut();
        let (pool, info) = {
            let guard = lock(&self.decoder);
            let decoder = guard.as_ref().ok_or(MfxStatus::ERR_NOT_INITIALIZED)?;
            (Arc::clone(&decoder.pool), *decoder.info())
        };
        let surface = pool.take().ok_or(MfxStatus::WRN_ALLOC_TIMEOUT_EXPIRED)?;
        let filling = crate::surface::Filling {
            info,
            layout: params::Layout::of(&info),
            timestamp: TIMESTAMP_UNKNOWN,
            order: MFX_FRAMEORDER_UNKNOWN as u32,
            corrupted: 0,
            map_hangs: false,
        };
        surface.fill(&filling, |_| Ok::<(), MfxStatus>(()));
        *out = surface.address();
        Ok(())
    }

    /// `MFXVideoCORE_SetFrameAllocator`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn set_allocator(
        &self,
        allocator: *mut mfxFrameAllocator,
    ) -> Result<(), MfxStatus> {
        if lock(&self.decoder).is_some() {
            return Err(MfxStatus::ERR_UNDEFINED_BEHAVIOR);
        }
        let taken = if allocator.is_null() {
            None
        } else {
            // SAFETY: the caller vouches for it.
            Some(Allocator::new(unsafe { deref(allocator) }?)?)
        };
        *lock(&self.allocator) = taken;
        Ok(())
    }

    /// `MFXVideoCORE_SetHandle`.
    pub(crate) fn set_handle(&self, kind: mfxHandleType, handle: mfxHDL) -> Result<(), MfxStatus> {
        if handle.is_null() {
            return Err(MfxStatus::ERR_INVALID_HANDLE);
        }
        let mut handles = lock(&self.handles);
        if handles.contains_key(&kind) {
            return Err(MfxStatus::ERR_UNDEFINED_BEHAVIOR);
        }
        handles.insert(kind, handle.expose_provenance());
        Ok(())
    }

    /// `MFXVideoCORE_GetHandle`.
    ///
    /// # Safety
    /// As for [`deref()`].
    pub(crate) unsafe fn get_handle(
        &self,
        kind: mfxHandleType,
        out: *mut mfxHDL,
    ) -> Result<(), MfxStatus> {
        // SAFETY: the caller vouches for it.
        let out = unsafe { deref(out) }?;
        let handle = lock(&self.handles).get(&kind).copied();
        *out = std::ptr::with_exposed_provenance_mut(handle.ok_or(MfxStatus::ERR_NOT_FOUND)?);
        Ok(())
    }

    /// `MFXSetPriority` and `MFXGetPriority`.
    pub(crate) fn priority(&self) -> std::sync::MutexGuard<'_, mfxPriority> {
        lock(&self.priority)
    }
}
