// SPDX-License-Identifier: MPL-2.0

//! What changes while the stream runs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gst::ClockTime;
use vmaf_motion::sad::Distance;

use super::settings::Settings;
use super::signals::Refusal;
use crate::hold::Held;
use crate::picture::Layout;
use crate::score_text::ScoreText;
use crate::session::{Plan, Scorer, Session};
use crate::writer::ScoreWriter;

/// From PAUSED to READY; empty otherwise.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What sessions are made with; `None` while the element is stopped.
    pub(super) plan: Option<Arc<Plan>>,
    /// Where the pictures are; `None` before the first caps.
    pub(super) layout: Option<Arc<Layout>>,
    /// Caps that an error was posted for; GStreamer sends sticky events again.
    pub(super) refused: Option<gst::Caps>,
    pub(super) segment: Option<gst::Segment>,
    /// The picture side of the running session; taken out while a picture is scored.
    pub(super) scorer: Option<Scorer>,
    /// The session that runs, or the next one before its first frame.
    pub(super) session: Option<Session>,
    /// The session before, for those who ask late.
    pub(super) ended: Option<Session>,
    /// The stream has ended and no new one has begun.
    pub(super) eos: bool,
    /// Why the last window that was not taken was not taken.
    pub(super) refusal: Option<Refusal>,
    /// How long buffers are kept; `None` without `hold`.
    pub(super) hold: Option<Hold>,
    pub(super) held: Held,
    /// A push outside of the chain function failed.
    pub(super) flow_error: Option<gst::FlowError>,
    pub(super) latency: ClockTime,
    pub(super) writer: Option<Arc<ScoreWriter>>,
    pub(super) text: Option<Arc<ScoreText>>,
    pub(super) window_rate: RateLimit,
    pub(super) stats: Stats,
}

impl State {
    /// An interruption that the session goes on over.
    pub(super) fn discontinuity(&mut self) {
        if let Some(session) = &mut self.session {
            session.discontinuity();
            self.stats.discontinuities_now = session.discontinuities();
        }
    }

    /// The session that late questions are about: the one before, until the next has a frame.
    pub(super) fn newest(&self) -> Option<&Session> {
        let running = self.session.as_ref().filter(|session| session.frames() > 0);
        running.or(self.ended.as_ref()).or(self.session.as_ref())
    }
}

/// How long buffers are kept for their scores.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    /// Frames that a buffer waits for, at most.
    pub(super) frames: u64,
    pub(super) limit: Option<ClockTime>,
}

impl Hold {
    pub(super) fn new(settings: &Settings) -> Option<Self> {
        let window = if settings.options.five_frame_window {
            Distance::Two
        } else {
            Distance::One
        };
        settings.hold.then(|| Self {
            // The first frames of a window wait longest, and no frame leaves before its postroll.
            frames: (window as u64).max(settings.postroll_frames.into()),
            limit: (settings.max_hold > 0)
                .then(|| ClockTime::from_mseconds(settings.max_hold.into())),
        })
    }

    /// What it adds to the latency. With an unknown framerate only the limit is known.
    pub(super) fn latency(&self, frame_duration: Option<ClockTime>) -> ClockTime {
        let frames = frame_duration.and_then(|duration| duration.checked_mul(self.frames));
        match (frames, self.limit) {
            (Some(frames), Some(limit)) => frames.min(limit),
            (frames, limit) => frames.or(limit).unwrap_or(ClockTime::ZERO),
        }
    }
}

/// Counters behind the property `stats`.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Stats {
    /// Sessions begun.
    pub(super) sessions: u64,
    pub(super) frames: u64,
    pub(super) final_frames: u64,
    pub(super) frames_without_timestamp: u64,
    /// Of the sessions that have ended.
    pub(super) discontinuities: u64,
    /// Of the running session.
    pub(super) discontinuities_now: u64,
    /// Windows answered.
    pub(super) windows: u64,
    /// Of these, windows whose message was not posted because too many came at once.
    pub(super) window_messages_skipped: u64,
    /// Held buffers that left unfinished.
    pub(super) unfinished: u64,
}

/// At most 10 in any second.
#[derive(Debug, Default)]
pub(super) struct RateLimit(VecDeque<Instant>);

impl RateLimit {
    const MOST: usize = 10;

    /// Whether one more may go out at this time.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        if self.0.len() == Self::MOST {
            let oldest = self.0.front().copied();
            if oldest.is_some_and(|oldest| now.duration_since(oldest) < Duration::from_secs(1)) {
                return false;
            }
            self.0.pop_front();
        }
        self.0.push_back(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_any_second() {
        let mut limit = RateLimit::default();
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let allowed = (0..40).filter(|i| limit.allows(at(50 * i))).count();
        assert_eq!(allowed, 20);
        assert!(limit.allows(at(10_000)));
    }

    #[test]
    fn latency_of_a_hold() {
        let hold = |frames, limit: Option<u64>| Hold {
            frames,
            limit: limit.map(ClockTime::from_mseconds),
        };
        let frame = Some(ClockTime::from_mseconds(40));
        let ms = ClockTime::from_mseconds;
        assert_eq!(hold(2, None).latency(frame), ms(80));
        assert_eq!(hold(2, Some(50)).latency(frame), ms(50));
        assert_eq!(hold(1, Some(50)).latency(frame), ms(40));
        assert_eq!(hold(1, Some(50)).latency(None), ms(50));
        assert_eq!(hold(1, None).latency(None), ms(0));
    }
}
