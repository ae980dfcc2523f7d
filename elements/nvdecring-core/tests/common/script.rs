// SPDX-License-Identifier: MPL-2.0

//! Streams and faults as data.

use std::collections::BTreeMap;
use std::time::Duration;

use nvdecring_core::{Call, DecodeStatus};
use proptest::prelude::*;

pub const MS: Duration = Duration::from_millis(1);

/// What a packet holds: packet n of a script has token n.
#[derive(Debug, Clone, PartialEq)]
pub struct Pic {
    /// Place in display order, over the whole script; none for a picture that is never shown.
    pub rank: Option<u32>,
    /// Shows this earlier picture and decodes nothing.
    pub shows: Option<usize>,
    /// Nothing at all.
    pub empty: bool,
    pub intra: bool,
    pub reference: bool,
    pub film_grain: bool,
    /// Decoded as two fields, with two calls.
    pub fields: bool,
    pub latency: Duration,
    /// What the device says of it once it is decoded.
    pub status: DecodeStatus,
    pub format: u32,
}

impl Pic {
    pub fn new(rank: u32) -> Self {
        Self {
            rank: Some(rank),
            shows: None,
            empty: false,
            intra: rank == 0,
            reference: true,
            film_grain: false,
            fields: false,
            latency: MS,
            status: DecodeStatus::Success,
            format: 0,
        }
    }
}

/// Which free surface the parser takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    Lowest,
    /// The one that was freed last: its picture is most likely still in the ring.
    Hostile,
    InTurn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Single,
    /// Every later call fails until there is a new decoder.
    BreaksDecoder,
    /// Every later call fails until there is a new context.
    BreaksContext,
    /// Every later call fails.
    BreaksDevice,
    /// Returns when the test releases it.
    Hangs,
    NotSupported,
    /// The picture is never decoded.
    NeverSettles,
}

#[derive(Debug, Clone)]
pub struct Script {
    pub pictures: Vec<Pic>,
    /// Reference pictures the parser keeps.
    pub references: usize,
    /// Further surfaces it needs for reordering.
    pub reorder: usize,
    pub reuse: Reuse,
    pub engines: usize,
    pub has_status: bool,
    pub can_reconfigure: bool,
    pub copy: Duration,
    pub downstream: Duration,
    /// Which call of a kind, from 0, does what.
    pub faults: BTreeMap<(&'static str, usize), Fault>,
}

impl Script {
    pub fn new(pictures: Vec<Pic>) -> Self {
        Self {
            pictures,
            references: 2,
            reorder: 2,
            reuse: Reuse::Hostile,
            engines: 1,
            has_status: true,
            can_reconfigure: true,
            copy: Duration::ZERO,
            downstream: Duration::ZERO,
            faults: BTreeMap::new(),
        }
    }

    /// Pictures shown as they are decoded.
    pub fn plain(count: u32) -> Self {
        Self::new((0..count).map(Pic::new).collect())
    }

    pub fn fault(mut self, call: Call, nth: usize, fault: Fault) -> Self {
        self.faults.insert((name(call), nth), fault);
        self
    }

    pub fn min_surfaces(&self, format: u32) -> u8 {
        let grain = self.pictures.iter().any(|picture| picture.film_grain);
        let pictures = self.references + self.reorder + 2;
        // A format of its own needs a surface more, so that growth is seen.
        (pictures * if grain { 2 } else { 1 } + (format as usize % 2)) as u8
    }
}

pub const fn name(call: Call) -> &'static str {
    match call {
        Call::OpenContext => "open_context",
        Call::CreateParser => "create_parser",
        Call::Parse => "parse",
        Call::CreateDecoder => "create_decoder",
        Call::Reconfigure => "reconfigure",
        Call::Decode => "decode",
        Call::Destroy => "destroy",
        Call::Status => "status",
        Call::Map => "map",
        Call::BeginCopy => "begin_copy",
        Call::FinishCopy => "finish_copy",
        Call::Unmap => "unmap",
    }
}

fn latency() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (1u64..40).prop_map(Duration::from_millis),
        (1u64..2000).prop_map(Duration::from_micros),
    ]
}

fn status() -> impl Strategy<Value = DecodeStatus> {
    prop_oneof![
        12 => Just(DecodeStatus::Success),
        1 => Just(DecodeStatus::Error),
        1 => Just(DecodeStatus::Concealed),
        1 => Just(DecodeStatus::Unknown),
    ]
}

/// A stream with reordering: groups of one reference picture and up to three that are shown before it.
fn reordered(formats: bool) -> impl Strategy<Value = Vec<Pic>> {
    let group = (
        1usize..=4,
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(if formats { 0.15 } else { 0.0 }),
        prop::collection::vec((latency(), status()), 4),
    );
    prop::collection::vec(group, 1..14).prop_map(|groups| {
        let mut pictures: Vec<Pic> = Vec::new();
        let (mut rank, mut format) = (0, 0);
        for (n, (length, intra, film_grain, new_format, details)) in groups.into_iter().enumerate()
        {
            let intra = intra || n == 0 || new_format;
            format += u32::from(new_format);
            // Decoded first, shown last.
            for (place, (latency, status)) in details.into_iter().take(length).enumerate() {
                let shown = if place == 0 { length - 1 } else { place - 1 };
                pictures.push(Pic {
                    intra: intra && place == 0,
                    reference: place == 0,
                    film_grain,
                    fields: length == 3 && !film_grain,
                    latency,
                    status,
                    format,
                    ..Pic::new(rank + shown as u32)
                });
            }
            rank += length as u32;
        }
        pictures
    })
}

/// A stream without reordering: hidden pictures, pictures shown later, packets of nothing.
fn shown_at_once() -> impl Strategy<Value = Vec<Pic>> {
    let picture = (0u8..10, any::<bool>(), latency(), status());
    prop::collection::vec(picture, 1..40).prop_map(|drawn| {
        let mut pictures: Vec<Pic> = Vec::new();
        let mut hidden = None;
        let mut rank = 0;
        for (n, (kind, film_grain, latency, status)) in drawn.into_iter().enumerate() {
            let mut picture = Pic {
                intra: n == 0 || kind == 9,
                reference: kind % 2 == 0,
                film_grain,
                latency,
                status,
                ..Pic::new(rank)
            };
            match (kind, hidden) {
                (1, None) => {
                    picture.rank = None;
                    picture.reference = true;
                    hidden = Some(n);
                }
                // Shown while the parser still refers to it.
                (2 | 3, Some(earlier)) => {
                    picture.shows = Some(earlier);
                    hidden = None;
                    rank += 1;
                }
                (4, _) if n > 0 => {
                    picture.rank = None;
                    picture.empty = true;
                }
                _ => rank += 1,
            }
            pictures.push(picture);
        }
        pictures
    })
}

fn script(pictures: impl Strategy<Value = Vec<Pic>>) -> impl Strategy<Value = Script> {
    (
        pictures,
        (1usize..=4, 2usize..=4),
        prop_oneof![
            1 => Just(Reuse::Lowest),
            3 => Just(Reuse::Hostile),
            1 => Just(Reuse::InTurn)
        ],
        1usize..=3,
        (any::<bool>(), any::<bool>()),
        (0u64..3000, 0u64..8),
    )
        .prop_map(
            |(
                pictures,
                (references, reorder),
                reuse,
                engines,
                (status, reconfigure),
                (copy, sink),
            )| {
                Script {
                    references,
                    reorder,
                    reuse,
                    engines,
                    has_status: status,
                    can_reconfigure: reconfigure,
                    copy: Duration::from_micros(copy),
                    downstream: MS * sink as u32,
                    ..Script::new(pictures)
                }
            },
        )
}

/// Any stream whose pictures are reordered, without faults.
pub fn any_reordered() -> impl Strategy<Value = Script> {
    script(reordered(true))
}

/// Any stream whose pictures are not, without faults.
pub fn any_shown() -> impl Strategy<Value = Script> {
    script(shown_at_once())
}

/// Any of the calls that can fail, and how it fails; none that hangs.
pub fn any_faults(at_most: usize) -> impl Strategy<Value = BTreeMap<(&'static str, usize), Fault>> {
    let calls = prop::sample::select(vec![
        "open_context",
        "create_parser",
        "create_decoder",
        "reconfigure",
        "decode",
        "status",
        "map",
        "begin_copy",
        "finish_copy",
        "unmap",
        "parse",
    ]);
    let fault = prop::sample::select(vec![
        Fault::Single,
        Fault::Single,
        Fault::BreaksDecoder,
        Fault::BreaksContext,
        Fault::BreaksDevice,
        Fault::NotSupported,
        Fault::NeverSettles,
    ]);
    prop::collection::btree_map((calls, 0usize..40), fault, 0..=at_most)
}
