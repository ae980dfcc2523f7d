// SPDX-License-Identifier: MPL-2.0

//! Every key of the fault grammar on the stand-in: what is lost is lost for a reason, and decoding goes on.

mod common;

use std::sync::OnceLock;
use std::time::Duration;

use common::{Decoded, Log, Options, decode, file, open, sums};
use nvdecring_core::{Call, Damage, DropReason, Error, Event, FrameToken, Recovery};
use nvdecring_gpu::{InputFile, Packetizer};
use standin_world::child::in_child_of;
use standin_world::streams::h264;
use standin_world::{World, assert_nothing_is_left, in_child, mistakes, set_faults};

const FRAMES: usize = 60;

/// A stream with an intra picture every twelve, without B-frames, and its pictures.
fn stream() -> &'static (InputFile, Vec<String>) {
    static STREAM: OnceLock<(InputFile, Vec<String>)> = OnceLock::new();
    STREAM.get_or_init(|| {
        let made = h264("96x64", FRAMES as u32, "bframes=0:keyint=12:scenecut=0");
        (file(&made.bytes()), made.expected("nv12"))
    })
}

fn with(faults: &str, options: &Options) -> Decoded {
    set_faults(Some(faults));
    let decoded = decode(&stream().0, options);
    set_faults(None);
    decoded
}

/// Without a mark of damage, a picture is what software decodes.
#[track_caller]
fn whole_pictures_are_right(decoded: &Decoded) {
    for out in decoded
        .told
        .pictures
        .iter()
        .filter(|out| out.damage == Damage::None)
    {
        assert_eq!(
            out.md5(),
            stream().1[out.token as usize],
            "packet {}",
            out.token
        );
    }
}

/// Tokens in the order in which their pictures came.
fn tokens(decoded: &Decoded) -> Vec<u64> {
    decoded.told.pictures.iter().map(|out| out.token).collect()
}

fn damaged(decoded: &Decoded) -> Vec<(u64, Damage)> {
    let pictures = decoded.told.pictures.iter();
    pictures
        .filter(|out| out.damage != Damage::None)
        .map(|out| (out.token, out.damage))
        .collect()
}

#[test]
fn a_failed_decode_costs_its_picture_and_marks_those_that_refer_to_it() {
    in_child(|| {
        let decoded = with("fail-decode=17", &Options::default());
        assert_eq!(decoded.error, None);
        assert_eq!(decoded.told.pictures.len(), FRAMES - 1);
        let [(17, DropReason::Decode(_))] = &decoded.told.dropped[..] else {
            panic!("{:?}", decoded.told.dropped);
        };
        let marked: Vec<_> = (18..24).map(|token| (token, Damage::References)).collect();
        assert_eq!(damaged(&decoded), marked, "until the next intra picture");
        whole_pictures_are_right(&decoded);
        assert_nothing_is_left();
    });
}

#[test]
fn errors_of_a_picture_travel_with_it() {
    in_child(|| {
        let decoded = with("status-error=30", &Options::default());
        assert_eq!(decoded.told.pictures.len(), FRAMES);
        let mut marked = vec![(30, Damage::Errors)];
        marked.extend((31..36).map(|token| (token, Damage::References)));
        assert_eq!(damaged(&decoded), marked);
        whole_pictures_are_right(&decoded);

        let decoded = with("corrupt=47", &Options::default());
        assert_eq!(decoded.told.pictures.len(), FRAMES);
        assert_eq!(
            damaged(&decoded),
            [(47, Damage::Concealed)],
            "the last of its group"
        );
        assert_eq!(tokens(&decoded), (0..FRAMES as u64).collect::<Vec<_>>());
        assert_nothing_is_left();
    });
}

#[test]
fn busy_devices_cost_the_pictures_that_they_refuse_and_no_more() {
    in_child(|| {
        let decoded = with("busy=3", &Options::default());
        assert_eq!(decoded.error, None);
        assert_eq!(decoded.told.pictures.len(), FRAMES - 3);
        assert_eq!(decoded.stats.failed, 3);
        whole_pictures_are_right(&decoded);
        // A refusal that does not end costs the decoder, then the context, then the session.
        let decoded = with("busy=forever", &Options::default());
        assert!(
            matches!(decoded.error, Some(Error::DeviceLost(_))),
            "{:?}",
            decoded.error
        );
        // A map that is refused costs its picture.
        let decoded = with("busy-with-sync=2", &Options::default());
        assert_eq!((decoded.error.clone(), decoded.stats.failed), (None, 2));
        assert!(
            decoded
                .told
                .dropped
                .iter()
                .all(|(_, reason)| matches!(reason, DropReason::Map(_))),
            "{:?}",
            decoded.told.dropped
        );
        assert_nothing_is_left();
    });
}

#[test]
fn a_script_of_statuses_is_followed() {
    in_child(|| {
        // Three refusals, ten pictures, an answer of failure for a picture that was taken.
        let decoded = with("script=600*3,_*10,2f", &Options::default());
        assert_eq!(decoded.error, None);
        assert_eq!(decoded.stats.failed, 4, "{:?}", decoded.told.dropped);
        assert_eq!(decoded.told.pictures.len(), FRAMES - 4);
        whole_pictures_are_right(&decoded);
        assert_nothing_is_left();
    });
}

#[test]
fn slow_and_many_engines_change_nothing_but_time() {
    in_child(|| {
        for faults in [
            "latency-us=2000:200:0",
            "latency-us=3000:100:100;engines=3",
            "pool=1",
            "engines=4;latency-us=0:0:0",
        ] {
            let decoded = with(faults, &Options::default());
            assert_eq!(decoded.error, None, "{faults}");
            assert_eq!(sums(&decoded.told), stream().1, "{faults}");
        }
        assert_nothing_is_left();
    });
}

#[test]
fn a_lost_device_is_recovered_or_told_once() {
    in_child(|| {
        // The first decoder of the process loses it, the next one works.
        let decoded = with("device-lost=20:1", &Options::default());
        assert_eq!(decoded.error, None, "{:?}", decoded.told.events);
        let recovered = |event: &&Event| matches!(event, Event::Recovered { .. });
        assert_eq!(decoded.told.events.iter().filter(recovered).count(), 1);
        let lost = decoded.stats.failed as usize;
        assert!(lost <= 9, "the ring and one more: {lost}");
        assert_eq!(decoded.told.pictures.len(), FRAMES - lost);
        whole_pictures_are_right(&decoded);
        let last = decoded.told.pictures.last().expect("pictures");
        assert_eq!((last.token, last.damage), (FRAMES as u64 - 1, Damage::None));

        // The primary context stays broken, because a buffer that the device may still write to is never
        // freed: the next session has one of its own.
        let decoded = with("latency-us=0:0:0", &Options::default());
        assert_eq!(
            (decoded.error, sums(&decoded.told)),
            (None, stream().1.clone())
        );

        // A device that does not come back is told once, after a new decoder and a new context.
        let decoded = with("device-lost=5:1000", &Options::default());
        assert!(
            matches!(decoded.error, Some(Error::DeviceLost(_))),
            "{:?}",
            decoded.error
        );
        assert_eq!(mistakes(), 0);
    });
}

#[test]
fn a_context_that_breaks_is_replaced() {
    in_child(|| {
        let log = Log::default();
        let (input, expected) = stream();
        let session = open(input.codec, &Options::default(), &log).expect("a session");
        let mut packetizer = Packetizer::new(input.codec);
        for (token, data) in input.packets.iter().enumerate() {
            if token == 30 {
                lose_every_context();
            }
            let packet = packetizer.packet(FrameToken(token as u64), Box::new(data.clone()), false);
            session.submit(packet).expect("it goes on");
        }
        session.drain().expect("it goes on");
        let stopped = session.stop();
        assert!(stopped.clean);
        log.with(|told| {
            let by = told.events.iter().filter_map(|event| match event {
                Event::Recovered { by, .. } => Some(*by),
                Event::Stalled { .. } => None,
            });
            assert_eq!(by.collect::<Vec<_>>(), [Recovery::Context]);
            let last = told.pictures.last().expect("pictures");
            assert_eq!(last.token, FRAMES as u64 - 1);
            assert_eq!(last.md5(), expected[FRAMES - 1]);
        });
    });
}

/// `CUDA_ERROR_ILLEGAL_ADDRESS` in the context that is in use.
fn lose_every_context() {
    type Lose = extern "C" fn(usize, u32) -> u32;
    let driver = nvcuvid_sys::Driver::load().expect("libcuda");
    let device = driver.device(0).expect("a device");
    let context =
        nvcuvid_sys::Context::retain_primary(driver, device).expect("the primary context");
    let lose = driver
        .extension("standin_cuda_lose_context")
        .expect("the stand-in");
    // SAFETY: the stand-in exports it with this type.
    let lose: Lose = unsafe { std::mem::transmute(lose) };
    lose(context.raw() as usize, 700);
}

#[test]
fn a_picture_that_is_late_is_given_up_and_its_surface_is_left_alone() {
    in_child(|| {
        let options = Options {
            decode_timeout: Duration::from_millis(200),
            ..Options::default()
        };
        let decoded = with("sync-hang=9", &options);
        assert_eq!(decoded.error, None);
        let timed_out = |(token, reason): &(u64, DropReason)| {
            matches!(reason, DropReason::TimedOut(_)).then_some(*token)
        };
        let late: Vec<u64> = decoded.told.dropped.iter().filter_map(timed_out).collect();
        assert!(late.contains(&9), "{:?}", decoded.told.dropped);
        whole_pictures_are_right(&decoded);
        let last = decoded.told.pictures.last().expect("pictures");
        assert_eq!(last.token, FRAMES as u64 - 1);
        assert_nothing_is_left();
    });
}

#[test]
fn a_size_that_nobody_tells_ends_in_order() {
    in_child(|| {
        let other = h264("128x64", 20, "bframes=0");
        let joined = standin_world::streams::join(&[&h264("96x64", 20, "bframes=0"), &other]);
        set_faults(Some("silent-resize"));
        let decoded = decode(&file(&joined.bytes()), &Options::default());
        set_faults(None);
        assert_eq!(decoded.error, None);
        assert_eq!(decoded.stats.submitted, 40, "{:?}", decoded.stats);
        assert_nothing_is_left();
    });
}

#[test]
fn random_faults_lose_no_account() {
    // Each seed is a script of its own. The long form: NVDECRING_SEEDS=500.
    let seeds = std::env::var("NVDECRING_SEEDS").ok();
    let seeds: u64 = seeds.and_then(|text| text.parse().ok()).unwrap_or(40);
    in_child(|| {
        for seed in 0..seeds {
            let options = Options {
                ring_depth: 1 + (seed % 16) as u8,
                output_surfaces: 1 + (seed % 2) as u8,
                delay: (seed % 5) as u8,
                ..Options::default()
            };
            let decoded = with(&format!("seed={seed}"), &options);
            assert_eq!(decoded.error, None, "seed {seed}");
            assert_eq!(
                tokens(&decoded),
                (0..FRAMES as u64).collect::<Vec<_>>(),
                "seed {seed}"
            );
            whole_pictures_are_right(&decoded);
        }
        assert_nothing_is_left();
    });
}

/// A call that hangs: stopping returns while it is still held, and says which call it is.
#[track_caller]
fn hangs(faults: &str, stuck: Call) {
    in_child_of(
        || World::new().set("NVSTANDIN_FAULTS", faults),
        || {
            let log = Log::default();
            let options = Options {
                decode_timeout: Duration::from_millis(100),
                wedge_timeout: Duration::from_millis(300),
                ..Options::default()
            };
            let input = &stream().0;
            let session = short_stop(&options, &log);
            let mut packetizer = Packetizer::new(input.codec);
            let mut error = None;
            for (token, data) in input.packets.iter().enumerate() {
                let packet =
                    packetizer.packet(FrameToken(token as u64), Box::new(data.clone()), false);
                if let Err(refused) = session.submit(packet) {
                    error = Some(refused);
                    break;
                }
            }
            let error = error.or_else(|| session.drain().err());
            if stuck != Call::Destroy {
                let Some(Error::Wedged { call, .. }) = error else {
                    panic!("{error:?}");
                };
                assert_eq!(call, stuck);
            }
            let stopped = session.stop();
            assert!(!stopped.clean, "{stopped:?}");
            // Beside it another call may be under way, such as one that waits for it.
            assert!(stopped.stuck.contains(&stuck), "{:?}", stopped.stuck);
        },
    );
}

fn short_stop(options: &Options, log: &Log) -> nvdecring_core::Session<common::Api> {
    use nvdecring_core::{Config, Identity, Session, SystemClock};
    use nvdecring_gpu::{Codec, ContextSource, HostMemory, Nvdec, Settings, gate};
    let config = Config {
        decode_timeout: options.decode_timeout,
        wedge_timeout: options.wedge_timeout,
        open_timeout: Duration::from_millis(500),
        ..Config::new(Identity::Decoded)
    };
    let settings = Settings {
        codec: Codec::H264,
        display_delay: 0,
        context: ContextSource::Device(0),
    };
    Session::open(
        std::sync::Arc::new(Nvdec::new(settings, HostMemory::default())),
        gate(0),
        config,
        Box::new(log.clone()),
        Box::new(|_| {}),
        std::sync::Arc::new(SystemClock::default()),
    )
    .expect("a session")
}

#[test]
fn a_decode_that_hangs_is_abandoned() {
    hangs("decode-hang=11", Call::Decode);
}

#[test]
fn a_map_that_hangs_is_abandoned() {
    hangs("map-hang=11", Call::Map);
}

#[test]
fn a_decoder_whose_creation_hangs_is_abandoned() {
    hangs("init-hang", Call::CreateDecoder);
}

#[test]
fn a_decoder_whose_end_hangs_is_abandoned() {
    hangs("close-hang", Call::Destroy);
}
