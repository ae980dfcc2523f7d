// SPDX-License-Identifier: MPL-2.0

//! The kernel in plain Rust, in the shape that compilers vectorise: loops over rows of equal length
//! without branches, 16-bit rows, 32-bit sums.
//!
//! A blurred row value has 17 bits. While all of two rows fit 16, the second blur works on them as
//! they are (*fast*). Otherwise a value is held as twice a 16-bit half plus a last bit and the blur
//! is `(sum of tap * half + (sum of tap * bit + 32768) / 2) >> 15`, which is the same number and
//! never leaves 32 bits (*general*). 16-bit samples have 17-bit differences, so with them the first
//! blur has that form too.

use super::kernel::Kernel;
use super::rows::{GENERAL_RUN, RowPair, Stepper, Steps};
use super::scratch::{Aligned, reflect_ends};
use crate::plane::{Geometry, SampleFormat};

const F0: i32 = 3_571;
const F1: i32 = 16_004;
const F2: i32 = 26_386;

/// First sample of a blurred row in its scratch row.
const FIRST: usize = 32;

/// Rows of values that may have 17 bits: the value is `2 * half + bit`.
#[derive(Debug, Clone)]
struct Halves {
    half: Aligned<i16>,
    bit: Aligned<i16>,
}

impl Halves {
    fn new(len: usize) -> Self {
        Self {
            half: Aligned::new(len),
            bit: Aligned::new(len),
        }
    }
}

/// Weighted sum of five neighbours.
#[inline(always)]
fn blur(v: [i32; 5]) -> i32 {
    F0 * (v[0] + v[4]) + F1 * (v[1] + v[3]) + F2 * v[2]
}

/// `(sum of tap * (2 * half + bit) + 32768) >> 16` in 32 bits.
#[inline(always)]
fn blur_halves(half: [i16; 5], bit: [i16; 5]) -> i32 {
    let bits = blur(bit.map(i32::from));
    (blur(half.map(i32::from)) + ((bits + 32_768) >> 1)) >> 15
}

/// Five slices of one length, sample `x` of which are the neighbours of output sample `x`.
#[inline(always)]
fn neighbours(row: &[i16], width: usize) -> [&[i16]; 5] {
    [0, 1, 2, 3, 4].map(|tap| &row[FIRST - 2 + tap..][..width])
}

#[derive(Debug)]
struct State {
    format: SampleFormat,
    width: usize,
    /// Differences of the last three row pairs; pair `p` of the stream stands in `p % 3`. `bit` is
    /// used at 16 bit alone; elsewhere `half` is the difference itself.
    pairs: [[Halves; 2]; 3],
    /// Whether a pair is known to be all zero.
    zero: [bool; 3],
    newest: usize,
    blurred: [Halves; 2],
    general_left: u32,
    steps: Steps,
}

impl State {
    fn new(geometry: Geometry) -> Self {
        let width = geometry.width();
        let wide = geometry.format().depth() == 16;
        let difference = || Halves {
            half: Aligned::new(width),
            bit: Aligned::new(if wide { width } else { 0 }),
        };
        let blurred = || Halves::new(FIRST + width + 2);
        Self {
            format: geometry.format(),
            width,
            pairs: [(); 3].map(|()| [(); 2].map(|()| difference())),
            zero: [true; 3],
            newest: 0,
            blurred: [blurred(), blurred()],
            general_left: 0,
            steps: Steps::default(),
        }
    }

    #[inline(always)]
    fn feed(&mut self, rows: RowPair<'_>) {
        self.newest = (self.newest + 1) % 3;
        self.zero[self.newest] = false;
        for (i, row) in self.pairs[self.newest].iter_mut().enumerate() {
            difference(self.format, rows.earlier[i], rows.later[i], row);
        }
    }

    fn skip(&mut self) {
        self.newest = (self.newest + 1) % 3;
        if !self.zero[self.newest] {
            for row in &mut self.pairs[self.newest] {
                row.half.fill(0);
                row.bit.fill(0);
            }
            self.zero[self.newest] = true;
        }
        self.steps.equal += 1;
    }

    #[inline(always)]
    fn step(&mut self, rows: RowPair<'_>, both: bool) -> u64 {
        self.feed(rows);
        let count = if both { 2 } else { 1 };
        let (width, shift) = (self.width, self.format.depth());
        let blurred = &mut self.blurred;
        // The six rows from two above the upper output row to three below it.
        let [older, old, new] = [1, 2, 0].map(|back| &self.pairs[(self.newest + back) % 3]);
        let window = [&older[0], &older[1], &old[0], &old[1], &new[0], &new[1]];
        let is_wide = shift == 16;
        let mut fast = self.general_left == 0 && !is_wide;
        if fast {
            for (i, row) in blurred.iter_mut().enumerate().take(count) {
                let rows = [0, 1, 2, 3, 4].map(|tap| &window[i + tap].half[..width]);
                fast &= down_fast(rows, &mut row.half[FIRST..][..width], shift);
            }
        }
        if !fast {
            for (i, row) in blurred.iter_mut().enumerate().take(count) {
                let rows = [0, 1, 2, 3, 4].map(|tap| window[i + tap]);
                if is_wide {
                    down_wide(rows, row, width);
                } else {
                    down_general(rows, row, width, shift);
                }
            }
        }
        let mut sum = 0;
        for row in blurred.iter_mut().take(count) {
            reflect_ends(&mut row.half, FIRST, width);
            sum += if fast {
                along_fast(neighbours(&row.half, width))
            } else {
                reflect_ends(&mut row.bit, FIRST, width);
                along_general(neighbours(&row.half, width), neighbours(&row.bit, width))
            };
        }
        if fast {
            self.steps.fast += 1;
        } else {
            self.steps.general += 1;
            let refused = self.general_left == 0;
            self.general_left = if refused {
                GENERAL_RUN
            } else {
                self.general_left - 1
            };
        }
        sum
    }
}

/// Differences of one row, earlier minus later.
#[inline(always)]
fn difference(format: SampleFormat, earlier: &[u8], later: &[u8], row: &mut Halves) {
    if format.bytes() == 1 {
        for ((d, &e), &l) in row.half.iter_mut().zip(earlier).zip(later) {
            *d = i16::from(e) - i16::from(l);
        }
        return;
    }
    let (earlier, later) = (earlier.as_chunks::<2>().0, later.as_chunks::<2>().0);
    let sample = |word: &[u8; 2]| i32::from(format.unpack(u16::from_le_bytes(*word)));
    if format.depth() < 16 {
        for ((d, e), l) in row.half.iter_mut().zip(earlier).zip(later) {
            *d = (sample(e) - sample(l)) as i16;
        }
    } else {
        let rows = row.half.iter_mut().zip(row.bit.iter_mut());
        for (((half, bit), e), l) in rows.zip(earlier).zip(later) {
            let d = sample(e) - sample(l);
            *half = (d >> 1) as i16;
            *bit = (d & 1) as i16;
        }
    }
}

/// Blurs down the columns; false when a value does not fit 16 bits, and `out` is then of no use.
#[inline(always)]
fn down_fast(rows: [&[i16]; 5], out: &mut [i16], shift: u32) -> bool {
    let round = 1 << (shift - 1);
    let [a, b, c, d, e] = rows;
    let mut foreign = 0;
    for (((((out, &a), &b), &c), &d), &e) in out.iter_mut().zip(a).zip(b).zip(c).zip(d).zip(e) {
        let value = (blur([a, b, c, d, e].map(i32::from)) + round) >> shift;
        *out = value as i16;
        foreign |= value ^ (value << 16 >> 16);
    }
    foreign == 0
}

/// Blurs down the columns, any content of less than 16 bit samples.
#[inline(always)]
fn down_general(rows: [&Halves; 5], out: &mut Halves, width: usize, shift: u32) {
    let round = 1 << (shift - 1);
    let [a, b, c, d, e] = rows.map(|row| &row.half[..width]);
    let out = out.half[FIRST..].iter_mut().zip(&mut out.bit[FIRST..]);
    for ((((((half, bit), &a), &b), &c), &d), &e) in out.zip(a).zip(b).zip(c).zip(d).zip(e) {
        let value = (blur([a, b, c, d, e].map(i32::from)) + round) >> shift;
        *half = (value >> 1) as i16;
        *bit = (value & 1) as i16;
    }
}

/// Blurs down the columns, 16 bit samples.
#[inline(always)]
fn down_wide(rows: [&Halves; 5], out: &mut Halves, width: usize) {
    let half = rows.map(|row| &row.half[..width]);
    let bit = rows.map(|row| &row.bit[..width]);
    let out_half = &mut out.half[FIRST..][..width];
    let out_bit = &mut out.bit[FIRST..][..width];
    for x in 0..width {
        let value = blur_halves(half.map(|row| row[x]), bit.map(|row| row[x]));
        out_half[x] = (value >> 1) as i16;
        out_bit[x] = (value & 1) as i16;
    }
}

/// Blurs along a row of 16-bit values and sums up the magnitudes.
#[inline(always)]
fn along_fast(row: [&[i16]; 5]) -> u64 {
    let [a, b, c, d, e] = row;
    let mut sum = 0u32;
    for ((((&a, &b), &c), &d), &e) in a.iter().zip(b).zip(c).zip(d).zip(e) {
        sum += ((blur([a, b, c, d, e].map(i32::from)) + 32_768) >> 16).unsigned_abs();
    }
    u64::from(sum)
}

/// Blurs along a row of any values and sums up the magnitudes.
#[inline(always)]
fn along_general(half: [&[i16]; 5], bit: [&[i16]; 5]) -> u64 {
    let width = half[0].len();
    let bit = bit.map(|row| &row[..width]);
    let half = half.map(|row| &row[..width]);
    let mut sum = 0u32;
    for x in 0..width {
        sum += blur_halves(half.map(|row| row[x]), bit.map(|row| row[x])).unsigned_abs();
    }
    u64::from(sum)
}

/// A struct around [`State`] whose step is compiled for a set of instructions.
macro_rules! clone {
    ($name:ident, $doc:literal $(, $features:literal)?) => {
        #[doc = $doc]
        #[derive(Debug)]
        pub(super) struct $name(State);

        impl $name {
            $(#[target_feature(enable = $features)])?
            fn feed_clone(state: &mut State, rows: RowPair<'_>) {
                state.feed(rows);
            }

            $(#[target_feature(enable = $features)])?
            fn step_clone(state: &mut State, rows: RowPair<'_>, both: bool) -> u64 {
                state.step(rows, both)
            }
        }

        impl Stepper for $name {
            fn feed(&mut self, rows: RowPair<'_>) {
                clone!(@call $($features)? { Self::feed_clone(&mut self.0, rows) })
            }

            fn step(&mut self, rows: RowPair<'_>, _next: RowPair<'_>, both: bool) -> u64 {
                clone!(@call $($features)? { Self::step_clone(&mut self.0, rows, both) })
            }

            fn skip(&mut self) {
                self.0.skip();
            }

            fn steps(&self) -> Steps {
                self.0.steps
            }
        }
    };
    (@call { $call:expr }) => { $call };
    (@call $features:literal { $call:expr }) => {
        // SAFETY: `stepper`, which alone makes this struct, has seen that the processor has these
        // instructions.
        unsafe { $call }
    };
}

clone!(Baseline, "For every processor of the target.");
#[cfg(target_arch = "x86_64")]
clone!(Avx2, "For processors with AVX2.", "avx2");
#[cfg(target_arch = "x86_64")]
clone!(
    Avx512,
    "For processors with AVX-512.",
    "avx512f,avx512bw,avx512dq,avx512vl"
);

/// The clone for a kernel that this processor can run.
pub(super) fn stepper(kernel: Kernel, geometry: Geometry) -> Box<dyn Stepper> {
    let state = State::new(geometry);
    match kernel {
        #[cfg(target_arch = "x86_64")]
        Kernel::PortableAvx512 | Kernel::Avx512 if Kernel::PortableAvx512.is_available() => {
            Box::new(Avx512(state))
        }
        #[cfg(target_arch = "x86_64")]
        Kernel::PortableAvx2 | Kernel::Avx2 if Kernel::PortableAvx2.is_available() => {
            Box::new(Avx2(state))
        }
        _ => Box::new(Baseline(state)),
    }
}
