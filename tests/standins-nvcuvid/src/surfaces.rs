// SPDX-License-Identifier: MPL-2.0

//! Surfaces by number: which are free is what the decoding library and the display leave.

use std::sync::{Arc, Mutex, Weak};

use av_backend::{Picture, Surfaces, Tag};

use crate::lock;

/// A surface in use: by the decoding library for references and reordering, and by the parser until the
/// picture was shown.
#[derive(Debug)]
pub struct Lease {
    /// `CurrPicIdx`.
    pub index: usize,
    /// A number that no other picture of this process has.
    pub token: u64,
}

/// The surfaces of one parser.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Weak<Lease>>,
    next: usize,
    lowest_first: bool,
    /// A picture found none since this was last asked.
    short: bool,
}

impl Slots {
    /// `count` free surfaces. `lowest_first`: the lowest free number is taken, not the next in turn.
    pub fn new(count: usize, lowest_first: bool) -> Self {
        Self {
            slots: std::iter::repeat_with(Weak::new).take(count).collect(),
            next: 0,
            lowest_first,
            short: false,
        }
    }

    /// Takes a surface.
    pub fn take(&mut self) -> Option<Arc<Lease>> {
        let count = self.slots.len();
        let first = if self.lowest_first { 0 } else { self.next };
        let mut order = (0..count).map(|n| (first + n) % count);
        let Some(index) = order.find(|index| self.slots[*index].strong_count() == 0) else {
            self.short = true;
            return None;
        };
        let lease = Arc::new(Lease {
            index,
            token: crate::new_number(),
        });
        self.slots[index] = Arc::downgrade(&lease);
        self.next = (index + 1) % count;
        Some(lease)
    }

    /// Whether a picture found none since the last question.
    pub fn was_short(&mut self) -> bool {
        std::mem::take(&mut self.short)
    }
}

/// A picture that libavcodec has begun.
#[derive(Debug)]
pub struct Begun {
    /// Its surface.
    pub lease: Arc<Lease>,
    /// Where its samples are.
    pub buffer: Picture,
}

/// What libavcodec asks for surfaces.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The surfaces.
    pub slots: Arc<Mutex<Slots>>,
    /// Pictures begun since they were last taken out.
    pub begun: Arc<Mutex<Vec<Begun>>>,
}

impl Surfaces for Gate {
    fn lease(&mut self, buffer: Picture) -> Option<Tag> {
        let lease = lock(&self.slots).take()?;
        lock(&self.begun).push(Begun {
            lease: lease.clone(),
            buffer,
        });
        Some(lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surface_is_free_again_when_its_last_holder_is_gone() {
        let mut slots = Slots::new(2, false);
        let a = slots.take().expect("two are free");
        let b = slots.take().expect("one is free");
        assert_eq!((a.index, b.index), (0, 1));
        assert!(slots.take().is_none() && slots.was_short() && !slots.was_short());
        let again = a.clone();
        drop(a);
        assert!(slots.take().is_none());
        drop(again);
        assert_eq!(slots.take().expect("it is free again").index, 0);
    }

    #[test]
    fn surfaces_are_taken_in_turn_or_the_lowest_first() {
        let mut turns = Slots::new(3, false);
        let indices: Vec<usize> = (0..4)
            .filter_map(|_| turns.take())
            .map(|l| l.index)
            .collect();
        assert_eq!(indices, [0, 1, 2, 0]);
        let mut lowest = Slots::new(3, true);
        let indices: Vec<usize> = (0..4)
            .filter_map(|_| lowest.take())
            .map(|l| l.index)
            .collect();
        assert_eq!(indices, [0; 4]);
    }
}
