// SPDX-License-Identifier: MPL-2.0

//! Bad input: one clear error each, and no panic.

mod common;

use common::{Bench, gray, gray_caps};
use gst::prelude::*;

/// The one error there is.
#[track_caller]
fn error(bench: &Bench, parts: &[&str]) {
    let errors = bench.messages().errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    for part in parts {
        assert!(
            errors[0].contains(part),
            "`{}` does not say `{part}`",
            errors[0]
        );
    }
}

#[test]
fn pictures_that_are_too_small() {
    for (width, height) in [(2, 48), (48, 2), (1, 1)] {
        let mut bench = Bench::new(|_| {});
        bench.harness.set_src_caps(gray_caps(width, height));
        error(&bench, &[&format!("{width}x{height}"), "3 to 65535"]);
        assert!(bench.harness.push(gray(width, height, 0)).is_err());
    }
}

#[test]
fn caps_that_no_template_takes() {
    for caps in [
        "video/x-raw,format=RGB,width=64,height=48,framerate=25/1",
        "video/x-raw,format=YUY2,width=64,height=48,framerate=25/1",
        "video/x-raw(memory:DMABuf),format=NV12,width=64,height=48,framerate=25/1",
        "video/x-raw(memory:CUDAMemory),format=NV12,width=64,height=48,framerate=25/1",
        "video/x-raw(memory:VAMemory),format=NV12,width=64,height=48,framerate=25/1",
        "video/x-raw(format:Interlaced),format=NV12,width=64,height=48,framerate=25/1,interlace-mode=alternate",
        "audio/x-raw,format=S16LE,rate=48000,channels=2",
    ] {
        let bench = Bench::new(|_| {});
        let caps: gst::Caps = caps.parse().unwrap();
        let sinkpad = bench.element.static_pad("sink").unwrap();
        assert!(!sinkpad.query_accept_caps(&caps), "{caps}");
    }
}

#[test]
fn alternate_fields_without_their_caps_feature() {
    let mut bench = Bench::new(|_| {});
    let mut caps = gray_caps(64, 48);
    caps.make_mut().set("interlace-mode", "alternate");
    bench.harness.set_src_caps(caps);
    error(&bench, &["alternate", "deinterlacer"]);
}

#[test]
fn interlaced_frames_are_scored_as_frames() {
    let mut bench = Bench::new(|_| {});
    let mut caps = gray_caps(16, 12);
    caps.make_mut().set("interlace-mode", "interleaved");
    bench.harness.set_src_caps(caps);
    bench.score(gray(16, 12, 0));
    assert_ne!(bench.score(gray(16, 12, 1)).motion, 0.0);
}

#[test]
fn a_buffer_before_caps() {
    let bench = Bench::new(|_| {});
    let sinkpad = bench.element.static_pad("sink").unwrap();
    sinkpad.send_event(gst::event::StreamStart::new("stream"));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    sinkpad.send_event(gst::event::Segment::new(&segment));
    assert_eq!(
        sinkpad.chain(gray(16, 12, 0)),
        Err(gst::FlowError::NotNegotiated)
    );
    error(&bench, &["without caps"]);
}

#[test]
fn a_truncated_buffer() {
    for missing in [1, 100, 16 * 12] {
        let mut bench = Bench::gray(16, 12, |_| {});
        bench.score(gray(16, 12, 0));
        let whole = gray(16, 12, 1);
        let bytes = whole.map_readable().unwrap()[missing..].to_vec();
        let short = gst::Buffer::from_mut_slice(bytes);
        assert_eq!(bench.harness.push(short), Err(gst::FlowError::Error));
        error(&bench, &["too short", "GRAY8 16x12", "192"]);
        // What was scored before is not lost.
        bench.stop();
        let posted = bench.messages();
        assert_eq!((posted.frames.len(), posted.summaries[0].n_frames), (1, 1));
    }
}

#[test]
fn a_video_meta_that_points_outside_its_buffer() {
    let meta = |offset: usize, stride: i32, height: u32| {
        let mut buffer = gray(16, 12, 0);
        gst_video::VideoMeta::add_full(
            buffer.make_mut(),
            gst_video::VideoFrameFlags::empty(),
            gst_video::VideoFormat::Gray8,
            16,
            height,
            &[offset],
            &[stride],
        )
        .unwrap();
        buffer
    };
    for (buffer, part) in [
        (meta(1, 16, 12), "too short"),
        (meta(0, 17, 12), "too short"),
        (meta(0, -16, 12), "too short"),
        (meta(0, 15, 12), "stride of 15"),
        (meta(0, 16, 11), "video meta"),
    ] {
        let mut bench = Bench::gray(16, 12, |_| {});
        assert_eq!(bench.harness.push(buffer), Err(gst::FlowError::Error));
        error(&bench, &[part]);
    }
}

#[test]
fn a_score_file_in_a_folder_that_does_not_exist() {
    let bench = Bench::new(|_| {});
    bench.element.set_state(gst::State::Ready).unwrap();
    bench
        .element
        .set_property("scores-path", "/nonexistent/folder/scores.ndjson");
    assert!(bench.element.set_state(gst::State::Paused).is_err());
    error(
        &bench,
        &[
            "scores-path",
            "/nonexistent/folder/scores.ndjson",
            "No such file",
        ],
    );
}

#[test]
fn a_score_file_that_is_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench::new(|_| {});
    bench.element.set_state(gst::State::Ready).unwrap();
    bench
        .element
        .set_property("scores-path", folder.path().to_str());
    assert!(bench.element.set_state(gst::State::Paused).is_err());
    error(&bench, &["scores-path", "directory"]);
}

#[test]
fn options_of_the_other_extractor() {
    let bench = Bench::new(|_| {});
    bench.element.set_state(gst::State::Ready).unwrap();
    bench.element.set_property("motion-add-uv", true);
    assert!(bench.element.set_state(gst::State::Paused).is_err());
    error(&bench, &["motion_add_uv", "`motion`"]);
}

#[test]
fn options_out_of_range_are_refused_by_the_rust_api() {
    common::init();
    for (name, value) in [
        ("motion-fps-weight", 5.5),
        ("motion-max-val", 10_001.0),
        ("motion-blend-factor", -0.1),
        ("motion-blend-offset", 1_000.5),
        ("motion-max-val", f64::INFINITY),
        ("motion-max-val", f64::NAN),
    ] {
        let element = gst::ElementFactory::make("vmafxmotion").build().unwrap();
        let before: f64 = element.property(name);
        let set = std::panic::catch_unwind(|| element.set_property(name, value));
        assert!(set.is_err(), "{name}={value} was taken");
        assert_eq!(element.property::<f64>(name), before);
    }
}
