// SPDX-License-Identifier: MPL-2.0

//! Pads, events and states. Buffers are pushed in the call that brought them; no lock is held while
//! a picture is read, a message is posted or anything is pushed.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::VideoInfo;
use vmaf_motion::sad::Kernel;

use super::MotionMessages;
use super::settings::{Settings, properties};
use crate::formats;
use crate::picture::Layout;
use crate::session::{FinalMessages, ScoreError, Scored, Session};
use crate::times::FrameTimes;
use crate::writer::{Loss, ScoreWriter, records};

/// Time for the score file to be complete before EOS goes on.
const FLUSH_TIME: Duration = Duration::from_millis(200);

/// Time for the score file to be complete when the element stops.
const CLOSE_TIME: Duration = Duration::from_secs(1);

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "vmafxmotion",
        gst::DebugColorFlags::empty(),
        Some("VMAF motion scores"),
    )
});

/// What changes while the stream runs.
#[derive(Debug, Default)]
struct State {
    /// Where the pictures are; `None` before the first caps.
    layout: Option<Arc<Layout>>,
    /// Caps that an error was posted for; GStreamer sends sticky events again.
    refused: Option<gst::Caps>,
    segment: Option<gst::Segment>,
    /// The running session; taken out while a picture is scored.
    session: Option<Session>,
    writer: Option<Arc<ScoreWriter>>,
    stats: Stats,
}

/// Counters behind the property `stats`.
#[derive(Debug, Default, Clone, Copy)]
struct Stats {
    /// Sessions begun.
    sessions: u64,
    frames: u64,
    final_frames: u64,
    frames_without_timestamp: u64,
    /// Of the sessions that have ended.
    discontinuities: u64,
    /// Of the running session.
    discontinuities_now: u64,
}

/// The element's instance.
#[derive(Debug)]
pub struct VmafxMotion {
    sinkpad: gst::Pad,
    srcpad: gst::Pad,
    settings: Mutex<Settings>,
    state: Mutex<State>,
}

/// A poisoned lock means that a panic was caught and posted already; the data is plain.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[glib::object_subclass]
impl ObjectSubclass for VmafxMotion {
    const NAME: &'static str = "GstVmafxMotion";
    type Type = super::VmafxMotion;
    type ParentType = gst::Element;

    fn with_class(klass: &Self::Class) -> Self {
        let template = |name| klass.pad_template(name).expect("a template of this class");
        let sinkpad = gst::Pad::builder_from_template(&template("sink"))
            .chain_function(|_, parent, buffer| {
                Self::catch_panic_pad_function(
                    parent,
                    || Err(gst::FlowError::Error),
                    |this| this.chain(buffer),
                )
            })
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |this| this.sink_event(pad, event))
            })
            .flags(gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_ALLOCATION)
            .build();
        let srcpad = gst::Pad::builder_from_template(&template("src"))
            .flags(gst::PadFlags::PROXY_CAPS)
            .build();
        Self {
            sinkpad,
            srcpad,
            settings: Mutex::default(),
            state: Mutex::default(),
        }
    }
}

impl ObjectImpl for VmafxMotion {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties);
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        lock(&self.settings).set(value, pspec);
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let setting = lock(&self.settings).get(pspec);
        setting.unwrap_or_else(|| self.stats().to_value())
    }

    fn constructed(&self) {
        self.parent_constructed();
        let obj = self.obj();
        for pad in [&self.sinkpad, &self.srcpad] {
            obj.add_pad(pad).expect("a new element takes its pads");
        }
    }
}

impl GstObjectImpl for VmafxMotion {}

impl ElementImpl for VmafxMotion {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "VMAF motion scores",
                "Filter/Analyzer/Video",
                DESCRIPTION,
                env!("CARGO_PKG_AUTHORS"),
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let caps = formats::caps();
            let template = |name, direction| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps)
                    .expect("valid templates")
            };
            vec![
                template("sink", gst::PadDirection::Sink),
                template("src", gst::PadDirection::Src),
            ]
        });
        &TEMPLATES
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::ReadyToPaused {
            self.start().map_err(|message| {
                self.post_error_message(message);
                gst::StateChangeError
            })?;
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::PausedToReady
            || (transition == gst::StateChange::ReadyToPaused && result.is_err())
        {
            self.stop();
        }
        result
    }
}

/// What `gst-inspect-1.0` shows first.
const DESCRIPTION: &str = "Scores the motion of the video that flows through it, as libvmaf 3.2 \
    does, bit for bit: motion at once, motion2 and motion3 one frame later. Buffers go on at once \
    and untouched, with the scores as VmafxMotionMeta; the bus gets vmafxmotion-frame and \
    vmafxmotion-summary messages, scores-path an NDJSON file";

impl VmafxMotion {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        if let Err(error) = Kernel::from_env() {
            gst::element_imp_warning!(
                self,
                gst::LibraryError::Settings,
                ("{error}; scoring with {} instead", Kernel::chosen())
            );
        }
        let settings = lock(&self.settings).clone();
        settings
            .options
            .validate()
            .map_err(|error| gst::error_msg!(gst::LibraryError::Settings, ("{error}")))?;
        let open = |path: &PathBuf| {
            ScoreWriter::open(path, settings.scores_append, self.on_loss())
                .map(Arc::new)
                .map_err(|error| gst::error_msg!(gst::ResourceError::OpenWrite, ("{error}")))
        };
        let writer = settings.scores_path.as_ref().map(open).transpose()?;
        *lock(&self.state) = State {
            writer,
            ..State::default()
        };
        Ok(())
    }

    fn stop(&self) {
        self.end_session("the element stops");
        let writer = std::mem::take(&mut *lock(&self.state)).writer;
        if let Some(writer) = writer.and_then(Arc::into_inner) {
            writer.close(CLOSE_TIME);
        }
    }

    /// Warns of lost lines; called once, by the writer.
    fn on_loss(&self) -> Arc<dyn Fn(Loss) + Send + Sync> {
        let element = self.obj().downgrade();
        Arc::new(move |loss| {
            let Some(element) = element.upgrade() else {
                return;
            };
            let advice =
                "score lines are dropped and counted in stats (lines-dropped); the stream goes on";
            match loss {
                Loss::Write(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::NoSpaceLeft,
                        ("No space left for scores-path: {advice}")
                    );
                }
                Loss::Write(error) => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::Write,
                        ("Cannot write to scores-path: {error}; {advice}")
                    );
                }
                Loss::Slow => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::Write,
                        ("scores-path takes the scores too slowly: {advice}")
                    );
                }
                Loss::Unfinished => {
                    gst::element_warning!(
                        element,
                        gst::ResourceError::Write,
                        ("scores-path did not take the last scores in time: they are lost")
                    );
                }
            }
        })
    }

    fn stats(&self) -> gst::Structure {
        let (stats, writer) = {
            let state = lock(&self.state);
            (state.stats, state.writer.clone())
        };
        let counters = writer.as_ref().map(|writer| writer.counters());
        gst::Structure::builder("vmafxmotion-stats")
            .field("session", stats.sessions.saturating_sub(1))
            .field("sessions", stats.sessions)
            .field("frames", stats.frames)
            .field("final-frames", stats.final_frames)
            .field("frames-without-timestamp", stats.frames_without_timestamp)
            .field(
                "discontinuities",
                stats.discontinuities + stats.discontinuities_now,
            )
            .field("kernel", Kernel::chosen().to_string())
            .field(
                "lines-written",
                counters.map_or(0, |counters| counters.written()),
            )
            .field(
                "lines-dropped",
                counters.map_or(0, |counters| counters.dropped()),
            )
            .build()
    }

    fn chain(&self, mut buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let scored = self.score(&buffer)?;
        let settings = {
            let settings = lock(&self.settings);
            (settings.meta, settings.messages)
        };
        let (meta, messages) = settings;
        if meta && let Err(error) = scored.score.attach(buffer.make_mut()) {
            gst::error!(
                CAT,
                imp = self,
                "no meta on frame {}: {error}",
                scored.score.frame
            );
        }
        self.publish_frames(&scored.finals, messages);
        self.srcpad.push(buffer)
    }

    /// Scores a buffer; an error has been posted.
    fn score(&self, buffer: &gst::BufferRef) -> Result<Scored, gst::FlowError> {
        let (layout, session, times) = {
            let mut state = lock(&self.state);
            let layout = state.layout.clone();
            let frame_duration = layout
                .as_ref()
                .and_then(|layout| frame_duration(layout.info()));
            let times = state
                .segment
                .as_ref()
                .map(|segment| FrameTimes::of(buffer, segment, frame_duration))
                .unwrap_or_default();
            (layout, state.session.take(), times)
        };
        let Some(layout) = layout else {
            gst::element_imp_error!(
                self,
                gst::CoreError::Negotiation,
                ("Buffer without caps: the element before must send a video/x-raw caps event first")
            );
            return Err(gst::FlowError::NotNegotiated);
        };
        let mut session = match session {
            Some(session) => session,
            None => self
                .begin_session(&layout)
                .map_err(|error| self.refuse(&error.into()))?,
        };
        let scored = session.score(&layout, buffer, times);
        let mut state = lock(&self.state);
        if let Ok(scored) = &scored {
            state.stats.frames += 1;
            state.stats.final_frames += scored.finals.iter().count() as u64;
            state.stats.frames_without_timestamp += u64::from(times.timestamp.is_none());
            state.stats.discontinuities_now = session.discontinuities();
        }
        state.session = Some(session);
        drop(state);
        let scored = scored.map_err(|error| self.refuse(&error))?;
        gst::log!(
            CAT,
            imp = self,
            "frame {} at {}: motion {}, final {:?}",
            scored.score.frame,
            times.timestamp.display(),
            scored.score.motion,
            scored.score.finals
        );
        Ok(scored)
    }

    fn refuse(&self, error: &ScoreError) -> gst::FlowError {
        gst::element_imp_error!(self, gst::StreamError::Format, ("Cannot score: {error}"));
        gst::FlowError::Error
    }

    fn begin_session(&self, layout: &Layout) -> Result<Session, vmaf_motion::stream::StreamError> {
        let options = lock(&self.settings).options.clone();
        let (number, writer) = {
            let mut state = lock(&self.state);
            state.stats.sessions += 1;
            (state.stats.sessions - 1, state.writer.clone())
        };
        let session = Session::new(number, layout, &options)?;
        if let Some(writer) = writer {
            writer.record(records::header(number, layout, &options));
        }
        gst::info!(
            CAT,
            imp = self,
            "session {number} begins: {:?} with {options:?} on {}",
            layout.info(),
            Kernel::chosen()
        );
        Ok(session)
    }

    /// Ends the session, if one has begun: its last frames become final, its summary is posted.
    fn end_session(&self, why: &str) {
        let session = lock(&self.state).session.take();
        let Some(session) = session.filter(|session| session.frames() > 0) else {
            return;
        };
        gst::info!(CAT, imp = self, "session {} ends: {why}", session.number());
        let (finals, summary) = session.finish();
        let writer = {
            let mut state = lock(&self.state);
            state.stats.final_frames += finals.iter().count() as u64;
            state.stats.discontinuities += std::mem::take(&mut state.stats.discontinuities_now);
            state.writer.clone()
        };
        let messages = lock(&self.settings).messages;
        self.publish_frames(&finals, messages);
        if let Some(writer) = writer {
            writer.record(records::summary(&summary));
        }
        if messages.contains(MotionMessages::SUMMARY) {
            self.post(gst::Structure::from(&summary));
        }
    }

    fn publish_frames(&self, finals: &FinalMessages, messages: MotionMessages) {
        let writer = lock(&self.state).writer.clone();
        for message in finals.iter() {
            if let Some(writer) = &writer {
                writer.frame(records::frame(&message));
            }
            if messages.contains(MotionMessages::FRAME) {
                self.post(message.into());
            }
        }
    }

    fn post(&self, structure: gst::Structure) {
        let message = gst::message::Element::builder(structure)
            .src(&*self.obj())
            .build();
        // An element without a bus has nobody to tell.
        let _ = self.obj().post_message(message);
    }

    fn sink_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        gst::debug!(CAT, obj = pad, "event {event:?}");
        match event.view() {
            gst::EventView::Caps(caps) if !self.set_caps(caps.caps()) => return false,
            gst::EventView::Segment(segment) => {
                let mut state = lock(&self.state);
                state.segment = Some(segment.segment().clone());
                state.discontinuity();
            }
            gst::EventView::Gap(_) => lock(&self.state).discontinuity(),
            gst::EventView::StreamStart(_) => self.end_session("STREAM_START"),
            gst::EventView::FlushStop(_) => {
                self.end_session("FLUSH_STOP");
                lock(&self.state).segment = None;
            }
            gst::EventView::Eos(_) => {
                self.end_session("EOS");
                let writer = lock(&self.state).writer.clone();
                if let Some(writer) = writer {
                    writer.flush(FLUSH_TIME);
                }
            }
            _ => {}
        }
        gst::Pad::event_default(pad, Some(&*self.obj()), event)
    }

    /// Takes new caps: scores go on over them unless size, format or depth change.
    fn set_caps(&self, caps: &gst::CapsRef) -> bool {
        let layout = match Layout::of_caps(caps) {
            Ok(layout) => Arc::new(layout),
            Err(error) => {
                let before = lock(&self.state).refused.replace(caps.to_owned());
                if before.as_deref() != Some(caps) {
                    gst::element_imp_error!(
                        self,
                        gst::CoreError::Negotiation,
                        ("Cannot score: {error}"),
                        ["caps {caps}"]
                    );
                }
                return false;
            }
        };
        let before = lock(&self.state).layout.replace(layout.clone());
        let Some(before) = before else {
            return true;
        };
        if !before.continues(&layout) {
            self.end_session("size, format or depth change");
        } else if before.info().fps() != layout.info().fps() {
            lock(&self.state).discontinuity();
        }
        true
    }
}

impl State {
    /// An interruption that the session goes on over.
    fn discontinuity(&mut self) {
        if let Some(session) = &mut self.session {
            session.discontinuity();
            self.stats.discontinuities_now = session.discontinuities();
        }
    }
}

/// One frame of the caps' framerate; `None` where that is variable or unknown (0/1).
fn frame_duration(info: &VideoInfo) -> Option<gst::ClockTime> {
    let fps = info.fps();
    let numerator = u64::try_from(fps.numer())
        .ok()
        .filter(|&numerator| numerator > 0)?;
    let denominator = u64::try_from(fps.denom()).ok()?;
    gst::ClockTime::SECOND.mul_div_round(denominator, numerator)
}
