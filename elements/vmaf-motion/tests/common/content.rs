// SPDX-License-Identifier: MPL-2.0

//! Pairs of planes that drive the kernels through every path.

use vmaf_motion::{Geometry, Plane, SampleFormat};

/// A kind of content for two planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Uniform noise.
    Noise,
    /// The smallest sample against the largest.
    Flash,
    /// Every sample the smallest or the largest.
    Extremes,
    /// Blocks of the smallest or the largest sample.
    Blocks,
    /// A difference of half the range everywhere, or one beside it: where 16 bits just do and just
    /// do not suffice.
    Half,
    /// Smooth, with an extreme difference here and there.
    Rare,
    /// Twice the same plane.
    Static,
    /// Noise, with runs of equal rows.
    EqualRows,
    /// A texture that moves.
    Motion,
    /// Slow waves with a little grain.
    Smooth,
}

impl Content {
    pub const ALL: [Self; 10] = [
        Self::Noise,
        Self::Flash,
        Self::Extremes,
        Self::Blocks,
        Self::Half,
        Self::Rare,
        Self::Static,
        Self::EqualRows,
        Self::Motion,
        Self::Smooth,
    ];

    /// Sample of plane `t` (0 or 1) at a place, of `depth` bits.
    fn sample(self, x: u32, y: u32, t: u32, depth: u32, seed: u32) -> u32 {
        let max = (1 << depth) - 1;
        let random = |t: u32| mix(x ^ mix(y ^ mix(t ^ mix(seed))));
        match self {
            Self::Noise => random(t) & max,
            Self::Flash => max * (t & 1),
            Self::Extremes => max * (random(t) & 1),
            Self::Blocks => max * (mix((x / 9) ^ mix((y / 7) ^ mix(t ^ seed))) & 1),
            Self::Half => {
                // Rows change sign in blocks, so that both ends of the range are met.
                let difference = (1 << (depth - 1)) + random(7) % 3 - 1;
                difference * u32::from((y / 8 + t).is_multiple_of(2))
            }
            Self::Rare => {
                let extreme = random(9).is_multiple_of(97);
                if extreme {
                    max * (random(t) & 1)
                } else {
                    Self::Smooth.sample(x, y, t, depth, seed)
                }
            }
            Self::Static => random(0) & max,
            Self::EqualRows => {
                let equal = !mix((y / 5) ^ seed).is_multiple_of(3);
                random(if equal { 0 } else { t }) & max
            }
            Self::Motion => ((x + 3 * t) * 37 + (y + t) * 91 + (x + 3 * t) * (y + t)) & max,
            Self::Smooth => {
                let wave = |v: u32| (v % 64).abs_diff(32);
                let value = (wave(x + 2 * t) + wave(2 * y + t) + 32) << (depth - 7);
                (value + (random(t) & 3)).min(max)
            }
        }
    }

    /// A plane with rows `padding` bytes apart. What is not part of a sample (padding, foreign bits
    /// of a word) is garbage.
    pub fn plane(self, geometry: Geometry, padding: usize, t: u32, seed: u32) -> Owned {
        let format = geometry.format();
        let (width, height) = (geometry.width() as u32, geometry.height() as u32);
        let stride = geometry.row_bytes() + padding;
        let mut bytes = Vec::with_capacity(stride * geometry.height());
        for y in 0..height {
            for x in 0..width {
                let sample = self.sample(x, y, t, format.depth(), seed) as u16;
                if format.bytes() == 1 {
                    bytes.push(sample as u8);
                } else {
                    let foreign =
                        mix(x + 5 * y + 11 * t) as u16 & !(format.max() << format.shift());
                    bytes.extend((sample << format.shift() | foreign).to_le_bytes());
                }
            }
            bytes.extend((0..padding).map(|i| (i as u32 * 29 + y * 3 + t * 101) as u8));
        }
        Owned {
            bytes,
            stride,
            geometry,
        }
    }
}

fn mix(mut h: u32) -> u32 {
    h = h.wrapping_add(0x9E37_79B9);
    h ^= h >> 16;
    h = h.wrapping_mul(0x85EB_CA6B);
    h ^= h >> 13;
    h = h.wrapping_mul(0xC2B2_AE35);
    h ^ (h >> 16)
}

/// A plane with its memory.
#[derive(Debug, Clone)]
pub struct Owned {
    pub bytes: Vec<u8>,
    pub stride: usize,
    pub geometry: Geometry,
}

impl Owned {
    pub fn plane(&self) -> Plane<'_> {
        Plane::new(&self.bytes, self.stride, self.geometry).expect("a plane that fits its memory")
    }
}

/// Every depth, and both alignments of those that have two.
pub fn formats() -> Vec<SampleFormat> {
    let low = (8..=16).map(|depth| SampleFormat::low(depth).expect("a depth"));
    let high = (9..=15).map(|depth| SampleFormat::high(depth).expect("a depth"));
    low.chain(high).collect()
}
