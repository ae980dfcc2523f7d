// SPDX-License-Identifier: MPL-2.0

//! When the engines of a device are done with a picture. That is a point in time and needs no thread.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The engines that all sessions of a runtime share.
#[derive(Debug, Default)]
pub struct Engines {
    /// When each is free.
    free_at: Mutex<Vec<Instant>>,
}

impl Engines {
    /// Idle ones.
    pub const fn new() -> Self {
        Self {
            free_at: Mutex::new(Vec::new()),
        }
    }

    /// When a picture that takes `length`, begun now, is done by the first of `count` engines that is free.
    /// Where there are several, a short one overtakes a long one.
    pub fn schedule(&self, length: Duration, count: u64) -> Instant {
        let now = Instant::now();
        let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        free_at.retain(|at| *at > now);
        if free_at.len() < count {
            free_at.push(now + length);
            return now + length;
        }
        free_at.sort_unstable();
        // The engines beyond `count` are those of a session that asked for more of them.
        let at = free_at.len() - count;
        free_at[at] += length;
        free_at[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_engine_keeps_the_order_and_with_two_a_short_picture_overtakes() {
        let (long, short) = (Duration::from_secs(1000), Duration::from_secs(1));
        let engines = Engines::new();
        let first = engines.schedule(long, 2);
        assert!(engines.schedule(short, 2) < first);
        let one = Engines::new();
        let first = one.schedule(long, 1);
        assert!(one.schedule(short, 1) >= first + short);
    }
}
