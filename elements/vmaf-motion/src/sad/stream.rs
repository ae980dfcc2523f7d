// SPDX-License-Identifier: MPL-2.0

//! SADs of a stream of planes, and of two planes at hand.

use super::rows::{HALO, Stepper, Steps, StoredBand, walk};
use super::scalar::{self, reflect};
use super::scratch::Aligned;
use super::{Distance, Kernel, KernelError, stepper};
use crate::plane::{Geometry, Plane, PlaneError};

/// Rows of a stored plane start on cache lines.
const ROW_ALIGN: usize = 64;

/// The SADs of a stream of planes. Keeps the earlier planes it needs (one, or two at
/// [`Distance::Two`]) and overwrites the oldest in the same pass that reads it. All memory is
/// taken when it is made.
#[derive(Debug)]
pub struct MotionSad {
    geometry: Geometry,
    kernel: Kernel,
    stepper: Option<Box<dyn Stepper>>,
    /// The last planes, plane `n` of the stream in `n % distance`.
    stored: Vec<Aligned<u8>>,
    stride: usize,
    halo: Vec<u8>,
    seen: u64,
}

impl MotionSad {
    /// For planes of one geometry, with the kernel that [`Kernel::chosen`] names.
    pub fn new(geometry: Geometry, distance: Distance) -> Self {
        let row_bytes = geometry.row_bytes();
        let stride = row_bytes.next_multiple_of(ROW_ALIGN);
        let kernel = Kernel::chosen();
        Self {
            geometry,
            kernel,
            stepper: stepper(kernel, geometry),
            stored: vec![Aligned::new(stride * geometry.height()); distance as usize],
            stride,
            halo: vec![0; 2 * HALO * row_bytes],
            seen: 0,
        }
    }

    /// The same with another kernel; to be called before the first plane.
    ///
    /// # Errors
    /// [`KernelError::Unsupported`] when this processor cannot run it.
    pub fn with_kernel(mut self, kernel: Kernel) -> Result<Self, KernelError> {
        self.kernel = kernel.require()?;
        self.stepper = stepper(kernel, self.geometry);
        Ok(self)
    }

    /// The kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// How the steps of two rows went so far; all zero for [`Kernel::Scalar`].
    pub fn steps(&self) -> Steps {
        let steps = self.stepper.as_ref().map(|stepper| stepper.steps());
        steps.unwrap_or_default()
    }

    /// Takes the next plane; gives its SAD against the plane `distance` frames earlier, or `None`
    /// for the first planes of the stream, which have none.
    ///
    /// # Errors
    /// [`PlaneError::Geometry`] when the plane is not of this stream's geometry; nothing changes.
    pub fn push(&mut self, plane: &Plane<'_>) -> Result<Option<u64>, PlaneError> {
        if plane.geometry() != self.geometry {
            return Err(PlaneError::Geometry);
        }
        let distance = self.stored.len() as u64;
        let slot = (self.seen % distance) as usize;
        let is_first = self.seen < distance;
        self.seen += 1;
        if is_first {
            self.store(slot, plane);
            return Ok(None);
        }
        self.compare_and_store(slot, plane).map(Some)
    }

    fn store(&mut self, slot: usize, plane: &Plane<'_>) {
        let row_bytes = self.geometry.row_bytes();
        let rows = self.stored[slot].chunks_mut(self.stride);
        for (y, row) in rows.enumerate() {
            row[..row_bytes].copy_from_slice(plane.row(y));
        }
    }

    fn compare_and_store(&mut self, slot: usize, plane: &Plane<'_>) -> Result<u64, PlaneError> {
        let (row_bytes, height) = (self.geometry.row_bytes(), self.geometry.height());
        let Some(stepper) = &mut self.stepper else {
            let earlier = Plane::new(&self.stored[slot], self.stride, self.geometry)?;
            let sad = scalar::sad(&earlier, plane);
            self.store(slot, plane);
            return Ok(sad);
        };
        let stored = &mut self.stored[slot];
        let outer = [-2, -1, height as isize, height as isize + 1];
        for (row, copy) in outer.into_iter().zip(self.halo.chunks_mut(row_bytes)) {
            copy.copy_from_slice(&stored[reflect(row, height) * self.stride..][..row_bytes]);
        }
        let mut band = StoredBand {
            rows: 0..height,
            stored,
            stride: self.stride,
            row_bytes,
            halo: &self.halo,
        };
        Ok(walk(stepper.as_mut(), &mut band, plane, 0..height))
    }
}

/// The SAD of two planes at hand, neither of which is changed: for files, where pairs of frames can
/// be compared in any order and on several threads, each with a `PairSad` of its own.
#[derive(Debug)]
pub struct PairSad {
    geometry: Geometry,
    stepper: Option<Box<dyn Stepper>>,
}

impl PairSad {
    /// For planes of one geometry, with the kernel that [`Kernel::chosen`] names.
    pub fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            stepper: stepper(Kernel::chosen(), geometry),
        }
    }

    /// The same with another kernel.
    ///
    /// # Errors
    /// [`KernelError::Unsupported`] when this processor cannot run it.
    pub fn with_kernel(self, kernel: Kernel) -> Result<Self, KernelError> {
        let stepper = stepper(kernel.require()?, self.geometry);
        Ok(Self { stepper, ..self })
    }

    /// How the steps of two rows went so far; all zero for [`Kernel::Scalar`].
    pub fn steps(&self) -> Steps {
        let steps = self.stepper.as_ref().map(|stepper| stepper.steps());
        steps.unwrap_or_default()
    }

    /// SAD of `earlier` minus `later`.
    ///
    /// # Errors
    /// [`PlaneError::Geometry`] when one of them is of another geometry.
    pub fn sad(&mut self, earlier: &Plane<'_>, later: &Plane<'_>) -> Result<u64, PlaneError> {
        if [earlier, later].map(Plane::geometry) != [self.geometry; 2] {
            return Err(PlaneError::Geometry);
        }
        let height = self.geometry.height();
        Ok(match &mut self.stepper {
            None => scalar::sad(earlier, later),
            Some(stepper) => walk(stepper.as_mut(), &mut { *earlier }, later, 0..height),
        })
    }
}
