// SPDX-License-Identifier: MPL-2.0

//! A stream cut into access units.

use std::rc::Rc;

use elementary_stream::{Codec, Header, Reader, Step, find_header, nal};
use onevpl_sys::*;
use test_streams::{Coding, Expected, Stream};

/// An access unit (for H.264 a field is one). Its number is its time stamp.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) id: u64,
    pub(crate) bytes: Vec<u8>,
    /// Decoding can begin here.
    pub(crate) key: bool,
    /// Its parameter sets (H.264, H.265), with their start codes.
    pub(crate) sets: Vec<u8>,
    /// A sequence parameter set is among them: it needs none before it.
    pub(crate) has_sequence: bool,
    /// Where parameter sets that are put before it go: behind its delimiter.
    delimiter: usize,
}

impl Unit {
    /// The bytes with parameter sets at the place where the formats want them.
    pub(crate) fn behind(&self, sets: &[u8]) -> Vec<u8> {
        let (delimiter, rest) = self.bytes.split_at(self.delimiter);
        [delimiter, sets, rest].concat()
    }
}

/// A stream as the tests feed it.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) codec: u32,
    pub(crate) units: Vec<Rc<Unit>>,
    pub(crate) expected: Expected,
}

fn codecs(coding: Coding) -> (Codec, u32) {
    match coding {
        Coding::H264 => (Codec::H264, MFX_CODEC_AVC),
        Coding::H265 => (Codec::H265, MFX_CODEC_HEVC),
        Coding::Vp8 => (Codec::Vp8, MFX_CODEC_VP8),
        Coding::Vp9 => (Codec::Vp9, MFX_CODEC_VP9),
        Coding::Av1 => (Codec::Av1, MFX_CODEC_AV1),
    }
}

impl Source {
    /// The whole stream.
    pub(crate) fn of(stream: &Stream) -> Self {
        let (codec, fourcc) = codecs(stream.coding);
        let parts = match stream.ivf_frames() {
            Some(frames) => frames,
            None => cut(codec, &stream.bytes()),
        };
        Self {
            name: stream.name,
            codec: fourcc,
            units: numbered(codec, &parts),
            expected: stream.expected(),
        }
    }

    /// The first pictures of a stream in which each access unit is a picture and shown in order, or all of
    /// them, several times over: a short stream with many key frames.
    pub(crate) fn repeated(stream: &Stream, pictures: usize, times: usize) -> Self {
        let (codec, fourcc) = codecs(stream.coding);
        let once = Self::of(stream);
        assert_eq!(once.units.len(), once.expected.len(), "{}", stream.name);
        let parts: Vec<Vec<u8>> = once
            .units
            .iter()
            .take(pictures)
            .map(|unit| unit.bytes.clone())
            .collect();
        let repeat = |list: &[String]| vec![list[..parts.len()].to_vec(); times].concat();
        Self {
            name: stream.name,
            codec: fourcc,
            units: numbered(codec, &vec![parts.clone(); times].concat()),
            expected: match &once.expected {
                Expected::Md5(list) => Expected::Md5(repeat(list)),
                Expected::Crc(list) => Expected::Crc(repeat(list)),
            },
        }
    }
}

/// Cuts a byte stream where its access units begin.
fn cut(codec: Codec, mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(codec);
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        match reader.step(bytes, true) {
            Step::Sequence(sequence) => reader.accept(sequence),
            Step::Unit { taken, .. } => {
                parts.push(bytes[..taken].to_vec());
                bytes = &bytes[taken..];
            }
            Step::More { .. } => panic!("{} bytes that belong to no access unit", bytes.len()),
        }
    }
    parts
}

fn numbered(codec: Codec, parts: &[Vec<u8>]) -> Vec<Rc<Unit>> {
    let units = parts.iter().enumerate();
    units
        .map(|(id, bytes)| Rc::new(unit(codec, id as u64, bytes.clone())))
        .collect()
}

fn unit(codec: Codec, id: u64, bytes: Vec<u8>) -> Unit {
    let mut unit = Unit {
        id,
        key: false,
        sets: Vec::new(),
        has_sequence: false,
        delimiter: 0,
        bytes,
    };
    if !matches!(codec, Codec::H264 | Codec::H265) {
        unit.key = matches!(find_header(codec, &unit.bytes, true), Header::Found { .. });
        return unit;
    }
    let nals: Vec<(usize, u8)> = nal::units(&unit.bytes, true)
        .map(|nal| (nal.start, nal.bytes.first().copied().unwrap_or(0)))
        .collect();
    for (number, &(start, first)) in nals.iter().enumerate() {
        let end = nals.get(number + 1).map_or(unit.bytes.len(), |next| next.0);
        // H.264 table 7-1, H.265 table 7-1.
        let (delimiter, sequence, set, key) = match codec {
            Codec::H264 => {
                let kind = first & 31;
                (kind == 9, kind == 7, matches!(kind, 7 | 8), kind == 5)
            }
            _ => {
                let kind = first >> 1 & 63;
                let set = (32..=34).contains(&kind);
                (kind == 35, kind == 33, set, (16..=21).contains(&kind))
            }
        };
        unit.key |= key;
        unit.has_sequence |= sequence;
        if set {
            unit.sets.extend_from_slice(&unit.bytes[start..end]);
        }
        if delimiter {
            unit.delimiter = end;
        }
    }
    unit
}
