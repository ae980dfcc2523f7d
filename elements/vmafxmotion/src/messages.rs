// SPDX-License-Identifier: MPL-2.0

//! The element messages on the bus, as Rust types.

use thiserror::Error;
use vmaf_motion::FinalScore;
use vmaf_motion::pool::{Feature, Method};
use vmaf_motion::summary::Summary;

use crate::times::FrameTimes;

/// A structure that is not the message it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrongStructure {
    /// Another message.
    #[error("structure `{found}` is not a `{expected}`")]
    Name {
        /// The structure's name.
        found: String,
        /// The message's name.
        expected: &'static str,
    },
    /// A field is missing or of another type.
    #[error("`{message}` has no usable field `{field}`")]
    Field {
        /// The message's name.
        message: &'static str,
        /// The field.
        field: String,
    },
}

/// Reads fields of a message whose name was checked.
struct Fields<'a> {
    message: &'static str,
    structure: &'a gst::StructureRef,
}

impl<'a> Fields<'a> {
    fn of(structure: &'a gst::StructureRef, message: &'static str) -> Result<Self, WrongStructure> {
        if structure.name() == message {
            Ok(Self { message, structure })
        } else {
            Err(WrongStructure::Name {
                found: structure.name().to_string(),
                expected: message,
            })
        }
    }

    fn get<T: gst::glib::value::FromValue<'a>>(&self, field: &str) -> Result<T, WrongStructure> {
        self.structure
            .get(field)
            .map_err(|_| WrongStructure::Field {
                message: self.message,
                field: field.to_owned(),
            })
    }
}

/// `vmafxmotion-frame`: the scores of one frame, posted once, when they are final.
///
/// | field | type | is |
/// |---|---|---|
/// | `session`, `frame` | u64 | which frame |
/// | `motion`, `motion2`, `motion3` | f64 | its scores |
/// | `timestamp`, `stream-time`, `running-time`, `duration` | u64, ns | its times; `GST_CLOCK_TIME_NONE` where unknown |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameMessage {
    /// Number of the session.
    pub session: u64,
    /// Index and scores.
    pub score: FinalScore,
    /// When the frame is shown.
    pub times: FrameTimes,
}

impl FrameMessage {
    /// Name of the structure.
    pub const NAME: &str = "vmafxmotion-frame";
}

impl From<FrameMessage> for gst::Structure {
    fn from(message: FrameMessage) -> Self {
        let mut structure = gst::Structure::new_empty(FrameMessage::NAME);
        structure.set("session", message.session);
        structure.set("frame", message.score.frame);
        structure.set("motion", message.score.motion);
        structure.set("motion2", message.score.motion2);
        structure.set("motion3", message.score.motion3);
        message.times.write(&mut structure);
        structure
    }
}

impl TryFrom<&gst::StructureRef> for FrameMessage {
    type Error = WrongStructure;

    fn try_from(structure: &gst::StructureRef) -> Result<Self, WrongStructure> {
        let fields = Fields::of(structure, Self::NAME)?;
        Ok(Self {
            session: fields.get("session")?,
            score: FinalScore {
                frame: fields.get("frame")?,
                motion: fields.get("motion")?,
                motion2: fields.get("motion2")?,
                motion3: fields.get("motion3")?,
            },
            times: FrameTimes::read(structure),
        })
    }
}

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

#[cfg(test)]
mod tests {
    use gst::ClockTime;

    use super::*;

    const TIMES: FrameTimes = FrameTimes {
        timestamp: Some(ClockTime::from_seconds(3)),
        stream_time: Some(ClockTime::from_seconds(2)),
        running_time: None,
        duration: Some(ClockTime::from_mseconds(40)),
    };

    #[test]
    fn frame_message_reads_back() {
        gst::init().unwrap();
        let message = FrameMessage {
            session: 1,
            score: FinalScore {
                frame: 7,
                motion: 0.1,
                motion2: 0.2,
                motion3: 0.3,
            },
            times: TIMES,
        };
        let structure = gst::Structure::from(message);
        assert_eq!(FrameMessage::try_from(structure.as_ref()), Ok(message));
        assert_eq!(structure.get::<u64>("frame"), Ok(7));
        assert_eq!(structure.get::<u64>("timestamp"), Ok(3_000_000_000));
        assert_eq!(structure.get::<u64>("running-time"), Ok(u64::MAX));
    }

    #[test]
    fn summary_message_reads_back() {
        gst::init().unwrap();
        let feature = |mean| FeatureSummary {
            min: 0.0,
            max: 9.0,
            mean,
            harmonic_mean: 0.5,
        };
        let message = SummaryMessage {
            session: 2,
            n_frames: 25,
            frames_without_timestamp: 1,
            discontinuities: 4,
            features: [feature(1.0), feature(2.0), feature(3.0)],
            times: TIMES,
        };
        let structure = gst::Structure::from(&message);
        assert_eq!(structure.get::<f64>("motion3.mean"), Ok(3.0));
        assert_eq!(SummaryMessage::try_from(structure.as_ref()), Ok(message));
    }

    #[test]
    fn wrong_structures_are_named() {
        gst::init().unwrap();
        let other = gst::Structure::new_empty("other");
        let error = FrameMessage::try_from(other.as_ref()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "structure `other` is not a `vmafxmotion-frame`"
        );
        let empty = gst::Structure::new_empty(SummaryMessage::NAME);
        let error = SummaryMessage::try_from(empty.as_ref()).unwrap_err();
        assert!(error.to_string().contains("has no usable field"), "{error}");
    }
}
