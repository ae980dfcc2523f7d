// SPDX-License-Identifier: MPL-2.0

//! H.265 parameter sets and slice headers, as far as they tell the sequence (ITU-T H.265, 7.3.2 and 7.3.6).

use crate::bits::{Bits, unescape};
use crate::h264::read_display;
use crate::sequence::{Sampling, Sequence};

/// Reads a sequence parameter set: its id and what it says. `nal` begins with the two header bytes.
pub fn sequence_parameter_set(nal: &[u8]) -> Option<(u32, Sequence)> {
    let payload = unescape(nal.get(2..)?);
    let mut bits = Bits::new(&payload);
    bits.skip(4)?;
    let sub_layers = bits.bits(3)?;
    bits.flag()?;
    let (profile, level) = profile_tier_level(&mut bits, sub_layers)?;
    let id = bits.ue_max(15)?;
    let chroma_format = bits.ue_max(3)?;
    let sampling = [
        Sampling::Monochrome,
        Sampling::Yuv420,
        Sampling::Yuv422,
        Sampling::Yuv444,
    ][chroma_format as usize];
    if chroma_format == 3 {
        bits.flag()?;
    }
    let (width, height) = (bits.ue()?, bits.ue()?);
    let mut sequence = Sequence::plain(width, height, 8, sampling)?;
    if bits.flag()? {
        let (across, down) = match sampling {
            Sampling::Yuv420 => (2, 2),
            Sampling::Yuv422 => (2, 1),
            Sampling::Monochrome | Sampling::Yuv444 => (1, 1),
        };
        let mut side = |unit: u32| bits.ue()?.checked_mul(unit);
        let (left, right, top, bottom) = (side(across)?, side(across)?, side(down)?, side(down)?);
        sequence = sequence.cut(left, right, top, bottom)?;
    }
    sequence.depth = 8 + bits.ue_max(8)?;
    sequence.chroma_depth = 8 + bits.ue_max(8)?;
    sequence.profile = profile;
    sequence.level = level;
    let order_count_bits = bits.ue_max(12)? + 4;
    let first = if bits.flag()? { 0 } else { sub_layers };
    for _ in first..=sub_layers {
        sequence.references = bits.ue_max(15)? + 1;
        bits.ue_max(15)?;
        bits.ue()?;
    }
    // The pictures decode without the rest, which a damaged or cut header may lack.
    let _ = rest(&mut bits, order_count_bits, &mut sequence);
    Some((id, sequence))
}

fn profile_tier_level(bits: &mut Bits<'_>, sub_layers: u32) -> Option<(u32, u32)> {
    bits.skip(3)?;
    let profile = bits.bits(5)?;
    bits.skip(32 + 48)?;
    let level = bits.bits(8)?;
    let mut present = Vec::new();
    for _ in 0..sub_layers {
        present.push((bits.flag()?, bits.flag()?));
    }
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers as usize))?;
    }
    for (has_profile, has_level) in present {
        bits.skip(if has_profile { 88 } else { 0 })?;
        bits.skip(if has_level { 8 } else { 0 })?;
    }
    Some((profile, level))
}

fn rest(bits: &mut Bits<'_>, order_count_bits: u32, sequence: &mut Sequence) -> Option<()> {
    for _ in 0..6 {
        bits.ue()?;
    }
    if bits.flag()? && bits.flag()? {
        skip_scaling_lists(bits)?;
    }
    bits.skip(2)?;
    if bits.flag()? {
        bits.skip(8)?;
        bits.ue()?;
        bits.ue()?;
        bits.flag()?;
    }
    let sets = bits.ue_max(64)?;
    let mut sizes: Vec<u32> = Vec::new();
    for _ in 0..sets {
        let size = skip_reference_set(bits, sizes.last().copied())?;
        sizes.push(size);
    }
    if bits.flag()? {
        for _ in 0..bits.ue_max(32)? {
            bits.skip(order_count_bits as usize + 1)?;
        }
    }
    bits.skip(2)?;
    if !bits.flag()? {
        return Some(());
    }
    read_display(bits, sequence)?;
    bits.flag()?;
    sequence.progressive = !bits.flag()?; // field_seq_flag
    bits.flag()?;
    if bits.flag()? {
        for _ in 0..4 {
            bits.ue()?;
        }
    }
    if bits.flag()? {
        let (units_in_tick, time_scale) = (bits.bits(32)?, bits.bits(32)?);
        if units_in_tick > 0 && time_scale > 0 {
            sequence.frame_rate = Some((time_scale, units_in_tick));
        }
    }
    Some(())
}

fn skip_scaling_lists(bits: &mut Bits<'_>) -> Option<()> {
    for size in 0..4_u32 {
        for _ in (0..6).step_by(if size == 3 { 3 } else { 1 }) {
            if !bits.flag()? {
                bits.ue()?;
                continue;
            }
            if size > 1 {
                bits.se()?;
            }
            for _ in 0..64.min(1 << (4 + 2 * size)) {
                bits.se()?;
            }
        }
    }
    Some(())
}

/// Passes over st_ref_pic_set and gives the number of its pictures; `previous` is that of the set before.
fn skip_reference_set(bits: &mut Bits<'_>, previous: Option<u32>) -> Option<u32> {
    if let Some(previous) = previous
        && bits.flag()?
    {
        bits.flag()?;
        bits.ue()?;
        let mut size = 0;
        for _ in 0..=previous {
            let used = bits.flag()?;
            if used || bits.flag()? {
                size += 1;
            }
        }
        return (size <= 32).then_some(size);
    }
    let (before, after) = (bits.ue_max(16)?, bits.ue_max(16)?);
    for _ in 0..before + after {
        bits.ue()?;
        bits.flag()?;
    }
    Some(before + after)
}

/// Reads a picture parameter set: its id and that of its sequence parameter set.
pub fn picture_parameter_set(nal: &[u8]) -> Option<(u32, u32)> {
    let payload = unescape(nal.get(2..nal.len().min(24))?);
    let mut bits = Bits::new(&payload);
    Some((bits.ue_max(63)?, bits.ue_max(15)?))
}

/// The picture parameter set that a slice segment names.
pub fn slice_parameter_set(nal: &[u8]) -> Option<u32> {
    let payload = unescape(nal.get(2..nal.len().min(24))?);
    let mut bits = Bits::new(&payload);
    bits.flag()?;
    if (16..24).contains(&(nal[0] >> 1 & 63)) {
        bits.flag()?;
    }
    bits.ue_max(63)
}
