// SPDX-License-Identifier: MPL-2.0

//! Feeding: unit after unit to the runtime, its header first.

use std::sync::Arc;

use onevpl_sys as mfx;
use onevpl_sys::{Surface, SyncPoint};
use vplretry_core::{Decoded, Status};

use super::Driver;
use crate::bitstream::Taken;
use crate::ledger::Fate;
use crate::runtime::{Runtime, nothing};

impl Driver {
    /// A call with the unit at the front of the bitstream.
    pub(super) fn show<T>(
        &mut self,
        call: impl FnOnce(&mut Runtime, &mut mfx::Input<'_>) -> T,
    ) -> (T, Taken) {
        let whole = self.low_latency && (!self.byte_stream || self.runtime.is_progressive());
        let flags = if whole {
            mfx::MFX_BITSTREAM_COMPLETE_FRAME as u16
        } else {
            0
        };
        if let Some(unit) = self.bitstream.front() {
            self.at_hand = Some(Arc::clone(unit));
        }
        let runtime = &mut self.runtime;
        let (result, taken) = self.bitstream.show(flags, |input| call(runtime, input));
        if let (Taken::Whole, Some(unit)) = (taken, &self.at_hand) {
            self.ledger.taken(unit.token);
        }
        (result, taken)
    }

    /// Feeds unit after unit until one gives more than the wish for the next.
    pub(super) fn feed(&mut self) -> Decoded<Surface, SyncPoint> {
        loop {
            let (mut decoded, mut taken) = (nothing(Status::NONE), Taken::Nothing);
            if !self.runtime.is_initialised() {
                (decoded.status, taken) = self.show(Runtime::init);
                if decoded.status == Status::MORE_DATA && taken != Taken::Whole {
                    self.skip_without_header();
                    taken = Taken::Whole;
                }
            }
            if !decoded.status.is_error() {
                (decoded, taken) = self.show(|runtime, input| runtime.decode(Some(input)));
            }
            if decoded.surface.is_some() || !decoded.status.is_error() {
                return decoded;
            }
            if decoded.status != Status::MORE_DATA {
                if taken == Taken::Whole {
                    self.note_eaten();
                }
                return decoded;
            }
            if taken != Taken::Whole && !self.go_on_behind_a_tail() {
                return decoded;
            }
            if self.bitstream.is_empty() {
                return decoded;
            }
        }
    }

    /// The runtime has left the end of a unit and asks for more: whether there is more.
    fn go_on_behind_a_tail(&mut self) -> bool {
        if !self.byte_stream || !self.bitstream.begun() {
            return false;
        }
        if let Some(unit) = self.bitstream.front() {
            self.ledger.taken(unit.token);
        }
        self.bitstream.join()
    }

    /// A whole access unit without a header, before the first: nothing can be made of it.
    fn skip_without_header(&mut self) {
        if let Some(unit) = self.bitstream.skip() {
            let reason = "it comes before the first sequence header";
            self.ledger
                .account(unit.token, Fate::Dropped(reason.to_owned()));
        }
    }

    pub(super) fn note_eaten(&mut self) {
        self.eaten = self.at_hand.as_ref().map(|unit| unit.token);
    }
}
