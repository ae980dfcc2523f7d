// SPDX-License-Identifier: MPL-2.0

//! Samples of a decoded picture, and how a mapped surface shows them.

use av_backend::{Chroma, PackError, Picture, Semiplanar, pack};

/// A picture as the engine leaves it: luma, then U and V interleaved at half the rows. Deep samples are words
/// with the value in the high bits.
#[derive(Debug)]
pub struct Pixels {
    width: usize,
    height: usize,
    /// 1 or 2.
    bytes: usize,
    /// Bytes a row, in both planes.
    pitch: usize,
    data: Vec<u8>,
}

/// An area: left, top, right, bottom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    /// First column.
    pub left: usize,
    /// First row.
    pub top: usize,
    /// Column behind the last.
    pub right: usize,
    /// Row behind the last.
    pub bottom: usize,
}

impl Area {
    /// Columns.
    pub fn width(&self) -> usize {
        self.right.saturating_sub(self.left)
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.bottom.saturating_sub(self.top)
    }
}

/// How an output surface is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Columns, even.
    pub width: usize,
    /// Rows, even. Chroma begins behind them.
    pub height: usize,
    /// Bytes a row.
    pub pitch: usize,
    /// Bytes a sample.
    pub bytes: usize,
    /// The part of the picture that is shown.
    pub source: Area,
    /// Where it is shown.
    pub target: Area,
}

impl Output {
    /// Bytes of the surface.
    pub fn size(&self) -> usize {
        self.pitch * (self.height + self.height.div_ceil(2))
    }
}

impl Pixels {
    /// Copies the samples of a picture.
    ///
    /// # Errors
    /// The samples are none that NVDEC puts into NV12 or P016.
    pub fn of(picture: &Picture) -> Result<Self, PackError> {
        let (_, depth) = picture.format().unwrap_or((Chroma::Half, 8));
        let mut this = Self::blank(picture.width(), picture.height(), depth);
        let luma_size = this.pitch * this.height;
        let (luma, chroma) = this.data.split_at_mut(luma_size);
        let to = Semiplanar {
            luma,
            chroma,
            pitch: this.pitch,
        };
        pack(picture, to)?;
        Ok(this)
    }

    /// Black memory for `width` columns and `height` rows.
    pub fn blank(width: usize, height: usize, depth: u32) -> Self {
        let bytes = if depth > 8 { 2 } else { 1 };
        let pitch = width.next_multiple_of(2) * bytes;
        let rows = height + height.div_ceil(2);
        Self {
            width,
            height,
            bytes,
            pitch,
            data: vec![0; pitch * rows],
        }
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Luma rows and chroma rows.
    pub fn planes_mut(&mut self) -> Semiplanar<'_> {
        let (luma, chroma) = self.data.split_at_mut(self.pitch * self.height);
        Semiplanar {
            luma,
            chroma,
            pitch: self.pitch,
        }
    }

    /// Writes the rows of one field over those of the other, which is not decoded.
    pub fn double_field(&mut self, bottom: bool) {
        let pitch = self.pitch;
        let planes = self.planes_mut();
        for plane in [planes.luma, planes.chroma] {
            for pair in plane.chunks_exact_mut(2 * pitch) {
                let (upper, lower) = pair.split_at_mut(pitch);
                match bottom {
                    true => upper.copy_from_slice(lower),
                    false => lower.copy_from_slice(upper),
                }
            }
        }
    }

    /// The same picture with its lower half grey: what an engine leaves that gave up half way.
    pub fn half_lost(&self) -> Self {
        let mut lost = Self {
            data: self.data.clone(),
            ..*self
        };
        let grey = if self.bytes == 2 {
            [0, 0x80]
        } else {
            [0x80; 2]
        };
        let luma_half = self.pitch * (self.height / 2);
        let luma_end = self.pitch * self.height;
        let chroma_half = luma_end + self.pitch * (self.height.div_ceil(2) / 2);
        for range in [luma_half..luma_end, chroma_half..lost.data.len()] {
            lost.data[range]
                .chunks_mut(2)
                .for_each(|pair| pair.copy_from_slice(&grey[..pair.len()]));
        }
        lost
    }

    /// Writes an output surface. What lies outside of the target area is black.
    pub fn show(&self, output: &Output, to: &mut [u8]) {
        let luma_size = output.pitch * output.height;
        let (luma, chroma) = to.split_at_mut(luma_size);
        let black = Plane {
            fill: if output.bytes == 2 {
                [0, 0x10]
            } else {
                [0x10; 2]
            },
            samples: 1,
            halved: false,
        };
        let grey = Plane {
            fill: if output.bytes == 2 {
                [0, 0x80]
            } else {
                [0x80; 2]
            },
            samples: 2,
            halved: true,
        };
        let split = self.pitch * self.height;
        self.show_plane(&self.data[..split], output, black, luma);
        self.show_plane(&self.data[split..], output, grey, chroma);
    }

    fn show_plane(&self, from: &[u8], output: &Output, plane: Plane, to: &mut [u8]) {
        let half = |value: usize| if plane.halved { value / 2 } else { value };
        let half_up = |value: usize| {
            if plane.halved {
                value.div_ceil(2)
            } else {
                value
            }
        };
        let (source, target) = (&output.source, &output.target);
        let (columns, rows) = (half_up(output.width), half_up(output.height));
        let (source_left, source_top) = (half(source.left), half(source.top));
        let (source_width, source_height) = (half_up(source.width()), half_up(source.height()));
        let (target_left, target_top) = (half(target.left), half(target.top));
        let (target_width, target_height) = (half_up(target.width()), half_up(target.height()));
        let (last_column, last_row) = (
            half_up(self.width).saturating_sub(1),
            half_up(self.height).saturating_sub(1),
        );
        let plain = source_width == target_width && self.bytes == output.bytes;
        let group = plane.samples * output.bytes;
        for (y, row) in to.chunks_mut(output.pitch).take(rows).enumerate() {
            let row = &mut row[..columns * group];
            row.chunks_mut(output.bytes)
                .for_each(|sample| sample.copy_from_slice(&plane.fill[..output.bytes]));
            let inside = (target_top..target_top + target_height).contains(&y);
            if !inside || target_height == 0 || target_width == 0 {
                continue;
            }
            let source_y = source_top + (y - target_top) * source_height / target_height;
            let line = &from[source_y.min(last_row) * self.pitch..][..self.pitch];
            let width = target_width.min(columns.saturating_sub(target_left));
            if plain && source_left + width <= last_column + 1 {
                let bytes = &line[source_left * group..][..width * group];
                row[target_left * group..][..width * group].copy_from_slice(bytes);
                continue;
            }
            for x in 0..width {
                let source_x = source_left + x * source_width / target_width;
                for sample in 0..plane.samples {
                    let at = (source_x.min(last_column) * plane.samples + sample) * self.bytes;
                    let to = ((target_left + x) * plane.samples + sample) * output.bytes;
                    // Words hold their value in the high bits, so that a byte is their second half.
                    match (self.bytes, output.bytes) {
                        (1, 2) => row[to..to + 2].copy_from_slice(&[0, line[at]]),
                        (2, 1) => row[to] = line[at + 1],
                        (bytes, _) => {
                            row[to..to + bytes].copy_from_slice(&line[at..at + bytes]);
                        }
                    }
                }
            }
        }
    }
}

/// What tells the two planes apart.
#[derive(Clone, Copy)]
struct Plane {
    fill: [u8; 2],
    /// In a group.
    samples: usize,
    halved: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(width: usize, height: usize, depth: u32) -> Pixels {
        let mut pixels = Pixels::blank(width, height, depth);
        for (n, byte) in pixels.data.iter_mut().enumerate() {
            *byte = n as u8;
        }
        pixels
    }

    fn whole(width: usize, height: usize) -> Area {
        Area {
            left: 0,
            top: 0,
            right: width,
            bottom: height,
        }
    }

    /// Without a crop or scale.
    fn plain(width: usize, height: usize, pitch: usize) -> Output {
        Output {
            width,
            height,
            pitch,
            bytes: 1,
            source: whole(width, height),
            target: whole(width, height),
        }
    }

    #[test]
    fn a_picture_that_is_neither_cut_nor_scaled_arrives_as_it_is() {
        let pixels = ramp(6, 4, 8);
        let output = plain(6, 4, 8);
        let mut to = vec![0xee; output.size()];
        pixels.show(&output, &mut to);
        for (y, row) in to.chunks(8).enumerate() {
            assert_eq!(row[..6], pixels.data[y * 6..][..6], "row {y}");
            assert_eq!(row[6..], [0xee; 2], "padding stays poison");
        }
    }

    #[test]
    fn a_crop_begins_where_it_says_and_the_rest_of_the_surface_is_black() {
        let pixels = ramp(8, 8, 8);
        let source = Area {
            left: 2,
            top: 4,
            right: 6,
            bottom: 8,
        };
        let output = Output {
            source,
            target: whole(4, 4),
            ..plain(6, 4, 6)
        };
        let mut to = vec![0; output.size()];
        pixels.show(&output, &mut to);
        assert_eq!(to[..6], [34, 35, 36, 37, 0x10, 0x10]);
        let chroma = 8 * 8 + 2 * 8 + 2;
        assert_eq!(to[24..30], [chroma as u8, 83, 84, 85, 0x80, 0x80]);
    }

    #[test]
    fn a_field_alone_fills_the_rows_of_the_other() {
        let rows = |bottom| {
            let mut pixels = ramp(2, 4, 8);
            pixels.double_field(bottom);
            [0, 2, 4, 6, 8, 10].map(|at| pixels.data[at])
        };
        assert_eq!(rows(false), [0, 0, 4, 4, 8, 8]);
        assert_eq!(rows(true), [2, 2, 6, 6, 10, 10]);
    }

    #[test]
    fn depth_changes_on_request() {
        let pixels = ramp(2, 2, 10);
        let output = plain(2, 2, 2);
        let mut to = vec![0; output.size()];
        pixels.show(&output, &mut to);
        assert_eq!(to, [1, 3, 5, 7, 9, 11]);
    }

    #[test]
    fn a_picture_that_was_lost_half_way_differs_in_its_lower_half_alone() {
        let pixels = ramp(4, 4, 8);
        let lost = pixels.half_lost();
        assert_eq!(lost.data[..8], pixels.data[..8]);
        assert_eq!(lost.data[8..16], [0x80; 8]);
        assert_eq!(lost.data[16..20], pixels.data[16..20]);
        assert_eq!(lost.data[20..], [0x80; 4]);
    }
}
