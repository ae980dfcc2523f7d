// SPDX-License-Identifier: MPL-2.0

//! What a packet holds, without decoding it: whether it is exactly one picture, and parameter sets.

use std::collections::BTreeMap;
use std::sync::Arc;

use elementary_stream::nal::{Unit, units};
use elementary_stream::{Reorder, h264, h265};
use nvdecring_core::{FrameToken, Packet, PacketData};

use crate::codec::Codec;

/// Which parameter set: kind and number, in the order in which they have to be sent.
type SetKey = (u8, u32);

/// Makes packets for the ring.
///
/// A packet that is exactly one frame or field is marked so (`end_of_picture`): the parser then decodes it
/// at once instead of with the next packet, but drops whatever follows the first picture. The parameter
/// sets seen so far go along, for a parser that has forgotten them after a flush or the end of a stream.
#[derive(Debug)]
pub struct Packetizer {
    codec: Codec,
    sets: BTreeMap<SetKey, Vec<u8>>,
    headers: Option<Arc<[u8]>>,
    reorder_frames: u32,
}

/// What a unit of a byte stream is.
enum Kind {
    ParameterSet(SetKey),
    /// The first slice of a picture, or the header of one.
    Picture,
    Other,
}

impl Packetizer {
    /// For a stream of that codec.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            sets: BTreeMap::new(),
            headers: None,
            reorder_frames: 0,
        }
    }

    /// What the stream is coded with.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// How many pictures the parser may have to see before it can show one: an upper bound from the last
    /// sequence header, 0 where pictures come in the order in which they are shown.
    pub fn reorder_frames(&self) -> u32 {
        self.reorder_frames
    }

    /// Makes the packet of an access unit.
    pub fn packet(&mut self, token: FrameToken, data: PacketData, discontinuity: bool) -> Packet {
        let pictures = self.examine((*data).as_ref());
        Packet {
            token,
            data,
            headers: self.headers.clone(),
            end_of_picture: pictures == Some(1),
            discontinuity,
        }
    }

    /// The parameter sets seen so far.
    pub fn headers(&self) -> Option<&Arc<[u8]>> {
        self.headers.as_ref()
    }

    /// Reads a packet: its parameter sets are kept, its pictures counted. `None` for codecs that come frame
    /// by frame, where the parser needs no mark.
    pub fn examine(&mut self, data: &[u8]) -> Option<usize> {
        if !matches!(self.codec, Codec::H264 | Codec::H265 | Codec::Mpeg2) {
            return None;
        }
        let mut pictures = 0;
        let mut changed = false;
        let mut after_sequence = false;
        for unit in units(data, self.codec != Codec::Mpeg2) {
            match self.kind(unit.bytes, &mut after_sequence) {
                Kind::Picture => pictures += 1,
                Kind::ParameterSet(key) => changed |= self.keep(key, &unit),
                Kind::Other => {}
            }
        }
        if changed {
            let all: Vec<u8> = self.sets.values().flatten().copied().collect();
            self.headers = Some(all.into());
        }
        Some(pictures)
    }

    fn keep(&mut self, key: SetKey, unit: &Unit<'_>) -> bool {
        // A NAL unit ends with a byte that is not zero; an MPEG-2 header need not.
        let end = match self.codec {
            Codec::Mpeg2 => unit.bytes.len(),
            _ => unit
                .bytes
                .iter()
                .rposition(|byte| *byte != 0)
                .map_or(0, |at| at + 1),
        };
        let mut set = vec![0, 0, 0, 1];
        set.extend_from_slice(&unit.bytes[..end]);
        if self.sets.get(&key) == Some(&set) {
            return false;
        }
        if let Some(frames) = reorder_frames(self.codec, key, unit.bytes) {
            self.reorder_frames = frames;
        }
        self.sets.insert(key, set);
        true
    }

    fn kind(&self, bytes: &[u8], after_sequence: &mut bool) -> Kind {
        match self.codec {
            Codec::H264 => h264_kind(bytes),
            Codec::H265 => h265_kind(bytes),
            _ => mpeg2_kind(bytes, after_sequence),
        }
    }
}

/// What a sequence header says of reordering.
fn reorder_frames(codec: Codec, (kind, _): SetKey, unit: &[u8]) -> Option<u32> {
    let sequence = match (codec, kind) {
        (Codec::H264, 7) => h264::sequence_parameter_set(unit)?.1,
        (Codec::H265, 33) => h265::sequence_parameter_set(unit)?.1,
        // One picture of another kind lies between two that are shown in their order.
        (Codec::Mpeg2, 0) => return Some(1),
        _ => return None,
    };
    Some(match sequence.reorder {
        Reorder::None => 0,
        Reorder::Declared | Reorder::UpToLevel => sequence.references,
    })
}

fn numbered(kind: u8, id: Option<u32>) -> Kind {
    id.map_or(Kind::Other, |id| Kind::ParameterSet((kind, id)))
}

/// ITU-T H.264, 7.4.1.
fn h264_kind(nal: &[u8]) -> Kind {
    let Some(header) = nal.first() else {
        return Kind::Other;
    };
    match header & 0x1f {
        7 => numbered(7, h264::sequence_parameter_set(nal).map(|(id, _)| id)),
        8 => numbered(8, h264::picture_parameter_set(nal).map(|(id, _)| id)),
        // first_mb_in_slice is 0: ue(v), one bit.
        1 | 2 | 5 if nal.get(1).is_some_and(|byte| byte & 0x80 != 0) => Kind::Picture,
        _ => Kind::Other,
    }
}

/// ITU-T H.265, 7.4.2.
fn h265_kind(nal: &[u8]) -> Kind {
    let (Some(first), Some(second)) = (nal.first(), nal.get(1)) else {
        return Kind::Other;
    };
    let layer = (first & 1) << 5 | second >> 3;
    if layer != 0 {
        return Kind::Other;
    }
    match first >> 1 & 0x3f {
        32 => numbered(32, nal.get(2).map(|byte| u32::from(byte >> 4))),
        33 => numbered(33, h265::sequence_parameter_set(nal).map(|(id, _)| id)),
        34 => numbered(34, h265::picture_parameter_set(nal).map(|(id, _)| id)),
        // first_slice_segment_in_pic_flag.
        0..=31 if nal.get(2).is_some_and(|byte| byte & 0x80 != 0) => Kind::Picture,
        _ => Kind::Other,
    }
}

/// ISO/IEC 13818-2, table 6-1. An extension belongs to the header before it.
fn mpeg2_kind(unit: &[u8], after_sequence: &mut bool) -> Kind {
    let Some(code) = unit.first() else {
        return Kind::Other;
    };
    let followed = std::mem::take(after_sequence);
    match code {
        0x00 => Kind::Picture,
        0xb3 => {
            *after_sequence = true;
            Kind::ParameterSet((0, 0))
        }
        0xb5 if followed => {
            *after_sequence = true;
            // The upper half of the first byte says which extension.
            Kind::ParameterSet((1, unit.get(1).map_or(0, |byte| u32::from(byte >> 4))))
        }
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_counted_by_their_first_slices() {
        let mut h264 = Packetizer::new(Codec::H264);
        // Two slices of one picture, then a field that begins with macroblock 0 again.
        let slices = [0, 0, 1, 0x65, 0x88, 1, 0, 0, 1, 0x65, 0x42, 1];
        assert_eq!(h264.examine(&slices), Some(1));
        let fields = [&slices[..], &[0, 0, 1, 0x41, 0x9a, 1]].concat();
        assert_eq!(h264.examine(&fields), Some(2));
        assert_eq!(h264.examine(&[]), Some(0));

        let mut h265 = Packetizer::new(Codec::H265);
        let slices = [0, 0, 1, 0x26, 1, 0xaf, 0, 0, 1, 0x26, 1, 0x2f];
        assert_eq!(h265.examine(&slices), Some(1));
        assert_eq!(Packetizer::new(Codec::Vp9).examine(&slices), None);
    }

    #[test]
    fn a_packet_is_marked_only_if_it_is_one_picture() {
        let mut packetizer = Packetizer::new(Codec::Mpeg2);
        let mut mark = |data: &[u8]| {
            packetizer
                .packet(FrameToken(1), Box::new(data.to_vec()), false)
                .end_of_picture
        };
        let picture = [0, 0, 1, 0, 7, 7];
        assert!(mark(&picture));
        assert!(!mark(&[picture, picture].concat()), "two fields");
        assert!(!mark(&[]));
    }

    #[test]
    fn streams_say_whether_they_reorder() {
        let frames = |name: &str, codec| {
            let mut packetizer = Packetizer::new(codec);
            packetizer.examine(&test_streams::named(name).bytes());
            packetizer.reorder_frames()
        };
        assert!(frames("64x64-I-P-B-P-high.h264", Codec::H264) > 0);
        assert!(frames("64x64-I-P-B-P.h265", Codec::H265) > 0);
        // Nothing in it says that it does not: the bound is its level's.
        assert_eq!(frames("test-25fps.h264", Codec::H264), 7);
        assert_eq!(frames("test-25fps.vp8", Codec::Vp8), 0);
    }

    #[test]
    fn the_newest_parameter_sets_are_kept_in_their_order() {
        let mut packetizer = Packetizer::new(Codec::Mpeg2);
        assert!(packetizer.headers().is_none());
        let stream = [
            0, 0, 1, 0xb3, 1, 2, 0, 0, 1, 0xb5, 0x14, 5, 0, 0, 0, 1, 0xb8, 9, 0, 0, 1, 0xb5, 0x80,
        ];
        packetizer.examine(&stream);
        assert_eq!(
            packetizer.headers().expect("a sequence header")[..],
            [0, 0, 0, 1, 0xb3, 1, 2, 0, 0, 0, 1, 0xb5, 0x14, 5, 0],
            "the extension of a picture is none of the sequence's"
        );
        let before = packetizer.headers().cloned().expect("headers");
        packetizer.examine(&stream);
        assert!(Arc::ptr_eq(&before, packetizer.headers().expect("headers")));
        packetizer.examine(&[0, 0, 1, 0xb3, 3, 0, 0, 1, 0xb8]);
        let now = packetizer.headers().expect("headers");
        assert_eq!(now[..6], [0, 0, 0, 1, 0xb3, 3]);
    }
}
