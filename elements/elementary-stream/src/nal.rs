// SPDX-License-Identifier: MPL-2.0

//! Start codes (00 00 01) and the units between them.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// One unit of a byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Where it begins in the data: its start code, and for H.264 and H.265 the zero byte before it.
    pub start: usize,
    /// The bytes behind the start code, up to the next (00 00 01) or the end of the data.
    pub bytes: &'a [u8],
    /// Whether another start code ends it. Otherwise the data ends first and the unit may go on.
    pub ended: bool,
}

/// Bytes behind a start code that suffice to tell what a unit is, and whether it begins an access unit.
pub const READABLE: usize = 6;

/// The units of `data`. What comes before the first start code belongs to none. `zero_byte`: a zero byte before
/// a start code is part of it, as in H.264 and H.265 (B.1.1); in MPEG-2 it may end the slice before.
pub fn units(data: &[u8], zero_byte: bool) -> impl Iterator<Item = Unit<'_>> {
    let mut next = find_start_code(data, 0);
    std::iter::from_fn(move || {
        let code = next?;
        let body = code + 3;
        next = find_start_code(data, body);
        let start_of = |code: usize| {
            if zero_byte && code > 0 && data[code - 1] == 0 {
                code - 1
            } else {
                code
            }
        };
        let end = next.unwrap_or(data.len());
        Some(Unit {
            start: start_of(code),
            bytes: &data[body..end],
            ended: next.is_some(),
        })
    })
}

static START_CODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&[0, 0, 1]));

fn find_start_code(data: &[u8], from: usize) -> Option<usize> {
    START_CODE.find(data.get(from..)?).map(|at| from + at)
}

/// How many bytes at the end of `data` may be the beginning of a start code.
pub fn unfinished_tail(data: &[u8]) -> usize {
    data.iter()
        .rev()
        .take(3)
        .take_while(|byte| **byte == 0)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_lie_between_start_codes_of_either_length() {
        let data = [9, 0, 0, 1, 7, 7, 0, 0, 0, 1, 8, 0, 0, 1];
        let found: Vec<_> = units(&data, true).collect();
        let unit = |start, bytes, ended| Unit {
            start,
            bytes,
            ended,
        };
        assert_eq!(
            found,
            [
                unit(1, &[7, 7, 0][..], true),
                unit(6, &[8], true),
                unit(11, &[], false)
            ]
        );
        let starts: Vec<_> = units(&data, false).map(|unit| unit.start).collect();
        assert_eq!(starts, [1, 7, 11]);
    }

    #[test]
    fn a_tail_of_zeros_may_begin_a_start_code() {
        assert_eq!(unfinished_tail(&[1, 2, 0, 0]), 2);
        assert_eq!(unfinished_tail(&[0, 0, 0, 0, 0]), 3);
        assert_eq!(unfinished_tail(&[1]), 0);
    }
}
