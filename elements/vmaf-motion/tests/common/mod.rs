// SPDX-License-Identifier: MPL-2.0

//! What the tests of this crate share.

// Each test program uses its own part of it.
#![allow(dead_code)]

pub mod clips;
pub mod content;
