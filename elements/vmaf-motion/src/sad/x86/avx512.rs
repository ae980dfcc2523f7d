// SPDX-License-Identifier: MPL-2.0

//! The kernel for AVX-512 with VNNI and VBMI, 8 to 15 bit. Its speed does not depend on the
//! content: it always takes the form that fits 17-bit values.
//!
//! Differences are scaled so that a blurred value stands 15 bits up in its 32-bit lane. The upper
//! half of the lane is then the value's half, and bit 15 its last bit. The last bits of a row are
//! kept one a bit; what five neighbouring ones add to the second blur is looked up in a register,
//! and rides in a slot of the multiply-adds that the five taps leave free.

use std::arch::asm;
use std::arch::x86_64::*;

use super::super::Kernel;
use super::super::rows::{RowPair, Stepper, Steps};
use super::super::scratch::{Aligned, reflect_ends};
use super::memory::{load_256, load_512, load_512_part, prefetch, store_512};
use super::{F0, F1, F2, FIRST, Layout, weights};
use crate::plane::Geometry;

/// Samples a vector of words holds.
const BLOCK: usize = 32;

/// Bytes before the first sample's bit in a row of bits.
const FIRST_BYTE: usize = 8;

/// Words with an odd index: the upper half of every 32-bit lane.
const UPPER: __mmask32 = 0xaaaa_aaaa;

/// Adds the products of two 16-bit neighbours to 32-bit sums.
///
/// The intrinsic is not used because the compiler splits chains of it into a multiplication and an
/// addition unless it is told which processor it compiles for.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn multiply_add(mut sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the instruction reads and writes the named registers alone, and this function can be
    // called only where it exists.
    unsafe {
        asm!("vpdpwssd {}, {}, {}", inout(zmm_reg) sum, in(zmm_reg) a, in(zmm_reg) b,
             options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// A blurred row: `2 * half + bit`.
#[derive(Debug)]
struct Blurred {
    half: Aligned<i16>,
    bits: Vec<u8>,
}

impl Blurred {
    fn new(padded: usize) -> Self {
        Self {
            half: Aligned::new(FIRST + padded + BLOCK),
            bits: vec![0; FIRST_BYTE + padded / 8 + 8],
        }
    }

    fn bit(&self, x: isize) -> bool {
        let at = x + 8 * FIRST_BYTE as isize;
        self.bits[at as usize / 8] >> (at % 8) & 1 != 0
    }

    fn set_bit(&mut self, x: isize, value: bool) {
        let at = x + 8 * FIRST_BYTE as isize;
        let byte = &mut self.bits[at as usize / 8];
        *byte = *byte & !(1 << (at % 8)) | u8::from(value) << (at % 8);
    }

    fn reflect_ends(&mut self, width: usize) {
        reflect_ends(&mut self.half, FIRST, width);
        let end = width as isize;
        for (to, from) in [(-2, 2), (-1, 1), (end, end - 2), (end + 1, end - 3)] {
            let bit = self.bit(from);
            self.set_bit(to, bit);
        }
    }

    #[inline]
    fn store_bits(&mut self, x: usize, bits: u32) {
        self.bits[FIRST_BYTE + x / 8..][..4].copy_from_slice(&bits.to_le_bytes());
    }

    /// Bits of samples `x - 8` to `x + 55`; `x` is a multiple of 8.
    #[inline]
    fn bits_around(&self, x: usize) -> u64 {
        let bytes = &self.bits[FIRST_BYTE + x / 8 - 1..];
        bytes
            .first_chunk()
            .map_or(0, |bits| u64::from_le_bytes(*bits))
    }
}

/// How samples are read.
#[derive(Debug, Clone, Copy)]
struct Reader {
    depth: u32,
    mask: i16,
}

impl Reader {
    /// Samples of 32 columns of one row.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn samples<const LAYOUT: u8, const PART: bool>(self, row: &[u8], x: usize) -> __m512i {
        if LAYOUT == Layout::Bytes as u8 {
            return _mm512_cvtepu8_epi16(if PART {
                _mm512_castsi512_si256(load_512_part(row, x))
            } else {
                load_256(row, x)
            });
        }
        let words = if PART {
            load_512_part(row, 2 * x)
        } else {
            load_512(row, 2 * x)
        };
        if LAYOUT == Layout::Low as u8 {
            _mm512_and_si512(words, _mm512_set1_epi16(self.mask))
        } else {
            // The product's upper half: shifted right by 16 - depth.
            _mm512_mulhi_epu16(words, _mm512_set1_epi16(1 << self.depth))
        }
    }

    /// Differences of 32 columns of one row, scaled to 15 bits and a sign.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn difference<const LAYOUT: u8, const PART: bool>(
        self,
        rows: RowPair<'_>,
        row: usize,
        x: usize,
    ) -> __m512i {
        let difference = _mm512_sub_epi16(
            self.samples::<LAYOUT, PART>(rows.earlier[row], x),
            self.samples::<LAYOUT, PART>(rows.later[row], x),
        );
        if LAYOUT == Layout::Bytes as u8 {
            _mm512_slli_epi16::<7>(difference)
        } else {
            _mm512_sllv_epi16(difference, _mm512_set1_epi16(15 - self.depth as i16))
        }
    }

    /// A pair of difference rows for 32 columns: even columns, odd columns.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn pair<const LAYOUT: u8, const PART: bool>(self, rows: RowPair<'_>, x: usize) -> [__m512i; 2] {
        let upper = self.difference::<LAYOUT, PART>(rows, 0, x);
        let lower = self.difference::<LAYOUT, PART>(rows, 1, x);
        [
            _mm512_mask_blend_epi16(UPPER, upper, _mm512_slli_epi32::<16>(lower)),
            _mm512_mask_blend_epi16(UPPER, _mm512_srli_epi32::<16>(upper), lower),
        ]
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    fn feed<const LAYOUT: u8>(self, rows: RowPair<'_>, width: usize, pair: &mut [i32]) {
        let whole = width / BLOCK * BLOCK;
        for x in (0..whole).step_by(BLOCK) {
            store_pair(pair, x, self.pair::<LAYOUT, false>(rows, x));
        }
        if whole < width {
            store_pair(pair, whole, self.pair::<LAYOUT, true>(rows, whole));
        }
    }

    /// The first blur of two rows. `older` gives its place to the new pair.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    fn down<const LAYOUT: u8>(
        self,
        [rows, next]: [RowPair<'_>; 2],
        width: usize,
        [older, newer]: [&mut [i32]; 2],
        blurred: &mut [Blurred; 2],
    ) {
        let bytes = if LAYOUT == Layout::Bytes as u8 { 1 } else { 2 };
        for x in (0..width).step_by(BLOCK) {
            prefetch(next.earlier[0], bytes * x);
            prefetch(next.later[0], bytes * x);
            let new = if x + BLOCK <= width {
                self.pair::<LAYOUT, false>(rows, x)
            } else {
                self.pair::<LAYOUT, true>(rows, x)
            };
            down_block::<LAYOUT>(new, older, newer, blurred, x);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_pair(pair: &mut [i32], x: usize, [even, odd]: [__m512i; 2]) {
    store_512(pair, x, even);
    store_512(pair, x + BLOCK / 2, odd);
}

/// A pair of weights in every lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn all(left: i16, right: i16) -> __m512i {
    _mm512_set1_epi32(weights(left, right))
}

/// The first blur of 16 columns of two rows: upper, lower.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn down_lanes(older: __m512i, newer: __m512i, new: __m512i) -> [__m512i; 2] {
    let round = _mm512_set1_epi32(1 << 14);
    let upper = multiply_add(round, older, all(F0, F1));
    let lower = multiply_add(round, older, all(0, F0));
    let upper = multiply_add(upper, newer, all(F2, F1));
    let lower = multiply_add(lower, newer, all(F1, F2));
    let upper = multiply_add(upper, new, all(F0, 0));
    let lower = multiply_add(lower, new, all(F1, F0));
    [upper, lower]
}

/// The first blur of 32 columns of two rows. It is the same for every layout; each has a copy with
/// one caller, so that the compiler inlines it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn down_block<const LAYOUT: u8>(
    new: [__m512i; 2],
    older: &mut [i32],
    newer: &[i32],
    blurred: &mut [Blurred; 2],
    x: usize,
) {
    let half = x + BLOCK / 2;
    let even = down_lanes(load_512(older, x), load_512(newer, x), new[0]);
    let odd = down_lanes(load_512(older, half), load_512(newer, half), new[1]);
    store_pair(older, x, new);
    for (i, blurred) in blurred.iter_mut().enumerate() {
        let half = _mm512_mask_blend_epi16(UPPER, _mm512_srli_epi32::<16>(even[i]), odd[i]);
        let rest = _mm512_mask_blend_epi16(UPPER, even[i], _mm512_slli_epi32::<16>(odd[i]));
        store_512(&mut blurred.half, FIRST + x, half);
        blurred.store_bits(x, _mm512_movepi16_mask(rest));
    }
}

/// What the last bits of five neighbours add to the second blur, less 32768: by those bits, leftmost
/// lowest. With `F` the taps: half of (sum of `F * bit` + 32768).
const BITS_SHARE: [i16; 32] = {
    let mut table = [0; 32];
    let mut index = 0;
    while index < 32 {
        let taps = [F0, F1, F2, F1, F0];
        let (mut sum, mut bit) = (32_768, 0);
        while bit < 5 {
            sum += taps[bit] as i32 * (index as i32 >> bit & 1);
            bit += 1;
        }
        table[index] = ((sum >> 1) - 32_768) as i16;
        index += 1;
    }
    table
};

/// For each word of 32 columns, where the five bits around its column begin in the 64 bits that
/// [`Blurred::bits_around`] gives. The two columns of a lane are swapped, as their slots are.
const WINDOW_STARTS: [u8; 64] = {
    let mut starts = [0; 64];
    let mut column = 0;
    while column < 32 {
        starts[2 * (column ^ 1)] = 8 - 2 + column as u8;
        column += 1;
    }
    starts
};

/// The magnitudes of the second blur of 32 columns: even ones, odd ones.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
fn along_block(row: &Blurred, x: usize) -> [__m512i; 2] {
    let bits = _mm512_set1_epi64(row.bits_around(x) as i64);
    let windows = _mm512_multishift_epi64_epi8(load_512(&WINDOW_STARTS, 0), bits);
    let share = _mm512_permutexvar_epi16(windows, load_512(&BITS_SHARE, 0));

    let left = load_512(&row.half, FIRST + x - 2);
    let middle = load_512(&row.half, FIRST + x);
    let right = load_512(&row.half, FIRST + x + 2);
    // The last of an even column's lanes ends one sample too far, the first of an odd one's begins
    // one too early.
    let even_right = _mm512_mask_blend_epi16(UPPER, right, share);
    let odd_left = _mm512_mask_blend_epi16(UPPER, share, left);
    let round = _mm512_set1_epi32(32_768);
    let even = multiply_add(round, left, all(F0, F1));
    let odd = multiply_add(round, middle, all(F1, F2));
    let even = multiply_add(even, middle, all(F2, F1));
    let odd = multiply_add(odd, right, all(F1, F0));
    let even = multiply_add(even, even_right, all(F0, 1));
    let odd = multiply_add(odd, odd_left, all(1, F0));
    [
        _mm512_abs_epi32(_mm512_srai_epi32::<15>(even)),
        _mm512_abs_epi32(_mm512_srai_epi32::<15>(odd)),
    ]
}

/// The second blur of `blurred` rows, and the sum of its magnitudes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
fn along<const ROWS: usize>(
    blurred: &[Blurred; 2],
    width: usize,
    bytes: usize,
    next: RowPair<'_>,
) -> u64 {
    let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
    let whole = width / BLOCK * BLOCK;
    for x in (0..whole).step_by(BLOCK) {
        prefetch(next.earlier[1], bytes * x);
        prefetch(next.later[1], bytes * x);
        for (sums, row) in sums.iter_mut().zip(blurred) {
            let block = along_block(row, x);
            for (sum, block) in sums.iter_mut().zip(block) {
                *sum = _mm512_add_epi32(*sum, block);
            }
        }
    }
    if whole < width {
        let columns = width - whole;
        let masks =
            [columns.div_ceil(2), columns / 2].map(|lanes| ((1u32 << lanes) - 1) as __mmask16);
        for (sums, row) in sums.iter_mut().zip(blurred) {
            let block = along_block(row, whole);
            for ((sum, block), mask) in sums.iter_mut().zip(block).zip(masks) {
                *sum = _mm512_mask_add_epi32(*sum, mask, *sum, block);
            }
        }
    }
    let mut sum = 0;
    for [even, odd] in sums {
        // One row's sum fits 32 unsigned bits.
        sum += u64::from(_mm512_reduce_add_epi32(_mm512_add_epi32(even, odd)) as u32);
    }
    sum
}

/// See the module.
#[derive(Debug)]
pub(in super::super) struct Avx512 {
    layout: Layout,
    width: usize,
    reader: Reader,
    /// The last two pairs of difference rows, scaled, newer first. A block of 32 columns is 16 lanes
    /// of its even columns, then 16 of its odd ones.
    pairs: [Aligned<i32>; 2],
    blurred: [Blurred; 2],
    steps: Steps,
}

impl Avx512 {
    /// For planes of 8 to 15 bit; `None` for 16 bit, or where the processor lacks AVX-512 F, BW, VL,
    /// VNNI or VBMI.
    pub(in super::super) fn new(geometry: Geometry) -> Option<Self> {
        let format = geometry.format();
        let padded = geometry.width().next_multiple_of(BLOCK);
        (Kernel::Avx512.is_available() && format.depth() <= 15).then(|| Self {
            layout: Layout::of(format),
            width: geometry.width(),
            reader: Reader {
                depth: format.depth(),
                mask: format.max() as i16,
            },
            pairs: [Aligned::new(padded), Aligned::new(padded)],
            blurred: [Blurred::new(padded), Blurred::new(padded)],
            steps: Steps::default(),
        })
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")]
    fn feed_rows(&mut self, rows: RowPair<'_>) {
        let (reader, width, pair) = (self.reader, self.width, &mut self.pairs[1]);
        match self.layout {
            Layout::Bytes => reader.feed::<{ Layout::Bytes as u8 }>(rows, width, pair),
            Layout::Low => reader.feed::<{ Layout::Low as u8 }>(rows, width, pair),
            Layout::High => reader.feed::<{ Layout::High as u8 }>(rows, width, pair),
        }
        self.pairs.swap(0, 1);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")]
    fn step_rows(&mut self, rows: RowPair<'_>, next: RowPair<'_>, both: bool) -> u64 {
        let (reader, width, blurred) = (self.reader, self.width, &mut self.blurred);
        let [newer, older] = &mut self.pairs;
        let pairs = [&mut **older, &mut **newer];
        let rows = [rows, next];
        match self.layout {
            Layout::Bytes => reader.down::<{ Layout::Bytes as u8 }>(rows, width, pairs, blurred),
            Layout::Low => reader.down::<{ Layout::Low as u8 }>(rows, width, pairs, blurred),
            Layout::High => reader.down::<{ Layout::High as u8 }>(rows, width, pairs, blurred),
        }
        self.pairs.swap(0, 1);
        for row in blurred.iter_mut() {
            row.reflect_ends(width);
        }
        let bytes = if self.layout == Layout::Bytes { 1 } else { 2 };
        if both {
            along::<2>(blurred, width, bytes, next)
        } else {
            along::<1>(blurred, width, bytes, next)
        }
    }
}

impl Stepper for Avx512 {
    fn feed(&mut self, rows: RowPair<'_>) {
        // SAFETY: `new` has seen that the processor has these instructions.
        unsafe { self.feed_rows(rows) }
    }

    fn step(&mut self, rows: RowPair<'_>, next: RowPair<'_>, both: bool) -> u64 {
        self.steps.fast += 1;
        // SAFETY: `new` has seen that the processor has these instructions.
        unsafe { self.step_rows(rows, next, both) }
    }

    fn skip(&mut self) {
        // The pairs at hand are all zero, and so would the new one be.
        self.steps.equal += 1;
    }

    fn steps(&self) -> Steps {
        self.steps
    }
}
