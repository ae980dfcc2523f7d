// SPDX-License-Identifier: MPL-2.0

//! Tells the plugin its commit and release date.

fn main() {
    gst_plugin_version_helper::info()
}
