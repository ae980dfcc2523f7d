// SPDX-License-Identifier: MPL-2.0

//! The properties.

use std::path::PathBuf;
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use vplretry_core::Settings as Limits;

use super::{CorruptedFrames, Implementation};
use crate::select::Selection;

/// Frames in flight where the stream is not live.
const ASYNC_DEPTH: u32 = 4;
/// One hour, the longest that a limit may be: no limit is none.
const LONGEST: u32 = 3_600_000;

/// What the properties say.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) implementation: Implementation,
    pub(super) runtime_path: Option<PathBuf>,
    pub(super) allow_cwd_runtime: bool,
    pub(super) render_device: Option<PathBuf>,
    pub(super) async_depth: u32,
    pub(super) retry_interval: u32,
    pub(super) max_attempts: u32,
    pub(super) retry_timeout: u32,
    pub(super) sync_timeout: u32,
    pub(super) device_retries: u32,
    pub(super) low_latency: bool,
    pub(super) corrupted_frames: CorruptedFrames,
    pub(super) zero_copy: bool,
    pub(super) surface_limit: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            implementation: Implementation::Auto,
            runtime_path: None,
            allow_cwd_runtime: false,
            render_device: None,
            async_depth: 0,
            retry_interval: 1000,
            max_attempts: 60_000,
            retry_timeout: 60_000,
            sync_timeout: 60_000,
            device_retries: 3,
            low_latency: false,
            corrupted_frames: CorruptedFrames::Mark,
            zero_copy: false,
            surface_limit: 0,
        }
    }
}

/// The properties as GObject knows them. All of them are read when the element starts.
pub(super) fn properties() -> Vec<glib::ParamSpec> {
    let defaults = Settings::default();
    let number = |name, nick, blurb, (least, most), default: u32| {
        glib::ParamSpecUInt::builder(name)
            .nick(nick)
            .blurb(blurb)
            .minimum(least)
            .maximum(most)
            .default_value(default)
            .mutable_ready()
            .build()
    };
    let switch = |name, nick, blurb, default: bool| {
        glib::ParamSpecBoolean::builder(name)
            .nick(nick)
            .blurb(blurb)
            .default_value(default)
            .mutable_ready()
            .build()
    };
    let text = |name, nick, blurb| {
        glib::ParamSpecString::builder(name)
            .nick(nick)
            .blurb(blurb)
            .mutable_ready()
            .build()
    };
    vec![
        glib::ParamSpecEnum::builder_with_default("implementation", defaults.implementation)
            .nick("Implementation")
            .blurb("What decodes: hardware by the oneVPL dispatcher, software by the dispatcher, or the bundled software runtime; auto takes the first of these that there is, and warns where it is not hardware")
            .mutable_ready()
            .build(),
        text(
            "runtime-path",
            "Runtime path",
            "File of the bundled runtime, or its folder, loaded without the dispatcher where the dispatcher has none; unset: vplsoft/libvplsoft.so beside the plugin's folder",
        ),
        switch(
            "allow-cwd-runtime",
            "Allow runtimes in the current folder",
            "Let the oneVPL dispatcher load libraries from the current folder; otherwise one that lies there is an error",
            defaults.allow_cwd_runtime,
        ),
        text(
            "render-device",
            "Render device",
            "Node of the GPU, such as /dev/dri/renderD128; unset: the first that there is",
        ),
        number(
            "async-depth",
            "Asynchronous depth",
            "Frames in flight at once; 0: 4, and 1 where the stream is live",
            (0, 16),
            defaults.async_depth,
        ),
        number(
            "retry-interval",
            "Retry interval",
            "Microseconds between two calls of a busy device",
            (1, 1_000_000),
            defaults.retry_interval,
        ),
        number(
            "max-attempts",
            "Maximum attempts",
            "Calls of a busy device without progress before decoding ends with an error; checked before retry-timeout",
            (1, u32::MAX),
            defaults.max_attempts,
        ),
        number(
            "retry-timeout",
            "Retry timeout",
            "Milliseconds without progress before decoding ends with an error; also the time that one runtime call may take (at least 1000)",
            (0, LONGEST),
            defaults.retry_timeout,
        ),
        number(
            "sync-timeout",
            "Sync timeout",
            "Milliseconds to wait for one frame before the device counts as lost",
            (1, LONGEST),
            defaults.sync_timeout,
        ),
        number(
            "device-retries",
            "Device retries",
            "New sessions after a lost device, without a frame in between, before decoding ends with an error",
            (0, 1000),
            defaults.device_retries,
        ),
        switch(
            "low-latency",
            "Low latency",
            "Tell the runtime that each buffer is a whole frame, which saves one frame of delay; for progressive streams only, and on by itself where the stream is live",
            defaults.low_latency,
        ),
        glib::ParamSpecEnum::builder_with_default("corrupted-frames", defaults.corrupted_frames)
            .nick("Corrupted frames")
            .blurb("What becomes of frames that the runtime flags as corrupted")
            .mutable_ready()
            .build(),
        switch(
            "zero-copy",
            "Zero copy",
            "Push the runtime's own surfaces, read-only, where downstream takes GstVideoMeta; buffers may outlive the element. Falls back to copies where that starves the runtime",
            defaults.zero_copy,
        ),
        number(
            "surface-limit",
            "Surface limit",
            "Most surfaces that the runtime allocates; 0: as it likes",
            (0, 1024),
            defaults.surface_limit,
        ),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb("Counters since the stream began; docs/vplretrydec.md lists them")
            .read_only()
            .build(),
        glib::ParamSpecString::builder("implementation-name")
            .nick("Implementation name")
            .blurb("Name of the runtime that decodes; unset before READY")
            .read_only()
            .build(),
    ]
}

impl Settings {
    /// Takes a property's new value, whose type GObject has checked.
    pub(super) fn set(&mut self, value: &glib::Value, pspec: &glib::ParamSpec) {
        /// The value in the type of its field.
        fn get<T: for<'a> glib::value::FromValue<'a>>(value: &glib::Value) -> T {
            value.get().expect("type checked upstream")
        }
        /// An empty path is none.
        fn path(value: &glib::Value) -> Option<PathBuf> {
            get::<Option<PathBuf>>(value).filter(|path| !path.as_os_str().is_empty())
        }
        match pspec.name() {
            "implementation" => self.implementation = get(value),
            "runtime-path" => self.runtime_path = path(value),
            "allow-cwd-runtime" => self.allow_cwd_runtime = get(value),
            "render-device" => self.render_device = path(value),
            "async-depth" => self.async_depth = get(value),
            "retry-interval" => self.retry_interval = get(value),
            "max-attempts" => self.max_attempts = get(value),
            "retry-timeout" => self.retry_timeout = get(value),
            "sync-timeout" => self.sync_timeout = get(value),
            "device-retries" => self.device_retries = get(value),
            "low-latency" => self.low_latency = get(value),
            "corrupted-frames" => self.corrupted_frames = get(value),
            "zero-copy" => self.zero_copy = get(value),
            "surface-limit" => self.surface_limit = get(value),
            _ => unimplemented!(),
        }
    }

    /// A property's value; `None` for those that are no settings.
    pub(super) fn get(&self, pspec: &glib::ParamSpec) -> Option<glib::Value> {
        Some(match pspec.name() {
            "implementation" => self.implementation.to_value(),
            "runtime-path" => self.runtime_path.to_value(),
            "allow-cwd-runtime" => self.allow_cwd_runtime.to_value(),
            "render-device" => self.render_device.to_value(),
            "async-depth" => self.async_depth.to_value(),
            "retry-interval" => self.retry_interval.to_value(),
            "max-attempts" => self.max_attempts.to_value(),
            "retry-timeout" => self.retry_timeout.to_value(),
            "sync-timeout" => self.sync_timeout.to_value(),
            "device-retries" => self.device_retries.to_value(),
            "low-latency" => self.low_latency.to_value(),
            "corrupted-frames" => self.corrupted_frames.to_value(),
            "zero-copy" => self.zero_copy.to_value(),
            "surface-limit" => self.surface_limit.to_value(),
            _ => return None,
        })
    }

    /// Frames in flight.
    pub(super) fn depth(&self, live: bool) -> u32 {
        match (self.async_depth, live) {
            (0, true) => 1,
            (0, false) => ASYNC_DEPTH,
            (depth, _) => depth,
        }
    }

    /// The time that one call may take: for work, and for waits.
    pub(super) fn call_limits(&self) -> (Duration, Duration) {
        (
            Duration::from_millis(self.retry_timeout.into()),
            Duration::from_millis(self.sync_timeout.into()),
        )
    }

    /// The limits of the loop.
    pub(super) fn limits(&self, live: bool) -> Limits {
        Limits {
            async_depth: self.depth(live) as usize,
            retry_interval: Duration::from_micros(self.retry_interval.into()),
            max_attempts: self.max_attempts,
            retry_timeout: Duration::from_millis(self.retry_timeout.into()),
            sync_timeout: Duration::from_millis(self.sync_timeout.into()),
            device_retries: self.device_retries,
            corrupted_frames: self.corrupted_frames.into(),
            ..Limits::default()
        }
    }

    /// Which runtime; `beside` is the folder of the plugin's file.
    pub(super) fn selection(&self, beside: Option<PathBuf>) -> Selection {
        let bundled = || Some(beside?.parent()?.join("vplsoft").join("libvplsoft.so"));
        Selection {
            wanted: self.implementation.into(),
            bundled: self.runtime_path.clone().or_else(bundled),
            allow_cwd: self.allow_cwd_runtime,
            render_device: self.render_device.clone(),
        }
    }
}
