// SPDX-License-Identifier: MPL-2.0

//! A plane of samples in somebody else's memory.

use thiserror::Error;

/// Smallest width and height, in samples. The 5-tap filter reflects at the border without repeating
/// the edge sample, so it reaches two samples inwards.
pub const MIN_SIZE: u32 = 3;

/// Largest width and height, in samples: the sum of one row then still fits `u32`.
pub const MAX_SIZE: u32 = 65_535;

/// How one sample lies in memory: a byte for 8 bit, else a little-endian 16-bit word in which the
/// sample may stand `shift` bits above the bottom (P010: depth 10, shift 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampleFormat {
    depth: u8,
    shift: u8,
}

impl SampleFormat {
    /// One byte a sample.
    pub const EIGHT_BIT: Self = Self { depth: 8, shift: 0 };

    /// Samples of `depth` bits (9 to 16) in the low bits of a 16-bit word (I420_10LE); 8 gives
    /// bytes.
    ///
    /// # Errors
    /// [`PlaneError::Depth`] for any other depth.
    pub fn low(depth: u32) -> Result<Self, PlaneError> {
        match depth {
            8..=16 => Ok(Self {
                depth: depth as u8,
                shift: 0,
            }),
            _ => Err(PlaneError::Depth { depth }),
        }
    }

    /// Samples of `depth` bits (9 to 16) in the high bits of a 16-bit word (P010_10LE); 8 gives
    /// bytes.
    ///
    /// # Errors
    /// [`PlaneError::Depth`] for any other depth.
    pub fn high(depth: u32) -> Result<Self, PlaneError> {
        let low = Self::low(depth)?;
        Ok(Self {
            shift: if low.depth == 8 { 0 } else { 16 - low.depth },
            ..low
        })
    }

    /// Bits of a sample, 8 to 16.
    pub fn depth(self) -> u32 {
        u32::from(self.depth)
    }

    /// Bits below the sample in its word; 0 for bytes.
    pub fn shift(self) -> u32 {
        u32::from(self.shift)
    }

    /// Bytes from one sample to the next: 1 or 2.
    pub fn bytes(self) -> usize {
        if self.depth == 8 { 1 } else { 2 }
    }

    /// The largest sample, `2^depth - 1`.
    pub fn max(self) -> u16 {
        ((1u32 << self.depth) - 1) as u16
    }

    /// The sample in a 16-bit word: shifted down, foreign bits above the depth removed.
    #[inline(always)]
    pub fn unpack(self, word: u16) -> u16 {
        (word >> self.shift) & self.max()
    }
}

/// Size and sample format that all planes of a stream share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    width: u32,
    height: u32,
    format: SampleFormat,
}

impl Geometry {
    /// A size in samples, each side 3 to 65535.
    ///
    /// # Errors
    /// [`PlaneError::Size`] outside of that.
    pub fn new(width: u32, height: u32, format: SampleFormat) -> Result<Self, PlaneError> {
        let range = MIN_SIZE..=MAX_SIZE;
        if range.contains(&width) && range.contains(&height) {
            Ok(Self {
                width,
                height,
                format,
            })
        } else {
            Err(PlaneError::Size { width, height })
        }
    }

    /// Samples in a row.
    pub fn width(self) -> usize {
        self.width as usize
    }

    /// Rows.
    pub fn height(self) -> usize {
        self.height as usize
    }

    /// How a sample lies in memory.
    pub fn format(self) -> SampleFormat {
        self.format
    }

    /// Bytes of one row without padding.
    pub fn row_bytes(self) -> usize {
        self.width() * self.format.bytes()
    }
}

/// A plane in borrowed memory. Every row is known to lie inside the slice.
#[derive(Debug, Clone, Copy)]
pub struct Plane<'a> {
    data: &'a [u8],
    stride: usize,
    geometry: Geometry,
}

impl<'a> Plane<'a> {
    /// `data` starts with the first sample of the top row; rows start `stride` bytes apart.
    ///
    /// # Errors
    /// [`PlaneError::Stride`] when a row is longer than the stride, [`PlaneError::Truncated`] when
    /// the last row ends behind the slice.
    pub fn new(data: &'a [u8], stride: usize, geometry: Geometry) -> Result<Self, PlaneError> {
        let row = geometry.row_bytes();
        if stride < row {
            return Err(PlaneError::Stride { stride, row });
        }
        let needed = (geometry.height() - 1)
            .checked_mul(stride)
            .and_then(|above| above.checked_add(row))
            .unwrap_or(usize::MAX);
        if data.len() < needed {
            return Err(PlaneError::Truncated {
                len: data.len(),
                needed,
            });
        }
        Ok(Self {
            data,
            stride,
            geometry,
        })
    }

    /// Size and sample format.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The memory, from the first sample on.
    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Bytes from row to row.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The bytes of row `y`, without padding.
    ///
    /// # Panics
    /// When `y` is not below the height.
    #[inline]
    pub fn row(&self, y: usize) -> &'a [u8] {
        assert!(y < self.geometry.height(), "row {y} is below the plane");
        let start = y * self.stride;
        &self.data[start..start + self.geometry.row_bytes()]
    }

    /// The sample at column `x` of row `y`: slow and plain, for the reference.
    ///
    /// # Panics
    /// When `x` or `y` lies outside the plane.
    pub fn sample(&self, x: usize, y: usize) -> u16 {
        let row = self.row(y);
        let format = self.geometry.format();
        match format.bytes() {
            1 => u16::from(row[x]),
            _ => format.unpack(u16::from_le_bytes([row[2 * x], row[2 * x + 1]])),
        }
    }
}

/// What is wrong with a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PlaneError {
    /// Motion needs 3 samples each way, and rows of at most 65535.
    #[error(
        "picture size {width}x{height} cannot be scored: width and height must be {MIN_SIZE} to {MAX_SIZE} samples"
    )]
    Size {
        /// Samples in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// Not a bit depth that libvmaf defines.
    #[error("{depth} bit samples cannot be scored: the depth must be 8 to 16 bit")]
    Depth {
        /// Bits of a sample.
        depth: u32,
    },
    /// Rows would overlap.
    #[error("stride of {stride} bytes is shorter than a row of {row} bytes")]
    Stride {
        /// Bytes from row to row.
        stride: usize,
        /// Bytes of a row.
        row: usize,
    },
    /// The memory ends inside the plane.
    #[error("plane needs {needed} bytes, its memory has {len}")]
    Truncated {
        /// Bytes given.
        len: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// A picture that does not fit the stream it was given to.
    #[error("picture of another size or format than the stream's")]
    Geometry,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_samples_are_shifted_and_foreign_bits_masked() {
        let p010 = SampleFormat::high(10).unwrap();
        assert_eq!(p010.shift(), 6);
        assert_eq!(p010.unpack(0xffc0), 1023);
        assert_eq!(p010.unpack(0x003f), 0);
        let low = SampleFormat::low(10).unwrap();
        assert_eq!(low.unpack(0xfc05), 5);
        assert_eq!(SampleFormat::high(8).unwrap(), SampleFormat::EIGHT_BIT);
    }

    #[test]
    fn sizes_and_memory_are_checked() {
        let bytes = SampleFormat::EIGHT_BIT;
        for (width, height) in [(2, 3), (3, 2), (65_536, 3), (3, 65_536)] {
            assert_eq!(
                Geometry::new(width, height, bytes),
                Err(PlaneError::Size { width, height })
            );
        }
        let geometry = Geometry::new(4, 3, bytes).unwrap();
        assert!(Plane::new(&[0; 14], 5, geometry).is_ok());
        assert_eq!(
            Plane::new(&[0; 13], 5, geometry).unwrap_err(),
            PlaneError::Truncated {
                len: 13,
                needed: 14
            }
        );
        assert_eq!(
            Plane::new(&[0; 14], 3, geometry).unwrap_err(),
            PlaneError::Stride { stride: 3, row: 4 }
        );
        assert!(Plane::new(&[0; 14], usize::MAX, geometry).is_err());
        assert!(SampleFormat::low(7).is_err());
        assert!(SampleFormat::low(17).is_err());
    }
}
