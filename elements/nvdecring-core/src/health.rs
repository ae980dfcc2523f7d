// SPDX-License-Identifier: MPL-2.0

//! Which pictures are damaged, and what is done about a decoder that fails.

use std::collections::BTreeSet;

use crate::api::{ErrorClass, GpuError, PictureInfo};
use crate::calls::Role;

/// The place of a picture in decode order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Order {
    /// Counts decoded pictures.
    pub(crate) number: u64,
    /// The last picture, up to this one, that refers to no other.
    intra: u64,
}

/// How far the session has gone to get a broken decoder back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovery {
    /// The decoder was replaced.
    Decoder,
    /// The context was replaced, and the decoder in it.
    Context,
}

/// Good pictures in a row after which a failure counts as the first one again.
const INTACT_RUN: u32 = 100;
/// Damaged pictures remembered: more than can be between the parser and the output.
const REMEMBERED: usize = 64;

/// The health of a session's decoder.
#[derive(Debug, Default)]
pub(crate) struct Health {
    decoded: Order,
    damaged: BTreeSet<u64>,
    /// Of each thread: the worker is behind the parser, and its good pictures say nothing of new ones.
    errors_in_a_row: [u32; 2],
    intact_in_a_row: u32,
    tried: Option<Recovery>,
    lost: Option<GpuError>,
}

impl Health {
    /// The next picture in decode order.
    pub(crate) fn decode(&mut self, info: &PictureInfo) -> Order {
        self.decoded.number += 1;
        if info.intra {
            self.decoded.intra = self.decoded.number;
        }
        self.decoded
    }

    /// A reference picture is not what it should be.
    pub(crate) fn damage(&mut self, order: Order) {
        self.damaged.insert(order.number);
        while self.damaged.len() > REMEMBERED {
            self.damaged.pop_first();
        }
    }

    /// Whether a picture may depend on a damaged one: one was decoded between the last intra picture and
    /// this one.
    pub(crate) fn depends_on_damage(&self, order: Order) -> bool {
        self.damaged
            .range(order.intra..order.number.max(order.intra))
            .next()
            .is_some()
    }

    /// The decoder took a picture.
    pub(crate) fn taken(&mut self) {
        self.errors_in_a_row[Role::Parser as usize] = 0;
    }

    /// A picture came out whole.
    pub(crate) fn intact(&mut self) {
        self.errors_in_a_row[Role::Worker as usize] = 0;
        self.intact_in_a_row = self.intact_in_a_row.saturating_add(1);
        if self.intact_in_a_row >= INTACT_RUN {
            self.tried = None;
        }
    }

    /// A call for a picture failed. Too many in a row on one thread, or one that breaks the context, and the decoder is
    /// lost.
    pub(crate) fn error(&mut self, role: Role, error: &GpuError, max_errors: u32) {
        self.intact_in_a_row = 0;
        let in_a_row = &mut self.errors_in_a_row[role as usize];
        *in_a_row = in_a_row.saturating_add(1);
        if error.class == ErrorClass::Sticky || *in_a_row >= max_errors {
            self.lose(error);
        }
    }

    /// The decoder cannot go on.
    pub(crate) fn lose(&mut self, error: &GpuError) {
        self.lost.get_or_insert_with(|| error.clone());
    }

    /// Why the decoder has to be replaced.
    pub(crate) fn lost(&self) -> Option<&GpuError> {
        self.lost.as_ref()
    }

    /// The next thing to try; `None` when nothing is left.
    pub(crate) fn next_recovery(&mut self) -> Option<Recovery> {
        let next = match self.tried {
            None => Recovery::Decoder,
            Some(Recovery::Decoder) => Recovery::Context,
            Some(Recovery::Context) => return None,
        };
        self.tried = Some(next);
        Some(next)
    }

    /// A new decoder is there. It knows no reference picture.
    pub(crate) fn recovered(&mut self) {
        self.lost = None;
        self.errors_in_a_row = [0; 2];
        self.intact_in_a_row = 0;
        self.decoded.number += 1;
        self.damage(self.decoded);
    }

    /// The decoder was replaced for another reason, such as a new format.
    pub(crate) fn replaced(&mut self) {
        self.lost = None;
        self.errors_in_a_row = [0; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(intra: bool) -> PictureInfo {
        PictureInfo {
            index: 0,
            film_grain_reference: None,
            intra,
            reference: true,
            second_field: false,
        }
    }

    fn error(class: ErrorClass) -> GpuError {
        GpuError {
            call: "cuvidDecodePicture",
            code: 1,
            text: "test".into(),
            class,
        }
    }

    #[test]
    fn damage_lasts_until_the_next_intra_picture() {
        let mut health = Health::default();
        let first = health.decode(&picture(true));
        let bad = health.decode(&picture(false));
        let after = health.decode(&picture(false));
        let intra = health.decode(&picture(true));
        let late = health.decode(&picture(false));
        health.damage(bad);
        assert!(!health.depends_on_damage(first));
        assert!(!health.depends_on_damage(bad), "it is damaged itself");
        assert!(health.depends_on_damage(after));
        assert!(!health.depends_on_damage(intra));
        assert!(!health.depends_on_damage(late));
    }

    #[test]
    fn a_damaged_intra_picture_damages_what_follows() {
        let mut health = Health::default();
        let intra = health.decode(&picture(true));
        let after = health.decode(&picture(false));
        health.damage(intra);
        assert!(health.depends_on_damage(after));
        assert!(!health.depends_on_damage(intra));
    }

    #[test]
    fn a_new_decoder_knows_no_reference() {
        let mut health = Health::default();
        health.decode(&picture(true));
        health.recovered();
        let dependent = health.decode(&picture(false));
        let intra = health.decode(&picture(true));
        let after = health.decode(&picture(false));
        assert!(health.depends_on_damage(dependent));
        assert!(!health.depends_on_damage(intra));
        assert!(!health.depends_on_damage(after));
    }

    #[test]
    fn decoder_once_context_once_then_nothing() {
        let mut health = Health::default();
        assert_eq!(health.next_recovery(), Some(Recovery::Decoder));
        health.intact();
        assert_eq!(health.next_recovery(), Some(Recovery::Context));
        assert_eq!(health.next_recovery(), None);
        for _ in 0..INTACT_RUN {
            health.intact();
        }
        assert_eq!(health.next_recovery(), Some(Recovery::Decoder));
    }

    #[test]
    fn a_sticky_error_or_too_many_lose_the_decoder() {
        let mut health = Health::default();
        health.error(Role::Worker, &error(ErrorClass::Single), 3);
        health.error(Role::Worker, &error(ErrorClass::Single), 3);
        health.intact();
        health.error(Role::Worker, &error(ErrorClass::Single), 3);
        health.error(Role::Worker, &error(ErrorClass::Single), 3);
        assert_eq!(health.lost(), None);
        health.error(Role::Worker, &error(ErrorClass::Single), 3);
        assert!(health.lost().is_some());
        health.recovered();
        assert_eq!(health.lost(), None);
        health.error(Role::Worker, &error(ErrorClass::Sticky), 3);
        assert!(health.lost().is_some());
    }
}
