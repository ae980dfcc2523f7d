// SPDX-License-Identifier: MPL-2.0

//! The series of a session as compressed blocks inside the page.
//!
//! A block is a `<script>` of a type that no browser runs; its text is base64 of a raw DEFLATE stream.
//! Frames are rows of five little-endian 64-bit words: frame, timestamp (all ones for none), and the
//! bits of `motion`, `motion2`, `motion3`. Row by row, because `motion2` repeats the bits of a `motion`
//! nearby, which DEFLATE finds within its 32 KiB. Windows are a JSON array of their lines.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::Value;

use crate::records::{Frame, Window};

/// Frames in a block.
const FRAMES: usize = 16_384;
/// Windows in a block.
const WINDOWS: usize = 512;
/// Windows of a session that a page takes. A browser holds each as an object of some hundred bytes.
pub(super) const MAX_WINDOWS: u64 = 50_000;

/// What of a session is not written yet.
#[derive(Debug)]
pub(super) struct Blocks {
    session: usize,
    frames: Vec<u8>,
    windows: Vec<Value>,
    windows_seen: u64,
}

impl Blocks {
    /// For the session of that number in the page.
    pub(super) fn new(session: usize) -> Self {
        Self {
            session,
            frames: Vec::new(),
            windows: Vec::new(),
            windows_seen: 0,
        }
    }

    pub(super) fn frame(&mut self, frame: &Frame, out: impl Write) -> io::Result<()> {
        for word in [
            frame.frame,
            frame.timestamp.unwrap_or(u64::MAX),
            frame.motion.to_bits(),
            frame.motion2.to_bits(),
            frame.motion3.to_bits(),
        ] {
            self.frames.extend_from_slice(&word.to_le_bytes());
        }
        if self.frames.len() == FRAMES * 40 {
            self.write_frames(out)?;
        }
        Ok(())
    }

    pub(super) fn window(&mut self, window: &Window, out: impl Write) -> io::Result<()> {
        self.windows_seen += 1;
        if self.windows_seen > MAX_WINDOWS {
            return Ok(());
        }
        let mut value = serde_json::to_value(window)?;
        // JavaScript's numbers do not hold every nanosecond.
        for name in ["start", "end"] {
            if let Some(time) = value[name].as_u64() {
                value[name] = time.to_string().into();
            }
        }
        self.windows.push(value);
        if self.windows.len() == WINDOWS {
            self.write_windows(out)?;
        }
        Ok(())
    }

    /// Writes the rest; gives the number of windows that found no room.
    pub(super) fn finish(mut self, mut out: impl Write) -> io::Result<u64> {
        if !self.frames.is_empty() {
            self.write_frames(&mut out)?;
        }
        if !self.windows.is_empty() {
            self.write_windows(&mut out)?;
        }
        Ok(self.windows_seen.saturating_sub(MAX_WINDOWS))
    }

    fn write_frames(&mut self, out: impl Write) -> io::Result<()> {
        write_block(self.session, "frames", &self.frames, out)?;
        self.frames.clear();
        Ok(())
    }

    fn write_windows(&mut self, out: impl Write) -> io::Result<()> {
        let text = serde_json::to_vec(&self.windows)?;
        self.windows.clear();
        write_block(self.session, "windows", &text, out)
    }
}

fn write_block(session: usize, kind: &str, bytes: &[u8], mut out: impl Write) -> io::Result<()> {
    write!(
        out,
        "<script type=\"text/plain\" class=\"block\" data-session=\"{session}\" data-kind=\"{kind}\">"
    )?;
    let text = EncoderWriter::new(&mut out, &STANDARD);
    // The fastest level finds the repeated words; more effort gains little on noise.
    let mut packed = DeflateEncoder::new(text, Compression::fast());
    packed.write_all(bytes)?;
    packed.finish()?.finish()?;
    out.write_all(b"</script>\n")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use base64::Engine;
    use flate2::read::DeflateDecoder;

    use super::*;

    fn unpack(page: &str, kind: &str) -> Vec<Vec<u8>> {
        let begin = format!("data-session=\"7\" data-kind=\"{kind}\">");
        let blocks = page.split(&begin).skip(1);
        let text = blocks.map(|rest| rest.split_once('<').expect("an end").0);
        text.map(|text| {
            let packed = STANDARD.decode(text).expect("base64");
            let mut bytes = Vec::new();
            DeflateDecoder::new(packed.as_slice())
                .read_to_end(&mut bytes)
                .expect("deflate");
            bytes
        })
        .collect()
    }

    #[test]
    fn every_frame_is_there_with_its_bits() {
        let count = 2 * FRAMES as u64 + 3;
        let frame = |i: u64| Frame {
            frame: i + (i > 100) as u64,
            timestamp: (!i.is_multiple_of(9)).then_some(i * 40 + (1 << 60)),
            motion: (i as f64).sqrt(),
            motion2: 0.1 * i as f64,
            motion3: f64::from_bits(i + 1),
        };
        let mut out = Vec::new();
        let mut blocks = Blocks::new(7);
        for i in 0..count {
            blocks.frame(&frame(i), &mut out).expect("written");
        }
        assert!(blocks.frames.len() <= FRAMES * 40);
        assert_eq!(blocks.finish(&mut out).expect("written"), 0);
        let page = String::from_utf8(out).expect("UTF-8");
        let bytes = unpack(&page, "frames");
        assert_eq!(bytes.len(), 3);
        let words: Vec<u64> = bytes
            .concat()
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect();
        assert_eq!(words.len() as u64, 5 * count);
        for (row, i) in words.chunks_exact(5).zip(0..) {
            let frame = frame(i);
            assert_eq!(row[0], frame.frame);
            assert_eq!(row[1], frame.timestamp.unwrap_or(u64::MAX));
            let bits = [frame.motion, frame.motion2, frame.motion3].map(f64::to_bits);
            assert_eq!(row[2..], bits);
        }
    }

    #[test]
    fn windows_beyond_what_a_page_takes_are_counted() {
        let mut out = Vec::new();
        let mut blocks = Blocks::new(7);
        let mut window: Window = serde_json::from_str(
            r#"{"window":0,"first":0,"last":1,"start":18446744073709551614,"end":null,"n-frames":2,"n-scored":2,"motion2.mean":0.1}"#,
        )
        .expect("a window");
        for i in 0..MAX_WINDOWS + 5 {
            window.window = i;
            blocks.window(&window, &mut out).expect("written");
        }
        assert_eq!(blocks.finish(&mut out).expect("written"), 5);
        let page = String::from_utf8(out).expect("UTF-8");
        let windows: Vec<Value> = unpack(&page, "windows")
            .iter()
            .flat_map(|text| serde_json::from_slice::<Vec<Value>>(text).expect("JSON"))
            .collect();
        assert_eq!(windows.len() as u64, MAX_WINDOWS);
        assert_eq!(windows[600]["window"], 600);
        assert_eq!(windows[600]["start"], "18446744073709551614");
        assert_eq!(windows[600]["end"], Value::Null);
        assert_eq!(windows[600]["motion2.mean"], 0.1);
    }
}
