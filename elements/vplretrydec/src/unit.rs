// SPDX-License-Identifier: MPL-2.0

//! An access unit, and what the decoder must know of it.

use elementary_stream::{Codec, Header, find_header, nal};

/// The number by which a frame goes through the runtime and comes back: its system frame number + 1. Zero is
/// no token, because some runtimes take a time stamp of zero for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Token(u64);

impl Token {
    pub(crate) fn of(system_frame_number: u32) -> Self {
        Self(u64::from(system_frame_number) + 1)
    }

    pub(crate) fn from_timestamp(timestamp: u64) -> Self {
        Self(timestamp)
    }

    pub(crate) fn timestamp(self) -> u64 {
        self.0
    }

    /// `None` for a time stamp that is nobody's.
    pub(crate) fn system_frame_number(self) -> Option<u32> {
        self.0
            .checked_sub(1)
            .and_then(|number| number.try_into().ok())
    }
}

/// An access unit (for H.264 a field may be one).
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) token: Token,
    pub(crate) bytes: Vec<u8>,
    /// Decoding can begin here.
    pub(crate) key: bool,
    /// Its sequence headers and parameter sets, with their start codes.
    pub(crate) sets: Vec<u8>,
    /// A sequence header is among them: it needs none before it.
    pub(crate) has_sequence: bool,
    /// Where parameter sets that are put before it go: behind its delimiter.
    delimiter: usize,
}

/// What a NAL unit (or what else follows a start code) means here.
#[derive(Default)]
struct Role {
    delimiter: bool,
    sequence: bool,
    set: bool,
    key: bool,
}

impl Unit {
    /// Looks into the bytes.
    pub(crate) fn new(codec: Codec, token: Token, bytes: Vec<u8>) -> Self {
        let mut unit = Self {
            token,
            key: false,
            sets: Vec::new(),
            has_sequence: false,
            delimiter: 0,
            bytes,
        };
        match codec {
            Codec::H264 | Codec::H265 | Codec::Mpeg2 => unit.look_at_start_codes(codec),
            _ => {
                unit.key = matches!(find_header(codec, &unit.bytes, true), Header::Found { .. });
            }
        }
        unit
    }

    fn look_at_start_codes(&mut self, codec: Codec) {
        let zero_byte = codec != Codec::Mpeg2;
        let nals: Vec<(usize, Role)> = nal::units(&self.bytes, zero_byte)
            .map(|nal| (nal.start, role(codec, nal.bytes)))
            .collect();
        for (number, (start, role)) in nals.iter().enumerate() {
            let end = nals.get(number + 1).map_or(self.bytes.len(), |next| next.0);
            self.key |= role.key;
            self.has_sequence |= role.sequence;
            if role.set {
                self.sets.extend_from_slice(&self.bytes[*start..end]);
            }
            if role.delimiter {
                self.delimiter = end;
            }
        }
    }

    /// The bytes with parameter sets at the place where the formats want them.
    pub(crate) fn behind(&self, sets: &[u8]) -> Vec<u8> {
        let (delimiter, rest) = self.bytes.split_at(self.delimiter);
        [delimiter, sets, rest].concat()
    }
}

fn role(codec: Codec, bytes: &[u8]) -> Role {
    let first = bytes.first().copied().unwrap_or(0);
    match codec {
        // ITU-T H.264, table 7-1.
        Codec::H264 => {
            let kind = first & 31;
            Role {
                delimiter: kind == 9,
                sequence: kind == 7,
                set: matches!(kind, 7 | 8 | 13 | 15),
                key: kind == 5 || (kind == 6 && is_recovery_point(&bytes[1..])),
            }
        }
        // ITU-T H.265, table 7-1.
        Codec::H265 => {
            let kind = first >> 1 & 63;
            Role {
                delimiter: kind == 35,
                sequence: kind == 33,
                set: (32..=34).contains(&kind),
                key: (16..=21).contains(&kind),
            }
        }
        // ITU-T H.262, table 6-1. Sequence header with its extensions; an I picture.
        _ => Role {
            delimiter: false,
            sequence: first == 0xb3,
            set: first == 0xb3 || (first == 0xb5 && is_sequence_extension(bytes)),
            key: first == 0 && bytes.get(2).is_some_and(|byte| byte >> 3 & 7 == 1),
        },
    }
}

/// `extension_start_code_identifier` 1 (sequence) or 2 (sequence display).
fn is_sequence_extension(bytes: &[u8]) -> bool {
    matches!(bytes.get(1).map(|byte| byte >> 4), Some(1 | 2))
}

/// Whether an SEI message of type 6 is among the payloads (ITU-T H.264, 7.3.2.3.1 and D.1).
fn is_recovery_point(mut sei: &[u8]) -> bool {
    fn value(sei: &mut &[u8]) -> Option<usize> {
        let mut sum = 0;
        loop {
            let (&byte, rest) = sei.split_first()?;
            *sei = rest;
            sum += usize::from(byte);
            if byte != 0xff {
                return Some(sum);
            }
        }
    }
    loop {
        let (Some(kind), Some(size)) = (value(&mut sei), value(&mut sei)) else {
            return false;
        };
        if kind == 6 && size > 0 {
            return true;
        }
        match sei.get(size..) {
            // A lone stop bit is no message.
            Some(rest) if rest.len() > 1 => sei = rest,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(codec: Codec, bytes: &[u8]) -> Unit {
        Unit::new(codec, Token::of(0), bytes.to_vec())
    }

    #[test]
    fn a_token_is_never_zero_and_finds_its_frame() {
        for number in [0, 1, u32::MAX] {
            let token = Token::of(number);
            assert_ne!(token.timestamp(), 0);
            assert_eq!(
                Token::from_timestamp(token.timestamp()).system_frame_number(),
                Some(number)
            );
        }
        for nobody in [0, u64::MAX, u64::from(u32::MAX) + 2] {
            assert_eq!(Token::from_timestamp(nobody).system_frame_number(), None);
        }
    }

    #[test]
    fn sets_go_behind_the_delimiter() {
        let slice = [0, 0, 0, 1, 0x41, 5];
        let bytes = [&[0, 0, 0, 1, 9, 0x10][..], &slice].concat();
        let unit = unit(Codec::H264, &bytes);
        assert!(!unit.key && !unit.has_sequence);
        let sets = [0, 0, 0, 1, 0x67];
        assert_eq!(unit.behind(&sets), [&bytes[..6], &sets, &slice].concat());
    }

    #[test]
    fn key_frames_are_known() {
        assert!(unit(Codec::H264, &[0, 0, 1, 0x65, 1]).key);
        assert!(!unit(Codec::H264, &[0, 0, 1, 0x41, 1]).key);
        // An SEI of another type before one of type 6.
        let sei = [0, 0, 1, 6, 5, 2, 1, 1, 6, 1, 0x80, 0x80];
        assert!(unit(Codec::H264, &sei).key);
        assert!(!unit(Codec::H264, &sei[..8]).key);
        assert!(unit(Codec::H265, &[0, 0, 1, 19 << 1, 1]).key);
        assert!(!unit(Codec::H265, &[0, 0, 1, 1 << 1, 1]).key);
        assert!(unit(Codec::Mpeg2, &[0, 0, 1, 0, 0, 0x08]).key);
        assert!(!unit(Codec::Mpeg2, &[0, 0, 1, 0, 0, 0x10]).key);
    }

    #[test]
    fn sequence_headers_of_mpeg_2_are_kept() {
        let header = [0, 0, 1, 0xb3, 1, 2, 0, 0, 1, 0xb5, 0x14];
        let rest = [0, 0, 1, 0xb8, 0, 0, 0, 1, 0, 0, 8, 0, 0, 1, 0xb5, 0x8f];
        let unit = unit(Codec::Mpeg2, &[&header[..], &rest].concat());
        assert!(unit.has_sequence && unit.key);
        assert_eq!(unit.sets, header);
    }
}
