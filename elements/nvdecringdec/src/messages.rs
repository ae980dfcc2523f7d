// SPDX-License-Identifier: MPL-2.0

//! The structures on the bus.

use std::time::Duration;

use nvdecring_core::{Damage, GpuError, Recovery, Stats, Ticket, Times};

/// Nanoseconds, as times stand in structures.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// What happened to a damaged picture.
pub(crate) fn corrupted(
    frame: u64,
    pts: Option<gst::ClockTime>,
    damage: Option<Damage>,
    action: &str,
    reason: &str,
) -> gst::Structure {
    let kind = match damage {
        None => "lost",
        Some(Damage::Concealed) => "concealed",
        Some(Damage::References) => "references",
        Some(Damage::Errors | Damage::None) => "errors",
    };
    gst::Structure::builder("nvdecringdec-corrupted")
        .field("frame", frame)
        .field("timestamp", pts)
        .field("kind", kind)
        .field("action", action)
        .field("reason", reason)
        .build()
}

/// The decoder was replaced and works again.
pub(crate) fn recovered(by: Recovery, after: &GpuError, recoveries: u64) -> gst::Structure {
    let by = match by {
        Recovery::Decoder => "decoder",
        Recovery::Context => "context",
    };
    gst::Structure::builder("nvdecringdec-recovered")
        .field("by", by)
        .field("reason", after.to_string())
        .field("error", after.code)
        .field("recoveries", recoveries)
        .build()
}

/// A picture as it leaves.
pub(crate) struct FrameReport {
    pub(crate) frame: u64,
    pub(crate) ticket: Ticket,
    pub(crate) picture_index: u8,
    pub(crate) damage: Damage,
    pub(crate) pts: Option<gst::ClockTime>,
    pub(crate) times: Times,
}

/// The way of a picture: times in nanoseconds on the session's clock.
pub(crate) fn frame(report: &FrameReport) -> gst::Structure {
    let times = &report.times;
    let status = match report.damage {
        Damage::None => "good",
        Damage::Concealed => "concealed",
        Damage::Errors => "errors",
        Damage::References => "references",
    };
    gst::Structure::builder("nvdecringdec-frame")
        .field("frame", report.frame)
        .field("timestamp", report.pts)
        .field("ticket", report.ticket.0)
        .field("picture-index", u32::from(report.picture_index))
        .field("status", status)
        .field("submit", nanoseconds(times.submitted))
        .field("decode", nanoseconds(times.decoded))
        .field("shown", nanoseconds(times.shown))
        .field("mapped", nanoseconds(times.mapped))
        .field("copied", nanoseconds(times.copied))
        .field("out", nanoseconds(times.out))
        .field("surface-wait", nanoseconds(times.surface_wait))
        .field("slot-wait", nanoseconds(times.slot_wait))
        .field("queued", u32::from(times.queued))
        .build()
}

/// The account that `stats` shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    /// All sessions since the element was started.
    pub(crate) ring: Stats,
    pub(crate) recoveries: u64,
    pub(crate) stalls: u64,
    pub(crate) corrupted_dropped: u64,
}

/// Adds what an earlier session has done.
pub(crate) fn add(a: Stats, b: Stats) -> Stats {
    Stats {
        submitted: a.submitted + b.submitted,
        pictures: a.pictures + b.pictures,
        damaged: a.damaged + b.damaged,
        dropped: a.dropped + b.dropped,
        failed: a.failed + b.failed,
        flushed: a.flushed + b.flushed,
        inside: a.inside + b.inside,
        surfaces_held: a.surfaces_held + b.surfaces_held,
        overflows: a.overflows + b.overflows,
        unclaimed: a.unclaimed + b.unclaimed,
        timeouts: a.timeouts + b.timeouts,
        decoders: a.decoders + b.decoders,
        reconfigured: a.reconfigured + b.reconfigured,
        contexts: a.contexts + b.contexts,
        most_queued: a.most_queued.max(b.most_queued),
        surface_wait: a.surface_wait + b.surface_wait,
        slot_wait: a.slot_wait + b.slot_wait,
    }
}

/// The property `stats`.
pub(crate) fn stats(account: &Account) -> gst::Structure {
    let ring = &account.ring;
    gst::Structure::builder("nvdecringdec-stats")
        .field("submitted", ring.submitted)
        .field("pictures", ring.pictures)
        .field("corrupted", ring.damaged)
        .field("corrupted-dropped", account.corrupted_dropped)
        .field("dropped", ring.dropped)
        .field("failed", ring.failed)
        .field("flushed", ring.flushed)
        .field("inside", ring.inside)
        .field("surfaces-held", ring.surfaces_held)
        .field("overflows", ring.overflows)
        .field("unclaimed", ring.unclaimed)
        .field("timeouts", ring.timeouts)
        .field("stalls", account.stalls)
        .field("recoveries", account.recoveries)
        .field("decoders", ring.decoders)
        .field("reconfigured", ring.reconfigured)
        .field("contexts", ring.contexts)
        .field("most-queued", u32::from(ring.most_queued))
        .field("surface-wait", nanoseconds(ring.surface_wait))
        .field("slot-wait", nanoseconds(ring.slot_wait))
        .build()
}
