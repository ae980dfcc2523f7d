// SPDX-License-Identifier: MPL-2.0

//! The ring: a fixed number of slots, filled and emptied in the order of tickets.

/// The number of a shown picture. Counts from 0 over the whole session and is never reused; only the
/// access to a slot takes it modulo the number of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);

impl Ticket {
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Where the picture of a slot is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// No picture.
    Free,
    /// The parser has shown it; it may still be decoded.
    Shown,
    /// The worker is mapping it.
    Mapping,
    /// Its pixels are being copied.
    Copying,
    /// The copy is complete and the surface free again; the picture goes to the output.
    Ready,
    /// There are no pixels; the reason goes to the output.
    Failed,
    /// A flush has overtaken it; nothing goes to the output.
    Abandoned,
}

impl SlotState {
    /// Whether a slot may go from this state to `next`.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Free, Self::Shown)
                | (Self::Shown, Self::Mapping | Self::Failed | Self::Abandoned)
                | (
                    Self::Mapping,
                    Self::Copying | Self::Failed | Self::Abandoned
                )
                | (Self::Copying, Self::Ready | Self::Failed | Self::Abandoned)
                | (Self::Ready | Self::Failed, Self::Abandoned | Self::Free)
                | (Self::Abandoned, Self::Free)
        )
    }

    /// Whether the slot can be freed once it is the oldest.
    const fn is_done(self) -> bool {
        matches!(self, Self::Ready | Self::Failed | Self::Abandoned)
    }
}

#[derive(Debug)]
struct Slot<P> {
    state: SlotState,
    picture: Option<P>,
}

/// The slots. `head` is the oldest occupied ticket, `tail` the next one to be given.
#[derive(Debug)]
pub(crate) struct Ring<P> {
    slots: Box<[Slot<P>]>,
    limit: u8,
    head: Ticket,
    tail: Ticket,
}

impl<P> Ring<P> {
    pub(crate) fn new(depth: u8) -> Self {
        Self {
            slots: (0..depth)
                .map(|_| Slot {
                    state: SlotState::Free,
                    picture: None,
                })
                .collect(),
            limit: depth,
            head: Ticket::default(),
            tail: Ticket::default(),
        }
    }

    /// Uses only `limit` of the slots from now on.
    pub(crate) fn limit(&mut self, limit: u8) {
        self.limit = limit.min(self.slots.len() as u8);
    }

    pub(crate) fn depth(&self) -> u8 {
        self.limit
    }

    pub(crate) fn occupied(&self) -> u8 {
        // At most the number of slots, which is a u8.
        (self.tail.0 - self.head.0) as u8
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    pub(crate) fn is_full(&self) -> bool {
        self.occupied() >= self.limit
    }

    /// Takes a slot, or gives the picture back and changes nothing.
    pub(crate) fn push(&mut self, picture: P) -> Result<Ticket, P> {
        if self.is_full() {
            return Err(picture);
        }
        let ticket = self.tail;
        self.tail = ticket.next();
        let slot = self.slot_at(ticket);
        debug_assert_eq!(slot.state, SlotState::Free);
        *slot = Slot {
            state: SlotState::Shown,
            picture: Some(picture),
        };
        Ok(ticket)
    }

    /// The state of a ticket's slot; `Free` for one that was not given yet or has left.
    pub(crate) fn state(&self, ticket: Ticket) -> SlotState {
        if self.holds(ticket) {
            self.slots[self.position(ticket)].state
        } else {
            SlotState::Free
        }
    }

    pub(crate) fn picture(&mut self, ticket: Ticket) -> Option<&mut P> {
        if self.holds(ticket) {
            self.slot_at(ticket).picture.as_mut()
        } else {
            None
        }
    }

    /// Moves a slot on. False, and nothing changed, where the ticket has left or the step does not exist.
    pub(crate) fn advance(&mut self, ticket: Ticket, next: SlotState) -> bool {
        let leaves = next == SlotState::Free;
        if leaves || !self.holds(ticket) || !self.state(ticket).may_become(next) {
            return false;
        }
        self.slot_at(ticket).state = next;
        true
    }

    /// Frees the oldest slot if it is `ticket`'s and done with.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<P> {
        if ticket != self.head || !self.state(ticket).is_done() {
            return None;
        }
        self.head = ticket.next();
        let slot = self.slot_at(ticket);
        slot.state = SlotState::Free;
        slot.picture.take()
    }

    /// Abandons everything on its way. The slots leave in order, like all others.
    pub(crate) fn abandon(&mut self) {
        for ticket in self.head.0..self.tail.0 {
            self.slot_at(Ticket(ticket)).state = SlotState::Abandoned;
        }
    }

    fn holds(&self, ticket: Ticket) -> bool {
        (self.head..self.tail).contains(&ticket)
    }

    fn position(&self, ticket: Ticket) -> usize {
        (ticket.0 % self.slots.len() as u64) as usize
    }

    fn slot_at(&mut self, ticket: Ticket) -> &mut Slot<P> {
        let position = self.position(ticket);
        &mut self.slots[position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATES: [SlotState; 7] = [
        SlotState::Free,
        SlotState::Shown,
        SlotState::Mapping,
        SlotState::Copying,
        SlotState::Ready,
        SlotState::Failed,
        SlotState::Abandoned,
    ];

    #[derive(Debug, Clone)]
    enum Act {
        Push,
        Advance(u64, usize),
        Leave(u64),
        Abandon,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            4 => Just(Act::Push),
            8 => (0u64..20, 0usize..7).prop_map(|(back, state)| Act::Advance(back, state)),
            4 => (0u64..20).prop_map(Act::Leave),
            1 => Just(Act::Abandon),
        ]
    }

    proptest! {
        /// I1 and I2 on the ring alone, against the obvious model: a queue of (ticket, state).
        #[test]
        fn ring_equals_a_queue(depth in 1u8..=16, acts in prop::collection::vec(act(), 0..200)) {
            let mut ring = Ring::new(depth);
            let mut queue: std::collections::VecDeque<(u64, SlotState)> = Default::default();
            let (mut given, mut left) = (0u64, 0u64);
            for act in acts {
                match act {
                    Act::Push => {
                        let result = ring.push(given);
                        if queue.len() < usize::from(depth) {
                            prop_assert_eq!(result, Ok(Ticket(given)));
                            queue.push_back((given, SlotState::Shown));
                            given += 1;
                        } else {
                            prop_assert_eq!(result, Err(given));
                        }
                    }
                    Act::Advance(back, state) => {
                        let ticket = Ticket(given.saturating_sub(back));
                        let next = STATES[state];
                        let known = queue.iter_mut().find(|(t, _)| *t == ticket.0);
                        let legal = known.as_ref().is_some_and(|(_, s)| s.may_become(next))
                            && next != SlotState::Free;
                        prop_assert_eq!(ring.advance(ticket, next), legal);
                        if let (true, Some(known)) = (legal, known) {
                            known.1 = next;
                        }
                    }
                    Act::Leave(back) => {
                        let ticket = Ticket(given.saturating_sub(back));
                        let may = queue.front().is_some_and(|(t, s)| {
                            *t == ticket.0 && s.may_become(SlotState::Free)
                        });
                        prop_assert_eq!(ring.leave(ticket), may.then_some(ticket.0));
                        if may {
                            prop_assert_eq!(ticket.0, left);
                            left += 1;
                            queue.pop_front();
                        }
                    }
                    Act::Abandon => {
                        ring.abandon();
                        queue.iter_mut().for_each(|(_, s)| *s = SlotState::Abandoned);
                    }
                }
                prop_assert_eq!(usize::from(ring.occupied()), queue.len());
                prop_assert!(ring.occupied() <= depth);
                for (ticket, state) in &queue {
                    prop_assert_eq!(ring.state(Ticket(*ticket)), *state);
                }
            }
        }
    }

    #[test]
    fn refusal_changes_nothing() {
        let mut ring = Ring::new(2);
        assert_eq!(ring.push('a'), Ok(Ticket(0)));
        assert_eq!(ring.push('b'), Ok(Ticket(1)));
        for _ in 0..20 {
            assert_eq!(ring.push('c'), Err('c'));
        }
        assert!(ring.advance(Ticket(0), SlotState::Failed));
        assert_eq!(ring.leave(Ticket(0)), Some('a'));
        assert_eq!(ring.push('c'), Ok(Ticket(2)));
    }

    #[test]
    fn a_slot_leaves_through_the_head_only() {
        let mut ring = Ring::new(4);
        ring.push('a').unwrap();
        ring.push('b').unwrap();
        assert!(ring.advance(Ticket(1), SlotState::Failed));
        assert_eq!(ring.leave(Ticket(1)), None);
        assert!(ring.advance(Ticket(0), SlotState::Failed));
        assert_eq!(ring.leave(Ticket(0)), Some('a'));
        assert_eq!(ring.leave(Ticket(1)), Some('b'));
    }

    #[test]
    fn a_shrunk_ring_keeps_its_order() {
        let mut ring = Ring::new(8);
        for n in 0..5 {
            ring.push(n).unwrap();
        }
        ring.limit(2);
        assert!(ring.is_full());
        for n in 0..5 {
            assert!(ring.advance(Ticket(n), SlotState::Failed));
            assert_eq!(ring.leave(Ticket(n)), Some(n));
        }
        for n in 5..60 {
            assert_eq!(ring.push(n), Ok(Ticket(n)));
            assert!(ring.advance(Ticket(n), SlotState::Failed));
            assert_eq!(ring.leave(Ticket(n)), Some(n));
        }
    }
}
