// SPDX-License-Identifier: MPL-2.0

//! A oneVPL client for tests: the decode loop of the specification, every wait and retry bounded.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod stage;

use std::ffi::CString;
use std::sync::Mutex;
use std::time::Duration;

use onevpl_sys::*;

/// Calls that one stream may take; a decode loop that needs more is stuck.
const MOST_CALLS: usize = 200_000;

/// A decoded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Cropped rows: luma, then chroma, no padding.
    pub(crate) pixels: Vec<u8>,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) coded: (u16, u16),
    pub(crate) fourcc: u32,
    pub(crate) pic_struct: u16,
    pub(crate) timestamp: u64,
    pub(crate) corrupted: u16,
    pub(crate) status: MfxStatus,
}

impl Frame {
    pub(crate) fn md5(&self) -> String {
        format!("{:x}", md5::compute(&self.pixels))
    }
}

/// What is fed, one bitstream after the other, each with its own time stamp (its number).
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    pub(crate) codec: u32,
    pub(crate) parts: Vec<Vec<u8>>,
    pub(crate) whole: bool,
}

impl Feed {
    /// A byte stream in pieces of a length.
    pub(crate) fn pieces(codec: u32, bytes: &[u8], length: usize) -> Self {
        Self {
            codec,
            parts: bytes.chunks(length).map(<[u8]>::to_vec).collect(),
            whole: false,
        }
    }

    /// Whole frames.
    pub(crate) fn frames(codec: u32, frames: Vec<Vec<u8>>) -> Self {
        Self {
            codec,
            parts: frames,
            whole: true,
        }
    }
}

/// What a decode run met besides frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) calls: usize,
    pub(crate) busy: usize,
    pub(crate) busy_with_sync: usize,
    pub(crate) starved: usize,
    pub(crate) param_changed: usize,
    pub(crate) reinits: usize,
    pub(crate) in_execution: usize,
    pub(crate) errors: Vec<i32>,
    pub(crate) sync_errors: Vec<i32>,
}

/// How the client behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) async_depth: u16,
    /// Frames held before the first is given back.
    pub(crate) hold: usize,
    /// Errors after which it goes on with the next call.
    pub(crate) patient: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            async_depth: 0,
            hold: 1,
            patient: false,
        }
    }
}

/// A session.
pub(crate) struct Client {
    pub(crate) f: SessionFunctions,
    pub(crate) session: mfxSession,
    loader: Option<(LoaderFunctions, mfxLoader)>,
}

// SAFETY: a session may be used from any thread.
unsafe impl Send for Client {}

/// The runtime, opened without the dispatcher.
pub(crate) fn runtime() -> DirectRuntime {
    DirectRuntime::open(&stage::library()).expect("the runtime loads")
}

/// Surfaces that are out, by the runtime's own count.
pub(crate) fn live_surfaces(runtime: &DirectRuntime) -> u32 {
    let address = runtime
        .extension("vplsoft_live_surfaces")
        .expect("the runtime exports it");
    // SAFETY: the runtime defines it so.
    let count: extern "C" fn() -> u32 = unsafe { std::mem::transmute(address) };
    count()
}

/// Sets the faults of the sessions that are opened next.
pub(crate) fn set_faults(runtime: &DirectRuntime, text: Option<&str>) -> MfxStatus {
    let address = runtime
        .extension("vplsoft_set_faults")
        .expect("the runtime exports it");
    // SAFETY: the runtime defines it so.
    let set: unsafe extern "C" fn(*const std::ffi::c_char) -> MfxStatus =
        unsafe { std::mem::transmute(address) };
    let text = text.map(|text| CString::new(text).expect("no zero in it"));
    // SAFETY: a C string or null.
    unsafe { set(text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())) }
}

impl Client {
    /// A session of the runtime itself, with these faults.
    pub(crate) fn direct(faults: &str) -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let runtime = runtime();
        let _guard = ONE_AT_A_TIME.lock().expect("no test panics in here");
        assert_eq!(
            set_faults(&runtime, Some(faults)),
            MfxStatus::ERR_NONE,
            "{faults}"
        );
        let mut session = std::ptr::null_mut();
        // SAFETY: the arguments are valid.
        let status = unsafe {
            (runtime.runtime.MFXInitialize)(mfxInitializationParam::default(), &mut session)
        };
        assert_eq!(status, MfxStatus::ERR_NONE);
        set_faults(&runtime, None);
        Self {
            f: runtime.session,
            session,
            loader: None,
        }
    }

    /// A session by the dispatcher, of a software implementation that decodes the codec.
    pub(crate) fn dispatched(codec: u32) -> Result<Self, MfxStatus> {
        let dispatcher = dispatcher().expect("libvpl2 is installed");
        // SAFETY: no argument.
        let loader = unsafe { (dispatcher.loader.MFXLoad)() };
        for (name, value) in [
            (c"mfxImplDescription.Impl", MFX_IMPL_TYPE_SOFTWARE),
            (
                c"mfxImplDescription.mfxDecoderDescription.decoder.CodecID",
                codec,
            ),
        ] {
            // SAFETY: the loader is valid.
            let config = unsafe { (dispatcher.loader.MFXCreateConfig)(loader) };
            let variant = mfxVariant {
                Type: MFX_VARIANT_TYPE_U32,
                Data: mfxVariant_data { U32: value },
                ..Default::default()
            };
            // SAFETY: all three are valid.
            let status = unsafe {
                (dispatcher.loader.MFXSetConfigFilterProperty)(
                    config,
                    name.as_ptr().cast(),
                    variant,
                )
            };
            assert_eq!(status, MfxStatus::ERR_NONE);
        }
        let mut session = std::ptr::null_mut();
        // SAFETY: as above.
        let status = unsafe { (dispatcher.loader.MFXCreateSession)(loader, 0, &mut session) };
        if status.is_error() {
            // SAFETY: the loader is not used again.
            unsafe { (dispatcher.loader.MFXUnload)(loader) };
            return Err(status);
        }
        Ok(Self {
            f: dispatcher.session,
            session,
            loader: Some((dispatcher.loader, loader)),
        })
    }

    /// A bitstream over bytes.
    pub(crate) fn bitstream(data: &mut [u8], whole: bool) -> mfxBitstream {
        mfxBitstream {
            Data: data.as_mut_ptr(),
            DataLength: data.len() as u32,
            MaxLength: data.len() as u32,
            TimeStamp: TIMESTAMP_UNKNOWN,
            DataFlag: if whole {
                MFX_BITSTREAM_COMPLETE_FRAME as u16
            } else {
                0
            },
            ..Default::default()
        }
    }

    /// The header of a stream.
    pub(crate) fn header(
        &self,
        codec: u32,
        bs: &mut mfxBitstream,
    ) -> Result<mfxVideoParam, MfxStatus> {
        let mut par = mfxVideoParam {
            IOPattern: MFX_IOPATTERN_OUT_SYSTEM_MEMORY as u16,
            ..Default::default()
        };
        mfx_mut(&mut par).CodecId = codec;
        // SAFETY: all three are valid.
        match unsafe { (self.f.MFXVideoDECODE_DecodeHeader)(self.session, bs, &mut par) } {
            MfxStatus::ERR_NONE => Ok(par),
            status => Err(status),
        }
    }

    pub(crate) fn init(&self, par: &mut mfxVideoParam) -> MfxStatus {
        // SAFETY: both are valid.
        unsafe { (self.f.MFXVideoDECODE_Init)(self.session, par) }
    }

    pub(crate) fn close_decoder(&self) -> MfxStatus {
        // SAFETY: a session handle.
        unsafe { (self.f.MFXVideoDECODE_Close)(self.session) }
    }

    pub(crate) fn video_param(&self) -> mfxVideoParam {
        let mut par = mfxVideoParam::default();
        // SAFETY: both are valid.
        let status = unsafe { (self.f.MFXVideoDECODE_GetVideoParam)(self.session, &mut par) };
        assert_eq!(status, MfxStatus::ERR_NONE);
        par
    }

    /// One decode call with surfaces of the runtime.
    pub(crate) fn call(
        &self,
        bs: Option<&mut mfxBitstream>,
    ) -> (MfxStatus, *mut mfxFrameSurface1, mfxSyncPoint) {
        let (mut surface, mut sync) = (std::ptr::null_mut(), std::ptr::null_mut());
        let bs = bs.map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: every pointer is valid or null where null is allowed.
        let status = unsafe {
            (self.f.MFXVideoDECODE_DecodeFrameAsync)(
                self.session,
                bs,
                std::ptr::null_mut(),
                &mut surface,
                &mut sync,
            )
        };
        (status, surface, sync)
    }

    pub(crate) fn sync(&self, sync: mfxSyncPoint, wait: u32) -> MfxStatus {
        // SAFETY: a sync point is a number to the runtime.
        unsafe { (self.f.MFXVideoCORE_SyncOperation)(self.session, sync, wait) }
    }

    /// Decodes a feed from its header to the end of its drain.
    pub(crate) fn decode(&self, feed: &Feed, options: Options) -> (Vec<Frame>, Log) {
        let mut run = Run {
            client: self,
            feed,
            options,
            log: Log::default(),
            frames: Vec::new(),
            pending: Vec::new(),
            buffer: Vec::new(),
            next: 0,
            timestamp: TIMESTAMP_UNKNOWN,
        };
        run.open();
        run.run();
        (run.frames, run.log)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: the session is not used again.
        unsafe { (self.f.MFXClose)(self.session) };
        if let Some((functions, loader)) = self.loader.take() {
            // SAFETY: nor is the loader.
            unsafe { (functions.MFXUnload)(loader) };
        }
    }
}

pub(crate) fn mfx(par: &mfxVideoParam) -> &mfxInfoMFX {
    // SAFETY: the union's arms are integers.
    unsafe { &par.__bindgen_anon_1.mfx }
}

pub(crate) fn mfx_mut(par: &mut mfxVideoParam) -> &mut mfxInfoMFX {
    // SAFETY: the union's arms are integers.
    unsafe { &mut par.__bindgen_anon_1.mfx }
}

pub(crate) fn size(info: &mfxFrameInfo) -> mfxFrameInfo__bindgen_ty_1__bindgen_ty_1 {
    // SAFETY: the union's arms are integers.
    unsafe { info.__bindgen_anon_1.__bindgen_anon_1 }
}

/// The interface of a surface.
pub(crate) fn interface(surface: *mut mfxFrameSurface1) -> mfxFrameSurfaceInterface {
    // SAFETY: a surface that the runtime gave out and that is not released.
    let pointer = unsafe { (*surface).__bindgen_anon_1.FrameInterface };
    // SAFETY: the runtime's surfaces have one.
    unsafe { *pointer }
}

pub(crate) fn release(surface: *mut mfxFrameSurface1) -> MfxStatus {
    let release = interface(surface)
        .Release
        .expect("the interface is complete");
    // SAFETY: a surface that is not released.
    unsafe { release(surface) }
}

pub(crate) fn synchronize(surface: *mut mfxFrameSurface1, wait: u32) -> MfxStatus {
    let synchronize = interface(surface)
        .Synchronize
        .expect("the interface is complete");
    // SAFETY: a surface that is not released.
    unsafe { synchronize(surface, wait) }
}

pub(crate) fn map(surface: *mut mfxFrameSurface1, flags: u32) -> MfxStatus {
    let map = interface(surface).Map.expect("the interface is complete");
    // SAFETY: a surface that is not released.
    unsafe { map(surface, flags) }
}

pub(crate) fn unmap(surface: *mut mfxFrameSurface1) -> MfxStatus {
    let unmap = interface(surface).Unmap.expect("the interface is complete");
    // SAFETY: a surface that is not released.
    unsafe { unmap(surface) }
}

/// The visible rows behind an `mfxFrameData`.
pub(crate) fn pixels(info: &mfxFrameInfo, data: &mfxFrameData) -> Vec<u8> {
    let crop = size(info);
    let bytes = if info.FourCC == MFX_FOURCC_P010 { 2 } else { 1 };
    // SAFETY: the arms of these unions have one representation.
    let (low, y, uv) = unsafe {
        (
            data.__bindgen_anon_2.PitchLow,
            data.__bindgen_anon_3.Y,
            data.__bindgen_anon_4.UV,
        )
    };
    let pitch = usize::from(data.PitchHigh) << 16 | usize::from(low);
    let (left, top) = (usize::from(crop.CropX), usize::from(crop.CropY));
    let (width, height) = (usize::from(crop.CropW), usize::from(crop.CropH));
    let mut out = Vec::new();
    for row in 0..height {
        // SAFETY: the surface has at least the rows of its crop.
        let from = unsafe {
            std::slice::from_raw_parts(y.add((top + row) * pitch + left * bytes), width * bytes)
        };
        out.extend_from_slice(from);
    }
    for row in 0..height.div_ceil(2) {
        let start = (top / 2 + row) * pitch + left / 2 * 2 * bytes;
        // SAFETY: as above, half as many rows of chroma.
        let from =
            unsafe { std::slice::from_raw_parts(uv.add(start), width.next_multiple_of(2) * bytes) };
        out.extend_from_slice(from);
    }
    out
}

struct Run<'a> {
    client: &'a Client,
    feed: &'a Feed,
    options: Options,
    log: Log,
    frames: Vec<Frame>,
    pending: Vec<(*mut mfxFrameSurface1, mfxSyncPoint, MfxStatus)>,
    buffer: Vec<u8>,
    next: usize,
    timestamp: u64,
}

impl Run<'_> {
    fn refill(&mut self) -> bool {
        let Some(part) = self.feed.parts.get(self.next) else {
            return false;
        };
        self.buffer.extend_from_slice(part);
        self.timestamp = self.next as u64;
        self.next += 1;
        true
    }

    fn with_bitstream<T>(&mut self, call: impl FnOnce(&Client, &mut mfxBitstream) -> T) -> T {
        let mut bs = Client::bitstream(&mut self.buffer, self.feed.whole);
        bs.TimeStamp = self.timestamp;
        let result = call(self.client, &mut bs);
        let taken = bs.DataOffset as usize;
        assert_eq!(
            taken + bs.DataLength as usize,
            self.buffer.len(),
            "offset and length fit"
        );
        self.buffer.drain(..taken);
        result
    }

    fn open(&mut self) {
        let codec = self.feed.codec;
        loop {
            match self.with_bitstream(|client, bs| client.header(codec, bs)) {
                Ok(mut par) => {
                    par.AsyncDepth = self.options.async_depth;
                    let status = self.client.init(&mut par);
                    assert!(!status.is_error(), "Init: {status}");
                    return;
                }
                Err(MfxStatus::ERR_MORE_DATA) => {
                    assert!(self.refill(), "the stream ({codec:08x}) has no header")
                }
                Err(status) => panic!("DecodeHeader: {status}"),
            }
        }
    }

    fn run(&mut self) {
        let mut draining = false;
        loop {
            self.log.calls += 1;
            assert!(self.log.calls < MOST_CALLS, "no end: {:?}", self.log);
            let (status, surface, sync) = if draining {
                self.client.call(None)
            } else {
                self.with_bitstream(|client, bs| client.call(Some(bs)))
            };
            if !surface.is_null() {
                self.pending.push((surface, sync, status));
                while self.pending.len() >= self.options.hold.max(1) {
                    self.publish_oldest();
                }
                continue;
            }
            if !sync.is_null() {
                self.log.busy_with_sync += 1;
                assert_eq!(self.client.sync(sync, 60_000), MfxStatus::ERR_NONE);
            }
            match status {
                MfxStatus::ERR_MORE_DATA if draining => break,
                MfxStatus::ERR_MORE_DATA => draining = !self.refill(),
                MfxStatus::WRN_DEVICE_BUSY => {
                    self.log.busy += 1;
                    self.wait();
                }
                MfxStatus::WRN_ALLOC_TIMEOUT_EXPIRED => {
                    self.log.starved += 1;
                    self.wait();
                }
                MfxStatus::WRN_VIDEO_PARAM_CHANGED => self.log.param_changed += 1,
                MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM => self.reinit(),
                other => {
                    self.log.errors.push(other.0);
                    if !self.options.patient {
                        break;
                    }
                }
            }
        }
        while !self.pending.is_empty() {
            self.publish_oldest();
        }
        let closed = self.client.close_decoder();
        assert_eq!(closed, MfxStatus::ERR_NONE);
    }

    fn wait(&mut self) {
        if self.pending.is_empty() {
            std::thread::sleep(Duration::from_micros(200));
        } else {
            self.publish_oldest();
        }
    }

    /// Drains, then opens again on the bytes that the runtime left.
    fn reinit(&mut self) {
        self.log.reinits += 1;
        loop {
            let (status, surface, sync) = self.client.call(None);
            if surface.is_null() {
                if status == MfxStatus::ERR_MORE_DATA {
                    break;
                }
                assert!(status.is_warning(), "drain: {status}");
                self.wait();
                continue;
            }
            self.pending.push((surface, sync, status));
            self.publish_oldest();
        }
        while !self.pending.is_empty() {
            self.publish_oldest();
        }
        assert_eq!(self.client.close_decoder(), MfxStatus::ERR_NONE);
        self.open();
    }

    fn publish_oldest(&mut self) {
        let (surface, sync, status) = self.pending.remove(0);
        let mut result = MfxStatus::WRN_IN_EXECUTION;
        for _ in 0..10_000 {
            result = if sync.is_null() {
                synchronize(surface, 20)
            } else {
                self.client.sync(sync, 20)
            };
            if result != MfxStatus::WRN_IN_EXECUTION {
                break;
            }
            self.log.in_execution += 1;
        }
        if result != MfxStatus::ERR_NONE {
            self.log.sync_errors.push(result.0);
        }
        assert_eq!(map(surface, MFX_MAP_READ), MfxStatus::ERR_NONE);
        // SAFETY: the surface is ours and mapped.
        let shown = unsafe { &*surface };
        let crop = size(&shown.Info);
        self.frames.push(Frame {
            pixels: pixels(&shown.Info, &shown.Data),
            width: crop.CropW.into(),
            height: crop.CropH.into(),
            coded: (crop.Width, crop.Height),
            fourcc: shown.Info.FourCC,
            pic_struct: shown.Info.PicStruct,
            timestamp: shown.Data.TimeStamp,
            corrupted: shown.Data.Corrupted,
            status,
        });
        assert_eq!(unmap(surface), MfxStatus::ERR_NONE);
        assert_eq!(release(surface), MfxStatus::ERR_NONE);
    }
}
