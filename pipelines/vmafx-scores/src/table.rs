// SPDX-License-Identifier: MPL-2.0

//! A session as text.

use std::fmt;

use vmaf_motion::pool::{Feature, Method};

use serde_json::Value;
use vmaf_motion::options::OptionValue;
use vmaf_motion::{Extractor, MotionOptions};

use crate::buckets::Bucket;
use crate::records::Header;
use crate::session::Session;

/// Rows of the table of scores over time.
const ROWS: usize = 20;
/// Columns of a full bar.
const BAR: usize = 24;

/// Shows a session: what was scored, `motion2` over time, pooled scores, peaks.
#[derive(Debug)]
pub struct Table<'a>(pub &'a Session);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.0;
        head(f, session)?;
        if session.frames == 0 {
            return writeln!(f, "  no frame was scored");
        }
        rows(f, &session.buckets.rows(ROWS))?;
        pools(f, session)?;
        peaks(f, session)
    }
}

fn head(f: &mut fmt::Formatter<'_>, session: &Session) -> fmt::Result {
    let header = &session.header;
    write!(
        f,
        "session {}: {}x{} {}, {} bit, {} motion, {}",
        header.session,
        header.width,
        header.height,
        header.format,
        header.depth,
        header.extractor,
        counted(session.frames, "frame"),
    )?;
    match session.span {
        Some((first, last)) if session.timed > 1 => {
            writeln!(f, ", {} to {}", Time(Some(first)), Time(Some(last)))?;
        }
        _ => writeln!(f, ", without timestamps")?,
    }
    let options = changed_options(header);
    if !options.is_empty() {
        writeln!(f, "  options: {}", options.join(" "))?;
    }
    if session.missing > 0 {
        writeln!(
            f,
            "  {} missing: the writer could not keep up, or the file was edited",
            counted(session.missing, "frame line")
        )?;
    }
    let untimed = session.frames - session.timed;
    if session.timed > 1 && untimed > 0 {
        writeln!(f, "  {} without timestamp", counted(untimed, "frame"))?;
    }
    let Some(jumps) = session.jumps() else {
        return writeln!(f, "  no summary line: the session did not end properly");
    };
    if jumps > 0 {
        writeln!(
            f,
            "  {} in the stream; scores go on over them",
            counted(jumps, "discontinuity")
        )?;
    }
    Ok(())
}

/// The options that are not as they are by default.
pub(crate) fn changed_options(header: &Header) -> Vec<String> {
    let extractor = match header.extractor.as_str() {
        "float" => Extractor::Float,
        _ => Extractor::Integer,
    };
    let defaults = MotionOptions {
        extractor,
        ..MotionOptions::default()
    };
    let is_default = |name: &str, value: &Value| {
        let default = defaults
            .values()
            .find(|(known, _)| known.replace('_', "-") == name);
        default.is_some_and(|(_, default)| match default {
            OptionValue::Bool(default) => value.as_bool() == Some(default),
            OptionValue::Number(default) => value.as_f64() == Some(default),
            OptionValue::Integer(default) => value.as_u64() == Some(default.into()),
        })
    };
    let changed = header
        .options
        .iter()
        .filter(|(name, value)| !is_default(name, value));
    changed
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn rows(f: &mut fmt::Formatter<'_>, rows: &[Bucket]) -> fmt::Result {
    let mean = |row: &Bucket| row.mean(Feature::Motion2);
    let highest = rows.iter().map(mean).fold(0.0, f64::max);
    writeln!(
        f,
        "\n  {:>17}  {:>14}  {:>9} {:>9} {:>9}  motion2, mean",
        "frames", "time", "min", "mean", "max"
    )?;
    for row in rows {
        let frames = if row.first == row.last {
            row.first.to_string()
        } else {
            format!("{}-{}", row.first, row.last)
        };
        writeln!(
            f,
            "  {frames:>17}  {:>14}  {:>9.4} {:>9.4} {:>9.4}  {}",
            Time(row.start).to_string(),
            row.min(Feature::Motion2),
            mean(row),
            row.max(Feature::Motion2),
            bar(mean(row), highest),
        )?;
    }
    Ok(())
}

fn pools(f: &mut fmt::Formatter<'_>, session: &Session) -> fmt::Result {
    writeln!(
        f,
        "\n  {:<8} {:>9} {:>9} {:>9} {:>13}  (all frames)",
        "", "min", "mean", "max", "harmonic mean"
    )?;
    for feature in Feature::ALL {
        write!(f, "  {:<8}", feature.name())?;
        let columns = [Method::Min, Method::Mean, Method::Max, Method::HarmonicMean];
        for (method, width) in columns.into_iter().zip([9, 9, 9, 13]) {
            let pooled = session.pools.feature(feature).pool(method);
            write!(f, " {:>width$.4}", pooled.unwrap_or_default())?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn peaks(f: &mut fmt::Formatter<'_>, session: &Session) -> fmt::Result {
    let peaks = session.peaks.clone().finish();
    if peaks.is_empty() {
        return writeln!(f, "\n  no peak: motion is zero throughout");
    }
    writeln!(f, "\n  highest peaks of motion")?;
    for peak in &peaks {
        let cut = if peak.likely_cut() {
            "  likely a scene cut"
        } else {
            ""
        };
        writeln!(
            f,
            "  {:>17}  {:>14}  {:>9.4}{cut}",
            format!("frame {}", peak.frame),
            Time(peak.timestamp).to_string(),
            peak.motion
        )?;
    }
    Ok(())
}

/// `value` of `highest` as a bar, an eighth of a column fine.
fn bar(value: f64, highest: f64) -> String {
    if highest <= 0.0 {
        return String::new();
    }
    let eighths = ((value / highest).clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    bar
}

fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

/// A time in ns as `h:mm:ss.mmm`, or a dash.
pub(crate) struct Time(pub(crate) Option<u64>);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(ns) = self.0 else {
            return write!(f, "-");
        };
        let ms = ns / 1_000_000;
        write!(
            f,
            "{}:{:02}:{:02}.{:03}",
            ms / 3_600_000,
            ms / 60_000 % 60,
            ms / 1000 % 60,
            ms % 1000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_by_eighths() {
        assert_eq!(bar(0.0, 1.0), "");
        assert_eq!(bar(1.0, 1.0), "█".repeat(BAR));
        assert_eq!(bar(1.0, (BAR * 8) as f64), "▏");
        assert_eq!(bar(15.0, (BAR * 8) as f64), "█▉");
        assert_eq!(bar(16.0, (BAR * 8) as f64), "██");
        assert_eq!(bar(5.0, 0.0), "");
    }

    #[test]
    fn times_and_counts() {
        assert_eq!(Time(Some(3_723_004_999_999)).to_string(), "1:02:03.004");
        assert_eq!(Time(None).to_string(), "-");
        assert_eq!(counted(1, "discontinuity"), "1 discontinuity");
        assert_eq!(counted(0, "discontinuity"), "0 discontinuities");
        assert_eq!(counted(2, "frame"), "2 frames");
    }
}
