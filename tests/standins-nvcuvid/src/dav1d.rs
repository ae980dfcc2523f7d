// SPDX-License-Identifier: MPL-2.0

//! [`Dav1d`]: AV1 by libdav1d itself, which gives every frame in coding order, the hidden ones included.
//! libavcodec's own use of it hides those.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

use av_backend::{FieldOrder, PictureKind, PlaneView, pack_planes};

use crate::backend::{Backend, Decoded, Event, Shown};
use crate::lock;
use crate::pixels::Pixels;
use crate::report::log;
use crate::surfaces::{Lease, Slots};

/// The shim's decoder.
#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawPicture {
    /// `*const Arc<Lease>`, from a box.
    lease: *const c_void,
    planes: [*const u8; 3],
    strides: [usize; 2],
    width: c_int,
    height: c_int,
    depth: c_int,
    layout: c_int,
    is_inter: c_int,
    is_shown: c_int,
    has_grain: c_int,
    handle: *mut c_void,
}

/// `DAV1D_PIXEL_LAYOUT_I400` and `DAV1D_PIXEL_LAYOUT_I420`.
const MONOCHROME: c_int = 0;
const HALVED: c_int = 1;

type LeaseFn = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
type ReleaseFn = unsafe extern "C" fn(*mut c_void);

// SAFETY: the declarations are those of dav1d.c in this folder.
unsafe extern "C" {
    fn standin_dav1d_open(
        surfaces: *mut c_void,
        lease: LeaseFn,
        release: ReleaseFn,
        operating_point: c_int,
        all_layers: c_int,
    ) -> *mut Raw;
    fn standin_dav1d_close(decoder: *mut Raw);
    fn standin_dav1d_flush(decoder: *mut Raw);
    fn standin_dav1d_send(decoder: *mut Raw, bytes: *const u8, size: usize) -> isize;
    fn standin_dav1d_receive(decoder: *mut Raw, out: *mut RawPicture) -> c_int;
    fn standin_dav1d_grain(
        decoder: *mut Raw,
        from: *const RawPicture,
        out: *mut RawPicture,
    ) -> c_int;
    fn standin_dav1d_unref(picture: *mut RawPicture);
    fn standin_dav1d_points(bytes: *const u8, size: usize, idc: *mut u16) -> c_int;
}

/// The operating points of the sequence header in a temporal unit, or none.
pub fn operating_points(unit: &[u8]) -> Vec<u16> {
    let mut idc = [0; 32];
    // SAFETY: the unit's own length, and an array of the size that the shim fills.
    let count = unsafe { standin_dav1d_points(unit.as_ptr(), unit.len(), idc.as_mut_ptr()) };
    idc[..usize::try_from(count).unwrap_or(0).min(32)].to_vec()
}

/// Which layers of a scalable stream are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// The operating point, 0 to 31.
    pub point: u8,
    /// Every layer is shown, not the highest alone.
    pub all: bool,
}

type SharedSlots = Mutex<Slots>;

unsafe extern "C" fn lease(surfaces: *mut c_void) -> *mut c_void {
    // SAFETY: the pointer is the `Dav1d`'s own slots, which outlive its decoder.
    let slots = unsafe { &*surfaces.cast::<SharedSlots>() };
    match lock(slots).take() {
        Some(lease) => Box::into_raw(Box::new(lease)).cast(),
        None => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn release(lease: *mut c_void) {
    // SAFETY: the box is the one that `lease` gave for this picture.
    drop(unsafe { Box::from_raw(lease.cast::<Arc<Lease>>()) });
}

/// A picture of libdav1d.
struct Picture(RawPicture);

impl Picture {
    fn lease(&self) -> Arc<Lease> {
        // SAFETY: the box lives as long as the picture's memory, of which this holds a reference.
        unsafe { &*self.0.lease.cast::<Arc<Lease>>() }.clone()
    }

    fn plane(&self, plane: usize) -> Option<PlaneView<'_>> {
        let half = |size: usize| if plane > 0 { size.div_ceil(2) } else { size };
        let width = half(usize::try_from(self.0.width).ok()?);
        let height = half(usize::try_from(self.0.height).ok()?);
        let stride = self.0.strides[usize::from(plane > 0)];
        let row = width * if self.0.depth > 8 { 2 } else { 1 };
        let start = NonNull::new(self.0.planes[plane].cast_mut())?;
        let length = stride * height.checked_sub(1)? + row;
        // SAFETY: the shim allocated at least that many rows of that stride, and nobody writes to a picture
        // that was given out.
        let data = unsafe { std::slice::from_raw_parts(start.as_ptr(), length) };
        Some(PlaneView {
            data,
            stride,
            width,
            height,
        })
    }

    fn pixels(&self) -> Option<Arc<Pixels>> {
        let luma = self.plane(0)?;
        let chroma = match self.0.layout {
            MONOCHROME => None,
            HALVED => Some((self.plane(1)?, self.plane(2)?)),
            _ => return None,
        };
        let depth = u32::try_from(self.0.depth).ok()?;
        let mut pixels = Pixels::blank(luma.width, luma.height, depth);
        pack_planes(luma, chroma, depth, pixels.planes_mut()).ok()?;
        Some(Arc::new(pixels))
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's, and given up here.
        unsafe { standin_dav1d_unref(&mut self.0) };
    }
}

/// A hidden picture whose form with film grain waits, in a surface of its own, to be shown.
#[derive(Debug)]
struct Grained {
    plain: Weak<Lease>,
    shown: Arc<Lease>,
}

/// libdav1d.
pub struct Dav1d {
    raw: NonNull<Raw>,
    /// The decoder's callbacks have its address.
    slots: Box<SharedSlots>,
    /// Pictures that were given out once. What comes again is shown again.
    known: VecDeque<Weak<Lease>>,
    grained: Vec<Grained>,
}

// SAFETY: a decoder may be used from any thread as long as one uses it at a time.
unsafe impl Send for Dav1d {}

impl Dav1d {
    /// `None` where memory is short.
    pub fn new(slots: Slots, layers: Layers) -> Option<Self> {
        let slots = Box::new(Mutex::new(slots));
        let surfaces = std::ptr::from_ref::<SharedSlots>(&slots).cast_mut().cast();
        let (point, all) = (layers.point.into(), layers.all.into());
        // SAFETY: the slots outlive the decoder, and the callbacks fit them.
        let raw = unsafe { standin_dav1d_open(surfaces, lease, release, point, all) };
        Some(Self {
            raw: NonNull::new(raw)?,
            slots,
            known: VecDeque::new(),
            grained: Vec::new(),
        })
    }

    fn receive(&mut self, events: &mut Vec<Event>) {
        loop {
            let mut picture = std::mem::MaybeUninit::<RawPicture>::zeroed();
            // SAFETY: the decoder is open, and the pointer is a local's.
            match unsafe { standin_dav1d_receive(self.raw.as_ptr(), picture.as_mut_ptr()) } {
                0 => return,
                1 => {}
                error => {
                    log(|| format!("a frame is damaged: libdav1d error {error}"));
                    return;
                }
            }
            // SAFETY: the shim filled it.
            let picture = Picture(unsafe { picture.assume_init() });
            self.came(&picture, events);
        }
    }

    fn came(&mut self, picture: &Picture, events: &mut Vec<Event>) {
        let plain = picture.lease();
        self.known.retain(|known| known.strong_count() > 0);
        self.grained
            .retain(|grained| grained.plain.strong_count() > 0);
        let is = |weak: &Weak<Lease>| std::ptr::eq(weak.as_ptr(), Arc::as_ptr(&plain));
        let is_new = !self.known.iter().any(is);
        let mut shown = None;
        if is_new {
            self.known.push_back(Arc::downgrade(&plain));
            let decoded = self.decoded(picture, plain.clone());
            shown = Some(decoded.lease.clone());
            events.push(Event::Decoded(decoded));
        }
        if !is_new || picture.0.is_shown != 0 {
            let lease = match self.grained.iter().position(|grained| is(&grained.plain)) {
                Some(waiting) => self.grained.remove(waiting).shown,
                None => shown.unwrap_or_else(|| plain.clone()),
            };
            events.push(Event::Shown(Shown {
                lease,
                order: FieldOrder::Progressive,
                repeat: 0,
                damaged: false,
            }));
        }
    }

    fn decoded(&mut self, picture: &Picture, plain: Arc<Lease>) -> Decoded {
        let kind = match picture.0.is_inter {
            0 => PictureKind::I,
            _ => PictureKind::P,
        };
        let grained = (picture.0.has_grain != 0)
            .then(|| self.grain(picture))
            .flatten();
        let Some(grained) = grained else {
            return Decoded {
                lease: plain,
                without_grain: None,
                pixels: picture.pixels(),
                kind,
                field: None,
            };
        };
        let shown = grained.lease();
        if picture.0.is_shown == 0 {
            self.grained.push(Grained {
                plain: Arc::downgrade(&plain),
                shown: shown.clone(),
            });
        }
        Decoded {
            lease: shown,
            without_grain: Some(plain),
            pixels: grained.pixels(),
            kind,
            field: None,
        }
    }

    fn grain(&mut self, picture: &Picture) -> Option<Picture> {
        let mut out = std::mem::MaybeUninit::<RawPicture>::zeroed();
        // SAFETY: both pictures are the shim's, the second to be filled.
        let code = unsafe { standin_dav1d_grain(self.raw.as_ptr(), &picture.0, out.as_mut_ptr()) };
        if code < 0 {
            log(|| format!("no film grain: libdav1d error {code}"));
            return None;
        }
        // SAFETY: the shim filled it.
        Some(Picture(unsafe { out.assume_init() }))
    }
}

impl Backend for Dav1d {
    fn decode(&mut self, unit: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut rest = unit;
        while !rest.is_empty() {
            // SAFETY: the decoder is open, and the bytes are the slice's.
            let sent = unsafe { standin_dav1d_send(self.raw.as_ptr(), rest.as_ptr(), rest.len()) };
            let before = events.len();
            self.receive(&mut events);
            match usize::try_from(sent) {
                // Nothing taken and nothing given: it would never end.
                Ok(0) if events.len() == before => break,
                Ok(taken) => rest = rest.get(taken..).unwrap_or_default(),
                Err(_) => {
                    log(|| format!("a unit of {} bytes is damaged", unit.len()));
                    break;
                }
            }
        }
        self.receive(&mut events);
        events
    }

    fn drain(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        self.receive(&mut events);
        // SAFETY: the decoder is open.
        unsafe { standin_dav1d_flush(self.raw.as_ptr()) };
        self.known.clear();
        self.grained.clear();
        events
    }

    fn set_slots(&mut self, slots: Slots) {
        *lock(&self.slots) = slots;
    }

    fn was_short(&self) -> bool {
        lock(&self.slots).was_short()
    }
}

impl Drop for Dav1d {
    fn drop(&mut self) {
        // SAFETY: the decoder is open, and given up here; its callbacks' slots are dropped behind it.
        unsafe { standin_dav1d_close(self.raw.as_ptr()) };
    }
}
