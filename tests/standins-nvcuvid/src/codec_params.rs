// SPDX-License-Identifier: MPL-2.0

//! The codec's own picture parameters, as far as clients look into them: the size, and whether VP8, VP9 and AV1
//! call the picture a key frame.

use av_backend::PictureKind;
use elementary_stream::Codec;
use nvcuvid_sys::{CUVIDPICPARAMS, av1};

use crate::backend::Decoded;

/// Where dynlink_cuviddec.h has them, in words: the size comes first in all three structures.
const WIDTH: usize = 0;
const HEIGHT: usize = 1;
/// `CUVIDVP8PICPARAMS`: the last byte of this word is the frame tag, whose lowest bit is set but for key frames.
const VP8_TAG: usize = 3;
/// `CUVIDVP9PICPARAMS`: `frameType` is bit 5 of the unit, set but for key frames.
const VP9_FLAGS: usize = 3;
/// `CUVIDAV1PICPARAMS`: `decodePicIdx`.
const AV1_DECODED: usize = 3;
/// `CUVIDAV1PICPARAMS`: `frame_type` are the lowest two bits, 0 for a key frame and 1 for an inter frame.
const AV1_HEADER: usize = 5;

/// Fills what is known. `params` has its other fields already.
pub fn fill(params: &mut CUVIDPICPARAMS, codec: Codec, decoded: &Decoded) {
    if !matches!(codec, Codec::Vp8 | Codec::Vp9 | Codec::Av1) {
        return;
    }
    let Some(pixels) = &decoded.pixels else {
        return;
    };
    let inter = u32::from(decoded.kind != PictureKind::I);
    // SAFETY: any bytes are valid words, and the default that the structure began with has all of them.
    let words = unsafe { &mut params.CodecSpecific.CodecReserved };
    words[WIDTH] = pixels.width() as u32;
    words[HEIGHT] = pixels.height() as u32;
    match codec {
        Codec::Vp8 => words[VP8_TAG] = u32::from_ne_bytes([0, 0, 0, inter as u8]),
        Codec::Vp9 => words[VP9_FLAGS] = inter << 5,
        _ => {
            words[AV1_DECODED] = decoded.lease.index as u32;
            words[AV1_HEADER] = inter;
            if let Some(plain) = &decoded.without_grain {
                // SAFETY: as above.
                unsafe { av1::set_film_grain_reference(params, plain.index as i32) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pixels::Pixels;
    use crate::surfaces::Slots;

    fn filled(codec: Codec, kind: PictureKind) -> [u32; 8] {
        let mut slots = Slots::new(4, false);
        let decoded = Decoded {
            lease: slots.take().expect("four are free"),
            without_grain: slots.take(),
            pixels: Some(Arc::new(Pixels::blank(64, 48, 8))),
            kind,
            field: None,
        };
        let mut params = CUVIDPICPARAMS::default();
        fill(&mut params, codec, &decoded);
        // SAFETY: the default has all of them.
        let words = unsafe { &params.CodecSpecific.CodecReserved };
        words[..8].try_into().expect("eight words")
    }

    #[test]
    fn each_codec_has_its_own_way_to_say_that_a_frame_is_no_key_frame() {
        let (i, p) = (PictureKind::I, PictureKind::P);
        assert_eq!(filled(Codec::Vp8, i), [64, 48, 0, 0, 0, 0, 0, 0]);
        assert_eq!(filled(Codec::Vp8, p)[3].to_ne_bytes(), [0, 0, 0, 1]);
        assert_eq!(filled(Codec::Vp9, p)[3], 0x20);
        // The surface without grain is the second.
        assert_eq!(filled(Codec::Av1, p), [64, 48, 0, 1, 0, 1, 0, 0]);
        assert_eq!(filled(Codec::H264, p), [0; 8]);
    }
}
