// SPDX-License-Identifier: MPL-2.0

//! What became of each access unit: every one that is handed over gets exactly one fate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::link::Link;
use crate::reply::Reply;
use crate::unit::Token;

/// How an access unit ended that gave no frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Given up by rule: corrupted frames are not wanted, a key frame is waited for, a session was lost.
    Dropped(String),
    /// The runtime could not decode it.
    Errored(String),
    /// It belongs to the frame of another unit (a second field), or is never shown.
    WithoutPicture,
}

/// The accounts of the session thread.
pub(crate) struct Ledger {
    link: Arc<Link>,
    /// Handed over, without a fate; true: taken by the runtime.
    open: BTreeMap<Token, bool>,
}

impl Ledger {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            open: BTreeMap::new(),
        }
    }

    /// A unit is handed over.
    pub(crate) fn expect(&mut self, token: Token) {
        self.open.insert(token, false);
    }

    /// The runtime has taken a unit.
    pub(crate) fn taken(&mut self, token: Token) {
        if let Some(inside) = self.open.get_mut(&token) {
            *inside = true;
        }
    }

    /// A unit is to be fed again; false where it has its fate already.
    pub(crate) fn put_back(&mut self, token: Token) -> bool {
        match self.open.get_mut(&token) {
            Some(inside) => {
                *inside = false;
                true
            }
            None => false,
        }
    }

    /// Its frame is handed out.
    pub(crate) fn published(&mut self, token: Token) {
        self.open.remove(&token);
    }

    pub(crate) fn account(&mut self, token: Token, fate: Fate) {
        if self.open.remove(&token).is_some() {
            self.link.tell(Reply::Lost(token, fate));
        }
    }

    /// Units that the runtime took so long before `token` that their frame, if there is one, has been passed.
    pub(crate) fn close_older(&mut self, token: Token, distance: u64) {
        let bound = Token::from_timestamp(token.timestamp().saturating_sub(distance));
        let old: Vec<Token> = self.inside().into_iter().filter(|t| *t < bound).collect();
        for token in old {
            self.account(token, Fate::WithoutPicture);
        }
    }

    /// Nothing that the runtime took will come out any more.
    pub(crate) fn close_inside(&mut self, fate: &Fate) {
        for token in self.inside() {
            self.account(token, fate.clone());
        }
    }

    /// A flush: the element accounts for everything itself.
    pub(crate) fn forget(&mut self) {
        self.open.clear();
    }

    /// Decoding has ended.
    pub(crate) fn close_all(&mut self, fate: &Fate) {
        let open: BTreeSet<Token> = self.open.keys().copied().collect();
        for token in open {
            self.account(token, fate.clone());
        }
    }

    fn inside(&self) -> Vec<Token> {
        let inside = self.open.iter().filter(|(_, inside)| **inside);
        inside.map(|(token, _)| *token).collect()
    }
}
