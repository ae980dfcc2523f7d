// SPDX-License-Identifier: MPL-2.0

//! Functions that left the interface with API 2.0. The Media SDK dispatcher (libmfx.so.1, which FFmpeg and
//! GStreamer's msdk of Debian 12 use) refuses a runtime that lacks one of these names; a decoder calls none.

use onevpl_sys::{MfxStatus, mfxSession};

use crate::exports::absent;

macro_rules! absent {
    ($($name:ident)*) => {
        $(
            // SAFETY: no other symbol of this name is in the library. The arguments behind the session are
            // not read, and the caller of a C function takes them away.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the names are those of the C interface")]
            extern "C" fn $name(handle: mfxSession) -> MfxStatus {
                absent(handle)
            }
        )*
    };
}

absent! {
    MFXVideoCORE_SetBufferAllocator MFXDoWork
    MFXVideoUSER_Register MFXVideoUSER_Unregister MFXVideoUSER_GetPlugin MFXVideoUSER_ProcessFrameAsync
    MFXVideoENC_Query MFXVideoENC_QueryIOSurf MFXVideoENC_Init MFXVideoENC_Reset MFXVideoENC_Close
    MFXVideoENC_GetVideoParam MFXVideoENC_ProcessFrameAsync
    MFXVideoPAK_Query MFXVideoPAK_QueryIOSurf MFXVideoPAK_Init MFXVideoPAK_Reset MFXVideoPAK_Close
    MFXVideoPAK_GetVideoParam MFXVideoPAK_ProcessFrameAsync
    MFXVideoVPP_RunFrameVPPAsyncEx
}
