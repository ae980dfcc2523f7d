// SPDX-License-Identifier: MPL-2.0

//! [`Client`]: the callbacks of a parser's client.

use std::ffi::{c_int, c_uint, c_void};

use av_backend::PictureKind;
use elementary_stream::Codec;
use nvcuvid_sys::*;

use crate::backend::Decoded;
use crate::codec_params;
use crate::dav1d::Layers;

/// The callbacks and their argument.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// `pUserData`, an address that only the client knows anything about.
    user: usize,
    sequence: unsafe extern "C" fn(*mut c_void, *mut CUVIDEOFORMAT) -> c_int,
    decode: unsafe extern "C" fn(*mut c_void, *mut CUVIDPICPARAMS) -> c_int,
    /// A client that shows nothing may leave it out.
    display: PFNVIDDISPLAYCALLBACK,
    operating_point: PFNVIDOPPOINTCALLBACK,
}

/// Where the only slice that is told begins: the client's decoder gets the unit as a whole.
static SLICE_OFFSETS: [c_uint; 1] = [0];

impl Client {
    /// `None` where a callback is missing.
    pub fn new(params: &CUVIDPARSERPARAMS) -> Option<Self> {
        Some(Self {
            user: params.pUserData.expose_provenance(),
            sequence: params.pfnSequenceCallback?,
            decode: params.pfnDecodePicture?,
            display: params.pfnDisplayPicture,
            operating_point: params.pfnGetOperatingPoint,
        })
    }

    fn user(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.user)
    }

    /// What the client answers to a sequence: 0 fails, 1 keeps the number of surfaces, more is the number.
    pub fn sequence(&self, format: &mut CUVIDEOFORMAT) -> c_int {
        // SAFETY: function and argument are the client's, who keeps them until the parser is destroyed.
        unsafe { (self.sequence)(self.user(), format) }
    }

    /// A picture in decoding order; whether the client took it.
    pub fn decode(&self, params: &mut CUVIDPICPARAMS) -> bool {
        // SAFETY: as above.
        unsafe { (self.decode)(self.user(), params) != 0 }
    }

    /// A picture in display order; whether the client took it.
    pub fn display(&self, info: &mut CUVIDPARSERDISPINFO) -> bool {
        match self.display {
            // SAFETY: as above.
            Some(display) => unsafe { display(self.user(), info) != 0 },
            None => true,
        }
    }

    /// Nothing more is shown.
    pub fn end_of_stream(&self) -> bool {
        match self.display {
            // SAFETY: as above; null is what the interface passes at the end.
            Some(display) => unsafe { display(self.user(), std::ptr::null_mut()) != 0 },
            None => true,
        }
    }

    /// Which operating point of a scalable AV1 stream the client wants; the first where it does not say.
    pub fn operating_point(&self, codec: cudaVideoCodec, idc: &[u16]) -> Layers {
        let Some(callback) = self.operating_point else {
            return Layers::default();
        };
        let mut info = CUVIDOPERATINGPOINTINFO {
            codec,
            ..Default::default()
        };
        let mut points = CUVIDOPERATINGPOINTINFO__bindgen_ty_1__bindgen_ty_1 {
            operating_points_cnt: idc.len() as u8,
            ..Default::default()
        };
        for (to, from) in points.operating_points_idc.iter_mut().zip(idc) {
            *to = *from;
        }
        info.__bindgen_anon_1.av1 = points;
        // SAFETY: as above.
        let answer = unsafe { callback(self.user(), &mut info) };
        match u8::try_from(answer & 0x3ff) {
            Ok(point) if answer >= 0 && usize::from(point) < idc.len() => Layers {
                point,
                all: answer & 1 << 10 != 0,
            },
            _ => Layers::default(),
        }
    }

    /// The parameters of a picture, as far as this library has them: what a client may look at, and not what
    /// an engine needs to decode.
    pub fn picture(&self, codec: Codec, decoded: &Decoded, unit: &[u8]) -> CUVIDPICPARAMS {
        let mut params = CUVIDPICPARAMS {
            CurrPicIdx: decoded.lease.index as c_int,
            field_pic_flag: decoded.field.is_some().into(),
            bottom_field_flag: decoded.field.is_some_and(|field| field.bottom).into(),
            second_field: decoded.field.is_some_and(|field| field.second).into(),
            nBitstreamDataLen: unit.len() as c_uint,
            pBitstreamData: unit.as_ptr(),
            nNumSlices: 1,
            pSliceDataOffsets: SLICE_OFFSETS.as_ptr(),
            ref_pic_flag: is_reference(codec, decoded.kind, unit).into(),
            intra_pic_flag: (decoded.kind == PictureKind::I).into(),
            ..Default::default()
        };
        if let Some(pixels) = &decoded.pixels {
            params.PicWidthInMbs = pixels.width().div_ceil(16) as c_int;
            params.FrameHeightInMbs = pixels.height().div_ceil(16) as c_int;
        }
        codec_params::fill(&mut params, codec, decoded);
        params
    }
}

/// Whether other pictures may refer to it.
fn is_reference(codec: Codec, kind: PictureKind, unit: &[u8]) -> bool {
    let first = crate::units::first_picture(codec, unit);
    let nal = elementary_stream::nal::units(unit.get(first..).unwrap_or_default(), true).next();
    let header = nal.and_then(|nal| nal.bytes.first().copied());
    match (codec, header) {
        (Codec::H264, Some(header)) => header >> 5 & 3 != 0,
        // Pictures of even types below 16 are not referred to within their layer.
        (Codec::H265, Some(header)) => !matches!(header >> 1 & 63, 0..=14 if header >> 1 & 1 == 0),
        (Codec::Mpeg2, _) => kind != PictureKind::B,
        _ => true,
    }
}
