// SPDX-License-Identifier: MPL-2.0

//! One session of a score file, digested line by line in bounded memory.

use std::io::BufRead;

use vmaf_motion::pool::Accumulator;

use crate::buckets::Buckets;
use crate::peaks::Peaks;
use crate::reader::{ReadError, Records};
use crate::records::{Frame, Header, Record, Summary};

/// Peaks kept a session.
const PEAKS: usize = 5;
/// Likely scene cuts kept a session, the highest of them.
pub const MAX_CUTS: usize = 2000;

/// What a session's lines add up to.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its header line.
    pub header: Header,
    /// Its summary line, which a session that was cut short lacks.
    pub summary: Option<Summary>,
    /// Frame lines.
    pub frames: u64,
    /// Frames below the highest that have no line.
    pub missing: u64,
    /// Frame lines with a timestamp.
    pub timed: u64,
    /// First and last timestamp in the order of the lines, ns.
    pub span: Option<(u64, u64)>,
    /// `motion`, `motion2`, `motion3` over all frame lines.
    pub pools: Accumulator,
    /// `motion2` in equal parts.
    pub buckets: Buckets,
    /// The largest peaks of `motion`.
    pub peaks: Peaks,
    /// The likely scene cuts.
    pub cuts: Peaks,
    /// Window lines.
    pub windows: u64,
    went_back: bool,
    next: u64,
}

impl Session {
    /// A session of which only the header is known.
    #[must_use]
    pub fn new(header: Header) -> Self {
        let distance = if header.five_frame_window() { 2 } else { 1 };
        let next = header.cutting.first_frame;
        Self {
            header,
            summary: None,
            frames: 0,
            missing: 0,
            timed: 0,
            span: None,
            pools: Accumulator::default(),
            buckets: Buckets::default(),
            peaks: Peaks::new(distance, PEAKS),
            cuts: Peaks::cuts(distance, MAX_CUTS),
            windows: 0,
            went_back: false,
            next,
        }
    }

    fn push(&mut self, frame: &Frame) {
        self.frames += 1;
        self.missing += frame.frame.saturating_sub(self.next);
        self.next = frame.frame.saturating_add(1);
        if let Some(time) = frame.timestamp {
            self.timed += 1;
            let (first, last) = self.span.unwrap_or((time, time));
            self.went_back |= time < last;
            self.span = Some((first, time));
        }
        self.pools
            .push(&[frame.motion, frame.motion2, frame.motion3]);
        self.buckets.push(frame);
        self.peaks.push(frame);
        self.cuts.push(frame);
    }

    /// Takes in the next line of the session; a header is none.
    pub fn add(&mut self, record: &Record) {
        match record {
            Record::Frame(frame) => self.push(frame),
            Record::Window(_) => self.windows += 1,
            Record::Summary(summary) => self.summary = Some(summary.clone()),
            Record::Header(_) | Record::Unknown => {}
        }
    }

    /// Whether every frame has a timestamp, and no frame an earlier one than the frame before.
    #[must_use]
    pub fn in_time(&self) -> bool {
        self.timed == self.frames && !self.went_back
    }

    /// Interruptions that the scores went on over, without the missing timestamps that the element
    /// counts among them; `None` without a summary line.
    #[must_use]
    pub fn jumps(&self) -> Option<u64> {
        let summary = self.summary.as_ref()?;
        let count = |name| summary.count(name).unwrap_or(0);
        Some(count("discontinuities").saturating_sub(count("frames-without-timestamp")))
    }
}

/// Reads a score file session by session; each is given out when the next begins or the file ends.
///
/// After an error the iteration is over, and the session that was being read is lost.
#[derive(Debug)]
pub struct Sessions<R> {
    records: Records<R>,
    pending: Option<Header>,
}

impl<R: BufRead> Sessions<R> {
    /// Reads from the beginning of a score file.
    pub fn new(input: R) -> Self {
        Self {
            records: Records::new(input),
            pending: None,
        }
    }

    /// The line reader: its line number and what it says of a torn last line.
    pub fn records(&self) -> &Records<R> {
        &self.records
    }

    fn read(&mut self) -> Result<Option<Session>, ReadError> {
        let mut session = self.pending.take().map(Session::new);
        for record in &mut self.records {
            match (record?, &mut session) {
                (Record::Header(header), None) => session = Some(Session::new(header)),
                (Record::Header(header), Some(_)) => {
                    self.pending = Some(header);
                    break;
                }
                (record, Some(session)) => session.add(&record),
                // The reader lets nothing before a header.
                (_, None) => {}
            }
        }
        Ok(session)
    }
}

impl<R: BufRead> Iterator for Sessions<R> {
    type Item = Result<Session, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use vmaf_motion::pool::{Feature, Method};

    use super::*;

    const HEADER: &str = r#"{"type":"header","schema":1,"extractor":"integer","format":"I420","width":4,"height":4,"depth":8,"session":"#;

    fn frame(frame: u64, timestamp: &str) -> String {
        format!(
            r#"{{"type":"frame","frame":{frame},"timestamp":{timestamp},"motion":1.0,"motion2":2.0,"motion3":3.0}}"#
        )
    }

    #[test]
    fn sessions_are_told_apart_and_counted() {
        let text = [
            format!("{HEADER}0}}"),
            frame(0, "40"),
            frame(1, "null"),
            frame(4, "200"),
            r#"{"type":"summary","n-frames":5}"#.to_owned(),
            format!("{HEADER}1}}"),
            frame(0, "null"),
        ]
        .join("\n");
        let mut sessions = Sessions::new(text.as_bytes());
        let first = sessions.next().expect("a session").expect("a good one");
        assert_eq!((first.frames, first.missing, first.timed), (3, 2, 2));
        assert_eq!(first.span, Some((40, 200)));
        assert_eq!(first.summary.and_then(|s| s.count("n-frames")), Some(5));
        let means = Feature::ALL.map(|feature| first.pools.feature(feature).pool(Method::Mean));
        assert_eq!(means, [Some(1.0), Some(2.0), Some(3.0)]);
        let second = sessions.next().expect("a session").expect("a good one");
        assert_eq!((second.header.session, second.frames), (1, 1));
        assert!(second.summary.is_none() && second.span.is_none());
        assert!(sessions.next().is_none());
        assert!(sessions.next().is_none());
    }

    #[test]
    fn an_error_ends_the_iteration() {
        let text = format!("{HEADER}0}}\nnonsense\n{HEADER}1}}\n");
        let mut sessions = Sessions::new(text.as_bytes());
        assert!(sessions.next().expect("an item").is_err());
        assert!(sessions.next().is_none());
    }
}
