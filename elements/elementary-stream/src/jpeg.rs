// SPDX-License-Identifier: MPL-2.0

//! JPEG markers (ITU-T T.81, B.1 and B.2).

use crate::sequence::{Sampling, Sequence};

/// What is known of the image that begins in some data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where its start marker lies.
    pub start: usize,
    /// Where it ends (behind the end marker); `None` where the data ends first.
    pub end: Option<usize>,
    /// What its frame header says; `None` where that is not in the data or not supported.
    pub sequence: Option<Sequence>,
}

/// The first image of `data`, or `None` where no start marker is in it.
pub fn first_image(data: &[u8]) -> Option<Image> {
    let start = data
        .windows(3)
        .position(|window| window == [0xff, 0xd8, 0xff])?;
    let mut image = Image {
        start,
        end: None,
        sequence: None,
    };
    let mut at = start + 2;
    while let Some(marker) = marker_at(data, at) {
        at += 2;
        match marker {
            0xff => at -= 1, // a fill byte
            0xd9 => {
                image.end = Some(at);
                break;
            }
            0x01 | 0xd0..=0xd8 => {}
            _ => {
                let Some(segment) = segment_at(data, at) else {
                    break;
                };
                at += 2 + segment.len();
                if matches!(marker, 0xc0..=0xc3) {
                    image.sequence = frame_header(segment);
                }
                if marker == 0xda {
                    at = entropy_end(data, at);
                }
            }
        }
    }
    Some(image)
}

fn marker_at(data: &[u8], at: usize) -> Option<u8> {
    match data.get(at..at + 2)? {
        [0xff, marker] => Some(*marker),
        _ => None,
    }
}

/// A marker's segment without its length.
fn segment_at(data: &[u8], at: usize) -> Option<&[u8]> {
    let length = usize::from(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?]));
    data.get(at + 2..at + length.max(2))
}

/// The next marker behind entropy-coded data: neither a stuffed byte nor a restart.
fn entropy_end(data: &[u8], from: usize) -> usize {
    let rest = data.get(from..).unwrap_or_default();
    rest.windows(2)
        .position(|pair| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7 | 0xff))
        .map_or(data.len(), |at| from + at)
}

fn frame_header(segment: &[u8]) -> Option<Sequence> {
    let [depth, h1, h0, w1, w0, count, parts @ ..] = segment else {
        return None;
    };
    let height = u32::from(u16::from_be_bytes([*h1, *h0]));
    let width = u32::from(u16::from_be_bytes([*w1, *w0]));
    let factors: Vec<u8> = parts.chunks_exact(3).map(|part| part[1]).collect();
    let sampling = match (count, factors.as_slice()) {
        (1, [_]) => Sampling::Monochrome,
        (3, [0x22, 0x11, 0x11]) => Sampling::Yuv420,
        (3, [0x21, 0x11, 0x11] | [0x22, 0x12, 0x12]) => Sampling::Yuv422,
        (3, [luma, u, v]) if luma == u && u == v => Sampling::Yuv444,
        _ => return None,
    };
    Sequence::plain(width, height, u32::from(*depth), sampling)
}
