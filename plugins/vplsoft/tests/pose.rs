// SPDX-License-Identifier: MPL-2.0

//! The hardware pose, and the applications that decode on nothing but hardware: FFmpeg's `*_qsv` over the
//! Media SDK dispatcher, GStreamer's qsv over its own.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

mod client;

use std::path::{Path, PathBuf};
use std::process::Command;

use client::stage::{command, library, made, md5_of, run, search_folder};
use test_streams::named;

const POSE: &str = "VPLSOFT_POSE";

/// Streams with their checksums: codec, file, MD5 of each picture. Rows are multiples of 4, so that
/// GStreamer writes them without padding.
fn streams() -> Vec<(&'static str, PathBuf, Vec<String>)> {
    let mut streams = Vec::new();
    for (codec, name) in [
        ("h264", "test-25fps.h264"),
        ("hevc", "bear.h265"),
        ("vp9", "test-25fps.vp9"),
    ] {
        let stream = named(name);
        let path = stream.path.to_str().expect("a plain path");
        streams.push((codec, stream.path.clone(), md5_of(path, "nv12")));
    }
    streams
}

/// What stands for a VA display, built for `LD_PRELOAD`.
fn fake_va(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_va.c");
    let built = folder.join("fake_va.so");
    let said = Command::new("cc")
        .args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
        ])
        .args([&built, &source])
        .arg("-ldl")
        .output()
        .expect("a C compiler (Debian: apt install gcc libc6-dev)");
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    built
}

#[test]
fn the_dispatcher_is_told_what_the_pose_says() {
    for (pose, parts) in [
        (
            "hardware",
            [
                "Impl: MFX_IMPL_TYPE_HARDWARE",
                "AccelerationMode: MFX_ACCEL_MODE_VIA_VAAPI",
            ],
        ),
        (
            "software",
            [
                "Impl: MFX_IMPL_TYPE_SOFTWARE",
                "AccelerationMode: MFX_ACCEL_MODE_NA",
            ],
        ),
        (
            "nonsense",
            [
                "Impl: MFX_IMPL_TYPE_SOFTWARE",
                "AccelerationMode: MFX_ACCEL_MODE_NA",
            ],
        ),
    ] {
        let folder = search_folder();
        let mut tool = command("vpl-inspect", folder.path(), "");
        tool.env(POSE, pose);
        let said = run(tool, 60);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        for part in parts.into_iter().chain(["ImplName: vplsoft"]) {
            assert!(
                said.stdout.contains(part),
                "{pose}: {part} is missing:\n{}",
                said.stdout
            );
        }
        assert_eq!(
            said.stderr.contains("VPLSOFT_POSE=nonsense"),
            pose == "nonsense",
            "{}",
            said.stderr
        );
    }
}

#[test]
fn ffmpegs_qsv_decoders_write_the_pictures_of_software() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The Media SDK dispatcher looks for this name, along the library path.
    std::fs::copy(library(), folder.path().join("libmfx-gen.so.1.2"))
        .expect("the runtime is copied");
    let va = fake_va(folder.path());
    let mut streams = streams();
    let (bytes, sums) = made(
        &[
            "-c:v", "libx264", "-bf", "2", "-g", "6", "-pix_fmt", "yuv420p",
        ],
        "h264",
        "nv12",
    );
    let file = folder.path().join("made.h264");
    std::fs::write(&file, bytes).expect("a stream is written");
    streams.push(("h264", file, sums));
    for (codec, file, expected) in streams {
        let mut ffmpeg = command("ffmpeg", folder.path(), "");
        ffmpeg
            .env("LD_LIBRARY_PATH", folder.path())
            .env("LD_PRELOAD", &va)
            .env(POSE, "hardware")
            .args([
                "-v",
                "error",
                "-nostdin",
                "-c:v",
                &format!("{codec}_qsv"),
                "-i",
            ])
            .arg(&file)
            .args([
                "-fps_mode",
                "passthrough",
                "-noautoscale",
                "-pix_fmt",
                "nv12",
            ])
            .args(["-f", "framehash", "-hash", "md5", "-"]);
        let said = run(ffmpeg, 120);
        assert_eq!(said.code, Some(0), "{codec}: {}", said.stderr);
        let sums: Vec<_> = said
            .stdout
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit(',').next())
            .map(str::trim)
            .collect();
        assert_eq!(sums, expected, "{codec}: {}", said.stderr);
    }
}

/// A render node of Intel as udev shows it.
const RENDER_NODE: &str = "\
P: /devices/pci0000:00/0000:00:02.0
E: DRIVER=i915
E: PCI_ID=8086:9A49
E: SUBSYSTEM=pci
A: vendor=0x8086
A: device=0x9a49

P: /devices/pci0000:00/0000:00:02.0/drm/renderD128
N: dri/renderD128
E: DEVNAME=/dev/dri/renderD128
E: DEVTYPE=drm_minor
E: SUBSYSTEM=drm
E: MAJOR=226
E: MINOR=128
A: dev=226:128
";

#[test]
fn gstreamers_qsv_decoders_write_the_pictures_of_software() {
    let folder = search_folder();
    let va = fake_va(folder.path());
    let node = folder.path().join("node.umockdev");
    std::fs::write(&node, RENDER_NODE).expect("the description is written");
    // Only what the pipeline needs is loaded: GStreamer's va plugin would want a whole driver.
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins).expect("a folder is made");
    let system = Command::new("pkg-config")
        .args(["--variable=pluginsdir", "gstreamer-1.0"])
        .output()
        .expect("pkg-config runs");
    let system = PathBuf::from(String::from_utf8_lossy(&system.stdout).trim());
    for plugin in ["coreelements", "videoparsersbad", "matroska", "qsv"] {
        let name = format!("libgst{plugin}.so");
        std::fs::copy(system.join(&name), plugins.join(&name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (codec, file, expected) in streams() {
        let (parser, decoder) = match codec {
            "h264" => ("h264parse", "qsvh264dec"),
            "hevc" => ("h265parse", "qsvh265dec"),
            _ => continue, // the stream is an IVF file, which nothing in these plugins reads
        };
        let written = folder.path().join(format!("{codec}.nv12"));
        let mut launch = command("umockdev-run", folder.path(), "");
        launch
            .env("GST_REGISTRY", folder.path().join("registry.bin"))
            .env("GST_PLUGIN_SYSTEM_PATH_1_0", "")
            .env("GST_PLUGIN_PATH_1_0", &plugins)
            .env(POSE, "hardware:128")
            .arg("-d")
            .arg(&node)
            // umockdev has its own LD_PRELOAD, and the display must come before it.
            .args(["--", "sh", "-c"])
            .arg("export LD_PRELOAD=\"$0:$LD_PRELOAD\"; exec \"$@\"")
            .arg(&va)
            .args(["gst-launch-1.0", "-q", "filesrc"])
            .arg(format!("location={}", file.display()))
            .args([
                "!",
                parser,
                "!",
                decoder,
                "!",
                "video/x-raw,format=NV12",
                "!",
                "filesink",
            ])
            .arg(format!("location={}", written.display()));
        let said = run(launch, 120);
        assert_eq!(
            said.code,
            Some(0),
            "{codec}: {}{}",
            said.stdout,
            said.stderr
        );
        let bytes = std::fs::read(&written).expect("pictures were written");
        assert!(
            bytes.len().is_multiple_of(expected.len()),
            "{codec}: {}",
            bytes.len()
        );
        let sums: Vec<_> = bytes
            .chunks(bytes.len() / expected.len())
            .map(|picture| format!("{:x}", md5::compute(picture)))
            .collect();
        assert_eq!(sums, expected, "{codec}");
    }
}
