// SPDX-License-Identifier: MPL-2.0

//! The driver: sessions of the stock dispatcher, an input of access units, an output that keeps checksums.
//!
//! Its clock is that of the pauses, which pass at once, and of the waits for pictures, which are real. So
//! 60 s of retries take no time, and a picture that is late is waited for.

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::{Duration, Instant};

use onevpl_sys::*;
use test_streams::Expected;
use vplretry_core::{
    Corruption, Damage, Decoded, Event, Input, Reason, Reset, Stats, Status, VplDecodeDriver, Wake,
};

use crate::books::{Books, Fate};
use crate::client::Client;
use crate::play::{Downstream, Setup, set_session_faults};
use crate::surface::{Surface, Token};
use crate::units::{Source, Unit};

/// The buffer of a real client; an access unit of these streams is far smaller.
const BUFFER: usize = 16 << 20;

/// A published picture.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) unit: u64,
    /// In the notation of the stream's list.
    pub(crate) checksum: String,
    pub(crate) md5: String,
    pub(crate) width: u16,
    pub(crate) corruption: Corruption,
    /// No access unit before it was lost.
    pub(crate) intact: bool,
}

/// An access unit in the bitstream.
struct Held {
    unit: Rc<Unit>,
    bytes: Vec<u8>,
    /// Bytes that the runtime has taken.
    at: usize,
}

impl Held {
    fn len(&self) -> usize {
        self.bytes.len() - self.at
    }
}

pub(crate) struct Driver {
    session: Option<Rc<Client>>,
    /// Between Init and Close.
    initialised: bool,
    codec: u32,
    depth: u16,
    /// Faults of the sessions that are still to be opened.
    faults: VecDeque<String>,
    input: VecDeque<Rc<Unit>>,
    bitstream: VecDeque<Held>,
    /// The unit that was last shown to the runtime.
    at_hand: Option<Rc<Unit>>,
    /// A unit that the runtime took with the error that it answered.
    eaten: Option<u64>,
    /// The parameter sets in force.
    sets: Vec<u8>,
    /// The runtime has forgotten them.
    sets_due: bool,
    waits_for_key: bool,
    /// The last drain came to its end.
    drained: bool,
    /// Surfaces given out so far.
    given: u64,
    last_order: Option<u64>,
    expected: Expected,
    downstream: Downstream,
    held: VecDeque<Surface>,
    clock: Duration,
    /// Calls since bytes were taken, a picture came or one was published, and the most there may be.
    pub(crate) without_progress: u32,
    patience: u32,
    last_input: Option<Input>,
    /// Questions of [`VplDecodeDriver::cancelled`] that are still answered with no.
    pub(crate) cancel_in: Cell<Option<u32>>,
    /// The next unit is the first after one of those.
    begins_anew: bool,
    /// Resets and re-initialisations after which no key frame came: what is decoded next refers to pictures
    /// that the runtime has forgotten, and may have been drained too early for the order of the stream.
    pub(crate) restarts: u32,
    pub(crate) books: Books,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) events: Vec<Event>,
}

impl Driver {
    pub(crate) fn new(source: &Source, setup: &Setup) -> Self {
        let mut driver = Self {
            session: None,
            initialised: false,
            codec: source.codec,
            depth: setup.runtime_depth,
            faults: setup.faults.iter().cloned().collect(),
            input: VecDeque::new(),
            bitstream: VecDeque::new(),
            at_hand: None,
            eaten: None,
            sets: Vec::new(),
            sets_due: false,
            waits_for_key: false,
            drained: false,
            given: 0,
            last_order: None,
            expected: source.expected.clone(),
            downstream: setup.downstream,
            held: VecDeque::new(),
            clock: Duration::ZERO,
            without_progress: 0,
            // Both budgets, a repair of each kind and a sync point before the first pause.
            patience: setup.settings.max_attempts + setup.settings.spin_guard + 4,
            last_input: None,
            cancel_in: Cell::new(None),
            begins_anew: false,
            restarts: 0,
            books: Books::new(),
            pictures: Vec::new(),
            events: Vec::new(),
        };
        let opened = driver.open_session();
        assert!(!opened.is_error(), "a session of the dispatcher: {opened}");
        driver
    }

    pub(crate) fn hand_over(&mut self, unit: &Rc<Unit>) {
        self.books.expect(unit.id);
        self.input.push_back(Rc::clone(unit));
    }

    /// What refers to something that is lost is not decoded.
    pub(crate) fn wait_for_key(&mut self) {
        self.waits_for_key = true;
    }

    /// The budgets of a call of the loop are its own.
    pub(crate) fn progress(&mut self) {
        self.without_progress = 0;
    }

    fn open_session(&mut self) -> Status {
        set_session_faults(self.faults.pop_front().as_deref().unwrap_or(""));
        match Client::dispatched(self.codec) {
            Ok(client) => {
                self.session = Some(Rc::new(client));
                Status::NONE
            }
            Err(status) => Status(status.0),
        }
    }

    fn live_session(&self) -> Rc<Client> {
        let session = self.session.as_ref();
        Rc::clone(session.expect("the loop calls only after a recovery that succeeded"))
    }

    /// Puts a unit into a bitstream, behind the parameter sets if those are gone.
    fn hold(&mut self, unit: &Rc<Unit>) -> Held {
        if unit.has_sequence {
            self.sets.clone_from(&unit.sets);
        } else if !unit.sets.is_empty() && !self.sets.ends_with(&unit.sets) {
            self.sets.extend_from_slice(&unit.sets);
        }
        let due = std::mem::take(&mut self.sets_due) && !unit.has_sequence;
        Held {
            unit: Rc::clone(unit),
            bytes: if due {
                unit.behind(&self.sets)
            } else {
                unit.bytes.clone()
            },
            at: 0,
        }
    }

    /// The runtime has forgotten the parameter sets: the front of the bitstream goes behind them.
    fn forget_sets(&mut self) {
        self.sets_due = true;
        if let Some(front) = self.bitstream.pop_front() {
            let again = self.hold(&front.unit);
            self.bitstream.push_front(again);
        }
    }

    /// The runtime has forgotten everything.
    fn restarted(&mut self) {
        self.forget_sets();
        self.begins_anew = true;
    }

    /// A call with the front of the bitstream. A unit that is taken whole leaves it.
    fn with_front<T>(&mut self, call: impl FnOnce(&Client, &mut mfxBitstream) -> T) -> T {
        let session = self.live_session();
        let Some(front) = self.bitstream.front_mut() else {
            return call(&session, &mut Client::bitstream(&mut [], true));
        };
        self.at_hand = Some(Rc::clone(&front.unit));
        if std::mem::take(&mut self.begins_anew) && !front.unit.key {
            self.restarts += 1;
            self.books.intact = false;
        }
        let mut bs = Client::bitstream(&mut front.bytes[front.at..], true);
        bs.TimeStamp = front.unit.id;
        let result = call(&session, &mut bs);
        assert_eq!((bs.DataOffset + bs.DataLength) as usize, front.len());
        front.at += bs.DataOffset as usize;
        if bs.DataOffset > 0 {
            // The call that took them may have found the device busy all the same.
            self.without_progress = 1;
        }
        if front.len() == 0 {
            self.books.taken(front.unit.id);
            self.bitstream.pop_front();
        }
        result
    }

    /// DecodeHeader and Init.
    fn init(&mut self) -> Status {
        let (codec, depth) = (self.codec, self.depth);
        let header = self.with_front(|client, bs| client.header(codec, bs));
        let mut par = match header {
            Ok(par) => par,
            Err(status) => return Status(status.0),
        };
        par.AsyncDepth = depth;
        let status = Status(self.live_session().init(&mut par).0);
        self.initialised = !status.is_error();
        status
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.initialised) {
            self.live_session().close_decoder();
        }
    }

    fn call(&mut self, input: Input) -> Decoded<Surface, Token> {
        let (status, surface, sync) = match input {
            Input::Bitstream => self.with_front(|client, bs| client.call(Some(bs))),
            Input::Drain => self.live_session().call(None),
        };
        let session = self.live_session();
        let surface = Surface::new(surface, self.given, &session);
        if surface.is_some() {
            self.given += 1;
            self.without_progress = 0;
        }
        Decoded {
            status: Status(status.0),
            surface,
            sync: Token::new(sync, &session),
        }
    }

    /// Feeds the units of the bitstream one after the other: a bitstream with two of them would have one
    /// time stamp for both, and VP9 and VP8 allow it for no more than one.
    fn feed(&mut self) -> Decoded<Surface, Token> {
        loop {
            let units = self.bitstream.len();
            let mut decoded = nothing(Status::NONE);
            if !self.initialised {
                decoded.status = self.init();
            }
            if !decoded.status.is_error() {
                decoded = self.call(Input::Bitstream);
            }
            let took_a_unit = self.bitstream.len() < units;
            if decoded.status == Status::MORE_DATA && decoded.surface.is_none() {
                if took_a_unit && !self.bitstream.is_empty() {
                    continue;
                }
            } else if decoded.status.is_error() && decoded.surface.is_none() && took_a_unit {
                self.eaten = self.at_hand.as_ref().map(|unit| unit.id);
            }
            return decoded;
        }
    }
}

fn nothing(status: Status) -> Decoded<Surface, Token> {
    Decoded {
        status,
        surface: None,
        sync: None,
    }
}

impl VplDecodeDriver for Driver {
    type Surface = Surface;
    type Sync = Token;
    type Format = (u32, [u16; 4]);
    type Error = Infallible;

    fn bitstream_len(&self) -> usize {
        self.bitstream.iter().map(Held::len).sum()
    }

    fn buffer_size(&self) -> usize {
        BUFFER
    }

    fn is_eof(&self) -> bool {
        false
    }

    fn refill(&mut self) -> Result<usize, Infallible> {
        self.progress();
        while let Some(unit) = self.input.pop_front() {
            if self.waits_for_key && !unit.key {
                self.books.account(unit.id, Fate::NoKeyFrame);
                continue;
            }
            self.waits_for_key = false;
            let held = self.hold(&unit);
            let length = held.len();
            self.bitstream.push_back(held);
            return Ok(length);
        }
        Ok(0)
    }

    fn drop_unit(&mut self, reason: Reason) {
        let fate = Fate::Dropped(reason);
        if let Some(id) = self.eaten.take()
            && self.books.is_open(id)
        {
            self.books.account(id, fate);
        }
        for held in std::mem::take(&mut self.bitstream) {
            // They may have stood before it.
            self.sets_due |= held.bytes.len() != held.unit.bytes.len();
            self.books.account(held.unit.id, fate);
        }
        if reason == Reason::Flushed {
            for unit in std::mem::take(&mut self.input) {
                self.books.account(unit.id, fate);
            }
        }
    }

    fn decode_async(&mut self, input: Input) -> Decoded<Surface, Token> {
        if self.last_input.replace(input) != Some(input) {
            // A drain, on its own or within a re-initialisation, has a budget of its own.
            self.progress();
        }
        self.without_progress += 1;
        assert!(
            self.without_progress <= self.patience,
            "{} calls without progress",
            self.without_progress
        );
        self.eaten = None;
        let decoded = match input {
            Input::Bitstream => self.feed(),
            Input::Drain if !self.initialised => nothing(Status::MORE_DATA),
            Input::Drain => self.call(input),
        };
        self.drained = input == Input::Drain && decoded.status == Status::MORE_DATA;
        decoded
    }

    fn wait_frame(&mut self, surface: &Surface, sync: Option<&Token>, wait: Duration) -> Status {
        assert!(
            surface.belongs_to(&self.live_session()),
            "of a lost session"
        );
        let started = Instant::now();
        let status = surface.wait(sync, wait);
        self.clock += started.elapsed();
        status
    }

    fn wait_token(&mut self, token: &Token, wait: Duration) -> Status {
        let started = Instant::now();
        let status = token.wait(wait);
        self.clock += started.elapsed();
        status
    }

    fn read_parameters(&mut self) -> Result<Status, Infallible> {
        let session = self.live_session();
        let mut par = mfxVideoParam::default();
        // SAFETY: the session is open and the structure is valid.
        let status = unsafe { (session.f.MFXVideoDECODE_GetVideoParam)(session.session, &mut par) };
        Ok(Status(status.0))
    }

    fn reset(&mut self, why: Reset) -> Result<Status, Infallible> {
        self.progress();
        let again = self.at_hand.take().filter(|unit| {
            // Where bytes of it are left, `forget_sets` begins it anew.
            why == Reset::Aborted && self.books.put_back(unit.id)
        });
        self.books.close_inside(match why {
            Reset::Drained if self.drained => Fate::NoPicture,
            Reset::Drained => Fate::LostInside("the drain ended early"),
            Reset::Aborted => Fate::LostInside("reset"),
            Reset::Flushed => Fate::LostInside("flushed"),
        });
        if let Some(unit) = again {
            let held = self.hold(&unit);
            self.bitstream.push_front(held);
        }
        self.waits_for_key |= why == Reset::Flushed;
        self.restarted();
        if !self.initialised {
            return Ok(Status::NONE);
        }
        let session = self.live_session();
        let mut par = session.video_param();
        // SAFETY: the session is open and the structure is valid.
        let status = unsafe { (session.f.MFXVideoDECODE_Reset)(session.session, &mut par) };
        if status != MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM {
            return Ok(Status(status.0));
        }
        self.close();
        let status = session.init(&mut par);
        self.initialised = !status.is_error();
        Ok(Status(status.0))
    }

    fn reinit(&mut self) -> Result<Status, Infallible> {
        self.progress();
        self.books.close_inside(if self.drained {
            Fate::NoPicture
        } else {
            Fate::LostInside("the drain ended early")
        });
        self.close();
        self.restarted();
        let units = self.bitstream.len();
        let status = self.init();
        if status.is_error() && self.bitstream.len() < units {
            self.eaten = self.at_hand.as_ref().map(|unit| unit.id);
        }
        Ok(status)
    }

    fn recover(&mut self, _cause: Status) -> Result<Status, Infallible> {
        self.progress();
        let at_hand = self.at_hand.take();
        let again = at_hand.filter(|unit| unit.key && self.books.put_back(unit.id));
        self.books.close_inside(Fate::LostInside("device lost"));
        let left = std::mem::take(&mut self.bitstream);
        let left = left.into_iter().map(|held| held.unit);
        let mut units: Vec<Rc<Unit>> = again.into_iter().chain(left).collect();
        let key = units.iter().position(|unit| unit.key);
        for unit in units.drain(..key.unwrap_or(units.len())) {
            self.books.account(unit.id, Fate::LostInside("device lost"));
        }
        self.waits_for_key |= units.is_empty();
        self.bitstream = units.iter().map(|unit| self.hold(unit)).collect();
        self.forget_sets();
        self.initialised = false;
        // Surfaces that are held downstream keep it as long as they need it.
        self.session = None;
        Ok(self.open_session())
    }

    fn implementation(&self) -> &str {
        "vplsoft"
    }

    fn corruption(&self, surface: &Surface) -> u16 {
        assert!(surface.complete.get(), "looked at before its wait");
        surface.corrupted()
    }

    fn format(&self, surface: &Surface) -> Self::Format {
        assert!(surface.complete.get(), "looked at before its wait");
        surface.format()
    }

    fn format_changed(&mut self, _format: &Self::Format) -> Result<(), Infallible> {
        Ok(())
    }

    fn publish(&mut self, surface: Surface, corruption: Corruption) -> Result<(), Infallible> {
        assert!(surface.complete.get(), "published before its wait");
        assert!(
            self.last_order.is_none_or(|last| last < surface.order),
            "not in the runtime's order"
        );
        self.last_order = Some(surface.order);
        self.progress();
        let pixels = surface.pixels();
        let checksum = self.expected.checksum(&pixels);
        self.pictures.push(Picture {
            unit: surface.unit(),
            md5: match self.expected {
                Expected::Md5(_) => checksum.clone(),
                Expected::Crc(_) => format!("{:x}", md5::compute(&pixels)),
            },
            checksum,
            width: surface.format().1[2],
            corruption,
            intact: self.books.intact,
        });
        self.books.account(surface.unit(), Fate::Published);
        self.held.push_back(surface);
        if let Downstream::Takes = self.downstream {
            self.held.clear();
        }
        Ok(())
    }

    fn discard(&mut self, surface: Surface, reason: Reason) {
        self.progress();
        self.books.account(surface.unit(), Fate::Discarded(reason));
    }

    fn now(&self) -> Duration {
        self.clock
    }

    fn backoff(&mut self, pause: Duration) -> Wake {
        if self.cancelled() {
            return Wake::Cancelled;
        }
        self.clock += pause;
        if let Downstream::GivesOneBackPerPause = self.downstream {
            self.held.pop_front();
        }
        Wake::Elapsed
    }

    fn cancelled(&self) -> bool {
        let left = self.cancel_in.get();
        self.cancel_in.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    }

    fn on_event(&mut self, event: &Event, _stats: &Stats) {
        if let Event::FrameLost {
            damage: Damage::UntilKeyframe,
            ..
        } = event
        {
            self.wait_for_key();
        }
        self.events.push(event.clone());
    }
}
