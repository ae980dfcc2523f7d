// SPDX-License-Identifier: MPL-2.0

//! The lines of a score file, schema 1.
//!
//! A file holds one session after the other: a header line, then frame and window lines in stream
//! order, then a summary line. A session that was cut short has no summary. Names are those of the
//! element's messages; times are integer nanoseconds or `null`; doubles read back to the bits that
//! were written, which needs `serde_json`'s `float_roundtrip`. Unknown fields and unknown line
//! types are passed over, so that a later version may add some.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the format these types speak.
pub const SCHEMA: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Record {
    /// Starts a session.
    Header(Header),
    /// Final scores of one frame.
    Frame(Frame),
    /// Pooled scores of a run of frames.
    Window(Window),
    /// Ends a session.
    Summary(Summary),
    /// A type of line this version does not know.
    #[serde(other)]
    Unknown,
}

/// What the session's scores are scores of, and how they were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Header {
    /// Version of the format; see [`SCHEMA`].
    pub schema: u32,
    /// Version of the element that wrote the file.
    #[serde(default)]
    pub version: Option<String>,
    /// `integer` or `float`.
    pub extractor: String,
    /// The element's motion options by the names of its properties.
    #[serde(default)]
    pub options: BTreeMap<String, Value>,
    /// `motion`, `motion2`, `motion3` to the keys of libvmaf's feature collector for these options.
    #[serde(default)]
    pub feature_names: BTreeMap<String, String>,
    /// GStreamer's name of the raw video format, such as `I420_10LE`.
    pub format: String,
    /// Luma width in pixels.
    pub width: u32,
    /// Luma height in pixels.
    pub height: u32,
    /// Bits a luma sample.
    pub depth: u32,
    /// Number of the session.
    pub session: u64,
    /// How the stream lies in its film and is cut into windows.
    #[serde(default, flatten)]
    pub cutting: Cutting,
}

/// Which frames of a film were scored, and the windows they are pooled in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Cutting {
    /// Index of the first reported frame.
    pub first_frame: u64,
    /// Frames before it that only fed it.
    pub preroll_frames: u64,
    /// Frames after the last reported one that only fed it.
    pub postroll_frames: u64,
    /// Length of a window in seconds; 0 for none.
    pub n_stats: f64,
    /// Length of a window in frames; 0 for none.
    pub n_stats_frames: u64,
    /// Windows and summary pool the frames whose index is a multiple of this; 0 stands for 1.
    pub n_subsample: u64,
    /// The methods of windows.
    pub pool: Vec<String>,
}

impl Header {
    /// Whether frames are compared with the last but one, so that one cut shows in two frames.
    #[must_use]
    pub fn five_frame_window(&self) -> bool {
        self.options.get("motion-five-frame-window") == Some(&Value::Bool(true))
    }
}

/// Final scores of one frame.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// Index in the session, from 0.
    pub frame: u64,
    /// Presentation time, ns.
    #[serde(default)]
    pub timestamp: Option<u64>,
    /// Difference to the frame before (the last but one with the five-frame window).
    pub motion: f64,
    /// The smaller of this frame's and the next frame's motion.
    pub motion2: f64,
    /// `motion2` blended, capped and averaged as the options say.
    pub motion3: f64,
}

/// Pooled scores of the frames `first` to `last`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Window {
    /// Number of the window in its session, from 0; the id of one that was asked for.
    pub window: u64,
    /// It was asked for; else the stream was cut into it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub submitted: bool,
    /// First frame.
    pub first: u64,
    /// Last frame, included.
    pub last: u64,
    /// Start of the window, ns.
    #[serde(default)]
    pub start: Option<u64>,
    /// End of the window, ns, excluded.
    #[serde(default)]
    pub end: Option<u64>,
    /// Frames pooled over.
    pub n_frames: u64,
    /// Frames among them that carry a score.
    pub n_scored: u64,
    /// The stream ended inside the window.
    #[serde(default)]
    pub partial: bool,
    /// Why there are no values: `range`, `not-found` or `ended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `FEATURE.METHOD`, such as `motion2.mean`, to its value.
    #[serde(flatten)]
    pub values: BTreeMap<String, Value>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Counts and pooled scores of a whole session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Counts (`n-frames`, `discontinuities`, ...) and `FEATURE.METHOD` values.
    #[serde(flatten)]
    pub values: BTreeMap<String, Value>,
}

impl Summary {
    /// The count named `name`, if the line has it.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        self.values.get(name).and_then(Value::as_u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Record {
        serde_json::from_str(line).expect("a valid line")
    }

    #[test]
    fn doubles_keep_their_bits() {
        // The tagged enum buffers a line before it knows its type: the bits must survive that too.
        for bits in [
            0x3ff0_0000_0000_0001_u64,
            0x4052_4f5c_28f5_c28f,
            0x3fb9_9999_9999_999a,
            0x0000_0000_0000_0001,
            0x404b_d80c_49ba_5e35,
        ] {
            let value = f64::from_bits(bits);
            let frame = Frame {
                frame: 7,
                timestamp: Some(u64::MAX),
                motion: value,
                motion2: value,
                motion3: value,
            };
            let line = serde_json::to_string(&Record::Frame(frame.clone())).expect("serialises");
            let Record::Frame(back) = parse(&line) else {
                panic!("{line} is a frame line");
            };
            assert_eq!(back.motion.to_bits(), bits, "{line}");
            assert_eq!(back, frame);
        }
    }

    #[test]
    fn a_missing_timestamp_is_none() {
        let line = r#"{"type":"frame","frame":0,"timestamp":null,"motion":0.0,"motion2":0,"motion3":1.5,"later":[1]}"#;
        let Record::Frame(frame) = parse(line) else {
            panic!("{line} is a frame line");
        };
        assert_eq!(frame.timestamp, None);
        assert_eq!(frame.motion3, 1.5);
    }

    #[test]
    fn windows_and_summaries_carry_their_values() {
        let line = r#"{"type":"window","window":0,"first":0,"last":24,"start":0,"end":1000000000,"n-frames":25,"n-scored":25,"partial":false,"motion2.mean":0.1}"#;
        let Record::Window(window) = parse(line) else {
            panic!("{line} is a window line");
        };
        assert_eq!((window.first, window.last, window.n_frames), (0, 24, 25));
        assert_eq!(window.values["motion2.mean"].as_f64(), Some(0.1));

        let line = r#"{"type":"summary","session":0,"n-frames":25,"motion2.max":3.5}"#;
        let Record::Summary(summary) = parse(line) else {
            panic!("{line} is a summary line");
        };
        assert_eq!(summary.count("n-frames"), Some(25));
        assert_eq!(summary.count("motion2.max"), None);
    }

    #[test]
    fn unknown_types_are_passed_over() {
        assert_eq!(parse(r#"{"type":"note","text":"x"}"#), Record::Unknown);
    }
}
