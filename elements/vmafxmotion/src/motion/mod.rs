// SPDX-License-Identifier: MPL-2.0

//! The GObject side of the element.

mod flags;
mod imp;
mod pads;
mod settings;
mod signals;
mod state;
mod stream;
mod timer;

use gst::glib;
use gst::prelude::*;
use vmaf_motion::Extractor;

pub use flags::{MotionMessages, MotionPool};

glib::wrapper! {
    /// `vmafxmotion`: a filter that scores the video that flows through it. One buffer in, the same
    /// buffer out, at once and with its memory untouched; see [`crate::MotionScore`] for what it
    /// carries then, [`crate::FrameMessage`] and [`crate::SummaryMessage`] for what the bus tells.
    pub struct VmafxMotion(ObjectSubclass<imp::VmafxMotion>) @extends gst::Element, gst::Object;
}

/// Property `extractor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstVmafxMotionExtractor")]
pub enum MotionExtractor {
    /// libvmaf's `motion`.
    #[default]
    #[enum_value(
        name = "Integer: libvmaf's motion, which the VMAF models read",
        nick = "integer"
    )]
    Integer,
    /// libvmaf's `float_motion`.
    #[enum_value(
        name = "Float: libvmaf's float_motion, which the vmaf_float models read",
        nick = "float"
    )]
    Float,
}

impl From<MotionExtractor> for Extractor {
    fn from(extractor: MotionExtractor) -> Self {
        match extractor {
            MotionExtractor::Integer => Self::Integer,
            MotionExtractor::Float => Self::Float,
        }
    }
}

impl From<Extractor> for MotionExtractor {
    fn from(extractor: Extractor) -> Self {
        match extractor {
            Extractor::Integer => Self::Integer,
            Extractor::Float => Self::Float,
        }
    }
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "vmafxmotion",
        gst::Rank::NONE,
        VmafxMotion::static_type(),
    )
}
