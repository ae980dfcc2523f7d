// SPDX-License-Identifier: MPL-2.0

//! The hand-off between caller, parser thread, worker and flush, in every order a scheduler can choose up to
//! a number of preemptions: nobody waits for a wake-up that does not come. loom's clock stands still, so a
//! wait that only its deadline would end is a deadlock here.
//!
//! The modules are compiled a second time, against loom's lock and condition variable. Every `cargo test`
//! tries the parser's callbacks against the worker with one preemption, and whole sessions with none (where a
//! thread waits, all others are tried anyway). The long form, a minute, has two preemptions for the first and one
//! for whole sessions: a wake-up that is missing at the end of a job shows only there, because without a
//! preemption a later one covers it.
//!
//! ```sh
//! cargo test --release -p nvdecring-core --test handoff_loom -- --ignored
//! ```

#![allow(
    dead_code,
    unused_imports,
    reason = "the crate's modules, of which the test uses a part"
)]

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::sync::PoisonError;
}

#[path = "../src/api.rs"]
mod api;
#[path = "../src/calls.rs"]
mod calls;
#[path = "../src/clock.rs"]
mod clock;
#[path = "../src/config.rs"]
mod config;
#[path = "../src/decoder.rs"]
mod decoder;
#[path = "../src/driver.rs"]
mod driver;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/gate.rs"]
mod gate;
#[path = "../src/health.rs"]
mod health;
#[path = "../src/ledger.rs"]
mod ledger;
#[path = "../src/output.rs"]
mod output;
#[path = "../src/packets.rs"]
mod packets;
#[path = "../src/parser.rs"]
mod parser;
#[path = "../src/pictures.rs"]
mod pictures;
#[path = "../src/ring.rs"]
mod ring;
#[path = "../src/session.rs"]
mod session;
#[path = "../src/state.rs"]
mod state;
#[path = "../src/verdict.rs"]
mod verdict;
#[path = "../src/worker.rs"]
mod worker;

#[path = "common/instant.rs"]
mod instant;

pub use api::*;
pub use calls::*;
pub use clock::*;
pub use config::*;
pub use error::*;
pub use gate::*;
pub use health::Recovery;
pub use ledger::Stats;
pub use output::*;
pub use ring::*;
pub use session::*;

use decoder::DecoderOwner;
use driver::Driver;
use instant::{Instant, packet};
use state::{Party, Shared, Step};
use worker::Worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// loom's own stacks are too small for a session.
fn spawn<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> loom::thread::JoinHandle<T> {
    loom::thread::Builder::new()
        .stack_size(1 << 16)
        .spawn(body)
        .unwrap()
}

/// Time does not pass.
struct LoomClock;

impl Clock for LoomClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn wait(&self, bell: &Bell, seen: u64, _: Option<Duration>) {
        bell.wait(seen);
    }

    fn spawn(&self, _: &str, body: Body) -> std::io::Result<Join> {
        let thread = spawn(body);
        Ok(Box::new(move || thread.join().unwrap()))
    }
}

/// The tokens that came out, as a number: 1 then 2 is 12.
struct Digits(Arc<AtomicU64>);

impl Sink<Instant> for Digits {
    fn picture(&mut self, picture: Picture<Instant>) {
        let before = self.0.load(Ordering::SeqCst);
        self.0
            .store(before * 10 + picture.token.0, Ordering::SeqCst);
    }

    fn dropped(&mut self, token: FrameToken, reason: DropReason) {
        panic!("{token:?} dropped: {reason}");
    }
}

fn config(packets_ahead: u8) -> Config {
    Config {
        ring_depth: RingDepth::try_from(1).unwrap(),
        packets_ahead,
        ..Config::new(Identity::Decoded)
    }
}

fn open(out: &Arc<AtomicU64>, packets_ahead: u8) -> Arc<Session<Instant>> {
    Arc::new(
        Session::open(
            Arc::new(Instant::default()),
            DeviceGate::new(),
            config(packets_ahead),
            Box::new(Digits(out.clone())),
            Box::new(|event| panic!("{event:?}")),
            Arc::new(LoomClock),
        )
        .unwrap(),
    )
}

/// All orders with at most so many preemptions. Where a thread waits, every other thread is tried anyway.
fn explore(preemptions: usize, scenario: fn()) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 100_000;
    model.check(move || spawn(scenario).join().unwrap());
}

/// The hand-off alone: this thread is the parser's, in its callbacks; the other is the worker.
struct HandOff {
    shared: Arc<Shared<Instant>>,
    driver: Driver<Instant>,
    out: Arc<AtomicU64>,
}

impl HandOff {
    /// The worker runs; the decoder is open.
    fn new() -> (Self, loom::thread::JoinHandle<()>) {
        let out = Arc::new(AtomicU64::new(0));
        let config = config(0);
        let shared = Arc::new(Shared::new(config, Arc::new(LoomClock), Box::new(|_| {})));
        let api = Arc::new(Instant::default());
        let mut decoder = DecoderOwner::new(shared.clone(), api.clone(), DeviceGate::new());
        decoder.open_context().unwrap();
        let plan = config.plan(1).unwrap();
        decoder.change(&(), plan, 0).unwrap();
        let driver = Driver::new(shared.clone(), api.clone(), decoder);
        let worker = Worker::new(shared.clone(), api, Box::new(Digits(out.clone())));
        let worker = spawn(move || worker.run());
        (
            Self {
                shared,
                driver,
                out,
            },
            worker,
        )
    }

    /// A packet that is decoded and shown. False where a flush or stop has overtaken it.
    fn packet(&mut self, token: u64) -> bool {
        let token = FrameToken(token);
        let taken = self.shared.with(|state| {
            state.refusal().is_none() && state.ledger.submit(token, Duration::ZERO).is_ok()
        });
        self.driver.packets.start(token, true);
        let mut begun = true;
        let parsed = Instant::default().parse(&mut begun, ParserInput::default(), &mut self.driver);
        taken && parsed.is_ok() && self.driver.end_packet(true).is_ok()
    }

    fn wait_until_drained(&self) {
        self.shared.wait(Party::Parser, |state, _| {
            if state.is_drained() || state.stopping {
                Step::Done(())
            } else {
                Step::Wait(None)
            }
        });
    }
}

/// Two packets through one slot and one surface.
fn two_packets_through_one_slot() {
    let (mut hand_off, worker) = HandOff::new();
    assert!(hand_off.packet(1));
    assert!(hand_off.packet(2));
    hand_off.wait_until_drained();
    assert_eq!(hand_off.out.load(Ordering::SeqCst), 12);
    hand_off.shared.with(|state| state.stopping = true);
    worker.join().unwrap();
}

/// A stop while the parser thread waits for a surface, the worker for a picture, or neither.
fn a_stop_while_the_slot_changes_hands() {
    let (mut hand_off, worker) = HandOff::new();
    let stop = {
        let shared = hand_off.shared.clone();
        spawn(move || {
            shared.with(|state| {
                state.stopping = true;
                state.ring.abandon();
            });
        })
    };
    hand_off.packet(1);
    hand_off.packet(2);
    hand_off.wait_until_drained();
    stop.join().unwrap();
    worker.join().unwrap();
}

/// A flush in the same places: what it overtakes leaves all the same, and what comes after comes out.
fn a_flush_while_the_slot_changes_hands() {
    let (mut hand_off, worker) = HandOff::new();
    let flush = {
        let (shared, out) = (hand_off.shared.clone(), hand_off.out.clone());
        spawn(move || {
            shared.with(|state| {
                state.flushing = true;
                state.epoch += 1;
                state.ring.abandon();
                state.ledger.flush();
            });
            shared.wait(Party::Caller, |state, _| {
                if state.delivering {
                    Step::Wait(None)
                } else {
                    Step::Done(())
                }
            });
            shared.with(|state| state.flushing = false);
            out.load(Ordering::SeqCst)
        })
    };
    hand_off.packet(1);
    let at_flush = flush.join().unwrap();
    let flushed = hand_off.shared.read(|state| state.ledger.stats().flushed);
    hand_off.wait_until_drained();
    let out = hand_off.out.load(Ordering::SeqCst);
    assert!(flushed == 0 || out == at_flush, "I7: out after the flush");
    hand_off.driver.epoch = 1;
    hand_off.driver.flush();
    assert!(hand_off.packet(2));
    hand_off.wait_until_drained();
    assert_eq!(hand_off.out.load(Ordering::SeqCst), out * 10 + 2);
    hand_off.shared.with(|state| state.stopping = true);
    worker.join().unwrap();
}

fn two_packets_and_a_drain() {
    drain_after_two(0);
}

/// The second waits for the parser while the first is parsed.
fn two_packets_at_once_and_a_drain() {
    drain_after_two(1);
}

fn drain_after_two(packets_ahead: u8) {
    let out = Arc::new(AtomicU64::new(0));
    let session = open(&out, packets_ahead);
    session.submit(packet(1)).unwrap();
    session.submit(packet(2)).unwrap();
    session.drain().unwrap();
    assert_eq!(out.load(Ordering::SeqCst), 12);
    let stopped = session.stop();
    assert!(stopped.clean);
    assert_eq!(stopped.stats.pictures, 2);
}

fn a_flush_meets_the_hand_off() {
    flush_beside_a_packet(0);
}

fn a_flush_meets_a_packet_that_waits() {
    flush_beside_a_packet(1);
}

fn flush_beside_a_packet(packets_ahead: u8) {
    let out = Arc::new(AtomicU64::new(0));
    let session = open(&out, packets_ahead);
    let flusher = {
        let (session, out) = (session.clone(), out.clone());
        spawn(move || {
            session.flush().unwrap();
            out.load(Ordering::SeqCst)
        })
    };
    let taken = session.submit(packet(1));
    assert!(matches!(taken, Ok(()) | Err(Error::Flushing)), "{taken:?}");
    let at_flush = flusher.join().unwrap();
    let stats = session.stop().stats;
    // Either it came out, or it was overtaken, or it was not taken, or it came after the flush and the stop
    // overtook it.
    let shown = out.load(Ordering::SeqCst);
    assert_eq!(stats.pictures, shown);
    assert_eq!(
        stats.pictures + stats.flushed + stats.inside,
        u64::from(taken.is_ok())
    );
    if stats.flushed == 1 {
        assert_eq!(shown, at_flush, "I7: out after the flush");
    }
}

fn a_stop_meets_the_hand_off() {
    let out = Arc::new(AtomicU64::new(0));
    let session = open(&out, 0);
    let stopper = {
        let session = session.clone();
        spawn(move || session.stop())
    };
    let taken = session.submit(packet(1));
    assert!(matches!(taken, Ok(()) | Err(Error::Stopped)), "{taken:?}");
    assert!(stopper.join().unwrap().clean);
}

#[test]
fn every_wake_up_of_the_hand_off_comes() {
    explore(1, two_packets_through_one_slot);
}

#[test]
fn every_wake_up_of_the_hand_off_comes_with_a_flush() {
    explore(1, a_flush_while_the_slot_changes_hands);
}

#[test]
fn every_wake_up_of_the_hand_off_comes_with_a_stop() {
    explore(1, a_stop_while_the_slot_changes_hands);
}

#[test]
fn every_wake_up_comes() {
    explore(0, two_packets_and_a_drain);
}

#[test]
fn every_wake_up_comes_with_packets_ahead() {
    explore(0, two_packets_at_once_and_a_drain);
}

#[test]
fn every_wake_up_comes_with_packets_ahead_and_a_flush() {
    explore(0, a_flush_meets_a_packet_that_waits);
}

#[test]
fn every_wake_up_comes_with_a_flush() {
    explore(0, a_flush_meets_the_hand_off);
}

#[test]
fn every_wake_up_comes_with_a_stop() {
    explore(0, a_stop_meets_the_hand_off);
}

#[test]
#[ignore = "long form"]
fn every_wake_up_of_the_hand_off_comes_with_two_preemptions() {
    explore(2, two_packets_through_one_slot);
}

#[test]
#[ignore = "long form"]
fn every_wake_up_of_the_hand_off_comes_with_a_flush_and_two_preemptions() {
    explore(2, a_flush_while_the_slot_changes_hands);
}

#[test]
#[ignore = "long form"]
fn every_wake_up_of_the_hand_off_comes_with_a_stop_and_two_preemptions() {
    explore(2, a_stop_while_the_slot_changes_hands);
}

#[test]
#[ignore = "long form"]
fn every_wake_up_comes_with_a_stop_and_one_preemption() {
    explore(1, a_stop_meets_the_hand_off);
}

#[test]
#[ignore = "long form"]
fn every_wake_up_comes_with_one_preemption() {
    explore(1, two_packets_and_a_drain);
}

#[test]
#[ignore = "long form"]
fn every_wake_up_comes_with_packets_ahead_and_one_preemption() {
    explore(1, two_packets_at_once_and_a_drain);
}

#[test]
#[ignore = "long form"]
fn every_wake_up_comes_with_a_flush_and_one_preemption() {
    explore(1, a_flush_meets_the_hand_off);
}
