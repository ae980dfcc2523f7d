// SPDX-License-Identifier: MPL-2.0

//! The properties.

use std::path::PathBuf;

use gst::glib;
use gst::prelude::*;
use vmaf_motion::MotionOptions;

use super::{MotionExtractor, MotionMessages};

/// What the application has set.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) options: MotionOptions,
    pub(super) messages: MotionMessages,
    pub(super) meta: bool,
    pub(super) scores_path: Option<PathBuf>,
    pub(super) scores_append: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            options: MotionOptions::default(),
            messages: MotionMessages::all(),
            meta: true,
            scores_path: None,
            scores_append: false,
        }
    }
}

fn number(name: &str, nick: &str, blurb: &str, maximum: f64, default: f64) -> glib::ParamSpec {
    glib::ParamSpecDouble::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(0.0)
        .maximum(maximum)
        .default_value(default)
        .mutable_ready()
        .build()
}

fn switch(name: &str, nick: &str, blurb: &str, default: bool) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_ready()
        .build()
}

/// All properties, the read-only ones included.
pub(super) fn properties() -> Vec<glib::ParamSpec> {
    let Settings {
        options,
        messages,
        meta,
        scores_append,
        ..
    } = Settings::default();
    vec![
        glib::ParamSpecEnum::builder_with_default("extractor", MotionExtractor::default())
            .nick("Extractor")
            .blurb("Which of libvmaf's two motion extractors is computed, bit for bit")
            .mutable_ready()
            .build(),
        switch(
            "motion-force-zero",
            "Force zero",
            "Every score is 0 (libvmaf's motion_force_zero)",
            options.force_zero,
        ),
        number(
            "motion-fps-weight",
            "Framerate weight",
            "Factor on every score, before the cap (motion_fps_weight)",
            5.0,
            options.fps_weight,
        ),
        number(
            "motion-max-val",
            "Maximum",
            "Cap of every score (motion_max_val; the model vmaf_v1.0.16 has 18)",
            10_000.0,
            options.max_val,
        ),
        number(
            "motion-blend-factor",
            "Blend factor",
            "motion3: share that follows motion2 (motion_blend_factor)",
            1.0,
            options.blend_factor,
        ),
        number(
            "motion-blend-offset",
            "Blend offset",
            "motion3: cap of what the other share follows (motion_blend_offset)",
            1_000.0,
            options.blend_offset,
        ),
        switch(
            "motion-five-frame-window",
            "Five-frame window",
            "Compare each frame with the last but one, for high framerates (motion_five_frame_window; integer only)",
            options.five_frame_window,
        ),
        switch(
            "motion-moving-average",
            "Moving average",
            "motion3 is the mean of this and the previous frame's value (motion_moving_average; integer only)",
            options.moving_average,
        ),
        glib::ParamSpecUInt::builder("motion-filter-size")
            .nick("Filter size")
            .blurb("Taps of the blur: 1 (none), 3, else 5 (motion_filter_size; float only)")
            .maximum(9)
            .default_value(options.filter_size)
            .mutable_ready()
            .build(),
        switch(
            "motion-add-scale1",
            "Add scale 1",
            "Add the score at half the size (motion_add_scale1; float only)",
            options.add_scale1,
        ),
        switch(
            "motion-add-uv",
            "Add chroma",
            "Add the scores of the chroma planes (motion_add_uv; float only)",
            options.add_uv,
        ),
        glib::ParamSpecFlags::builder::<MotionMessages>("messages")
            .default_value(messages)
            .nick("Messages")
            .blurb("What is posted on the bus; turn `frame` off where nobody reads the bus, it keeps 300 bytes a frame until it is read")
            .mutable_playing()
            .build(),
        glib::ParamSpecBoolean::builder("meta")
            .nick("Meta")
            .blurb("Put a VmafxMotionMeta with the scores on every buffer")
            .default_value(meta)
            .mutable_playing()
            .build(),
        glib::ParamSpecString::builder("scores-path")
            .nick("Scores path")
            .blurb("File, device or FIFO that gets the scores as NDJSON: a header line for each session, a line for each frame, a summary line; a slow disk or reader never holds up the stream")
            .mutable_ready()
            .build(),
        switch(
            "scores-append",
            "Append scores",
            "Keep what stands in scores-path and write behind it",
            scores_append,
        ),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb("Counters since PAUSED: session, sessions, frames, final-frames, frames-without-timestamp, discontinuities, lines-written, lines-dropped (all u64)")
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
        let options = &mut self.options;
        match pspec.name() {
            "extractor" => options.extractor = get::<MotionExtractor>(value).into(),
            "motion-force-zero" => options.force_zero = get(value),
            "motion-fps-weight" => options.fps_weight = get(value),
            "motion-max-val" => options.max_val = get(value),
            "motion-blend-factor" => options.blend_factor = get(value),
            "motion-blend-offset" => options.blend_offset = get(value),
            "motion-five-frame-window" => options.five_frame_window = get(value),
            "motion-moving-average" => options.moving_average = get(value),
            "motion-filter-size" => options.filter_size = get(value),
            "motion-add-scale1" => options.add_scale1 = get(value),
            "motion-add-uv" => options.add_uv = get(value),
            "messages" => self.messages = get(value),
            "meta" => self.meta = get(value),
            "scores-path" => self.scores_path = get(value),
            "scores-append" => self.scores_append = get(value),
            _ => unimplemented!(),
        }
    }

    /// A property's value; `None` for those that are no settings.
    pub(super) fn get(&self, pspec: &glib::ParamSpec) -> Option<glib::Value> {
        let options = &self.options;
        Some(match pspec.name() {
            "extractor" => MotionExtractor::from(options.extractor).to_value(),
            "motion-force-zero" => options.force_zero.to_value(),
            "motion-fps-weight" => options.fps_weight.to_value(),
            "motion-max-val" => options.max_val.to_value(),
            "motion-blend-factor" => options.blend_factor.to_value(),
            "motion-blend-offset" => options.blend_offset.to_value(),
            "motion-five-frame-window" => options.five_frame_window.to_value(),
            "motion-moving-average" => options.moving_average.to_value(),
            "motion-filter-size" => options.filter_size.to_value(),
            "motion-add-scale1" => options.add_scale1.to_value(),
            "motion-add-uv" => options.add_uv.to_value(),
            "messages" => self.messages.to_value(),
            "meta" => self.meta.to_value(),
            "scores-path" => self.scores_path.to_value(),
            "scores-append" => self.scores_append.to_value(),
            _ => return None,
        })
    }
}
