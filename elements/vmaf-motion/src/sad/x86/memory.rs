// SPDX-License-Identifier: MPL-2.0

//! The loads, stores and prefetches of the kernels: every one checked against its slice.

use std::arch::x86_64::*;

/// Elements of which any bytes are a value.
pub(super) trait Element: Copy {}
impl Element for u8 {}
impl Element for i16 {}
impl Element for i32 {}

/// 64 bytes from element `at` on.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_512<T: Element>(row: &[T], at: usize) -> __m512i {
    let from = &row[at..at + 64 / size_of::<T>()];
    // SAFETY: `from` is 64 bytes long; the load needs no alignment.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// Writes 64 bytes from element `at` on.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store_512<T: Element>(row: &mut [T], at: usize, value: __m512i) {
    let to = &mut row[at..at + 64 / size_of::<T>()];
    // SAFETY: `to` is 64 bytes long; the store needs no alignment, and any bytes are a `T`.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
}

/// The bytes from `at` on, at most 64, zeros behind them. Nothing behind the row is read.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn load_512_part(row: &[u8], at: usize) -> __m512i {
    let from = &row[at..];
    let len = from.len().min(64) as u32;
    let mask = u64::MAX.unbounded_shr(64 - len);
    // SAFETY: the mask has a bit for no byte behind the slice, and masked bytes are not accessed.
    unsafe { _mm512_maskz_loadu_epi8(mask, from.as_ptr().cast()) }
}

/// 32 bytes from element `at` on.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn load_256<T: Element>(row: &[T], at: usize) -> __m256i {
    let from = &row[at..at + 32 / size_of::<T>()];
    // SAFETY: `from` is 32 bytes long; the load needs no alignment.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// Writes 32 bytes from element `at` on.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_256<T: Element>(row: &mut [T], at: usize, value: __m256i) {
    let to = &mut row[at..at + 32 / size_of::<T>()];
    // SAFETY: `to` is 32 bytes long; the store needs no alignment, and any bytes are a `T`.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

/// 16 bytes from `at` on.
#[inline]
#[target_feature(enable = "sse2")]
pub(super) fn load_128(row: &[u8], at: usize) -> __m128i {
    let from = &row[at..at + 16];
    // SAFETY: `from` is 16 bytes long; the load needs no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

/// Asks for the cache line of byte `at` of a row, to the second level: the first has no room for
/// rows that are not used yet.
#[inline(always)]
pub(super) fn prefetch(row: &[u8], at: usize) {
    // SAFETY: a prefetch is a hint; it accesses nothing and cannot fault, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(row.as_ptr().wrapping_add(at).cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a call panics.
    fn panics(call: impl FnOnce()) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err()
    }

    #[test]
    fn what_does_not_fit_in_the_row_is_not_accessed() {
        let mut words = [0i16; 64];
        let mut longs = [0i32; 16];
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has these instructions.
            let load = |row: &[i16], at| unsafe { load_512(row, at) };
            let value = load(&words, 32);
            assert!(panics(|| _ = load(&words, 33)));
            // SAFETY: the processor has these instructions.
            let store = |row: &mut [i32], at| unsafe { store_512(row, at, value) };
            store(&mut longs, 0);
            assert!(panics(|| store(&mut longs, 1)));
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has these instructions.
            let load = |row: &[i32], at| unsafe { load_256(row, at) };
            let value = load(&longs, 8);
            assert!(panics(|| _ = load(&longs, 9)));
            // SAFETY: the processor has these instructions.
            let store = |row: &mut [i16], at| unsafe { store_256(row, at, value) };
            store(&mut words, 48);
            assert!(panics(|| store(&mut words, 49)));
        }
    }
}
