// SPDX-License-Identifier: MPL-2.0

//! The walk down a band of rows, two output rows a step, that all fast kernels share.
//!
//! A kernel sees rows of bytes only. Reflection at the upper and lower border, the equal-row
//! shortcut and the overwriting of the earlier plane happen here, once.

use std::ops::Range;

use super::scalar::reflect;
use crate::plane::Plane;

/// Two neighbouring rows of both planes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowPair<'a> {
    pub(super) earlier: [&'a [u8]; 2],
    pub(super) later: [&'a [u8]; 2],
}

impl RowPair<'_> {
    /// Ends at the first difference, so it costs little where there is one.
    fn is_equal(&self) -> bool {
        self.earlier == self.later
    }
}

/// How many steps of two output rows went which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Steps {
    /// Blurred rows fitted 16 bits (or the kernel needs no such distinction).
    pub fast: u64,
    /// Blurred rows needed 17 bits.
    pub general: u64,
    /// Planes were equal in all rows that count.
    pub equal: u64,
}

impl Steps {
    /// Adds another count.
    pub fn add(&mut self, other: Self) {
        self.fast += other.fast;
        self.general += other.general;
        self.equal += other.equal;
    }
}

/// Steps that stay general after one that did not fit 16 bits: content that does not fit rarely does
/// so once.
pub(super) const GENERAL_RUN: u32 = 16;

/// A kernel with its scratch memory. It remembers the differences of the row pairs it was given:
/// output rows `y` and `y + 1` need the pairs of rows `y - 2`, `y` and `y + 2`.
pub(super) trait Stepper: Send + std::fmt::Debug {
    /// Takes a row pair without giving output.
    fn feed(&mut self, rows: RowPair<'_>);

    /// Takes the row pair below the two output rows and gives their sum, or with `both` unset that of
    /// the upper alone. `next` will come next.
    fn step(&mut self, rows: RowPair<'_>, next: RowPair<'_>, both: bool) -> u64;

    /// Takes a row pair whose rows are equal, as are the two pairs before it.
    fn skip(&mut self);

    /// Steps since the start, by the way they went.
    fn steps(&self) -> Steps;
}

/// The rows of the earlier plane, some of which may lie above row 0 or below the last.
pub(super) trait Earlier {
    /// Row `y`, reflected where it lies outside of the plane.
    fn row(&self, y: isize) -> &[u8];

    /// Row `y` has been read for the last time; `later` is that of the later plane.
    fn done(&mut self, y: isize, later: &[u8]);
}

/// An earlier plane that is left as it is.
impl Earlier for Plane<'_> {
    fn row(&self, y: isize) -> &[u8] {
        Plane::row(self, reflect(y, self.geometry().height()))
    }

    fn done(&mut self, _: isize, _: &[u8]) {}
}

/// Rows above and below a band that its output rows need.
pub(super) const HALO: usize = 2;

/// A band of a stored plane, overwritten by the later plane while it is read. The rows around it,
/// which other bands overwrite or which are reflections of its own, are copied beforehand.
#[derive(Debug)]
pub(super) struct StoredBand<'a> {
    pub(super) rows: Range<usize>,
    pub(super) stored: &'a mut [u8],
    pub(super) stride: usize,
    pub(super) row_bytes: usize,
    /// Rows `start - 2`, `start - 1`, `end`, `end + 1`, each `row_bytes` long.
    pub(super) halo: &'a [u8],
}

impl Earlier for StoredBand<'_> {
    fn row(&self, y: isize) -> &[u8] {
        let (start, end) = (self.rows.start as isize, self.rows.end as isize);
        let halo = |index: isize| &self.halo[index as usize * self.row_bytes..][..self.row_bytes];
        if y < start {
            halo(y - start + HALO as isize)
        } else if y >= end {
            halo(y - end + HALO as isize)
        } else {
            &self.stored[(y - start) as usize * self.stride..][..self.row_bytes]
        }
    }

    fn done(&mut self, y: isize, later: &[u8]) {
        let (start, end) = (self.rows.start as isize, self.rows.end as isize);
        if (start..end).contains(&y) {
            let at = (y - start) as usize * self.stride;
            self.stored[at..at + self.row_bytes].copy_from_slice(later);
        }
    }
}

/// The sum over the output rows `rows` of two planes.
pub(super) fn walk(
    stepper: &mut dyn Stepper,
    earlier: &mut impl Earlier,
    later: &Plane<'_>,
    rows: Range<usize>,
) -> u64 {
    let height = later.geometry().height();
    let (start, end) = (rows.start as isize, rows.end as isize);
    // The last pair of an odd band names a row that no output row needs; any row will do for it.
    let lowest = end + HALO as isize - 1;
    let later_pair = |y: isize| [y, (y + 1).min(lowest)].map(|y| later.row(reflect(y, height)));
    fn pair<'a>(
        earlier: &'a impl Earlier,
        later: [&'a [u8]; 2],
        y: isize,
        lowest: isize,
    ) -> RowPair<'a> {
        RowPair {
            earlier: [y, (y + 1).min(lowest)].map(|y| earlier.row(y)),
            later,
        }
    }

    let mut equal_run = 0;
    let mut sum = 0;
    for below in (start - 2..end + 2).step_by(2) {
        let new = later_pair(below);
        let rows = pair(earlier, new, below, lowest);
        let equal = rows.is_equal();
        equal_run = if equal { equal_run + 1 } else { 0 };
        if below <= start {
            stepper.feed(rows);
        } else if equal_run >= 3 {
            stepper.skip();
        } else {
            let ahead = (below + 2).min(lowest - 1);
            let next = pair(earlier, later_pair(ahead), ahead, lowest);
            sum += stepper.step(rows, next, below - 1 < end);
        }
        if !equal {
            earlier.done(below, new[0]);
            earlier.done(below + 1, new[1]);
        }
    }
    sum
}
