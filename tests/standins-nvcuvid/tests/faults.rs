// SPDX-License-Identifier: MPL-2.0

//! Every key of the fault grammar, as a client of the interface sees it.

mod common;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::client::{Client, Happened, Options, Player};
use common::clips::Clip;
use common::{context, live, mistakes, nvcuvid, on_standins, on_standins_with, set_faults};
use nvcuvid_sys::*;

/// In order, and each picture is shown in the call that decodes it.
const NAME: &str = "64x64-I-P.h264";
const LONG: &str = "test-25fps.vp8";

fn with(faults: &str, body: impl FnOnce()) {
    on_standins_with(&[("NVSTANDIN_FAULTS", faults)], body);
}

fn answers(client: &Client) -> Vec<u32> {
    let answers = client
        .happened
        .iter()
        .filter_map(|happened| match happened {
            Happened::Decode { answer, .. } => Some(answer.0),
            _ => None,
        });
    answers.collect()
}

/// 60 pictures of a stream without latency.
fn long() -> Clip {
    let mut clip = Clip::named(LONG);
    clip.units.truncate(60);
    clip
}

/// 60 pictures of H.264, whose status can be asked.
fn h264() -> Clip {
    let mut clip = Clip::named("test-25fps.h264");
    clip.units.truncate(60);
    clip
}

fn play(clip: &Clip) -> Client {
    Player::play(clip, Options::default(), true)
}

/// The numbers of pictures, in display order, of which `wrong` holds.
fn shown_where(client: &Client, wrong: impl Fn(&common::client::Shown) -> bool) -> Vec<usize> {
    let numbered = client.shown.iter().enumerate();
    numbered
        .filter(|(_, shown)| wrong(shown))
        .map(|(number, _)| number)
        .collect()
}

/// Runs `body` beside the test; it says when it is done.
fn beside(body: impl FnOnce() + Send + 'static) -> mpsc::Receiver<()> {
    let (done, waits) = mpsc::channel();
    std::thread::spawn(move || {
        body();
        let _ = done.send(());
    });
    waits
}

/// Whether `body` is still running after a moment in which it would be done many times over.
fn hangs(body: impl FnOnce() + Send + 'static) -> bool {
    let waited = beside(body).recv_timeout(Duration::from_millis(1500));
    waited == Err(mpsc::RecvTimeoutError::Timeout)
}

/// That `body` ends. The limit only ends a test that would hang.
fn assert_ends(body: impl FnOnce() + Send + 'static) {
    let ended = beside(body).recv_timeout(Duration::from_secs(60));
    ended.expect("it ends");
}

#[test]
fn busy_refuses_the_first_pictures() {
    with("busy=3", || {
        let client = play(&long());
        let mut expected = [0; 60];
        expected[..3].fill(CuResult::NOT_READY.0);
        assert_eq!(answers(&client), expected);
    });
}

#[test]
fn busy_forever_refuses_every_picture() {
    with("busy=forever", || {
        let client = play(&long());
        assert_eq!(answers(&client), [CuResult::NOT_READY.0; 60]);
    });
}

#[test]
fn busy_with_sync_refuses_the_first_maps_of_pictures_that_are_decoded() {
    with("busy-with-sync=2", || {
        let client = play(&long());
        assert_eq!(answers(&client), [0; 60]);
        assert_eq!(shown_where(&client, |shown| shown.pixels.is_err()), [0, 1]);
        let error = client.shown[0].pixels.as_ref().expect_err("it was refused");
        assert!(matches!(error, Error::Cuda(error) if error.code == CuResult::NOT_READY));
    });
}

#[test]
fn a_script_answers_call_by_call() {
    with("script=2*2,_,999,1sf,_", || {
        let client = play(&long());
        assert_eq!(answers(&client)[..7], [2, 2, 0, 999, 1, 0, 0]);
        // The picture of `1sf` was taken although the call failed.
        let unmapped = shown_where(&client, |shown| shown.pixels.is_err());
        assert!(!unmapped.contains(&4), "{unmapped:?}");
    });
}

#[test]
fn fail_decode_refuses_one_picture() {
    with("fail-decode=7", || {
        let client = play(&long());
        let mut expected = [0; 60];
        expected[7] = CuResult::INVALID_VALUE.0;
        assert_eq!(answers(&client), expected);
        assert_eq!(mistakes(), 0);
    });
}

#[test]
fn status_error_spoils_one_picture_and_says_so() {
    with("status-error=9", || {
        let clip = h264();
        let spoiled = play(&clip);
        let wrong = shown_where(&spoiled, |shown| shown.status == Some(DecodeStatus::Error));
        assert_eq!(wrong.len(), 1);
        assert_eq!(set_faults(""), CuResult::SUCCESS);
        let right = play(&clip);
        let differ = (0..60).filter(|n| spoiled.pictures()[*n] != right.pictures()[*n]);
        assert_eq!(differ.collect::<Vec<_>>(), wrong);
    });
}

#[test]
fn corrupt_marks_one_picture_and_leaves_its_pixels() {
    with("corrupt=4", || {
        let clip = h264();
        let marked = play(&clip);
        let concealed = shown_where(&marked, |shown| {
            shown.status == Some(DecodeStatus::ErrorConcealed)
        });
        assert_eq!(concealed.len(), 1);
        assert_eq!(set_faults(""), CuResult::SUCCESS);
        assert!(play(&clip).pictures() == marked.pictures());
    });
}

#[test]
fn a_lost_device_fails_every_call_and_the_next_session_works() {
    with("device-lost=5", || {
        let clip = long();
        let client = play(&clip);
        let expected = CuResult::LAUNCH_FAILED.0;
        let answers = answers(&client);
        assert_eq!(answers[..5], [0; 5]);
        assert!(
            answers[5..].iter().all(|answer| *answer == expected),
            "{answers:?}"
        );
        let lost = shown_where(&client, |shown| shown.pixels.is_err());
        assert_eq!(lost, (5..60).collect::<Vec<_>>());
        drop(client);
        assert_eq!(live(), (0, 0), "nothing is left of the lost context");
        let client = play(&clip);
        assert!(client.shown.iter().all(|shown| shown.pixels.is_ok()));
    });
}

#[test]
fn a_device_is_lost_in_as_many_sessions_as_asked() {
    with("device-lost=2:2", || {
        for lost in [true, true, false] {
            let client = play(&long());
            assert_eq!(client.errors.is_empty(), !lost);
        }
    });
}

#[test]
fn nobody_waits_for_a_picture_that_takes_an_hour_and_its_status_says_that_it_goes_on() {
    with("latency-us=3600000000:0:0", || {
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let client = Player::play(&Clip::named(NAME), options, true);
        assert_eq!(client.shown[0].status, Some(DecodeStatus::InProgress));
    });
}

#[test]
fn latency_is_that_of_the_pictures_kind_and_a_map_waits_for_it() {
    with("latency-us=0:300000:0", || {
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let start = Instant::now();
        let client = Player::play(&Clip::named(NAME), options, true);
        let decoder = client.decoder.as_ref().expect("there was a sequence");
        let read = |number: usize| {
            let index = client.shown[number].index;
            let mapped = decoder.map(index, FieldSelection::PROGRESSIVE, &client.stream);
            let status = decoder.status(index);
            mapped.expect("it waits").unmap().expect("it was mapped");
            status
        };
        assert_eq!(
            client.shown[0].status,
            Some(DecodeStatus::Success),
            "the I picture"
        );
        assert_eq!(read(1), Ok(DecodeStatus::Success));
        assert!(
            start.elapsed() >= Duration::from_millis(300),
            "the P picture"
        );
    });
}

#[test]
fn the_fifth_picture_waits_for_the_first() {
    with("latency-us=40000:40000:40000", || {
        let mut clip = long();
        clip.units.truncate(8);
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let start = Instant::now();
        let mut player = Player::new(clip.codec, options);
        let mut blocked_at = Vec::new();
        for data in &clip.units {
            player
                .send(&Packet {
                    data,
                    ..Packet::default()
                })
                .expect("it is parsed");
            blocked_at.push(start.elapsed());
        }
        // Four wait in the queue; after that one call a picture.
        assert!(blocked_at[4] >= Duration::from_millis(40), "{blocked_at:?}");
        assert!(
            blocked_at[7] >= Duration::from_millis(160),
            "{blocked_at:?}"
        );
    });
}

#[test]
fn with_several_engines_a_short_picture_overtakes_a_long_one() {
    with("engines=2;latency-us=3600000000:0:0", || {
        let clip = Clip::named(NAME);
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let client = Player::play(&clip, options, true);
        let statuses: Vec<_> = client.shown.iter().map(|shown| shown.status).collect();
        let expected = [DecodeStatus::InProgress, DecodeStatus::Success].map(Some);
        assert_eq!(statuses, expected);
        let caps = DecoderCaps::query(
            &context(),
            nvcuvid(),
            cudaVideoCodec_H264,
            cudaVideoChromaFormat_420,
            8,
        );
        assert_eq!(caps.expect("an answer").engines, 2);
    });
}

#[test]
fn with_one_engine_no_picture_overtakes() {
    with("latency-us=3600000000:0:0", || {
        let clip = Clip::named(NAME);
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let client = Player::play(&clip, options, true);
        let waits = |shown: &common::client::Shown| shown.status == Some(DecodeStatus::InProgress);
        assert!(client.shown.iter().all(waits));
    });
}

#[test]
fn a_pool_limits_what_is_mapped() {
    with("pool=1", || {
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let client = Player::play(&Clip::named(NAME), options, true);
        let decoder = client.decoder.as_ref().expect("there was a sequence");
        let map = |number: usize| {
            let index = client.shown[number].index;
            decoder.map(index, FieldSelection::PROGRESSIVE, &client.stream)
        };
        let first = map(0).expect("one is allowed");
        let refused = map(1).expect_err("two are not, though the decoder has two");
        assert!(matches!(refused, Error::Cuda(error) if error.code == CuResult::MAP_FAILED));
        first.unmap().expect("it was mapped");
        map(1)
            .expect("it is free again")
            .unmap()
            .expect("it was mapped");
    });
}

#[test]
fn init_hang_holds_the_creation_of_a_decoder() {
    with("init-hang", || {
        assert!(hangs(|| drop(play(&Clip::named(NAME)))))
    });
}

#[test]
fn decode_hang_holds_one_picture() {
    with("decode-hang=1", || {
        let clip = Clip::named(NAME);
        let mut player = Player::new(clip.codec, Options::default());
        let packet = |number: usize| Packet {
            data: &clip.units[number],
            end_of_picture: true,
            ..Packet::default()
        };
        player.send(&packet(0)).expect("it is parsed");
        let unit = clip.units[1].clone();
        assert!(hangs(move || {
            let packet = Packet {
                data: &unit,
                end_of_picture: true,
                ..Packet::default()
            };
            let _ = player.send(&packet);
        }));
    });
}

#[test]
fn sync_hang_leaves_a_picture_in_progress_and_holds_its_map() {
    with("sync-hang=1", hang_in_map(DecodeStatus::InProgress));
}

#[test]
fn map_hang_holds_the_map_of_a_picture_that_is_done() {
    with("map-hang=1", hang_in_map(DecodeStatus::Success));
}

fn hang_in_map(status: DecodeStatus) -> impl FnOnce() {
    move || {
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let client = Player::play(&Clip::named(NAME), options, true);
        let decoder = client.decoder.clone().expect("there was a sequence");
        let map = |number: usize| {
            let (decoder, stream) = (decoder.clone(), client.stream.clone());
            let index = client.shown[number].index;
            move || {
                let mapped = decoder.map(index, FieldSelection::PROGRESSIVE, &stream);
                mapped.expect("it maps").unmap().expect("it was mapped");
            }
        };
        assert_ends(map(0));
        let index = client.shown[1].index;
        // A picture takes a fifth of a millisecond.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(decoder.status(index), Ok(status));
        assert!(hangs(map(1)));
        // The decoder works on while a thread is lost in it.
        assert_ends(map(0));
    }
}

#[test]
fn close_hang_holds_the_end_of_a_decoder() {
    with("close-hang", || {
        let mut client = play(&Clip::named(NAME));
        let decoder = client.decoder.take();
        assert!(hangs(move || drop(decoder)));
    });
}

#[test]
fn silent_resize_does_not_tell_a_new_size() {
    with("silent-resize", || {
        let mut clip = Clip::named("resolution_change_500frames-vp9.ivf");
        clip.units.truncate(100);
        let client = play(&clip);
        let sequences = client
            .happened
            .iter()
            .filter(|happened| matches!(happened, Happened::Sequence { .. }));
        assert_eq!(sequences.count(), 1);
        assert_eq!(client.shown.len(), 100);
        assert!(
            client
                .shown
                .iter()
                .all(|shown| shown.size == client.shown[0].size)
        );
        assert_eq!(set_faults(""), CuResult::SUCCESS);
        let told = play(&clip);
        assert!(
            told.happened
                .iter()
                .filter(|h| matches!(h, Happened::Sequence { .. }))
                .count()
                > 1
        );
    });
}

#[test]
fn a_seed_disturbs_and_loses_no_picture() {
    on_standins(|| {
        let clip = h264();
        let calm = play(&clip);
        let mut marked = Vec::new();
        for seed in ["seed=1", "seed=1", "seed=2", "seed=3"] {
            assert_eq!(set_faults(seed), CuResult::SUCCESS);
            let disturbed = play(&clip);
            assert_eq!(answers(&disturbed), [0; 60], "{seed}");
            assert!(disturbed.pictures() == calm.pictures(), "{seed}");
            marked.push(shown_where(&disturbed, |s| {
                s.status == Some(DecodeStatus::ErrorConcealed)
            }));
        }
        assert_eq!(marked[0], marked[1], "a seed repeats");
        assert_ne!(marked[0], marked[2], "and another one differs");
    });
}

#[test]
fn what_is_not_understood_is_refused_and_not_passed_over() {
    with("bussy=3", || {
        let made = Parser::new(nvcuvid(), &ParserConfig::new(cudaVideoCodec_H264));
        let refused = made.err().expect("it is refused");
        assert!(matches!(refused, Error::Cuda(error) if error.code == CuResult::INVALID_VALUE));
        // The function beside the environment, which it outweighs.
        assert_eq!(set_faults("nonsense"), CuResult::INVALID_VALUE);
        assert_eq!(set_faults(""), CuResult::SUCCESS);
        assert!(Parser::new(nvcuvid(), &ParserConfig::new(cudaVideoCodec_H264)).is_ok());
    });
}

#[test]
fn the_status_is_kept_for_h264_and_h265_alone() {
    on_standins(|| {
        for (name, kept) in [
            (NAME, true),
            ("64x64-I-P.h265", true),
            (LONG, false),
            ("test-25fps.vp9", false),
            ("test-25fps.ivf.av1", false),
        ] {
            let mut clip = Clip::named(name);
            clip.units.truncate(3);
            let client = play(&clip);
            assert!(
                client
                    .shown
                    .iter()
                    .all(|shown| shown.status.is_some() == kept),
                "{name}"
            );
        }
    });
}

#[test]
fn on_request_no_status_is_kept_and_av1_is_not_decoded() {
    on_standins_with(
        &[("NVSTANDIN_NO_STATUS", "1"), ("NVSTANDIN_NO_AV1", "1")],
        || {
            let client = play(&Clip::named(NAME));
            assert!(client.shown.iter().all(|shown| shown.status.is_none()));
            let caps = DecoderCaps::query(
                &context(),
                nvcuvid(),
                cudaVideoCodec_AV1,
                cudaVideoChromaFormat_420,
                8,
            );
            assert!(!caps.expect("an answer").supported);
        },
    );
}
