// SPDX-License-Identifier: MPL-2.0

//! What `vplretrydec` costs above a bare loop on the same runtime, and how its depth fills an engine.
//!
//! The price is taken on one processor first, where all work counts on the clock: that of the loop, of the
//! element, of its second thread and of the switches between them. On all processors the kernel's placement
//! of the decoder's threads is in it too.

use std::collections::VecDeque;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use campaigns::{CampaignError, percentile};
use clap::Parser;
use elementary_stream::{Codec, Reader, Step};
use gst::prelude::*;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use onevpl_sys::{DirectRuntime, Input, MfxStatus, Parameters, Session, Surface, SyncPoint};

/// The most that the element may take, as a multiple of the bare loop's time.
const OVERHEAD: f64 = 1.05;
/// The least of the engine's ideal that depth 4 must reach.
const FILLED: f64 = 0.95;
/// Operations of the modelled engine: how long, and how many at once.
const OPERATION: Duration = Duration::from_millis(8);
const ENGINES: u32 = 2;
const DEPTH: u16 = 4;

/// Decodes a 1080p H.264 stream, access unit by access unit from memory, with vplretrydec and with a loop of
/// nothing but oneVPL calls, in turn, on one processor and on all; both copy every frame out. Then decodes a small
/// stream against the runtime's model of an engine, at several depths. The runtime is the software one.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of both
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Frames of the 1080p stream
    #[arg(long, default_value_t = 240)]
    frames: usize,
    /// libvplsoft.so; without, the one beside this program
    #[arg(long)]
    runtime: Option<PathBuf>,
    /// Fail if the element takes more than 1.05 times the loop's time, on one processor or on all, or depth 4 gets
    /// less than 0.95 of the engine's ideal
    #[arg(long)]
    check: bool,
}

fn wrong(error: impl std::fmt::Display) -> CampaignError {
    CampaignError::TooLittle(error.to_string())
}

/// An H.264 stream of ffmpeg's moving test picture, cut into access units.
fn stream(size: &str, frames: usize) -> Result<Vec<Vec<u8>>, CampaignError> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("stream.h264");
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-f", "lavfi", "-i"])
        .arg(format!("testsrc2=size={size}:rate=60"))
        .args(["-frames:v", &frames.to_string()])
        .args([
            "-c:v", "libx264", "-preset", "veryfast", "-b:v", "12M", "-bf", "2",
        ])
        .arg(&file)
        .status()?;
    if !status.success() {
        return Err(wrong("ffmpeg makes no stream"));
    }
    let bytes = std::fs::read(&file)?;
    let mut rest = &bytes[..];
    let mut reader = Reader::new(Codec::H264);
    let mut units = Vec::new();
    while !rest.is_empty() {
        match reader.step(rest, true) {
            Step::Sequence(sequence) => reader.accept(sequence),
            Step::Unit { taken, .. } => {
                units.push(rest[..taken].to_vec());
                rest = &rest[taken..];
            }
            Step::More { .. } => return Err(wrong("the stream ends within an access unit")),
        }
    }
    Ok(units)
}

/// A moment: on the clock, and what this process has used of the processors by then.
#[derive(Clone, Copy)]
struct Moment(Instant, Duration);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), campaigns::processor_time())
    }
}

/// Time that a frame takes: on the clock, and of the processors.
#[derive(Clone, Copy)]
struct Each {
    clock: Duration,
    processors: Duration,
}

/// Frames before the measurement begins: pools are filled, threads are started.
const WARM_UP: usize = 16;

/// Time of the frames behind the warm-up.
struct Timed {
    frames: usize,
    first: Option<Moment>,
    last: Option<Moment>,
}

impl Timed {
    fn new() -> Self {
        Self {
            frames: 0,
            first: None,
            last: None,
        }
    }

    fn frame(&mut self) {
        let now = Moment::now();
        self.frames += 1;
        if self.frames == WARM_UP {
            self.first = Some(now);
        }
        self.last = Some(now);
    }

    fn each(&self, expected: usize) -> Result<Each, CampaignError> {
        match (self.first, self.last, self.frames) {
            (Some(first), Some(last), frames) if frames == expected && frames > WARM_UP => {
                Ok(Each {
                    clock: (last.0 - first.0) / (frames - WARM_UP) as u32,
                    processors: (last.1.saturating_sub(first.1)) / (frames - WARM_UP) as u32,
                })
            }
            (_, _, frames) => Err(wrong(format!("{frames} of {expected} frames came out"))),
        }
    }
}

/// The bare loop: the calls of the specification, a few frames in flight, every frame copied out.
struct Loop {
    session: Arc<Session>,
    pending: VecDeque<(Surface, Option<SyncPoint>)>,
    out: Vec<u8>,
    timed: Timed,
}

impl Loop {
    fn take_oldest(&mut self) -> Result<(), CampaignError> {
        let Some((surface, sync)) = self.pending.pop_front() else {
            return Ok(());
        };
        let status = match sync {
            Some(sync) => sync.wait(60_000),
            None => surface.synchronize(60_000),
        };
        if status != MfxStatus::ERR_NONE {
            return Err(wrong(status));
        }
        let mapped = surface.map().map_err(|(_, status)| wrong(status))?;
        let info = mapped.surface().info();
        let (width, height) = (usize::from(info.crop_width), usize::from(info.crop_height));
        self.out.resize(width * height * 3 / 2, 0);
        let mut out = self.out.chunks_exact_mut(width);
        for (plane, rows) in [(0, height), (1, height / 2)] {
            let from = mapped.plane(plane).chunks(mapped.stride(plane));
            for (from, to) in from.take(rows).zip(&mut out) {
                to.copy_from_slice(&from[..width]);
            }
        }
        self.timed.frame();
        Ok(())
    }

    /// One call after the other until the runtime wants more; `None` drains.
    fn feed(&mut self, mut unit: Option<&mut [u8]>) -> Result<(), CampaignError> {
        let mut at = 0;
        loop {
            let (call, taken) = match &mut unit {
                Some(unit) => {
                    let mut input = Input::new(&mut unit[at..], 0, 0);
                    let call = self.session.decode(Some(&mut input));
                    (call, input.taken())
                }
                None => (self.session.decode(None), 0),
            };
            at += taken;
            match (call.surface, call.status) {
                (Some(surface), _) => {
                    self.pending.push_back((surface, call.sync));
                    while self.pending.len() >= usize::from(DEPTH) {
                        self.take_oldest()?;
                    }
                }
                (None, MfxStatus::ERR_MORE_DATA) => return Ok(()),
                (None, status) if status.is_warning() => self.take_oldest()?,
                (None, status) => return Err(wrong(status)),
            }
        }
    }
}

fn bare(runtime: &DirectRuntime, units: &[Vec<u8>]) -> Result<Each, CampaignError> {
    let session = Session::direct(runtime).map_err(wrong)?;
    let mut units: Vec<Vec<u8>> = units.to_vec();
    let mut parameters = Parameters::new(onevpl_sys::MFX_CODEC_AVC);
    let header = session.decode_header(&mut Input::new(&mut units[0], 0, 0), &mut parameters);
    if header != MfxStatus::ERR_NONE {
        return Err(wrong(header));
    }
    parameters.set_async_depth(DEPTH);
    let status = session.init(&mut parameters);
    if status.is_error() {
        return Err(wrong(status));
    }
    let mut decode = Loop {
        session: Arc::new(session),
        pending: VecDeque::new(),
        out: Vec::new(),
        timed: Timed::new(),
    };
    for unit in &mut units {
        decode.feed(Some(unit))?;
    }
    decode.feed(None)?;
    while !decode.pending.is_empty() {
        decode.take_oldest()?;
    }
    decode.timed.each(units.len())
}

fn element(runtime: &Path, units: &[Vec<u8>], depth: u16) -> Result<Each, CampaignError> {
    let pipeline = gst::Pipeline::new();
    let make = |name: &str| gst::ElementFactory::make(name).build().map_err(wrong);
    let source = gst_app::AppSrc::builder()
        .caps(
            &"video/x-h264,stream-format=byte-stream,alignment=au,framerate=60/1"
                .parse()
                .map_err(wrong)?,
        )
        .format(gst::Format::Time)
        .build();
    let decoder = make("vplretrydec")?;
    decoder.set_property_from_str("implementation", "software");
    decoder.set_property("runtime-path", runtime);
    decoder.set_property("async-depth", u32::from(depth));
    let sink = make("fakesink")?;
    // The frame goes back to the pool at once, as the loop copies into one and the same memory.
    sink.set_property("enable-last-sample", false);
    sink.set_property("async", false);
    pipeline
        .add_many([source.upcast_ref(), &decoder, &sink])
        .map_err(wrong)?;
    gst::Element::link_many([source.upcast_ref(), &decoder, &sink]).map_err(wrong)?;
    let timed = Arc::new(std::sync::Mutex::new(Timed::new()));
    let counter = Arc::clone(&timed);
    let pad = sink.static_pad("sink").ok_or_else(|| wrong("no pad"))?;
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        if let Ok(mut timed) = counter.lock() {
            timed.frame();
        }
        gst::PadProbeReturn::Ok
    });
    for (number, unit) in units.iter().enumerate() {
        let mut buffer = gst::Buffer::from_slice(unit.clone());
        if let Some(buffer) = buffer.get_mut() {
            let time = gst::ClockTime::SECOND.mul_div_floor(number as u64, 60);
            buffer.set_dts(time);
        }
        source.push_buffer(buffer).map_err(wrong)?;
    }
    source.end_of_stream().map_err(wrong)?;
    campaigns::play(&pipeline, |_| Ok(()))?;
    let timed = timed.lock().map_err(wrong)?;
    timed.each(units.len())
}

/// Sets the faults of the sessions that are opened next.
fn set_faults(runtime: &DirectRuntime, text: &str) -> Result<(), CampaignError> {
    let address = runtime
        .extension("vplsoft_set_faults")
        .ok_or_else(|| wrong("the runtime is not vplsoft"))?;
    // SAFETY: vplsoft defines it so.
    let set: unsafe extern "C" fn(*const std::ffi::c_char) -> MfxStatus =
        unsafe { std::mem::transmute(address) };
    let text = CString::new(text).map_err(wrong)?;
    // SAFETY: a C string.
    match unsafe { set(text.as_ptr()) } {
        MfxStatus::ERR_NONE => Ok(()),
        status => Err(wrong(status)),
    }
}

/// What the rounds gave.
struct Overhead {
    /// Element to loop, on the clock, round by round, sorted.
    ratios: Vec<f64>,
    /// The same in processor time.
    processors: Vec<f64>,
    /// Medians of element and loop.
    clock: [Duration; 2],
}

/// Lets every thread of this process, and those that it starts, run on these processors.
fn run_on(processors: &CpuSet) -> Result<(), CampaignError> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let name = task?.file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok());
        let thread = thread.ok_or_else(|| wrong("/proc/self/task has more than threads"))?;
        match sched_setaffinity(Pid::from_raw(thread), processors) {
            // It has ended since.
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(error) => return Err(wrong(error)),
        }
    }
    Ok(())
}

fn overhead(
    arguments: &Arguments,
    runtime: &DirectRuntime,
    units: &[Vec<u8>],
) -> Result<Overhead, CampaignError> {
    let (mut ratios, mut processors) = (Vec::new(), Vec::new());
    let mut times: [Vec<Duration>; 2] = Default::default();
    for round in 0..=arguments.rounds.max(1) {
        // Which comes first alternates: the machine may grow slower within a round.
        let (ours, theirs) = if round % 2 == 0 {
            let theirs = bare(runtime, units)?;
            (element(runtime.path(), units, DEPTH)?, theirs)
        } else {
            let ours = element(runtime.path(), units, DEPTH)?;
            (ours, bare(runtime, units)?)
        };
        if round == 0 {
            continue;
        }
        ratios.push(ours.clock.as_secs_f64() / theirs.clock.as_secs_f64());
        processors.push(ours.processors.as_secs_f64() / theirs.processors.as_secs_f64());
        times[0].push(ours.clock);
        times[1].push(theirs.clock);
    }
    ratios.sort_by(f64::total_cmp);
    processors.sort_by(f64::total_cmp);
    let clock = times
        .each_mut()
        .map(|times| percentile(times, 50.0).unwrap_or_default());
    Ok(Overhead {
        ratios,
        processors,
        clock,
    })
}

impl Overhead {
    /// Prints it; the ratio.
    fn print(&self, on: &str) -> f64 {
        let Self {
            ratios,
            processors,
            clock: [ours, theirs],
        } = self;
        let ratio = median(ratios);
        let range =
            |sorted: &[f64]| format!("rounds {:.3} to {:.3}", sorted[0], sorted[sorted.len() - 1]);
        println!("{on}:");
        println!("  bare loop        {:>8.3} ms (median)", ms(*theirs));
        println!("  vplretrydec      {:>8.3} ms (median)", ms(*ours));
        println!("  ratio            {ratio:>8.3} ({})", range(ratios));
        println!(
            "  processor time   {:>8.3} times the loop's ({})",
            median(processors),
            range(processors)
        );
        ratio
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The median of what is sorted and not empty.
fn median(sorted: &[f64]) -> f64 {
    sorted[(sorted.len() - 1) / 2]
}

fn measure(arguments: &Arguments) -> Result<bool, CampaignError> {
    gst::init().map_err(wrong)?;
    gstvplretry::plugin_register_static().map_err(wrong)?;
    let beside = || {
        Some(
            std::env::current_exe()
                .ok()?
                .parent()?
                .join("libvplsoft.so"),
        )
    };
    let path = arguments.runtime.clone().or_else(beside);
    let path = path.ok_or_else(|| wrong("name the runtime with --runtime"))?;
    let runtime = DirectRuntime::open(&path).map_err(wrong)?;
    set_faults(&runtime, "")?;

    let all = sched_getaffinity(Pid::from_raw(0)).map_err(wrong)?;
    let first = (0..CpuSet::count()).find(|&number| all.is_set(number).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(first.ok_or_else(|| wrong("no processor"))?)
        .map_err(wrong)?;
    let units = stream("1920x1080", arguments.frames)?;
    println!(
        "1920x1080 H.264, depth {DEPTH}, per frame, {} rounds of {} frames",
        arguments.rounds.max(1),
        arguments.frames
    );
    run_on(&one)?;
    let alone = overhead(arguments, &runtime, &units)?;
    let on_one = alone.print("on one processor");
    run_on(&all)?;
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let together = overhead(arguments, &runtime, &units)?;
    let on_all = together.print(&format!("on all {count}"));

    let units = stream("160x120", 120)?;
    let micros = OPERATION.as_micros();
    set_faults(
        &runtime,
        &format!("latency-us={micros}:{micros}:{micros};engines={ENGINES}"),
    )?;
    let ideal = OPERATION / ENGINES;
    println!(
        "an engine that does {ENGINES} pictures at once, {} ms each: at best {:.3} ms a frame",
        OPERATION.as_millis(),
        ms(ideal)
    );
    let mut filled = 0.0;
    for depth in [1, 2, 3, 4, 8] {
        let each = element(runtime.path(), &units, depth)?;
        let share = ideal.as_secs_f64() / each.clock.as_secs_f64();
        println!(
            "  depth {depth}          {:>8.3} ms, {:.1} % of the ideal",
            ms(each.clock),
            share * 100.0
        );
        if depth == DEPTH {
            filled = share;
        }
    }
    set_faults(&runtime, "")?;
    let mut good = true;
    for (ratio, on) in [(on_one, "one processor"), (on_all, "all processors")] {
        if ratio > OVERHEAD {
            eprintln!("vpl-decode: the ratio on {on} must be at most {OVERHEAD}");
            good = false;
        }
    }
    if filled < FILLED {
        eprintln!(
            "vpl-decode: depth {DEPTH} must reach {} % of the ideal",
            FILLED * 100.0
        );
        good = false;
    }
    Ok(good)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match measure(&arguments) {
        Ok(good) if good || !arguments.check => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("vpl-decode: {error}");
            ExitCode::FAILURE
        }
    }
}
