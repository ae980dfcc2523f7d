// SPDX-License-Identifier: MPL-2.0

//! Kernels written for x86-64 vectors.
//!
//! Both work on *pairs* of difference rows: one 32-bit lane holds the differences of one column in
//! two neighbouring rows. A multiply-add of 16-bit pairs then weights two rows at once, and three
//! pairs cover the six rows that two output rows need. Every pair is formed once.

mod avx2;
mod avx512;
pub(super) mod floor;
mod memory;

pub(super) use avx2::Avx2;
pub(super) use avx512::Avx512;

use crate::plane::SampleFormat;

const F0: i16 = 3_571;
const F1: i16 = 16_004;
const F2: i16 = 26_386;

/// First sample of a blurred row in its scratch row: a whole vector, of which the last two words are
/// the reflected samples.
const FIRST: usize = 32;

/// Where the sample stands in what a row is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// A byte a sample.
    Bytes,
    /// The low bits of a word.
    Low,
    /// The high bits of a word.
    High,
}

impl Layout {
    fn of(format: SampleFormat) -> Self {
        match (format.bytes(), format.shift()) {
            (1, _) => Self::Bytes,
            (_, 0) => Self::Low,
            _ => Self::High,
        }
    }
}

/// Two 16-bit weights as a vector lane holds them: `upper` for the upper row of a pair or the left
/// sample of two neighbours.
const fn weights(upper: i16, lower: i16) -> i32 {
    (upper as u16 as i32) | ((lower as i32) << 16)
}
