// SPDX-License-Identifier: MPL-2.0

//! The loop against a driver double on a virtual clock: no GPU, no runtime, no sleeping.

mod cancelling;
mod double;
mod guide;
mod ledger;
mod properties;
mod repairs;
mod seed;
mod shortcomings;
mod statuses;
mod waits;
