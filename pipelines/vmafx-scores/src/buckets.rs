// SPDX-License-Identifier: MPL-2.0

//! A stream of unknown length cut into a few equal parts, in one pass and bounded memory.

use vmaf_motion::pool::Feature;

use crate::records::Frame;

/// Cells kept at most. When they are full, neighbours are joined and cells become twice as long,
/// so that a row's border is off by at most 1/640 of the stream.
const MAX_CELLS: usize = 1280;

/// One feature over a run of frames.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    min: f64,
    max: f64,
    sum: f64,
}

/// The scores of a run of consecutive frame lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// First frame.
    pub first: u64,
    /// Last frame, included.
    pub last: u64,
    /// Timestamp of the first frame, ns.
    pub start: Option<u64>,
    spreads: [Spread; 3],
    count: u64,
}

impl Bucket {
    fn of(frame: &Frame) -> Self {
        let spread = |score| Spread {
            min: score,
            max: score,
            sum: score,
        };
        Self {
            first: frame.frame,
            last: frame.frame,
            start: frame.timestamp,
            spreads: [frame.motion, frame.motion2, frame.motion3].map(spread),
            count: 1,
        }
    }

    fn join(&mut self, next: &Self) {
        self.last = next.last;
        for (spread, next) in self.spreads.iter_mut().zip(&next.spreads) {
            spread.min = spread.min.min(next.min);
            spread.max = spread.max.max(next.max);
            spread.sum += next.sum;
        }
        self.count += next.count;
    }

    /// Smallest score.
    #[must_use]
    pub fn min(&self, feature: Feature) -> f64 {
        self.spreads[feature as usize].min
    }

    /// Largest score.
    #[must_use]
    pub fn max(&self, feature: Feature) -> f64 {
        self.spreads[feature as usize].max
    }

    /// Mean score.
    #[must_use]
    pub fn mean(&self, feature: Feature) -> f64 {
        self.spreads[feature as usize].sum / self.count as f64
    }
}

/// Collects frames and gives them back in equal parts.
#[derive(Debug, Clone)]
pub struct Buckets {
    cells: Vec<Bucket>,
    frames_per_cell: u64,
}

impl Default for Buckets {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            frames_per_cell: 1,
        }
    }
}

impl Buckets {
    /// Adds the next frame.
    pub fn push(&mut self, frame: &Frame) {
        let bucket = Bucket::of(frame);
        match self.cells.last_mut() {
            Some(cell) if cell.count < self.frames_per_cell => cell.join(&bucket),
            _ => {
                if self.cells.len() == MAX_CELLS {
                    self.cells = join_runs(&self.cells, MAX_CELLS / 2);
                    self.frames_per_cell *= 2;
                }
                self.cells.push(bucket);
            }
        }
    }

    /// The stream as finely as it is kept.
    #[must_use]
    pub fn cells(&self) -> &[Bucket] {
        &self.cells
    }

    /// The stream in at most `rows` parts of as good as equal length.
    #[must_use]
    pub fn rows(&self, rows: usize) -> Vec<Bucket> {
        join_runs(&self.cells, rows.min(self.cells.len()))
    }
}

/// `cells` joined to `parts` runs of as good as equal length; `parts` is at most the number of cells.
fn join_runs(cells: &[Bucket], parts: usize) -> Vec<Bucket> {
    (0..parts)
        .map(|part| {
            let run = &cells[part * cells.len() / parts..(part + 1) * cells.len() / parts];
            let mut joined = run[0];
            run[1..].iter().for_each(|next| joined.join(next));
            joined
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(frame: u64) -> Frame {
        Frame {
            frame,
            timestamp: Some(frame * 40),
            motion: 0.0,
            motion2: (frame % 7) as f64,
            motion3: 0.0,
        }
    }

    #[test]
    fn rows_cover_every_frame_once_and_are_even() {
        for count in [
            0_u64, 1, 2, 19, 20, 21, 250, 1280, 1281, 2560, 2561, 100_003,
        ] {
            let mut buckets = Buckets::default();
            (0..count).for_each(|i| buckets.push(&frame(i)));
            assert!(buckets.cells.len() <= MAX_CELLS);
            let rows = buckets.rows(20);
            assert_eq!(rows.len() as u64, count.min(20));
            let mut next = 0;
            for row in &rows {
                assert_eq!(row.first, next);
                assert_eq!(row.start, Some(row.first * 40));
                assert_eq!(row.count, row.last - row.first + 1);
                next = row.last + 1;
                let even = count as f64 / rows.len() as f64;
                let off = (row.count as f64 - even).abs();
                assert!(off <= 1.0 + count as f64 / 640.0, "{count} frames: {row:?}");
            }
            assert_eq!(next, count);
            let sum: f64 = rows.iter().map(|row| row.spreads[1].sum).sum();
            assert_eq!(sum, (0..count).map(|i| (i % 7) as f64).sum::<f64>());
        }
    }

    #[test]
    fn a_row_has_its_own_extremes() {
        let mut buckets = Buckets::default();
        (0..40).for_each(|i| buckets.push(&frame(i)));
        let rows = buckets.rows(20);
        assert_eq!((rows[3].first, rows[3].last), (6, 7));
        let row = &rows[3];
        let motion2 = Feature::Motion2;
        assert_eq!((row.min(motion2), row.max(motion2)), (0.0, 6.0));
        assert_eq!(row.mean(motion2), 3.0);
        assert_eq!(row.max(Feature::Motion), 0.0);
    }
}
