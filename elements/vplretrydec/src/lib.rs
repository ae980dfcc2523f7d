// SPDX-License-Identifier: MPL-2.0

//! The element `vplretrydec`: decodes with any oneVPL runtime; every wait is bounded, interruptible and
//! explained, and no frame is lost in silence. It is documented by `gst-inspect-1.0 vplretrydec` and
//! `docs/vplretrydec.md`.
//!
//! | module | idea |
//! |---|---|
//! | `decoder` | the GStreamer side: properties, frames, buffers, messages |
//! | `link`, `reply` | what the streaming thread and the session thread share, and what one tells the other |
//! | `session` | the session thread: every call of the runtime is made here |
//! | `driver` | what `vplretry-core`'s loop decodes with |
//! | `bitstream`, `unit`, `nal_format`, `codec` | access units and how they are framed |
//! | `ledger` | what became of each access unit |
//! | `select`, `cwd`, `device`, `runtime` | which runtime, whether it may be loaded, its device, its sessions |
//! | `copy`, `spare` | a surface's visible part in a video frame; the buffer that waits for the next one |
//! | `stream_lock` | the base class's lock, for the task that pushes |
//! | `picture` | a surface outside of the session thread |

#![deny(unsafe_code)]

mod bitstream;
mod codec;
mod copy;
mod cwd;
mod decoder;
mod device;
mod driver;
mod failure;
mod ledger;
mod link;
mod nal_format;
mod picture;
mod reply;
mod runtime;
mod select;
mod session;
mod spare;
#[allow(unsafe_code)]
mod stream_lock;
mod unit;

use gst::glib;

pub use decoder::{CorruptedFrames, Implementation, VplRetryDec};

/// Registers the element.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    decoder::register(plugin)
}
