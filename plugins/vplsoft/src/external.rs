// SPDX-License-Identifier: MPL-2.0

//! Surfaces that the client brings, and the memory behind them.

use std::sync::atomic::{AtomicBool, Ordering};

use av_backend::{Picture, Semiplanar, pack};
use onevpl_sys::*;

use crate::memory::deref;
use crate::params::{self, Layout};
use crate::surface::timestamp_flag;

/// The client's allocator, as it was set.
#[derive(Clone, Copy)]
pub(crate) struct Allocator(mfxFrameAllocator);

// SAFETY: the interface lets the runtime call the allocator from any of its threads; what `pthis` points to
// is the client's matter.
unsafe impl Send for Allocator {}

impl std::fmt::Debug for Allocator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Allocator").field(&self.0.pthis).finish()
    }
}

impl Allocator {
    /// Takes a client's allocator.
    ///
    /// # Errors
    /// `ERR_INVALID_HANDLE` where one of its functions is missing.
    pub(crate) fn new(allocator: &mfxFrameAllocator) -> Result<Self, MfxStatus> {
        let functions = (
            allocator.Alloc.is_some(),
            allocator.Lock.is_some(),
            allocator.Unlock.is_some(),
            allocator.GetHDL.is_some(),
            allocator.Free.is_some(),
        );
        if functions == (true, true, true, true, true) {
            Ok(Self(*allocator))
        } else {
            Err(MfxStatus::ERR_INVALID_HANDLE)
        }
    }
}

/// A client's surface whose `Data.Locked` was raised.
#[derive(Debug)]
pub(crate) struct Locked {
    surface: *mut mfxFrameSurface1,
    released: AtomicBool,
}

// SAFETY: the pointer is only used to lower the counter, and the client keeps the surface until then.
unsafe impl Send for Locked {}
// SAFETY: as above; the flag lets one thread do it.
unsafe impl Sync for Locked {}

impl Locked {
    /// Raises the counter.
    fn raise(surface: &mut mfxFrameSurface1) -> Self {
        surface.Data.Locked = surface.Data.Locked.saturating_add(1);
        Self {
            surface,
            released: AtomicBool::new(false),
        }
    }

    /// Lowers the counter, once.
    pub(crate) fn release(&self) {
        if self.released.swap(true, Ordering::SeqCst) {
            return;
        }
        // SAFETY: a client may not free a surface while its counter is above 0.
        let surface = unsafe { &mut *self.surface };
        surface.Data.Locked = surface.Data.Locked.saturating_sub(1);
    }
}

/// What a picture brings besides its samples.
pub(crate) struct Labels {
    pub(crate) info: mfxFrameInfo,
    pub(crate) timestamp: u64,
    pub(crate) order: u32,
    pub(crate) corrupted: u16,
}

/// Whether a surface can take pictures of that description.
///
/// # Errors
/// `ERR_MORE_SURFACE` while it is locked, `ERR_INVALID_VIDEO_PARAM` for another format,
/// `ERR_REALLOC_SURFACE` where it is too small.
pub(crate) fn check(surface: &mfxFrameSurface1, needed: &mfxFrameInfo) -> Result<(), MfxStatus> {
    if surface.Data.Locked > 0 {
        return Err(MfxStatus::ERR_MORE_SURFACE);
    }
    if surface.Info.FourCC != needed.FourCC {
        return Err(MfxStatus::ERR_INVALID_VIDEO_PARAM);
    }
    let (has, needs) = (params::size(&surface.Info), params::size(needed));
    if has.Width < needs.Width || has.Height < needs.Height {
        return Err(MfxStatus::ERR_REALLOC_SURFACE);
    }
    Ok(())
}

/// Writes a picture into a client's surface. The client's allocator is called, so no lock may be held.
///
/// # Errors
/// `ERR_LOCK_MEMORY` where the allocator refuses, `ERR_UNDEFINED_BEHAVIOR` where there is no memory behind
/// the surface or its pitch is too small.
pub(crate) fn write(
    surface: &mut mfxFrameSurface1,
    allocator: Option<Allocator>,
    picture: &Picture,
    labels: &Labels,
) -> Result<(), MfxStatus> {
    // SAFETY: the union's arms are pointers of one size; any bytes are valid.
    let own_memory = unsafe { !surface.Data.__bindgen_anon_3.Y.is_null() };
    let memory_id = surface.Data.MemId;
    let mut data = surface.Data;
    let allocator = allocator.filter(|_| !own_memory && !memory_id.is_null());
    if let Some(Allocator(table)) = allocator
        && let Some(lock) = table.Lock
    {
        // SAFETY: the client's function with the client's own arguments.
        let status = unsafe { lock(table.pthis, memory_id, &mut data) };
        if status.is_error() {
            return Err(MfxStatus::ERR_LOCK_MEMORY);
        }
    }
    let result = write_planes(&mut data, &surface.Info, picture, labels);
    if let Some(Allocator(table)) = allocator
        && let Some(unlock) = table.Unlock
    {
        // SAFETY: as above.
        unsafe { unlock(table.pthis, memory_id, &mut data) };
    }
    result?;
    let size = params::size(&surface.Info);
    let mut shown = params::size(&labels.info);
    (shown.Width, shown.Height) = (size.Width, size.Height);
    let mut info = labels.info;
    params::set_size(&mut info, shown);
    surface.Info = info;
    surface.Data.TimeStamp = labels.timestamp;
    surface.Data.DataFlag = timestamp_flag(labels.timestamp);
    surface.Data.FrameOrder = labels.order;
    surface.Data.Corrupted = labels.corrupted;
    Ok(())
}

fn write_planes(
    data: &mut mfxFrameData,
    info: &mfxFrameInfo,
    picture: &Picture,
    labels: &Labels,
) -> Result<(), MfxStatus> {
    // SAFETY: the arms of the union are integers.
    let low = unsafe { data.__bindgen_anon_2.PitchLow };
    let pitch = usize::from(data.PitchHigh) << 16 | usize::from(low);
    // SAFETY: the arms of the union are pointers of one size.
    let luma = unsafe { data.__bindgen_anon_3.Y };
    // SAFETY: as above.
    let chroma = unsafe { data.__bindgen_anon_4.UV };
    let needed = Layout::of(&labels.info);
    let row = usize::from(params::size(&labels.info).Width) * needed.sample_bytes;
    if luma.is_null() || chroma.is_null() || pitch < row {
        return Err(MfxStatus::ERR_UNDEFINED_BEHAVIOR);
    }
    let rows = usize::from(params::size(info).Height).min(needed.rows);
    // SAFETY: the client says by Info and Pitch that so many rows lie there, and leaves them to the runtime.
    let luma = unsafe { std::slice::from_raw_parts_mut(luma, pitch * (rows - 1) + row) };
    let chroma_rows = rows.div_ceil(2);
    // SAFETY: as above, and NV12 and P010 have half as many rows of chroma.
    let chroma = unsafe { std::slice::from_raw_parts_mut(chroma, pitch * (chroma_rows - 1) + row) };
    let to = Semiplanar {
        luma,
        chroma,
        pitch,
    };
    pack(picture, to).map_err(|_| MfxStatus::ERR_UNDEFINED_BEHAVIOR)
}

/// Raises `Data.Locked` of a surface until an operation is complete.
///
/// # Safety
/// As for [`deref()`]; the client keeps the surface as long as it is locked.
pub(crate) unsafe fn raise_lock(surface: *mut mfxFrameSurface1) -> Option<Locked> {
    // SAFETY: the caller vouches for it.
    unsafe { deref(surface) }.ok().map(Locked::raise)
}
