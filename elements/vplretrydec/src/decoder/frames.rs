// SPDX-License-Identifier: MPL-2.0

//! Frames on their way out: negotiation, buffers, flags, latency.

use std::sync::atomic::Ordering;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_video::prelude::*;
use gst_video::{VideoCodecState, VideoInterlaceMode, video_codec_state::Readable};
use onevpl_sys as mfx;
use onevpl_sys::PictureInfo;

use super::imp::{CAT, VplRetryDec, lock};
use super::messages;
use super::output::{Copy, ToBuffer, Wrap, can_wrap};
use crate::copy::formats;
use crate::ledger::Fate;
use crate::link::Link;
use crate::reply::{Content, Output};
use crate::spare::{Negotiated, Spare, has_fields, without_fields};
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
        let Some((number, pts)) = self.match_frame(token) else {
            gst::warning!(CAT, imp = self, "A picture of no frame is dropped");
            return Ok(gst::FlowSuccess::Ok);
        };
        if !corruption.is_clean() {
            let action = lock(&self.settings).corrupted_frames;
            self.post(messages::corrupted(corruption, action, number, pts));
        }
        let Some(mut frame) = frame_of(&obj, Token::of(number)) else {
            return Ok(gst::FlowSuccess::Ok);
        };
        let filled = match picture {
            Content::Copied(buffer) => {
                frame.set_output_buffer(buffer);
                Ok(())
            }
            Content::Surface(picture) => {
                let way = self.way(&info, &negotiated);
                way.fill(&obj, &mut frame, picture, &negotiated)
            }
        };
        if let Err(error) = filled {
            // What is inside at a flush is counted there.
            if error != gst::FlowError::Flushing {
                let fate = Fate::Dropped("no buffer for it".to_owned());
                lock(&self.state).counters.lose(Token::of(number), &fate);
            }
            obj.release_frame(frame);
            return Err(error);
        }
        if let Some(buffer) = frame.output_buffer_mut() {
            flag_fields(buffer, &negotiated, info.pic_struct);
            if !corruption.is_clean() {
                buffer.set_flags(gst::BufferFlags::CORRUPTED);
            }
        }
        if !corruption.is_clean() {
            frame.set_flags(gst_video::VideoCodecFrameFlags::CORRUPTED);
        }
        lock(&self.state).counters.leave(Token::of(number));
        obj.finish_frame(frame)
    }

    /// Number and time of the frame of a picture; of the oldest frame where the token is nobody's. The frame
    /// object, which is the stream lock, does not outlive this.
    fn match_frame(&self, token: Token) -> Option<(u32, Option<gst::ClockTime>)> {
        let obj = self.obj();
        let facts =
            |frame: gst_video::VideoCodecFrame<'_>| (frame.system_frame_number(), frame.pts());
        if let Some(frame) = frame_of(&obj, token) {
            return Some(facts(frame));
        }
        lock(&self.state).counters.unmatched += 1;
        obj.oldest_frame().map(facts)
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

    /// Lays a buffer ready for the next picture, if it will look like the last one. Never waits for a buffer: where
    /// the pool has none now, the picture stays in its surface until it has.
    pub(super) fn prepare_spare(&self, link: &Link) {
        let obj = self.obj();
        let state = lock(&self.state);
        let steady = state.stream.as_ref().is_some_and(|stream| !stream.fresh)
            && !state.wrap.load(Ordering::Relaxed)
            && !obj.src_pad().needs_reconfigure();
        let negotiated = state.negotiated.clone().filter(|_| steady);
        drop(state);
        let Some(negotiated) = negotiated else {
            link.lay_ready(None);
            return;
        };
        if link.has_spare() {
            return;
        }
        let params =
            gst::BufferPoolAcquireParams::with_flags(gst::BufferPoolAcquireFlags::DONTWAIT);
        let pool = obj.buffer_pool();
        if let Some(Ok(buffer)) = pool.map(|pool| pool.acquire_buffer(Some(&params))) {
            link.lay_ready(Some(Spare::new(buffer, negotiated)));
        }
    }

    /// While the pool flushes, nobody waits for one of its buffers, which may all be with a sink that keeps them.
    pub(super) fn flush_pool(&self, flushing: bool) {
        let pool = lock(&self.state).pool.clone();
        if let Some(pool) = pool.filter(|pool| pool.is_active()) {
            pool.set_flushing(flushing);
        }
    }

    /// The buffer that lies ready.
    pub(super) fn take_spare(&self) -> Option<Spare> {
        self.session()?.take_spare()
    }

    /// Negotiates where this surface needs it.
    pub(super) fn negotiate_for(
        &self,
        shown: &PictureInfo,
    ) -> Result<gst_video::VideoInfo, gst::FlowError> {
        let mut state = lock(&self.state);
        state.interlaced |= has_fields(shown);
        let interlaced = state.interlaced;
        let Some(stream) = state.stream.as_mut() else {
            return Err(gst::FlowError::NotNegotiated);
        };
        let fresh = std::mem::take(&mut stream.fresh);
        let input = stream.state.clone();
        if let Some(negotiated) = &state.negotiated
            && !fresh
            && negotiated.covers(shown)
        {
            return Ok(negotiated.info.clone());
        }
        drop(state);
        let source = without_fields(shown);
        // It is one of before.
        drop(self.take_spare());
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
