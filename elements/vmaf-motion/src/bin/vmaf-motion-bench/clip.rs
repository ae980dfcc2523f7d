// SPDX-License-Identifier: MPL-2.0

//! What is measured: planes in memory, more than the caches hold.

use std::io::{ErrorKind, Read};
use std::path::Path;

use vmaf_motion::{Geometry, Plane, SampleFormat};

/// How a clip's content counts against the targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Uniform noise: nothing is fast about it.
    Noise,
    /// Waves that move, with grain.
    Smooth,
    /// One picture.
    Static,
    /// From a file.
    Video,
}

/// Planes of one geometry.
pub struct Clip {
    pub name: String,
    pub content: Content,
    pub geometry: Geometry,
    /// Planes without padding.
    pub planes: Vec<Vec<u8>>,
}

impl Clip {
    /// A made clip whose planes fill `bytes` bytes.
    pub fn made(name: &str, content: Content, geometry: Geometry, bytes: usize) -> Self {
        let plane_bytes = geometry.row_bytes() * geometry.height();
        let count = bytes.div_ceil(plane_bytes).max(3);
        let planes = (0..count).map(|t| made_plane(content, geometry, t));
        Self {
            name: format!("{name} {content:?}").to_lowercase(),
            content,
            geometry,
            planes: planes.collect(),
        }
    }

    /// The luma of at most `bytes` bytes of a raw 4:2:0 file, 8 bit or in the low bits of
    /// little-endian words.
    pub fn raw(path: &Path, geometry: Geometry, bytes: usize) -> std::io::Result<Self> {
        let mut file = std::io::BufReader::new(std::fs::File::open(path)?);
        let luma = geometry.row_bytes() * geometry.height();
        let [half_width, half_height] =
            [geometry.width(), geometry.height()].map(|n| n.div_ceil(2));
        let chroma = 2 * half_width * half_height * geometry.format().bytes();
        let mut planes = Vec::new();
        while planes.len() * luma < bytes {
            let mut frame = vec![0; luma + chroma];
            match file.read_exact(&mut frame) {
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
                read => read?,
            }
            frame.truncate(luma);
            planes.push(frame);
        }
        if planes.len() < 3 {
            let few = "fewer than three frames of that size";
            return Err(std::io::Error::new(ErrorKind::InvalidData, few));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self {
            name: name.into_owned(),
            content: Content::Video,
            geometry,
            planes,
        })
    }

    /// Plane `t`, seen as the kernels see it.
    pub fn plane(&self, t: usize) -> Plane<'_> {
        Plane::new(&self.planes[t], self.geometry.row_bytes(), self.geometry)
            .expect("a clip's planes have its geometry")
    }

    pub fn samples(&self) -> usize {
        self.geometry.width() * self.geometry.height()
    }
}

fn made_plane(content: Content, geometry: Geometry, t: usize) -> Vec<u8> {
    let format: SampleFormat = geometry.format();
    let (width, height) = (geometry.width(), geometry.height());
    let max = u32::from(format.max());
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ (t as u64 + 1).wrapping_mul(0xD129_0D3B_3B3B_5F1D);
    if content == Content::Static {
        state = 1;
    }
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    let wave = |v: usize, period: usize| (v % period).abs_diff(period / 2) * 512 / period;
    let mut bytes = Vec::with_capacity(geometry.row_bytes() * height);
    for y in 0..height {
        for x in 0..width {
            let sample = match content {
                Content::Smooth => {
                    let level = wave(x + 3 * t, 211) + wave(2 * y + t, 173) + 16;
                    (level as u32 * (max + 1) / 576 + random() % 5).min(max)
                }
                _ => random() & max,
            };
            match format.bytes() {
                1 => bytes.push(sample as u8),
                _ => bytes.extend((sample as u16).to_le_bytes()),
            }
        }
    }
    bytes
}
