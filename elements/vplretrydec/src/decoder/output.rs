// SPDX-License-Identifier: MPL-2.0

//! From a picture to a buffer: by copy, or by wrapping the mapped surface.

use std::sync::Arc;

use gst::subclass::prelude::*;
use gst_video::VideoInfo;
use gst_video::prelude::*;
use onevpl_sys::{self as mfx, PictureInfo};

use super::VplRetryDec;
use crate::copy::{copy_into, crop, formats};
use crate::picture::Picture;

/// A way of a surface into the buffer of a frame. Another memory (DMABuf) is another implementation.
pub(super) trait ToBuffer {
    /// Gives the frame its buffer.
    ///
    /// # Errors
    /// No buffer can be had.
    fn fill(
        &self,
        element: &VplRetryDec,
        frame: &mut gst_video::VideoCodecFrame<'_>,
        picture: Picture,
        info: &VideoInfo,
    ) -> Result<(), gst::FlowError>;
}

/// Into a buffer of downstream's pool.
pub(super) struct Copy;

/// The surface itself, read-only; the buffer keeps it, its session and its loader.
pub(super) struct Wrap;

impl ToBuffer for Copy {
    fn fill(
        &self,
        element: &VplRetryDec,
        frame: &mut gst_video::VideoCodecFrame<'_>,
        picture: Picture,
        info: &VideoInfo,
    ) -> Result<(), gst::FlowError> {
        // The one that lies ready may be the last of its pool.
        let spare = element.imp().take_spare();
        if let Some(buffer) = spare.and_then(|spare| spare.fill(picture.surface())) {
            frame.set_output_buffer(buffer);
            picture.copied();
            return Ok(());
        }
        element.allocate_output_frame(frame, None)?;
        let buffer = frame.output_buffer_mut().ok_or(gst::FlowError::Error)?;
        if !copy_into(picture.surface(), buffer, info) {
            return Err(gst::FlowError::Error);
        }
        picture.copied();
        Ok(())
    }
}

impl ToBuffer for Wrap {
    fn fill(
        &self,
        _element: &VplRetryDec,
        frame: &mut gst_video::VideoCodecFrame<'_>,
        picture: Picture,
        info: &VideoInfo,
    ) -> Result<(), gst::FlowError> {
        let surface = picture.surface();
        let shown = surface.surface().info();
        let planes = surface.planes();
        let contiguous = surface.contiguous().is_some();
        let mut offsets = Vec::with_capacity(planes);
        let mut strides = Vec::with_capacity(planes);
        let mut start = 0;
        for plane in 0..planes {
            let stride = surface.stride(plane);
            let (x, y) = crop(&shown, info.format(), plane);
            offsets.push(start + y * stride + x);
            strides.push(i32::try_from(stride).map_err(|_| gst::FlowError::Error)?);
            start += surface.plane(plane).len();
        }
        let picture = Arc::new(picture);
        let mut buffer = gst::Buffer::new();
        let inner = buffer.get_mut().ok_or(gst::FlowError::Error)?;
        if contiguous {
            inner.append_memory(gst::Memory::from_slice(Whole(picture)));
        } else {
            for plane in 0..planes {
                let part = Part(Arc::clone(&picture), plane);
                inner.append_memory(gst::Memory::from_slice(part));
            }
        }
        gst_video::VideoMeta::add_full(
            inner,
            gst_video::VideoFrameFlags::empty(),
            info.format(),
            info.width(),
            info.height(),
            &offsets,
            &strides,
        )
        .map_err(|_| gst::FlowError::Error)?;
        frame.set_output_buffer(buffer);
        Ok(())
    }
}

/// Whether a surface can go out as it is: in its own format, its crop on whole chroma samples.
pub(super) fn can_wrap(shown: &PictureInfo, info: &VideoInfo) -> bool {
    formats(shown.fourcc).first() == Some(&info.format())
        && shown.crop_x.is_multiple_of(2)
        && shown.crop_y.is_multiple_of(2)
        && (shown.fourcc != mfx::MFX_FOURCC_P010 || shown.shift != 0)
}

/// All planes of a picture.
struct Whole(Arc<Picture>);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        self.0.surface().contiguous().unwrap_or_default()
    }
}

/// One plane of a picture.
struct Part(Arc<Picture>, usize);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        self.0.surface().plane(self.1)
    }
}
