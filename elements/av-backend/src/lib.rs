// SPDX-License-Identifier: MPL-2.0

//! libavcodec as a software decode runtime needs it, with a safe interface.
//!
//! | module | idea |
//! |---|---|
//! | [`decoder`] | one packet in, pictures out, each with the token of its packet; drain and flush |
//! | [`picture`] | a decoded picture: planes, crop, depth, what is known to be wrong with it |
//! | [`pack`](mod@pack) | a picture written as NV12 or P010 into memory of the runtime's own |
//!
//! Nothing here knows of the interface that a runtime offers to its clients.

pub mod decoder;
pub mod pack;
pub mod picture;

pub use decoder::{Codec, Decoder, DecoderOptions, Error, Received, Sent, is_available};
pub use pack::{PackError, Semiplanar, pack};
pub use picture::{Chroma, Damage, FieldOrder, Picture, PictureKind, PlaneView};
