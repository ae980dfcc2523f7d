// SPDX-License-Identifier: MPL-2.0

//! The invariants over random streams, schedules and faults. Each test says which it proves;
//! `docs/nvdecring-core.md` has the table.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::bench::{Bench, packet};
use common::script::{Script, any_faults, any_reordered, any_shown};
use nvdecring_core::*;
use proptest::prelude::*;

/// So many, or as many as `PROPTEST_CASES` says.
fn cases(count: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|asked| asked.parse().ok()).unwrap_or(count),
        ..ProptestConfig::default()
    }
}

fn config(identity: Identity, depth: u8, output_surfaces: u8, packets_ahead: u8) -> Config {
    Config {
        packets_ahead,
        ring_depth: RingDepth::try_from(depth).unwrap(),
        output_surfaces,
        ..Config::new(identity)
    }
}

fn any_script() -> impl Strategy<Value = (Script, Identity)> {
    prop_oneof![
        any_reordered().prop_map(|script| (script, Identity::Decoded)),
        any_shown().prop_map(|script| (script, Identity::Shown)),
    ]
}

/// Every shown picture of the script must come out.
fn expected(script: &Script) -> Vec<u64> {
    let mut shown: Vec<_> = (script.pictures.iter().zip(0u64..))
        .filter(|(picture, _)| picture.rank.is_some() || picture.shows.is_some())
        .map(|(picture, packet)| (picture.rank, packet))
        .collect();
    if script
        .pictures
        .iter()
        .all(|picture| picture.shows.is_none())
    {
        shown.sort_unstable();
    }
    shown.into_iter().map(|(_, packet)| packet).collect()
}

proptest! {
    #![proptest_config(cases(250))]

    /// I1, I2, I3, I4, I6, I8, I10, I11, I12: without faults every picture comes out, as itself, in order.
    #[test]
    fn every_picture_comes_out_as_itself(
        (script, identity) in any_script(), depth in 1u8..=16, ahead in 0u8..=4, surfaces in 1u8..=2, seed: u64,
    ) {
        let bench = Bench::new(seed, script, config(identity, depth, surfaces, ahead));
        let session = bench.open().unwrap();
        bench.submit_all(&session).unwrap();
        session.drain().unwrap();
        let stopped = session.stop();
        bench.check_clean(&stopped);
        prop_assert_eq!(bench.shown(), expected(&bench.engine.script));
        prop_assert_eq!(stopped.stats.inside, 0);
        prop_assert_eq!(stopped.stats.failed, 0);
        prop_assert!(bench.engine.most_mapped() <= usize::from(surfaces));
        prop_assert_eq!(bench.engine.calls("map"), bench.engine.calls("unmap"));
    }

    /// I1, I4, I5, I8, I10, I12 with calls that fail in every way, surfaces that never settle and devices
    /// that are lost: nothing wrong comes out, each frame ends once, nothing is left behind.
    #[test]
    fn failures_at_any_call_lose_no_account(
        (script, identity) in any_script(), faults in any_faults(6), depth in 1u8..=16, ahead in 0u8..=4,
        surfaces in 1u8..=2, seed: u64,
    ) {
        let mut script = Script { faults, ..script };
        // Without a status a surface that never settles is a map that never returns: tested by name.
        script.has_status |= script.faults.values().any(|f| *f == common::script::Fault::NeverSettles);
        let status_fails = script.faults.keys().any(|(call, _)| *call == "status");
        if status_fails {
            script.faults.retain(|_, fault| *fault != common::script::Fault::NeverSettles);
        }
        let bench = Bench::new(seed, script, config(identity, depth, surfaces, ahead));
        let session = match bench.open() {
            Ok(session) => session,
            Err(error) => {
                prop_assert!(matches!(error, Error::Open(_)), "{}", error);
                return Ok(());
            }
        };
        let drained = bench.submit_all(&session).and_then(|()| session.drain());
        let stopped = session.stop();
        bench.check_clean(&stopped);
        match drained {
            Ok(()) => {
                prop_assert_eq!(stopped.stats.inside, 0, "drained, yet frames are inside");
                let out = bench.out();
                prop_assert_eq!(
                    out.pictures.len() + out.dropped.len(),
                    bench.engine.script.pictures.len()
                );
            }
            Err(error) => prop_assert!(
                matches!(error, Error::DeviceLost(_) | Error::Unsupported(_) | Error::Open(_)),
                "{}", error
            ),
        }
    }

    /// I5, I7, I8, I9, I10: flushes at any moment, from another thread.
    #[test]
    fn after_a_flush_nothing_old_comes_out(
        (script, identity) in any_script(), faults in any_faults(2), depth in 1u8..=16, ahead in 0u8..=4, seed: u64,
        moments in prop::collection::vec(0u64..60_000, 1..4),
    ) {
        let script = Script { has_status: true, faults: faults.into_iter().filter(|((call, _), _)| {
            !["status", "open_context", "create_parser"].contains(call)
        }).collect(), ..script };
        let bench = Arc::new(Bench::new(seed, script, config(identity, depth, 2, ahead)));
        let session = bench.open().unwrap();
        let next = Arc::new(AtomicU64::new(0));
        let flusher = {
            let (bench, session, next) = (bench.clone(), session.clone(), next.clone());
            let sim = bench.sim.clone();
            bench.sim.clone().spawn("flush", Box::new(move || {
                for moment in moments {
                    sim.sleep(Duration::from_micros(moment));
                    // The packet that is being submitted may be taken before or after the flush.
                    let before = next.load(Ordering::SeqCst);
                    let result = session.flush();
                    // Nobody else is in the output now: what it has is what it gets of the old ones.
                    let out = bench.out();
                    let (pictures, dropped) = (out.pictures.len(), out.dropped.len());
                    assert!(!out.busy, "a picture is in the output after the flush");
                    drop(out);
                    sim.sleep(Duration::from_millis(500));
                    if result.is_err() {
                        continue;
                    }
                    let out = bench.out();
                    for token in out.pictures[pictures..].iter().map(|shown| shown.token)
                        .chain(out.dropped[dropped..].iter().map(|(token, _)| *token))
                    {
                        assert!(token >= before, "I7: {token} was submitted before the flush");
                    }
                }
            })).unwrap()
        };
        let mut ended = Ok(());
        for number in 0..bench.engine.script.pictures.len() {
            next.store(number as u64, Ordering::SeqCst);
            ended = session.submit(packet(number));
            match &ended {
                Err(Error::Flushing) => bench.sim.sleep(Duration::from_millis(1)),
                Err(_) => break,
                Ok(()) => {}
            }
        }
        let _ = session.drain();
        flusher();
        let stopped = session.stop();
        bench.check_clean(&stopped);
        if let Err(error) = ended {
            prop_assert!(matches!(
                error,
                Error::Flushing | Error::DeviceLost(_) | Error::Unsupported(_) | Error::Open(_)
            ), "{}", error);
        }
    }

    /// I9, I10: a stop at any moment ends both threads and destroys everything, whatever they were at.
    #[test]
    fn a_stop_at_any_moment_is_clean(
        (script, identity) in any_script(), depth in 1u8..=16, ahead in 0u8..=4, seed: u64, moment in 0u64..60_000,
    ) {
        // Longer than any call of the script takes, so that it is no question of time.
        let config = Config { stop_timeout: Duration::from_secs(10), ..config(identity, depth, 2, ahead) };
        let bench = Arc::new(Bench::new(seed, script, config));
        let session = bench.open().unwrap();
        let feeder = {
            let (bench, session) = (bench.clone(), session.clone());
            bench.sim.clone().spawn("feed", Box::new(move || {
                let result = bench.submit_all(&session).and_then(|()| session.drain());
                assert!(matches!(result, Ok(()) | Err(Error::Stopped)), "{result:?}");
            })).unwrap()
        };
        bench.sim.sleep(Duration::from_micros(moment));
        let stopped = session.stop();
        feeder();
        bench.check_clean(&stopped);
    }
}
