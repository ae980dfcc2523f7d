// SPDX-License-Identifier: MPL-2.0

//! A day of frames, as fast as they go: does memory stay flat?

use std::process::ExitCode;

use campaigns::{CampaignError, pipeline, play, resident};
use clap::Parser;
use gst::prelude::*;

/// What may be added after the first 25th of the frames: allocators keep a little.
const ALLOWED: u64 = 4 << 20;

/// Scores a day of small frames with windows, messages and a score file, and watches the resident
/// memory of the process.
#[derive(Debug, Parser)]
struct Arguments {
    /// Frames: 24 hours of 25 a second
    #[arg(long, default_value_t = 2_160_000)]
    frames: u64,
    /// Fail if memory grows by more than 4 MiB after the first 25th of the frames
    #[arg(long)]
    check: bool,
}

fn measure(frames: u64) -> Result<Vec<(u64, u64)>, CampaignError> {
    let launch = format!(
        "videotestsrc num-buffers={frames} pattern=ball \
         ! video/x-raw,format=I420,width=64,height=48,framerate=25/1 \
         ! vmafxmotion name=motion n-stats=1 scores-path=/dev/null ! fakesink"
    );
    let pipeline = pipeline(&launch)?;
    let Some(motion) = pipeline.by_name("motion") else {
        return Err(CampaignError::TooLittle(
            "no element named motion".to_owned(),
        ));
    };
    // Messages are read as they come; a slow reader would be measured otherwise.
    let step = (frames / 25).max(1);
    let mut samples = Vec::new();
    let mut seen = 0u64;
    if let Some(bus) = pipeline.bus() {
        bus.set_sync_handler(|_, message| match message.type_() {
            gst::MessageType::Element => gst::BusSyncReply::Drop,
            _ => gst::BusSyncReply::Pass,
        });
    }
    play(&pipeline, |_| {
        let scored: u64 = motion
            .property::<gst::Structure>("stats")
            .get("frames")
            .unwrap_or(0);
        if scored >= seen + step || scored == frames {
            seen = scored;
            let bytes = resident()?;
            println!(
                "{scored:>9} frames {:>8.1} MiB",
                bytes as f64 / f64::from(1 << 20)
            );
            samples.push((scored, bytes));
        }
        Ok(())
    })?;
    Ok(samples)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let samples = match measure(arguments.frames) {
        Ok(samples) => samples,
        Err(error) => {
            eprintln!("soak: {error}");
            return ExitCode::FAILURE;
        }
    };
    let settled = samples
        .iter()
        .find(|(frames, _)| *frames >= arguments.frames / 25);
    let (Some(&(_, start)), Some(&(_, end))) = (settled, samples.last()) else {
        eprintln!("soak: too few samples");
        return ExitCode::FAILURE;
    };
    let grown = end.saturating_sub(start);
    println!(
        "grown by {:.1} MiB after the first hour",
        grown as f64 / f64::from(1 << 20)
    );
    if arguments.check && grown > ALLOWED {
        eprintln!("soak: more than {} MiB were added", ALLOWED >> 20);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
