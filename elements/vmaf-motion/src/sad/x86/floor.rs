// SPDX-License-Identifier: MPL-2.0

//! Reading two planes as fast as may be.

use std::arch::x86_64::*;

use super::memory::{load_256, store_256};

/// Vectors a round of the loop.
const UNROLL: usize = 4;

/// Sum of the byte differences of two slices of equal length.
#[target_feature(enable = "avx2")]
pub(in super::super) fn read_two(a: &[u8], b: &[u8]) -> u64 {
    let mut sums = [_mm256_setzero_si256(); UNROLL];
    let (a_blocks, a_rest) = a.as_chunks::<{ 32 * UNROLL }>();
    let (b_blocks, b_rest) = b.as_chunks::<{ 32 * UNROLL }>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for (i, sum) in sums.iter_mut().enumerate() {
            let differences = _mm256_sad_epu8(load_256(a, 32 * i), load_256(b, 32 * i));
            *sum = _mm256_add_epi64(*sum, differences);
        }
    }
    let rest = a_rest.iter().zip(b_rest);
    let mut total = rest.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    for sum in sums {
        let mut lanes = [0u8; 32];
        store_256(&mut lanes, 0, sum);
        let lanes = lanes.as_chunks::<8>().0.iter();
        total += lanes.map(|lane| u64::from_le_bytes(*lane)).sum::<u64>();
    }
    total
}
