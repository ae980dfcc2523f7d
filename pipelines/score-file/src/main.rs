// SPDX-License-Identifier: MPL-2.0

//! `score-file`: one video file through a decoder (`vplretrydec` where it is installed) and `vmafxmotion`, with
//! progress.
//!
//! An application of the element as small as it can be while it still tells a user what is wrong
//! with a file. `pipelines/quickstart.sh` calls it.

mod failure;
mod pipeline;
mod progress;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use clap::Parser;

use crate::failure::Failure;
use crate::pipeline::{Outcome, Scoring};

/// Scores a video file with vmafxmotion: the first video stream, every frame.
///
/// Exit status: 0 done, 1 the file could not be scored, 2 wrong usage, 130 interrupted.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// Video file: mp4, mkv, webm, ts, or a raw H.264, H.265, IVF ... stream
    input: PathBuf,
    /// Where the scores go, as NDJSON; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Frames a second of a raw stream that names none; without, such frames have no timestamps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    framerate: Option<u32>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(failure) => {
            eprintln!("score-file: {failure}");
            ExitCode::from(1)
        }
    }
}

fn run(cli: &Cli) -> Result<Outcome, Failure> {
    check(&cli.input)?;
    gst::init().map_err(|error| Failure::Setup(error.to_string()))?;
    let interrupts = Arc::new(AtomicU32::new(0));
    let counter = interrupts.clone();
    ctrlc::set_handler(move || {
        counter.fetch_add(1, Ordering::Relaxed);
    })
    .map_err(|error| Failure::Setup(error.to_string()))?;
    let start = Instant::now();
    let score = |prefer| {
        let scoring = Scoring::new(&cli.input, &cli.output, cli.framerate, prefer)?;
        let outcome = scoring.run(&interrupts)?;
        Ok((scoring, outcome))
    };
    let (scoring, outcome) = match score(true) {
        Err(Failure::Decoder(reason)) => {
            eprintln!("score-file: {reason}; another decoder is tried");
            score(false)?
        }
        result => result?,
    };
    let seconds = start.elapsed().as_secs_f64();
    let frames = scoring.frames();
    if frames == 0 && outcome == Outcome::Done {
        return Err(Failure::Input {
            file: cli.input.clone(),
            reason: "no frame could be decoded".to_owned(),
        });
    }
    eprintln!(
        "{frames} frame{} of {} in {seconds:.1} s ({:.0} frames/s)",
        if frames == 1 { "" } else { "s" },
        scoring.formats(),
        frames as f64 / seconds
    );
    Ok(outcome)
}

/// What is plain before a pipeline exists. A pipe would also block where no one can interrupt.
fn check(input: &Path) -> Result<(), Failure> {
    let reason = match fs::metadata(input) {
        Err(error) => error.to_string(),
        Ok(about) if !about.is_file() => "is not a regular file".to_owned(),
        Ok(about) if about.len() == 0 => "is empty".to_owned(),
        Ok(_) => return Ok(()),
    };
    Err(Failure::Input {
        file: input.to_owned(),
        reason,
    })
}
