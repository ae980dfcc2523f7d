// SPDX-License-Identifier: MPL-2.0

//! A sequence header as the sequence callback tells it, and codecs by NVIDIA's numbers.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

use elementary_stream::{Codec, Sampling, Sequence};
use nvcuvid_sys::*;

/// The codec of a number, where this library decodes it.
pub fn codec_of(number: cudaVideoCodec) -> Option<Codec> {
    match number {
        cudaVideoCodec_H264 => Some(Codec::H264),
        cudaVideoCodec_HEVC => Some(Codec::H265),
        cudaVideoCodec_AV1 => Some(Codec::Av1),
        cudaVideoCodec_VP9 => Some(Codec::Vp9),
        cudaVideoCodec_VP8 => Some(Codec::Vp8),
        cudaVideoCodec_MPEG1 | cudaVideoCodec_MPEG2 => Some(Codec::Mpeg2),
        _ => None,
    }
}

/// Surfaces without which the stream does not decode: references, pictures that wait for their turn, the one
/// that is decoded and the one that is shown, as libavcodec and libdav1d keep them.
pub fn minimum_surfaces(codec: Codec, sequence: &Sequence) -> u32 {
    let kept = sequence.references;
    match codec {
        Codec::H264 | Codec::H265 => kept + 4,
        Codec::Vp9 => 8 + 4,
        // Two more for the forms with film grain.
        Codec::Av1 => 8 + 6,
        Codec::Vp8 => 3 + 3,
        Codec::Mpeg2 | Codec::Mjpeg => 2 + 4,
    }
    .min(MAX_SURFACES)
}

/// Surfaces that a decoder has at most.
pub const MAX_SURFACES: u32 = 32;

/// The sequence callback's argument. `number` is the codec as the client named it.
pub fn describe(number: cudaVideoCodec, codec: Codec, sequence: &Sequence) -> CUVIDEOFORMAT {
    let (numerator, denominator) = sequence.frame_rate.unwrap_or((0, 0));
    let crop = sequence.crop;
    let (across, down) = sequence.sample_aspect.unwrap_or((1, 1));
    let (x, y) = reduced(
        u64::from(crop.width) * u64::from(across),
        u64::from(crop.height) * u64::from(down),
    );
    let chroma = match sequence.sampling {
        Sampling::Monochrome => cudaVideoChromaFormat_Monochrome,
        Sampling::Yuv420 => cudaVideoChromaFormat_420,
        Sampling::Yuv422 => cudaVideoChromaFormat_422,
        Sampling::Yuv444 => cudaVideoChromaFormat_444,
    };
    // MPEG-2 codes whole blocks and says only what is shown; an interlaced sequence codes them by field.
    let coded = |size: u32, unit: u32| match codec {
        Codec::Mpeg2 => size.next_multiple_of(unit),
        _ => size,
    };
    let rows = if sequence.progressive { 16 } else { 32 };
    let mut format = CUVIDEOFORMAT {
        codec: number,
        progressive_sequence: sequence.progressive.into(),
        bit_depth_luma_minus8: sequence.depth.saturating_sub(8) as u8,
        bit_depth_chroma_minus8: sequence.chroma_depth.saturating_sub(8) as u8,
        min_num_decode_surfaces: minimum_surfaces(codec, sequence) as u8,
        coded_width: coded(sequence.width, 16),
        coded_height: coded(sequence.height, rows),
        chroma_format: chroma,
        ..Default::default()
    };
    format.frame_rate.numerator = numerator;
    format.frame_rate.denominator = denominator;
    format.display_area.left = crop.left as i32;
    format.display_area.top = crop.top as i32;
    format.display_area.right = (crop.left + crop.width) as i32;
    format.display_area.bottom = (crop.top + crop.height) as i32;
    format.display_aspect_ratio.x = x as i32;
    format.display_aspect_ratio.y = y as i32;
    // Unspecified, in the words of each table.
    let signal = &mut format.video_signal_description;
    signal.set_video_format(5);
    signal.color_primaries = 2;
    signal.transfer_characteristics = 2;
    signal.matrix_coefficients = 2;
    format
}

fn reduced(x: u64, y: u64) -> (u64, u64) {
    let (mut a, mut b) = (x, y);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (x / a.max(1), y / a.max(1))
}
