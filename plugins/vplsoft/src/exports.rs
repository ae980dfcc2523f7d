// SPDX-License-Identifier: MPL-2.0

//! The exported functions. Each is a shim over an internal one: where libvpl is loaded too, an exported name
//! may be bound to libvpl's function, so none is called from here. No panic leaves a shim.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use onevpl_sys::*;

use crate::memory::deref;
use crate::pose::Pose;
use crate::session::{self, Session};
use crate::{call, describe, faults, pool, query};

/// Runs a call; a panic in it is an unknown error, and its message has gone to stderr.
pub(crate) fn guard(call: impl FnOnce() -> MfxStatus) -> MfxStatus {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(MfxStatus::ERR_UNKNOWN)
}

fn on(handle: mfxSession, call: impl FnOnce(&Arc<Session>) -> MfxStatus) -> MfxStatus {
    guard(|| match session::find(handle) {
        Ok(session) => call(&session),
        Err(status) => status,
    })
}

fn done(result: Result<(), MfxStatus>) -> MfxStatus {
    result.err().unwrap_or(MfxStatus::ERR_NONE)
}

/// Writes a value where a client wants it.
fn put<T>(to: *mut T, value: T) -> MfxStatus {
    // SAFETY: the interface demands that clients pass valid pointers or null.
    done(unsafe { deref(to) }.map(|to| *to = value))
}

macro_rules! exports {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $body:block)*) => {
        /// The names of the functions of the interface.
        pub(crate) const EXPORTS: &[&str] = &["MFXQueryImplsDescription", $(stringify!($name)),*];

        $(
            // SAFETY: the name and the types are those of the interface's headers; no other symbol of this
            // name is in the library.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the names are those of the C interface")]
            unsafe extern "C" fn $name($($arg: $type),*) -> MfxStatus $body
        )*
    };
}

/// A function for which a decoding runtime has nothing to do.
pub(crate) fn absent(handle: mfxSession) -> MfxStatus {
    on(handle, |_| MfxStatus::ERR_NOT_IMPLEMENTED)
}

fn open(to: *mut mfxSession) -> MfxStatus {
    guard(|| {
        if to.is_null() {
            return MfxStatus::ERR_NULL_PTR;
        }
        match session::open() {
            Ok(handle) => put(to, handle),
            Err(status) => status,
        }
    })
}

// SAFETY: as for the functions below.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is that of the C interface")]
unsafe extern "C" fn MFXQueryImplsDescription(
    format: mfxImplCapsDeliveryFormat,
    count: *mut mfxU32,
) -> *mut mfxHDL {
    let answer = catch_unwind(|| describe::query(format)).unwrap_or(None);
    put(count, u32::from(answer.is_some()));
    answer.unwrap_or(std::ptr::null_mut())
}

exports! {
    fn MFXReleaseImplDescription(handle: mfxHDL) { guard(|| describe::release(handle)) }

    fn MFXInit(_kind: mfxIMPL, _version: *mut mfxVersion, to: *mut mfxSession) { open(to) }
    fn MFXInitEx(_par: mfxInitParam, to: *mut mfxSession) { open(to) }
    fn MFXInitialize(_par: mfxInitializationParam, to: *mut mfxSession) { open(to) }
    fn MFXClose(handle: mfxSession) { guard(|| session::close(handle)) }
    fn MFXCloneSession(handle: mfxSession, to: *mut mfxSession) { on(handle, |_| open(to)) }
    fn MFXJoinSession(handle: mfxSession, _child: mfxSession) { absent(handle) }
    fn MFXDisjoinSession(handle: mfxSession) { absent(handle) }
    fn MFXQueryIMPL(handle: mfxSession, to: *mut mfxIMPL) {
        on(handle, |_| put(to, Pose::current().implementation()))
    }
    fn MFXQueryVersion(handle: mfxSession, to: *mut mfxVersion) {
        on(handle, |_| put(to, mfxVersion { __bindgen_anon_1: describe::API }))
    }
    fn MFXSetPriority(handle: mfxSession, priority: mfxPriority) {
        on(handle, |session| {
            *session.priority() = priority;
            MfxStatus::ERR_NONE
        })
    }
    fn MFXGetPriority(handle: mfxSession, to: *mut mfxPriority) {
        on(handle, |session| put(to, *session.priority()))
    }

    fn MFXVideoCORE_SetFrameAllocator(handle: mfxSession, allocator: *mut mfxFrameAllocator) {
        on(handle, |session| {
            // SAFETY: the client's pointers, as the interface demands them.
            done(unsafe { session.set_allocator(allocator) })
        })
    }
    fn MFXVideoCORE_SetHandle(handle: mfxSession, kind: mfxHandleType, value: mfxHDL) {
        on(handle, |session| done(session.set_handle(kind, value)))
    }
    fn MFXVideoCORE_GetHandle(handle: mfxSession, kind: mfxHandleType, to: *mut mfxHDL) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |session| done(unsafe { session.get_handle(kind, to) }))
    }
    fn MFXVideoCORE_QueryPlatform(handle: mfxSession, to: *mut mfxPlatform) {
        on(handle, |_| {
            let platform = mfxPlatform {
                CodeName: MFX_PLATFORM_UNKNOWN as u16,
                MediaAdapterType: MFX_MEDIA_UNKNOWN as u16,
                ..Default::default()
            };
            put(to, platform)
        })
    }
    fn MFXVideoCORE_SyncOperation(handle: mfxSession, sync: mfxSyncPoint, wait: mfxU32) {
        on(handle, |session| session.tasks.sync(sync, wait))
    }

    fn MFXMemory_GetSurfaceForDecode(handle: mfxSession, to: *mut *mut mfxFrameSurface1) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |session| done(unsafe { session.get_surface(to) }))
    }
    fn MFXMemory_GetSurfaceForVPP(handle: mfxSession, _to: *mut *mut mfxFrameSurface1) { absent(handle) }
    fn MFXMemory_GetSurfaceForVPPOut(handle: mfxSession, _to: *mut *mut mfxFrameSurface1) { absent(handle) }
    fn MFXMemory_GetSurfaceForEncode(handle: mfxSession, _to: *mut *mut mfxFrameSurface1) { absent(handle) }

    fn MFXVideoDECODE_Query(handle: mfxSession, input: *mut mfxVideoParam, out: *mut mfxVideoParam) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |_| unsafe { query::query(input, out) })
    }
    fn MFXVideoDECODE_DecodeHeader(handle: mfxSession, bs: *mut mfxBitstream, par: *mut mfxVideoParam) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |_| done(unsafe { Session::decode_header(bs, par) }))
    }
    fn MFXVideoDECODE_QueryIOSurf(
        handle: mfxSession, par: *mut mfxVideoParam, request: *mut mfxFrameAllocRequest
    ) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |_| done(unsafe { query::query_io_surf(par, request) }))
    }
    fn MFXVideoDECODE_Init(handle: mfxSession, par: *mut mfxVideoParam) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |session| unsafe { session.init(par) })
    }
    fn MFXVideoDECODE_Reset(handle: mfxSession, par: *mut mfxVideoParam) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |session| unsafe { session.reset(par) })
    }
    fn MFXVideoDECODE_Close(handle: mfxSession) { on(handle, |session| session.close_decoder()) }
    fn MFXVideoDECODE_GetVideoParam(handle: mfxSession, par: *mut mfxVideoParam) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |session| done(unsafe { session.get_video_param(par) }))
    }
    fn MFXVideoDECODE_GetDecodeStat(handle: mfxSession, stat: *mut mfxDecodeStat) {
        // SAFETY: the client's pointers, as the interface demands them.
        on(handle, |session| done(unsafe { session.get_decode_stat(stat) }))
    }
    fn MFXVideoDECODE_SetSkipMode(handle: mfxSession, _mode: mfxSkipMode) { absent(handle) }
    fn MFXVideoDECODE_GetPayload(handle: mfxSession, _time: *mut mfxU64, _payload: *mut mfxPayload) {
        absent(handle)
    }
    fn MFXVideoDECODE_DecodeFrameAsync(
        handle: mfxSession, bs: *mut mfxBitstream, work: *mut mfxFrameSurface1,
        out: *mut *mut mfxFrameSurface1, sync: *mut mfxSyncPoint
    ) {
        on(handle, |session| {
            // SAFETY: the client's pointers, as the interface demands them.
            unsafe { call::decode_frame_async(session, bs, work, out, sync) }.unwrap_or_else(|status| status)
        })
    }

    fn MFXVideoENCODE_Query(handle: mfxSession, _in: *mut mfxVideoParam, _out: *mut mfxVideoParam) {
        absent(handle)
    }
    fn MFXVideoENCODE_QueryIOSurf(
        handle: mfxSession, _par: *mut mfxVideoParam, _request: *mut mfxFrameAllocRequest
    ) { absent(handle) }
    fn MFXVideoENCODE_Init(handle: mfxSession, _par: *mut mfxVideoParam) { absent(handle) }
    fn MFXVideoENCODE_Reset(handle: mfxSession, _par: *mut mfxVideoParam) { absent(handle) }
    fn MFXVideoENCODE_Close(handle: mfxSession) { absent(handle) }
    fn MFXVideoENCODE_GetVideoParam(handle: mfxSession, _par: *mut mfxVideoParam) { absent(handle) }
    fn MFXVideoENCODE_GetEncodeStat(handle: mfxSession, _stat: *mut mfxEncodeStat) { absent(handle) }
    fn MFXVideoENCODE_EncodeFrameAsync(
        handle: mfxSession, _ctrl: *mut mfxEncodeCtrl, _surface: *mut mfxFrameSurface1,
        _bs: *mut mfxBitstream, _sync: *mut mfxSyncPoint
    ) { absent(handle) }

    fn MFXVideoVPP_Query(handle: mfxSession, _in: *mut mfxVideoParam, _out: *mut mfxVideoParam) {
        absent(handle)
    }
    fn MFXVideoVPP_QueryIOSurf(
        handle: mfxSession, _par: *mut mfxVideoParam, _request: *mut mfxFrameAllocRequest
    ) { absent(handle) }
    fn MFXVideoVPP_Init(handle: mfxSession, _par: *mut mfxVideoParam) { absent(handle) }
    fn MFXVideoVPP_Reset(handle: mfxSession, _par: *mut mfxVideoParam) { absent(handle) }
    fn MFXVideoVPP_Close(handle: mfxSession) { absent(handle) }
    fn MFXVideoVPP_GetVideoParam(handle: mfxSession, _par: *mut mfxVideoParam) { absent(handle) }
    fn MFXVideoVPP_GetVPPStat(handle: mfxSession, _stat: *mut mfxVPPStat) { absent(handle) }
    fn MFXVideoVPP_RunFrameVPPAsync(
        handle: mfxSession, _in: *mut mfxFrameSurface1, _out: *mut mfxFrameSurface1, _aux: *mut c_void,
        _sync: *mut mfxSyncPoint
    ) { absent(handle) }
    fn MFXVideoVPP_ProcessFrameAsync(
        handle: mfxSession, _in: *mut mfxFrameSurface1, _out: *mut *mut mfxFrameSurface1
    ) { absent(handle) }

    fn MFXVideoDECODE_VPP_Init(
        handle: mfxSession, _decode: *mut mfxVideoParam, _channels: *mut *mut mfxVideoChannelParam,
        _count: mfxU32
    ) { absent(handle) }
    fn MFXVideoDECODE_VPP_DecodeFrameAsync(
        handle: mfxSession, _bs: *mut mfxBitstream, _skip: *mut mfxU32, _count: mfxU32,
        _out: *mut *mut mfxSurfaceArray
    ) { absent(handle) }
    fn MFXVideoDECODE_VPP_Reset(
        handle: mfxSession, _decode: *mut mfxVideoParam, _channels: *mut *mut mfxVideoChannelParam,
        _count: mfxU32
    ) { absent(handle) }
    fn MFXVideoDECODE_VPP_GetChannelParam(
        handle: mfxSession, _par: *mut mfxVideoChannelParam, _channel: mfxU32
    ) { absent(handle) }
    fn MFXVideoDECODE_VPP_Close(handle: mfxSession) { absent(handle) }
}

/// Surfaces that clients hold at this moment, in the whole process. An addition to the interface.
#[unsafe(no_mangle)]
extern "C" fn vplsoft_live_surfaces() -> u32 {
    pool::live_surfaces()
}

/// Sets the faults of the sessions that are opened from now on, in the grammar of `VPLSOFT_FAULTS` and
/// instead of it; null leaves them to the environment again. An addition to the interface.
///
/// Answers `ERR_NONE`, or `ERR_UNSUPPORTED` for what is not understood, with the reason on stderr.
// SAFETY: no other symbol of this name is in the library.
#[unsafe(no_mangle)]
unsafe extern "C" fn vplsoft_set_faults(text: *const c_char) -> MfxStatus {
    guard(|| {
        let text = if text.is_null() {
            None
        } else {
            // SAFETY: the client passes a C string or null.
            match unsafe { CStr::from_ptr(text) }.to_str() {
                Ok(text) => Some(text),
                Err(_) => return MfxStatus::ERR_UNSUPPORTED,
            }
        };
        match faults::set(text) {
            Ok(()) => MfxStatus::ERR_NONE,
            Err(error) => {
                eprintln!("vplsoft: vplsoft_set_faults: {error}");
                MfxStatus::ERR_UNSUPPORTED
            }
        }
    })
}
