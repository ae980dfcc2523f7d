// SPDX-License-Identifier: MPL-2.0

//! What pages are told, as it goes over the wire.

use std::collections::{BTreeMap, VecDeque};

use score_records::{Frame, Window};
use serde::ser::SerializeTuple;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// How far the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// No frame has come yet.
    #[default]
    Starting,
    /// Frames come.
    Running,
    /// The stream ended by itself.
    Ended,
    /// A signal ended it.
    Stopped,
    /// It failed; the reason is told with it.
    Failed,
}

impl Phase {
    /// Every phase with its name, for metrics.
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Starting, "starting"),
        (Self::Running, "running"),
        (Self::Ended, "ended"),
        (Self::Stopped, "stopped"),
        (Self::Failed, "failed"),
    ];

    /// Nothing more comes.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Stopped | Self::Failed)
    }
}

/// The pictures that are scored.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Video {
    /// GStreamer's name of the format.
    pub(crate) format: String,
    /// Luma width in pixels.
    pub(crate) width: u32,
    /// Luma height in pixels.
    pub(crate) height: u32,
    /// Frames a second as the stream says; `None` where it does not.
    pub(crate) framerate: Option<f64>,
}

/// A frame as pages get it: `[frame, timestamp, motion, motion2, motion3]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    frame: u64,
    timestamp: Option<u64>,
    scores: [f64; 3],
}

impl From<&Frame> for Row {
    fn from(frame: &Frame) -> Self {
        Self {
            frame: frame.frame,
            timestamp: frame.timestamp,
            scores: [frame.motion, frame.motion2, frame.motion3],
        }
    }
}

impl Row {
    /// motion, motion2 and motion3.
    pub(crate) fn scores(&self) -> [f64; 3] {
        self.scores
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_tuple(5)?;
        row.serialize_element(&self.frame)?;
        row.serialize_element(&self.timestamp)?;
        for score in &self.scores {
            row.serialize_element(score)?;
        }
        row.end()
    }
}

/// A window and the session it is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SessionWindow {
    pub(crate) session: u64,
    #[serde(flatten)]
    pub(crate) window: Window,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// Good to know.
    Info,
    /// Something went wrong and the stream goes on.
    Warning,
}

/// Something that happened, for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Note {
    /// Counts notes, so that a page knows one that it has already.
    pub(crate) number: u64,
    /// Milliseconds since the program started; of the newest where it is told more than once.
    pub(crate) at: u64,
    /// How often in a row.
    pub(crate) times: u64,
    pub(crate) level: Level,
    /// Who says so.
    pub(crate) from: String,
    /// A word for the kind of it: repeats of one kind are counted, not listed.
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// What a decoder says of itself, in the terms that all of them have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Counts {
    /// Frames put out.
    pub(crate) frames: u64,
    /// Calls that had to be repeated, or waits that ran out.
    pub(crate) retries: u64,
    /// Sessions or decoders that were replaced after a failure.
    pub(crate) recoveries: u64,
    /// Frames that came in and did not go out.
    pub(crate) dropped: u64,
    /// Frames with damage.
    pub(crate) corrupted: u64,
}

/// A video decoder in the pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Decoder {
    /// Name of the element.
    pub(crate) element: String,
    /// Its kind, such as `vplretrydec`.
    pub(crate) factory: String,
    /// The runtime behind it, where it says so.
    pub(crate) implementation: Option<String>,
    /// `None` for a decoder that does not count.
    pub(crate) counts: Option<Counts>,
    /// Everything it counts, by its own names.
    pub(crate) stats: BTreeMap<String, Value>,
}

/// How the pipeline does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Health {
    /// It keeps the pace of a live source.
    pub(crate) live: bool,
    /// Least latency of the pipeline as its elements report it, ms; of a live one.
    pub(crate) latency: Option<u64>,
    /// From when the newest scored frame was due to its scores, ms; of a live pipeline. Below 0 it came early.
    pub(crate) delay: Option<i64>,
    /// Frames that elements dropped because they were late.
    pub(crate) late: u64,
}

/// Counts since the program started, whatever was forgotten since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Totals {
    pub(crate) frames: u64,
    pub(crate) windows: u64,
    pub(crate) sessions: u64,
    pub(crate) warnings: u64,
    /// Frames that passed between two tellings faster than pages can be told.
    pub(crate) skipped: u64,
}

/// What pages are told: everything, or what is new.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct News {
    /// Milliseconds since the program started.
    pub(crate) at: u64,
    pub(crate) phase: Phase,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// A session began; frames that were shown before are of another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<u64>,
    /// Timestamp of the session's first frame, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) video: Option<Video>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) frames: VecDeque<Row>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) windows: VecDeque<SessionWindow>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) notes: VecDeque<Note>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decoders: Option<Vec<Decoder>>,
    pub(crate) health: Health,
    pub(crate) totals: Totals,
}
