// SPDX-License-Identifier: MPL-2.0

//! The clips of the goldens, made anew from their formulas (`tests/data/goldens/README.md`).

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Seed-free integer hash of a sample's place.
fn hash(x: u32, y: u32, t: u32, c: u32) -> u32 {
    let mut h = x
        .wrapping_mul(0x9E37_79B1)
        .wrapping_add(y.wrapping_mul(0x85EB_CA77))
        .wrapping_add(t.wrapping_mul(0xC2B2_AE3D))
        .wrapping_add(c.wrapping_mul(0x27D4_EB2F));
    h ^= h >> 15;
    h = h.wrapping_mul(0x2C1B_3C6D);
    h ^= h >> 12;
    h = h.wrapping_mul(0x297A_2D39);
    h ^ (h >> 15)
}

/// A diagonal texture that shifts from frame to frame.
fn tex(x: u32, y: u32, t: u32, c: u32) -> u32 {
    let sx = x + (5 * t * t + 3 * t) % 23;
    let slope = 7 * sx + 13 * y + (sx.wrapping_mul(y) >> 3);
    slope.wrapping_mul(257).wrapping_add(c * 4099) & 65_535
}

/// Escape counts of a zoom into the Mandelbrot set, in fixed point.
fn mandel(x: u32, y: u32, t: u32, c: u32, width: u32) -> u32 {
    let [x, y, t, width] = [x, y, t, width].map(i64::from);
    let scale = 24_576 - 400 * t;
    let cr = -16_384 + x * scale / width + 120 * t;
    let ci = -8_192 + y * scale / width + 60 * t;
    let (mut zr, mut zi, mut n) = (0i64, 0i64, 0);
    while n < 48 {
        let (r2, i2) = ((zr * zr) >> 13, (zi * zi) >> 13);
        if r2 + i2 > 32_768 {
            break;
        }
        (zr, zi) = (r2 - i2 + cr, ((zr * zi) >> 12) + ci);
        n += 1;
    }
    (1337 * n + 99 * c) & 65_535
}

/// A golden's clip: everything that its samples depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clip {
    /// Name of the formula.
    pub formula: String,
    /// Luma width in samples.
    pub w: u32,
    /// Luma height in samples.
    pub h: u32,
    /// Bits of a sample: 8 means bytes, more means little-endian words.
    pub depth: u32,
    /// 400, 420, 422 or 444.
    pub subsampling: u32,
    /// Number of frames.
    pub frames: u32,
}

impl Clip {
    /// The clip of a golden file; `None` for clips that a tool made.
    pub fn of_golden(golden: &Value) -> Option<Self> {
        let number = |key: &str| {
            let number = golden[key].as_u64();
            number.unwrap_or_else(|| panic!("golden without {key}")) as u32
        };
        Some(Self {
            formula: golden.get("formula")?.as_str()?.to_owned(),
            w: number("w"),
            h: number("h"),
            depth: number("bitdepth"),
            subsampling: number("subsampling"),
            frames: number("n_frames"),
        })
    }

    /// Width and height of plane `c` in samples, chroma rounded down as libvmaf has it.
    pub fn plane_size(&self, c: u32) -> (u32, u32) {
        match (c, self.subsampling) {
            (0, _) | (_, 444) => (self.w, self.h),
            (_, 422) => (self.w / 2, self.h),
            (_, 420) => (self.w / 2, self.h / 2),
            (_, other) => panic!("no chroma in a {other} clip"),
        }
    }

    /// One sample, at most `depth` bits.
    pub fn sample(&self, x: u32, y: u32, t: u32, c: u32) -> u16 {
        let down = 16 - self.depth;
        let value = match self.formula.as_str() {
            "noise" => hash(x, y, t, c) >> 16,
            "grad" => (700 * x + 300 * y + 1100 * t + 9000 * c) & 65_535,
            "tex" => tex(x, y, t, c),
            "box" => {
                let (bx, by) = (5 * t % self.w, 3 * t % self.h);
                let inside = (x + self.w - bx) % self.w < self.w / 4 + 1
                    && (y + self.h - by) % self.h < self.h / 4 + 1;
                if inside {
                    60_000
                } else {
                    4096 + 512 * c + 16 * ((x ^ y) & 15)
                }
            }
            "static" => tex(x, y, 0, c),
            "flash" => 65_535 * (t & 1),
            "cut" => {
                let (s, u) = (t / 4, t % 4);
                let slope = (x + u) * (37 + 10 * s) + y * (11 + 6 * s);
                (slope * 64 + 12_345 * s + 777 * c) & 65_535
            }
            "dup" => tex(x, y, t / 2, c),
            "ramp" => (1311 * t + 97 * ((x + y) & 1)).min(65_535),
            "plasma" => {
                let wave = 3 * x * x + 5 * y * y + x * y + 4 * t * (11 * x + 17 * y) + 321 * c;
                (wave << 2) & 65_535
            }
            "lsb" => return ((tex(x, y, 0, c) >> down) ^ (hash(x, y, t, c) & 1)) as u16,
            "mandel" => mandel(x, y, t, c, self.w),
            other => panic!("no formula named {other}"),
        };
        (value >> down) as u16
    }

    /// The bytes of plane `c` of frame `t`, rows without padding: `u8` samples at 8 bit, else
    /// little-endian `u16` with the sample in the low bits.
    pub fn plane(&self, t: u32, c: u32) -> Vec<u8> {
        let (width, height) = self.plane_size(c);
        let samples = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let mut bytes = Vec::with_capacity((width * height * 2) as usize);
        for (x, y) in samples {
            let sample = self.sample(x, y, t, c);
            match self.depth {
                8 => bytes.push(sample as u8),
                _ => bytes.extend(sample.to_le_bytes()),
            }
        }
        bytes
    }

    /// The luma planes of all frames, checked against the golden's CRC.
    pub fn luma(&self, golden: &Value) -> Vec<Vec<u8>> {
        let planes: Vec<Vec<u8>> = (0..self.frames).map(|t| self.plane(t, 0)).collect();
        let mut crc = crc32fast::Hasher::new();
        for plane in &planes {
            crc.update(plane);
        }
        assert_eq!(
            format!("{:08x}", crc.finalize()),
            golden["luma_crc32"].as_str().expect("golden without CRC"),
            "clip {} regenerates to other samples",
            golden["id"]
        );
        planes
    }
}

/// The folder of the goldens.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/goldens")
}

/// All golden files, read, in the order of their names.
pub fn goldens() -> Vec<Value> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder of goldens")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    paths.sort();
    let read = |path: PathBuf| -> Value {
        let text = std::fs::read_to_string(&path).expect("a readable golden");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    paths.into_iter().map(read).collect()
}
