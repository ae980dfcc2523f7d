// SPDX-License-Identifier: MPL-2.0

//! A stream through the loop, and what holds whatever the runtime did.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::OnceLock;

use onevpl_sys::{DirectRuntime, MfxStatus};
use vplretry_core::{Corruption, Damage, End, Error, Event, FrameLoop, Settings, Stats, Status};

use crate::books::{Books, Fate};
use crate::client::{live_surfaces, set_faults};
use crate::driver::Driver;
use crate::units::Source;

/// What becomes of published surfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Downstream {
    /// They are released at once.
    Takes,
    /// They are held; the oldest is released in each pause.
    GivesOneBackPerPause,
    /// They are held until the end.
    KeepsAll,
}

/// A call that is cancelled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancel {
    /// While this unit is fed.
    pub(crate) at: u64,
    /// After the loop has asked so many times.
    pub(crate) questions: u32,
    /// A flush follows; otherwise the loop goes on.
    pub(crate) flush: bool,
}

/// How a stream is played.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    /// `AsyncDepth` of the runtime.
    pub(crate) runtime_depth: u16,
    /// Faults of each session in turn; later sessions have none.
    pub(crate) faults: Vec<String>,
    pub(crate) downstream: Downstream,
    pub(crate) cancel: Option<Cancel>,
    /// Access units that are handed over before a call.
    pub(crate) batch: usize,
}

impl Setup {
    pub(crate) fn with(faults: &str) -> Self {
        Self {
            settings: Settings::default(),
            runtime_depth: 1,
            faults: vec![faults.to_owned()],
            downstream: Downstream::Takes,
            cancel: None,
            batch: 1,
        }
    }

    /// The same faults in this many sessions.
    pub(crate) fn in_sessions(mut self, count: usize) -> Self {
        self.faults = vec![self.faults.concat(); count];
        self
    }

    pub(crate) fn async_depth(mut self, depth: u16) -> Self {
        self.settings.async_depth = depth.into();
        self.runtime_depth = depth;
        self.batch = depth.into();
        self
    }
}

/// A published picture.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) unit: u64,
    /// In the notation of the stream's list.
    pub(crate) checksum: String,
    pub(crate) md5: String,
    pub(crate) width: u16,
    pub(crate) corruption: Corruption,
    /// No access unit before it was lost.
    pub(crate) intact: bool,
}

/// What came of it.
pub(crate) struct Played {
    pub(crate) end: Result<End, Error<Infallible>>,
    pub(crate) stats: Stats,
    pub(crate) books: Books,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) events: Vec<Event>,
    /// Soft errors.
    pub(crate) damages: Vec<(Status, Damage)>,
    /// Calls without progress at the end, by the driver's count.
    pub(crate) without_progress: u32,
    pub(crate) flushes: u32,
    /// See [`Driver::restarts`].
    pub(crate) restarts: u32,
}

impl Played {
    pub(crate) fn checksums(&self) -> Vec<&str> {
        self.pictures
            .iter()
            .map(|picture| picture.checksum.as_str())
            .collect()
    }

    pub(crate) fn md5s(&self) -> Vec<&str> {
        self.pictures
            .iter()
            .map(|picture| picture.md5.as_str())
            .collect()
    }

    /// The numbers of the access units that were published, in the order of publication.
    pub(crate) fn shown(&self) -> Vec<u64> {
        self.pictures.iter().map(|picture| picture.unit).collect()
    }
}

/// The very library that the dispatcher loads: it lies alone in the folder that is searched.
fn installed() -> &'static DirectRuntime {
    static INSTALLED: OnceLock<DirectRuntime> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let folder = std::env::var_os("ONEVPL_SEARCH_PATH").expect("the test runs as a child");
        DirectRuntime::open(&Path::new(&folder).join("libvplsoft.so")).expect("the runtime loads")
    })
}

/// Sets the faults of the next session.
pub(crate) fn set_session_faults(text: &str) {
    assert_eq!(
        set_faults(installed(), Some(text)),
        MfxStatus::ERR_NONE,
        "{text}"
    );
}

/// Plays a stream as an element does: an access unit (or some) a call, a drain at the end.
pub(crate) fn play(source: &Source, setup: &Setup) -> Played {
    let mut decode = FrameLoop::new(Driver::new(source, setup), setup.settings.clone());
    let mut damages = Vec::new();
    let mut flushes = 0;
    let end = play_units(&mut decode, source, setup, &mut damages, &mut flushes);
    let stats = *decode.stats();
    assert!(
        end.is_ok() || decode.pending() == 0,
        "pending after an error"
    );
    assert_eq!(decode.pending(), 0);
    let mut driver = decode.into_driver();
    driver.books.end(end.is_err());
    let played = Played {
        end,
        stats,
        books: std::mem::take(&mut driver.books),
        pictures: std::mem::take(&mut driver.pictures),
        events: std::mem::take(&mut driver.events),
        damages,
        without_progress: driver.without_progress,
        flushes,
        restarts: driver.restarts,
    };
    drop(driver);
    check(&played, setup);
    played
}

fn play_units(
    decode: &mut FrameLoop<Driver>,
    source: &Source,
    setup: &Setup,
    damages: &mut Vec<(Status, Damage)>,
    flushes: &mut u32,
) -> Result<End, Error<Infallible>> {
    for units in source.units.chunks(setup.batch) {
        for unit in units {
            decode.driver_mut().hand_over(unit);
        }
        let cancel = setup.cancel;
        let cancel = cancel.filter(|cancel| units.iter().any(|unit| unit.id == cancel.at));
        if let Some(cancel) = cancel {
            decode.driver().cancel_in.set(Some(cancel.questions));
        }
        loop {
            decode.driver_mut().progress();
            match decode.feed()? {
                End::Damaged { status, damage } => {
                    damages.push((status, damage));
                    if damage == Damage::UntilKeyframe {
                        decode.driver_mut().wait_for_key();
                    }
                }
                End::Cancelled => {
                    decode.driver().cancel_in.set(None);
                    if cancel.is_some_and(|cancel| cancel.flush) {
                        *flushes += 1;
                        assert_eq!(decode.flush()?, End::Flushed);
                    }
                }
                end => {
                    assert_eq!(end, End::NeedInput);
                    break;
                }
            }
        }
        decode.driver().cancel_in.set(None);
    }
    decode.driver_mut().progress();
    let end = decode.drain()?;
    if let End::Damaged { status, damage } = end {
        damages.push((status, damage));
    }
    Ok(end)
}

/// What holds after every run. That each unit has one fate, that the runtime's order is kept and that no
/// stretch outlasts its budget, books and driver have asserted on the way.
fn check(played: &Played, setup: &Setup) {
    assert_eq!(live_surfaces(installed()), 0, "live surfaces");
    let published = played.books.with(|fate| *fate == Fate::Published);
    let discarded = played.books.with(|fate| matches!(fate, Fate::Discarded(_)));
    assert_eq!(played.stats.frames, published.len() as u64);
    assert_eq!(played.stats.discarded, discarded.len() as u64);
    assert_eq!(played.pictures.len(), published.len());
    if let Err(Error::Exhausted(exhausted)) = &played.end {
        let most = setup.settings.max_attempts + setup.settings.spin_guard;
        assert!(exhausted.attempts <= most, "{exhausted}");
        let text = exhausted.to_string();
        let begin = format!(
            "DecodeFrameAsync yielded no frame after {} attempts",
            exhausted.attempts
        );
        assert!(text.starts_with(&begin), "{text}");
    }
}

/// A stream without faults: the order in which its units are shown, and their checksums.
pub(crate) struct Reference {
    /// Of each unit, how many key frames have come up to it, and its place among those shown.
    order: BTreeMap<u64, (usize, usize)>,
    sums: Vec<String>,
}

impl Reference {
    /// Plays it; the checksums are those of the package.
    pub(crate) fn of(source: &Source) -> Self {
        let played = play(source, &Setup::with(""));
        assert_eq!(played.end, Ok(End::Drained), "{}", source.name);
        assert_eq!(
            played.checksums(),
            source.expected.list(),
            "{}",
            source.name
        );
        let keys = |unit: u64| {
            source.units[..=unit as usize]
                .iter()
                .filter(|unit| unit.key)
                .count()
        };
        let shown = played.shown().into_iter().enumerate();
        Self {
            order: shown
                .map(|(place, unit)| (unit, (keys(unit), place)))
                .collect(),
            sums: source.expected.list().to_vec(),
        }
    }

    /// What was published comes in the order of the stream (after a restart within a group of pictures, in
    /// that of the groups), and pictures before any loss are right.
    pub(crate) fn compare(&self, played: &Played) {
        let order: Vec<_> = played.shown().iter().map(|unit| self.order[unit]).collect();
        if played.restarts == 0 {
            assert!(
                order.is_sorted_by(|a, b| a < b),
                "shown in the order {order:?}"
            );
        } else {
            assert!(
                order.is_sorted_by_key(|(keys, _)| *keys),
                "shown in the order {order:?}"
            );
        }
        let places = order.iter().map(|(_, place)| *place);
        for (picture, place) in played.pictures.iter().zip(places) {
            if picture.intact {
                assert_eq!(picture.checksum, self.sums[place], "unit {}", picture.unit);
            }
        }
    }
}
