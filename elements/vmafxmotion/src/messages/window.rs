// SPDX-License-Identifier: MPL-2.0

//! The message of a window.

use gst::ClockTime;
use vmaf_motion::pool::{Feature, Method, Pooled, pooled_name};
use vmaf_motion::windows::Failure;

use super::{Fields, WrongStructure};
use crate::times::FrameTimes;

/// `vmafxmotion-window`: pooled scores over a range of frames, given once, when all of them are
/// final. The action signal `poll-window` answers with the same structure.
///
/// | field | type | is |
/// |---|---|---|
/// | `session` | u64 | which session |
/// | `window` | u64 | number of the window, or the id that `submit-window` gave |
/// | `submitted` | bool | it was asked for; else it was cut by `n-stats` or `n-stats-frames` |
/// | `state` | string | `complete` or `failed`; from `poll-window` also `pending` and `unknown` |
/// | `first`, `last` | u64 | its frames, both included |
/// | `start`, `end` | u64, ns | by `n-stats` the bounds of the window, else the start of its first and the end of its last frame |
/// | `n-frames`, `n-scored` | u64 | frames pooled over, and those of them that `n-subsample` scores |
/// | `partial` | bool | the stream ended (or its time went back) inside the window |
/// | `motion.min`, `motion2.mean`, `motion3.perc5`, ... | f64 | feature and method; the methods that `pool` names |
/// | `reason`, `message` | string | of a failed window: `range`, `not-found` or `ended`, and a sentence |
/// | `timestamp`, `stream-time`, `running-time`, `duration` | u64, ns | times of its first frame; duration from there to the end of its last |
#[derive(Debug, Clone, PartialEq)]
pub struct WindowMessage {
    /// Number of the session.
    pub session: u64,
    /// Number or id of the window.
    pub window: u64,
    /// Whether it was asked for by `submit-window`.
    pub submitted: bool,
    /// First frame.
    pub first: u64,
    /// Last frame, included.
    pub last: u64,
    /// Start of the window.
    pub start: Option<ClockTime>,
    /// End of the window.
    pub end: Option<ClockTime>,
    /// Frames pooled over.
    pub n_frames: u64,
    /// Frames among them that are scored.
    pub n_scored: u64,
    /// The stream ended inside the window.
    pub partial: bool,
    /// The pooled scores, or why there are none.
    pub outcome: Result<WindowScores, WindowFailure>,
    /// Times of the first frame; the duration is the window's.
    pub times: FrameTimes,
}

/// Pooled scores of a window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WindowScores([[Option<f64>; 8]; 3]);

impl WindowScores {
    /// One pooled score; `None` where the method was not asked for.
    pub fn get(&self, feature: Feature, method: Method) -> Option<f64> {
        self.0[feature as usize][method as usize - 1]
    }

    /// Names (`motion2.mean`) and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        Feature::ALL.into_iter().flat_map(move |feature| {
            Method::ALL.into_iter().filter_map(move |method| {
                Some((pooled_name(feature, method), self.get(feature, method)?))
            })
        })
    }

    fn collect(get: impl Fn(Feature, Method) -> Option<f64>) -> Self {
        Self(Feature::ALL.map(|feature| Method::ALL.map(|method| get(feature, method))))
    }
}

impl From<Pooled> for WindowScores {
    fn from(pooled: Pooled) -> Self {
        Self::collect(|feature, method| pooled.get(feature, method))
    }
}

/// Why a window has no scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowFailure {
    /// `range`, `not-found` or `ended`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl From<Failure> for WindowFailure {
    fn from(failure: Failure) -> Self {
        Self {
            reason: failure.reason().to_owned(),
            message: failure.to_string(),
        }
    }
}

impl WindowMessage {
    /// Name of the structure.
    pub const NAME: &str = "vmafxmotion-window";
}

impl From<&WindowMessage> for gst::Structure {
    fn from(message: &WindowMessage) -> Self {
        let mut structure = gst::Structure::new_empty(WindowMessage::NAME);
        structure.set("session", message.session);
        structure.set("window", message.window);
        structure.set("submitted", message.submitted);
        structure.set(
            "state",
            if message.outcome.is_ok() {
                "complete"
            } else {
                "failed"
            },
        );
        structure.set("first", message.first);
        structure.set("last", message.last);
        structure.set("start", message.start);
        structure.set("end", message.end);
        structure.set("n-frames", message.n_frames);
        structure.set("n-scored", message.n_scored);
        structure.set("partial", message.partial);
        match &message.outcome {
            Ok(scores) => scores
                .iter()
                .for_each(|(name, value)| structure.set(name, value)),
            Err(failure) => {
                structure.set("reason", failure.reason.as_str());
                structure.set("message", failure.message.as_str());
            }
        }
        message.times.write(&mut structure);
        structure
    }
}

impl TryFrom<&gst::StructureRef> for WindowMessage {
    type Error = WrongStructure;

    fn try_from(structure: &gst::StructureRef) -> Result<Self, WrongStructure> {
        let fields = Fields::of(structure, Self::NAME)?;
        let outcome = match fields.get::<&str>("state")? {
            "complete" => Ok(WindowScores::collect(|feature, method| {
                structure.get(pooled_name(feature, method)).ok()
            })),
            "failed" => Err(WindowFailure {
                reason: fields.get("reason")?,
                message: fields.get("message")?,
            }),
            _ => return Err(fields.unusable("state")),
        };
        Ok(Self {
            session: fields.get("session")?,
            window: fields.get("window")?,
            submitted: fields.get("submitted")?,
            first: fields.get("first")?,
            last: fields.get("last")?,
            start: fields.get("start")?,
            end: fields.get("end")?,
            n_frames: fields.get("n-frames")?,
            n_scored: fields.get("n-scored")?,
            partial: fields.get("partial")?,
            outcome,
            times: FrameTimes::read(structure),
        })
    }
}
