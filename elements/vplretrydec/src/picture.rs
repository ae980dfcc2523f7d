// SPDX-License-Identifier: MPL-2.0

//! [`Picture`]: a mapped surface outside of the session thread, which gets it back when it is dropped.

use std::fmt;
use std::sync::Arc;

use onevpl_sys::MappedSurface;

use crate::link::Link;

/// A mapped surface. It keeps session and loader, and goes back to the session thread.
pub(crate) struct Picture {
    surface: Option<MappedSurface>,
    link: Arc<Link>,
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Picture").finish_non_exhaustive()
    }
}

impl Picture {
    pub(crate) fn new(surface: MappedSurface, link: &Arc<Link>) -> Self {
        link.note_out();
        Self {
            surface: Some(surface),
            link: Arc::clone(link),
        }
    }

    pub(crate) fn surface(&self) -> &MappedSurface {
        self.surface
            .as_ref()
            .expect("the surface is taken when the picture ends, and not before")
    }

    /// The picture is copied.
    pub(crate) fn copied(mut self) {
        if let Some(surface) = self.surface.take() {
            self.link.give_back_copied(surface);
        }
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        if let Some(surface) = self.surface.take() {
            self.link.give_back(surface);
        }
    }
}
