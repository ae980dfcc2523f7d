// SPDX-License-Identifier: MPL-2.0

//! `vmafx-scores`: shows what is in a score file.

mod input;

use std::fs::Permissions;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use indicatif::ProgressBar;
use vmafx_scores::merge::{MergeError, merge};
use vmafx_scores::session::Sessions;
use vmafx_scores::table::Table;

/// Shows what is in a score file of the vmafxmotion element.
///
/// Exit status: 0 done, 1 a file that cannot be read, 2 wrong usage.
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

/// Why a command ends early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{}: {reason}", .file.display())]
    Input { file: PathBuf, reason: String },
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    #[error("{}: {source}", .file.display())]
    OutputFile { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Merge(#[from] MergeError),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Table { file } => table(&file),
        Command::Merge { parts, output } => merged(&parts, output.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough.
        Err(Failure::Output(error) | Failure::Merge(MergeError::Output(error)))
            if error.kind() == io::ErrorKind::BrokenPipe =>
        {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("vmafx-scores: {failure}");
            ExitCode::from(1)
        }
    }
}

fn table(file: &Path) -> Result<(), Failure> {
    let fail = |reason: String| Failure::Input {
        file: file.to_owned(),
        reason,
    };
    let (input, progress) = input::open(file).map_err(|error| fail(error.to_string()))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut sessions = Sessions::new(input);
    let (mut count, mut frames) = (0_u64, 0_u64);
    let outcome = loop {
        let session = match sessions.next() {
            Some(Ok(session)) => session,
            Some(Err(error)) => break Err(fail(error.to_string())),
            None => break Ok(()),
        };
        let gap = if count == 0 { "" } else { "\n" };
        show(&progress, &mut out, &format!("{gap}{}", Table(&session)))?;
        count += 1;
        frames += session.frames;
    };
    progress.finish_and_clear();
    outcome?;
    if count > 1 {
        writeln!(out, "\n{count} sessions, {frames} frames")?;
    }
    out.flush()?;
    if let Some(bytes) = sessions.records().incomplete_bytes() {
        eprintln!(
            "vmafx-scores: {}: the last line ({bytes} bytes) is incomplete and was left out: \
             the writer was interrupted, or is still writing",
            file.display()
        );
    }
    Ok(())
}

/// The film appears under its name only when it is whole.
fn merged(parts: &[PathBuf], output: Option<&Path>) -> Result<(), Failure> {
    let progress = input::spinner("merging");
    let frame = || progress.inc(1);
    let Some(output) = output else {
        let mut out = BufWriter::new(io::stdout().lock());
        merge(parts, &mut out, frame)?;
        progress.finish_and_clear();
        return Ok(out.flush()?);
    };
    let fail = |source: io::Error| Failure::OutputFile {
        file: output.to_owned(),
        source,
    };
    let folder = output
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".vmafx-scores-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(fail)?;
    let mut out = BufWriter::new(file);
    let frames = merge(parts, &mut out, frame)?;
    let file = out.into_inner().map_err(|error| fail(error.into_error()))?;
    file.persist(output).map_err(|error| fail(error.error))?;
    progress.finish_and_clear();
    eprintln!(
        "vmafx-scores: {frames} frames of {} parts in {}",
        parts.len(),
        output.display()
    );
    Ok(())
}

/// Writes a part of the output; a terminal gets it at once, out of the progress bar's way.
fn show(progress: &ProgressBar, out: &mut impl Write, text: &str) -> io::Result<()> {
    progress.suspend(|| {
        out.write_all(text.as_bytes())?;
        if io::stdout().is_terminal() {
            out.flush()?;
        }
        Ok(())
    })
}
