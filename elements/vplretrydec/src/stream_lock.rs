// SPDX-License-Identifier: MPL-2.0

//! Holding the base class's stream lock.
//!
//! `GstVideoDecoder` calls its subclass with its recursive stream lock held. The task of the source pad takes
//! it, too: who holds it takes replies and pushes frames, so that they stay in order. C decoders have the macros
//! `GST_VIDEO_DECODER_STREAM_LOCK` and `_UNLOCK` for that.

use std::marker::PhantomData;

use gst::glib;
use gst::prelude::*;

/// This thread holds the stream lock while this lives.
pub(crate) struct StreamLock<'a> {
    decoder: &'a gst_video::VideoDecoder,
    /// Only the thread that took it gives it back.
    _of_this_thread: PhantomData<*const ()>,
}

impl<'a> StreamLock<'a> {
    pub(crate) fn hold(decoder: &'a gst_video::VideoDecoder) -> Self {
        // SAFETY: initialised with the decoder; a recursive lock may be taken whatever this thread holds.
        unsafe { glib::ffi::g_rec_mutex_lock(lock_of(decoder)) };
        Self {
            decoder,
            _of_this_thread: PhantomData,
        }
    }
}

impl Drop for StreamLock<'_> {
    fn drop(&mut self) {
        // SAFETY: taken in `hold`, by this thread.
        unsafe { glib::ffi::g_rec_mutex_unlock(lock_of(self.decoder)) };
    }
}

fn lock_of(decoder: &gst_video::VideoDecoder) -> *mut glib::ffi::GRecMutex {
    let instance: *mut gst_video::ffi::GstVideoDecoder = decoder.as_ptr();
    // SAFETY: the decoder is alive as long as the borrow, and the lock a plain member of it.
    unsafe { &raw mut (*instance).stream_lock }
}
