// SPDX-License-Identifier: MPL-2.0

//! Opening oneVPL at run time: the dispatcher, or one runtime without it.
//!
//! What was opened is never closed. The pointers of a table therefore stay valid for the life of the
//! process, and a thread that a runtime holds in a call never returns into unmapped code.

use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use crate::functions::{
    LoaderFunctions, MissingFunction, RuntimeFunctions, SessionFunctions, address_of,
};

/// Where the dispatcher is looked for, in order.
const DISPATCHER_NAMES: [&str; 2] = ["libvpl.so.2", "libvpl.so"];

/// Why a library cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoadError {
    /// The dispatcher is not on this machine.
    #[error(
        "the oneVPL dispatcher libvpl.so.2 cannot be loaded ({reason}): install the package libvpl2 \
         (Debian, Ubuntu) or libvpl (others)"
    )]
    NoDispatcher {
        /// The loader's reason.
        reason: String,
    },
    /// The runtime's file cannot be loaded.
    #[error(
        "the oneVPL runtime {path} cannot be loaded ({reason}): check the path and that its own libraries are installed"
    )]
    NoRuntime {
        /// The file that was tried.
        path: PathBuf,
        /// The loader's reason.
        reason: String,
    },
    /// The library was loaded but is not what its name says.
    #[error(
        "{library} is not usable as oneVPL 2.0: {missing}; install a version that is at least 2.0"
    )]
    Incomplete {
        /// The library's name or path.
        library: String,
        /// What it lacks.
        missing: MissingFunction,
    },
}

/// The dispatcher's functions.
#[derive(Debug)]
pub struct Dispatcher {
    /// The search for runtimes.
    pub loader: LoaderFunctions,
    /// Sessions and decoding.
    pub session: SessionFunctions,
}

/// Opens the dispatcher, once for the process; later calls answer the first call's result.
///
/// # Errors
/// [`LoadError::NoDispatcher`] where it is not installed, [`LoadError::Incomplete`] where it is too old.
pub fn dispatcher() -> Result<&'static Dispatcher, LoadError> {
    static DISPATCHER: OnceLock<Result<Dispatcher, LoadError>> = OnceLock::new();
    DISPATCHER
        .get_or_init(open_dispatcher)
        .as_ref()
        .map_err(Clone::clone)
}

fn open_dispatcher() -> Result<Dispatcher, LoadError> {
    let mut reason = String::new();
    for name in DISPATCHER_NAMES {
        match open(name.as_ref()) {
            Ok(library) => {
                // SAFETY: a library of this name is the dispatcher, and it is never unloaded.
                let loader = unsafe { LoaderFunctions::load(&library) };
                // SAFETY: as above.
                let session = unsafe { SessionFunctions::load(&library) };
                let incomplete = |missing| LoadError::Incomplete {
                    library: name.to_owned(),
                    missing,
                };
                return Ok(Dispatcher {
                    loader: loader.map_err(incomplete)?,
                    session: session.map_err(incomplete)?,
                });
            }
            Err(error) if reason.is_empty() => reason = explain(&error),
            Err(_) => {}
        }
    }
    Err(LoadError::NoDispatcher { reason })
}

/// One runtime, opened without the dispatcher. A session comes from
/// [`MFXInitialize`](RuntimeFunctions::MFXInitialize).
#[derive(Debug)]
pub struct DirectRuntime {
    /// The way to a session.
    pub runtime: RuntimeFunctions,
    /// Sessions and decoding.
    pub session: SessionFunctions,
    path: PathBuf,
    library: ManuallyDrop<Library>,
}

impl DirectRuntime {
    /// Opens the runtime at `path`. It stays loaded after the value is gone.
    ///
    /// # Errors
    /// [`LoadError::NoRuntime`] where the file cannot be loaded, [`LoadError::Incomplete`] where it is no
    /// oneVPL runtime.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let library = open(path.as_os_str()).map_err(|error| LoadError::NoRuntime {
            path: path.to_owned(),
            reason: explain(&error),
        })?;
        let incomplete = |missing| LoadError::Incomplete {
            library: path.display().to_string(),
            missing,
        };
        // SAFETY: the caller named a runtime, whose exports the headers declare; it is never unloaded.
        let runtime = unsafe { RuntimeFunctions::load(&library) }.map_err(incomplete)?;
        // SAFETY: as above.
        let session = unsafe { SessionFunctions::load(&library) }.map_err(incomplete)?;
        Ok(Self {
            runtime,
            session,
            path: path.to_owned(),
            library,
        })
    }

    /// The file that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of an export beyond the headers, or `None` where the runtime has none of that name.
    pub fn extension(&self, name: &str) -> Option<*mut std::ffi::c_void> {
        address_of(&self.library, name)
    }
}

fn open(name: &OsStr) -> Result<ManuallyDrop<Library>, libloading::Error> {
    // SAFETY: oneVPL libraries run no code at load time beyond their own set-up.
    unsafe { Library::new(name) }.map(ManuallyDrop::new)
}

/// The loader's error with its causes: the outermost text alone says no more than which call failed.
fn explain(error: &libloading::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
