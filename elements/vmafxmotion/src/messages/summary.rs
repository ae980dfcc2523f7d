// SPDX-License-Identifier: MPL-2.0

//! The message of a whole session.

use vmaf_motion::pool::{Feature, Method};
use vmaf_motion::summary::Summary;

use super::{Fields, WrongStructure};
use crate::times::FrameTimes;

/// Pooled scores of one feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureSummary {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// libvmaf's harmonic mean: of the scores plus one, minus one.
    pub harmonic_mean: f64,
}

impl FeatureSummary {
    /// The pooled scores of one feature; all 0 for a session without frames, which is never posted.
    pub(crate) fn of(summary: &Summary, feature: Feature) -> Self {
        let pool = |method| summary.get(feature, method).unwrap_or_default();
        Self {
            min: pool(Method::Min),
            max: pool(Method::Max),
            mean: pool(Method::Mean),
            harmonic_mean: pool(Method::HarmonicMean),
        }
    }

    /// Method names and values, as fields spell them.
    pub fn values(&self) -> [(&'static str, f64); 4] {
        [
            ("min", self.min),
            ("max", self.max),
            ("mean", self.mean),
            ("harmonic-mean", self.harmonic_mean),
        ]
    }
}

/// The features in the order of [`SummaryMessage::features`].
pub(crate) const FEATURES: [&str; 3] = ["motion", "motion2", "motion3"];

/// `vmafxmotion-summary`: a session as a whole, posted when it ends.
///
/// | field | type | is |
/// |---|---|---|
/// | `session` | u64 | which session |
/// | `n-frames` | u64 | frames scored |
/// | `frames-without-timestamp` | u64 | of these, frames without a PTS |
/// | `discontinuities` | u64 | SEGMENT and GAP events, DISCONT buffers, missing timestamps and new framerates that the session went on over |
/// | `motion.min`, `.max`, `.mean`, `.harmonic-mean`, the same for `motion2` and `motion3` | f64 | pooled scores |
/// | `timestamp`, `stream-time`, `running-time` | u64, ns | times of the first frame |
/// | `duration` | u64, ns | from the start of the first frame to the end of the last |
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryMessage {
    /// Number of the session.
    pub session: u64,
    /// Frames scored.
    pub n_frames: u64,
    /// Frames without a PTS.
    pub frames_without_timestamp: u64,
    /// Interruptions that the session went on over.
    pub discontinuities: u64,
    /// motion, motion2 and motion3.
    pub features: [FeatureSummary; 3],
    /// Times of the first frame; the duration is the session's.
    pub times: FrameTimes,
}

impl SummaryMessage {
    /// Name of the structure.
    pub const NAME: &str = "vmafxmotion-summary";

    /// The counts, as fields spell them.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 4] {
        [
            ("session", self.session),
            ("n-frames", self.n_frames),
            ("frames-without-timestamp", self.frames_without_timestamp),
            ("discontinuities", self.discontinuities),
        ]
    }

    /// The pooled scores, as fields spell them (`motion2.mean`).
    pub(crate) fn pooled(&self) -> impl Iterator<Item = (String, f64)> + '_ {
        FEATURES
            .iter()
            .zip(&self.features)
            .flat_map(|(feature, summary)| {
                let values = summary.values().into_iter();
                values.map(move |(method, value)| (format!("{feature}.{method}"), value))
            })
    }
}

impl From<&SummaryMessage> for gst::Structure {
    fn from(message: &SummaryMessage) -> Self {
        let mut structure = gst::Structure::new_empty(SummaryMessage::NAME);
        for (name, count) in message.counts() {
            structure.set(name, count);
        }
        for (name, value) in message.pooled() {
            structure.set(name, value);
        }
        message.times.write(&mut structure);
        structure
    }
}

impl TryFrom<&gst::StructureRef> for SummaryMessage {
    type Error = WrongStructure;

    fn try_from(structure: &gst::StructureRef) -> Result<Self, WrongStructure> {
        let fields = Fields::of(structure, Self::NAME)?;
        let feature = |feature: &str| {
            let value = |method: &str| fields.get(&format!("{feature}.{method}"));
            Ok(FeatureSummary {
                min: value("min")?,
                max: value("max")?,
                mean: value("mean")?,
                harmonic_mean: value("harmonic-mean")?,
            })
        };
        Ok(Self {
            session: fields.get("session")?,
            n_frames: fields.get("n-frames")?,
            frames_without_timestamp: fields.get("frames-without-timestamp")?,
            discontinuities: fields.get("discontinuities")?,
            features: [feature("motion")?, feature("motion2")?, feature("motion3")?],
            times: FrameTimes::read(structure),
        })
    }
}
