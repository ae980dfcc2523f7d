// SPDX-License-Identifier: MPL-2.0

//! The codecs.

use std::fmt;

use nvcuvid_sys as nv;
use nvdecring_core::Identity;

/// What a stream is coded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// H.264, byte stream, an access unit a packet.
    H264,
    /// H.265, byte stream, an access unit a packet.
    H265,
    /// AV1, low-overhead format, a temporal unit a packet.
    Av1,
    /// VP9, a frame or superframe a packet.
    Vp9,
    /// VP8, a frame a packet.
    Vp8,
    /// MPEG-2, a frame or field a packet.
    Mpeg2,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Self; 6] = [
        Self::H264,
        Self::H265,
        Self::Av1,
        Self::Vp9,
        Self::Vp8,
        Self::Mpeg2,
    ];

    /// The library's number (`cudaVideoCodec`).
    pub const fn raw(self) -> nv::cudaVideoCodec {
        match self {
            Self::H264 => nv::cudaVideoCodec_H264,
            Self::H265 => nv::cudaVideoCodec_HEVC,
            Self::Av1 => nv::cudaVideoCodec_AV1,
            Self::Vp9 => nv::cudaVideoCodec_VP9,
            Self::Vp8 => nv::cudaVideoCodec_VP8,
            Self::Mpeg2 => nv::cudaVideoCodec_MPEG2,
        }
    }

    /// Which packet a picture belongs to.
    pub const fn identity(self) -> Identity {
        match self {
            Self::H264 | Self::H265 | Self::Mpeg2 => Identity::Decoded,
            Self::Av1 | Self::Vp9 | Self::Vp8 => Identity::Shown,
        }
    }

    /// The display delay that this codec can have: codecs that do not reorder have none, because their
    /// pictures belong to the packet that shows them.
    pub const fn display_delay(self, wanted: u8) -> u8 {
        match self.identity() {
            Identity::Decoded => wanted,
            Identity::Shown => 0,
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::H264 => "H.264",
            Self::H265 => "H.265",
            Self::Av1 => "AV1",
            Self::Vp9 => "VP9",
            Self::Vp8 => "VP8",
            Self::Mpeg2 => "MPEG-2",
        })
    }
}
