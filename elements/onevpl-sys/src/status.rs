// SPDX-License-Identifier: MPL-2.0

//! [`MfxStatus`], what every oneVPL function answers.

use std::fmt;

/// `mfxStatus` (mfxdefs.h): negative is an error, zero is success, positive is a warning.
///
/// A newtype and no enum, because a runtime may answer any integer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct MfxStatus(pub i32);

macro_rules! statuses {
    ($($name:ident = $value:literal, $doc:literal;)*) => {
        impl MfxStatus {
            $(#[doc = $doc] pub const $name: MfxStatus = MfxStatus($value);)*

            /// Every status that the headers name.
            pub const ALL: &[MfxStatus] = &[$(MfxStatus::$name),*];

            /// The header's name without its `MFX_`, or `None` for a value that the headers do not know.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    ERR_NONE_PARTIAL_OUTPUT = 12, "Part of a frame is ready (low-delay encoding).";
    WRN_ALLOC_TIMEOUT_EXPIRED = 13, "Every surface of the pool is in use, and the wait for one expired.";
    TASK_BUSY = 9, "Internal: the task waits for its turn.";
    TASK_WORKING = 8, "Internal: the task is running.";
    WRN_FILTER_SKIPPED = 10, "A filter of the processing chain was skipped.";
    WRN_OUT_OF_RANGE = 7, "A value was out of range and was clipped.";
    WRN_VALUE_NOT_CHANGED = 6, "The value was clipped and is as it was.";
    WRN_INCOMPATIBLE_VIDEO_PARAM = 5, "Parameters contradicted each other and were resolved.";
    WRN_PARTIAL_ACCELERATION = 4, "Part of the work is not done by the hardware.";
    WRN_VIDEO_PARAM_CHANGED = 3, "A new sequence header was met; decoding can go on.";
    WRN_DEVICE_BUSY = 2, "The device takes no work at the moment.";
    WRN_IN_EXECUTION = 1, "The operation has not ended within the wait.";
    ERR_NONE = 0, "Success.";
    ERR_UNKNOWN = -1, "An error without a name.";
    ERR_NULL_PTR = -2, "A required pointer is null.";
    ERR_UNSUPPORTED = -3, "The feature or parameter is not supported.";
    ERR_MEMORY_ALLOC = -4, "Memory could not be allocated.";
    ERR_NOT_ENOUGH_BUFFER = -5, "A buffer is too small.";
    ERR_INVALID_HANDLE = -6, "A handle is not valid.";
    ERR_LOCK_MEMORY = -7, "Memory could not be locked or mapped.";
    ERR_NOT_INITIALIZED = -8, "The component is not initialised.";
    ERR_NOT_FOUND = -9, "The object was not found.";
    ERR_MORE_DATA = -10, "More bitstream is needed, or a drain is complete.";
    ERR_MORE_SURFACE = -11, "Another work surface is needed.";
    ERR_ABORTED = -12, "The operation was aborted.";
    ERR_DEVICE_LOST = -13, "The device was lost.";
    ERR_INCOMPATIBLE_VIDEO_PARAM = -14, "The stream's new parameters need another initialisation.";
    ERR_INVALID_VIDEO_PARAM = -15, "A parameter is invalid.";
    ERR_UNDEFINED_BEHAVIOR = -16, "The call is not allowed in this state.";
    ERR_DEVICE_FAILED = -17, "The device failed.";
    ERR_MORE_BITSTREAM = -18, "More output bitstream is needed (encoding).";
    ERR_GPU_HANG = -21, "The GPU hung.";
    ERR_REALLOC_SURFACE = -22, "The work surface is too small.";
    ERR_RESOURCE_MAPPED = -23, "The resource is mapped elsewhere.";
    ERR_NOT_IMPLEMENTED = -24, "The function is not implemented.";
    ERR_MORE_EXTBUFFER = -25, "An extension buffer is missing.";
    ERR_MORE_DATA_SUBMIT_TASK = -10000, "Internal: a task was submitted although more data is needed.";
}

impl MfxStatus {
    /// Whether the call failed. Warnings are no errors.
    pub const fn is_error(self) -> bool {
        self.0 < 0
    }

    /// Whether the call succeeded with something to say.
    pub const fn is_warning(self) -> bool {
        self.0 > 0
    }
}

impl fmt::Display for MfxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "MFX_{name} ({})", self.0),
            None => write!(f, "mfxStatus {}", self.0),
        }
    }
}

impl fmt::Debug for MfxStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_numbers_that_are_often_quoted_wrong() {
        assert_eq!(MfxStatus::WRN_VIDEO_PARAM_CHANGED.0, 3);
        assert_eq!(MfxStatus::WRN_INCOMPATIBLE_VIDEO_PARAM.0, 5);
    }

    #[test]
    fn a_status_names_itself_and_an_unknown_one_shows_its_number() {
        assert_eq!(MfxStatus(2).to_string(), "MFX_WRN_DEVICE_BUSY (2)");
        assert_eq!(MfxStatus(-777).to_string(), "mfxStatus -777");
        assert!(MfxStatus(-777).is_error() && !MfxStatus(-777).is_warning());
        assert!(
            MfxStatus(777).is_warning() && !MfxStatus(0).is_warning() && !MfxStatus(0).is_error()
        );
    }

    #[test]
    fn no_value_has_two_names() {
        let mut values: Vec<i32> = MfxStatus::ALL.iter().map(|status| status.0).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), MfxStatus::ALL.len());
    }
}
