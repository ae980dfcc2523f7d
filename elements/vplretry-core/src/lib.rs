// SPDX-License-Identifier: MPL-2.0

//! The decode loop of a oneVPL application: every status classified, every wait bounded,
//! interruptible and explained, no frame lost in silence.
//!
//! | module | idea |
//! |---|---|
//! | [`status`] | `mfxStatus` as a number with a name |
//! | [`mod@classify`] | what a status means, as pure functions, total over `i32` |
//! | [`table`] | the same as text, for the documentation |
//! | [`settings`] | the limits and their defaults |
//! | [`driver`] | the trait through which the loop reaches a runtime, a clock and an output |
//! | [`frameloop`] | the loop: feed an access unit, drain, flush |
//! | [`event`], [`stats`], [`error`] | what it reports |
//!
//! This crate knows nothing of GStreamer, FFI or clocks: time comes from the driver, so a test runs
//! an hour of retries in a millisecond. `docs/vplretry-core.md` is the guide.

#![forbid(unsafe_code)]

mod budget;
pub mod classify;
pub mod driver;
pub mod error;
pub mod event;
pub mod frameloop;
pub mod settings;
pub mod stats;
pub mod status;
pub mod table;

pub use classify::{
    Action, Damage, Fault, Otherwise, Outcome, Retry, SyncAction, classify, classify_sync,
};
pub use driver::{Corruption, Decoded, Input, Reset, VplDecodeDriver, Wake};
pub use error::{Error, ErrorKind, Exhausted, Limit};
pub use event::{Event, Reason};
pub use frameloop::{End, FrameLoop};
pub use settings::{CorruptedFrames, Settings};
pub use stats::Stats;
pub use status::Status;
