// SPDX-License-Identifier: MPL-2.0

//! What is known of the stream, in bounded memory, and what of it is new since the pages were last told.

use std::collections::VecDeque;
use std::mem;

use score_records::{Frame, Window};

use crate::news::{Decoder, Health, Level, News, Note, Phase, Row, SessionWindow, Video};

/// Windows kept: a quarter of an hour of seconds.
const WINDOWS: usize = 900;
/// Notes kept.
const NOTES: usize = 100;

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
        let row = Row::from(frame);
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

    fn number(row: &Row) -> u64 {
        let row = serde_json::to_value(row).expect("serialises");
        row[0].as_u64().expect("a number")
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
            let numbers: Vec<u64> = frames.iter().map(number).collect();
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
