// SPDX-License-Identifier: MPL-2.0

//! Random scripts through the loop: the invariants of [`play`](crate::play::play) hold whatever comes.
//!
//! `VPLSOFT_RETRY_SEED=N` repeats the script of one seed and prints it; `VPLSOFT_RETRY_CASES=N` plays the
//! seeds from 0 to N - 1 in place of 500.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use fastrand::Rng;
use test_streams::named;
use vplretry_core::{CorruptedFrames, Error, Settings, Status};

use crate::client::stage::{in_child, under_valgrind};
use crate::play::{Cancel, Downstream, Played, Reference, Setup, play};
use crate::units::Source;

const SEED: &str = "VPLSOFT_RETRY_SEED";
const CASES: &str = "VPLSOFT_RETRY_CASES";

/// Statuses that ask for patience and cost nothing.
const HARMLESS: [i32; 18] = [
    0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 5, 7, 8, 10, 12, 13, -11, -10_000,
];

/// Statuses after which a loop can go on for long.
const MILD: [i32; 12] = [0, 2, 3, 777, -5, -7, -9, -12, -14, -1, -13, -23];

fn entry(rng: &mut Rng, harmless: bool) -> String {
    if rng.u8(..3) > 0 {
        return format!("_*{}", rng.u8(1..6));
    }
    let status = match rng.u8(..12) {
        _ if harmless => rng.choice(HARMLESS).unwrap_or(0),
        0 => rng.choice(Status::NAMED).map_or(0, |named| named.0.0),
        1 => rng.i32(-40..40),
        2..=6 => rng.choice(HARMLESS).unwrap_or(0),
        _ => rng.choice(MILD).unwrap_or(0),
    };
    // A surface that comes with an error is lost.
    let flags = if harmless && status < 0 { 3 } else { 5 };
    let flags = ["", "", "s", "sf", "f"][rng.usize(..flags)];
    // Some go on for longer than any budget allows.
    match rng.u8(..16) {
        0..4 => format!("{status}{flags}*{}", rng.u8(1..20)),
        4 if !harmless => format!("{status}{flags}*{}", rng.u8(50..150)),
        _ => format!("{status}{flags}"),
    }
}

/// A script, and now and then other faults beside it.
fn faults(rng: &mut Rng) -> String {
    let harmless = rng.bool();
    let entries: Vec<String> = (0..rng.usize(1..25))
        .map(|_| entry(rng, harmless))
        .collect();
    let mut faults = format!("script={}", entries.join(","));
    let number = rng.u8(..24);
    for (one_in, key) in [
        (6, format!("busy={number}")),
        (6, format!("busy-with-sync={number}")),
        (
            5,
            format!(
                "latency-us={}:{}:{}",
                rng.u16(..3000),
                rng.u16(..2000),
                rng.u16(..900)
            ),
        ),
        (8, format!("engines={}", rng.u8(1..3))),
        (6, format!("pool={}", rng.u8(1..5))),
        (9, format!("fail-decode={number}")),
        (9, format!("status-error={number}")),
        (6, format!("corrupt={number}")),
        (4, format!("seed={}", rng.u16(..))),
    ] {
        if rng.u8(..one_in) == 0 {
            faults.push(';');
            faults.push_str(&key);
        }
    }
    faults
}

fn setup(rng: &mut Rng) -> Setup {
    Setup {
        settings: Settings {
            async_depth: rng.usize(..6),
            max_attempts: rng.u32(5..60),
            spin_guard: rng.u32(5..40),
            device_retries: rng.u32(..4),
            damage_streak: rng.u32(1..4),
            sync_timeout: Duration::from_secs(600),
            corrupted_frames: match rng.u8(..8) {
                0 => CorruptedFrames::Error,
                1 | 2 => CorruptedFrames::Drop,
                _ => CorruptedFrames::Mark,
            },
            ..Settings::default()
        },
        runtime_depth: rng.u16(1..6),
        faults: (0..rng.usize(1..4)).map(|_| faults(rng)).collect(),
        downstream: match rng.u8(..8) {
            0 => Downstream::KeepsAll,
            1 | 2 => Downstream::GivesOneBackPerPause,
            _ => Downstream::Takes,
        },
        cancel: (rng.u8(..3) == 0).then(|| Cancel {
            at: rng.u64(..24),
            questions: rng.u32(..12),
            flush: rng.bool(),
        }),
        batch: rng.usize(1..6),
    }
}

/// Short streams with many key frames.
fn sources() -> Vec<(Source, Reference)> {
    let sources = [
        Source::repeated(&named("64x64-I-P-B-P.h264"), usize::MAX, 8),
        Source::repeated(&named("64x64-I-P-B-P.h265"), usize::MAX, 8),
        Source::repeated(&named("test-25fps.vp9"), 8, 3),
        Source::repeated(&named("test-25fps.vp8"), 8, 3),
    ];
    sources
        .into_iter()
        .map(|source| {
            let reference = Reference::of(&source);
            (source, reference)
        })
        .collect()
}

fn play_seed(seed: u64, sources: &[(Source, Reference)], say: bool) -> Played {
    let mut rng = Rng::with_seed(seed);
    let (source, reference) = &sources[rng.usize(..sources.len())];
    let setup = setup(&mut rng);
    let played = catch_unwind(AssertUnwindSafe(|| {
        let played = play(source, &setup);
        reference.compare(&played);
        played
    }));
    if say || played.is_err() {
        println!(
            "seed {seed} ({SEED}={seed} repeats it), {}: {setup:#?}",
            source.name
        );
    }
    played.unwrap_or_else(|panic| resume_unwind(panic))
}

/// How a run ended, in a word.
fn end(played: &Played) -> &'static str {
    match &played.end {
        Ok(_) if played.books.intact && played.stats.discarded == 0 => "nothing lost",
        Ok(_) => "something lost",
        Err(Error::Exhausted(_)) => "exhausted",
        Err(Error::DeviceLost { .. }) => "device lost",
        Err(Error::Fatal { .. }) => "fatal",
        Err(Error::Corrupted(_)) => "corrupted",
        Err(other) => panic!("{other}"),
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
    )
}

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).expect("Linux has it").count()
}

/// Bytes that malloc has given out and not got back.
fn allocated() -> usize {
    // SAFETY: it only reads the allocator's counters.
    let counters = unsafe { libc::mallinfo2() };
    counters.uordblks + counters.hblkhd
}

#[test]
fn five_hundred_random_scripts() {
    in_child("random::five_hundred_random_scripts", "", || {
        let sources = sources();
        if let Some(seed) = number(SEED) {
            let played = play_seed(seed, &sources, true);
            println!("{:?}\n{:#?}\n{:#?}", played.end, played.stats, played.books);
            return;
        }
        let cases = number(CASES).unwrap_or(500);
        let mut ends = BTreeMap::new();
        let (mut resources, mut memory) = ((0, 0), 0);
        for seed in 0..cases {
            if seed == cases / 5 {
                resources = (count("/proc/self/task"), count("/proc/self/fd"));
                memory = allocated();
            }
            let played = play_seed(seed, &sources, false);
            *ends.entry(end(&played)).or_insert(0) += 1;
            if played.flushes > 0 {
                *ends.entry("(flushed)").or_insert(0) += 1;
            }
        }
        println!("{ends:#?}");
        assert_eq!(
            resources,
            (count("/proc/self/task"), count("/proc/self/fd"))
        );
        let grown = allocated().saturating_sub(memory);
        println!("{grown} bytes more after {} scripts", cases - cases / 5);
        assert!(
            grown < 256 << 10,
            "{grown} bytes more after {} scripts",
            cases - cases / 5
        );
        for wanted in [
            "nothing lost",
            "something lost",
            "exhausted",
            "device lost",
            "fatal",
        ] {
            assert!(
                cases < 500 || ends.contains_key(wanted),
                "no run ended with {wanted}: {ends:?}"
            );
        }
    });
}

/// Few, because each takes 3 seconds there; `VPLSOFT_RETRY_CASES=N` plays more.
#[test]
fn valgrind_finds_nothing_in_random_scripts() {
    let cases = number(CASES).unwrap_or(4).to_string();
    under_valgrind("random::five_hundred_random_scripts", &[(CASES, &cases)]);
}
