// SPDX-License-Identifier: MPL-2.0

//! Clients that others wrote: Debian's FFmpeg and GStreamer decode with NVDEC on the stand-ins, unchanged, and
//! give what they give in software. They run strict: a mistake would end them.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::{World, clips, world};
use tempfile::TempDir;

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs a program that has to succeed, on the stand-ins or without them.
fn run(command: &mut Command, world: Option<&World>) -> Output {
    command.env_remove("LD_LIBRARY_PATH");
    if let Some(world) = world {
        command
            .env("LD_LIBRARY_PATH", world.folder())
            .env("NVSTANDIN_STRICT", "1");
    }
    let output = command
        .output()
        .expect("the program (Debian: apt install ffmpeg gstreamer1.0-tools)");
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    output
}

/// One line a frame: its time where the clip has times, its size and MD5.
fn frames(clip: &Path, format: &str, decoder: &[&str], world: Option<&World>) -> Vec<String> {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-v", "error"])
        .args(decoder)
        .arg("-i")
        .arg(clip)
        .args(["-fps_mode", "passthrough", "-pix_fmt", format])
        .args(["-f", "framemd5", "-"]);
    let output = run(&mut command, world);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    // A byte stream has no times, and what FFmpeg makes up depends on how it decodes.
    let untimed = clip
        .extension()
        .is_some_and(|name| name == "h264" || name == "h265");
    let checked = |line: &str| match untimed {
        true => line.rsplit(',').take(2).collect(),
        false => line.to_owned(),
    };
    lines.map(checked).collect()
}

/// FFmpeg's `decoder` against its software.
fn ffmpeg(clip: &Path, decoder: &str, format: &str) {
    let world = world();
    let expected = frames(clip, format, &[], None);
    assert!(expected.len() > 5, "{}", clip.display());
    let name = clip.display();
    // Its display delay is 4, and 0 with the flag.
    for flags in ["-low_delay", "+low_delay"] {
        let options = ["-c:v", decoder, "-flags", flags];
        let decoded = frames(clip, format, &options, Some(&world));
        assert_eq!(decoded.len(), expected.len(), "{decoder} {flags}: {name}");
        for (number, (decoded, expected)) in decoded.iter().zip(&expected).enumerate() {
            assert_eq!(
                decoded, expected,
                "{decoder} {flags}: {name}, frame {number}"
            );
        }
    }
}

fn named(name: &str) -> PathBuf {
    test_streams::named(name).path
}

/// A clip that ffmpeg makes from a pattern of one second.
fn made(how: &str, file: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let how = format!("-f lavfi -i testsrc2=s=320x180:r=25:d=1 {how}");
    let path = clips::make(folder.path(), &how, file);
    (folder, path)
}

#[test]
fn ffmpeg_h264_cuvid() {
    ffmpeg(&named("test-25fps.h264"), "h264_cuvid", "nv12");
    ffmpeg(&named("test-25fps-interlaced.h264"), "h264_cuvid", "nv12");
    let (_folder, path) = made("-c:v libx264 -bf 3", "b.mp4");
    ffmpeg(&path, "h264_cuvid", "nv12");
}

#[test]
fn ffmpeg_hevc_cuvid_in_8_and_10_bits() {
    ffmpeg(&named("bear.h265"), "hevc_cuvid", "nv12");
    let quiet = "-c:v libx265 -x265-params log-level=none";
    let (_folder, path) = made(&format!("-pix_fmt yuv420p10le {quiet}"), "deep.mp4");
    ffmpeg(&path, "hevc_cuvid", "p010le");
}

#[test]
fn ffmpeg_vp9_cuvid_with_hidden_frames() {
    ffmpeg(&named("test-25fps.vp9"), "vp9_cuvid", "nv12");
    ffmpeg(
        &named("vp90-2-10-show-existing-frame.vp9.ivf"),
        "vp9_cuvid",
        "nv12",
    );
    let how = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -auto-alt-ref 1 -lag-in-frames 16";
    let (_folder, path) = made(how, "hidden.webm");
    ffmpeg(&path, "vp9_cuvid", "nv12");
}

#[test]
fn ffmpeg_vp8_cuvid() {
    ffmpeg(&named("test-25fps.vp8"), "vp8_cuvid", "nv12");
}

#[test]
fn ffmpeg_mpeg2_cuvid() {
    let (_folder, path) = made("-c:v mpeg2video -bf 2", "b.ts");
    ffmpeg(&path, "mpeg2_cuvid", "nv12");
}

#[test]
fn ffmpeg_av1_cuvid_with_film_grain() {
    ffmpeg(&named("test-25fps.ivf.av1"), "av1_cuvid", "nv12");
    let (_folder, path) = made(
        "-c:v libsvtav1 -preset 12 -svtav1-params film-grain=20",
        "grain.mp4",
    );
    ffmpeg(&path, "av1_cuvid", "nv12");
}

#[test]
fn without_the_stand_ins_ffmpeg_finds_no_decoder() {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-c:v", "h264_cuvid", "-i"])
        .arg(named("64x64-I.h264"))
        .args(["-f", "null", "-"])
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .expect("ffmpeg (Debian: apt install ffmpeg)");
    // A machine with a driver decodes it, which proves as much: the stand-ins are found by nobody else.
    if !output.status.success() {
        assert!(
            said(&output).contains("Cannot load lib"),
            "{}",
            said(&output)
        );
    }
}

/// GStreamer's list of elements, with those of a machine that has NVIDIA's libraries or without.
fn registry(with_nvidia: bool) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a temporary folder"));
    folder
        .path()
        .join(if with_nvidia { "nvidia" } else { "plain" })
}

/// The MD5 of every picture as I420 or I420_10LE, and how many bytes they are.
fn pipeline(clip: &Path, elements: &str, format: &str, world: Option<&World>) -> (String, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let raw = folder.path().join("raw");
    let mut command = Command::new("gst-launch-1.0");
    command
        .arg("-q")
        .args(["filesrc", &format!("location={}", clip.display()), "!"])
        .args(elements.split_whitespace())
        .args(["!", "videoconvert", "dither=none", "!"])
        .arg(format!("video/x-raw,format={format}"))
        .args(["!", "filesink", &format!("location={}", raw.display())])
        .env("GST_REGISTRY", registry(world.is_some()))
        .env("XDG_RUNTIME_DIR", folder.path())
        .env_remove("GST_PLUGIN_PATH");
    run(&mut command, world);
    let bytes = std::fs::read(raw).expect("it was written");
    (format!("{:x}", md5::compute(&bytes)), bytes.len() as u64)
}

/// GStreamer's `hardware` elements against its software.
fn gstreamer(clip: &Path, parse: &str, hardware: &[&str], software: &str, format: &str) {
    let world = world();
    let expected = pipeline(clip, &format!("{parse} ! {software}"), format, None);
    assert!(expected.1 > 0);
    for hardware in hardware {
        let decoded = pipeline(clip, &format!("{parse} ! {hardware}"), format, Some(&world));
        assert_eq!(decoded, expected, "{hardware}: {}", clip.display());
    }
}

const DOWNLOADED: &str = "nvh264dec ! video/x-raw(memory:CUDAMemory) ! cudadownload";

#[test]
fn gstreamer_nvh264dec_in_system_and_cuda_memory() {
    if !standin_world::gstreamer_is_1_22() {
        return;
    }
    let decoders = ["nvh264dec ! video/x-raw", DOWNLOADED];
    for name in ["test-25fps.h264", "test-25fps-interlaced.h264"] {
        gstreamer(&named(name), "h264parse", &decoders, "avdec_h264", "I420");
    }
    let (_folder, path) = made("-c:v libx264 -bf 3", "b.mp4");
    gstreamer(
        &path,
        "qtdemux ! h264parse",
        &decoders,
        "avdec_h264",
        "I420",
    );
}

#[test]
fn gstreamer_nvh265dec_in_8_and_10_bits() {
    if !standin_world::gstreamer_is_1_22() {
        return;
    }
    let decoders = ["nvh265dec ! video/x-raw"];
    gstreamer(
        &named("bear.h265"),
        "h265parse",
        &decoders,
        "avdec_h265",
        "I420",
    );
    let quiet = "-c:v libx265 -x265-params log-level=none";
    let (_folder, path) = made(&format!("-pix_fmt yuv420p10le {quiet}"), "deep.h265");
    gstreamer(&path, "h265parse", &decoders, "avdec_h265", "I420_10LE");
}

#[test]
fn gstreamer_nvvp9dec_and_nvvp8dec() {
    if !standin_world::gstreamer_is_1_22() {
        return;
    }
    for name in ["test-25fps.vp9", "vp90-2-10-show-existing-frame.vp9.ivf"] {
        let decoders = ["nvvp9dec ! video/x-raw"];
        gstreamer(
            &named(name),
            "ivfparse ! vp9parse",
            &decoders,
            "avdec_vp9",
            "I420",
        );
    }
    let decoders = ["nvvp8dec ! video/x-raw"];
    gstreamer(
        &named("test-25fps.vp8"),
        "ivfparse",
        &decoders,
        "avdec_vp8",
        "I420",
    );
}

#[test]
fn gstreamer_nvmpeg2videodec() {
    let (_folder, path) = made("-c:v mpeg2video -bf 2", "b.m2v");
    let decoders = ["nvmpeg2videodec ! video/x-raw"];
    gstreamer(
        &path,
        "mpegvideoparse",
        &decoders,
        "avdec_mpeg2video",
        "I420",
    );
}
