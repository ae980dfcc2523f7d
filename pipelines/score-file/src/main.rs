// SPDX-License-Identifier: MPL-2.0
//! x
fn main(){}
