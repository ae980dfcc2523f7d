// SPDX-License-Identifier: MPL-2.0

//! Inside of units: where the picture begins, fields of MPEG-2, and the frames of a superframe.

use av_backend::Structure;
use elementary_stream::Codec;
use elementary_stream::nal::units;

/// Where the first picture of an access unit begins; parameter sets may come before it.
pub fn first_picture(codec: Codec, unit: &[u8]) -> usize {
    let is_picture = |first: u8| match codec {
        Codec::H264 => matches!(first & 31, 1 | 2 | 5),
        Codec::H265 => first >> 1 & 63 < 32,
        Codec::Mpeg2 => first == 0,
        _ => false,
    };
    if !matches!(codec, Codec::H264 | Codec::H265 | Codec::Mpeg2) {
        return 0;
    }
    let mut found = units(unit, codec != Codec::Mpeg2)
        .filter(|unit| unit.bytes.first().is_some_and(|first| is_picture(*first)));
    found.next().map_or(0, |unit| unit.start)
}

/// What the first picture of an MPEG-2 access unit is (ITU-T H.262, 6.2.3.1), which libavcodec's parser does not
/// tell.
pub fn mpeg2_structure(unit: &[u8]) -> Structure {
    // The picture coding extension: id 8, and picture_structure at the end of its third byte.
    let extension = units(unit, false).find_map(|unit| match unit.bytes {
        [0xb5, first, _, third, ..] if first >> 4 == 8 => Some(third & 3),
        _ => None,
    });
    match extension {
        Some(1) => Structure::TopField,
        Some(2) => Structure::BottomField,
        _ => Structure::Frame,
    }
}

/// The frames of a VP9 superframe (bitstream specification, Annex B); everything else is one frame.
pub fn frames_of(codec: Codec, unit: &[u8]) -> Vec<&[u8]> {
    let parts = (codec == Codec::Vp9).then(|| superframe(unit)).flatten();
    parts.unwrap_or_else(|| vec![unit])
}

fn superframe(unit: &[u8]) -> Option<Vec<&[u8]>> {
    let marker = *unit.last()?;
    if marker >> 5 != 0b110 {
        return None;
    }
    let count = usize::from(marker & 7) + 1;
    let bytes = usize::from(marker >> 3 & 3) + 1;
    let index = unit.len().checked_sub(2 + bytes * count)?;
    if unit[index] != marker {
        return None;
    }
    let (mut rest, sizes) = (&unit[..index], &unit[index + 1..unit.len() - 1]);
    let mut frames = Vec::new();
    for size in sizes.chunks(bytes) {
        let size = size
            .iter()
            .rev()
            .fold(0, |size, byte| size << 8 | usize::from(*byte));
        let (frame, behind) = rest.split_at_checked(size)?;
        if !frame.is_empty() {
            frames.push(frame);
        }
        rest = behind;
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superframe_comes_apart_and_a_cut_one_stays_whole() {
        let marker = 0b1100_1001; // two frames, sizes of two bytes
        let unit = [1, 2, 3, 4, 5, marker, 3, 0, 2, 0, marker];
        assert_eq!(frames_of(Codec::Vp9, &unit), [&[1, 2, 3][..], &[4, 5]]);
        assert_eq!(frames_of(Codec::Vp8, &unit), [&unit[..]]);
        let cut = [4, 5, marker, 3, 0, 2, 0, marker];
        assert_eq!(frames_of(Codec::Vp9, &cut), [&cut[..]]);
    }

    #[test]
    fn the_structure_stands_in_the_picture_coding_extension() {
        let unit = |structure: u8| [0, 0, 1, 0xb5, 0x8f, 0xff, 0xf0 | structure, 0x80, 0];
        assert_eq!(mpeg2_structure(&unit(1)), Structure::TopField);
        assert_eq!(mpeg2_structure(&unit(2)), Structure::BottomField);
        assert_eq!(mpeg2_structure(&unit(3)), Structure::Frame);
        assert_eq!(
            mpeg2_structure(&[0, 0, 1, 0xb5, 0x14, 0x82, 1, 0]),
            Structure::Frame
        );
    }

    #[test]
    fn a_picture_begins_behind_its_parameter_sets() {
        let unit = [
            0, 0, 0, 1, 0x67, 9, 0, 0, 1, 0x68, 9, 0, 0, 0, 1, 0x65, 0x80,
        ];
        assert_eq!(first_picture(Codec::H264, &unit), 11);
        assert_eq!(first_picture(Codec::Vp8, &unit), 0);
    }
}
