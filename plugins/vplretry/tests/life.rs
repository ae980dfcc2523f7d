// SPDX-License-Identifier: MPL-2.0

//! Seeking, starting and stopping, many decoders at once, and buffers that outlive the element.

mod common;

use common::{Player, assert_no_surfaces, encode, in_child, live_surfaces, source, through};
use gst::prelude::*;
use test_streams::named;

/// A pipeline that decodes a film of 100 frames in this folder: a key frame every 12, B-frames between them.
fn film(folder: &std::path::Path) -> String {
    let file = folder.join("film.mkv");
    encode("libx264", &["-bf", "2", "-g", "12"], 100, &file);
    format!(
        "filesrc location={} ! matroskademux ! vplretrydec name=dec implementation=software",
        file.display()
    )
}

#[test]
fn seeking_back_and_forth_a_hundred_times() {
    in_child("seeking_back_and_forth_a_hundred_times", || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let launch = film(folder.path());
        let whole = common::decode(&launch);
        assert_eq!(whole.frames.len(), 100);

        let mut player = Player::new(&launch);
        player.play();
        player.pull(1);
        let mut rng = fastrand::Rng::with_seed(7);
        for number in 0..100 {
            let target = rng.usize(..100);
            let time = whole.frames[target].pts.expect("a time");
            // Some seeks come before anything of the last one is out.
            let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
            player.pipeline.seek_simple(flags, time).expect("it seeks");
            if number % 3 == 2 {
                continue;
            }
            player.read_bus();
            player.played.eos = false;
            player.played.frames.clear();
            player.pull(2);
            let first = &player.played.frames[0];
            // No frame of before the seek, and the right one.
            let expected = &whole.frames[target];
            assert_eq!(first.pts, expected.pts, "seek {number}");
            assert!(
                first.pixels == expected.pixels,
                "seek {number} to frame {target}"
            );
        }
        player.stop();
        let played = std::mem::take(&mut player.played);
        assert!(played.errors.is_empty(), "{:?}", played.errors);
        let flushed = played.stat("flushed");
        println!("{:?}", played.stats);
        assert!(flushed > 0);
        assert_no_surfaces();
    });
}

#[test]
fn a_hundred_times_from_nothing_to_nothing() {
    in_child("a_hundred_times_from_nothing_to_nothing", || {
        let count = |folder: &str| std::fs::read_dir(folder).expect("Linux has it").count();
        let stream = named("64x64-I-P-B-P.h264");
        let mut before = (0, 0);
        for number in 0..100 {
            // One in four is stopped in the middle.
            if number % 4 == 3 {
                let mut player = Player::new(&format!(
                    "{} ! vplretrydec name=dec implementation=software",
                    source(&stream)
                ));
                player.play();
                player.pull(number % 3);
                player.stop();
            } else {
                let played = through(
                    &stream,
                    if number % 2 == 0 {
                        "zero-copy=true"
                    } else {
                        ""
                    },
                );
                assert_eq!(played.md5s(), stream.expected().list());
            }
            assert_no_surfaces();
            if number == 20 {
                before = (count("/proc/self/task"), count("/proc/self/fd"));
            }
        }
        common::wait_for("threads and files are closed", || {
            let now = (count("/proc/self/task"), count("/proc/self/fd"));
            now.0 <= before.0 && now.1 <= before.1
        });
    });
}

#[test]
fn one_element_is_used_again() {
    in_child("one_element_is_used_again", || {
        let stream = named("test-25fps.h264");
        let mut player = Player::new(&format!(
            "{} ! vplretrydec name=dec implementation=software",
            source(&stream)
        ));
        for state in [gst::State::Ready, gst::State::Null, gst::State::Ready] {
            player.played = Default::default();
            player.play();
            player.pull(usize::MAX);
            assert!(player.played.eos);
            assert_eq!(player.played.md5s(), stream.expected().list());
            let stats = || player.decoder().property::<gst::Structure>("stats");
            let before = stats();
            player.pipeline.set_state(state).expect("a state");
            // They can be read afterwards.
            assert_eq!(stats().to_string(), before.to_string());
            assert_eq!(before.get("frames"), Ok(250_u64));
        }
    });
}

#[test]
fn eight_decoders_at_once() {
    in_child("eight_decoders_at_once", || {
        let names = [
            "test-25fps.h264",
            "test-25fps-interlaced.h264",
            "test-25fps.h265",
            "bear.h265",
            "test-25fps.vp8",
            "test-25fps.vp9",
            "test-25fps.ivf.av1",
            "bbb.h265",
        ];
        std::thread::scope(|scope| {
            for (number, name) in names.into_iter().enumerate() {
                scope.spawn(move || {
                    let stream = named(name);
                    let zero_copy = ["", "zero-copy=true"][number % 2];
                    let played = through(&stream, zero_copy);
                    played.assert_clean();
                    let expected = stream.expected();
                    let sums: Vec<String> = played
                        .frames
                        .iter()
                        .map(|frame| expected.checksum(&frame.pixels))
                        .collect();
                    assert_eq!(sums, expected.list(), "{name}");
                });
            }
        });
        assert_no_surfaces();
    });
}

#[test]
fn buffers_outlive_the_element() {
    in_child("buffers_outlive_the_element", || {
        let stream = named("test-25fps.h264");
        let mut player = Player::new(&format!(
            "{} ! vplretrydec name=dec implementation=software zero-copy=true",
            source(&stream)
        ));
        player.play();
        let samples: Vec<gst::Sample> = (0..5)
            .map(|_| player.sink.pull_sample().expect("a frame"))
            .collect();
        // The surface itself: read-only, its strides in the meta.
        let buffer = samples[0].buffer().expect("a buffer");
        assert!(readonly(buffer));
        assert!(buffer.meta::<gst_video::VideoMeta>().is_some());
        player.stop();
        drop(player);
        // The session thread frees the others.
        common::wait_for("five surfaces are left", || live_surfaces() == 5);
        let expected = stream.expected();
        for (number, sample) in samples.iter().enumerate() {
            let frame = common::Frame::new(sample);
            assert_eq!(expected.checksum(&frame.pixels), expected.list()[number]);
        }
        // The last reference may be dropped anywhere.
        std::thread::spawn(move || drop(samples))
            .join()
            .expect("no panic");
        assert_no_surfaces();
        let threads = || {
            let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it");
            tasks
                .flatten()
                .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
                .filter(|name| name.trim() == "vplretrydec")
                .count()
        };
        common::wait_for("the session thread ends with the last buffer", || {
            threads() == 0
        });
    });
}

#[test]
fn wrapping_falls_back_where_downstream_takes_no_meta() {
    in_child("wrapping_falls_back_where_downstream_takes_no_meta", || {
        let stream = named("test-25fps.h264");
        // Behind a queue that drops what the query was answered with.
        let mut player = Player::new(&format!(
            "{} ! vplretrydec name=dec implementation=software zero-copy=true ! identity drop-allocation=true",
            source(&stream)
        ));
        player.play();
        let sample = player.sink.pull_sample().expect("a frame");
        let buffer = sample.buffer().expect("a buffer");
        assert!(!readonly(buffer));
        player.pull(usize::MAX);
        assert!(player.played.eos);
    });
}

/// The element called `downstream` offers a pool of two buffers and no more.
fn offer_two_buffers(
    player: &Player,
) -> (gst::Element, gst::glib::WeakRef<gst_video::VideoBufferPool>) {
    let pool = gst_video::VideoBufferPool::new();
    let gone = pool.downgrade();
    let downstream = player.pipeline.by_name("downstream").expect("an identity");
    let pad = downstream.static_pad("sink").expect("a sink pad");
    pad.add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, move |_, info| {
        if let Some(gst::PadProbeData::Query(query)) = &mut info.data
            && let gst::QueryViewMut::Allocation(query) = query.view_mut()
        {
            let (caps, _) = query.get();
            let caps = caps.expect("an allocation query has caps");
            let info = gst_video::VideoInfo::from_caps(caps).expect("raw video");
            let size = u32::try_from(info.size()).expect("a small picture");
            query.add_allocation_pool(Some(&pool), size, 2, 2);
            return gst::PadProbeReturn::Handled;
        }
        gst::PadProbeReturn::Ok
    });
    (downstream, gone)
}

#[test]
fn stopping_and_flushing_go_through_while_downstream_keeps_every_buffer() {
    let test = "stopping_and_flushing_go_through_while_downstream_keeps_every_buffer";
    in_child(test, || {
        let launch = format!(
            "{} ! vplretrydec name=dec implementation=software ! identity name=downstream",
            source(&named("test-25fps.h264"))
        );
        for flushes in [false, true] {
            let mut player = Player::new(&launch);
            let _downstream = offer_two_buffers(&player);
            // It plays on to the end after a flush in the middle, and is stopped there without one.
            player.play();
            let decoder = player.decoder();
            let frames = || {
                let stats = decoder.property::<gst::Structure>("stats");
                stats.get::<u64>("frames").expect("a counter")
            };
            common::wait_for("the appsink has both", || frames() == 2);
            // The third picture waits for a buffer, or is about to.
            std::thread::sleep(std::time::Duration::from_millis(50));
            if flushes {
                let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::KEY_UNIT;
                player
                    .pipeline
                    .seek_simple(flags, gst::ClockTime::ZERO)
                    .expect("it seeks");
                player.pull(20);
                assert_eq!(player.played.frames.len(), 20, "{:?}", player.played);
            }
            player.stop();
            assert!(
                player.played.errors.is_empty(),
                "{:?}",
                player.played.errors
            );
            assert!(
                player.played.warnings.is_empty(),
                "{:?}",
                player.played.warnings
            );
        }
        assert_no_surfaces();
    });
}

#[test]
fn a_pool_of_two_buffers_is_enough_and_comes_back() {
    in_child("a_pool_of_two_buffers_is_enough_and_comes_back", || {
        let stream = named("test-25fps.h264");
        let launch = format!(
            "{} ! vplretrydec name=dec implementation=software ! identity name=downstream",
            source(&stream)
        );
        let mut player = Player::new(&launch);
        let (downstream, gone) = offer_two_buffers(&player);
        player.play();
        // Downstream holds one, and asks for the next only then.
        let mut held = Vec::new();
        while let Some(sample) = player
            .sink
            .try_pull_sample(gst::ClockTime::from_seconds(60))
        {
            player.played.frames.push(common::Frame::new(&sample));
            held = vec![sample];
        }
        // The message comes behind the last frame.
        player.pull(usize::MAX);
        assert_eq!(held.len(), 1);
        drop(held);
        player.stop();
        let played = std::mem::take(&mut player.played);
        played.assert_clean();
        let sums = played.frames.iter();
        let sums: Vec<String> = sums
            .map(|frame| stream.expected().checksum(&frame.pixels))
            .collect();
        assert_eq!(sums, stream.expected().list());

        // A second time it is stopped in the middle: a buffer may lie ready then.
        player.play();
        let first = player.sink.pull_sample().expect("a frame");
        player.stop();
        drop((first, player, downstream));
        common::wait_for("the pool's buffers have come back", || {
            gone.upgrade().is_none()
        });
        assert_no_surfaces();
    });
}

fn readonly(buffer: &gst::BufferRef) -> bool {
    buffer
        .peek_memory(0)
        .flags()
        .contains(gst::MemoryFlags::READONLY)
}

#[test]
fn playing_backwards_gives_every_frame_from_the_last_to_the_first() {
    let test = "playing_backwards_gives_every_frame_from_the_last_to_the_first";
    in_child(test, || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let launch = film(folder.path());
        let forwards = common::decode(&launch);
        for properties in ["", "async-depth=1", "zero-copy=true"] {
            let mut player = Player::new(&format!("{launch} {properties}"));
            player
                .pipeline
                .set_state(gst::State::Paused)
                .expect("it starts");
            let (done, ..) = player.pipeline.state(gst::ClockTime::from_seconds(60));
            done.expect("it prerolls");
            let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
            let (from, to) = (gst::ClockTime::ZERO, gst::ClockTime::from_seconds(4));
            let set = gst::SeekType::Set;
            player
                .pipeline
                .seek(-1.0, flags, set, from, set, to)
                .expect("it seeks");
            player.play();
            player.pull(usize::MAX);
            player.stop();
            let played = std::mem::take(&mut player.played);
            assert!(played.errors.is_empty(), "{:?}", played.errors);
            played.assert_accounts();
            assert_eq!(played.frames.len(), 100, "{properties}");
            for (ours, expected) in played.frames.iter().rev().zip(&forwards.frames) {
                assert_eq!(ours.pts, expected.pts, "{properties}");
                assert!(ours.pixels == expected.pixels, "{properties}");
            }
        }
        assert_no_surfaces();
    });
}
