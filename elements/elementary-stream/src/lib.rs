// SPDX-License-Identifier: MPL-2.0

//! What an elementary video stream says without being decoded.
//!
//! | module | idea |
//! |---|---|
//! | [`sequence`] | size, crop, depth and rate, as a sequence header gives them |
//! | [`reader`] | cutting a stream into access units, and telling a new sequence header before its bytes are taken |
//! | [`bits`] | a bit reader, and the removal of emulation prevention |
//! | [`nal`] | start codes and what follows them |
//! | [`h264`], [`h265`], [`mpeg2`] | parameter sets of the formats with start codes |
//! | [`vp8`], [`vp9`], [`av1`], [`jpeg`] | frame headers of the formats that come frame by frame |
//!
//! The crate is pure: no FFI, no threads, no clock. Any bytes are accepted; what makes no sense is no header.

pub mod av1;
pub mod bits;
pub mod h264;
pub mod h265;
pub mod jpeg;
pub mod mpeg2;
pub mod nal;
pub mod reader;
pub mod sequence;
mod start_codes;
pub mod vp8;
pub mod vp9;

pub use reader::{Header, Reader, Step, find_header};
pub use sequence::{Codec, Crop, Reorder, Sampling, Sequence};
