// SPDX-License-Identifier: MPL-2.0

//! From a surface to a buffer: by copy, or by wrapping the mapped surface.

use std::sync::Arc;

use gst_video::prelude::*;
use gst_video::{VideoFormat, VideoInfo};
use onevpl_sys::{self as mfx, MappedSurface, PictureInfo};

use super::VplRetryDec;
use crate::picture::Picture;

/// The formats that a surface can go out in, its own first.
pub(super) fn formats(fourcc: u32) -> &'static [VideoFormat] {
    match fourcc {
        mfx::MFX_FOURCC_NV12 => &[VideoFormat::Nv12, VideoFormat::I420],
        mfx::MFX_FOURCC_P010 => &[VideoFormat::P01010le, VideoFormat::I42010le],
        mfx::MFX_FOURCC_I420 => &[VideoFormat::I420, VideoFormat::Nv12],
        mfx::MFX_FOURCC_I010 => &[VideoFormat::I42010le, VideoFormat::P01010le],
        mfx::MFX_FOURCC_YUY2 => &[VideoFormat::Yuy2],
        mfx::MFX_FOURCC_Y210 => &[VideoFormat::Y210],
        mfx::MFX_FOURCC_AYUV => &[VideoFormat::Vuya],
        mfx::MFX_FOURCC_Y410 => &[VideoFormat::Y410],
        _ => &[],
    }
}

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
        element.allocate_output_frame(frame, None)?;
        let buffer = frame.output_buffer_mut().ok_or(gst::FlowError::Error)?;
        let mut out = gst_video::VideoFrameRef::from_buffer_ref_writable(buffer, info)
            .map_err(|_| gst::FlowError::Error)?;
        copy(picture.surface(), &mut out);
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

/// Where the visible part of a plane begins: bytes from the left, rows from the top.
fn crop(shown: &PictureInfo, format: VideoFormat, plane: usize) -> (usize, usize) {
    let (x, y) = (usize::from(shown.crop_x), usize::from(shown.crop_y));
    if plane == 0 {
        (row_bytes(format, 0, x), y)
    } else {
        (row_bytes(format, plane, x / 2 * 2), y / 2)
    }
}

/// Bytes of so many samples in a row.
fn row_bytes(format: VideoFormat, plane: usize, width: usize) -> usize {
    let half = width.div_ceil(2);
    match (format, plane) {
        (VideoFormat::Nv12 | VideoFormat::I420, 0) => width,
        (VideoFormat::P01010le | VideoFormat::I42010le, 0) => 2 * width,
        (VideoFormat::Nv12, _) => 2 * half,
        (VideoFormat::I420, _) => half,
        (VideoFormat::P01010le, _) => 4 * half,
        (VideoFormat::I42010le, _) => 2 * half,
        (VideoFormat::Yuy2, _) => 4 * half,
        (VideoFormat::Y210, _) => 8 * half,
        // VUYA, Y410
        _ => 4 * width,
    }
}

/// The visible rows of a plane of a surface.
struct Rows<'a> {
    data: &'a [u8],
    stride: usize,
    /// Of the first visible row.
    start: usize,
    bytes: usize,
    count: usize,
}

impl<'a> Rows<'a> {
    fn new(surface: &'a MappedSurface, format: VideoFormat, plane: usize) -> Self {
        let shown = surface.surface().info();
        let stride = surface.stride(plane);
        let (x, y) = crop(&shown, format, plane);
        let height = usize::from(shown.crop_height);
        Self {
            data: surface.plane(plane),
            stride,
            start: y * stride + x,
            bytes: row_bytes(format, plane, shown.crop_width.into()),
            count: if plane == 0 {
                height
            } else {
                height.div_ceil(2)
            },
        }
    }

    fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let Self {
            data,
            stride,
            start,
            bytes,
            ..
        } = *self;
        (0..self.count).map_while(move |row| data.get(start + row * stride..)?.get(..bytes))
    }
}

type Writable<'a> = gst_video::VideoFrameRef<&'a mut gst::BufferRef>;

fn out_rows<'a>(out: &'a mut Writable<'_>, plane: u32) -> impl Iterator<Item = &'a mut [u8]> {
    let stride = out.plane_stride()[plane as usize].unsigned_abs() as usize;
    let data = out.plane_data_mut(plane).unwrap_or_default();
    data.chunks_mut(stride.max(1))
}

/// Copies the visible part, and converts between planar and semi-planar on the way.
fn copy(surface: &MappedSurface, out: &mut Writable<'_>) {
    let shown = surface.surface().info();
    let Some(&own) = formats(shown.fourcc).first() else {
        return;
    };
    let shift = match own {
        VideoFormat::P01010le if shown.shift != 0 => 6,
        _ => 0,
    };
    let wanted = out.format();
    let plain = wanted == own && (own != VideoFormat::P01010le || shift == 6);
    if plain {
        for plane in 0..surface.planes() {
            let rows = Rows::new(surface, own, plane);
            for (from, to) in rows.iter().zip(out_rows(out, plane as u32)) {
                to[..from.len()].copy_from_slice(from);
            }
        }
        return;
    }
    let luma = Rows::new(surface, own, 0);
    for (from, to) in luma.iter().zip(out_rows(out, 0)) {
        match wanted {
            VideoFormat::P01010le => words(from, to, |word| word >> shift << 6),
            VideoFormat::I42010le => words(from, to, |word| word >> shift),
            _ => to[..from.len()].copy_from_slice(from),
        }
    }
    match (own, wanted) {
        (VideoFormat::Nv12, VideoFormat::I420) => {
            let chroma = Rows::new(surface, own, 1);
            for part in 0..2 {
                for (from, to) in chroma.iter().zip(out_rows(out, 1 + part)) {
                    for (pair, to) in from.chunks_exact(2).zip(to) {
                        *to = pair[part as usize];
                    }
                }
            }
        }
        (VideoFormat::I420, VideoFormat::Nv12) => {
            for part in 0..2 {
                let chroma = Rows::new(surface, own, 1 + part);
                for (from, to) in chroma.iter().zip(out_rows(out, 1)) {
                    for (from, pair) in from.iter().zip(to.chunks_exact_mut(2)) {
                        pair[part] = *from;
                    }
                }
            }
        }
        (VideoFormat::P01010le, VideoFormat::I42010le) => {
            let chroma = Rows::new(surface, own, 1);
            for part in 0..2 {
                for (from, to) in chroma.iter().zip(out_rows(out, 1 + part)) {
                    for (pair, to) in from.chunks_exact(4).zip(to.chunks_exact_mut(2)) {
                        let at = 2 * part as usize;
                        words(&pair[at..at + 2], to, |word| word >> shift);
                    }
                }
            }
        }
        (VideoFormat::I42010le, VideoFormat::P01010le) => {
            for part in 0..2 {
                let chroma = Rows::new(surface, own, 1 + part);
                for (from, to) in chroma.iter().zip(out_rows(out, 1)) {
                    for (from, pair) in from.chunks_exact(2).zip(to.chunks_exact_mut(4)) {
                        words(from, &mut pair[2 * part..2 * part + 2], |word| word << 6);
                    }
                }
            }
        }
        // P010 with its samples in the low bits.
        _ => {
            let chroma = Rows::new(surface, own, 1);
            for (from, to) in chroma.iter().zip(out_rows(out, 1)) {
                words(from, to, |word| word >> shift << 6);
            }
        }
    }
}

/// Little-endian 16-bit samples, each changed by `change`.
fn words(from: &[u8], to: &mut [u8], change: impl Fn(u16) -> u16) {
    for (from, to) in from.chunks_exact(2).zip(to.chunks_exact_mut(2)) {
        let word = change(u16::from_le_bytes([from[0], from[1]]));
        to.copy_from_slice(&word.to_le_bytes());
    }
}
