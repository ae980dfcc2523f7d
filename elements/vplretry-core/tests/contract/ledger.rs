// SPDX-License-Identifier: MPL-2.0

//! What the double and its surfaces share: the clock, the cancel flag, and the books.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use vplretry_core::Reason;

/// How an access unit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Published,
    /// Its surface was discarded by the loop.
    Discarded(Reason),
    /// It was dropped before it was a frame.
    Dropped(Reason),
    /// It was inside the runtime when that was reset or replaced.
    LostInside(&'static str),
    /// Decoding ended with an error first.
    Errored,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    clock: Cell<Duration>,
    session: Cell<u32>,
    live: Cell<usize>,
    most_live: Cell<usize>,
    fates: RefCell<BTreeMap<u32, Option<Fate>>>,
    calls: Cell<u64>,
    cancel_at: Cell<Option<u64>>,
    cancel: Cell<bool>,
    /// The loop has asked and was told so.
    cancel_seen: Cell<bool>,
}

impl Ledger {
    pub(crate) fn now(&self) -> Duration {
        self.clock.get()
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.set(self.clock.get() + time);
    }

    pub(crate) fn expect(&self, id: u32) {
        let before = self.fates.borrow_mut().insert(id, None);
        assert!(before.is_none(), "unit {id} handed over twice");
    }

    /// Writes down how a unit ended; a second time is an error.
    pub(crate) fn account(&self, id: u32, fate: Fate) {
        let mut fates = self.fates.borrow_mut();
        let slot = fates.get_mut(&id).expect("a unit that was handed over");
        assert_eq!(*slot, None, "unit {id} accounted for twice, now {fate:?}");
        *slot = Some(fate);
    }

    pub(crate) fn fates(&self) -> Vec<(u32, Option<Fate>)> {
        let fates = self.fates.borrow();
        fates.iter().map(|(&id, &fate)| (id, fate)).collect()
    }

    pub(crate) fn published(&self) -> Vec<u32> {
        let fates = self.fates().into_iter();
        fates
            .filter(|(_, fate)| *fate == Some(Fate::Published))
            .map(|(id, _)| id)
            .collect()
    }

    /// Units that ended without a fate, after an error: they are errored, once.
    pub(crate) fn error_the_rest(&self) {
        for fate in self.fates.borrow_mut().values_mut() {
            fate.get_or_insert(Fate::Errored);
        }
    }

    pub(crate) fn live(&self) -> usize {
        self.live.get()
    }

    pub(crate) fn most_live(&self) -> usize {
        self.most_live.get()
    }

    pub(crate) fn new_session(&self) {
        self.session.set(self.session.get() + 1);
    }

    /// Raises the cancel flag at the driver call with this number from now.
    pub(crate) fn cancel_after(&self, calls: u64) {
        self.cancel_at.set(Some(self.calls.get() + calls));
    }

    pub(crate) fn cancel_now(&self) {
        self.cancel.set(true);
    }

    pub(crate) fn clear_cancel(&self) {
        self.cancel_at.set(None);
        self.cancel.set(false);
        self.cancel_seen.set(false);
    }

    /// The loop asks; once told, it may not make a call that can take time.
    pub(crate) fn cancelled(&self) -> bool {
        if self.cancel.get() {
            self.cancel_seen.set(true);
        }
        self.cancel.get()
    }

    pub(crate) fn count_call(&self) {
        self.calls.set(self.calls.get() + 1);
        if self
            .cancel_at
            .get()
            .is_some_and(|at| self.calls.get() >= at)
        {
            self.cancel.set(true);
        }
    }

    /// Once the loop knows that it is cancelled it makes no call that can take time.
    pub(crate) fn forbid_after_cancel(&self) {
        assert!(
            !self.cancel_seen.get(),
            "a call that can block after the loop was cancelled"
        );
    }
}

/// A surface: counted while it lives, released once.
pub(crate) struct Surface {
    pub(crate) id: u32,
    pub(crate) ready: Duration,
    session: u32,
    waited: Cell<bool>,
    ledger: Rc<Ledger>,
}

impl Surface {
    pub(crate) fn new(id: u32, ready: Duration, ledger: &Rc<Ledger>) -> Self {
        ledger.live.set(ledger.live.get() + 1);
        ledger
            .most_live
            .set(ledger.most_live.get().max(ledger.live.get()));
        Self {
            id,
            ready,
            session: ledger.session.get(),
            waited: Cell::new(false),
            ledger: Rc::clone(ledger),
        }
    }

    pub(crate) fn check_session(&self) {
        assert_eq!(
            self.session,
            self.ledger.session.get(),
            "a surface of a lost session"
        );
    }

    /// A wait that ended with success, a remark or partial output has made the frame readable.
    pub(crate) fn wait_ended(&self, status: i32) {
        self.waited.set(matches!(status, 0 | 3..=7 | 10 | 12));
    }

    /// What a careless driver would do.
    pub(crate) fn release_behind_its_back(&self) {
        self.ledger.live.set(self.ledger.live.get() - 1);
    }

    pub(crate) fn assert_waited(&self) {
        assert!(self.waited.get(), "frame {} used before its wait", self.id);
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        let live = self.ledger.live.get();
        self.ledger
            .live
            .set(live.checked_sub(1).expect("a surface released twice"));
    }
}

/// A sync point.
pub(crate) struct Token {
    pub(crate) ready: Duration,
    session: u32,
    ledger: Rc<Ledger>,
}

impl Token {
    pub(crate) fn new(ready: Duration, ledger: &Rc<Ledger>) -> Self {
        Self {
            ready,
            session: ledger.session.get(),
            ledger: Rc::clone(ledger),
        }
    }

    pub(crate) fn check_session(&self) {
        assert_eq!(
            self.session,
            self.ledger.session.get(),
            "a sync point of a lost session"
        );
    }
}
