// SPDX-License-Identifier: MPL-2.0

//! Decoding a stream to sums, with all that was told on the way.
#![allow(dead_code, reason = "each test program uses a part")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nvdecring_core::{
    Config, Damage, DropReason, Error, Event, FrameToken, Picture, RingDepth, Session, Sink, Stats,
    SystemClock,
};
use nvdecring_gpu::{
    Codec, ContextSource, HostFrame, HostMemory, InputFile, Nvdec, Packetizer, Settings, gate,
};

pub type Api = Nvdec<HostMemory>;

/// A picture that came out.
#[derive(Debug, Clone)]
pub struct Out {
    pub token: u64,
    pub samples: Vec<u8>,
    pub width: usize,
    pub damage: Damage,
}

impl Out {
    pub fn md5(&self) -> String {
        format!("{:x}", md5::compute(&self.samples))
    }
}

/// What came out, and what was told.
#[derive(Debug, Default)]
pub struct Told {
    pub pictures: Vec<Out>,
    pub dropped: Vec<(u64, DropReason)>,
    pub events: Vec<Event>,
}

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Told>>);

impl Log {
    pub fn with<T>(&self, look: impl FnOnce(&mut Told) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The samples without what lies between rows.
pub fn samples(frame: &HostFrame) -> Vec<u8> {
    let mut samples = Vec::new();
    for plane in 0..frame.layout().planes.len() {
        for row in frame.rows(plane) {
            samples.extend_from_slice(row);
        }
    }
    samples
}

impl Sink<Api> for Log {
    fn picture(&mut self, picture: Picture<Api>) {
        let out = Out {
            token: picture.token.0,
            samples: samples(&picture.frame),
            width: picture.frame.layout().width as usize,
            damage: picture.damage,
        };
        self.with(|told| told.pictures.push(out));
    }

    fn dropped(&mut self, token: FrameToken, reason: DropReason) {
        self.with(|told| told.dropped.push((token.0, reason)));
    }
}

/// Settings that tests change.
#[derive(Debug, Clone)]
pub struct Options {
    pub ring_depth: u8,
    pub delay: u8,
    pub output_surfaces: u8,
    pub decode_timeout: Duration,
    pub wedge_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ring_depth: 8,
            delay: 0,
            output_surfaces: 2,
            // No machine is so slow that a picture of these tests takes that long.
            decode_timeout: Duration::from_secs(30),
            wedge_timeout: Duration::from_secs(60),
        }
    }
}

pub fn open(codec: Codec, options: &Options, log: &Log) -> Result<Session<Api>, Error> {
    let mut config = Config::new(codec.identity());
    config.ring_depth = RingDepth::try_from(options.ring_depth)?;
    config.display_delay = codec.display_delay(options.delay);
    config.output_surfaces = options.output_surfaces;
    config.decode_timeout = options.decode_timeout;
    config.wedge_timeout = options.wedge_timeout;
    config.stop_timeout = Duration::from_secs(60);
    let settings = Settings {
        codec,
        display_delay: config.display_delay,
        context: ContextSource::Device(0),
    };
    let events = log.clone();
    Session::open(
        Arc::new(Nvdec::new(settings, HostMemory::default())),
        gate(0),
        config,
        Box::new(log.clone()),
        Box::new(move |event| events.with(|told| told.events.push(event))),
        Arc::new(SystemClock::default()),
    )
}

/// How a stream ended.
pub struct Decoded {
    pub told: Told,
    pub stats: Stats,
    pub packets: u64,
    /// Why it ended early.
    pub error: Option<Error>,
}

/// Decodes a whole stream and stops. Everything that went in is accounted for, in order.
#[track_caller]
pub fn decode(file: &InputFile, options: &Options) -> Decoded {
    let log = Log::default();
    let (error, stats, packets) = match open(file.codec, options, &log) {
        Err(error) => (Some(error), Stats::default(), 0),
        Ok(session) => {
            let mut packetizer = Packetizer::new(file.codec);
            let mut submit = || {
                for (token, data) in file.packets.iter().enumerate() {
                    let data = Box::new(data.clone());
                    session.submit(packetizer.packet(FrameToken(token as u64), data, false))?;
                }
                session.drain()
            };
            let error = submit().err();
            let stopped = session.stop();
            assert!(stopped.clean, "{stopped:?}");
            (error, stopped.stats, file.packets.len() as u64)
        }
    };
    let told = log.with(std::mem::take);
    if error.is_none() {
        assert_eq!(stats.submitted, packets);
        assert_eq!(stats.inside, 0, "{stats:?}");
        assert_eq!(
            stats.submitted,
            stats.pictures + stats.dropped + stats.failed,
            "{stats:?}"
        );
        assert_eq!(told.pictures.len() as u64, stats.pictures);
        assert_eq!(told.dropped.len() as u64, stats.dropped + stats.failed);
    }
    assert_eq!(stats.surfaces_held, 0, "{stats:?}");
    Decoded {
        told,
        stats,
        packets,
        error,
    }
}

pub fn file(bytes: &[u8]) -> InputFile {
    InputFile::read(bytes, None).expect("a stream")
}

/// The MD5 of each picture.
pub fn sums(told: &Told) -> Vec<String> {
    told.pictures.iter().map(Out::md5).collect()
}
