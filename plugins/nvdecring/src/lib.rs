// SPDX-License-Identifier: MPL-2.0
#![allow(
    missing_docs,
    reason = "the functions that plugin_define! makes are described here"
)]

//! Plugin `nvdecring`: registers the element `nvdecringdec`.
//!
//! Loaded by GStreamer as `libgstnvdecring.so`, or linked into an application, which then calls
//! [`plugin_register_static`] once after `gst::init()`. It links to no library of NVIDIA's: these are opened
//! when the element goes to READY.

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    nvdecringdec::register(plugin)
}

gst::plugin_define!(
    nvdecring,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    "MPL",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "https://crates.io/crates/gst-plugin-nvdecring",
    env!("BUILD_REL_DATE")
);
