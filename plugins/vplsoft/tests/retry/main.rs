// SPDX-License-Identifier: MPL-2.0

//! `vplretry-core`'s loop on the real dispatcher and this runtime: streams, faults, random scripts.
//!
//! | module | idea |
//! |---|---|
//! | [`units`] | a stream cut into access units: one a bitstream |
//! | [`surface`] | surfaces and sync points that own what they depend on |
//! | [`books`] | what became of each access unit |
//! | [`bitstream`], [`runtime`] | what the driver is made of: the bytes to be taken, the session that takes them |
//! | [`driver`] | the driver: these, an input, an output and a clock |
//! | [`play`] | a stream through the loop, and what holds whatever the runtime did |
//! | [`streams`], [`faults`], [`losses`], [`random`] | the tests |

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

#[path = "../client/mod.rs"]
mod client;

mod bitstream;
mod books;
mod driver;
mod faults;
mod losses;
mod play;
mod random;
mod runtime;
mod streams;
mod surface;
mod units;
