// SPDX-License-Identifier: MPL-2.0

//! Streams made by FFmpeg's encoders (Debian: package `ffmpeg`), and what its software decoders make of them.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A stream in a file.
#[derive(Debug)]
pub struct Made {
    folder: TempDir,
    name: String,
}

impl Made {
    /// The file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("the stream was made")
    }

    /// MD5 of each picture in that pixel format, decoded in software: `nv12`, `p010le`, `yuv444p`.
    pub fn expected(&self, pixels: &str) -> Vec<String> {
        let output = ffmpeg()
            .arg("-i")
            .arg(self.path())
            .args([
                "-fps_mode",
                "passthrough",
                "-noautoscale",
                "-pix_fmt",
                pixels,
            ])
            .args(["-f", "framemd5", "-"])
            .output()
            .expect("ffmpeg runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said.lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit(',').next())
            .map(|sum| sum.trim().to_owned())
            .collect()
    }
}

/// Made from others, one after another: a change of size or format within a stream.
pub fn join(parts: &[&Made]) -> Made {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = format!("joined-{}", parts[0].name);
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes()).collect();
    std::fs::write(folder.path().join(&name), bytes).expect("a file is written");
    Made { folder, name }
}

fn ffmpeg() -> Command {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-hide_banner", "-loglevel", "error", "-nostdin"])
        .env_remove("LD_LIBRARY_PATH");
    command
}

/// Encodes a moving test picture of `size` (such as `320x240`) into `frames` frames at 25 a second, with the
/// arguments of FFmpeg that name and set the encoder. `name` ends with the format's extension.
pub fn make(name: &str, size: &str, frames: u32, encoder: &[&str]) -> Made {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = format!("testsrc2=size={size}:rate=25");
    let output = ffmpeg()
        .args([
            "-f",
            "lavfi",
            "-i",
            &source,
            "-frames:v",
            &frames.to_string(),
        ])
        .args(encoder)
        // The same bytes on every machine with these encoders.
        .args([
            "-threads",
            "1",
            "-flags",
            "+bitexact",
            "-fflags",
            "+bitexact",
        ])
        .arg(folder.path().join(name))
        .output()
        .expect("ffmpeg runs (Debian: apt install ffmpeg)");
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Made {
        folder,
        name: name.to_owned(),
    }
}

/// H.264 with the key `x264-params`.
pub fn h264(size: &str, frames: u32, params: &str) -> Made {
    let encoder = [
        "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p",
    ];
    let params = format!("threads=1:{params}");
    make(
        "made.h264",
        size,
        frames,
        &[&encoder[..], &["-x264-params", &params]].concat(),
    )
}

/// H.265 with 10 bit.
pub fn h265_main10(size: &str, frames: u32) -> Made {
    let encoder = [
        "-c:v",
        "libx265",
        "-pix_fmt",
        "yuv420p10le",
        "-x265-params",
        "log-level=1:pools=1",
    ];
    make("made.h265", size, frames, &encoder)
}

/// VP9 with frames that are not shown.
pub fn vp9_hidden(size: &str, frames: u32) -> Made {
    let encoder = [
        "-c:v",
        "libvpx-vp9",
        "-auto-alt-ref",
        "1",
        "-lag-in-frames",
        "25",
        "-b:v",
        "200k",
        "-g",
        "60",
        "-speed",
        "4",
    ];
    make("made.ivf", size, frames, &encoder)
}

/// MPEG-2 with B-frames and further arguments of FFmpeg.
pub fn mpeg2(size: &str, frames: u32, arguments: &[&str]) -> Made {
    let encoder = [
        &["-c:v", "mpeg2video", "-bf", "2", "-g", "12"][..],
        arguments,
    ]
    .concat();
    make("made.m2v", size, frames, &encoder)
}
