// SPDX-License-Identifier: MPL-2.0

//! Writing a picture as two planes: luma, and chroma with U and V interleaved.
//!
//! 8-bit samples give NV12. Deeper ones give P010 and its kin: 16-bit words with the value in the high
//! bits. A picture without chroma gets neutral chroma. Other samplings than 4:2:0 are refused: every
//! value that is written was decoded.

use crate::picture::{Chroma, Picture, PlaneView};

/// Where a picture is written: rows from the top left corner of the coded area.
#[derive(Debug)]
pub struct Semiplanar<'a> {
    /// Luma rows.
    pub luma: &'a mut [u8],
    /// Rows of U and V, half as many as luma.
    pub chroma: &'a mut [u8],
    /// Bytes from one row to the next, in both planes.
    pub pitch: usize,
}

/// Why a picture was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// The picture is neither 4:2:0 nor luma alone.
    #[error("the picture is neither 4:2:0 nor luma alone")]
    Sampling,
    /// The destination's rows or planes are too short.
    #[error("the destination is smaller than the picture")]
    TooSmall,
}

/// Writes `picture` to `to`. What lies outside the coded area keeps its bytes.
///
/// # Errors
/// [`PackError`]; nothing has been written then.
pub fn pack(picture: &Picture, to: Semiplanar<'_>) -> Result<(), PackError> {
    let (sampling, depth) = picture.format().ok_or(PackError::Sampling)?;
    let luma = picture.plane(0).ok_or(PackError::Sampling)?;
    let chroma = match sampling {
        Chroma::None => None,
        Chroma::Half => Some((
            picture.plane(1).ok_or(PackError::Sampling)?,
            picture.plane(2).ok_or(PackError::Sampling)?,
        )),
        Chroma::HalfColumns | Chroma::Full => return Err(PackError::Sampling),
    };
    pack_planes(luma, chroma, depth, to)
}

/// Writes planes of `depth` bits a sample, chroma of half the columns and rows or none.
///
/// # Errors
/// [`PackError::TooSmall`]: the memory does not hold them, and nothing is written.
pub fn pack_planes(
    luma: PlaneView<'_>,
    chroma: Option<(PlaneView<'_>, PlaneView<'_>)>,
    depth: u32,
    to: Semiplanar<'_>,
) -> Result<(), PackError> {
    let bytes = if depth > 8 { 2 } else { 1 };
    let (columns, rows) = (luma.width.div_ceil(2), luma.height.div_ceil(2));
    let fits = |memory: &[u8], row: usize, rows: usize| {
        row <= to.pitch && memory.len() >= to.pitch * (rows - 1) + row
    };
    if luma.width == 0 || luma.height == 0 {
        return Err(PackError::TooSmall);
    }
    if !fits(to.luma, luma.width * bytes, luma.height)
        || !fits(to.chroma, columns * 2 * bytes, rows)
    {
        return Err(PackError::TooSmall);
    }
    // depth <= 16 for every format; P010 and P016 hold the value in the word's high bits.
    let shift = 16_u32.saturating_sub(depth);
    for (from, out) in rows_of(luma, bytes).zip(to.luma.chunks_mut(to.pitch)) {
        if bytes == 1 {
            out[..from.len()].copy_from_slice(from);
        } else {
            for (sample, word) in from.chunks_exact(2).zip(out.chunks_exact_mut(2)) {
                shift_word(sample, word, shift);
            }
        }
    }
    let out_rows = to.chroma.chunks_mut(to.pitch).take(rows);
    match chroma {
        None => {
            let neutral = 0x8000_u16.to_le_bytes();
            for out in out_rows {
                let out = &mut out[..columns * 2 * bytes];
                if bytes == 1 {
                    out.fill(0x80);
                } else {
                    out.chunks_exact_mut(2)
                        .for_each(|word| word.copy_from_slice(&neutral));
                }
            }
        }
        Some((u, v)) => {
            for ((u, v), out) in rows_of(u, bytes).zip(rows_of(v, bytes)).zip(out_rows) {
                if bytes == 1 {
                    for ((u, v), pair) in u.iter().zip(v).zip(out.chunks_exact_mut(2)) {
                        pair[0] = *u;
                        pair[1] = *v;
                    }
                } else {
                    let samples = u.chunks_exact(2).zip(v.chunks_exact(2));
                    for ((u, v), pair) in samples.zip(out.chunks_exact_mut(4)) {
                        let (first, second) = pair.split_at_mut(2);
                        shift_word(u, first, shift);
                        shift_word(v, second, shift);
                    }
                }
            }
        }
    }
    Ok(())
}

fn rows_of(plane: PlaneView<'_>, bytes: usize) -> impl Iterator<Item = &[u8]> {
    plane
        .data
        .chunks(plane.stride)
        .take(plane.height)
        .map(move |row| &row[..plane.width * bytes])
}

fn shift_word(from: &[u8], to: &mut [u8], shift: u32) {
    let value = u16::from_le_bytes([from[0], from[1]]);
    to.copy_from_slice(&(value << shift).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn view(data: &[u8], stride: usize, width: usize, height: usize) -> PlaneView<'_> {
        PlaneView {
            data,
            stride,
            width,
            height,
        }
    }

    #[test]
    fn ten_bit_values_lie_in_the_high_bits() {
        let luma: Vec<u8> = [0_u16, 1, 512, 1023]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        let (u, v) = (3_u16.to_le_bytes(), 1000_u16.to_le_bytes());
        let (mut y, mut uv) = ([0_u8; 16], [0_u8; 8]);
        let to = Semiplanar {
            luma: &mut y,
            chroma: &mut uv,
            pitch: 8,
        };
        let chroma = Some((view(&u, 2, 1, 1), view(&v, 2, 1, 1)));
        pack_planes(view(&luma, 4, 2, 2), chroma, 10, to).expect("it fits");
        let word = |bytes: &[u8], n: usize| u16::from_le_bytes([bytes[2 * n], bytes[2 * n + 1]]);
        assert_eq!([word(&y, 0), word(&y, 1)], [0, 1 << 6]);
        assert_eq!([word(&y, 4), word(&y, 5)], [512 << 6, 1023 << 6]);
        assert_eq!([word(&uv, 0), word(&uv, 1)], [3 << 6, 1000 << 6]);
    }

    #[test]
    fn luma_alone_gets_neutral_chroma() {
        let (mut y, mut uv) = ([0_u8; 9], [0_u8; 8]);
        let to = Semiplanar {
            luma: &mut y,
            chroma: &mut uv,
            pitch: 4,
        };
        // Three columns: the chroma row has two pairs.
        assert_eq!(pack_planes(view(&[7; 6], 3, 3, 2), None, 8, to), Ok(()));
        assert_eq!(y, [7, 7, 7, 0, 7, 7, 7, 0, 0]);
        assert_eq!(uv, [0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn every_sample_arrives_or_the_destination_is_refused(
            width in 1_usize..20, height in 1_usize..12, extra in 0_usize..5,
            pitch in 1_usize..40, luma_len in 0_usize..600, chroma_len in 0_usize..300,
        ) {
            let stride = width + extra;
            let (cw, ch) = (width.div_ceil(2), height.div_ceil(2));
            let luma: Vec<u8> = (0..stride * height).map(|n| n as u8).collect();
            let u: Vec<u8> = (0..(cw + extra) * ch).map(|n| (n * 3) as u8).collect();
            let v: Vec<u8> = (0..(cw + extra) * ch).map(|n| (n * 5 + 1) as u8).collect();
            let (mut y, mut uv) = (vec![0_u8; luma_len], vec![0_u8; chroma_len]);
            let to = Semiplanar { luma: &mut y, chroma: &mut uv, pitch };
            let planes = (view(&u, cw + extra, cw, ch), view(&v, cw + extra, cw, ch));
            let result = pack_planes(view(&luma, stride, width, height), Some(planes), 8, to);
            let fits = width <= pitch && 2 * cw <= pitch
                && luma_len >= pitch * (height - 1) + width
                && chroma_len >= pitch * (ch - 1) + 2 * cw;
            prop_assert_eq!(result.is_ok(), fits);
            if fits {
                for row in 0..height {
                    for column in 0..width {
                        prop_assert_eq!(y[row * pitch + column], luma[row * stride + column]);
                    }
                }
                for row in 0..ch {
                    for column in 0..cw {
                        let at = row * (cw + extra) + column;
                        prop_assert_eq!(uv[row * pitch + 2 * column], u[at]);
                        prop_assert_eq!(uv[row * pitch + 2 * column + 1], v[at]);
                    }
                }
            } else {
                prop_assert!(y.iter().chain(&uv).all(|byte| *byte == 0), "nothing is written");
            }
        }
    }
}
