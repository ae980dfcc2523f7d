// SPDX-License-Identifier: MPL-2.0

//! The bitstream: access units that the runtime has not taken whole, and the parameter sets in force.
//!
//! It is shown to the runtime unit by unit: two of them in one `mfxBitstream` would share a time stamp, and
//! VP9 and VP8 allow one. Only the bytes that a runtime leaves of a byte stream while it asks for more (they
//! may be the beginning of a start code) go before the next unit.

use std::collections::VecDeque;
use std::sync::Arc;

use onevpl_sys::Input;

use crate::unit::{Token, Unit};

/// An access unit in the bitstream.
struct Held {
    unit: Arc<Unit>,
    bytes: Vec<u8>,
    /// Bytes that the runtime has taken.
    at: usize,
    /// Bytes at the front that belong to the unit before.
    tail: usize,
    /// The runtime has begun it and asks for what follows.
    wants_more: bool,
}

impl Held {
    fn len(&self) -> usize {
        self.bytes.len() - self.at
    }
}

/// What a call has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Nothing,
    /// Bytes of a unit.
    Part,
    /// The last byte of a unit.
    Whole,
}

#[derive(Default)]
pub(crate) struct Bitstream {
    units: VecDeque<Held>,
    /// The parameter sets in force.
    sets: Vec<u8>,
    /// The runtime does not know them.
    sets_due: bool,
}

impl Bitstream {
    pub(crate) fn len(&self) -> usize {
        self.units.iter().map(Held::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The unit that the next call is made with.
    pub(crate) fn front(&self) -> Option<&Arc<Unit>> {
        self.units.front().map(|held| &held.unit)
    }

    /// The units that the runtime has not begun.
    pub(crate) fn unbegun(&self) -> impl Iterator<Item = Token> {
        let unbegun = self.units.iter().filter(|held| !held.wants_more);
        unbegun.map(|held| held.unit.token)
    }

    /// Parameter sets from outside of the stream.
    pub(crate) fn set_sets(&mut self, sets: Vec<u8>) {
        self.sets_due = !sets.is_empty();
        self.sets = sets;
    }

    /// Puts a unit behind the others; returns its bytes.
    pub(crate) fn append(&mut self, unit: &Arc<Unit>) -> usize {
        let held = self.hold(unit);
        let length = held.len();
        self.units.push_back(held);
        length
    }

    /// Puts a unit before the others.
    pub(crate) fn put_back(&mut self, unit: &Arc<Unit>) {
        let held = self.hold(unit);
        self.units.push_front(held);
    }

    /// A unit from its beginning, behind the parameter sets if those are due.
    fn hold(&mut self, unit: &Arc<Unit>) -> Held {
        if unit.has_sequence {
            self.sets.clone_from(&unit.sets);
        } else if !unit.sets.is_empty() && !self.sets.ends_with(&unit.sets) {
            self.sets.extend_from_slice(&unit.sets);
        }
        let due = std::mem::take(&mut self.sets_due) && !unit.has_sequence;
        Held {
            unit: Arc::clone(unit),
            bytes: if due {
                unit.behind(&self.sets)
            } else {
                unit.bytes.clone()
            },
            at: 0,
            tail: 0,
            wants_more: false,
        }
    }

    /// The runtime has forgotten everything: the unit at the front begins anew, behind the parameter sets.
    pub(crate) fn restart(&mut self) {
        self.sets_due = true;
        while let Some(front) = self.units.pop_front() {
            // What is left of a unit that was begun belongs to what is forgotten.
            if !front.wants_more {
                self.put_back(&front.unit);
                break;
            }
        }
    }

    /// Takes the units out. What is left of a unit that was begun is gone.
    pub(crate) fn clear(&mut self) -> Vec<Arc<Unit>> {
        let units = std::mem::take(&mut self.units);
        // Parameter sets that stood before one of them are gone with it.
        let with_sets = |held: &Held| held.bytes.len() != held.unit.bytes.len();
        self.sets_due |= units.iter().any(with_sets);
        let unbegun = units.into_iter().filter(|held| !held.wants_more);
        unbegun.map(|held| held.unit).collect()
    }

    /// The runtime asks for more, and the unit at the front will not be shown again alone. False where nothing
    /// of it was taken.
    pub(crate) fn begun(&mut self) -> bool {
        match self.units.front_mut() {
            Some(front) if front.at > front.tail => {
                front.wants_more = true;
                true
            }
            _ => false,
        }
    }

    /// Puts what is left of a unit that was begun before the next one. False where there is no such pair.
    pub(crate) fn join(&mut self) -> bool {
        if self.units.len() < 2 || !self.units[0].wants_more {
            return false;
        }
        let Some(begun) = self.units.pop_front() else {
            return false;
        };
        if let Some(next) = self.units.front_mut() {
            let left = &begun.bytes[begun.at..];
            next.tail = left.len();
            next.bytes = [left, &next.bytes].concat();
        }
        true
    }

    /// Drops the unit at the front.
    pub(crate) fn skip(&mut self) -> Option<Arc<Unit>> {
        self.units.pop_front().map(|held| held.unit)
    }

    /// Makes a call with the unit at the front, or with an empty bitstream.
    pub(crate) fn show<T>(
        &mut self,
        flags: u16,
        call: impl FnOnce(&mut Input<'_>) -> T,
    ) -> (T, Taken) {
        let Some(front) = self.units.front_mut() else {
            let mut input = Input::new(&mut [], u64::MAX, flags);
            return (call(&mut input), Taken::Nothing);
        };
        let token = front.unit.token;
        let mut input = Input::new(&mut front.bytes[front.at..], token.timestamp(), flags);
        let result = call(&mut input);
        let taken = input.taken();
        front.at += taken;
        if front.len() == 0 {
            self.units.pop_front();
            (result, Taken::Whole)
        } else if taken > 0 {
            (result, Taken::Part)
        } else {
            (result, Taken::Nothing)
        }
    }
}
