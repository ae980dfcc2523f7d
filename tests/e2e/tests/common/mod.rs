// SPDX-License-Identifier: MPL-2.0

//! Score files and clips, as these tests use them.

// Each test program uses its own part of it.
#![allow(dead_code)]

#[path = "../../../../elements/vmaf-motion/tests/common/clips.rs"]
pub mod clips;

use std::fs;
use std::path::Path;

use clips::Clip;
use gst_video::{VideoFormat, VideoInfo};
use score_records::{Frame, Header, Record, Summary};

/// A score file with one session.
#[derive(Debug)]
pub struct Scores {
    pub header: Header,
    pub frames: Vec<Frame>,
    pub summary: Option<Summary>,
}

/// Reads a score file that holds one whole session.
#[track_caller]
pub fn scores(path: &Path) -> Scores {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut header = None;
    let mut frames = Vec::new();
    let mut summary = None;
    for line in text.lines() {
        let record = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        match record {
            Record::Header(found) => {
                assert_eq!(header.replace(found), None, "a second session")
            }
            Record::Frame(found) => frames.push(found),
            Record::Summary(found) => {
                assert_eq!(summary.replace(found), None, "a second summary")
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    Scores {
        header: header.expect("a header line"),
        frames,
        summary,
    }
}

/// The clip as a file in the layout that GStreamer gives `format`: luma from the formula, the rest
/// filled with a value that no score may depend on. Returns the bytes of one frame.
pub fn write_raw(clip: &Clip, luma: &[Vec<u8>], format: VideoFormat, path: &Path) -> usize {
    let info = VideoInfo::builder(format, clip.w, clip.h)
        .build()
        .expect("GStreamer knows this format and size");
    let details = info.format_info();
    assert_eq!(details.depth()[0], clip.depth, "{format:?}");
    let (stride, offset) = (info.stride()[0] as usize, info.offset()[0]);
    let row_bytes = clip.w as usize * if clip.depth == 8 { 1 } else { 2 };
    let shift = details.shift()[0];
    let mut bytes = Vec::with_capacity(info.size() * luma.len());
    for plane in luma {
        let mut frame = vec![0xA5; info.size()];
        for (y, row) in plane.chunks_exact(row_bytes).enumerate() {
            let at = offset + y * stride;
            let target = &mut frame[at..at + row_bytes];
            target.copy_from_slice(row);
            if shift > 0 {
                for sample in target.chunks_exact_mut(2) {
                    let value = u16::from_le_bytes([sample[0], sample[1]]) << shift;
                    sample.copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        bytes.extend_from_slice(&frame);
    }
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    info.size()
}
