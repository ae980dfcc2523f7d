// SPDX-License-Identifier: MPL-2.0

//! MPEG-2 and MPEG-1 sequence headers (ITU-T H.262, 6.2.2; ISO/IEC 11172-2).

use crate::bits::Bits;
use crate::sequence::{Sampling, Sequence};

/// Frame rates of table 6-4, by code.
const FRAME_RATES: [(u32, u32); 9] = [
    (0, 0),
    (24_000, 1001),
    (24, 1),
    (25, 1),
    (30_000, 1001),
    (30, 1),
    (50, 1),
    (60_000, 1001),
    (60, 1),
];

/// Reads a sequence header and, where the stream is MPEG-2, the sequence extension behind it. Both without
/// start code; the header begins with the code's last byte (B3), so does the extension (B5).
pub fn sequence_header(header: &[u8], extension: Option<&[u8]>) -> Option<Sequence> {
    let mut bits = Bits::new(header.get(1..)?);
    let (mut width, mut height) = (bits.bits(12)?, bits.bits(12)?);
    let aspect = bits.bits(4)?;
    let rate = bits.bits(4)?;
    let mut sampling = Sampling::Yuv420;
    let mut rate_scale = (1, 1);
    let (mut progressive, mut profile, mut level) = (true, 0, 0);
    if let Some(extension) = extension {
        let mut bits = Bits::new(extension.get(1..)?);
        if bits.bits(4)? != 1 {
            return None;
        }
        let profile_and_level = bits.bits(8)?;
        profile = profile_and_level & 0x70;
        level = profile_and_level & 0x0f;
        progressive = bits.flag()?;
        sampling = match bits.bits(2)? {
            1 => Sampling::Yuv420,
            2 => Sampling::Yuv422,
            3 => Sampling::Yuv444,
            _ => return None,
        };
        width |= bits.bits(2)? << 12;
        height |= bits.bits(2)? << 12;
        bits.skip(12 + 1 + 8 + 1)?;
        rate_scale = (bits.bits(2)? + 1, bits.bits(5)? + 1);
    }
    let mut sequence = Sequence::plain(width, height, 8, sampling)?;
    sequence.progressive = progressive;
    sequence.profile = profile;
    sequence.level = level;
    sequence.references = 3;
    if let Some((num @ 1.., den)) = FRAME_RATES.get(rate as usize).copied() {
        sequence.frame_rate = Some((num * rate_scale.0, den * rate_scale.1));
    }
    // MPEG-2 gives the shape of the whole picture; the shape of a sample follows.
    let display = match (extension.is_some(), aspect) {
        (true, 2) => Some((4, 3)),
        (true, 3) => Some((16, 9)),
        (true, 4) => Some((221, 100)),
        _ => None,
    };
    sequence.sample_aspect = match display {
        Some((across, down)) => Some(reduced(across * height, down * width)),
        None if aspect == 1 => Some((1, 1)),
        None => None,
    };
    Some(sequence)
}

fn reduced(num: u32, den: u32) -> (u32, u32) {
    let (mut a, mut b) = (num, den);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (num / a.max(1), den / a.max(1))
}

/// Whether a picture coding extension (beginning with B5) says that the picture is one field.
pub fn is_field(extension: &[u8]) -> Option<bool> {
    let mut bits = Bits::new(extension.get(1..)?);
    if bits.bits(4)? != 8 {
        return None;
    }
    bits.skip(18)?;
    Some(bits.bits(2)? != 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, Header, find_header};

    /// What ffmpeg writes for 190x142 at 25 frames a second, up to the first picture.
    const STREAM: [u8; 38] = [
        0, 0, 1, 0xb3, 0x0b, 0xe0, 0x8e, 0x13, 0xff, 0xff, 0xe0, 0x18, 0, 0, 1, 0xb5, 0x14, 0x82,
        0, 1, 0, 0, 0, 0, 1, 0xb8, 0, 8, 0, 0x40, 0, 0, 1, 0, 0, 0x0f, 0xff, 0xf8,
    ];

    #[test]
    fn an_extension_that_ends_in_a_zero_byte_is_whole() {
        let Header::Found { offset, sequence } = find_header(Codec::Mpeg2, &STREAM, false) else {
            panic!("the header was not found");
        };
        assert_eq!(offset, 0);
        assert_eq!((sequence.width, sequence.height), (190, 142));
        assert_eq!(sequence.frame_rate, Some((25, 1)));
        assert_eq!(sequence.sample_aspect, Some((1, 1)));
        assert_eq!((sequence.profile, sequence.level), (0x40, 8));
        assert!(!sequence.progressive);
    }

    #[test]
    fn a_header_without_an_extension_is_mpeg_1() {
        let sequence = sequence_header(&STREAM[3..12], None).expect("a header");
        assert!(sequence.progressive && sequence.profile == 0);
    }

    #[test]
    fn a_picture_is_a_frame_or_a_field() {
        assert_eq!(is_field(&[0xb5, 0x8f, 0xff, 0xf3, 0, 0]), Some(false));
        assert_eq!(is_field(&[0xb5, 0x8f, 0xff, 0xf1, 0, 0]), Some(true));
        assert_eq!(is_field(&[0xb5, 0x14, 0x82, 0, 1, 0]), None);
    }
}
