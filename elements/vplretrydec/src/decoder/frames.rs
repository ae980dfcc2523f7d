// SPDX-License-Identifier: MPL-2.0

//! Frames on their way out: negotiation, buffers, flags, latency.

use std::sync::atomic::Ordering;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use gst_video::{VideoCodecState, VideoInterlaceMode, video_codec_state::Readable};
use onevpl_sys as mfx;
use onevpl_sys::PictureInfo;

use super::imp::{CAT, Negotiated, VplRetryDec, lock};
use super::messages;
use super::output::{Copy, ToBuffer, Wrap, can_wrap, formats};
use crate::ledger::Fate;
use crate::reply::Output;
use crate::unit::Token;

impl VplRetryDec {
    pub(super) fn output(&self, output: Output) -> Result<gst::FlowSuccess, gst::FlowError> {
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

    pub(super) fn way(
        &self,
        shown: &PictureInfo,
        info: &gst_video::VideoInfo,
    ) -> &'static dyn ToBuffer {
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
    pub(super) fn negotiate_for(
        &self,
        shown: &PictureInfo,
    ) -> Result<gst_video::VideoInfo, gst::FlowError> {
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

    pub(super) fn negotiate_new(
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
    pub(super) fn choose_format(
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

    pub(super) fn report_delay(&self, delay: u32) {
        let mut state = lock(&self.state);
        if delay <= state.latency {
            return;
        }
        state.latency = delay;
        drop(state);
        self.report_latency(delay);
    }

    pub(super) fn report_latency(&self, frames: u32) {
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
pub(super) fn frame_of(
    obj: &super::VplRetryDec,
    token: Token,
) -> Option<gst_video::VideoCodecFrame<'_>> {
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
