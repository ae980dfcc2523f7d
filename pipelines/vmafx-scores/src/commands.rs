// SPDX-License-Identifier: MPL-2.0

//! The subcommands: files in, text or files out.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use vmaf_motion::pool::Feature;
use vmafx_scores::csv::{self, CsvError, Lines};
use vmafx_scores::plot::{Format, Plot};
use vmafx_scores::reader::Records;
use vmafx_scores::report::{Report, ReportError};
use vmafx_scores::session::Sessions;
use vmafx_scores::table::Table;

use crate::failure::Failure;
use crate::input;
use crate::output::Output;

pub(crate) fn table(file: &Path) -> Result<(), Failure> {
    let (input, progress) = open(file)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut sessions = Sessions::new(input);
    let (mut count, mut frames) = (0_u64, 0_u64);
    let outcome = loop {
        let session = match sessions.next() {
            Some(Ok(session)) => session,
            Some(Err(error)) => break Err(Failure::input(file, error)),
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
    say_incomplete(file, sessions.records().incomplete_bytes());
    Ok(())
}

pub(crate) fn report(
    files: &[PathBuf],
    target: &Path,
    title: Option<String>,
) -> Result<(), Failure> {
    let names = names(files);
    let title = title.unwrap_or_else(|| names.join(", "));
    let mut output = Output::new(target, files)?;
    let mut report =
        Report::new(output.writer(), &title).map_err(|error| Failure::output(target, error))?;
    let mut frames = 0;
    for (file, name) in files.iter().zip(&names) {
        let (input, progress) = open(file)?;
        let mut records = Records::new(input);
        frames += report
            .add(name, &mut records)
            .map_err(|error| match error {
                ReportError::Read(error) => Failure::input(file, error),
                ReportError::Output(error) => Failure::output(target, error),
            })?;
        progress.finish_and_clear();
        say_incomplete(file, records.incomplete_bytes());
    }
    let done = report.finish();
    drop(done.map_err(|error| Failure::output(target, error))?);
    output.finish()?;
    eprintln!("vmafx-scores: {frames} frames in {}", target.display());
    Ok(())
}

pub(crate) fn plot(
    files: &[PathBuf],
    target: &Path,
    format: Format,
    size: (u32, u32),
    features: &[Feature],
) -> Result<(), Failure> {
    let output = Output::with_suffix(target, files, format.suffix())?;
    let mut plot = Plot::default();
    for (file, name) in files.iter().zip(names(files)) {
        let (input, progress) = open(file)?;
        let mut records = Records::new(input);
        plot.add(&name, &mut records)
            .map_err(|error| Failure::input(file, error))?;
        progress.finish_and_clear();
        say_incomplete(file, records.incomplete_bytes());
    }
    plot.draw(output.path(), format, size, features)
        .map_err(|error| Failure::output(target, error))?;
    output.finish()
}

pub(crate) fn csv(file: &Path, lines: Lines, target: Option<&Path>) -> Result<(), Failure> {
    let (input, progress) = open(file)?;
    let mut records = Records::new(input);
    match target {
        None => {
            let out = BufWriter::new(io::stdout().lock());
            csv::write(&mut records, lines, out).map_err(|error| match error {
                CsvError::Read(error) => Failure::input(file, error),
                CsvError::Output(error) => Failure::Output(error.into()),
            })?;
        }
        Some(target) => {
            let mut output = Output::new(target, &[file.to_owned()])?;
            csv::write(&mut records, lines, output.writer()).map_err(|error| match error {
                CsvError::Read(error) => Failure::input(file, error),
                CsvError::Output(error) => Failure::output(target, error),
            })?;
            output.finish()?;
        }
    }
    progress.finish_and_clear();
    say_incomplete(file, records.incomplete_bytes());
    Ok(())
}

pub(crate) fn merge(parts: &[PathBuf], target: Option<&Path>) -> Result<(), Failure> {
    let progress = input::spinner("merging");
    let frame = || progress.inc(1);
    let Some(target) = target else {
        let mut out = BufWriter::new(io::stdout().lock());
        vmafx_scores::merge::merge(parts, &mut out, frame)?;
        progress.finish_and_clear();
        return Ok(out.flush()?);
    };
    let mut output = Output::new(target, parts)?;
    let mut out = output.writer();
    let frames = vmafx_scores::merge::merge(parts, &mut out, frame)?;
    out.flush()
        .map_err(|error| Failure::output(target, error))?;
    drop(out);
    output.finish()?;
    progress.finish_and_clear();
    eprintln!(
        "vmafx-scores: {frames} frames of {} parts in {}",
        parts.len(),
        target.display()
    );
    Ok(())
}

fn open(file: &Path) -> Result<(Box<dyn io::BufRead>, ProgressBar), Failure> {
    input::open(file).map_err(|error| Failure::input(file, error))
}

/// What files are called where they are shown: by their names, or by their paths where names are alike.
fn names(files: &[PathBuf]) -> Vec<String> {
    let name = |file: &PathBuf| {
        let name = file.file_name().unwrap_or(file.as_os_str());
        let name = name.to_string_lossy();
        name.strip_suffix(".ndjson").unwrap_or(&name).to_owned()
    };
    let short: Vec<String> = files.iter().map(name).collect();
    let unique = |name: &String| short.iter().filter(|other| *other == name).count() == 1;
    if short.iter().all(unique) {
        return short;
    }
    files
        .iter()
        .map(|file| file.display().to_string())
        .collect()
}

fn say_incomplete(file: &Path, bytes: Option<usize>) {
    if let Some(bytes) = bytes {
        eprintln!(
            "vmafx-scores: {}: the last line ({bytes} bytes) is incomplete and was left out: \
             the writer was interrupted, or is still writing",
            file.display()
        );
    }
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
