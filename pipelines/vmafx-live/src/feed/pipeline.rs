// SPDX-License-Identifier: MPL-2.0

//! Runs a pipeline and reads its bus, so that it never grows and never waits.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gst::MessageView;
use gst::prelude::*;
use score_records::{Frame, Window};
use vmafxmotion::{FrameMessage, SummaryMessage, WindowMessage};

use super::build::{Built, Source, build};
use super::structure::to_line;
use super::{Outcome, Stop, decoders};
use crate::failure::{Failure, of_error};
use crate::hub::Hub;
use crate::news::{Level, Phase, Video};

/// How long the bus is waited for before a stop is looked for.
const TICK: gst::ClockTime = gst::ClockTime::from_mseconds(20);
/// How often sources are told to end: one that has only begun to start forgets it.
const AGAIN: Duration = Duration::from_millis(500);
/// How often decoders and latency are asked.
const LOOK: Duration = Duration::from_millis(500);

/// Runs `source` to its end, or to the end of its stream where a stop is asked for: then everything that
/// was scored is written, within `stop_timeout`.
pub(crate) fn run_pipeline(
    source: &Source,
    hub: &Hub,
    stop: &Stop,
    stop_timeout: Duration,
) -> Outcome {
    gst::init().map_err(|error| Failure::Setup(error.to_string()))?;
    let built = build(source)?;
    let mut run = Run::new(&built, hub);
    let outcome = run.play(stop, stop_timeout);
    // What waits for its turn on the bus was posted before the end.
    run.drain();
    run.look();
    // Going to NULL of a pipeline does not fail; the decoders' own deadlines bound it.
    let _ = built.pipeline.set_state(gst::State::Null);
    run.drain();
    outcome
}

struct Run<'a> {
    built: &'a Built,
    bus: gst::Bus,
    hub: &'a Hub,
    session: Option<u64>,
    frames: u64,
    /// Names of what GStreamer has no plugin for.
    missing: Vec<String>,
    /// Late frames by the elements that dropped them.
    late: BTreeMap<String, u64>,
    /// The pipeline keeps the pace of a live source, as it said when it was last asked.
    live: bool,
    looked: Instant,
}

impl<'a> Run<'a> {
    fn new(built: &'a Built, hub: &'a Hub) -> Self {
        let pipeline: &gst::Element = built.pipeline.upcast_ref();
        Self {
            built,
            // A pipeline has a bus as long as it lives.
            bus: pipeline.bus().unwrap_or_default(),
            hub,
            session: None,
            frames: 0,
            missing: Vec::new(),
            late: BTreeMap::new(),
            live: false,
            looked: Instant::now(),
        }
    }

    fn play(&mut self, stop: &Stop, stop_timeout: Duration) -> Outcome {
        let pipeline = &self.built.pipeline;
        if let Err(error) = pipeline.set_state(gst::State::Playing) {
            // Why stands on the bus.
            return Err(self
                .drain()
                .unwrap_or_else(|| Failure::Pipeline(error.to_string())));
        }
        let mut asked: Option<Instant> = None;
        let mut told: Option<Instant> = None;
        loop {
            if let Some(message) = self.bus.timed_pop(TICK) {
                match self.take(&message)? {
                    Next::GoOn => (),
                    Next::Ended if asked.is_some() => return Ok(Phase::Stopped),
                    Next::Ended => return Ok(Phase::Ended),
                }
            }
            if stop.is_asked() && told.is_none_or(|told| told.elapsed() >= AGAIN) {
                asked.get_or_insert_with(Instant::now);
                told = Some(Instant::now());
                // Sources may take their time over it, and the bus must be read meanwhile.
                pipeline.call_async(|pipeline| {
                    pipeline.send_event(gst::event::Eos::new());
                });
            }
            if asked.is_some_and(|asked| asked.elapsed() > stop_timeout) {
                return Err(Failure::Stuck(stop_timeout));
            }
            if self.looked.elapsed() >= LOOK {
                self.look();
            }
        }
    }

    /// Takes everything that is on the bus; the first failure among it.
    fn drain(&mut self) -> Option<Failure> {
        let mut failure = None;
        while let Some(message) = self.bus.pop() {
            if let Err(error) = self.take(&message) {
                failure.get_or_insert(error);
            }
        }
        failure
    }

    fn take(&mut self, message: &gst::Message) -> Result<Next, Failure> {
        match message.view() {
            MessageView::Element(_) => self.element(message),
            MessageView::Eos(_) => return Ok(Next::Ended),
            MessageView::Error(error) => {
                return Err(of_error(
                    &name(message),
                    &error.error(),
                    error.debug().as_deref(),
                    &self.missing,
                    self.frames,
                ));
            }
            MessageView::Warning(warning) => {
                let text = warning.error();
                self.hub.note(
                    Level::Warning,
                    &name(message),
                    text.message(),
                    text.message(),
                );
            }
            MessageView::Qos(qos) => self.qos(&name(message), qos),
            MessageView::Latency(_) => {
                // Fails only where the pipeline goes down; then there is no latency to keep.
                let _ = self.built.pipeline.recalculate_latency();
            }
            MessageView::ClockLost(_) => self.restart_clock(),
            _ => (),
        }
        Ok(Next::GoOn)
    }

    /// A clock that went with its device is replaced by one that runs.
    fn restart_clock(&self) {
        let pipeline = &self.built.pipeline;
        for state in [gst::State::Paused, gst::State::Playing] {
            if let Err(error) = pipeline.set_state(state) {
                self.hub
                    .note(Level::Warning, "pipeline", "clock", &error.to_string());
            }
        }
    }

    fn element(&mut self, message: &gst::Message) {
        let Some(structure) = message.structure() else {
            return;
        };
        match structure.name().as_str() {
            FrameMessage::NAME => {
                if let Ok(frame) = FrameMessage::try_from(structure) {
                    self.frame(&frame);
                }
            }
            WindowMessage::NAME => {
                if let Ok(window) = WindowMessage::try_from(structure) {
                    self.begin(window.session);
                    let session = window.session;
                    let window = Window::from(&window);
                    self.hub.update(|state| state.window(session, window));
                }
            }
            SummaryMessage::NAME => {
                if let Ok(summary) = SummaryMessage::try_from(structure) {
                    self.begin(summary.session);
                    let text = format!(
                        "session {} ended after {} frames, motion2 mean {:.4}",
                        summary.session, summary.n_frames, summary.features[1].mean
                    );
                    self.hub.note(Level::Info, &name(message), "summary", &text);
                }
            }
            "missing-plugin" => {
                let missing = structure.get::<String>("name");
                self.missing.extend(missing);
            }
            // One a frame, which say nothing to people.
            "nvdecringdec-frame" => (),
            kind if is_decoder_message(kind) => {
                let (_, kind) = kind.split_once('-').unwrap_or(("", kind));
                let text = to_line(structure);
                self.hub.note(
                    Level::Warning,
                    &name(message),
                    kind,
                    &format!("{kind}: {text}"),
                );
            }
            _ => (),
        }
    }

    fn begin(&mut self, session: u64) {
        if self.session.replace(session) != Some(session) {
            self.hub.update(|state| state.begin_session(session));
            self.tell_video();
        }
    }

    fn frame(&mut self, message: &FrameMessage) {
        self.begin(message.session);
        self.frames += 1;
        let frame = Frame::from(message);
        let now = self.built.pipeline.current_running_time();
        let delay = match (now, message.times.running_time) {
            (Some(now), Some(due)) if self.live => {
                let milliseconds = |time: gst::ClockTime| i64::try_from(time.mseconds()).ok();
                milliseconds(now)
                    .zip(milliseconds(due))
                    .map(|(now, due)| now - due)
            }
            _ => None,
        };
        self.hub.update(|state| {
            state.frame(&frame);
            state.health(|health| health.delay = delay);
        });
    }

    fn qos(&mut self, element: &str, message: &gst::message::Qos) {
        let (_, dropped) = message.stats();
        let dropped = match dropped {
            gst::GenericFormattedValue::Buffers(Some(count)) => *count,
            gst::GenericFormattedValue::Default(Some(count)) => *count,
            _ => return,
        };
        self.late.insert(element.to_owned(), dropped);
        let late = self.late.values().sum();
        self.hub
            .update(|state| state.health(|health| health.late = late));
    }

    /// Asks decoders and pipeline how they are.
    fn look(&mut self) {
        self.looked = Instant::now();
        self.tell_video();
        let found = decoders::find(self.built.pipeline.upcast_ref());
        let decoders = found.iter().map(decoders::describe).collect();
        let mut query = gst::query::Latency::new();
        let latency = self
            .built
            .pipeline
            .query(&mut query)
            .then(|| query.result());
        if let Some((live, ..)) = latency {
            self.live = live;
        }
        self.hub.update(|state| {
            state.decoders(decoders);
            if let Some((live, least, _)) = latency {
                state.health(|health| {
                    health.live = live;
                    health.latency = live.then(|| least.mseconds());
                });
            }
        });
    }

    /// Size and format, as soon as the scoring element knows them.
    fn tell_video(&self) {
        let caps = self
            .built
            .motion
            .static_pad("sink")
            .and_then(|pad| pad.current_caps());
        let Some(video) = caps.as_ref().and_then(|caps| video(caps.structure(0)?)) else {
            return;
        };
        let text = format!("{}x{} {}", video.width, video.height, video.format);
        if self.hub.update(|state| state.video(video)) {
            self.hub
                .note(Level::Info, &self.built.motion.name(), "video", &text);
        }
    }
}

enum Next {
    GoOn,
    Ended,
}

fn name(message: &gst::Message) -> String {
    message
        .src()
        .map_or_else(|| "pipeline".to_owned(), |src| src.name().to_string())
}

fn is_decoder_message(name: &str) -> bool {
    ["vplretrydec-", "nvdecringdec-"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn video(structure: &gst::StructureRef) -> Option<Video> {
    let size = |name: &str| u32::try_from(structure.get::<i32>(name).ok()?).ok();
    let framerate = structure.get::<gst::Fraction>("framerate").ok();
    Some(Video {
        format: structure.get("format").ok()?,
        width: size("width")?,
        height: size("height")?,
        framerate: framerate
            .filter(|rate| rate.numer() > 0)
            .map(|rate| f64::from(rate.numer()) / f64::from(rate.denom())),
    })
}
