// SPDX-License-Identifier: MPL-2.0

//! The parser of the scripted library: a decoded picture buffer that reuses a surface the moment the
//! parser itself no longer needs it.

use std::collections::VecDeque;
use std::sync::Arc;

use nvdecring_core::*;

use super::engine::{Engine, Handle, Params, error};
use super::script::Reuse;

pub const HEADERS: &[u8] = b"headers";

#[derive(Debug, Clone, Copy)]
struct Stored {
    picture: usize,
    index: u8,
    grain: Option<u8>,
    reference: bool,
    to_show: bool,
}

pub struct Parser {
    engine: Arc<Engine>,
    surfaces: u8,
    format: Option<u32>,
    headers: bool,
    stored: Vec<Stored>,
    /// In the order of their release.
    free: VecDeque<u8>,
}

type Parsed = Result<(), GpuError>;

impl Parser {
    pub fn new(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            surfaces: 0,
            format: None,
            headers: false,
            stored: Vec::new(),
            free: VecDeque::new(),
        }
    }

    fn failed() -> GpuError {
        error("parse", 1, ErrorClass::Single)
    }

    pub fn parse(
        &mut self,
        input: ParserInput<'_>,
        events: &mut dyn ParserEvents<Handle>,
    ) -> Parsed {
        if input.end_of_stream {
            self.show_all(events)?;
            self.stored.clear();
            self.format = None;
            self.headers = false;
            return Ok(());
        }
        if input.data == HEADERS {
            self.headers = true;
            return Ok(());
        }
        let number = <[u8; 8]>::try_from(input.data).map_err(|_| Self::failed())?;
        let number = u64::from_le_bytes(number) as usize;
        // Headers that could not be parsed are not missing.
        let failed = (self.engine.script.faults.keys()).any(|(call, _)| *call == "parse");
        if !self.headers && !failed {
            self.engine
                .violation(format!("packet {number} before the headers"));
        }
        let engine = self.engine.clone();
        let picture = &engine.script.pictures[number];
        if picture.empty {
            return Ok(());
        }
        if self.format != Some(picture.format) {
            self.show_all(events)?;
            self.stored.clear();
            match events.sequence(&picture.format) {
                SequenceReply::Fail => return Err(Self::failed()),
                SequenceReply::Surfaces(surfaces) => self.surfaces = surfaces,
            }
            self.format = Some(picture.format);
            self.free = (0..self.surfaces).collect();
        }
        if let Some(earlier) = picture.shows {
            return self.show_earlier(earlier, events);
        }
        let index = self.take();
        let grain = picture.film_grain.then(|| self.take());
        let info = PictureInfo {
            index,
            film_grain_reference: grain,
            intra: picture.intra,
            reference: picture.reference,
            second_field: false,
        };
        self.stored.push(Stored {
            picture: number,
            index,
            grain,
            reference: picture.reference,
            to_show: picture.rank.is_some(),
        });
        let params = Params {
            picture: number,
            info,
        };
        let second = PictureInfo {
            second_field: true,
            ..info
        };
        if !events.decode(info, &params) || (picture.fields && !events.decode(second, &params)) {
            return Err(Self::failed());
        }
        self.slide(number);
        self.bump(events)
    }

    fn take(&mut self) -> u8 {
        let at = match self.engine.script.reuse {
            Reuse::Lowest => (0..self.free.len()).min_by_key(|n| self.free[*n]),
            Reuse::Hostile => self.free.len().checked_sub(1),
            Reuse::InTurn => Some(0),
        };
        match at.and_then(|at| self.free.remove(at)) {
            Some(index) => index,
            None => {
                self.engine.violation("the parser has no surface".into());
                0
            }
        }
    }

    /// The oldest reference pictures are none any more.
    fn slide(&mut self, newest: usize) {
        let keep = self.engine.script.references;
        let script = &self.engine.script;
        // A hidden picture stays until it was shown.
        let hidden = |stored: &Stored| {
            script.pictures[stored.picture].rank.is_none()
                && script.pictures[newest..]
                    .iter()
                    .any(|later| later.shows == Some(stored.picture))
        };
        let references: Vec<_> = self.stored.iter().filter(|s| s.reference).collect();
        let over = references.len().saturating_sub(keep);
        let over: Vec<_> = references
            .into_iter()
            .filter(|stored| !hidden(stored))
            .take(over)
            .map(|stored| stored.picture)
            .collect();
        for stored in &mut self.stored {
            stored.reference &= !over.contains(&stored.picture);
        }
    }

    /// Shows what is next in order, and frees what nobody needs: as far as the parser knows.
    fn bump(&mut self, events: &mut dyn ParserEvents<Handle>) -> Parsed {
        let script = self.engine.clone();
        let pictures = &script.script.pictures;
        loop {
            let next = (self.stored.iter())
                .filter(|stored| stored.to_show)
                .min_by_key(|stored| pictures[stored.picture].rank)
                .copied();
            let waits = self.stored.iter().filter(|stored| stored.to_show).count();
            let Some(next) = next else { break };
            // Shown at once if all before it were; else when the buffer is full.
            let rank = pictures[next.picture].rank;
            let earlier_to_come = pictures[next.picture + 1..]
                .iter()
                .take_while(|p| p.format == pictures[next.picture].format)
                .any(|later| later.rank.is_some() && later.rank < rank);
            if earlier_to_come && waits <= script.script.reorder {
                break;
            }
            self.show(next.picture, events)?;
        }
        self.collect();
        Ok(())
    }

    fn show(&mut self, picture: usize, events: &mut dyn ParserEvents<Handle>) -> Parsed {
        let Some(stored) = self.stored.iter_mut().find(|s| s.picture == picture) else {
            return Ok(());
        };
        stored.to_show = false;
        let index = stored.index;
        let shown = DisplayInfo {
            index,
            progressive: true,
            top_field_first: false,
            repeat_first_field: 0,
        };
        if events.display(Some(shown)) {
            Ok(())
        } else {
            Err(Self::failed())
        }
    }

    fn show_earlier(&mut self, earlier: usize, events: &mut dyn ParserEvents<Handle>) -> Parsed {
        self.show(earlier, events)?;
        self.slide(earlier);
        self.collect();
        Ok(())
    }

    fn show_all(&mut self, events: &mut dyn ParserEvents<Handle>) -> Parsed {
        let engine = self.engine.clone();
        let pictures = &engine.script.pictures;
        let mut left: Vec<_> = self
            .stored
            .iter()
            .filter(|stored| stored.to_show)
            .map(|stored| stored.picture)
            .collect();
        left.sort_by_key(|picture| pictures[*picture].rank);
        for picture in left {
            self.show(picture, events)?;
        }
        Ok(())
    }

    fn collect(&mut self) {
        let free = &mut self.free;
        self.stored.retain(|stored| {
            let needed = stored.reference || stored.to_show;
            if !needed {
                free.extend(stored.grain);
                free.push_back(stored.index);
            }
            needed
        });
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        self.engine.parser_gone();
    }
}
