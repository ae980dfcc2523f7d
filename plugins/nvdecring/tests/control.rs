// SPDX-License-Identifier: MPL-2.0

//! Seeking, flushing, stopping and starting at any moment; several decoders; changes of caps.

mod common;

use std::collections::HashMap;
use std::path::Path;

use common::{Bench, Hand, LONG, h264_caps, init, software};
use gst::prelude::*;
use gst_app::AppSink;
use standin_world::streams::{h264, make};
use standin_world::{Made, assert_nothing_is_left, in_child};

const FRAMES: u32 = 100;

fn mp4() -> Made {
    let x264 = [
        "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p",
    ];
    let params = ["-x264-params", "threads=1:bframes=2:keyint=25"];
    make("made.mp4", "96x64", FRAMES, &[&x264[..], &params].concat())
}

fn playing(path: &Path, after: &str) -> Bench {
    Bench::launch(&format!(
        "filesrc location=\"{}\" ! qtdemux ! h264parse ! nvdecringdec name=dec decode-timeout=30000 ! {after}",
        path.display()
    ))
}

#[test]
fn a_hundred_seeks_show_nothing_old() {
    in_child(|| {
        let made = mp4();
        let reference = {
            let bench = Bench::launch(&format!(
                "filesrc location=\"{}\" ! qtdemux ! h264parse ! avdec_h264 ! videoconvert ! video/x-raw,format=NV12 !",
                made.path().display()
            ));
            bench.run()
        };
        let by_time: HashMap<_, _> = reference
            .pictures
            .iter()
            .map(|out| (out.pts, out.md5()))
            .collect();
        assert_eq!(by_time.len(), FRAMES as usize);

        let bench = playing(&made.path(), "");
        bench
            .pipeline
            .set_state(gst::State::Playing)
            .expect("it starts");
        let mut place: u64 = 7;
        for seek in 0..100 {
            place = (place * 37 + 11) % 95;
            if seek % 3 == 1 {
                // In the middle of what the last one began.
                std::thread::sleep(std::time::Duration::from_millis(seek % 7));
            } else {
                let state = bench.pipeline.state(LONG);
                state.0.expect("it plays");
            }
            let target = gst::ClockTime::from_mseconds(40 * place);
            bench.out.lock().expect("no panic").pictures.clear();
            bench
                .pipeline
                .seek_simple(gst::SeekFlags::FLUSH | gst::SeekFlags::KEY_UNIT, target)
                .expect("it seeks");
            for out in &bench.out.lock().expect("no panic").pictures {
                assert_eq!(
                    Some(&out.md5()),
                    by_time.get(&out.pts),
                    "seek {seek}: {:?}",
                    out.pts
                );
            }
        }
        bench.wait();
        let out = bench.stop();
        assert!(out.eos, "{:?}", out.errors);
        for picture in &out.pictures {
            assert_eq!(
                Some(&picture.md5()),
                by_time.get(&picture.pts),
                "{:?}",
                picture.pts
            );
        }
        assert_eq!(
            out.pictures.last().map(|out| out.md5()),
            reference.pictures.last().map(|out| out.md5())
        );
        assert!(out.stat("flushed") > 0, "{:?}", out.stats);
        out.account_is_whole();
        assert_nothing_is_left();
    });
}

#[test]
fn a_hundred_decoders_one_after_another_stopped_at_any_moment() {
    in_child(|| {
        let made = h264("96x64", 60, "bframes=2");
        for round in 0..100_u64 {
            let after = if round % 2 == 0 {
                ""
            } else {
                "identity sleep-time=2000 !"
            };
            let bench = Bench::file(&made.path(), "", after);
            bench
                .pipeline
                .set_state(gst::State::Playing)
                .expect("it starts");
            std::thread::sleep(std::time::Duration::from_micros(round * 300));
            let out = bench.stop();
            assert!(out.errors.is_empty(), "round {round}: {:?}", out.errors);
        }
        assert_nothing_is_left();
    });
}

#[test]
fn one_element_starts_again_and_again() {
    in_child(|| {
        let made = h264("96x64", 30, "bframes=2");
        let expected = made.expected("nv12");
        let bench = Bench::file(&made.path(), "", "");
        for _ in 0..5 {
            bench
                .pipeline
                .set_state(gst::State::Playing)
                .expect("it starts");
            bench.wait();
            bench
                .pipeline
                .set_state(gst::State::Ready)
                .expect("it stops");
            let mut out = bench.out.lock().expect("no panic");
            assert!(out.errors.is_empty(), "{:?}", out.errors);
            assert_eq!(out.sums(), expected);
            out.pictures.clear();
        }
        bench.stop();
        assert_nothing_is_left();
    });
}

#[test]
fn eight_decoders_at_once() {
    in_child(|| {
        let made = h264("160x96", 60, "bframes=2");
        let expected = made.expected("nv12");
        let benches: Vec<_> = (0..8)
            .map(|_| Bench::file(&made.path(), "decode-timeout=60000", ""))
            .collect();
        for bench in &benches {
            bench
                .pipeline
                .set_state(gst::State::Playing)
                .expect("it starts");
        }
        for bench in benches {
            bench.wait();
            let out = bench.stop();
            assert!(out.eos, "{:?}", out.errors);
            assert_eq!(out.sums(), expected);
        }
        assert_nothing_is_left();
    });
}

#[test]
fn a_flush_ends_what_waits_for_downstream() {
    in_child(|| {
        init();
        let made = h264("96x64", 60, "bframes=0");
        // Paused, so that the sink holds its first picture and the ring fills behind it.
        let bench = Bench::file(&made.path(), "ring-depth=2", "");
        bench
            .pipeline
            .set_state(gst::State::Paused)
            .expect("it pauses");
        bench.pipeline.state(LONG).0.expect("it has a picture");
        let sink = bench
            .pipeline
            .by_name("out")
            .and_downcast::<AppSink>()
            .expect("a sink");
        assert!(sink.try_pull_preroll(LONG).is_some());
        let pad = bench.decoder().static_pad("sink").expect("a pad");
        assert!(pad.send_event(gst::event::FlushStart::new()));
        let stats: gst::Structure = bench.decoder().property("stats");
        assert_eq!(stats.get::<u64>("inside"), Ok(0), "{stats:?}");
        assert!(pad.send_event(gst::event::FlushStop::new(true)));
        let out = bench.stop();
        assert!(out.errors.is_empty(), "{:?}", out.errors);
        assert!(out.stat("flushed") > 0, "{:?}", out.stats);
        out.account_is_whole();
        assert_nothing_is_left();
    });
}

#[test]
fn caps_may_come_twice_and_change_the_codec() {
    in_child(|| {
        let made = h264("96x64", 20, "bframes=0");
        let units = nvdecring_gpu::InputFile::read(&made.bytes(), None)
            .expect("a stream")
            .packets;
        let vp8 = make(
            "made.ivf",
            "160x96",
            20,
            &["-c:v", "libvpx", "-b:v", "200k"],
        );
        let frames = test_streams::ivf_frames(&vp8.bytes());

        let hand = Hand::new("");
        hand.source.set_caps(Some(&h264_caps()));
        let mut other = h264_caps();
        other.make_mut().set("framerate", gst::Fraction::new(30, 1));
        hand.source.set_caps(Some(&other));
        for (at, unit) in units.iter().enumerate() {
            hand.push(at as u64, unit);
        }
        let caps = gst::Caps::builder("video/x-vp8")
            .field("width", 160)
            .field("height", 96)
            .build();
        hand.source.set_caps(Some(&caps));
        for (at, frame) in frames.iter().enumerate() {
            hand.push(100 + at as u64, frame);
        }
        hand.source.end_of_stream().expect("it ends");
        hand.bench.wait();
        let out = hand.bench.stop();
        assert!(out.eos, "{:?} {:?}", out.errors, out.other_errors);
        assert_eq!(
            out.sums(),
            [made.expected("nv12"), vp8.expected("nv12")].concat()
        );
        assert_eq!(out.caps.len(), 2, "{:?}", out.caps);
        assert!(out.caps[0].to_string().contains("30/1"), "{:?}", out.caps);
        assert_nothing_is_left();
    });
}

#[test]
fn nothing_at_all_and_empty_buffers_end() {
    in_child(|| {
        let hand = Hand::new("");
        hand.source.set_caps(Some(&h264_caps()));
        hand.source.end_of_stream().expect("it ends");
        hand.bench.wait();
        assert!(hand.bench.stop().eos);

        let hand = Hand::new("");
        hand.source.set_caps(Some(&h264_caps()));
        hand.push(0, &[]);
        hand.push(1, &[0, 0, 1]);
        hand.source.end_of_stream().expect("it ends");
        hand.bench.wait();
        let out = hand.bench.stop();
        assert!(out.eos, "{:?}", out.errors);
        assert_eq!((out.stat("submitted"), out.stat("dropped")), (2, 2));
        assert_nothing_is_left();
    });
}

/// An access unit without its parameter sets.
fn without_headers(unit: &[u8]) -> Vec<u8> {
    let mut bare = Vec::new();
    for nal in elementary_stream::nal::units(unit, true) {
        if !matches!(nal.bytes.first().map(|header| header & 0x1f), Some(7 | 8)) {
            bare.extend_from_slice(&[0, 0, 0, 1]);
            bare.extend_from_slice(nal.bytes);
        }
    }
    bare
}

#[test]
fn a_gap_drains_and_the_stream_goes_on_with_its_headers_known() {
    in_child(|| {
        let made = h264("96x64", 50, "bframes=0:keyint=25:scenecut=0");
        let units = nvdecring_gpu::InputFile::read(&made.bytes(), None)
            .expect("a stream")
            .packets;
        let hand = Hand::new("");
        hand.source.set_caps(Some(&h264_caps()));
        for (at, unit) in units.iter().enumerate() {
            let bare = without_headers(unit);
            if at == 25 {
                assert_ne!(bare, *unit, "a group begins");
                // The parser forgets the headers at the end of a stream, and they stand at its beginning alone.
                let pad = hand.bench.decoder().static_pad("sink").expect("a pad");
                while pad.last_flow_result().is_err() || hand.source.current_level_buffers() > 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                hand.source
                    .send_event(gst::event::Gap::builder(gst::ClockTime::SECOND).build());
            }
            hand.push(at as u64, if at == 0 { unit } else { &bare });
        }
        hand.source.end_of_stream().expect("it ends");
        hand.bench.wait();
        let out = hand.bench.stop();
        assert!(out.eos, "{:?}", out.errors);
        assert_eq!(out.sums(), made.expected("nv12"));
        assert_nothing_is_left();
    });
}

#[test]
fn latency_is_that_of_reordering() {
    in_child(|| {
        for (params, properties, frames) in [
            ("bframes=0", "", 0),
            ("bframes=0", "max-display-delay=3", 3),
        ] {
            let made = h264("96x64", 30, params);
            let bench = Bench::file(&made.path(), properties, "");
            bench
                .pipeline
                .set_state(gst::State::Paused)
                .expect("it pauses");
            bench.pipeline.state(LONG).0.expect("it has a picture");
            let mut query = gst::query::Latency::new();
            let pad = bench.decoder().static_pad("src").expect("a pad");
            // The file source has no latency and answers no query: the decoder's own share.
            let decoder = bench
                .decoder()
                .downcast::<gst_video::VideoDecoder>()
                .expect("a decoder");
            use gst_video::prelude::*;
            let (least, most) = decoder.latency();
            assert_eq!(
                least,
                gst::ClockTime::from_mseconds(40 * frames),
                "{params} {properties}"
            );
            assert_eq!(most, Some(gst::ClockTime::from_mseconds(40 * (frames + 8))));
            let _ = pad.query(&mut query);
            bench.stop();
        }
        let reordered = h264("96x64", 30, "bframes=3:b-adapt=0");
        let ours = Bench::file(&reordered.path(), "", "");
        ours.pipeline
            .set_state(gst::State::Paused)
            .expect("it pauses");
        ours.pipeline.state(LONG).0.expect("it has a picture");
        let decoder = ours
            .decoder()
            .downcast::<gst_video::VideoDecoder>()
            .expect("a decoder");
        use gst_video::prelude::*;
        assert!(decoder.latency().0 >= gst::ClockTime::from_mseconds(40));
        ours.stop();
        drop(software(&reordered.path(), "avdec_h264", "NV12"));
    });
}
