// SPDX-License-Identifier: MPL-2.0

//! What is known of the stream, in bounded memory, and what of it is new since the pages were last told.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use score_records::{Frame, Window};
use serde::ser::SerializeTuple;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Windows kept: a quarter of an hour of seconds.
const WINDOWS: usize = 900;
/// Notes kept.
const NOTES: usize = 100;

/// How far the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// No frame has come yet.
    #[default]
    Starting,
    /// Frames come.
    Running,
    /// The stream ended by itself.
    Ended,
    /// A signal ended it.
    Stopped,
    /// It failed; the reason is told with it.
    Failed,
}

impl Phase {
    /// Every phase with its name, for metrics.
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Starting, "starting"),
        (Self::Running, "running"),
        (Self::Ended, "ended"),
        (Self::Stopped, "stopped"),
        (Self::Failed, "failed"),
    ];

    /// Nothing more comes.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Stopped | Self::Failed)
    }
}

/// The pictures that are scored.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Video {
    /// GStreamer's name of the format.
    pub(crate) format: String,
    /// Luma width in pixels.
    pub(crate) width: u32,
    /// Luma height in pixels.
    pub(crate) height: u32,
    /// Frames a second as the stream says; `None` where it does not.
    pub(crate) framerate: Option<f64>,
}

/// A frame as pages get it: `[frame, timestamp, motion, motion2, motion3]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    frame: u64,
    timestamp: Option<u64>,
    scores: [f64; 3],
}

impl Row {
    /// motion, motion2 and motion3.
    pub(crate) fn scores(&self) -> [f64; 3] {
        self.scores
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_tuple(5)?;
        row.serialize_element(&self.frame)?;
        row.serialize_element(&self.timestamp)?;
        for score in &self.scores {
            row.serialize_element(score)?;
        }
        row.end()
    }
}

/// A window and the session it is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SessionWindow {
    pub(crate) session: u64,
    #[serde(flatten)]
    pub(crate) window: Window,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    /// Good to know.
    Info,
    /// Something went wrong and the stream goes on.
    Warning,
}

/// Something that happened, for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Note {
    /// Counts notes, so that a page knows one that it has already.
    number: u64,
    /// Milliseconds since the program started; of the newest where it is told more than once.
    at: u64,
    /// How often in a row.
    times: u64,
    level: Level,
    /// Who says so.
    from: String,
    /// A word for the kind of it: repeats of one kind are counted, not listed.
    kind: String,
    text: String,
}

/// What a decoder says of itself, in the terms that all of them have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Counts {
    /// Frames put out.
    pub(crate) frames: u64,
    /// Calls that had to be repeated, or waits that ran out.
    pub(crate) retries: u64,
    /// Sessions or decoders that were replaced after a failure.
    pub(crate) recoveries: u64,
    /// Frames that came in and did not go out.
    pub(crate) dropped: u64,
    /// Frames with damage.
    pub(crate) corrupted: u64,
}

/// A video decoder in the pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Decoder {
    /// Name of the element.
    pub(crate) element: String,
    /// Its kind, such as `vplretrydec`.
    pub(crate) factory: String,
    /// The runtime behind it, where it says so.
    pub(crate) implementation: Option<String>,
    /// `None` for a decoder that does not count.
    pub(crate) counts: Option<Counts>,
    /// Everything it counts, by its own names.
    pub(crate) stats: BTreeMap<String, Value>,
}

/// How the pipeline does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Health {
    /// It keeps the pace of a live source.
    pub(crate) live: bool,
    /// Least latency of the pipeline as its elements report it, ms; of a live one.
    pub(crate) latency: Option<u64>,
    /// From when the newest scored frame was due to its scores, ms; of a live pipeline. Below 0 it came early.
    pub(crate) delay: Option<i64>,
    /// Frames that elements dropped because they were late.
    pub(crate) late: u64,
}

/// Counts since the program started, whatever was forgotten since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Totals {
    pub(crate) frames: u64,
    pub(crate) windows: u64,
    pub(crate) sessions: u64,
    pub(crate) warnings: u64,
    /// Frames that passed between two tellings faster than pages can be told.
    pub(crate) skipped: u64,
}

/// What pages are told: everything, or what is new.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct News {
    /// Milliseconds since the program started.
    pub(crate) at: u64,
    pub(crate) phase: Phase,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// A session began; frames that were shown before are of another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<u64>,
    /// Timestamp of the session's first frame, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) video: Option<Video>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) frames: VecDeque<Row>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) windows: VecDeque<SessionWindow>,
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) notes: VecDeque<Note>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decoders: Option<Vec<Decoder>>,
    pub(crate) health: Health,
    pub(crate) totals: Totals,
}

/// Puts something behind the others; true where the oldest had to go.
fn keep<T>(list: &mut VecDeque<T>, most: usize, item: T) -> bool {
    let full = list.len() >= most;
    if full {
        list.pop_front();
    }
    list.push_back(item);
    full
}

/// The stream as it is known, and the news.
#[derive(Debug)]
pub(crate) struct State {
    history: usize,
    known: News,
    news: News,
    /// Whether anything has changed since the news were taken.
    changed: bool,
    next_note: u64,
}

impl State {
    /// Nothing known yet; `history` frames will be kept.
    pub(crate) fn new(history: usize) -> Self {
        Self {
            history,
            known: News::default(),
            news: News::default(),
            changed: true,
            next_note: 0,
        }
    }

    /// All that is known.
    pub(crate) fn known(&self) -> &News {
        &self.known
    }

    /// What is new since this was last called; `None` for nothing.
    pub(crate) fn take_news(&mut self, at: u64) -> Option<News> {
        self.known.at = at;
        if !mem::take(&mut self.changed) {
            return None;
        }
        let mut news = mem::take(&mut self.news);
        news.at = at;
        news.phase = self.known.phase;
        news.failure.clone_from(&self.known.failure);
        news.origin = self.known.origin;
        news.health = self.known.health;
        news.totals = self.known.totals;
        Some(news)
    }

    /// A session begins: its frames have nothing to do with those before.
    pub(crate) fn begin_session(&mut self, session: u64) {
        self.changed = true;
        self.known.totals.sessions += 1;
        self.known.session = Some(session);
        self.news.session = Some(session);
        self.known.origin = None;
        self.known.frames.clear();
        self.news.frames.clear();
    }

    /// The size, format or rate of the pictures; true where it is another one.
    pub(crate) fn video(&mut self, video: Video) -> bool {
        let new = self.known.video.as_ref() != Some(&video);
        if new {
            self.changed = true;
            self.news.video = Some(video.clone());
            self.known.video = Some(video);
        }
        new
    }

    /// A frame's scores.
    pub(crate) fn frame(&mut self, frame: &Frame) {
        self.changed = true;
        let row = Row {
            frame: frame.frame,
            timestamp: frame.timestamp,
            scores: [frame.motion, frame.motion2, frame.motion3],
        };
        if !self.known.phase.is_over() {
            self.known.phase = Phase::Running;
        }
        self.known.origin = self.known.origin.or(frame.timestamp);
        self.known.totals.frames += 1;
        keep(&mut self.known.frames, self.history, row);
        if keep(&mut self.news.frames, self.history, row) {
            self.known.totals.skipped += 1;
        }
    }

    /// A window's scores.
    pub(crate) fn window(&mut self, session: u64, window: Window) {
        self.changed = true;
        self.known.totals.windows += 1;
        let window = SessionWindow { session, window };
        keep(&mut self.known.windows, WINDOWS, window.clone());
        keep(&mut self.news.windows, WINDOWS, window);
    }

    /// Something to tell people; false where it repeats the last note's kind.
    pub(crate) fn note(
        &mut self,
        at: u64,
        level: Level,
        from: &str,
        kind: &str,
        text: &str,
    ) -> bool {
        self.changed = true;
        if level != Level::Info {
            self.known.totals.warnings += 1;
        }
        let again = self.known.notes.back_mut();
        if let Some(last) = again.filter(|n| n.kind == kind && n.from == from && n.level == level) {
            last.times += 1;
            last.at = at;
            text.clone_into(&mut last.text);
            let last = last.clone();
            if self.news.notes.back().map(|n| n.number) == Some(last.number) {
                self.news.notes.pop_back();
            }
            keep(&mut self.news.notes, NOTES, last);
            return false;
        }
        let note = Note {
            number: self.next_note,
            at,
            times: 1,
            level,
            from: from.to_owned(),
            kind: kind.to_owned(),
            text: text.to_owned(),
        };
        self.next_note += 1;
        keep(&mut self.known.notes, NOTES, note.clone());
        keep(&mut self.news.notes, NOTES, note);
        true
    }

    /// What the decoders say of themselves.
    pub(crate) fn decoders(&mut self, decoders: Vec<Decoder>) {
        if self.known.decoders.as_ref() != Some(&decoders) {
            self.changed = true;
            self.news.decoders = Some(decoders.clone());
            self.known.decoders = Some(decoders);
        }
    }

    /// How the pipeline does.
    pub(crate) fn health(&mut self, change: impl FnOnce(&mut Health)) {
        let before = self.known.health;
        change(&mut self.known.health);
        self.changed |= self.known.health != before;
    }

    /// The end, and why where it was a failure. The first one told stays.
    pub(crate) fn end(&mut self, phase: Phase, failure: Option<String>) {
        if !self.known.phase.is_over() {
            self.changed = true;
            self.known.phase = phase;
            self.known.failure = failure;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(frame: u64) -> Frame {
        Frame {
            frame,
            timestamp: None,
            motion: 0.1,
            motion2: 0.2,
            motion3: f64::from_bits(0x3ff0_0000_0000_0001),
        }
    }

    #[test]
    fn memory_has_a_bound_whatever_comes() {
        let mut state = State::new(10);
        state.take_news(0);
        for i in 0..25 {
            state.frame(&frame(i));
            state.note(i, Level::Info, "a", &format!("kind {}", i % 2), "text");
        }
        for i in 0..2000 {
            state.note(i, Level::Warning, "b", &i.to_string(), "text");
        }
        let news = state.take_news(1).expect("there is news");
        for frames in [&news.frames, &state.known().frames] {
            let numbers: Vec<u64> = frames.iter().map(|row| row.frame).collect();
            assert_eq!(numbers, (15..25).collect::<Vec<_>>());
        }
        assert_eq!(news.notes.len(), NOTES);
        assert_eq!(state.known().notes.len(), NOTES);
        assert_eq!((news.totals.frames, news.totals.skipped), (25, 15));
        assert_eq!(news.totals.warnings, 2000);
        assert_eq!(state.take_news(2), None);
    }

    #[test]
    fn a_new_session_starts_the_frames_anew() {
        let mut state = State::new(10);
        state.begin_session(0);
        state.frame(&frame(0));
        state.begin_session(1);
        state.frame(&frame(7));
        let news = state.take_news(0).expect("there is news");
        assert_eq!(news.session, Some(1));
        assert_eq!(news.frames.len(), 1);
        let line = serde_json::to_string(&news.frames).expect("serialises");
        assert_eq!(line, "[[7,null,0.1,0.2,1.0000000000000002]]");
        state.frame(&frame(8));
        assert_eq!(state.take_news(0).expect("news").session, None);
    }

    #[test]
    fn repeats_of_a_note_are_counted() {
        let mut state = State::new(10);
        state.take_news(0);
        for at in 0..5 {
            state.note(at, Level::Warning, "dec", "retry", &format!("attempt {at}"));
        }
        let news = state.take_news(5).expect("there is news");
        assert_eq!(news.notes.len(), 1);
        state.note(6, Level::Warning, "dec", "retry", "attempt 6");
        let again = state.take_news(7).expect("there is news");
        assert_eq!(again.notes[0].number, news.notes[0].number);
        assert_eq!((again.notes[0].times, again.notes[0].at), (6, 6));
        assert_eq!(state.known().notes.len(), 1);
    }

    #[test]
    fn the_first_end_stays() {
        let mut state = State::new(10);
        state.end(Phase::Failed, Some("why".to_owned()));
        state.end(Phase::Ended, None);
        state.frame(&frame(0));
        assert_eq!(state.known().phase, Phase::Failed);
        assert_eq!(state.known().failure.as_deref(), Some("why"));
    }
}
