// SPDX-License-Identifier: MPL-2.0

//! [`PictureLayout`]: where the planes of an output picture lie.
//!
//! Rows are a multiple of 4 bytes apart and chroma starts behind an even number of luma rows: GStreamer's
//! default, so that a picture needs no conversion there.

use nvcuvid_sys::{PlaneCopy, SurfaceLayout};

use crate::format::{PixelFormat, StreamFormat};

/// One plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plane {
    /// Bytes from the picture's start.
    pub offset: usize,
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Bytes of a row that are samples.
    pub row: usize,
    /// Rows.
    pub rows: usize,
}

/// The planes of a picture, cropped to what is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureLayout {
    /// The samples.
    pub format: PixelFormat,
    /// Columns of luma.
    pub width: u32,
    /// Rows of luma.
    pub height: u32,
    /// Two or three planes.
    pub planes: Vec<Plane>,
    /// Bytes of the picture.
    pub size: usize,
}

impl PictureLayout {
    /// The layout of a format's pictures; `None` where the format has none.
    pub fn new(format: &StreamFormat) -> Option<Self> {
        let pixels = format.pixel_format()?;
        let (width, height) = (format.crop.width, format.crop.height);
        let (columns, rows) = (width as usize, height as usize);
        let stride = (columns * pixels.sample_bytes()).next_multiple_of(4);
        let whole = Plane {
            offset: 0,
            stride,
            row: columns * pixels.sample_bytes(),
            rows,
        };
        let planes = if pixels.is_semiplanar() {
            let chroma = Plane {
                offset: stride * rows.next_multiple_of(2),
                row: columns.next_multiple_of(2) * pixels.sample_bytes(),
                rows: rows.div_ceil(2),
                ..whole
            };
            vec![whole, chroma]
        } else {
            (0..3)
                .map(|plane| Plane {
                    offset: plane * stride * rows,
                    ..whole
                })
                .collect()
        };
        let size = planes
            .last()
            .map_or(0, |last: &Plane| last.offset + stride * last.rows);
        Some(Self {
            format: pixels,
            width,
            height,
            planes,
            size,
        })
    }

    /// The rectangles to copy out of a mapped surface. `None` where the surface is of another format or too
    /// small for the crop.
    pub fn copies(&self, format: &StreamFormat, surface: &SurfaceLayout) -> Option<Vec<PlaneCopy>> {
        let crop = format.crop;
        let inside =
            crop.left + crop.width <= surface.width && crop.top + crop.height <= surface.height;
        if surface.format != self.format.raw() || !inside {
            return None;
        }
        let pitch = surface.pitch as usize;
        let sample = self.format.sample_bytes();
        let (left, top) = (crop.left as usize, crop.top as usize);
        self.planes
            .iter()
            .enumerate()
            .map(|(number, plane)| {
                let halved = number == 1 && self.format.is_semiplanar();
                // Interleaved chroma has as many samples a row as luma, in pairs.
                let (left, top) = if halved {
                    (left & !1, top / 2)
                } else {
                    (left, top)
                };
                Some(PlaneCopy {
                    source: surface.plane_offset(number)? + top * pitch + left * sample,
                    width: plane.row,
                    height: plane.rows,
                    target: plane.offset,
                    target_pitch: plane.stride,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Crop;
    use nvcuvid_sys as nv;

    fn format(crop: Crop, depth: u8) -> StreamFormat {
        StreamFormat {
            crop,
            ..StreamFormat::new(&nv::CUVIDEOFORMAT {
                coded_width: 64,
                coded_height: 48,
                chroma_format: nv::cudaVideoChromaFormat_420,
                bit_depth_luma_minus8: depth - 8,
                ..Default::default()
            })
        }
    }

    #[test]
    fn an_odd_size_has_whole_pairs_of_chroma() {
        let crop = Crop {
            left: 2,
            top: 4,
            width: 33,
            height: 21,
        };
        let format = format(crop, 8);
        let layout = PictureLayout::new(&format).expect("NV12");
        assert_eq!(
            layout.planes,
            [
                Plane {
                    offset: 0,
                    stride: 36,
                    row: 33,
                    rows: 21
                },
                Plane {
                    offset: 36 * 22,
                    stride: 36,
                    row: 34,
                    rows: 11
                }
            ]
        );
        assert_eq!(layout.size, 36 * 33);
        let surface = SurfaceLayout {
            format: nv::cudaVideoSurfaceFormat_NV12,
            width: 64,
            height: 48,
            pitch: 256,
        };
        let copies = layout.copies(&format, &surface).expect("it fits");
        assert_eq!(copies[0].source, 4 * 256 + 2);
        assert_eq!(copies[1].source, 48 * 256 + 2 * 256 + 2);
        let small = SurfaceLayout {
            width: 34,
            ..surface
        };
        assert_eq!(layout.copies(&format, &small), None);
    }

    #[test]
    fn deep_samples_take_two_bytes() {
        let crop = Crop {
            left: 0,
            top: 0,
            width: 64,
            height: 48,
        };
        let layout = PictureLayout::new(&format(crop, 10)).expect("P016");
        assert_eq!(layout.planes[0].row, 128);
        assert_eq!(layout.size, 128 * 72);
    }
}
