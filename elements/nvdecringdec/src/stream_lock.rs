// SPDX-License-Identifier: MPL-2.0

//! Letting go of the base class's stream lock.
//!
//! `GstVideoDecoder` calls its subclass with its recursive stream lock held once. The thread that finishes
//! frames needs it, and so does a flush; so whoever waits here for the decoder must not hold it. C decoders
//! have the macros `GST_VIDEO_DECODER_STREAM_UNLOCK` and `_LOCK` for that.

use gst::glib;
use gst::prelude::*;

/// The stream lock is free while this lives.
pub(crate) struct Unlocked<'a>(&'a gst_video::VideoDecoder);

impl<'a> Unlocked<'a> {
    /// To be called from `handle_frame`, `drain`, `finish` and `flush` alone, where this thread holds the
    /// lock, and with no `VideoCodecFrame` alive, because each holds it once more.
    pub(crate) fn new(decoder: &'a gst_video::VideoDecoder) -> Self {
        let decoder_ptr: *mut gst_video::ffi::GstVideoDecoder = decoder.as_ptr();
        // SAFETY: the decoder is alive as long as the borrow, and the lock a plain member of it.
        let lock = unsafe { &raw mut (*decoder_ptr).stream_lock };
        // SAFETY: the base class holds it in this thread, as the calls named above require.
        unsafe { glib::ffi::g_rec_mutex_unlock(lock) };
        Self(decoder)
    }
}

impl Drop for Unlocked<'_> {
    fn drop(&mut self) {
        let decoder_ptr: *mut gst_video::ffi::GstVideoDecoder = self.0.as_ptr();
        // SAFETY: as in `new`.
        let lock = unsafe { &raw mut (*decoder_ptr).stream_lock };
        // SAFETY: a recursive lock may be taken whatever this thread holds.
        unsafe { glib::ffi::g_rec_mutex_lock(lock) };
    }
}
