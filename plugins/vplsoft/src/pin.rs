// SPDX-License-Identifier: MPL-2.0

//! Keeping the library loaded.
//!
//! The dispatcher unloads a runtime with its last session. Code that a thread is in, and surfaces that a
//! client still holds, have to outlive that.

pub(crate) use av_backend::pin::keep_loaded;

/// Never returns. What the calling thread holds (its session, its surfaces) stays alive with it.
pub(crate) fn hang(what: &str) -> ! {
    av_backend::pin::hang("vplsoft", what)
}
