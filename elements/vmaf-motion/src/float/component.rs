// SPDX-License-Identifier: MPL-2.0

//! A colour component in somebody else's memory.

use crate::plane::{Geometry, Plane, PlaneError, SampleFormat};

/// The samples of one component, which may lie apart from each other: the two chroma components of
/// NV12 share a plane, each with every other byte.
#[derive(Debug, Clone, Copy)]
pub struct Component<'a> {
    data: &'a [u8],
    stride: usize,
    step: usize,
    geometry: Geometry,
}

impl<'a> Component<'a> {
    /// `data` starts with the first sample; samples start `step` bytes apart, rows `stride` bytes.
    ///
    /// # Errors
    /// [`PlaneError::Stride`] when a row is longer than the stride, or a sample than the step;
    /// [`PlaneError::Truncated`] when the last row ends behind the slice.
    pub fn new(
        data: &'a [u8],
        stride: usize,
        step: usize,
        geometry: Geometry,
    ) -> Result<Self, PlaneError> {
        let bytes = geometry.format().bytes();
        if step < bytes {
            return Err(PlaneError::Stride {
                stride: step,
                row: bytes,
            });
        }
        let row = (geometry.width() - 1)
            .checked_mul(step)
            .and_then(|before| before.checked_add(bytes))
            .unwrap_or(usize::MAX);
        if stride < row {
            return Err(PlaneError::Stride { stride, row });
        }
        let needed = (geometry.height() - 1)
            .checked_mul(stride)
            .and_then(|above| above.checked_add(row))
            .unwrap_or(usize::MAX);
        if data.len() < needed {
            return Err(PlaneError::Truncated {
                len: data.len(),
                needed,
            });
        }
        Ok(Self {
            data,
            stride,
            step,
            geometry,
        })
    }

    /// Size and sample format.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Row `y` as floats: code values of 8 bit with fractions, less 128.
    #[inline(always)]
    pub(super) fn read(&self, y: usize, out: &mut [f32]) {
        let format = self.geometry.format();
        let bytes = format.bytes();
        let row = &self.data[y * self.stride..];
        let row = &row[..(self.geometry.width() - 1) * self.step + bytes];
        match (bytes, self.step) {
            (1, 1) => {
                for (out, &sample) in out.iter_mut().zip(row) {
                    *out = f32::from(sample) - 128.0;
                }
            }
            (1, step) => {
                for (out, sample) in out.iter_mut().zip(row.chunks(step)) {
                    *out = f32::from(sample[0]) - 128.0;
                }
            }
            (_, 2) => {
                for (out, &word) in out.iter_mut().zip(row.as_chunks::<2>().0) {
                    *out = sample(format, word);
                }
            }
            (_, step) => {
                for (out, word) in out.iter_mut().zip(row.chunks(step)) {
                    *out = sample(format, [word[0], word[1]]);
                }
            }
        }
    }
}

/// A power of two divides exactly, so its inverse multiplies as exactly.
#[inline(always)]
fn sample(format: SampleFormat, word: [u8; 2]) -> f32 {
    let scale = 1.0 / (1u32 << (format.depth() - 8)) as f32;
    f32::from(format.unpack(u16::from_le_bytes(word))) * scale - 128.0
}

impl<'a> From<Plane<'a>> for Component<'a> {
    fn from(plane: Plane<'a>) -> Self {
        let geometry = plane.geometry();
        Self {
            data: plane.data(),
            stride: plane.stride(),
            step: geometry.format().bytes(),
            geometry,
        }
    }
}
