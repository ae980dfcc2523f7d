// SPDX-License-Identifier: MPL-2.0

//! A blurred plane, replaced by the next one while the two are compared.

use super::component::Component;
use crate::plane::Geometry;
use crate::sad::Kernel;
use crate::sad::scalar::reflect;

/// Rows that are summed side by side: enough for the additions to wait for nothing.
pub(super) const LANES: usize = 16;

/// Samples on each side of a row that the filter reaches.
const REACH: usize = 2;

/// The blurred plane before, and the scratch memory to make the next.
#[derive(Debug)]
pub(super) struct Blurred {
    /// Decides for which instructions the one loop below is compiled; the bits are the same.
    kernel: Kernel,
    taps: [f32; 5],
    width: usize,
    height: usize,
    samples: Vec<f32>,
    /// The last five rows that were read, row `y` in `y % 5`.
    read: [Vec<f32>; 5],
    /// A row after the first blur, with reflected ends.
    down: Vec<f32>,
    differences: Differences,
}

impl Blurred {
    /// A plane of zeros, with the instructions of the kernel that [`Kernel::chosen`] names.
    pub(super) fn new(taps: [f32; 5], geometry: Geometry) -> Self {
        let (width, height) = (geometry.width(), geometry.height());
        Self {
            kernel: Kernel::chosen(),
            taps,
            width,
            height,
            samples: vec![0.0; width * height],
            read: [(); 5].map(|()| vec![0.0; width]),
            down: vec![0.0; width + 2 * REACH],
            differences: Differences::new(width),
        }
    }

    /// Row `y` of the plane that was pushed last.
    pub(super) fn row(&self, y: usize) -> &[f32] {
        &self.samples[y * self.width..][..self.width]
    }

    /// Mean absolute difference of the plane before and `plane`, which takes its place.
    pub(super) fn push(&mut self, plane: &Component<'_>) -> f32 {
        #[cfg(target_arch = "x86_64")]
        match self.kernel {
            Kernel::Avx512 | Kernel::PortableAvx512 if Kernel::PortableAvx512.is_available() => {
                // SAFETY: the processor has these instructions.
                return unsafe { self.push_avx512(plane) };
            }
            Kernel::Avx2 | Kernel::PortableAvx2 if Kernel::PortableAvx2.is_available() => {
                // SAFETY: the processor has these instructions.
                return unsafe { self.push_avx2(plane) };
            }
            _ => {}
        }
        self.push_clone(plane)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn push_avx512(&mut self, plane: &Component<'_>) -> f32 {
        self.push_clone(plane)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn push_avx2(&mut self, plane: &Component<'_>) -> f32 {
        self.push_clone(plane)
    }

    #[inline(always)]
    fn push_clone(&mut self, plane: &Component<'_>) -> f32 {
        let Self {
            taps,
            width,
            height,
            samples,
            read,
            down,
            differences,
            kernel: _,
        } = self;
        let (width, height) = (*width, *height);
        for (y, row) in read.iter_mut().enumerate().take(REACH) {
            plane.read(y, row);
        }
        differences.start();
        for (y, row) in samples.chunks_exact_mut(width).enumerate() {
            if y + REACH < height {
                plane.read(y + REACH, &mut read[(y + REACH) % 5]);
            }
            let rows = [0, 1, 2, 3, 4].map(|tap| {
                let y = reflect((y + tap) as isize - REACH as isize, height);
                &read[y % 5][..width]
            });
            blur(*taps, rows, &mut down[REACH..][..width]);
            down[0] = down[4];
            down[1] = down[3];
            down[REACH + width] = down[width];
            down[REACH + width + 1] = down[width - 1];
            let columns = [0, 1, 2, 3, 4].map(|tap| &down[tap..][..width]);
            let difference = differences.row(width);
            blur_and_compare(*taps, columns, row, difference);
            differences.done(width);
        }
        differences.total() / (width as u32).wrapping_mul(height as u32) as f32
    }
}

/// The weighted sums of five slices of one length.
#[inline(always)]
fn blur(taps: [f32; 5], [a, b, c, d, e]: [&[f32]; 5], out: &mut [f32]) {
    for (((((out, a), b), c), d), e) in out.iter_mut().zip(a).zip(b).zip(c).zip(d).zip(e) {
        *out = sum(taps, [*a, *b, *c, *d, *e]);
    }
}

/// The same; `out` holds the values before, and `differences` is how far they were.
#[inline(always)]
fn blur_and_compare(
    taps: [f32; 5],
    [a, b, c, d, e]: [&[f32]; 5],
    out: &mut [f32],
    differences: &mut [f32],
) {
    let out = out.iter_mut().zip(differences);
    for ((((((out, difference), a), b), c), d), e) in out.zip(a).zip(b).zip(c).zip(d).zip(e) {
        let value = sum(taps, [*a, *b, *c, *d, *e]);
        *difference = (*out - value).abs();
        *out = value;
    }
}

#[inline(always)]
fn sum(taps: [f32; 5], values: [f32; 5]) -> f32 {
    let products = [0, 1, 2, 3, 4].map(|tap| taps[tap] * values[tap]);
    // Starts with the first product: a zero before it could change the sign of a zero alone.
    products[0] + products[1] + products[2] + products[3] + products[4]
}

/// Rows of absolute differences, summed up row by row, each from left to right.
#[derive(Debug)]
pub(super) struct Differences {
    rows: [Vec<f32>; LANES],
    filled: usize,
    total: f32,
}

impl Differences {
    pub(super) fn new(width: usize) -> Self {
        Self {
            rows: [(); LANES].map(|()| vec![0.0; width]),
            filled: 0,
            total: 0.0,
        }
    }

    /// Begins a plane.
    #[inline(always)]
    pub(super) fn start(&mut self) {
        self.filled = 0;
        self.total = 0.0;
    }

    /// The row to be written next.
    #[inline(always)]
    pub(super) fn row(&mut self, width: usize) -> &mut [f32] {
        &mut self.rows[self.filled][..width]
    }

    /// The row has been written.
    #[inline(always)]
    pub(super) fn done(&mut self, width: usize) {
        self.filled += 1;
        if self.filled == LANES {
            let rows = self.rows.each_ref().map(|row| &row[..width]);
            let mut sums = [0.0f32; LANES];
            for x in 0..width {
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum += row[x];
                }
            }
            for sum in sums {
                self.total += sum;
            }
            self.filled = 0;
        }
    }

    /// Sum over the plane.
    #[inline(always)]
    pub(super) fn total(&mut self) -> f32 {
        for row in &self.rows[..self.filled] {
            let mut sum = 0.0f32;
            for difference in row {
                sum += difference;
            }
            self.total += sum;
        }
        self.filled = 0;
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleFormat;

    #[test]
    fn every_clone_gives_the_same_bits() {
        for (width, height) in [(3, 3), (16, 5), (31, 7), (70, 40), (257, 9)] {
            let geometry = Geometry::new(width, height, SampleFormat::EIGHT_BIT).unwrap();
            let mut noise = 1u32;
            let planes: Vec<Vec<u8>> = (0..3)
                .map(|_| {
                    let samples = 0..width * height;
                    samples
                        .map(|_| {
                            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            (noise >> 24) as u8
                        })
                        .collect()
                })
                .collect();
            let differences = |kernel| -> Vec<u32> {
                let mut blurred = Blurred {
                    kernel,
                    ..Blurred::new([0.054, 0.244, 0.404, 0.244, 0.054], geometry)
                };
                let push = |plane: &Vec<u8>| {
                    let plane = Component::new(plane, width as usize, 1, geometry).unwrap();
                    blurred.push(&plane).to_bits()
                };
                planes.iter().map(push).collect()
            };
            let reference = differences(Kernel::Scalar);
            assert!(reference.iter().all(|bits| f32::from_bits(*bits) > 1.0));
            for kernel in Kernel::available() {
                assert_eq!(
                    differences(kernel),
                    reference,
                    "{kernel} at {width}x{height}"
                );
            }
        }
    }
}
