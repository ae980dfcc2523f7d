// SPDX-License-Identifier: MPL-2.0

//! What the tests share: a virtual clock, a scripted decoder library, a recording output.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod bench;
pub mod engine;
pub mod parser;
pub mod script;
pub mod sim;
