// SPDX-License-Identifier: MPL-2.0

//! Joins the score files of a film's chunks into the film's score file.
//!
//! Frames are taken as they are; summary and windows are computed anew from them, with the bits of a
//! film that was scored whole. Nothing is held but the scores of open windows.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use score_records::{Frame, Header, Record, Summary, Window};
use serde_json::Value;
use thiserror::Error;
use vmaf_motion::FinalScore;
use vmaf_motion::chunks::{JoinError, PartSpan, join};
use vmaf_motion::clock::{Cut, CutError};
use vmaf_motion::pool::{Method, Methods};
use vmaf_motion::sad::Distance;
use vmaf_motion::windows::{Config, ConfigError, FeedError, WindowResult, Windows};

use crate::reader::{ReadError, Records};

/// Parts that make no film.
#[derive(Debug, Error)]
pub enum MergeError {
    /// A file that cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The part.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that is no score file.
    #[error("{}: {source}", path.display())]
    Read {
        /// The part.
        path: PathBuf,
        /// Where and why.
        source: ReadError,
    },
    /// A score file that is no part of a film.
    #[error("{}: {reason}", path.display())]
    Part {
        /// The part.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Parts that were scored differently.
    #[error("{} and {} differ in {field}: {theirs} and {ours}", first.display(), path.display())]
    Differ {
        /// The first part.
        first: PathBuf,
        /// The part that differs from it.
        path: PathBuf,
        /// What differs.
        field: &'static str,
        /// As the first part has it.
        theirs: String,
        /// As this part has it.
        ours: String,
    },
    /// Parts that do not meet.
    #[error("{error} (parts: {names})")]
    Join {
        /// Which do not, by number.
        error: JoinError,
        /// Number and path of each.
        names: String,
    },
    /// A header with a window length that no element writes.
    #[error(transparent)]
    Cut(#[from] CutError),
    /// A header with windows that no element writes.
    #[error(transparent)]
    Windows(#[from] ConfigError),
    /// Scores out of order; the parts changed while they were read.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The merged file cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// A part, as a first reading finds it.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    header: Header,
    summary: Summary,
    frames: u64,
    untimed: u64,
    first_time: Option<u64>,
}

impl Part {
    fn read(path: &Path) -> Result<Self, MergeError> {
        let fail = |reason: String| MergeError::Part {
            path: path.to_owned(),
            reason,
        };
        let (mut header, mut summary): (Option<Header>, Option<Summary>) = (None, None);
        let (mut frames, mut untimed, mut first_time) = (0, 0, None);
        for record in records(path)? {
            match (record?, &header) {
                (Record::Header(found), None) => header = Some(found),
                (Record::Header(_), Some(_)) => {
                    return Err(fail(
                        "has more than one session: only one can be a part".to_owned(),
                    ));
                }
                (Record::Frame(frame), Some(header)) => {
                    let expected = header.cutting.first_frame.checked_add(frames);
                    if expected != Some(frame.frame) {
                        let expected = expected.unwrap_or(u64::MAX);
                        return Err(fail(format!(
                            "has frame {} where frame {expected} belongs",
                            frame.frame
                        )));
                    }
                    if frames == 0 {
                        first_time = frame.timestamp;
                    }
                    untimed += u64::from(frame.timestamp.is_none());
                    frames += 1;
                }
                (Record::Summary(found), _) => summary = Some(found),
                _ => {}
            }
        }
        let header = header.ok_or_else(|| fail("has no session".to_owned()))?;
        let cut_short =
            || fail("has no summary: its writer was interrupted, score it again".to_owned());
        Ok(Self {
            path: path.to_owned(),
            summary: summary.ok_or_else(cut_short)?,
            header,
            frames,
            untimed,
            first_time,
        })
    }

    fn span(&self) -> PartSpan {
        PartSpan {
            first_frame: self.header.cutting.first_frame,
            frames: self.frames,
            preroll: self.header.cutting.preroll_frames,
            postroll: self.header.cutting.postroll_frames,
        }
    }

    /// What must be equal in all parts, as people read it.
    fn terms(&self) -> [(&'static str, String); 9] {
        let header = &self.header;
        let cutting = &header.cutting;
        [
            ("extractor", header.extractor.clone()),
            (
                "options",
                Value::from_iter(header.options.clone()).to_string(),
            ),
            ("format", header.format.clone()),
            ("size", format!("{}x{}", header.width, header.height)),
            ("depth", header.depth.to_string()),
            ("n-stats", cutting.n_stats.to_string()),
            ("n-stats-frames", cutting.n_stats_frames.to_string()),
            ("n-subsample", cutting.n_subsample.to_string()),
            ("pool", cutting.pool.join("+")),
        ]
    }
}

/// The records of a file, with its path in every error.
fn records(path: &Path) -> Result<impl Iterator<Item = Result<Record, MergeError>>, MergeError> {
    let file = File::open(path).map_err(|source| MergeError::Open {
        path: path.to_owned(),
        source,
    })?;
    let input: Box<dyn BufRead> = Box::new(BufReader::new(file));
    let path = path.to_owned();
    Ok(Records::new(input).map(move |record| {
        record.map_err(|source| MergeError::Read {
            path: path.clone(),
            source,
        })
    }))
}

/// Reads the parts, given in any order, and writes the film. `frame` is called for each frame
/// written. Gives the number of frames.
///
/// # Errors
/// [`MergeError`]; what was written until then is no whole film.
pub fn merge(
    paths: &[PathBuf],
    out: &mut impl Write,
    mut frame: impl FnMut(),
) -> Result<u64, MergeError> {
    let parts = paths
        .iter()
        .map(|path| Part::read(path))
        .collect::<Result<Vec<_>, _>>()?;
    for part in parts.iter().skip(1) {
        agree(&parts[0], part)?;
    }
    let flag = |part: &Part, name: &str| part.header.options.get(name) == Some(&Value::Bool(true));
    let (distance, average) = match parts.first() {
        Some(part) => (
            if part.header.five_frame_window() {
                Distance::Two
            } else {
                Distance::One
            },
            flag(part, "motion-moving-average"),
        ),
        None => (Distance::One, false),
    };
    let spans: Vec<PartSpan> = parts.iter().map(Part::span).collect();
    let joined = join(&spans, distance, average).map_err(|error| {
        let names = paths
            .iter()
            .enumerate()
            .map(|(i, path)| format!("{i} is {}", path.display()));
        MergeError::Join {
            error,
            names: names.collect::<Vec<_>>().join(", "),
        }
    })?;
    let parts: Vec<&Part> = joined.order.iter().map(|&i| &parts[i]).collect();
    let header = film_header(&parts);
    write(out, &Record::Header(header.clone()))?;

    let mut windows = Windows::new(config(&header)?)?;
    let mut summary = vmaf_motion::summary::Summary::new(windows.config().n_subsample);
    for part in &parts {
        for record in records(&part.path)? {
            let Record::Frame(scores) = record? else {
                continue;
            };
            let mut results = Vec::new();
            let emit = |result: &WindowResult| results.push(window(result));
            windows.feed(scores.timestamp, emit)?;
            // A window that ended before this frame stands before it in the file.
            write_all(out, &mut results)?;
            write(out, &Record::Frame(scores.clone()))?;
            let score = score(&scores);
            summary.push(score);
            windows.push(score, |result| results.push(window(result)))?;
            write_all(out, &mut results)?;
            frame();
        }
    }
    let mut results = Vec::new();
    windows.flush(|result| results.push(window(result)));
    write_all(out, &mut results)?;
    write(out, &Record::Summary(film_summary(&parts, &summary)))?;
    Ok(joined.frames)
}

fn agree(first: &Part, part: &Part) -> Result<(), MergeError> {
    for ((field, theirs), (_, ours)) in first.terms().into_iter().zip(part.terms()) {
        if theirs != ours {
            return Err(MergeError::Differ {
                first: first.path.clone(),
                path: part.path.clone(),
                field,
                theirs,
                ours,
            });
        }
    }
    Ok(())
}

/// The first part's header with the film's ends.
fn film_header(parts: &[&Part]) -> Header {
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    let mut header = first.header.clone();
    header.session = 0;
    header.cutting.postroll_frames = last.header.cutting.postroll_frames;
    header
}

fn config(header: &Header) -> Result<Config, MergeError> {
    let cutting = &header.cutting;
    let methods = cutting
        .pool
        .iter()
        .filter_map(|name| Method::from_name(name));
    let methods = methods.fold(0, |bits, method| bits | Methods::from(method).bits());
    Ok(Config {
        methods: Methods::from_bits(methods).unwrap_or(Methods::ALL),
        n_subsample: cutting
            .n_subsample
            .try_into()
            .unwrap_or(std::num::NonZeroU64::MIN),
        // Nobody asks late.
        history: 0,
        first_frame: cutting.first_frame,
        cut: Cut::from_settings(cutting.n_stats, cutting.n_stats_frames)?,
    })
}

fn score(frame: &Frame) -> FinalScore {
    FinalScore {
        frame: frame.frame,
        motion: frame.motion,
        motion2: frame.motion2,
        motion3: frame.motion3,
    }
}

fn window(result: &WindowResult) -> Record {
    let scores = result.outcome.iter();
    let values = scores.flat_map(|pooled| {
        pooled
            .iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
    });
    Record::Window(Window {
        window: result.span.map_or(result.id.0, |span| span.window),
        submitted: false,
        first: result.first,
        last: result.last,
        start: result.span.and_then(|span| span.start),
        end: result.span.and_then(|span| span.end),
        n_frames: result.n_frames,
        n_scored: result.n_scored,
        partial: result.partial,
        reason: result
            .outcome
            .err()
            .map(|failure| failure.reason().to_owned()),
        values: values.collect(),
    })
}

fn film_summary(parts: &[&Part], summary: &vmaf_motion::summary::Summary) -> Summary {
    let counted = |name: &str| {
        parts
            .iter()
            .filter_map(|part| part.summary.count(name))
            .sum::<u64>()
    };
    let untimed: u64 = parts.iter().map(|part| part.untimed).sum();
    let start = parts[0].first_time;
    let last = &parts[parts.len() - 1].summary;
    let end = last
        .count("timestamp")
        .zip(last.count("duration"))
        .map(|(start, length)| start + length);
    let duration = end
        .zip(start)
        .and_then(|(end, start)| end.checked_sub(start));
    let mut values: Vec<(String, Value)> = vec![
        ("session".to_owned(), 0.into()),
        ("n-frames".to_owned(), summary.frames().into()),
        ("frames-without-timestamp".to_owned(), untimed.into()),
        (
            "discontinuities".to_owned(),
            counted("discontinuities").into(),
        ),
        ("timestamp".to_owned(), start.into()),
        ("duration".to_owned(), duration.into()),
    ];
    values.extend(
        summary
            .iter()
            .map(|(name, value)| (name.to_owned(), value.into())),
    );
    Summary {
        values: values.into_iter().collect(),
    }
}

fn write_all(out: &mut impl Write, records: &mut Vec<Record>) -> Result<(), MergeError> {
    records.drain(..).try_for_each(|record| write(out, &record))
}

fn write(out: &mut impl Write, record: &Record) -> Result<(), MergeError> {
    serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}
