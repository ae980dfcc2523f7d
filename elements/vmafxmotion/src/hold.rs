// SPDX-License-Identifier: MPL-2.0

//! With `hold`: buffers that wait for their scores, and what waits behind them.

use std::collections::VecDeque;

use gst::ClockTime;

use crate::messages::FrameMessage;
use crate::meta::{FinalFrames, MotionScore};

/// Something that leaves in the order in which it came.
#[derive(Debug)]
pub(crate) enum Item {
    Frame(HeldFrame),
    /// A serialised event behind a frame.
    Event(gst::Event),
}

/// A buffer and the score it will carry.
#[derive(Debug)]
pub(crate) struct HeldFrame {
    pub(crate) buffer: gst::Buffer,
    /// `None` for a frame that is not reported.
    pub(crate) score: Option<MotionScore>,
    /// When it leaves unfinished, on the element's clock.
    pub(crate) deadline: Option<ClockTime>,
    done: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Held(VecDeque<Item>);

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A frame that is not reported waits for nothing but its turn. What became final with this
    /// buffer belongs to others.
    pub(crate) fn push_frame(
        &mut self,
        buffer: gst::Buffer,
        score: Option<MotionScore>,
        deadline: Option<ClockTime>,
    ) {
        self.0.push_back(Item::Frame(HeldFrame {
            buffer,
            score: score.map(|score| MotionScore {
                finals: None,
                ..score
            }),
            deadline,
            done: score.is_none(),
        }));
    }

    pub(crate) fn push_event(&mut self, event: gst::Event) {
        self.0.push_back(Item::Event(event));
    }

    /// The frame's scores are final: it carries them and may leave.
    pub(crate) fn settle(&mut self, message: &FrameMessage) {
        let frame = message.score.frame;
        let waiting = self.frames().find_map(|held| {
            let score = held.score.as_mut().filter(|score| score.frame == frame)?;
            Some((score, &mut held.done))
        });
        // A frame that left unfinished is not there any more.
        if let Some((score, done)) = waiting {
            score.finals = Some(FinalFrames {
                first: frame,
                last: frame,
                motion2: message.score.motion2,
                motion3: message.score.motion3,
            });
            score.is_final = true;
            *done = true;
        }
    }

    /// Every frame that waits gets a new deadline.
    pub(crate) fn restart(&mut self, deadline: ClockTime) {
        for held in self.frames() {
            held.deadline = Some(deadline);
        }
    }

    /// Frames whose time is over may leave unfinished; gives their number.
    pub(crate) fn expire(&mut self, now: ClockTime) -> usize {
        let over = |held: &&mut HeldFrame| held.deadline.is_some_and(|deadline| deadline <= now);
        self.release(over)
    }

    /// Everything may leave, finished or not; gives the number of unfinished frames.
    pub(crate) fn release_all(&mut self) -> usize {
        self.release(|_| true)
    }

    fn release(&mut self, may_leave: impl Fn(&&mut HeldFrame) -> bool) -> usize {
        let waiting = self.frames().filter(|held| !held.done).filter(may_leave);
        waiting.map(|held| held.done = true).count()
    }

    /// The oldest item, if it may leave.
    pub(crate) fn pop(&mut self) -> Option<Item> {
        match self.0.front()? {
            Item::Frame(held) if !held.done => None,
            _ => self.0.pop_front(),
        }
    }

    /// When the next frame's time is over.
    pub(crate) fn deadline(&self) -> Option<ClockTime> {
        let frames = self.0.iter().filter_map(|item| match item {
            Item::Frame(held) if !held.done => held.deadline,
            _ => None,
        });
        frames.min()
    }

    fn frames(&mut self) -> impl Iterator<Item = &mut HeldFrame> {
        self.0.iter_mut().filter_map(|item| match item {
            Item::Frame(held) => Some(held),
            Item::Event(_) => None,
        })
    }
}
