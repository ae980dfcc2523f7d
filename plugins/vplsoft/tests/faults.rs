// SPDX-License-Identifier: MPL-2.0

//! Every key of the fault grammar, seen at the interface.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

mod client;

use std::time::{Duration, Instant};

use client::stage::{command, in_child, md5_of, run, search_folder};
use client::{Client, Feed, Frame, Log, Options, map, release, synchronize};
use onevpl_sys::*;
use test_streams::named;

fn feed() -> Feed {
    Feed::pieces(MFX_CODEC_AVC, &named("64x64-I-P-B-P.h264").bytes(), 1 << 20)
}

/// 250 pictures.
fn long_feed() -> Feed {
    Feed::pieces(MFX_CODEC_AVC, &named("test-25fps.h264").bytes(), 1 << 20)
}

fn decode(faults: &str) -> (Vec<Frame>, Log) {
    Client::direct(faults).decode(&feed(), Options::default())
}

fn all_pictures(frames: &[Frame]) {
    let expected = named("64x64-I-P-B-P.h264").expected();
    let sums: Vec<String> = frames.iter().map(Frame::md5).collect();
    assert_eq!(sums, expected.list());
}

/// A client whose decoder is open, and the stream's bytes.
fn opened(faults: &str) -> (Client, Vec<u8>) {
    let client = Client::direct(faults);
    let mut data = long_feed().parts.concat();
    let mut par = client
        .header(MFX_CODEC_AVC, &mut Client::bitstream(&mut data, false))
        .expect("the stream has a header");
    assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
    (client, data)
}

#[test]
fn busy_answers_so_often_and_touches_no_byte() {
    let (client, mut data) = opened("busy=3");
    let mut bs = Client::bitstream(&mut data, false);
    for _ in 0..3 {
        let (status, surface, sync) = client.call(Some(&mut bs));
        assert_eq!(status, MfxStatus::WRN_DEVICE_BUSY);
        assert!(surface.is_null() && sync.is_null() && bs.DataOffset == 0);
    }
    let (status, surface, sync) = client.call(Some(&mut bs));
    assert_eq!(status, MfxStatus::ERR_NONE);
    assert!(!surface.is_null() && !sync.is_null());
    release(surface);
    let (frames, log) = decode("busy=25");
    all_pictures(&frames);
    assert_eq!(log.busy, 25);
}

#[test]
fn busy_forever_never_decodes() {
    let (client, mut data) = opened("busy=forever");
    let mut bs = Client::bitstream(&mut data, false);
    for _ in 0..70_000 {
        assert_eq!(client.call(Some(&mut bs)).0, MfxStatus::WRN_DEVICE_BUSY);
    }
    assert_eq!(client.call(None).0, MfxStatus::WRN_DEVICE_BUSY);
}

#[test]
fn busy_with_sync_gives_something_to_wait_for() {
    let (frames, log) = decode("busy-with-sync=4");
    all_pictures(&frames);
    assert_eq!((log.busy, log.busy_with_sync), (4, 4));
}

#[test]
fn a_script_is_played_call_by_call() {
    let (client, mut data) = opened("script=2*2,13,-11,3,2s,_,3sf,5f,-1sf");
    let mut bs = Client::bitstream(&mut data, false);
    for wanted in [2, 2, 13, -11, 3] {
        let (status, surface, sync) = client.call(Some(&mut bs));
        assert_eq!(status.0, wanted);
        assert!(surface.is_null() && sync.is_null() && bs.DataOffset == 0);
    }
    let (status, surface, sync) = client.call(Some(&mut bs));
    assert!(status.0 == 2 && surface.is_null() && !sync.is_null());
    assert_eq!(client.sync(sync, 0), MfxStatus::ERR_NONE);
    let mut pictures = Vec::new();
    for _ in 0..4 {
        let (status, surface, sync) = client.call(Some(&mut bs));
        assert!(!surface.is_null(), "the stream is long enough: {status}");
        pictures.push((status.0, !sync.is_null()));
        assert_eq!(synchronize(surface, 1000), MfxStatus::ERR_NONE);
        release(surface);
    }
    assert_eq!(pictures, [(0, true), (3, true), (5, false), (-1, true)]);
    let (status, surface, sync) = client.call(Some(&mut bs));
    assert!(status == MfxStatus::ERR_NONE && !surface.is_null() && !sync.is_null());
    release(surface);
}

#[test]
fn latency_is_kept_by_kind_of_picture() {
    // The stream begins with an intra picture.
    let (client, mut data) = opened("latency-us=400000:0:0");
    let mut bs = Client::bitstream(&mut data, false);
    let start = Instant::now();
    let (_, surface, sync) = client.call(Some(&mut bs));
    assert_eq!(client.sync(sync, 1), MfxStatus::WRN_IN_EXECUTION);
    assert_eq!(
        map(surface, MFX_MAP_READ | MFX_MAP_NOWAIT),
        MfxStatus::ERR_LOCK_MEMORY
    );
    assert_eq!(client.sync(sync, 60_000), MfxStatus::ERR_NONE);
    assert!(start.elapsed() >= Duration::from_millis(400));
    let (_, second, sync) = client.call(Some(&mut bs));
    assert_eq!(
        client.sync(sync, 0),
        MfxStatus::ERR_NONE,
        "the second picture is a P picture"
    );
    release(surface);
    release(second);
}

#[test]
fn more_operations_than_the_async_depth_find_the_device_busy() {
    let client = Client::direct("latency-us=600000000:600000000:600000000");
    let mut data = long_feed().parts.concat();
    let mut par = client
        .header(MFX_CODEC_AVC, &mut Client::bitstream(&mut data, false))
        .expect("the stream has a header");
    par.AsyncDepth = 3;
    assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
    let mut bs = Client::bitstream(&mut data, false);
    let surfaces: Vec<_> = (0..3).map(|_| client.call(Some(&mut bs)).1).collect();
    let before = bs.DataOffset;
    assert_eq!(client.call(Some(&mut bs)).0, MfxStatus::WRN_DEVICE_BUSY);
    assert_eq!(bs.DataOffset, before);
    for surface in surfaces {
        assert_eq!(synchronize(surface, 0), MfxStatus::WRN_IN_EXECUTION);
        release(surface);
    }
}

#[test]
fn engines_are_shared_by_all_sessions() {
    in_child("engines_are_shared_by_all_sessions", "", || {
        let faults = "latency-us=150000:150000:150000;engines=1";
        let (one, mut first) = opened(faults);
        let (two, mut second) = opened(faults);
        let start = Instant::now();
        let a = one.call(Some(&mut Client::bitstream(&mut first, false)));
        let b = two.call(Some(&mut Client::bitstream(&mut second, false)));
        assert_eq!(two.sync(b.2, 60_000), MfxStatus::ERR_NONE);
        assert!(
            start.elapsed() >= Duration::from_millis(300),
            "the second waits for the first"
        );
        assert_eq!(one.sync(a.2, 0), MfxStatus::ERR_NONE);
        release(a.1);
        release(b.1);
    });
}

#[test]
fn a_pool_that_is_empty_says_so_and_loses_nothing() {
    let options = Options {
        hold: 9,
        ..Options::default()
    };
    let (frames, log) = Client::direct("pool=2").decode(&long_feed(), options);
    assert!(log.starved > 100, "{log:?}");
    let sums: Vec<String> = frames.iter().map(Frame::md5).collect();
    assert_eq!(sums, named("test-25fps.h264").expected().list());
}

#[test]
fn fail_decode_loses_one_access_unit_and_the_rest_goes_on() {
    let options = Options {
        patient: true,
        ..Options::default()
    };
    let (frames, log) = Client::direct("fail-decode=60").decode(&long_feed(), options);
    assert_eq!(log.errors, [MfxStatus::ERR_UNKNOWN.0]);
    assert!((249..=250).contains(&frames.len()), "{}", frames.len());
    assert!(
        frames.iter().any(|frame| frame.corrupted != 0),
        "the next picture is marked"
    );
}

#[test]
fn status_error_is_the_result_of_one_picture() {
    let (frames, log) = decode("status-error=2");
    assert_eq!(log.sync_errors, [MfxStatus::ERR_ABORTED.0]);
    let marked: Vec<bool> = frames.iter().map(|frame| frame.corrupted != 0).collect();
    assert!(
        marked[2] && marked.iter().filter(|marked| **marked).count() == 1,
        "{marked:?}"
    );
}

#[test]
fn a_lost_device_stays_lost_for_so_many_sessions() {
    in_child(
        "a_lost_device_stays_lost_for_so_many_sessions",
        "device-lost=1:2",
        || {
            for session in 0..4 {
                let client = Client::dispatched(MFX_CODEC_AVC).expect("the runtime is found");
                let mut data = feed().parts.concat();
                let mut par = client
                    .header(MFX_CODEC_AVC, &mut Client::bitstream(&mut data, false))
                    .expect("the stream has a header");
                assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
                let mut bs = Client::bitstream(&mut data, false);
                let mut lost = false;
                for _ in 0..20 {
                    let (status, surface, _) = client.call(Some(&mut bs));
                    if !surface.is_null() {
                        release(surface);
                    }
                    lost |= status == MfxStatus::ERR_DEVICE_LOST;
                    if status.is_error() {
                        break;
                    }
                }
                assert_eq!(lost, session < 2, "session {session}");
                if lost {
                    assert_eq!(client.call(None).0, MfxStatus::ERR_DEVICE_LOST);
                    assert_eq!(client.close_decoder(), MfxStatus::ERR_NONE);
                    assert_eq!(client.init(&mut par), MfxStatus::ERR_DEVICE_LOST);
                }
            }
        },
    );
}

#[test]
fn corrupt_marks_one_picture_when_it_is_complete() {
    let (client, mut data) = opened("corrupt=0;latency-us=200000:0:0");
    let (_, surface, sync) = client.call(Some(&mut Client::bitstream(&mut data, false)));
    // SAFETY: the surface is not released.
    let corrupted = || unsafe { (*surface).Data.Corrupted };
    assert_eq!(corrupted(), 0, "the mark comes with the operation's end");
    assert_eq!(client.sync(sync, 60_000), MfxStatus::ERR_NONE);
    assert_eq!(u32::from(corrupted()), MFX_CORRUPTION_MAJOR);
    release(surface);
    drop(client);
    let (frames, _) = decode("corrupt=2");
    let marked: Vec<usize> = (0..frames.len())
        .filter(|n| frames[*n].corrupted != 0)
        .collect();
    assert_eq!(marked, [2]);
}

#[test]
fn silent_resize_tells_nothing_and_shows_it_on_the_surface() {
    let stream = named("resolution_change_500frames-vp9.ivf");
    let feed = Feed::frames(
        MFX_CODEC_VP9,
        stream.ivf_frames().expect("it is an IVF file"),
    );
    let (frames, log) = Client::direct("silent-resize").decode(&feed, Options::default());
    assert_eq!((log.reinits, log.param_changed), (0, 0));
    assert!(
        frames
            .iter()
            .all(|frame| frame.status == MfxStatus::ERR_NONE)
    );
    let sums: Vec<String> = frames.iter().map(Frame::md5).collect();
    assert_eq!(
        sums,
        md5_of(stream.path.to_str().expect("a plain path"), "nv12")
    );
    let mut sizes: Vec<usize> = frames.iter().map(|frame| frame.width).collect();
    sizes.dedup();
    assert_eq!(sizes, [640, 426, 640, 854, 1280]);
}

#[test]
fn a_seed_repeats_itself_and_loses_no_picture() {
    for seed in 0..20 {
        let once = Client::direct(&format!("seed={seed}")).decode(&long_feed(), Options::default());
        let sums: Vec<String> = once.0.iter().map(Frame::md5).collect();
        assert_eq!(
            sums,
            named("test-25fps.h264").expected().list(),
            "seed {seed}"
        );
        if seed < 3 {
            let again =
                Client::direct(&format!("seed={seed}")).decode(&long_feed(), Options::default());
            let marks = |run: &(Vec<Frame>, Log)| -> Vec<u16> {
                run.0.iter().map(|f| f.corrupted).collect()
            };
            assert_eq!(marks(&once), marks(&again));
            assert!(
                once.1.busy > 0 && once.1.starved > 0,
                "seed {seed}: {:?}",
                once.1
            );
        }
    }
}

/// A call on another thread has not come back after a while; the process ends with it inside.
fn hangs(call: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        call();
        sender.send(()).expect("the test waits");
    });
    let result = receiver.recv_timeout(Duration::from_millis(300));
    assert!(result.is_err(), "the call came back");
}

/// Ends this process as a test that passed: a thread hangs in it for ever.
fn leave() -> ! {
    println!("1 passed");
    std::process::exit(0)
}

#[test]
fn init_hangs_on_command() {
    in_child("init_hangs_on_command", "init-hang", || {
        let client = Client::dispatched(MFX_CODEC_AVC).expect("the runtime is found");
        let mut data = feed().parts.concat();
        let par = client
            .header(MFX_CODEC_AVC, &mut Client::bitstream(&mut data, false))
            .expect("the stream has a header");
        let words = par_words(&par);
        hangs(move || {
            let mut par = from_words(&words);
            client.init(&mut par);
        });
        leave()
    });
}

#[test]
fn a_decode_call_hangs_on_command_and_the_rest_of_the_session_does_not() {
    in_child(
        "a_decode_call_hangs_on_command_and_the_rest_of_the_session_does_not",
        "decode-hang=1",
        || {
            let client = Client::dispatched(MFX_CODEC_AVC).expect("the runtime is found");
            let mut data = feed().parts.concat();
            let mut par = client
                .header(MFX_CODEC_AVC, &mut Client::bitstream(&mut data, false))
                .expect("the stream has a header");
            assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
            let functions = client.f;
            let session = client.session.addr();
            hangs(move || {
                let mut bs = Client::bitstream(&mut data, false);
                for _ in 0..3 {
                    client.call(Some(&mut bs));
                }
            });
            let session = std::ptr::with_exposed_provenance_mut(session);
            // SAFETY: the session is open; the other thread hangs in it.
            let status = unsafe { (functions.MFXVideoDECODE_Close)(session) };
            assert_eq!(status, MfxStatus::ERR_NONE);
            leave()
        },
    );
}

#[test]
fn waiting_mapping_and_closing_hang_on_command() {
    in_child("waiting_mapping_and_closing_hang_on_command", "", || {
        let (client, mut data) = opened("sync-hang=0");
        let (_, surface, sync) = client.call(Some(&mut Client::bitstream(&mut data, false)));
        let (point, address) = (sync.expose_provenance(), surface.expose_provenance());
        hangs(move || {
            client.sync(std::ptr::with_exposed_provenance_mut(point), 1);
        });
        hangs(move || {
            synchronize(std::ptr::with_exposed_provenance_mut(address), 1);
        });

        let (client, mut data) = opened("map-hang=1");
        let mut bs = Client::bitstream(&mut data, false);
        let first = client.call(Some(&mut bs)).1;
        assert_eq!(map(first, MFX_MAP_READ), MfxStatus::ERR_NONE);
        let second = client.call(Some(&mut bs)).1.expose_provenance();
        hangs(move || {
            map(std::ptr::with_exposed_provenance_mut(second), MFX_MAP_READ);
        });

        let (client, _data) = opened("close-hang");
        hangs(move || {
            client.close_decoder();
        });
        leave()
    });
}

/// A parameter structure as plain words: its one pointer is null, but its type cannot cross threads.
fn par_words(par: &mfxVideoParam) -> Vec<u32> {
    let words = size_of::<mfxVideoParam>() / 4;
    // SAFETY: the structure was zeroed before it was filled, so every byte is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(par).cast::<u32>(), words) }.to_vec()
}

fn from_words(words: &[u32]) -> mfxVideoParam {
    assert_eq!(words.len() * 4, size_of::<mfxVideoParam>());
    // SAFETY: the words are those of such a structure.
    unsafe { words.as_ptr().cast::<mfxVideoParam>().read_unaligned() }
}

#[test]
fn a_fault_that_is_not_understood_refuses_the_session_and_is_said() {
    let folder = search_folder();
    let said = run(command("vpl-inspect", folder.path(), "bussy=3"), 60);
    assert!(
        said.stdout.contains("vplsoft"),
        "the runtime is listed all the same: {}",
        said.stdout
    );
    in_child(
        "a_fault_that_is_not_understood_refuses_the_session_and_is_said",
        "bussy=3",
        || {
            let refused = Client::dispatched(MFX_CODEC_AVC).err();
            println!("refused with {refused:?}");
            assert!(refused.is_some(), "a session opened");
        },
    );
    let runtime = client::runtime();
    assert_eq!(
        client::set_faults(&runtime, Some("pool=0")),
        MfxStatus::ERR_UNSUPPORTED
    );
}
