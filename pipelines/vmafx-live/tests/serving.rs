// SPDX-License-Identifier: MPL-2.0

//! What is served and to whom; what clients can cost; metrics; a clean stop.

mod common;

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use common::{LIMIT, Live, frames, live_pipeline, until, until_within};
use nix::sys::signal::Signal;
use score_records::Record;
use serde_json::Value;
use tempfile::TempDir;

/// The sample of a metric, with its labels as they are written.
fn metric(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.map(|value| value.trim().parse().expect("a number"))
}

/// The highest resident memory of a process so far, in MiB.
fn peak_memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes
        .and_then(|k| k.parse::<u64>().ok())
        .expect("a size")
        / 1024
}

#[test]
fn nothing_is_served_but_the_own_pages_under_own_names() {
    let live = Live::start(&mut Live::command([
        "--host",
        "obs.lan",
        "--launch",
        &live_pipeline(""),
    ]));
    assert!(live.address().ip().is_loopback());
    for (path, kind) in [
        ("/", "text/html"),
        ("/?overlay=1", "text/html"),
        ("/live.css", "text/css"),
        ("/live.js", "text/javascript"),
        ("/state", "application/json"),
        ("/metrics", "application/openmetrics-text"),
    ] {
        let (head, body) = live.get(path);
        assert!(head.starts_with("HTTP/1.0 200"), "{path}: {head}");
        assert!(
            head.contains(&format!("content-type: {kind}")),
            "{path}: {head}"
        );
        assert!(
            head.contains("content-security-policy: default-src 'none'"),
            "{head}"
        );
        assert!(!body.is_empty(), "{path}");
    }
    for path in [
        "/etc/passwd",
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "//live.js",
        "/src/main.rs",
    ] {
        let (head, _) = live.get(path);
        assert!(head.starts_with("HTTP/1.0 404"), "{path}: {head}");
    }
    let ask = |method: &str, host: &str| {
        let (head, _) = live.request(&format!("{method} /state HTTP/1.0\r\nHost: {host}\r\n\r\n"));
        head.split(' ').nth(1).expect("a status").to_owned()
    };
    assert_eq!(ask("GET", "localhost"), "200");
    assert_eq!(ask("GET", "obs.lan:1"), "200");
    assert_eq!(ask("GET", "evil.example"), "421");
    assert_eq!(ask("POST", "localhost"), "405");
    live.signal(Signal::SIGTERM);
    assert_eq!(live.finish().0, Some(0));
}

#[test]
fn metrics_are_those_of_the_state() {
    let pipeline = "videotestsrc num-buffers=40 pattern=ball ! \
        video/x-raw,format=I420,width=160,height=90,framerate=25/1 ! vmafxmotion n-stats-frames=10 ! fakesink";
    let live = Live::start(&mut Live::command([
        "--linger", "forever", "--launch", pipeline,
    ]));
    let state = live.wait_for("the end", |state| state["phase"] == "ended");
    let (_, text) = live.get("/metrics");
    assert_eq!(metric(&text, "vmafx_frames_total"), Some(40.0));
    assert_eq!(metric(&text, "vmafx_windows_total"), Some(4.0));
    assert_eq!(metric(&text, "vmafx_phase{phase=\"ended\"}"), Some(1.0));
    assert_eq!(metric(&text, "vmafx_phase{phase=\"running\"}"), Some(0.0));
    let row = &state["frames"][39];
    for (i, feature) in ["motion", "motion2", "motion3"].iter().enumerate() {
        let sample = metric(
            &text,
            &format!("vmafx_frame_score{{feature=\"{feature}\"}}"),
        );
        assert_eq!(sample, row[2 + i].as_f64(), "{feature}");
    }
    let mean = metric(
        &text,
        "vmafx_window_score{feature=\"motion2\",method=\"mean\"}",
    );
    assert!(mean.is_some_and(|mean| mean > 0.0));
    assert_eq!(mean, state["windows"][3]["motion2.mean"].as_f64());
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn a_decoder_is_shown_and_one_that_does_not_count_says_nothing() {
    let stream = test_streams::named("test-25fps.h264").path;
    let uri = format!("file://{}", stream.display());
    let live = Live::start(&mut Live::command([
        "--no-sync",
        "--linger",
        "forever",
        "--window",
        "0.4",
        "--uri",
        &uri,
    ]));
    let state = live.wait_for("the end", |state| {
        assert_ne!(state["phase"], "failed", "{state}");
        state["phase"] == "ended"
    });
    assert_eq!(state["totals"]["frames"], 250, "{}", live.said());
    assert_eq!(state["video"]["width"], 320);
    let decoder = &state["decoders"][0];
    assert_eq!(decoder["factory"], "avdec_h264", "{decoder}");
    assert_eq!(decoder["counts"], Value::Null);
    live.signal(Signal::SIGINT);
    assert_eq!(live.finish().0, Some(0));
}

#[test]
fn standard_input_is_shown_as_it_comes() {
    let line = |frame: u64| {
        format!(
            "{{\"type\":\"frame\",\"frame\":{frame},\"timestamp\":null,\"motion\":1.5,\"motion2\":0.25,\"motion3\":0.5}}\n"
        )
    };
    let header = "{\"type\":\"header\",\"schema\":1,\"extractor\":\"integer\",\"format\":\"I420\",\"width\":64,\"height\":48,\"depth\":8,\"session\":3}\n";
    let mut live = Live::start(Live::command(["--stdin", "--linger", "0"]).stdin(Stdio::piped()));
    let mut stdin = live.stdin();
    stdin.write_all(header.as_bytes()).expect("it reads");
    for frame in 0..3 {
        stdin.write_all(line(frame).as_bytes()).expect("it reads");
        let state = live.wait_for("the frame", |s| frames(s).len() as u64 == frame + 1);
        assert_eq!(state["session"], 3);
        assert_eq!(state["phase"], "running");
    }
    stdin
        .write_all(b"{\"type\":\"window\",\"window\":0,\"first\":0,\"last\":2,\"n-frames\":3,\"n-scored\":3,\"motion2.mean\":0.25}\n")
        .expect("it reads");
    let state = live.wait_for("the window", |s| s["windows"][0].is_object());
    assert_eq!(state["windows"][0]["motion2.mean"], 0.25);
    let events = live.events();
    drop(stdin);
    let last = events.last().expect("everything was told").1;
    assert_eq!(last["phase"], "ended");
    assert_eq!(live.finish().0, Some(0));
}

#[test]
fn a_signal_ends_the_stream_and_the_last_windows_are_written_and_told() {
    let desk = TempDir::new().expect("a temporary folder");
    let file = desk.path().join("scores.ndjson");
    let motion = format!("n-stats-frames=1000 scores-path={}", file.display());
    let live = Live::start(&mut Live::command(["--launch", &live_pipeline(&motion)]));
    let events = live.events();
    live.wait_for("some frames", |state| frames(state).len() > 20);
    live.signal(Signal::SIGINT);
    let told: Vec<Value> = events.map(|(_, data)| data).collect();
    let (status, said) = live.finish();
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(told.last().expect("news")["phase"], "stopped");

    let text = fs::read_to_string(&file).expect("a score file");
    let records: Vec<Record> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    let [.., Record::Window(window), Record::Summary(summary)] = &records[..] else {
        panic!("the last window and the summary are missing: {text}");
    };
    assert!(window.partial);
    let scored = summary.count("n-frames").expect("a count");
    assert_eq!(window.n_frames, scored);
    // Clients were told every frame, each once, and the window.
    let seen: Vec<u64> = told.iter().flat_map(frames).collect();
    assert_eq!(seen, (0..scored).collect::<Vec<_>>());
    let windows: Vec<&Value> = told
        .iter()
        .filter_map(|news| news["windows"].as_array())
        .flatten()
        .collect();
    assert_eq!(windows.len(), 1);
    assert_eq!(windows[0]["n-frames"], scored);
}

#[test]
fn more_clients_than_allowed_are_sent_away() {
    let live = Live::start(&mut Live::command([
        "--max-clients",
        "2",
        "--launch",
        &live_pipeline(""),
    ]));
    let mut seated = [live.events(), live.events()];
    for events in &mut seated {
        assert_eq!(events.next().expect("everything").0, "everything");
    }
    let (head, body) = live.get("/events");
    assert!(head.starts_with("HTTP/1.0 503"), "{head}");
    assert!(body.contains("--max-clients"), "{body}");
    let (_, text) = live.get("/metrics");
    assert_eq!(metric(&text, "vmafx_clients_refused_total"), Some(1.0));
    drop(seated);
    until("a free seat", || {
        let next = live.events().next();
        next.filter(|(kind, _)| kind == "everything")
    });
}

/// Fifty clients for `seconds`, one of which never reads, and one more that asks for far more than its socket
/// can hold. Every other client gets every frame.
fn fifty_clients(seconds: u64) {
    // 600 frames a second are 30 kB a second and client; a thousand windows would be skipped by the element.
    let pipeline = format!(
        "videotestsrc is-live=true pattern=ball num-buffers={} ! \
         video/x-raw,format=I420,width=64,height=48,framerate=600/1 ! vmafxmotion n-stats=0.5 ! fakesink sync=true",
        600 * seconds
    );
    let live = Live::start(&mut Live::command([
        "--client-timeout",
        "1",
        "--launch",
        &pipeline,
    ]));
    let connect = || TcpStream::connect(live.address()).expect("it listens");
    // One that watches and never reads, and one that asks for all again and again and never reads.
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", live.address());
    let mut deaf = connect();
    deaf.write_all(request("/events").as_bytes())
        .expect("it reads");
    let (mut stuck, request) = (connect(), request("/state"));
    let asking = thread::spawn(move || {
        // Ends when the server has cut the connection.
        while stuck.write_all(request.as_bytes()).is_ok() {}
    });
    let readers: Vec<_> = (0..49)
        .map(|_| {
            let events = live.events();
            thread::spawn(move || {
                let mut next = None;
                let mut received = 0;
                for (kind, data) in events {
                    for frame in frames(&data) {
                        // The greeting begins with the oldest frame that is kept.
                        if kind == "news" || next.is_some_and(|next| frame > next) {
                            assert_eq!(Some(frame), next.or(Some(frame)), "a frame is missing");
                        }
                        next = Some(frame + 1);
                        received += 1;
                    }
                }
                (next, received)
            })
        })
        .collect();
    live.wait_for("the clients", |_| {
        metric(&live.get("/metrics").1, "vmafx_clients") == Some(50.0)
    });
    asking.join().expect("writing does not panic");
    let warm = peak_memory(live.id());
    let mut worst_delay = 0;
    let mut peak = warm;
    let last = until_within(LIMIT + Duration::from_secs(2 * seconds), "the end", || {
        let state = live.state();
        let delay = state["health"]["delay"].as_i64();
        worst_delay = worst_delay.max(delay.expect("a live pipeline has one"));
        peak = peak_memory(live.id());
        (state["phase"] == "ended").then_some(state)
    });
    assert_eq!(last["totals"]["frames"], 600 * seconds);
    assert_eq!(
        last["health"]["late"], 0,
        "frames that were dropped for being late"
    );
    let watching = metric(&live.get("/metrics").1, "vmafx_clients");
    for reader in readers {
        let (next, _) = reader.join().expect("a reader sees every frame");
        assert_eq!(next, Some(600 * seconds));
    }
    println!(
        "{seconds} s: memory {warm} MiB with all clients there, at most {peak} MiB; worst score delay {worst_delay} ms; {watching:?} clients at the end"
    );
    assert!(peak < 160, "{peak} MiB");
    assert!(peak - warm < 32, "grew from {warm} to {peak} MiB");
    assert_eq!(live.finish().0, Some(0));
}

#[test]
fn fifty_clients_of_which_one_never_reads() {
    fifty_clients(8);
}

#[test]
#[ignore = "takes two minutes"]
fn fifty_clients_for_two_minutes() {
    fifty_clients(120);
}
