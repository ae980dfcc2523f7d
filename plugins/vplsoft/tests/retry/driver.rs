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

use onevpl_sys::mfxBitstream;
use test_streams::Expected;
use vplretry_core::{
    Corruption, Damage, Decoded, Event, Input, Reason, Reset, Stats, Status, VplDecodeDriver, Wake,
};

use crate::bitstream::{Bitstream, Taken};
use crate::books::{Books, Fate};
use crate::play::{Downstream, Picture, Setup};
use crate::runtime::{Runtime, nothing};
use crate::surface::{Surface, Token};
use crate::units::{Source, Unit};

/// The buffer of a real client; an access unit of these streams is far smaller.
const BUFFER: usize = 16 << 20;

pub(crate) struct Driver {
    runtime: Runtime,
    input: VecDeque<Rc<Unit>>,
    bitstream: Bitstream,
    /// The unit that was last shown to the runtime.
    at_hand: Option<Rc<Unit>>,
    /// A unit that the runtime took with the error that it answered.
    eaten: Option<u64>,
    waits_for_key: bool,
    /// The last drain came to its end.
    drained: bool,
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
    /// Resets and re-initialisations after which no key frame came: what is decoded next refers to pictures
    /// that the runtime has forgotten, and may have been drained too early for the order of the stream.
    pub(crate) restarts: u32,
    /// The next unit is the first after a reset or re-initialisation.
    begins_anew: bool,
    pub(crate) books: Books,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) events: Vec<Event>,
}

impl Driver {
    pub(crate) fn new(source: &Source, setup: &Setup) -> Self {
        let mut driver = Self {
            runtime: Runtime::new(source.codec, setup.runtime_depth, &setup.faults),
            input: VecDeque::new(),
            bitstream: Bitstream::default(),
            at_hand: None,
            eaten: None,
            waits_for_key: false,
            drained: false,
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
        let opened = driver.runtime.open();
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

    /// The runtime has forgotten everything.
    fn restarted(&mut self) {
        self.bitstream.restart();
        self.begins_anew = true;
    }

    /// A call with the unit at the front of the bitstream.
    fn show<T>(&mut self, call: impl FnOnce(&mut Runtime, &mut mfxBitstream) -> T) -> (T, Taken) {
        if let Some(unit) = self.bitstream.front() {
            if std::mem::take(&mut self.begins_anew) && !unit.key {
                self.restarts += 1;
                self.books.intact = false;
            }
            self.at_hand = Some(Rc::clone(unit));
        }
        let runtime = &mut self.runtime;
        let (result, taken) = self.bitstream.show(|bs| call(runtime, bs));
        if taken != Taken::Nothing {
            // The call that took them may have found the device busy all the same.
            self.without_progress = 1;
        }
        if let (Taken::Whole, Some(unit)) = (taken, &self.at_hand) {
            self.books.taken(unit.id);
        }
        (result, taken)
    }

    fn init(&mut self) -> (Status, Taken) {
        self.show(Runtime::init)
    }

    /// Feeds unit after unit until one gives more than the wish for the next.
    fn feed(&mut self) -> Decoded<Surface, Token> {
        loop {
            let (mut decoded, mut taken) = (nothing(Status::NONE), Taken::Nothing);
            if !self.runtime.is_initialised() {
                (decoded.status, taken) = self.init();
            }
            if !decoded.status.is_error() {
                (decoded, taken) = self.show(|runtime, bs| runtime.decode(Some(bs)));
            }
            if decoded.surface.is_some() || !decoded.status.is_error() || taken != Taken::Whole {
                return decoded;
            }
            if decoded.status != Status::MORE_DATA {
                self.note_eaten();
                return decoded;
            }
            if self.bitstream.is_empty() {
                return decoded;
            }
        }
    }

    fn note_eaten(&mut self) {
        self.eaten = self.at_hand.as_ref().map(|unit| unit.id);
    }
}

impl VplDecodeDriver for Driver {
    type Surface = Surface;
    type Sync = Token;
    type Format = (u32, [u16; 4]);
    type Error = Infallible;

    fn bitstream_len(&self) -> usize {
        self.bitstream.len()
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
            return Ok(self.bitstream.append(&unit));
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
        for unit in self.bitstream.clear() {
            self.books.account(unit.id, fate);
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
            Input::Drain if !self.runtime.is_initialised() => nothing(Status::MORE_DATA),
            Input::Drain => self.runtime.decode(None),
        };
        if decoded.surface.is_some() {
            self.progress();
        }
        self.drained = input == Input::Drain && decoded.status == Status::MORE_DATA;
        decoded
    }

    fn wait_frame(&mut self, surface: &Surface, sync: Option<&Token>, wait: Duration) -> Status {
        assert!(
            surface.belongs_to(self.runtime.session()),
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
        Ok(self.runtime.read_parameters())
    }

    fn reset(&mut self, why: Reset) -> Result<Status, Infallible> {
        self.progress();
        let again = self.at_hand.take().filter(|unit| {
            // Where bytes of it are left, it begins anew by `restarted`.
            why == Reset::Aborted && self.books.put_back(unit.id)
        });
        self.books.close_inside(match why {
            Reset::Drained if self.drained => Fate::NoPicture,
            Reset::Drained => Fate::LostInside("the drain ended early"),
            Reset::Aborted => Fate::LostInside("reset"),
            Reset::Flushed => Fate::LostInside("flushed"),
        });
        if let Some(unit) = again {
            self.bitstream.put_back(&unit);
        }
        self.waits_for_key |= why == Reset::Flushed;
        self.restarted();
        Ok(self.runtime.reset())
    }

    fn reinit(&mut self) -> Result<Status, Infallible> {
        self.progress();
        self.books.close_inside(if self.drained {
            Fate::NoPicture
        } else {
            Fate::LostInside("the drain ended early")
        });
        self.runtime.close();
        self.restarted();
        let (status, taken) = self.init();
        if status.is_error() && taken == Taken::Whole {
            self.note_eaten();
        }
        Ok(status)
    }

    fn recover(&mut self, _cause: Status) -> Result<Status, Infallible> {
        self.progress();
        let at_hand = self.at_hand.take();
        let again = at_hand.filter(|unit| unit.key && self.books.put_back(unit.id));
        self.books.close_inside(Fate::LostInside("device lost"));
        let left = self.bitstream.clear();
        let mut units: Vec<Rc<Unit>> = again.into_iter().chain(left).collect();
        let key = units.iter().position(|unit| unit.key);
        for unit in units.drain(..key.unwrap_or(units.len())) {
            self.books.account(unit.id, Fate::LostInside("device lost"));
        }
        self.waits_for_key |= units.is_empty();
        for unit in &units {
            self.bitstream.append(unit);
        }
        self.bitstream.restart();
        Ok(self.runtime.open())
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
