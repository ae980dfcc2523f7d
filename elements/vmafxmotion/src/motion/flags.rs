// SPDX-License-Identifier: MPL-2.0
#![allow(missing_docs, reason = "glib::flags drops the doc comments")]

//! What is posted on the bus.

use gst::glib;

/// Property `messages`: what is posted on the bus.
#[glib::flags(name = "GstVmafxMotionMessages")]
pub enum MotionMessages {
    /// `vmafxmotion-frame`.
    #[flags_value(name = "The scores of each frame, when they are final", nick = "frame")]
    FRAME = 0b001,
    /// `vmafxmotion-summary`.
    #[flags_value(
        name = "Counts and pooled scores at the end of each session",
        nick = "summary"
    )]
    SUMMARY = 0b100,
}
