// SPDX-License-Identifier: MPL-2.0

//! The pipeline that is run: from an address, or as someone wrote it.

use std::path::PathBuf;
use std::time::Duration;

use gst::prelude::*;

use crate::failure::Failure;

/// What is scored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// The first video stream of an address.
    Uri {
        uri: String,
        window: Duration,
        scores: Option<PathBuf>,
        sync: bool,
    },
    /// A pipeline in the words of gst-launch-1.0.
    Launch(String),
}

impl Source {
    /// What it is, for a page; without what stands for a user's name and password.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Uri { uri, .. } => without_credentials(uri),
            Self::Launch(text) => text
                .split_whitespace()
                .map(without_credentials)
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

fn without_credentials(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => uri.to_owned(),
    }
}

/// A pipeline with its scoring element.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) pipeline: gst::Pipeline,
    pub(super) motion: gst::Element,
}

/// Builds it; nothing runs yet.
pub(super) fn build(source: &Source) -> Result<Built, Failure> {
    // Without it both forms fail, and not in a way that says why.
    if gst::ElementFactory::find("vmafxmotion").is_none() {
        return Err(missing("vmafxmotion"));
    }
    match source {
        Source::Uri {
            uri,
            window,
            scores,
            sync,
        } => from_uri(uri, *window, scores.as_ref(), *sync),
        Source::Launch(text) => from_text(text),
    }
}

fn from_text(text: &str) -> Result<Built, Failure> {
    let flags = gst::ParseFlags::FATAL_ERRORS | gst::ParseFlags::PLACE_IN_BIN;
    let parsed = gst::parse::launch_full(text, None, flags)
        .map_err(|error| Failure::Setup(format!("--launch: {}", error.message())))?;
    let pipeline = match parsed.downcast::<gst::Pipeline>() {
        Ok(pipeline) => pipeline,
        Err(element) => {
            let pipeline = gst::Pipeline::new();
            let added = pipeline.add(&element);
            added.map_err(|error| Failure::Setup(format!("--launch: {error}")))?;
            pipeline
        }
    };
    let mut scoring = Vec::new();
    let walked = pipeline.iterate_recurse().foreach(|element| {
        if element
            .factory()
            .is_some_and(|factory| factory.name() == "vmafxmotion")
        {
            scoring.push(element);
        }
    });
    walked.map_err(|error| Failure::Setup(format!("--launch: {error}")))?;
    match (scoring.pop(), scoring.len()) {
        (Some(motion), 0) => Ok(Built { pipeline, motion }),
        (None, _) => Err(Failure::Setup(
            "--launch: no vmafxmotion in the pipeline, so there is nothing to show".to_owned(),
        )),
        (Some(_), more) => Err(Failure::Setup(format!(
            "--launch: {} vmafxmotion in the pipeline, but one page shows the scores of one",
            more + 1
        ))),
    }
}

fn from_uri(
    uri: &str,
    window: Duration,
    scores: Option<&PathBuf>,
    sync: bool,
) -> Result<Built, Failure> {
    if !has_scheme(uri) {
        return Err(Failure::Setup(format!(
            "--uri: {uri:?} is no address such as file:///tmp/film.mp4 or rtsp://host/stream"
        )));
    }
    let decode = make("uridecodebin")?;
    let queue = make("queue")?;
    let convert = make("videoconvert")?;
    let motion = make("vmafxmotion")?;
    let sink = make("fakesink")?;
    decode.set_property("uri", uri);
    leave_other_streams(&decode);
    motion.set_property("n-stats", window.as_secs_f64());
    if let Some(scores) = scores {
        motion.set_property("scores-path", scores);
    }
    sink.set_property("sync", sync);
    let pipeline = gst::Pipeline::new();
    pipeline
        .add_many([&decode, &queue, &convert, &motion, &sink])
        .and_then(|()| gst::Element::link_many([&queue, &convert, &motion, &sink]))
        .map_err(|error| Failure::Setup(error.to_string()))?;
    link_first_video(&pipeline, &decode, &queue);
    Ok(Built { pipeline, motion })
}

/// RFC 3986, section 3.1.
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// Only video is scored; the rest is not even decoded.
fn leave_other_streams(decode: &gst::Element) {
    decode.connect("autoplug-continue", false, |values| {
        let caps = values
            .get(2)
            .and_then(|value| value.get::<gst::Caps>().ok());
        let other = caps.is_some_and(|caps| {
            let kind = kind(&caps);
            ["audio/", "text/", "subpicture/"]
                .iter()
                .any(|other| kind.starts_with(other))
        });
        Some((!other).to_value())
    });
}

fn kind(caps: &gst::CapsRef) -> String {
    caps.structure(0)
        .map_or(String::new(), |structure| structure.name().to_string())
}

/// Links the first video stream that comes; what else comes ends in a sink of its own.
fn link_first_video(pipeline: &gst::Pipeline, decode: &gst::Element, queue: &gst::Element) {
    let weak = (pipeline.downgrade(), queue.downgrade());
    decode.connect_pad_added(move |_, pad| {
        let (Some(pipeline), Some(queue)) = (weak.0.upgrade(), weak.1.upgrade()) else {
            return;
        };
        let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
        let free = queue.static_pad("sink").filter(|sink| !sink.is_linked());
        let target = match free {
            Some(sink) if kind(&caps).starts_with("video/") => Some(sink),
            _ => discard(&pipeline),
        };
        let linked = target.map(|target| pad.link(&target));
        if let Some(Err(error)) = linked {
            gst::element_error!(
                pipeline,
                gst::CoreError::Pad,
                ("cannot link a stream: {error}")
            );
        }
    });
    let weak = (pipeline.downgrade(), queue.downgrade());
    decode.connect_no_more_pads(move |_| {
        let (Some(pipeline), Some(queue)) = (weak.0.upgrade(), weak.1.upgrade()) else {
            return;
        };
        let linked = queue
            .static_pad("sink")
            .is_some_and(|sink| sink.is_linked());
        if !linked {
            gst::element_error!(
                pipeline,
                gst::StreamError::WrongType,
                ("there is no video in it that can be decoded")
            );
        }
    });
}

fn discard(pipeline: &gst::Pipeline) -> Option<gst::Pad> {
    let sink = gst::ElementFactory::make("fakesink")
        .property("async", false)
        .build()
        .ok()?;
    pipeline.add(&sink).ok()?;
    sink.sync_state_with_parent().ok()?;
    sink.static_pad("sink")
}

fn make(factory: &str) -> Result<gst::Element, Failure> {
    gst::ElementFactory::make(factory)
        .build()
        .map_err(|_| missing(factory))
}

fn missing(factory: &str) -> Failure {
    Failure::Setup(format!(
        "GStreamer has no element {factory}: is its plugin installed, and does GST_PLUGIN_PATH name its folder?"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_keep_passwords_to_themselves() {
        for (uri, shown) in [
            ("rtsp://me:secret@cam.lan/1?a=b@c", "rtsp://cam.lan/1?a=b@c"),
            ("file:///tmp/a@b.mp4", "file:///tmp/a@b.mp4"),
            ("srt://host:9000?mode=caller", "srt://host:9000?mode=caller"),
        ] {
            assert_eq!(without_credentials(uri), shown);
        }
        let launch = Source::Launch("rtspsrc location=rtsp://me:x@cam ! fakesink".to_owned());
        assert_eq!(launch.title(), "rtspsrc location=rtsp://cam ! fakesink");
    }
}
