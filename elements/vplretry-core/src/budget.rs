// SPDX-License-Identifier: MPL-2.0

//! What a stretch without progress has used up, and how many repairs are left.

use std::time::Duration;

use crate::classify::Retry;
use crate::error::Limit;
use crate::settings::Settings;

/// A stretch of calls without progress. Progress (bytes consumed, a frame) starts a new one, and so
/// does every call of the loop: time between two access units is nobody's delay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stall {
    busy: u32,
    spin: u32,
    since: Option<Duration>,
    /// The one sync point without a surface after which the call is repeated without a pause.
    pub(crate) token_used: bool,
}

impl Stall {
    /// Charges a call that began at `started`.
    pub(crate) fn charge(&mut self, retry: Retry, started: Duration) {
        let count = match retry {
            Retry::Busy | Retry::Starved => &mut self.busy,
            Retry::Now | Retry::ReadParams => &mut self.spin,
        };
        *count = count.saturating_add(1);
        self.since.get_or_insert(started);
    }

    /// Calls charged.
    pub(crate) fn attempts(&self) -> u32 {
        self.busy.saturating_add(self.spin)
    }

    /// Time since the first charged call began.
    pub(crate) fn elapsed(&self, now: Duration) -> Duration {
        self.since
            .map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// The limit that is reached, counts before time.
    pub(crate) fn exceeded(&self, settings: &Settings, now: Duration) -> Option<Limit> {
        if self.busy >= settings.max_attempts.max(1) {
            Some(Limit::Attempts)
        } else if self.spin >= settings.spin_guard.max(1) {
            Some(Limit::SpinGuard)
        } else if self.elapsed(now) >= settings.retry_timeout {
            Some(Limit::Deadline)
        } else {
            None
        }
    }
}

/// The repairs that are made once for an access unit.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    pub(crate) reset: Once,
    pub(crate) grow: Once,
    pub(crate) reinit: Once,
}

/// Grants one use.
#[derive(Debug, Default)]
pub(crate) struct Once(bool);

impl Once {
    /// True the first time.
    pub(crate) fn take(&mut self) -> bool {
        !std::mem::replace(&mut self.0, true)
    }
}

/// New sessions in a row. A frame makes the next access unit start afresh; within one access unit
/// nothing does, or a unit that is fed again after each loss could lose the device for ever.
#[derive(Debug, Default)]
pub(crate) struct Recoveries {
    used: u32,
    frame_since: bool,
}

impl Recoveries {
    /// A new access unit, or a drain.
    pub(crate) fn renew(&mut self) {
        if self.frame_since {
            self.used = 0;
        }
    }

    /// A frame came out.
    pub(crate) fn note_frame(&mut self) {
        self.frame_since = true;
    }

    /// New sessions tried in a row.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// One more is made.
    pub(crate) fn take(&mut self) {
        self.used = self.used.saturating_add(1);
        self.frame_since = false;
    }
}

/// Lets one report through per interval.
#[derive(Debug, Default)]
pub(crate) struct RateLimit(Option<Duration>);

impl RateLimit {
    /// True where the last report is at least `interval` ago, or there was none.
    pub(crate) fn allows(&mut self, now: Duration, interval: Duration) -> bool {
        let due = self
            .0
            .is_none_or(|last| now.saturating_sub(last) >= interval);
        if due {
            self.0 = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_renews_the_recoveries_at_the_next_unit_and_not_before() {
        let mut recoveries = Recoveries::default();
        recoveries.take();
        recoveries.note_frame();
        recoveries.take();
        assert_eq!(recoveries.used(), 2);
        recoveries.renew();
        assert_eq!(recoveries.used(), 2);
        recoveries.note_frame();
        recoveries.renew();
        assert_eq!(recoveries.used(), 0);
    }

    #[test]
    fn reports_are_an_interval_apart() {
        let mut limit = RateLimit::default();
        let allowed: Vec<u64> = (0..50)
            .filter(|&ms| limit.allows(Duration::from_millis(ms), Duration::from_millis(20)))
            .collect();
        assert_eq!(allowed, [0, 20, 40]);
    }
}
