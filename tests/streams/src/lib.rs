// SPDX-License-Identifier: MPL-2.0

//! Coded streams with a checksum for each picture.
//!
//! They come with the source package of `cros-codecs`, which Cargo has fetched because this crate depends on
//! it; `cargo metadata` tells where. Beside a stream lie `.md5` (MD5 of each picture as NV12, cropped),
//! `.crc` (CRC-32 of the same), or `.json` (MD5 of each picture as I420).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

// The dependency is there for its package; this line makes it a used one.
use cros_codecs as _;

/// What a stream is coded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// H.264 byte stream.
    H264,
    /// H.265 byte stream.
    H265,
    /// VP8 in IVF.
    Vp8,
    /// VP9 in IVF.
    Vp9,
    /// AV1 in IVF.
    Av1,
}

/// How the expected checksums of a stream are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// MD5 of each picture as NV12.
    Md5(Vec<String>),
    /// CRC-32 of each picture as NV12.
    Crc(Vec<String>),
}

impl Expected {
    /// Pictures in the stream.
    pub fn len(&self) -> usize {
        match self {
            Expected::Md5(list) | Expected::Crc(list) => list.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The checksum of one picture, cropped NV12, in the notation of this list.
    pub fn checksum(&self, nv12: &[u8]) -> String {
        match self {
            Expected::Md5(_) => format!("{:x}", md5::compute(nv12)),
            Expected::Crc(_) => format!("{:08x}", crc32fast::hash(nv12)),
        }
    }

    /// Whether the list holds for pictures of that width. The one stream that changes its size was summed
    /// with rows that a decoder had padded, and its package compares none of those; where a width is
    /// a multiple of 4 there is no padding.
    pub fn covers(&self, width: usize) -> bool {
        width.is_multiple_of(4)
    }

    /// The expected checksums.
    pub fn list(&self) -> &[String] {
        match self {
            Expected::Md5(list) | Expected::Crc(list) => list,
        }
    }
}

/// One stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its file name.
    pub name: &'static str,
    /// Its coding.
    pub coding: Coding,
    /// The file.
    pub path: PathBuf,
    /// Columns and rows of its first picture as shown.
    pub size: (usize, usize),
}

/// Every stream with checksums: folder, name, coding, size.
const STREAMS: [(&str, &str, Coding, (usize, usize)); 17] = [
    ("h264", "64x64-I.h264", Coding::H264, (64, 64)),
    ("h264", "64x64-I-P.h264", Coding::H264, (64, 64)),
    ("h264", "64x64-I-P-B-P.h264", Coding::H264, (64, 64)),
    ("h264", "64x64-I-P-B-P-high.h264", Coding::H264, (64, 64)),
    ("h264", "test-25fps.h264", Coding::H264, (320, 240)),
    (
        "h264",
        "test-25fps-interlaced.h264",
        Coding::H264,
        (320, 240),
    ),
    ("h265", "64x64-I.h265", Coding::H265, (64, 64)),
    ("h265", "64x64-I-P.h265", Coding::H265, (64, 64)),
    ("h265", "64x64-I-P-B-P.h265", Coding::H265, (64, 64)),
    ("h265", "bbb.h265", Coding::H265, (176, 144)),
    ("h265", "bear.h265", Coding::H265, (320, 180)),
    ("h265", "test-25fps.h265", Coding::H265, (320, 240)),
    ("vp8", "test-25fps.vp8", Coding::Vp8, (320, 240)),
    ("vp9", "test-25fps.vp9", Coding::Vp9, (320, 240)),
    (
        "vp9",
        "resolution_change_500frames-vp9.ivf",
        Coding::Vp9,
        (640, 360),
    ),
    (
        "vp9",
        "vp90-2-10-show-existing-frame.vp9.ivf",
        Coding::Vp9,
        (352, 288),
    ),
    (
        "vp9",
        "vp90-2-10-show-existing-frame2.vp9.ivf",
        Coding::Vp9,
        (352, 288),
    ),
];
const AV1: (&str, &str, Coding, (usize, usize)) =
    ("av1", "test-25fps.ivf.av1", Coding::Av1, (320, 240));

/// Every stream.
pub fn all() -> Vec<Stream> {
    let folder = package().join("src/codec");
    STREAMS
        .into_iter()
        .chain([AV1])
        .map(|(codec, name, coding, size)| Stream {
            name,
            coding,
            path: folder.join(codec).join("test_data").join(name),
            size,
        })
        .collect()
}

/// The stream of that file name.
pub fn named(name: &str) -> Stream {
    all()
        .into_iter()
        .find(|stream| stream.name == name)
        .unwrap_or_else(|| panic!("no stream is called {name}"))
}

impl Stream {
    /// The file's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        read(&self.path)
    }

    /// The frames of an IVF file; `None` for a byte stream.
    pub fn ivf_frames(&self) -> Option<Vec<Vec<u8>>> {
        match self.coding {
            Coding::H264 | Coding::H265 => None,
            Coding::Vp8 | Coding::Vp9 | Coding::Av1 => Some(ivf_frames(&self.bytes())),
        }
    }

    /// The checksums of its pictures: MD5 where there is one a picture, else CRC-32.
    pub fn expected(&self) -> Expected {
        let beside = |suffix: &str| PathBuf::from(format!("{}.{suffix}", self.path.display()));
        let lines = |path: &Path| -> Vec<String> {
            String::from_utf8(read(path))
                .expect("a list of checksums is text")
                .split_whitespace()
                .map(str::to_owned)
                .collect()
        };
        let crc = lines(&beside("crc"));
        let md5 = lines(&beside("md5"));
        // One MD5 list covers less than its stream.
        if md5.len() == crc.len() {
            Expected::Md5(md5)
        } else {
            Expected::Crc(crc)
        }
    }
}

/// Takes an IVF file apart.
pub fn ivf_frames(file: &[u8]) -> Vec<Vec<u8>> {
    assert_eq!(
        file.get(..4),
        Some(&b"DKIF"[..]),
        "an IVF file begins with DKIF"
    );
    let mut at = usize::from(u16::from_le_bytes([file[6], file[7]]));
    let mut frames = Vec::new();
    while at + 12 <= file.len() {
        let size =
            u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]) as usize;
        frames.push(file[at + 12..at + 12 + size].to_vec());
        at += 12 + size;
    }
    frames
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Where Cargo keeps the package of cros-codecs.
fn package() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked"])
            .arg("--filter-platform")
            .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(
            output.status.success(),
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let metadata: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON");
        let manifest = metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| package["name"] == "cros-codecs")
            .and_then(|package| package["manifest_path"].as_str())
            .expect("cros-codecs is a dependency of this crate");
        Path::new(manifest)
            .parent()
            .expect("a manifest lies in a folder")
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_and_its_checksums_are_there() {
        for stream in all() {
            assert!(!stream.bytes().is_empty(), "{}", stream.name);
            assert!(!stream.expected().is_empty(), "{}", stream.name);
        }
        assert_eq!(
            named("resolution_change_500frames-vp9.ivf")
                .expected()
                .len(),
            500
        );
    }
}
