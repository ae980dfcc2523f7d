// SPDX-License-Identifier: MPL-2.0

//! `vplretry-core`'s loop on the real dispatcher and this runtime: streams, faults, random scripts.
//!
//! | module | idea |
//! |---|---|
//! | [`units`] | a stream cut into access units: one a bitstream |
//! | [`surface`] | surfaces and sync points that own what they depend on |
//! | [`books`] | what became of each access unit |
//! | [`driver`] | the driver: a session of the dispatcher, an input, an output and a clock |
//! | [`play`] | a stream through the loop, and what holds whatever the runtime did |
//! | [`streams`], [`faults`], [`random`] | the tests |

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

#[path = "../client/mod.rs"]
mod client;

mod books;
mod driver;
mod faults;
mod play;
mod random;
mod streams;
mod surface;
mod units;
