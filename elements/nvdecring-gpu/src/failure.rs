// SPDX-License-Identifier: MPL-2.0

//! Errors of the libraries as the ring's.

use nvcuvid_sys::{CuError, CuResult, Error, LoadError};
use nvdecring_core::{ErrorClass, GpuError};

/// An error of the driver.
pub fn of_driver(error: CuError) -> GpuError {
    let code = i32::try_from(error.code.0).unwrap_or(i32::MAX);
    GpuError {
        call: error.call,
        code,
        text: error
            .code
            .name()
            .unwrap_or("an error of a newer driver")
            .to_owned(),
        class: if error.code.is_sticky() {
            ErrorClass::Sticky
        } else {
            ErrorClass::of_cuda(code)
        },
    }
}

/// An error of a call that `nvcuvid-sys` wraps.
pub fn of_call(call: &'static str, error: Error) -> GpuError {
    match error {
        Error::Cuda(error) => of_driver(error),
        Error::Unsupported(function) => unsupported(function, error.to_string()),
        other => refused(call, other.to_string()),
    }
}

/// A library or device that cannot be opened.
pub fn of_loading(error: &LoadError) -> GpuError {
    let code = match error {
        LoadError::DriverFailed { error, .. } => error.code,
        LoadError::NoDevice { .. } => CuResult::NO_DEVICE,
        LoadError::DeviceNumber { .. } => CuResult::INVALID_DEVICE,
        _ => CuResult::NOT_FOUND,
    };
    GpuError {
        call: "opening the NVIDIA driver",
        code: i32::try_from(code.0).unwrap_or(i32::MAX),
        text: error.to_string(),
        class: ErrorClass::Single,
    }
}

/// Something that the device or library cannot do at all.
pub fn unsupported(call: &'static str, text: String) -> GpuError {
    GpuError {
        call,
        code: 801,
        text,
        class: ErrorClass::NotSupported,
    }
}

/// A call that was not made because its arguments make no sense.
pub fn refused(call: &'static str, text: String) -> GpuError {
    GpuError {
        call,
        code: 1,
        text,
        class: ErrorClass::Single,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_context_is_sticky_and_a_missing_function_unsupported() {
        let lost = of_driver(CuError {
            call: "cuvidMapVideoFrame",
            code: CuResult::ILLEGAL_ADDRESS,
        });
        assert_eq!(lost.class, ErrorClass::Sticky);
        assert_eq!(
            lost.to_string(),
            "cuvidMapVideoFrame failed: CUDA_ERROR_ILLEGAL_ADDRESS (error 700)"
        );
        let missing = of_call("status", Error::Unsupported("cuvidGetDecodeStatus"));
        assert_eq!(missing.class, ErrorClass::NotSupported);
        let newer = of_driver(CuError {
            call: "cuInit",
            code: CuResult(12_345),
        });
        assert_eq!((newer.code, newer.class), (12_345, ErrorClass::Single));
    }
}
