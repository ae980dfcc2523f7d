// SPDX-License-Identifier: MPL-2.0

//! What goes wrong in the device: flagged, counted, told, and decoding goes on.

mod common;

use std::sync::{Arc, Mutex};

use common::{Bench, Outcome};
use gst::prelude::*;
use standin_world::streams::h264;
use standin_world::{Made, assert_nothing_is_left, in_child, mistakes, set_faults};

const FRAMES: usize = 120;

/// An intra picture every 30, no B-frames.
fn stream() -> Made {
    h264("96x64", FRAMES as u32, "bframes=0:keyint=30:scenecut=0")
}

fn with(made: &Made, faults: &str, properties: &str) -> Outcome {
    set_faults(Some(faults));
    let out = Bench::file(&made.path(), properties, "").run();
    set_faults(None);
    out.account_is_whole();
    out
}

fn corrupted(out: &Outcome) -> Vec<usize> {
    let all = out.pictures.iter().enumerate();
    all.filter(|(_, picture)| picture.corrupted)
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn one_failed_picture_costs_itself_and_the_rest_goes_on_flagged() {
    in_child(|| {
        let made = stream();
        let expected = made.expected("nv12");
        let out = with(&made, "fail-decode=40", "");
        assert!(out.eos && out.errors.is_empty(), "{:?}", out.errors);
        assert_eq!(out.pictures.len(), FRAMES - 1);
        // Behind the lost one each stands one place further ahead; up to the next intra picture, frame 60.
        assert_eq!(corrupted(&out), (40..59).collect::<Vec<_>>());
        let sums = out.sums();
        assert_eq!(sums[..40], expected[..40]);
        assert_eq!(sums[59..], expected[60..]);
        let told = out.named("nvdecringdec-corrupted");
        assert_eq!(told.len(), 20);
        assert_eq!(told[0].get::<String>("kind").as_deref(), Ok("lost"));
        assert_eq!(told[0].get::<u64>("frame"), Ok(40));
        assert_eq!(told[0].get::<String>("action").as_deref(), Ok("drop"));
        assert!(
            told[0]
                .get::<String>("reason")
                .is_ok_and(|text| text.contains("cuvidDecodePicture"))
        );
        assert_eq!(told[1].get::<String>("kind").as_deref(), Ok("references"));
        assert_eq!(told[1].get::<String>("action").as_deref(), Ok("mark"));
        assert_eq!((out.stat("failed"), out.stat("corrupted")), (1, 19));
        assert_nothing_is_left();
    });
}

#[test]
fn a_picture_with_errors_is_marked_dropped_or_ends_the_stream() {
    in_child(|| {
        let made = stream();
        let out = with(&made, "status-error=50", "");
        assert_eq!(out.pictures.len(), FRAMES);
        assert_eq!(corrupted(&out), (50..60).collect::<Vec<_>>());
        let told = out.named("nvdecringdec-corrupted");
        assert_eq!(told[0].get::<String>("kind").as_deref(), Ok("errors"));
        assert!(
            told[0]
                .get::<Option<gst::ClockTime>>("timestamp")
                .is_ok_and(|time| time.is_some())
        );

        let out = with(&made, "corrupt=59", "");
        assert_eq!((out.pictures.len(), corrupted(&out)), (FRAMES, vec![59]));
        let told = out.named("nvdecringdec-corrupted");
        assert_eq!(told[0].get::<String>("kind").as_deref(), Ok("concealed"));

        let out = with(&made, "status-error=50", "corrupted-frames=drop");
        assert_eq!(out.pictures.len(), FRAMES - 10);
        assert_eq!(out.stat("corrupted-dropped"), 10);
        assert_eq!(out.named("nvdecringdec-corrupted").len(), 10);

        let out = with(&made, "status-error=50", "corrupted-frames=error");
        assert_eq!(out.errors.len(), 1, "{:?}", out.errors);
        assert!(out.errors[0].contains("Frame 50"), "{:?}", out.errors);
        assert_eq!(out.pictures.len(), 50);
        assert_nothing_is_left();
    });
}

#[test]
fn upstream_is_asked_for_a_key_picture() {
    in_child(|| {
        let made = stream();
        set_faults(Some("status-error=50"));
        let bench = Bench::file(&made.path(), "", "");
        let asked: Arc<Mutex<u32>> = Arc::default();
        let count = asked.clone();
        bench
            .decoder()
            .static_pad("sink")
            .and_then(|pad| pad.peer())
            .expect("the parser's pad")
            .add_probe(gst::PadProbeType::EVENT_UPSTREAM, move |_, info| {
                if info
                    .event()
                    .is_some_and(|event| event.has_name("GstForceKeyUnit"))
                {
                    *count.lock().expect("no panic") += 1;
                }
                gst::PadProbeReturn::Ok
            });
        let out = bench.run();
        set_faults(None);
        assert_eq!(out.pictures.len(), FRAMES);
        assert_eq!(*asked.lock().expect("no panic"), 1, "once a loss");
    });
}

#[test]
fn a_lost_device_is_recovered_and_told() {
    in_child(|| {
        let made = stream();
        let expected = made.expected("nv12");
        let out = with(&made, "device-lost=35:1", "");
        assert!(out.eos, "{:?}", out.errors);
        let told = out.named("nvdecringdec-recovered");
        assert_eq!(told.len(), 1, "{:?}", out.structures);
        assert_eq!(told[0].get::<u64>("recoveries"), Ok(1));
        assert!(
            told[0]
                .get::<String>("by")
                .is_ok_and(|by| by == "decoder" || by == "context")
        );
        assert!(out.pictures.len() >= FRAMES - 9, "{}", out.pictures.len());
        assert_eq!(out.sums().last(), expected.last());

        let out = with(&made, "device-lost=5:1000", "");
        assert_eq!(out.errors.len(), 1, "one clear error: {:?}", out.errors);
        assert!(
            out.errors[0].contains("The device is lost"),
            "{:?}",
            out.errors
        );
        assert_eq!(mistakes(), 0);
    });
}

#[test]
fn a_picture_that_is_late_is_given_up() {
    in_child(|| {
        let made = stream();
        let out = with(&made, "sync-hang=50", "decode-timeout=200");
        assert!(out.eos, "{:?}", out.errors);
        assert!(out.stat("timeouts") >= 1);
        assert!(out.pictures.len() > FRAMES / 2, "{}", out.pictures.len());
        assert_nothing_is_left();
    });
}

#[test]
fn a_full_ring_fails_when_it_is_told_to_and_waits_otherwise() {
    in_child(|| {
        let made = stream();
        let slow = "identity sleep-time=5000 !";
        let bench = Bench::file(&made.path(), "overflow=fail ring-depth=1", slow);
        let out = bench.run();
        assert_eq!(out.errors.len(), 1, "{:?}", out.errors);
        assert!(out.errors[0].contains("overflow=block"), "{:?}", out.errors);
        assert_eq!(out.stat("overflows"), 1);

        let out = Bench::file(&made.path(), "ring-depth=1", slow).run();
        assert_eq!(out.pictures.len(), FRAMES);
        let stats = out.stats.as_ref().expect("statistics");
        assert_eq!(stats.get::<u32>("most-queued"), Ok(1));
        assert!(out.stat("slot-wait") > 0);
        assert_nothing_is_left();
    });
}

#[test]
fn the_times_of_each_picture_are_told_on_request() {
    in_child(|| {
        let made = stream();
        let out = Bench::file(&made.path(), "frame-messages=true", "").run();
        let told = out.named("nvdecringdec-frame");
        assert_eq!(told.len(), FRAMES);
        for (at, frame) in told.iter().enumerate() {
            assert_eq!(frame.get::<u64>("ticket"), Ok(at as u64));
            assert_eq!(frame.get::<String>("status").as_deref(), Ok("good"));
            let times = ["submit", "shown", "mapped", "copied", "out"];
            let times: Vec<u64> = times
                .iter()
                .map(|name| {
                    frame
                        .get(*name)
                        .unwrap_or_else(|error| panic!("{name}: {error}"))
                })
                .collect();
            assert!(times.is_sorted(), "{frame:?}");
            assert_eq!(
                frame.get::<Option<gst::ClockTime>>("timestamp"),
                Ok(out.pictures[at].pts)
            );
        }
        let out = Bench::file(&made.path(), "", "").run();
        assert!(
            out.structures.is_empty(),
            "nothing is told that was not asked for"
        );
    });
}

#[test]
fn random_faults_lose_nothing() {
    // The long form: NVDECRING_SEEDS=500.
    let seeds = std::env::var("NVDECRING_SEEDS").ok();
    let seeds: u64 = seeds.and_then(|text| text.parse().ok()).unwrap_or(15);
    in_child(|| {
        let made = h264("96x64", 40, "bframes=2:keyint=12");
        let expected = made.expected("nv12");
        for seed in 0..seeds {
            let properties = format!(
                "decode-timeout=60000 ring-depth={} num-output-surfaces={}",
                1 + seed % 16,
                1 + seed % 2
            );
            let out = with(&made, &format!("seed={seed}"), &properties);
            assert!(out.eos, "seed {seed}: {:?}", out.errors);
            assert_eq!(out.pictures.len(), 40, "seed {seed}");
            for (at, picture) in out.pictures.iter().enumerate() {
                assert!(
                    picture.corrupted || picture.md5() == expected[at],
                    "seed {seed}: picture {at}"
                );
            }
        }
        assert_nothing_is_left();
    });
}
