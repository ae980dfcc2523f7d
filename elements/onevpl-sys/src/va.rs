// SPDX-License-Identifier: MPL-2.0

//! [`VaDisplay`]: a VA-API display of a render node, which hardware runtimes on Linux work on.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use libloading::Library;

type GetDisplay = unsafe extern "C" fn(c_int) -> *mut c_void;
type Initialize = unsafe extern "C" fn(*mut c_void, *mut c_int, *mut c_int) -> c_int;
type Terminate = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Why a render node gives no display.
#[derive(Debug, thiserror::Error)]
pub enum VaError {
    /// A library is missing.
    #[error("{library} cannot be loaded ({reason}): install libva2 and libva-drm2")]
    NoLibrary {
        /// Its name.
        library: &'static str,
        /// The loader's reason.
        reason: String,
    },
    /// The node cannot be opened.
    #[error(
        "{path} cannot be opened ({source}): check that it exists and that the user is in its group"
    )]
    NoDevice {
        /// The node.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The node has no driver.
    #[error(
        "{path} has no VA-API driver (vaInitialize answers {status}): install intel-media-va-driver"
    )]
    NoDriver {
        /// The node.
        path: PathBuf,
        /// `VAStatus`.
        status: i32,
    },
}

/// A display. Dropping it ends it and closes the node.
#[derive(Debug)]
pub struct VaDisplay {
    raw: *mut c_void,
    terminate: Terminate,
    /// Behind the display: it works on the file.
    _node: File,
}

// SAFETY: libva allows calls of a display from any thread.
unsafe impl Send for VaDisplay {}

impl VaDisplay {
    /// Opens a render node such as `/dev/dri/renderD128`.
    ///
    /// # Errors
    /// A library, the node or its driver is missing.
    pub fn open(path: &Path) -> Result<Self, VaError> {
        let va = library("libva.so.2")?;
        let drm = library("libva-drm.so.2")?;
        let get_display: GetDisplay = symbol(&drm, "libva-drm.so.2", "vaGetDisplayDRM")?;
        let initialize: Initialize = symbol(&va, "libva.so.2", "vaInitialize")?;
        let terminate: Terminate = symbol(&va, "libva.so.2", "vaTerminate")?;
        let node = File::options().read(true).write(true).open(path);
        let node = node.map_err(|source| VaError::NoDevice {
            path: path.to_owned(),
            source,
        })?;
        // SAFETY: the descriptor is open and stays so as long as the display.
        let raw = unsafe { get_display(node.as_raw_fd()) };
        let no_driver = |status| VaError::NoDriver {
            path: path.to_owned(),
            status,
        };
        if raw.is_null() {
            return Err(no_driver(-1));
        }
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the display and both addresses are valid.
        let status = unsafe { initialize(raw, &mut major, &mut minor) };
        let display = Self {
            raw,
            terminate,
            _node: node,
        };
        if status != 0 {
            return Err(no_driver(status));
        }
        Ok(display)
    }

    pub(crate) fn as_ptr(&self) -> *mut c_void {
        self.raw
    }
}

impl Drop for VaDisplay {
    fn drop(&mut self) {
        // SAFETY: the display is not used again.
        unsafe { (self.terminate)(self.raw) };
    }
}

/// Opened once and never closed: a driver's threads may outlive every display.
fn library(name: &'static str) -> Result<ManuallyDrop<Library>, VaError> {
    // SAFETY: libva runs no code at load time beyond its own set-up.
    unsafe { Library::new(name) }
        .map(ManuallyDrop::new)
        .map_err(|error| VaError::NoLibrary {
            library: name,
            reason: error.to_string(),
        })
}

fn symbol<T: Copy>(library: &Library, name: &'static str, symbol: &str) -> Result<T, VaError> {
    // SAFETY: the callers name functions of va.h and va_drm.h with their types.
    unsafe { library.get::<T>(symbol) }
        .map(|symbol| *symbol)
        .map_err(|error| VaError::NoLibrary {
            library: name,
            reason: error.to_string(),
        })
}
