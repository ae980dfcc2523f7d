// SPDX-License-Identifier: MPL-2.0

//! [`Link`]: what the element's threads and the session thread share. None holds its lock over a call.
//!
//! Commands go one way, replies the other, and surfaces that were handed out come back. The session thread
//! says which runtime call it is in, so that the element knows a call that hangs.
//!
//! The streaming thread listens to replies while it waits for a command to end. Those that come while it is
//! elsewhere wake the task of the source pad, which otherwise sleeps ([`Link::wait_unheard`]).

mod element;
mod session;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onevpl_sys::MappedSurface;
use vplretry_core::{Stats, Wake};

use crate::reply::Reply;
use crate::session::Command;
use crate::spare::Spare;

/// A call may take this long, whatever the limits are.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);
/// A call that hangs is looked for this often. In the tests never: who is not woken hangs there.
const WATCH: Duration = Duration::from_secs(if cfg!(test) { 1 << 20 } else { 1 });

/// How long a listener waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// To this moment.
    Moment(Instant),
    /// Until the command with this number, and so all before it, have ended and every reply is heard.
    Done(u64),
}

/// What a listener hears.
#[derive(Debug)]
pub(crate) enum News {
    Reply(Reply),
    /// A flush or a stop.
    Interrupted,
    /// A runtime call does not return.
    Hung {
        call: &'static str,
        elapsed: Duration,
    },
    /// The thread is gone.
    Ended,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// `retry-timeout`.
    Work,
    /// `sync-timeout`.
    Wait,
}

#[derive(Debug, Clone, Copy)]
struct Call {
    name: &'static str,
    kind: CallKind,
    since: Instant,
}

/// A command on its way.
pub(crate) struct Order {
    pub(crate) number: u64,
    /// The flush that it came after; those of before the last flush are passed over.
    pub(crate) epoch: u64,
    pub(crate) command: Command,
}

#[derive(Default)]
struct State {
    orders: VecDeque<Order>,
    replies: VecDeque<Reply>,
    returned: Vec<MappedSurface>,
    /// For the next picture.
    spare: Option<Spare>,
    /// Surfaces with the element or downstream.
    out: usize,
    /// The session thread waits for surfaces.
    wants_surfaces: bool,
    last_number: u64,
    /// The last command that a listener knows to have ended.
    last_done: u64,
    epoch: u64,
    /// Replies are heard by who has a [`Listening`].
    listening: bool,
    /// A flush is under way: nothing is waited for.
    interrupted: bool,
    /// The element stops: nothing is waited for, and what is unheard stays so.
    stopped: bool,
    /// Nobody waits for orders up to this one.
    given_up: u64,
    /// The thread ends when it can.
    ending: bool,
    /// The thread has ended.
    ended: bool,
    call: Option<Call>,
    limits: [Duration; 2],
    stats: Stats,
    implementation: Option<(String, String)>,
}

#[derive(Default)]
pub(crate) struct Link {
    state: Mutex<State>,
    /// For the session thread.
    work: Condvar,
    /// For who listens.
    news: Condvar,
    /// For who hears what nobody listens to.
    unheard: Condvar,
}

/// While this lives, replies wake who waits in [`Link::next`], and nobody else.
#[derive(Debug)]
pub(crate) struct Listening<'a>(&'a Link);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.listening = false;
        let missed = !state.replies.is_empty();
        drop(state);
        if missed {
            self.0.unheard.notify_all();
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        self.work.notify_all();
        self.news.notify_all();
        self.unheard.notify_all();
    }
}

impl State {
    fn cancelled(&self, number: u64, epoch: u64) -> bool {
        self.interrupted
            || self.stopped
            || self.ending
            || self.epoch != epoch
            || self.given_up >= number
    }

    /// The next reply.
    fn hear(&mut self) -> Option<Reply> {
        let reply = self.replies.pop_front();
        if let Some(Reply::Done(number, _)) = &reply {
            self.last_done = *number;
        }
        reply
    }

    /// Time until the call at hand hangs, or is looked at again.
    fn hang(&self, now: Instant) -> Result<Duration, News> {
        let Some(call) = self.call else {
            return Ok(WATCH);
        };
        let elapsed = now.saturating_duration_since(call.since);
        let left = self.limits[call.kind as usize].saturating_sub(elapsed);
        if left.is_zero() {
            return Err(News::Hung {
                call: call.name,
                elapsed,
            });
        }
        Ok(left.min(WATCH))
    }
}
