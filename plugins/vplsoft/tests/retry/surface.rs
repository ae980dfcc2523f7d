// SPDX-License-Identifier: MPL-2.0

//! Surfaces and sync points. Each owns the session that it came from, and that its loader.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use onevpl_sys::*;
use vplretry_core::Status;

use crate::client::{Client, map, pixels, release, size, synchronize, unmap};

/// A surface that the runtime gave out. Dropping it releases it.
pub(crate) struct Surface {
    raw: *mut mfxFrameSurface1,
    /// Its place among all that the runtime gave out.
    pub(crate) order: u64,
    /// A wait for it has ended well.
    pub(crate) complete: Cell<bool>,
    /// Behind the surface: a session outlives its surfaces.
    session: Rc<Client>,
}

impl Surface {
    /// Takes over the reference that `DecodeFrameAsync` gave; `None` for NULL.
    pub(crate) fn new(
        raw: *mut mfxFrameSurface1,
        order: u64,
        session: &Rc<Client>,
    ) -> Option<Self> {
        (!raw.is_null()).then(|| Self {
            raw,
            order,
            complete: Cell::new(false),
            session: Rc::clone(session),
        })
    }

    fn shown(&self) -> &mfxFrameSurface1 {
        // SAFETY: the reference that this value owns keeps the structure.
        unsafe { &*self.raw }
    }

    /// The access unit that it shows.
    pub(crate) fn unit(&self) -> u64 {
        self.shown().Data.TimeStamp
    }

    pub(crate) fn corrupted(&self) -> u16 {
        self.shown().Data.Corrupted
    }

    /// Fourcc, coded size, shown size.
    pub(crate) fn format(&self) -> (u32, [u16; 4]) {
        let info = &self.shown().Info;
        let sizes = size(info);
        let sizes = [sizes.Width, sizes.Height, sizes.CropW, sizes.CropH];
        (info.FourCC, sizes)
    }

    /// The visible samples.
    pub(crate) fn pixels(&self) -> Vec<u8> {
        assert_eq!(map(self.raw, MFX_MAP_READ), MfxStatus::ERR_NONE);
        let shown = self.shown();
        let pixels = pixels(&shown.Info, &shown.Data);
        assert_eq!(unmap(self.raw), MfxStatus::ERR_NONE);
        pixels
    }

    /// Waits by its sync point, or by itself where there was none.
    pub(crate) fn wait(&self, sync: Option<&Token>, wait: Duration) -> Status {
        let status = match sync {
            Some(token) => token.wait(wait),
            None => Status(synchronize(self.raw, milliseconds(wait)).0),
        };
        self.complete.set(matches!(status.0, 0 | 3..=7 | 10 | 12));
        status
    }

    /// Whether it came from this session.
    pub(crate) fn belongs_to(&self, session: &Rc<Client>) -> bool {
        Rc::ptr_eq(&self.session, session)
    }
}

impl Drop for Surface {
    fn drop(&mut self) {
        let status = release(self.raw);
        if !std::thread::panicking() {
            assert_eq!(status, MfxStatus::ERR_NONE, "Release");
        }
    }
}

/// A sync point.
pub(crate) struct Token {
    raw: mfxSyncPoint,
    session: Rc<Client>,
}

impl Token {
    /// `None` for NULL.
    pub(crate) fn new(raw: mfxSyncPoint, session: &Rc<Client>) -> Option<Self> {
        (!raw.is_null()).then(|| Self {
            raw,
            session: Rc::clone(session),
        })
    }

    pub(crate) fn wait(&self, wait: Duration) -> Status {
        Status(self.session.sync(self.raw, milliseconds(wait)).0)
    }
}

/// The unit of the interface: rounded up, so that a wait that is not zero is none.
fn milliseconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u32::MAX)
}
