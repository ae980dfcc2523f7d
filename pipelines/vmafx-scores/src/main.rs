// SPDX-License-Identifier: MPL-2.0

//! `vmafx-scores`: shows what is in a score file.

mod commands;
mod failure;
mod input;
mod output;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use vmaf_motion::pool::Feature;
use vmafx_scores::csv::Lines;
use vmafx_scores::plot::Format;

/// Shows what is in a score file of the vmafxmotion element.
///
/// Exit status: 0 done, 1 a file that cannot be read or written, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a short table of each session: scores over time, pooled scores, highest peaks
    Table {
        /// Score file (NDJSON) written by `vmafxmotion scores-path=FILE`; `-` reads standard input
        file: PathBuf,
    },
    /// Write one web page with every frame: charts to zoom, exact values, windows, scene cuts
    Report(Report),
    /// Draw scores over time as a PNG or SVG
    Plot(Plot),
    /// Print frames or windows as comma-separated values
    Csv {
        /// Score file; `-` reads standard input
        file: PathBuf,
        /// A row a window instead of a row a frame
        #[arg(long)]
        windows: bool,
        /// Where the table goes; standard output if left out
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Join the score files of a film's chunks, which were scored with first-frame, preroll-frames
    /// and postroll-frames; windows and summary are computed anew and equal the whole film's
    Merge {
        /// Score files of the chunks, in any order
        #[arg(required = true)]
        parts: Vec<PathBuf>,
        /// The film's score file; standard output if left out
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct Report {
    /// Score files; several are compared in one page
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The page; it needs no network and no other file
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,
    /// Title of the page; the files' names if left out
    #[arg(long)]
    title: Option<String>,
}

#[derive(Debug, Args)]
struct Plot {
    /// Score files; several are drawn into the same panels
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The picture: PNG or SVG by the end of its name
    #[arg(short, long, value_name = "FILE.png|FILE.svg", value_parser = picture)]
    output: (PathBuf, Format),
    /// Draw only this feature; may be given again
    #[arg(long, value_name = "motion|motion2|motion3", value_parser = feature)]
    feature: Vec<Feature>,
    /// Width in pixels
    #[arg(long, default_value_t = 1280, value_parser = clap::value_parser!(u32).range(320..=8192))]
    width: u32,
    /// Height in pixels
    #[arg(long, default_value_t = 720, value_parser = clap::value_parser!(u32).range(240..=8192))]
    height: u32,
}

fn picture(name: &str) -> Result<(PathBuf, Format), String> {
    let format = Format::of(Path::new(name)).ok_or("the name must end in .png or .svg")?;
    Ok((PathBuf::from(name), format))
}

fn feature(name: &str) -> Result<Feature, String> {
    let known = Feature::ALL.into_iter().find(|f| f.name() == name);
    known.ok_or_else(|| "must be motion, motion2 or motion3".to_owned())
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Table { file } => commands::table(&file),
        Command::Report(Report {
            files,
            output,
            title,
        }) => commands::report(&files, &output, title),
        Command::Plot(plot) => {
            let features = match plot.feature.is_empty() {
                true => Feature::ALL.to_vec(),
                false => plot.feature,
            };
            let (output, format) = plot.output;
            let size = (plot.width, plot.height);
            commands::plot(&plot.files, &output, format, size, &features)
        }
        Command::Csv {
            file,
            windows,
            output,
        } => {
            let lines = if windows {
                Lines::Windows
            } else {
                Lines::Frames
            };
            commands::csv(&file, lines, output.as_deref())
        }
        Command::Merge { parts, output } => commands::merge(&parts, output.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("vmafx-scores: {failure}");
            ExitCode::from(1)
        }
    }
}
