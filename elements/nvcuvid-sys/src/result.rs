// SPDX-License-Identifier: MPL-2.0

//! [`CuResult`], what every function of libcuda and libnvcuvid answers.

use std::fmt;

use cudarc::driver::sys;

/// `CUresult` (cuda.h): zero is success, everything else an error.
///
/// A newtype and no enum, because a driver may answer a code that is younger than this crate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct CuResult(pub u32);

macro_rules! results {
    ($($name:ident = $cuda:ident, $value:literal, $doc:literal;)*) => {
        impl CuResult {
            $(#[doc = $doc] pub const $name: CuResult = CuResult($value);)*

            /// Every code that this crate names.
            pub const ALL: &[CuResult] = &[$(CuResult::$name),*];

            /// CUDA's name, or `None` for a code that this crate does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($cuda)),)*
                    _ => None,
                }
            }
        }

        $(const _: () = assert!(sys::CUresult::$cuda as u32 == $value);)*
    };
}

results! {
    SUCCESS = CUDA_SUCCESS, 0, "Success.";
    INVALID_VALUE = CUDA_ERROR_INVALID_VALUE, 1, "A parameter is out of range. nvcuvid also answers it for a wrong picture index.";
    OUT_OF_MEMORY = CUDA_ERROR_OUT_OF_MEMORY, 2, "Device or host memory is short.";
    NOT_INITIALIZED = CUDA_ERROR_NOT_INITIALIZED, 3, "`cuInit` was not called or failed.";
    DEINITIALIZED = CUDA_ERROR_DEINITIALIZED, 4, "The driver is shutting down.";
    STUB_LIBRARY = CUDA_ERROR_STUB_LIBRARY, 34, "The loaded libcuda is the toolkit's link-time stub.";
    NO_DEVICE = CUDA_ERROR_NO_DEVICE, 100, "There is no CUDA device.";
    INVALID_DEVICE = CUDA_ERROR_INVALID_DEVICE, 101, "The device's number is not valid.";
    DEVICE_NOT_LICENSED = CUDA_ERROR_DEVICE_NOT_LICENSED, 102, "The virtual device has no licence.";
    INVALID_IMAGE = CUDA_ERROR_INVALID_IMAGE, 200, "A kernel image is not valid.";
    INVALID_CONTEXT = CUDA_ERROR_INVALID_CONTEXT, 201, "No context is current, or it is not valid.";
    MAP_FAILED = CUDA_ERROR_MAP_FAILED, 205, "A surface could not be mapped.";
    UNMAP_FAILED = CUDA_ERROR_UNMAP_FAILED, 206, "A surface could not be unmapped.";
    ALREADY_MAPPED = CUDA_ERROR_ALREADY_MAPPED, 208, "The resource is mapped already.";
    NO_BINARY_FOR_GPU = CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "The driver has no kernel for this device.";
    NOT_MAPPED = CUDA_ERROR_NOT_MAPPED, 211, "The resource is not mapped.";
    ECC_UNCORRECTABLE = CUDA_ERROR_ECC_UNCORRECTABLE, 214, "A memory error could not be corrected.";
    UNSUPPORTED_LIMIT = CUDA_ERROR_UNSUPPORTED_LIMIT, 215, "The device does not know the limit.";
    INVALID_SOURCE = CUDA_ERROR_INVALID_SOURCE, 300, "A source is not valid. nvcuvid answers it for a stream it cannot take.";
    FILE_NOT_FOUND = CUDA_ERROR_FILE_NOT_FOUND, 301, "A file of the driver was not found.";
    SHARED_OBJECT_INIT_FAILED = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303, "A library of the driver could not be initialised.";
    OPERATING_SYSTEM = CUDA_ERROR_OPERATING_SYSTEM, 304, "A call to the operating system failed.";
    INVALID_HANDLE = CUDA_ERROR_INVALID_HANDLE, 400, "A parser, decoder, stream or event is not valid.";
    ILLEGAL_STATE = CUDA_ERROR_ILLEGAL_STATE, 401, "A resource is not in a state that allows the call.";
    NOT_FOUND = CUDA_ERROR_NOT_FOUND, 500, "A named thing was not found.";
    NOT_READY = CUDA_ERROR_NOT_READY, 600, "Asynchronous work has not ended: an answer, no failure.";
    ILLEGAL_ADDRESS = CUDA_ERROR_ILLEGAL_ADDRESS, 700, "The device accessed an address that is not mapped.";
    LAUNCH_OUT_OF_RESOURCES = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "A kernel needs more than the device has.";
    LAUNCH_TIMEOUT = CUDA_ERROR_LAUNCH_TIMEOUT, 702, "A kernel ran too long.";
    CONTEXT_IS_DESTROYED = CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "The current context was destroyed.";
    HARDWARE_STACK_ERROR = CUDA_ERROR_HARDWARE_STACK_ERROR, 714, "The device's stack failed.";
    ILLEGAL_INSTRUCTION = CUDA_ERROR_ILLEGAL_INSTRUCTION, 715, "The device met an illegal instruction.";
    MISALIGNED_ADDRESS = CUDA_ERROR_MISALIGNED_ADDRESS, 716, "The device accessed a misaligned address.";
    INVALID_ADDRESS_SPACE = CUDA_ERROR_INVALID_ADDRESS_SPACE, 717, "The device accessed an address of the wrong kind.";
    INVALID_PC = CUDA_ERROR_INVALID_PC, 718, "The device's program counter is wrong.";
    LAUNCH_FAILED = CUDA_ERROR_LAUNCH_FAILED, 719, "A kernel failed.";
    NOT_PERMITTED = CUDA_ERROR_NOT_PERMITTED, 800, "The call is not permitted.";
    NOT_SUPPORTED = CUDA_ERROR_NOT_SUPPORTED, 801, "The device or driver does not support it.";
    SYSTEM_NOT_READY = CUDA_ERROR_SYSTEM_NOT_READY, 802, "The system is not ready (fabric manager, daemon).";
    SYSTEM_DRIVER_MISMATCH = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803, "libcuda and the kernel's driver differ in version.";
    COMPAT_NOT_SUPPORTED_ON_DEVICE = CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, "The forward-compatible libcuda does not support this device.";
    MPS_CONNECTION_FAILED = CUDA_ERROR_MPS_CONNECTION_FAILED, 805, "The multi-process server is not reachable.";
    TIMEOUT = CUDA_ERROR_TIMEOUT, 909, "The operation timed out.";
    EXTERNAL_DEVICE = CUDA_ERROR_EXTERNAL_DEVICE, 911, "A device outside CUDA failed.";
    UNKNOWN = CUDA_ERROR_UNKNOWN, 999, "An error without a name.";
}

impl CuResult {
    /// Turns the answer of `call` into a result.
    ///
    /// # Errors
    /// Every code but success.
    pub fn check(self, call: &'static str) -> Result<(), CuError> {
        match self {
            CuResult::SUCCESS => Ok(()),
            code => Err(CuError { call, code }),
        }
    }

    /// Whether the context is lost with it: every later call on the context fails too, and only a new one
    /// helps.
    pub const fn is_sticky(self) -> bool {
        matches!(
            self,
            CuResult::DEINITIALIZED
                | CuResult::ECC_UNCORRECTABLE
                | CuResult::ILLEGAL_ADDRESS
                | CuResult::LAUNCH_TIMEOUT
                | CuResult::CONTEXT_IS_DESTROYED
                | CuResult::HARDWARE_STACK_ERROR
                | CuResult::ILLEGAL_INSTRUCTION
                | CuResult::MISALIGNED_ADDRESS
                | CuResult::LAUNCH_FAILED
                | CuResult::EXTERNAL_DEVICE
                | CuResult::UNKNOWN
                | CuResult::INVALID_ADDRESS_SPACE
                | CuResult::INVALID_PC
                | CuResult(46) // CUDA_ERROR_DEVICE_UNAVAILABLE, younger than CUDA 11.4
        )
    }
}

impl fmt::Display for CuResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "CUresult {}", self.0),
        }
    }
}

impl fmt::Debug for CuResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {code}")]
pub struct CuError {
    /// The function's name.
    pub call: &'static str,
    /// What it answered.
    pub code: CuResult,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_names_itself_and_an_unknown_one_shows_its_number() {
        assert_eq!(CuResult(801).to_string(), "CUDA_ERROR_NOT_SUPPORTED (801)");
        assert_eq!(CuResult(1_514_961_680).to_string(), "CUresult 1514961680");
        let error = CuResult::OUT_OF_MEMORY
            .check("cuvidCreateDecoder")
            .expect_err("no success");
        assert_eq!(
            error.to_string(),
            "cuvidCreateDecoder: CUDA_ERROR_OUT_OF_MEMORY (2)"
        );
        assert_eq!(CuResult(0).check("cuInit"), Ok(()));
    }

    #[test]
    fn no_value_has_two_names() {
        let mut values: Vec<u32> = CuResult::ALL.iter().map(|code| code.0).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), CuResult::ALL.len());
    }

    #[test]
    fn only_what_destroys_a_context_is_sticky() {
        for code in [
            CuResult::LAUNCH_FAILED,
            CuResult::ILLEGAL_ADDRESS,
            CuResult::UNKNOWN,
        ] {
            assert!(code.is_sticky(), "{code}");
        }
        for code in [
            CuResult::SUCCESS,
            CuResult::NOT_READY,
            CuResult::NOT_SUPPORTED,
            CuResult::OUT_OF_MEMORY,
            CuResult::INVALID_VALUE,
            CuResult::MAP_FAILED,
        ] {
            assert!(!code.is_sticky(), "{code}");
        }
    }
}
