// SPDX-License-Identifier: MPL-2.0

//! [`Parser`]: a bitstream goes in, callbacks come out.
//!
//! A packet without `CUVID_PKT_ENDOFPICTURE` may hold any piece of a stream with start codes; a picture is then
//! decoded when the next one begins. With the flag it is decoded at once, and what follows it is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, TryLockError};

use av_backend::FieldOrder;
use elementary_stream::{Codec, Reorder, Sequence};
use nvcuvid_sys::*;

use crate::backend::{Backend, Decoded, Event, Libav, Shown};
use crate::client::Client;
use crate::dav1d::{self, Dav1d, Layers};
use crate::faults;
use crate::format::{self, MAX_SURFACES};
use crate::input::{Input, Next};
use crate::picture::{self, Coded, Showing};
use crate::report::{log, mistake};
use crate::surfaces::Slots;
use crate::timestamps::Timestamps;
use crate::units::frames_of;

/// Pictures that are remembered until they are shown; hidden ones never are.
const REMEMBERED: usize = 64;
/// Ticks a second where the client does not say.
const DEFAULT_CLOCK: u32 = 10_000_000;

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// `CUVID_PKT_*`.
    pub flags: u32,
    /// In ticks, where the flags say so.
    pub timestamp: i64,
}

impl Packet<'_> {
    fn has(&self, flag: CUvideopacketflags) -> bool {
        self.flags & flag != 0
    }
}

/// One parser.
pub struct Parser {
    state: Mutex<State>,
}

/// How a parser was made.
#[derive(Clone, Copy, Debug)]
struct Setup {
    number: cudaVideoCodec,
    codec: Codec,
    surfaces: u32,
    max_delay: usize,
    clock_rate: u32,
    lowest_first: bool,
    silent_resize: bool,
}

struct State {
    setup: Setup,
    client: Client,
    input: Input,
    backend: Option<Box<dyn Backend>>,
    opened_for: OpenedFor,
    timestamps: Timestamps,
    /// Pictures that were decoded and not shown, by token; `None` for one that is not to be shown.
    decoded: BTreeMap<u64, Option<Arc<Showing>>>,
    /// Pictures whose turn has come, with a timestamp of their own where the format has no reordering.
    display: VecDeque<(Shown, Option<i64>)>,
    delay: usize,
    surfaces: u32,
    failed: bool,
}

/// What a backend was opened for; anything else needs another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OpenedFor {
    reorders_up_to_level: bool,
    layers: Layers,
}

/// A callback failed, or the stream is not for this library; the rest of the packet is dropped.
struct Stop;

impl Parser {
    /// `cuvidCreateVideoParser`.
    ///
    /// # Errors
    /// A callback is missing, the codec is not supported, or a fault is not understood.
    pub fn create(params: &CUVIDPARSERPARAMS) -> Result<Arc<Self>, CuResult> {
        av_backend::pin::keep_loaded();
        let client = Client::new(params).ok_or(CuResult::INVALID_VALUE)?;
        let codec = format::codec_of(params.CodecType).ok_or(CuResult::NOT_SUPPORTED)?;
        if params.bAnnexb() != 0 {
            eprintln!("standin_nvcuvid: AV1 in the form of Annex B is not supported");
            return Err(CuResult::NOT_SUPPORTED);
        }
        let faults = faults::current()?;
        // Younger headers have bMemoryOptimize behind bAnnexb: the lowest free surface first.
        let optimizes = params.uReserved() & 1 != 0;
        let setup = Setup {
            number: params.CodecType,
            codec,
            surfaces: params.ulMaxNumDecodeSurfaces,
            max_delay: params.ulMaxDisplayDelay as usize,
            clock_rate: match params.ulClockRate {
                0 => DEFAULT_CLOCK,
                rate => rate,
            },
            lowest_first: optimizes || std::env::var_os("NVSTANDIN_LOWEST_SURFACE").is_some(),
            silent_resize: faults.silent_resize,
        };
        log(|| format!("a parser: {setup:?}"));
        Ok(Arc::new(Self {
            state: Mutex::new(State::new(setup, client)),
        }))
    }

    /// `cuvidParseVideoData`.
    ///
    /// # Errors
    /// A callback failed, or two calls meet.
    pub fn parse(&self, packet: Packet<'_>) -> Result<(), CuResult> {
        match self.state.try_lock() {
            Ok(mut state) => state.parse(packet),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().parse(packet),
            Err(TryLockError::WouldBlock) => {
                mistake("cuvidParseVideoData while the parser is in another call");
                Err(CuResult::ILLEGAL_STATE)
            }
        }
    }

    /// `cuvidDestroyVideoParser`: whether no call is going on.
    pub fn end(&self) -> bool {
        match self.state.try_lock() {
            Ok(mut state) => {
                state.settle();
                true
            }
            Err(TryLockError::Poisoned(_)) => true,
            Err(TryLockError::WouldBlock) => {
                mistake("cuvidDestroyVideoParser while the parser is in a call");
                false
            }
        }
    }
}

impl State {
    fn new(setup: Setup, client: Client) -> Self {
        Self {
            input: Input::new(setup.codec),
            backend: None,
            opened_for: OpenedFor::default(),
            timestamps: Timestamps::new(0),
            decoded: BTreeMap::new(),
            display: VecDeque::new(),
            delay: 0,
            surfaces: setup.surfaces,
            failed: false,
            setup,
            client,
        }
    }

    fn parse(&mut self, packet: Packet<'_>) -> Result<(), CuResult> {
        self.failed = false;
        log(|| {
            format!(
                "a packet of {} bytes, flags {:#x}",
                packet.data.len(),
                packet.flags
            )
        });
        let stopped = self.packet(packet).is_err();
        if stopped {
            self.input.drop_pending();
        }
        if self.failed || stopped {
            return Err(CuResult::INVALID_VALUE);
        }
        Ok(())
    }

    fn packet(&mut self, packet: Packet<'_>) -> Result<(), Stop> {
        if packet.has(CUVID_PKT_DISCONTINUITY) {
            // What came before has no continuation.
            self.feed(true, None)?;
            self.input.drop_pending();
        }
        if !packet.data.is_empty() {
            let timestamp = packet.has(CUVID_PKT_TIMESTAMP).then_some(packet.timestamp);
            let begins_at = self.input.push(packet.data, timestamp);
            let whole = packet.has(CUVID_PKT_ENDOFPICTURE);
            self.feed(whole, whole.then_some(begins_at))?;
        }
        if packet.has(CUVID_PKT_ENDOFSTREAM) {
            self.feed(true, None)?;
            self.drain();
            self.restart();
        }
        if packet.has(CUVID_PKT_NOTIFY_EOS) && !self.client.end_of_stream() {
            self.failed = true;
        }
        Ok(())
    }

    /// Decodes what is there. `whole`: an access unit ends with it. `only`: the first picture that begins at or
    /// behind this place is the last that is taken.
    fn feed(&mut self, whole: bool, only: Option<u64>) -> Result<(), Stop> {
        loop {
            match self.input.next(whole) {
                Next::Nothing => return Ok(()),
                Next::Sequence(sequence) => self.meet(sequence)?,
                Next::Unit {
                    data,
                    place,
                    timestamp,
                } => {
                    self.unit(&data, timestamp);
                    if only.is_some_and(|begins_at| place >= begins_at) {
                        let rest = self.input.pending().len();
                        log(|| format!("{rest} bytes behind the picture are dropped"));
                        self.input.drop_pending();
                        return Ok(());
                    }
                }
            }
        }
    }

    /// A sequence header that is not in force.
    fn meet(&mut self, sequence: Sequence) -> Result<(), Stop> {
        if self.setup.silent_resize && self.backend.is_some() {
            self.input.accept(sequence);
            return Ok(());
        }
        self.drain();
        let codec = self.setup.codec;
        let mut described = format::describe(self.setup.number, codec, &sequence);
        let least = u32::from(described.min_num_decode_surfaces);
        log(|| format!("a sequence: {sequence:?}, at least {least} surfaces"));
        self.surfaces = match self.client.sequence(&mut described) {
            ..=0 => {
                self.failed = true;
                return Err(Stop);
            }
            1 => self.setup.surfaces,
            count => count as u32,
        };
        if self.surfaces < least || self.surfaces > MAX_SURFACES {
            mistake(&format!(
                "the parser is given {} surfaces: the stream needs {least}, and there are at most {MAX_SURFACES}",
                self.surfaces
            ));
        }
        self.surfaces = self.surfaces.clamp(1, MAX_SURFACES);
        // A picture that waits to be shown keeps its surface.
        let spare = self.surfaces.saturating_sub(least) as usize;
        self.delay = self.setup.max_delay.min(spare);
        let ticks = match sequence.frame_rate {
            Some((rate, scale)) => {
                i64::from(self.setup.clock_rate) * i64::from(scale) / i64::from(rate.max(1))
            }
            None => i64::from(self.setup.clock_rate) / 30,
        };
        self.timestamps.duration = ticks;
        self.open_backend(&sequence)?;
        self.input.accept(sequence);
        Ok(())
    }

    fn open_backend(&mut self, sequence: &Sequence) -> Result<(), Stop> {
        let slots = Slots::new(self.surfaces as usize, self.setup.lowest_first);
        let wanted = OpenedFor {
            reorders_up_to_level: sequence.reorder == Reorder::UpToLevel,
            layers: self.layers(),
        };
        if let Some(backend) = &mut self.backend
            && wanted == self.opened_for
        {
            backend.set_slots(slots);
            return Ok(());
        }
        self.opened_for = wanted;
        self.backend = None;
        if self.setup.codec == Codec::Av1 {
            let backend = Dav1d::new(slots, wanted.layers).ok_or(Stop)?;
            self.backend = Some(Box::new(backend));
            return Ok(());
        }
        match Libav::new(self.setup.codec, wanted.reorders_up_to_level, slots) {
            Ok(backend) => {
                self.backend = Some(Box::new(backend));
                Ok(())
            }
            Err(error) => {
                eprintln!("standin_nvcuvid: {error}");
                Err(Stop)
            }
        }
    }

    /// The client is asked where an AV1 stream has several operating points.
    fn layers(&self) -> Layers {
        if self.setup.codec != Codec::Av1 {
            return Layers::default();
        }
        let points = dav1d::operating_points(self.input.pending());
        if points.len() < 2 {
            return Layers::default();
        }
        self.client.operating_point(self.setup.number, &points)
    }

    /// Decodes a unit. Before the first sequence header nothing can be decoded.
    fn unit(&mut self, unit: &[u8], timestamp: Option<i64>) {
        let mut timestamp = Some(timestamp);
        for frame in frames_of(self.setup.codec, unit) {
            let Some(backend) = &mut self.backend else {
                return;
            };
            let events = backend.decode(frame);
            if backend.was_short() {
                let surfaces = self.surfaces;
                eprintln!(
                    "standin_nvcuvid: a picture was lost: all {surfaces} surfaces are in use"
                );
                self.failed = true;
            }
            let stamp = match self.reorders() {
                // The first picture takes it.
                true if events
                    .iter()
                    .any(|event| matches!(event, Event::Decoded(_))) =>
                {
                    timestamp.take().flatten()
                }
                true => None,
                false => timestamp.flatten(),
            };
            self.deliver(events, stamp, frame);
        }
    }

    /// Whether pictures come in another order than they are shown; elsewhere the packet that shows a picture
    /// gives it its timestamp.
    fn reorders(&self) -> bool {
        matches!(self.setup.codec, Codec::H264 | Codec::H265 | Codec::Mpeg2)
    }

    fn deliver(&mut self, events: Vec<Event>, timestamp: Option<i64>, unit: &[u8]) {
        let mut stamp = timestamp;
        for event in events {
            match event {
                Event::Decoded(decoded) => {
                    let token = decoded.lease.token;
                    let second = decoded.field.is_some_and(|field| field.second);
                    if !second && self.reorders() {
                        self.timestamps.decoded(token, stamp.take());
                    }
                    self.decode(&decoded, unit);
                }
                Event::Shown(shown) => {
                    let own = if self.reorders() { None } else { timestamp };
                    self.display.push_back((shown, own));
                    self.show_beyond(self.delay);
                }
            }
        }
    }

    fn decode(&mut self, decoded: &Decoded, unit: &[u8]) {
        let token = decoded.lease.token;
        let second_field = decoded.field.is_some_and(|field| field.second);
        let showing = match self.decoded.get(&token) {
            // The first field was refused: so is the frame.
            Some(None) => Arc::default(),
            Some(Some(showing)) => showing.clone(),
            None => Arc::default(),
        };
        let is_refused = matches!(self.decoded.get(&token), Some(None));
        let mut params = self.client.picture(self.setup.codec, decoded, unit);
        let coded = Coded {
            token,
            pixels: decoded.pixels.clone(),
            kind: decoded.kind,
            second_field,
            showing: showing.clone(),
        };
        let published = picture::publish(coded, &mut params);
        let taken = self.client.decode(&mut params);
        drop(published);
        if !taken {
            self.failed = true;
            self.timestamps.skipped(token);
        }
        self.decoded
            .insert(token, (taken && !is_refused).then_some(showing));
        while self.decoded.len() > REMEMBERED {
            self.decoded.pop_first();
        }
    }

    fn show_beyond(&mut self, delay: usize) {
        while self.display.len() > delay {
            if let Some((shown, own)) = self.display.pop_front() {
                self.show(&shown, own);
            }
        }
    }

    fn show(&mut self, shown: &Shown, own: Option<i64>) {
        let token = shown.lease.token;
        let Some(Some(showing)) = self.decoded.get(&token).cloned() else {
            return; // its decode callback failed
        };
        let timestamp = if self.reorders() {
            self.timestamps.shown(token)
        } else {
            self.timestamps.shown_with(token, own)
        };
        if shown.damaged {
            showing.damage();
        }
        showing.show();
        let mut info = CUVIDPARSERDISPINFO {
            picture_index: shown.lease.index as i32,
            progressive_frame: (shown.order == FieldOrder::Progressive).into(),
            top_field_first: (shown.order != FieldOrder::BottomFirst).into(),
            repeat_first_field: shown.repeat,
            timestamp,
        };
        log(|| format!("surface {} is shown at {timestamp}", info.picture_index));
        if !self.client.display(&mut info) {
            self.failed = true;
        }
    }

    /// Shows everything.
    fn drain(&mut self) {
        let events = self.backend.as_mut().map(|backend| backend.drain());
        self.deliver(events.unwrap_or_default(), None, &[]);
        self.show_beyond(0);
    }

    /// Forgets the stream: the next packet has to bring its headers again.
    fn restart(&mut self) {
        self.input = Input::new(self.setup.codec);
        self.backend = None;
        self.timestamps = Timestamps::new(0);
    }

    /// Nobody waits for pictures of this parser any more.
    fn settle(&mut self) {
        self.decoded
            .values()
            .flatten()
            .for_each(|showing| showing.settle());
        self.display.clear();
        self.backend = None;
    }
}
