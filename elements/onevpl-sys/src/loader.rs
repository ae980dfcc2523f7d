// SPDX-License-Identifier: MPL-2.0

//! [`Loader`]: the dispatcher's search for runtimes, and what it found.

use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::sync::Arc;

use crate::bindings::*;
use crate::dispatcher::{Dispatcher, LoadError, dispatcher};
use crate::session::{Home, Session};
use crate::status::MfxStatus;

/// What does the work of an implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImplementationKind {
    /// The processor (`MFX_IMPL_TYPE_SOFTWARE`).
    Software,
    /// A GPU (`MFX_IMPL_TYPE_HARDWARE`).
    Hardware,
}

/// A runtime that the dispatcher found (`mfxImplDescription`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Implementation {
    /// Its number in the loader.
    pub index: u32,
    /// `ImplName`.
    pub name: String,
    /// What does the work.
    pub kind: ImplementationKind,
    /// `ApiVersion`, major and minor.
    pub api: (u16, u16),
    /// The library's file, where the dispatcher tells it.
    pub path: Option<PathBuf>,
    /// `MFX_CODEC_*` of its decoders.
    pub codecs: Vec<u32>,
}

/// What a runtime must be to be found. All of them are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// `mfxImplDescription.Impl`.
    Kind(ImplementationKind),
    /// `mfxImplDescription.ApiVersion.Version`: at least this.
    ApiAtLeast(u16, u16),
    /// `mfxExtendedDeviceId.DRMRenderNodeNum`: the number in `/dev/dri/renderD128`.
    RenderNode(u32),
}

/// An `mfxLoader`. It lives as long as any session that came from it.
#[derive(Debug)]
pub struct Loader {
    raw: mfxLoader,
    dispatcher: &'static Dispatcher,
}

// SAFETY: a loader may be used from any thread; this type gives shared access to reading calls only after
// its filters are set.
unsafe impl Send for Loader {}
// SAFETY: as above; the dispatcher keeps no thread-local state.
unsafe impl Sync for Loader {}

impl Loader {
    /// `MFXLoad` with these filters.
    ///
    /// # Errors
    /// The dispatcher is not on this machine, or refuses.
    pub fn new(filters: &[Filter]) -> Result<Self, LoadError> {
        let dispatcher = dispatcher()?;
        // SAFETY: no argument.
        let raw = unsafe { (dispatcher.loader.MFXLoad)() };
        if raw.is_null() {
            return Err(LoadError::NoDispatcher {
                reason: "MFXLoad gives no loader".to_owned(),
            });
        }
        let loader = Self { raw, dispatcher };
        for filter in filters {
            loader
                .set(*filter)
                .map_err(|status| LoadError::NoDispatcher {
                    reason: format!("MFXSetConfigFilterProperty answers {status} to {filter:?}"),
                })?;
        }
        Ok(loader)
    }

    fn set(&self, filter: Filter) -> Result<(), MfxStatus> {
        let (name, value) = match filter {
            Filter::Kind(ImplementationKind::Software) => {
                (c"mfxImplDescription.Impl", MFX_IMPL_TYPE_SOFTWARE)
            }
            Filter::Kind(ImplementationKind::Hardware) => {
                (c"mfxImplDescription.Impl", MFX_IMPL_TYPE_HARDWARE)
            }
            Filter::ApiAtLeast(major, minor) => (
                c"mfxImplDescription.ApiVersion.Version",
                u32::from(major) << 16 | u32::from(minor),
            ),
            Filter::RenderNode(number) => (c"mfxExtendedDeviceId.DRMRenderNodeNum", number),
        };
        // SAFETY: the loader is valid.
        let config = unsafe { (self.dispatcher.loader.MFXCreateConfig)(self.raw) };
        let variant = mfxVariant {
            Type: MFX_VARIANT_TYPE_U32,
            Data: mfxVariant_data { U32: value },
            ..Default::default()
        };
        // SAFETY: the configuration belongs to the loader; the name is a C string.
        let status = unsafe {
            (self.dispatcher.loader.MFXSetConfigFilterProperty)(
                config,
                name.as_ptr().cast(),
                variant,
            )
        };
        if status.is_error() {
            return Err(status);
        }
        Ok(())
    }

    /// The runtimes that match, best first.
    pub fn implementations(&self) -> Vec<Implementation> {
        (0..).map_while(|index| self.describe(index)).collect()
    }

    fn describe(&self, index: u32) -> Option<Implementation> {
        let description = self.capability(index, MFX_IMPLCAPS_IMPLDESCSTRUCTURE)?;
        let path = self.capability(index, MFX_IMPLCAPS_IMPLPATH);
        // SAFETY: with this format the dispatcher gives an mfxImplDescription, valid until it is released.
        let shown = unsafe { &*description.cast::<mfxImplDescription>() };
        // SAFETY: the version's arms are integers.
        let api = unsafe { shown.ApiVersion.__bindgen_anon_1 };
        let found = Implementation {
            index,
            name: text(&shown.ImplName),
            kind: match shown.Impl {
                MFX_IMPL_TYPE_HARDWARE => ImplementationKind::Hardware,
                _ => ImplementationKind::Software,
            },
            api: (api.Major, api.Minor),
            path: path.map(|path| {
                // SAFETY: with this format the dispatcher gives a C string.
                let path = unsafe { CStr::from_ptr(path.cast::<c_char>()) };
                PathBuf::from(path.to_string_lossy().into_owned())
            }),
            codecs: decoders(&shown.Dec),
        };
        for handle in [Some(description), path].into_iter().flatten() {
            // SAFETY: the handle came from this loader and is not used again.
            unsafe { (self.dispatcher.loader.MFXDispReleaseImplDescription)(self.raw, handle) };
        }
        Some(found)
    }

    fn capability(&self, index: u32, format: mfxImplCapsDeliveryFormat) -> Option<*mut c_void> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the loader and the address are valid.
        let status = unsafe {
            (self.dispatcher.loader.MFXEnumImplementations)(self.raw, index, format, &mut handle)
        };
        (!status.is_error() && !handle.is_null()).then_some(handle)
    }

    /// `MFXCreateSession` of the runtime with this number.
    ///
    /// # Errors
    /// The dispatcher's or the runtime's status.
    pub fn session(self: &Arc<Self>, index: u32) -> Result<Session, MfxStatus> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the loader and the address are valid.
        let status =
            unsafe { (self.dispatcher.loader.MFXCreateSession)(self.raw, index, &mut raw) };
        if status.is_error() {
            return Err(status);
        }
        let home = Home::Dispatcher(Arc::clone(self));
        Ok(Session::new(raw, self.dispatcher.session, home))
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // SAFETY: sessions hold their loader, so none is left, and the loader is not used again.
        unsafe { (self.dispatcher.loader.MFXUnload)(self.raw) };
    }
}

fn text(name: &[mfxChar]) -> String {
    let bytes: Vec<u8> = name
        .iter()
        .map(|&c| c as u8)
        .take_while(|&c| c != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn decoders(description: &mfxDecoderDescription) -> Vec<u32> {
    if description.Codecs.is_null() {
        return Vec::new();
    }
    // SAFETY: the description has NumCodecs entries there and is not released yet.
    let codecs =
        unsafe { std::slice::from_raw_parts(description.Codecs, description.NumCodecs.into()) };
    codecs.iter().map(|codec| codec.CodecID).collect()
}
