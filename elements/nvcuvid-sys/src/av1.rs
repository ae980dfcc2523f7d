// SPDX-License-Identifier: MPL-2.0

//! AV1's film grain takes two surfaces a picture: `CurrPicIdx` is the one with grain, which is shown, and
//! `decodePicIdx` the one without, which later pictures refer to. Both are in use until the picture is done.
//!
//! `CUVIDAV1PICPARAMS` (dynlink_cuviddec.h) is bound as an array of words; these functions know the two that
//! matter. The test `layout` compares both places with the header.

use crate::bindings::CUVIDPICPARAMS;

/// Byte offset of `decodePicIdx` (C int) in `CUVIDAV1PICPARAMS`.
pub const DECODE_PIC_IDX_OFFSET: usize = 12;

/// Byte offset of the 16-bit unit whose lowest bit is `apply_grain`.
pub const APPLY_GRAIN_OFFSET: usize = 764;

const APPLY_GRAIN_WORD: usize = APPLY_GRAIN_OFFSET / 4;
/// The unit is the first half of its word in memory.
const APPLY_GRAIN_BIT: u32 = if cfg!(target_endian = "little") {
    1
} else {
    1 << 31
};

/// The surface without grain of an AV1 picture, or `None` where no grain is applied and one surface is all.
///
/// # Safety
/// The first 1024 bytes of `picture.CodecSpecific` have to be initialised, as the parser and
/// `CUVIDPICPARAMS::default()` do. For another codec than AV1 the answer means nothing.
pub unsafe fn film_grain_reference(picture: &CUVIDPICPARAMS) -> Option<i32> {
    // SAFETY: the caller vouches for initialised bytes, and any bytes are valid words.
    let words = unsafe { &picture.CodecSpecific.av1.0 };
    let grain = words[APPLY_GRAIN_WORD] & APPLY_GRAIN_BIT != 0;
    grain.then_some(words[DECODE_PIC_IDX_OFFSET / 4] as i32)
}

/// Says in an AV1 picture that grain is applied and which surface stays without it.
///
/// # Safety
/// As for [`film_grain_reference`].
pub unsafe fn set_film_grain_reference(picture: &mut CUVIDPICPARAMS, index: i32) {
    // SAFETY: the caller vouches for initialised bytes, and any bytes are valid words.
    let words = unsafe { &mut picture.CodecSpecific.av1.0 };
    words[DECODE_PIC_IDX_OFFSET / 4] = index as u32;
    words[APPLY_GRAIN_WORD] |= APPLY_GRAIN_BIT;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_without_grain_has_one_surface_and_one_with_grain_two() {
        let mut picture = CUVIDPICPARAMS::default();
        // SAFETY: the default is all zeroes.
        let plain = unsafe { film_grain_reference(&picture) };
        assert_eq!(plain, None);
        // SAFETY: as above.
        unsafe { set_film_grain_reference(&mut picture, 7) };
        // SAFETY: as above.
        let grain = unsafe { film_grain_reference(&picture) };
        assert_eq!(grain, Some(7));
    }
}
