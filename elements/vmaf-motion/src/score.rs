// SPDX-License-Identifier: MPL-2.0

//! From a SAD to a score, and the one comparison everything uses.

/// `a` if `a < b`, else `b`: libvmaf's `MIN`, which lets a NaN in `a` yield `b`. Not [`f64::min`].
#[inline]
pub fn cmin(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Motion of an integer SAD: per sample, weighted, not capped yet. The order of the operations is
/// part of the result (libvmaf 3.2, `integer_motion.c`).
///
/// `sad` is in 1/256 of an 8-bit code value, whatever the depth; so is the result in whole ones.
#[inline]
pub fn weighted_score(sad: u64, width: usize, height: usize, fps_weight: f64) -> f64 {
    // Both sides are at most 65535, so the product is exact.
    let pixels = (width as u64 * height as u64) as f64;
    sad as f64 / 256.0 / pixels * fps_weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_yields_the_second() {
        assert_eq!(cmin(f64::NAN, 3.0), 3.0);
        assert!(cmin(3.0, f64::NAN).is_nan());
        assert_eq!(cmin(1.0, 2.0), 1.0);
    }

    #[test]
    fn worked_examples() {
        assert_eq!(weighted_score(11_520, 3, 3, 1.0), 5.0);
        assert_eq!(weighted_score(587_520, 3, 3, 1.0), 255.0);
        assert_eq!(weighted_score(5_672, 3, 3, 1.0), 2.4618055555555554);
        assert_eq!(weighted_score(119_407, 4, 3, 1.0), 38.869466145833336);
        assert_eq!(weighted_score(587_520, 3, 3, 2.0), 510.0);
    }
}
