// SPDX-License-Identifier: MPL-2.0

//! The lines of a score file as a table for spreadsheets and data frames.
//!
//! Doubles are written so that they read back to the same bits; what a line does not have is empty.

use std::io::{BufRead, Write};

use serde_json::Value;
use vmaf_motion::pool::{Feature, Method, pooled_name};

use crate::reader::{ReadError, Records};
use crate::records::{Frame, Record, Window};

/// Which lines of a score file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lines {
    /// A row a frame.
    #[default]
    Frames,
    /// A row a window.
    Windows,
}

/// Why a table is not whole.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The score file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Where the table goes.
    #[error("cannot write: {0}")]
    Output(#[from] csv::Error),
}

/// Columns of a frame's row.
const FRAME: [&str; 6] = [
    "session",
    "frame",
    "timestamp",
    "motion",
    "motion2",
    "motion3",
];
/// Columns of a window's row before those of the pooled scores.
const WINDOW: [&str; 11] = [
    "session",
    "window",
    "submitted",
    "first",
    "last",
    "start",
    "end",
    "n-frames",
    "n-scored",
    "partial",
    "reason",
];

/// Writes one header row and a row a line of that kind.
///
/// # Errors
/// Where a line cannot be read or a row not be written; the rows before it are written.
pub fn write<R: BufRead>(
    records: &mut Records<R>,
    lines: Lines,
    out: impl Write,
) -> Result<(), CsvError> {
    let mut out = csv::Writer::from_writer(out);
    match lines {
        Lines::Frames => out.write_record(FRAME)?,
        Lines::Windows => out.write_record(WINDOW.into_iter().chain(pooled_names()))?,
    }
    let mut session = 0;
    for record in &mut *records {
        match (record?, lines) {
            (Record::Header(header), _) => session = header.session,
            (Record::Frame(frame), Lines::Frames) => {
                out.write_record(frame_row(session, &frame))?
            }
            (Record::Window(window), Lines::Windows) => {
                out.write_record(window_row(session, &window))?;
            }
            _ => {}
        }
    }
    out.flush().map_err(csv::Error::from)?;
    Ok(())
}

fn pooled_names() -> impl Iterator<Item = &'static str> {
    let methods = |feature| Method::ALL.into_iter().map(move |method| (feature, method));
    let all = Feature::ALL.into_iter().flat_map(methods);
    all.map(|(feature, method)| pooled_name(feature, method))
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

fn double(value: f64) -> String {
    format!("{value:?}")
}

fn frame_row(session: u64, frame: &Frame) -> [String; 6] {
    [
        session.to_string(),
        frame.frame.to_string(),
        optional(frame.timestamp),
        double(frame.motion),
        double(frame.motion2),
        double(frame.motion3),
    ]
}

fn window_row(session: u64, window: &Window) -> Vec<String> {
    let facts = [
        session.to_string(),
        window.window.to_string(),
        window.submitted.to_string(),
        window.first.to_string(),
        window.last.to_string(),
        optional(window.start),
        optional(window.end),
        window.n_frames.to_string(),
        window.n_scored.to_string(),
        window.partial.to_string(),
        window.reason.clone().unwrap_or_default(),
    ];
    let value = |name: &str| window.values.get(name).and_then(Value::as_f64).map(double);
    let values = pooled_names().map(|name| value(name).unwrap_or_default());
    facts.into_iter().chain(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = concat!(
        r#"{"type":"header","schema":1,"extractor":"integer","format":"I420","width":4,"height":4,"depth":8,"session":3}"#,
        "\n",
        r#"{"type":"frame","frame":0,"timestamp":null,"motion":0.0,"motion2":0.1,"motion3":5e-324}"#,
        "\n",
        r#"{"type":"frame","frame":1,"timestamp":40,"motion":1e300,"motion2":0.30000000000000004,"motion3":2.0}"#,
        "\n",
        r#"{"type":"window","window":0,"first":0,"last":1,"start":0,"end":80,"n-frames":2,"n-scored":2,"partial":true,"motion2.mean":0.2}"#,
        "\n",
        r#"{"type":"window","window":1,"submitted":true,"first":9,"last":9,"n-frames":0,"n-scored":0,"reason":"range, or not"}"#,
        "\n",
    );

    fn table(lines: Lines) -> String {
        let mut out = Vec::new();
        write(&mut Records::new(FILE.as_bytes()), lines, &mut out).expect("a good file");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn frames_keep_their_bits() {
        let shown = table(Lines::Frames);
        let expected = "session,frame,timestamp,motion,motion2,motion3\n\
            3,0,,0.0,0.1,5e-324\n\
            3,1,40,1e300,0.30000000000000004,2.0\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn windows_have_a_column_for_every_pool() {
        let shown = table(Lines::Windows);
        let mut rows = csv::Reader::from_reader(shown.as_bytes());
        let head = rows.headers().expect("a header row").clone();
        assert_eq!(head.len(), 11 + 24);
        let mean = head
            .iter()
            .position(|name| name == "motion2.mean")
            .expect("a column");
        let rows: Vec<_> = rows
            .records()
            .map(|row| row.expect("a row of that width"))
            .collect();
        assert_eq!(&rows[0][mean], "0.2");
        assert_eq!(&rows[0][10], "");
        assert_eq!((&rows[1][2], &rows[1][10]), ("true", "range, or not"));
        assert_eq!((&rows[1][5], &rows[1][mean]), ("", ""));
    }
}
