// SPDX-License-Identifier: MPL-2.0
#![allow(
    missing_docs,
    reason = "the functions that plugin_define! makes are described here"
)]

//! Plugin `vplretry`: registers the element `vplretrydec`.
//!
//! Loaded by GStreamer as `libgstvplretry.so`, or linked into an application, which then calls
//! [`plugin_register_static`] once after `gst::init()`.

fn plugin_init(plugin: &gst::Plugin) -> Result<(), gst::glib::BoolError> {
    vplretrydec::register(plugin)
}

gst::plugin_define!(
    vplretry,
    env!("CARGO_PKG_DESCRIPTION"),
    plugin_init,
    concat!(env!("CARGO_PKG_VERSION"), "-", env!("COMMIT_ID")),
    "MPL",
    env!("CARGO_PKG_NAME"),
    env!("CARGO_PKG_NAME"),
    "https://crates.io/crates/gst-plugin-vplretry",
    env!("BUILD_REL_DATE")
);
