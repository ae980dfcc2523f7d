// SPDX-License-Identifier: MPL-2.0

//! Asks a device what the documentation leaves open, below the ring: a line an answer.
//!
//!     cargo run --release -p nvdecring-gpu --example nvdec_probe -- b-frames.h264 [hidden-frames.ivf]
//!
//! Exit status: 0 every step ran, 1 a step failed, 2 an argument is at fault, 3 the libraries are stand-ins of
//! this project (`--allow-stand-in` asks them anyway), 77 the machine has no NVDEC.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser as _;
use nvcuvid_sys as nv;
use nvcuvid_sys::{
    Context, DecoderCaps, Driver, FieldSelection, MappedSurface, Nvcuvid, PictureParams, Stream,
};
use nvdecring_gpu::{Codec, InputFile, Packetizer, StreamFormat};

/// Asks a device what the documentation leaves open.
#[derive(clap::Parser)]
struct Arguments {
    /// A stream of H.264 with B-frames.
    file: PathBuf,
    /// A stream of a codec that is not documented to have a decode status, such as VP9.
    other: Option<PathBuf>,
    /// Number of the CUDA device.
    #[arg(long, default_value_t = 0)]
    device: u32,
    /// Ask this project's stand-ins, to try this program.
    #[arg(long)]
    allow_stand_in: bool,
}

/// Pictures that are kept unmapped to fill the driver's queue.
const QUEUED: usize = 10;

/// What happens to pictures that are shown.
#[derive(Clone, Copy, PartialEq)]
enum Showing {
    /// Mapped and unmapped at once.
    Map,
    /// Left alone.
    Ignore,
}

/// Writes down what the parser does and how long the decoder takes.
struct Trace {
    context: Arc<Context>,
    stream: Arc<Stream>,
    nvcuvid: &'static Nvcuvid,
    showing: Showing,
    /// Surfaces beyond those that the stream needs.
    spare: u8,
    decoder: Option<Arc<nv::Decoder>>,
    minimum: u8,
    /// The packet being parsed.
    packet: i64,
    decoded: Vec<(i32, i64, Duration)>,
    shown: Vec<(i32, i64)>,
    maps: Vec<Duration>,
    failure: Option<String>,
}

impl Trace {
    fn failed(&mut self, error: impl ToString) -> nv::CallbackFailed {
        self.failure.get_or_insert(error.to_string());
        nv::CallbackFailed
    }

    fn map(&mut self, index: i32) -> Result<Arc<MappedSurface>, nv::Error> {
        let Some(decoder) = &self.decoder else {
            return Err(nv::Error::Reconfiguring);
        };
        decoder.map(
            u32::try_from(index).unwrap_or(u32::MAX),
            FieldSelection::PROGRESSIVE,
            &self.stream,
        )
    }
}

impl nv::ParserClient for Trace {
    fn sequence(
        &mut self,
        format: &nv::CUVIDEOFORMAT,
    ) -> Result<nv::SequenceAnswer, nv::CallbackFailed> {
        let format = StreamFormat::new(format);
        self.minimum = format.min_decode_surfaces;
        let surfaces = (format.min_decode_surfaces + self.spare).min(32);
        let Some(config) = format.decoder_config(surfaces, 1, (0, 0)) else {
            return Err(self.failed("no surface format keeps the stream's samples"));
        };
        self.decoder = None;
        match nv::Decoder::new(&self.context, self.nvcuvid, &config) {
            Ok(decoder) => {
                self.decoder = Some(decoder);
                Ok(nv::SequenceAnswer::Surfaces(surfaces.into()))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn decode(&mut self, picture: &PictureParams) -> Result<(), nv::CallbackFailed> {
        let Some(decoder) = self.decoder.clone() else {
            return Err(nv::CallbackFailed);
        };
        let started = Instant::now();
        let taken = decoder.decode(picture);
        self.decoded
            .push((picture.picture_index(), self.packet, started.elapsed()));
        taken.map_err(|error| self.failed(error))
    }

    fn display(&mut self, display: &nv::CUVIDPARSERDISPINFO) -> Result<(), nv::CallbackFailed> {
        self.shown.push((display.picture_index, display.timestamp));
        if self.showing == Showing::Map {
            let started = Instant::now();
            let mapped = self.map(display.picture_index);
            self.maps.push(started.elapsed());
            let unmapped = mapped.and_then(MappedSurface::unmap);
            return unmapped.map_err(|error| self.failed(error));
        }
        Ok(())
    }
}

struct Device {
    context: Arc<Context>,
    nvcuvid: &'static Nvcuvid,
}

impl Device {
    /// Parses the first `limit` packets of a file, each with its number as timestamp.
    fn trace(
        &self,
        file: &InputFile,
        limit: usize,
        showing: Showing,
        spare: u8,
    ) -> Result<Trace, String> {
        let text = |error: &dyn ToString| error.to_string();
        let stream = Stream::new(&self.context).map_err(|error| text(&error))?;
        let mut trace = Trace {
            context: self.context.clone(),
            stream,
            nvcuvid: self.nvcuvid,
            showing,
            spare,
            decoder: None,
            minimum: 0,
            packet: 0,
            decoded: Vec::new(),
            shown: Vec::new(),
            maps: Vec::new(),
            failure: None,
        };
        let config = nv::ParserConfig::new(file.codec.raw());
        let mut parser = nv::Parser::new(self.nvcuvid, &config).map_err(|error| text(&error))?;
        let mut packetizer = Packetizer::new(file.codec);
        for (number, data) in file.packets.iter().take(limit).enumerate() {
            trace.packet = number as i64;
            let packet = nv::Packet {
                data,
                timestamp: Some(trace.packet),
                end_of_picture: packetizer.examine(data) == Some(1),
                ..nv::Packet::default()
            };
            // What went wrong stands in the trace.
            let _ = parser.parse(&packet, &mut trace);
        }
        match trace.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(trace),
        }
    }
}

fn report(step: &str, answer: &dyn std::fmt::Display) {
    println!("{step}: {answer}");
}

fn caps(device: &Device) {
    for codec in Codec::ALL {
        for depth in [8, 10] {
            let caps = DecoderCaps::query(
                &device.context,
                device.nvcuvid,
                codec.raw(),
                nv::cudaVideoChromaFormat_420,
                depth,
            );
            let answer = match caps {
                Ok(caps) if caps.supported => format!(
                    "{} engines, {}x{} to {}x{}, surface formats {:#x}",
                    caps.engines,
                    caps.min_width,
                    caps.min_height,
                    caps.max_width,
                    caps.max_height,
                    caps.output_formats
                ),
                Ok(_) => "not supported".to_owned(),
                Err(error) => error.to_string(),
            };
            report(&format!("caps {codec} {depth} bit"), &answer);
        }
    }
}

/// Whether the parser sorts timestamps: those of pictures that were decoded from another packet.
fn timestamps(trace: &Trace) -> String {
    let mut wrong = 0;
    for (index, timestamp) in &trace.shown {
        // The last picture that was decoded into the surface before it was shown is the one that is shown, as
        // long as surfaces are not used again meanwhile: the trace has more of them than it shows.
        let of = trace
            .decoded
            .iter()
            .find(|(_, packet, _)| packet == timestamp);
        wrong += usize::from(of.is_none_or(|(decoded, ..)| decoded != index));
    }
    format!(
        "{wrong} of {} shown pictures carry another packet's timestamp",
        trace.shown.len()
    )
}

fn surfaces(trace: &Trace) -> String {
    let indices: Vec<String> = trace
        .decoded
        .iter()
        .take(32)
        .map(|(index, ..)| index.to_string())
        .collect();
    format!(
        "{} needed, decoded into {}",
        trace.minimum,
        indices.join(" ")
    )
}

fn times(durations: impl Iterator<Item = Duration>) -> String {
    let texts: Vec<String> = durations
        .map(|duration| format!("{:.2}", duration.as_secs_f64() * 1e3))
        .collect();
    format!("{} ms", texts.join(" "))
}

/// Two pictures mapped where one can be.
fn map_all(trace: &mut Trace) -> String {
    let shown: Vec<i32> = trace
        .shown
        .iter()
        .rev()
        .take(2)
        .map(|(index, _)| *index)
        .collect();
    let [last, before] = shown[..] else {
        return "too few pictures".to_owned();
    };
    let first = trace.map(before);
    let second = trace.map(last);
    let answer = match (&first, &second) {
        (Ok(_), Err(error)) => format!("the second map fails: {error}"),
        (Ok(_), Ok(_)) => "the second map succeeds".to_owned(),
        (Err(error), _) => format!("the first map fails: {error}"),
    };
    drop((first, second));
    answer
}

fn status(trace: &Trace) -> String {
    let (Some(decoder), Some((index, _))) = (&trace.decoder, trace.shown.last()) else {
        return "nothing was decoded".to_owned();
    };
    match decoder.status(u32::try_from(*index).unwrap_or(u32::MAX)) {
        Ok(status) => format!("{status:?}"),
        Err(error) => error.to_string(),
    }
}

fn open(arguments: &Arguments) -> Result<Device, ExitCode> {
    let absent = |error: &dyn ToString| {
        eprintln!("nvdec_probe: {}", error.to_string());
        ExitCode::from(77)
    };
    let nvcuvid = Nvcuvid::load().map_err(|error| absent(&error))?;
    let driver = Driver::load().map_err(|error| absent(&error))?;
    let path =
        |path: Option<PathBuf>| path.map_or_else(|| "?".into(), |path| path.display().to_string());
    report("libnvcuvid", &path(nvcuvid.path()));
    report("libcuda", &path(driver.path()));
    report("driver supports CUDA", &driver.version());
    if driver.extension("standin_cuda_mistakes").is_some() && !arguments.allow_stand_in {
        eprintln!(
            "nvdec_probe: these libraries are this project's stand-ins; a device is asked for"
        );
        return Err(ExitCode::from(3));
    }
    let device = driver
        .device(arguments.device)
        .map_err(|error| absent(&error))?;
    let name = driver
        .device_name(device)
        .unwrap_or_else(|error| error.to_string());
    report("device", &name);
    let context = Context::retain_primary(driver, device).map_err(|error| absent(&error))?;
    Ok(Device { context, nvcuvid })
}

fn questions(device: &Device, file: &InputFile, other: Option<&InputFile>) -> Result<(), String> {
    caps(device);
    let started = Instant::now();
    let trace = device.trace(file, 60, Showing::Map, 8)?;
    report("timestamps", &timestamps(&trace));
    report("surfaces, 8 spare", &surfaces(&trace));
    report("status of a shown picture", &status(&trace));
    report(
        "map directly after the display callback",
        &times(trace.maps.iter().take(16).copied()),
    );
    report(
        "60 packets, mapped one by one",
        &times(std::iter::once(started.elapsed())),
    );

    let spare = QUEUED as u8;
    let mut trace = device.trace(file, QUEUED + 4, Showing::Ignore, spare)?;
    let decodes = trace.decoded.iter().map(|(.., duration)| *duration);
    report("decode calls in a row, none mapped", &times(decodes));
    report("two maps with one output surface", &map_all(&mut trace));

    let Some(config) = trace.decoder.as_ref().map(|decoder| decoder.config()) else {
        return Err("nothing was decoded".to_owned());
    };
    drop(trace);
    let started = Instant::now();
    let decoder = nv::Decoder::new(&device.context, device.nvcuvid, &config)
        .map_err(|error| error.to_string())?;
    report(
        "creating a decoder",
        &times(std::iter::once(started.elapsed())),
    );
    let started = Instant::now();
    match decoder.reconfigure(&config) {
        Ok(()) => report(
            "reconfiguring it",
            &times(std::iter::once(started.elapsed())),
        ),
        Err(error) => report("reconfiguring it", &error),
    }
    let started = Instant::now();
    drop(decoder);
    report("destroying it", &times(std::iter::once(started.elapsed())));

    if let Some(other) = other {
        let trace = device.trace(other, 10, Showing::Map, 8)?;
        report(
            &format!("status of a shown picture, {}", other.codec),
            &status(&trace),
        );
    }
    Ok(())
}

fn read(path: &PathBuf) -> Result<InputFile, ExitCode> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string());
    bytes
        .and_then(|bytes| InputFile::read(&bytes, None).map_err(|error| error.to_string()))
        .map_err(|error| {
            eprintln!("nvdec_probe: {}: {error}", path.display());
            ExitCode::from(2)
        })
}

fn run() -> Result<(), ExitCode> {
    let arguments = Arguments::parse();
    let device = open(&arguments)?;
    let file = read(&arguments.file)?;
    let other = arguments.other.as_ref().map(read).transpose()?;
    questions(&device, &file, other.as_ref()).map_err(|error| {
        eprintln!("nvdec_probe: {error}");
        ExitCode::from(1)
    })
}

fn main() -> ExitCode {
    run().err().unwrap_or(ExitCode::SUCCESS)
}
