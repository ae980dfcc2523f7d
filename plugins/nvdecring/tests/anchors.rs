// SPDX-License-Identifier: MPL-2.0

//! The same faults for the decoders that are there already, on the same stand-ins: GStreamer's `nvh264dec` and
//! FFmpeg's `h264_cuvid`. What they lose, this element does not.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{Bench, Outcome};
use standin_world::child::{finish_within, in_child_of};
use standin_world::streams::{h264, join};
use standin_world::{Made, World, gstreamer_is_1_22, set_faults};

const FRAMES: usize = 120;

fn stream() -> Made {
    h264("96x64", FRAMES as u32, "bframes=0:keyint=30:scenecut=0")
}

fn ours(path: &Path, faults: &str) -> Outcome {
    set_faults(Some(faults));
    let out = Bench::file(path, "", "").run();
    set_faults(None);
    out
}

/// GStreamer's decoder of the same library.
fn nvh264dec(path: &Path, faults: &str) -> Outcome {
    set_faults(Some(faults));
    let out = Bench::other(path, "nvh264dec", "").run();
    set_faults(None);
    out
}

/// How many pictures FFmpeg's decoder of the same library gives out, and what it says.
fn h264_cuvid(path: &Path, faults: &str) -> (usize, String) {
    let world = World::new();
    let mut command = Command::new("ffmpeg");
    command
        .args([
            "-hide_banner",
            "-loglevel",
            "warning",
            "-nostdin",
            "-c:v",
            "h264_cuvid",
            "-i",
        ])
        .arg(path)
        .args(["-fps_mode", "passthrough", "-f", "framemd5", "-"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    world.prepare(&mut command);
    command
        .env("NVSTANDIN_FAULTS", faults)
        .env_remove("NVSTANDIN_STRICT");
    let (_, text) = finish_within(
        command
            .spawn()
            .expect("ffmpeg runs (Debian: apt install ffmpeg)"),
        // It may try for ever.
        Duration::from_secs(5),
    );
    let pictures = text.lines().filter(|line| line.starts_with("0, ")).count();
    (pictures, text)
}

fn row(event: &str, gstreamer: &Outcome, ffmpeg: usize, ours: &Outcome) {
    println!(
        "{event}: nvh264dec {} pictures, {}; h264_cuvid {ffmpeg} pictures; nvdecringdec {} pictures, {} flagged",
        gstreamer.pictures.len(),
        if gstreamer.eos {
            "to the end"
        } else {
            "ended by an error"
        },
        ours.pictures.len(),
        ours.pictures
            .iter()
            .filter(|picture| picture.corrupted)
            .count(),
    );
}

#[test]
fn one_failed_picture() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(World::new, || {
        let made = stream();
        let faults = "fail-decode=24";
        let (theirs, mine) = (nvh264dec(&made.path(), faults), ours(&made.path(), faults));
        let (ffmpeg, _) = h264_cuvid(&made.path(), faults);
        row("one failed picture", &theirs, ffmpeg, &mine);
        assert!(
            !theirs.eos && theirs.pictures.len() <= 24,
            "its pipeline ends there"
        );
        assert!(ffmpeg < FRAMES, "{ffmpeg}");
        assert!(mine.eos, "{:?}", mine.errors);
        assert_eq!(mine.pictures.len(), FRAMES - 1);
        assert!(mine.pictures.len() >= ffmpeg);
        assert!(!mine.named("nvdecringdec-corrupted").is_empty());
    });
}

#[test]
fn a_picture_with_an_error_status() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(World::new, || {
        let made = stream();
        let faults = "status-error=24";
        let (theirs, mine) = (nvh264dec(&made.path(), faults), ours(&made.path(), faults));
        let (ffmpeg, text) = h264_cuvid(&made.path(), faults);
        row("a picture with errors", &theirs, ffmpeg, &mine);
        assert_eq!((theirs.pictures.len(), ffmpeg), (FRAMES, FRAMES));
        assert!(
            theirs.pictures.iter().all(|picture| !picture.corrupted),
            "it says nothing"
        );
        assert!(theirs.warnings.is_empty());
        assert!(!text.contains("rror"), "neither does FFmpeg: {text}");
        assert_eq!(mine.pictures.len(), FRAMES);
        assert!(mine.pictures[24].corrupted && !mine.pictures[23].corrupted);
    });
}

#[test]
fn two_changes_of_resolution() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(World::new, || {
        let small = h264("160x96", 30, "bframes=2:b-adapt=0");
        let large = h264("320x180", 30, "bframes=2:b-adapt=0");
        let joined = join(&[&small, &large, &small]);
        // Pictures take time, so that some are on their way when the size changes.
        let faults = "latency-us=2000:2000:2000";
        let (theirs, mine) = (
            nvh264dec(&joined.path(), faults),
            ours(&joined.path(), faults),
        );
        let (ffmpeg, _) = h264_cuvid(&joined.path(), faults);
        row("two changes of resolution", &theirs, ffmpeg, &mine);
        assert!(mine.eos, "{:?}", mine.errors);
        assert_eq!(mine.pictures.len(), 90);
        assert!(
            theirs.pictures.len() < 90 || ffmpeg < 90,
            "one of them loses pictures"
        );
    });
}

#[test]
fn a_lost_device() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(World::new, || {
        let made = stream();
        // Every decoder of the process loses it.
        let faults = "device-lost=24:1000";
        let (theirs, mine) = (nvh264dec(&made.path(), faults), ours(&made.path(), faults));
        row("a lost device", &theirs, 0, &mine);
        // With an error or, as it happens, without.
        assert!(theirs.pictures.len() < FRAMES);
        assert_eq!(mine.errors.len(), 1, "{:?}", mine.errors);
        assert!(
            mine.errors[0].contains("The device is lost"),
            "{:?}",
            mine.errors
        );
    });
}
