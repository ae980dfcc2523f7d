// SPDX-License-Identifier: MPL-2.0

//! AV1 open bitstream units and sequence headers (AV1 bitstream specification, 5.3 to 5.5).

use crate::bits::Bits;
use crate::sequence::{Sampling, Sequence};

const SEQUENCE_HEADER: u8 = 1;
const TEMPORAL_DELIMITER: u8 = 2;

/// An open bitstream unit.
#[derive(Clone, Copy, Debug)]
struct Obu<'a> {
    start: usize,
    kind: u8,
    payload: &'a [u8],
}

/// The units of `data`, until one makes no sense.
fn units(data: &[u8]) -> impl Iterator<Item = Obu<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let header = *data.get(start)?;
        if header & 0x80 != 0 {
            return None;
        }
        let extension = usize::from(header & 4 != 0);
        let body = start + 1 + extension;
        let (length, bytes) = if header & 2 != 0 {
            leb128(data.get(body..)?)?
        } else {
            (data.len().checked_sub(body)?, 0)
        };
        let from = body + bytes;
        let to = from.checked_add(length)?;
        let payload = data.get(from..to)?;
        at = to;
        Some(Obu {
            start,
            kind: header >> 3 & 15,
            payload,
        })
    })
}

fn leb128(data: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_u64;
    for (index, byte) in data.iter().take(8).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, index + 1));
        }
    }
    None
}

/// Where the first temporal unit of `data` ends: at the second temporal delimiter, or at the end.
pub fn temporal_unit_end(data: &[u8]) -> usize {
    units(data)
        .find(|obu| obu.kind == TEMPORAL_DELIMITER && obu.start > 0)
        .map_or(data.len(), |obu| obu.start)
}

/// The sequence header in a temporal unit and where its unit begins.
pub fn sequence_header(data: &[u8]) -> Option<(usize, Sequence)> {
    units(data)
        .filter(|obu| obu.kind == SEQUENCE_HEADER)
        .find_map(|obu| Some((obu.start, parse(obu.payload)?)))
}

fn parse(payload: &[u8]) -> Option<Sequence> {
    let mut bits = Bits::new(payload);
    let profile = bits.bits(3)?;
    bits.flag()?;
    let reduced = bits.flag()?;
    let mut frame_rate = None;
    let level;
    if reduced {
        level = bits.bits(5)?;
    } else {
        let mut delay_bits = None;
        if bits.flag()? {
            let (units_in_tick, time_scale) = (bits.bits(32)?, bits.bits(32)?);
            let mut ticks = None;
            if bits.flag()? {
                ticks = bits.ue()?.checked_add(1); // uvlc() is written as ue(v) is
            }
            frame_rate = ticks
                .and_then(|ticks| units_in_tick.checked_mul(ticks))
                .filter(|den| *den > 0 && time_scale > 0)
                .map(|den| (time_scale, den));
            if bits.flag()? {
                delay_bits = Some(bits.bits(5)? + 1);
                bits.skip(32 + 5 + 5)?;
            }
        }
        let display_delays = bits.flag()?;
        let points = bits.bits(5)? + 1;
        let mut first_level = 0;
        for point in 0..points {
            bits.skip(12)?;
            let this = bits.bits(5)?;
            if point == 0 {
                first_level = this;
            }
            if this > 7 {
                bits.flag()?;
            }
            if let Some(delay_bits) = delay_bits
                && bits.flag()?
            {
                bits.skip(2 * delay_bits as usize + 1)?;
            }
            if display_delays && bits.flag()? {
                bits.skip(4)?;
            }
        }
        level = first_level;
    }
    let (width_bits, height_bits) = (bits.bits(4)? + 1, bits.bits(4)? + 1);
    let (width, height) = (bits.bits(width_bits)? + 1, bits.bits(height_bits)? + 1);
    if !reduced && bits.flag()? {
        bits.skip(7)?;
    }
    bits.skip(3)?;
    if !reduced {
        skip_tools(&mut bits)?;
    }
    bits.skip(3)?;
    let (depth, sampling) = colour(&mut bits, profile)?;
    let mut sequence = Sequence::plain(width, height, depth, sampling)?;
    sequence.frame_rate = frame_rate;
    sequence.profile = profile;
    sequence.level = level;
    sequence.references = 8;
    Some(sequence)
}

fn skip_tools(bits: &mut Bits<'_>) -> Option<()> {
    bits.skip(4)?;
    let order_hints = bits.flag()?;
    if order_hints {
        bits.skip(2)?;
    }
    let screen_content = bits.flag()? || bits.flag()?;
    if screen_content && !bits.flag()? {
        bits.flag()?;
    }
    if order_hints {
        bits.skip(3)?;
    }
    Some(())
}

fn colour(bits: &mut Bits<'_>, profile: u32) -> Option<(u32, Sampling)> {
    let deep = bits.flag()?;
    let depth = match deep {
        true if profile == 2 && bits.flag()? => 12,
        true => 10,
        false => 8,
    };
    if profile != 1 && bits.flag()? {
        return Some((depth, Sampling::Monochrome));
    }
    let description = if bits.flag()? {
        (bits.bits(8)?, bits.bits(8)?, bits.bits(8)?)
    } else {
        (2, 2, 2)
    };
    if description == (1, 13, 0) {
        return Some((depth, Sampling::Yuv444)); // sRGB
    }
    bits.flag()?;
    let sampling = match profile {
        0 => Sampling::Yuv420,
        1 => Sampling::Yuv444,
        _ if depth < 12 => Sampling::Yuv422,
        _ => match bits.flag()? {
            false => Sampling::Yuv444,
            true if bits.flag()? => Sampling::Yuv420,
            true => Sampling::Yuv422,
        },
    };
    Some((depth, sampling))
}
