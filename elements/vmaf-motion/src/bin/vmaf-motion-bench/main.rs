// SPDX-License-Identifier: MPL-2.0

//! Times the motion kernels against the time it takes to read the planes.
//!
//! All that is compared is timed in the same run, in rounds, on planes that the caches do not hold.

mod clip;
mod measure;
mod targets;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clip::{Clip, Content};
use measure::{Subject, Times, measure};
use vmaf_motion::sad::Kernel;
use vmaf_motion::{Geometry, SampleFormat};

const USAGE: &str = "usage: vmaf-motion-bench [--check] [--rounds N] [--megabytes N] [--raw FILE WIDTHxHEIGHT DEPTH]...

Times every motion kernel of this processor against the time to read two planes.

  --check        exit with 1 when a target is missed
  --rounds N     rounds in which all is timed in turn (7)
  --megabytes N  size of a made clip (a quarter more than the last cache level)
  --raw FILE WIDTHxHEIGHT DEPTH
                 times a raw 4:2:0 file too, 8 bit or in the low bits of little-endian words;
                 may be given again";

/// What the command line asks for.
struct Arguments {
    check: bool,
    rounds: usize,
    bytes: usize,
    raw: Vec<(PathBuf, Geometry)>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self {
            check: false,
            rounds: 7,
            bytes: last_cache_bytes() * 5 / 4,
            raw: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = |what: &str| {
                let value = words.next();
                value.ok_or_else(|| format!("{word} is not followed by {what}"))
            };
            let number = |text: String| match text.parse::<usize>() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("{text:?} is not a number above 0")),
            };
            match word.as_str() {
                "--check" => arguments.check = true,
                "--rounds" => arguments.rounds = number(value("a number")?)?,
                "--megabytes" => arguments.bytes = number(value("a number")?)? << 20,
                "--raw" => {
                    let file = value("a file")?.into();
                    let size = value("a size")?;
                    let depth = number(value("a depth")?)? as u32;
                    arguments.raw.push((file, geometry(&size, depth)?));
                }
                _ => return Err(format!("unknown argument {word:?}")),
            }
        }
        Ok(arguments)
    }
}

fn geometry(size: &str, depth: u32) -> Result<Geometry, String> {
    let sides = size.split_once('x');
    let sides = sides.and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
    let (width, height) = sides.ok_or_else(|| format!("{size:?} is not a size as 1920x1080"))?;
    let format = SampleFormat::low(depth).map_err(|error| error.to_string())?;
    Geometry::new(width, height, format).map_err(|error| error.to_string())
}

/// Size of the processor's last cache level; 64 MiB where it cannot be found out.
fn last_cache_bytes() -> usize {
    let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index3/size");
    let kilobytes = size
        .ok()
        .and_then(|size| size.trim().strip_suffix('K')?.parse::<usize>().ok());
    kilobytes.map_or(64 << 20, |kilobytes| kilobytes << 10)
}

fn subjects() -> Vec<Subject> {
    let mut subjects = vec![Subject::Floor, Subject::FloorInPlace];
    for kernel in Kernel::available().filter(|&kernel| kernel != Kernel::Scalar) {
        subjects.extend([Subject::Pairs(kernel), Subject::Stream(kernel)]);
    }
    if available_parallelism().is_ok_and(|cores| cores.get() > 1) {
        subjects.push(Subject::TwoThreads(Kernel::best()));
    }
    subjects
}

fn print(clip: &Clip, times: &[Times]) {
    println!("\n{} ({} planes)", clip.name, clip.planes.len());
    println!(
        "                                          ms  ns/px  x floor [least .. greatest]  fast  equal"
    );
    for it in times {
        let [least, ratio, greatest] = it.ratios(&times[0]);
        let (ms, ns) = (
            it.seconds() * 1e3,
            it.seconds() * 1e9 / clip.samples() as f64,
        );
        let shares = it.shares().map_or(String::new(), |[fast, equal]| {
            format!("{:4.0}%  {:4.0}%", 100.0 * fast, 100.0 * equal)
        });
        println!(
            "  {:34} {ms:7.3}  {ns:5.3}    {ratio:5.2} [{least:5.2} .. {greatest:5.2}]       {shares}",
            it.subject
        );
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let sizes = [("1080p8", "1920x1080", 8), ("2160p10", "3840x2160", 10)];
    let mut missed = false;
    let mut measure = |size: &str, clip: &Clip| {
        let times = measure(clip, &subjects(), arguments.rounds);
        print(clip, &times);
        for (met, line) in targets::judge(size, clip, &times) {
            println!("  {} {line}", if met { "met   " } else { "MISSED" });
            missed |= !met;
        }
    };
    for (size, sides, depth) in sizes {
        for content in [Content::Smooth, Content::Noise, Content::Static] {
            let geometry = geometry(sides, depth)?;
            measure(size, &Clip::made(size, content, geometry, arguments.bytes));
        }
    }
    for (path, geometry) in &arguments.raw {
        let clip = Clip::raw(path, *geometry, arguments.bytes);
        measure(
            "",
            &clip.map_err(|error| format!("{}: {error}", path.display()))?,
        );
    }
    Ok(!missed)
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(met) if met || !arguments.check => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
