// SPDX-License-Identifier: MPL-2.0

//! The picture table: whose picture each decode surface holds, and who still needs it.
//!
//! The parser regards a surface as free once its picture was shown and nothing refers to it; the ring may
//! still have to map it. So each slot *holds* its surfaces, and nothing is decoded into a held one.

use std::time::Duration;

use crate::api::{FrameToken, GpuError, MAX_DECODE_SURFACES, PictureInfo};
use crate::health::Order;

/// A picture in a surface: the index alone says nothing, because it is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureRef {
    pub(crate) index: u8,
    pub(crate) generation: u64,
}

/// Surfaces that must not be written. Given back with [`PictureTable::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    /// The picture that is shown.
    pub(crate) shown: PictureRef,
    /// The other surface of a picture with film grain.
    companion: Option<PictureRef>,
}

/// How a picture was decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) order: Order,
    pub(crate) reference: bool,
    pub(crate) at: Duration,
    /// How long the parser waited for the surface.
    pub(crate) waited: Duration,
    /// Why the decoder did not take it.
    pub(crate) error: Option<GpuError>,
}

#[derive(Debug, Default)]
struct Entry {
    generation: u64,
    holds: u16,
    /// Since when the engine is late with it.
    quarantined: Option<Duration>,
    companion: Option<PictureRef>,
    token: Option<FrameToken>,
    decoded: Option<Decoded>,
}

/// The table. Indices at or above 32 are nobody's.
#[derive(Debug)]
pub(crate) struct PictureTable([Entry; MAX_DECODE_SURFACES as usize]);

impl Default for PictureTable {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Entry::default()))
    }
}

impl PictureTable {
    fn entry(&self, index: u8) -> Option<&Entry> {
        self.0.get(usize::from(index))
    }

    fn entry_mut(&mut self, index: u8) -> Option<&mut Entry> {
        self.0.get_mut(usize::from(index))
    }

    /// The surfaces a picture writes.
    fn written(info: &PictureInfo) -> impl Iterator<Item = u8> {
        [Some(info.index), info.film_grain_reference]
            .into_iter()
            .flatten()
    }

    /// Whether the library may be trusted with these indices at all.
    pub(crate) fn knows(info: &PictureInfo) -> bool {
        Self::written(info).all(|index| index < MAX_DECODE_SURFACES)
    }

    /// Whether nobody needs what the picture would overwrite.
    pub(crate) fn writable(&self, info: &PictureInfo) -> bool {
        Self::written(info)
            .filter_map(|index| self.entry(index))
            .all(|entry| entry.holds == 0 && entry.quarantined.is_none())
    }

    /// Since when a surface the picture would overwrite has not settled.
    pub(crate) fn waits_for_quarantine(&self, info: &PictureInfo) -> Option<Duration> {
        Self::written(info)
            .filter_map(|index| self.entry(index)?.quarantined)
            .max()
    }

    /// A picture is about to be decoded. Gives the token of a picture that is overwritten and was never
    /// shown: it will not be.
    pub(crate) fn begin(
        &mut self,
        info: &PictureInfo,
        token: Option<FrameToken>,
        decoded: Decoded,
    ) -> Option<FrameToken> {
        debug_assert!(self.writable(info));
        let mut lost = None;
        for index in Self::written(info) {
            if let Some(entry) = self.entry_mut(index) {
                entry.generation += 1;
                entry.companion = None;
                entry.decoded = Some(decoded.clone());
                lost = entry.token.take().or(lost);
            }
        }
        let shown = self.current(info.index);
        let plain = info.film_grain_reference.and_then(|i| self.current(i));
        if let Some(entry) = self.entry_mut(info.index) {
            entry.token = token;
            entry.companion = plain;
        }
        if let Some(entry) = plain.and_then(|plain| self.entry_mut(plain.index)) {
            entry.companion = shown;
        }
        lost
    }

    /// The second field of the picture in `index` was decoded.
    pub(crate) fn second_field(&mut self, index: u8, error: Option<GpuError>) {
        if let Some(decoded) = self.entry_mut(index).and_then(|e| e.decoded.as_mut()) {
            decoded.error = decoded.error.take().or(error);
        }
    }

    /// The decoder did not take the picture.
    pub(crate) fn failed(&mut self, info: &PictureInfo, error: &GpuError) {
        for index in Self::written(info) {
            if let Some(decoded) = self.entry_mut(index).and_then(|e| e.decoded.as_mut()) {
                decoded.error = Some(error.clone());
            }
        }
    }

    fn current(&self, index: u8) -> Option<PictureRef> {
        self.entry(index).map(|entry| PictureRef {
            index,
            generation: entry.generation,
        })
    }

    /// How the picture in `index` was decoded; `None` where nothing was.
    pub(crate) fn decoded(&self, index: u8) -> Option<&Decoded> {
        self.entry(index)?.decoded.as_ref()
    }

    /// Takes the token of the picture in `index`: the picture is being shown. `None` the second time.
    pub(crate) fn take_token(&mut self, index: u8) -> Option<FrameToken> {
        let entry = self.entry_mut(index)?;
        let other = entry.companion;
        let token = entry.token.take();
        // Shown without its grain, the picture is still this one.
        token.or_else(|| {
            let other = other?;
            let entry = self.entry_mut(other.index)?;
            (entry.generation == other.generation)
                .then(|| entry.token.take())
                .flatten()
        })
    }

    /// Holds the picture in `index` and, where it has film grain, its other surface.
    pub(crate) fn hold(&mut self, index: u8) -> Option<Hold> {
        let shown = self.current(index)?;
        let companion = self
            .entry(index)?
            .companion
            .filter(|other| self.current(other.index) == Some(*other));
        for held in [Some(shown), companion].into_iter().flatten() {
            if let Some(entry) = self.entry_mut(held.index) {
                entry.holds += 1;
            }
        }
        Some(Hold { shown, companion })
    }

    /// Gives a hold back. Where the table was cleared meanwhile the surface is another's: nothing changes.
    pub(crate) fn release(&mut self, hold: Hold) {
        for held in [Some(hold.shown), hold.companion].into_iter().flatten() {
            if let Some(entry) = self.entry_mut(held.index)
                && entry.generation == held.generation
            {
                entry.holds = entry.holds.saturating_sub(1);
            }
        }
    }

    /// The engine may still write the picture: nothing is decoded into its surface until
    /// [`settle`](Self::settle).
    pub(crate) fn quarantine(&mut self, picture: PictureRef, now: Duration) {
        if let Some(entry) = self.entry_mut(picture.index)
            && entry.generation == picture.generation
        {
            entry.quarantined = Some(now);
        }
    }

    /// The engine is done with a picture. A picture of another generation changes nothing.
    pub(crate) fn settle(&mut self, picture: PictureRef) -> bool {
        match self.entry_mut(picture.index) {
            Some(entry) if entry.generation == picture.generation => {
                entry.quarantined.take().is_some()
            }
            _ => false,
        }
    }

    /// The pictures in quarantine.
    pub(crate) fn quarantined(&self) -> impl Iterator<Item = PictureRef> {
        self.0
            .iter()
            .zip(0u8..)
            .filter(|(entry, _)| entry.quarantined.is_some())
            .map(|(entry, index)| PictureRef {
                index,
                generation: entry.generation,
            })
    }

    pub(crate) fn holds(&self) -> u32 {
        self.0.iter().map(|entry| u32::from(entry.holds)).sum()
    }

    /// The decoder is gone and its pictures with it. Generations go on, so that late news of the old
    /// pictures finds nobody. Gives the tokens of pictures that were not shown.
    pub(crate) fn clear(&mut self) -> Vec<FrameToken> {
        let mut lost = Vec::new();
        for entry in &mut self.0 {
            lost.extend(entry.token.take());
            *entry = Entry {
                generation: entry.generation + 1,
                ..Entry::default()
            };
        }
        lost.sort_unstable();
        lost
    }

    /// Takes the tokens of all pictures that were not shown; the pictures stay, others may refer to them.
    pub(crate) fn forget_tokens(&mut self) -> Vec<FrameToken> {
        let mut lost: Vec<_> = self.0.iter_mut().filter_map(|e| e.token.take()).collect();
        lost.sort_unstable();
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(index: u8, film_grain_reference: Option<u8>) -> PictureInfo {
        PictureInfo {
            index,
            film_grain_reference,
            intra: true,
            reference: true,
            second_field: false,
        }
    }

    fn decoded() -> Decoded {
        Decoded {
            order: Order::default(),
            reference: true,
            at: Duration::ZERO,
            waited: Duration::ZERO,
            error: None,
        }
    }

    #[test]
    fn a_held_surface_is_not_writable() {
        let mut table = PictureTable::default();
        table.begin(&info(3, None), Some(FrameToken(1)), decoded());
        let hold = table.hold(3).unwrap();
        let again = table.hold(3).unwrap();
        table.release(hold);
        assert!(!table.writable(&info(3, None)), "one hold is left");
        table.release(again);
        assert!(table.writable(&info(3, None)));
    }

    #[test]
    fn film_grain_holds_both_surfaces() {
        let mut table = PictureTable::default();
        table.begin(&info(3, Some(4)), Some(FrameToken(1)), decoded());
        let hold = table.hold(3).unwrap();
        assert!(!table.writable(&info(3, None)));
        assert!(!table.writable(&info(4, None)));
        assert!(!table.writable(&info(7, Some(4))));
        assert!(table.writable(&info(7, None)));
        table.release(hold);
        assert!(table.writable(&info(3, Some(4))));
        assert_eq!(table.holds(), 0);
    }

    #[test]
    fn a_companion_that_was_overwritten_is_not_held() {
        let mut table = PictureTable::default();
        table.begin(&info(3, Some(4)), Some(FrameToken(1)), decoded());
        table.begin(&info(4, None), Some(FrameToken(2)), decoded());
        let hold = table.hold(3).unwrap();
        assert!(table.writable(&info(4, None)));
        assert_eq!(table.take_token(3), Some(FrameToken(1)));
        assert_eq!(table.take_token(3), None);
        assert_eq!(table.take_token(4), Some(FrameToken(2)));
        table.release(hold);
        assert_eq!(table.holds(), 0);
    }

    #[test]
    fn a_picture_shown_without_its_grain_is_the_same_picture() {
        let mut table = PictureTable::default();
        table.begin(&info(3, Some(4)), Some(FrameToken(1)), decoded());
        assert_eq!(table.take_token(4), Some(FrameToken(1)));
        assert_eq!(table.take_token(3), None);
    }

    #[test]
    fn late_news_of_another_generation_changes_nothing() {
        let mut table = PictureTable::default();
        table.begin(&info(3, None), Some(FrameToken(1)), decoded());
        let old = table.hold(3).unwrap();
        table.quarantine(old.shown, Duration::ZERO);
        assert_eq!(table.clear(), [FrameToken(1)]);

        table.begin(&info(3, None), Some(FrameToken(2)), decoded());
        let new = table.hold(3).unwrap();
        table.release(old);
        assert!(
            !table.writable(&info(3, None)),
            "the old hold freed the new"
        );
        table.quarantine(old.shown, Duration::ZERO);
        assert_eq!(table.quarantined().count(), 0);
        table.quarantine(new.shown, Duration::ZERO);
        assert!(!table.settle(old.shown));
        assert_eq!(table.quarantined().collect::<Vec<_>>(), [new.shown]);
        assert!(table.settle(new.shown));
        table.release(new);
        assert!(table.writable(&info(3, None)));
    }

    #[test]
    fn an_overwritten_picture_gives_its_token_back() {
        let mut table = PictureTable::default();
        assert_eq!(
            table.begin(&info(3, None), Some(FrameToken(1)), decoded()),
            None
        );
        assert_eq!(
            table.begin(&info(3, None), Some(FrameToken(2)), decoded()),
            Some(FrameToken(1))
        );
    }

    #[test]
    fn an_index_out_of_range_is_refused() {
        assert!(PictureTable::knows(&info(31, None)));
        assert!(!PictureTable::knows(&info(32, None)));
        assert!(!PictureTable::knows(&info(0, Some(32))));
        let mut table = PictureTable::default();
        assert_eq!(table.hold(32), None);
        assert_eq!(table.take_token(255), None);
    }
}
