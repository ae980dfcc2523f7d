// SPDX-License-Identifier: MPL-2.0

//! States, events and frames. The streaming thread hands an access unit to the session thread, and pushes the
//! frames that come back while it waits; it makes no call of the runtime, so it never hangs in one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use gst_video::subclass::prelude::*;
use gst_video::{VideoCodecState, VideoInterlaceMode, video_codec_state::Readable};
use onevpl_sys as mfx;
use onevpl_sys::PictureInfo;
use vplretry_core::Event;

use super::counters::Counters;
use super::output::{Copy, ToBuffer, Wrap, can_wrap, formats};
use super::settings::{Settings, properties};
use super::{Implementation, messages};
use crate::codec::{self, StreamFormat};
use crate::failure::{Failure, Kind};
use crate::ledger::Fate;
use crate::link::{Link, News, Opened, Output, Reply};
use crate::nal_format::{Framing, to_annex_b};
use crate::session::{self, Command, Setup};
use crate::unit::{Token, Unit};

/// Time for the search for runtimes: an application waits for NULL to READY.
const FIND_TIME: Duration = Duration::from_secs(10);
/// A call that has taken this long is not waited for when the element stops.
const STOP_PATIENCE: Duration = Duration::from_millis(100);
/// The most that stopping takes, however many short calls it needs.
const STOP_TIME: Duration = Duration::from_secs(2);
/// Between two warnings of frames that cannot be decoded.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "vplretrydec",
        gst::DebugColorFlags::empty(),
        Some("oneVPL decoder"),
    )
});

/// The stream, as the last caps say.
struct Stream {
    format: StreamFormat,
    state: VideoCodecState<'static, Readable>,
    /// New caps came since the last negotiation.
    fresh: bool,
}

/// What was negotiated downstream.
struct Negotiated {
    /// Of the surface, without its fields.
    source: PictureInfo,
    interlaced: bool,
    info: gst_video::VideoInfo,
}

#[derive(Default)]
struct State {
    session: Option<Arc<Link>>,
    stream: Option<Stream>,
    negotiated: Option<Negotiated>,
    counters: Counters,
    /// Frames go out as surfaces. Shared with the session, which ends it where that starves the runtime.
    wrap: Arc<AtomicBool>,
    /// Downstream takes GstVideoMeta.
    video_meta: bool,
    /// A picture with fields was seen.
    interlaced: bool,
    /// Buffers with the flag delta-unit were seen: those without it are key frames.
    delta_flags: bool,
    live: bool,
    /// Frames of latency that were reported.
    latency: u32,
    /// Decoding has ended with an error, which is posted.
    failed: bool,
    last_warning: Option<Instant>,
    starvation_told: bool,
}

/// The element's instance.
#[derive(Default)]
pub struct VplRetryDec {
    settings: Mutex<Settings>,
    state: Mutex<State>,
}

/// A poisoned lock means that a panic was caught and posted already; the data is plain.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
                    link.interrupt();
                }
            }
            _ => {}
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::ReadyToNull {
            let session = lock(&self.state).session.take();
            if let Some(link) = session {
                link.end();
            }
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
        link.resume();
        *lock(&self.state) = State {
            session: Some(link),
            ..State::default()
        };
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        if let Some(link) = self.session() {
            link.interrupt();
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
        state.counters.enter(token);
        let delta = buffer.flags().contains(gst::BufferFlags::DELTA_UNIT);
        state.delta_flags |= delta;
        let flagged_key = state.delta_flags && !delta;
        let stream = state.stream.as_ref().map(|stream| &stream.format);
        let Some((codec, framing)) = stream.map(|format| (format.codec, format.framing)) else {
            return Err(gst::FlowError::NotNegotiated);
        };
        drop(state);
        let bytes = match bytes_of(&buffer, framing) {
            Ok(bytes) => bytes,
            Err(reason) => return self.lose(token, &Fate::Errored(reason)),
        };
        let mut unit = Unit::new(codec, token, bytes);
        unit.key |= flagged_key;
        self.order(Command::Feed(unit))
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
        let open = lock(&self.state).counters.flush();
        self.release(open);
        true
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::FlushStart
            && let Some(link) = self.session()
        {
            link.interrupt();
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
        self.parent_decide_allocation(query)
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

// Sessions.
impl VplRetryDec {
    fn session(&self) -> Option<Arc<Link>> {
        lock(&self.state).session.clone()
    }

    /// The folder that the plugin was loaded from.
    fn plugin_folder(&self) -> Option<PathBuf> {
        let plugin = self.obj().factory()?.plugin()?;
        Some(plugin.filename()?.parent()?.to_owned())
    }

    /// Starts a session thread and lets it look for runtimes.
    fn find(&self) -> Result<Arc<Link>, Failure> {
        let settings = lock(&self.settings).clone();
        let link = session::start()?;
        let (work, wait) = settings.call_limits();
        link.set_limits(work, wait);
        let number = link.send(Command::Find(settings.selection(self.plugin_folder())));
        let deadline = Instant::now() + FIND_TIME;
        let result = loop {
            match link.next(Some(deadline), false) {
                Some(News::Reply(Reply::Done(done, result))) if done == number => break result,
                Some(News::Reply(_) | News::Interrupted) => {}
                None | Some(News::Hung { .. } | News::Ended) => {
                    break Err(Failure::new(
                        Kind::Failed,
                        format!(
                            "the search for oneVPL runtimes has not ended in {} ms: a driver hangs; \
                             look at the kernel's log, or set implementation=software",
                            FIND_TIME.as_millis()
                        ),
                    ));
                }
            }
        };
        match result {
            Ok(()) => Ok(link),
            Err(failure) => {
                link.end();
                Err(failure)
            }
        }
    }

    fn configure(&self, format: &StreamFormat) -> Result<gst::FlowSuccess, gst::FlowError> {
        let settings = lock(&self.settings).clone();
        let live = self.is_upstream_live();
        let depth = settings.depth(live);
        let low_latency = settings.low_latency || live;
        let wrap = Arc::new(AtomicBool::new(settings.zero_copy));
        {
            let mut state = lock(&self.state);
            state.live = live;
            state.wrap = Arc::clone(&wrap);
            state.negotiated = None;
            state.interlaced = false;
            // A byte stream's access unit ends where the next begins, unless it is said to be whole.
            state.latency =
                depth - 1 + u32::from(codec::is_byte_stream(format.codec) && !low_latency);
        }
        self.order(Command::Configure(Box::new(Setup {
            selection: settings.selection(self.plugin_folder()),
            format: format.clone(),
            settings: settings.limits(live),
            low_latency,
            surface_limit: settings.surface_limit,
            wrap,
        })))
    }

    fn is_upstream_live(&self) -> bool {
        let mut query = gst::query::Latency::new();
        self.obj().sink_pad().peer_query(&mut query) && query.result().0
    }

    /// The thread hangs in a call: it keeps what it has and is not waited for.
    fn leave_behind(&self, link: &Arc<Link>) {
        link.end();
        lock(&self.state).session = None;
    }

    /// Gives a command to the session, and pushes what comes back until it is done.
    fn order(&self, command: Command) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(link) = self.session() else {
            return Err(gst::FlowError::Error);
        };
        let number = link.send(command);
        let mut flow = Ok(gst::FlowSuccess::Ok);
        loop {
            match link.next(None, true) {
                Some(News::Reply(Reply::Done(done, result))) if done == number => {
                    return match result {
                        Ok(()) => flow,
                        Err(failure) => Err(self.fail(&failure)),
                    };
                }
                Some(News::Reply(reply)) => {
                    let heeded = self.heed(&link, reply);
                    if flow.is_ok() && heeded.is_err() {
                        flow = heeded;
                        link.give_up(number);
                    }
                }
                Some(News::Interrupted) => return Err(gst::FlowError::Flushing),
                Some(News::Hung { call, elapsed }) => {
                    self.leave_behind(&link);
                    let name = link.implementation().unwrap_or_default().0;
                    let text = format!(
                        "{call} has not returned for {} ms, implementation {name}: the runtime hangs, its \
                         session is abandoned; look at the kernel's log, and restart the pipeline or the process",
                        elapsed.as_millis()
                    );
                    return Err(self.fail(&Failure::new(Kind::Failed, text)));
                }
                Some(News::Ended) => {
                    let text =
                        "a defect of vplretrydec: the session thread has ended; please report it";
                    return Err(self.fail(&Failure::new(Kind::Internal, text)));
                }
                None => {}
            }
        }
    }

    /// Decoding has ended: the error is posted once, and what is inside is errored.
    fn fail(&self, failure: &Failure) -> gst::FlowError {
        let mut state = lock(&self.state);
        let told = std::mem::replace(&mut state.failed, true);
        let open = state.counters.fail();
        drop(state);
        self.release(open);
        if !told {
            gst::error!(CAT, imp = self, "{}", failure.text);
            self.post_error_message(failure.message());
        }
        gst::FlowError::Error
    }

    fn release(&self, tokens: impl IntoIterator<Item = Token>) {
        let obj = self.obj();
        for token in tokens {
            if let Some(frame) = frame_of(&obj, token) {
                obj.release_frame(frame);
            }
        }
    }

    fn implementation(&self) -> Option<(String, String)> {
        self.session()?.implementation()
    }

    fn stats(&self) -> gst::Structure {
        let state = lock(&self.state);
        let session = state.session.as_ref();
        let stats = session.map(|link| link.stats()).unwrap_or_default();
        let implementation = session.and_then(|link| link.implementation());
        state.counters.structure(&stats, implementation)
    }
}

// Replies.
impl VplRetryDec {
    fn heed(&self, link: &Link, reply: Reply) -> Result<gst::FlowSuccess, gst::FlowError> {
        match reply {
            Reply::Output(output) if output.epoch == link.epoch() => return self.output(*output),
            // Of before a flush, or of a command that nobody waits for any more.
            Reply::Output(_) | Reply::Done(..) => {}
            Reply::Opened(opened) => self.tell_opened(&opened),
            Reply::Lost(token, fate) => return self.lose(token, &fate),
            Reply::DroppedCorrupted(token, corruption) => {
                let pts = frame_of(&self.obj(), token).and_then(|frame| frame.pts());
                let number = token.system_frame_number().unwrap_or(u32::MAX);
                let action = lock(&self.settings).corrupted_frames;
                self.post(messages::corrupted(corruption, action, number, pts));
                return self.lose(token, &Fate::Dropped(corruption.to_string()));
            }
            Reply::Event(event, stats) => self.tell_event(link, &event, &stats),
            Reply::NeedKeyFrame => self.request_key_frame(),
        }
        Ok(gst::FlowSuccess::Ok)
    }

    fn post(&self, structure: gst::Structure) {
        let obj = self.obj();
        let message = gst::message::Element::builder(structure).src(&*obj).build();
        // Without a bus there is nobody to tell.
        let _ = obj.post_message(message);
    }

    fn tell_opened(&self, opened: &Opened) {
        let Opened {
            name,
            api,
            hardware,
            fallback,
            path,
        } = opened;
        let kind = if *hardware { "hardware" } else { "software" };
        let text = format!("Decoding with {name} (oneVPL {api}, {kind}, {path})");
        gst::info!(CAT, imp = self, "{text}");
        // gst-launch-1.0 prints the second text alone.
        gst::element_imp_info!(self, gst::LibraryError::Init, ("{text}"), ["{text}"]);
        let auto = lock(&self.settings).implementation == Implementation::Auto;
        if let Some(reason) = fallback
            && auto
        {
            gst::element_imp_warning!(
                self,
                gst::ResourceError::NotFound,
                ("No oneVPL hardware decodes this, {name} does it in software: {reason}")
            );
        }
    }

    fn tell_event(&self, link: &Link, event: &Event, stats: &vplretry_core::Stats) {
        let implementation = link.implementation();
        let name = implementation.as_ref().map(|(name, _)| name.clone());
        let name = name.unwrap_or_default();
        let structure = lock(&self.state).counters.structure(stats, implementation);
        if let Some(message) = messages::of_event(event, &name, structure) {
            self.post(message);
        }
        match event {
            Event::Recovered {
                cause, attempts, ..
            } => {
                gst::element_imp_warning!(
                    self,
                    gst::ResourceError::Failed,
                    ("The device was lost with {cause}; session {attempts} in a row replaces it, \
                         implementation {name}")
                );
            }
            Event::Starved { status, .. }
                if !std::mem::replace(&mut lock(&self.state).starvation_told, true) =>
            {
                gst::element_imp_warning!(
                    self,
                    gst::ResourceError::NoSpaceLeft,
                    (
                        "The runtime has no free surface ({status}): downstream holds {}; frames are copied \
                         from now on",
                        link.surfaces_out()
                    )
                );
            }
            _ => {}
        }
    }

    fn request_key_frame(&self) {
        let obj = self.obj();
        if let Some(frame) = obj.oldest_frame() {
            let flags = gst_video::VideoDecoderRequestSyncPointFlags::empty();
            obj.request_sync_point(&frame, flags);
            return;
        }
        let event = gst_video::UpstreamForceKeyUnitEvent::builder()
            .all_headers(true)
            .build();
        // Whether upstream can give one is its business.
        obj.sink_pad().push_event(event);
    }

    /// A frame will not come out.
    fn lose(&self, token: Token, fate: &Fate) -> Result<gst::FlowSuccess, gst::FlowError> {
        let obj = self.obj();
        if !lock(&self.state).counters.lose(token, fate) {
            return Ok(gst::FlowSuccess::Ok);
        }
        let number = token.system_frame_number().unwrap_or(u32::MAX);
        match fate {
            Fate::WithoutPicture => {
                gst::log!(
                    CAT,
                    imp = self,
                    "Access unit {number} has no picture of its own"
                );
                if let Some(frame) = frame_of(&obj, token) {
                    obj.release_frame(frame);
                }
                Ok(gst::FlowSuccess::Ok)
            }
            Fate::Dropped(reason) => {
                gst::debug!(CAT, imp = self, "Frame {number} is dropped: {reason}");
                match frame_of(&obj, token) {
                    Some(frame) => obj.drop_frame(frame),
                    None => Ok(gst::FlowSuccess::Ok),
                }
            }
            Fate::Errored(reason) => {
                if let Some(frame) = frame_of(&obj, token) {
                    obj.drop_frame(frame)?;
                }
                self.warn_of_error(number, reason);
                gst_video::video_decoder_error!(
                    &*obj,
                    1,
                    gst::StreamError::Decode,
                    ("Frame {number} cannot be decoded: {reason}")
                )
            }
        }
    }

    /// The base class only logs errors that it tolerates.
    fn warn_of_error(&self, number: u32, reason: &str) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        let due = state
            .last_warning
            .is_none_or(|last| now.saturating_duration_since(last) >= WARNING_INTERVAL);
        if !due {
            return;
        }
        state.last_warning = Some(now);
        let errored = state.counters.errored;
        drop(state);
        gst::element_imp_warning!(
            self,
            gst::StreamError::Decode,
            ("Frame {number} cannot be decoded: {reason}; {errored} such frames so far")
        );
    }
}

// Frames.
impl VplRetryDec {
    fn output(&self, output: Output) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Output {
            token,
            info,
            corruption,
            delay,
            picture,
            ..
        } = output;
        let obj = self.obj();
        let negotiated = self.negotiate_for(&info)?;
        self.report_delay(delay);
        let known = frame_of(&obj, token);
        if known.is_none() {
            lock(&self.state).counters.unmatched += 1;
        }
        let Some(mut frame) = known.or_else(|| obj.oldest_frame()) else {
            gst::warning!(CAT, imp = self, "A picture of no frame is dropped");
            return Ok(gst::FlowSuccess::Ok);
        };
        let number = frame.system_frame_number();
        let pts = frame.pts();
        let filled = self
            .way(&info, &negotiated)
            .fill(&obj, &mut frame, picture, &negotiated);
        if let Err(error) = filled {
            let fate = Fate::Dropped("no buffer for it".to_owned());
            lock(&self.state).counters.lose(Token::of(number), &fate);
            obj.release_frame(frame);
            return Err(error);
        }
        if let Some(buffer) = frame.output_buffer_mut() {
            flag_fields(buffer, &negotiated, info.pic_struct);
            if !corruption.is_clean() {
                buffer.set_flags(gst::BufferFlags::CORRUPTED);
            }
        }
        lock(&self.state).counters.leave(Token::of(number));
        if !corruption.is_clean() {
            // The frame object is the stream lock: it is not held while the bus is told.
            frame.set_flags(gst_video::VideoCodecFrameFlags::CORRUPTED);
            let action = lock(&self.settings).corrupted_frames;
            self.post(messages::corrupted(corruption, action, number, pts));
        }
        obj.finish_frame(frame)
    }

    fn way(&self, shown: &PictureInfo, info: &gst_video::VideoInfo) -> &'static dyn ToBuffer {
        let state = lock(&self.state);
        if state.wrap.load(Ordering::Relaxed) {
            if state.video_meta && can_wrap(shown, info) {
                return &Wrap;
            }
            // The session then waits for each surface before it goes on.
            state.wrap.store(false, Ordering::Relaxed);
        }
        &Copy
    }

    /// Negotiates where this surface needs it.
    fn negotiate_for(&self, shown: &PictureInfo) -> Result<gst_video::VideoInfo, gst::FlowError> {
        let source = PictureInfo {
            pic_struct: 0,
            ..*shown
        };
        let fields = (mfx::MFX_PICSTRUCT_FIELD_TFF | mfx::MFX_PICSTRUCT_FIELD_BFF) as u16;
        let mut state = lock(&self.state);
        state.interlaced |= shown.pic_struct & fields != 0;
        let interlaced = state.interlaced;
        let Some(stream) = state.stream.as_mut() else {
            return Err(gst::FlowError::NotNegotiated);
        };
        let fresh = std::mem::take(&mut stream.fresh);
        let input = stream.state.clone();
        if let Some(negotiated) = &state.negotiated
            && !fresh
            && negotiated.source == source
            && negotiated.interlaced == interlaced
        {
            return Ok(negotiated.info.clone());
        }
        drop(state);
        let info = self.negotiate_new(&source, interlaced, &input)?;
        lock(&self.state).negotiated = Some(Negotiated {
            source,
            interlaced,
            info: info.clone(),
        });
        Ok(info)
    }

    fn negotiate_new(
        &self,
        source: &PictureInfo,
        interlaced: bool,
        input: &VideoCodecState<'static, Readable>,
    ) -> Result<gst_video::VideoInfo, gst::FlowError> {
        let obj = self.obj();
        let format = self.choose_format(source)?;
        let mode = match input.info().interlace_mode() {
            VideoInterlaceMode::Progressive if interlaced => VideoInterlaceMode::Mixed,
            mode => mode,
        };
        let mut output = obj.set_interlaced_output_state(
            format,
            mode,
            source.crop_width.into(),
            source.crop_height.into(),
            Some(input),
        )?;
        let says_aspect = input.caps().is_some_and(|caps| {
            caps.structure(0)
                .is_some_and(|structure| structure.has_field("pixel-aspect-ratio"))
        });
        if let (false, (across @ 1.., down @ 1..)) = (says_aspect, source.aspect)
            && let Some(info) = with_aspect(output.info(), across.into(), down.into())
        {
            output.set_info(info);
        }
        let info = output.info().clone();
        gst::debug!(CAT, imp = self, "Negotiating {info:?} for {source:?}");
        obj.negotiate(output)?;
        Ok(info)
    }

    /// The first of the formats of a surface that downstream takes.
    fn choose_format(
        &self,
        source: &PictureInfo,
    ) -> Result<gst_video::VideoFormat, gst::FlowError> {
        let obj = self.obj();
        let all = formats(source.fourcc);
        let allowed = obj.src_pad().allowed_caps();
        let takes = |format: &gst_video::VideoFormat| {
            allowed.as_ref().is_none_or(|allowed| {
                let caps = gst_video::VideoCapsBuilder::new().format(*format).build();
                allowed.can_intersect(&caps)
            })
        };
        let chosen = all.iter().copied().find(takes);
        chosen.ok_or_else(|| {
            gst::element_imp_error!(
                self,
                gst::StreamError::Format,
                ("Downstream takes none of the formats that this stream decodes to ({all:?}): put \
                     videoconvert behind vplretrydec"),
                ["fourcc {:08x}, downstream takes {allowed:?}", source.fourcc]
            );
            gst::FlowError::NotNegotiated
        })
    }

    fn report_delay(&self, delay: u32) {
        let mut state = lock(&self.state);
        if delay <= state.latency {
            return;
        }
        state.latency = delay;
        drop(state);
        self.report_latency(delay);
    }

    fn report_latency(&self, frames: u32) {
        let state = lock(&self.state);
        let fps = state
            .stream
            .as_ref()
            .map(|stream| stream.state.info().fps());
        drop(state);
        let Some((numer, denom)) = fps.map(|fps| (fps.numer(), fps.denom())) else {
            return;
        };
        // Where the rate is not known, 25 frames a second.
        let (numer, denom) = match (u64::try_from(numer), u64::try_from(denom)) {
            (Ok(numer @ 1..), Ok(denom @ 1..)) => (numer, denom),
            _ => (25, 1),
        };
        let second = gst::ClockTime::SECOND.nseconds();
        let nseconds = second.saturating_mul(denom).saturating_mul(frames.into()) / numer;
        let latency = gst::ClockTime::from_nseconds(nseconds);
        self.obj().set_latency(latency, latency);
    }
}

/// The frame of a token. While it lives, the stream lock is held.
fn frame_of(obj: &super::VplRetryDec, token: Token) -> Option<gst_video::VideoCodecFrame<'_>> {
    obj.frame(i32::try_from(token.system_frame_number()?).ok()?)
}

fn with_aspect(
    info: &gst_video::VideoInfo,
    across: i32,
    down: i32,
) -> Option<gst_video::VideoInfo> {
    let mut caps = info.to_caps().ok()?;
    let aspect = gst::Fraction::new(across, down);
    caps.make_mut().set("pixel-aspect-ratio", aspect);
    gst_video::VideoInfo::from_caps(&caps).ok()
}

/// The flags of a frame of two fields.
fn flag_fields(buffer: &mut gst::BufferRef, info: &gst_video::VideoInfo, pic_struct: u16) {
    use gst_video::VideoBufferFlags as Flags;
    let has = |bit: i64| i64::from(pic_struct) & bit != 0;
    if info.interlace_mode() == VideoInterlaceMode::Progressive {
        return;
    }
    let top_first = has(mfx::MFX_PICSTRUCT_FIELD_TFF.into());
    let mut flags = Flags::empty();
    flags.set(
        Flags::INTERLACED,
        top_first || has(mfx::MFX_PICSTRUCT_FIELD_BFF.into()),
    );
    flags.set(Flags::TFF, top_first);
    flags.set(Flags::RFF, has(mfx::MFX_PICSTRUCT_FIELD_REPEATED.into()));
    flags.set(Flags::ONEFIELD, has(mfx::MFX_PICSTRUCT_FIELD_SINGLE.into()));
    buffer.set_video_flags(flags);
}
