// SPDX-License-Identifier: MPL-2.0

//! VP9 uncompressed headers (VP9 bitstream specification, 6.2).

use crate::bits::Bits;
use crate::sequence::{Sampling, Sequence};

/// The sequence of a key frame, or of a superframe that begins with one; `None` for every other frame.
pub fn key_frame(frame: &[u8]) -> Option<Sequence> {
    let mut bits = Bits::new(frame);
    if bits.bits(2)? != 2 {
        return None;
    }
    let profile = u32::from(bits.flag()?) | u32::from(bits.flag()?) << 1;
    if profile == 3 && bits.flag()? {
        return None;
    }
    let (existing, inter) = (bits.flag()?, bits.flag()?);
    if existing || inter {
        return None;
    }
    bits.skip(2)?;
    if bits.bits(24)? != 0x49_8342 {
        return None;
    }
    let depth = match profile {
        0 | 1 => 8,
        _ if bits.flag()? => 12,
        _ => 10,
    };
    let colour_space = bits.bits(3)?;
    let mut sampling = Sampling::Yuv420;
    if colour_space == 7 {
        sampling = Sampling::Yuv444;
        if profile & 1 == 0 {
            return None;
        }
        bits.flag()?;
    } else {
        bits.flag()?;
        if profile & 1 == 1 {
            sampling = match (bits.flag()?, bits.flag()?) {
                (true, true) => return None,
                (true, false) => Sampling::Yuv422,
                // 4:4:0 is neither; like 4:4:4 it is nothing that NV12 can hold.
                (false, _) => Sampling::Yuv444,
            };
            bits.flag()?;
        }
    }
    let (width, height) = (bits.bits(16)? + 1, bits.bits(16)? + 1);
    let mut sequence = Sequence::plain(width, height, depth, sampling)?;
    sequence.profile = profile;
    sequence.references = 8;
    Some(sequence)
}
