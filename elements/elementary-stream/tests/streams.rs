// SPDX-License-Identifier: MPL-2.0

//! The reader on real streams: the same access units however the bytes arrive, headers told in time.

use elementary_stream::{
    Codec, Crop, Header, Reader, Reorder, Sampling, Sequence, Step, find_header,
};
use proptest::prelude::*;
use test_streams::{Coding, Stream, all, named};

fn codec(coding: Coding) -> Codec {
    match coding {
        Coding::H264 => Codec::H264,
        Coding::H265 => Codec::H265,
        Coding::Vp8 => Codec::Vp8,
        Coding::Vp9 => Codec::Vp9,
        Coding::Av1 => Codec::Av1,
    }
}

/// What came of a stream: its access units, and before which of them a sequence header was told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cut {
    units: Vec<Vec<u8>>,
    sequences: Vec<(usize, Sequence)>,
}

/// Feeds a stream in pieces of the given lengths (repeated), as a client with one growing buffer does.
fn cut(codec: Codec, bytes: &[u8], pieces: &[usize]) -> Cut {
    let mut reader = Reader::new(codec);
    let mut cut = Cut::default();
    let mut buffer: Vec<u8> = Vec::new();
    let (mut rest, mut next) = (bytes, 0);
    loop {
        match reader.step(&buffer, rest.is_empty()) {
            Step::Sequence(sequence) => {
                cut.sequences.push((cut.units.len(), sequence));
                reader.accept(sequence);
            }
            Step::Unit { taken, data, .. } => {
                buffer.drain(..taken);
                cut.units.push(data);
            }
            Step::More { taken } => {
                buffer.drain(..taken);
                if rest.is_empty() {
                    return cut;
                }
                let length = pieces[next % pieces.len()].min(rest.len());
                next += 1;
                buffer.extend_from_slice(&rest[..length]);
                rest = &rest[length..];
            }
        }
    }
}

fn byte_streams() -> Vec<Stream> {
    all()
        .into_iter()
        .filter(|stream| matches!(stream.coding, Coding::H264 | Coding::H265))
        .collect()
}

#[test]
fn a_byte_stream_has_as_many_access_units_as_pictures_and_loses_no_byte() {
    for stream in byte_streams() {
        let bytes = stream.bytes();
        let cut = cut(codec(stream.coding), &bytes, &[bytes.len()]);
        assert_eq!(cut.units.concat(), bytes, "{}", stream.name);
        assert_eq!(cut.units.len(), stream.expected().len(), "{}", stream.name);
        assert_eq!(cut.sequences.len(), 1, "{}", stream.name);
        let (at, sequence) = cut.sequences[0];
        assert_eq!(at, 0);
        let shown = (sequence.crop.width as usize, sequence.crop.height as usize);
        assert_eq!(shown, stream.size, "{}", stream.name);
    }
}

#[test]
fn headers_say_what_ffprobe_says() {
    let header = |name: &str| {
        let stream = named(name);
        let frames = stream.ivf_frames();
        let bytes = frames.map_or_else(|| stream.bytes(), |frames| frames[0].clone());
        match find_header(codec(stream.coding), &bytes, false) {
            Header::Found { sequence, .. } => sequence,
            Header::Missing { .. } => panic!("{name} has no header"),
        }
    };
    let interlaced = header("test-25fps-interlaced.h264");
    assert!(!interlaced.progressive);
    assert_eq!((interlaced.profile, interlaced.level), (100, 21));
    assert_eq!(interlaced.frame_rate, Some((50, 2)));
    let bear = header("bear.h265");
    assert_eq!((bear.width, bear.height, bear.level), (320, 184, 60));
    let crop = Crop {
        left: 0,
        top: 0,
        width: 320,
        height: 180,
    };
    assert_eq!(bear.crop, crop);
    let (num, den) = bear.frame_rate.expect("the VUI has a rate");
    assert_eq!((num * 1001 + den / 2) / den, 30_000);
    let av1 = header("test-25fps.ivf.av1");
    assert_eq!((av1.width, av1.height, av1.depth), (320, 240, 8));
    assert_eq!(av1.sampling, Sampling::Yuv420);
    assert_eq!(header("64x64-I.h264").reorder, Reorder::None);
}

#[test]
fn a_vp9_stream_tells_every_key_frame_of_another_size() {
    let stream = named("resolution_change_500frames-vp9.ivf");
    let mut reader = Reader::new(Codec::Vp9);
    let mut sizes = Vec::new();
    for frame in stream.ivf_frames().expect("it is an IVF file") {
        if let Step::Sequence(sequence) = reader.step(&frame, true) {
            sizes.push((sequence.width, sequence.height));
            reader.accept(sequence);
        }
        let Step::Unit { taken, data, .. } = reader.step(&frame, true) else {
            panic!("a frame is a unit");
        };
        assert_eq!((taken, data), (frame.len(), frame));
    }
    assert_eq!(
        sizes,
        [(640, 360), (426, 240), (640, 360), (854, 480), (1280, 720)]
    );
}

#[test]
fn a_new_sequence_header_is_told_while_its_bytes_are_untouched() {
    let (small, large) = (
        named("64x64-I-P.h264").bytes(),
        named("test-25fps.h264").bytes(),
    );
    for piece in [1, 7, 100, 5000, 1 << 20] {
        let mut reader = Reader::new(Codec::H264);
        let mut buffer: Vec<u8> = Vec::new();
        let mut fed = 0;
        let both = [small.as_slice(), large.as_slice()].concat();
        let mut told = Vec::new();
        while told.len() < 2 {
            match reader.step(&buffer, false) {
                Step::Sequence(sequence) => {
                    told.push(sequence.width);
                    if told.len() == 2 {
                        break;
                    }
                    reader.accept(sequence);
                }
                Step::Unit { taken, .. } => drop(buffer.drain(..taken)),
                Step::More { taken } => {
                    buffer.drain(..taken);
                    assert!(
                        fed < both.len(),
                        "pieces of {piece}: the second header was never told"
                    );
                    let end = (fed + piece).min(both.len());
                    buffer.extend_from_slice(&both[fed..end]);
                    fed = end;
                }
            }
        }
        assert_eq!(told, [64, 320], "pieces of {piece}");
        // What is left begins with the new stream's parameter sets: a new decoder can start on it.
        let Header::Found { offset, sequence } = find_header(Codec::H264, &buffer, false) else {
            panic!("pieces of {piece}: the header's bytes were taken");
        };
        assert_eq!(sequence.width, 320);
        assert!(
            offset < 64,
            "pieces of {piece}: the header lies at {offset}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_pieces_do_not_matter(pieces in prop::collection::vec(1_usize..4000, 1..20), which in 0_usize..12) {
        let stream = &byte_streams()[which];
        let codec = codec(stream.coding);
        let bytes = stream.bytes();
        prop_assert_eq!(cut(codec, &bytes, &pieces).units, cut(codec, &bytes, &[bytes.len()]).units);
    }

    #[test]
    fn no_bytes_are_too_strange(
        bytes in prop::collection::vec(prop_oneof![3 => Just(0_u8), 1 => Just(1), 4 => any::<u8>()], 0..400),
        pieces in prop::collection::vec(1_usize..50, 1..5), last in any::<bool>(),
    ) {
        for codec in Codec::ALL {
            let _ = find_header(codec, &bytes, last);
            if matches!(codec, Codec::H264 | Codec::H265 | Codec::Mpeg2) {
                let all: Vec<u8> = cut(codec, &bytes, &pieces).units.concat();
                prop_assert!(bytes.windows(all.len().max(1)).any(|w| w == all) || all.is_empty());
            } else {
                let _ = Reader::new(codec).step(&bytes, last);
            }
        }
    }

    #[test]
    fn damaged_headers_are_read_or_refused(at in 0_usize..200, value in any::<u8>(), which in 0_usize..18) {
        let stream = &all()[which];
        let mut bytes = stream.ivf_frames().map_or_else(|| stream.bytes(), |frames| frames[0].clone());
        bytes.truncate(2000);
        let at = at % bytes.len();
        bytes[at] = value;
        if let Header::Found { offset, sequence } = find_header(codec(stream.coding), &bytes, true) {
            prop_assert!(offset < bytes.len());
            prop_assert!(sequence.crop.left + sequence.crop.width <= sequence.width);
            prop_assert!(sequence.crop.top + sequence.crop.height <= sequence.height);
            prop_assert!(sequence.width > 0 && sequence.height > 0);
        }
    }
}
