// SPDX-License-Identifier: MPL-2.0

//! The action signals: windows and scores on request, from any thread at any time.

use std::sync::LazyLock;

use gst::glib;
use gst::glib::subclass::Signal;
use gst::prelude::*;
use gst::subclass::prelude::*;
use vmaf_motion::windows::{FrameScore, SubmitError};

use super::imp::{CAT, VmafxMotion, lock};
use crate::messages::WindowMessage;
use crate::session::{Session, WindowState};

/// Why a window was not taken.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    /// `busy`, `range` or `ended`.
    reason: &'static str,
    message: String,
}

impl Refusal {
    fn stopped() -> Self {
        Self {
            reason: "ended",
            message: "the element is stopped".to_owned(),
        }
    }
}

impl From<SubmitError> for Refusal {
    fn from(error: SubmitError) -> Self {
        Self {
            reason: match error {
                SubmitError::Busy => "busy",
                SubmitError::Order { .. } => "range",
            },
            message: error.to_string(),
        }
    }
}

/// Name of the structure that `frame-score` answers with.
const FRAME_SCORE: &str = "vmafxmotion-frame-score";

/// A signal with one or two u64 parameters that answers with what `answer` says.
fn action<T: Into<glib::Value> + StaticType + 'static>(
    name: &'static str,
    parameters: usize,
    answer: fn(&VmafxMotion, &[u64]) -> T,
) -> Signal {
    Signal::builder(name)
        .param_types(vec![u64::static_type(); parameters])
        .return_type::<T>()
        .action()
        .class_handler(move |values| {
            let element = values[0]
                .get::<super::VmafxMotion>()
                .expect("type checked upstream");
            let number = |value: &glib::Value| value.get::<u64>().expect("type checked upstream");
            let parameters: Vec<u64> = values[1..].iter().map(number).collect();
            Some(answer(element.imp(), &parameters).into())
        })
        .build()
}

/// All signals.
pub(super) fn signals() -> &'static [Signal] {
    static SIGNALS: LazyLock<Vec<Signal>> = LazyLock::new(|| {
        vec![
            action("submit-window", 2, |this, p| this.submit_window(p[0], p[1])),
            action("poll-window", 1, |this, p| this.poll_window(p[0])),
            action("cancel-window", 1, |this, p| this.cancel_window(p[0])),
            action("frame-score", 1, |this, p| this.frame_score(p[0])),
        ]
    });
    &SIGNALS
}

impl VmafxMotion {
    /// Asks for a window; gives its id, or 0 where it is not taken: `poll-window` of 0 says why.
    fn submit_window(&self, first: u64, last: u64) -> u64 {
        let submitted = {
            let mut guard = lock(&self.state);
            let state = &mut *guard;
            let session = match (state.eos, &mut state.ended) {
                (true, Some(ended)) => Some(ended),
                _ => state.session.as_mut(),
            };
            let submitted = session
                .ok_or_else(Refusal::stopped)
                .and_then(|session| session.submit(first, last).map_err(Refusal::from));
            if let Err(refusal) = &submitted {
                state.refusal = Some(refusal.clone());
            }
            submitted
        };
        match submitted {
            Ok((id, news)) => {
                self.publish(&news);
                id
            }
            Err(Refusal { message, .. }) => {
                gst::warning!(
                    CAT,
                    imp = self,
                    "window {first} to {last} is not taken: {message}"
                );
                0
            }
        }
    }

    fn poll_window(&self, id: u64) -> gst::Structure {
        let state = lock(&self.state);
        if let (0, Some(refusal)) = (id, &state.refusal) {
            let mut answer = window_state(id, "failed");
            answer.set("reason", refusal.reason);
            answer.set("message", refusal.message.as_str());
            return answer;
        }
        let sessions = [&state.session, &state.ended].into_iter().flatten();
        let found = sessions
            .filter_map(|session| Some(session.poll(session.owns(id)?)))
            .next();
        match found.unwrap_or(WindowState::Unknown) {
            WindowState::Done(message) => gst::Structure::from(&*message),
            WindowState::Pending => window_state(id, "pending"),
            WindowState::Unknown => window_state(id, "unknown"),
        }
    }

    fn cancel_window(&self, id: u64) -> bool {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let mut sessions = [&mut state.session, &mut state.ended].into_iter().flatten();
        sessions.any(|session| session.owns(id).is_some_and(|id| session.cancel(id)))
    }

    fn frame_score(&self, frame: u64) -> gst::Structure {
        let state = lock(&self.state);
        let session = state.newest();
        let mut answer = gst::Structure::new_empty(FRAME_SCORE);
        answer.set("session", session.map_or(0, Session::number));
        answer.set("frame", frame);
        match session.map(|session| session.frame_score(frame)) {
            Some(FrameScore::Pending) => answer.set("state", "pending"),
            Some(FrameScore::Final(score)) => {
                answer.set("state", "final");
                answer.set("motion", score.motion);
                answer.set("motion2", score.motion2);
                answer.set("motion3", score.motion3);
            }
            Some(FrameScore::Failed(failure)) => {
                answer.set("state", "failed");
                answer.set("reason", failure.reason());
                answer.set("message", failure.to_string());
            }
            None => {
                let refusal = Refusal::stopped();
                answer.set("state", "failed");
                answer.set("reason", refusal.reason);
                answer.set("message", refusal.message);
            }
        }
        answer
    }
}

fn window_state(id: u64, state: &str) -> gst::Structure {
    gst::Structure::builder(WindowMessage::NAME)
        .field("window", id)
        .field("state", state)
        .build()
}
