// SPDX-License-Identifier: MPL-2.0

//! `MFXVideoDECODE_DecodeFrameAsync`.

use std::sync::{Arc, MutexGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

use av_backend::{PackError, Picture, pack};
use onevpl_sys::*;

use crate::decoder::{Advance, Decoded, Decoder, Input};
use crate::external::{self, Labels};
use crate::faults::{PictureFaults, Plan};
use crate::memory::{deref, lock};
use crate::params::{self, Layout};
use crate::pin;
use crate::session::Session;
use crate::surface::{self, Filling, Surface};
use crate::task::{Task, schedule};

/// A surface that holds a picture, and the operation that it is the result of.
struct Given {
    surface: *mut mfxFrameSurface1,
    task: Arc<Task>,
    status: MfxStatus,
}

/// The call.
///
/// # Safety
/// As for [`deref()`], for every pointer; a work surface has the memory that it describes.
pub(crate) unsafe fn decode_frame_async(
    session: &Arc<Session>,
    bs: *mut mfxBitstream,
    work: *mut mfxFrameSurface1,
    out: *mut *mut mfxFrameSurface1,
    sync: *mut mfxSyncPoint,
) -> Result<MfxStatus, MfxStatus> {
    // SAFETY: the caller vouches for it.
    let out = unsafe { deref(out) }?;
    // SAFETY: as above.
    let sync = unsafe { deref(sync) }?;
    *out = std::ptr::null_mut();
    *sync = std::ptr::null_mut();
    let mut input = if bs.is_null() {
        None
    } else {
        // SAFETY: as above.
        Some(Input::new(unsafe { deref(bs) }?)?)
    };
    let mut guard = match session.decoder.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another thread decodes in this session.
        Err(TryLockError::WouldBlock) => return Ok(MfxStatus::WRN_DEVICE_BUSY),
    };
    let decoder = guard.as_mut().ok_or(MfxStatus::ERR_NOT_INITIALIZED)?;

    let plan = lock(&session.faults).plan();
    if let Plan::Answer {
        status,
        sync: wants_sync,
    } = plan
    {
        if wants_sync {
            *sync = session.tasks.submit(Arc::new(finished_task()));
        }
        return Ok(status);
    }
    if session.tasks.running() >= usize::from(decoder.param.AsyncDepth) {
        return Ok(MfxStatus::WRN_DEVICE_BUSY);
    }
    let advance = decoder.advance(input.as_mut(), &mut lock(&session.faults));
    match advance {
        Advance::Picture => {}
        Advance::MoreData => return Ok(MfxStatus::ERR_MORE_DATA),
        Advance::ParamChanged => return Ok(MfxStatus::WRN_VIDEO_PARAM_CHANGED),
        Advance::Incompatible => return Ok(MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM),
        Advance::Failed(status) => return Ok(status),
        Advance::Hang => {
            drop(guard);
            pin::hang("MFXVideoDECODE_DecodeFrameAsync")
        }
    }
    // SAFETY: the caller vouches for the work surface.
    let given = unsafe { give(session, guard, work) }?;
    let (status, with_sync) = match plan {
        Plan::WithPicture { status, sync } => {
            lock(&session.faults).picture_planned();
            (status, sync)
        }
        _ => (given.status, true),
    };
    *out = given.surface;
    if with_sync {
        *sync = session.tasks.submit(given.task);
    }
    Ok(status)
}

fn finished_task() -> Task {
    Task {
        done_at: Instant::now(),
        result: MfxStatus::ERR_NONE,
        hangs: false,
        surface: Weak::new(),
        locked: None,
    }
}

/// Puts the next picture into a surface.
///
/// # Safety
/// As for [`decode_frame_async`].
unsafe fn give(
    session: &Arc<Session>,
    mut guard: MutexGuard<'_, Option<Decoder>>,
    work: *mut mfxFrameSurface1,
) -> Result<Given, MfxStatus> {
    let decoder = guard.as_mut().ok_or(MfxStatus::ERR_NOT_INITIALIZED)?;
    let Some(decoded) = decoder.queue.front() else {
        return Err(MfxStatus::ERR_MORE_DATA);
    };
    let info = params::picture_info(decoder.info(), &decoded.picture);
    let resized = !params::same_surfaces(decoder.info(), &info);
    let silent = lock(&session.faults).settings().silent_resize;
    let mut status = MfxStatus::ERR_NONE;
    if resized && !silent {
        // A picture of another size in the middle of a sequence (VP9, AV1): it is given out, and said.
        status = MfxStatus::WRN_VIDEO_PARAM_CHANGED;
    }
    let own = surface::find(work);
    let given = if work.is_null() || own.is_some() {
        if work.is_null() && decoder.external {
            return Err(MfxStatus::ERR_MORE_SURFACE);
        }
        let surface = match own {
            Some(surface) => {
                let referenced = surface.add_reference();
                if referenced.is_error() {
                    return Err(referenced);
                }
                surface
            }
            None => decoder
                .pool
                .take()
                .ok_or(MfxStatus::WRN_ALLOC_TIMEOUT_EXPIRED)?,
        };
        give_own(session, decoder, surface, info)
    } else {
        // SAFETY: the caller vouches for it; only the description is read here.
        let described = unsafe { deref(work) }?;
        external::check(described, &info).map_err(|status| match status {
            MfxStatus::ERR_REALLOC_SURFACE if !allows_realloc(decoder) => {
                MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM
            }
            other => other,
        })?;
        decoder.external = true;
        // SAFETY: the caller vouches for it.
        return unsafe { give_external(session, guard, work, info, status) };
    };
    if given.is_ok() && status.is_warning() {
        params::mfx_mut(&mut decoder.param).FrameInfo = info;
    }
    given.map(|(surface, task)| Given {
        surface,
        task,
        status,
    })
}

fn allows_realloc(decoder: &Decoder) -> bool {
    let options = params::decoding_options(params::mfx(&decoder.param));
    u32::from(options.EnableReallocRequest) == MFX_CODINGOPTION_ON
}

fn give_own(
    session: &Arc<Session>,
    decoder: &mut Decoder,
    surface: Arc<Surface>,
    info: mfxFrameInfo,
) -> Result<(*mut mfxFrameSurface1, Arc<Task>), MfxStatus> {
    let Some(decoded) = decoder.queue.pop_front() else {
        surface.release();
        return Err(MfxStatus::ERR_MORE_DATA);
    };
    let faults = lock(&session.faults).next_picture(decoded.picture.kind());
    let filling = Filling {
        info,
        layout: Layout::of(&info),
        timestamp: decoded.timestamp,
        order: decoder.counters.pictures,
        corrupted: corruption(&decoded, faults),
        map_hangs: faults.map_hangs,
    };
    match surface.fill(&filling, |to| pack(&decoded.picture, to)) {
        Some(Ok(())) => {}
        Some(Err(error)) => {
            surface.release();
            decoder.counters.errors += 1;
            return Err(unpackable(error));
        }
        None => {
            // The client maps the surface that it passed; the picture waits for another.
            decoder.queue.push_front(decoded);
            surface.release();
            return Err(MfxStatus::ERR_LOCK_MEMORY);
        }
    }
    decoder.counters.pictures += 1;
    let task = Arc::new(new_task(session, faults, Arc::downgrade(&surface)));
    surface.attach(&session.tasks, &task);
    Ok((surface.address(), task))
}

/// # Safety
/// As for [`decode_frame_async`].
unsafe fn give_external(
    session: &Arc<Session>,
    mut guard: MutexGuard<'_, Option<Decoder>>,
    work: *mut mfxFrameSurface1,
    info: mfxFrameInfo,
    status: MfxStatus,
) -> Result<Given, MfxStatus> {
    let decoder = guard.as_mut().ok_or(MfxStatus::ERR_NOT_INITIALIZED)?;
    let decoded = decoder.queue.pop_front().ok_or(MfxStatus::ERR_MORE_DATA)?;
    let faults = lock(&session.faults).next_picture(decoded.picture.kind());
    let labels = Labels {
        info,
        timestamp: decoded.timestamp,
        order: decoder.counters.pictures,
        corrupted: corruption(&decoded, faults),
    };
    decoder.counters.pictures += 1;
    if status.is_warning() {
        params::mfx_mut(&mut decoder.param).FrameInfo = info;
    }
    drop(guard); // the client's allocator is called next
    let allocator = *lock(&session.allocator);
    // SAFETY: the caller vouches for it.
    let surface = unsafe { deref(work) }?;
    let written = external::write(surface, allocator, &decoded.picture, &labels);
    if let Err(status) = written {
        return_picture(session, decoded);
        return Err(status);
    }
    let mut task = new_task(session, faults, Weak::new());
    // At least until the next call: a client that sees its work surface unlocked may pass it again before
    // it has read the picture.
    // SAFETY: as above; the client keeps a locked surface.
    task.locked = unsafe { external::raise_lock(work) };
    Ok(Given {
        surface: work,
        task: Arc::new(task),
        status,
    })
}

/// A picture that found no surface is the next one again.
fn return_picture(session: &Session, decoded: Decoded) {
    if let Some(decoder) = lock(&session.decoder).as_mut() {
        decoder.queue.push_front(decoded);
        decoder.counters.pictures -= 1;
    }
}

fn new_task(session: &Session, faults: PictureFaults, surface: Weak<Surface>) -> Task {
    let done_at = if faults.latency == Duration::ZERO {
        Instant::now()
    } else {
        schedule(faults.latency, lock(&session.faults).settings().engines)
    };
    let result = if faults.status_error {
        MfxStatus::ERR_ABORTED
    } else {
        MfxStatus::ERR_NONE
    };
    Task {
        done_at,
        result,
        hangs: faults.sync_hangs,
        surface,
        locked: None,
    }
}

/// `Data.Corrupted` of a picture.
fn corruption(decoded: &Decoded, faults: PictureFaults) -> u16 {
    let damage = Picture::damage(&decoded.picture);
    let mut corrupted = 0;
    if damage.slices || damage.whole || decoded.after_loss || faults.corrupt || faults.status_error
    {
        corrupted |= MFX_CORRUPTION_MAJOR;
    }
    if damage.reference {
        corrupted |= MFX_CORRUPTION_REFERENCE_FRAME;
    }
    corrupted as u16
}

fn unpackable(error: PackError) -> MfxStatus {
    match error {
        PackError::Sampling => MfxStatus::ERR_UNSUPPORTED,
        PackError::TooSmall => MfxStatus::ERR_UNDEFINED_BEHAVIOR,
    }
}
