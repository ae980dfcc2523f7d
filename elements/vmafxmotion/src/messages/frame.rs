// SPDX-License-Identifier: MPL-2.0

//! The message of a frame.

use vmaf_motion::FinalScore;

use super::{Fields, WrongStructure};
use crate::times::FrameTimes;

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
