// SPDX-License-Identifier: MPL-2.0

//! The driver of the decode loop: sessions of a runtime, access units from the element, frames to the element.

mod feed;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onevpl_sys::{MappedSurface, PictureInfo, Surface, SyncPoint};
use vplretry_core::{
    Corruption, Damage, Decoded, Event, Input, Reason, Reset, Stats, Status, VplDecodeDriver, Wake,
};

use crate::bitstream::{Bitstream, Taken};
use crate::codec;
use crate::failure::{Failure, Kind};
use crate::ledger::{Fate, Ledger};
use crate::link::{CallKind, Link};
use crate::picture::Picture;
use crate::reply::{Content, Output, Reply};
use crate::runtime::{Runtime, milliseconds, nothing};
use crate::session::Setup;
use crate::spare::without_fields;
use crate::unit::{Token, Unit};

/// The most bytes that wait for the runtime: several access units of the highest level of any codec.
const BUFFER: usize = 256 << 20;
/// Units that H.264 may have in flight: 16 frames of two fields, and the one at hand.
const REORDER: u64 = 33;

/// What the element cannot go on from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.text)]
pub(crate) struct DriverError(pub(crate) Failure);

/// The command at hand: its number, and the flush that it came after.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Task {
    pub(crate) number: u64,
    pub(crate) epoch: u64,
}

pub(crate) struct Driver {
    link: Arc<Link>,
    runtime: Runtime,
    input: VecDeque<Arc<Unit>>,
    bitstream: Bitstream,
    /// The unit that was last shown to the runtime.
    at_hand: Option<Arc<Unit>>,
    /// The one before it: a runtime may decode an access unit when it sees the next.
    before: Option<Arc<Unit>>,
    /// A unit that the runtime took with the error that it answered.
    eaten: Option<Token>,
    waits_for_key: bool,
    /// The last drain came to its end.
    drained: bool,
    /// The last unit that was handed over.
    newest: Option<Token>,
    /// The codec is a run of bytes.
    byte_stream: bool,
    /// Whole frames are said to be whole.
    low_latency: bool,
    depth: u64,
    /// Frames go out as surfaces; cleared where that starves the runtime.
    wrap: Arc<AtomicBool>,
    /// The element copies the last picture; before it, so many surfaces were out.
    copying: Option<usize>,
    task: Task,
    started: Instant,
    ledger: Ledger,
}

impl Driver {
    pub(crate) fn new(link: Arc<Link>, runtime: Runtime, setup: &Setup) -> Self {
        let mut bitstream = Bitstream::default();
        bitstream.set_sets(setup.format.sets.clone());
        Self {
            ledger: Ledger::new(Arc::clone(&link)),
            link,
            runtime,
            input: VecDeque::new(),
            bitstream,
            at_hand: None,
            before: None,
            eaten: None,
            waits_for_key: false,
            drained: false,
            newest: None,
            byte_stream: codec::is_byte_stream(setup.format.codec),
            low_latency: setup.low_latency,
            depth: setup.settings.async_depth as u64,
            wrap: Arc::clone(&setup.wrap),
            copying: None,
            task: Task::default(),
            started: Instant::now(),
        }
    }

    pub(crate) fn set_task(&mut self, task: Task) {
        self.task = task;
    }

    pub(crate) fn hand_over(&mut self, unit: Unit) {
        self.ledger.expect(unit.token);
        self.newest = Some(unit.token);
        self.input.push_back(Arc::new(unit));
    }

    /// Parameter sets of new caps.
    pub(crate) fn set_sets(&mut self, sets: Vec<u8>) {
        self.bitstream.set_sets(sets);
    }

    /// What refers to something that is lost is not decoded.
    pub(crate) fn wait_for_key(&mut self) {
        self.waits_for_key = true;
        self.link.tell(Reply::NeedKeyFrame);
    }

    /// Decoding has ended: what has no fate gets this one.
    pub(crate) fn close_books(&mut self, fate: &Fate) {
        self.ledger.close_all(fate);
    }

    /// The runtime gets back the surface that is being copied before it is asked for another. Nothing waits
    /// for that while there is nothing to ask: the element then copies and goes on at once.
    fn end_copy(&mut self) {
        if let Some(before) = self.copying.take() {
            self.link
                .wait_for_surfaces(self.task.number, self.task.epoch, before);
        }
    }

    /// The picture of a surface: copied where a buffer lies ready for it, else the surface itself.
    fn content(&mut self, surface: MappedSurface) -> Content {
        let wrap = self.wrap.load(Ordering::Relaxed);
        if let Some(spare) = self.link.spare_for_next()
            && !wrap
        {
            let name = "copying a picture";
            let filled = self
                .link
                .call(name, CallKind::Wait, || spare.fill(&surface));
            if let Some(buffer) = filled {
                self.link.call("Release", CallKind::Work, || drop(surface));
                return Content::Copied(buffer);
            }
        }
        if !wrap {
            self.copying = Some(self.link.surfaces_out());
        }
        Content::Surface(Picture::new(surface, &self.link))
    }

    /// The runtime has forgotten everything.
    fn restarted(&mut self) {
        self.bitstream.restart();
    }
}

impl VplDecodeDriver for Driver {
    type Surface = Surface;
    type Sync = SyncPoint;
    type Format = PictureInfo;
    type Error = DriverError;

    fn bitstream_len(&self) -> usize {
        self.bitstream.len()
    }

    fn buffer_size(&self) -> usize {
        BUFFER
    }

    fn is_eof(&self) -> bool {
        false
    }

    fn refill(&mut self) -> Result<usize, DriverError> {
        while let Some(unit) = self.input.pop_front() {
            if self.waits_for_key && !unit.key {
                let reason = "a key frame is waited for";
                self.ledger
                    .account(unit.token, Fate::Dropped(reason.to_owned()));
                continue;
            }
            self.waits_for_key = false;
            let appended = self.bitstream.append(&unit);
            self.bitstream.join();
            return Ok(appended);
        }
        Ok(0)
    }

    fn drop_unit(&mut self, reason: Reason) {
        let eaten = self.eaten.take();
        let left: Vec<Token> = self
            .bitstream
            .clear()
            .iter()
            .map(|unit| unit.token)
            .collect();
        if reason == Reason::Flushed {
            self.input.clear();
            self.ledger.forget();
            return;
        }
        let fate = match reason {
            Reason::Leftover => Fate::Dropped(reason.to_string()),
            _ => Fate::Errored(reason.to_string()),
        };
        for token in eaten.into_iter().chain(left) {
            self.ledger.account(token, fate.clone());
        }
    }

    fn decode_async(&mut self, input: Input) -> Decoded<Surface, SyncPoint> {
        self.end_copy();
        self.link.reclaim();
        self.eaten = None;
        let decoded = match input {
            Input::Bitstream => self.feed(),
            Input::Drain if !self.runtime.is_initialised() => nothing(Status::MORE_DATA),
            Input::Drain => self.runtime.decode(None),
        };
        self.drained = input == Input::Drain && decoded.status == Status::MORE_DATA;
        decoded
    }

    fn wait_frame(
        &mut self,
        surface: &Surface,
        sync: Option<&SyncPoint>,
        wait: Duration,
    ) -> Status {
        match sync {
            Some(sync) => self.wait_token(sync, wait),
            None => Status(
                self.link
                    .call("Synchronize", CallKind::Wait, || {
                        surface.synchronize(milliseconds(wait))
                    })
                    .0,
            ),
        }
    }

    fn wait_token(&mut self, token: &SyncPoint, wait: Duration) -> Status {
        let name = "MFXVideoCORE_SyncOperation";
        let waited = self
            .link
            .call(name, CallKind::Wait, || token.wait(milliseconds(wait)));
        Status(waited.0)
    }

    fn read_parameters(&mut self) -> Result<Status, DriverError> {
        Ok(self.runtime.read_parameters())
    }

    fn reset(&mut self, why: Reset) -> Result<Status, DriverError> {
        self.end_copy();
        self.before = None;
        let again = self
            .at_hand
            .take()
            .filter(|unit| why == Reset::Aborted && self.ledger.put_back(unit.token));
        match why {
            Reset::Drained if self.drained => self.ledger.close_inside(&Fate::WithoutPicture),
            Reset::Drained => self
                .ledger
                .close_inside(&Fate::Errored("the drain ended early".to_owned())),
            Reset::Aborted => self
                .ledger
                .close_inside(&Fate::Errored("the runtime was reset".to_owned())),
            Reset::Flushed => self.ledger.forget(),
        }
        // Bytes of it that are left begin anew by `restarted`.
        if let Some(unit) = again
            && !self.bitstream.unbegun().any(|token| token == unit.token)
        {
            self.bitstream.put_back(&unit);
        }
        self.waits_for_key |= why == Reset::Flushed;
        self.restarted();
        self.runtime.reset().map_err(DriverError)
    }

    fn reinit(&mut self) -> Result<Status, DriverError> {
        self.end_copy();
        self.ledger.close_inside(&if self.drained {
            Fate::WithoutPicture
        } else {
            Fate::Errored("the drain ended early".to_owned())
        });
        self.runtime.close_decoder().map_err(DriverError)?;
        self.restarted();
        let (status, taken) = self.show(Runtime::init);
        if status.is_error() && taken == Taken::Whole {
            self.note_eaten();
        }
        Ok(status)
    }

    fn recover(&mut self, cause: Status) -> Result<Status, DriverError> {
        self.end_copy();
        let lost = || Fate::Dropped(format!("the device was lost with {cause}"));
        let mut again: Vec<Arc<Unit>> = Vec::new();
        for unit in [self.before.take(), self.at_hand.take()]
            .into_iter()
            .flatten()
        {
            if (unit.key || !again.is_empty()) && self.ledger.put_back(unit.token) {
                again.push(unit);
            }
        }
        let left = self.bitstream.clear();
        again.retain(|unit| left.iter().all(|other| other.token != unit.token));
        let mut units: Vec<Arc<Unit>> = again.into_iter().chain(left).collect();
        let key = units.iter().position(|unit| unit.key);
        let given_up: Vec<Arc<Unit>> = units.drain(..key.unwrap_or(units.len())).collect();
        if units.is_empty() {
            self.wait_for_key();
        }
        self.ledger.close_inside(&lost());
        for unit in given_up {
            self.ledger.account(unit.token, lost());
        }
        for unit in &units {
            self.bitstream.append(unit);
        }
        self.bitstream.restart();
        self.link.reclaim();
        match self.runtime.open() {
            Ok(()) => Ok(Status::NONE),
            Err(failure) if failure.kind == Kind::Wedged => Err(DriverError(failure)),
            // Tried again, with a pause.
            Err(_) => Ok(Status::DEVICE_FAILED),
        }
    }

    fn implementation(&self) -> &str {
        self.runtime.implementation()
    }

    fn corruption(&self, surface: &Surface) -> u16 {
        surface.corrupted()
    }

    fn format(&self, surface: &Surface) -> PictureInfo {
        without_fields(&surface.info())
    }

    fn format_changed(&mut self, _format: &PictureInfo) -> Result<(), DriverError> {
        // The element compares frame by frame: it pushes what came before first.
        Ok(())
    }

    fn publish(&mut self, surface: Surface, corruption: Corruption) -> Result<(), DriverError> {
        // A drain publishes one after the other.
        self.end_copy();
        let token = Token::from_timestamp(surface.timestamp());
        let info = surface.info();
        let mapped = self.link.call("Map", CallKind::Wait, || surface.map());
        let mapped = match mapped {
            Ok(mapped) => mapped,
            Err((_, status)) => {
                let reason = format!("its surface cannot be mapped, {status}");
                self.ledger.account(token, Fate::Errored(reason));
                return Ok(());
            }
        };
        let newest = self.newest.and_then(Token::system_frame_number);
        let delay = newest
            .zip(token.system_frame_number())
            .map_or(0, |(newest, this)| newest.saturating_sub(this));
        self.ledger.published(token);
        let picture = self.content(mapped);
        let output = Output {
            token,
            epoch: self.task.epoch,
            info,
            corruption,
            delay,
            picture,
        };
        self.link.tell(Reply::Output(Box::new(output)));
        if token.system_frame_number().is_some() {
            self.ledger.close_older(token, REORDER + self.depth);
        }
        Ok(())
    }

    fn discard(&mut self, surface: Surface, reason: Reason) {
        let token = Token::from_timestamp(surface.timestamp());
        match reason {
            Reason::Flushed => {}
            Reason::Corrupted(corruption) => {
                self.ledger.published(token);
                self.link.tell(Reply::DroppedCorrupted(token, corruption));
            }
            Reason::DeviceLost(_) => self
                .ledger
                .account(token, Fate::Dropped(reason.to_string())),
            _ => self
                .ledger
                .account(token, Fate::Errored(reason.to_string())),
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn backoff(&mut self, pause: Duration) -> Wake {
        self.link.pause(self.task.number, self.task.epoch, pause)
    }

    fn cancelled(&self) -> bool {
        self.link.cancelled(self.task.number, self.task.epoch)
    }

    fn on_event(&mut self, event: &Event, stats: &Stats) {
        match event {
            Event::FrameLost {
                damage: Damage::UntilKeyframe,
                ..
            } => self.wait_for_key(),
            Event::Starved { .. } => self.wrap.store(false, Ordering::Relaxed),
            _ => {}
        }
        self.link.set_stats(*stats);
        self.link
            .tell(Reply::Event(event.clone(), Box::new(*stats)));
    }
}
