// SPDX-License-Identifier: MPL-2.0

//! Tests of NVDEC clients on machines without a GPU.
//!
//! What the loader finds is fixed when a process starts, so each test runs in a child process ([`in_child`])
//! whose library path holds the stand-ins of libcuda and libnvcuvid and nothing else.
//!
//! | module | idea |
//! |---|---|
//! | [`child`] | the child, its environment and its end |
//! | [`libraries`] | the stand-ins: built, installed, asked |
//! | [`streams`] | streams made by FFmpeg's encoders, and what its software decoders make of them |

pub mod child;
pub mod libraries;
pub mod streams;

pub use child::{World, gstreamer_is_1_22, in_child};
pub use libraries::{assert_nothing_is_left, live, mistakes, set_faults};
pub use streams::{Made, make};
