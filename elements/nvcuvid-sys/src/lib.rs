// SPDX-License-Identifier: MPL-2.0

//! NVIDIA's video decoder, opened at run time.
//!
//! | module | idea |
//! |---|---|
//! | [`bindings`] | structures, constants and function types, generated from the headers of Video Codec SDK 11.1 |
//! | [`av1`] | the two fields of AV1's picture parameters that name and switch film grain's second surface |
//! | [`frame_type`] | key frames of VP8, VP9 and AV1 |
//! | [`result`] | [`CuResult`]: what every function answers, an integer with names |
//! | [`load`] | [`LoadError`]: what is missing on this machine, and what to install |
//! | [`driver`] | [`Driver`]: `libcuda`, its version and devices |
//! | [`library`] | [`Nvcuvid`]: `libnvcuvid.so.1` as a table of functions |
//! | [`context`] | [`Context`]: a CUDA context; current exactly while a call needs it |
//! | [`stream`] | [`Stream`] and [`Event`] |
//! | [`memory`] | [`PinnedBuffer`]: host memory that the device writes to asynchronously |
//! | [`caps`] | [`DecoderCaps`]: what a device decodes |
//! | [`parser`] | [`Parser`]: a bitstream goes in, callbacks come out; no panic crosses them |
//! | [`picture`] | [`PictureParams`]: what the parser hands to the decoder |
//! | [`config`] | [`DecoderConfig`]: the parameters of a decoder, as the parser's format asks for them |
//! | [`decoder`] | [`Decoder`]: pictures by index |
//! | [`surface`] | [`MappedSurface`]: a decoded picture in device memory |
//! | [`copy`] | [`PendingCopy`]: a surface and its target, held until the copy is done |
//!
//! Owners hold what they depend on: a copy holds its surface, a surface its decoder and stream, these their
//! context. Libraries are never unloaded, so that a thread which the driver holds in a call never returns
//! into unmapped code.
//!
//! Nothing here waits with a deadline. The driver's calls may block or hang, and who calls them decides on
//! which thread: [`PendingCopy::is_complete`] and [`Decoder::status`] are there to look without waiting.
//!
//! cudarc supplies the search for `libcuda` and the types and signatures of the driver interface. Its own
//! functions are not called: they panic where the library or a symbol is missing, and they turn the driver's
//! answer into an enumeration, which is undefined for the codes of a driver that is newer than the enumeration.

#[cfg(not(all(unix, target_pointer_width = "64")))]
compile_error!("nvcuvid-sys has the layouts of 64-bit Linux");

/// The example of the README is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod av1;
// The generated file follows bindgen's idea of style, not this project's.
#[allow(
    missing_docs,
    unreachable_pub,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    unsafe_op_in_unsafe_fn,
    rustdoc::all
)]
pub mod bindings;
pub mod caps;
pub mod config;
pub mod context;
pub mod copy;
pub mod decoder;
pub mod driver;
mod error;
pub mod frame_type;
pub mod library;
pub mod load;
pub mod memory;
pub mod parser;
pub mod picture;
pub mod result;
pub mod stream;
pub mod surface;

pub use bindings::*;
pub use caps::{CapsRefusal, DecoderCaps};
pub use config::{DecoderConfig, Rect};
pub use context::Context;
pub use copy::{Copied, CopyError, PendingCopy, PlaneCopy};
pub use cudarc::driver::sys::{CUcontext, CUdevice, CUdeviceptr, CUevent, CUstream};
pub use decoder::{DecodeStatus, Decoder};
pub use driver::{Device, Driver};
pub use error::Error;
pub use library::Nvcuvid;
pub use load::LoadError;
pub use memory::PinnedBuffer;
pub use parser::{
    CallbackFailed, OperatingPoint, Packet, ParseError, Parser, ParserClient, ParserConfig,
    SequenceAnswer,
};
pub use picture::PictureParams;
pub use result::{CuError, CuResult};
pub use stream::{Event, Stream};
pub use surface::{FieldSelection, MappedSurface, SurfaceLayout};
