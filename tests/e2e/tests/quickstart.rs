// SPDX-License-Identifier: MPL-2.0

//! `pipelines/quickstart.sh` as a user calls it: good files, bad files, odd names, wrong usage.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use common::scores;
use e2e::{Finished, Stage, command, profile, profile_dir, run, workspace_root};
use tempfile::TempDir;

/// A folder to call from; scores go to `scores/` in it.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn quickstart<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Finished {
        run(self.command().args(arguments))
    }

    fn command(&self) -> Command {
        let stage = Stage::fresh(&["vmafxmotion", "vplretry"]);
        let mut command = command(&stage, workspace_root().join("pipelines/quickstart.sh"));
        // What it sets is what is tested; the profile is the one that is built already.
        command
            .current_dir(self.0.path())
            .env_remove("GST_PLUGIN_PATH")
            .env_remove("GST_REGISTRY")
            .env_remove("VMAFX_SCORES_DIR")
            .env_remove("VMAFX_NO_APT")
            .env("VMAFX_PROFILE", profile());
        command
    }

    /// Whether FILE was scored: the table, the place of the scores, and their number.
    #[track_caller]
    fn check(&self, done: Finished, file: &str, frames: usize) {
        let done = done.success();
        let expected = self.path("scores").join(format!("{file}.ndjson"));
        let expected = fs::canonicalize(&expected)
            .unwrap_or_else(|error| panic!("{}: {error}: {done}", expected.display()));
        assert!(done.stdout.starts_with("session 0: "), "{done}");
        let last = format!("\nscores: {}\n", expected.display());
        assert!(done.stdout.ends_with(&last), "{done}");
        let scores = scores(&expected);
        assert_eq!(scores.frames.len(), frames, "{done}");
        assert!(scores.frames.iter().any(|f| f.motion > 0.0), "{done}");
        assert!(scores.summary.is_some(), "the session ended");
    }
}

const FRAMES: usize = 12;

/// A short video in a container, with sound.
fn video(encode: &str, name: &str, mux: &str, audio: &str, path: &Path) {
    let stage = Stage::fresh(&[]);
    let pipeline = format!(
        "videotestsrc num-buffers={FRAMES} pattern=ball ! \
         video/x-raw,width=320,height=240,framerate=25/1 ! {encode} ! {mux} name=mux ! \
         filesink location={name} \
         audiotestsrc num-buffers=20 ! audioconvert ! {audio} ! mux."
    );
    let mut launch = command(&stage, "gst-launch-1.0");
    let launch = launch.arg("-q").args(pipeline.split_whitespace());
    let folder = path.parent().expect("a file lies in a folder");
    run(launch.current_dir(folder)).success();
}

static MP4: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let desk = Desk::new();
    let path = desk.path("clip.mp4");
    video("x264enc", "clip.mp4", "mp4mux", "avenc_aac", &path);
    fs::read(&path).expect("the clip was written")
});

#[test]
fn without_file_a_real_h264_stream_is_scored() {
    let desk = Desk::new();
    let done = desk.quickstart::<&str>([]);
    assert!(done.stderr.contains("250 frames of 320x240 NV12"), "{done}");
    assert!(done.stderr.contains("Decoding with "), "{done}");
    assert!(done.stdout.contains("0:00:00.000 to 0:00:09.960"), "{done}");
    assert!(!done.stdout.contains("without timestamp"), "{done}");
    desk.check(done, "test-25fps.h264", 250);
}

#[test]
fn containers_are_scored_and_their_sound_is_passed_over() {
    let desk = Desk::new();
    for (name, encode, mux, audio) in [
        ("clip.mkv", "x264enc", "matroskamux", "vorbisenc"),
        ("clip.webm", "vp8enc deadline=1", "webmmux", "vorbisenc"),
        ("clip.ts", "x264enc", "mpegtsmux", "avenc_aac"),
    ] {
        let path = desk.path(name);
        video(encode, name, mux, audio, &path);
        desk.check(desk.quickstart([name]), name, FRAMES);
    }
}

#[test]
fn raw_streams_are_scored() {
    let desk = Desk::new();
    for (stream, frames) in [("bear.h265", 30), ("test-25fps.vp9", 250)] {
        let path = test_streams::named(stream).path;
        let name = path.file_name().and_then(OsStr::to_str).expect("a name");
        desk.check(desk.quickstart([&path]), name, frames);
    }
}

#[test]
fn names_of_every_kind_work() {
    let desk = Desk::new();
    fs::create_dir(desk.path("a folder")).expect("the folder is writable");
    for (argument, name) in [
        ("clip.mp4", "clip.mp4"),
        ("./a folder/it's \"1\" $x.mp4", "it's \"1\" $x.mp4"),
        ("-clip.mp4", "-clip.mp4"),
        ("100% ! fakesink.mp4", "100% ! fakesink.mp4"),
        ("Grüße\\n.mp4", "Grüße\\n.mp4"),
    ] {
        fs::write(desk.path(argument), &*MP4).expect("the folder is writable");
        desk.check(desk.quickstart([argument]), name, FRAMES);
    }
    let latin1 = OsStr::from_bytes(b"caf\xe9.mp4");
    fs::write(desk.0.path().join(latin1), &*MP4).expect("the folder is writable");
    desk.quickstart([latin1]).success();
    let file = desk
        .path("scores")
        .join(OsStr::from_bytes(b"caf\xe9.mp4.ndjson"));
    assert_eq!(scores(&file).frames.len(), FRAMES);
    fs::write(desk.path("-h"), &*MP4).expect("the folder is writable");
    desk.check(desk.quickstart(["--", "-h"]), "-h", FRAMES);
}

#[test]
fn a_second_run_replaces_the_scores() {
    let desk = Desk::new();
    fs::write(desk.path("clip.mp4"), &*MP4).expect("the folder is writable");
    let first = desk.quickstart(["clip.mp4"]).success();
    let done = desk.quickstart(["clip.mp4"]);
    assert_eq!(done.stdout, first.stdout);
    assert!(
        !done.stderr.contains("Compiling") && !done.stderr.contains("installed"),
        "nothing is left to be done: {done}"
    );
    desk.check(done, "clip.mp4", FRAMES);
}

#[test]
fn the_folder_of_the_scores_can_be_chosen() {
    let desk = Desk::new();
    fs::write(desk.path("clip.mp4"), &*MP4).expect("the folder is writable");
    let done = run(desk
        .command()
        .arg("clip.mp4")
        .env("VMAFX_SCORES_DIR", "deep/down"))
    .success();
    assert!(
        done.stdout.ends_with("/deep/down/clip.mp4.ndjson\n"),
        "{done}"
    );
    assert!(!desk.path("scores").exists());

    fs::write(desk.path("taken"), "").expect("the folder is writable");
    let done = run(desk
        .command()
        .arg("clip.mp4")
        .env("VMAFX_SCORES_DIR", "taken/scores"));
    let done = done.failure(1);
    assert!(done.stderr.contains("taken/scores"), "{done}");
}

#[test]
fn bad_files_are_told_apart_and_give_no_table() {
    let desk = Desk::new();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(desk.path(name), bytes).expect("the folder is writable");
    };
    fs::create_dir(desk.path("folder.mp4")).expect("the folder is writable");
    write("empty.mp4", b"");
    write(
        "letter.mp4",
        "Dear reader,\nthis is no video.\n".repeat(99).as_bytes(),
    );
    let noise: Vec<u8> = (0..40_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    write("noise.mp4", &noise);
    write("cut.mp4", &MP4[..MP4.len() / 2]);
    let stage = Stage::fresh(&[]);
    let audio = "audiotestsrc num-buffers=20 ! audioconvert ! vorbisenc ! oggmux ! filesink";
    run(command(&stage, "gst-launch-1.0")
        .arg("-q")
        .args(audio.split(' '))
        .arg("location=sound.ogg")
        .current_dir(desk.0.path()))
    .success();
    run(Command::new("mkfifo").arg(desk.path("fifo.mp4"))).success();

    for (file, said) in [
        ("missing.mp4", "missing.mp4: no such file"),
        ("folder.mp4", "folder.mp4: is a folder"),
        ("fifo.mp4", "fifo.mp4: is not a regular file"),
        ("empty.mp4", "empty.mp4: is empty"),
        ("letter.mp4", "letter.mp4: is no video"),
        (
            "noise.mp4",
            "noise.mp4: GStreamer does not know this type of file",
        ),
        (
            "cut.mp4",
            "cut.mp4: qtdemux0: This file contains no playable streams",
        ),
        ("sound.ogg", "sound.ogg: no video stream in it, only audio/"),
    ] {
        let done = desk.quickstart([file]).failure(1);
        assert!(done.stderr.contains(said), "no {said:?}: {done}");
        assert_eq!(done.stdout, "", "{done}");
        assert!(!done.stderr.contains("panicked"), "{done}");
        let scores = desk.path("scores").join(format!("{file}.ndjson"));
        assert!(!scores.exists(), "an empty file is left: {done}");
    }
}

#[test]
fn an_interrupt_ends_the_session_properly() {
    let desk = Desk::new();
    // Far more than is scored before the interrupt comes.
    let stage = Stage::fresh(&["vmafxmotion"]);
    // No letter, or a newer GStreamer takes the film for a text.
    let frame = [0x80; 320 * 240 * 3 / 2];
    let mut film = b"YUV4MPEG2 W320 H240 F25:1 Ip A1:1 C420\n".to_vec();
    for _ in 0..1500 {
        film.extend_from_slice(b"FRAME\n");
        film.extend_from_slice(&frame);
    }
    fs::write(desk.path("film.y4m"), film).expect("the folder is writable");
    let mut child = command(&stage, profile_dir().join("score-file"))
        .args(["film.y4m", "--output", "film.ndjson"])
        .current_dir(desk.0.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("score-file starts");
    let begun = || fs::metadata(desk.path("film.ndjson")).is_ok_and(|about| about.len() > 2000);
    while !begun() {
        assert_eq!(child.try_wait().expect("a child"), None, "no score yet");
        thread::sleep(Duration::from_millis(1));
    }
    run(Command::new("kill").args(["-INT", &child.id().to_string()])).success();
    let status = child.wait().expect("the child ends");
    let scores = scores(&desk.path("film.ndjson"));
    let summary = scores.summary.expect("the session ended");
    assert_eq!(summary.count("n-frames"), Some(scores.frames.len() as u64));
    // A fast machine may have been done.
    let expected = if scores.frames.len() == 1500 { 0 } else { 130 };
    assert_eq!(status.code(), Some(expected));
}

#[test]
fn usage_is_shown_and_wrong_usage_exits_with_2() {
    let desk = Desk::new();
    for help in ["-h", "--help"] {
        let done = desk.quickstart([help]).success();
        assert!(
            done.stdout.starts_with("usage: quickstart.sh [FILE]"),
            "{done}"
        );
    }
    for arguments in [&["--fast"][..], &["-x", "a.mp4"], &["a.mp4", "b.mp4"]] {
        let done = desk.quickstart(arguments).failure(2);
        assert!(done.stderr.contains("usage: "), "{done}");
        assert_eq!(done.stdout, "", "{done}");
    }
    assert!(!desk.path("scores").exists(), "nothing was begun");
}

#[test]
fn what_the_preferred_decoder_refuses_another_decodes() {
    let desk = Desk::new();
    // 4:2:2, which the software runtime does not decode.
    let stage = Stage::fresh(&[]);
    let pipeline = format!(
        "videotestsrc num-buffers={FRAMES} pattern=ball ! \
         video/x-raw,format=Y42B,width=320,height=240,framerate=25/1 ! x264enc ! h264parse ! \
         matroskamux ! filesink location=clip.mkv"
    );
    let mut launch = command(&stage, "gst-launch-1.0");
    let launch = launch.arg("-q").args(pipeline.split_whitespace());
    run(launch.current_dir(desk.0.path())).success();
    let done = desk.quickstart(["clip.mkv"]);
    assert!(done.stderr.contains("another decoder is tried"), "{done}");
    desk.check(done, "clip.mkv", FRAMES);
}
