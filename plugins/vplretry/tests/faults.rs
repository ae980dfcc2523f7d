// SPDX-License-Identifier: MPL-2.0

//! Every key of the fault grammar, through the dispatcher and the element: what is lost is accounted for, in
//! messages and in `stats`, and no surface is left.

mod common;

use common::{Played, Player, decode, in_child, set_faults, source};
use gst::prelude::*;
use test_streams::named;

/// 250 pictures with 4 key frames, shown in the order of their access units.
fn long() -> String {
    source(&named("test-25fps.h264"))
}

fn with(faults: &str, properties: &str) -> Played {
    set_faults(faults);
    let launch = format!(
        "{} ! vplretrydec name=dec implementation=software {properties}",
        long()
    );
    let played = Player::new(&launch).stamp().run();
    played.assert_accounts();
    common::assert_no_surfaces();
    let times: Vec<_> = played.frames.iter().map(|frame| frame.pts).collect();
    assert!(times.is_sorted(), "{faults}: {times:?}");
    let duration = Some(gst::ClockTime::from_mseconds(40));
    assert!(played.frames.iter().all(|frame| frame.duration == duration));
    played
}

fn listed() -> Vec<String> {
    named("test-25fps.h264").expected().list().to_vec()
}

/// Nothing is lost.
#[track_caller]
fn loses_nothing(faults: &str, properties: &str) -> Played {
    let played = with(faults, properties);
    assert!(played.errors.is_empty(), "{faults}: {:?}", played.errors);
    assert_eq!(played.md5s(), listed(), "{faults} {properties}");
    played.assert_clean();
    played
}

#[test]
fn patience_loses_nothing() {
    in_child("patience_loses_nothing", || {
        for properties in ["", "async-depth=1", "zero-copy=true", "low-latency=true"] {
            let played = loses_nothing("busy=25", properties);
            assert_eq!(played.stat("busy"), 25);
            assert_eq!(played.stat("max-attempts-per-frame"), 26);
            let told = played.named("vplretrydec-retry");
            assert_eq!(told.len(), 1, "one a second");
            assert_eq!(told[0].get("reason"), Ok("busy"));
            assert_eq!(told[0].get("status"), Ok("MFX_WRN_DEVICE_BUSY (2)"));
            assert_eq!(told[0].get("implementation"), Ok("vplsoft"));
            let stats = told[0].get::<gst::Structure>("stats").expect("a structure");
            assert_eq!(stats.get("busy"), Ok(1_u64));

            assert_eq!(
                loses_nothing("busy-with-sync=9", properties).stat("busy"),
                9
            );
            loses_nothing(
                "script=2*3,_,3sf,2s,13*4,3*2,5f,1s*3,8,9s,4sf,2sf,-11*2,7,10s,-10000,12sf,13f",
                properties,
            );
            loses_nothing("latency-us=4000:3000:2000;engines=1", properties);
            loses_nothing("pool=20", properties);
            for seed in 1..4 {
                loses_nothing(&format!("seed={seed}"), "corrupted-frames=mark");
            }
        }
    });
}

#[test]
fn a_busy_device_ends_with_its_attempts_or_its_time() {
    in_child("a_busy_device_ends_with_its_attempts_or_its_time", || {
        let played = with("busy=forever", "max-attempts=40");
        let error = played.error();
        assert!(error.matches(gst::ResourceError::Busy), "{error:?}");
        let begin = "DecodeFrameAsync yielded no frame after 40 attempts: attempt limit reached";
        assert!(error.message().starts_with(begin), "{error}");
        assert!(
            error.message().contains("MFX_WRN_DEVICE_BUSY (2)"),
            "{error}"
        );
        assert!(
            error.message().contains("implementation vplsoft"),
            "{error}"
        );
        assert_eq!(played.stat("attempts"), 40);
        assert_eq!(played.stat("errored"), played.stat("frames-in"));

        let played = with("busy=forever", "retry-timeout=100");
        let error = played.error();
        assert!(error.matches(gst::ResourceError::Busy), "{error:?}");
        assert!(error.message().contains("time limit reached"), "{error}");

        let played = with("busy=forever", "retry-interval=50 max-attempts=100");
        assert!(played.error().message().contains("after 100 attempts"));
    });
}

#[test]
fn a_pool_that_downstream_empties_is_an_error_that_says_so() {
    in_child(
        "a_pool_that_downstream_empties_is_an_error_that_says_so",
        || {
            set_faults("pool=3");
            let mut player = Player::new(&format!(
                "{} ! vplretrydec name=dec implementation=software zero-copy=true max-attempts=200",
                long()
            ));
            player.play();
            // Buffers are held, not frames: each keeps its surface.
            let mut held = Vec::new();
            common::wait_for("the error is posted", || {
                let mut sink = || {
                    player
                        .sink
                        .try_pull_sample(gst::ClockTime::from_mseconds(5))
                };
                held.extend(std::iter::from_fn(&mut sink));
                let bus = player.pipeline.bus().expect("a bus");
                let error = bus.pop_filtered(&[gst::MessageType::Error, gst::MessageType::Warning]);
                match error.as_ref().map(|message| message.view()) {
                    Some(gst::MessageView::Error(error)) => {
                        let error = error.error();
                        assert!(error.matches(gst::ResourceError::Busy), "{error:?}");
                        let text = error.message().to_owned();
                        assert!(text.contains("downstream holds every surface"), "{text}");
                        true
                    }
                    Some(gst::MessageView::Warning(warning)) => {
                        let text = warning.error().to_string();
                        // The third may be on its way.
                        let held = ["downstream holds 2", "downstream holds 3"];
                        assert!(held.iter().any(|held| text.contains(held)), "{text}");
                        false
                    }
                    _ => false,
                }
            });
            assert_eq!(held.len(), 3);
            player.stop();
            assert_eq!(common::live_surfaces(), 3, "the buffers still hold them");
            // An appsink keeps the last buffer that was pulled.
            drop((held, player));
            common::assert_no_surfaces();

            // Downstream gives them back: copies from then on.
            let played = loses_nothing("pool=3", "zero-copy=true");
            println!("{:?}", played.stats);
        },
    );
}

#[test]
fn errors_cost_what_they_must() {
    in_child("errors_cost_what_they_must", || {
        for depth in [1, 4] {
            let depth = format!("async-depth={depth}");
            let played = with("fail-decode=60", &depth);
            assert!(played.errors.is_empty() && played.eos);
            assert!(played.stat("errored") >= 1 && played.stat("dropped") > 0);
            assert!(
                played
                    .warnings
                    .iter()
                    .any(|text| text.contains("MFX_ERR_UNKNOWN (-1)"))
            );

            let played = with("status-error=5", &depth);
            assert!(played.errors.is_empty() && played.eos);
            assert_eq!((played.frames.len(), played.stat("errored")), (249, 1));
            assert!(
                played
                    .warnings
                    .iter()
                    .any(|text| text.contains("MFX_ERR_ABORTED (-12)"))
            );
        }
        for (script, domain) in [
            ("-3", "unsupported"),
            ("-6", "internal"),
            ("0*5000", "busy"),
            ("13*100000", "busy"),
        ] {
            let played = with(&format!("script={script}"), "max-attempts=50");
            let error = played.error();
            let right = match domain {
                "unsupported" => error.matches(gst::StreamError::CodecNotFound),
                "internal" => error.matches(gst::LibraryError::Failed),
                _ => error.matches(gst::ResourceError::Busy),
            };
            assert!(right, "{script}: {error:?}");
            assert!(played.frames.is_empty());
        }
        for script in ["-12", "-14", "-4"] {
            loses_nothing(&format!("script={script}"), "low-latency=true");
        }
    });
}

#[test]
fn max_errors_of_the_base_class_counts() {
    in_child("max_errors_of_the_base_class_counts", || {
        let played = with("script=-7*20", "max-errors=3");
        let error = played.error();
        assert!(error.matches(gst::StreamError::Decode), "{error:?}");
        let played = with("script=-7*20", "max-errors=-1");
        assert!(played.errors.is_empty());
        assert_eq!(played.stat("errored"), 20);
    });
}

#[test]
fn a_lost_device_is_replaced() {
    in_child("a_lost_device_is_replaced", || {
        set_faults("device-lost=100:1");
        let mut player = Player::new(&format!(
            "{} ! vplretrydec name=dec implementation=software",
            long()
        ));
        // A key frame is asked for.
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let counter = std::sync::Arc::clone(&asked);
        let pad = player.decoder().static_pad("sink").expect("a sink pad");
        pad.add_probe(gst::PadProbeType::EVENT_UPSTREAM, move |_, info| {
            if let Some(gst::PadProbeData::Event(event)) = &info.data
                && gst_video::UpstreamForceKeyUnitEvent::parse(event).is_ok()
            {
                counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            gst::PadProbeReturn::Ok
        });
        player.play();
        player.pull(usize::MAX);
        player.stop();
        let played = std::mem::take(&mut player.played);
        assert!(
            played.errors.is_empty() && played.eos,
            "{:?}",
            played.errors
        );
        played.assert_accounts();
        assert_eq!(played.stat("recoveries"), 1);
        let told = played.named("vplretrydec-recovered");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].get("cause"), Ok("MFX_ERR_DEVICE_LOST (-13)"));
        assert_eq!(told[0].get("attempts"), Ok(1_u32));
        assert!(
            played
                .warnings
                .iter()
                .any(|text| text.contains("device was lost"))
        );
        assert!(asked.load(std::sync::atomic::Ordering::Relaxed) >= 1);
        // What comes before the loss and behind the next key frame is right.
        let list = listed();
        let lost = played.stat("dropped") as usize;
        assert!(
            lost > 0 && played.frames.len() + lost == 250,
            "{:?}",
            played.stats
        );
        let before = played
            .md5s()
            .iter()
            .zip(&list)
            .take_while(|(a, b)| a == b)
            .count();
        assert!((90..=100).contains(&before), "{before}");
        assert_eq!(played.md5s()[before..], list[before + lost..]);
        common::assert_no_surfaces();
    });
}

#[test]
fn a_key_frame_that_loses_the_device_is_fed_again() {
    in_child("a_key_frame_that_loses_the_device_is_fed_again", || {
        // The runtime decodes it when it sees the next access unit.
        let played = loses_nothing("device-lost=0:2", "");
        assert!(played.stat("recoveries") >= 1, "{:?}", played.stats);
    });
}

#[test]
fn a_key_frame_that_loses_the_device_is_fed_again_with_low_latency() {
    in_child(
        "a_key_frame_that_loses_the_device_is_fed_again_with_low_latency",
        || {
            let played = loses_nothing("device-lost=0:2", "low-latency=true");
            assert!(played.stat("recoveries") >= 1, "{:?}", played.stats);
        },
    );
}

#[test]
fn a_device_that_is_lost_for_good_ends_with_an_error() {
    in_child("a_device_that_is_lost_for_good_ends_with_an_error", || {
        let played = with("device-lost=0:100", "device-retries=2");
        let error = played.error();
        assert!(error.matches(gst::ResourceError::Failed), "{error:?}");
        let begin = "device lost with MFX_ERR_DEVICE_LOST (-13), no frame after 2 new sessions";
        assert!(error.message().starts_with(begin), "{error}");
    });
}

#[test]
fn a_frame_that_is_too_late_counts_as_a_lost_device() {
    in_child("a_frame_that_is_too_late_counts_as_a_lost_device", || {
        let played = with(
            "latency-us=3600000000:0:0",
            "sync-timeout=150 device-retries=1",
        );
        let error = played.error();
        assert!(error.matches(gst::ResourceError::Failed), "{error:?}");
        assert!(played.stat("sync-timeouts") >= 2);
    });
}

#[test]
fn corrupted_frames_are_marked_dropped_or_an_error() {
    in_child("corrupted_frames_are_marked_dropped_or_an_error", || {
        let marked = |played: &Played| -> Vec<usize> {
            let frames = played.frames.iter().enumerate();
            frames
                .filter(|(_, frame)| frame.flags.contains(gst::BufferFlags::CORRUPTED))
                .map(|(number, _)| number)
                .collect()
        };
        let played = loses_nothing("corrupt=7", "");
        assert_eq!(marked(&played), [7]);
        let told = played.named("vplretrydec-corrupted");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].get("flags"), Ok(2_u32));
        assert_eq!(told[0].get("action"), Ok("mark"));
        assert!(told[0].get::<gst::ClockTime>("timestamp").is_ok());
        assert_eq!(played.stat("corrupted"), 1);

        let played = with("corrupt=7", "corrupted-frames=drop");
        assert!(played.eos && played.errors.is_empty());
        assert_eq!((played.frames.len(), played.stat("dropped")), (249, 1));
        assert_eq!(
            played.named("vplretrydec-corrupted")[0].get("action"),
            Ok("drop")
        );

        let played = with("corrupt=7", "discard-corrupted-frames=true");
        assert!(played.eos && played.errors.is_empty());
        assert_eq!(played.frames.len(), 249);

        let played = with("corrupt=7", "corrupted-frames=error");
        let error = played.error();
        assert!(error.matches(gst::StreamError::Decode), "{error:?}");
        assert_eq!(played.frames.len(), 7);
        assert_eq!(
            played.named("vplretrydec-corrupted")[0].get("action"),
            Ok("error")
        );
    });
}

#[test]
fn a_size_that_is_not_told_is_negotiated_all_the_same() {
    in_child("a_size_that_is_not_told_is_negotiated_all_the_same", || {
        let stream = named("resolution_change_500frames-vp9.ivf");
        let mut both = ["silent-resize", ""].map(|faults| {
            set_faults(faults);
            common::through(&stream, "")
        });
        for played in &both {
            played.assert_clean();
            let mut widths: Vec<u32> = played.frames.iter().map(|frame| frame.width).collect();
            widths.dedup();
            assert_eq!(widths, [640, 426, 640, 854, 1280]);
        }
        assert_eq!(both[0].stat("reinits"), 0);
        assert!(both[1].stat("reinits") > 0);
        let [silent, told] = &mut both;
        assert!(silent.frames == told.frames);
    });
}

#[test]
fn faults_that_are_not_understood_are_an_error() {
    let setup = common::Child {
        faults: "nonsense=1",
        ..Default::default()
    };
    common::in_child_with(
        "faults_that_are_not_understood_are_an_error",
        &setup,
        || {
            let played = decode(&format!(
                "{} ! vplretrydec name=dec implementation=software",
                long()
            ));
            assert!(played.error().message().contains("MFX_ERR_UNSUPPORTED"));
        },
    );
}
