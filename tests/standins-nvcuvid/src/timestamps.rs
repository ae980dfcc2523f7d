// SPDX-License-Identifier: MPL-2.0

//! The parser's timestamps. They are no names of packets: where pictures are reordered the parser checks, and
//! if need be sorts them.
//!
//! The rule is that of NVIDIA's published parser (vk_video_samples, `VulkanVideoDecoder.cpp`): of the first 16
//! pictures that are shown each is expected to carry the earliest timestamp of those that wait. If one does
//! not, timestamps are handed out in increasing order from then on. A picture without one gets its
//! predecessor's and the duration of a frame.

/// How many shown pictures are checked.
const CHECKED: u32 = 16;
/// Pictures that may wait; hidden ones are never shown.
const WAITING: usize = 64;

/// Timestamps of pictures between being decoded and being shown.
#[derive(Clone, Debug)]
pub struct Timestamps {
    waiting: Vec<(u64, Option<i64>)>,
    left_to_check: u32,
    sorts: bool,
    last: Option<i64>,
    /// Ticks a frame.
    pub duration: i64,
}

impl Timestamps {
    /// Nothing waits, nothing was shown.
    pub fn new(duration: i64) -> Self {
        Self {
            waiting: Vec::new(),
            left_to_check: CHECKED,
            sorts: false,
            last: None,
            duration,
        }
    }

    /// The picture `token` was decoded.
    pub fn decoded(&mut self, token: u64, timestamp: Option<i64>) {
        self.waiting.push((token, timestamp));
        if self.waiting.len() > WAITING {
            self.waiting.remove(0);
        }
    }

    /// The picture will not be shown.
    pub fn skipped(&mut self, token: u64) {
        self.waiting.retain(|(waiting, _)| *waiting != token);
    }

    /// The picture is shown: its timestamp.
    pub fn shown(&mut self, token: u64) -> i64 {
        let own = self
            .waiting
            .iter()
            .position(|(waiting, _)| *waiting == token);
        let with_time = self.waiting.iter().enumerate();
        let earliest = with_time
            .filter_map(|(at, (_, timestamp))| timestamp.map(|timestamp| (timestamp, at)))
            .min();
        let timestamp = own.and_then(|own| {
            if let (Some((earliest, at)), Some(mine)) = (earliest, self.waiting[own].1) {
                if self.left_to_check > 0 && earliest < mine {
                    self.sorts = true;
                }
                if self.sorts {
                    self.waiting[at].1 = Some(mine);
                    self.waiting[own].1 = Some(earliest);
                }
            }
            self.waiting.remove(own).1
        });
        self.left_to_check = self.left_to_check.saturating_sub(1);
        self.keep(timestamp)
    }

    /// A picture is shown with a packet's own timestamp, as in the formats without reordering.
    pub fn shown_with(&mut self, token: u64, timestamp: Option<i64>) -> i64 {
        self.skipped(token);
        self.keep(timestamp)
    }

    fn keep(&mut self, timestamp: Option<i64>) -> i64 {
        let expected = self.last.map_or(0, |last| last.wrapping_add(self.duration));
        let timestamp = timestamp.unwrap_or(expected);
        self.last = Some(timestamp);
        timestamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_times_of_reordered_pictures_stay_with_them() {
        let mut stamps = Timestamps::new(10);
        // Decoding order I0 P3 B1 B2.
        for (token, time) in [(0, 0), (3, 30), (1, 10), (2, 20)] {
            stamps.decoded(token, Some(time));
        }
        let shown: Vec<i64> = (0..4).map(|token| stamps.shown(token)).collect();
        assert_eq!(shown, [0, 10, 20, 30]);
    }

    #[test]
    fn counters_of_packets_are_sorted_and_meet_the_wrong_pictures() {
        let mut stamps = Timestamps::new(10);
        for (count, token) in [0, 3, 1, 2].into_iter().enumerate() {
            stamps.decoded(token, Some(count as i64));
        }
        // Picture 1 came in packet 2, and is given out with the 1 of packet 1.
        let shown: Vec<i64> = (0..4).map(|token| stamps.shown(token)).collect();
        assert_eq!(shown, [0, 1, 2, 3]);
    }

    #[test]
    fn without_a_timestamp_time_goes_on_by_a_frame() {
        let mut stamps = Timestamps::new(10);
        stamps.decoded(1, Some(100));
        stamps.decoded(2, None);
        stamps.decoded(3, None);
        let shown: Vec<i64> = (1..4).map(|token| stamps.shown(token)).collect();
        assert_eq!(shown, [100, 110, 120]);
    }

    #[test]
    fn late_disorder_is_left_alone() {
        let mut stamps = Timestamps::new(10);
        for token in 0..20 {
            stamps.decoded(token, Some(token as i64));
            assert_eq!(stamps.shown(token), token as i64);
        }
        stamps.decoded(21, Some(500));
        stamps.decoded(20, Some(400));
        assert_eq!(stamps.shown(21), 500);
    }
}
