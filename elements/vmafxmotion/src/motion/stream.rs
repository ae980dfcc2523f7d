// SPDX-License-Identifier: MPL-2.0

//! From a buffer to its scores, to those who want to know them, and on.

use std::sync::Arc;
use std::time::Instant;

use gst::prelude::*;
use gst::subclass::prelude::*;
use gst::{ClockTime, FlowError, FlowSuccess};
use gst_video::VideoInfo;
use score_records::Record;
use vmaf_motion::sad::Kernel;

use super::MotionMessages;
use super::imp::{CAT, VmafxMotion, lock};
use super::state::State;
use crate::hold::Item;
use crate::meta::MotionScore;
use crate::picture::Layout;
use crate::score_text;
use crate::session::{News, Plan, ScoreError, Scorer, Session};
use crate::times::FrameTimes;
use crate::writer::records;

impl VmafxMotion {
    pub(super) fn chain(&self, buffer: gst::Buffer) -> Result<FlowSuccess, FlowError> {
        let (score, news) = self.score(&buffer)?;
        self.publish(&news);
        let Some(hold) = lock(&self.state).hold else {
            return self.push(buffer, score);
        };
        let deadline = hold
            .limit
            .map(|limit| self.clock_or_system().time() + limit);
        {
            let mut state = lock(&self.state);
            state.held.push_frame(buffer, score, deadline);
            news.frames()
                .for_each(|message| state.held.settle(&message));
        }
        self.release()
    }

    /// Scores a buffer: its score, and what became known by it. An error has been posted.
    fn score(&self, buffer: &gst::BufferRef) -> Result<(Option<MotionScore>, News), FlowError> {
        let (layout, plan, scorer, times) = {
            let mut state = lock(&self.state);
            let layout = state.layout.clone();
            let duration = layout
                .as_ref()
                .and_then(|layout| frame_duration(layout.info()));
            let segment = state.segment.as_ref();
            let times = segment.map(|segment| FrameTimes::of(buffer, segment, duration));
            (
                layout,
                state.plan.clone(),
                state.scorer.take(),
                times.unwrap_or_default(),
            )
        };
        let Some(plan) = plan else {
            return Err(FlowError::Flushing);
        };
        let Some(layout) = layout else {
            gst::element_imp_error!(
                self,
                gst::CoreError::Negotiation,
                ("Buffer without caps: the element before must send a video/x-raw caps event first")
            );
            return Err(FlowError::NotNegotiated);
        };
        let refuse = |error: &ScoreError| self.refuse(error);
        let mut scorer = match scorer {
            Some(scorer) => scorer,
            None => self
                .begin_session(&plan, &layout)
                .map_err(|error| refuse(&error))?,
        };
        let step = scorer.score(&layout, buffer);

        let mut guard = lock(&self.state);
        let state = &mut *guard;
        state.scorer = Some(scorer);
        let (step, session) = match (step, &mut state.session) {
            (Ok(step), Some(session)) => (step, session),
            (Err(error), _) => {
                drop(guard);
                return Err(refuse(&error));
            }
            (_, None) => return Err(FlowError::Flushing),
        };
        let discont = buffer.flags().contains(gst::BufferFlags::DISCONT);
        let taken = session.take(&step, times, discont);
        state.stats.frames += 1;
        state.stats.frames_without_timestamp += u64::from(times.timestamp.is_none());
        state.stats.discontinuities_now = session.discontinuities();
        drop(guard);

        let (score, news) = taken.map_err(|error| {
            gst::element_imp_error!(
                self,
                gst::LibraryError::Failed,
                ("Cannot keep scores: {error}")
            );
            FlowError::Error
        })?;
        gst::log!(CAT, imp = self, "{} {score:?}", times.timestamp.display());
        Ok((score, news))
    }

    fn refuse(&self, error: &ScoreError) -> FlowError {
        gst::element_imp_error!(self, gst::StreamError::Format, ("Cannot score: {error}"));
        FlowError::Error
    }

    /// The first picture of a session.
    fn begin_session(&self, plan: &Plan, layout: &Layout) -> Result<Scorer, ScoreError> {
        let scorer = Scorer::new(plan, layout)?;
        let (number, writer) = {
            let mut state = lock(&self.state);
            state.stats.sessions += 1;
            state.eos = false;
            let number = state.session.as_ref().map_or(0, Session::number);
            (number, state.writer.clone())
        };
        if let Some(writer) = writer {
            writer.record(records::header(number, layout, plan));
        }
        gst::info!(
            CAT,
            imp = self,
            "session {number} begins: {:?} with {plan:?} on {}",
            layout.info(),
            Kernel::chosen()
        );
        Ok(scorer)
    }

    /// Ends the session, if one has begun: its last frames become final, its open windows are
    /// answered, its summary is posted. Windows that were asked for before the first frame wait for
    /// the next session, except at the end of all.
    pub(super) fn end_session(&self, why: &str) {
        let (news, summary, writer) = {
            let mut guard = lock(&self.state);
            let state = &mut *guard;
            let (Some(plan), Some(session)) = (state.plan.clone(), state.session.as_mut()) else {
                return;
            };
            let Some(mut scorer) = state.scorer.take() else {
                return;
            };
            gst::info!(CAT, imp = self, "session {} ends: {why}", session.number());
            let (news, summary) = session.finish(&scorer.finish());
            let next = Session::new(session.number() + 1, &plan);
            // The plan has made a session before.
            state.ended = std::mem::replace(&mut state.session, next.ok());
            state.stats.discontinuities += std::mem::take(&mut state.stats.discontinuities_now);
            news.frames()
                .for_each(|message| state.held.settle(&message));
            (news, summary, state.writer.clone())
        };
        self.publish(&news);
        let Some(summary) = summary else {
            return;
        };
        if let Some(writer) = writer {
            writer.record(records::summary(&summary));
        }
        if lock(&self.settings)
            .messages
            .contains(MotionMessages::SUMMARY)
        {
            self.post(gst::Structure::from(&summary));
        }
    }

    /// Tells the bus and the files what became known, before the buffer it came with goes on.
    pub(super) fn publish(&self, news: &News) {
        let messages = lock(&self.settings).messages;
        let (writer, text) = {
            let mut state = lock(&self.state);
            state.stats.final_frames += news.frames().count() as u64;
            state.stats.windows += news.windows.len() as u64;
            (state.writer.clone(), state.text.clone())
        };
        for message in news.frames() {
            if let Some(writer) = &writer {
                writer.frame((&message).into());
            }
            if messages.contains(MotionMessages::FRAME) {
                self.post(message.into());
            }
        }
        for message in &news.windows {
            if let Some(writer) = &writer {
                writer.record(Record::Window(message.into()));
            }
            if let Some(text) = &text {
                text.show(score_text::line(message));
            }
            if messages.contains(MotionMessages::WINDOW) && self.may_post(message.submitted) {
                self.post(gst::Structure::from(message));
            }
        }
    }

    /// Windows that were asked for always post; of the others, at most 10 a second.
    fn may_post(&self, submitted: bool) -> bool {
        let mut state = lock(&self.state);
        let may = submitted || state.window_rate.allows(Instant::now());
        state.stats.window_messages_skipped += u64::from(!may);
        may
    }

    fn post(&self, structure: gst::Structure) {
        let message = gst::message::Element::builder(structure)
            .src(&*self.obj())
            .build();
        // An element without a bus has nobody to tell.
        let _ = self.obj().post_message(message);
    }

    /// Pushes what may leave, in order. The source pad's stream lock is whose turn it is: the
    /// streaming thread and the timer both come here.
    pub(super) fn release(&self) -> Result<FlowSuccess, FlowError> {
        let result = {
            let _turn = self.srcpad.stream_lock();
            self.release_in_turn()
        };
        self.set_alarm();
        result
    }

    fn release_in_turn(&self) -> Result<FlowSuccess, FlowError> {
        loop {
            let (item, failed) = {
                let mut state = lock(&self.state);
                (state.held.pop(), state.flow_error)
            };
            match item {
                Some(Item::Frame(held)) => {
                    self.push(held.buffer, held.score)?;
                }
                Some(Item::Event(event)) => {
                    // As with any queue, nobody waits for the answer any more.
                    self.srcpad.push_event(event);
                }
                None => return failed.map_or(Ok(FlowSuccess::Ok), Err),
            }
        }
    }

    /// Releases everything that is held, finished or not.
    pub(super) fn release_all(&self) {
        {
            let mut state = lock(&self.state);
            if state.held.is_empty() {
                return;
            }
            let unfinished = state.held.release_all();
            state.stats.unfinished += unfinished as u64;
        }
        self.release_outside_of_chain();
    }

    /// Releases frames whose time is over; called by the timer.
    pub(super) fn release_expired(&self) {
        let now = self.clock_or_system().time();
        let unfinished = {
            let mut state = lock(&self.state);
            let unfinished = state.held.expire(now);
            state.stats.unfinished += unfinished as u64;
            unfinished
        };
        gst::debug!(CAT, imp = self, "max-hold is over for {unfinished} frames");
        self.release_outside_of_chain();
    }

    /// The next buffer brings the error of this push, as with any queue.
    fn release_outside_of_chain(&self) {
        match self.release() {
            // A flush ends by itself, and may have ended already.
            Ok(_) | Err(FlowError::Flushing) => {}
            Err(error) => {
                gst::debug!(CAT, imp = self, "downstream: {error}");
                lock(&self.state).flow_error = Some(error);
            }
        }
    }

    /// Another clock: its time has nothing to do with that of the one before.
    pub(super) fn restart_hold(&self) {
        let limit = lock(&self.state).hold.and_then(|hold| hold.limit);
        if let Some(limit) = limit {
            let deadline = self.clock_or_system().time() + limit;
            lock(&self.state).held.restart(deadline);
            self.set_alarm();
        }
    }

    fn set_alarm(&self) {
        let Some(timer) = lock(&self.timer).as_ref().map(super::timer::Timer::handle) else {
            return;
        };
        let deadline = lock(&self.state).held.deadline();
        timer.set(deadline.map(|deadline| (self.clock_or_system(), deadline)));
    }

    /// Before PLAYING an element has no clock.
    fn clock_or_system(&self) -> gst::Clock {
        self.obj().clock().unwrap_or_else(gst::SystemClock::obtain)
    }

    fn push(
        &self,
        mut buffer: gst::Buffer,
        score: Option<MotionScore>,
    ) -> Result<FlowSuccess, FlowError> {
        if let Some(score) = score
            && lock(&self.settings).meta
            && let Err(error) = score.attach(buffer.make_mut())
        {
            gst::error!(CAT, imp = self, "no meta on frame {}: {error}", score.frame);
        }
        self.srcpad.push(buffer)
    }

    /// Takes new caps: scores go on over them unless size, format or depth change.
    pub(super) fn set_caps(&self, caps: &gst::CapsRef) -> bool {
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
        if let Some(before) = before {
            if !before.continues(&layout) {
                self.end_session("size, format or depth change");
                self.release_all();
            } else if before.info().fps() != layout.info().fps() {
                lock(&self.state).discontinuity();
            }
        }
        self.update_latency(&layout);
        true
    }

    /// Tells the pipeline when what `hold` adds has changed.
    fn update_latency(&self, layout: &Layout) {
        let changed = {
            let mut state = lock(&self.state);
            let duration = frame_duration(layout.info());
            let latency = state
                .hold
                .map_or(ClockTime::ZERO, |hold| hold.latency(duration));
            std::mem::replace(&mut state.latency, latency) != latency
        };
        if changed {
            let message = gst::message::Latency::builder().src(&*self.obj()).build();
            // An element without a bus is in no pipeline.
            let _ = self.obj().post_message(message);
        }
    }

    pub(super) fn stats(&self) -> gst::Structure {
        let (stats, writer) = {
            let state: &State = &lock(&self.state);
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
            .field("windows", stats.windows)
            .field("window-messages-skipped", stats.window_messages_skipped)
            .field("unfinished-frames", stats.unfinished)
            .field(
                "lines-written",
                counters.map_or(0, |counters| counters.written()),
            )
            .field(
                "lines-dropped",
                counters.map_or(0, |counters| counters.dropped()),
            )
            .field("kernel", Kernel::chosen().to_string())
            .build()
    }
}

/// One frame of the caps' framerate; `None` where that is variable or unknown (0/1).
fn frame_duration(info: &VideoInfo) -> Option<ClockTime> {
    let fps = info.fps();
    let numerator = u64::try_from(fps.numer())
        .ok()
        .filter(|&numerator| numerator > 0)?;
    let denominator = u64::try_from(fps.denom()).ok()?;
    ClockTime::SECOND.mul_div_round(denominator, numerator)
}
