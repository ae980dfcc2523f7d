// SPDX-License-Identifier: MPL-2.0

//! The page in a real browser: what it shows is what the pipeline scored, it comes back by itself, and it
//! says what went wrong. Pictures of it are kept in `target/<profile>/screenshots/`.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::browser::Browser;
use common::{Live, live_pipeline};
use nix::sys::signal::Signal;
use score_records::Record;
use serde_json::Value;
use tempfile::TempDir;

const FRAMES: usize = 105;

/// Frames' scores and windows' means as a score file has them.
#[derive(Debug, Default)]
struct Scores {
    frames: BTreeMap<u64, [f64; 3]>,
    means: Vec<f64>,
}

fn read(path: &std::path::Path) -> Scores {
    let mut scores = Scores::default();
    for line in fs::read_to_string(path).expect("a score file").lines() {
        match serde_json::from_str(line).expect("a record") {
            Record::Frame(f) => {
                scores
                    .frames
                    .insert(f.frame, [f.motion, f.motion2, f.motion3]);
            }
            Record::Window(window) => {
                let mean = window.values["motion2.mean"].as_f64();
                scores.means.push(mean.expect("a number"));
            }
            _ => (),
        }
    }
    scores
}

/// The points of a curve: frame (or window) and value.
fn curve(browser: &Browser, name: &str, index: &str) -> Vec<(u64, f64)> {
    let points = browser.eval(&format!(
        "shown.chart.drawn[{name:?}].map((p) => [p.{index}, p.value])"
    ));
    let points = points.as_array().expect("points");
    let point = |p: &Value| Some((p[0].as_u64()?, p[1].as_f64()?));
    points.iter().map(|p| point(p).expect("a point")).collect()
}

/// Of the points in `window.points`, those at which the canvas has no ink of motion2's colour.
const UNDRAWN: &str = r#"(() => {
    const canvas = document.getElementById("chart");
    const ratio = canvas.width / canvas.clientWidth;
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = colour("--motion2");
    probe.fillRect(0, 0, 1, 1);
    const ink = probe.getImageData(0, 0, 1, 1).data;
    const near = (data, at) => [0, 1, 2].every((c) => Math.abs(data[at + c] - ink[c]) < 70);
    return window.points.filter(({ x, y }) => {
        const { data } = canvas.getContext("2d").getImageData(Math.round(x * ratio) - 2, Math.round(y * ratio) - 2, 5, 5);
        return !Array.from({ length: 25 }, (_, i) => near(data, 4 * i)).some(Boolean);
    }).map(({ frame }) => frame);
})()"#;

#[test]
fn the_chart_has_the_values_that_the_pipeline_posted() {
    let desk = TempDir::new().expect("a temporary folder");
    let file = desk.path().join("scores.ndjson");
    let pipeline = format!(
        "videotestsrc is-live=true pattern=ball num-buffers={FRAMES} ! \
         video/x-raw,format=I420,width=320,height=180,framerate=30/1 ! \
         vmafxmotion n-stats-frames=30 scores-path={} ! fakesink sync=true",
        file.display()
    );
    let browser = Browser::start();
    let live = Live::start(&mut Live::command([
        "--linger", "forever", "--launch", &pipeline,
    ]));
    browser.open(&live.url("/?theme=light"));
    // Windows stand on the page while the stream runs.
    browser.wait("shown.connected && shown.state.phase === 'running'");
    browser.wait("document.querySelectorAll('#windows tr').length > 0");
    browser.wait("shown.state.phase === 'ended' && shown.chart.drawn.motion2.length === shown.state.frames.length");

    let scores = read(&file);
    assert_eq!(scores.frames.len(), FRAMES);
    assert!(scores.frames.values().any(|&[_, motion2, _]| motion2 > 0.0));
    for (i, name) in ["motion", "motion2", "motion3"].into_iter().enumerate() {
        let drawn = curve(&browser, name, "frame");
        assert_eq!(drawn.len(), FRAMES, "{name}");
        for (frame, value) in drawn {
            let posted = scores.frames[&frame][i];
            assert_eq!(value.to_bits(), posted.to_bits(), "{name} of frame {frame}");
        }
    }
    let means = curve(&browser, "means", "window");
    assert_eq!(means.len(), FRAMES.div_ceil(30));
    for ((window, mean), posted) in means.into_iter().zip(&scores.means) {
        assert_eq!(mean.to_bits(), posted.to_bits(), "window {window}");
    }
    // The others lie over the curve, or beside it in mixed colours.
    let press = |number: u32| {
        browser.eval(&format!(
            "document.querySelectorAll('#curves button')[{number}].click()"
        ));
    };
    (1..4).for_each(press);
    browser.wait("Object.keys(shown.chart.drawn).length === 1");
    browser.eval("window.points = shown.chart.drawn.motion2.slice(1, -1)");
    assert_eq!(browser.eval(UNDRAWN), serde_json::json!([]));
    press(0);
    browser.wait("shown.chart.drawn.motion2 === undefined");
    let gone = browser.eval(UNDRAWN).as_array().map_or(0, Vec::len);
    assert_eq!(gone, FRAMES - 2, "without the curve there is no ink");
    press(0);
    press(3);
    browser
        .wait("shown.chart.drawn.motion2 !== undefined && shown.chart.drawn.means !== undefined");

    let last = scores.frames[&(FRAMES as u64 - 1)][1];
    assert_eq!(browser.text("now-motion2"), format!("{last:.4}"));
    assert_eq!(browser.text("frames"), FRAMES.to_string());
    assert_eq!(browser.text("phase"), "ended");
    assert!(browser.text("windows").starts_with("3 (partial)"));
    browser.keep_picture("live-light");
    browser.eval("document.getElementById('theme').click()");
    browser.wait("document.documentElement.dataset.theme === 'dark'");
    browser.keep_picture("live-dark");

    browser.open(&live.url("/?overlay=1"));
    browser.wait("shown.connected && shown.chart !== null");
    let background = browser.eval("getComputedStyle(document.body).backgroundColor");
    assert_eq!(background, "rgba(0, 0, 0, 0)");
    let scheme = browser.eval("getComputedStyle(document.documentElement).colorScheme");
    assert_eq!(scheme, "normal");
    let newest = scores.means[scores.means.len() - 1];
    assert_eq!(browser.text("over-score"), format!("{newest:.4}"));
    assert_eq!(browser.text("over-state"), "ended");
    assert_eq!(
        browser.eval("document.querySelector('main').offsetHeight"),
        0
    );
    browser.keep_picture("overlay");
    live.signal(Signal::SIGINT);
    assert_eq!(live.finish().0, Some(0));
}

#[test]
fn the_page_comes_back_when_the_server_was_killed_and_started_again() {
    let browser = Browser::start();
    let first = Live::start(&mut Live::command([
        "--launch",
        &live_pipeline("name=first n-stats=1"),
    ]));
    let address = first.address().to_string();
    browser.open(&first.url("/"));
    browser.wait("shown.connected && shown.state.frames.length > 10");
    assert!(browser.text("source").contains("name=first"));
    let run = browser.eval("shown.state.run");

    first.signal(Signal::SIGKILL);
    browser.wait("!shown.connected");
    assert_eq!(browser.text("phase"), "connection lost, trying again");
    assert_eq!(first.finish().0, None);

    let pipeline = live_pipeline("name=second n-stats=1");
    let second = Live::start(&mut Live::command_on(&address, ["--launch", &pipeline]));
    browser.wait("shown.connected && shown.state.frames.length > 10");
    assert!(browser.text("source").contains("name=second"));
    assert_ne!(browser.eval("shown.state.run"), run);
    assert_eq!(browser.text("phase"), "live");
    // The frames are those of the new run alone.
    assert_eq!(browser.eval("shown.state.frames[0].frame"), 0);

    second.signal(Signal::SIGINT);
    browser.wait("!shown.connected && shown.state.phase === 'stopped'");
    assert_eq!(browser.text("phase"), "stopped, server gone");
    assert_eq!(second.finish().0, Some(0));
}

#[test]
fn the_page_says_what_went_wrong_and_still_does_when_the_server_is_gone() {
    let browser = Browser::start();
    let live = Live::start(&mut Live::command([
        "--linger",
        "forever",
        "--uri",
        "file:///nowhere/film<b>.mp4",
    ]));
    browser.open(&live.url("/"));
    browser.wait("!document.getElementById('failure').hidden");
    let failure = browser.text("failure");
    // What is told is text, whatever is in it.
    assert!(failure.contains("/nowhere/film<b>.mp4"), "{failure}");
    assert!(failure.contains("no frame was scored"), "{failure}");
    assert_eq!(browser.text("phase"), "failed");
    browser.keep_picture("live-failed");
    live.signal(Signal::SIGTERM);
    let (status, said) = live.finish();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(&failure), "{said}");
    browser.wait("!shown.connected");
    assert_eq!(browser.text("phase"), "failed, server gone");
    assert_eq!(browser.text("failure"), failure);
}

#[test]
fn the_page_shows_what_the_decoder_went_through() {
    e2e::Stage::fresh(&["vplretry"]);
    let pipeline = "videotestsrc is-live=true pattern=ball num-buffers=120 ! \
        video/x-raw,format=I420,width=320,height=180,framerate=30/1 ! \
        x264enc tune=zerolatency key-int-max=10 ! h264parse ! vplretrydec implementation=software ! \
        vmafxmotion n-stats=1 ! fakesink sync=true";
    let browser = Browser::start();
    let mut command = Live::command(["--linger", "forever", "--launch", pipeline]);
    command.env("VPLSOFT_FAULTS", "busy=3;device-lost=60:1");
    let live = Live::start(&mut command);
    browser.open(&live.url("/?theme=dark"));
    browser.wait("shown.state?.phase === 'ended'");
    let state = live.state();
    let counts = &state["decoders"][0]["counts"];
    assert_eq!(counts["recoveries"], 1, "{state}");
    assert!(
        counts["retries"]
            .as_u64()
            .is_some_and(|retries| retries >= 3),
        "{state}"
    );
    let frames = counts["frames"].as_u64().expect("a count");
    let dropped = counts["dropped"].as_u64().expect("a count");
    assert_eq!(frames + dropped, 120, "{state}");
    let shown = browser.text("decoders");
    for text in [
        "vplretrydec vplretrydec0",
        "recoveries",
        &frames.to_string(),
    ] {
        assert!(shown.contains(text), "no {text:?} in {shown:?}");
    }
    assert!(browser.text("notes").contains("MFX_ERR_DEVICE_LOST"));
    let (_, metrics) = live.get("/metrics");
    let sample =
        "vmafx_decoder_recoveries_total{element=\"vplretrydec0\",factory=\"vplretrydec\"} 1\n";
    assert!(metrics.contains(sample), "{metrics}");
    browser.keep_picture("live-decoder");
}
