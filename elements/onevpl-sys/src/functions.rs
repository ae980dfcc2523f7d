// SPDX-License-Identifier: MPL-2.0

//! The functions of oneVPL as tables of pointers. Their documentation is that of the headers.

use std::ffi::c_void;

use libloading::Library;

use crate::MfxStatus;
use crate::bindings::*;

/// A function that a library should export and does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the function {0} is missing")]
pub struct MissingFunction(pub &'static str);

macro_rules! table {
    ($(#[$doc:meta])* $table:ident { $($name:ident($($arg:ty),*) $(-> $ret:ty)?;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[allow(non_snake_case, reason = "the names are those of the C interface")]
        pub struct $table {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,
            )*
        }

        impl $table {
            /// The names of the functions, in the order of the table.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Takes every function of the table from `library`.
            ///
            /// # Errors
            /// The first function that the library lacks.
            ///
            /// # Safety
            /// `library` has to define the names as the headers declare them, and has to stay loaded
            /// as long as any pointer of the table is called.
            pub unsafe fn load(library: &Library) -> Result<Self, MissingFunction> {
                Ok(Self {
                    $(
                        // SAFETY: the caller vouches for the symbol's type.
                        $name: unsafe {
                            *library
                                .get::<unsafe extern "C" fn($($arg),*) $(-> $ret)?>(stringify!($name))
                                .map_err(|_| MissingFunction(stringify!($name)))?
                        },
                    )*
                })
            }
        }
    };
}

table! {
    /// What only the dispatcher has: the search for runtimes (mfxdispatcher.h).
    LoaderFunctions {
        MFXLoad() -> mfxLoader;
        MFXUnload(mfxLoader);
        MFXCreateConfig(mfxLoader) -> mfxConfig;
        MFXSetConfigFilterProperty(mfxConfig, *const mfxU8, mfxVariant) -> MfxStatus;
        MFXEnumImplementations(mfxLoader, mfxU32, mfxImplCapsDeliveryFormat, *mut mfxHDL) -> MfxStatus;
        MFXCreateSession(mfxLoader, mfxU32, *mut mfxSession) -> MfxStatus;
        MFXDispReleaseImplDescription(mfxLoader, mfxHDL) -> MfxStatus;
    }
}

table! {
    /// What only a runtime has: a session without a search (mfxsession.h).
    RuntimeFunctions {
        MFXInitialize(mfxInitializationParam, *mut mfxSession) -> MfxStatus;
    }
}

table! {
    /// What the dispatcher and every runtime have: a session and its decoder (mfxsession.h, mfxvideo.h).
    SessionFunctions {
        MFXClose(mfxSession) -> MfxStatus;
        MFXQueryIMPL(mfxSession, *mut mfxIMPL) -> MfxStatus;
        MFXQueryVersion(mfxSession, *mut mfxVersion) -> MfxStatus;
        MFXVideoCORE_SetFrameAllocator(mfxSession, *mut mfxFrameAllocator) -> MfxStatus;
        MFXVideoCORE_SetHandle(mfxSession, mfxHandleType, mfxHDL) -> MfxStatus;
        MFXVideoCORE_GetHandle(mfxSession, mfxHandleType, *mut mfxHDL) -> MfxStatus;
        MFXVideoCORE_QueryPlatform(mfxSession, *mut mfxPlatform) -> MfxStatus;
        MFXVideoCORE_SyncOperation(mfxSession, mfxSyncPoint, mfxU32) -> MfxStatus;
        MFXMemory_GetSurfaceForDecode(mfxSession, *mut *mut mfxFrameSurface1) -> MfxStatus;
        MFXVideoDECODE_Query(mfxSession, *mut mfxVideoParam, *mut mfxVideoParam) -> MfxStatus;
        MFXVideoDECODE_DecodeHeader(mfxSession, *mut mfxBitstream, *mut mfxVideoParam) -> MfxStatus;
        MFXVideoDECODE_QueryIOSurf(mfxSession, *mut mfxVideoParam, *mut mfxFrameAllocRequest) -> MfxStatus;
        MFXVideoDECODE_Init(mfxSession, *mut mfxVideoParam) -> MfxStatus;
        MFXVideoDECODE_Reset(mfxSession, *mut mfxVideoParam) -> MfxStatus;
        MFXVideoDECODE_Close(mfxSession) -> MfxStatus;
        MFXVideoDECODE_GetVideoParam(mfxSession, *mut mfxVideoParam) -> MfxStatus;
        MFXVideoDECODE_GetDecodeStat(mfxSession, *mut mfxDecodeStat) -> MfxStatus;
        MFXVideoDECODE_SetSkipMode(mfxSession, mfxSkipMode) -> MfxStatus;
        MFXVideoDECODE_GetPayload(mfxSession, *mut mfxU64, *mut mfxPayload) -> MfxStatus;
        MFXVideoDECODE_DecodeFrameAsync(
            mfxSession,
            *mut mfxBitstream,
            *mut mfxFrameSurface1,
            *mut *mut mfxFrameSurface1,
            *mut mfxSyncPoint
        ) -> MfxStatus;
    }
}

/// The address of an exported datum or function whose type this crate does not know.
pub fn address_of(library: &Library, name: &str) -> Option<*mut c_void> {
    // SAFETY: the address is taken and nothing behind it is read.
    let symbol = unsafe { library.get::<*mut c_void>(name) };
    symbol.ok().map(|symbol| *symbol)
}
