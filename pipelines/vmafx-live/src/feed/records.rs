// SPDX-License-Identifier: MPL-2.0

//! Score records on standard input.

use std::io::stdin;

use score_records::Record;
use vmafx_scores::reader::Records;

use super::Outcome;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::news::{Level, Phase, Video};

/// Reads until the input ends or a line is no record. A read cannot be interrupted: who stops the program
/// does not wait for long.
pub(crate) fn run_stdin(hub: &Hub) -> Outcome {
    let mut records = Records::new(stdin().lock());
    let mut session = 0;
    for record in &mut records {
        match record? {
            Record::Header(header) => {
                session = header.session;
                hub.update(|state| {
                    state.begin_session(session);
                    state.video(Video {
                        format: header.format.clone(),
                        width: header.width,
                        height: header.height,
                        framerate: None,
                    })
                });
                let text = format!(
                    "session {session}: {}x{} {}, extractor {}",
                    header.width, header.height, header.format, header.extractor
                );
                hub.note(Level::Info, "standard input", "session", &text);
            }
            Record::Frame(frame) => hub.update(|state| state.frame(&frame)),
            Record::Window(window) => hub.update(|state| state.window(session, window)),
            Record::Summary(summary) => {
                let frames = summary.count("n-frames").unwrap_or_default();
                let text = format!("session {session} ended after {frames} frames");
                hub.note(Level::Info, "standard input", "summary", &text);
            }
            Record::Unknown => (),
        }
    }
    match records.incomplete_bytes() {
        Some(bytes) => Err(Failure::Torn {
            line: records.line(),
            bytes,
        }),
        None => Ok(Phase::Ended),
    }
}
