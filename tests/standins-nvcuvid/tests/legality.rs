// SPDX-License-Identifier: MPL-2.0

//! What a client does wrong is an error or wrong pixels, and is counted.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::client::{Client, Options, Player};
use common::clips::Clip;
use common::{context, export, live, mistakes, nvcuvid, on_standins, overwritten};
use nvcuvid_sys::*;

/// What memory holds that is not written yet.
const POISON: u8 = 0xdb;

/// A player that has decoded and shown a few pictures and mapped none.
fn shown() -> Player {
    let clip = Clip::named("test-25fps.h264");
    let options = Options {
        maps: false,
        ..Options::default()
    };
    let mut player = Player::new(clip.codec, options);
    for data in clip.units.iter().take(30) {
        let packet = Packet {
            data,
            end_of_picture: true,
            ..Packet::default()
        };
        player.send(&packet).expect("it is parsed");
    }
    assert!(!player.client.shown.is_empty());
    player
}

fn last(client: &Client) -> u32 {
    client.shown.last().expect("one was shown").index
}

fn decoder(client: &Client) -> &Arc<Decoder> {
    client.decoder.as_ref().expect("there was a sequence")
}

fn map(client: &Client, index: u32) -> Result<Arc<MappedSurface>, Error> {
    decoder(client).map(index, FieldSelection::PROGRESSIVE, &client.stream)
}

static GATE_IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Lets the client's stream wait: what is behind this in it has not begun.
fn close_gate(client: &Client) {
    extern "C" fn waits(_: usize) {
        while !GATE_IS_OPEN.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    type Launch = extern "C" fn(usize, extern "C" fn(usize), usize) -> CuResult;
    let launch: Launch = common::cuda_export("cuLaunchHostFunc");
    let stream = client.stream.raw().expose_provenance();
    let launched = || launch(stream, waits, 0).check("cuLaunchHostFunc");
    client
        .context
        .with(launched)
        .expect("it is put into the stream");
}

fn open_gate() {
    GATE_IS_OPEN.store(true, Ordering::Relaxed);
}

/// Counts the mistakes of `body`.
fn counted(body: impl FnOnce()) -> usize {
    let before = mistakes();
    body();
    mistakes() - before
}

/// A raw decoder of 64x64 in the current context.
fn raw_decoder(change: impl FnOnce(&mut CUVIDDECODECREATEINFO)) -> Result<usize, CuResult> {
    let mut info = CUVIDDECODECREATEINFO {
        ulWidth: 64,
        ulHeight: 64,
        ulNumDecodeSurfaces: 4,
        CodecType: cudaVideoCodec_H264,
        ChromaFormat: cudaVideoChromaFormat_420,
        OutputFormat: cudaVideoSurfaceFormat_NV12,
        ulTargetWidth: 64,
        ulTargetHeight: 64,
        ulNumOutputSurfaces: 1,
        ..Default::default()
    };
    change(&mut info);
    let create: unsafe extern "C" fn(*mut usize, *mut CUVIDDECODECREATEINFO) -> CuResult =
        export("cuvidCreateDecoder");
    let mut handle = 0;
    // SAFETY: both pointers are locals'.
    match unsafe { create(&mut handle, &mut info) } {
        CuResult::SUCCESS => Ok(handle),
        code => Err(code),
    }
}

fn destroy(handle: usize) -> CuResult {
    let destroy: extern "C" fn(usize) -> CuResult = export("cuvidDestroyDecoder");
    destroy(handle)
}

#[test]
fn every_call_of_a_decoder_needs_its_context() {
    on_standins(|| {
        assert_eq!(raw_decoder(|_| ()), Err(CuResult::INVALID_CONTEXT));
        assert_eq!(mistakes(), 1);
        let context = context();
        let handle = context
            .with(|| Ok::<_, CuError>(raw_decoder(|_| ())))
            .expect("it is current");
        let handle = handle.expect("a decoder");
        type Reconfigure =
            unsafe extern "C" fn(usize, *mut CUVIDRECONFIGUREDECODERINFO) -> CuResult;
        type Status = unsafe extern "C" fn(usize, i32, *mut CUVIDGETDECODESTATUS) -> CuResult;
        type Map =
            unsafe extern "C" fn(usize, i32, *mut u64, *mut u32, *mut CUVIDPROCPARAMS) -> CuResult;
        type Decode = unsafe extern "C" fn(usize, *mut CUVIDPICPARAMS) -> CuResult;
        let expected = CuResult::INVALID_CONTEXT;
        let calls: [(&str, &dyn Fn() -> CuResult); 5] = [
            ("decode", &|| {
                // SAFETY: the pointer is a local's, here and below.
                unsafe {
                    export::<Decode>("cuvidDecodePicture")(handle, &mut CUVIDPICPARAMS::default())
                }
            }),
            ("status", &|| {
                // SAFETY: as above.
                unsafe {
                    export::<Status>("cuvidGetDecodeStatus")(
                        handle,
                        0,
                        &mut CUVIDGETDECODESTATUS::default(),
                    )
                }
            }),
            ("map", &|| {
                let (mut address, mut pitch) = (0, 0);
                // SAFETY: as above.
                unsafe {
                    export::<Map>("cuvidMapVideoFrame64")(
                        handle,
                        0,
                        &mut address,
                        &mut pitch,
                        &mut CUVIDPROCPARAMS::default(),
                    )
                }
            }),
            ("reconfigure", &|| {
                // SAFETY: as above.
                unsafe {
                    export::<Reconfigure>("cuvidReconfigureDecoder")(
                        handle,
                        &mut CUVIDRECONFIGUREDECODERINFO::default(),
                    )
                }
            }),
            ("destroy", &|| destroy(handle)),
        ];
        for (name, call) in calls {
            let wrong = counted(|| assert_eq!(call(), expected, "{name}"));
            assert_eq!(wrong, 1, "{name}");
        }
        let answer = context.with(|| destroy(handle).check("cuvidDestroyDecoder"));
        assert_eq!(answer, Ok(()));
        drop(context);
        assert_eq!(live(), (0, 0));
    });
}

#[test]
fn a_handle_that_is_gone_is_known_as_such() {
    on_standins(|| {
        let context = context();
        let run = || {
            let handle = raw_decoder(|_| ()).expect("a decoder");
            assert_eq!(destroy(handle), CuResult::SUCCESS);
            assert_eq!(destroy(handle), CuResult::INVALID_HANDLE);
            Ok::<_, CuError>(())
        };
        assert_eq!(counted(|| context.with(run).expect("it is current")), 1);
    });
}

#[test]
fn unmapping_twice_is_a_mistake() {
    on_standins(|| {
        let player = shown();
        let client = &player.client;
        let surface = map(client, last(client)).expect("it maps");
        let address = surface.address();
        surface.unmap().expect("once");
        let again: extern "C" fn(usize, u64) -> CuResult = export("cuvidUnmapVideoFrame64");
        // The owner does not tell its handle: the numbers are few.
        let answers: Vec<CuResult> = (0x5800_0010..0x5800_0100)
            .step_by(0x10)
            .map(|handle| {
                client
                    .context
                    .with(|| Ok::<_, CuError>(again(handle, address)))
                    .expect("current")
            })
            .collect();
        assert!(answers.contains(&CuResult::INVALID_VALUE), "{answers:?}");
        assert!(!answers.contains(&CuResult::SUCCESS));
    });
}

#[test]
fn a_surface_that_is_unmapped_under_its_copy_is_a_mistake() {
    on_standins(|| {
        let player = shown();
        let client = &player.client;
        close_gate(client);
        let surface = map(client, last(client)).expect("it maps");
        let layout = surface.layout();
        let planes = layout.packed(64, 64).expect("a part");
        let buffer = PinnedBuffer::new(&client.context, 64 * 96).expect("a buffer");
        let event = Event::new(&client.context).expect("an event");
        let address = surface.address();
        let copy = surface
            .copy_to_host(buffer, &planes, event)
            .expect("it starts");
        let unmap: extern "C" fn(usize, u64) -> CuResult = export("cuvidUnmapVideoFrame64");
        let wrong = counted(|| {
            for handle in (0x5800_0010..0x5800_0100).step_by(0x10) {
                // Handles of others are counted as mistakes of their own kind.
                let answer = client
                    .context
                    .with(|| Ok::<_, CuError>(unmap(handle, address)));
                if answer.expect("current") == CuResult::SUCCESS {
                    return;
                }
            }
            panic!("it was mapped");
        });
        assert!(wrong >= 1);
        open_gate();
        copy.wait().expect("the copy ends");
        std::mem::forget(surface);
    });
}

#[test]
fn a_mapped_surface_is_poison_until_its_stream_has_come_to_it() {
    on_standins(|| {
        let player = shown();
        let client = &player.client;
        close_gate(client);
        let surface = map(client, last(client)).expect("a map does not wait for the stream");
        type Copy = extern "C" fn(*mut u8, usize, usize) -> CuResult;
        let copy: Copy = common::cuda_export("cuMemcpyDtoH_v2");
        let read = || {
            let mut bytes = vec![0; 64];
            let address = surface.address() as usize;
            let copied = || copy(bytes.as_mut_ptr(), address, 64).check("cuMemcpyDtoH");
            client.context.with(copied).expect("it is mapped");
            bytes
        };
        assert_eq!(
            read(),
            [POISON; 64],
            "the default stream does not wait for another"
        );
        open_gate();
        client.stream.synchronize().expect("it ends");
        assert_ne!(read(), [POISON; 64]);
        let address = surface.address() as usize;
        surface.unmap().expect("it was mapped");
        let mut bytes = vec![0; 64];
        let copied = || copy(bytes.as_mut_ptr(), address, 64).check("cuMemcpyDtoH");
        client
            .context
            .with(copied)
            .expect("the memory is the decoder's still");
        assert_eq!(bytes, [POISON; 64], "and poison again");
    });
}

#[test]
fn decoding_into_a_mapped_surface_is_a_mistake() {
    on_standins(|| {
        let clip = Clip::named("test-25fps.h264");
        let mut player = shown();
        let surface = map(&player.client, last(&player.client)).expect("it maps");
        let before = mistakes();
        for data in clip.units.iter().skip(30).take(60) {
            let packet = Packet {
                data,
                end_of_picture: true,
                ..Packet::default()
            };
            player.send(&packet).expect("it is parsed");
        }
        let wrong = mistakes() - before;
        assert!(wrong >= 1, "the surface comes round");
        surface.unmap().expect("it was mapped");
    });
}

#[test]
fn a_picture_that_is_decoded_over_before_it_is_mapped_is_counted_and_lost() {
    on_standins(|| {
        let clip = Clip::named("test-25fps.h264");
        let right = Player::play(&clip, Options::default(), true).pictures();
        assert_eq!(overwritten(), 0);
        // Without surfaces to spare, pictures that wait are lost.
        let options = Options {
            maps: false,
            ..Options::default()
        };
        let mut player = Player::new(clip.codec, options);
        let mut late = Vec::new();
        for data in clip.units.iter().take(60) {
            let packet = Packet {
                data,
                end_of_picture: true,
                ..Packet::default()
            };
            player.send(&packet).expect("it is parsed");
        }
        let client = &player.client;
        for shown in client.shown.iter().take(3) {
            let surface = map(client, shown.index).expect("it maps");
            let planes = surface
                .layout()
                .packed(client.size.0, client.size.1)
                .expect("the crop");
            let buffer = PinnedBuffer::new(&client.context, right[0].len()).expect("a buffer");
            let event = Event::new(&client.context).expect("an event");
            let copied = surface
                .copy_to_host(buffer, &planes, event)
                .expect("it starts")
                .wait();
            late.push(copied.expect("it ends").target.as_slice().to_vec());
        }
        assert!(late.iter().zip(&right).all(|(late, right)| late != right));
        assert!(overwritten() > 20, "{}", overwritten());
        assert_eq!(mistakes(), 0, "a client may drop pictures");
    });
}

#[test]
fn reconfiguring_and_destroying_while_a_surface_is_mapped_are_mistakes() {
    on_standins(|| {
        let context = context();
        let clip = Clip::named("64x64-I.h264");
        let mut player = Player::new(
            clip.codec,
            Options {
                maps: false,
                ..Options::default()
            },
        );
        player.send_units(&clip, true);
        let client = &player.client;
        let surface = map(client, last(client)).expect("it maps");
        type Reconfigure =
            unsafe extern "C" fn(usize, *mut CUVIDRECONFIGUREDECODERINFO) -> CuResult;
        let reconfigure: Reconfigure = export("cuvidReconfigureDecoder");
        let mut info = CUVIDRECONFIGUREDECODERINFO {
            ulWidth: 64,
            ulHeight: 64,
            ulTargetWidth: 64,
            ulTargetHeight: 64,
            ulNumDecodeSurfaces: 8,
            ..Default::default()
        };
        let mut answers = Vec::new();
        for handle in (0x5800_0010..0x5800_0060).step_by(0x10) {
            // SAFETY: the pointer is a local's.
            let answer =
                context.with(|| Ok::<_, CuError>(unsafe { reconfigure(handle, &mut info) }));
            answers.push(answer.expect("current"));
        }
        assert!(answers.contains(&CuResult::ILLEGAL_STATE), "{answers:?}");
        let wrong = counted(|| {
            for handle in (0x5800_0010..0x5800_0060).step_by(0x10) {
                let answer = context.with(|| Ok::<_, CuError>(destroy(handle)));
                if answer.expect("current") == CuResult::SUCCESS {
                    return;
                }
            }
            panic!("there was a decoder");
        });
        assert!(wrong >= 1);
        std::mem::forget(surface);
        std::mem::forget(player);
    });
}

#[test]
fn parameters_that_are_not_the_parsers_are_refused() {
    on_standins(|| {
        let context = context();
        let run = || {
            let handle = raw_decoder(|_| ()).expect("a decoder");
            type Decode = unsafe extern "C" fn(usize, *mut CUVIDPICPARAMS) -> CuResult;
            let decode: Decode = export("cuvidDecodePicture");
            // SAFETY: the pointer is a local's.
            let answer = unsafe { decode(handle, &mut CUVIDPICPARAMS::default()) };
            assert_eq!(answer, CuResult::NOT_SUPPORTED);
            assert_eq!(destroy(handle), CuResult::SUCCESS);
            Ok::<_, CuError>(())
        };
        context.with(run).expect("it is current");
    });
}

#[test]
fn a_lock_is_taken_again_by_its_holder_and_stands_for_a_current_context() {
    on_standins(|| {
        let context = context();
        let create: extern "C" fn(*mut usize, usize) -> CuResult = export("cuvidCtxLockCreate");
        let acquire: extern "C" fn(usize, u32) -> CuResult = export("cuvidCtxLock");
        let release: extern "C" fn(usize, u32) -> CuResult = export("cuvidCtxUnlock");
        let end: extern "C" fn(usize) -> CuResult = export("cuvidCtxLockDestroy");
        let mut lock = 0;
        let ok = CuResult::SUCCESS;
        assert_eq!(create(&mut lock, context.raw().expose_provenance()), ok);
        assert_eq!((acquire(lock, 0), acquire(lock, 0)), (ok, ok));
        // Another thread waits until both are given back.
        let (done, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                assert_eq!(acquire(lock, 0), ok);
                done.send(()).expect("the test waits for it");
                assert_eq!(release(lock, 0), ok);
            });
            assert_eq!(release(lock, 0), ok);
            assert!(waits.try_recv().is_err());
            assert_eq!(release(lock, 0), ok);
            waits.recv().expect("it has the lock now");
        });
        assert_eq!(mistakes(), 0);
        assert_eq!(release(lock, 0), CuResult::NOT_PERMITTED);
        assert_eq!(mistakes(), 1);
        let with_lock = |info: &mut CUVIDDECODECREATEINFO| {
            info.vidLock = std::ptr::with_exposed_provenance_mut(lock);
        };
        let handle = raw_decoder(with_lock).expect("no context is current, and none is needed");
        assert_eq!(destroy(handle), ok);
        assert_eq!(end(lock), ok);
        assert_eq!(mistakes(), 1);
        drop(context);
        assert_eq!(live(), (0, 0));
    });
}

#[test]
fn parameters_out_of_range_are_refused() {
    on_standins(|| {
        let context = context();
        let refused = |change: fn(&mut CUVIDDECODECREATEINFO)| {
            let made = context
                .with(|| Ok::<_, CuError>(raw_decoder(change)))
                .expect("current");
            made.expect_err("it is out of range")
        };
        let value = CuResult::INVALID_VALUE;
        assert_eq!(refused(|info| info.ulNumDecodeSurfaces = 33), value);
        assert_eq!(refused(|info| info.ulNumDecodeSurfaces = 0), value);
        assert_eq!(refused(|info| info.ulNumOutputSurfaces = 65), value);
        assert_eq!(refused(|info| info.ulNumOutputSurfaces = 0), value);
        assert_eq!(refused(|info| info.ulWidth = 5000), value);
        assert_eq!(refused(|info| info.ulTargetHeight = 0), value);
        assert_eq!(refused(|info| info.display_area.right = 65), value);
        assert_eq!(
            refused(|info| info.OutputFormat = cudaVideoSurfaceFormat_P016),
            value
        );
        let unsupported = CuResult::NOT_SUPPORTED;
        assert_eq!(
            refused(|info| info.ChromaFormat = cudaVideoChromaFormat_444),
            unsupported
        );
        assert_eq!(refused(|info| info.bitDepthMinus8 = 2), unsupported);
        assert_eq!(
            refused(|info| info.CodecType = cudaVideoCodec_VC1),
            unsupported
        );
        assert_eq!(mistakes(), 0);
    });
}

#[test]
fn a_client_that_keeps_too_few_surfaces_is_told() {
    struct Keeps(Client);
    impl ParserClient for Keeps {
        fn sequence(&mut self, format: &CUVIDEOFORMAT) -> Result<SequenceAnswer, CallbackFailed> {
            self.0.sequence(format)?;
            Ok(SequenceAnswer::Keep)
        }
        fn decode(&mut self, picture: &PictureParams) -> Result<(), CallbackFailed> {
            self.0.decode(picture)
        }
        fn display(&mut self, display: &CUVIDPARSERDISPINFO) -> Result<(), CallbackFailed> {
            self.0.display(display)
        }
    }
    on_standins(|| {
        let clip = Clip::named("test-25fps.h264");
        let Player { mut parser, client } = Player::new(clip.codec, Options::default());
        let mut keeps = Keeps(client);
        let packet = Packet {
            data: &clip.units[0],
            end_of_picture: true,
            ..Packet::default()
        };
        // The parser was made with the dummy 1 that the bindings pass.
        let _ = parser.parse(&packet, &mut keeps);
        assert_eq!(mistakes(), 1);
    });
}

#[test]
fn in_strict_runs_a_mistake_with_this_library_ends_the_process() {
    const PROOF: &str = "STANDIN_STRICT_PROOF";
    on_standins(|| {
        if std::env::var_os(PROOF).is_some() {
            let _ = raw_decoder(|_| ());
            return;
        }
        let output =
            std::process::Command::new(std::env::current_exe().expect("the test's own path"))
                .args(std::env::args().skip(1))
                .env(PROOF, "1")
                .env("NVSTANDIN_STRICT", "1")
                .output()
                .expect("it runs");
        assert!(!output.status.success());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("cuvidCreateDecoder without a current context"),
            "{errors}"
        );
    });
}

#[test]
fn caps_say_what_is_decoded() {
    on_standins(|| {
        let context = context();
        let query = |codec, depth| {
            DecoderCaps::query(&context, nvcuvid(), codec, cudaVideoChromaFormat_420, depth)
                .expect("an answer")
        };
        for (codec, depth, supported) in [
            (cudaVideoCodec_H264, 8, true),
            (cudaVideoCodec_H264, 10, false),
            (cudaVideoCodec_HEVC, 10, true),
            (cudaVideoCodec_VP9, 10, true),
            (cudaVideoCodec_VP8, 8, true),
            (cudaVideoCodec_MPEG2, 8, true),
            (cudaVideoCodec_AV1, 10, true),
            (cudaVideoCodec_VC1, 8, false),
        ] {
            assert_eq!(
                query(codec, depth).supported,
                supported,
                "codec {codec}, {depth} bits"
            );
        }
    });
}

#[test]
fn every_name_that_ffmpegs_loader_insists_on_is_there() {
    let header = std::fs::read_to_string("/usr/include/ffnvcodec/dynlink_loader.h")
        .expect("NVIDIA's headers (Debian: apt install libffmpeg-nvenc-dev)");
    let names: Vec<&str> = header
        .lines()
        .filter(|line| line.trim_start().starts_with("LOAD_SYMBOL"))
        .filter_map(|line| line.split('"').nth(1))
        .filter(|name| name.starts_with("cuvid"))
        .map(|name| &*String::leak(name.to_owned()))
        .collect();
    assert!(names.len() > 20, "only {} names were found", names.len());
    on_standins(|| {
        let missing: Vec<_> = names
            .iter()
            .filter(|name| nvcuvid().extension(name).is_none())
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    });
}
