// SPDX-License-Identifier: MPL-2.0

//! The blurred plane at half its size, which `motion_add_scale1` compares as well.

use super::blur::{Blurred, Differences};
use crate::plane::Geometry;
use crate::sad::scalar::reflect;

/// Where a sample at half size lies between two at full size.
#[derive(Debug, Clone, Copy)]
struct Between {
    first: usize,
    second: usize,
    /// Distance from the first.
    way: f32,
}

/// Places of `half` samples over `full`.
fn places(full: usize, half: usize) -> Vec<Between> {
    let ratio = full as f32 / half as f32;
    let place = |i: usize| {
        let at = ((i as f64 + 0.5) * f64::from(ratio) - 0.5) as f32;
        let (first, second) = (at.floor(), at.ceil());
        Between {
            first: reflect(first as isize, full),
            second: reflect(second as isize, full),
            way: at - first,
        }
    };
    (0..half).map(place).collect()
}

/// The half-size plane before.
#[derive(Debug)]
pub(super) struct HalfSize {
    columns: Vec<Between>,
    rows: Vec<Between>,
    samples: Vec<f32>,
    differences: Differences,
}

impl HalfSize {
    pub(super) fn new(geometry: Geometry) -> Self {
        let [width, height] = [geometry.width(), geometry.height()];
        let [half_width, half_height] = [width, height].map(|side| side.div_ceil(2));
        Self {
            columns: places(width, half_width),
            rows: places(height, half_height),
            samples: vec![0.0; half_width * half_height],
            differences: Differences::new(half_width),
        }
    }

    /// Mean absolute difference of the half-size plane before and that of `blurred`, which takes its
    /// place.
    pub(super) fn push(&mut self, blurred: &Blurred) -> f32 {
        let width = self.columns.len();
        self.differences.start();
        for (row, y) in self.samples.chunks_exact_mut(width).zip(&self.rows) {
            let (upper, lower) = (blurred.row(y.first), blurred.row(y.second));
            let (dy, from_lower) = (y.way, 1.0 - y.way);
            let differences = self.differences.row(width);
            for ((sample, difference), x) in row.iter_mut().zip(differences).zip(&self.columns) {
                let (dx, from_right) = (x.way, 1.0 - x.way);
                let value = from_lower * from_right * upper[x.first]
                    + from_lower * dx * upper[x.second]
                    + dy * from_right * lower[x.first]
                    + dy * dx * lower[x.second];
                *difference = (*sample - value).abs();
                *sample = value;
            }
            self.differences.done(width);
        }
        let pixels = (width as u32).wrapping_mul(self.rows.len() as u32);
        self.differences.total() / pixels as f32
    }
}
