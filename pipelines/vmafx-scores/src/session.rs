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

/// Everything [`crate::table`] shows of a session.
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
    next: u64,
}

impl Session {
    fn new(header: Header) -> Self {
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
            next,
        }
    }

    fn push(&mut self, frame: &Frame) {
        self.frames += 1;
        self.missing += frame.frame.saturating_sub(self.next);
        self.next = frame.frame.saturating_add(1);
        if let Some(time) = frame.timestamp {
            self.timed += 1;
            let (first, _) = self.span.unwrap_or((time, time));
            self.span = Some((first, time));
        }
        self.pools
            .push(&[frame.motion, frame.motion2, frame.motion3]);
        self.buckets.push(frame);
        self.peaks.push(frame);
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
                (Record::Frame(frame), Some(session)) => session.push(&frame),
                (Record::Summary(summary), Some(session)) => session.summary = Some(summary),
                // Windows are not part of the table; the reader lets nothing before a header.
                (
                    Record::Frame(_) | Record::Summary(_) | Record::Window(_) | Record::Unknown,
                    _,
                ) => {}
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
