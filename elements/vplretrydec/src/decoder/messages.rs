// SPDX-License-Identifier: MPL-2.0

//! Element messages: `vplretrydec-retry`, `vplretrydec-recovered`, `vplretrydec-corrupted`.

use std::time::Duration;

use vplretry_core::{Corruption, Event, Status};

use super::CorruptedFrames;

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// The message of an event of the loop, if it has one.
pub(super) fn of_event(
    event: &Event,
    implementation: &str,
    stats: gst::Structure,
) -> Option<gst::Structure> {
    let retry = |reason: &str, status: &Status, attempts: u32, elapsed: &Duration| {
        gst::Structure::builder("vplretrydec-retry")
            .field("reason", reason)
            .field("status", status.to_string())
            .field("status-code", status.0)
            .field("attempts", attempts)
            .field("elapsed", milliseconds(*elapsed))
    };
    let builder = match event {
        Event::Retry {
            status,
            attempts,
            elapsed,
        } => retry("busy", status, *attempts, elapsed),
        Event::Starved {
            status,
            attempts,
            elapsed,
        } => retry("starved", status, *attempts, elapsed),
        Event::Waiting { status, elapsed } => retry("waiting", status, 0, elapsed),
        Event::Recovered {
            cause,
            attempts,
            frames_lost,
        } => gst::Structure::builder("vplretrydec-recovered")
            .field("cause", cause.to_string())
            .field("cause-code", cause.0)
            .field("attempts", *attempts)
            .field("frames-lost", *frames_lost),
        Event::Corrupted(_) | Event::FrameLost { .. } => return None,
    };
    Some(
        builder
            .field("implementation", implementation)
            .field("stats", stats)
            .build(),
    )
}

/// The message of a frame with corruption flags.
pub(super) fn corrupted(
    corruption: Corruption,
    action: CorruptedFrames,
    frame: u32,
    pts: Option<gst::ClockTime>,
) -> gst::Structure {
    let action = match action {
        CorruptedFrames::Mark => "mark",
        CorruptedFrames::Drop => "drop",
        CorruptedFrames::Error => "error",
    };
    gst::Structure::builder("vplretrydec-corrupted")
        .field("flags", u32::from(corruption.flags))
        .field("text", corruption.to_string())
        .field("action", action)
        .field("frame", u64::from(frame))
        .field("timestamp", pts)
        .build()
}
