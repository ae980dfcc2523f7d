// SPDX-License-Identifier: MPL-2.0

//! What the element costs in a pipeline, against what its kernel costs alone.

use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use campaigns::{CampaignError, percentile, pipeline, play};
use clap::Parser;
use vmaf_motion::{Geometry, MotionOptions, MotionStream, Plane, SampleFormat};

/// The most that the element may take, as a multiple of its kernel's own time.
const TARGET: f64 = 1.15;

/// Runs `filesrc ! rawvideoparse ! ELEMENT ! fakesink` over 1080p8 frames in the page cache, with
/// vmafxmotion and with identity in turn. The difference per frame is compared with the time that
/// the kernel takes for the same planes in memory. Medians of all rounds. Where ffmpeg is installed,
/// its filter vmafmotion runs over the same file in the same rounds, against its filter null.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of both pipelines and the kernel
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Fail if the element takes more than 1.15 times its kernel's time
    #[arg(long)]
    check: bool,
}

const WIDTH: usize = 1920;
const HEIGHT: usize = 1080;
/// More than any last-level cache holds.
const FRAMES: usize = 96;

/// Moving waves with grain: what video looks like to the kernel.
fn film() -> Vec<u8> {
    let wave: Vec<i32> = (0..4096)
        .map(|i| (f64::from(i) / 90.0).sin().mul_add(60.0, 128.0) as i32)
        .collect();
    let mut grain = 1u32;
    let mut film = Vec::with_capacity(FRAMES * WIDTH * HEIGHT);
    for frame in 0..FRAMES {
        for y in 0..HEIGHT {
            let row = wave[(3 * y + 5 * frame) % wave.len()];
            film.extend((0..WIDTH).map(|x| {
                grain = grain.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let sample = (wave[(2 * x + 7 * frame) % wave.len()] + row) / 2;
                (sample + (grain >> 30) as i32) as u8
            }));
        }
    }
    film
}

fn kernel(film: &[u8]) -> Result<Duration, CampaignError> {
    let wrong = |error: &dyn std::fmt::Display| CampaignError::TooLittle(error.to_string());
    let geometry = Geometry::new(WIDTH as u32, HEIGHT as u32, SampleFormat::EIGHT_BIT)
        .map_err(|e| wrong(&e))?;
    let mut stream =
        MotionStream::new(&MotionOptions::default(), geometry).map_err(|e| wrong(&e))?;
    let start = Instant::now();
    for plane in film.chunks_exact(WIDTH * HEIGHT) {
        let plane = Plane::new(plane, WIDTH, geometry).map_err(|e| wrong(&e))?;
        std::hint::black_box(stream.push(&plane).map_err(|e| wrong(&e))?);
    }
    Ok(start.elapsed() / FRAMES as u32)
}

fn run(path: &std::path::Path, element: &str) -> Result<Duration, CampaignError> {
    let launch = format!(
        "filesrc location={} blocksize={} \
         ! rawvideoparse format=gray8 width={WIDTH} height={HEIGHT} framerate=60/1 \
         ! {element} ! fakesink",
        path.display(),
        WIDTH * HEIGHT
    );
    let pipeline = pipeline(&launch)?;
    let start = Instant::now();
    play(&pipeline, |_| Ok(()))?;
    Ok(start.elapsed() / FRAMES as u32)
}

/// FFmpeg over the same file; `None` where it is not installed.
fn peer(path: &std::path::Path, filter: &str) -> Option<Duration> {
    let size = format!("{WIDTH}x{HEIGHT}");
    let start = Instant::now();
    let done = Command::new("ffmpeg")
        .args([
            "-v", "error", "-nostdin", "-f", "rawvideo", "-pix_fmt", "gray", "-s",
        ])
        .arg(size)
        .arg("-i")
        .arg(path)
        .args(["-vf", filter, "-f", "null", "-"])
        .status();
    let done = done.is_ok_and(|status| status.success());
    done.then(|| start.elapsed() / FRAMES as u32)
}

/// Medians: identity, vmafxmotion, the kernel; and FFmpeg's null and vmafmotion.
type Medians = ([Duration; 3], Option<[Duration; 2]>);

fn measure(rounds: usize) -> Result<Medians, CampaignError> {
    let film = film();
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&film)?;
    file.flush()?;
    let mut times: [Vec<Duration>; 3] = Default::default();
    let mut peers: [Vec<Duration>; 2] = Default::default();
    // The first round warms the page cache up.
    for round in 0..=rounds {
        let taken = [
            run(file.path(), "identity")?,
            run(file.path(), "vmafxmotion messages=summary")?,
            kernel(&film)?,
        ];
        if round == 0 {
            continue;
        }
        for (times, taken) in times.iter_mut().zip(taken) {
            times.push(taken);
        }
        for (times, filter) in peers.iter_mut().zip(["null", "vmafmotion"]) {
            times.extend(peer(file.path(), filter));
        }
    }
    let median = |times: &mut Vec<Duration>| percentile(times, 50.0);
    let [null, motion] = peers.each_mut().map(median);
    let times = times
        .each_mut()
        .map(|times| median(times).unwrap_or_default());
    Ok((times, null.zip(motion).map(|(null, motion)| [null, motion])))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ([identity, motion, kernel], peer) = match measure(arguments.rounds.max(1)) {
        Ok(times) => times,
        Err(error) => {
            eprintln!("pipeline-cost: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let added = motion.saturating_sub(identity);
    let ratio = added.as_secs_f64() / kernel.as_secs_f64();
    println!(
        "1920x1080, 8 bit, per frame, medians of {} rounds",
        arguments.rounds
    );
    println!("  with identity    {:>7.3} ms", ms(identity));
    println!("  with vmafxmotion {:>7.3} ms", ms(motion));
    println!("  added            {:>7.3} ms", ms(added));
    println!("  kernel alone     {:>7.3} ms", ms(kernel));
    println!("  ratio            {ratio:>7.2}");
    match peer {
        Some([null, peer]) => {
            let peer = peer.saturating_sub(null);
            let times = peer.as_secs_f64() / added.as_secs_f64();
            println!(
                "  FFmpeg's vmafmotion adds {:.3} ms to null: {times:.1} times as much",
                ms(peer)
            );
        }
        None => println!("  (no peer: ffmpeg with the filter vmafmotion is not installed)"),
    }
    if arguments.check && ratio > TARGET {
        eprintln!("pipeline-cost: the ratio must be at most {TARGET}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
