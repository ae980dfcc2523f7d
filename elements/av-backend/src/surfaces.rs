// SPDX-License-Identifier: MPL-2.0

//! [`Surfaces`]: a say in where pictures are decoded, for a runtime whose surfaces are numbered.
//!
//! libavcodec asks for a buffer when it begins a picture and gives it back when no other picture refers to it
//! and nobody holds the picture any more. A [`Tag`] that goes with the buffer lives exactly as long.

use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use ffmpeg_sys_next as ff;

use crate::picture::Picture;

/// What a runtime ties to a buffer. It is dropped when libavcodec and every [`Picture`] are done with it.
pub type Tag = Arc<dyn Any + Send + Sync>;

/// Gives out surfaces.
pub trait Surfaces: Send {
    /// A picture is begun, in decoding order. `buffer` shows where its samples will be: they are complete
    /// once the packet, or for two fields the second packet, was sent. It is sized as the buffer is, which
    /// may be larger than the picture, and holds the memory until it is dropped.
    ///
    /// `None` where no surface is free: the picture is not decoded.
    fn lease(&mut self, buffer: Picture) -> Option<Tag>;
}

/// `AVCodecContext::get_buffer2`.
///
/// # Safety
/// `context` has to be open with `opaque` pointing to a `Box<dyn Surfaces>` that nobody else uses; `frame`
/// is libavcodec's.
pub(crate) unsafe extern "C" fn get_buffer(
    context: *mut ff::AVCodecContext,
    frame: *mut ff::AVFrame,
    flags: c_int,
) -> c_int {
    // SAFETY: both are libavcodec's own.
    let code = unsafe { ff::avcodec_default_get_buffer2(context, frame, flags) };
    if code < 0 {
        return code;
    }
    // SAFETY: the frame has buffers now; the copy refers to the same ones.
    let Some(copy) = NonNull::new(unsafe { ff::av_frame_clone(frame) }) else {
        return -ff::ENOMEM;
    };
    // SAFETY: the caller vouches for the context.
    let opaque = unsafe { (*context).opaque };
    // SAFETY: and for what it points to.
    let surfaces = unsafe { &mut *opaque.cast::<Box<dyn Surfaces>>() };
    let copy = Picture::adopt(copy);
    // A panic must not unwind through libavcodec.
    let leased = catch_unwind(AssertUnwindSafe(|| surfaces.lease(copy)));
    let Ok(Some(tag)) = leased else {
        return -ff::ENOMEM;
    };
    let raw = Box::into_raw(Box::new(tag));
    // SAFETY: the box is given to the buffer, whose free function takes it back.
    let buffer = unsafe {
        ff::av_buffer_create(
            raw.cast(),
            size_of::<Tag>(),
            Some(free_tag),
            ptr::null_mut(),
            0,
        )
    };
    if buffer.is_null() {
        // SAFETY: nobody else has the box.
        drop(unsafe { Box::from_raw(raw) });
        return -ff::ENOMEM;
    }
    // SAFETY: a frame that is handed to get_buffer2 has no opaque reference.
    unsafe { (*frame).opaque_ref = buffer };
    0
}

unsafe extern "C" fn free_tag(_opaque: *mut std::ffi::c_void, data: *mut u8) {
    // SAFETY: the data is the box that `get_buffer` gave to the buffer, and this is its last owner.
    drop(unsafe { Box::from_raw(data.cast::<Tag>()) });
}

/// The tag of a frame.
pub(crate) fn tag_of(frame: &ff::AVFrame) -> Option<Tag> {
    // SAFETY: the reference is null or valid while the frame is.
    let buffer = unsafe { frame.opaque_ref.as_ref() }?;
    // SAFETY: opaque references in this crate are made by `get_buffer` alone.
    Some(unsafe { &*buffer.data.cast::<Tag>() }.clone())
}
