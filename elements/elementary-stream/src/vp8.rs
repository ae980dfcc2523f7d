// SPDX-License-Identifier: MPL-2.0

//! VP8 frame tags (RFC 6386, 9.1).

use crate::sequence::{Sampling, Sequence};

/// The sequence of a key frame; `None` for every other frame.
pub fn key_frame(frame: &[u8]) -> Option<Sequence> {
    let [tag, _, _, 0x9d, 0x01, 0x2a, size @ ..] = frame else {
        return None;
    };
    if tag & 1 != 0 {
        return None;
    }
    let [w0, w1, h0, h1, ..] = size else {
        return None;
    };
    let value = |low: u8, high: u8| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    let mut sequence = Sequence::plain(value(*w0, *w1), value(*h0, *h1), 8, Sampling::Yuv420)?;
    sequence.references = 3;
    Some(sequence)
}
