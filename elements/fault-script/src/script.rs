// SPDX-License-Identifier: MPL-2.0

//! The script of statuses: what each decode call answers.

/// One entry: `2`, `3sf`, `_`, each with `*COUNT` at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptEntry {
    /// The status, or `None` for `_`: as usual.
    pub status: Option<i32>,
    /// `s`: with something to wait for.
    pub sync: bool,
    /// `f`: with a picture.
    pub surface: bool,
    /// How many times, at least 1.
    pub repeat: u64,
}

pub(crate) fn parse_script(text: &str) -> Option<Vec<ScriptEntry>> {
    text.split(',')
        .map(|entry| parse_entry(entry.trim()))
        .collect()
}

fn parse_entry(text: &str) -> Option<ScriptEntry> {
    let (what, repeat) = match text.split_once('*') {
        Some((what, count)) => (what, count.parse().ok().filter(|count| *count > 0)?),
        None => (text, 1),
    };
    if what == "_" {
        return Some(ScriptEntry {
            status: None,
            sync: false,
            surface: false,
            repeat,
        });
    }
    let number = what.trim_end_matches(['s', 'f']);
    let flags = &what[number.len()..];
    if flags.matches('s').count() > 1 || flags.matches('f').count() > 1 || number.starts_with('+') {
        return None;
    }
    Some(ScriptEntry {
        status: Some(number.parse().ok()?),
        sync: flags.contains('s'),
        surface: flags.contains('f'),
        repeat,
    })
}

/// What the next call is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// As usual.
    Normal,
    /// Nothing is decoded; this status is the answer.
    Answer {
        /// The status.
        status: i32,
        /// With something to wait for.
        sync: bool,
    },
    /// Something is decoded. If a picture comes of it, it is given out with this status; otherwise the
    /// entry waits for the next call.
    WithPicture {
        /// The status.
        status: i32,
        /// With something to wait for.
        sync: bool,
    },
}

/// The place in a script.
#[derive(Clone, Debug, Default)]
pub struct ScriptPlayer {
    entries: Vec<ScriptEntry>,
    at: usize,
    done: u64,
}

impl ScriptPlayer {
    /// At the beginning of `entries`.
    pub fn new(entries: Vec<ScriptEntry>) -> Self {
        Self {
            entries,
            at: 0,
            done: 0,
        }
    }

    /// What the call at this place is to do. Behind the end, every call is as usual.
    pub fn current(&self) -> ScriptStep {
        match self.entries.get(self.at) {
            None | Some(ScriptEntry { status: None, .. }) => ScriptStep::Normal,
            Some(ScriptEntry {
                status: Some(status),
                sync,
                surface,
                ..
            }) => {
                let (status, sync) = (*status, *sync);
                if *surface {
                    ScriptStep::WithPicture { status, sync }
                } else {
                    ScriptStep::Answer { status, sync }
                }
            }
        }
    }

    /// Goes on to the next place.
    pub fn advance(&mut self) {
        let Some(entry) = self.entries.get(self.at) else {
            return;
        };
        self.done += 1;
        if self.done >= entry.repeat {
            self.at += 1;
            self.done = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_repeats_entries_and_is_normal_behind_the_end() {
        let mut player = ScriptPlayer::new(parse_script("2*2,_,-13,3sf").expect("a script"));
        let mut steps = Vec::new();
        for _ in 0..6 {
            steps.push(player.current());
            player.advance();
        }
        let busy = ScriptStep::Answer {
            status: 2,
            sync: false,
        };
        let lost = ScriptStep::Answer {
            status: -13,
            sync: false,
        };
        let changed = ScriptStep::WithPicture {
            status: 3,
            sync: true,
        };
        assert_eq!(
            steps,
            [
                busy,
                busy,
                ScriptStep::Normal,
                lost,
                changed,
                ScriptStep::Normal
            ]
        );
    }
}
