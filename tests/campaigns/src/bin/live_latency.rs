// SPDX-License-Identifier: MPL-2.0

//! How long after the arrival of its last frame a window is posted, in a live 1080p60 pipeline.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use campaigns::{CampaignError, percentile, pipeline, play};
use clap::Parser;
use gst::prelude::*;
use vmafxmotion::WindowMessage;

/// Two frames at 60 a second.
const TARGET: Duration = Duration::from_micros(33_300);

/// Measures the time from the arrival of a window's last frame to the window's message, in a live
/// pipeline of 1920x1080 at 60 frames a second with windows of 12 frames.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seconds to run
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Fail unless the 99th percentile is under 33.3 ms
    #[arg(long)]
    check: bool,
}

/// When frames arrived and windows were posted.
#[derive(Debug, Default)]
struct Log {
    frames: u64,
    /// Arrival of the frames that a window ends with.
    arrivals: HashMap<u64, Instant>,
    delays: Vec<Duration>,
}

const WINDOW: u64 = 12;

fn measure(seconds: u32) -> Result<(Log, u64), CampaignError> {
    let launch = format!(
        "videotestsrc is-live=true num-buffers={} pattern=ball \
         ! video/x-raw,format=I420,width=1920,height=1080,framerate=60/1 \
         ! vmafxmotion name=motion n-stats-frames={WINDOW} messages=window ! fakesink sync=true",
        u64::from(seconds) * 60
    );
    let pipeline = pipeline(&launch)?;
    let log = Arc::new(Mutex::new(Log::default()));
    let Some(motion) = pipeline.by_name("motion") else {
        return Err(CampaignError::TooLittle(
            "no element named motion".to_owned(),
        ));
    };
    if let Some(pad) = motion.static_pad("sink") {
        let log = log.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let frame = log.frames;
            log.frames += 1;
            if frame % WINDOW == WINDOW - 1 {
                log.arrivals.insert(frame, Instant::now());
            }
            gst::PadProbeReturn::Ok
        });
    }
    if let Some(bus) = pipeline.bus() {
        let log = log.clone();
        bus.set_sync_handler(move |_, message| {
            let window = message
                .structure()
                .and_then(|s| WindowMessage::try_from(s).ok());
            if let Some(window) = window {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(arrival) = log.arrivals.remove(&window.last) {
                    log.delays.push(arrival.elapsed());
                }
            }
            gst::BusSyncReply::Pass
        });
    }
    play(&pipeline, |_| Ok(()))?;
    let skipped = motion
        .property::<gst::Structure>("stats")
        .get("window-messages-skipped")
        .unwrap_or(0);
    let log = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((log, skipped))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (mut log, skipped) = match measure(arguments.seconds) {
        Ok(measured) => measured,
        Err(error) => {
            eprintln!("live-latency: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!(
        "{} frames, {} windows, {skipped} messages skipped",
        log.frames,
        log.delays.len()
    );
    println!("from the arrival of a window's last frame to its message:");
    for percent in [50.0, 90.0, 99.0, 100.0] {
        if let Some(delay) = percentile(&mut log.delays, percent) {
            println!("  {percent:>5} % {:>8.3} ms", delay.as_secs_f64() * 1e3);
        }
    }
    let Some(p99) = percentile(&mut log.delays, 99.0) else {
        eprintln!("live-latency: no window was posted");
        return ExitCode::FAILURE;
    };
    let expected = log.frames / WINDOW - 1;
    if arguments.check && (p99 >= TARGET || (log.delays.len() as u64) < expected) {
        eprintln!(
            "live-latency: the 99th percentile must be under {TARGET:?}, with {expected} windows"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
