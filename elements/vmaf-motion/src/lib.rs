// SPDX-License-Identifier: MPL-2.0

//! Exact VMAF motion scores, frame by frame.
//!
//! The values are those of libvmaf 3.2 (`motion`, formerly `motion_v2`), bit for bit; what libvmaf
//!
//! | module | idea |
//! |---|---|
//! | [`plane`] | a luma plane somewhere in memory: size, stride, sample format |
//! | [`sad`] | the sum of absolute blurred differences of two planes: reference and fast kernels |
//! | [`derive`] | `motion2` and `motion3` of a frame as soon as they are final |
//!
//! This crate knows nothing of GStreamer, files or clocks.

pub mod derive;
pub mod plane;
pub mod sad;
pub mod score;

pub use derive::{Derivation, FinalScore, Finals};
pub use plane::{Geometry, Plane, PlaneError, SampleFormat};
