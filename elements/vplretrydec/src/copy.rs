// SPDX-License-Identifier: MPL-2.0

//! The visible part of a surface, copied into a video frame.

use gst_video::prelude::*;
use gst_video::{VideoFormat, VideoInfo};
use onevpl_sys::{self as mfx, MappedSurface, PictureInfo};

/// The formats that a surface can go out in, its own first.
pub(crate) fn formats(fourcc: u32) -> &'static [VideoFormat] {
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

/// Where the visible part of a plane begins: bytes from the left, rows from the top.
pub(crate) fn crop(shown: &PictureInfo, format: VideoFormat, plane: usize) -> (usize, usize) {
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

/// Copies the visible part of a surface into a buffer of this format, one of [`formats`]. False where the buffer
/// cannot be written.
pub(crate) fn copy_into(
    surface: &MappedSurface,
    buffer: &mut gst::BufferRef,
    info: &VideoInfo,
) -> bool {
    match gst_video::VideoFrameRef::from_buffer_ref_writable(buffer, info) {
        Ok(mut out) => {
            copy(surface, &mut out);
            true
        }
        Err(_) => false,
    }
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
