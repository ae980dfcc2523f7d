// SPDX-License-Identifier: MPL-2.0

//! The element `nvdecringdec`: NVDEC decoding on the ring of `nvdecring-core`.
//!
//! | module | idea |
//! |---|---|
//! | `dec` | the GObject side: properties, states, events, frames in |
//! | `caps` | pad templates; which codec caps mean, which caps pictures have |
//! | `target` | where pictures are copied to |
//! | `gstcuda` | GStreamer's libgstcuda, opened at run time |
//! | `output` | pictures and dropped frames on their way out |
//! | `running` | a session with its watchdog; opening without hanging |
//! | `messages` | the structures on the bus |
//! | `failure` | errors of a session as messages that say what to do |
//! | `stream_lock` | letting go of the base class's lock while waiting |
//!
//! The element itself is documented by `gst-inspect-1.0 nvdecringdec` and `docs/nvdecringdec.md`.

mod caps;
mod dec;
mod failure;
mod gstcuda;
mod messages;
mod output;
mod running;
mod stream_lock;
mod target;

use gst::glib;

pub use dec::{NvdecRingCorrupted, NvdecRingDec, NvdecRingOverflow};

/// Registers the element.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    dec::register(plugin)
}
