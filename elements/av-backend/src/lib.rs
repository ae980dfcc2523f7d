// SPDX-License-Identifier: MPL-2.0

//! libavcodec as a software decode runtime needs it, with a safe interface.
//!
//! | module | idea |
//! |---|---|
//! | [`decoder`] | one packet in, pictures out, each with the token of its packet; drain and flush |
//! | [`picture`] | a decoded picture: planes, crop, depth, what is known to be wrong with it |
//! | [`surfaces`] | a say in where pictures are decoded: true decoding order, and how long each is needed |
//! | [`inspect`] | picture kind and structure of an access unit, before it is decoded |
//! | [`engines`] | when the engines of a device are done with a picture |
//! | [`pin`] | keeping the library loaded that this is part of |
//! | [`pack`](mod@pack) | a picture written as NV12 or P010 into memory of the runtime's own |
//!
//! Nothing here knows of the interface that a runtime offers to its clients.

pub mod decoder;
pub mod engines;
pub mod inspect;
pub mod pack;
pub mod picture;
pub mod pin;
pub mod surfaces;

pub use decoder::{Codec, Decoder, DecoderOptions, Error, Received, Sent, is_available};
pub use engines::Engines;
pub use inspect::{Inspector, Structure, UnitInfo};
pub use pack::{PackError, Semiplanar, pack, pack_planes};
pub use picture::{Chroma, Damage, FieldOrder, Picture, PictureKind, PlaneView};
pub use surfaces::{Surfaces, Tag};
