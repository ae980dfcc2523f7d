// SPDX-License-Identifier: MPL-2.0

//! When the engines are done with a picture. That is a point in time and needs no thread.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock;

/// Pictures that the driver queues; one more waits in `cuvidDecodePicture`.
pub const QUEUE: usize = 4;

/// What a picture takes where nobody says otherwise: long enough that its status is seen to be in progress.
pub const DEFAULT_LATENCY: Duration = Duration::from_micros(200);

/// When a picture is done that is begun now, by one of the device's `engines`. Short pictures overtake long
/// ones where there are several.
pub fn schedule(length: Duration, engines: u64) -> Instant {
    /// When each engine is free. The device is one for the whole process.
    static ENGINES: Mutex<Vec<Instant>> = Mutex::new(Vec::new());
    let now = Instant::now();
    let engines = usize::try_from(engines).unwrap_or(usize::MAX).max(1);
    let mut free_at = lock(&ENGINES);
    free_at.retain(|at| *at > now);
    if free_at.len() < engines {
        free_at.push(now + length);
        return now + length;
    }
    free_at.sort_unstable();
    // The engines beyond `engines` are those of a decoder that asked for more of them.
    let at = free_at.len() - engines;
    free_at[at] += length;
    free_at[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_engine_pictures_end_in_order_and_with_two_a_short_one_overtakes() {
        let (long, short) = (Duration::from_secs(1000), Duration::from_secs(1));
        let first = schedule(long, 2);
        let second = schedule(short, 2);
        assert!(second < first);
        let third = schedule(short, 1);
        assert!(third >= first + short, "one engine is the busiest there is");
    }
}
