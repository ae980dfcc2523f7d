// SPDX-License-Identifier: MPL-2.0

//! The GObject side of the element.

mod device;
mod imp;
mod input;
mod pictures;
mod settings;
mod state;

use gst::glib;
use gst::prelude::*;

glib::wrapper! {
    /// `nvdecringdec`: decodes H.264, H.265, AV1, VP9, VP8 and MPEG-2 on NVDEC. Every frame that comes in
    /// leaves as a picture or is counted with its reason; every wait ends by a flush, a stop, an error or
    /// its deadline.
    pub struct NvdecRingDec(ObjectSubclass<imp::NvdecRingDec>)
        @extends gst_video::VideoDecoder, gst::Element, gst::Object;
}

/// Property `overflow`: what happens to a frame that comes while the ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstNvdecRingOverflow")]
pub enum NvdecRingOverflow {
    /// It waits: upstream is held back.
    #[default]
    #[enum_value(name = "Block: upstream waits for a free slot", nick = "block")]
    Block,
    /// The element ends with an error.
    #[enum_value(name = "Fail: the stream ends with an error", nick = "fail")]
    Fail,
}

/// Property `corrupted-frames`: what happens to a picture that the device could not decode whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstNvdecRingCorrupted")]
pub enum NvdecRingCorrupted {
    /// It goes on, with GST_BUFFER_FLAG_CORRUPTED.
    #[default]
    #[enum_value(
        name = "Mark: the buffer goes on with the flag corrupted",
        nick = "mark"
    )]
    Mark,
    /// It does not go on.
    #[enum_value(name = "Drop: the picture is dropped", nick = "drop")]
    Drop,
    /// The element ends with an error.
    #[enum_value(name = "Error: the stream ends with an error", nick = "error")]
    Error,
}

pub(crate) fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "nvdecringdec",
        gst::Rank::NONE,
        NvdecRingDec::static_type(),
    )
}
