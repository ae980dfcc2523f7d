// SPDX-License-Identifier: MPL-2.0

//! The GObject side of the element.

mod counters;
mod frames;
mod imp;
mod messages;
mod orders;
mod output;
mod replies;
mod settings;

use gst::glib;
use gst::prelude::*;

use crate::select::Wanted;

glib::wrapper! {
    /// `vplretrydec`: decodes H.264, H.265, AV1, VP9, VP8, MPEG-2 and JPEG with any oneVPL runtime.
    pub struct VplRetryDec(ObjectSubclass<imp::VplRetryDec>)
        @extends gst_video::VideoDecoder, gst::Element, gst::Object;
}

/// Property `implementation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstVplRetryDecImplementation")]
pub enum Implementation {
    /// Hardware where there is some, else software, with a warning.
    #[default]
    #[enum_value(name = "Hardware where there is some, else software", nick = "auto")]
    Auto,
    /// A GPU, or an error.
    #[enum_value(name = "Hardware alone", nick = "hardware")]
    Hardware,
    /// The processor.
    #[enum_value(name = "Software alone", nick = "software")]
    Software,
}

impl From<Implementation> for Wanted {
    fn from(implementation: Implementation) -> Self {
        match implementation {
            Implementation::Auto => Self::Auto,
            Implementation::Hardware => Self::Hardware,
            Implementation::Software => Self::Software,
        }
    }
}

/// Property `corrupted-frames`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstVplRetryDecCorruptedFrames")]
pub enum CorruptedFrames {
    /// Pushed with the buffer flag `corrupted`.
    #[default]
    #[enum_value(name = "Push them with the buffer flag corrupted", nick = "mark")]
    Mark,
    /// Not pushed.
    #[enum_value(name = "Drop and count them", nick = "drop")]
    Drop,
    /// The stream ends with an error.
    #[enum_value(name = "End with an error", nick = "error")]
    Error,
}

impl From<CorruptedFrames> for vplretry_core::CorruptedFrames {
    fn from(corrupted: CorruptedFrames) -> Self {
        match corrupted {
            CorruptedFrames::Mark => Self::Mark,
            CorruptedFrames::Drop => Self::Drop,
            CorruptedFrames::Error => Self::Error,
        }
    }
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "vplretrydec",
        gst::Rank::NONE,
        VplRetryDec::static_type(),
    )
}
