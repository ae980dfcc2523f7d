// SPDX-License-Identifier: MPL-2.0

//! Sum of absolute blurred differences (SAD) of two luma planes, as libvmaf 3.2's integer motion
//! has it: difference, 5-tap blur down the columns, 5-tap blur along the rows, absolute sum.

pub mod scalar;

use crate::plane::{Geometry, Plane, PlaneError};

/// Filter taps, sum 65536 (libvmaf's `integer_motion.h`).
pub const TAPS: [i64; 5] = [3_571, 16_004, 26_386, 16_004, 3_571];

/// Which earlier frame a frame is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Distance {
    /// The frame before: three-frame window.
    #[default]
    One = 1,
    /// The frame before that one: five-frame window.
    Two = 2,
}

/// The SADs of a stream of planes. Keeps the earlier planes it needs (one, or two at
/// [`Distance::Two`]) and overwrites the oldest in the same pass that reads it.
#[derive(Debug)]
pub struct MotionSad {
    geometry: Geometry,
    distance: Distance,
    planes: Vec<Vec<u8>>,
    seen: u64,
}

impl MotionSad {
    /// For planes of one geometry.
    pub fn new(geometry: Geometry, distance: Distance) -> Self {
        Self {
            geometry,
            distance,
            planes: Vec::new(),
            seen: 0,
        }
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
        let row_bytes = self.geometry.row_bytes();
        let slot = (self.seen % self.distance as u64) as usize;
        self.seen += 1;
        let copy = (0..self.geometry.height()).flat_map(|y| plane.row(y).iter().copied());
        match self.planes.get_mut(slot) {
            None => {
                self.planes.push(copy.collect());
                Ok(None)
            }
            Some(stored) => {
                let sad = scalar::sad(&Plane::new(stored, row_bytes, self.geometry)?, plane);
                stored.clear();
                stored.extend(copy);
                Ok(Some(sad))
            }
        }
    }
}
