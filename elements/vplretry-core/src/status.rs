// SPDX-License-Identifier: MPL-2.0

//! `mfxStatus` as a number with a name.
//!
//! Any `i32` is a valid [`Status`]: runtimes return codes that their header does not list.
//! Values are those of `mfxdefs.h` (API 2.17; Debian's 2.8 has the same up to -24).

use std::fmt;

/// A status of the oneVPL API: 0 is success, negative an error, positive a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:literal, $mfx:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`", $mfx, "`, ", stringify!($value), ".")]
                pub const $name: Status = Status($value);
            )*

            /// Every status that has a name, in the order of the status table in the guide.
            pub const NAMED: &[(Status, &str)] = &[$((Status($value), $mfx)),*];
        }
    };
}

statuses! {
    NONE = 0, "MFX_ERR_NONE";
    UNKNOWN = -1, "MFX_ERR_UNKNOWN";
    NULL_PTR = -2, "MFX_ERR_NULL_PTR";
    UNSUPPORTED = -3, "MFX_ERR_UNSUPPORTED";
    MEMORY_ALLOC = -4, "MFX_ERR_MEMORY_ALLOC";
    NOT_ENOUGH_BUFFER = -5, "MFX_ERR_NOT_ENOUGH_BUFFER";
    INVALID_HANDLE = -6, "MFX_ERR_INVALID_HANDLE";
    LOCK_MEMORY = -7, "MFX_ERR_LOCK_MEMORY";
    NOT_INITIALIZED = -8, "MFX_ERR_NOT_INITIALIZED";
    NOT_FOUND = -9, "MFX_ERR_NOT_FOUND";
    MORE_DATA = -10, "MFX_ERR_MORE_DATA";
    MORE_SURFACE = -11, "MFX_ERR_MORE_SURFACE";
    ABORTED = -12, "MFX_ERR_ABORTED";
    DEVICE_LOST = -13, "MFX_ERR_DEVICE_LOST";
    INCOMPATIBLE_VIDEO_PARAM = -14, "MFX_ERR_INCOMPATIBLE_VIDEO_PARAM";
    INVALID_VIDEO_PARAM = -15, "MFX_ERR_INVALID_VIDEO_PARAM";
    UNDEFINED_BEHAVIOR = -16, "MFX_ERR_UNDEFINED_BEHAVIOR";
    DEVICE_FAILED = -17, "MFX_ERR_DEVICE_FAILED";
    MORE_BITSTREAM = -18, "MFX_ERR_MORE_BITSTREAM";
    GPU_HANG = -21, "MFX_ERR_GPU_HANG";
    REALLOC_SURFACE = -22, "MFX_ERR_REALLOC_SURFACE";
    RESOURCE_MAPPED = -23, "MFX_ERR_RESOURCE_MAPPED";
    NOT_IMPLEMENTED = -24, "MFX_ERR_NOT_IMPLEMENTED";
    MORE_EXTBUFFER = -25, "MFX_ERR_MORE_EXTBUFFER";
    IN_EXECUTION = 1, "MFX_WRN_IN_EXECUTION";
    DEVICE_BUSY = 2, "MFX_WRN_DEVICE_BUSY";
    VIDEO_PARAM_CHANGED = 3, "MFX_WRN_VIDEO_PARAM_CHANGED";
    PARTIAL_ACCELERATION = 4, "MFX_WRN_PARTIAL_ACCELERATION";
    WRN_INCOMPATIBLE_VIDEO_PARAM = 5, "MFX_WRN_INCOMPATIBLE_VIDEO_PARAM";
    VALUE_NOT_CHANGED = 6, "MFX_WRN_VALUE_NOT_CHANGED";
    OUT_OF_RANGE = 7, "MFX_WRN_OUT_OF_RANGE";
    TASK_WORKING = 8, "MFX_TASK_WORKING";
    TASK_BUSY = 9, "MFX_TASK_BUSY";
    FILTER_SKIPPED = 10, "MFX_WRN_FILTER_SKIPPED";
    PARTIAL_OUTPUT = 12, "MFX_ERR_NONE_PARTIAL_OUTPUT";
    ALLOC_TIMEOUT_EXPIRED = 13, "MFX_WRN_ALLOC_TIMEOUT_EXPIRED";
    MORE_DATA_SUBMIT_TASK = -10000, "MFX_ERR_MORE_DATA_SUBMIT_TASK";
}

impl Status {
    /// The name in the header, or `None` for a code that no header lists.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED
            .iter()
            .find_map(|&(status, name)| (status == self).then_some(name))
    }

    /// Negative: the call failed, or asks for something that only a new call can bring.
    pub fn is_error(self) -> bool {
        self.0 < 0
    }

    /// All surfaces of the pool are held by the application or by what follows it.
    pub fn is_starvation(self) -> bool {
        matches!(self, Self::ALLOC_TIMEOUT_EXPIRED | Self::MORE_SURFACE)
    }
}

impl From<i32> for Status {
    fn from(value: i32) -> Self {
        Self(value)
    }
}

impl From<Status> for i32 {
    fn from(status: Status) -> Self {
        status.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "mfxStatus {}", self.0),
        }
    }
}
