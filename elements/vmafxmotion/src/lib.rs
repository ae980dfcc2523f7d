// SPDX-License-Identifier: MPL-2.0

//! The element `vmafxmotion`: exact VMAF motion scores of the video that flows through it.
//!
//! Applications that link this crate read scores without string keys:
//! [`MotionScore::from_buffer`] takes them from a buffer, [`FrameMessage`], [`WindowMessage`] and
//! [`SummaryMessage`] from the structures of bus messages. The element itself is documented by
//! `gst-inspect-1.0 vmafxmotion`.

mod formats;
mod hold;
mod messages;
mod meta;
mod motion;
mod picture;
mod score_text;
mod session;
mod times;
mod writer;

use gst::glib;

pub use messages::{
    FeatureSummary, FrameMessage, SummaryMessage, WindowFailure, WindowMessage, WindowScores,
    WrongStructure,
};
pub use meta::{FinalFrames, META_NAME, MotionScore};
pub use motion::{MotionExtractor, MotionMessages, MotionPool, VmafxMotion};
pub use times::FrameTimes;

/// Registers the meta and the element.
///
/// # Errors
/// When GStreamer refuses the element.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    meta::register();
    motion::register(plugin)
}
