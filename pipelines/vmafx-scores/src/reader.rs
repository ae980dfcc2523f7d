// SPDX-License-Identifier: MPL-2.0

//! Lines to records, in bounded memory.

use std::io::{self, BufRead, Read};

use crate::records::{Record, SCHEMA};

/// The longest line that is read, in bytes. The element's longest is below 4 KiB.
pub const MAX_LINE: u64 = 1 << 20;

/// Why a score file cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file itself.
    #[error("line {line}: cannot read: {source}")]
    Io {
        /// The line that was about to be read, from 1.
        line: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Not a record.
    #[error("line {line}, column {column}: not a score record: {reason}")]
    Json {
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        column: usize,
        /// What the parser said, without its own idea of the place.
        reason: String,
    },
    /// Longer than [`MAX_LINE`].
    #[error("line {line}: longer than {MAX_LINE} bytes: this is no score file")]
    TooLong {
        /// Line, from 1.
        line: u64,
    },
    /// Written by a later version.
    #[error("line {line}: score file schema {found}, but this version reads schema {SCHEMA}")]
    Schema {
        /// Line, from 1.
        line: u64,
        /// What the header says.
        found: u32,
    },
    /// No header before the first record.
    #[error("line {line}: a {what} line before any header line: the file's beginning is missing")]
    NoHeader {
        /// Line, from 1.
        line: u64,
        /// The type of the record.
        what: &'static str,
    },
    /// Nothing in it.
    #[error("no header line: the file is empty")]
    Empty,
}

/// Reads a score file record by record.
///
/// A last line without line end that is no record is what an interrupted writer leaves: it ends the
/// iteration without an error, and [`Records::incomplete_bytes`] says how long it was. Every other
/// broken line is an error, after which the iteration is over.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    buffer: Vec<u8>,
    line: u64,
    seen_header: bool,
    incomplete: Option<usize>,
    over: bool,
}

impl<R: BufRead> Records<R> {
    /// Reads from the beginning of a score file.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            line: 0,
            seen_header: false,
            incomplete: None,
            over: false,
        }
    }

    /// Number of the line last read, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Length of the torn last line, where there was one. Known once the iteration is over.
    pub fn incomplete_bytes(&self) -> Option<usize> {
        self.incomplete
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            self.line += 1;
            let line = self.line;
            self.buffer.clear();
            (&mut self.input)
                .take(MAX_LINE + 1)
                .read_until(b'\n', &mut self.buffer)
                .map_err(|source| ReadError::Io { line, source })?;
            if self.buffer.is_empty() {
                self.line -= 1;
                return if self.seen_header || self.incomplete.is_some() {
                    Ok(None)
                } else {
                    Err(ReadError::Empty)
                };
            }
            if self.buffer.len() as u64 > MAX_LINE {
                return Err(ReadError::TooLong { line });
            }
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(&self.buffer) {
                Ok(record) => return self.check(record).map(Some),
                Err(error) if error.is_eof() && !self.buffer.ends_with(b"\n") => {
                    self.incomplete = Some(self.buffer.len());
                    return Ok(None);
                }
                Err(error) => {
                    return Err(ReadError::Json {
                        line,
                        column: error.column(),
                        reason: without_place(&error.to_string()),
                    });
                }
            }
        }
    }

    fn check(&mut self, record: Record) -> Result<Record, ReadError> {
        let line = self.line;
        let what = match &record {
            Record::Header(header) => {
                if header.schema != SCHEMA {
                    return Err(ReadError::Schema {
                        line,
                        found: header.schema,
                    });
                }
                self.seen_header = true;
                return Ok(record);
            }
            Record::Frame(_) => "frame",
            Record::Window(_) => "window",
            Record::Summary(_) => "summary",
            Record::Unknown => "foreign",
        };
        if self.seen_header {
            Ok(record)
        } else {
            Err(ReadError::NoHeader { line, what })
        }
    }
}

/// `serde_json` ends its messages with a place inside the one line it saw, which reads as if it
/// were the place in the file.
fn without_place(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message.to_owned(),
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let item = self.read().transpose();
        self.over = !matches!(item, Some(Ok(_)));
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"type":"header","schema":1,"version":"0.1.0","extractor":"integer","options":{},"feature-names":{},"format":"I420","width":4,"height":4,"depth":8,"session":0}"#;
    const FRAME: &str =
        r#"{"type":"frame","frame":0,"timestamp":0,"motion":0.0,"motion2":0.0,"motion3":1.0}"#;

    fn all(text: &str) -> (Vec<Record>, Option<ReadError>, Option<usize>) {
        let mut records = Records::new(text.as_bytes());
        let mut good = Vec::new();
        let mut error = None;
        for item in &mut records {
            match item {
                Ok(record) => good.push(record),
                Err(e) => error = Some(e),
            }
        }
        let incomplete = records.incomplete_bytes();
        (good, error, incomplete)
    }

    #[test]
    fn reads_lines_and_passes_over_blank_ones() {
        let (good, error, incomplete) = all(&format!("{HEADER}\r\n\n{FRAME}\n"));
        assert_eq!(good.len(), 2);
        assert!(error.is_none() && incomplete.is_none());
    }

    #[test]
    fn a_last_line_without_line_end_counts_if_it_is_whole() {
        let (good, error, incomplete) = all(&format!("{HEADER}\n{FRAME}"));
        assert_eq!(good.len(), 2);
        assert!(error.is_none() && incomplete.is_none());
    }

    #[test]
    fn a_torn_last_line_is_said_wherever_it_tore() {
        for cut in 1..FRAME.len() {
            let (good, error, incomplete) = all(&format!("{HEADER}\n{}", &FRAME[..cut]));
            assert_eq!(good.len(), 1, "cut at {cut}");
            assert!(error.is_none(), "cut at {cut}: {error:?}");
            assert_eq!(incomplete, Some(cut));
        }
    }

    #[test]
    fn a_torn_line_in_the_middle_is_an_error_with_its_number() {
        let (good, error, _) = all(&format!("{HEADER}\n{}\n{FRAME}\n", &FRAME[..30]));
        assert_eq!(good.len(), 1);
        let text = error.expect("an error").to_string();
        assert!(text.starts_with("line 2, column "), "{text}");
        assert!(!text.contains("at line 1"), "{text}");
    }

    #[test]
    fn a_wrong_field_names_the_line() {
        let bad = FRAME.replace("\"motion2\":0.0", "\"motion2\":\"high\"");
        let (_, error, _) = all(&format!("{HEADER}\n{FRAME}\n{bad}\n"));
        let text = error.expect("an error").to_string();
        assert!(
            text.starts_with("line 3") && text.contains("expected f64"),
            "{text}"
        );
    }

    #[test]
    fn no_header_a_foreign_schema_and_an_empty_file_are_errors() {
        let (_, error, _) = all(FRAME);
        assert!(matches!(
            error,
            Some(ReadError::NoHeader {
                line: 1,
                what: "frame"
            })
        ));
        let (_, error, _) = all(&HEADER.replace("\"schema\":1", "\"schema\":2"));
        assert!(matches!(
            error,
            Some(ReadError::Schema { line: 1, found: 2 })
        ));
        for empty in ["", "\n", "  \n\n"] {
            let (_, error, _) = all(empty);
            assert!(matches!(error, Some(ReadError::Empty)), "{empty:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_before_memory_runs_out() {
        let endless = io::repeat(b'x').take(64 << 20);
        let mut records = Records::new(io::BufReader::new(endless));
        assert!(matches!(
            records.next(),
            Some(Err(ReadError::TooLong { line: 1 }))
        ));
        assert!(records.next().is_none());
        assert!(records.buffer.capacity() < 4 << 20);
    }
}
