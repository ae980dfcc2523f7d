// SPDX-License-Identifier: MPL-2.0

//! How far it is: a bar on a terminal, a line a second elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Steps of a full bar.
const STEPS: u64 = 1000;

/// The fraction of a file that is behind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Done {
    /// By the time of the last scored frame.
    Scored(f64),
    /// By the bytes read, which are ahead of what is scored.
    Read(f64),
}

impl Done {
    fn fraction(self) -> f64 {
        let (Self::Scored(done) | Self::Read(done)) = self;
        done.clamp(0.0, 1.0)
    }

    fn what(self) -> &'static str {
        match self {
            Self::Scored(_) => "scored",
            Self::Read(_) => "read",
        }
    }
}

/// Progress on standard error.
pub(crate) struct Progress {
    start: Instant,
    form: Form,
}

enum Form {
    Bar(ProgressBar),
    Lines { next: Duration },
}

impl Progress {
    pub(crate) fn new() -> Self {
        let form = if io::stderr().is_terminal() {
            let bar = ProgressBar::new(STEPS);
            if let Ok(style) = ProgressStyle::with_template("{percent:>3}% {bar:40} {msg}") {
                bar.set_style(style);
            }
            Form::Bar(bar)
        } else {
            Form::Lines {
                next: Duration::from_secs(1),
            }
        };
        Self {
            start: Instant::now(),
            form,
        }
    }

    /// Shows the state.
    pub(crate) fn show(&mut self, frames: u64, done: Option<Done>) {
        let elapsed = self.start.elapsed();
        let rate = frames as f64 / elapsed.as_secs_f64().max(1e-3);
        match &mut self.form {
            Form::Bar(bar) => {
                if let Some(done) = done {
                    bar.set_position((done.fraction() * STEPS as f64) as u64);
                }
                bar.set_message(format!("{frames} frames, {rate:.0} frames/s"));
            }
            Form::Lines { next } => {
                if elapsed < *next {
                    return;
                }
                *next = elapsed + Duration::from_secs(1);
                let done = done.map_or(String::new(), |done| {
                    format!("{:3.0} % {}, ", done.fraction() * 100.0, done.what())
                });
                eprintln!("  {done}{frames} frames, {rate:.0} frames/s");
            }
        }
    }

    /// Prints a line out of the bar's way.
    pub(crate) fn say(&self, line: &str) {
        match &self.form {
            Form::Bar(bar) => bar.suspend(|| eprintln!("{line}")),
            Form::Lines { .. } => eprintln!("{line}"),
        }
    }
}

/// What is printed next finds the bar gone.
impl Drop for Progress {
    fn drop(&mut self) {
        if let Form::Bar(bar) = &self.form {
            bar.finish_and_clear();
        }
    }
}
