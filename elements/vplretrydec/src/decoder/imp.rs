// SPDX-License-Identifier: MPL-2.0

//! States, events and frames. The streaming thread hands access units to the session thread, and pushes the
//! frames that come back; those that come while it is upstream are pushed by a task of the source pad. Neither
//! makes a call of the runtime, so neither hangs in one.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use gst_video::subclass::prelude::*;
use gst_video::{VideoCodecState, video_codec_state::Readable};

use super::counters::Counters;
use super::settings::{Settings, properties};
use crate::codec::{self, StreamFormat};
use crate::ledger::Fate;
use crate::link::Link;
use crate::nal_format::{Framing, to_annex_b};
use crate::session::Command;
use crate::spare::Negotiated;
use crate::unit::{Token, Unit};

/// A call that has taken this long is not waited for when the element stops.
const STOP_PATIENCE: Duration = Duration::from_millis(100);
/// The most that stopping takes, however many short calls it needs.
const STOP_TIME: Duration = Duration::from_secs(2);

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "vplretrydec",
        gst::DebugColorFlags::empty(),
        Some("oneVPL decoder"),
    )
});

/// The stream, as the last caps say.
pub(super) struct Stream {
    pub(super) format: StreamFormat,
    pub(super) state: VideoCodecState<'static, Readable>,
    /// New caps came since the last negotiation.
    pub(super) fresh: bool,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) session: Option<Arc<Link>>,
    pub(super) stream: Option<Stream>,
    pub(super) negotiated: Option<Negotiated>,
    pub(super) counters: Counters,
    /// A picture that can come out comes out in the call that its access unit came with.
    pub(super) in_step: bool,
    /// The last access unit that was fed, as a command.
    pub(super) fed: u64,
    /// What downstream answered meanwhile, for upstream.
    pub(super) flow: Option<gst::FlowError>,
    /// Frames go out as surfaces. Shared with the session, which ends it where that starves the runtime.
    pub(super) wrap: Arc<AtomicBool>,
    /// Buffers for the frames: downstream's may be few, and all of them elsewhere. Kept here, for the base class gives
    /// its pool to the streaming thread alone.
    pub(super) pool: Option<gst::BufferPool>,
    /// Downstream takes GstVideoMeta.
    pub(super) video_meta: bool,
    /// A picture with fields was seen.
    pub(super) interlaced: bool,
    /// Buffers with the flag delta-unit were seen: those without it are key frames.
    pub(super) delta_flags: bool,
    pub(super) live: bool,
    /// Frames of latency that were reported.
    pub(super) latency: u32,
    /// Decoding has ended with an error, which is posted.
    pub(super) failed: bool,
    pub(super) last_warning: Option<Instant>,
    pub(super) starvation_told: bool,
    /// A session that has ended, for its counters.
    pub(super) last: Option<Arc<Link>>,
}

/// The element's instance.
#[derive(Default)]
pub struct VplRetryDec {
    pub(super) settings: Mutex<Settings>,
    pub(super) state: Mutex<State>,
}

/// A poisoned lock means that a panic was caught and posted already; the data is plain.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[glib::object_subclass]
impl ObjectSubclass for VplRetryDec {
    const NAME: &'static str = "GstVplRetryDec";
    type Type = super::VplRetryDec;
    type ParentType = gst_video::VideoDecoder;
}

impl ObjectImpl for VplRetryDec {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties);
        &PROPERTIES
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        lock(&self.settings).set(value, pspec);
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let setting = lock(&self.settings).get(pspec);
        setting.unwrap_or_else(|| match pspec.name() {
            "stats" => self.stats().to_value(),
            "implementation-name" => {
                let name = self.implementation().map(|(name, _)| name);
                name.to_value()
            }
            _ => unimplemented!(),
        })
    }

    fn constructed(&self) {
        self.parent_constructed();
        let obj = self.obj();
        obj.set_packetized(true);
        obj.set_needs_format(true);
        // The template decides, not what downstream's framerate makes of it.
        obj.set_use_default_pad_acceptcaps(true);
        obj.sink_pad().set_pad_flags(gst::PadFlags::ACCEPT_TEMPLATE);
    }
}

impl GstObjectImpl for VplRetryDec {}

impl ElementImpl for VplRetryDec {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "oneVPL video decoder",
                "Codec/Decoder/Video/Hardware",
                DESCRIPTION,
                env!("CARGO_PKG_AUTHORS"),
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let template = |name, direction, caps: &gst::Caps| {
                gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps)
                    .expect("valid templates")
            };
            vec![
                template("sink", gst::PadDirection::Sink, &codec::sink_caps()),
                template("src", gst::PadDirection::Src, &codec::src_caps()),
            ]
        });
        &TEMPLATES
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        match transition {
            // Not in the base class's `open`, which posts an error of its own behind this one.
            gst::StateChange::NullToReady => match self.find() {
                Ok(link) => lock(&self.state).session = Some(link),
                Err(failure) => {
                    self.post_error_message(failure.message());
                    return Err(gst::StateChangeError);
                }
            },
            gst::StateChange::PausedToReady => {
                // The streaming thread may wait in `handle_frame`, and the pads wait for it.
                if let Some(link) = self.session() {
                    link.stop();
                }
                self.flush_pool(true);
            }
            _ => {}
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::ReadyToNull
            && let Some(link) = self.session()
        {
            self.leave_behind(&link);
        }
        result
    }
}

/// What `gst-inspect-1.0` shows first.
const DESCRIPTION: &str = "Decodes with any oneVPL runtime: Intel GPUs, or the bundled software runtime on \
    any machine. A busy or hanging device is retried within limits and then an error that says why; stopping, \
    flushing and seeking work at any moment, also while the runtime hangs. A lost device is replaced. Every \
    frame comes out, or is counted and its reason told";

impl VideoDecoderImpl for VplRetryDec {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let link = match self.session() {
            Some(link) => link,
            // The one of before hangs and was left behind.
            None => self.find().map_err(|failure| failure.message())?,
        };
        link.start();
        *lock(&self.state) = State {
            session: Some(link),
            ..State::default()
        };
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        // The pads are not active any more: the task is in no push. Without a session it ends by itself.
        let session = self.session();
        if let Some(link) = &session {
            link.stop();
        }
        self.end_task();
        if let Some(link) = session {
            link.lay_ready(None);
            let number = link.send(Command::Close);
            if !link.settle(number, STOP_PATIENCE, STOP_TIME) {
                gst::warning!(
                    CAT,
                    imp = self,
                    "The runtime hangs: its session is left behind"
                );
                self.leave_behind(&link);
            }
        }
        let mut state = lock(&self.state);
        state.counters.flush();
        state.stream = None;
        state.negotiated = None;
        Ok(())
    }

    fn set_format(
        &self,
        input: &VideoCodecState<'static, Readable>,
    ) -> Result<(), gst::LoggableError> {
        let caps = input
            .caps()
            .ok_or_else(|| gst::loggable_error!(CAT, "no caps"))?;
        let format = StreamFormat::from_caps(caps).map_err(|reason| {
            gst::element_imp_error!(
                self,
                gst::StreamError::Format,
                ("The stream cannot be decoded: {reason}"),
                ["{caps}"]
            );
            gst::loggable_error!(CAT, "{reason}")
        })?;
        // What came before looks as the caps of before say.
        self.catch_up();
        let before = lock(&self.state)
            .stream
            .as_ref()
            .map(|stream| stream.format.clone());
        let result = match before {
            // A new framerate or the like: frames that are inside go on to be decoded.
            Some(before) if before == format => Ok(gst::FlowSuccess::Ok),
            Some(before) if before.codec == format.codec => {
                let drained = VideoDecoderImpl::drain(self);
                drained.and_then(|_| self.order(Command::Parameters(format.sets.clone())))
            }
            Some(_) => VideoDecoderImpl::drain(self).and_then(|_| self.configure(&format)),
            None => self.configure(&format),
        };
        let mut state = lock(&self.state);
        state.stream = Some(Stream {
            format,
            state: input.clone(),
            fresh: true,
        });
        let frames = state.latency;
        drop(state);
        // The next picture may look different to downstream.
        if let Some(link) = self.session() {
            link.lay_ready(None);
        }
        self.report_latency(frames);
        match result {
            // A flush; what is under way goes on by itself.
            Ok(_) | Err(gst::FlowError::Flushing) => Ok(()),
            Err(error) => Err(gst::loggable_error!(CAT, "no session: {error:?}")),
        }
    }

    fn handle_frame(
        &self,
        frame: gst_video::VideoCodecFrame,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let token = Token::of(frame.system_frame_number());
        let buffer = frame.input_buffer_owned().ok_or(gst::FlowError::Error)?;
        // A frame object is the stream lock.
        drop(frame);
        let mut state = lock(&self.state);
        let delta = buffer.flags().contains(gst::BufferFlags::DELTA_UNIT);
        state.delta_flags |= delta;
        let flagged_key = state.delta_flags && !delta;
        let stream = state.stream.as_ref().map(|stream| &stream.format);
        let Some((codec, framing)) = stream.map(|format| (format.codec, format.framing)) else {
            return Err(gst::FlowError::NotNegotiated);
        };
        state.counters.enter(token);
        drop(state);
        let bytes = match bytes_of(&buffer, framing) {
            Ok(bytes) => bytes,
            Err(reason) => return self.lose(token, &Fate::Errored(reason)),
        };
        let mut unit = Unit::new(codec, token, bytes);
        unit.key |= flagged_key;
        self.feed(unit)
    }

    fn drain(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        if lock(&self.state).stream.is_none() {
            return Ok(gst::FlowSuccess::Ok);
        }
        self.order(Command::Drain)
    }

    fn finish(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        VideoDecoderImpl::drain(self)
    }

    fn flush(&self) -> bool {
        if let Some(link) = self.session() {
            // Nothing is waited for: the session may hang.
            link.resume();
            link.send(Command::Flush);
        }
        self.flush_pool(false);
        let mut state = lock(&self.state);
        state.flow = None;
        let open = state.counters.flush();
        drop(state);
        self.release(open);
        true
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::FlushStart {
            if let Some(link) = self.session() {
                link.interrupt();
            }
            self.flush_pool(true);
        }
        self.parent_sink_event(event)
    }

    fn decide_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        let video_meta = query
            .find_allocation_meta::<gst_video::VideoMeta>()
            .is_some();
        lock(&self.state).video_meta = video_meta;
        if video_meta
            && let Some((Some(pool), ..)) = query.allocation_pools().next()
            && pool.has_option(gst_video::BUFFER_POOL_OPTION_VIDEO_META)
        {
            let mut config = pool.config();
            config.add_option(gst_video::BUFFER_POOL_OPTION_VIDEO_META);
            pool.set_config(config)
                .map_err(|error| gst::loggable_error!(CAT, "downstream's pool: {error}"))?;
        }
        self.parent_decide_allocation(query)?;
        let pool = query.allocation_pools().next();
        lock(&self.state).pool = pool.and_then(|(pool, ..)| pool);
        Ok(())
    }
}

/// The bytes of a buffer, with start codes.
fn bytes_of(buffer: &gst::BufferRef, framing: Framing) -> Result<Vec<u8>, String> {
    let data = buffer
        .map_readable()
        .map_err(|_| "its buffer cannot be mapped".to_owned())?;
    if data.is_empty() {
        return Err("its buffer is empty".to_owned());
    }
    match framing {
        Framing::Whole => Ok(data.to_vec()),
        Framing::LengthPrefixed(size) => to_annex_b(&data, size).map_err(|error| error.to_string()),
    }
}
