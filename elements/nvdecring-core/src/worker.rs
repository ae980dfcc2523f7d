// SPDX-License-Identifier: MPL-2.0

//! The worker thread: maps, copies and hands out, in the order of tickets.
//!
//! One picture may be copied while the next is mapped, if that one is known to be decoded. Otherwise the
//! map would block, and the copied picture would wait for a decode that has nothing to do with it.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{DecodeStatus, DisplayInfo, ErrorClass, FrameToken, GpuApi, GpuError};
use crate::calls::{Call, Role};
use crate::ledger::End;
use crate::output::{Damage, DropReason, Picture, Sink, Times};
use crate::pictures::PictureRef;
use crate::ring::{SlotState, Ticket};
use crate::state::{Open, Party, Shared, State, Step, earlier};
use crate::verdict::timed_out;

/// Time between two status queries: doubles from the first to the second.
const POLL: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(2));

/// A copy under way.
struct Copying<G: GpuApi> {
    ticket: Ticket,
    open: Open<G>,
    mapped: G::Mapped,
    copy: G::Copy,
    status: Option<DecodeStatus>,
    mapped_at: Duration,
}

/// A mapped picture, its copy, and when it was mapped.
type Begun<G> = (<G as GpuApi>::Mapped, <G as GpuApi>::Copy, Duration);

/// Why a picture has no copy.
type Refused = (DropReason, GpuError);

/// What the worker does next.
enum Act<G: GpuApi> {
    Exit,
    /// Tell of a frame without a picture.
    Drop((FrameToken, DropReason)),
    /// Finish the copy under way.
    Finish,
    /// Ask for the status of the next picture.
    Ask(Open<G>, u8),
    /// Map the next picture.
    Map(Open<G>, DisplayInfo),
    /// The next picture has no pixels.
    Fail(DropReason),
    /// The next picture was abandoned.
    Skip,
    /// Look after a surface in quarantine. The call has been entered.
    Settle(Open<G>, PictureRef),
}

pub(crate) struct Worker<G: GpuApi> {
    shared: Arc<Shared<G>>,
    api: Arc<G>,
    sink: Box<dyn Sink<G>>,
    /// The next picture to map.
    next: Ticket,
    /// What is known of it.
    status: Option<DecodeStatus>,
    copying: Option<Copying<G>>,
    /// When to ask again, and how long to wait after that.
    ask_at: Duration,
    ask_again: Duration,
}

impl<G: GpuApi> Worker<G> {
    pub(crate) fn new(shared: Arc<Shared<G>>, api: Arc<G>, sink: Box<dyn Sink<G>>) -> Self {
        Self {
            shared,
            api,
            sink,
            next: Ticket::default(),
            status: None,
            copying: None,
            ask_at: Duration::ZERO,
            ask_again: POLL.0,
        }
    }

    pub(crate) fn run(mut self) {
        loop {
            match self.act() {
                Act::Exit => return,
                Act::Drop((token, reason)) => {
                    self.sink.dropped(token, reason);
                    self.delivered(|_| {});
                }
                Act::Finish => self.finish(),
                Act::Ask(open, index) => self.ask(open, index),
                Act::Map(open, shown) => self.map(open, shown),
                Act::Fail(reason) => self.fail(self.next, reason),
                Act::Skip => self.skip(),
                Act::Settle(open, picture) => self.settle(open, picture),
            }
        }
    }

    /// Waits for something to do.
    fn act(&mut self) -> Act<G> {
        let shared = self.shared.clone();
        let limit = shared.config.decode_timeout;
        // What the worker takes up frees nothing yet.
        shared.wait(Party::Worker, |state, now| {
            if state.stopping {
                return Step::Done(match self.copying {
                    Some(_) => Act::Finish,
                    None => Act::Exit,
                });
            }
            if let Some(dropped) = state.dropped.pop_front() {
                state.delivering = true;
                return Step::Done(Act::Drop(dropped));
            }
            match state.ring.state(self.next) {
                SlotState::Shown => self.examine(state, now, limit),
                SlotState::Free if self.copying.is_none() => self.look_after(state, now),
                _ if self.copying.is_some() => Step::Done(Act::Finish),
                // Abandoned: no other state is possible for a picture the worker has not begun.
                _ => Step::Done(Act::Skip),
            }
        })
    }

    /// The next picture is shown: is it decoded?
    fn examine(&mut self, state: &mut State<G>, now: Duration, limit: Duration) -> Step<Act<G>> {
        let since = state.head_since;
        let lost = state.health.lost().cloned();
        let has_status = state.has_status;
        let Some((picture, open)) = state
            .ring
            .picture(self.next)
            .and_then(|picture| picture.open.clone().map(|open| (picture, open)))
        else {
            return Step::Done(Act::Skip);
        };
        let failed = match (&picture.decoded.error, lost) {
            (Some(error), _) => Some(DropReason::Decode(error.clone())),
            (None, Some(error)) => Some(DropReason::DecoderLost(error)),
            (None, None) => None,
        };
        if let Some(reason) = failed {
            return Step::Done(match self.copying {
                Some(_) => Act::Finish,
                None => Act::Fail(reason),
            });
        }
        let settled = matches!(self.status, Some(status) if status != DecodeStatus::InProgress);
        if settled || (!has_status && self.copying.is_none()) {
            if self.copying.is_some() && open.plan.output_surfaces < 2 {
                return Step::Done(Act::Finish);
            }
            let shown = picture.shown;
            state.ring.advance(self.next, SlotState::Mapping);
            return Step::Done(Act::Map(open, shown));
        }
        if has_status && (self.status.is_none() || now >= self.ask_at) {
            return Step::Done(Act::Ask(open, picture.shown.index));
        }
        if self.copying.is_some() {
            return Step::Done(Act::Finish);
        }
        let deadline = since.max(picture.times.shown) + limit;
        if now >= deadline {
            let hold = picture.hold;
            if let Some(hold) = hold {
                state.pictures.quarantine(hold.shown, now);
            }
            state.ledger.stats.timeouts += 1;
            return Step::Done(Act::Fail(DropReason::TimedOut(limit)));
        }
        Step::Wait(earlier(Some(self.ask_at), Some(deadline)))
    }

    /// Nothing to map: surfaces in quarantine may have settled.
    fn look_after(&self, state: &mut State<G>, now: Duration) -> Step<Act<G>> {
        let Some(picture) = state.pictures.quarantined().next() else {
            return Step::Wait(None);
        };
        let Some(open) = state.open.clone().filter(|_| state.health.lost().is_none()) else {
            return Step::Wait(None);
        };
        if now < self.ask_at {
            return Step::Wait(Some(self.ask_at));
        }
        state.calls.enter(Role::Worker, Call::Status, now);
        Step::Done(Act::Settle(open, picture))
    }

    fn wait_to_ask(&mut self) {
        self.ask_at = self.shared.clock.now() + self.ask_again;
        self.ask_again = (self.ask_again * 2).min(POLL.1);
    }

    fn ask(&mut self, open: Open<G>, index: u8) {
        let answer = self.shared.call(Role::Worker, Call::Status, || {
            self.api.status(&open.decoder, index)
        });
        match answer {
            Ok(status) => {
                self.status = Some(status);
                if status == DecodeStatus::InProgress {
                    self.wait_to_ask();
                }
            }
            Err(error) => match error.class {
                ErrorClass::NotSupported => self.shared.with(|state| state.has_status = false),
                ErrorClass::Sticky => self.shared.with(|state| state.health.lose(&error)),
                // The map tells more.
                ErrorClass::Single => self.status = Some(DecodeStatus::Unknown),
            },
        }
    }

    fn settle(&mut self, open: Open<G>, picture: PictureRef) {
        // The call was entered without a word to who watches.
        self.shared.with(|_| ());
        let answer = self.api.status(&open.decoder, picture.index);
        // The parser may destroy the decoder as soon as the call has ended.
        drop(open);
        let in_progress = matches!(answer, Ok(DecodeStatus::InProgress));
        if in_progress {
            self.wait_to_ask();
        }
        self.shared.with(|state| {
            state.calls.leave(Role::Worker);
            match answer {
                Ok(_) if in_progress => {}
                Err(error) if error.class != ErrorClass::Single => state.health.lose(&error),
                Ok(_) | Err(_) => {
                    state.pictures.settle(picture);
                }
            }
        });
    }

    fn map(&mut self, open: Open<G>, shown: DisplayInfo) {
        let ticket = self.next;
        let status = self.status;
        let mut begun = self.begin_copy(&open, &shown);
        let mut earlier = self.copying.take();
        if let (Err((DropReason::Map(_), error)), true) = (&begun, earlier.is_some())
            && error.class == ErrorClass::Single
        {
            // The device may have no second surface to give: once more with nothing mapped.
            if let Some(earlier) = earlier.take() {
                self.complete(earlier);
            }
            begun = self.begin_copy(&open, &shown);
        }
        match begun {
            Ok((mapped, copy, mapped_at)) => {
                self.shared
                    .quietly(|state| state.ring.advance(ticket, SlotState::Copying));
                self.move_on();
                self.copying = Some(Copying {
                    ticket,
                    open,
                    mapped,
                    copy,
                    status,
                    mapped_at,
                });
                if let Some(earlier) = earlier {
                    self.complete(earlier);
                }
            }
            Err((reason, error)) => {
                drop(open);
                let max_errors = self.shared.config.max_errors;
                self.shared
                    .with(|state| state.health.error(Role::Worker, &error, max_errors));
                if let Some(earlier) = earlier {
                    self.complete(earlier);
                }
                self.fail(ticket, reason);
            }
        }
    }

    /// Maps a picture and begins to copy it. Nothing is mapped where that fails.
    fn begin_copy(&self, open: &Open<G>, shown: &DisplayInfo) -> Result<Begun<G>, Refused> {
        let mapped = self
            .shared
            .call(Role::Worker, Call::Map, || {
                self.api.map(&open.decoder, shown)
            })
            .map_err(|error| (DropReason::Map(error.clone()), error))?;
        let mapped_at = self.shared.clock.now();
        let copy = self.shared.call(Role::Worker, Call::BeginCopy, || {
            self.api.begin_copy(&open.decoder, &open.format, &mapped)
        });
        match copy {
            Ok(copy) => Ok((mapped, copy, mapped_at)),
            Err(error) => {
                self.unmap(open, mapped);
                Err((DropReason::Copy(error.clone()), error))
            }
        }
    }

    fn unmap(&self, open: &Open<G>, mapped: G::Mapped) {
        let result = self.shared.call(Role::Worker, Call::Unmap, || {
            self.api.unmap(&open.decoder, mapped)
        });
        if let Err(error) = result {
            // The surface may stay mapped for ever: the decoder has one less.
            self.shared.with(|state| state.health.lose(&error));
        }
    }

    fn finish(&mut self) {
        if let Some(copying) = self.copying.take() {
            self.complete(copying);
        }
    }

    /// Waits for a copy, gives the surfaces back and hands the picture out.
    fn complete(&mut self, copying: Copying<G>) {
        let Copying {
            ticket,
            open,
            mapped,
            copy,
            status,
            mapped_at,
        } = copying;
        let frame = self.shared.call(Role::Worker, Call::FinishCopy, || {
            self.api.finish_copy(copy)
        });
        self.unmap(&open, mapped);
        let format = open.format.clone();
        drop(open);
        match frame {
            Ok(frame) => self.hand_out(ticket, frame, format, status, mapped_at),
            Err(error) => {
                let max_errors = self.shared.config.max_errors;
                self.shared
                    .with(|state| state.health.error(Role::Worker, &error, max_errors));
                self.fail(ticket, DropReason::Copy(error));
            }
        }
    }

    fn hand_out(
        &mut self,
        ticket: Ticket,
        frame: G::Frame,
        format: Arc<G::Format>,
        status: Option<DecodeStatus>,
        mapped_at: Duration,
    ) {
        let now = self.shared.clock.now();
        let released = self
            .shared
            .with_word_to(Party::Parser, |state| state.release(ticket));
        drop(released);
        let ready = self.shared.quietly(|state| {
            if !state.ring.advance(ticket, SlotState::Ready) {
                return None;
            }
            let damage = state.judge(ticket, status);
            let picture = state.ring.picture(ticket)?;
            let (token, shown) = (picture.token, picture.shown);
            let times = Times {
                mapped: mapped_at,
                copied: now,
                out: now,
                ..picture.times
            };
            let damaged = damage != Damage::None;
            // A token that has ended already would be handed out twice.
            state.ledger.end(token, End::Picture { damaged }).then(|| {
                state.delivering = true;
                (token, shown, damage, times)
            })
        });
        if let Some((token, shown, damage, times)) = ready {
            self.sink.picture(Picture {
                token,
                ticket,
                frame,
                format,
                shown,
                damage,
                times,
            });
        }
        self.leave(ticket);
    }

    /// A picture without pixels leaves.
    fn fail(&mut self, ticket: Ticket, reason: DropReason) {
        let released = self.shared.with(|state| state.release(ticket));
        drop(released);
        let told = self.shared.with(|state| {
            if !state.ring.advance(ticket, SlotState::Failed) {
                return None;
            }
            let picture = state.ring.picture(ticket)?;
            let (token, order) = (picture.token, picture.decoded.order);
            if picture.decoded.reference {
                state.health.damage(order);
            }
            if let DropReason::TimedOut(limit) = reason {
                let error = timed_out(limit);
                state
                    .health
                    .error(Role::Worker, &error, self.shared.config.max_errors);
            }
            state.ledger.end(token, End::Failed).then(|| {
                state.delivering = true;
                token
            })
        });
        if let Some(token) = told {
            self.sink.dropped(token, reason);
        }
        if ticket == self.next {
            self.move_on();
        }
        self.leave(ticket);
    }

    fn skip(&mut self) {
        let ticket = self.next;
        let released = self.shared.with(|state| state.release(ticket));
        drop(released);
        self.move_on();
        self.leave(ticket);
    }

    fn move_on(&mut self) {
        self.next = self.next.next();
        self.status = None;
        self.ask_again = POLL.0;
    }

    /// Frees the slot.
    fn leave(&self, ticket: Ticket) {
        let now = self.shared.clock.now();
        self.delivered(|state| {
            state.head_since = now;
            state.ring.leave(ticket);
        });
    }

    /// The output has what it was given.
    fn delivered(&self, change: impl FnOnce(&mut State<G>)) {
        let flushing = self.shared.with_word_to(Party::Parser, |state| {
            state.delivering = false;
            change(state);
            state.flushing
        });
        if flushing {
            // The flush returns when nothing of before it is with the output.
            self.shared.wake(Party::Caller);
        }
    }
}
