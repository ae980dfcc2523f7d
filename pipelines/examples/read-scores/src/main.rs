// SPDX-License-Identifier: MPL-2.0

//! Reads the scores of vmafxmotion in Rust, as types: from the meta of the buffers that reach the element
//! named "reader", and from the bus. The plugin is linked in. `{:?}` keeps every bit of a double.
//!
//!     read-scores 'videotestsrc num-buffers=50 ! vmafxmotion ! x264enc ! fakesink name=reader'

use std::error::Error;
use std::process::ExitCode;

use gst::prelude::*;
use vmafxmotion::{FrameMessage, MotionScore, SummaryMessage};

fn on_buffer(buffer: &gst::BufferRef) {
    let Some(score) = MotionScore::from_buffer(buffer) else {
        return println!("buffer without scores");
    };
    // The frames that became final with this buffer: none at the start of a session.
    let finals = score.finals.map_or(String::new(), |finals| {
        format!(
            " final-first={} final-frame={} motion2={:?} motion3={:?}",
            finals.first, finals.last, finals.motion2, finals.motion3
        )
    });
    println!(
        "buffer session={} frame={} motion={:?}{finals} final={}",
        score.session, score.frame, score.motion, score.is_final
    );
}

fn on_message(structure: &gst::StructureRef) {
    if let Ok(message) = FrameMessage::try_from(structure) {
        let (score, timestamp) = (message.score, message.times.timestamp);
        println!(
            "message session={} frame={} timestamp={} motion={:?} motion2={:?} motion3={:?}",
            message.session,
            score.frame,
            timestamp.map_or(u64::MAX, gst::ClockTime::nseconds),
            score.motion,
            score.motion2,
            score.motion3
        );
    } else if let Ok(message) = SummaryMessage::try_from(structure) {
        let [_, motion2, _] = message.features;
        println!(
            "summary session={} n-frames={} motion2.mean={:?}",
            message.session, message.n_frames, motion2.mean
        );
    }
}

fn run(description: &str) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstvmafxmotion::plugin_register_static()?;
    let pipeline = gst::parse::launch(description)?;
    let reader = pipeline
        .downcast_ref::<gst::Bin>()
        .and_then(|bin| bin.by_name("reader"));
    let pad = reader.and_then(|reader| reader.static_pad("sink"));
    let pad = pad.ok_or("the pipeline has no element named reader with a sink pad")?;
    pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
        if let Some(buffer) = info.buffer() {
            on_buffer(buffer);
        }
        gst::PadProbeReturn::Ok
    });
    let bus = pipeline.bus().ok_or("a pipeline without a bus")?;
    // A failure is told by the message that follows it.
    let _ = pipeline.set_state(gst::State::Playing);
    let outcome = bus
        .iter_timed(gst::ClockTime::NONE)
        .find_map(|message| match message.view() {
            gst::MessageView::Eos(_) => Some(Ok(())),
            gst::MessageView::Error(error) => {
                let name = error.src().map(|src| src.name()).unwrap_or_default();
                Some(Err(format!("{name}: {}", error.error().message())))
            }
            gst::MessageView::Element(element) => {
                element.structure().into_iter().for_each(on_message);
                None
            }
            _ => None,
        });
    pipeline.set_state(gst::State::Null)?;
    Ok(outcome.unwrap_or(Ok(()))?)
}

fn main() -> ExitCode {
    let Some(description) = std::env::args().nth(1) else {
        eprintln!("usage: read-scores 'PIPELINE with an element named reader'");
        return ExitCode::from(2);
    };
    if let Err(error) = run(&description) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
