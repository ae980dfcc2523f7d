// SPDX-License-Identifier: MPL-2.0

//! The packets of a file: an elementary stream (H.264, H.265, MPEG-2) or IVF (VP8, VP9, AV1).

use elementary_stream as es;
use elementary_stream::{Header, Reader, Step, find_header};

use crate::codec::Codec;

/// A file that holds no stream that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAStream {
    /// There are no bytes.
    #[error("the file is empty")]
    Empty,
    /// An IVF file with another codec.
    #[error("the IVF file holds {0:?}; VP80, VP90 and AV01 are read")]
    Fourcc(String),
    /// No sequence header of any codec.
    #[error(
        "no sequence header of H.264, H.265 or MPEG-2 was found, and it is no IVF file: name the codec, or \
         take the elementary stream out of its container first"
    )]
    NoHeader,
}

/// The packets of a file, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// What it is coded with.
    pub codec: Codec,
    /// Its access units, frames or temporal units.
    pub packets: Vec<Vec<u8>>,
}

impl InputFile {
    /// Takes a file apart. `codec` is needed where its bytes do not say it: IVF says it, a byte stream by its
    /// first sequence header.
    ///
    /// # Errors
    /// [`NotAStream`].
    pub fn read(bytes: &[u8], codec: Option<Codec>) -> Result<Self, NotAStream> {
        if bytes.is_empty() {
            return Err(NotAStream::Empty);
        }
        if bytes.starts_with(b"DKIF") {
            return ivf(bytes, codec);
        }
        let codec = codec.or_else(|| guess(bytes)).ok_or(NotAStream::NoHeader)?;
        Ok(Self {
            codec,
            packets: access_units(codec, bytes),
        })
    }
}

fn reader_codec(codec: Codec) -> es::Codec {
    match codec {
        Codec::H264 => es::Codec::H264,
        Codec::H265 => es::Codec::H265,
        Codec::Av1 => es::Codec::Av1,
        Codec::Vp9 => es::Codec::Vp9,
        Codec::Vp8 => es::Codec::Vp8,
        Codec::Mpeg2 => es::Codec::Mpeg2,
    }
}

fn guess(bytes: &[u8]) -> Option<Codec> {
    // The first bit of a NAL unit is 0, that of MPEG-2's sequence header code 1.
    let first = elementary_stream::nal::units(bytes, false).next()?;
    if first.bytes.first() == Some(&0xb3) {
        return Some(Codec::Mpeg2);
    }
    let found = |codec: &Codec| {
        matches!(
            find_header(reader_codec(*codec), bytes, true),
            Header::Found { .. }
        )
    };
    [Codec::H265, Codec::H264].into_iter().find(found)
}

fn access_units(codec: Codec, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(reader_codec(codec));
    let mut packets = Vec::new();
    let mut rest = bytes;
    loop {
        match reader.step(rest, true) {
            Step::Sequence(sequence) => reader.accept(sequence),
            Step::Unit { taken, data, .. } => {
                packets.push(data);
                rest = &rest[taken..];
            }
            Step::More { taken } => {
                rest = &rest[taken..];
                if taken == 0 || rest.is_empty() {
                    return packets;
                }
            }
        }
    }
}

/// A header of 32 bytes or what it says itself, then for each frame its size, a time and its bytes.
fn ivf(bytes: &[u8], codec: Option<Codec>) -> Result<InputFile, NotAStream> {
    let fourcc = bytes.get(8..12).unwrap_or_default();
    let said = match fourcc {
        b"VP80" => Some(Codec::Vp8),
        b"VP90" => Some(Codec::Vp9),
        b"AV01" => Some(Codec::Av1),
        _ => None,
    };
    let codec = said
        .or(codec)
        .ok_or_else(|| NotAStream::Fourcc(String::from_utf8_lossy(fourcc).into_owned()))?;
    let start = match bytes.get(6..8) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => bytes.len(),
    };
    let mut packets = Vec::new();
    let mut rest = bytes.get(start..).unwrap_or_default();
    while let Some((head, frames)) = rest.split_at_checked(12) {
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        // A file that was cut off ends with what there is of its last frame.
        let (frame, left) = frames.split_at(size.min(frames.len()));
        packets.push(frame.to_vec());
        rest = left;
    }
    Ok(InputFile { codec, packets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_streams::{Coding, all};

    #[test]
    fn every_test_stream_is_recognised_and_cut() {
        for stream in all() {
            let file = InputFile::read(&stream.bytes(), None).expect(stream.name);
            let codec = match stream.coding {
                Coding::H264 => Codec::H264,
                Coding::H265 => Codec::H265,
                Coding::Vp8 => Codec::Vp8,
                Coding::Vp9 => Codec::Vp9,
                Coding::Av1 => Codec::Av1,
            };
            assert_eq!(file.codec, codec, "{}", stream.name);
            assert!(
                file.packets.len() >= stream.expected().len(),
                "{}",
                stream.name
            );
        }
    }

    #[test]
    fn what_is_no_stream_is_said() {
        assert_eq!(InputFile::read(&[], None), Err(NotAStream::Empty));
        assert_eq!(InputFile::read(&[7; 100], None), Err(NotAStream::NoHeader));
        let other = [&b"DKIF\0\0\x20\0MJPG"[..], &[0; 20]].concat();
        assert_eq!(
            InputFile::read(&other, None),
            Err(NotAStream::Fourcc("MJPG".into()))
        );
    }

    #[test]
    fn a_cut_ivf_file_ends_with_what_there_is() {
        let stream = test_streams::named("test-25fps.vp8");
        let bytes = stream.bytes();
        let whole = InputFile::read(&bytes, None).expect("a stream").packets;
        let cut = InputFile::read(&bytes[..bytes.len() / 2], None)
            .expect("a stream")
            .packets;
        assert!(cut.len() < whole.len());
        assert_eq!(cut[..cut.len() - 1], whole[..cut.len() - 1]);
    }
}
