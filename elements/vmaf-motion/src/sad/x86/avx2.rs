// SPDX-License-Identifier: MPL-2.0

//! The kernel for AVX2, 8 to 14 bit.
//!
//! While the blurred values of two rows fit 16 bits it blurs them as they are (*fast*). They are
//! packed with saturation, so a value at the end of the range tells that one may not have fitted;
//! nothing of those rows has been counted then, and they are done again with each value held as
//! twice a half plus a last bit (*general*).

use std::arch::x86_64::*;

use super::super::Kernel;
use super::super::rows::{GENERAL_RUN, RowPair, Stepper, Steps};
use super::super::scratch::{Aligned, reflect_ends};
use super::memory::{load_128, load_256, prefetch, store_256};
use super::{F0, F1, F2, FIRST, Layout, weights};
use crate::plane::Geometry;

/// Samples a vector of words holds.
const BLOCK: usize = 16;

/// Words with an odd index: the upper half of every 32-bit lane.
const UPPER: i32 = 0xaa;

/// Deepest samples: sums of two differences must fit 16 bits.
const MAX_DEPTH: u32 = 14;

/// How samples are read.
#[derive(Debug, Clone, Copy)]
struct Reader {
    depth: u32,
    mask: i16,
}

impl Reader {
    /// Samples of 16 columns of one row.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn samples<const LAYOUT: u8>(self, row: &[u8], x: usize) -> __m256i {
        if LAYOUT == Layout::Bytes as u8 {
            return _mm256_cvtepu8_epi16(load_128(row, x));
        }
        let words = load_256(row, 2 * x);
        if LAYOUT == Layout::Low as u8 {
            _mm256_and_si256(words, _mm256_set1_epi16(self.mask))
        } else {
            // The product's upper half: shifted right by 16 - depth.
            _mm256_mulhi_epu16(words, _mm256_set1_epi16(1 << self.depth))
        }
    }

    /// Differences of 16 columns of one row.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn difference<const LAYOUT: u8>(self, rows: RowPair<'_>, row: usize, x: usize) -> __m256i {
        _mm256_sub_epi16(
            self.samples::<LAYOUT>(rows.earlier[row], x),
            self.samples::<LAYOUT>(rows.later[row], x),
        )
    }

    /// A pair of difference rows for 16 columns, interleaved within each half of the vector:
    /// columns 0 to 3 and 8 to 11, columns 4 to 7 and 12 to 15. Packing two such vectors gives the
    /// columns in order.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pair<const LAYOUT: u8>(self, rows: RowPair<'_>, x: usize) -> [__m256i; 2] {
        let upper = self.difference::<LAYOUT>(rows, 0, x);
        let lower = self.difference::<LAYOUT>(rows, 1, x);
        [
            _mm256_unpacklo_epi16(upper, lower),
            _mm256_unpackhi_epi16(upper, lower),
        ]
    }

    #[target_feature(enable = "avx2")]
    fn feed<const LAYOUT: u8>(self, rows: RowPair<'_>, width: usize, pair: &mut [i32]) {
        let whole = width / BLOCK * BLOCK;
        for x in (0..whole).step_by(BLOCK) {
            store_pair(pair, x, self.pair::<LAYOUT>(rows, x));
        }
        if whole < width {
            let rest = Rest::of(rows, whole * bytes::<LAYOUT>());
            store_pair(pair, whole, self.pair::<LAYOUT>(rest.rows(), 0));
        }
    }

    /// Takes the new pair and does the first blur of two rows; false on the fast path when a value may
    /// not fit 16 bits. It may be called again with the same rows then.
    #[target_feature(enable = "avx2")]
    fn down<const LAYOUT: u8, const GENERAL: bool>(
        self,
        [rows, next]: [RowPair<'_>; 2],
        width: usize,
        pairs: &mut [Aligned<i32>; 3],
        blurred: &mut [Blurred; 2],
    ) -> bool {
        let mut pairs = pairs.each_mut().map(|pair| &mut **pair);
        let bytes = bytes::<LAYOUT>();
        let mut range = [_mm256_setzero_si256(); 2];
        let rest = Rest::of(rows, width / BLOCK * BLOCK * bytes);
        for x in (0..width).step_by(BLOCK) {
            prefetch(next.earlier[0], bytes * x);
            prefetch(next.later[0], bytes * x);
            let new = if x + BLOCK <= width {
                self.pair::<LAYOUT>(rows, x)
            } else {
                self.pair::<LAYOUT>(rest.rows(), 0)
            };
            range = self.down_block::<LAYOUT, GENERAL>(new, &mut pairs, blurred, range, x);
        }
        let [least, greatest] = range;
        let at_end = _mm256_or_si256(
            _mm256_cmpeq_epi16(least, _mm256_set1_epi16(i16::MIN)),
            _mm256_cmpeq_epi16(greatest, _mm256_set1_epi16(i16::MAX)),
        );
        _mm256_testz_si256(at_end, at_end) != 0
    }

    /// The first blur of 16 columns of two rows. `range` is the least and the greatest value so far
    /// on the fast path. It is the same for every layout; each has a copy with one caller, so that
    /// the compiler inlines it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn down_block<const LAYOUT: u8, const GENERAL: bool>(
        self,
        new: [__m256i; 2],
        [oldest, middle, newest]: &mut [&mut [i32]; 3],
        blurred: &mut [Blurred; 2],
        [mut least, mut greatest]: [__m256i; 2],
        x: usize,
    ) -> [__m256i; 2] {
        let half = x + BLOCK / 2;
        store_pair(newest, x, new);
        let first = self.down_lanes(load_256(oldest, x), load_256(middle, x), new[0]);
        let second = self.down_lanes(load_256(oldest, half), load_256(middle, half), new[1]);
        for (i, row) in blurred.iter_mut().enumerate() {
            if GENERAL {
                let one = _mm256_set1_epi32(1);
                let halves = _mm256_packs_epi32(
                    _mm256_srai_epi32::<1>(first[i]),
                    _mm256_srai_epi32::<1>(second[i]),
                );
                let bits = _mm256_packs_epi32(
                    _mm256_and_si256(first[i], one),
                    _mm256_and_si256(second[i], one),
                );
                store_256(&mut row.half, FIRST + x, halves);
                store_256(&mut row.bit, FIRST + x, bits);
            } else {
                let value = _mm256_packs_epi32(first[i], second[i]);
                store_256(&mut row.half, FIRST + x, value);
                least = _mm256_min_epi16(least, value);
                greatest = _mm256_max_epi16(greatest, value);
            }
        }
        [least, greatest]
    }

    /// The first blur of 8 columns of two rows: upper, lower. Rows of equal weight are added first.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn down_lanes(self, oldest: __m256i, middle: __m256i, newest: __m256i) -> [__m256i; 2] {
        let round = _mm256_set1_epi32(1 << (self.depth - 1));
        let shift = _mm256_set1_epi32(self.depth as i32);
        let outer = _mm256_add_epi16(oldest, _mm256_blend_epi16::<UPPER>(newest, middle));
        let upper = _mm256_add_epi32(
            multiply(outer, weights(F0, F1)),
            multiply(middle, weights(F2, 0)),
        );
        let outer = _mm256_add_epi16(newest, _mm256_blend_epi16::<UPPER>(middle, oldest));
        let lower = _mm256_add_epi32(
            multiply(outer, weights(F1, F0)),
            multiply(middle, weights(0, F2)),
        );
        [
            _mm256_srav_epi32(_mm256_add_epi32(upper, round), shift),
            _mm256_srav_epi32(_mm256_add_epi32(lower, round), shift),
        ]
    }
}

/// Bytes a sample.
const fn bytes<const LAYOUT: u8>() -> usize {
    if LAYOUT == Layout::Bytes as u8 { 1 } else { 2 }
}

/// Copies of the last bytes of two rows, fewer than a block, with zeros behind: nothing behind a row
/// is read.
struct Rest {
    earlier: [[u8; 2 * BLOCK]; 2],
    later: [[u8; 2 * BLOCK]; 2],
}

impl Rest {
    fn of(rows: RowPair<'_>, from: usize) -> Self {
        let copy = |row: &[u8]| {
            let mut copy = [0; 2 * BLOCK];
            copy[..row.len() - from].copy_from_slice(&row[from..]);
            copy
        };
        Self {
            earlier: rows.earlier.map(copy),
            later: rows.later.map(copy),
        }
    }

    fn rows(&self) -> RowPair<'_> {
        RowPair {
            earlier: self.earlier.each_ref().map(|row| &row[..]),
            later: self.later.each_ref().map(|row| &row[..]),
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_pair(pair: &mut [i32], x: usize, [first, second]: [__m256i; 2]) {
    store_256(pair, x, first);
    store_256(pair, x + BLOCK / 2, second);
}

/// Sum of the products of two 16-bit neighbours with two weights.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(values: __m256i, weights: i32) -> __m256i {
    _mm256_madd_epi16(values, _mm256_set1_epi32(weights))
}

/// A blurred row: `half` alone on the fast path, else `2 * half + bit`.
#[derive(Debug)]
struct Blurred {
    half: Aligned<i16>,
    bit: Aligned<i16>,
}

impl Blurred {
    fn new(padded: usize) -> Self {
        let row = || Aligned::new(FIRST + padded + BLOCK);
        Self {
            half: row(),
            bit: row(),
        }
    }
}

/// Five taps over even and odd columns of 16. Each sum has one slot that no tap needs: `even_last`
/// and `odd_first` are what stands there.
#[inline]
#[target_feature(enable = "avx2")]
fn along(
    [left, middle, right]: [__m256i; 3],
    [even_right, odd_left]: [__m256i; 2],
    slot: i16,
) -> [__m256i; 2] {
    let round = _mm256_set1_epi32(32_768);
    let even = _mm256_add_epi32(
        _mm256_add_epi32(
            multiply(left, weights(F0, F1)),
            multiply(middle, weights(F2, F1)),
        ),
        _mm256_add_epi32(multiply(even_right, weights(F0, slot)), round),
    );
    let odd = _mm256_add_epi32(
        _mm256_add_epi32(
            multiply(middle, weights(F1, F2)),
            multiply(right, weights(F1, F0)),
        ),
        _mm256_add_epi32(multiply(odd_left, weights(slot, F0)), round),
    );
    [even, odd]
}

/// Sums of the magnitudes of the second blur of 16 columns, by lane. Columns from `columns` on count
/// as zero.
#[inline]
#[target_feature(enable = "avx2")]
fn along_fast(row: &Blurred, x: usize, mask: Option<__m256i>) -> __m256i {
    let left = load_256(&row.half, FIRST + x - 2);
    let middle = load_256(&row.half, FIRST + x);
    let right = load_256(&row.half, FIRST + x + 2);
    let [even, odd] = along([left, middle, right], [right, left], 0);
    // The upper words of the lanes are the blurred values.
    let mut value = _mm256_blend_epi16::<UPPER>(_mm256_srli_epi32::<16>(even), odd);
    if let Some(mask) = mask {
        value = _mm256_and_si256(value, mask);
    }
    // Less the magnitude, which fits 16 bits where the magnitude does not.
    let negative = _mm256_min_epi16(value, _mm256_sub_epi16(_mm256_setzero_si256(), value));
    _mm256_madd_epi16(negative, _mm256_set1_epi16(-1))
}

/// [`along_fast`] for any content.
#[inline]
#[target_feature(enable = "avx2")]
fn along_general(row: &Blurred, x: usize, mask: Option<__m256i>) -> __m256i {
    // What the last bits add, less 32768: half of (32768 + sum of tap * bit).
    let outer = _mm256_add_epi16(
        load_256(&row.bit, FIRST + x - 2),
        load_256(&row.bit, FIRST + x + 2),
    );
    let inner = _mm256_add_epi16(
        load_256(&row.bit, FIRST + x - 1),
        load_256(&row.bit, FIRST + x + 1),
    );
    let outer = _mm256_mullo_epi16(outer, _mm256_set1_epi16(F0));
    let inner = _mm256_mullo_epi16(inner, _mm256_set1_epi16(F1 / 2));
    let centre = load_256(&row.bit, FIRST + x);
    let centre = _mm256_mullo_epi16(centre, _mm256_set1_epi16(F2 / 2));
    let share = _mm256_add_epi16(
        _mm256_add_epi16(inner, centre),
        _mm256_add_epi16(
            _mm256_srli_epi16::<1>(outer),
            _mm256_set1_epi16(16_384_u16.wrapping_sub(32_768) as i16),
        ),
    );
    let left = load_256(&row.half, FIRST + x - 2);
    let middle = load_256(&row.half, FIRST + x);
    let right = load_256(&row.half, FIRST + x + 2);
    let even_right = _mm256_blend_epi16::<UPPER>(right, _mm256_slli_epi32::<16>(share));
    let odd_left = _mm256_blend_epi16::<UPPER>(_mm256_srli_epi32::<16>(share), left);
    let [even, odd] = along([left, middle, right], [even_right, odd_left], 1);
    let even = _mm256_abs_epi32(_mm256_srai_epi32::<15>(even));
    let odd = _mm256_abs_epi32(_mm256_srai_epi32::<15>(odd));
    match mask {
        None => _mm256_add_epi32(even, odd),
        Some(mask) => {
            // The words of a lane are its even and its odd column.
            let even_mask = _mm256_srai_epi32::<16>(_mm256_slli_epi32::<16>(mask));
            let odd_mask = _mm256_srai_epi32::<16>(mask);
            _mm256_add_epi32(
                _mm256_and_si256(even, even_mask),
                _mm256_and_si256(odd, odd_mask),
            )
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn along_block<const GENERAL: bool>(row: &Blurred, x: usize, mask: Option<__m256i>) -> __m256i {
    if GENERAL {
        along_general(row, x, mask)
    } else {
        along_fast(row, x, mask)
    }
}

/// The second blur of the first `ROWS` blurred rows, and the sum of its magnitudes.
#[target_feature(enable = "avx2")]
fn sum_along<const ROWS: usize, const GENERAL: bool>(
    blurred: &[Blurred; 2],
    width: usize,
    bytes: usize,
    next: RowPair<'_>,
) -> u64 {
    let mut sums = [_mm256_setzero_si256(); ROWS];
    let whole = width / BLOCK * BLOCK;
    for x in (0..whole).step_by(BLOCK) {
        prefetch(next.earlier[1], bytes * x);
        prefetch(next.later[1], bytes * x);
        for (sum, row) in sums.iter_mut().zip(blurred) {
            *sum = _mm256_add_epi32(*sum, along_block::<GENERAL>(row, x, None));
        }
    }
    if whole < width {
        let column: [i16; BLOCK] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let columns = _mm256_set1_epi16((width - whole) as i16);
        let mask = _mm256_cmpgt_epi16(columns, load_256(&column, 0));
        for (sum, row) in sums.iter_mut().zip(blurred) {
            *sum = _mm256_add_epi32(*sum, along_block::<GENERAL>(row, whole, Some(mask)));
        }
    }
    let mut sum = 0;
    for lanes in sums {
        sum += row_sum(lanes);
    }
    sum
}

/// Sum of the unsigned lanes: one row's fits 32 bits, but is added up in 64.
#[inline]
#[target_feature(enable = "avx2")]
fn row_sum(lanes: __m256i) -> u64 {
    let mut sums = [0; 8];
    store_256(&mut sums, 0, lanes);
    sums.iter().map(|&sum: &i32| u64::from(sum as u32)).sum()
}

/// See the module.
#[derive(Debug)]
pub(in super::super) struct Avx2 {
    layout: Layout,
    width: usize,
    reader: Reader,
    /// The last three pairs of difference rows, oldest first.
    pairs: [Aligned<i32>; 3],
    /// How many of them, from the newest on, have been filled with zeros.
    zeros: usize,
    blurred: [Blurred; 2],
    /// Steps to go before the fast path is tried again.
    general_left: u32,
    steps: Steps,
}

impl Avx2 {
    /// For planes of 8 to 14 bit; `None` for deeper ones, or where the processor lacks AVX2.
    pub(in super::super) fn new(geometry: Geometry) -> Option<Self> {
        let format = geometry.format();
        let padded = geometry.width().next_multiple_of(BLOCK);
        (Kernel::Avx2.is_available() && format.depth() <= MAX_DEPTH).then(|| Self {
            layout: Layout::of(format),
            width: geometry.width(),
            reader: Reader {
                depth: format.depth(),
                mask: format.max() as i16,
            },
            pairs: [(); 3].map(|()| Aligned::new(padded)),
            zeros: 0,
            blurred: [Blurred::new(padded), Blurred::new(padded)],
            general_left: 0,
            steps: Steps::default(),
        })
    }

    #[target_feature(enable = "avx2")]
    fn feed_rows(&mut self, rows: RowPair<'_>) {
        self.zeros = 0;
        self.pairs.rotate_left(1);
        let (reader, width, pair) = (self.reader, self.width, &mut self.pairs[2]);
        match self.layout {
            Layout::Bytes => reader.feed::<{ Layout::Bytes as u8 }>(rows, width, pair),
            Layout::Low => reader.feed::<{ Layout::Low as u8 }>(rows, width, pair),
            Layout::High => reader.feed::<{ Layout::High as u8 }>(rows, width, pair),
        }
    }

    /// The first blur of two rows.
    #[target_feature(enable = "avx2")]
    fn down<const GENERAL: bool>(&mut self, rows: [RowPair<'_>; 2]) -> bool {
        const BYTES: u8 = Layout::Bytes as u8;
        const LOW: u8 = Layout::Low as u8;
        const HIGH: u8 = Layout::High as u8;
        let (reader, width) = (self.reader, self.width);
        let (pairs, blurred) = (&mut self.pairs, &mut self.blurred);
        match self.layout {
            Layout::Bytes => reader.down::<BYTES, GENERAL>(rows, width, pairs, blurred),
            Layout::Low => reader.down::<LOW, GENERAL>(rows, width, pairs, blurred),
            Layout::High => reader.down::<HIGH, GENERAL>(rows, width, pairs, blurred),
        }
    }

    #[target_feature(enable = "avx2")]
    fn step_rows(&mut self, rows: RowPair<'_>, next: RowPair<'_>, both: bool) -> u64 {
        self.zeros = 0;
        self.pairs.rotate_left(1);
        let fast = if self.general_left == 0 {
            let fits = self.down::<false>([rows, next]);
            if !fits {
                self.general_left = GENERAL_RUN;
            }
            fits
        } else {
            self.general_left -= 1;
            false
        };
        if !fast {
            self.down::<true>([rows, next]);
        }
        for row in &mut self.blurred {
            reflect_ends(&mut row.half, FIRST, self.width);
            if !fast {
                reflect_ends(&mut row.bit, FIRST, self.width);
            }
        }
        if fast {
            self.steps.fast += 1;
        } else {
            self.steps.general += 1;
        }
        let bytes = if self.layout == Layout::Bytes { 1 } else { 2 };
        let (blurred, width) = (&self.blurred, self.width);
        match (both, fast) {
            (true, true) => sum_along::<2, false>(blurred, width, bytes, next),
            (true, false) => sum_along::<2, true>(blurred, width, bytes, next),
            (false, true) => sum_along::<1, false>(blurred, width, bytes, next),
            (false, false) => sum_along::<1, true>(blurred, width, bytes, next),
        }
    }
}

impl Stepper for Avx2 {
    fn feed(&mut self, rows: RowPair<'_>) {
        // SAFETY: `new` has seen that the processor has these instructions.
        unsafe { self.feed_rows(rows) }
    }

    fn step(&mut self, rows: RowPair<'_>, next: RowPair<'_>, both: bool) -> u64 {
        // SAFETY: `new` has seen that the processor has these instructions.
        unsafe { self.step_rows(rows, next, both) }
    }

    fn skip(&mut self) {
        self.pairs.rotate_left(1);
        if self.zeros < self.pairs.len() {
            self.pairs[2].fill(0);
            self.zeros += 1;
        }
        self.steps.equal += 1;
    }

    fn steps(&self) -> Steps {
        self.steps
    }
}
