// SPDX-License-Identifier: MPL-2.0

//! The floor that kernels are measured against: how long it takes to read two planes and to
//! difference their bytes. Not part of any score.

/// Sum of the byte differences of two slices of equal length.
pub fn read_two(a: &[u8], b: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if super::Kernel::Avx2.is_available() {
        // SAFETY: the processor has AVX2.
        return unsafe { super::x86::floor::read_two(a, b) };
    }
    let differences = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b)));
    differences.sum()
}

/// The same, and `a` becomes a copy of `b` in the same pass.
pub fn read_two_write_one(a: &mut [u8], b: &[u8]) -> u64 {
    let mut sum = 0;
    // Pieces that stay in the first cache between the two uses.
    for (a, b) in a.chunks_mut(4096).zip(b.chunks(4096)) {
        sum += read_two(a, b);
        a.copy_from_slice(b);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_differenced_and_copied() {
        let mut a: Vec<u8> = (0..10_007u32).map(|i| (i * 7) as u8).collect();
        let b: Vec<u8> = (0..10_007u32).map(|i| (i * i) as u8).collect();
        let expected = a.iter().zip(&b).map(|(a, b)| u64::from(a.abs_diff(*b)));
        let expected: u64 = expected.sum();
        assert_eq!(read_two(&a, &b), expected);
        assert_eq!(read_two_write_one(&mut a, &b), expected);
        assert_eq!(a, b);
    }
}
