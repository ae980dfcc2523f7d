// SPDX-License-Identifier: MPL-2.0

//! What the sink caps say of the stream: its codec, and how its access units are framed.

use elementary_stream::Codec;
use onevpl_sys as mfx;

use crate::nal_format::{self, Framing};

/// `MFX_CODEC_*` of a codec.
pub(crate) fn fourcc(codec: Codec) -> u32 {
    match codec {
        Codec::H264 => mfx::MFX_CODEC_AVC,
        Codec::H265 => mfx::MFX_CODEC_HEVC,
        Codec::Av1 => mfx::MFX_CODEC_AV1,
        Codec::Vp9 => mfx::MFX_CODEC_VP9,
        Codec::Vp8 => mfx::MFX_CODEC_VP8,
        Codec::Mpeg2 => mfx::MFX_CODEC_MPEG2,
        Codec::Mjpeg => mfx::MFX_CODEC_JPEG,
    }
}

/// Its name in messages.
pub(crate) fn name(codec: Codec) -> &'static str {
    match codec {
        Codec::H264 => "H.264",
        Codec::H265 => "H.265",
        Codec::Av1 => "AV1",
        Codec::Vp9 => "VP9",
        Codec::Vp8 => "VP8",
        Codec::Mpeg2 => "MPEG-2",
        Codec::Mjpeg => "JPEG",
    }
}

/// A codec whose bitstream is a run of bytes: what a call leaves may go before the next access unit.
pub(crate) fn is_byte_stream(codec: Codec) -> bool {
    matches!(codec, Codec::H264 | Codec::H265 | Codec::Mpeg2)
}

/// The stream as its caps describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamFormat {
    pub(crate) codec: Codec,
    pub(crate) framing: Framing,
    /// Parameter sets of `codec_data`, with start codes.
    pub(crate) sets: Vec<u8>,
}

const SINK_CAPS: &str = "video/x-h264, stream-format=(string){ byte-stream, avc, avc3 }, alignment=(string)au; \
    video/x-h265, stream-format=(string){ byte-stream, hvc1, hev1 }, alignment=(string)au; \
    video/x-av1, stream-format=(string)obu-stream, alignment=(string)tu; \
    video/x-vp9, alignment=(string){ super-frame, frame }; \
    video/x-vp9; \
    video/x-vp8; \
    video/mpeg, mpegversion=(int)2, systemstream=(boolean)false, parsed=(boolean)true; \
    image/jpeg";

/// The formats of `mfxFrameInfo` that have a GStreamer counterpart.
pub(crate) const SRC_FORMATS: [&str; 8] = [
    "NV12",
    "P010_10LE",
    "I420",
    "I420_10LE",
    "YUY2",
    "Y210",
    "VUYA",
    "Y410",
];

/// What the sink pad takes.
pub(crate) fn sink_caps() -> gst::Caps {
    SINK_CAPS.parse().expect("the caps are well-formed")
}

/// What the source pad gives.
pub(crate) fn src_caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .field("format", gst::List::new(SRC_FORMATS))
        .build()
}

impl StreamFormat {
    /// Reads fixed sink caps.
    ///
    /// # Errors
    /// A sentence for the error message.
    pub(crate) fn from_caps(caps: &gst::CapsRef) -> Result<Self, String> {
        let structure = caps.structure(0).ok_or("the sink caps are empty")?;
        let codec = match structure.name().as_str() {
            "video/x-h264" => Codec::H264,
            "video/x-h265" => Codec::H265,
            "video/x-av1" => Codec::Av1,
            "video/x-vp9" => Codec::Vp9,
            "video/x-vp8" => Codec::Vp8,
            "video/mpeg" => Codec::Mpeg2,
            "image/jpeg" => Codec::Mjpeg,
            other => return Err(format!("{other} is not decoded")),
        };
        let mut format = Self {
            codec,
            framing: Framing::Whole,
            sets: Vec::new(),
        };
        let stream_format = structure
            .get::<&str>("stream-format")
            .unwrap_or("byte-stream");
        let read = match (codec, stream_format) {
            (Codec::H264, "avc" | "avc3") => nal_format::read_avc,
            (Codec::H265, "hvc1" | "hev1") => nal_format::read_hevc,
            _ => return Ok(format),
        };
        let data = structure.get::<gst::Buffer>("codec_data").map_err(|_| {
            format!("the caps say stream-format={stream_format} and carry no codec_data")
        })?;
        let data = data
            .map_readable()
            .map_err(|_| "the codec_data of the caps cannot be read")?;
        let (length_size, sets) = read(&data).ok_or_else(|| {
            format!("the codec_data of the caps is no {stream_format} configuration")
        })?;
        format.framing = Framing::LengthPrefixed(length_size);
        format.sets = sets;
        Ok(format)
    }
}
