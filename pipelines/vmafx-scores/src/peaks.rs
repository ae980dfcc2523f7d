// SPDX-License-Identifier: MPL-2.0

//! The frames that differ most from the one before.

use std::collections::VecDeque;

use crate::records::Frame;

/// A frame counts as a likely scene cut from this `motion` on ...
const CUT_MOTION: f64 = 5.0;
/// ... if it is this many times that of the frames around it.
const CUT_RATIO: f64 = 3.0;

/// A local maximum of `motion`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// The frame.
    pub frame: u64,
    /// Its timestamp, ns.
    pub timestamp: Option<u64>,
    /// Its motion.
    pub motion: f64,
    /// Motion of the frames around it that a cut here would leave low; `None` where there is none.
    pub around: Option<f64>,
}

impl Peak {
    /// Whether the motion is one that a scene cut makes: high, and high in this place alone.
    #[must_use]
    pub fn likely_cut(&self) -> bool {
        self.motion >= CUT_MOTION
            && self
                .around
                .is_some_and(|around| self.motion >= CUT_RATIO * around)
    }
}

/// Finds the largest peaks of a stream in one pass.
///
/// A cut raises `motion` of as many frames as the distance of the two frames that are compared:
/// one, or two with the five-frame window.
#[derive(Debug, Clone)]
pub struct Peaks {
    distance: usize,
    keep: usize,
    cuts_only: bool,
    found: u64,
    recent: VecDeque<Frame>,
    best: Vec<Peak>,
}

impl Peaks {
    /// Keeps the `keep` largest peaks; `distance` frames lie between the frames compared (1 or 2).
    #[must_use]
    pub fn new(distance: usize, keep: usize) -> Self {
        Self {
            distance,
            keep,
            cuts_only: false,
            found: 0,
            recent: VecDeque::with_capacity(2 * distance + 2),
            best: Vec::new(),
        }
    }

    /// Keeps the `keep` largest of those that are likely scene cuts.
    #[must_use]
    pub fn cuts(distance: usize, keep: usize) -> Self {
        Self {
            cuts_only: true,
            ..Self::new(distance, keep)
        }
    }

    /// Adds the next frame.
    pub fn push(&mut self, frame: &Frame) {
        // Frames without a frame to compare with have no motion of their own.
        if frame.frame < self.distance as u64 {
            return;
        }
        if self.recent.len() > 2 * self.distance {
            self.recent.pop_front();
        }
        self.recent.push_back(frame.clone());
        if self.recent.len() > self.distance {
            self.judge(self.recent.len() - 1 - self.distance);
        }
    }

    /// The largest peaks, largest first. The stream's last frames are judged by what precedes them.
    #[must_use]
    pub fn finish(mut self) -> Vec<Peak> {
        self.close();
        self.best
    }

    /// The same with the number of all that were found.
    #[must_use]
    pub fn finish_counted(mut self) -> (Vec<Peak>, u64) {
        self.close();
        (self.best, self.found)
    }

    fn close(&mut self) {
        let judged = self.recent.len().saturating_sub(self.distance);
        (judged..self.recent.len()).for_each(|at| self.judge(at));
    }

    fn judge(&mut self, at: usize) {
        let motion = |i: usize| self.recent.get(i).map(|frame| frame.motion);
        let centre = &self.recent[at];
        let before = (at.saturating_sub(self.distance)..at).filter_map(motion);
        let after = (at + 1..=at + self.distance).filter_map(motion);
        let is_peak = before.clone().all(|other| other < centre.motion)
            && after.clone().all(|other| other <= centre.motion)
            && centre.motion > 0.0;
        if !is_peak {
            return;
        }
        // The cut may lie at the centre or up to distance - 1 frames before it.
        let around = (0..self.distance)
            .filter_map(|shift| {
                let left = at.checked_sub(1 + shift).and_then(motion);
                let right = motion(at + self.distance - shift);
                left.into_iter().chain(right).reduce(f64::max)
            })
            .reduce(f64::min);
        let peak = Peak {
            frame: centre.frame,
            timestamp: centre.timestamp,
            motion: centre.motion,
            around,
        };
        if self.cuts_only && !peak.likely_cut() {
            return;
        }
        self.found += 1;
        let place = self.best.partition_point(|p| p.motion >= peak.motion);
        self.best.insert(place, peak);
        self.best.truncate(self.keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peaks(distance: usize, keep: usize, motions: &[f64]) -> Vec<Peak> {
        let mut peaks = Peaks::new(distance, keep);
        for (i, &motion) in motions.iter().enumerate() {
            peaks.push(&Frame {
                frame: i as u64,
                timestamp: None,
                motion,
                motion2: 0.0,
                motion3: 0.0,
            });
        }
        peaks.finish()
    }

    fn frames(peaks: &[Peak]) -> Vec<u64> {
        peaks.iter().map(|peak| peak.frame).collect()
    }

    #[test]
    fn cuts_are_found_and_told_from_mere_peaks() {
        let found = peaks(1, 5, &[0.0, 1.0, 1.0, 40.0, 1.0, 2.0, 3.0, 2.5, 1.0, 30.0]);
        assert_eq!(frames(&found), [3, 9, 6, 1]);
        assert_eq!(found[0].around, Some(1.0));
        let cuts: Vec<bool> = found.iter().map(Peak::likely_cut).collect();
        assert_eq!(cuts, [true, true, false, false]);
    }

    #[test]
    fn cuts_alone_are_kept_and_all_of_them_counted() {
        let mut cuts = Peaks::cuts(1, 2);
        for i in 0..100_u64 {
            let motion = match i % 20 {
                10 => 20.0 + i as f64,
                15 => 2.0,
                _ => 1.0,
            };
            cuts.push(&Frame {
                frame: i,
                timestamp: None,
                motion,
                motion2: 0.0,
                motion3: 0.0,
            });
        }
        let (kept, found) = cuts.finish_counted();
        assert_eq!((frames(&kept), found), (vec![90, 70], 5));
    }

    #[test]
    fn a_cut_shows_twice_with_the_five_frame_window() {
        for pair in [[40.0, 38.0], [38.0, 40.0]] {
            let found = peaks(2, 5, &[0.0, 0.0, 1.0, 1.0, pair[0], pair[1], 1.0, 1.0]);
            assert!(found[0].frame == 4 || found[0].frame == 5);
            assert!(found[0].likely_cut(), "{found:?}");
        }
    }

    #[test]
    fn the_largest_are_kept() {
        let motions: Vec<f64> = (0..100)
            .map(|i| if i % 10 == 5 { f64::from(i) } else { 0.5 })
            .collect();
        assert_eq!(frames(&peaks(1, 3, &motions)), [95, 85, 75]);
    }

    #[test]
    fn no_motion_no_peak() {
        assert!(peaks(1, 5, &[0.0; 10]).is_empty());
        assert!(peaks(1, 5, &[]).is_empty());
        assert!(peaks(2, 5, &[0.0]).is_empty());
    }

    #[test]
    fn steady_motion_is_no_cut() {
        let found = peaks(1, 5, &[0.0, 255.0, 255.0, 255.0]);
        assert_eq!(frames(&found), [1]);
        assert!(!found[0].likely_cut());
    }
}
