// SPDX-License-Identifier: MPL-2.0

//! The hand-off between caller, parser thread, worker and flush, in every order a scheduler can choose (with
//! a bound on preemptions): nobody waits for a wake-up that does not come. loom's clock stands still, so a
//! wait that only its deadline would end is a deadlock here.
//!
//! The modules are compiled a second time, against loom's lock and condition variable. With every `cargo
//! test` the first 1500 orders with up to two preemptions are tried; all orders with one preemption take
//! longer:
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
#[path = "../src/worker.rs"]
mod worker;

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

/// Decodes at once; every packet is a picture in the one surface there is, so that each but the first has
/// to wait for the worker.
struct Instant;

impl GpuApi for Instant {
    type Context = ();
    type Parser = bool;
    type Decoder = ();
    type Format = ();
    type Params = ();
    type Mapped = ();
    type Copy = ();
    type Frame = ();

    fn open_context(&self) -> Result<(), GpuError> {
        Ok(())
    }

    fn create_parser(&self) -> Result<bool, GpuError> {
        Ok(false)
    }

    fn parse(
        &self,
        begun: &mut bool,
        input: ParserInput<'_>,
        events: &mut dyn ParserEvents<Self>,
    ) -> Result<(), GpuError> {
        if input.end_of_stream {
            return Ok(());
        }
        if !std::mem::replace(begun, true) {
            events.sequence(&());
        }
        let info = PictureInfo {
            index: 0,
            film_grain_reference: None,
            intra: true,
            reference: true,
            second_field: false,
        };
        if events.decode(info, &()) {
            events.display(Some(DisplayInfo {
                index: 0,
                progressive: true,
                top_field_first: false,
                repeat_first_field: 0,
            }));
        }
        Ok(())
    }

    fn min_decode_surfaces(&self, (): &()) -> u8 {
        1
    }

    fn create_decoder(&self, _: &Arc<()>, (): &(), _: SurfacePlan) -> Result<(), GpuError> {
        Ok(())
    }

    fn fits(&self, (): &(), (): &(), _: SurfacePlan) -> bool {
        true
    }

    fn reconfigure(&self, (): &(), (): &(), _: SurfacePlan) -> Result<(), GpuError> {
        Ok(())
    }

    fn decode(&self, (): &(), (): &()) -> Result<(), GpuError> {
        Ok(())
    }

    fn status(&self, (): &(), _: u8) -> Result<DecodeStatus, GpuError> {
        Ok(DecodeStatus::Success)
    }

    fn map(&self, _: &Arc<()>, _: &DisplayInfo) -> Result<(), GpuError> {
        Ok(())
    }

    fn begin_copy(&self, (): &(), (): &(), (): &()) -> Result<(), GpuError> {
        Ok(())
    }

    fn finish_copy(&self, (): ()) -> Result<(), GpuError> {
        Ok(())
    }

    fn unmap(&self, (): &(), (): ()) -> Result<(), GpuError> {
        Ok(())
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

fn open(out: &Arc<AtomicU64>) -> Arc<Session<Instant>> {
    let config = Config {
        ring_depth: RingDepth::try_from(1).unwrap(),
        ..Config::new(Identity::Decoded)
    };
    Arc::new(
        Session::open(
            Arc::new(Instant),
            DeviceGate::new(),
            config,
            Box::new(Digits(out.clone())),
            Box::new(|event| panic!("{event:?}")),
            Arc::new(LoomClock),
        )
        .unwrap(),
    )
}

fn packet(token: u64) -> Packet {
    Packet {
        token: FrameToken(token),
        data: Box::new([0]),
        headers: None,
        end_of_picture: true,
        discontinuity: false,
    }
}

/// Explores so many orders, or all.
fn explore(preemptions: usize, at_most: Option<usize>, scenario: fn()) {
    let mut model = loom::model::Builder::new();
    model.max_permutations = at_most;
    model.preemption_bound = Some(preemptions);
    model.max_branches = 100_000;
    model.check(move || spawn(scenario).join().unwrap());
}

fn two_packets_and_a_drain() {
    let out = Arc::new(AtomicU64::new(0));
    let session = open(&out);
    session.submit(packet(1)).unwrap();
    session.submit(packet(2)).unwrap();
    session.drain().unwrap();
    assert_eq!(out.load(Ordering::SeqCst), 12);
    let stopped = session.stop();
    assert!(stopped.clean);
    assert_eq!(stopped.stats.pictures, 2);
}

fn a_flush_meets_the_hand_off() {
    let out = Arc::new(AtomicU64::new(0));
    let session = open(&out);
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
    let session = open(&out);
    let stopper = {
        let session = session.clone();
        spawn(move || session.stop())
    };
    let taken = session.submit(packet(1));
    assert!(matches!(taken, Ok(()) | Err(Error::Stopped)), "{taken:?}");
    assert!(stopper.join().unwrap().clean);
}

/// Orders tried by the short form of each test.
const SHORT: Option<usize> = Some(1500);

#[test]
fn every_wake_up_comes() {
    explore(2, SHORT, two_packets_and_a_drain);
}

#[test]
fn every_wake_up_comes_with_a_flush() {
    explore(2, SHORT, a_flush_meets_the_hand_off);
}

#[test]
fn every_wake_up_comes_with_a_stop() {
    explore(2, SHORT, a_stop_meets_the_hand_off);
}

#[test]
#[ignore = "takes minutes"]
fn every_wake_up_comes_in_all_orders() {
    explore(1, None, two_packets_and_a_drain);
}

#[test]
#[ignore = "takes minutes"]
fn every_wake_up_comes_with_a_flush_in_all_orders() {
    explore(1, None, a_flush_meets_the_hand_off);
}

#[test]
#[ignore = "takes minutes"]
fn every_wake_up_comes_with_a_stop_in_all_orders() {
    explore(1, None, a_stop_meets_the_hand_off);
}
