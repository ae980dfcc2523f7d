// SPDX-License-Identifier: MPL-2.0

//! Exact VMAF motion scores, frame by frame.
//!
//! The values are those of libvmaf 3.2 (`motion`, formerly `motion_v2`), bit for bit; what libvmaf
//! gives only at the end of the stream, [`MotionStream`] gives one frame later and never revises.
//!
//! | module | idea |
//! |---|---|
//! | [`plane`] | a luma plane somewhere in memory: size, stride, sample format |
//! | [`sad`] | the sum of absolute blurred differences of two planes: reference and fast kernels |
//! | [`float`] | the difference of two pictures as `float_motion` has it |
//! | [`options`] | libvmaf's options with their ranges, and its feature names |
//! | [`mod@derive`] | `motion2` and `motion3` of a frame as soon as they are final |
//! | [`stream`] | all of it together: a picture in, the scores that became final out |
//! | [`pool`] | one number from the scores of many frames |
//! | [`summary`] | the scores of a whole session in constant memory |
//! | [`windows`] | pooled scores over a range of frames as soon as they are final |
//! | [`clock`] | cuts a stream into windows by time or by count |
//! | [`chunks`] | a film scored in chunks equals the film scored whole |
//! | [`session`] | reports, summary and windows of one stream, in one order |
//! | [`live`] | the same with scores that come from any thread, in any order |
//!
//! This crate knows nothing of GStreamer, files or clocks.

pub mod chunks;
pub mod clock;
pub mod derive;
pub mod float;
pub mod live;
pub mod options;
pub mod plane;
pub mod pool;
pub mod sad;
pub mod score;
pub mod session;
pub mod stream;
pub mod summary;
pub mod windows;

pub use derive::{Derivation, FinalScore, Finals};
pub use options::{Extractor, MotionOptions, OptionError};
pub use plane::{Geometry, Plane, PlaneError, SampleFormat};
pub use stream::{MotionStream, Step};
