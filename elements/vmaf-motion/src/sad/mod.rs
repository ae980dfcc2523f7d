// SPDX-License-Identifier: MPL-2.0

//! Sum of absolute blurred differences (SAD) of two luma planes, as libvmaf 3.2's integer motion
//! has it: difference, 5-tap blur down the columns, 5-tap blur along the rows, absolute sum.
//!
//! [`MotionSad`] is for streams, [`PairSad`] for two planes at hand, [`sads`] for many on threads. [`scalar`] is the reference;
//! [`Kernel`] names the faster ways to the same bits.

pub mod floor;
mod kernel;
mod portable;
mod rows;
pub mod scalar;
mod scratch;
mod stream;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use kernel::{Kernel, KernelError, VARIABLE};
pub use rows::Steps;
pub use stream::{MotionSad, PairSad, sads};

use crate::plane::Geometry;
use rows::Stepper;

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

/// The fast code of a kernel for planes of one geometry; `None` for the reference.
fn stepper(kernel: Kernel, geometry: Geometry) -> Option<Box<dyn Stepper>> {
    if kernel == Kernel::Scalar {
        return None;
    }
    #[cfg(target_arch = "x86_64")]
    match kernel {
        Kernel::Avx512 => {
            if let Some(stepper) = x86::Avx512::new(geometry) {
                return Some(Box::new(stepper));
            }
        }
        Kernel::Avx2 => {
            if let Some(stepper) = x86::Avx2::new(geometry) {
                return Some(Box::new(stepper));
            }
        }
        _ => {}
    }
    Some(portable::stepper(kernel, geometry))
}
