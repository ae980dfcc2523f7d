// SPDX-License-Identifier: MPL-2.0

//! Pictures on their way out, on the ring's worker thread.

use std::sync::Arc;
use std::time::Duration;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use gst_video::{VideoBufferFlags, VideoFrameFlags, VideoMeta};
use nvdecring_core::{Call, Damage, DisplayInfo, DropReason, FrameToken, GpuError, Recovery};
use nvdecring_gpu::{HostFrame, StreamFormat};

use super::imp::{CAT, NvdecRingDec, lock};
use super::state::{Configured, Entry};
use super::{NvdecRingCorrupted, NvdecRingDec as Element};
use crate::caps;
use crate::messages::{self, FrameReport};
use crate::target::{Frame, Picture};

impl NvdecRingDec {
    /// A decoded picture, in display order.
    pub(crate) fn picture(&self, picture: Picture) {
        // One that a flush has overtaken is nobody's.
        let Some(entry) = self.take(picture.token) else {
            return;
        };
        let (policy, frame_messages) = {
            let settings = lock(&self.settings);
            (settings.corrupted_frames, settings.frame_messages)
        };
        let damage = picture.damage;
        let mut report = FrameReport {
            frame: entry.number.into(),
            ticket: picture.ticket,
            picture_index: picture.shown.index,
            damage,
            pts: None,
            times: picture.times,
        };
        let goes_on = damage == Damage::None || policy == NvdecRingCorrupted::Mark;
        let Some(pts) = self.leave(&entry, picture, goes_on) else {
            return;
        };
        report.pts = pts;
        if damage != Damage::None {
            let reason = match damage {
                Damage::References => "it refers to a damaged picture",
                Damage::Concealed => "the device found errors and concealed them",
                _ => "the device found errors",
            };
            self.report_corrupted(&entry, pts, Some(damage), policy, reason);
        }
        if frame_messages {
            self.post(messages::frame(&report));
        }
    }

    /// Finishes or drops a frame, and gives the time with which it left, which the base class may have had to
    /// guess. `None` where it does not know the frame any more.
    fn leave(
        &self,
        entry: &Entry,
        picture: Picture,
        goes_on: bool,
    ) -> Option<Option<gst::ClockTime>> {
        let obj = self.obj();
        let (mut frame, same) = (frame(&obj, entry)?, frame(&obj, entry)?);
        self.ask_for_sync_point(&frame, picture.damage != Damage::None);
        let flow = if goes_on {
            let device = matches!(picture.frame, Frame::Device(_));
            match self.configure(&picture.format, entry, device) {
                Ok(configured) => {
                    let buffer = buffer(picture, &configured);
                    frame.set_output_buffer(buffer);
                    obj.finish_frame(frame)
                }
                Err(flow) => {
                    obj.release_frame(frame);
                    Err(flow)
                }
            }
        } else {
            lock(&self.state).past.corrupted_dropped += 1;
            obj.drop_frame(frame)
        };
        if let Err(flow) = flow {
            let mut state = lock(&self.state);
            // During a flush this says nothing of what comes after it.
            if !state.flushing {
                state.flow.get_or_insert(flow);
            }
        }
        Some(same.pts())
    }

    /// Tells downstream of a new format, if it is one.
    fn configure(
        &self,
        format: &Arc<StreamFormat>,
        entry: &Entry,
        device: bool,
    ) -> Result<Configured, gst::FlowError> {
        if let Some(configured) = &lock(&self.state).configured
            && configured.format == *format
            && configured.input == entry.input
            && configured.device == device
        {
            return Ok(configured.clone());
        }
        let obj = self.obj();
        let info = caps::output_info(format, &entry.input).ok_or(gst::FlowError::NotNegotiated)?;
        let mut output = obj.set_output_state(info.format(), info.width(), info.height(), None)?;
        output.set_info(info.clone());
        if device {
            let caps = caps::in_device_memory(&info).ok_or(gst::FlowError::NotNegotiated)?;
            output.set_caps(&caps);
        }
        obj.negotiate(output)?;
        let configured = Configured {
            format: format.clone(),
            input: entry.input.clone(),
            video: info.format(),
            device,
        };
        lock(&self.state).configured = Some(configured.clone());
        Ok(configured)
    }

    /// A frame that has no picture.
    pub(crate) fn without_picture(&self, token: FrameToken, reason: &DropReason) {
        let Some(entry) = self.take(token) else {
            return;
        };
        let obj = self.obj();
        let Some(frame) = frame(&obj, &entry) else {
            return;
        };
        match reason {
            // The stream has no picture for it: nothing is lost.
            DropReason::Hidden | DropReason::SecondField => obj.release_frame(frame),
            DropReason::NoPicture | DropReason::NeverShown => {
                // What downstream answers to a QoS message is of no interest.
                let _ = obj.drop_frame(frame);
                gst::debug!(CAT, imp = self, "frame {}: {reason}", entry.number);
            }
            _ => {
                self.ask_for_sync_point(&frame, true);
                let pts = frame.pts();
                let _ = obj.drop_frame(frame);
                let policy = lock(&self.settings).corrupted_frames;
                let policy = match policy {
                    // There is nothing that could be marked.
                    NvdecRingCorrupted::Mark => NvdecRingCorrupted::Drop,
                    other => other,
                };
                self.report_corrupted(&entry, pts, None, policy, &reason.to_string());
            }
        }
    }

    fn report_corrupted(
        &self,
        entry: &Entry,
        pts: Option<gst::ClockTime>,
        damage: Option<Damage>,
        policy: NvdecRingCorrupted,
        reason: &str,
    ) {
        let action = match policy {
            NvdecRingCorrupted::Mark => "mark",
            NvdecRingCorrupted::Drop => "drop",
            NvdecRingCorrupted::Error => "error",
        };
        gst::warning!(CAT, imp = self, "frame {}: {reason}", entry.number);
        let frame = entry.number.into();
        self.post(messages::corrupted(frame, pts, damage, action, reason));
        if policy == NvdecRingCorrupted::Error {
            let message = gst::error_msg!(
                gst::StreamError::Decode,
                ("Frame {frame} could not be decoded whole: {reason}. corrupted-frames=mark or drop goes \
                     on instead")
            );
            self.fail_with(message);
        }
    }

    /// Asks upstream for a key picture, once a loss: the base class bounds how often.
    fn ask_for_sync_point(&self, frame: &gst_video::VideoCodecFrame<'_>, damaged: bool) {
        let wanted = {
            let mut state = lock(&self.state);
            let wanted = damaged && std::mem::take(&mut state.wants_sync_point);
            // The next good picture ends the loss.
            state.wants_sync_point |= !damaged;
            wanted
        };
        if wanted {
            let flags = gst_video::VideoDecoderRequestSyncPointFlags::empty();
            self.obj().request_sync_point(frame, flags);
        }
    }

    fn take(&self, token: FrameToken) -> Option<Entry> {
        lock(&self.state).frames.remove(&token.0)
    }

    fn post(&self, structure: gst::Structure) {
        let obj = self.obj();
        let message = gst::message::Element::builder(structure).src(&*obj).build();
        // Without a bus nobody wants to know.
        let _ = obj.post_message(message);
    }

    /// Ends the stream with a message of its own, once.
    fn fail_with(&self, message: gst::ErrorMessage) {
        let first = {
            let mut state = lock(&self.state);
            state.flow = Some(gst::FlowError::Error);
            !std::mem::replace(&mut state.failed, true)
        };
        if first {
            self.post_error_message(message);
        }
    }

    /// A call takes longer than the decode timeout.
    pub(crate) fn stalled(&self, call: Call, elapsed: Duration) {
        lock(&self.state).past.stalls += 1;
        gst::element_imp_warning!(
            self,
            gst::ResourceError::Busy,
            ("The device is slow: {call} has not returned for {elapsed:?}. Raise decode-timeout if it is \
                 shared with other work")
        );
    }

    /// The decoder failed and was replaced.
    pub(crate) fn recovered(&self, by: Recovery, after: &GpuError) {
        let recoveries = {
            let mut state = lock(&self.state);
            state.past.recoveries += 1;
            state.wants_sync_point = true;
            state.past.recoveries
        };
        gst::warning!(CAT, imp = self, "recovered by a new {by:?} after: {after}");
        self.post(messages::recovered(by, after, recoveries));
    }
}

fn frame<'a>(obj: &'a Element, entry: &Entry) -> Option<gst_video::VideoCodecFrame<'a>> {
    obj.frame(i32::try_from(entry.number).ok()?)
}

/// The picture as a buffer.
fn buffer(picture: Picture, configured: &Configured) -> gst::Buffer {
    let (shown, damage) = (picture.shown, picture.damage);
    let mut buffer = match picture.frame {
        Frame::Host(frame) => host_buffer(frame, configured.video),
        Frame::Device(buffer) => buffer,
    };
    if let Some(buffer) = buffer.get_mut() {
        buffer.set_video_flags(field_flags(&shown, configured.format.progressive));
        if damage != Damage::None {
            buffer.set_flags(gst::BufferFlags::CORRUPTED);
        }
    }
    buffer
}

/// Its memory is the decoder's page-locked one, which goes back when the buffer does.
fn host_buffer(frame: HostFrame, video: gst_video::VideoFormat) -> gst::Buffer {
    let layout = frame.layout().clone();
    let mut buffer = gst::Buffer::from_mut_slice(frame);
    if let Some(buffer) = buffer.get_mut() {
        let offsets: Vec<usize> = layout.planes.iter().map(|plane| plane.offset).collect();
        let strides: Vec<i32> = layout
            .planes
            .iter()
            .map(|plane| i32::try_from(plane.stride).unwrap_or(i32::MAX))
            .collect();
        // The layout is the format's default: a reader that does not know the meta is right too.
        let added = VideoMeta::add_full(
            buffer,
            VideoFrameFlags::empty(),
            video,
            layout.width,
            layout.height,
            &offsets,
            &strides,
        );
        if let Err(error) = added {
            gst::debug!(CAT, "no video meta: {error}");
        }
    }
    buffer
}

fn field_flags(shown: &DisplayInfo, progressive: bool) -> VideoBufferFlags {
    let mut flags = VideoBufferFlags::empty();
    if progressive {
        return flags;
    }
    flags.set(VideoBufferFlags::INTERLACED, !shown.progressive);
    flags.set(VideoBufferFlags::TFF, shown.top_field_first);
    flags.set(VideoBufferFlags::RFF, shown.repeat_first_field > 0);
    flags.set(VideoBufferFlags::ONEFIELD, shown.repeat_first_field < 0);
    flags
}
