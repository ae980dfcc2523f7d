// SPDX-License-Identifier: MPL-2.0

//! Frames on their way in, on the streaming thread.

use std::sync::Arc;
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use nvdecring_core::{Error, FrameToken, Packet, SystemClock};
use nvdecring_gpu::{Codec, ContextSource, HostMemory, Nvdec, Packetizer, Settings, gate};

use super::imp::{CAT, NvdecRingDec, lock};
use super::state::Entry;
use crate::output::{Output, observer};
use crate::running::{Abandoned, Running};
use crate::stream_lock::Unlocked;
use crate::target::{Session, Target};

/// Time for a session to open. The ring's own limit comes first.
const OPEN_TIME: Duration = Duration::from_secs(60);

/// Why a frame did not go in.
enum Refused {
    Flow(gst::FlowError),
    Session(Error),
}

impl From<gst::FlowError> for Refused {
    fn from(flow: gst::FlowError) -> Self {
        Self::Flow(flow)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        match error {
            Error::Flushing | Error::Stopped => Self::Flow(gst::FlowError::Flushing),
            error => Self::Session(error),
        }
    }
}

impl NvdecRingDec {
    pub(super) fn submit(
        &self,
        frame: gst_video::VideoCodecFrame,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let number = frame.system_frame_number();
        let buffer = frame.input_buffer_owned();
        // A frame holds the stream lock as long as it lives.
        drop(frame);
        let result = match buffer {
            Some(buffer) if buffer.size() > 0 => self.submit_buffer(number, buffer),
            _ => {
                self.drop_empty(number);
                Ok(())
            }
        };
        match result {
            Ok(()) => match lock(&self.state).flow {
                Some(flow) => Err(flow),
                None => Ok(gst::FlowSuccess::Ok),
            },
            Err(Refused::Flow(flow)) => {
                self.forget(number);
                Err(flow)
            }
            Err(Refused::Session(error)) => {
                self.forget(number);
                self.fail(&error);
                Err(gst::FlowError::Error)
            }
        }
    }

    fn submit_buffer(&self, number: u32, buffer: gst::Buffer) -> Result<(), Refused> {
        let session = self.session()?;
        let discontinuity = buffer.flags().contains(gst::BufferFlags::DISCONT);
        let data = buffer
            .into_mapped_buffer_readable()
            .map_err(|_| gst::FlowError::Error)?;
        let packet = {
            let mut state = lock(&self.state);
            if let Some(flow) = state.flow {
                return Err(flow.into());
            }
            if state.flushing {
                return Err(gst::FlowError::Flushing.into());
            }
            let input = state.input.clone().ok_or(gst::FlowError::NotNegotiated)?;
            state.next_token += 1;
            let token = state.next_token;
            let entry = Entry { number, input };
            state.frames.insert(token, entry);
            state.dirty = true;
            let packetizer = state
                .packetizer
                .as_mut()
                .ok_or(gst::FlowError::NotNegotiated)?;
            packetizer.packet(FrameToken(token), Box::new(data), discontinuity)
        };
        self.report_latency();
        self.give(&session, packet)
    }

    /// Tells how long pictures stay inside, when that has changed: what reordering and the display delay hold
    /// back at least, and the ring beyond that at most.
    fn report_latency(&self) {
        let (ring_depth, delay) = lock(&self.settings).depth_and_delay();
        let latency = {
            let mut state = lock(&self.state);
            let (Some(packetizer), Some(input)) = (&state.packetizer, &state.input) else {
                return;
            };
            // A rate that nobody says is taken for 25 a second, as other decoders do.
            let rate = Some(input.fps()).filter(|rate| rate.numer() > 0 && rate.denom() > 0);
            let rate = rate.unwrap_or(gst::Fraction::new(25, 1));
            let second = gst::ClockTime::SECOND.nseconds();
            let frame =
                second * rate.denom().unsigned_abs() as u64 / rate.numer().unsigned_abs() as u64;
            let held = packetizer.reorder_frames() + packetizer.codec().display_delay(delay) as u32;
            let frames = |count: u32| gst::ClockTime::from_nseconds(frame * u64::from(count));
            let latency = (frames(held), frames(held + ring_depth));
            if state.latency.replace(latency) == Some(latency) {
                return;
            }
            latency
        };
        self.obj().set_latency(latency.0, latency.1);
    }

    fn give(&self, session: &Session, packet: Packet) -> Result<(), Refused> {
        let obj = self.obj();
        let token = packet.token;
        let taken = {
            let _unlocked = Unlocked::new(obj.upcast_ref());
            session.submit(packet)
        };
        taken.map_err(|error| {
            lock(&self.state).frames.remove(&token.0);
            error.into()
        })
    }

    /// A frame that did not go in leaves the base class's list too.
    fn forget(&self, number: u32) {
        let obj = self.obj();
        if let Some(frame) = i32::try_from(number)
            .ok()
            .and_then(|number| obj.frame(number))
        {
            obj.release_frame(frame);
        }
    }

    fn drop_empty(&self, number: u32) {
        gst::debug!(CAT, imp = self, "frame {number} is empty");
        {
            let mut state = lock(&self.state);
            state.past.ring.submitted += 1;
            state.past.ring.dropped += 1;
        }
        let obj = self.obj();
        if let Some(frame) = i32::try_from(number)
            .ok()
            .and_then(|number| obj.frame(number))
        {
            // What downstream answers to the QoS message is of no interest.
            let _ = obj.drop_frame(frame);
        }
    }

    /// The session of the caps' codec, opened if it is not there.
    fn session(&self) -> Result<Arc<Session>, Refused> {
        let (codec, running) = {
            let state = lock(&self.state);
            (state.codec, state.running.clone())
        };
        let codec = codec.ok_or(gst::FlowError::NotNegotiated)?;
        match running {
            Some(running) if running.codec == codec => return Ok(running.session),
            Some(_) => {
                self.drain_ring()?;
                let obj = self.obj();
                let _unlocked = Unlocked::new(obj.upcast_ref());
                self.stop_session();
            }
            None => {}
        }
        self.open(codec)
    }

    /// Opens a session on a thread of its own, because that may hang.
    fn open(&self, codec: Codec) -> Result<Arc<Session>, Refused> {
        let settings = lock(&self.settings).clone();
        let config = settings.config(codec)?;
        let obj = self.obj();
        let output = Output::new(obj.downgrade());
        let observer = observer(obj.downgrade());
        let (context, target) = match self.device_memory(&settings) {
            Some((context, memory)) => (ContextSource::Shared(context), Target::Device(memory)),
            None => (
                ContextSource::Device(settings.cuda_device_id),
                Target::Host(HostMemory::default()),
            ),
        };
        let nvdec = Settings {
            codec,
            display_delay: config.display_delay,
            context,
        };
        let device = gate(settings.cuda_device_id);
        let open = move || {
            Session::open(
                Arc::new(Nvdec::new(nvdec, target)),
                device,
                config,
                Box::new(output),
                observer,
                Arc::new(SystemClock::default()),
            )
        };
        let opened = {
            let _unlocked = Unlocked::new(obj.upcast_ref());
            self.patience.run("nvdecring-open", OPEN_TIME, open)
        };
        let session = match opened {
            Ok(session) => session?,
            Err(Abandoned::Cancelled) => return Err(gst::FlowError::Flushing.into()),
            Err(Abandoned::NoThread(error)) => return Err(Error::Thread(error).into()),
            Err(Abandoned::TimedOut(elapsed)) => {
                return Err(Error::Wedged {
                    call: nvdecring_core::Call::OpenContext,
                    elapsed,
                }
                .into());
            }
        };
        let element: glib::WeakRef<super::NvdecRingDec> = obj.downgrade();
        let failed = move |error: &Error| {
            if let Some(element) = element.upgrade() {
                element.imp().fail(error);
            }
        };
        let running = Running::new(session, codec, settings.watch_interval(), failed)?;
        let session = running.session.clone();
        let mut state = lock(&self.state);
        if self.patience.is_cancelled() {
            // Whoever stops has looked already and will not look again.
            drop(state);
            running.stop();
            return Err(gst::FlowError::Flushing.into());
        }
        state.running = Some(running);
        state.packetizer = Some(Packetizer::new(codec));
        drop(state);
        gst::info!(CAT, imp = self, "decoding {codec}");
        Ok(session)
    }

    /// Shows and hands out everything that is on its way.
    pub(super) fn drain_ring(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        let Some(running) = lock(&self.state).running.clone() else {
            return Ok(gst::FlowSuccess::Ok);
        };
        let obj = self.obj();
        let drained = {
            let _unlocked = Unlocked::new(obj.upcast_ref());
            running.session.drain()
        };
        match drained {
            Ok(()) => {
                let mut state = lock(&self.state);
                state.dirty = false;
                state.flow.map_or(Ok(gst::FlowSuccess::Ok), Err)
            }
            Err(Error::Flushing | Error::Stopped) => Err(gst::FlowError::Flushing),
            Err(error) => {
                self.fail(&error);
                Err(gst::FlowError::Error)
            }
        }
    }
}
