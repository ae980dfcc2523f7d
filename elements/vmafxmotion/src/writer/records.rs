// SPDX-License-Identifier: MPL-2.0

//! What the element knows, as lines of the score file.

use score_records::{Cutting, Frame, Header, Record, SCHEMA, Summary, Window};
use vmaf_motion::Extractor;
use vmaf_motion::clock::Cut;
use vmaf_motion::options::{OptionValue, feature_names};

use crate::messages::{FrameMessage, SummaryMessage, WindowMessage};
use crate::picture::Layout;
use crate::session::Plan;

/// The line that starts a session.
pub(crate) fn header(session: u64, layout: &Layout, plan: &Plan) -> Record {
    let options = &plan.options;
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
        cutting: cutting(plan),
    })
}

fn cutting(plan: &Plan) -> Cutting {
    let (n_stats, n_stats_frames) = match plan.windows.cut {
        None => (0.0, 0),
        Some(Cut::Time(length)) => (length.get() as f64 / 1e9, 0),
        Some(Cut::Frames(length)) => (0.0, length.get()),
    };
    Cutting {
        first_frame: plan.part.first_frame(),
        preroll_frames: plan.part.preroll(),
        postroll_frames: plan.part.postroll(),
        n_stats,
        n_stats_frames,
        n_subsample: plan.windows.n_subsample.get(),
        pool: plan
            .windows
            .methods
            .iter()
            .map(|method| method.name().to_owned())
            .collect(),
    }
}

/// The line of a frame.
impl From<&FrameMessage> for Frame {
    fn from(message: &FrameMessage) -> Self {
        Self {
            frame: message.score.frame,
            timestamp: message.times.timestamp.map(gst::ClockTime::nseconds),
            motion: message.score.motion,
            motion2: message.score.motion2,
            motion3: message.score.motion3,
        }
    }
}

/// The line of a window.
impl From<&WindowMessage> for Window {
    fn from(message: &WindowMessage) -> Self {
        let scores = message.outcome.as_ref().ok().into_iter();
        let values = scores.flat_map(|scores| {
            scores
                .iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
        });
        Self {
            window: message.window,
            submitted: message.submitted,
            first: message.first,
            last: message.last,
            start: message.start.map(gst::ClockTime::nseconds),
            end: message.end.map(gst::ClockTime::nseconds),
            n_frames: message.n_frames,
            n_scored: message.n_scored,
            partial: message.partial,
            reason: message
                .outcome
                .as_ref()
                .err()
                .map(|failure| failure.reason.clone()),
            values: values.collect(),
        }
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
