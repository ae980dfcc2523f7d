// SPDX-License-Identifier: MPL-2.0

//! The libcuda stand-in that is loaded in this process.
//!
//! It is found, not linked: its tables of contexts and memory are one for the process, and this library has
//! to use the copy that the client uses.

use std::collections::BTreeSet;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::os::unix::Library;
use nvcuvid_sys::CuResult;

/// The functions that are used.
#[derive(Debug)]
pub struct Cuda {
    ctx_get_current: unsafe extern "C" fn(*mut usize) -> CuResult,
    ctx_get_device: unsafe extern "C" fn(*mut c_int) -> CuResult,
    ctx_push: unsafe extern "C" fn(usize) -> CuResult,
    ctx_pop: unsafe extern "C" fn(*mut usize) -> CuResult,
    alloc_pitch: unsafe extern "C" fn(*mut usize, *mut usize, usize, usize, c_uint) -> CuResult,
    free: unsafe extern "C" fn(usize) -> CuResult,
    launch: unsafe extern "C" fn(
        usize,
        Option<unsafe extern "C" fn(*mut c_void)>,
        *mut c_void,
    ) -> CuResult,
    host_address: extern "C" fn(usize, usize) -> usize,
    is_in_use: extern "C" fn(usize, usize) -> c_int,
    lose_context: extern "C" fn(usize, u32),
    mistake: unsafe extern "C" fn(*const std::ffi::c_char),
    /// Keeps it loaded.
    _library: Library,
}

impl Cuda {
    /// The libcuda of this process.
    ///
    /// # Errors
    /// `CUDA_ERROR_STUB_LIBRARY` where it is no stand-in, `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED` where there is
    /// none.
    pub fn get() -> Result<&'static Cuda, CuResult> {
        static CUDA: OnceLock<Cuda> = OnceLock::new();
        if let Some(cuda) = CUDA.get() {
            return Ok(cuda);
        }
        let cuda = Self::find()?;
        Ok(CUDA.get_or_init(|| cuda))
    }

    fn find() -> Result<Cuda, CuResult> {
        let mut found: Vec<Cuda> = loaded()
            .iter()
            .filter_map(|path| {
                let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
                // SAFETY: the library is loaded already.
                unsafe { Library::open(Some(path), flags) }.ok()
            })
            .filter_map(Self::of)
            .collect();
        if found.is_empty() {
            // SAFETY: loading libcuda runs its own set-up and nothing else.
            let library = unsafe { Library::open(Some("libcuda.so.1"), libc::RTLD_NOW) };
            let library = library.map_err(|error| {
                eprintln!("standin_nvcuvid: no libcuda.so.1: {error}");
                CuResult::SHARED_OBJECT_INIT_FAILED
            })?;
            found.extend(Self::of(library));
        }
        // Of two copies the one in which the client has a context.
        let at = found.iter().position(|cuda| cuda.current() != 0);
        if found.is_empty() {
            eprintln!(
                "standin_nvcuvid: the libcuda of this process is not the stand-in (libstandin_cuda.so): put \
                 both stand-ins into one folder of LD_LIBRARY_PATH, or neither"
            );
            return Err(CuResult::STUB_LIBRARY);
        }
        Ok(found.swap_remove(at.unwrap_or(0)))
    }

    /// `None` where a name is missing: no stand-in.
    fn of(library: Library) -> Option<Self> {
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the type is the one that the stand-in exports under this name.
                *unsafe { library.get($name) }.ok()?
            };
        }
        Some(Self {
            ctx_get_current: symbol!(b"cuCtxGetCurrent"),
            ctx_get_device: symbol!(b"cuCtxGetDevice"),
            ctx_push: symbol!(b"cuCtxPushCurrent_v2"),
            ctx_pop: symbol!(b"cuCtxPopCurrent_v2"),
            alloc_pitch: symbol!(b"cuMemAllocPitch_v2"),
            free: symbol!(b"cuMemFree_v2"),
            launch: symbol!(b"cuLaunchHostFunc"),
            host_address: symbol!(b"standin_cuda_host_address"),
            is_in_use: symbol!(b"standin_cuda_is_in_use"),
            lose_context: symbol!(b"standin_cuda_lose_context"),
            mistake: symbol!(b"standin_cuda_mistake"),
            _library: library,
        })
    }

    /// The current context, or 0.
    pub fn current(&self) -> usize {
        let mut context = 0;
        // SAFETY: the pointer is a local's.
        unsafe { (self.ctx_get_current)(&mut context) };
        context
    }

    /// What every call in the current context answers: success, or the error that stays.
    ///
    /// # Errors
    /// That error.
    pub fn health(&self) -> Result<(), CuResult> {
        let mut device = 0;
        // SAFETY: the pointer is a local's.
        result(unsafe { (self.ctx_get_device)(&mut device) })
    }

    /// Runs `body` with `context` current.
    ///
    /// # Errors
    /// There is no such context, or what `body` says.
    pub fn with<T>(
        &self,
        context: usize,
        body: impl FnOnce() -> Result<T, CuResult>,
    ) -> Result<T, CuResult> {
        if self.current() == context {
            return body();
        }
        // SAFETY: a number that is no context is an error.
        result(unsafe { (self.ctx_push)(context) })?;
        let done = body();
        let mut popped = 0;
        // SAFETY: the pointer is a local's.
        unsafe { (self.ctx_pop)(&mut popped) };
        done
    }

    /// Device memory for `rows` rows of `width` bytes: its address and pitch.
    ///
    /// # Errors
    /// Memory is short, or the context is lost.
    pub fn alloc(&self, width: usize, rows: usize) -> Result<(usize, usize), CuResult> {
        let (mut address, mut pitch) = (0, 0);
        // SAFETY: both pointers are locals'.
        result(unsafe { (self.alloc_pitch)(&mut address, &mut pitch, width, rows, 16) })?;
        Ok((address, pitch))
    }

    /// Frees device memory once the context's work is done.
    ///
    /// # Errors
    /// What libcuda says.
    pub fn free(&self, address: usize) -> Result<(), CuResult> {
        // SAFETY: a number that is no allocation is an error.
        result(unsafe { (self.free)(address) })
    }

    /// Puts `work` into a stream of the current context.
    ///
    /// # Errors
    /// No such stream, or the context is lost.
    pub fn launch(
        &self,
        stream: usize,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), CuResult> {
        type Work = Box<dyn FnOnce() + Send>;
        unsafe extern "C" fn run(user: *mut c_void) {
            // SAFETY: the pointer is the box that was given for this one call.
            let work = unsafe { Box::from_raw(user.cast::<Work>()) };
            work();
        }
        let work: *mut Work = Box::into_raw(Box::new(Box::new(work)));
        // SAFETY: function and argument belong together and are used once.
        let launched = result(unsafe { (self.launch)(stream, Some(run), work.cast()) });
        if launched.is_err() {
            // SAFETY: the box was refused, so that nobody else has it.
            drop(unsafe { Box::from_raw(work) });
        }
        launched
    }

    /// Where device memory really is.
    ///
    /// # Errors
    /// The bytes are not inside of an allocation.
    pub fn host(&self, address: usize, length: usize) -> Result<*mut u8, CuResult> {
        match (self.host_address)(address, length) {
            0 => Err(CuResult::INVALID_VALUE),
            host => Ok(std::ptr::with_exposed_provenance_mut(host)),
        }
    }

    /// Whether a queued copy reads or writes device memory.
    pub fn is_in_use(&self, address: usize, length: usize) -> bool {
        (self.is_in_use)(address, length) != 0
    }

    /// Lets every later call in a context fail.
    pub fn lose(&self, context: usize, code: CuResult) {
        (self.lose_context)(context, code.0);
    }

    /// Has a mistake of the client said and counted with those of libcuda.
    pub fn mistake(&self, what: &str) {
        let text = CString::new(what).unwrap_or_default();
        // SAFETY: the text is a C string that outlives the call.
        unsafe { (self.mistake)(text.as_ptr()) };
    }
}

fn result(code: CuResult) -> Result<(), CuResult> {
    match code {
        CuResult::SUCCESS => Ok(()),
        code => Err(code),
    }
}

/// Files of this process that may be a libcuda.
fn loaded() -> BTreeSet<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let paths = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
    paths
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| {
                name.starts_with("libcuda.so") || name.starts_with("libstandin_cuda.so")
            })
        })
        .collect()
}
