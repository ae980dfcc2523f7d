// SPDX-License-Identifier: MPL-2.0

//! A driver double: a small decoder model on a virtual clock that can be scripted call by call.
//! It panics where the loop breaks a rule: a surface released twice or published without its wait
//! being over, frames out of order, an access unit accounted for twice, an empty bitstream fed, input
//! after a drain without a reset, a surface of a lost session that is still used, calls without end.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use vplretry_core::{
    Corruption, Decoded, Event, FrameLoop, Input, Reason, Reset, Settings, Stats, Status,
    VplDecodeDriver, Wake,
};

use crate::ledger::{Fate, Ledger, Surface, Token};

/// More driver calls than any test needs.
const ENDLESS: u64 = 2_000_000;

/// What `DecodeFrameAsync` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Say {
    /// As the model decodes.
    Natural,
    /// This status; with a surface, the model's next frame, if it has one.
    Status {
        status: i32,
        surface: bool,
        sync: bool,
    },
    /// As `Status` without surface and sync, after consuming the rest of the access unit.
    Eat(i32),
    /// As `Status` without surface and sync, after consuming one byte.
    Nibble(i32),
}

/// A status alone.
pub(crate) fn say(status: i32) -> Say {
    Say::Status {
        status,
        surface: false,
        sync: false,
    }
}

/// A status with a surface and a sync point.
pub(crate) fn frame(status: i32) -> Say {
    Say::Status {
        status,
        surface: true,
        sync: true,
    }
}

/// A status with a sync point and no surface.
pub(crate) fn token(status: i32) -> Say {
    Say::Status {
        status,
        surface: false,
        sync: true,
    }
}

/// What a wait answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As the model's latency says.
    Natural,
    /// This status at once.
    Status(i32),
    /// `MFX_WRN_IN_EXECUTION` after the whole time of the call.
    Hang,
}

/// An access unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) id: u32,
    pub(crate) len: usize,
    pub(crate) key: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DriverError(pub(crate) &'static str);

/// A unit of which bytes are in the bitstream.
#[derive(Debug, Clone, Copy)]
struct Fed {
    unit: Unit,
    left: usize,
}

pub(crate) struct Double {
    pub(crate) ledger: Rc<Ledger>,
    /// Units that were handed over and not appended yet.
    pub(crate) input: VecDeque<Unit>,
    bitstream: VecDeque<Fed>,
    /// Units that the runtime took without giving anything; the driver knows them when it resets.
    eaten: Vec<u32>,
    /// Frames inside the decoder.
    inside: VecDeque<u32>,

    pub(crate) script: VecDeque<Say>,
    /// The answer once the script is over.
    pub(crate) then: Say,
    pub(crate) waits: VecDeque<Wait>,
    pub(crate) then_wait: Wait,
    /// Statuses of `recover`, `reinit`, `reset`, `read_parameters`; 0 where there is none.
    pub(crate) recovers: VecDeque<i32>,
    pub(crate) reinits: VecDeque<i32>,
    pub(crate) resets: VecDeque<i32>,
    pub(crate) params: VecDeque<i32>,
    pub(crate) refill_errors: VecDeque<Option<&'static str>>,
    pub(crate) publish_error: Option<&'static str>,
    /// A unit that the driver puts into the bitstream of the next new session.
    pub(crate) replay: Option<Unit>,

    /// Frames the decoder holds back.
    pub(crate) delay: usize,
    /// Bytes consumed by one natural call.
    pub(crate) bite: usize,
    pub(crate) latency: Duration,
    pub(crate) decode_time: Duration,
    /// A pause lasts this many times what was asked.
    pub(crate) oversleep: u32,
    pub(crate) buffer_size: usize,
    pub(crate) eof: bool,
    pub(crate) can_grow: bool,
    pub(crate) corruption: HashMap<u32, u16>,
    pub(crate) formats: HashMap<u32, u32>,
    /// Between two steps of progress: most calls and most time.
    pub(crate) patience: Option<(u32, Duration)>,
    /// The first log line that begins so raises the cancel flag.
    pub(crate) cancel_on: Option<&'static str>,
    pub(crate) log: Vec<String>,
    pub(crate) events: Vec<(Duration, Event)>,
    pub(crate) pauses: Vec<Duration>,

    last_input: Option<Input>,
    /// The last answer was that of a busy or starved device.
    was_busy: bool,
    drained: bool,
    dead: bool,
    last_published: Option<u32>,
    calls_without_progress: u32,
    last_progress: Duration,
}

impl Default for Double {
    fn default() -> Self {
        Self {
            ledger: Rc::default(),
            input: VecDeque::new(),
            bitstream: VecDeque::new(),
            eaten: Vec::new(),
            inside: VecDeque::new(),
            script: VecDeque::new(),
            then: Say::Natural,
            waits: VecDeque::new(),
            then_wait: Wait::Natural,
            recovers: VecDeque::new(),
            reinits: VecDeque::new(),
            resets: VecDeque::new(),
            params: VecDeque::new(),
            refill_errors: VecDeque::new(),
            publish_error: None,
            replay: None,
            delay: 0,
            bite: usize::MAX,
            latency: Duration::ZERO,
            decode_time: Duration::ZERO,
            oversleep: 1,
            buffer_size: 1 << 20,
            eof: false,
            can_grow: false,
            corruption: HashMap::new(),
            formats: HashMap::new(),
            patience: None,
            cancel_on: None,
            log: Vec::new(),
            events: Vec::new(),
            pauses: Vec::new(),
            last_input: None,
            was_busy: false,
            drained: false,
            dead: false,
            last_published: None,
            calls_without_progress: 0,
            last_progress: Duration::ZERO,
        }
    }
}

impl Double {
    /// A double with this many access units of 100 bytes; the first is a key frame.
    pub(crate) fn with_units(count: u32) -> Self {
        let mut double = Self::default();
        for id in 0..count {
            double.hand_over(Unit {
                id,
                len: 100,
                key: id == 0,
            });
        }
        double
    }

    pub(crate) fn hand_over(&mut self, unit: Unit) {
        self.ledger.expect(unit.id);
        self.input.push_back(unit);
    }

    pub(crate) fn script(mut self, script: impl IntoIterator<Item = Say>) -> Self {
        self.script = script.into_iter().collect();
        self
    }

    pub(crate) fn then(mut self, then: Say) -> Self {
        self.then = then;
        self
    }

    pub(crate) fn waits(mut self, waits: impl IntoIterator<Item = Wait>) -> Self {
        self.waits = waits.into_iter().collect();
        self
    }

    pub(crate) fn into_loop(self, settings: Settings) -> FrameLoop<Self> {
        FrameLoop::new(self, settings)
    }

    fn note(&mut self, line: impl Into<String>) {
        let line = line.into();
        if self.cancel_on.is_some_and(|start| line.starts_with(start)) {
            self.cancel_on = None;
            self.ledger.cancel_now();
        }
        self.log.push(line);
        self.ledger.count_call();
        assert!(self.log.len() < ENDLESS as usize, "the loop does not end");
    }

    /// Takes the cancel flag back; the next call has budgets of its own.
    pub(crate) fn resume(&mut self) {
        self.ledger.clear_cancel();
        self.note_progress();
    }

    fn note_progress(&mut self) {
        self.calls_without_progress = 0;
        self.last_progress = self.ledger.now();
    }

    fn session_dies(&mut self, status: i32) {
        if matches!(status, -13 | -17 | -21) {
            self.dead = true;
        }
    }

    fn buffered(&self) -> usize {
        self.bitstream.iter().map(|fed| fed.left).sum()
    }

    /// Consumes up to `bite` bytes of the first unit; a complete unit is a frame inside.
    fn consume(&mut self, bite: usize) -> bool {
        let Some(fed) = self.bitstream.front_mut() else {
            return false;
        };
        fed.left -= fed.left.min(bite);
        if fed.left == 0 {
            self.inside.push_back(fed.unit.id);
            self.bitstream.pop_front();
        }
        self.note_progress();
        true
    }

    fn surface(&mut self) -> Option<Surface> {
        let id = self.inside.pop_front()?;
        self.note_progress();
        Some(Surface::new(
            id,
            self.ledger.now() + self.latency,
            &self.ledger,
        ))
    }

    fn natural(&mut self, input: Input) -> Decoded<Surface, Token> {
        if input == Input::Bitstream && self.inside.len() <= self.delay {
            let consumed = self.consume(self.bite);
            if consumed && self.inside.len() <= self.delay && self.buffered() > 0 {
                return self.answer(0, None, false);
            }
        }
        let keep = if input == Input::Drain { 0 } else { self.delay };
        if self.inside.len() > keep {
            let surface = self.surface();
            return self.answer(0, surface, true);
        }
        if input == Input::Drain {
            self.drained = true;
        }
        self.answer(Status::MORE_DATA.0, None, false)
    }

    fn answer(&self, status: i32, surface: Option<Surface>, sync: bool) -> Decoded<Surface, Token> {
        let sync = sync.then(|| Token::new(self.ledger.now() + self.latency, &self.ledger));
        Decoded {
            status: Status(status),
            surface,
            sync,
        }
    }

    fn wait(&mut self, ready: Duration, wait: Duration) -> i32 {
        match self.waits.pop_front().unwrap_or(self.then_wait) {
            Wait::Natural => {
                let left = ready.saturating_sub(self.ledger.now());
                self.ledger.pass(left.min(wait));
                if left <= wait { 0 } else { 1 }
            }
            Wait::Status(status) => {
                self.session_dies(status);
                status
            }
            Wait::Hang => {
                self.ledger.pass(wait);
                1
            }
        }
    }

    fn lose_inside(&mut self, why: &'static str) {
        let eaten = std::mem::take(&mut self.eaten).into_iter();
        for id in eaten.chain(std::mem::take(&mut self.inside)) {
            self.ledger.account(id, Fate::LostInside(why));
        }
    }

    /// The events of one kind.
    pub(crate) fn events_where(&self, keep: impl Fn(&Event) -> bool) -> Vec<Event> {
        let kept = self.events.iter().map(|(_, event)| event.clone());
        kept.filter(|event| keep(event)).collect()
    }
}

impl VplDecodeDriver for Double {
    type Surface = Surface;
    type Sync = Token;
    type Format = u32;
    type Error = DriverError;

    fn bitstream_len(&self) -> usize {
        self.ledger.count_call();
        self.buffered()
    }

    fn buffer_size(&self) -> usize {
        self.buffer_size
    }

    fn is_eof(&self) -> bool {
        self.eof && self.input.is_empty()
    }

    fn refill(&mut self) -> Result<usize, DriverError> {
        self.ledger.count_call();
        if let Some(error) = self.refill_errors.pop_front().flatten() {
            return Err(DriverError(error));
        }
        let Some(unit) = self.input.pop_front() else {
            return Ok(0);
        };
        self.note_progress();
        self.bitstream.push_back(Fed {
            unit,
            left: unit.len,
        });
        Ok(unit.len)
    }

    fn grow(&mut self) -> bool {
        self.note("grow");
        self.can_grow
    }

    fn drop_unit(&mut self, reason: Reason) {
        let mut ids: Vec<u32> = self.bitstream.drain(..).map(|fed| fed.unit.id).collect();
        ids.append(&mut self.eaten);
        if reason == Reason::Flushed {
            ids.extend(self.input.drain(..).map(|unit| unit.id));
        }
        self.note(format!("drop {ids:?} {reason}"));
        for id in ids {
            self.ledger.account(id, Fate::Dropped(reason));
        }
    }

    fn decode_async(&mut self, input: Input) -> Decoded<Surface, Token> {
        self.ledger.forbid_after_cancel();
        self.ledger.pass(self.decode_time);
        if self.last_input.replace(input) != Some(input) {
            // A drain, on its own or within a re-initialisation, has a budget of its own.
            self.note_progress();
        }
        self.calls_without_progress += 1;
        if let Some((calls, time)) = self.patience {
            assert!(
                self.calls_without_progress <= calls,
                "{} calls without progress",
                self.calls_without_progress
            );
            let stuck = self.ledger.now() - self.last_progress;
            assert!(stuck <= time, "{stuck:?} without progress");
        }
        assert!(
            input == Input::Drain || !self.drained,
            "fed after a drain without a reset"
        );
        assert!(
            input == Input::Drain || self.buffered() > 0 || self.was_busy,
            "an empty bitstream was fed"
        );
        let decoded = match self.script.pop_front().unwrap_or(self.then) {
            _ if self.dead => self.answer(-13, None, false),
            Say::Natural => self.natural(input),
            Say::Eat(status) => {
                if input == Input::Bitstream
                    && let Some(fed) = self.bitstream.pop_front()
                {
                    self.eaten.push(fed.unit.id);
                    self.note_progress();
                }
                self.session_dies(status);
                self.answer(status, None, false)
            }
            Say::Nibble(status) => {
                if input == Input::Bitstream {
                    self.consume(1);
                }
                self.session_dies(status);
                self.answer(status, None, false)
            }
            Say::Status {
                status,
                surface,
                sync,
            } => {
                if surface && self.inside.is_empty() && input == Input::Bitstream {
                    self.consume(usize::MAX);
                }
                let surface = if surface { self.surface() } else { None };
                self.session_dies(status);
                if input == Input::Drain && status == Status::MORE_DATA.0 {
                    // What it still held is never coming out.
                    self.lose_inside("the runtime ended the drain early");
                    self.drained = true;
                }
                self.answer(status, surface, sync)
            }
        };
        self.was_busy = matches!(decoded.status.0, 1 | 2 | 8 | 9 | 13 | -11 | -10_000);
        let kind = match input {
            Input::Bitstream => "decode",
            Input::Drain => "drain",
        };
        let surface = match &decoded.surface {
            Some(surface) => format!(" frame {}", surface.id),
            None => String::new(),
        };
        self.note(format!("{kind} {}{surface}", decoded.status.0));
        decoded
    }

    fn wait_frame(&mut self, surface: &Surface, sync: Option<&Token>, wait: Duration) -> Status {
        self.ledger.forbid_after_cancel();
        surface.check_session();
        let status = self.wait(surface.ready, wait);
        let by = if sync.is_some() { "" } else { " itself" };
        self.note(format!("wait {}{by} {status}", surface.id));
        surface.wait_ended(status);
        Status(status)
    }

    fn wait_token(&mut self, token: &Token, wait: Duration) -> Status {
        self.ledger.forbid_after_cancel();
        token.check_session();
        let status = self.wait(token.ready, wait);
        self.note(format!("token {status}"));
        Status(status)
    }

    fn read_parameters(&mut self) -> Result<Status, DriverError> {
        self.note("params");
        Ok(Status(self.params.pop_front().unwrap_or(0)))
    }

    fn reset(&mut self, why: Reset) -> Result<Status, DriverError> {
        self.note(format!("reset {why:?}"));
        self.note_progress();
        self.lose_inside("reset");
        if why == Reset::Aborted
            && let Some(fed) = self.bitstream.front_mut()
        {
            fed.left = fed.unit.len;
        }
        let status = self.resets.pop_front().unwrap_or(0);
        if status >= 0 {
            self.drained = false;
        }
        self.session_dies(status);
        Ok(Status(status))
    }

    fn reinit(&mut self) -> Result<Status, DriverError> {
        self.note("reinit");
        self.note_progress();
        assert_eq!(
            self.ledger.live(),
            0,
            "surfaces held over a re-initialisation"
        );
        self.lose_inside("the runtime was initialised anew");
        self.drained = false;
        let status = self.reinits.pop_front().unwrap_or(0);
        self.session_dies(status);
        Ok(Status(status))
    }

    fn recover(&mut self, cause: Status) -> Result<Status, DriverError> {
        self.note(format!("recover {}", cause.0));
        self.note_progress();
        assert_eq!(self.ledger.live(), 0, "surfaces held over a recovery");
        self.lose_inside("device lost");
        let status = self.recovers.pop_front().unwrap_or(0);
        if status < 0 {
            return Ok(Status(status));
        }
        self.ledger.new_session();
        self.dead = false;
        self.drained = false;
        // Nothing but the first unit may be fed again, and only a key frame.
        let mut keep = VecDeque::new();
        for mut fed in std::mem::take(&mut self.bitstream) {
            if fed.unit.key {
                fed.left = fed.unit.len;
                keep.push_back(fed);
            } else {
                self.ledger
                    .account(fed.unit.id, Fate::LostInside("device lost"));
            }
        }
        self.bitstream = keep;
        if let Some(unit) = self.replay.take() {
            self.ledger.expect(unit.id);
            let left = unit.len;
            self.bitstream.push_back(Fed { unit, left });
        }
        Ok(Status(status))
    }

    fn implementation(&self) -> &str {
        "double"
    }

    fn corruption(&self, surface: &Surface) -> u16 {
        surface.assert_waited();
        self.corruption.get(&surface.id).copied().unwrap_or(0)
    }

    fn format(&self, surface: &Surface) -> u32 {
        surface.assert_waited();
        self.formats.get(&surface.id).copied().unwrap_or(320)
    }

    fn format_changed(&mut self, format: &u32) -> Result<(), DriverError> {
        self.note(format!("format {format}"));
        Ok(())
    }

    fn publish(&mut self, surface: Surface, corruption: Corruption) -> Result<(), DriverError> {
        surface.assert_waited();
        surface.check_session();
        let mark = if corruption.is_clean() {
            ""
        } else {
            " corrupted"
        };
        self.note(format!("publish {}{mark}", surface.id));
        self.note_progress();
        if let Some(error) = self.publish_error.take() {
            self.ledger.account(surface.id, Fate::Errored);
            return Err(DriverError(error));
        }
        assert!(
            self.last_published.is_none_or(|last| last < surface.id),
            "frame {} after {:?}",
            surface.id,
            self.last_published
        );
        self.last_published = Some(surface.id);
        self.ledger.account(surface.id, Fate::Published);
        Ok(())
    }

    fn discard(&mut self, surface: Surface, reason: Reason) {
        self.note(format!("discard {} {reason}", surface.id));
        self.note_progress();
        self.ledger.account(surface.id, Fate::Discarded(reason));
    }

    fn now(&self) -> Duration {
        self.ledger.now()
    }

    fn backoff(&mut self, pause: Duration) -> Wake {
        self.note(format!("pause {} us", pause.as_micros()));
        self.pauses.push(pause);
        if self.ledger.cancelled() {
            return Wake::Cancelled;
        }
        self.ledger.pass(pause * self.oversleep);
        Wake::Elapsed
    }

    fn cancelled(&self) -> bool {
        self.ledger.count_call();
        self.ledger.cancelled()
    }

    fn on_event(&mut self, event: &Event, _stats: &Stats) {
        self.ledger.count_call();
        self.events.push((self.ledger.now(), event.clone()));
    }
}
