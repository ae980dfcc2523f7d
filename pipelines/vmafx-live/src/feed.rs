// SPDX-License-Identifier: MPL-2.0

//! Where the scores come from. Each feed runs in a thread of its own and changes the hub's state; nothing
//! that watches can hold it up.

mod build;
mod decoders;
mod pipeline;
mod records;
mod structure;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use build::Source;
pub(crate) use pipeline::run_pipeline;
pub(crate) use records::run_stdin;

use crate::failure::Failure;
use crate::news::Phase;

/// How a feed came to its end: [`Phase::Ended`] or [`Phase::Stopped`].
pub(crate) type Outcome = Result<Phase, Failure>;

/// Asks a feed to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks.
    pub(crate) fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
