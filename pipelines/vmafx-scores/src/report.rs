// SPDX-License-Identifier: MPL-2.0

//! Score files as one self-contained page for a browser.
//!
//! The page holds every frame with its exact bits, in blocks that are written while the file is read:
//! memory depends on the number of sessions and never on their length. It asks the network for nothing,
//! and its content security policy forbids it to.

mod blocks;
mod digest;

use std::io::{self, BufRead, Write};

use serde_json::json;

use crate::reader::{ReadError, Records};
use crate::records::Record;
use crate::session::Session;

use blocks::Blocks;

const STYLE: &str = include_str!("report/page.css");
const BODY: &str = include_str!("report/body.html");
/// In the order in which they use each other.
const SCRIPTS: [&str; 4] = [
    include_str!("report/data.js"),
    include_str!("report/chart.js"),
    include_str!("report/lists.js"),
    include_str!("report/page.js"),
];

/// Why a page is not whole.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A score file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Where the page goes.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Writes a page, file by file.
#[derive(Debug)]
pub struct Report<W> {
    out: W,
    title: String,
    sessions: Vec<serde_json::Value>,
}

impl<W: Write> Report<W> {
    /// Begins a page.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn new(mut out: W, title: &str) -> io::Result<Self> {
        let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{BODY}",
            escaped(title)
        )?;
        Ok(Self {
            out,
            title: title.to_owned(),
            sessions: Vec::new(),
        })
    }

    /// Takes in a score file under the name that the page shows; gives the number of its frames.
    ///
    /// # Errors
    /// Where it cannot be read or the page not be written.
    pub fn add<R: BufRead>(
        &mut self,
        name: &str,
        records: &mut Records<R>,
    ) -> Result<u64, ReportError> {
        let mut open: Option<(Session, Blocks)> = None;
        let mut frames = 0;
        for record in &mut *records {
            match (record?, &mut open) {
                (Record::Header(header), _) => {
                    if let Some(done) = open.take() {
                        frames += self.end(name, done)?;
                    }
                    let number = self.sessions.len();
                    open = Some((Session::new(header), Blocks::new(number)));
                }
                (record, Some((session, blocks))) => {
                    session.add(&record);
                    match &record {
                        Record::Frame(frame) => blocks.frame(frame, &mut self.out)?,
                        Record::Window(window) => blocks.window(window, &mut self.out)?,
                        _ => {}
                    }
                }
                // The reader lets nothing before a header.
                (_, None) => {}
            }
        }
        if let Some(done) = open {
            frames += self.end(name, done)?;
        }
        Ok(frames)
    }

    fn end(
        &mut self,
        name: &str,
        (session, blocks): (Session, Blocks),
    ) -> Result<u64, ReportError> {
        let windows_left_out = blocks.finish(&mut self.out)?;
        let frames = session.frames;
        self.sessions
            .push(digest::digest(name, session, windows_left_out));
        Ok(frames)
    }

    /// Ends the page.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        let report = json!({
            "title": self.title,
            "version": env!("CARGO_PKG_VERSION"),
            "sessions": self.sessions,
        });
        // In a script only the end tag and comments have a meaning, and both need this character.
        let report = report.to_string().replace('<', "\\u003c");
        writeln!(
            self.out,
            "<script type=\"application/json\" id=\"report\">{report}</script>"
        )?;
        writeln!(self.out, "<script>\n\"use strict\";")?;
        for script in SCRIPTS {
            self.out.write_all(script.as_bytes())?;
        }
        writeln!(self.out, "</script>\n</body>\n</html>")?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
