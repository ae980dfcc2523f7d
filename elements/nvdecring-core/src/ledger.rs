// SPDX-License-Identifier: MPL-2.0

//! The account of frames: each one that goes in comes out exactly once.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::FrameToken;
use crate::error::Error;

/// What a session has done so far.
///
/// `submitted == pictures + dropped + failed + flushed + inside` at every moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Packets taken.
    pub submitted: u64,
    /// Pictures given to the output, damaged ones included.
    pub pictures: u64,
    /// Of these, the ones with a mark of damage.
    pub damaged: u64,
    /// Packets without a picture of their own.
    pub dropped: u64,
    /// Pictures lost to an error.
    pub failed: u64,
    /// Packets overtaken by a flush.
    pub flushed: u64,
    /// Packets on their way. After a stop: packets overtaken by it.
    pub inside: u64,
    /// Surfaces the ring keeps from being overwritten.
    pub surfaces_held: u32,
    /// Packets refused because the ring was full. They do not count as submitted.
    pub overflows: u64,
    /// Pictures shown again, or by no packet: nothing was output for them.
    pub unclaimed: u64,
    /// Pictures that were not decoded in time.
    pub timeouts: u64,
    /// Decoders created.
    pub decoders: u64,
    /// Decoders reconfigured in place.
    pub reconfigured: u64,
    /// Contexts opened.
    pub contexts: u64,
    /// Slots occupied at most.
    pub most_queued: u8,
    /// Time the parser waited for surfaces the ring still needed.
    pub surface_wait: Duration,
    /// Time the parser waited for a slot.
    pub slot_wait: Duration,
}

/// How a frame ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Picture { damaged: bool },
    Dropped,
    Failed,
}

/// The frames on their way.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: BTreeMap<FrameToken, Duration>,
    last: Option<FrameToken>,
    pub(crate) stats: Stats,
}

impl Ledger {
    /// A packet is taken, or refused and nothing changed.
    pub(crate) fn submit(&mut self, token: FrameToken, now: Duration) -> Result<(), Error> {
        if let Some(last) = self.last
            && token <= last
        {
            return Err(Error::Token { got: token, last });
        }
        self.last = Some(token);
        self.open.insert(token, now);
        self.stats.submitted += 1;
        Ok(())
    }

    /// When a frame was taken; `None` where it has ended.
    pub(crate) fn submitted(&self, token: FrameToken) -> Option<Duration> {
        self.open.get(&token).copied()
    }

    /// A frame ends. False, and nothing changed, where it has already.
    pub(crate) fn end(&mut self, token: FrameToken, end: End) -> bool {
        if self.open.remove(&token).is_none() {
            return false;
        }
        match end {
            End::Picture { damaged } => {
                self.stats.pictures += 1;
                self.stats.damaged += u64::from(damaged);
            }
            End::Dropped => self.stats.dropped += 1,
            End::Failed => self.stats.failed += 1,
        }
        true
    }

    /// A flush overtakes every frame. Gives their number.
    pub(crate) fn flush(&mut self) -> u64 {
        let flushed = self.open.len() as u64;
        self.open.clear();
        self.stats.flushed += flushed;
        flushed
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            inside: self.open.len() as u64,
            ..self.stats
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_ends_once() {
        let mut ledger = Ledger::default();
        for token in 1..=4 {
            ledger.submit(FrameToken(token), Duration::ZERO).unwrap();
        }
        assert!(ledger.end(FrameToken(1), End::Picture { damaged: true }));
        assert!(!ledger.end(FrameToken(1), End::Failed));
        assert!(ledger.end(FrameToken(3), End::Dropped));
        assert_eq!(ledger.flush(), 2);
        assert!(!ledger.end(FrameToken(2), End::Failed));
        let stats = ledger.stats();
        assert_eq!(
            (stats.submitted, stats.pictures, stats.damaged),
            (4, 1, 1),
            "{stats:?}"
        );
        assert_eq!((stats.dropped, stats.flushed, stats.inside), (1, 2, 0));
    }

    #[test]
    fn tokens_grow_even_over_a_flush() {
        let mut ledger = Ledger::default();
        ledger.submit(FrameToken(5), Duration::ZERO).unwrap();
        ledger.flush();
        let refused = ledger.submit(FrameToken(5), Duration::ZERO);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "token 5 does not follow 5: tokens must grow"
        );
        assert_eq!(ledger.stats().submitted, 1);
    }
}
