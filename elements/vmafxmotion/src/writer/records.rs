// SPDX-License-Identifier: MPL-2.0

//! What the element knows, as lines of the score file.

use score_records::{Frame, Header, Record, SCHEMA, Summary};
use vmaf_motion::options::{OptionValue, feature_names};
use vmaf_motion::{Extractor, MotionOptions};

use crate::messages::{FrameMessage, SummaryMessage};
use crate::picture::Layout;

/// The line that starts a session.
pub(crate) fn header(session: u64, layout: &Layout, options: &MotionOptions) -> Record {
    let values = options.values().map(|(name, value)| {
        let value = match value {
            OptionValue::Bool(value) => value.into(),
            OptionValue::Number(value) => value.into(),
            OptionValue::Integer(value) => value.into(),
        };
        (name.replace('_', "-"), value)
    });
    let names = feature_names(options).into_iter();
    Record::Header(Header {
        schema: SCHEMA,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        extractor: match options.extractor {
            Extractor::Integer => "integer",
            Extractor::Float => "float",
        }
        .to_owned(),
        options: values.collect(),
        feature_names: names
            .map(|name| (name.output.to_owned(), name.collector))
            .collect(),
        format: layout.info().format().to_str().to_string(),
        width: layout.info().width(),
        height: layout.info().height(),
        depth: layout.geometry().format().depth(),
        session,
    })
}

/// The line of a frame.
pub(crate) fn frame(message: &FrameMessage) -> Frame {
    Frame {
        frame: message.score.frame,
        timestamp: message.times.timestamp.map(gst::ClockTime::nseconds),
        motion: message.score.motion,
        motion2: message.score.motion2,
        motion3: message.score.motion3,
    }
}

/// The line that ends a session.
pub(crate) fn summary(message: &SummaryMessage) -> Record {
    let time = |time: Option<gst::ClockTime>| time.map(gst::ClockTime::nseconds).into();
    let counts = message
        .counts()
        .map(|(name, count)| (name.to_owned(), count.into()));
    let pooled = message.pooled().map(|(name, value)| (name, value.into()));
    let times = [
        ("timestamp".to_owned(), time(message.times.timestamp)),
        ("duration".to_owned(), time(message.times.duration)),
    ];
    Record::Summary(Summary {
        values: counts.into_iter().chain(pooled).chain(times).collect(),
    })
}
