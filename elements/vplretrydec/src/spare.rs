// SPDX-License-Identifier: MPL-2.0

//! [`Spare`]: a buffer of downstream's pool that lies ready while a picture is decoded. The session thread, whose
//! caches hold the picture, copies it there and has its surface back at once: it neither hands the surface over
//! nor waits for it.

use gst_video::VideoInfo;
use onevpl_sys::{self as mfx, MappedSurface, PictureInfo};

use crate::copy::copy_into;

/// What was negotiated downstream, and for which surfaces.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    /// Of the surface, without its fields.
    pub(crate) source: PictureInfo,
    pub(crate) interlaced: bool,
    pub(crate) info: VideoInfo,
}

impl Negotiated {
    /// Whether this surface can go out without a new negotiation.
    pub(crate) fn covers(&self, shown: &PictureInfo) -> bool {
        self.source == without_fields(shown) && (self.interlaced || !has_fields(shown))
    }
}

/// Fields come and go without a new format.
pub(crate) fn without_fields(shown: &PictureInfo) -> PictureInfo {
    PictureInfo {
        pic_struct: 0,
        ..*shown
    }
}

/// Whether a picture is made of two fields.
pub(crate) fn has_fields(shown: &PictureInfo) -> bool {
    let fields = (mfx::MFX_PICSTRUCT_FIELD_TFF | mfx::MFX_PICSTRUCT_FIELD_BFF) as u16;
    shown.pic_struct & fields != 0
}

/// A buffer for the next picture.
#[derive(Debug)]
pub(crate) struct Spare {
    buffer: gst::Buffer,
    negotiated: Negotiated,
}

impl Spare {
    pub(crate) fn new(buffer: gst::Buffer, negotiated: Negotiated) -> Self {
        Self { buffer, negotiated }
    }

    /// The buffer with the picture of a surface; `None` where the surface is not one that it was made for, or it
    /// cannot be written.
    pub(crate) fn fill(self, surface: &MappedSurface) -> Option<gst::Buffer> {
        let Self {
            mut buffer,
            negotiated,
        } = self;
        if !negotiated.covers(&surface.surface().info()) {
            return None;
        }
        copy_into(surface, buffer.get_mut()?, &negotiated.info).then_some(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated(source: PictureInfo, interlaced: bool) -> Negotiated {
        gst::init().expect("GStreamer starts");
        let info = VideoInfo::builder(gst_video::VideoFormat::Nv12, 64, 48);
        Negotiated {
            source,
            interlaced,
            info: info.build().expect("a small picture"),
        }
    }

    #[test]
    fn another_size_or_the_first_fields_are_negotiated_anew() {
        let progressive = PictureInfo {
            crop_width: 64,
            crop_height: 48,
            pic_struct: mfx::MFX_PICSTRUCT_PROGRESSIVE as u16,
            ..PictureInfo::default()
        };
        let fields = PictureInfo {
            pic_struct: mfx::MFX_PICSTRUCT_FIELD_BFF as u16,
            ..progressive
        };
        let wider = PictureInfo {
            crop_width: 66,
            ..progressive
        };
        let source = without_fields(&progressive);
        let cases = [
            (false, progressive, true),
            (false, fields, false),
            (false, wider, false),
            // A stream with fields may have whole frames in between.
            (true, progressive, true),
            (true, fields, true),
            (true, wider, false),
        ];
        for (interlaced, shown, covered) in cases {
            let negotiated = negotiated(source, interlaced);
            assert_eq!(negotiated.covers(&shown), covered, "{interlaced} {shown:?}");
        }
    }
}
