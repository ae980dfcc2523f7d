// SPDX-License-Identifier: MPL-2.0

//! In the steady state nothing is allocated for a frame but its meta and its messages.

mod common;

use std::path::PathBuf;

use allocation_counter::AllocationInfo;
use common::{Bench, gray};
use gst::prelude::*;
use vmafxmotion::META_NAME;

const SIZE: (usize, usize) = (64, 48);
const FRAMES: usize = 50;

/// Rust allocations of the chain function for frames 10 to 59.
fn chain(set: impl FnOnce(&gst::Element)) -> AllocationInfo {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, set);
    bench.harness.set_drop_buffers(true);
    let pad = bench.element.static_pad("sink").unwrap();
    for frame in 0..10 {
        bench.harness.push(gray(SIZE.0, SIZE.1, frame)).unwrap();
    }
    let buffers: Vec<_> = (10..10 + FRAMES)
        .map(|frame| gray(SIZE.0, SIZE.1, frame))
        .collect();
    let mut results = Vec::with_capacity(FRAMES);
    let info = allocation_counter::measure(|| {
        for buffer in buffers {
            results.push(pad.chain(buffer));
        }
    });
    assert!(results.iter().all(Result::is_ok));
    info
}

/// What as many metas of seven fields cost without any element.
fn metas() -> u64 {
    let mut buffers: Vec<_> = (0..FRAMES).map(|_| gst::Buffer::new()).collect();
    let info = allocation_counter::measure(|| {
        for buffer in &mut buffers {
            let mut meta = gst::meta::CustomMeta::add(buffer.make_mut(), META_NAME).unwrap();
            for field in [
                "session",
                "frame",
                "motion",
                "final-first",
                "final-frame",
                "motion2",
                "motion3",
                "final",
            ] {
                meta.mut_structure().set(field, 1.0);
            }
        }
    });
    info.count_total
}

#[test]
fn scoring_alone_allocates_nothing() {
    let info = chain(|element| {
        element.set_property("meta", false);
        element.set_property_from_str("messages", "summary");
    });
    // The test's own buffers are freed meanwhile; what matters is what was allocated.
    assert_eq!(info.count_total, 0, "{info:?}");
}

#[test]
fn the_five_frame_window_allocates_nothing() {
    let info = chain(|element| {
        element.set_property("meta", false);
        element.set_property_from_str("messages", "summary");
        element.set_property("motion-five-frame-window", true);
    });
    assert_eq!(info.count_total, 0, "{info:?}");
}

#[test]
fn the_score_file_allocates_nothing_in_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("scores.ndjson");
    let info = chain(|element| {
        element.set_property("meta", false);
        element.set_property_from_str("messages", "summary");
        element.set_property("scores-path", path.to_str());
    });
    assert_eq!(info.count_total, 0, "{info:?}");
}

#[test]
fn the_meta_costs_what_a_meta_costs() {
    let with_meta = chain(|element| element.set_property_from_str("messages", "summary"));
    assert!(
        with_meta.count_total <= metas(),
        "{with_meta:?}, metas alone {}",
        metas()
    );
}
