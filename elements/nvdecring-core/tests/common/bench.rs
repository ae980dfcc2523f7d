// SPDX-License-Identifier: MPL-2.0

//! A session on the scripted library, with what came out of it.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nvdecring_core::*;

use super::engine::{Engine, Handle, Pixels, Remains};
use super::parser::HEADERS;
use super::script::Script;
use super::sim::Sim;

/// A picture that came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub token: u64,
    pub ticket: u64,
    pub pixels: Option<Pixels>,
    pub format: u32,
    pub damage: Damage,
    pub times: Times,
    pub at: Duration,
}

#[derive(Debug, Default)]
pub struct Out {
    pub pictures: Vec<Shown>,
    pub dropped: Vec<(u64, DropReason)>,
    pub events: Vec<Event>,
    /// Set: the output blocks until this is cleared.
    pub blocked: bool,
    /// The output is in a call.
    pub busy: bool,
}

struct Recorder {
    sim: Sim,
    out: Arc<Mutex<Out>>,
    downstream: Duration,
}

impl Sink<Handle> for Recorder {
    fn picture(&mut self, picture: Picture<Handle>) {
        lock(&self.out).busy = true;
        self.sim.yield_now();
        let mut pause = Duration::from_millis(1);
        while lock(&self.out).blocked {
            self.sim.sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        }
        self.sim.sleep(self.downstream);
        let mut out = lock(&self.out);
        out.busy = false;
        out.pictures.push(Shown {
            token: picture.token.0,
            ticket: picture.ticket.0,
            pixels: picture.frame,
            format: *picture.format,
            damage: picture.damage,
            times: picture.times,
            at: self.sim.now(),
        });
    }

    fn dropped(&mut self, token: FrameToken, reason: DropReason) {
        self.sim.yield_now();
        lock(&self.out).dropped.push((token.0, reason));
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|p| p.into_inner())
}

pub struct Bench {
    pub sim: Sim,
    pub engine: Arc<Engine>,
    pub out: Arc<Mutex<Out>>,
    pub gate: Arc<DeviceGate>,
    pub config: Config,
}

pub fn packet(number: usize) -> Packet {
    packet_as(number as u64, number)
}

/// A packet of the script under another token.
pub fn packet_as(token: u64, number: usize) -> Packet {
    Packet {
        token: FrameToken(token),
        data: Box::new((number as u64).to_le_bytes()),
        headers: Some(HEADERS.into()),
        end_of_picture: true,
        discontinuity: false,
    }
}

impl Bench {
    pub fn new(seed: u64, script: Script, config: Config) -> Self {
        let sim = Sim::new(seed);
        Self {
            engine: Engine::new(&sim, script),
            out: Arc::default(),
            gate: DeviceGate::new(),
            sim,
            config,
        }
    }

    pub fn open(&self) -> Result<Arc<Session<Handle>>, Error> {
        let recorder = Recorder {
            sim: self.sim.clone(),
            out: self.out.clone(),
            downstream: self.engine.script.downstream,
        };
        let events = self.out.clone();
        Session::open(
            Arc::new(Handle(self.engine.clone())),
            self.gate.clone(),
            self.config,
            Box::new(recorder),
            Box::new(move |event| lock(&events).events.push(event)),
            self.sim.clock(),
        )
        .map(Arc::new)
    }

    pub fn out(&self) -> MutexGuard<'_, Out> {
        lock(&self.out)
    }

    /// Tokens of the pictures that came out.
    pub fn shown(&self) -> Vec<u64> {
        self.out()
            .pictures
            .iter()
            .map(|shown| shown.token)
            .collect()
    }

    /// Submits packets until one is refused.
    pub fn submit_all(&self, session: &Session<Handle>) -> Result<(), Error> {
        for number in 0..self.engine.script.pictures.len() {
            session.submit(packet(number))?;
        }
        Ok(())
    }

    /// What must hold after every session, however it went: the pixels of each picture are its own, order
    /// is kept, each frame ended once, nothing is left.
    pub fn check(&self, stopped: &Stopped) {
        assert_eq!(self.engine.violations(), Vec::<String>::new());
        let pictures = &self.engine.script.pictures;
        let out = self.out();
        for shown in &out.pictures {
            let packet = shown.token as usize;
            let expected = pictures[packet].shows.unwrap_or(packet);
            assert_eq!(
                shown.pixels,
                Some(expected),
                "I6: the pixels of {shown:?} are another picture's"
            );
            assert_eq!(shown.format, pictures[packet].format, "{shown:?}");
            let times = &shown.times;
            assert!(
                times.submitted <= times.decoded.max(times.submitted)
                    && times.decoded <= times.shown
                    && times.shown <= times.mapped
                    && times.mapped <= times.copied
                    && times.copied <= times.out
                    && times.out <= shown.at,
                "{shown:?}"
            );
        }
        for pair in out.pictures.windows(2) {
            assert!(pair[0].ticket < pair[1].ticket, "I1: {pair:?}");
            let rank = |shown: &Shown| {
                let packet = shown.token as usize;
                match pictures[packet].shows {
                    // Not reordered: packets are in display order.
                    Some(_) => None,
                    None => pictures[packet].rank,
                }
            };
            if let (Some(first), Some(second)) = (rank(&pair[0]), rank(&pair[1])) {
                assert!(first < second, "I11: out of display order: {pair:?}");
            }
        }
        let mut ended: Vec<u64> = out.pictures.iter().map(|shown| shown.token).collect();
        ended.extend(out.dropped.iter().map(|(token, _)| *token));
        let count = ended.len();
        ended.sort_unstable();
        ended.dedup();
        assert_eq!(ended.len(), count, "I8: a frame ended twice");

        let stats = stopped.stats;
        assert_eq!(
            stats.submitted,
            stats.pictures + stats.dropped + stats.failed + stats.flushed + stats.inside,
            "I8: {stats:?}"
        );
        assert!(stats.most_queued <= self.config.ring_depth.get(), "I2");
    }

    /// What must hold in addition where nothing hung.
    pub fn check_clean(&self, stopped: &Stopped) {
        self.check(stopped);
        assert!(stopped.clean, "{stopped:?}");
        assert_eq!(stopped.stats.surfaces_held, 0, "a surface is still held");
        assert_eq!(
            self.engine.remains(),
            Remains {
                decoders: 0,
                contexts: 0,
                parsers: 0,
                mapped: 0
            }
        );
    }
}
