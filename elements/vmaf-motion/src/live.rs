// SPDX-License-Identifier: MPL-2.0

//! Live scoring with scores that come from any thread, in any order.
//!
//! Whoever brings the score that makes a frame final also derives it, answers the windows it
//! completes and tells them on: a window completes while the producer stalls, without a further call
//! from it and without polling.
//!
//! Events are handed over one at a time, in order, each exactly once, by one of the threads that are
//! calling in at that moment, and never under the lock: the handler may call anything here. A slow
//! handler delays other events but no completion ([`LiveScorer::poll`] and [`LiveScorer::wait`] see
//! it at once); while [`MAX_UNDELIVERED`] events wait for it, new frames and windows are refused.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;

use crate::derive::{Derivation, DerivationError};
use crate::session::{Event, Session};
use crate::windows::{FeedError, FrameScore, Poll, SubmitError, WindowId};

/// Events that may wait for a slow handler before new frames and windows are refused.
pub const MAX_UNDELIVERED: usize = 8192;

/// A call that is refused; it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LiveError {
    /// A score of a frame that was never fed.
    #[error("frame {frame} was not fed: frame {fed} comes next")]
    NotFed {
        /// The frame.
        frame: u64,
        /// Frames fed.
        fed: u64,
    },
    /// A second score, or one after the end.
    #[error(transparent)]
    Score(#[from] DerivationError),
    /// A frame after the end.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// A window that is not taken.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The handler does not keep up.
    #[error("{MAX_UNDELIVERED} events wait for their handler, which is the limit")]
    HandlerBehind,
    /// The stream cannot end yet.
    #[error("the score of frame {frame} is still missing")]
    Missing {
        /// The first frame without a score.
        frame: u64,
    },
}

struct State {
    derivation: Derivation,
    session: Session,
    /// Events that wait for the handler, oldest first.
    queue: VecDeque<Event>,
    /// A thread is handing events over and will look at the queue again.
    delivering: bool,
}

/// One stream, shared by its producer, its workers and its readers.
pub struct LiveScorer<F> {
    state: Mutex<State>,
    changed: Condvar,
    handler: F,
}

impl<F: Fn(&Event)> LiveScorer<F> {
    /// Both of a stream of no frames.
    pub fn new(derivation: Derivation, session: Session, handler: F) -> Self {
        Self {
            state: Mutex::new(State {
                derivation,
                session,
                queue: VecDeque::new(),
                delivering: false,
            }),
            changed: Condvar::new(),
            handler,
        }
    }

    /// A frame was fed, with its timestamp in nanoseconds; gives its index, under which its score
    /// is awaited.
    ///
    /// # Errors
    /// [`LiveError::Feed`] after the end, [`LiveError::HandlerBehind`].
    pub fn feed(&self, timestamp: Option<u64>) -> Result<u64, LiveError> {
        self.change(|state| {
            if state.queue.len() >= MAX_UNDELIVERED {
                return Err(LiveError::HandlerBehind);
            }
            let queue = &mut state.queue;
            Ok(state
                .session
                .feed(timestamp, |event| queue.push_back(event))?)
        })
    }

    /// The score of a frame that was fed: weighted and uncapped; 0 for the first frames, which have
    /// none. Any thread, any order.
    ///
    /// # Errors
    /// [`LiveError::NotFed`], [`LiveError::Score`].
    pub fn score(&self, frame: u64, weighted: f64) -> Result<(), LiveError> {
        self.change(|state| {
            let fed = state.session.fed();
            if frame >= fed {
                return Err(LiveError::NotFed { frame, fed });
            }
            let (session, queue) = (&mut state.session, &mut state.queue);
            let mut outcome = Ok(());
            state.derivation.insert(frame, weighted, |score| {
                let taken = session.score(score, |event| queue.push_back(event));
                outcome = outcome.and(taken);
            })?;
            Ok(outcome?)
        })
    }

    /// Asks for a window; see [`crate::windows`].
    ///
    /// # Errors
    /// [`LiveError::Submit`], [`LiveError::HandlerBehind`].
    pub fn submit(&self, first: u64, last: u64) -> Result<WindowId, LiveError> {
        self.change(|state| {
            if state.queue.len() >= MAX_UNDELIVERED {
                return Err(LiveError::HandlerBehind);
            }
            let queue = &mut state.queue;
            Ok(state
                .session
                .submit(first, last, |event| queue.push_back(event))?)
        })
    }

    /// The state of a window.
    pub fn poll(&self, id: WindowId) -> Poll {
        self.lock().session.poll(id)
    }

    /// [`LiveScorer::poll`] that forgets a result it gives.
    pub fn take(&self, id: WindowId) -> Poll {
        self.lock().session.take(id)
    }

    /// Forgets a window: if it is open, it never becomes an event. Says whether there was one.
    pub fn cancel(&self, id: WindowId) -> bool {
        let known = self.lock().session.cancel(id);
        self.changed.notify_all();
        known
    }

    /// Waits until a window is answered or gone; `Pending` after the time-out.
    pub fn wait(&self, id: WindowId, timeout: Duration) -> Poll {
        self.wait_while(timeout, |state| state.session.poll(id) == Poll::Pending)
            .session
            .poll(id)
    }

    /// The scores of one frame; `Pending` while a frame that was fed is not final.
    pub fn frame_score(&self, frame: u64) -> FrameScore {
        self.lock().session.frame_score(frame)
    }

    /// [`LiveScorer::frame_score`] that waits while it is pending, at most so long. The stream's
    /// last frame stays pending until the end.
    pub fn wait_frame(&self, frame: u64, timeout: Duration) -> FrameScore {
        self.wait_while(timeout, |state| {
            state.session.frame_score(frame) == FrameScore::Pending
        })
        .session
        .frame_score(frame)
    }

    /// Ends the stream once the score of every frame is there: the last frame becomes final and
    /// every open window is answered. A flush after the end emits nothing.
    ///
    /// # Errors
    /// [`LiveError::Missing`] when a score is still missing after the time-out; the stream goes on
    /// and the flush can be tried again.
    pub fn flush(&self, timeout: Duration) -> Result<(), LiveError> {
        let missing = |state: &State| {
            let frame = state.derivation.known();
            (!state.session.has_ended() && frame < state.session.fed()).then_some(frame)
        };
        let mut guard = self.wait_while(timeout, |state| missing(state).is_some());
        if let Some(frame) = missing(&guard) {
            return Err(LiveError::Missing { frame });
        }
        let State {
            derivation,
            session,
            queue,
            ..
        } = &mut *guard;
        let mut outcome = Ok(());
        derivation.flush_each(|score| {
            let taken = session.score(score, |event| queue.push_back(event));
            outcome = outcome.and(taken);
        });
        session.flush(|event| queue.push_back(event));
        drop(guard);
        self.changed.notify_all();
        self.deliver();
        Ok(outcome?)
    }

    /// Ends the session at once: what is open fails. After a flush it emits nothing.
    pub fn abandon(&self) {
        // Infallible: the closure has no error to give.
        let _ = self.change(|state| {
            let queue = &mut state.queue;
            state.session.abandon(|event| queue.push_back(event));
            state.derivation.flush_each(|_| {});
            Ok(())
        });
    }

    /// Changes the state, wakes who waits and hands the events over.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut State) -> Result<T, LiveError>,
    ) -> Result<T, LiveError> {
        let outcome = change(&mut self.lock());
        self.changed.notify_all();
        self.deliver();
        outcome
    }

    /// Hands over what waits, unless another thread is at it and will see it.
    fn deliver(&self) {
        let mut delivery = Delivery {
            scorer: self,
            active: false,
        };
        while let Some(event) = delivery.next() {
            (self.handler)(&event);
        }
    }

    fn wait_while(
        &self,
        timeout: Duration,
        mut condition: impl FnMut(&State) -> bool,
    ) -> MutexGuard<'_, State> {
        self.changed
            .wait_timeout_while(self.lock(), timeout, |state| condition(state))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// A panic under the lock leaves the state as consistent as it was: each step of it completes
    /// or changes nothing, and handlers run outside.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> std::fmt::Debug for LiveScorer<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveScorer").finish_non_exhaustive()
    }
}

/// One thread's turn at handing events over. Ends under the same lock that finds the queue empty, so
/// no event is left behind, and also when the handler panics.
struct Delivery<'a, F: Fn(&Event)> {
    scorer: &'a LiveScorer<F>,
    active: bool,
}

impl<F: Fn(&Event)> Delivery<'_, F> {
    fn next(&mut self) -> Option<Event> {
        let mut state = self.scorer.lock();
        if state.delivering && !self.active {
            return None;
        }
        let event = state.queue.pop_front();
        self.active = event.is_some();
        state.delivering = self.active;
        event
    }
}

impl<F: Fn(&Event)> Drop for Delivery<'_, F> {
    fn drop(&mut self) {
        if self.active {
            self.scorer.lock().delivering = false;
        }
    }
}
