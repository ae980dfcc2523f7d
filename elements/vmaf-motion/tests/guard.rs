// SPDX-License-Identifier: MPL-2.0

//! Nothing outside of a plane's rows is read: the planes stand between pages that cannot be.

#![cfg(unix)]

mod common;

use std::ptr;

use common::content::{Content, formats};
use vmaf_motion::sad::{Distance, Kernel, MotionSad, PairSad, scalar};
use vmaf_motion::{Geometry, Plane};

/// Pages that can be written, between two that cannot be touched.
struct Guarded {
    base: *mut u8,
    page: usize,
    inner: usize,
}

impl Guarded {
    fn new(bytes: usize) -> Self {
        // SAFETY: sysconf only reads a setting.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let inner = bytes.next_multiple_of(page);
        // SAFETY: a new anonymous mapping touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                inner + 2 * page,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(base, libc::MAP_FAILED);
        let base: *mut u8 = base.cast();
        // SAFETY: these pages lie inside the mapping just made.
        let opened = unsafe {
            libc::mprotect(
                base.wrapping_add(page).cast(),
                inner,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        assert_eq!(opened, 0);
        Self { base, page, inner }
    }

    /// All that can be touched.
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `inner` bytes behind the first page can be read and written, are zero from the
        // start, and are borrowed through `self` alone.
        unsafe { std::slice::from_raw_parts_mut(self.base.wrapping_add(self.page), self.inner) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length, and nothing borrows it.
        unsafe { libc::munmap(self.base.cast(), self.inner + 2 * self.page) };
    }
}

/// Copies `bytes` to the one or the other end of the pages.
fn place(guarded: &mut Guarded, bytes: &[u8], at_end: bool) -> std::ops::Range<usize> {
    let start = if at_end {
        guarded.inner - bytes.len()
    } else {
        0
    };
    let range = start..start + bytes.len();
    guarded.bytes()[range.clone()].copy_from_slice(bytes);
    range
}

#[test]
fn no_read_outside_the_rows() {
    let widths = (3..=70).chain([95, 96, 97, 127, 128, 129, 255, 256, 257]);
    for width in widths {
        for format in formats() {
            let geometry = Geometry::new(width, 7, format).unwrap();
            let planes = [0, 1].map(|t| Content::Noise.plane(geometry, 0, t, 8));
            let mut pages = planes
                .each_ref()
                .map(|plane| Guarded::new(plane.bytes.len()));
            let expected = scalar::sad(&planes[0].plane(), &planes[1].plane());
            for at_end in [false, true] {
                let [first, second] = &mut pages;
                let a = place(first, &planes[0].bytes, at_end);
                let b = place(second, &planes[1].bytes, at_end);
                let stride = geometry.row_bytes();
                let a = Plane::new(&first.bytes()[a], stride, geometry).unwrap();
                let b = Plane::new(&second.bytes()[b], stride, geometry).unwrap();
                for kernel in Kernel::available() {
                    let mut pairs = PairSad::new(geometry).with_kernel(kernel).unwrap();
                    assert_eq!(pairs.sad(&a, &b), Ok(expected), "{kernel} {geometry:?}");
                    let mut stream = MotionSad::new(geometry, Distance::One)
                        .with_kernel(kernel)
                        .unwrap();
                    assert_eq!(stream.push(&a), Ok(None));
                    assert_eq!(stream.push(&b), Ok(Some(expected)), "{kernel} {geometry:?}");
                }
            }
        }
    }
}
