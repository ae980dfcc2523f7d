// SPDX-License-Identifier: MPL-2.0

//! The reference: written to be read, one sample after the other, in 64-bit integers.
//!
//! Every faster kernel is tested against this one bit for bit.

use super::TAPS;
use crate::plane::Plane;

/// Index `i` reflected into `0..n` without repeating the edge sample (`-1` is `1`, `n` is `n - 2`).
pub fn reflect(i: isize, n: usize) -> usize {
    let n = n as isize;
    let inside = if i < 0 {
        -i
    } else if i >= n {
        2 * n - 2 - i
    } else {
        i
    };
    inside as usize
}

/// Sum of the absolute blurred differences of two planes of one geometry, in 1/256 of an 8-bit code
/// value. `earlier` minus `later`: negative sums round half up, so the direction matters.
pub fn sad(earlier: &Plane<'_>, later: &Plane<'_>) -> u64 {
    let geometry = later.geometry();
    let (width, height) = (geometry.width(), geometry.height());
    let shift = geometry.format().depth();
    let difference =
        |x: usize, y: usize| i64::from(earlier.sample(x, y)) - i64::from(later.sample(x, y));

    let mut blurred = vec![0i64; width];
    let mut sum = 0;
    for y in 0..height as isize {
        for (x, blurred) in blurred.iter_mut().enumerate() {
            let rows = (y - 2..).map(|row| reflect(row, height));
            let column: i64 = TAPS
                .iter()
                .zip(rows)
                .map(|(&tap, row)| tap * difference(x, row))
                .sum();
            *blurred = (column + (1 << (shift - 1))) >> shift;
        }
        for x in 0..width as isize {
            let columns = (x - 2..).map(|column| reflect(column, width));
            let row: i64 = TAPS
                .iter()
                .zip(columns)
                .map(|(&tap, column)| tap * blurred[column])
                .sum();
            sum += ((row + 32_768) >> 16).unsigned_abs();
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::{Geometry, SampleFormat};

    fn sad8(width: u32, height: u32, earlier: &[u8], later: &[u8]) -> u64 {
        let geometry = Geometry::new(width, height, SampleFormat::EIGHT_BIT).unwrap();
        let plane = |data| Plane::new(data, width as usize, geometry).unwrap();
        sad(&plane(earlier), &plane(later))
    }

    #[test]
    fn reflection_does_not_repeat_the_edge() {
        let reflected: Vec<usize> = (-2..6).map(|i| reflect(i, 4)).collect();
        assert_eq!(reflected, [2, 1, 0, 1, 2, 3, 2, 1]);
    }

    #[test]
    fn uniform_change() {
        assert_eq!(sad8(3, 3, &[0; 9], &[5; 9]), 11_520);
        assert_eq!(sad8(3, 3, &[0; 9], &[255; 9]), 587_520);
    }

    #[test]
    fn one_sample() {
        assert_eq!(sad8(3, 3, &[0; 9], &[0, 0, 0, 0, 10, 0, 0, 0, 0]), 5_672);
    }

    const EARLIER: [u8; 12] = [100, 50, 25, 12, 6, 3, 1, 0, 255, 0, 255, 0];
    const LATER: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

    #[test]
    fn mixed_samples() {
        assert_eq!(sad8(4, 3, &EARLIER, &LATER), 119_407);
    }

    #[test]
    fn ten_bit_low_and_high() {
        let format = [
            SampleFormat::low(10).unwrap(),
            SampleFormat::high(10).unwrap(),
        ];
        for (format, foreign) in format.into_iter().zip([0xf400, 0x2b]) {
            let words = |samples: [u16; 12]| -> Vec<u8> {
                let word = |sample: u16| (sample << format.shift() | foreign).to_le_bytes();
                samples.into_iter().flat_map(word).collect()
            };
            let earlier = words(EARLIER.map(|v| 4 * u16::from(v) + 1));
            let later = words(LATER.map(|v| 4 * u16::from(v)));
            let geometry = Geometry::new(4, 3, format).unwrap();
            let plane = |data| Plane::new(data, 8, geometry).unwrap();
            assert_eq!(sad(&plane(&earlier), &plane(&later)), 120_175);
        }
    }

    #[test]
    fn direction_matters() {
        let earlier = [17, 3, 15, 18, 0, 7, 12, 2, 10, 12, 15, 18];
        assert_eq!(sad8(4, 3, &earlier, &[0; 12]), 29_794);
        assert_eq!(sad8(4, 3, &[0; 12], &earlier), 29_792);
    }
}
