// SPDX-License-Identifier: MPL-2.0

//! The element messages on the bus, as Rust types.

mod frame;
mod summary;
mod window;

use thiserror::Error;

pub use frame::FrameMessage;
pub use summary::{FeatureSummary, SummaryMessage};
pub use window::{WindowFailure, WindowMessage, WindowScores};

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
pub(crate) struct Fields<'a> {
    message: &'static str,
    structure: &'a gst::StructureRef,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(
        structure: &'a gst::StructureRef,
        message: &'static str,
    ) -> Result<Self, WrongStructure> {
        if structure.name() == message {
            Ok(Self { message, structure })
        } else {
            Err(WrongStructure::Name {
                found: structure.name().to_string(),
                expected: message,
            })
        }
    }

    pub(crate) fn get<T: gst::glib::value::FromValue<'a>>(
        &self,
        field: &str,
    ) -> Result<T, WrongStructure> {
        self.structure.get(field).map_err(|_| self.unusable(field))
    }

    fn unusable(&self, field: &str) -> WrongStructure {
        WrongStructure::Field {
            message: self.message,
            field: field.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use gst::ClockTime;
    use vmaf_motion::FinalScore;
    use vmaf_motion::pool::{Methods, pool};

    use super::*;
    use crate::times::FrameTimes;

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
    fn window_message_reads_back() {
        gst::init().unwrap();
        let pooled = pool(&[[0.5, 1.0, 2.0], [1.5, 1.0, 3.0]], Methods::ALL).unwrap();
        let message = |outcome| WindowMessage {
            session: 2,
            window: 7,
            submitted: true,
            first: 3,
            last: 4,
            start: Some(ClockTime::from_mseconds(120)),
            end: None,
            n_frames: 2,
            n_scored: 2,
            partial: false,
            outcome,
            times: TIMES,
        };
        let complete = message(Ok(pooled.into()));
        let structure = gst::Structure::from(&complete);
        assert_eq!(structure.get::<f64>("motion3.mean"), Ok(2.5));
        assert_eq!(WindowMessage::try_from(structure.as_ref()), Ok(complete));
        let failed = message(Err(WindowFailure {
            reason: "range".to_owned(),
            message: "too late".to_owned(),
        }));
        let structure = gst::Structure::from(&failed);
        assert_eq!(WindowMessage::try_from(structure.as_ref()), Ok(failed));
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
