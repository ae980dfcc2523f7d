// SPDX-License-Identifier: MPL-2.0

//! The horizontal axis: seconds or frames, with labels at round places.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// The horizontal axis that all sessions share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    /// Places are seconds since the first frame, not frame numbers.
    pub(super) timed: bool,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Axis {
    /// The distance of labels: seconds go by sixties, everything else by tens.
    pub(super) fn step(&self, most: usize) -> f64 {
        const TIMES: [f64; 15] = [
            1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0,
            7200.0, 21_600.0,
        ];
        let least = (self.to - self.from) / most as f64;
        let sixties = TIMES.into_iter().find(|&step| step >= least);
        if self.timed && least > 0.5 {
            return sixties.unwrap_or(86_400.0 * (least / 86_400.0).ceil());
        }
        let power = 10_f64.powf(least.log10().floor());
        let tens = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = tens.into_iter().find(|&step| step >= least * 0.999_999);
        let step = step.unwrap_or(10.0 * power);
        if self.timed { step } else { step.max(1.0) }
    }

    /// Where labels stand.
    fn ticks(&self, most: usize) -> Vec<f64> {
        let step = self.step(most);
        let first = (self.from / step).ceil();
        let count = ((self.to / step + 1e-9).floor() - first) as usize;
        (0..=count).map(|n| (first + n as f64) * step).collect()
    }

    fn label(&self, place: f64, step: f64) -> String {
        if !self.timed {
            return format!("{place:.0}");
        }
        let digits = if step >= 1.0 {
            0
        } else {
            (-step.log10() - 1e-9).ceil() as usize
        };
        let minutes = (place / 60.0).floor();
        let seconds = place - minutes * 60.0;
        let width = if digits > 0 { 3 + digits } else { 2 };
        if minutes < 60.0 {
            return format!("{minutes}:{seconds:0width$.digits$}");
        }
        let hours = (minutes / 60.0).floor();
        format!("{hours}:{:02}:{seconds:0width$.digits$}", minutes % 60.0)
    }
}

/// The horizontal axis as a panel of some width labels it.
#[derive(Clone)]
pub(super) struct Across {
    pub(super) axis: Axis,
    /// Labels at most.
    pub(super) most: usize,
}

impl Ranged for Across {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (place - self.axis.from) / (self.axis.to - self.axis.from);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.axis.ticks(self.most)
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.axis.from..self.axis.to
    }
}

impl ValueFormatter<f64> for Across {
    fn format_ext(&self, place: &f64) -> String {
        self.axis.label(*place, self.axis.step(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_at_round_places() {
        let axis = |timed, to| Axis {
            timed,
            from: 0.0,
            to,
        };
        let labels = |timed, to| {
            let axis = axis(timed, to);
            let step = axis.step(4);
            let ticks = axis.ticks(4).into_iter();
            ticks
                .map(|place| axis.label(place, step))
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(true, 0.3), ["0:00.0", "0:00.1", "0:00.2", "0:00.3"]);
        assert_eq!(labels(true, 9.96), ["0:00", "0:05"]);
        assert_eq!(labels(true, 500.0), ["0:00", "5:00"]);
        assert_eq!(
            labels(true, 21_600.0),
            ["0:00", "2:00:00", "4:00:00", "6:00:00"]
        );
        assert_eq!(labels(false, 3.0), ["0", "1", "2", "3"]);
        assert_eq!(labels(false, 249.0), ["0", "100", "200"]);
    }
}
