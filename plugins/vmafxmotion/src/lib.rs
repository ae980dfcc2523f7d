// SPDX-License-Identifier: MPL-2.0
#![allow(
    missing_docs,
    reason = "the functions that plugin_define! makes are described here"
)]

//! Plugin `vmafxmotion`: registers the element of the same name and its buffer meta.
//!
//! Loaded by GStreamer as `libgstvmafxmotion.so`, or linked into an application, which then calls
//! [`plugin_register_static`] once after `gst::init()`.

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    vmafxmotion::register(plugin)
}

gst::plugin_define!(
    vmafxmotion,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    "MPL",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "https://crates.io/crates/gst-plugin-vmafxmotion",
    env!("BUILD_REL_DATE")
);
