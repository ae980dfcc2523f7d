// SPDX-License-Identifier: MPL-2.0

//! What became of each access unit.

use std::collections::{BTreeMap, BTreeSet};

use vplretry_core::Reason;

/// How an access unit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Published,
    /// Its surface was discarded.
    Discarded(Reason),
    /// It was given up before it was a picture.
    Dropped(Reason),
    /// It was passed over because a key frame is waited for.
    NoKeyFrame,
    /// It was inside the runtime when that was reset or replaced.
    LostInside(&'static str),
    /// The runtime took it, was drained and gave no picture of its own for it.
    NoPicture,
    /// Decoding ended with an error first.
    Errored,
}

/// The accounts. A second fate is an error, and so is a picture of no unit.
#[derive(Debug, Default)]
pub(crate) struct Books {
    fates: BTreeMap<u64, Option<Fate>>,
    /// Taken by the runtime, not given out.
    inside: BTreeSet<u64>,
    /// No unit is lost that another may refer to.
    pub(crate) intact: bool,
}

impl Books {
    pub(crate) fn new() -> Self {
        Self {
            intact: true,
            ..Self::default()
        }
    }

    /// A unit is handed over.
    pub(crate) fn expect(&mut self, id: u64) {
        let before = self.fates.insert(id, None);
        assert_eq!(before, None, "unit {id} is handed over twice");
    }

    /// The runtime has taken the last byte of a unit.
    pub(crate) fn taken(&mut self, id: u64) {
        if self.is_open(id) {
            self.inside.insert(id);
        }
    }

    /// A unit that was taken is to be fed again; false where it has its fate already.
    pub(crate) fn put_back(&mut self, id: u64) -> bool {
        self.inside.remove(&id)
    }

    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.fates.get(&id) == Some(&None)
    }

    pub(crate) fn account(&mut self, id: u64, fate: Fate) {
        let Some(slot) = self.fates.get_mut(&id) else {
            panic!("{fate:?}, of no access unit ({id})");
        };
        assert_eq!(*slot, None, "unit {id} has a second fate, {fate:?}");
        *slot = Some(fate);
        self.inside.remove(&id);
        self.intact &= matches!(fate, Fate::Published | Fate::Discarded(_));
    }

    /// Nothing that the runtime took will come out any more.
    pub(crate) fn close_inside(&mut self, fate: Fate) {
        for id in self.inside.clone() {
            self.account(id, fate);
        }
    }

    /// Decoding has ended; after an error, what has no fate is errored.
    pub(crate) fn end(&mut self, failed: bool) {
        let open = self.fates.iter().filter(|(_, fate)| fate.is_none());
        let open: Vec<u64> = open.map(|(&id, _)| id).collect();
        assert!(failed || open.is_empty(), "units {open:?} have no fate");
        for id in open {
            self.account(id, Fate::Errored);
        }
    }

    /// The units with such a fate.
    pub(crate) fn with(&self, wanted: impl Fn(&Fate) -> bool) -> Vec<u64> {
        let fates = self.fates.iter();
        fates
            .filter(|(_, fate)| fate.as_ref().is_some_and(&wanted))
            .map(|(&id, _)| id)
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.fates.len()
    }
}
