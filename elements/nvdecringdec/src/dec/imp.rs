// SPDX-License-Identifier: MPL-2.0

//! Properties, states and events.
//!
//! Frames go in on the streaming thread (`input`), pictures come out on the ring's worker (`pictures`).

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use gst_video::subclass::prelude::*;
use nvcuvid_sys::{Driver, LoadError, Nvcuvid};
use nvdecring_core::Error;

use super::settings::{Settings, properties};
use super::state::State;
use crate::gstcuda::CudaContext;
use crate::running::{Abandoned, Patience};
use crate::{caps, failure, messages};

/// Time for the libraries to be opened.
const LOAD_TIME: Duration = Duration::from_secs(10);

pub(super) static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "nvdecringdec",
        gst::DebugColorFlags::empty(),
        Some("NVDEC decoder"),
    )
});

/// The element's instance.
#[derive(Default)]
pub struct NvdecRingDec {
    pub(super) settings: Mutex<Settings>,
    pub(super) state: Mutex<State>,
    pub(super) patience: Arc<Patience>,
    /// The context of pictures in device memory.
    pub(super) shared: Mutex<Option<CudaContext>>,
}

/// A poisoned lock means that a panic was caught and posted already; the data is plain.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[glib::object_subclass]
impl ObjectSubclass for NvdecRingDec {
    const NAME: &'static str = "GstNvdecRingDec";
    type Type = super::NvdecRingDec;
    type ParentType = gst_video::VideoDecoder;
}

impl ObjectImpl for NvdecRingDec {
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
        obj.set_packetized(true);
        obj.set_needs_format(true);
        obj.set_use_default_pad_acceptcaps(true);
        // What downstream takes says nothing of the streams that can be decoded.
        if let Some(pad) = obj.static_pad("sink") {
            pad.set_pad_flags(gst::PadFlags::ACCEPT_TEMPLATE);
        }
    }
}

impl GstObjectImpl for NvdecRingDec {}

impl ElementImpl for NvdecRingDec {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "NVDEC video decoder with a ring",
                "Codec/Decoder/Video/Hardware",
                DESCRIPTION,
                env!("CARGO_PKG_AUTHORS"),
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        caps::templates()
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        match transition {
            gst::StateChange::NullToReady => {
                self.patience.reset();
                self.load().map_err(|message| {
                    self.post_error_message(message);
                    gst::StateChangeError
                })?;
                self.open_shared_context();
            }
            gst::StateChange::ReadyToPaused => {
                lock(&self.state).stopping = false;
                self.patience.reset();
            }
            gst::StateChange::PausedToReady => self.release_streaming_thread(),
            _ => {}
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::ReadyToNull {
            let shared = lock(&self.shared).take();
            drop(shared);
        }
        result
    }

    fn set_context(&self, context: &gst::Context) {
        self.take_shared_context(context);
        self.parent_set_context(context);
    }
}

/// What `gst-inspect-1.0` shows first.
const DESCRIPTION: &str = "Decodes H.264, H.265, AV1, VP9, VP8 and MPEG-2 on NVDEC. A ring overlaps parsing, \
    decoding, mapping, copying and downstream at display delay 0; each picture goes on its own frame; damaged \
    pictures are flagged and reported, and decoding goes on; every wait is bounded and interruptible";

impl VideoDecoderImpl for NvdecRingDec {
    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let next_token = lock(&self.state).next_token;
        *lock(&self.state) = State {
            // A picture of the time before finds no frame.
            next_token,
            ..State::default()
        };
        Ok(())
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        // Downstream holds nothing back any more: threads that are in no hanging call end now.
        self.stop_session();
        let mut state = lock(&self.state);
        state.frames.clear();
        state.configured = None;
        Ok(())
    }

    fn set_format(
        &self,
        state: &gst_video::VideoCodecState<'static, gst_video::video_codec_state::Readable>,
    ) -> Result<(), gst::LoggableError> {
        let codec = state.caps().and_then(caps::codec);
        let codec = codec.ok_or_else(|| gst::loggable_error!(CAT, "caps without a codec"))?;
        let mut known = lock(&self.state);
        known.codec = Some(codec);
        known.input = Some(Arc::new(state.info().clone()));
        Ok(())
    }

    fn handle_frame(
        &self,
        frame: gst_video::VideoCodecFrame,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.submit(frame)
    }

    fn finish(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.drain_ring()
    }

    fn drain(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.drain_ring()
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if event.type_() == gst::EventType::Eos && lock(&self.state).failed {
            // The base class would add an error of its own: that nothing was decoded.
            return self
                .obj()
                .static_pad("src")
                .is_some_and(|pad| pad.push_event(event));
        }
        let begins_flush = event.type_() == gst::EventType::FlushStart;
        if begins_flush {
            let mut state = lock(&self.state);
            state.flushing = true;
            drop(state);
            self.patience.cancel();
        }
        // First downstream, so that a picture on its way out comes back.
        let handled = self.parent_sink_event(event);
        if begins_flush {
            self.flush_ring();
        }
        handled
    }

    fn sink_query(&self, query: &mut gst::QueryRef) -> bool {
        self.answers_context(query) || VideoDecoderImplExt::parent_sink_query(self, query)
    }

    fn src_query(&self, query: &mut gst::QueryRef) -> bool {
        self.answers_context(query) || VideoDecoderImplExt::parent_src_query(self, query)
    }

    fn flush(&self) -> bool {
        if lock(&self.state).dirty {
            // Without FLUSH_START, or a frame that slipped in behind it.
            let obj = self.obj();
            let _unlocked = crate::stream_lock::Unlocked::new(obj.upcast_ref());
            self.flush_ring();
        }
        let mut state = lock(&self.state);
        if !state.stopping {
            self.patience.reset();
        }
        state.frames.clear();
        state.flow = None;
        state.flushing = false;
        true
    }
}

impl NvdecRingDec {
    /// Opens the libraries. The driver's start may hang, so it has a thread of its own.
    fn load(&self) -> Result<(), gst::ErrorMessage> {
        let device = lock(&self.settings).cuda_device_id;
        let open = move || {
            let driver = Driver::load()?;
            let nvcuvid = Nvcuvid::load()?;
            driver.device(device)?;
            Ok::<_, LoadError>((driver.path(), nvcuvid.path()))
        };
        match self.patience.run("nvdecring-load", LOAD_TIME, open) {
            Ok(Ok((cuda, nvcuvid))) => {
                gst::info!(CAT, imp = self, "libcuda {cuda:?}, libnvcuvid {nvcuvid:?}");
                Ok(())
            }
            Ok(Err(error)) => Err(failure::load_message(&error)),
            Err(Abandoned::TimedOut(limit)) => Err(gst::error_msg!(
                gst::ResourceError::Failed,
                ("The NVIDIA driver does not start within {limit:?}: see nvidia-smi and the kernel's log \
                     for NVRM messages")
            )),
            Err(other) => Err(gst::error_msg!(
                gst::ResourceError::Failed,
                ("The NVIDIA driver could not be started: {other:?}")
            )),
        }
    }

    /// Ends every wait of the streaming thread, which the base class is about to wait for. Threads in a call
    /// that hangs are abandoned with all they hold.
    fn release_streaming_thread(&self) {
        let running = {
            let mut state = lock(&self.state);
            state.stopping = true;
            self.patience.cancel();
            state.running.clone()
        };
        if let Some(running) = running {
            let stopped = running.stop();
            gst::debug!(CAT, imp = self, "stopping: {stopped:?}");
        }
    }

    /// Ends the session, for good.
    pub(super) fn stop_session(&self) {
        let Some(running) = lock(&self.state).running.take() else {
            return;
        };
        let stopped = running.stop();
        if !stopped.clean {
            gst::warning!(
                CAT,
                imp = self,
                "abandoned threads; calls that do not return: {:?}",
                stopped.stuck
            );
        }
        let mut state = lock(&self.state);
        state.past.ring = messages::add(state.past.ring, stopped.stats);
    }

    /// Lets everything on its way go. Nothing of it reaches downstream when this returns.
    fn flush_ring(&self) {
        let running = {
            let mut state = lock(&self.state);
            state.dirty = false;
            state.running.clone()
        };
        if let Some(running) = running {
            match running.session.flush() {
                Ok(flushed) => gst::debug!(CAT, imp = self, "{flushed} frames flushed"),
                Err(Error::Stopped | Error::Flushing) => {}
                Err(error) => self.fail(&error),
            }
        }
        lock(&self.state).frames.clear();
    }

    /// The session cannot go on: says so on the bus, once.
    pub(super) fn fail(&self, error: &Error) {
        let first = {
            let mut state = lock(&self.state);
            state.flow = Some(gst::FlowError::Error);
            !std::mem::replace(&mut state.failed, true)
        };
        if first {
            self.post_error_message(failure::message(error));
        }
    }

    fn stats(&self) -> gst::Structure {
        let (mut account, running) = {
            let state = lock(&self.state);
            (state.past.clone(), state.running.clone())
        };
        if let Some(running) = running {
            account.ring = messages::add(account.ring, running.session.stats());
        }
        messages::stats(&account)
    }
}
