// SPDX-License-Identifier: MPL-2.0

//! What a client asks about parameters: `Query`, `QueryIOSurf`, and the allocation hints that it attaches.

use std::time::Duration;

use onevpl_sys::*;

use crate::memory::deref;
use crate::params;
use crate::pool::Policy;
use crate::pose::Pose;

/// `MFXVideoDECODE_Query`.
///
/// # Safety
/// As for [`deref()`].
pub(crate) unsafe fn query(input: *mut mfxVideoParam, out: *mut mfxVideoParam) -> MfxStatus {
    if out.is_null() {
        return MfxStatus::ERR_NULL_PTR;
    }
    // A client may pass one structure for both, so the input is copied before the output is touched.
    let asked = if input.is_null() {
        None
    } else {
        // SAFETY: the caller vouches for it.
        match unsafe { deref(input) } {
            Ok(input) => Some(*input),
            Err(status) => return status,
        }
    };
    // SAFETY: the caller vouches for it.
    let out = match unsafe { deref(out) } {
        Ok(out) => out,
        Err(status) => return status,
    };
    let (list, count) = (out.ExtParam, out.NumExtParam);
    let (mut answer, status) = match asked {
        None => (configurable(params::mfx(out).CodecId), MfxStatus::ERR_NONE),
        Some(mut asked) => {
            let pattern = asked.IOPattern;
            if Pose::current().admits(pattern) {
                asked.IOPattern = MFX_IOPATTERN_OUT_SYSTEM_MEMORY as u16;
            }
            let status = match params::check(&mut asked) {
                Ok(_) => {
                    asked.IOPattern = pattern;
                    depth_status(&asked)
                }
                Err(status) => status,
            };
            asked.AsyncDepth = asked.AsyncDepth.min(params::MAX_ASYNC_DEPTH);
            (asked, status)
        }
    };
    (answer.ExtParam, answer.NumExtParam) = (list, count);
    *out = answer;
    status
}

/// The fields that Init reads, set to 1.
fn configurable(codec: u32) -> mfxVideoParam {
    let mut par = mfxVideoParam {
        AsyncDepth: 1,
        IOPattern: 1,
        ..Default::default()
    };
    let mfx = params::mfx_mut(&mut par);
    mfx.CodecId = codec;
    mfx.FrameInfo.FourCC = 1;
    mfx.FrameInfo.ChromaFormat = 1;
    params::set_size(
        &mut mfx.FrameInfo,
        params::Size {
            Width: 1,
            Height: 1,
            CropX: 1,
            CropY: 1,
            CropW: 1,
            CropH: 1,
        },
    );
    par
}

/// `MFXVideoDECODE_QueryIOSurf`.
///
/// # Safety
/// As for [`deref()`].
pub(crate) unsafe fn query_io_surf(
    par: *mut mfxVideoParam,
    request: *mut mfxFrameAllocRequest,
) -> Result<(), MfxStatus> {
    // SAFETY: the caller vouches for it.
    let par = unsafe { deref(par) }?;
    // SAFETY: as above.
    let request = unsafe { deref(request) }?;
    params::codec_of(params::mfx(par).CodecId).ok_or(MfxStatus::ERR_INVALID_VIDEO_PARAM)?;
    if par.IOPattern != MFX_IOPATTERN_OUT_SYSTEM_MEMORY as u16 {
        return Err(MfxStatus::ERR_INVALID_VIDEO_PARAM);
    }
    let depth = params::async_depth(par);
    *request = mfxFrameAllocRequest {
        Info: params::mfx(par).FrameInfo,
        Type: (MFX_MEMTYPE_SYSTEM_MEMORY | MFX_MEMTYPE_FROM_DECODE | MFX_MEMTYPE_EXTERNAL_FRAME)
            as u16,
        // One for each operation in flight and one to write to; references are kept elsewhere.
        NumFrameMin: depth + 1,
        // And two that the client shows or copies meanwhile.
        NumFrameSuggested: depth + 3,
        ..Default::default()
    };
    Ok(())
}

/// Whether the operations in flight that were asked for are granted.
pub(crate) fn depth_status(par: &mfxVideoParam) -> MfxStatus {
    if par.AsyncDepth > params::MAX_ASYNC_DEPTH {
        MfxStatus::WRN_INCOMPATIBLE_VIDEO_PARAM
    } else {
        MfxStatus::ERR_NONE
    }
}

/// The allocation hints attached to Init's parameters.
///
/// # Safety
/// `NumExtParam` pointers have to lie at `ExtParam`, each null or to a buffer of the size that it says.
pub(crate) unsafe fn allocation_hints(par: &mfxVideoParam) -> Result<Option<Policy>, MfxStatus> {
    if par.ExtParam.is_null() {
        return if par.NumExtParam == 0 {
            Ok(None)
        } else {
            Err(MfxStatus::ERR_NULL_PTR)
        };
    }
    // SAFETY: the caller vouches for it.
    let list = unsafe { std::slice::from_raw_parts(par.ExtParam, par.NumExtParam.into()) };
    for buffer in list {
        // SAFETY: as above.
        let header = *unsafe { deref(*buffer) }?;
        if header.BufferId != MFX_EXTBUFF_ALLOCATION_HINTS
            || (header.BufferSz as usize) < size_of::<mfxExtAllocationHints>()
        {
            continue;
        }
        // SAFETY: the buffer says that it is one, and it is large enough.
        let hints = unsafe { deref(buffer.cast::<mfxExtAllocationHints>()) }?;
        let depth = u32::from(params::async_depth(par));
        let limit = match hints.AllocationPolicy {
            MFX_ALLOCATION_LIMITED => Some(
                hints
                    .NumberToPreAllocate
                    .saturating_add(hints.DeltaToAllocateOnTheFly)
                    .max(1),
            ),
            MFX_ALLOCATION_OPTIMAL => Some(hints.NumberToPreAllocate.max(depth + 3)),
            _ => None,
        };
        return Ok(Some(Policy {
            limit,
            wait: Duration::from_millis(hints.Wait.into()),
        }));
    }
    Ok(None)
}
