// SPDX-License-Identifier: MPL-2.0

//! What became of the frames, and the property `stats`.

use std::collections::BTreeSet;

use vplretry_core::Stats;

use crate::ledger::Fate;
use crate::unit::Token;

/// Frames since the element started. `frames_in` is the sum of the others and of those that are open.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) frames_in: u64,
    pub(super) frames: u64,
    pub(super) dropped: u64,
    pub(super) errored: u64,
    pub(super) flushed: u64,
    pub(super) without_picture: u64,
    pub(super) unmatched: u64,
    open: BTreeSet<Token>,
}

impl Counters {
    /// A frame comes in.
    pub(super) fn enter(&mut self, token: Token) {
        self.frames_in += 1;
        self.open.insert(token);
    }

    /// A frame goes out.
    pub(super) fn leave(&mut self, token: Token) {
        if self.open.remove(&token) {
            self.frames += 1;
        }
    }

    /// A frame will not come out; false where it has its fate already.
    pub(super) fn lose(&mut self, token: Token, fate: &Fate) -> bool {
        if !self.open.remove(&token) {
            return false;
        }
        match fate {
            Fate::Dropped(_) => self.dropped += 1,
            Fate::Errored(_) => self.errored += 1,
            Fate::WithoutPicture => self.without_picture += 1,
        }
        true
    }

    /// Everything that is inside is flushed; their tokens.
    pub(super) fn flush(&mut self) -> BTreeSet<Token> {
        let open = std::mem::take(&mut self.open);
        self.flushed += open.len() as u64;
        open
    }

    /// Decoding has ended with an error; the tokens of what is inside.
    pub(super) fn fail(&mut self) -> BTreeSet<Token> {
        let open = std::mem::take(&mut self.open);
        self.errored += open.len() as u64;
        open
    }

    /// The structure of the property `stats`.
    pub(super) fn structure(
        &self,
        stats: &Stats,
        implementation: Option<(String, String)>,
    ) -> gst::Structure {
        let (name, api) = implementation.unwrap_or_default();
        gst::Structure::builder("vplretrydec-stats")
            .field("frames-in", self.frames_in)
            .field("frames", self.frames)
            .field("dropped", self.dropped)
            .field("errored", self.errored)
            .field("flushed", self.flushed)
            .field("without-picture", self.without_picture)
            .field("attempts", stats.attempts)
            .field("busy", stats.busy)
            .field(
                "busy-time",
                u32::try_from(stats.busy_time.as_millis()).unwrap_or(u32::MAX),
            )
            .field("starved", stats.starved)
            .field("reinits", stats.reinits)
            .field("resets", stats.resets)
            .field("recoveries", stats.recoveries)
            .field("corrupted", stats.corrupted)
            .field("damaged", stats.damaged)
            .field("sync-timeouts", stats.sync_timeouts)
            .field(
                "max-attempts-per-frame",
                u64::from(stats.max_attempts_per_frame),
            )
            .field("unmatched", self.unmatched)
            .field("impl", name)
            .field("api", api)
            .build()
    }
}
