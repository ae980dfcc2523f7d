// SPDX-License-Identifier: MPL-2.0

//! What careless clients do: a status answers, nothing crashes.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

mod client;

use std::ptr::{null_mut, without_provenance_mut};

use client::stage::in_child;
use client::{
    Client, Feed, Options, interface, live_surfaces, map, mfx_mut, release, runtime, synchronize,
    unmap,
};
use onevpl_sys::*;
use test_streams::named;

const AVC: u32 = MFX_CODEC_AVC;

fn bytes() -> Vec<u8> {
    named("64x64-I-P-B-P.h264").bytes()
}

fn opened() -> (Client, Vec<u8>, mfxVideoParam) {
    let client = Client::direct("");
    let mut data = bytes();
    let mut par = client
        .header(AVC, &mut Client::bitstream(&mut data, false))
        .expect("the stream has a header");
    assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
    (client, data, par)
}

#[test]
fn a_handle_that_was_closed_or_never_was_is_invalid_everywhere() {
    let f = runtime().session;
    let client = Client::direct("");
    let closed = client.session;
    drop(client);
    for handle in [
        closed,
        null_mut(),
        without_provenance_mut(3),
        without_provenance_mut(usize::MAX),
    ] {
        let mut par = mfxVideoParam::default();
        let (mut surface, mut sync) = (null_mut(), null_mut());
        // SAFETY: handles are numbers to the runtime; every other pointer is valid.
        let statuses = unsafe {
            [
                (f.MFXClose)(handle),
                (f.MFXVideoDECODE_Close)(handle),
                (f.MFXVideoDECODE_Init)(handle, &mut par),
                (f.MFXVideoDECODE_Reset)(handle, &mut par),
                (f.MFXVideoDECODE_GetVideoParam)(handle, &mut par),
                (f.MFXVideoDECODE_Query)(handle, null_mut(), &mut par),
                (f.MFXVideoCORE_SyncOperation)(handle, without_provenance_mut(1), 0),
                (f.MFXMemory_GetSurfaceForDecode)(handle, &mut surface),
                (f.MFXVideoDECODE_DecodeFrameAsync)(
                    handle,
                    null_mut(),
                    null_mut(),
                    &mut surface,
                    &mut sync,
                ),
            ]
        };
        assert!(
            statuses
                .iter()
                .all(|status| *status == MfxStatus::ERR_INVALID_HANDLE),
            "{statuses:?}"
        );
    }
}

#[test]
fn every_null_pointer_is_refused() {
    let (client, mut data, mut par) = opened();
    let (f, s) = (client.f, client.session);
    let mut bs = Client::bitstream(&mut data, false);
    let (mut surface, mut sync) = (null_mut(), null_mut());
    let mut request = mfxFrameAllocRequest::default();
    // SAFETY: null is what is tested; every other pointer is valid.
    let statuses = unsafe {
        [
            (f.MFXVideoDECODE_DecodeHeader)(s, null_mut(), &mut par),
            (f.MFXVideoDECODE_DecodeHeader)(s, &mut bs, null_mut()),
            (f.MFXVideoDECODE_Query)(s, null_mut(), null_mut()),
            (f.MFXVideoDECODE_QueryIOSurf)(s, null_mut(), &mut request),
            (f.MFXVideoDECODE_QueryIOSurf)(s, &mut par, null_mut()),
            (f.MFXVideoDECODE_Init)(s, null_mut()),
            (f.MFXVideoDECODE_Reset)(s, null_mut()),
            (f.MFXVideoDECODE_GetVideoParam)(s, null_mut()),
            (f.MFXVideoDECODE_GetDecodeStat)(s, null_mut()),
            (f.MFXVideoDECODE_DecodeFrameAsync)(s, &mut bs, null_mut(), null_mut(), &mut sync),
            (f.MFXVideoDECODE_DecodeFrameAsync)(s, &mut bs, null_mut(), &mut surface, null_mut()),
            (f.MFXMemory_GetSurfaceForDecode)(s, null_mut()),
            (f.MFXQueryIMPL)(s, null_mut()),
            (f.MFXQueryVersion)(s, null_mut()),
            (f.MFXVideoCORE_QueryPlatform)(s, null_mut()),
            (f.MFXVideoCORE_GetHandle)(s, MFX_HANDLE_VA_DISPLAY, null_mut()),
        ]
    };
    assert!(
        statuses
            .iter()
            .all(|status| *status == MfxStatus::ERR_NULL_PTR),
        "{statuses:?}"
    );
}

#[test]
fn a_bitstream_that_contradicts_itself_is_refused() {
    let (client, mut data, _) = opened();
    let length = data.len() as u32;
    let mut bs = Client::bitstream(&mut data, false);
    bs.DataOffset = length;
    assert_eq!(
        client.call(Some(&mut bs)).0,
        MfxStatus::ERR_UNDEFINED_BEHAVIOR
    );
    bs.DataOffset = u32::MAX;
    assert_eq!(
        client.call(Some(&mut bs)).0,
        MfxStatus::ERR_UNDEFINED_BEHAVIOR
    );
    let mut bs = Client::bitstream(&mut data, false);
    bs.Data = null_mut();
    assert_eq!(client.call(Some(&mut bs)).0, MfxStatus::ERR_NULL_PTR);
    let mut nothing = mfxBitstream::default();
    assert_eq!(client.call(Some(&mut nothing)).0, MfxStatus::ERR_MORE_DATA);
}

#[test]
fn calls_in_the_wrong_state_are_refused() {
    let client = Client::direct("");
    let mut data = bytes();
    let mut bs = Client::bitstream(&mut data, false);
    assert_eq!(client.call(Some(&mut bs)).0, MfxStatus::ERR_NOT_INITIALIZED);
    assert_eq!(client.call(None).0, MfxStatus::ERR_NOT_INITIALIZED);
    assert_eq!(client.close_decoder(), MfxStatus::ERR_NOT_INITIALIZED);
    let mut par = client
        .header(AVC, &mut bs)
        .expect("the stream has a header");
    // SAFETY: both are valid.
    let reset = unsafe { (client.f.MFXVideoDECODE_Reset)(client.session, &mut par) };
    assert_eq!(reset, MfxStatus::ERR_NOT_INITIALIZED);
    assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
    assert_eq!(client.init(&mut par), MfxStatus::ERR_UNDEFINED_BEHAVIOR);
    assert_eq!(client.close_decoder(), MfxStatus::ERR_NONE);
    assert_eq!(client.close_decoder(), MfxStatus::ERR_NOT_INITIALIZED);
    assert_eq!(client.call(Some(&mut bs)).0, MfxStatus::ERR_NOT_INITIALIZED);
    assert_eq!(
        client.init(&mut par),
        MfxStatus::ERR_NONE,
        "a closed decoder can be opened again"
    );
}

#[test]
fn parameters_that_cannot_be_are_zeroed_by_query_and_refused_by_init() {
    let client = Client::direct("");
    let mut data = bytes();
    let good = client
        .header(AVC, &mut Client::bitstream(&mut data, false))
        .expect("the stream has a header");
    type Change = fn(&mut mfxVideoParam);
    let changes: [Change; 8] = [
        |par| par.IOPattern = MFX_IOPATTERN_OUT_VIDEO_MEMORY as u16,
        |par| par.Protected = 1,
        |par| mfx_mut(par).CodecId = 0x3132_3334,
        |par| mfx_mut(par).FrameInfo.FourCC = MFX_FOURCC_P010,
        |par| mfx_mut(par).FrameInfo.FourCC = 7,
        |par| mfx_mut(par).FrameInfo.ChromaFormat = MFX_CHROMAFORMAT_YUV444 as u16,
        |par| {
            mfx_mut(par)
                .FrameInfo
                .__bindgen_anon_1
                .__bindgen_anon_1
                .Width = 63
        },
        |par| {
            mfx_mut(par)
                .FrameInfo
                .__bindgen_anon_1
                .__bindgen_anon_1
                .CropH = 65_535
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut par = good;
        change(&mut par);
        assert_eq!(
            client.init(&mut par),
            MfxStatus::ERR_INVALID_VIDEO_PARAM,
            "change {number}"
        );
        // One structure for input and output, as careless clients pass it.
        let pointer = &raw mut par;
        // SAFETY: the structure is valid; the runtime reads it before it writes it.
        let status = unsafe { (client.f.MFXVideoDECODE_Query)(client.session, pointer, pointer) };
        assert_eq!(status, MfxStatus::ERR_UNSUPPORTED, "change {number}");
    }
    let mut par = good;
    par.AsyncDepth = 100;
    assert_eq!(
        client.init(&mut par),
        MfxStatus::WRN_INCOMPATIBLE_VIDEO_PARAM
    );
    assert_eq!(client.video_param().AsyncDepth, 16);
}

#[test]
fn a_surface_that_is_released_twice_or_was_never_given_out_is_an_error() {
    let (client, mut data, _) = opened();
    let mut bs = Client::bitstream(&mut data, false);
    let (_, surface, _) = client.call(Some(&mut bs));
    let table = interface(surface);
    let add = table.AddRef.expect("complete");
    let count = table.GetRefCounter.expect("complete");
    let mut counter = 0;
    // SAFETY: the surface is held.
    unsafe {
        assert_eq!(add(surface), MfxStatus::ERR_NONE);
        assert_eq!(count(surface, &mut counter), MfxStatus::ERR_NONE);
        assert_eq!(count(surface, null_mut()), MfxStatus::ERR_NULL_PTR);
    }
    assert_eq!(counter, 2);
    assert_eq!(
        unmap(surface),
        MfxStatus::ERR_UNSUPPORTED,
        "it is not mapped"
    );
    assert_eq!(map(surface, 0), MfxStatus::ERR_UNSUPPORTED);
    assert_eq!(map(surface, 0x80), MfxStatus::ERR_UNSUPPORTED);
    assert_eq!(map(surface, MFX_MAP_READ), MfxStatus::ERR_NONE);
    assert_eq!(map(surface, MFX_MAP_READ), MfxStatus::ERR_NONE);
    assert_eq!(map(surface, MFX_MAP_WRITE), MfxStatus::ERR_LOCK_MEMORY);
    assert_eq!(unmap(surface), MfxStatus::ERR_NONE);
    assert_eq!(unmap(surface), MfxStatus::ERR_NONE);
    assert_eq!(map(surface, MFX_MAP_READ_WRITE), MfxStatus::ERR_NONE);
    assert_eq!(map(surface, MFX_MAP_READ), MfxStatus::ERR_LOCK_MEMORY);
    assert_eq!(unmap(surface), MfxStatus::ERR_NONE);
    let (native, device) = (
        table.GetNativeHandle.expect("complete"),
        table.GetDeviceHandle.expect("complete"),
    );
    let (mut handle, mut kind) = (null_mut(), 0);
    // SAFETY: the surface is held and the rest is valid.
    unsafe {
        assert_eq!(
            native(surface, &mut handle, &mut kind),
            MfxStatus::ERR_UNSUPPORTED
        );
        assert_eq!(
            device(surface, &mut handle, &mut kind),
            MfxStatus::ERR_UNSUPPORTED
        );
    }
    assert_eq!(release(surface), MfxStatus::ERR_NONE);
    assert_eq!(release(surface), MfxStatus::ERR_NONE);
    // The memory is the runtime's until the decoder is closed.
    assert_eq!(release(surface), MfxStatus::ERR_UNDEFINED_BEHAVIOR);
    assert_eq!(
        map(surface, MFX_MAP_READ),
        MfxStatus::ERR_UNDEFINED_BEHAVIOR
    );
    let mut stranger = mfxFrameSurface1::default();
    let release = table.Release.expect("complete");
    // SAFETY: pointers are looked up and not followed.
    unsafe {
        assert_eq!(release(&mut stranger), MfxStatus::ERR_INVALID_HANDLE);
        assert_eq!(release(null_mut()), MfxStatus::ERR_NULL_PTR);
        assert_eq!(
            release(without_provenance_mut(9)),
            MfxStatus::ERR_INVALID_HANDLE
        );
    }
}

#[test]
fn a_surface_outlives_its_decoder_its_session_and_the_library() {
    let name = "a_surface_outlives_its_decoder_its_session_and_the_library";
    in_child(name, "", || {
        let client = Client::dispatched(AVC).expect("the runtime is found");
        let mut data = bytes();
        let mut par = client
            .header(AVC, &mut Client::bitstream(&mut data, false))
            .expect("the stream has a header");
        assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
        let (_, surface, _) = client.call(Some(&mut Client::bitstream(&mut data, false)));
        drop(client); // closes and unloads
        assert_eq!(synchronize(surface, 1000), MfxStatus::ERR_NONE);
        assert_eq!(map(surface, MFX_MAP_READ), MfxStatus::ERR_NONE);
        // SAFETY: the surface is held and mapped.
        let shown = unsafe { &*surface };
        let md5 = format!(
            "{:x}",
            md5::compute(client::pixels(&shown.Info, &shown.Data))
        );
        assert_eq!(md5, named("64x64-I-P-B-P.h264").expected().list()[0]);
        assert_eq!(unmap(surface), MfxStatus::ERR_NONE);
        assert_eq!(release(surface), MfxStatus::ERR_NONE);
    });
}

#[test]
fn feeding_goes_on_after_a_drain_and_after_a_reset() {
    let expected = named("64x64-I-P-B-P.h264").expected();
    for with_reset in [false, true] {
        let (client, mut data, mut par) = opened();
        for round in 0..3 {
            let mut bs = Client::bitstream(&mut data, false);
            let mut pictures = 0;
            loop {
                let whole = bs.DataLength > 0;
                let (status, surface, _) = client.call(if whole { Some(&mut bs) } else { None });
                if !surface.is_null() {
                    pictures += 1;
                    release(surface);
                } else if !whole {
                    assert_eq!(status, MfxStatus::ERR_MORE_DATA);
                    break;
                }
            }
            assert_eq!(
                pictures,
                expected.len(),
                "round {round}, with reset: {with_reset}"
            );
            if with_reset {
                // SAFETY: both are valid.
                let status = unsafe { (client.f.MFXVideoDECODE_Reset)(client.session, &mut par) };
                assert_eq!(status, MfxStatus::ERR_NONE);
            }
        }
    }
}

#[test]
fn a_reset_forgets_the_sequence_header_and_skips_to_the_next() {
    let (client, mut data, mut par) = opened();
    let mut bs = Client::bitstream(&mut data, false);
    let (_, surface, _) = client.call(Some(&mut bs));
    release(surface);
    // SAFETY: both are valid.
    unsafe { (client.f.MFXVideoDECODE_Reset)(client.session, &mut par) };
    // What is left has pictures and no header.
    assert_eq!(client.call(Some(&mut bs)).0, MfxStatus::ERR_MORE_DATA);
    assert_eq!(client.call(None).0, MfxStatus::ERR_MORE_DATA);
    let mut stat = mfxDecodeStat::default();
    // SAFETY: both are valid.
    unsafe { (client.f.MFXVideoDECODE_GetDecodeStat)(client.session, &mut stat) };
    assert!(stat.NumSkippedFrame >= 1 && stat.NumFrame == 1, "{stat:?}");
}

#[test]
fn two_threads_in_one_session_are_told_apart() {
    let client = Client::direct("");
    let stream = named("test-25fps.h264");
    let mut data = stream.bytes();
    let mut par = client
        .header(AVC, &mut Client::bitstream(&mut data, false))
        .expect("a header");
    assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
    let (functions, handle) = (client.f, client.session.expose_provenance());
    let pictures: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mut data = data.clone();
                scope.spawn(move || {
                    let mut bs = Client::bitstream(&mut data, false);
                    let mut pictures = 0;
                    for _ in 0..400 {
                        let (mut surface, mut sync) = (null_mut(), null_mut());
                        let session = std::ptr::with_exposed_provenance_mut(handle);
                        // SAFETY: every pointer is valid.
                        let status = unsafe {
                            (functions.MFXVideoDECODE_DecodeFrameAsync)(
                                session,
                                &mut bs,
                                null_mut(),
                                &mut surface,
                                &mut sync,
                            )
                        };
                        assert!(
                            !status.is_error() || status == MfxStatus::ERR_MORE_DATA,
                            "{status}"
                        );
                        if !surface.is_null() {
                            pictures += 1;
                            assert_eq!(release(surface), MfxStatus::ERR_NONE);
                        }
                    }
                    pictures
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .sum()
    });
    assert!(pictures > 100, "{pictures}");
}

#[test]
fn allocation_hints_limit_the_pool_and_a_wait_ends_with_a_release() {
    let client = Client::direct("");
    let mut data = named("test-25fps.h264").bytes();
    let mut par = client
        .header(AVC, &mut Client::bitstream(&mut data, false))
        .expect("a header");
    let mut hints = mfxExtAllocationHints {
        Header: mfxExtBuffer {
            BufferId: MFX_EXTBUFF_ALLOCATION_HINTS,
            BufferSz: size_of::<mfxExtAllocationHints>() as u32,
        },
        AllocationPolicy: MFX_ALLOCATION_LIMITED,
        NumberToPreAllocate: 1,
        DeltaToAllocateOnTheFly: 1,
        Wait: 10,
        ..Default::default()
    };
    let mut list = [(&raw mut hints.Header)];
    par.ExtParam = list.as_mut_ptr();
    par.NumExtParam = 1;
    assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
    let mut bs = Client::bitstream(&mut data, false);
    let held = [client.call(Some(&mut bs)).1, client.call(Some(&mut bs)).1];
    assert_eq!(
        client.call(Some(&mut bs)).0,
        MfxStatus::WRN_ALLOC_TIMEOUT_EXPIRED
    );
    release(held[0]);
    let (status, surface, _) = client.call(Some(&mut bs));
    assert_eq!(status, MfxStatus::ERR_NONE);
    release(surface);
    release(held[1]);
}

#[test]
fn every_function_of_the_interface_is_exported() {
    let runtime = runtime();
    // What the dispatcher looks up in a runtime of API 2.1 and later, read from the headers.
    let mut names = Vec::new();
    for header in ["mfxvideo.h", "mfxsession.h", "mfximplcaps.h", "mfxmemory.h"] {
        let path = format!("/usr/include/vpl/{header}");
        // Those of Debian 12 have what is in it elsewhere.
        if header == "mfxmemory.h" && !std::fs::exists(&path).expect("a folder") {
            continue;
        }
        let text = std::fs::read_to_string(path)
            .expect("the headers are installed (Debian: apt install libvpl-dev)");
        for line in text.lines().filter(|line| line.contains("MFX_CDECL MFX")) {
            let name = line
                .split("MFX_CDECL ")
                .nth(1)
                .and_then(|rest| rest.split('(').next());
            names.push(name.expect("a declaration has a name").to_owned());
        }
    }
    assert!(names.len() >= 54, "{} declarations", names.len());
    for name in names {
        assert!(runtime.extension(&name).is_some(), "{name} is not exported");
    }
}

#[test]
fn what_a_decoding_runtime_does_not_do_says_so() {
    let client = Client::direct("");
    let runtime = runtime();
    for name in [
        "MFXVideoENCODE_Close",
        "MFXVideoVPP_Close",
        "MFXVideoDECODE_VPP_Close",
        "MFXDisjoinSession",
    ] {
        let address = runtime.extension(name).expect("it is exported");
        // SAFETY: these take a session and nothing else.
        let call: unsafe extern "C" fn(mfxSession) -> MfxStatus =
            unsafe { std::mem::transmute(address) };
        // SAFETY: the session is open.
        let status = unsafe { call(client.session) };
        assert_eq!(status, MfxStatus::ERR_NOT_IMPLEMENTED, "{name}");
        // SAFETY: handles are looked up.
        let status = unsafe { call(null_mut()) };
        assert_eq!(status, MfxStatus::ERR_INVALID_HANDLE, "{name}");
    }
}

#[test]
fn nothing_is_left_of_a_client_that_gives_everything_back() {
    in_child(
        "nothing_is_left_of_a_client_that_gives_everything_back",
        "",
        || {
            let runtime = runtime();
            let feed = Feed::pieces(AVC, &bytes(), 1 << 20);
            let (frames, _) = Client::direct("").decode(&feed, Options::default());
            assert_eq!(frames.len(), 3);
            assert_eq!(live_surfaces(&runtime), 0);
            let (client, mut data, _) = opened();
            let (_, surface, _) = client.call(Some(&mut Client::bitstream(&mut data, false)));
            assert_eq!(live_surfaces(&runtime), 1);
            drop(client);
            assert_eq!(
                live_surfaces(&runtime),
                1,
                "the session is gone, the surface is not"
            );
            release(surface);
            assert_eq!(live_surfaces(&runtime), 0);
        },
    );
}
