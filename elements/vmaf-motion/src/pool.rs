// SPDX-License-Identifier: MPL-2.0

//! Pooling: one number from the scores of many frames, with the bits libvmaf and VMAFx give.
//!
//! All methods are computed in one pass, in ascending frame order, with plain sequential `f64`
//! sums: [`Running`] keeps what the pass needs, so a pool over scores that arrive one by one has the
//! same bits as one over the finished slice. Only the percentiles need the scores themselves.
//!
//! | method | result over scores `s` of `n` frames |
//! |---|---|
//! | `min`, `max` | from the first score on (libvmaf starts at 0 when its first frame is not scored) |
//! | `mean` | `(0 + s + s + ...) / n` |
//! | `harmonic-mean` | `n / (0 + 1/(s+1) + 1/(s+1) + ...) - 1`, defined at 0 |
//! | `median`, `perc5`, `perc10`, `perc20` | percentile 50, 5, 10, 20; linear between two ranks |

use std::ops::BitOr;

use crate::derive::FinalScore;

/// A pooling method; the number is VMAFx's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Method {
    /// Smallest score.
    Min = 1,
    /// Largest score.
    Max = 2,
    /// Arithmetic mean.
    Mean = 3,
    /// Harmonic mean of the scores plus one, minus one.
    HarmonicMean = 4,
    /// Percentile 50.
    Median = 5,
    /// Percentile 5.
    Perc5 = 6,
    /// Percentile 10.
    Perc10 = 7,
    /// Percentile 20.
    Perc20 = 8,
}

impl Method {
    /// Every method, in the order of its number.
    pub const ALL: [Self; 8] = [
        Self::Min,
        Self::Max,
        Self::Mean,
        Self::HarmonicMean,
        Self::Median,
        Self::Perc5,
        Self::Perc10,
        Self::Perc20,
    ];

    /// Name in reports, as in `motion2.harmonic-mean`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::HarmonicMean => "harmonic-mean",
            Self::Median => "median",
            Self::Perc5 => "perc5",
            Self::Perc10 => "perc10",
            Self::Perc20 => "perc20",
        }
    }

    /// The method of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The percentile, for the methods that rank the scores.
    const fn percent(self) -> Option<f64> {
        match self {
            Self::Min | Self::Max | Self::Mean | Self::HarmonicMean => None,
            Self::Median => Some(50.0),
            Self::Perc5 => Some(5.0),
            Self::Perc10 => Some(10.0),
            Self::Perc20 => Some(20.0),
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u8
    }

    const fn index(self) -> usize {
        self as usize - 1
    }
}

/// A set of at least one method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Methods(u32);

impl Methods {
    /// Every method.
    pub const ALL: Self = Self(0x1fe);

    /// From bits `1 << number`; `None` for no method and for bits that are none's.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits == 0 || bits & !Self::ALL.0 != 0 {
            None
        } else {
            Some(Self(bits))
        }
    }

    /// The bits: `1 << number` of each method.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the method belongs to the set.
    pub const fn contains(self, method: Method) -> bool {
        self.0 & method.bit() != 0
    }

    /// The methods, in the order of their number.
    pub fn iter(self) -> impl Iterator<Item = Method> {
        Method::ALL.into_iter().filter(move |m| self.contains(*m))
    }

    /// Whether a method needs the scores themselves, not only running values.
    pub fn rank_scores(self) -> bool {
        self.iter().any(|method| method.percent().is_some())
    }
}

impl From<Method> for Methods {
    fn from(method: Method) -> Self {
        Self(method.bit())
    }
}

impl<T: Into<Methods>> BitOr<T> for Methods {
    type Output = Methods;

    fn bitor(self, other: T) -> Methods {
        Methods(self.0 | other.into().0)
    }
}

impl<T: Into<Methods>> BitOr<T> for Method {
    type Output = Methods;

    fn bitor(self, other: T) -> Methods {
        Methods::from(self) | other
    }
}

/// The score that is pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// [`FinalScore::motion`].
    Motion,
    /// [`FinalScore::motion2`].
    Motion2,
    /// [`FinalScore::motion3`].
    Motion3,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Self; 3] = [Self::Motion, Self::Motion2, Self::Motion3];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Motion => "motion",
            Self::Motion2 => "motion2",
            Self::Motion3 => "motion3",
        }
    }
}

/// Name of a pooled score in reports: `motion2.mean`.
pub const fn pooled_name(feature: Feature, method: Method) -> &'static str {
    macro_rules! names {
        ($feature:literal) => {
            [
                concat!($feature, ".min"),
                concat!($feature, ".max"),
                concat!($feature, ".mean"),
                concat!($feature, ".harmonic-mean"),
                concat!($feature, ".median"),
                concat!($feature, ".perc5"),
                concat!($feature, ".perc10"),
                concat!($feature, ".perc20"),
            ]
        };
    }
    const NAMES: [[&str; 8]; 3] = [names!("motion"), names!("motion2"), names!("motion3")];
    NAMES[feature as usize][method.index()]
}

/// The scores of one frame, indexed by [`Feature`].
pub type Scores = [f64; 3];

impl From<FinalScore> for Scores {
    fn from(score: FinalScore) -> Self {
        [score.motion, score.motion2, score.motion3]
    }
}

/// What one pass over scores of one feature keeps: all methods but the percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Running {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    reciprocals: f64,
}

impl Running {
    /// Takes the next frame's score.
    #[inline]
    pub fn push(&mut self, score: f64) {
        if self.count == 0 || score < self.min {
            self.min = score;
        }
        if self.count == 0 || score > self.max {
            self.max = score;
        }
        self.count += 1;
        self.sum += score;
        self.reciprocals += 1.0 / (score + 1.0);
    }

    /// Scores taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The pool so far; `None` for a percentile, and when no score was taken.
    pub fn pool(&self, method: Method) -> Option<f64> {
        let count = self.count as f64;
        match method {
            _ if self.count == 0 => None,
            Method::Min => Some(self.min),
            Method::Max => Some(self.max),
            Method::Mean => Some(self.sum / count),
            Method::HarmonicMean => Some(count / self.reciprocals - 1.0),
            Method::Median | Method::Perc5 | Method::Perc10 | Method::Perc20 => None,
        }
    }
}

/// The percentile `percent` (0 to 100) of the scores, linear between the two nearest ranks
/// (numpy's `linear`, up to its rounding); `None` when there are none. Reorders the scores; linear in their number.
pub fn percentile(scores: &mut [f64], percent: f64) -> Option<f64> {
    let last = scores.len().checked_sub(1)?;
    let position = percent * last as f64 / 100.0;
    let (below, above) = (position.floor(), position.ceil());
    let (_, low, rest) = scores.select_nth_unstable_by(below as usize, f64::total_cmp);
    let low = *low;
    match rest.iter().copied().min_by(f64::total_cmp) {
        Some(high) if below != above => Some(low * (above - position) + high * (position - below)),
        _ => Some(low),
    }
}

/// Pooled scores of the three features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    methods: Methods,
    values: [[f64; 8]; 3],
}

impl Pooled {
    /// The methods that were asked for.
    pub fn methods(&self) -> Methods {
        self.methods
    }

    /// One pooled score; `None` when its method was not asked for.
    pub fn get(&self, feature: Feature, method: Method) -> Option<f64> {
        self.methods
            .contains(method)
            .then(|| self.values[feature as usize][method.index()])
    }

    /// Name ([`pooled_name`]) and value of every pooled score, by feature, then method.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        Feature::ALL.into_iter().flat_map(move |feature| {
            self.methods.iter().map(move |method| {
                let value = self.values[feature as usize][method.index()];
                (pooled_name(feature, method), value)
            })
        })
    }
}

/// [`Running`] of the three features at once.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Accumulator([Running; 3]);

impl Accumulator {
    /// Takes the next frame's scores.
    #[inline]
    pub fn push(&mut self, scores: &Scores) {
        for (running, score) in self.0.iter_mut().zip(scores) {
            running.push(*score);
        }
    }

    /// Frames taken.
    pub fn count(&self) -> u64 {
        self.0[0].count()
    }

    /// One feature's running values.
    pub fn feature(&self, feature: Feature) -> &Running {
        &self.0[feature as usize]
    }

    /// Pools what was taken; `None` when that is nothing. `scores` are the same frames again, read
    /// once a feature if a method ranks them; `scratch` is overwritten.
    pub fn pooled<'a>(
        &self,
        methods: Methods,
        scores: impl Iterator<Item = &'a Scores> + Clone,
        scratch: &mut Vec<f64>,
    ) -> Option<Pooled> {
        if self.count() == 0 {
            return None;
        }
        let mut values = [[0.0; 8]; 3];
        for feature in Feature::ALL {
            if methods.rank_scores() {
                scratch.clear();
                scratch.extend(scores.clone().map(|frame| frame[feature as usize]));
            }
            for method in methods.iter() {
                values[feature as usize][method.index()] = match method.percent() {
                    Some(percent) => percentile(scratch, percent)?,
                    None => self.feature(feature).pool(method)?,
                };
            }
        }
        Some(Pooled { methods, values })
    }
}

/// Pools whole frames, given in ascending order; `None` when there are none.
pub fn pool(frames: &[Scores], methods: Methods) -> Option<Pooled> {
    let mut accumulator = Accumulator::default();
    frames.iter().for_each(|frame| accumulator.push(frame));
    accumulator.pooled(methods, frames.iter(), &mut Vec::new())
}

#[cfg(test)]
mod tests;
