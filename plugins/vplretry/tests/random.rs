// SPDX-License-Identifier: MPL-2.0

//! Random scripts through dispatcher, loop and element: frames in = out + dropped + errored, order kept, no
//! surface left, and every pipeline ends within its budgets.
//!
//! `VPLRETRY_RANDOM_CASES=500` plays 500 of them in place of a short form; `VPLRETRY_RANDOM_SEED=N` repeats the
//! script of one seed and prints it.

mod common;

use common::{Player, assert_no_surfaces, in_child, set_faults, source};
use fastrand::Rng;
use gst::prelude::*;
use test_streams::named;

const CASES: &str = "VPLRETRY_RANDOM_CASES";
const SEED: &str = "VPLRETRY_RANDOM_SEED";
/// Plays in some ten seconds.
const SHORT: u64 = 100;

/// Statuses that ask for patience and cost nothing.
const HARMLESS: [i32; 18] = [
    0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 5, 7, 8, 10, 12, 13, -11, -10_000,
];
/// Statuses that cost frames, a session or the stream.
const OTHERS: [i32; 14] = [
    -1, -2, -3, -4, -5, -7, -9, -12, -13, -14, -16, -17, -22, 777,
];

fn entry(rng: &mut Rng, harmless: bool) -> String {
    if rng.u8(..3) > 0 {
        return format!("_*{}", rng.u8(1..8));
    }
    let status = if harmless || rng.bool() {
        rng.choice(HARMLESS).unwrap_or(0)
    } else {
        rng.choice(OTHERS).unwrap_or(0)
    };
    // A surface that comes with an error is lost.
    let flags = if harmless && status < 0 { 3 } else { 5 };
    let flags = ["", "", "s", "sf", "f"][rng.usize(..flags)];
    match rng.u8(..8) {
        0 | 1 => format!("{status}{flags}*{}", rng.u8(1..20)),
        2 if !harmless => format!("{status}{flags}*{}", rng.u8(50..150)),
        _ => format!("{status}{flags}"),
    }
}

struct Case {
    stream: &'static str,
    faults: String,
    properties: String,
    harmless: bool,
    /// Frames after which it is sought back to the beginning, or stopped.
    seek_at: Option<usize>,
    stop_at: Option<usize>,
    /// Time that upstream takes for an access unit, in microseconds: it may be slower than decoding.
    upstream: u32,
}

fn case(seed: u64) -> Case {
    let mut rng = Rng::with_seed(seed);
    let harmless = rng.bool();
    let entries: Vec<String> = (0..rng.usize(1..25))
        .map(|_| entry(&mut rng, harmless))
        .collect();
    let mut faults = format!("script={}", entries.join(","));
    let number = rng.u8(..24);
    for (one_in, costs, key) in [
        (5, false, format!("busy={number}")),
        (5, false, format!("busy-with-sync={number}")),
        (
            5,
            false,
            format!(
                "latency-us={}:{}:{}",
                rng.u16(..3000),
                rng.u16(..2000),
                rng.u16(..900)
            ),
        ),
        (7, false, format!("engines={}", rng.u8(1..3))),
        (6, false, format!("pool={}", rng.u8(2..20))),
        (9, true, format!("fail-decode={number}")),
        (9, true, format!("status-error={number}")),
        (6, true, format!("corrupt={number}")),
        (6, true, format!("device-lost={number}:{}", rng.u8(1..3))),
        (4, false, format!("seed={}", rng.u16(..))),
    ] {
        if rng.u8(..one_in) == 0 && !(harmless && costs) {
            faults.push(';');
            faults.push_str(&key);
        }
    }
    let mut properties = format!(
        "async-depth={} max-attempts={} device-retries={} sync-timeout=20000 corrupted-frames={}",
        rng.u8(..7),
        rng.u32(160..400),
        rng.u8(..4),
        if harmless {
            "mark"
        } else {
            ["mark", "drop", "error"][rng.usize(..3)]
        },
    );
    for (one_in, property) in [(3, " zero-copy=true"), (3, " low-latency=true")] {
        if rng.u8(..one_in) == 0 {
            properties.push_str(property);
        }
    }
    let frames = rng.usize(1..24);
    Case {
        stream: [
            "test-25fps.vp8",
            "test-25fps.vp9",
            "64x64-I-P-B-P.h265",
            "bbb.h265",
        ][rng.usize(..4)],
        faults,
        properties,
        harmless,
        seek_at: (rng.u8(..5) == 0).then_some(frames),
        stop_at: (rng.u8(..8) == 0).then_some(frames),
        upstream: if rng.u8(..4) == 0 { rng.u32(..3000) } else { 0 },
    }
}

fn play(seed: u64, say: bool) -> &'static str {
    let case = case(seed);
    let text = format!(
        "{SEED}={seed}: {} with {} and {} (seek {:?}, stop {:?}, upstream {} us)",
        case.stream, case.faults, case.properties, case.seek_at, case.stop_at, case.upstream
    );
    if say {
        println!("{text}");
    }
    set_faults(&case.faults);
    let stream = named(case.stream);
    let mut player = Player::new(&format!(
        "{} ! identity eos-after=49 sleep-time={} ! vplretrydec name=dec implementation=software {}",
        source(&stream),
        case.upstream,
        case.properties
    ));
    player.play();
    if let Some(frames) = case.seek_at {
        player.pull(frames);
        if player.played.errors.is_empty() && !player.played.eos {
            let pad = player.decoder().static_pad("sink").expect("a sink pad");
            let segment = pad.sticky_event::<gst::event::Segment>(0);
            assert!(pad.send_event(gst::event::FlushStart::new()), "{text}");
            // A source that did not push meanwhile goes on: nothing may come before the new segment.
            let data_waits = pad.stream_lock();
            assert!(pad.send_event(gst::event::FlushStop::new(true)), "{text}");
            if let Some(segment) = segment {
                assert!(pad.send_event(segment), "{text}");
            }
            drop(data_waits);
            player.stop();
        }
    } else {
        player.pull(case.stop_at.unwrap_or(usize::MAX));
        let ended = player.played.eos || !player.played.errors.is_empty();
        assert!(ended || case.stop_at.is_some(), "{text}");
        player.stop();
    }
    let played = std::mem::take(&mut player.played);
    drop(player);
    assert_no_surfaces();
    let times: Vec<_> = played.frames.iter().map(|frame| frame.pts).collect();
    assert!(times.is_sorted(), "{text}: {times:?}");
    let stopped = case.seek_at.is_some() || case.stop_at.is_some();
    if !stopped {
        let parts = ["frames", "dropped", "errored", "flushed", "without-picture"];
        let sum: u64 = parts.iter().map(|name| played.stat(name)).sum();
        assert_eq!(played.stat("frames-in"), sum, "{text}: {:?}", played.stats);
    }
    if let Some((error, _)) = played.errors.first() {
        assert!(!case.harmless, "{text}: {error}");
        return "an error";
    }
    if stopped {
        return "stopped";
    }
    if case.harmless {
        let expected = stream.expected();
        for (frame, wanted) in played.frames.iter().zip(expected.list()) {
            assert_eq!(&expected.checksum(&frame.pixels), wanted, "{text}");
        }
        assert_eq!(
            played.stat("dropped") + played.stat("errored"),
            0,
            "{text}: {:?}",
            played.stats
        );
        return "nothing lost";
    }
    "ended"
}

#[test]
fn random_scripts() {
    in_child("random_scripts", || {
        let number = |name: &str| {
            let text = std::env::var(name).ok()?;
            Some(
                text.parse()
                    .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
            )
        };
        if let Some(seed) = number(SEED) {
            println!("{}", play(seed, true));
            return;
        }
        let cases = number(CASES).unwrap_or(SHORT);
        let mut ends = std::collections::BTreeMap::new();
        for seed in 0..cases {
            println!("seed {seed}");
            *ends.entry(play(seed, false)).or_insert(0) += 1;
        }
        println!("{ends:#?}");
        for end in ["nothing lost", "an error", "ended", "stopped"] {
            assert!(ends.contains_key(end), "none ended with {end}: {ends:?}");
        }
    });
}
