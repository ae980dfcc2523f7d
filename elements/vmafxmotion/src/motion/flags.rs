// SPDX-License-Identifier: MPL-2.0
#![allow(missing_docs, reason = "glib::flags drops the doc comments")]

//! What is posted on the bus.

use gst::glib;

/// Property `messages`: what is posted on the bus.
#[glib::flags(name = "GstVmafxMotionMessages")]
pub enum MotionMessages {
    /// `vmafxmotion-frame`.
    #[flags_value(name = "The scores of each frame, when they are final", nick = "frame")]
    FRAME = 0b001,
    /// `vmafxmotion-window`.
    #[flags_value(
        name = "Pooled scores of each window, when its last frame is final; at most 10 a second of those cut by n-stats",
        nick = "window"
    )]
    WINDOW = 0b010,
    /// `vmafxmotion-summary`.
    #[flags_value(
        name = "Counts and pooled scores at the end of each session",
        nick = "summary"
    )]
    SUMMARY = 0b100,
}

/// Property `pool`: the methods of windows. The bits are those of [`vmaf_motion::pool::Method`].
#[glib::flags(name = "GstVmafxMotionPool")]
pub enum MotionPool {
    #[flags_value(name = "Smallest score", nick = "min")]
    MIN = 1 << 1,
    #[flags_value(name = "Largest score", nick = "max")]
    MAX = 1 << 2,
    #[flags_value(name = "Arithmetic mean", nick = "mean")]
    MEAN = 1 << 3,
    #[flags_value(
        name = "Harmonic mean of the scores plus one, minus one",
        nick = "harmonic-mean"
    )]
    HARMONIC_MEAN = 1 << 4,
    #[flags_value(name = "Percentile 50", nick = "median")]
    MEDIAN = 1 << 5,
    #[flags_value(name = "Percentile 5", nick = "perc5")]
    PERC5 = 1 << 6,
    #[flags_value(name = "Percentile 10", nick = "perc10")]
    PERC10 = 1 << 7,
    #[flags_value(name = "Percentile 20", nick = "perc20")]
    PERC20 = 1 << 8,
}
