// SPDX-License-Identifier: MPL-2.0

//! [`LoadError`]: what is missing on this machine, and what to install.

use std::fmt;
use std::path::PathBuf;

use libloading::Library;

use crate::{CuError, CuResult};

/// The oldest driver interface that is used: CUDA 11.4, NVIDIA driver 470 (the headers' own minimum).
pub const MINIMUM_DRIVER: DriverVersion = DriverVersion(11_040);

/// The version of CUDA that a driver supports: 1000 times the major number plus 10 times the minor one
/// (`cuDriverGetVersion`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion(pub i32);

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

/// Why this machine cannot decode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// `libcuda` is not there.
    #[error(
        "the NVIDIA driver's libcuda.so.1 cannot be loaded ({reason}): install the NVIDIA driver (package \
         libcuda1 on Debian, libnvidia-compute-NNN on Ubuntu); a container needs the NVIDIA runtime (--gpus all)"
    )]
    NoDriver {
        /// The loader's reason.
        reason: String,
    },
    /// `libcuda` lacks functions that every driver in use has.
    #[error(
        "{library} is not usable: the function {function} is missing; install NVIDIA driver 470 or newer and \
         remove other files of this name from the library path"
    )]
    IncompleteDriver {
        /// The file that was loaded.
        library: String,
        /// The first function that is missing.
        function: &'static str,
    },
    /// The driver is older than the interface that is used.
    #[error(
        "the NVIDIA driver is too old: it supports CUDA {found}, and {MINIMUM_DRIVER} is needed; install NVIDIA \
         driver 470 or newer"
    )]
    DriverTooOld {
        /// What the driver supports.
        found: DriverVersion,
    },
    /// The driver is there and finds no device.
    #[error(
        "the NVIDIA driver finds no device ({reason}): check that nvidia-smi lists one, that the kernel module \
         nvidia is loaded, that CUDA_VISIBLE_DEVICES does not hide it, and that a container was started with it"
    )]
    NoDevice {
        /// What the driver answered.
        reason: String,
    },
    /// The driver did not start for another reason.
    #[error("the NVIDIA driver does not start ({error}): {advice}")]
    DriverFailed {
        /// What it answered.
        error: CuError,
        /// What to do.
        advice: &'static str,
    },
    /// There is no device of this number.
    #[error("there is no CUDA device {index}: the driver knows {count}, numbered from 0")]
    DeviceNumber {
        /// The number that was asked for.
        index: u32,
        /// How many devices there are.
        count: u32,
    },
    /// `libnvcuvid` is not there.
    #[error(
        "the NVIDIA driver's libnvcuvid.so.1 cannot be loaded ({reason}): install it (package libnvcuvid1 on \
         Debian, libnvidia-decode-NNN on Ubuntu, of the driver's own version); a container needs \
         NVIDIA_DRIVER_CAPABILITIES=compute,video,utility"
    )]
    NoNvcuvid {
        /// The loader's reason.
        reason: String,
    },
    /// `libnvcuvid` lacks functions that every driver in use has.
    #[error(
        "{library} is not usable: the function {function} is missing; install the library of NVIDIA driver 470 \
         or newer and remove a stub of the Video Codec SDK from the library path"
    )]
    IncompleteNvcuvid {
        /// The file that was loaded.
        library: String,
        /// The first function that is missing.
        function: &'static str,
    },
}

impl LoadError {
    /// Sorts what `cuInit` answered.
    pub(crate) fn from_init(error: CuError) -> Self {
        let advice = match error.code {
            CuResult::NO_DEVICE => {
                return LoadError::NoDevice {
                    reason: error.to_string(),
                };
            }
            CuResult::STUB_LIBRARY => {
                "the libcuda that was found is the CUDA toolkit's stub; remove its folder from LD_LIBRARY_PATH"
            }
            CuResult::SYSTEM_DRIVER_MISMATCH => {
                "libcuda and the loaded kernel module are of different versions; reboot, or install both from \
                 one driver"
            }
            CuResult::COMPAT_NOT_SUPPORTED_ON_DEVICE => {
                "this device does not take CUDA's forward-compatible libcuda; remove it from LD_LIBRARY_PATH"
            }
            CuResult::SYSTEM_NOT_READY => "start the system's NVIDIA services (fabric manager)",
            _ => {
                "check nvidia-smi and the kernel's log; a reboot is needed after most driver updates"
            }
        };
        LoadError::DriverFailed { error, advice }
    }
}

/// The loader's error with its causes: the outermost text alone says no more than which call failed.
pub(crate) fn explain(error: &libloading::Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

/// The address of `name`, or `None` where `library` does not export it.
pub(crate) fn address_of(library: &Library, name: &str) -> Option<*mut std::ffi::c_void> {
    // SAFETY: the address is taken and nothing behind it is read.
    let symbol = unsafe { library.get::<*mut std::ffi::c_void>(name) };
    symbol.ok().map(|symbol| *symbol)
}

/// The file that the code at `address` was loaded from.
pub(crate) fn file_of(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let path = line.find('/').map(|at| PathBuf::from(&line[at..]))?;
        (start..end).contains(&address).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_reads_as_people_write_it() {
        assert_eq!(DriverVersion(11_040).to_string(), "11.4");
        assert_eq!(DriverVersion(12_020).to_string(), "12.2");
        assert!(DriverVersion(11_020) < MINIMUM_DRIVER);
    }

    #[test]
    fn what_cu_init_answers_leads_to_the_advice_that_helps() {
        let said = |code| {
            LoadError::from_init(CuError {
                call: "cuInit",
                code,
            })
            .to_string()
        };
        assert!(said(CuResult::NO_DEVICE).contains("nvidia-smi"));
        assert!(said(CuResult::STUB_LIBRARY).contains("stub"));
        assert!(said(CuResult::SYSTEM_DRIVER_MISMATCH).contains("reboot"));
        assert!(said(CuResult(12_345)).contains("CUresult 12345"));
    }

    #[test]
    fn the_file_of_an_address_is_the_one_it_was_loaded_from() {
        let here =
            file_of(the_file_of_an_address_is_the_one_it_was_loaded_from as *const () as usize);
        assert_eq!(here, std::env::current_exe().ok());
        assert_eq!(file_of(1), None);
    }
}
