// SPDX-License-Identifier: MPL-2.0

//! Six scenarios every version of this ring has had to pass: single packet, three in sequence, completion
//! out of order, overflow with nine, decode errors, latency.

mod common;

use std::time::Duration;

use common::bench::{Bench, packet};
use common::script::{Fault, MS, Pic, Reuse, Script};
use nvdecring_core::*;

fn config() -> Config {
    Config::new(Identity::Decoded)
}

#[test]
fn single_packet() {
    let bench = Bench::new(1, Script::plain(1), config());
    let session = bench.open().unwrap();
    session.submit(packet(0)).unwrap();
    session.drain().unwrap();
    let stopped = session.stop();
    bench.check_clean(&stopped);
    assert_eq!(bench.shown(), [0]);
    assert_eq!(bench.out().pictures[0].damage, Damage::None);
    assert_eq!(stopped.stats.submitted, 1);
}

#[test]
fn sequential_three() {
    for seed in 0..50 {
        let bench = Bench::new(seed, Script::plain(3), config());
        let session = bench.open().unwrap();
        bench.submit_all(&session).unwrap();
        session.drain().unwrap();
        bench.check_clean(&session.stop());
        assert_eq!(bench.shown(), [0, 1, 2]);
        let tickets: Vec<_> = bench.out().pictures.iter().map(|p| p.ticket).collect();
        assert_eq!(tickets, [0, 1, 2]);
    }
}

/// A slow intra picture and quick ones after it, on engines that finish the quick ones first.
#[test]
fn out_of_order_completion() {
    for (seed, reuse) in (0..60).zip(
        [Reuse::Lowest, Reuse::Hostile, Reuse::InTurn]
            .into_iter()
            .cycle(),
    ) {
        let mut script = Script::plain(12);
        for (n, picture) in script.pictures.iter_mut().enumerate() {
            picture.latency = if n % 4 == 0 { 15 * MS } else { 3 * MS };
            picture.intra = n % 4 == 0;
        }
        script.engines = 3;
        script.reuse = reuse;
        script.has_status = seed % 2 == 0;
        let bench = Bench::new(seed, script, config());
        let session = bench.open().unwrap();
        bench.submit_all(&session).unwrap();
        session.drain().unwrap();
        // `check` compares the pixels of each picture with its packet.
        bench.check_clean(&session.stop());
        assert_eq!(bench.shown(), (0..12).collect::<Vec<_>>());
    }
}

/// A parser that takes surfaces in turn. One that comes back to a surface that is still in the ring waits
/// for it before the ring is full.
fn in_turn(count: u32) -> Script {
    Script {
        reuse: Reuse::InTurn,
        ..Script::plain(count)
    }
}

/// Eight slots, nothing leaves, a ninth packet: refused at once, and nothing of it consumed.
#[test]
fn overflow_with_nine() {
    let config = Config {
        overflow: Overflow::Fail,
        ..config()
    };
    let bench = Bench::new(3, in_turn(9), config);
    bench.out().blocked = true;
    let session = bench.open().unwrap();
    for number in 0..8 {
        session.submit(packet(number)).unwrap();
    }
    for refused in 1..=20 {
        assert_eq!(session.submit(packet(8)), Err(Error::Overflow { depth: 8 }),);
        let stats = session.stats();
        assert_eq!((stats.submitted, stats.overflows), (8, refused));
    }
    assert_eq!(bench.engine.calls("decode"), 8);
    bench.out().blocked = false;
    bench.sim.sleep(1000 * MS);
    session.submit(packet(8)).unwrap();
    session.drain().unwrap();
    bench.check_clean(&session.stop());
    assert_eq!(bench.shown(), (0..9).collect::<Vec<_>>());
}

/// The default: the ninth packet waits, and nothing is lost.
#[test]
fn overflow_with_nine_waits_by_default() {
    let bench = Bench::new(
        3,
        Script {
            downstream: 5 * MS,
            ..in_turn(30)
        },
        config(),
    );
    let session = bench.open().unwrap();
    bench.submit_all(&session).unwrap();
    session.drain().unwrap();
    let stopped = session.stop();
    bench.check_clean(&stopped);
    assert_eq!(bench.shown(), (0..30).collect::<Vec<_>>());
    assert_eq!(stopped.stats.most_queued, 8);
    assert!(stopped.stats.slot_wait > 5 * MS, "{stopped:?}");
}

/// One picture the decoder refuses, one with errors, one with concealed errors: each comes out as what it
/// is, those that depend on them are marked, and an intra picture ends that.
#[test]
fn decode_errors() {
    let mut script = Script::plain(12);
    script.pictures[6].intra = true;
    script.pictures[7].status = DecodeStatus::Error;
    script.pictures[9].intra = true;
    script.pictures[10].status = DecodeStatus::Concealed;
    script.pictures[10].reference = false;
    let script = script.fault(Call::Decode, 3, Fault::Single);
    let bench = Bench::new(4, script, config());
    let session = bench.open().unwrap();
    bench.submit_all(&session).unwrap();
    session.drain().unwrap();
    let stopped = session.stop();
    bench.check_clean(&stopped);
    let damage: Vec<_> = (bench.out().pictures.iter())
        .map(|shown| (shown.token, shown.damage))
        .collect();
    assert_eq!(
        damage,
        [
            (0, Damage::None),
            (1, Damage::None),
            (2, Damage::None),
            (4, Damage::References),
            (5, Damage::References),
            (6, Damage::None),
            (7, Damage::Errors),
            (8, Damage::References),
            (9, Damage::None),
            (10, Damage::Concealed),
            (11, Damage::None),
        ]
    );
    let out = bench.out();
    let [(3, DropReason::Decode(error))] = &out.dropped[..] else {
        panic!("{:?}", out.dropped);
    };
    assert_eq!(error.to_string(), "decode failed: scripted (error 1)");
    assert_eq!((stopped.stats.failed, stopped.stats.damaged), (1, 5));
}

/// The time one picture after the other takes: parse, decode, map, copy, output, and only then the next.
fn one_by_one(script: &Script) -> Duration {
    let each = script.copy + script.downstream;
    script
        .pictures
        .iter()
        .map(|picture| picture.latency + each)
        .sum()
}

fn elapsed(bench: &Bench) -> Duration {
    let session = bench.open().unwrap();
    bench.submit_all(&session).unwrap();
    session.drain().unwrap();
    let elapsed = bench.sim.now();
    bench.check_clean(&session.stop());
    elapsed
}

/// The ring overlaps decoding with copying and with what comes after: two equal halves take the time of
/// one. Measured on the virtual clock, so the same on every machine.
#[test]
fn latency_benchmark() {
    println!(
        "{:>28} {:>11} {:>11} {:>6}",
        "600 pictures", "one by one", "ring", "gain"
    );
    let cases = [
        ("decode 4 ms, output 4 ms", 4, 4, 1.95, 2.0),
        ("decode 4 ms, output 1 ms", 4, 1, 1.2, 1.25),
        // The engine is the limit: nothing to gain.
        ("decode 4 ms, output 0 ms", 4, 0, 0.95, 1.0),
        ("decode 1 ms, output 4 ms", 1, 4, 1.2, 1.25),
    ];
    for has_status in [true, false] {
        for (name, decode, output, least, most) in cases {
            let mut script = Script::plain(600);
            for picture in &mut script.pictures {
                picture.latency = decode * MS;
            }
            script.downstream = output * MS;
            script.has_status = has_status;
            let serial = one_by_one(&script);
            let ring = elapsed(&Bench::new(1, script, config()));
            let gain = serial.as_secs_f64() / ring.as_secs_f64();
            println!("{name:>28} {serial:>11?} {ring:>11?} {gain:>6.2}");
            assert!((least..=most).contains(&gain), "{name}: {gain}");
        }
    }
}

/// At display delay 0 a picture leaves as soon as it is decoded and copied: within the time between two
/// status queries, whatever is in the ring behind it.
#[test]
fn latency_of_a_picture() {
    for has_status in [true, false] {
        let mut script = Script::plain(50);
        for picture in &mut script.pictures {
            picture.latency = 8 * MS;
        }
        script.copy = MS;
        script.has_status = has_status;
        let bench = Bench::new(1, script, config());
        elapsed(&bench);
        for (shown, n) in bench.out().pictures.iter().zip(1u32..) {
            let decoded = n * 8 * MS;
            let late = shown.times.out - decoded;
            assert!(
                late <= 3 * MS,
                "picture {n} left {late:?} after it was decoded"
            );
        }
    }
}

/// One engine, 15 ms for the intra picture and 3 ms for the others, 1 ms to copy: what decoding alone
/// takes, plus one copy.
#[test]
fn latency_of_a_mixed_group() {
    let mut script = Script::new(vec![Pic::new(0), Pic::new(1), Pic::new(2)]);
    script.pictures[0].latency = 15 * MS;
    script.pictures[1].latency = 3 * MS;
    script.pictures[2].latency = 3 * MS;
    script.copy = MS;
    script.has_status = false;
    let bench = Bench::new(1, script, config());
    assert_eq!(elapsed(&bench), 22 * MS);
}
