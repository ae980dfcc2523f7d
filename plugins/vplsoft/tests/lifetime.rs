// SPDX-License-Identifier: MPL-2.0

//! Many sessions, one after the other and at once; nothing is left behind.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

mod client;

use client::stage::{in_child, under_valgrind};
use client::{Client, Feed, Frame, Options, live_surfaces, runtime};
use onevpl_sys::*;
use test_streams::named;

fn short() -> Feed {
    Feed::pieces(MFX_CODEC_AVC, &named("64x64-I-P-B-P.h264").bytes(), 1 << 20)
}

#[test]
fn eight_sessions_at_once_decode_as_one_does() {
    let stream = named("test-25fps.h264");
    let expected = stream.expected();
    let feed = Feed::pieces(MFX_CODEC_AVC, &stream.bytes(), 8192);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let (frames, _) = Client::direct("").decode(&feed, Options::default());
                let sums: Vec<String> = frames.iter().map(Frame::md5).collect();
                assert_eq!(sums, expected.list());
            });
        }
    });
}

/// Lines of this process's memory map that name the runtime.
fn mapped() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
    maps.lines()
        .filter(|line| line.contains("libvplsoft.so"))
        .count()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task")
        .expect("Linux has it")
        .count()
}

/// Resident memory in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .expect("it is in there");
    line.split_whitespace()
        .nth(1)
        .and_then(|value| value.parse().ok())
        .expect("a number")
}

#[test]
fn a_hundred_cycles_load_and_unload_without_a_trace() {
    in_child(
        "a_hundred_cycles_load_and_unload_without_a_trace",
        "",
        || {
            let feed = short();
            let before = threads();
            let mut after_warm_up = 0;
            for cycle in 0..100 {
                let client = Client::dispatched(MFX_CODEC_AVC).expect("the runtime is found");
                assert!(mapped() > 0);
                let (frames, _) = client.decode(&feed, Options::default());
                assert_eq!(frames.len(), 3);
                drop(client);
                assert_eq!(mapped(), 0, "cycle {cycle}: the library stays mapped");
                assert_eq!(threads(), before, "cycle {cycle}: a thread is left");
                if cycle == 20 {
                    after_warm_up = resident();
                }
            }
            let grown = resident().saturating_sub(after_warm_up);
            assert!(grown < 4096, "{grown} KiB more after 80 cycles");
        },
    );
}

#[test]
fn no_surface_is_left_after_many_sessions() {
    in_child("no_surface_is_left_after_many_sessions", "", || {
        let runtime = runtime();
        for seed in 0..30 {
            let client = Client::direct(&format!("seed={seed};pool=3"));
            let options = Options {
                hold: 2,
                ..Options::default()
            };
            assert_eq!(client.decode(&short(), options).0.len(), 3);
            drop(client);
            assert_eq!(live_surfaces(&runtime), 0);
        }
    });
}

/// The body of the run under valgrind.
#[test]
fn a_short_session() {
    in_child("a_short_session", "", || {
        for _ in 0..2 {
            let client = Client::dispatched(MFX_CODEC_AVC).expect("the runtime is found");
            assert_eq!(client.decode(&short(), Options::default()).0.len(), 3);
        }
    });
}

#[test]
fn valgrind_finds_no_error_and_no_leak_of_the_runtime() {
    under_valgrind("a_short_session", &[]);
}
