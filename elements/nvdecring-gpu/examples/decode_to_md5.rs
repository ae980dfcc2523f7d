// SPDX-License-Identifier: MPL-2.0

//! Decodes an elementary stream or IVF file on NVDEC and prints the MD5 of every picture.
//!
//!     cargo run --release -p nvdecring-gpu --example decode_to_md5 -- video.h264
//!
//! A line a picture: MD5 of its samples (cropped, planes one after another, chroma as the decoder has it:
//! NV12 or P016), size, and what is wrong with it if anything is. With `--expect LIST` the pictures are
//! compared with a list of MD5 or CRC-32 sums, one a line. Exit status: 0 all is well, 1 a picture is missing,
//! damaged or not as expected, 2 the stream or an argument is at fault, 77 the machine has no NVDEC.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Parser;
use nvcuvid_sys::{Driver, Nvcuvid};
use nvdecring_core::{
    Config, Damage, DropReason, Error, Event, FrameToken, Overflow, Picture, RingDepth, Session,
    Sink, SystemClock,
};
use nvdecring_gpu::{
    Codec, ContextSource, HostFrame, HostMemory, InputFile, Nvdec, Packetizer, PixelFormat,
    Settings, gate,
};

/// Decodes a video on NVDEC and prints the MD5 of every picture.
#[derive(Parser)]
struct Arguments {
    /// An elementary stream (H.264, H.265, MPEG-2) or an IVF file (VP8, VP9, AV1).
    file: PathBuf,
    /// Number of the CUDA device.
    #[arg(long, default_value_t = 0)]
    device: u32,
    /// Pictures that may wait in the ring, 1 to 16.
    #[arg(long, default_value_t = 8)]
    ring_depth: u8,
    /// Pictures that the parser may hold back, 0 to 4.
    #[arg(long, default_value_t = 0)]
    delay: u8,
    /// Milliseconds that a picture may take.
    #[arg(long, default_value_t = 500)]
    decode_timeout: u64,
    /// Planes as the decoder has them, or 8-bit chroma taken apart.
    #[arg(long, value_parser = ["native", "i420"], default_value = "native")]
    pixels: String,
    /// A list of MD5 or CRC-32 sums to compare with, one a line.
    #[arg(long)]
    expect: Option<PathBuf>,
    /// Compute no sums: for timing.
    #[arg(long, conflicts_with = "expect")]
    no_sums: bool,
    /// Print the figures alone.
    #[arg(long)]
    quiet: bool,
}

/// What came out, in the order in which it did.
#[derive(Default)]
struct Account {
    sums: Vec<String>,
    lines: Vec<String>,
    lost: u64,
    damaged: u64,
}

/// What is computed of a picture.
#[derive(Clone, Copy)]
enum Sums {
    None,
    Md5,
    Crc,
}

struct Summer {
    account: Arc<Mutex<Account>>,
    sums: Sums,
    i420: bool,
}

impl Summer {
    fn samples(&self, frame: &HostFrame) -> Vec<u8> {
        let mut all = Vec::with_capacity(frame.layout().size);
        let take_apart = self.i420 && frame.layout().format == PixelFormat::Nv12;
        let whole = if take_apart {
            1
        } else {
            frame.layout().planes.len()
        };
        for row in (0..whole).flat_map(|plane| frame.rows(plane)) {
            all.extend_from_slice(row);
        }
        if take_apart {
            for first in 0..2 {
                for row in frame.rows(1) {
                    all.extend(row.iter().skip(first).step_by(2));
                }
            }
        }
        all
    }

    fn sum(&self, frame: &HostFrame) -> String {
        match self.sums {
            Sums::None => "-".to_owned(),
            Sums::Crc => format!("{:08x}", crc32fast::hash(&self.samples(frame))),
            Sums::Md5 => format!("{:x}", md5::compute(self.samples(frame))),
        }
    }
}

impl Sink<Nvdec<HostMemory>> for Summer {
    fn picture(&mut self, picture: Picture<Nvdec<HostMemory>>) {
        let sum = self.sum(&picture.frame);
        let layout = picture.frame.layout();
        let mut line = format!(
            "{sum} {}x{} packet {}",
            layout.width, layout.height, picture.token.0
        );
        if picture.damage != Damage::None {
            let _ = write!(line, " damaged: {:?}", picture.damage);
        }
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.damaged += u64::from(picture.damage != Damage::None);
        account.sums.push(sum);
        account.lines.push(line);
    }

    fn dropped(&mut self, token: FrameToken, reason: DropReason) {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        if reason.is_failure() {
            account.lost += 1;
            account
                .lines
                .push(format!("lost: packet {}: {reason}", token.0));
        }
    }
}

/// Why there are no sums.
enum Failure {
    NoNvdec(String),
    Input(String),
    Decoding(Error),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(Failure::NoNvdec(reason)) => {
            eprintln!("decode_to_md5: {reason}");
            ExitCode::from(77)
        }
        Err(Failure::Input(reason)) => {
            eprintln!("decode_to_md5: {}: {reason}", arguments.file.display());
            ExitCode::from(2)
        }
        Err(Failure::Decoding(error)) => {
            eprintln!("decode_to_md5: {}: {error}", arguments.file.display());
            ExitCode::from(match error {
                Error::Unsupported(_) | Error::Config(_) => 2,
                _ => 1,
            })
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let input = |error: &dyn ToString| Failure::Input(error.to_string());
    let bytes = std::fs::read(&arguments.file).map_err(|error| input(&error))?;
    let file = InputFile::read(&bytes, None).map_err(|error| input(&error))?;
    let expected = expected(arguments)?;

    let no_nvdec = |error: nvcuvid_sys::LoadError| Failure::NoNvdec(error.to_string());
    let driver = Driver::load().map_err(no_nvdec)?;
    let nvcuvid = Nvcuvid::load().map_err(no_nvdec)?;
    driver.device(arguments.device).map_err(no_nvdec)?;
    for (name, path) in [("libcuda", driver.path()), ("libnvcuvid", nvcuvid.path())] {
        let path = path.map_or_else(|| "?".into(), |path| path.display().to_string());
        eprintln!("{name}: {path}");
    }

    let account = Arc::new(Mutex::new(Account::default()));
    let sink = Summer {
        account: account.clone(),
        sums: match expected.first() {
            Some(sum) if sum.len() == 8 => Sums::Crc,
            None if arguments.no_sums => Sums::None,
            _ => Sums::Md5,
        },
        i420: arguments.pixels == "i420",
    };
    let session = open(arguments, file.codec, sink).map_err(Failure::Decoding)?;
    let started = std::time::Instant::now();
    let mut packetizer = Packetizer::new(file.codec);
    let packets = file.packets.len();
    for (token, data) in file.packets.into_iter().enumerate() {
        let packet = packetizer.packet(FrameToken(token as u64), Box::new(data), false);
        session.submit(packet).map_err(Failure::Decoding)?;
    }
    session.drain().map_err(Failure::Decoding)?;
    let elapsed = started.elapsed();
    let stats = session.stop().stats;

    let account = account.lock().unwrap_or_else(PoisonError::into_inner);
    if !arguments.quiet {
        for line in &account.lines {
            println!("{line}");
        }
    }
    eprintln!(
        "{packets} packets, {} pictures ({} damaged), {} without a picture, {} lost; {:.1} ms, {:.1} \
         pictures/s; {} decoders, {} reconfigured, at most {} in the ring",
        stats.pictures,
        account.damaged,
        stats.dropped,
        account.lost,
        elapsed.as_secs_f64() * 1e3,
        stats.pictures as f64 / elapsed.as_secs_f64(),
        stats.decoders,
        stats.reconfigured,
        stats.most_queued,
    );
    let whole = stats.submitted == stats.pictures + stats.dropped;
    Ok(whole && account.damaged == 0 && as_expected(&account.sums, &expected))
}

fn open(
    arguments: &Arguments,
    codec: Codec,
    sink: Summer,
) -> Result<Session<Nvdec<HostMemory>>, Error> {
    let delay = codec.display_delay(arguments.delay);
    let timeout = Duration::from_millis(arguments.decode_timeout);
    let mut config = Config::new(codec.identity());
    config.ring_depth = RingDepth::try_from(arguments.ring_depth)?;
    config.overflow = Overflow::Block;
    config.display_delay = delay;
    config.decode_timeout = timeout;
    config.wedge_timeout = config.wedge_timeout.max(timeout);
    let settings = Settings {
        codec,
        display_delay: delay,
        context: ContextSource::Device(arguments.device),
    };
    Session::open(
        Arc::new(Nvdec::new(settings, HostMemory::default())),
        gate(arguments.device),
        config,
        Box::new(sink),
        Box::new(|event| match event {
            Event::Stalled { call, elapsed } => eprintln!("{call} takes long: {elapsed:?}"),
            Event::Recovered { by, after } => eprintln!("recovered by a new {by:?} after: {after}"),
        }),
        Arc::new(SystemClock::default()),
    )
}

fn expected(arguments: &Arguments) -> Result<Vec<String>, Failure> {
    let Some(path) = &arguments.expect else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    Ok(text.split_whitespace().map(str::to_lowercase).collect())
}

fn as_expected(sums: &[String], expected: &[String]) -> bool {
    if expected.is_empty() {
        return true;
    }
    let wrong = sums
        .iter()
        .zip(expected)
        .position(|(got, wanted)| got != wanted);
    match wrong {
        Some(at) => eprintln!("picture {at} is {}, not {}", sums[at], expected[at]),
        None if sums.len() != expected.len() => {
            eprintln!("{} pictures, {} expected", sums.len(), expected.len());
        }
        None => {
            eprintln!("all {} pictures are as expected", sums.len());
            return true;
        }
    }
    false
}
