// SPDX-License-Identifier: MPL-2.0

//! Key frames of VP8, VP9 and AV1: the codec's own parameters say what `intra_pic_flag` may leave out.
//!
//! The structures (dynlink_cuviddec.h) are bound as arrays of words; this module knows the one bit field
//! that matters in each. The test `layout` compares the places with the header.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

use crate::bindings::*;

/// Byte offset of the frame tag in `CUVIDVP8PICPARAMS`, whose lowest bit is `frame_type`: 0 for a key frame.
pub const VP8_FRAME_TAG_OFFSET: usize = 15;

/// Byte offset of the 16-bit unit of `CUVIDVP9PICPARAMS` that holds `frameType` and `intraOnly`.
pub const VP9_FLAGS_OFFSET: usize = 12;

/// Byte offset of the 32-bit unit of `CUVIDAV1PICPARAMS` whose lowest two bits are `frame_type`.
pub const AV1_FRAME_HEADER_OFFSET: usize = 20;

const VP9_FRAME_TYPE: u32 = 1 << 5;
const VP9_INTRA_ONLY: u32 = 1 << 11;

/// Whether the codec's own parameters call the picture a key frame or intra-only. `None` for a codec whose
/// parameters do not say it, and where the parser left them empty.
///
/// # Safety
/// The first 1024 bytes of `picture.CodecSpecific` have to be initialised, as the parser and
/// `CUVIDPICPARAMS::default()` do.
pub unsafe fn is_intra(picture: &CUVIDPICPARAMS, codec: cudaVideoCodec) -> Option<bool> {
    // SAFETY: the caller vouches for initialised bytes, and any bytes are valid words.
    let words = unsafe { &picture.CodecSpecific.CodecReserved };
    // All three structures begin with the width.
    if words[0] == 0 {
        return None;
    }
    let byte = |at: usize| words[at / 4].to_ne_bytes()[at % 4];
    match codec {
        cudaVideoCodec_VP8 => Some(byte(VP8_FRAME_TAG_OFFSET) & 1 == 0),
        cudaVideoCodec_VP9 => {
            let flags = [byte(VP9_FLAGS_OFFSET), byte(VP9_FLAGS_OFFSET + 1)];
            let flags = u32::from(u16::from_ne_bytes(flags));
            Some(flags & VP9_FRAME_TYPE == 0 || flags & VP9_INTRA_ONLY != 0)
        }
        // 0 is a key frame, 2 an intra-only one.
        cudaVideoCodec_AV1 => Some(words[AV1_FRAME_HEADER_OFFSET / 4] & 1 == 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(codec: cudaVideoCodec, words: &[(usize, u32)]) -> Option<bool> {
        let mut picture = CUVIDPICPARAMS::default();
        for (at, word) in words {
            // SAFETY: the default is all zeroes, and any bytes are valid words.
            let all = unsafe { &mut picture.CodecSpecific.CodecReserved };
            all[*at] = *word;
        }
        // SAFETY: as above.
        unsafe { is_intra(&picture, codec) }
    }

    #[test]
    fn each_codec_has_its_own_way_to_say_key_frame() {
        let size = (0, 320);
        assert_eq!(said(cudaVideoCodec_VP8, &[size]), Some(true));
        assert_eq!(said(cudaVideoCodec_VP8, &[size, (3, 1 << 24)]), Some(false));
        assert_eq!(said(cudaVideoCodec_VP9, &[size]), Some(true));
        assert_eq!(said(cudaVideoCodec_VP9, &[size, (3, 0x20)]), Some(false));
        assert_eq!(said(cudaVideoCodec_VP9, &[size, (3, 0x820)]), Some(true));
        assert_eq!(said(cudaVideoCodec_AV1, &[size]), Some(true));
        assert_eq!(said(cudaVideoCodec_AV1, &[size, (5, 1)]), Some(false));
        assert_eq!(said(cudaVideoCodec_AV1, &[size, (5, 2)]), Some(true));
    }

    #[test]
    fn empty_parameters_and_other_codecs_say_nothing() {
        assert_eq!(said(cudaVideoCodec_VP9, &[]), None);
        assert_eq!(said(cudaVideoCodec_H264, &[(0, 1)]), None);
    }
}
