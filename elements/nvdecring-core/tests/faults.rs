// SPDX-License-Identifier: MPL-2.0

//! What happens when the device fails, is late or does not answer, by name.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::bench::{Bench, packet, packet_as};
use common::engine::Remains;
use common::script::{Fault, MS, Pic, Script};
use nvdecring_core::*;

fn config() -> Config {
    Config::new(Identity::Decoded)
}

fn run(bench: &Bench) -> (Result<(), Error>, Stopped) {
    let session = bench.open().unwrap();
    let result = bench.submit_all(&session).and_then(|()| session.drain());
    let stopped = session.stop();
    bench.check_clean(&stopped);
    (result, stopped)
}

fn reasons(bench: &Bench) -> Vec<(u64, String)> {
    (bench.out().dropped.iter())
        .map(|(token, reason)| (*token, reason.to_string()))
        .collect()
}

#[test]
fn a_late_picture_times_out_and_its_surface_is_kept_until_it_settles() {
    let mut script = Script::plain(30);
    script.pictures[3].latency = 700 * MS;
    (script.engines, script.reuse) = (2, common::script::Reuse::InTurn);
    let bench = Bench::new(7, script, config());
    let session = bench.open().unwrap();
    for number in 0..10 {
        session.submit(packet(number)).unwrap();
    }
    session.drain().unwrap();
    assert_eq!(reasons(&bench), [(3, "not decoded within 500ms".into())]);
    assert!((500 * MS..510 * MS).contains(&bench.sim.now()));
    // The engine still writes it. Later it is done, and the surface is as good as any other: the model
    // knows no mercy with pictures decoded into one that is being written.
    for number in 10..30 {
        session.submit(packet(number)).unwrap();
        bench.sim.sleep(20 * MS);
    }
    session.drain().unwrap();
    let stopped = session.stop();
    bench.check_clean(&stopped);
    let events = bench.out().events.clone();
    assert_eq!(
        (stopped.stats.timeouts, stopped.stats.decoders),
        (1, 1),
        "{events:?}"
    );
    assert_eq!(bench.shown().len(), 29);
}

#[test]
fn a_surface_that_never_settles_costs_the_decoder_only_when_it_is_needed() {
    // As many pictures as there are surfaces, and more: the parser comes back to the lost one.
    let script = Script::plain(60).fault(Call::Decode, 3, Fault::NeverSettles);
    let script = Script {
        reuse: common::script::Reuse::InTurn,
        ..script
    };
    let bench = Bench::new(7, script, config());
    let (result, stopped) = run(&bench);
    assert_eq!(result, Ok(()));
    assert_eq!(reasons(&bench), [(3, "not decoded within 500ms".into())]);
    assert_eq!((stopped.stats.timeouts, stopped.stats.decoders), (1, 2));
    let out = bench.out();
    let [
        Event::Recovered {
            by: Recovery::Decoder,
            after,
        },
    ] = &out.events[..]
    else {
        panic!("{:?}", out.events);
    };
    assert_eq!(after.text, "in progress for 500ms");
}

#[test]
fn every_surface_that_never_settles_ends_in_an_error_not_a_hang() {
    let mut script = Script::plain(60);
    for n in 0..600 {
        script = script.fault(Call::Decode, n, Fault::NeverSettles);
    }
    let bench = Bench::new(7, script, config());
    let (result, stopped) = run(&bench);
    assert!(matches!(result, Err(Error::DeviceLost(_))), "{result:?}");
    assert_eq!(stopped.stats.pictures, 0);
    assert_eq!((stopped.stats.decoders, stopped.stats.contexts), (3, 2));
}

#[test]
fn too_many_failures_in_a_row_replace_the_decoder() {
    let mut script = Script::plain(40);
    for n in 5..13 {
        script = script.fault(Call::Decode, n, Fault::Single);
    }
    let bench = Bench::new(7, script, config());
    let (result, stopped) = run(&bench);
    assert_eq!(result, Ok(()));
    // The eighth was given to the new decoder.
    assert_eq!((stopped.stats.failed, stopped.stats.decoders), (7, 2));
    assert_eq!(stopped.stats.pictures, 33);
}

#[test]
fn recovery_is_decoder_once_context_once_then_an_error() {
    for (fault, decoders, contexts, lost) in [
        (Fault::BreaksDecoder, 2, 1, false),
        (Fault::BreaksContext, 2, 2, false),
        (Fault::BreaksDevice, 1, 1, true),
    ] {
        for call in [
            Call::Decode,
            Call::Map,
            Call::BeginCopy,
            Call::FinishCopy,
            Call::Status,
        ] {
            for seed in 0..10 {
                let script = Script::plain(40).fault(call, 5, fault);
                let bench = Bench::new(seed, script, config());
                let (result, stopped) = run(&bench);
                let stats = stopped.stats;
                assert_eq!(
                    matches!(result, Err(Error::DeviceLost(_))),
                    lost,
                    "{result:?}"
                );
                assert_eq!(
                    (stats.decoders, stats.contexts),
                    (decoders, contexts),
                    "{fault:?} {call}"
                );
                if lost {
                    continue;
                }
                assert_eq!(stats.inside, 0);
                assert!(stats.pictures >= 29, "{fault:?} {call} {seed}: {stats:?}");
                assert_eq!(bench.out().events.len(), 1);
                // Nothing after the break is passed off as sound: there is one intra picture, the first.
                let out = bench.out();
                let after = out.pictures.iter().filter(|shown| shown.token >= 14);
                for shown in after {
                    assert_eq!(shown.damage, Damage::References, "{shown:?}");
                }
            }
        }
    }
}

#[test]
fn a_decoder_that_cannot_be_created_is_an_error_with_the_reason() {
    let script = Script::plain(3).fault(Call::CreateDecoder, 0, Fault::NotSupported);
    let bench = Bench::new(7, script, config());
    let (result, _) = run(&bench);
    assert_eq!(
        result.unwrap_err().to_string(),
        "unsupported stream: create_decoder failed: scripted (error 801)"
    );
    let script = Script::plain(3).fault(Call::OpenContext, 0, Fault::Single);
    let bench = Bench::new(7, script, config());
    let error = bench.open().err().unwrap();
    assert_eq!(
        error.to_string(),
        "cannot open: open_context failed: scripted (error 1)"
    );
    bench.sim.finish();
    assert_eq!(bench.engine.remains().contexts, 0);
}

const NOTHING: Remains = Remains {
    decoders: 0,
    contexts: 0,
    parsers: 0,
    mapped: 0,
};

/// Each call hangs once. The caller gets an error within the limit, stopping returns within its own, and
/// when the call does return one day the abandoned thread cleans up after itself and nothing comes out.
#[test]
fn whatever_hangs_is_abandoned_and_going_down_returns() {
    let opening = [Call::OpenContext, Call::CreateParser, Call::CreateDecoder];
    let running = [
        Call::Parse,
        Call::Decode,
        Call::Status,
        Call::Map,
        Call::BeginCopy,
        Call::FinishCopy,
        Call::Unmap,
    ];
    for call in opening.into_iter().chain(running) {
        for seed in 0..4 {
            let nth = if opening.contains(&call) { 0 } else { 3 };
            let script = Script::plain(40).fault(call, nth, Fault::Hangs);
            let bench = Bench::new(seed, script, config());
            let limit = if opening.contains(&call) {
                bench.config.open_timeout
            } else {
                bench.config.wedge_timeout
            };
            let started = bench.sim.now();
            let opened = bench.open();
            let session = opened.as_ref().ok().cloned();
            let result = opened.and_then(|session| {
                bench.submit_all(&session)?;
                session.drain()
            });
            let Err(Error::Wedged {
                call: named,
                elapsed,
            }) = &result
            else {
                panic!("{call}: {result:?}");
            };
            assert_eq!((*named, *elapsed >= limit), (call, true));
            // `open` has stopped what it began, which takes the stop timeout.
            let waited = bench.sim.now() - started;
            assert!(waited < limit + 200 * MS, "{call}: {waited:?}");

            if let Some(session) = session {
                let stalled = (bench.out().events.iter())
                    .any(|event| matches!(event, Event::Stalled { call: at, .. } if *at == call));
                assert!(
                    stalled || opening.contains(&call),
                    "{call} was not reported"
                );
                let before = bench.sim.now();
                let stopped = session.stop();
                assert!(bench.sim.now() - before <= bench.config.stop_timeout);
                assert!(!stopped.clean);
                assert_eq!(stopped.stuck, [call]);
                bench.check(&stopped);
            }
            let out = bench.out().pictures.len();
            bench.engine.release();
            bench.sim.finish();
            assert_eq!(
                bench.out().pictures.len(),
                out,
                "{call}: a picture after the stop"
            );
            assert_eq!(bench.engine.violations(), Vec::<String>::new(), "{call}");
            assert_eq!(bench.engine.remains(), NOTHING, "{call}");
        }
    }
}

/// A map that never returns, on a device without status queries: the parser goes on until it needs what the
/// worker holds, then everyone is told, and a stop returns.
#[test]
fn a_flush_on_a_hung_map_returns() {
    let mut script = Script::plain(10).fault(Call::Map, 2, Fault::Hangs);
    (script.has_status, script.reuse) = (false, common::script::Reuse::InTurn);
    let bench = Bench::new(1, script, config());
    let session = bench.open().unwrap();
    for number in 0..4 {
        session.submit(packet(number)).unwrap();
    }
    bench.sim.sleep(100 * MS);
    // The parser is free: the flush itself succeeds, and so does what comes next, until the ring is full.
    assert_eq!(session.flush(), Ok(2));
    let shown = bench.shown();
    let result =
        (4..40u64).try_for_each(|token| session.submit(packet_as(token, token as usize % 10)));
    assert!(
        matches!(
            result,
            Err(Error::Wedged {
                call: Call::Map,
                ..
            })
        ),
        "{result:?}"
    );
    bench.sim.sleep(3000 * MS);
    assert!(matches!(
        session.check(),
        Err(Error::Wedged {
            call: Call::Map,
            ..
        })
    ));
    assert!(matches!(session.flush(), Err(Error::Wedged { .. })));
    let stopped = session.stop();
    assert_eq!(stopped.stuck, [Call::Map]);
    bench.engine.release();
    bench.sim.finish();
    assert_eq!(bench.shown(), shown, "the late map came out");
    assert_eq!(bench.engine.remains(), NOTHING);
}

/// An output that does not return holds up a flush for a limited time, and a stop too.
#[test]
fn a_blocked_output_is_named_and_left_behind() {
    let bench = Bench::new(1, Script::plain(10), config());
    bench.out().blocked = true;
    let session = bench.open().unwrap();
    session.submit(packet(0)).unwrap();
    bench.sim.sleep(100 * MS);
    assert_eq!(
        session.flush(),
        Err(Error::OutputBusy(Duration::from_secs(2)))
    );
    let stopped = session.stop();
    assert_eq!((stopped.clean, &stopped.stuck[..]), (false, &[][..]));
    bench.out().blocked = false;
    bench.sim.finish();
    assert_eq!(bench.engine.remains(), NOTHING);
}

/// A paused pipeline: the output blocks for an hour, packets wait, and no watchdog calls that a fault.
#[test]
fn back_pressure_is_no_fault() {
    let bench = Arc::new(Bench::new(1, Script::plain(30), config()));
    bench.out().blocked = true;
    let session = bench.open().unwrap();
    let feeder = {
        let (bench, session) = (bench.clone(), session.clone());
        bench
            .sim
            .clone()
            .spawn(
                "feed",
                Box::new(move || {
                    bench.submit_all(&session).unwrap();
                    session.drain().unwrap();
                }),
            )
            .unwrap()
    };
    bench.sim.sleep(Duration::from_secs(3600));
    assert_eq!(session.stats().pictures, 1, "one is in the output");
    bench.out().blocked = false;
    feeder();
    bench.check_clean(&session.stop());
    assert_eq!(bench.shown().len(), 30);
    assert_eq!(bench.out().events, []);
}

/// One session hangs while it opens a device: another is refused, not drawn in.
#[test]
fn a_wedged_device_refuses_others() {
    let hung = Bench::new(
        1,
        Script::plain(1).fault(Call::OpenContext, 0, Fault::Hangs),
        config(),
    );
    let error = hung.open().err().unwrap();
    assert!(matches!(
        error,
        Error::Wedged {
            call: Call::OpenContext,
            ..
        }
    ));
    let other = Bench {
        engine: common::engine::Engine::new(&hung.sim, Script::plain(1)),
        out: Arc::default(),
        gate: hung.gate.clone(),
        sim: hung.sim.clone(),
        config: config(),
    };
    let error = other.open().err().unwrap();
    assert_eq!(
        error.to_string(),
        "the device is held by another session's opening the context, which does not return"
    );
    hung.engine.release();
    hung.sim.finish();
    other.open().unwrap();
}

#[test]
fn status_is_asked_once_where_there_is_none() {
    for (can_reconfigure, asked) in [(true, 1), (false, 3)] {
        let mut script = Script::plain(30);
        for (n, picture) in script.pictures.iter_mut().enumerate() {
            (picture.format, picture.intra) = (n as u32 / 10, n % 10 == 0);
        }
        (script.has_status, script.can_reconfigure) = (false, can_reconfigure);
        let bench = Bench::new(1, script, config());
        let (result, stopped) = run(&bench);
        assert_eq!(result, Ok(()));
        assert_eq!(bench.engine.calls("status"), asked);
        assert_eq!(stopped.stats.pictures, 30);
    }
}

/// Two changes of format with everything in flight: nothing is lost, in place or with new decoders.
#[test]
fn a_change_of_format_loses_nothing() {
    for can_reconfigure in [true, false] {
        for seed in 0..30 {
            let mut script = Script::plain(90);
            for (n, picture) in script.pictures.iter_mut().enumerate() {
                (picture.format, picture.intra) = (n as u32 / 30, n % 30 == 0);
                picture.latency = 4 * MS;
            }
            (script.can_reconfigure, script.downstream) = (can_reconfigure, 6 * MS);
            let bench = Bench::new(seed, script, config());
            let (result, stopped) = run(&bench);
            assert_eq!(result, Ok(()));
            let stats = stopped.stats;
            let expected = if can_reconfigure { (1, 2) } else { (3, 0) };
            assert_eq!((stats.decoders, stats.reconfigured), expected);
            assert_eq!(bench.shown(), (0..90).collect::<Vec<_>>());
        }
    }
}

/// After a drain and after a flush the parser gets the headers again (the engine complains otherwise), and
/// the decoder stays.
#[test]
fn drain_and_flush_keep_the_decoder_and_send_the_headers_again() {
    let mut script = Script::plain(9);
    script.pictures[3].intra = true;
    let bench = Bench::new(1, script, config());
    let session = bench.open().unwrap();
    for (number, flush) in [(0, false), (3, true), (6, false)] {
        for number in number..number + 3 {
            session.submit(packet(number)).unwrap();
        }
        if flush {
            session.flush().unwrap();
        } else {
            session.drain().unwrap();
        }
    }
    let stopped = session.stop();
    bench.check_clean(&stopped);
    assert_eq!(stopped.stats.decoders, 1);
    // Nine packets, three times headers, two ends of stream.
    assert_eq!(bench.engine.calls("parse"), 14);
    assert_eq!(bench.engine.calls("create_parser"), 2);
}

/// Film grain: the surface without grain is held too. Shown at once and decoded over without mercy.
#[test]
fn film_grain_surfaces_are_not_overwritten() {
    for seed in 0..50 {
        let mut script = Script::plain(40);
        for (n, picture) in script.pictures.iter_mut().enumerate() {
            (picture.film_grain, picture.reference) = (true, n % 2 == 0);
        }
        script.downstream = 3 * MS;
        let bench = Bench::new(seed, script, config());
        let (result, _) = run(&bench);
        assert_eq!(result, Ok(()));
        assert_eq!(bench.shown().len(), 40);
    }
}

/// Two fields are one picture; one that fails costs the picture, not the next.
#[test]
fn a_pair_of_fields_is_one_picture() {
    let mut script = Script::plain(10);
    for picture in &mut script.pictures {
        picture.fields = true;
    }
    // The second field of packet 2.
    let script = script.fault(Call::Decode, 5, Fault::Single);
    let bench = Bench::new(1, script, config());
    let (result, stopped) = run(&bench);
    assert_eq!(result, Ok(()));
    assert_eq!(bench.engine.calls("decode"), 20);
    assert_eq!(
        reasons(&bench),
        [(2, "decode failed: scripted (error 1)".into())]
    );
    assert_eq!((stopped.stats.pictures, stopped.stats.failed), (9, 1));
}

/// A stream that needs 30 of 32 surfaces: the ring shrinks to two slots, the stream keeps its surfaces.
#[test]
fn a_great_picture_buffer_shrinks_the_ring() {
    let plan = config().plan(30).unwrap();
    assert_eq!((plan.decode_surfaces, plan.ring_depth), (32, 2));
    let plan = config().plan(32).unwrap();
    assert_eq!((plan.decode_surfaces, plan.ring_depth), (32, 1));
    let plan = config().plan(5).unwrap();
    assert_eq!((plan.decode_surfaces, plan.ring_depth), (13, 8));
    let error = config().plan(33).unwrap_err().to_string();
    assert_eq!(
        error,
        "unsupported stream: the stream needs 33 decode surfaces, NVDEC has 32"
    );

    let mut script = Script::plain(60);
    (script.references, script.downstream) = (26, 2 * MS);
    let bench = Bench::new(1, script, config());
    let (result, stopped) = run(&bench);
    assert_eq!((result, stopped.stats.most_queued), (Ok(()), 2));
    assert_eq!(bench.shown().len(), 60);
}

/// Packets that hold nothing, and pictures that are decoded and never shown, are told of.
#[test]
fn packets_without_a_picture_are_told_of() {
    let mut script = Script::plain(6);
    script.pictures[2].empty = true;
    script.pictures[2].rank = None;
    script.pictures[3].rank = None;
    let bench = Bench::new(1, script, config());
    let (result, stopped) = run(&bench);
    assert_eq!(result, Ok(()));
    let mut told = reasons(&bench);
    told.sort_unstable();
    assert_eq!(
        told,
        [
            (2, "no picture in the packet".into()),
            (3, "decoded and never shown".into())
        ]
    );
    assert_eq!((stopped.stats.pictures, stopped.stats.dropped), (4, 2));
}

#[test]
fn bad_settings_and_tokens_are_refused_with_the_reason() {
    for depth in [0, 17, 255] {
        let error = RingDepth::try_from(depth).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("ring depth {depth}: must be 1 to 16")
        );
    }
    let refuse = |change: fn(&mut Config), part: &str| {
        let mut config = Config::new(Identity::Shown);
        change(&mut config);
        let text = config.check().unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    };
    refuse(
        |c| c.display_delay = 1,
        "must be 0 for codecs that do not reorder",
    );
    refuse(|c| c.display_delay = 5, "must be 0 to 4");
    refuse(|c| c.output_surfaces = 3, "must be 1 or 2");
    refuse(|c| c.decode_timeout = Duration::ZERO, "decode timeout 0");
    refuse(
        |c| c.wedge_timeout = MS,
        "must not be below the decode timeout",
    );
    refuse(|c| c.max_errors = 0, "1 or more");

    let bench = Bench::new(1, Script::plain(3), config());
    let session = bench.open().unwrap();
    session.submit(packet(1)).unwrap();
    let error = session.submit(packet(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "token 1 does not follow 1: tokens must grow"
    );
    bench.check_clean(&session.stop());
    assert_eq!(session.submit(packet(2)), Err(Error::Stopped));
    assert_eq!(session.flush(), Err(Error::Stopped));
    assert_eq!(session.drain(), Err(Error::Stopped));
}

/// The order of calls of a short session, and the thread of each.
#[test]
fn calls_come_in_the_documented_order_on_the_documented_threads() {
    let bench = Bench::new(1, Script::new(vec![Pic::new(0)]), config());
    let (result, _) = run(&bench);
    assert_eq!(result, Ok(()));
    let trace = bench.engine.trace();
    let of = |thread: &str| -> Vec<_> {
        (trace.iter().filter(|(_, on)| on == thread))
            .map(|(call, _)| *call)
            .collect()
    };
    assert_eq!(
        of(common::engine::PARSER),
        [
            "open_context",
            "create_parser",
            "parse",
            "parse",
            "create_decoder",
            "decode",
            "parse"
        ]
    );
    let mut worker = of(common::engine::WORKER);
    worker.dedup();
    assert_eq!(
        worker,
        ["status", "map", "begin_copy", "finish_copy", "unmap"]
    );
    assert_eq!(of("test"), [""; 0], "no call on the caller's thread");
}

struct Panics;

impl Sink<common::engine::Handle> for Panics {
    fn picture(&mut self, _: Picture<common::engine::Handle>) {
        panic!("the output panics");
    }

    fn dropped(&mut self, _: FrameToken, _: DropReason) {}
}

#[test]
fn a_panic_on_a_thread_is_an_error_of_the_session() {
    let bench = Bench::new(1, Script::plain(3), config());
    let session = Session::open(
        Arc::new(common::engine::Handle(bench.engine.clone())),
        bench.gate.clone(),
        bench.config,
        Box::new(Panics),
        Box::new(|_| {}),
        bench.sim.clock(),
    )
    .unwrap();
    let result = bench.submit_all(&session).and_then(|()| session.drain());
    assert_eq!(result, Err(Error::Panicked("worker")));
    let stopped = session.stop();
    assert!(stopped.clean);
    assert_eq!(bench.engine.remains(), NOTHING);
}
