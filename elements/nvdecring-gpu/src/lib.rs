// SPDX-License-Identifier: MPL-2.0

//! NVDEC for `nvdecring-core`: its trait `GpuApi` on NVIDIA's libraries, for programs without GStreamer.
//!
//! | module | idea |
//! |---|---|
//! | [`codec`] | the codecs, and which packet a picture of each belongs to |
//! | [`format`](mod@format) | what the parser says of a stream: [`StreamFormat`] |
//! | [`layout`] | where the planes of a picture lie in memory |
//! | [`access_unit`] | what a packet holds: how many pictures, which parameter sets |
//! | [`file`](mod@file) | the packets of an elementary stream or IVF file |
//! | [`destination`] | where pictures are copied to: [`Destination`] |
//! | [`host`] | pinned host memory: [`HostMemory`], [`HostFrame`] |
//! | [`gpu`] | a context with its stream and events: [`Gpu`] |
//! | [`api`] | [`Nvdec`]: the calls |
//! | [`device`] | one [`DeviceGate`](nvdecring_core::DeviceGate) a device of this process |
//! | [`failure`] | errors of the libraries as the ring's |
//!
//! `examples/decode_to_md5.rs` is a complete decoder in one file.

#![forbid(unsafe_code)]

pub mod access_unit;
pub mod api;
pub mod codec;
pub mod destination;
pub mod device;
pub mod failure;
pub mod file;
pub mod format;
pub mod gpu;
pub mod host;
pub mod layout;

pub use access_unit::Packetizer;
pub use api::{ContextSource, Nvdec, Settings};
pub use codec::Codec;
pub use destination::Destination;
pub use device::gate;
pub use file::{InputFile, NotAStream};
pub use format::{Colour, Crop, PixelFormat, StreamFormat};
pub use gpu::Gpu;
pub use host::{HostFrame, HostMemory};
pub use layout::{PictureLayout, Plane};
