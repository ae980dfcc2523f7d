// SPDX-License-Identifier: MPL-2.0

//! Streams: those of `test-streams`, and some that Debian's ffmpeg makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use elementary_stream::{Codec, Reader, Step};
use nvcuvid_sys::*;
use test_streams::{Coding, Stream, ivf_frames};

/// A stream in pieces: access units, frames or temporal units.
#[derive(Clone, Debug)]
pub struct Clip {
    pub codec: cudaVideoCodec,
    pub units: Vec<Vec<u8>>,
}

impl Clip {
    pub fn of(stream: &Stream) -> Self {
        let codec = match stream.coding {
            Coding::H264 => Codec::H264,
            Coding::H265 => Codec::H265,
            Coding::Vp8 => Codec::Vp8,
            Coding::Vp9 => Codec::Vp9,
            Coding::Av1 => Codec::Av1,
        };
        match stream.ivf_frames() {
            Some(units) => Self {
                codec: number(codec),
                units,
            },
            None => Self::byte_stream(codec, &stream.bytes()),
        }
    }

    pub fn named(name: &str) -> Self {
        Self::of(&test_streams::named(name))
    }

    /// Cuts a stream with start codes.
    pub fn byte_stream(codec: Codec, bytes: &[u8]) -> Self {
        let mut reader = Reader::new(codec);
        let mut rest = bytes;
        let mut units = Vec::new();
        loop {
            match reader.step(rest, true) {
                Step::Sequence(sequence) => reader.accept(sequence),
                Step::Unit { taken, data, .. } => {
                    rest = &rest[taken..];
                    units.push(data);
                }
                Step::More { taken } => {
                    assert_eq!(taken, rest.len());
                    break;
                }
            }
        }
        Self {
            codec: number(codec),
            units,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.units.concat()
    }
}

fn number(codec: Codec) -> cudaVideoCodec {
    match codec {
        Codec::H264 => cudaVideoCodec_H264,
        Codec::H265 => cudaVideoCodec_HEVC,
        Codec::Vp8 => cudaVideoCodec_VP8,
        Codec::Vp9 => cudaVideoCodec_VP9,
        Codec::Av1 => cudaVideoCodec_AV1,
        Codec::Mpeg2 => cudaVideoCodec_MPEG2,
        Codec::Mjpeg => cudaVideoCodec_JPEG,
    }
}

/// What Debian's ffmpeg writes, in software.
fn ffmpeg(command: &mut Command) -> Vec<u8> {
    let output = command.env_remove("LD_LIBRARY_PATH").output();
    let output = output.expect("ffmpeg (Debian: apt install ffmpeg)");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    output.stdout
}

/// Makes `file` with ffmpeg's arguments, which are separated by spaces.
pub fn make(folder: &Path, arguments: &str, file: &str) -> PathBuf {
    let path = folder.join(file);
    let words = arguments.split_whitespace();
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y"]).args(words).arg(&path);
    ffmpeg(command.current_dir(folder));
    path
}

/// A clip in IVF that was made with [`make`].
pub fn ivf(codec: cudaVideoCodec, path: &Path) -> Clip {
    let file = std::fs::read(path).expect("the file was made");
    Clip {
        codec,
        units: ivf_frames(&file),
    }
}

/// Each picture of a file as NV12 or P010, decoded in software.
pub fn in_software(path: &Path, format: &str, picture_size: usize) -> Vec<Vec<u8>> {
    let raw = ["-pix_fmt", format, "-f", "rawvideo", "-"];
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-i"]).arg(path);
    command.args(["-fps_mode", "passthrough"]).args(raw);
    let bytes = ffmpeg(&mut command);
    assert_eq!(bytes.len() % picture_size, 0);
    bytes.chunks(picture_size).map(<[u8]>::to_vec).collect()
}
