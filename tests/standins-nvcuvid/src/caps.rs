// SPDX-License-Identifier: MPL-2.0

//! What the device decodes: what libavcodec and libdav1d decode into 4:2:0, as a recent NVDEC.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

use nvcuvid_sys::*;

/// What a codec can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Can {
    /// Smallest coded columns.
    pub min_width: u16,
    /// Smallest coded rows.
    pub min_height: u16,
    /// Largest coded columns.
    pub max_width: u32,
    /// Largest coded rows.
    pub max_height: u32,
    /// Whether samples deeper than 8 bits come out as P016.
    pub deep: bool,
}

/// What is decoded of a codec, or `None`.
pub fn of(codec: cudaVideoCodec, chroma: cudaVideoChromaFormat, depth: u32) -> Option<Can> {
    if chroma != cudaVideoChromaFormat_420 {
        return None;
    }
    let (min_width, min_height, max_width, max_height, deepest) = match codec {
        cudaVideoCodec_H264 => (48, 16, 4096, 4096, 8),
        cudaVideoCodec_HEVC => (64, 64, 8192, 8192, 10),
        cudaVideoCodec_AV1 if std::env::var_os("NVSTANDIN_NO_AV1").is_some() => return None,
        cudaVideoCodec_AV1 => (16, 16, 8192, 8192, 10),
        cudaVideoCodec_VP9 => (16, 16, 8192, 8192, 10),
        cudaVideoCodec_VP8 => (16, 16, 4096, 4096, 8),
        cudaVideoCodec_MPEG1 | cudaVideoCodec_MPEG2 => (48, 16, 4080, 4080, 8),
        _ => return None,
    };
    let known = depth == 8 || depth == 10;
    (known && depth <= deepest).then_some(Can {
        min_width,
        min_height,
        max_width,
        max_height,
        deep: depth > 8,
    })
}

/// `cuvidGetDecoderCaps`: fills what is asked for. `engines` is how many the device has.
pub fn answer(caps: &mut CUVIDDECODECAPS, engines: u64) {
    let depth = caps.nBitDepthMinus8.saturating_add(8);
    let can = of(caps.eCodecType, caps.eChromaFormat, depth);
    caps.bIsSupported = can.is_some().into();
    caps.nNumNVDECs = 0;
    caps.nOutputFormatMask = 0;
    if let Some(can) = can {
        caps.nNumNVDECs = u8::try_from(engines).unwrap_or(u8::MAX);
        caps.nOutputFormatMask = 1 << cudaVideoSurfaceFormat_NV12;
        if can.deep {
            caps.nOutputFormatMask |= 1 << cudaVideoSurfaceFormat_P016;
        }
        caps.nMinWidth = can.min_width;
        caps.nMinHeight = can.min_height;
        caps.nMaxWidth = can.max_width;
        caps.nMaxHeight = can.max_height;
        caps.nMaxMBCount = (can.max_width / 16) * (can.max_height / 16);
    }
}
