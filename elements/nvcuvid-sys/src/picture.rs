// SPDX-License-Identifier: MPL-2.0

//! [`PictureParams`]: what the parser hands to the decoder.

use std::cell::UnsafeCell;

use crate::bindings::*;
use crate::{av1, frame_type};

/// The parameters of one picture (or field). It is seen by reference only, while the callback runs: the
/// bitstream that it points to is gone afterwards.
#[repr(transparent)]
pub struct PictureParams(UnsafeCell<CUVIDPICPARAMS>);

impl PictureParams {
    /// # Safety
    /// `raw` has to be null or what a parser passes to its decode callback, valid and nobody else's for `'a`.
    pub(crate) unsafe fn of<'a>(raw: *mut CUVIDPICPARAMS) -> Option<&'a Self> {
        // SAFETY: the layout is the same, and the caller vouches for the rest.
        unsafe { raw.cast::<Self>().as_ref() }
    }

    fn get(&self) -> &CUVIDPICPARAMS {
        // SAFETY: only `cuvidDecodePicture` gets the pointer, and it reads (the header calls them IN).
        unsafe { &*self.0.get() }
    }

    /// The surface that is decoded into, and shown.
    pub fn picture_index(&self) -> i32 {
        self.get().CurrPicIdx
    }

    /// For AV1 with film grain, the surface that stays without grain and is what later pictures refer to.
    /// `None` for another `codec`: the parameters do not say whose they are.
    pub fn film_grain_reference(&self, codec: cudaVideoCodec) -> Option<i32> {
        if codec != cudaVideoCodec_AV1 {
            return None;
        }
        // SAFETY: the parser filled the structure.
        unsafe { av1::film_grain_reference(self.get()) }
    }

    /// Whether it is a field, and then whether the second of its pair: a pair takes two calls.
    pub fn second_field(&self) -> Option<bool> {
        let raw = self.get();
        (raw.field_pic_flag != 0).then_some(raw.second_field != 0)
    }

    /// Whether it is coded without reference to others: the parser says so, or the parameters of `codec` do.
    pub fn is_intra(&self, codec: cudaVideoCodec) -> bool {
        // SAFETY: the parser filled the structure.
        let by_codec = unsafe { frame_type::is_intra(self.get(), codec) };
        self.get().intra_pic_flag != 0 || by_codec.unwrap_or(false)
    }

    /// Whether others refer to it.
    pub fn is_reference(&self) -> bool {
        self.get().ref_pic_flag != 0
    }

    /// Bytes of its slices.
    pub fn size(&self) -> usize {
        self.get().nBitstreamDataLen as usize
    }

    pub(crate) fn as_ptr(&self) -> *mut CUVIDPICPARAMS {
        self.0.get()
    }
}
