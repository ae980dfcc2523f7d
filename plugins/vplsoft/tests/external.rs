// SPDX-License-Identifier: MPL-2.0

//! Surfaces that the client brings: with memory, or behind the client's allocator.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

mod client;

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;

use client::{Client, mfx, pixels, size};
use onevpl_sys::*;
use test_streams::named;

/// The client's memory, by its ids. `Lock` and `Unlock` count themselves.
#[derive(Default)]
struct Memory {
    blocks: HashMap<usize, Vec<u8>>,
    locks: usize,
    unlocks: usize,
    refuses: bool,
}

const PITCH: usize = 384;
const ROWS: usize = 256;

fn memory<'a>(this: mfxHDL) -> &'a Mutex<Memory> {
    // SAFETY: every test passes a mutex that outlives its session.
    unsafe { &*this.cast::<Mutex<Memory>>() }
}

fn set_planes(data: &mut mfxFrameData, start: *mut u8) {
    data.PitchHigh = 0;
    data.__bindgen_anon_2.PitchLow = PITCH as u16;
    data.__bindgen_anon_3.Y = start;
    data.__bindgen_anon_4.UV = if start.is_null() {
        start
    } else {
        start.wrapping_add(PITCH * ROWS)
    };
}

unsafe extern "C" fn lock(this: mfxHDL, id: mfxMemId, data: *mut mfxFrameData) -> MfxStatus {
    let mut memory = memory(this).lock().expect("no test panics in here");
    memory.locks += 1;
    if memory.refuses {
        return MfxStatus::ERR_LOCK_MEMORY;
    }
    let block = memory
        .blocks
        .get_mut(&id.addr())
        .expect("the id is the test's own");
    // SAFETY: the runtime passes a structure of its own.
    set_planes(unsafe { &mut *data }, block.as_mut_ptr());
    MfxStatus::ERR_NONE
}

unsafe extern "C" fn unlock(this: mfxHDL, _id: mfxMemId, data: *mut mfxFrameData) -> MfxStatus {
    memory(this).lock().expect("no test panics in here").unlocks += 1;
    // SAFETY: as in `lock`.
    set_planes(unsafe { &mut *data }, null_mut());
    MfxStatus::ERR_NONE
}

unsafe extern "C" fn alloc(
    _: mfxHDL,
    _: *mut mfxFrameAllocRequest,
    _: *mut mfxFrameAllocResponse,
) -> MfxStatus {
    MfxStatus::ERR_UNSUPPORTED
}
unsafe extern "C" fn get_handle(_: mfxHDL, _: mfxMemId, _: *mut mfxHDL) -> MfxStatus {
    MfxStatus::ERR_UNSUPPORTED
}
unsafe extern "C" fn free(_: mfxHDL, _: *mut mfxFrameAllocResponse) -> MfxStatus {
    MfxStatus::ERR_NONE
}

fn allocator(memory: &Mutex<Memory>) -> mfxFrameAllocator {
    mfxFrameAllocator {
        pthis: std::ptr::from_ref(memory).cast::<c_void>().cast_mut(),
        Alloc: Some(alloc),
        Lock: Some(lock),
        Unlock: Some(unlock),
        GetHDL: Some(get_handle),
        Free: Some(free),
        ..Default::default()
    }
}

fn surface(info: mfxFrameInfo) -> Box<mfxFrameSurface1> {
    Box::new(mfxFrameSurface1 {
        Info: info,
        ..Default::default()
    })
}

fn call(
    client: &Client,
    bs: Option<&mut mfxBitstream>,
    work: *mut mfxFrameSurface1,
) -> (MfxStatus, *mut mfxFrameSurface1, mfxSyncPoint) {
    let (mut out, mut sync) = (null_mut(), null_mut());
    let bs = bs.map_or(null_mut(), std::ptr::from_mut);
    // SAFETY: every pointer is valid or null where null is allowed.
    let status = unsafe {
        (client.f.MFXVideoDECODE_DecodeFrameAsync)(client.session, bs, work, &mut out, &mut sync)
    };
    (status, out, sync)
}

fn opened(
    faults: &str,
    allocator: Option<&mut mfxFrameAllocator>,
) -> (Client, Vec<u8>, mfxFrameInfo) {
    let client = Client::direct(faults);
    if let Some(allocator) = allocator {
        // SAFETY: both are valid.
        let status =
            unsafe { (client.f.MFXVideoCORE_SetFrameAllocator)(client.session, allocator) };
        assert_eq!(status, MfxStatus::ERR_NONE);
    }
    let mut data = named("test-25fps.h264").bytes();
    let mut par = client
        .header(MFX_CODEC_AVC, &mut Client::bitstream(&mut data, false))
        .expect("the stream has a header");
    let mut request = mfxFrameAllocRequest::default();
    // SAFETY: all are valid.
    let status =
        unsafe { (client.f.MFXVideoDECODE_QueryIOSurf)(client.session, &mut par, &mut request) };
    assert_eq!(status, MfxStatus::ERR_NONE);
    assert!(request.NumFrameMin >= 1 && request.NumFrameSuggested >= request.NumFrameMin);
    assert_eq!(
        u32::from(request.Type) & MFX_MEMTYPE_SYSTEM_MEMORY,
        MFX_MEMTYPE_SYSTEM_MEMORY
    );
    assert_eq!(client.init(&mut par), MfxStatus::ERR_NONE);
    let info = mfx(&par).FrameInfo;
    assert_eq!(size(&info).Width, 320);
    (client, data, info)
}

#[test]
fn memory_behind_an_allocator_is_locked_for_each_picture_and_given_back() {
    let store = Mutex::new(Memory::default());
    let mut table = allocator(&store);
    let (client, mut data, info) = opened("", Some(&mut table));
    let mut surfaces: Vec<_> = (1..=4_usize)
        .map(|id| {
            let block = vec![0; PITCH * ROWS * 3 / 2];
            store.lock().expect("no panic").blocks.insert(id, block);
            let mut surface = surface(info);
            surface.Data.MemId = std::ptr::without_provenance_mut(id);
            surface
        })
        .collect();
    let mut bs = Client::bitstream(&mut data, false);
    let mut sums = Vec::new();
    let mut draining = false;
    for turn in 0.. {
        let work = &raw mut *surfaces[turn % 4];
        let (status, out, sync) = call(&client, if draining { None } else { Some(&mut bs) }, work);
        if out.is_null() {
            assert_eq!(status, MfxStatus::ERR_MORE_DATA);
            if draining {
                break;
            }
            draining = true;
            continue;
        }
        assert_eq!(out, work, "the surface that was passed comes back");
        assert_eq!(client.sync(sync, 60_000), MfxStatus::ERR_NONE);
        // SAFETY: the surface is the test's own.
        let shown = unsafe { &*out };
        assert_eq!(shown.Data.Locked, 0);
        let mut mapped = shown.Data;
        let mut store = store.lock().expect("no panic");
        let block = store
            .blocks
            .get_mut(&shown.Data.MemId.addr())
            .expect("the id is known");
        set_planes(&mut mapped, block.as_mut_ptr());
        sums.push(format!("{:x}", md5::compute(pixels(&shown.Info, &mapped))));
    }
    assert_eq!(sums, named("test-25fps.h264").expected().list());
    let store = store.lock().expect("no panic");
    assert_eq!((store.locks, store.unlocks), (250, 250));
}

#[test]
fn an_allocator_that_refuses_costs_no_picture() {
    let store = Mutex::new(Memory::default());
    let mut table = allocator(&store);
    let (client, mut data, info) = opened("", Some(&mut table));
    store
        .lock()
        .expect("no panic")
        .blocks
        .insert(1, vec![0; PITCH * ROWS * 3 / 2]);
    let mut work = surface(info);
    work.Data.MemId = std::ptr::without_provenance_mut(1);
    let work = &raw mut *work;
    let mut bs = Client::bitstream(&mut data, false);
    store.lock().expect("no panic").refuses = true;
    assert_eq!(
        call(&client, Some(&mut bs), work).0,
        MfxStatus::ERR_LOCK_MEMORY
    );
    store.lock().expect("no panic").refuses = false;
    assert_eq!(call(&client, Some(&mut bs), work).0, MfxStatus::ERR_NONE);
    // SAFETY: the surface is the test's own.
    let order = unsafe { (*work).Data.FrameOrder };
    assert_eq!(order, 0, "it is the first picture still");
}

#[test]
fn surfaces_that_cannot_take_the_picture_are_refused_and_cost_none() {
    let (client, mut data, info) = opened("", None);
    let mut bs = Client::bitstream(&mut data, false);
    let mut block = vec![0; PITCH * ROWS * 3 / 2];

    let mut empty = surface(info);
    assert_eq!(
        call(&client, Some(&mut bs), &mut *empty).0,
        MfxStatus::ERR_UNDEFINED_BEHAVIOR
    );

    let mut narrow = surface(info);
    set_planes(&mut narrow.Data, block.as_mut_ptr());
    narrow.Data.__bindgen_anon_2.PitchLow = 100;
    assert_eq!(
        call(&client, Some(&mut bs), &mut *narrow).0,
        MfxStatus::ERR_UNDEFINED_BEHAVIOR
    );

    let mut small = surface(info);
    small.Info.__bindgen_anon_1.__bindgen_anon_1.Width = 160;
    set_planes(&mut small.Data, block.as_mut_ptr());
    assert_eq!(
        call(&client, Some(&mut bs), &mut *small).0,
        MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM
    );

    let mut other = surface(info);
    other.Info.FourCC = MFX_FOURCC_P010;
    set_planes(&mut other.Data, block.as_mut_ptr());
    assert_eq!(
        call(&client, Some(&mut bs), &mut *other).0,
        MfxStatus::ERR_INVALID_VIDEO_PARAM
    );

    let mut locked = surface(info);
    set_planes(&mut locked.Data, block.as_mut_ptr());
    locked.Data.Locked = 1;
    assert_eq!(
        call(&client, Some(&mut bs), &mut *locked).0,
        MfxStatus::ERR_MORE_SURFACE
    );

    let mut good = surface(info);
    set_planes(&mut good.Data, block.as_mut_ptr());
    let (status, out, _) = call(&client, Some(&mut bs), &mut *good);
    assert_eq!(status, MfxStatus::ERR_NONE);
    // SAFETY: the surface is the test's own.
    let shown = unsafe { &*out };
    let sum = format!("{:x}", md5::compute(pixels(&shown.Info, &shown.Data)));
    assert_eq!(sum, named("test-25fps.h264").expected().list()[0]);
    // From now on the client brings surfaces: without one there is none.
    assert_eq!(
        call(&client, Some(&mut bs), null_mut()).0,
        MfxStatus::ERR_MORE_SURFACE
    );
}

#[test]
fn a_surface_is_locked_while_its_operation_runs() {
    let (client, mut data, info) = opened("latency-us=300000:300000:300000", None);
    let mut bs = Client::bitstream(&mut data, false);
    let mut block = vec![0; PITCH * ROWS * 3 / 2];
    let mut work = surface(info);
    set_planes(&mut work.Data, block.as_mut_ptr());
    let work = &raw mut *work;
    let (status, out, sync) = call(&client, Some(&mut bs), work);
    assert_eq!(status, MfxStatus::ERR_NONE);
    // SAFETY: the surface is the test's own.
    let locked = || unsafe { (*out).Data.Locked };
    assert_eq!(locked(), 1);
    assert_eq!(
        call(&client, Some(&mut bs), work).0,
        MfxStatus::ERR_MORE_SURFACE
    );
    assert_eq!(client.sync(sync, 60_000), MfxStatus::ERR_NONE);
    assert_eq!(locked(), 0);
    assert_eq!(call(&client, Some(&mut bs), work).0, MfxStatus::ERR_NONE);
    assert_eq!(client.close_decoder(), MfxStatus::ERR_NONE);
    assert_eq!(locked(), 0, "closing gives it back");
}

/// As on hardware, where no operation is complete when its call returns: a client that looks for an unlocked
/// surface before each call never gets one that holds a picture it has not seen.
#[test]
fn a_surface_is_locked_until_the_next_call_at_least() {
    let (client, mut data, info) = opened("", None);
    let mut bs = Client::bitstream(&mut data, false);
    let mut blocks = [0, 1].map(|_| vec![0; PITCH * ROWS * 3 / 2]);
    let [mut first, mut second] = [surface(info), surface(info)];
    for (surface, block) in [&mut first, &mut second].into_iter().zip(&mut blocks) {
        set_planes(&mut surface.Data, block.as_mut_ptr());
    }
    let (first, second) = (&raw mut *first, &raw mut *second);
    // SAFETY: the surfaces are the test's own.
    let locked = || unsafe { ((*first).Data.Locked, (*second).Data.Locked) };
    assert_eq!(call(&client, Some(&mut bs), first).1, first);
    assert_eq!(locked(), (1, 0));
    assert_eq!(call(&client, Some(&mut bs), second).1, second);
    assert_eq!(locked(), (0, 1));
    assert_eq!(client.close_decoder(), MfxStatus::ERR_NONE);
    assert_eq!(locked(), (0, 0));
}

#[test]
fn a_surface_of_the_runtime_can_be_passed_as_work_surface() {
    let (client, mut data, _) = opened("", None);
    let mut bs = Client::bitstream(&mut data, false);
    let mut work = null_mut();
    // SAFETY: both are valid.
    let status = unsafe { (client.f.MFXMemory_GetSurfaceForDecode)(client.session, &mut work) };
    assert_eq!(status, MfxStatus::ERR_NONE);
    let (status, out, _) = call(&client, Some(&mut bs), work);
    assert_eq!((status, out), (MfxStatus::ERR_NONE, work));
    // One reference from each call.
    assert_eq!(client::release(out), MfxStatus::ERR_NONE);
    assert_eq!(client::release(out), MfxStatus::ERR_NONE);
    assert_eq!(client::release(out), MfxStatus::ERR_UNDEFINED_BEHAVIOR);
}

#[test]
fn an_allocator_is_whole_and_set_before_init() {
    let store = Mutex::new(Memory::default());
    let client = Client::direct("");
    let mut table = allocator(&store);
    table.Lock = None;
    // SAFETY: both are valid.
    let status = unsafe { (client.f.MFXVideoCORE_SetFrameAllocator)(client.session, &mut table) };
    assert_eq!(status, MfxStatus::ERR_INVALID_HANDLE);
    let (client, _data, _) = opened("", None);
    let mut table = allocator(&store);
    // SAFETY: as above.
    let status = unsafe { (client.f.MFXVideoCORE_SetFrameAllocator)(client.session, &mut table) };
    assert_eq!(status, MfxStatus::ERR_UNDEFINED_BEHAVIOR);
}
