// SPDX-License-Identifier: MPL-2.0

//! `filesrc ! decodebin ! queue ! videoconvert ! vmafxmotion ! fakesink`, run to its end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use gst::prelude::*;

use crate::failure::{Failure, explain, missing_plugins};
use crate::progress::{Done, Progress};

/// The decoder that is preferred where it is installed.
pub(crate) const DECODER: &str = "vplretrydec";

/// How often progress is looked at.
const TICK: gst::ClockTime = gst::ClockTime::from_mseconds(100);
/// No presentation time has been seen yet.
const NO_TIME: u64 = u64::MAX;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// At the end of the stream.
    Done,
    /// By the user; what was scored until then is in the file.
    Interrupted,
}

/// The streams decodebin found.
#[derive(Debug, Default)]
struct Streams {
    video: u32,
    other: Vec<String>,
}

/// The pipeline and what its threads report.
pub(crate) struct Scoring {
    input: PathBuf,
    pipeline: gst::Pipeline,
    source: gst::Element,
    convert: gst::Element,
    streams: Arc<Mutex<Streams>>,
    frames: Arc<AtomicU64>,
    time: Arc<AtomicU64>,
}

impl Drop for Scoring {
    fn drop(&mut self) {
        // Going to NULL of a pipeline of these elements does not fail.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

impl Scoring {
    /// `framerate` gives timestamps to a stream that has none. `prefer`: decode with [`DECODER`] where it is
    /// installed.
    pub(crate) fn new(
        input: &Path,
        output: &Path,
        framerate: Option<u32>,
        prefer: bool,
    ) -> Result<Self, Failure> {
        let preferred = gst::ElementFactory::find(DECODER).map(|decoder| {
            decoder.set_rank(if prefer {
                gst::Rank::PRIMARY + 512
            } else {
                gst::Rank::NONE
            });
        });
        let source = make("filesrc")?;
        let decode = make("decodebin")?;
        let queue = make("queue")?;
        let convert = make("videoconvert")?;
        let motion = make("vmafxmotion")?;
        let sink = make("fakesink")?;
        source.set_property("location", input);
        // Pictures must lie in system memory to be scored. The preferred decoder counts as hardware, and
        // puts them there all the same.
        decode.set_property("force-sw-decoders", preferred.is_none() || !prefer);
        motion.set_property("scores-path", output);
        motion.set_property_from_str("messages", "summary");
        // Decoder and scores run side by side, and progress is that of the scores.
        queue.set_property("max-size-buffers", 4_u32);
        queue.set_property("max-size-bytes", 0_u32);
        queue.set_property("max-size-time", 0_u64);

        let pipeline = gst::Pipeline::new();
        let built = pipeline
            .add_many([&source, &decode, &queue, &convert, &motion, &sink])
            .and_then(|()| source.link(&decode))
            .and_then(|()| gst::Element::link_many([&queue, &convert, &motion, &sink]));
        built.map_err(|error| Failure::Setup(error.to_string()))?;

        let scoring = Self {
            input: input.to_owned(),
            pipeline,
            source,
            convert,
            streams: Arc::default(),
            frames: Arc::default(),
            time: Arc::new(AtomicU64::new(NO_TIME)),
        };
        scoring.pick_first_video(&decode, &queue);
        scoring.count_frames(&motion);
        if let Some(framerate) = framerate {
            give_timestamps(&scoring.convert, framerate);
        }
        Ok(scoring)
    }

    /// Links the first video stream; the others end undecoded in a sink of their own.
    fn pick_first_video(&self, decode: &gst::Element, queue: &gst::Element) {
        decode.connect("autoplug-continue", false, |values| {
            let caps = values.get(2).and_then(|v| v.get::<gst::Caps>().ok());
            let other = caps
                .as_ref()
                .and_then(|caps| caps.structure(0))
                .is_some_and(|s| is_other(s.name()));
            Some((!other).to_value())
        });

        let streams = self.streams.clone();
        let pipeline = self.pipeline.downgrade();
        let queue = queue.downgrade();
        decode.connect_pad_added(move |_, pad| {
            let (Some(pipeline), Some(queue)) = (pipeline.upgrade(), queue.upgrade()) else {
                return;
            };
            let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
            let name = caps
                .structure(0)
                .map_or(String::new(), |s| s.name().to_string());
            let first = {
                let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
                if name.starts_with("video/") {
                    streams.video += 1;
                    streams.video == 1
                } else {
                    streams.other.push(name);
                    false
                }
            };
            let sink = if first {
                queue.static_pad("sink")
            } else {
                discard(&pipeline)
            };
            if let Some(Err(error)) = sink.map(|sink| pad.link(&sink)) {
                gst::element_error!(pipeline, gst::CoreError::Pad, ("cannot link: {error}"));
            }
        });

        let streams = self.streams.clone();
        let pipeline = self.pipeline.downgrade();
        decode.connect_no_more_pads(move |_| {
            let none = streams.lock().unwrap_or_else(PoisonError::into_inner).video == 0;
            if let Some(pipeline) = pipeline.upgrade().filter(|_| none) {
                let note = gst::Structure::new_empty("no-video");
                // The bus refuses messages only while it goes down, when no one waits any more.
                let _ = pipeline.post_message(gst::message::Application::new(note));
            }
        });
    }

    fn count_frames(&self, motion: &gst::Element) {
        let (frames, time) = (self.frames.clone(), self.time.clone());
        if let Some(pad) = motion.static_pad("src") {
            pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                frames.fetch_add(1, Ordering::Relaxed);
                if let Some(pts) = info.buffer().and_then(|buffer| buffer.pts()) {
                    time.store(pts.nseconds(), Ordering::Relaxed);
                }
                gst::PadProbeReturn::Ok
            });
        }
    }

    /// Frames scored so far.
    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Size and format of the pictures, and what they were converted from if they were.
    pub(crate) fn formats(&self) -> String {
        let format = |pad: &str| {
            let caps = self.convert.static_pad(pad)?.current_caps()?;
            let s = caps.structure(0)?;
            Some((
                s.get::<String>("format").ok()?,
                s.get::<i32>("width").ok()?,
                s.get::<i32>("height").ok()?,
            ))
        };
        match (format("sink"), format("src")) {
            (Some((decoded, ..)), Some((scored, width, height))) if decoded != scored => {
                format!("{width}x{height} {scored} (converted from {decoded})")
            }
            (_, Some((scored, width, height))) => format!("{width}x{height} {scored}"),
            _ => "unknown format".to_owned(),
        }
    }

    /// How much of the file is scored, or read where no duration is known.
    fn done(&self) -> Option<Done> {
        let time = self.time.load(Ordering::Relaxed);
        let duration = self.pipeline.query_duration::<gst::ClockTime>();
        if let Some(duration) = duration.filter(|d| time != NO_TIME && !d.is_zero()) {
            return Some(Done::Scored(time as f64 / duration.nseconds() as f64));
        }
        let read = self.source.query_position::<gst::format::Bytes>()?;
        let size = self.source.query_duration::<gst::format::Bytes>()?;
        (*size > 0).then(|| Done::Read(*read as f64 / *size as f64))
    }

    /// Plays to the end, an error or an interrupt. `interrupts` counts the user's wishes to stop: the
    /// first ends the stream so that the scores so far are written out, a second does not wait.
    pub(crate) fn run(&self, interrupts: &AtomicU32) -> Result<Outcome, Failure> {
        let bus = self
            .pipeline
            .bus()
            .ok_or_else(|| Failure::Setup("the pipeline has no bus".to_owned()))?;
        let mut progress = Progress::new();
        let mut missing = Vec::new();
        let mut ended_early = false;
        if self.pipeline.set_state(gst::State::Playing).is_err() {
            let message = bus.pop_filtered(&[gst::MessageType::Error]);
            return Err(match message.as_ref().map(|message| message.view()) {
                Some(gst::MessageView::Error(error)) => self.error(error, &missing),
                _ => Failure::Setup("the pipeline does not start".to_owned()),
            });
        }
        loop {
            match interrupts.load(Ordering::Relaxed) {
                0 => (),
                1 if ended_early => (),
                1 => {
                    ended_early = true;
                    self.pipeline.send_event(gst::event::Eos::new());
                }
                _ => return Ok(Outcome::Interrupted),
            }
            if let Some(message) = bus.timed_pop(TICK) {
                use gst::MessageView;
                match message.view() {
                    MessageView::Eos(_) => break,
                    MessageView::Error(error) => return Err(self.error(error, &missing)),
                    MessageView::Warning(warning) => {
                        progress.say(&format!("warning: {}", warning.error().message()));
                    }
                    MessageView::Info(info) => progress.say(info.error().message()),
                    MessageView::Element(_) => missing.extend(missing_plugin(&message)),
                    MessageView::Application(_) => return Err(self.no_video(&missing)),
                    _ => (),
                }
            }
            progress.show(self.frames(), self.done());
        }
        Ok(if ended_early {
            Outcome::Interrupted
        } else {
            Outcome::Done
        })
    }

    fn no_video(&self, missing: &[String]) -> Failure {
        let other = &self
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .other;
        let reason = if missing.is_empty() {
            format!("no video stream in it, only {}", other.join(", "))
        } else {
            missing_plugins(missing)
        };
        Failure::Input {
            file: self.input.clone(),
            reason,
        }
    }

    fn error(&self, error: &gst::message::Error, missing: &[String]) -> Failure {
        let element = error
            .src()
            .map_or_else(|| "pipeline".to_owned(), |src| src.name().to_string());
        explain(
            &self.input,
            &element,
            &error.error(),
            error.debug().as_deref(),
            missing,
            self.frames(),
        )
    }
}

/// Numbers the frames that come without presentation time, as a raw stream's do.
fn give_timestamps(element: &gst::Element, framerate: u32) {
    let Some(pad) = element.static_pad("sink") else {
        return;
    };
    let count = AtomicU64::new(0);
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let frame = count.fetch_add(1, Ordering::Relaxed);
        let time = gst::ClockTime::SECOND.mul_div_floor(frame, framerate.into());
        match (info.buffer_mut(), time) {
            (Some(buffer), Some(time)) if buffer.pts().is_none() => {
                buffer.make_mut().set_pts(time);
            }
            _ => (),
        }
        gst::PadProbeReturn::Ok
    });
}

fn make(factory: &str) -> Result<gst::Element, Failure> {
    gst::ElementFactory::make(factory).build().map_err(|_| {
        Failure::Setup(format!(
            "GStreamer has no element {factory}: is its plugin installed, and is GST_PLUGIN_PATH set?"
        ))
    })
}

/// A stream beside the video, which need not be decoded.
fn is_other(caps: &str) -> bool {
    ["audio/", "text/", "subpicture/", "subtitle/"]
        .iter()
        .any(|kind| caps.starts_with(kind))
}

/// A sink for a stream no one looks at.
fn discard(pipeline: &gst::Pipeline) -> Option<gst::Pad> {
    let sink = gst::ElementFactory::make("fakesink")
        .property("sync", false)
        .property("async", false)
        .build()
        .ok()?;
    pipeline.add(&sink).ok()?;
    sink.sync_state_with_parent().ok()?;
    sink.static_pad("sink")
}

/// What a plugin is missing for, in the words of the message that says so.
fn missing_plugin(message: &gst::MessageRef) -> Option<String> {
    let structure = message.structure()?;
    if structure.name() != "missing-plugin" {
        return None;
    }
    structure.get::<String>("name").ok()
}
