// SPDX-License-Identifier: MPL-2.0

//! Surfaces that the runtime allocates, with the interface that `mfxFrameSurface1` carries.
//!
//! A client's pointer is looked up among the surfaces that exist and never followed before that. A surface
//! whose last reference is gone stays known until its decoder is closed, so that a client that goes on using
//! it gets an error.

use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex};

use av_backend::Semiplanar;
use onevpl_sys::*;

use crate::interface::interface;
use crate::memory::{Registry, lock};
use crate::params::Layout;
use crate::pin;
use crate::pool::Pool;
use crate::task::{Task, Tasks};

/// A cache line, for the alignment of rows.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// What the client sees. C reads and writes it without asking, hence the cell.
#[derive(Debug)]
struct Shown(Box<UnsafeCell<mfxFrameSurface1>>);

// SAFETY: Rust code accesses the structure only while it holds the lock of the surface's state.
unsafe impl Send for Shown {}
// SAFETY: as above.
unsafe impl Sync for Shown {}

/// A surface.
#[derive(Debug)]
pub(crate) struct Surface {
    shown: Shown,
    /// Lives as long as the surface: the structure above points to it.
    interface: Box<InterfaceTable>,
    pool: Arc<Pool>,
    state: Mutex<State>,
}

struct InterfaceTable(mfxFrameSurfaceInterface);

impl std::fmt::Debug for InterfaceTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("mfxFrameSurfaceInterface")
    }
}

// SAFETY: the table is written once, before anybody sees it.
unsafe impl Send for InterfaceTable {}
// SAFETY: as above.
unsafe impl Sync for InterfaceTable {}

#[derive(Debug, Default)]
struct State {
    references: u32,
    readers: u32,
    writer: bool,
    memory: Vec<Line>,
    layout: Layout,
    operation: Option<(Arc<Tasks>, Arc<Task>)>,
    /// What `Data.Corrupted` becomes when the operation is complete.
    corrupted: u16,
    map_hangs: bool,
}

/// What a picture brings to a surface.
pub(crate) struct Filling {
    pub(crate) info: mfxFrameInfo,
    pub(crate) layout: Layout,
    pub(crate) timestamp: u64,
    pub(crate) order: u32,
    pub(crate) corrupted: u16,
    pub(crate) map_hangs: bool,
}

static KNOWN: Registry<Arc<Surface>> = Registry::new();

/// The surface at a client's address.
pub(crate) fn find(surface: *mut mfxFrameSurface1) -> Option<Arc<Surface>> {
    KNOWN.get(surface.addr())
}

/// The surface is not to be found any more.
pub(crate) fn forget(surface: &Arc<Surface>) {
    KNOWN.remove(surface.address().addr());
}

impl Surface {
    /// A surface without references.
    pub(crate) fn new(pool: Arc<Pool>) -> Arc<Self> {
        let mut interface = Box::new(InterfaceTable(interface()));
        let mut shown = mfxFrameSurface1::default();
        interface.0.Context = (&raw mut interface.0).cast();
        shown.__bindgen_anon_1.FrameInterface = &raw mut interface.0;
        shown.Version = version(1, 1);
        let surface = Arc::new(Self {
            shown: Shown(Box::new(UnsafeCell::new(shown))),
            interface,
            pool,
            state: Mutex::default(),
        });
        KNOWN.insert(surface.address().addr(), Arc::clone(&surface));
        surface
    }

    /// The address that the client knows it by.
    pub(crate) fn address(&self) -> *mut mfxFrameSurface1 {
        self.shown.0.get()
    }

    /// Gives it its first reference.
    pub(crate) fn revive(&self) {
        let mut state = lock(&self.state);
        state.references = 1;
        state.readers = 0;
        state.writer = false;
        state.operation = None;
        state.map_hangs = false;
        self.show(|shown| {
            // A client may have written over it.
            shown.__bindgen_anon_1.FrameInterface = (&raw const self.interface.0).cast_mut();
            set_pointers(&mut shown.Data, None);
        });
    }

    fn show<T>(&self, change: impl FnOnce(&mut mfxFrameSurface1) -> T) -> T {
        // SAFETY: callers hold the state's lock, so no other Rust reference exists; what C code does at the
        // same time to a surface that it shares is its own affair.
        change(unsafe { &mut *self.shown.0.get() })
    }

    /// Writes a picture into it. `None` where its memory cannot be written because the client maps it.
    pub(crate) fn fill<E>(
        &self,
        filling: &Filling,
        write: impl FnOnce(Semiplanar<'_>) -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        let mut state = lock(&self.state);
        if state.readers > 0 || state.writer {
            return None;
        }
        let lines = filling.layout.bytes().div_ceil(64);
        if state.memory.len() < lines {
            state.memory.resize(lines, Line([0; 64]));
        }
        state.layout = filling.layout;
        state.corrupted = filling.corrupted;
        state.map_hangs = filling.map_hangs;
        let result = write(planes(&mut state.memory, filling.layout));
        self.show(|shown| {
            shown.Info = filling.info;
            shown.Data.TimeStamp = filling.timestamp;
            shown.Data.DataFlag = timestamp_flag(filling.timestamp);
            shown.Data.FrameOrder = filling.order;
            shown.Data.Corrupted = 0;
            shown.Data.MemType = (MFX_MEMTYPE_SYSTEM_MEMORY
                | MFX_MEMTYPE_FROM_DECODE
                | MFX_MEMTYPE_INTERNAL_FRAME) as u16;
            shown.Data.PitchHigh = (filling.layout.pitch >> 16) as u16;
            shown.Data.__bindgen_anon_2.PitchLow = (filling.layout.pitch & 0xffff) as u16;
        });
        Some(result)
    }

    /// The operation that the surface is the result of.
    pub(crate) fn attach(&self, tasks: &Arc<Tasks>, task: &Arc<Task>) {
        lock(&self.state).operation = Some((Arc::clone(tasks), Arc::clone(task)));
    }

    /// The operation is complete: what is known of the picture becomes visible.
    pub(crate) fn finish(&self) {
        let state = lock(&self.state);
        let corrupted = state.corrupted;
        self.show(|shown| shown.Data.Corrupted = corrupted);
    }

    /// Adds a reference.
    pub(crate) fn add_reference(&self) -> MfxStatus {
        let mut state = lock(&self.state);
        if state.references == 0 {
            return MfxStatus::ERR_UNDEFINED_BEHAVIOR;
        }
        state.references += 1;
        MfxStatus::ERR_NONE
    }

    /// Takes a reference away.
    pub(crate) fn release(self: Arc<Self>) -> MfxStatus {
        {
            let mut state = lock(&self.state);
            if state.references == 0 {
                return MfxStatus::ERR_UNDEFINED_BEHAVIOR;
            }
            state.references -= 1;
            if state.references > 0 {
                return MfxStatus::ERR_NONE;
            }
            state.operation = None;
        }
        let pool = Arc::clone(&self.pool);
        pool.give_back(self);
        MfxStatus::ERR_NONE
    }

    /// How many references there are.
    pub(crate) fn references(&self) -> u32 {
        lock(&self.state).references
    }

    /// Waits until the picture and what is known of it are complete.
    pub(crate) fn synchronize(&self, wait: u32) -> MfxStatus {
        let operation = lock(&self.state).operation.clone();
        match operation {
            Some((tasks, task)) => tasks.wait(&task, wait),
            None => MfxStatus::ERR_NONE,
        }
    }

    /// Shows the client where the samples lie.
    pub(crate) fn map(&self, flags: u32) -> MfxStatus {
        let (read, write) = (flags & MFX_MAP_READ != 0, flags & MFX_MAP_WRITE != 0);
        let known = MFX_MAP_READ | MFX_MAP_WRITE | MFX_MAP_NOWAIT;
        if flags & !known != 0 || !(read || write) {
            return MfxStatus::ERR_UNSUPPORTED;
        }
        if lock(&self.state).map_hangs {
            pin::hang("mapping a picture");
        }
        if !write {
            let wait = if flags & MFX_MAP_NOWAIT != 0 {
                0
            } else {
                u32::MAX
            };
            let status = self.synchronize(wait);
            if status == MfxStatus::WRN_IN_EXECUTION {
                return MfxStatus::ERR_LOCK_MEMORY;
            }
            // A failed operation leaves a picture all the same; its marks say what it is worth.
        }
        let mut state = lock(&self.state);
        if state.references == 0 {
            return MfxStatus::ERR_UNDEFINED_BEHAVIOR;
        }
        let locked = self.show(|shown| shown.Data.Locked) > 0;
        if state.writer || write && (state.readers > 0 || locked) {
            return MfxStatus::ERR_LOCK_MEMORY;
        }
        if write {
            state.writer = true;
        } else {
            state.readers += 1;
        }
        let layout = state.layout;
        let memory = state.memory.as_mut_ptr().cast::<u8>();
        let planes = (!state.memory.is_empty()).then_some((memory, layout));
        self.show(|shown| set_pointers(&mut shown.Data, planes));
        MfxStatus::ERR_NONE
    }

    /// Ends one mapping.
    pub(crate) fn unmap(&self) -> MfxStatus {
        let mut state = lock(&self.state);
        if state.writer {
            state.writer = false;
        } else if state.readers > 0 {
            state.readers -= 1;
        } else {
            return MfxStatus::ERR_UNSUPPORTED;
        }
        if state.readers == 0 {
            self.show(|shown| set_pointers(&mut shown.Data, None));
        }
        MfxStatus::ERR_NONE
    }
}

/// `DataFlag` of a picture with that time stamp.
pub(crate) fn timestamp_flag(timestamp: u64) -> u16 {
    let flag = if timestamp == TIMESTAMP_UNKNOWN {
        MFX_FRAMEDATA_TIMESTAMP_UNKNOWN
    } else {
        MFX_FRAMEDATA_ORIGINAL_TIMESTAMP
    };
    flag as u16
}

fn planes(memory: &mut [Line], layout: Layout) -> Semiplanar<'_> {
    let length = std::mem::size_of_val(memory);
    // SAFETY: the lines are plain bytes without gaps, borrowed for as long as the result.
    let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast::<u8>(), length) };
    let (luma, chroma) = bytes.split_at_mut(layout.luma_bytes());
    Semiplanar {
        luma,
        chroma,
        pitch: layout.pitch,
    }
}

fn set_pointers(data: &mut mfxFrameData, planes: Option<(*mut u8, Layout)>) {
    let (y, uv, v) = match planes {
        None => (
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        ),
        Some((start, layout)) => {
            let uv = start.wrapping_add(layout.luma_bytes());
            (start, uv, uv.wrapping_add(layout.sample_bytes))
        }
    };
    data.__bindgen_anon_3.Y = y;
    data.__bindgen_anon_4.UV = uv;
    data.__bindgen_anon_5.V = v;
}

/// A structure version.
pub(crate) fn version(major: u8, minor: u8) -> mfxStructVersion {
    mfxStructVersion {
        __bindgen_anon_1: mfxStructVersion__bindgen_ty_1 {
            Minor: minor,
            Major: major,
        },
    }
}
