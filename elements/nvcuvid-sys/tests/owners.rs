// SPDX-License-Identifier: MPL-2.0

//! The owners, seen from the libraries' side: which call comes when, and with which context.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use common::World;
use nvcuvid_sys::*;

fn stubs() -> World {
    World::empty().cuda(&[]).nvcuvid(&[])
}

fn context() -> Arc<Context> {
    let driver = Driver::load().expect("the stub starts");
    let device = driver.device(0).expect("it has a device");
    Context::retain_primary(driver, device).expect("it has a context")
}

fn nvcuvid() -> &'static Nvcuvid {
    Nvcuvid::load().expect("the stub is complete")
}

fn config() -> DecoderConfig {
    let format = CUVIDEOFORMAT {
        codec: cudaVideoCodec_H264,
        coded_width: 64,
        coded_height: 32,
        chroma_format: cudaVideoChromaFormat_420,
        ..Default::default()
    };
    DecoderConfig::for_format(&format, 4, 2)
}

fn decoder(context: &Arc<Context>) -> Arc<Decoder> {
    Decoder::new(context, nvcuvid(), &config()).expect("the stub makes one")
}

fn map(
    decoder: &Arc<Decoder>,
    stream: &Arc<Stream>,
    index: u32,
) -> Result<Arc<MappedSurface>, Error> {
    decoder.map(index, FieldSelection::PROGRESSIVE, stream)
}

/// What a copy takes: a mapped picture, its planes, a buffer of `size` bytes and an event.
struct Parts {
    context: Arc<Context>,
    decoder: Arc<Decoder>,
    stream: Arc<Stream>,
    surface: Arc<MappedSurface>,
    planes: Vec<PlaneCopy>,
    buffer: PinnedBuffer,
    event: Event,
}

fn parts(index: u32, size: usize) -> Parts {
    let context = context();
    let decoder = decoder(&context);
    let stream = Stream::new(&context).expect("a stream");
    let surface = map(&decoder, &stream, index).expect("it maps");
    let planes = surface.layout().packed(64, 32).expect("the whole surface");
    let buffer = PinnedBuffer::new(&context, size).expect("a buffer");
    let event = Event::new(&context).expect("an event");
    Parts {
        context,
        decoder,
        stream,
        surface,
        planes,
        buffer,
        event,
    }
}

/// How many contexts are on this thread's stack.
fn depth() -> i32 {
    let driver = Driver::load().expect("it was loaded before");
    let address = driver.extension("stub_depth").expect("the stub has it");
    // SAFETY: the stub's function has this signature.
    let depth: extern "C" fn() -> i32 = unsafe { std::mem::transmute(address) };
    depth()
}

/// The functions that were called, in order, without those that only push a context.
fn calls(world: &World) -> Vec<String> {
    let log = world.log();
    let names = log.iter().filter_map(|line| line.split(' ').next());
    names
        .filter(|name| *name != "cuCtxPushCurrent")
        .map(str::to_owned)
        .collect()
}

/// Every call but those that make or release contexts needs one.
fn assert_every_call_had_the_context(world: &World) {
    let log = world.log();
    assert!(!log.is_empty());
    for line in log {
        let mut words = line.split(' ');
        let (name, current) = (
            words.next().expect("a name"),
            words.next().expect("a context"),
        );
        let free = name.starts_with("cuCtx") || name.starts_with("cuDevice");
        assert!(free || current == "0xc0", "{line}");
    }
}

#[test]
fn owners_go_in_the_order_of_what_they_need_whatever_is_dropped_first() {
    let child = World::child(stubs, || {
        let parts = parts(1, 64 * 48);
        let copy = parts
            .surface
            .copy_to_host(parts.buffer, &parts.planes, parts.event)
            .expect("the copy starts");
        drop((parts.context, parts.decoder, parts.stream));
        assert_eq!(parts.surface.unmap(), Ok(()));
        // The copy is all that is left, and holds the rest.
        drop(copy);
        assert_eq!(depth(), 0);
    });
    let Some((world, _)) = child else { return };
    assert_every_call_had_the_context(&world);
    assert_eq!(
        calls(&world),
        [
            "cuDevicePrimaryCtxRetain",
            "cuvidCreateDecoder",
            "cuStreamCreate",
            "cuvidMapVideoFrame",
            "cuMemHostAlloc",
            "cuEventCreate",
            "cuMemcpy2DAsync",
            "cuMemcpy2DAsync",
            "cuEventRecord",
            "cuEventSynchronize",
            "cuvidUnmapVideoFrame",
            "cuvidDestroyDecoder",
            "cuStreamDestroy",
            "cuEventDestroy",
            "cuMemFreeHost",
            "cuDevicePrimaryCtxRelease",
        ]
    );
}

#[test]
fn a_copy_is_looked_at_without_waiting_and_brings_the_planes() {
    let child = World::child(stubs, || {
        let mut parts = parts(2, 10_000);
        assert!(parts.buffer.as_slice().iter().all(|byte| *byte == 0));
        parts.buffer.as_mut_slice()[9_999] = 7;
        assert_eq!(parts.decoder.mapped(), 1);
        let layout = parts.surface.layout();
        assert_eq!((layout.width, layout.height, layout.pitch), (64, 32, 128));
        let planes = layout.packed(63, 31).expect("a crop");
        let copy = parts
            .surface
            .copy_to_host(parts.buffer, &planes, parts.event)
            .expect("it starts");
        assert_eq!(copy.is_complete(), Ok(false));
        assert_eq!(copy.is_complete(), Ok(false));
        assert_eq!(copy.is_complete(), Ok(true));
        let copied = copy.wait().expect("it is done");
        assert_eq!(parts.decoder.mapped(), 1);
        assert_eq!(parts.surface.unmap(), Ok(()));
        assert_eq!(parts.decoder.mapped(), 0);

        // The stub's rows hold their number and 64 times the picture's.
        let (bytes, chroma) = copied.target.as_slice().split_at(31 * 63);
        let is = |row: &[u8], value: usize| row.iter().all(|byte| usize::from(*byte) == value);
        assert!(
            bytes
                .chunks(63)
                .enumerate()
                .all(|(y, row)| is(row, y + 128))
        );
        let chroma = chroma[..16 * 64].chunks(64).enumerate();
        assert!(chroma.clone().all(|(y, row)| is(row, 32 + y + 128)));
        assert_eq!(copied.target.as_slice()[9_999], 7);
        assert_eq!(depth(), 0);
    });
    if let Some((world, _)) = child {
        assert_every_call_had_the_context(&world);
    }
}

#[test]
fn a_plane_outside_its_buffer_is_refused_and_nothing_is_copied() {
    let child = World::child(stubs, || {
        let parts = parts(0, 64 * 48 - 1);
        let refused = parts
            .surface
            .copy_to_host(parts.buffer, &parts.planes, parts.event)
            .expect_err("it does not fit");
        assert_eq!(
            refused.to_string(),
            "plane 1 does not fit: it ends outside the target"
        );
        assert!(refused.target.is_some() && refused.event.is_some());
    });
    if let Some((world, _)) = child {
        assert!(!calls(&world).contains(&"cuMemcpy2DAsync".to_owned()));
    }
}

#[test]
fn a_copy_that_fails_halfway_is_waited_for_before_its_target_comes_back() {
    let world = || stubs().set("STUB_FAIL", "cuMemcpy2DAsync:2:1");
    let child = World::child(world, || {
        let parts = parts(0, 64 * 48);
        let failed = parts
            .surface
            .copy_to_host(parts.buffer, &parts.planes, parts.event)
            .expect_err("the second fails");
        assert_eq!(failed.error.code(), Some(CuResult::INVALID_VALUE));
        assert!(failed.target.is_some());
    });
    let Some((world, _)) = child else { return };
    let calls = calls(&world);
    let at = |name: &str| calls.iter().position(|call| call == name);
    assert!(
        at("cuMemcpy2DAsync") < at("cuStreamSynchronize"),
        "{calls:?}"
    );
    assert!(at("cuStreamSynchronize") < at("cuMemFreeHost"), "{calls:?}");
}

#[test]
fn a_target_that_the_device_may_still_write_to_is_never_freed() {
    for failure in ["cuEventSynchronize:1:719", "cuEventSynchronize:1:999"] {
        let world = || stubs().set("STUB_FAIL", failure);
        let child = World::child(world, || {
            let parts = parts(0, 64 * 48);
            let copy = parts
                .surface
                .copy_to_host(parts.buffer, &parts.planes, parts.event)
                .expect("it starts");
            if std::env::var("STUB_FAIL")
                .expect("it is set")
                .ends_with("999")
            {
                return drop(copy);
            }
            let error = copy.wait().expect_err("the device is lost");
            assert_eq!(
                error.to_string(),
                "cuEventSynchronize: CUDA_ERROR_LAUNCH_FAILED (719)"
            );
            assert!(Error::from(error).is_sticky());
        });
        let Some((world, _)) = child else { return };
        let calls = calls(&world);
        assert!(!calls.contains(&"cuMemFreeHost".to_owned()), "{calls:?}");
        assert!(
            calls.contains(&"cuvidUnmapVideoFrame".to_owned()),
            "{calls:?}"
        );
    }
}

#[test]
fn a_context_is_popped_after_a_failure_and_a_panic_and_none_is_left() {
    let world = || stubs().set("STUB_FAIL", "cuvidCreateDecoder:1:2");
    let child = World::child(world, || {
        let context = context();
        let failed = Decoder::new(&context, nvcuvid(), &config()).expect_err("no memory");
        assert_eq!(
            failed.to_string(),
            "cuvidCreateDecoder: CUDA_ERROR_OUT_OF_MEMORY (2)"
        );
        assert_eq!(depth(), 0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _ = context.with(|| -> Result<(), CuError> {
                assert_eq!(depth(), 1);
                let nested: Result<i32, CuError> = context.with(|| Ok(depth()));
                assert_eq!(nested, Ok(2));
                panic!("on purpose")
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(depth(), 0);
        let driver = context.driver();
        let device = driver.device(0).expect("it has one");
        let own = Context::create(driver, device).expect("a context of its own");
        assert!(!own.is_same(&context));
        assert_eq!(depth(), 0);
        drop(own);
        drop(context);
    });
    let Some((world, _)) = child else { return };
    let calls = calls(&world);
    let end = &calls[calls.len() - 3..];
    assert_eq!(
        end,
        ["cuCtxCreate", "cuCtxDestroy", "cuDevicePrimaryCtxRelease"]
    );
}

#[test]
fn a_context_that_cannot_be_made_current_stops_the_call() {
    let world = || stubs().set("STUB_FAIL", "cuCtxPushCurrent:1:201");
    let child = World::child(world, || {
        let context = context();
        let error = Stream::new(&context).expect_err("no context");
        assert_eq!(
            error.to_string(),
            "cuCtxPushCurrent: CUDA_ERROR_INVALID_CONTEXT (201)"
        );
        assert_eq!(depth(), 0);
    });
    if let Some((world, _)) = child {
        assert!(!calls(&world).contains(&"cuStreamCreate".to_owned()));
    }
}

#[test]
fn a_borrowed_context_is_never_released_and_keeps_its_owner() {
    let child = World::child(stubs, || {
        let driver = Driver::load().expect("the stub starts");
        let owner = Arc::new(());
        let raw = std::ptr::without_provenance_mut(0xc0);
        // SAFETY: the stub takes any handle for a context.
        let context = unsafe { Context::borrow(driver, raw, Box::new(owner.clone())) };
        let event = Event::new(&context).expect("an event");
        drop(context);
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(event);
        assert_eq!(Arc::strong_count(&owner), 1);
    });
    if let Some((world, _)) = child {
        assert_eq!(calls(&world), ["cuEventCreate", "cuEventDestroy"]);
    }
}

#[test]
fn a_decoder_is_not_reconfigured_under_a_mapped_surface() {
    let child = World::child(stubs, || {
        let context = context();
        let decoder = decoder(&context);
        let stream = Stream::new(&context).expect("a stream");
        let next = DecoderConfig {
            decode_surfaces: 9,
            ..config()
        };
        assert!(matches!(
            map(&decoder, &stream, 8),
            Err(Error::PictureIndex {
                index: 8,
                surfaces: 4
            })
        ));
        let surface = map(&decoder, &stream, 0).expect("it maps");
        assert_eq!(decoder.reconfigure(&next), Err(Error::SurfacesMapped(1)));
        assert_eq!(surface.unmap(), Ok(()));
        assert_eq!(decoder.reconfigure(&next), Ok(()));
        assert_eq!(decoder.config().decode_surfaces, 9);
        drop(map(&decoder, &stream, 8).expect("the surface exists now"));
        let larger = DecoderConfig {
            coded_width: 65,
            max_width: 65,
            ..config()
        };
        let refused = decoder
            .reconfigure(&larger)
            .expect_err("beyond the maximum");
        assert!(refused.to_string().contains("cannot become"), "{refused}");
    });
    if let Some((world, _)) = child {
        let calls = calls(&world);
        let count = |name: &str| calls.iter().filter(|call| *call == name).count();
        assert_eq!(count("cuvidReconfigureDecoder"), 1);
        assert_eq!(count("cuvidMapVideoFrame"), 2);
        assert_eq!(count("cuvidUnmapVideoFrame"), 2);
    }
}

#[test]
fn a_map_that_fails_leaves_nothing_to_unmap() {
    let world = || stubs().set("STUB_FAIL", "cuvidMapVideoFrame:1:205");
    let child = World::child(world, || {
        let context = context();
        let decoder = decoder(&context);
        let stream = Stream::new(&context).expect("a stream");
        let error = map(&decoder, &stream, 0).expect_err("it fails once");
        assert_eq!(error.code(), Some(CuResult::MAP_FAILED));
        assert_eq!(decoder.mapped(), 0);
    });
    if let Some((world, _)) = child {
        assert!(!calls(&world).contains(&"cuvidUnmapVideoFrame".to_owned()));
    }
}

#[test]
fn a_status_has_a_name_and_caps_are_asked_for() {
    let child = World::child(stubs, || {
        let context = context();
        let many = DecoderConfig {
            decode_surfaces: 32,
            ..config()
        };
        let decoder = Decoder::new(&context, nvcuvid(), &many).expect("the stub makes one");
        let status = |index| decoder.status(index).expect("the stub says the index");
        assert_eq!(status(1), DecodeStatus::InProgress);
        assert_eq!(status(2), DecodeStatus::Success);
        assert_eq!(status(8), DecodeStatus::Error);
        assert_eq!(status(9), DecodeStatus::ErrorConcealed);
        assert_eq!(status(5), DecodeStatus::Reserved(5));
        let caps = |codec| {
            DecoderCaps::query(&context, nvcuvid(), codec, cudaVideoChromaFormat_420, 8)
                .expect("the stub answers")
        };
        assert_eq!(caps(cudaVideoCodec_H264).engines, 7);
        assert!(!caps(cudaVideoCodec_AV1).supported);
    });
    drop(child);
}

#[test]
fn a_function_that_the_driver_lacks_is_told_when_it_is_asked_for() {
    let world = || World::empty().cuda(&[]).nvcuvid(&["WITHOUT_OPTIONAL"]);
    let child = World::child(world, || {
        let decoder = decoder(&context());
        let missing = decoder.status(0).expect_err("there is no such function");
        assert_eq!(missing, Error::Unsupported("cuvidGetDecodeStatus"));
        let missing = decoder
            .reconfigure(&config())
            .expect_err("there is no such function");
        assert_eq!(missing, Error::Unsupported("cuvidReconfigureDecoder"));
    });
    drop(child);
}
