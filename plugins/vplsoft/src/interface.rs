// SPDX-License-Identifier: MPL-2.0

//! The functions of `mfxFrameSurfaceInterface`.

use std::sync::Arc;

use onevpl_sys::*;

use crate::exports::guard;
use crate::memory::deref;
use crate::surface::{Surface, find, version};

/// The table that every surface carries.
pub(crate) fn interface() -> mfxFrameSurfaceInterface {
    mfxFrameSurfaceInterface {
        Version: version(1, 0),
        AddRef: Some(add_ref),
        Release: Some(release),
        GetRefCounter: Some(get_ref_counter),
        Map: Some(map),
        Unmap: Some(unmap),
        GetNativeHandle: Some(get_native_handle),
        GetDeviceHandle: Some(get_device_handle),
        Synchronize: Some(synchronize),
        OnComplete: None,
        QueryInterface: Some(query_interface),
        ..Default::default()
    }
}

fn with(surface: *mut mfxFrameSurface1, call: impl FnOnce(Arc<Surface>) -> MfxStatus) -> MfxStatus {
    guard(|| match find(surface) {
        _ if surface.is_null() => MfxStatus::ERR_NULL_PTR,
        None => MfxStatus::ERR_INVALID_HANDLE,
        Some(surface) => call(surface),
    })
}

unsafe extern "C" fn add_ref(surface: *mut mfxFrameSurface1) -> MfxStatus {
    with(surface, |surface| surface.add_reference())
}

unsafe extern "C" fn release(surface: *mut mfxFrameSurface1) -> MfxStatus {
    with(surface, Surface::release)
}

unsafe extern "C" fn get_ref_counter(
    surface: *mut mfxFrameSurface1,
    counter: *mut mfxU32,
) -> MfxStatus {
    with(surface, |surface| {
        let references = surface.references();
        // SAFETY: the client passes a counter of its own.
        match unsafe { deref(counter) } {
            Ok(counter) => {
                *counter = references;
                MfxStatus::ERR_NONE
            }
            Err(status) => status,
        }
    })
}

unsafe extern "C" fn map(surface: *mut mfxFrameSurface1, flags: mfxU32) -> MfxStatus {
    with(surface, |surface| surface.map(flags))
}

unsafe extern "C" fn unmap(surface: *mut mfxFrameSurface1) -> MfxStatus {
    with(surface, |surface| surface.unmap())
}

unsafe extern "C" fn synchronize(surface: *mut mfxFrameSurface1, wait: mfxU32) -> MfxStatus {
    with(surface, |surface| surface.synchronize(wait))
}

unsafe extern "C" fn get_native_handle(
    surface: *mut mfxFrameSurface1,
    resource: *mut mfxHDL,
    resource_type: *mut mfxResourceType,
) -> MfxStatus {
    with(surface, |_| {
        if resource.is_null() || resource_type.is_null() {
            MfxStatus::ERR_NULL_PTR
        } else {
            MfxStatus::ERR_UNSUPPORTED // the surface is in system memory
        }
    })
}

unsafe extern "C" fn get_device_handle(
    surface: *mut mfxFrameSurface1,
    device: *mut mfxHDL,
    device_type: *mut mfxHandleType,
) -> MfxStatus {
    with(surface, |_| {
        if device.is_null() || device_type.is_null() {
            MfxStatus::ERR_NULL_PTR
        } else {
            MfxStatus::ERR_UNSUPPORTED
        }
    })
}

unsafe extern "C" fn query_interface(
    surface: *mut mfxFrameSurface1,
    _guid: mfxGUID,
    iface: *mut mfxHDL,
) -> MfxStatus {
    with(surface, |_| {
        if iface.is_null() {
            MfxStatus::ERR_NULL_PTR
        } else {
            MfxStatus::ERR_UNSUPPORTED
        }
    })
}
