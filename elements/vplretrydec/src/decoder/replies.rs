// SPDX-License-Identifier: MPL-2.0

//! What comes back from the session thread, but for frames: losses, events, messages.

use std::time::{Duration, Instant};

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use vplretry_core::Event;

use super::frames::frame_of;
use super::imp::{CAT, VplRetryDec, lock};
use super::{Implementation, messages};
use crate::ledger::Fate;
use crate::link::Link;
use crate::reply::{Opened, Reply};
use crate::unit::Token;

/// Between two warnings of frames that cannot be decoded.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

impl VplRetryDec {
    pub(super) fn heed(
        &self,
        link: &Link,
        reply: Reply,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        match reply {
            Reply::Output(output) if output.epoch == link.epoch() => return self.output(*output),
            // Of before a flush.
            Reply::Output(_) | Reply::Done(_, Ok(())) => {}
            Reply::Done(_, Err(failure)) => return Err(self.fail(&failure)),
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

    pub(super) fn post(&self, structure: gst::Structure) {
        let obj = self.obj();
        let message = gst::message::Element::builder(structure).src(&*obj).build();
        // Without a bus there is nobody to tell.
        let _ = obj.post_message(message);
    }

    pub(super) fn tell_opened(&self, opened: &Opened) {
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

    pub(super) fn tell_event(&self, link: &Link, event: &Event, stats: &vplretry_core::Stats) {
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

    pub(super) fn request_key_frame(&self) {
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
    pub(super) fn lose(
        &self,
        token: Token,
        fate: &Fate,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
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
    pub(super) fn warn_of_error(&self, number: u32, reason: &str) {
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
