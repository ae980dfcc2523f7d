// SPDX-License-Identifier: MPL-2.0

//! The file to read, with a progress bar where someone looks and it takes a while.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Below this size the table is there before a bar could be read.
const SHOW_FROM: u64 = 16 << 20;

/// Opens `file`, or standard input for `-`. The bar draws on standard error if that is a terminal.
pub(crate) fn open(file: &Path) -> io::Result<(Box<dyn BufRead>, ProgressBar)> {
    if file.as_os_str() == "-" {
        return Ok((Box::new(io::stdin().lock()), ProgressBar::hidden()));
    }
    let opened = File::open(file)?;
    let about = opened.metadata()?;
    if about.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "is a directory, not a score file",
        ));
    }
    if about.len() < SHOW_FROM {
        return Ok((Box::new(BufReader::new(opened)), ProgressBar::hidden()));
    }
    let bar = ProgressBar::with_draw_target(Some(about.len()), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bytes} of {total_bytes} {wide_bar} {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let input = BufReader::with_capacity(1 << 20, bar.wrap_read(opened));
    Ok((Box::new(input), bar))
}

/// Counts up on standard error if that is a terminal, for work whose size is not known.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg}: {pos} frames") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}
