// SPDX-License-Identifier: MPL-2.0

//! H.264 parameter sets and slice headers, as far as they tell the sequence (ITU-T H.264, 7.3.2 and 7.3.3).

use crate::bits::{Bits, unescape};
use crate::sequence::{Reorder, SAMPLE_ASPECTS, Sampling, Sequence};

/// Profiles whose sequence parameter set carries the chroma format.
const HIGH_PROFILES: [u32; 13] = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135];

/// Reads a sequence parameter set: its id and what it says. `nal` begins with the NAL unit's header byte.
pub fn sequence_parameter_set(nal: &[u8]) -> Option<(u32, Sequence)> {
    let payload = unescape(nal.get(1..)?);
    let mut bits = Bits::new(&payload);
    let profile = bits.bits(8)?;
    let constraints = bits.bits(8)?;
    let level = bits.bits(8)?;
    let id = bits.ue_max(31)?;
    let (mut sampling, mut depth, mut chroma_depth) = (Sampling::Yuv420, 8, 8);
    if HIGH_PROFILES.contains(&profile) {
        let chroma_format = bits.ue_max(3)?;
        sampling = [
            Sampling::Monochrome,
            Sampling::Yuv420,
            Sampling::Yuv422,
            Sampling::Yuv444,
        ][chroma_format as usize];
        if chroma_format == 3 {
            bits.flag()?; // separate_colour_plane_flag
        }
        depth = 8 + bits.ue_max(6)?;
        chroma_depth = 8 + bits.ue_max(6)?;
        bits.flag()?;
        if bits.flag()? {
            for list in 0..if chroma_format == 3 { 12 } else { 8 } {
                if bits.flag()? {
                    skip_scaling_list(&mut bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    bits.ue_max(12)?;
    let order_count_type = bits.ue_max(2)?;
    match order_count_type {
        0 => {
            bits.ue_max(12)?;
        }
        1 => {
            bits.flag()?;
            bits.se()?;
            bits.se()?;
            for _ in 0..bits.ue_max(255)? {
                bits.se()?;
            }
        }
        _ => {}
    }
    let reference_frames = bits.ue_max(16)?;
    bits.flag()?;
    let width_in_blocks = bits.ue_max(4095)? + 1;
    let height_in_map_units = bits.ue_max(4095)? + 1;
    let frames_only = bits.flag()?;
    if !frames_only {
        bits.flag()?;
    }
    bits.flag()?;
    let fields = if frames_only { 1 } else { 2 };
    let height_in_blocks = height_in_map_units * fields;
    let mut sequence =
        Sequence::plain(width_in_blocks * 16, height_in_blocks * 16, depth, sampling)?;
    if bits.flag()? {
        let (across, down) = match sampling {
            Sampling::Yuv420 => (2, 2),
            Sampling::Yuv422 => (2, 1),
            Sampling::Monochrome | Sampling::Yuv444 => (1, 1),
        };
        let mut side = |unit: u32| bits.ue()?.checked_mul(unit);
        let (left, right) = (side(across)?, side(across)?);
        let (top, bottom) = (side(down * fields)?, side(down * fields)?);
        sequence = sequence.cut(left, right, top, bottom)?;
    }
    sequence.chroma_depth = chroma_depth;
    sequence.progressive = frames_only;
    sequence.profile = profile;
    sequence.level = level;
    let kept = frames_by_level(level, constraints, width_in_blocks * height_in_blocks);
    sequence.references = reference_frames.max(1);
    let intra_only = constraints & 0x10 != 0 && matches!(profile, 44 | 86 | 100 | 110 | 122 | 244);
    sequence.reorder = if order_count_type == 2 || profile == 66 || intra_only {
        Reorder::None
    } else {
        sequence.references = sequence.references.max(kept);
        Reorder::UpToLevel
    };
    if bits.flag()? {
        // What a damaged or cut VUI does not say stays unknown: the pictures decode without it.
        let _ = usability_information(&mut bits, &mut sequence);
    }
    Some((id, sequence))
}

/// MaxDpbFrames of table A-1.
fn frames_by_level(level: u32, constraints: u32, blocks: u32) -> u32 {
    let blocks_in_buffer = match level {
        9 | 10 => 396,
        11 if constraints & 0x10 != 0 => 396, // level 1b
        11 => 900,
        12 | 13 | 20 => 2_376,
        21 => 4_752,
        22 | 30 => 8_100,
        31 => 18_000,
        32 => 20_480,
        40 | 41 => 32_768,
        42 => 34_816,
        50 => 110_400,
        51 | 52 => 184_320,
        _ => 696_320,
    };
    (blocks_in_buffer / blocks.max(1)).clamp(1, 16)
}

fn skip_scaling_list(bits: &mut Bits<'_>, size: u32) -> Option<()> {
    let (mut last, mut next) = (8_i64, 8_i64);
    for _ in 0..size {
        if next != 0 {
            next = (last + bits.se()?).rem_euclid(256);
        }
        if next != 0 {
            last = next;
        }
    }
    Some(())
}

fn usability_information(bits: &mut Bits<'_>, sequence: &mut Sequence) -> Option<()> {
    read_display(bits, sequence)?;
    if bits.flag()? {
        let (units_in_tick, time_scale) = (bits.bits(32)?, bits.bits(32)?);
        bits.flag()?;
        // A tick is a field.
        if let (1.., Some(per_frame @ 1..)) = (time_scale, units_in_tick.checked_mul(2)) {
            sequence.frame_rate = Some((time_scale, per_frame));
        }
    }
    let first = bits.flag()?;
    if first {
        skip_reference_decoder(bits)?;
    }
    let second = bits.flag()?;
    if second {
        skip_reference_decoder(bits)?;
    }
    if first || second {
        bits.flag()?;
    }
    bits.flag()?;
    if bits.flag()? {
        bits.flag()?;
        for _ in 0..4 {
            bits.ue()?;
        }
        let reordered = bits.ue_max(16)?;
        let buffered = bits.ue_max(16)?;
        sequence.references = buffered.max(1);
        sequence.reorder = if reordered == 0 {
            Reorder::None
        } else {
            Reorder::Declared
        };
    }
    Some(())
}

/// Aspect ratio, overscan, colour and chroma location, with which the usability information of H.264 and of
/// H.265 begins alike. Only the aspect ratio is kept.
pub(crate) fn read_display(bits: &mut Bits<'_>, sequence: &mut Sequence) -> Option<()> {
    if bits.flag()? {
        let index = bits.bits(8)?;
        let ratio = if index == 255 {
            (bits.bits(16)?, bits.bits(16)?)
        } else {
            SAMPLE_ASPECTS
                .get(index as usize)
                .copied()
                .unwrap_or((0, 0))
        };
        if ratio.0 > 0 && ratio.1 > 0 {
            sequence.sample_aspect = Some(ratio);
        }
    }
    if bits.flag()? {
        bits.flag()?; // overscan
    }
    if bits.flag()? {
        bits.skip(4)?;
        if bits.flag()? {
            bits.skip(24)?;
        }
    }
    if bits.flag()? {
        bits.ue()?;
        bits.ue()?;
    }
    Some(())
}

fn skip_reference_decoder(bits: &mut Bits<'_>) -> Option<()> {
    let count = bits.ue_max(31)? + 1;
    bits.skip(8)?;
    for _ in 0..count {
        bits.ue()?;
        bits.ue()?;
        bits.flag()?;
    }
    bits.skip(20)
}

/// Reads a picture parameter set: its id and that of its sequence parameter set.
pub fn picture_parameter_set(nal: &[u8]) -> Option<(u32, u32)> {
    let payload = unescape(nal.get(1..nal.len().min(24))?);
    let mut bits = Bits::new(&payload);
    Some((bits.ue_max(255)?, bits.ue_max(31)?))
}

/// The picture parameter set that a slice names.
pub fn slice_parameter_set(nal: &[u8]) -> Option<u32> {
    let payload = unescape(nal.get(1..nal.len().min(24))?);
    let mut bits = Bits::new(&payload);
    bits.ue()?;
    bits.ue_max(9)?;
    bits.ue_max(255)
}
