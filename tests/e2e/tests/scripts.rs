// SPDX-License-Identifier: MPL-2.0

//! The short scripts of `pipelines/` as a user calls them, on a machine without a GPU: what they make, and what
//! they say to a wrong command line. `quickstart.sh` has tests of its own.

mod common;

use std::ffi::OsStr;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use common::{Scores, scores};
use e2e::{Finished, Stage, command, profile, run, workspace_root};
use score_records::Record;
use tempfile::TempDir;

/// Frames of the stream that scripts take where no file is named.
const FRAMES: usize = 250;

/// A folder to call from; results go to `scores/` in it.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn result(&self, name: &str) -> PathBuf {
        self.0.path().join("scores").join(name)
    }

    fn run<I: AsRef<OsStr>>(
        &self,
        script: &str,
        arguments: impl IntoIterator<Item = I>,
    ) -> Finished {
        let stage = Stage::fresh(&["vmafxmotion"]);
        let mut command = command(&stage, workspace_root().join("pipelines").join(script));
        run(command
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("GST_PLUGIN_PATH")
            .env_remove("GST_REGISTRY")
            .env_remove("VMAFX_SCORES_DIR")
            .env_remove("VMAFX_NO_APT")
            .env("VMAFX_PROFILE", profile()))
    }
}

/// A video of 12 frames with a name that gst-launch-1.0 would take apart.
fn odd_video(desk: &Desk) -> PathBuf {
    let stage = Stage::fresh(&[]);
    let pipeline = "videotestsrc num-buffers=12 pattern=ball ! video/x-raw,width=322,height=242,framerate=25/1 \
                    ! vp8enc deadline=1 ! webmmux ! filesink location=plain.webm";
    run(command(&stage, "gst-launch-1.0")
        .arg("-q")
        .args(pipeline.split_whitespace())
        .current_dir(desk.0.path()))
    .success();
    let odd = desk.0.path().join("it's \"1\" ! $x = ü.webm");
    fs::rename(desk.0.path().join("plain.webm"), &odd).expect("the folder is ours");
    odd
}

/// A port that nobody listened at a moment ago.
fn free_port() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
    socket
        .local_addr()
        .expect("a bound socket")
        .port()
        .to_string()
}

/// The scripts that are started; `env.sh` is sourced.
fn script_names() -> Vec<String> {
    let folder = fs::read_dir(workspace_root().join("pipelines")).expect("the scripts");
    let entries = folder.map(|entry| entry.expect("an entry"));
    let names = entries.map(|entry| entry.file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".sh") && name != "env.sh")
        .collect();
    names.sort();
    names
}

fn has_plugin(name: &str) -> bool {
    workspace_root()
        .join("plugins")
        .join(name)
        .join("Cargo.toml")
        .exists()
}

/// Whether the scores are those of the whole example stream, scored by itself.
#[track_caller]
fn check_whole(found: &Scores) {
    assert_eq!(found.frames.len(), FRAMES);
    let summary = found.summary.as_ref().expect("the session ended");
    assert_eq!(summary.count("n-frames"), Some(FRAMES as u64));
    // The stream cuts between two pictures now and then, and moves slowly in between.
    assert!(found.frames[50].motion > 18.0 && found.frames[60].motion < 2.0);
}

#[test]
fn every_script_explains_itself_and_refuses_what_it_does_not_know() {
    let desk = Desk::new();
    let names = script_names();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        let path = workspace_root().join("pipelines").join(&name);
        let text = fs::read_to_string(path).expect("the script");
        for help in ["-h", "--help"] {
            let done = desk.run(&name, [help]).success();
            let usage = done.stdout.starts_with(&format!("usage: {name}"));
            assert!(usage && done.stdout.contains("Exit status:"), "{done}");
        }
        let many = vec!["a"; 33];
        for wrong in [&["--fast"][..], &many[..]] {
            let done = desk.run(&name, wrong).failure(2);
            assert!(!done.stderr.is_empty(), "{done}");
            // Scripts with a command line of their own may be briefer.
            let short = text.contains("/lib/script.sh\"");
            assert!(!short || done.stderr.contains("usage: "), "{done}");
            assert_eq!(done.stdout, "", "{done}");
        }
    }
    assert!(!desk.0.path().join("scores").exists(), "nothing was begun");
}

#[test]
fn a_shell_without_a_build_is_told_so_and_goes_on() {
    let script = "source \"$1\"; echo \"status $? path ${GST_PLUGIN_PATH-none}\"";
    let stage = Stage::fresh(&[]);
    let mut shell = command(&stage, "bash");
    let done = run(shell
        .args(["-c", script, "bash"])
        .arg(workspace_root().join("pipelines/env.sh"))
        .env_remove("GST_PLUGIN_PATH")
        .env("VMAFX_PROFILE", "nothing-of-the-kind"))
    .success();
    assert_eq!(done.stdout, "status 3 path none\n", "{done}");
    assert!(
        done.stderr.contains("run ./pipelines/quickstart.sh first"),
        "{done}"
    );
}

#[test]
fn wrong_values_and_files_are_told_apart() {
    let desk = Desk::new();
    fs::write(desk.0.path().join("twice.mp4"), "never opened").expect("the folder is ours");
    for (script, arguments, status, said) in [
        ("live-windows.sh", &["0"][..], 2, "SECONDS is '0'"),
        ("live-windows.sh", &["soon"], 2, "SECONDS is 'soon'"),
        ("rtp-loopback.sh", &["5", "80"], 2, "PORT is '80'"),
        ("srt-loopback.sh", &["5", "99999"], 2, "PORT is '99999'"),
        ("score-chunks.sh", &["1"], 2, "CHUNKS is '1'"),
        (
            "score-chunks.sh",
            &["2", "missing.mp4"],
            1,
            "missing.mp4: no such file",
        ),
        (
            "transcode.sh",
            &["missing.mp4"],
            1,
            "missing.mp4: no such file",
        ),
        ("transcode.sh", &[""], 1, ": no such file"),
        ("report.sh", &["."], 1, ".: is a folder"),
        (
            "report.sh",
            &["twice.mp4", "./twice.mp4"],
            2,
            "two videos are called twice.mp4",
        ),
        (
            "compare-decoders.sh",
            &["missing.mp4"],
            1,
            "missing.mp4: no such file",
        ),
        (
            "side-by-side.sh",
            &["a.mp4", "vp9dec"],
            2,
            "two decoders, or nothing",
        ),
        ("score-uri.sh", &["film.mp4"], 2, "is no URI"),
        ("score-uri.sh", &["file:///a b.mp4"], 2, "written as %XX"),
    ] {
        let done = desk.run(script, arguments).failure(status);
        assert!(done.stderr.contains(said), "no {said:?}: {done}");
    }
    assert!(!desk.0.path().join("scores").exists(), "nothing was begun");
    let done = desk.run("score-uri.sh", ["file:///nowhere.mp4"]).failure(1);
    assert!(done.stderr.contains("/nowhere.mp4"), "{done}");
    assert!(!desk.result("uri.ndjson").exists());
    fs::write(desk.0.path().join("letter.mp4"), "Dear reader").expect("the folder is ours");
    for script in ["report.sh", "transcode.sh"] {
        desk.run(script, ["letter.mp4"]).failure(1);
    }
}

#[test]
fn a_report_compares_videos_of_any_name() {
    let desk = Desk::new();
    let odd = odd_video(&desk);
    let example = test_streams::named("test-25fps.vp9").path;
    let done = desk.run("report.sh", [&odd, &example]).success();
    assert!(done.stdout.starts_with("page: "), "{done}");
    let page = fs::read_to_string(desk.result("report.html")).expect("a page");
    assert!(page.contains("\"frames\":12,") && page.contains("\"frames\":250,"));
    let picture = fs::read(desk.result("report.png")).expect("a picture");
    assert!(picture.starts_with(b"\x89PNG"));
}

#[test]
fn transcoding_scores_every_picture_that_is_encoded() {
    let desk = Desk::new();
    let done = desk.run::<&str>("transcode.sh", []).success();
    assert!(done.stdout.contains("250 frames"), "{done}");
    let source = scores(&desk.result("transcoded.ndjson"));
    check_whole(&source);
    // The encoded video has as many pictures, and theirs move much as those did.
    let uri = format!("file://{}", desk.result("transcoded.mp4").display());
    desk.run("score-uri.sh", [&uri]).success();
    let encoded = scores(&desk.result("uri.ndjson"));
    check_whole(&encoded);

    let odd = odd_video(&desk);
    desk.run("transcode.sh", [&odd]).success();
    assert_eq!(scores(&desk.result("transcoded.ndjson")).frames.len(), 12);
}

#[test]
fn live_windows_are_printed_as_they_are_written() {
    let desk = Desk::new();
    let done = desk.run("live-windows.sh", ["1"]).success();
    let file = fs::read_to_string(desk.result("live.ndjson")).expect("scores");
    let windows: Vec<_> = file
        .lines()
        .filter_map(|line| match serde_json::from_str(line).expect("a record") {
            Record::Window(window) => Some(window),
            _ => None,
        })
        .collect();
    assert_eq!(windows.len(), 2, "{file}");
    for (line, window) in done.stdout.lines().zip(&windows) {
        let begin = format!(
            "window {}: frames {}-{}, motion2 mean ",
            window.window, window.first, window.last
        );
        let mean: f64 = line
            .strip_prefix(&begin)
            .and_then(|mean| mean.parse().ok())
            .expect("a mean");
        assert_eq!(Some(mean), window.values["motion2.mean"].as_f64());
    }
    let text = fs::read_to_string(desk.result("live.txt")).expect("the newest window");
    assert!(text.starts_with("window 1 frames 15-29 "), "{text}");
}

#[test]
fn what_arrives_over_rtp_and_srt_is_scored() {
    let desk = Desk::new();
    for (script, name) in [("rtp-loopback.sh", "rtp"), ("srt-loopback.sh", "srt")] {
        let done = desk.run(script, ["2", &free_port()]).success();
        let scores = scores(&desk.result(&format!("{name}.ndjson")));
        // 60 were sent; a busy machine may lose some on the way, and SRT its last ones.
        assert!((20..=60).contains(&scores.frames.len()), "{done}");
        let ended = scores.summary.expect("the session ended properly");
        assert_eq!(ended.count("n-frames"), Some(scores.frames.len() as u64));
    }
}

#[test]
fn chunks_give_the_scores_of_the_whole() {
    let desk = Desk::new();
    let done = desk.run("score-chunks.sh", ["3"]).success();
    assert!(
        done.stderr.contains("3 chunks of 250 frames, joined"),
        "{done}"
    );
    let chunks = fs::read_to_string(desk.result("chunks.ndjson")).expect("scores");
    let frames = chunks
        .lines()
        .filter(|line| line.contains("\"type\":\"frame\""));
    assert_eq!(frames.count(), FRAMES);
    // A size that GStreamer pads.
    let odd = odd_video(&desk);
    let arguments = [OsStr::new("5"), odd.as_os_str()];
    let done = desk.run("score-chunks.sh", arguments).success();
    assert!(
        done.stderr.contains("5 chunks of 12 frames, joined"),
        "{done}"
    );
    desk.run("score-chunks.sh", [OsStr::new("13"), odd.as_os_str()])
        .failure(1);
}

#[test]
fn a_uri_is_scored() {
    let desk = Desk::new();
    let done = desk.run::<&str>("score-uri.sh", []).success();
    assert!(done.stdout.contains("250 frames"), "{done}");
    check_whole(&scores(&desk.result("uri.ndjson")));
}

#[test]
fn decoders_are_compared_or_said_to_be_missing() {
    let desk = Desk::new();
    let done = desk.run::<&str>("compare-decoders.sh", []);
    assert!(done.stdout.starts_with("software "), "{done}");
    for (plugin, decoder) in [("vplretry", "vplretrydec"), ("nvdecring", "nvdecringdec")] {
        let line = done
            .stdout
            .lines()
            .find(|line| line.starts_with(decoder))
            .expect("a line a decoder");
        // Without a GPU only vplretrydec has something to run on.
        if plugin == "vplretry" && has_plugin(plugin) {
            assert!(line.ends_with(" equal"), "{done}");
        } else if !Path::new("/dev/nvidia0").exists() {
            assert!(line.contains("not on this machine: "), "{done}");
        }
    }
    if has_plugin("vplretry") {
        done.success();
    } else {
        assert_eq!(done.status.code(), Some(3), "{done}");
    }
}

#[test]
fn two_decoders_are_set_side_by_side() {
    let desk = Desk::new();
    let example = test_streams::named("test-25fps.vp9").path;
    let right = if has_plugin("vplretry") {
        "vplretrydec"
    } else {
        "avdec_vp9"
    };
    let arguments = |right| [example.as_os_str(), OsStr::new("vp9dec"), OsStr::new(right)];
    let done = desk.run("side-by-side.sh", arguments(right)).success();
    assert!(
        done.stderr.contains("250 frames, every score equal"),
        "{done}"
    );
    for name in [
        "side-by-side.mp4",
        "side-by-side.html",
        "left.ndjson",
        "right.ndjson",
    ] {
        let about = fs::metadata(desk.result(name)).expect("a result");
        assert!(about.len() > 1000, "{name} is empty");
    }
    let done = desk
        .run("side-by-side.sh", arguments("nosuchdec"))
        .failure(3);
    assert!(
        done.stderr
            .contains("nosuchdec cannot run on this machine: there is no"),
        "{done}"
    );
}
