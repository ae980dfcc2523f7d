// SPDX-License-Identifier: MPL-2.0

//! Between the one that feeds and the many that watch: neither ever waits for the other.
//!
//! The feed changes the state; ten times a second what is new goes out, once for all, as one text that
//! every client shares. A client that is so slow that texts it has not taken yet are pushed out gets
//! everything anew in place of what it missed.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use crate::news::{Level, News};
use crate::state::State;

/// How often pages are told. The eye sees no more, and a client costs ten writes a second however fast
/// the frames come.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// Silence after which pages are told that there is nothing to tell: they take a longer one for a dead
/// connection.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Texts that a client may be behind: six seconds.
const BEHIND: usize = 64;

/// Everything, as a client gets it first.
#[derive(Debug, Serialize)]
struct Everything<'a> {
    /// Which run of the program this is.
    run: &'a str,
    /// Tells a page whether it is of this version of the program.
    page: &'a str,
    /// What is scored.
    source: &'a str,
    /// Frames that are kept.
    history: usize,
    #[serde(flatten)]
    known: &'a News,
}

/// Who watches.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    /// Clients at present.
    pub(crate) clients: AtomicUsize,
    /// Clients that were refused because there were too many.
    pub(crate) refused: AtomicU64,
    /// Times that a slow client missed something and got everything anew.
    pub(crate) behind: AtomicU64,
}

/// The state and those who are told of it.
#[derive(Debug)]
pub(crate) struct Hub {
    start: Instant,
    run: String,
    page: String,
    source: String,
    history: usize,
    shared: Mutex<Shared>,
    pub(crate) audience: Audience,
}

#[derive(Debug)]
struct Shared {
    state: State,
    /// `None` once clients are sent away.
    texts: Option<Sender<Arc<str>>>,
    last: Instant,
}

impl Hub {
    /// `run` tells runs of the program apart, `page` versions of the page.
    pub(crate) fn new(run: String, page: String, source: String, history: usize) -> Self {
        let start = Instant::now();
        Self {
            start,
            run,
            page,
            source,
            history,
            shared: Mutex::new(Shared {
                state: State::new(history),
                texts: Some(channel(BEHIND).0),
                last: start,
            }),
            audience: Audience::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A state that a panic left half changed is still a state, and the operator should see it.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Changes the state.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.lock().state)
    }

    /// Tells people something, on the page and, from warnings on, on standard error.
    pub(crate) fn note(&self, level: Level, from: &str, kind: &str, text: &str) {
        let at = self.at();
        let new = self.lock().state.note(at, level, from, kind, text);
        if new && level != Level::Info {
            eprintln!("vmafx-live: {from}: {text}");
        }
    }

    /// What is known.
    pub(crate) fn known(&self) -> News {
        let mut known = self.lock().state.known().clone();
        known.at = self.at();
        known
    }

    /// Tells what is new, or after a while that nothing is.
    pub(crate) fn tell(&self) {
        let mut shared = self.lock();
        self.tell_locked(&mut shared);
    }

    fn tell_locked(&self, shared: &mut Shared) {
        let news = match shared.state.take_news(self.at()) {
            Some(news) => news,
            None if shared.last.elapsed() < HEARTBEAT => return,
            None => {
                let known = shared.state.known();
                News {
                    at: known.at,
                    phase: known.phase,
                    failure: known.failure.clone(),
                    health: known.health,
                    totals: known.totals,
                    ..News::default()
                }
            }
        };
        shared.last = Instant::now();
        if let Some(texts) = &shared.texts {
            // Without a client there is no one to tell.
            let _ = texts.send(text(&news).into());
        }
    }

    /// Everything, and what is told after it without a gap; `None` once clients are sent away.
    pub(crate) fn join(&self) -> Option<(String, Receiver<Arc<str>>)> {
        let (known, texts) = {
            let mut shared = self.lock();
            self.tell_locked(&mut shared);
            let texts = shared.texts.as_ref()?.subscribe();
            (shared.state.known().clone(), texts)
        };
        Some((self.everything(&known), texts))
    }

    /// Everything, as a client gets it first.
    pub(crate) fn everything(&self, known: &News) -> String {
        text(&Everything {
            run: &self.run,
            page: &self.page,
            source: &self.source,
            history: self.history,
            known,
        })
    }

    /// Tells the rest and sends everyone away.
    pub(crate) fn close(&self) {
        let mut shared = self.lock();
        self.tell_locked(&mut shared);
        shared.texts = None;
    }
}

fn text(value: &impl Serialize) -> String {
    // Maps with text keys and numbers: nothing in it can fail. An empty object is passed over by a page.
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::news::Phase;
    use score_records::Frame;
    use serde_json::Value;
    use tokio::sync::broadcast::error::TryRecvError;

    fn hub() -> Hub {
        Hub::new("r".to_owned(), "p".to_owned(), "test".to_owned(), 100)
    }

    fn frame(hub: &Hub, frame: u64) {
        hub.update(|state| {
            state.frame(&Frame {
                frame,
                timestamp: Some(frame * 40),
                motion: 1.0,
                motion2: 1.0,
                motion3: 1.0,
            });
        });
    }

    fn numbers(text: &str) -> Vec<u64> {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let rows = value["frames"].as_array().cloned().unwrap_or_default();
        rows.iter().filter_map(|row| row[0].as_u64()).collect()
    }

    #[test]
    fn who_joins_gets_every_frame_once() {
        let hub = hub();
        let (_, mut early) = hub.join().expect("open");
        frame(&hub, 0);
        hub.tell();
        frame(&hub, 1);
        let (everything, mut texts) = hub.join().expect("open");
        assert_eq!(numbers(&everything), [0, 1]);
        frame(&hub, 2);
        hub.tell();
        assert_eq!(numbers(&texts.try_recv().expect("news")), [2]);
        let mut all = Vec::new();
        while let Ok(text) = early.try_recv() {
            all.extend(numbers(&text));
        }
        assert_eq!(all, [0, 1, 2]);
    }

    #[test]
    fn who_takes_nothing_costs_a_bounded_queue() {
        let hub = hub();
        let (_, mut stuck) = hub.join().expect("open");
        for i in 0..1000 {
            frame(&hub, i);
            hub.tell();
        }
        assert!(matches!(stuck.try_recv(), Err(TryRecvError::Lagged(n)) if n > 900));
        assert!(stuck.len() <= BEHIND);
    }

    #[test]
    fn the_end_is_told_before_everyone_is_sent_away() {
        let hub = hub();
        let (_, mut texts) = hub.join().expect("open");
        hub.update(|state| state.end(Phase::Failed, Some("why".to_owned())));
        hub.close();
        let last: Value = serde_json::from_str(&texts.try_recv().expect("the end")).expect("JSON");
        assert_eq!(
            (&last["phase"], &last["failure"]),
            (&"failed".into(), &"why".into())
        );
        assert_eq!(texts.try_recv(), Err(TryRecvError::Closed));
        assert!(hub.join().is_none());
    }
}
