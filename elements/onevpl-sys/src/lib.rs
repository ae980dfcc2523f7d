// SPDX-License-Identifier: MPL-2.0

//! Bindings to oneVPL for decoding, and owners of what they hand out.
//!
//! | module | idea |
//! |---|---|
//! | [`bindings`] | structures and constants, generated from the headers of API 2.8 |
//! | [`status`] | [`MfxStatus`]: an integer with names |
//! | [`functions`] | the functions of a session as a table of pointers |
//! | [`dispatcher`](mod@dispatcher) | `libvpl.so.2`, or a runtime without it, opened at run time and never closed |
//! | [`loader`], [`session`], [`surface`] | owners: each holds what it depends on, and nothing outlives its library |
//! | [`va`] | a VA-API display, which hardware runtimes work on |
//!
//! The bindings and tables are raw: nothing of them is safe to call with wrong arguments. The owners are safe.

// The generated file follows bindgen's idea of style, not this project's.
#[allow(
    missing_docs,
    unreachable_pub,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    unsafe_op_in_unsafe_fn,
    rustdoc::all
)]
pub mod bindings;
pub mod dispatcher;
pub mod functions;
pub mod loader;
pub mod session;
pub mod status;
pub mod surface;
pub mod va;

pub use bindings::*;
pub use dispatcher::{DirectRuntime, Dispatcher, LoadError, dispatcher};
pub use functions::{LoaderFunctions, MissingFunction, RuntimeFunctions, SessionFunctions};
pub use loader::{Filter, Implementation, ImplementationKind, Loader};
pub use session::{Closer, DecodeCall, Input, Parameters, Session};
pub use status::MfxStatus;
pub use surface::{MappedSurface, PictureInfo, Surface, SyncPoint};
pub use va::{VaDisplay, VaError};

/// `MFX_TIMESTAMP_UNKNOWN` as the fields that carry it hold it (the header's enumerator is a signed -1).
pub const TIMESTAMP_UNKNOWN: mfxU64 = MFX_TIMESTAMP_UNKNOWN as mfxU64;
