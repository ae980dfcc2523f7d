// SPDX-License-Identifier: MPL-2.0

//! The C interface. Each function is a thin shim: a null pointer is `CUDA_ERROR_INVALID_VALUE`, a handle that
//! is not known `CUDA_ERROR_INVALID_HANDLE`, and everything else the other modules' matter.

#![allow(non_snake_case, reason = "the names are those of the C interface")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use nvcuvid_sys::*;

use crate::context_lock::ContextLock;
use crate::cuda::Cuda;
use crate::decoder::{Decoder, MapRequest};
use crate::parser::{Packet, Parser};
use crate::report::mistake;
use crate::{Table, caps, faults, report};

static PARSERS: Table<Parser> = Table::new();
static DECODERS: Table<Decoder> = Table::new();
static LOCKS: Table<ContextLock> = Table::new();

/// A panic must not cross into C.
fn answer(body: impl FnOnce() -> Result<(), CuResult>) -> CuResult {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => CuResult::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => CuResult::UNKNOWN,
    }
}

/// Writes an answer.
///
/// # Safety
/// `to` has to be null or to point to a value that may be written.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), CuResult> {
    if to.is_null() {
        return Err(CuResult::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for it.
    unsafe { to.write(value) };
    Ok(())
}

fn known<T>(table: &Table<T>, handle: usize, call: &str) -> Result<Arc<T>, CuResult> {
    table.get(handle).ok_or_else(|| {
        mistake(&format!("{call} of a handle that does not exist"));
        CuResult::INVALID_HANDLE
    })
}

macro_rules! exports {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of NVIDIA's headers.")]
            ///
            /// # Safety
            /// Pointers have to be null or valid as the headers ask for.
            // SAFETY: the name is the driver's, and this library stands in for the driver.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> CuResult {
                answer(|| -> Result<(), CuResult> { $body })
            }
        )*
    };
}

/// `put` inside of an export, whose caller vouches for its pointers.
macro_rules! give {
    ($to:expr, $value:expr) => {
        // SAFETY: the export's contract.
        unsafe { put($to, $value) }
    };
}

/// What a client's pointer points to, inside of an export.
macro_rules! take {
    ($from:expr) => {
        // SAFETY: the export's contract: null or valid during the call.
        unsafe { $from.as_ref() }.ok_or(CuResult::INVALID_VALUE)?
    };
}

exports! {
    fn cuvidCreateVideoParser(handle: *mut usize, params: *mut CUVIDPARSERPARAMS) {
        let parser = Parser::create(take!(params))?;
        give!(handle, PARSERS.add(parser))
    }
    fn cuvidParseVideoData(handle: usize, packet: *mut CUVIDSOURCEDATAPACKET) {
        let parser = known(&PARSERS, handle, "cuvidParseVideoData")?;
        let packet = take!(packet);
        let size = packet.payload_size as usize;
        let data = match (packet.payload.is_null(), size) {
            (_, 0) => &[][..],
            (true, _) => return Err(CuResult::INVALID_VALUE),
            // SAFETY: the client gives that many bytes for the duration of the call.
            (false, size) => unsafe { std::slice::from_raw_parts(packet.payload, size) },
        };
        parser.parse(Packet {
            data,
            flags: packet.flags as u32,
            timestamp: packet.timestamp,
        })
    }
    fn cuvidDestroyVideoParser(handle: usize) {
        let parser = known(&PARSERS, handle, "cuvidDestroyVideoParser")?;
        if !parser.end() {
            return Err(CuResult::ILLEGAL_STATE);
        }
        PARSERS.remove(handle);
        Ok(())
    }

    fn cuvidGetDecoderCaps(caps: *mut CUVIDDECODECAPS) {
        let cuda = Cuda::get()?;
        if cuda.current() == 0 {
            mistake("cuvidGetDecoderCaps without a current context");
            return Err(CuResult::INVALID_CONTEXT);
        }
        cuda.health()?;
        // SAFETY: the export's contract.
        let caps = unsafe { caps.as_mut() }.ok_or(CuResult::INVALID_VALUE)?;
        caps::answer(caps, faults::current()?.engines.unwrap_or(1));
        Ok(())
    }
    fn cuvidCreateDecoder(handle: *mut usize, info: *mut CUVIDDECODECREATEINFO) {
        av_backend::pin::keep_loaded();
        let info = take!(info);
        let lock = info.vidLock.expose_provenance();
        let context = match lock {
            0 => None,
            lock => Some(known(&LOCKS, lock, "cuvidCreateDecoder with a lock")?.context),
        };
        if handle.is_null() {
            return Err(CuResult::INVALID_VALUE);
        }
        give!(handle, DECODERS.add(Decoder::create(info, context)?))
    }
    fn cuvidDestroyDecoder(handle: usize) {
        let decoder = known(&DECODERS, handle, "cuvidDestroyDecoder")?;
        let destroyed = decoder.destroy();
        if destroyed != Err(CuResult::INVALID_CONTEXT) {
            DECODERS.remove(handle);
        }
        destroyed
    }
    fn cuvidDecodePicture(handle: usize, params: *mut CUVIDPICPARAMS) {
        known(&DECODERS, handle, "cuvidDecodePicture")?.decode(take!(params))
    }
    fn cuvidGetDecodeStatus(handle: usize, index: c_int, status: *mut CUVIDGETDECODESTATUS) {
        let decoder = known(&DECODERS, handle, "cuvidGetDecodeStatus")?;
        let answer = decoder.status(index)?;
        // SAFETY: the export's contract.
        let status = unsafe { status.as_mut() }.ok_or(CuResult::INVALID_VALUE)?;
        status.decodeStatus = answer;
        Ok(())
    }
    fn cuvidReconfigureDecoder(handle: usize, info: *mut CUVIDRECONFIGUREDECODERINFO) {
        known(&DECODERS, handle, "cuvidReconfigureDecoder")?.reconfigure(take!(info))
    }
    fn cuvidMapVideoFrame64(
        handle: usize,
        index: c_int,
        address: *mut c_ulonglong,
        pitch: *mut c_uint,
        params: *mut CUVIDPROCPARAMS,
    ) {
        let decoder = known(&DECODERS, handle, "cuvidMapVideoFrame")?;
        let stream = take!(params).output_stream.expose_provenance();
        if address.is_null() || pitch.is_null() {
            return Err(CuResult::INVALID_VALUE);
        }
        let (at, bytes) = decoder.map(MapRequest { index, stream })?;
        give!(address, at as c_ulonglong)?;
        give!(pitch, bytes as c_uint)
    }
    fn cuvidUnmapVideoFrame64(handle: usize, address: c_ulonglong) {
        known(&DECODERS, handle, "cuvidUnmapVideoFrame")?.unmap(address as usize)
    }

    fn cuvidCtxLockCreate(handle: *mut usize, context: usize) {
        if context == 0 {
            return Err(CuResult::INVALID_CONTEXT);
        }
        give!(handle, LOCKS.add(Arc::new(ContextLock::new(context))))
    }
    fn cuvidCtxLockDestroy(handle: usize) {
        known(&LOCKS, handle, "cuvidCtxLockDestroy")?;
        LOCKS.remove(handle);
        Ok(())
    }
    fn cuvidCtxLock(handle: usize, _flags: c_uint) {
        known(&LOCKS, handle, "cuvidCtxLock")?.acquire();
        Ok(())
    }
    fn cuvidCtxUnlock(handle: usize, _flags: c_uint) {
        known(&LOCKS, handle, "cuvidCtxUnlock")?.release()
    }
}

/// Names that loaders insist on: reading files is no matter of a decoder, and addresses have 64 bits here.
macro_rules! unsupported {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`: not supported, whatever its arguments.")]
            // SAFETY: the name is the driver's, and this library stands in for the driver.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> CuResult {
                CuResult::NOT_SUPPORTED
            }
        )*
    };
}

unsupported! {
    cuvidCreateVideoSource cuvidCreateVideoSourceW cuvidDestroyVideoSource
    cuvidSetVideoSourceState cuvidGetVideoSourceState
    cuvidGetSourceVideoFormat cuvidGetSourceAudioFormat
    cuvidMapVideoFrame cuvidUnmapVideoFrame
}

/// How many mistakes the client has made with this library. That this name exists tells a stand-in from a
/// driver.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_nvcuvid_mistakes() -> usize {
    report::mistakes()
}

/// How many pictures were decoded over after they were shown and before they were mapped.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_nvcuvid_overwritten() -> usize {
    report::overwritten_count()
}

/// How many parsers, decoders, locks and mapped surfaces there are: 0 where nothing leaks.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_nvcuvid_live() -> usize {
    let mapped: usize = DECODERS.all().iter().map(|decoder| decoder.mapped()).sum();
    PARSERS.len() + DECODERS.len() + LOCKS.len() + mapped
}

/// Sets the faults of parsers and decoders that are created later; null leaves them to the environment again.
///
/// # Safety
/// `text` has to be null or a C string.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standin_nvcuvid_set_faults(text: *const c_char) -> CuResult {
    answer(|| {
        let text = if text.is_null() {
            None
        } else {
            // SAFETY: the client passes a C string or null.
            let text = unsafe { CStr::from_ptr(text) };
            Some(text.to_str().map_err(|_| CuResult::INVALID_VALUE)?)
        };
        faults::set(text).map_err(|error| {
            eprintln!("standin_nvcuvid: standin_nvcuvid_set_faults: {error}");
            CuResult::INVALID_VALUE
        })
    })
}
