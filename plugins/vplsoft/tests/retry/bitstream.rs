// SPDX-License-Identifier: MPL-2.0

//! The bitstream: access units that the runtime has not taken whole, and the parameter sets in force.

use std::collections::VecDeque;
use std::rc::Rc;

use onevpl_sys::mfxBitstream;

use crate::client::Client;
use crate::units::Unit;

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

/// What a call has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Nothing,
    /// Bytes of a unit.
    Part,
    /// The last byte of a unit.
    Whole,
}

/// It is shown to the runtime unit by unit: two of them in one `mfxBitstream` would share a time stamp, and
/// VP9 and VP8 allow one.
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
    pub(crate) fn front(&self) -> Option<&Rc<Unit>> {
        self.units.front().map(|held| &held.unit)
    }

    /// Puts a unit behind the others; returns its bytes.
    pub(crate) fn append(&mut self, unit: &Rc<Unit>) -> usize {
        let held = self.hold(unit);
        let length = held.len();
        self.units.push_back(held);
        length
    }

    /// Puts a unit before the others.
    pub(crate) fn put_back(&mut self, unit: &Rc<Unit>) {
        let held = self.hold(unit);
        self.units.push_front(held);
    }

    /// A unit from its beginning, behind the parameter sets if those are due.
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

    /// The runtime has forgotten everything: the unit at the front begins anew, behind the parameter sets.
    pub(crate) fn restart(&mut self) {
        self.sets_due = true;
        if let Some(front) = self.units.pop_front() {
            self.put_back(&front.unit);
        }
    }

    /// Takes the units out.
    pub(crate) fn clear(&mut self) -> Vec<Rc<Unit>> {
        let units = std::mem::take(&mut self.units);
        // Parameter sets that stood before one of them are gone with it.
        let with_sets = |held: &Held| held.bytes.len() != held.unit.bytes.len();
        self.sets_due |= units.iter().any(with_sets);
        units.into_iter().map(|held| held.unit).collect()
    }

    /// Makes a call with the unit at the front, or with an empty bitstream.
    pub(crate) fn show<T>(&mut self, call: impl FnOnce(&mut mfxBitstream) -> T) -> (T, Taken) {
        let Some(front) = self.units.front_mut() else {
            return (call(&mut Client::bitstream(&mut [], true)), Taken::Nothing);
        };
        let mut bs = Client::bitstream(&mut front.bytes[front.at..], true);
        bs.TimeStamp = front.unit.id;
        let result = call(&mut bs);
        let taken = bs.DataOffset as usize;
        assert_eq!(taken + bs.DataLength as usize, front.len());
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
