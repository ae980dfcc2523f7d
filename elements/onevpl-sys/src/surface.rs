// SPDX-License-Identifier: MPL-2.0

//! Surfaces and sync points. Each holds the session that it came from, and that its loader.

use std::sync::Arc;

use crate::bindings::*;
use crate::session::Session;
use crate::status::MfxStatus;

/// What an `mfxFrameInfo` says of a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PictureInfo {
    /// `MFX_FOURCC_*`.
    pub fourcc: u32,
    /// Allocated columns.
    pub width: u16,
    /// Allocated rows.
    pub height: u16,
    /// First visible column.
    pub crop_x: u16,
    /// First visible row.
    pub crop_y: u16,
    /// Visible columns.
    pub crop_width: u16,
    /// Visible rows.
    pub crop_height: u16,
    /// Bits a luma sample; 0 where the runtime does not say.
    pub depth: u16,
    /// Samples lie in the high bits.
    pub shift: u16,
    /// `MFX_PICSTRUCT_*`.
    pub pic_struct: u16,
    /// Width and height of a sample; 0, 0 where the stream does not say.
    pub aspect: (u16, u16),
}

impl PictureInfo {
    pub(crate) fn new(info: &mfxFrameInfo) -> Self {
        // SAFETY: the union's arms are integers.
        let size = unsafe { info.__bindgen_anon_1.__bindgen_anon_1 };
        let or = |crop: u16, whole: u16| if crop == 0 { whole } else { crop };
        Self {
            fourcc: info.FourCC,
            width: size.Width,
            height: size.Height,
            crop_x: size.CropX,
            crop_y: size.CropY,
            crop_width: or(size.CropW, size.Width),
            crop_height: or(size.CropH, size.Height),
            depth: info.BitDepthLuma,
            shift: info.Shift,
            pic_struct: info.PicStruct,
            aspect: (info.AspectRatioW, info.AspectRatioH),
        }
    }
}

/// A sync point (`mfxSyncPoint`).
#[derive(Debug)]
pub struct SyncPoint {
    raw: mfxSyncPoint,
    session: Arc<Session>,
}

// SAFETY: a sync point is a number to everyone but the runtime, which takes it from any thread.
unsafe impl Send for SyncPoint {}

impl SyncPoint {
    pub(crate) fn new(raw: mfxSyncPoint, session: &Arc<Session>) -> Option<Self> {
        (!raw.is_null()).then(|| Self {
            raw,
            session: Arc::clone(session),
        })
    }

    /// `MFXVideoCORE_SyncOperation`, for at most so many milliseconds.
    pub fn wait(&self, milliseconds: u32) -> MfxStatus {
        self.session.sync(self.raw, milliseconds)
    }
}

/// A surface that the runtime gave out (`mfxFrameSurface1`). Dropping it releases it.
#[derive(Debug)]
pub struct Surface {
    raw: *mut mfxFrameSurface1,
    /// Behind the surface: a session outlives its surfaces.
    session: Arc<Session>,
}

// SAFETY: the interface of a surface may be called from any thread.
unsafe impl Send for Surface {}
// SAFETY: shared access only reads the structure, which changes in calls of the owner alone.
unsafe impl Sync for Surface {}

impl Surface {
    /// Takes over one reference; `None` for null.
    ///
    /// # Safety
    /// `raw` is null or a surface of `session` with a reference that nobody else releases.
    pub(crate) unsafe fn new(raw: *mut mfxFrameSurface1, session: &Arc<Session>) -> Option<Self> {
        (!raw.is_null()).then(|| Self {
            raw,
            session: Arc::clone(session),
        })
    }

    fn shown(&self) -> &mfxFrameSurface1 {
        // SAFETY: the reference that this value owns keeps the structure.
        unsafe { &*self.raw }
    }

    fn interface(&self) -> Option<&mfxFrameSurfaceInterface> {
        // SAFETY: the union's arms have one representation; surfaces of API 2.0 carry the interface.
        let interface = unsafe { self.shown().__bindgen_anon_1.FrameInterface };
        // SAFETY: null, or the runtime's table, which lives as long as the surface.
        unsafe { interface.as_ref() }
    }

    /// `Info`; final when the operation is complete.
    pub fn info(&self) -> PictureInfo {
        PictureInfo::new(&self.shown().Info)
    }

    /// `Data.TimeStamp`.
    pub fn timestamp(&self) -> u64 {
        self.shown().Data.TimeStamp
    }

    /// `Data.Corrupted`; final when the operation is complete.
    pub fn corrupted(&self) -> u16 {
        self.shown().Data.Corrupted
    }

    /// The session that it came from.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// `Synchronize`, for at most so many milliseconds.
    pub fn synchronize(&self, milliseconds: u32) -> MfxStatus {
        match self.interface().and_then(|interface| interface.Synchronize) {
            // SAFETY: the surface is owned.
            Some(synchronize) => unsafe { synchronize(self.raw, milliseconds) },
            None => MfxStatus::ERR_NOT_IMPLEMENTED,
        }
    }

    /// `Map` for reading.
    ///
    /// # Errors
    /// The runtime's status, or [`MfxStatus::ERR_UNSUPPORTED`] for a format without a known layout; the
    /// surface comes back.
    pub fn map(self) -> Result<MappedSurface, (Self, MfxStatus)> {
        let interface = self.interface();
        let (Some(map), Some(unmap)) = (
            interface.and_then(|interface| interface.Map),
            interface.and_then(|interface| interface.Unmap),
        ) else {
            return Err((self, MfxStatus::ERR_NOT_IMPLEMENTED));
        };
        // SAFETY: the surface is owned.
        let status = unsafe { map(self.raw, MFX_MAP_READ) };
        if status.is_error() {
            return Err((self, status));
        }
        match planes(&self.info(), &self.shown().Data) {
            Some(planes) => Ok(MappedSurface {
                planes,
                unmap,
                surface: self,
            }),
            None => {
                // SAFETY: the surface was mapped above.
                unsafe { unmap(self.raw) };
                Err((self, MfxStatus::ERR_UNSUPPORTED))
            }
        }
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        if let Some(release) = self.interface().and_then(|interface| interface.Release) {
            // SAFETY: this value's own reference, which is not used again.
            unsafe { release(self.raw) };
        }
    }
}

/// The rows of one plane, from the first allocated one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plane {
    start: *const u8,
    stride: usize,
    rows: usize,
}

/// A surface mapped for reading. Dropping it unmaps and releases it.
#[derive(Debug)]
pub struct MappedSurface {
    planes: Vec<Plane>,
    unmap: unsafe extern "C" fn(*mut mfxFrameSurface1) -> MfxStatus,
    surface: Surface,
}

// SAFETY: the memory stays mapped and unwritten as long as this value lives, whoever reads it.
unsafe impl Send for MappedSurface {}
// SAFETY: as above.
unsafe impl Sync for MappedSurface {}

impl MappedSurface {
    /// The surface.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Planes of its format.
    pub fn planes(&self) -> usize {
        self.planes.len()
    }

    /// Bytes between two rows of a plane.
    pub fn stride(&self, plane: usize) -> usize {
        self.planes[plane].stride
    }

    /// The bytes of a plane, whole rows from the first allocated one.
    pub fn plane(&self, plane: usize) -> &[u8] {
        let Plane {
            start,
            stride,
            rows,
        } = self.planes[plane];
        // SAFETY: the mapped surface has that many rows of that pitch, unwritten while it is mapped.
        unsafe { std::slice::from_raw_parts(start, stride * rows) }
    }

    /// The bytes from the first plane to the end of the last, where the planes lie one behind the other.
    pub fn contiguous(&self) -> Option<&[u8]> {
        let first = self.planes.first()?;
        let mut end = first.start;
        let mut length = 0;
        for plane in &self.planes {
            if plane.start != end {
                return None;
            }
            end = end.wrapping_add(plane.stride * plane.rows);
            length += plane.stride * plane.rows;
        }
        // SAFETY: each plane is readable, and they touch.
        Some(unsafe { std::slice::from_raw_parts(first.start, length) })
    }
}

impl Drop for MappedSurface {
    fn drop(&mut self) {
        // SAFETY: mapped by `Surface::map`, once.
        unsafe { (self.unmap)(self.surface.raw) };
    }
}

/// Where the planes of a mapped surface lie (the memory layouts of `mfxFrameData`, mfxstructures.h).
fn planes(info: &PictureInfo, data: &mfxFrameData) -> Option<Vec<Plane>> {
    // SAFETY: the arms of the union have one representation.
    let low = unsafe { data.__bindgen_anon_2.PitchLow };
    // SAFETY: as above.
    let first = unsafe { data.__bindgen_anon_3.Y };
    // SAFETY: as above.
    let second = unsafe { data.__bindgen_anon_4.U };
    // SAFETY: as above.
    let third = unsafe { data.__bindgen_anon_5.V };
    let stride = usize::from(data.PitchHigh) << 16 | usize::from(low);
    let rows = usize::from(info.height);
    let plane = |start: *mut u8, stride: usize, rows: usize| {
        (!start.is_null() && stride > 0 && rows > 0).then_some(Plane {
            start,
            stride,
            rows,
        })
    };
    let half = rows.div_ceil(2);
    match info.fourcc {
        MFX_FOURCC_NV12 | MFX_FOURCC_P010 => Some(vec![
            plane(first, stride, rows)?,
            plane(second, stride, half)?,
        ]),
        MFX_FOURCC_I420 | MFX_FOURCC_I010 => Some(vec![
            plane(first, stride, rows)?,
            plane(second, stride / 2, half)?,
            plane(third, stride / 2, half)?,
        ]),
        MFX_FOURCC_YUY2 | MFX_FOURCC_Y210 => Some(vec![plane(first, stride, rows)?]),
        // Packed: V (AYUV) or the word itself (Y410) comes first in memory.
        MFX_FOURCC_AYUV => Some(vec![plane(third, stride, rows)?]),
        MFX_FOURCC_Y410 => Some(vec![plane(second, stride, rows)?]),
        _ => None,
    }
}
