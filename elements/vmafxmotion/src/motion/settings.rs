// SPDX-License-Identifier: MPL-2.0

//! The properties.

use std::num::NonZeroU64;
use std::path::PathBuf;

use gst::glib;
use gst::prelude::*;
use vmaf_motion::MotionOptions;
use vmaf_motion::chunks::{MAX_FIRST_FRAME, MAX_POSTROLL, Part};
use vmaf_motion::clock::{Cut, MAX_SECONDS};
use vmaf_motion::pool::Methods;
use vmaf_motion::sad::Distance;
use vmaf_motion::windows::{Config, MAX_HISTORY};

use super::{MotionExtractor, MotionMessages, MotionPool};
use crate::session::Plan;

/// What the application has set.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) options: MotionOptions,
    pub(super) messages: MotionMessages,
    pub(super) meta: bool,
    pub(super) hold: bool,
    /// Milliseconds; 0 for no limit.
    pub(super) max_hold: u32,
    /// Seconds; 0 for none.
    pub(super) n_stats: f64,
    /// Frames; 0 for none.
    pub(super) n_stats_frames: u64,
    pub(super) n_subsample: u32,
    pub(super) pool: MotionPool,
    pub(super) first_frame: u64,
    pub(super) preroll_frames: u32,
    pub(super) postroll_frames: u32,
    pub(super) score_history: u32,
    pub(super) threads: u32,
    pub(super) scores_path: Option<PathBuf>,
    pub(super) scores_append: bool,
    pub(super) score_text_path: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            options: MotionOptions::default(),
            messages: MotionMessages::all(),
            meta: true,
            hold: false,
            max_hold: 0,
            n_stats: 0.0,
            n_stats_frames: 0,
            n_subsample: 1,
            pool: MotionPool::all(),
            first_frame: 0,
            preroll_frames: 0,
            postroll_frames: 0,
            score_history: 4096,
            threads: 1,
            scores_path: None,
            scores_append: false,
            score_text_path: None,
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

fn count(
    name: &str,
    nick: &str,
    blurb: &str,
    (min, max): (u32, u32),
    default: u32,
) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(name)
        .nick(nick)
        .blurb(blurb)
        .minimum(min)
        .maximum(max)
        .default_value(default)
        .mutable_ready()
        .build()
}

fn long(name: &str, nick: &str, blurb: &str, maximum: u64, default: u64) -> glib::ParamSpec {
    glib::ParamSpecUInt64::builder(name)
        .nick(nick)
        .blurb(blurb)
        .maximum(maximum)
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
        hold,
        max_hold,
        n_stats,
        n_stats_frames,
        n_subsample,
        pool,
        first_frame,
        preroll_frames,
        postroll_frames,
        score_history,
        threads,
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
            "Add the scores of the chroma planes (motion_add_uv; float only). GStreamer rounds the chroma of an odd size up, libvmaf down: such scores differ from libvmaf's",
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
        switch(
            "hold",
            "Hold",
            "Keep each buffer until its motion2 and motion3 are final and put them on that very buffer; adds one frame of latency (two with motion-five-frame-window). Never in an OBS filter without max-hold",
            hold,
        ),
        count(
            "max-hold",
            "Maximum hold",
            "Milliseconds after which a held buffer goes on unfinished (final=false) when no further frame comes; 0: no limit",
            (0, u32::MAX),
            max_hold,
        ),
        number(
            "n-stats",
            "Seconds a window",
            "Cut the stream into windows of so many seconds and pool the scores of each; 0: do not",
            MAX_SECONDS,
            n_stats,
        ),
        long(
            "n-stats-frames",
            "Frames a window",
            "Cut the stream into windows of so many frames and pool the scores of each; 0: do not",
            u64::MAX,
            n_stats_frames,
        ),
        count(
            "n-subsample",
            "Subsampling",
            "Windows and summary pool the frames whose index is a multiple of this; motion is computed on every frame all the same",
            (1, u32::MAX),
            n_subsample,
        ),
        glib::ParamSpecFlags::builder::<MotionPool>("pool")
            .nick("Pooling methods")
            .blurb("What is computed of the scores of a window")
            .default_value(pool)
            .mutable_ready()
            .build(),
        long(
            "first-frame",
            "First frame",
            "Index of the first reported frame: the film's, where the stream is a chunk of a film",
            MAX_FIRST_FRAME,
            first_frame,
        ),
        count(
            "preroll-frames",
            "Preroll frames",
            "Frames at the start of the stream that come before first-frame in the film: they feed their neighbours and are not reported. Exact scores need 1; 2 with motion-moving-average, 3 with motion-five-frame-window, 4 with both",
            (0, u32::MAX),
            preroll_frames,
        ),
        count(
            "postroll-frames",
            "Postroll frames",
            "Frames at the end of the stream that are not reported, since the next chunk reports them; exact scores need 1",
            (0, MAX_POSTROLL as u32),
            postroll_frames,
        ),
        count(
            "score-history",
            "Score history",
            "Final frames that are kept for windows that are asked for late and for frame-score",
            (0, MAX_HISTORY as u32),
            score_history,
        ),
        count(
            "threads",
            "Threads",
            "Split the rows of each picture over so many threads; the scores stay the same (integer only). Two are up to 1.9 times as fast as one at 1080p and above, where a second core is free (docs/performance.md)",
            (1, 64),
            threads,
        ),
        glib::ParamSpecString::builder("score-text-path")
            .nick("Score text path")
            .blurb("File that holds the newest window as one line of text, replaced as a whole each time, for a text source in OBS: `window 3 frames 75-99 motion2 mean 0.7082 min 0.6227 max 0.8364`")
            .mutable_ready()
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
            .blurb("Counters since PAUSED (u64): session, sessions, frames, final-frames, frames-without-timestamp, discontinuities, windows, window-messages-skipped, unfinished-frames, lines-written, lines-dropped; and kernel (string), the code that scores")
            .read_only()
            .build(),
    ]
}

impl Settings {
    /// What the sessions of a run are made with.
    ///
    /// # Errors
    /// A sentence that names the property, its value and what it takes.
    pub(super) fn plan(&self) -> Result<Plan, String> {
        let options = &self.options;
        options.validate().map_err(|error| error.to_string())?;
        let distance = match options.five_frame_window {
            true => Distance::Two,
            false => Distance::One,
        };
        let part = Part::new(
            self.first_frame,
            self.preroll_frames.into(),
            self.postroll_frames.into(),
            distance,
            options.moving_average,
        )
        .map_err(|error| format!("first-frame, preroll-frames, postroll-frames: {error}"))?;
        let cut = Cut::from_settings(self.n_stats, self.n_stats_frames)
            .map_err(|error| format!("n-stats, n-stats-frames: {error}"))?;
        let methods = Methods::from_bits(self.pool.bits())
            .ok_or("pool: at least one method is needed, such as mean")?;
        Ok(Plan {
            options: options.clone(),
            part,
            windows: Config {
                methods,
                n_subsample: NonZeroU64::new(self.n_subsample.into()).unwrap_or(NonZeroU64::MIN),
                history: self.score_history as usize,
                first_frame: self.first_frame,
                cut,
            },
            threads: self.threads as usize,
        })
    }

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
            "hold" => self.hold = get(value),
            "max-hold" => self.max_hold = get(value),
            "n-stats" => self.n_stats = get(value),
            "n-stats-frames" => self.n_stats_frames = get(value),
            "n-subsample" => self.n_subsample = get(value),
            "pool" => self.pool = get(value),
            "first-frame" => self.first_frame = get(value),
            "preroll-frames" => self.preroll_frames = get(value),
            "postroll-frames" => self.postroll_frames = get(value),
            "score-history" => self.score_history = get(value),
            "threads" => self.threads = get(value),
            "score-text-path" => self.score_text_path = path(value),
            "scores-path" => self.scores_path = path(value),
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
            "hold" => self.hold.to_value(),
            "max-hold" => self.max_hold.to_value(),
            "n-stats" => self.n_stats.to_value(),
            "n-stats-frames" => self.n_stats_frames.to_value(),
            "n-subsample" => self.n_subsample.to_value(),
            "pool" => self.pool.to_value(),
            "first-frame" => self.first_frame.to_value(),
            "preroll-frames" => self.preroll_frames.to_value(),
            "postroll-frames" => self.postroll_frames.to_value(),
            "score-history" => self.score_history.to_value(),
            "threads" => self.threads.to_value(),
            "score-text-path" => self.score_text_path.to_value(),
            "scores-path" => self.scores_path.to_value(),
            "scores-append" => self.scores_append.to_value(),
            _ => return None,
        })
    }
}
