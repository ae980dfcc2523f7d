// SPDX-License-Identifier: MPL-2.0

//! [`Driver`]: `libcuda`, opened at the first use and never closed, with its functions as a table.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::driver::sys::{
    self, CUDA_MEMCPY2D, CUcontext, CUdevice, CUevent, CUstream, is_culib_present,
};
use libloading::Library;

use crate::load::{DriverVersion, MINIMUM_DRIVER, address_of, explain, file_of};
use crate::{CuError, CuResult, LoadError};

macro_rules! functions {
    ($($name:ident($($arg:ty),*);)*) => {
        /// The functions of libcuda that decoding needs. Their documentation is CUDA's driver API.
        #[derive(Clone, Copy, Debug)]
        #[allow(non_snake_case, reason = "the names are those of the C interface")]
        pub struct DriverFunctions {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub $name: unsafe extern "C" fn($($arg),*) -> CuResult,
            )*
        }

        impl DriverFunctions {
            /// The names of the functions.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The name of the first function that is missing is the error.
            fn load(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $(
                        // SAFETY: the symbol is libcuda's, whose signature the constant below compares.
                        $name: unsafe {
                            *library
                                .get::<unsafe extern "C" fn($($arg),*) -> CuResult>(stringify!($name))
                                .map_err(|_| stringify!($name))?
                        },
                    )*
                })
            }
        }

        // The signatures are those that cudarc generated from cuda.h.
        $(const _: unsafe fn($($arg),*) -> sys::CUresult = sys::$name;)*
    };
}

functions! {
    cuDriverGetVersion(*mut c_int);
    cuInit(c_uint);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuCtxCreate_v2(*mut CUcontext, c_uint, CUdevice);
    cuCtxDestroy_v2(CUcontext);
    cuCtxPushCurrent_v2(CUcontext);
    cuCtxPopCurrent_v2(*mut CUcontext);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamDestroy_v2(CUstream);
    cuStreamSynchronize(CUstream);
    cuStreamWaitEvent(CUstream, CUevent, c_uint);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventDestroy_v2(CUevent);
    cuEventRecord(CUevent, CUstream);
    cuEventQuery(CUevent);
    cuEventSynchronize(CUevent);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpy2DAsync_v2(*const CUDA_MEMCPY2D, CUstream);
}

/// The started driver.
#[derive(Debug)]
pub struct Driver {
    functions: DriverFunctions,
    version: DriverVersion,
    library: &'static Library,
}

/// A device of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    raw: CUdevice,
    index: u32,
}

impl Device {
    /// Its number, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The driver's handle.
    pub fn raw(self) -> CUdevice {
        self.raw
    }
}

impl Driver {
    /// Opens `libcuda` and starts the driver. Later calls answer the same driver; after a failure they try
    /// again.
    ///
    /// # Errors
    /// Whatever of [`LoadError`] concerns the driver: missing, incomplete, too old, without a device.
    pub fn load() -> Result<&'static Driver, LoadError> {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        // Outside the cell: `cuInit` may hang, and whoever asks next shall not wait for it behind a lock.
        // Two threads that start the driver at once do no harm.
        let driver = Self::open()?;
        Ok(DRIVER.get_or_init(|| driver))
    }

    fn open() -> Result<Driver, LoadError> {
        // SAFETY: loading libcuda runs its own set-up and nothing else.
        if !unsafe { is_culib_present() } {
            return Err(LoadError::NoDriver {
                reason: why_not_loaded(),
            });
        }
        let library = catch_unwind(|| {
            // SAFETY: as above; it panics where the file has gone since the line above.
            unsafe { sys::culib() }
        })
        .map_err(|_| LoadError::NoDriver {
            reason: why_not_loaded(),
        })?;
        let incomplete = |function| LoadError::IncompleteDriver {
            library: loaded_name(library),
            function,
        };
        // Before the others: an old driver shall be called old, not incomplete.
        let version = version_of(library).map_err(incomplete)??;
        if version < MINIMUM_DRIVER {
            return Err(LoadError::DriverTooOld { found: version });
        }
        let functions = DriverFunctions::load(library).map_err(incomplete)?;
        // SAFETY: no pointer is passed; 0 is the only flag there is.
        unsafe { (functions.cuInit)(0) }
            .check("cuInit")
            .map_err(LoadError::from_init)?;
        let driver = Driver {
            functions,
            version,
            library,
        };
        match driver.device_count()? {
            0 => Err(LoadError::NoDevice {
                reason: "it counts 0".to_owned(),
            }),
            _ => Ok(driver),
        }
    }

    /// The table, for calls that this crate does not wrap.
    pub fn functions(&self) -> &DriverFunctions {
        &self.functions
    }

    /// The version of CUDA that the driver supports.
    pub fn version(&self) -> DriverVersion {
        self.version
    }

    /// The file that was loaded.
    pub fn path(&self) -> Option<PathBuf> {
        file_of(self.functions.cuInit as *const () as usize)
    }

    /// The address of an export beyond the table, or `None` where there is none of that name.
    pub fn extension(&self, name: &str) -> Option<*mut c_void> {
        address_of(self.library, name)
    }

    /// How many devices there are.
    ///
    /// # Errors
    /// [`LoadError::DriverFailed`] where the driver does not say.
    pub fn device_count(&self) -> Result<u32, LoadError> {
        let mut count: c_int = 0;
        // SAFETY: the pointer is a local's.
        unsafe { (self.functions.cuDeviceGetCount)(&mut count) }
            .check("cuDeviceGetCount")
            .map_err(LoadError::from_init)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// The device of a number, from 0.
    ///
    /// # Errors
    /// [`LoadError::DeviceNumber`] where there is none, [`LoadError::DriverFailed`].
    pub fn device(&self, index: u32) -> Result<Device, LoadError> {
        let count = self.device_count()?;
        let number = c_int::try_from(index).unwrap_or(c_int::MAX);
        if index >= count {
            return Err(LoadError::DeviceNumber { index, count });
        }
        let mut raw: CUdevice = 0;
        // SAFETY: the pointer is a local's.
        unsafe { (self.functions.cuDeviceGet)(&mut raw, number) }
            .check("cuDeviceGet")
            .map_err(LoadError::from_init)?;
        Ok(Device { raw, index })
    }

    /// The device's name, such as `NVIDIA H200`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn device_name(&self, device: Device) -> Result<String, CuError> {
        let mut name = [0 as c_char; 256];
        // The last byte is not offered, so that the text is terminated whatever the driver writes.
        let room = (name.len() - 1) as c_int;
        // SAFETY: the array has more than `room` bytes.
        unsafe { (self.functions.cuDeviceGetName)(name.as_mut_ptr(), room, device.raw) }
            .check("cuDeviceGetName")?;
        // SAFETY: the array's last byte is zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        Ok(name.to_string_lossy().into_owned())
    }
}

/// The outer error is the function's name where `library` lacks it, the inner one what it answered.
fn version_of(library: &Library) -> Result<Result<DriverVersion, LoadError>, &'static str> {
    const NAME: &str = "cuDriverGetVersion";
    // SAFETY: the symbol is libcuda's, and the table below has its signature from cuda.h.
    let get = unsafe { library.get::<unsafe extern "C" fn(*mut c_int) -> CuResult>(NAME) }
        .map_err(|_| NAME)?;
    let mut version: c_int = 0;
    // SAFETY: the pointer is a local's; the call is allowed before cuInit.
    let answer = unsafe { get(&mut version) }.check(NAME);
    Ok(answer
        .map(|()| DriverVersion(version))
        .map_err(LoadError::from_init))
}

/// The loader's reason for the name that every driver installs.
fn why_not_loaded() -> String {
    // SAFETY: loading libcuda runs its own set-up and nothing else.
    match unsafe { Library::new("libcuda.so.1") } {
        Ok(_) => "it was found at the second attempt only".to_owned(),
        Err(error) => explain(&error),
    }
}

fn loaded_name(library: &Library) -> String {
    DriverFunctions::NAMES
        .iter()
        .find_map(|name| address_of(library, name))
        .and_then(|address| file_of(address as usize))
        .map_or_else(|| "libcuda".to_owned(), |path| path.display().to_string())
}
