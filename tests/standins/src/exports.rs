// SPDX-License-Identifier: MPL-2.0

//! The C interface. Each function is a thin shim: a null pointer is `CUDA_ERROR_INVALID_VALUE`, everything
//! else is the other modules' matter. Handles and device addresses are numbers here.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use nvcuvid_sys::CuResult;

use crate::copy::{Copy, Memcpy2D};
use crate::memory::{ALIGNMENT, Kind};
use crate::{context, copy, event, memory, report, stream};

/// Writes an answer.
///
/// # Safety
/// `to` has to be null or to point to a value that may be written.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), CuResult> {
    if to.is_null() {
        return Err(CuResult::INVALID_VALUE);
    }
    // SAFETY: the caller vouches for it.
    unsafe { to.write(value) };
    Ok(())
}

fn answer(result: Result<(), CuResult>) -> CuResult {
    result.err().unwrap_or(CuResult::SUCCESS)
}

macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$doc])*
            #[doc = concat!("`", stringify!($name), "` of cuda.h.")]
            ///
            /// # Safety
            /// Pointers have to be null or valid as cuda.h asks for.
            // SAFETY: the name is the driver's, and this library stands in for the driver.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $type),*) -> CuResult {
                let body = || -> Result<(), CuResult> { $body };
                answer(body())
            }
        )*
    };
}

/// `put` inside of an export, whose caller vouches for its pointers.
macro_rules! give {
    ($to:expr, $value:expr) => {
        // SAFETY: the export's contract.
        unsafe { put($to, $value) }
    };
}

exports! {
    fn cuInit(flags: c_uint) {
        match (flags, context::devices()) {
            (0, 1..) => Ok(()),
            (0, _) => Err(CuResult::NO_DEVICE),
            _ => Err(CuResult::INVALID_VALUE),
        }
    }
    fn cuDriverGetVersion(version: *mut c_int) { give!(version, 12_020) }
    fn cuDeviceGetCount(count: *mut c_int) { give!(count, context::devices()) }
    fn cuDeviceGet(device: *mut c_int, index: c_int) {
        if !(0..context::devices()).contains(&index) {
            return Err(CuResult::INVALID_DEVICE);
        }
        give!(device, index)
    }
    fn cuDeviceGetName(name: *mut c_char, room: c_int, _device: c_int) {
        const NAME: &CStr = c"Software stand-in";
        let bytes = NAME.to_bytes_with_nul();
        if name.is_null() || usize::try_from(room).is_ok_and(|room| room < bytes.len()) {
            return Err(CuResult::INVALID_VALUE);
        }
        // SAFETY: the client's array has room for them.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), name.cast(), bytes.len()) };
        Ok(())
    }
    fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) {
        let mut bytes = *b"standin_cuda\0\0\0\0";
        bytes[15] = device as u8;
        give!(uuid, bytes)
    }
    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, _device: c_int) {
        give!(major, 7)?;
        give!(minor, 5)
    }
    /// The attributes that clients ask for; any other is 0.
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        let number = match attribute {
            14 => ALIGNMENT as c_int, // TEXTURE_ALIGNMENT
            41 => 1,                  // UNIFIED_ADDRESSING
            51 => 32,                 // TEXTURE_PITCH_ALIGNMENT
            75 => 7,                  // COMPUTE_CAPABILITY_MAJOR
            76 => 5,                  // COMPUTE_CAPABILITY_MINOR
            _ => 0,
        };
        give!(value, number)
    }
    fn cuDeviceCanAccessPeer(can: *mut c_int, _device: c_int, _peer: c_int) { give!(can, 0) }

    fn cuDevicePrimaryCtxRetain(handle: *mut usize, device: c_int) {
        give!(handle, context::retain_primary(device)?)
    }
    fn cuDevicePrimaryCtxRelease(device: c_int) { context::release_primary(device) }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) { context::release_primary(device) }
    fn cuDevicePrimaryCtxSetFlags(_device: c_int, _flags: c_uint) { Ok(()) }
    fn cuDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) {
        give!(flags, 0)?;
        give!(active, context::primary_is_active(device).into())
    }
    fn cuDevicePrimaryCtxReset(_device: c_int) { Err(CuResult::NOT_SUPPORTED) }
    fn cuCtxCreate_v2(handle: *mut usize, _flags: c_uint, device: c_int) {
        give!(handle, context::create(device)?)
    }
    fn cuCtxDestroy_v2(handle: usize) { context::destroy(handle) }
    fn cuCtxPushCurrent_v2(handle: usize) { context::push(handle) }
    fn cuCtxPopCurrent_v2(handle: *mut usize) {
        let popped = context::pop()?;
        if handle.is_null() { Ok(()) } else { give!(handle, popped) }
    }
    fn cuCtxSetCurrent(handle: usize) { context::set_current(handle) }
    fn cuCtxGetCurrent(handle: *mut usize) { give!(handle, context::get_current()) }
    fn cuCtxGetDevice(device: *mut c_int) { give!(device, context::current_device()?) }
    fn cuCtxSetLimit(_limit: c_int, _value: usize) { context::current("cuCtxSetLimit").map(drop) }
    fn cuCtxSynchronize() {
        stream::synchronize_all(context::current("cuCtxSynchronize")?);
        Ok(())
    }

    fn cuStreamCreate(handle: *mut usize, flags: c_uint) {
        give!(handle, stream::create(context::current("cuStreamCreate")?, flags)?)
    }
    fn cuStreamDestroy(handle: usize) { stream::destroy(handle) }
    fn cuStreamDestroy_v2(handle: usize) { stream::destroy(handle) }
    fn cuStreamSynchronize(handle: usize) {
        stream::get(context::current("cuStreamSynchronize")?, handle)?.synchronize();
        context::current("cuStreamSynchronize").map(drop)
    }
    fn cuStreamQuery(handle: usize) {
        let stream = stream::get(context::current("cuStreamQuery")?, handle)?;
        if stream.is_idle() { Ok(()) } else { Err(CuResult::NOT_READY) }
    }
    fn cuStreamWaitEvent(handle: usize, mark: usize, _flags: c_uint) {
        let stream = stream::get(context::current("cuStreamWaitEvent")?, handle)?;
        event::get(mark)?.hold_back(&stream);
        Ok(())
    }
    fn cuStreamAddCallback(
        handle: usize,
        callback: Option<unsafe extern "C" fn(usize, CuResult, *mut c_void)>,
        user: *mut c_void,
        _flags: c_uint,
    ) {
        let stream = stream::get(context::current("cuStreamAddCallback")?, handle)?;
        let callback = callback.ok_or(CuResult::INVALID_VALUE)?;
        let user = user.expose_provenance();
        stream.submit(move || {
            let user = std::ptr::with_exposed_provenance_mut(user);
            // SAFETY: the client gave both for this call.
            unsafe { callback(handle, CuResult::SUCCESS, user) };
        });
        Ok(())
    }
    fn cuLaunchHostFunc(
        handle: usize,
        callback: Option<unsafe extern "C" fn(*mut c_void)>,
        user: *mut c_void,
    ) {
        let stream = stream::get(context::current("cuLaunchHostFunc")?, handle)?;
        let callback = callback.ok_or(CuResult::INVALID_VALUE)?;
        let user = user.expose_provenance();
        stream.submit(move || {
            let user = std::ptr::with_exposed_provenance_mut(user);
            // SAFETY: the client gave both for this call.
            unsafe { callback(user) };
        });
        Ok(())
    }

    fn cuEventCreate(handle: *mut usize, _flags: c_uint) {
        context::current("cuEventCreate")?;
        give!(handle, event::create())
    }
    fn cuEventDestroy(handle: usize) { event::destroy(handle) }
    fn cuEventDestroy_v2(handle: usize) { event::destroy(handle) }
    fn cuEventRecord(handle: usize, of: usize) {
        let stream = stream::get(context::current("cuEventRecord")?, of)?;
        event::get(handle)?.record(&stream);
        Ok(())
    }
    fn cuEventQuery(handle: usize) {
        context::current("cuEventQuery")?;
        if event::get(handle)?.is_reached() { Ok(()) } else { Err(CuResult::NOT_READY) }
    }
    fn cuEventSynchronize(handle: usize) {
        context::current("cuEventSynchronize")?;
        event::get(handle)?.synchronize();
        context::current("cuEventSynchronize").map(drop)
    }

    fn cuMemAlloc_v2(address: *mut usize, size: usize) {
        give!(address, memory::allocate(context::current("cuMemAlloc")?, size, Kind::Device)?)
    }
    fn cuMemAllocPitch_v2(
        address: *mut usize,
        pitch: *mut usize,
        width: usize,
        height: usize,
        _element: c_uint,
    ) {
        let context = context::current("cuMemAllocPitch")?;
        let aligned = width.checked_next_multiple_of(ALIGNMENT).ok_or(CuResult::INVALID_VALUE)?;
        let size = aligned.checked_mul(height).ok_or(CuResult::INVALID_VALUE)?;
        give!(address, memory::allocate(context, size, Kind::Device)?)?;
        give!(pitch, aligned)
    }
    fn cuMemFree_v2(address: usize) {
        context::current("cuMemFree")?;
        if address == 0 { Ok(()) } else { memory::free(address, Kind::Device) }
    }
    fn cuMemHostAlloc(address: *mut usize, size: usize, _flags: c_uint) {
        give!(address, memory::allocate(context::current("cuMemHostAlloc")?, size, Kind::Pinned)?)
    }
    fn cuMemAllocHost_v2(address: *mut usize, size: usize) {
        give!(address, memory::allocate(context::current("cuMemAllocHost")?, size, Kind::Pinned)?)
    }
    fn cuMemFreeHost(address: usize) {
        context::current("cuMemFreeHost")?;
        memory::free(address, Kind::Pinned)
    }
    fn cuMemsetD8Async(target: usize, value: u8, length: usize, of: usize) {
        let stream = stream::get(context::current("cuMemsetD8Async")?, of)?;
        copy::fill(&stream, target, value, length)
    }

    fn cuMemcpy2D_v2(description: *const Memcpy2D) { rectangle("cuMemcpy2D", description, 0, true) }
    fn cuMemcpy2DUnaligned_v2(description: *const Memcpy2D) {
        rectangle("cuMemcpy2DUnaligned", description, 0, true)
    }
    fn cuMemcpy2DAsync_v2(description: *const Memcpy2D, of: usize) {
        rectangle("cuMemcpy2DAsync", description, of, false)
    }
    fn cuMemcpy(target: usize, source: usize, length: usize) { bytes("cuMemcpy", target, source, length, None) }
    fn cuMemcpyHtoD_v2(target: usize, source: usize, length: usize) {
        bytes("cuMemcpyHtoD", target, source, length, None)
    }
    fn cuMemcpyDtoH_v2(target: usize, source: usize, length: usize) {
        bytes("cuMemcpyDtoH", target, source, length, None)
    }
    fn cuMemcpyDtoD_v2(target: usize, source: usize, length: usize) {
        bytes("cuMemcpyDtoD", target, source, length, None)
    }
    fn cuMemcpyAsync(target: usize, source: usize, length: usize, of: usize) {
        bytes("cuMemcpyAsync", target, source, length, Some(of))
    }
    fn cuMemcpyHtoDAsync_v2(target: usize, source: usize, length: usize, of: usize) {
        bytes("cuMemcpyHtoDAsync", target, source, length, Some(of))
    }
    fn cuMemcpyDtoHAsync_v2(target: usize, source: usize, length: usize, of: usize) {
        bytes("cuMemcpyDtoHAsync", target, source, length, Some(of))
    }
    fn cuMemcpyDtoDAsync_v2(target: usize, source: usize, length: usize, of: usize) {
        bytes("cuMemcpyDtoDAsync", target, source, length, Some(of))
    }

    fn cuGetErrorName(code: CuResult, text: *mut *const c_char) { give!(text, name_of(code)) }
    fn cuGetErrorString(code: CuResult, text: *mut *const c_char) { give!(text, name_of(code)) }
}

fn rectangle(
    call: &str,
    description: *const Memcpy2D,
    of: usize,
    wait: bool,
) -> Result<(), CuResult> {
    let stream = stream::get(context::current(call)?, of)?;
    // SAFETY: the export's contract: null or a valid description, whose kinds are plain numbers here.
    let description = unsafe { description.as_ref() }.ok_or(CuResult::INVALID_VALUE)?;
    if let Some(copy) = Copy::new(description)? {
        copy::enqueue(&stream, copy, wait);
    }
    Ok(())
}

/// In the default stream, and waited for, where no stream is given.
fn bytes(
    call: &str,
    target: usize,
    source: usize,
    length: usize,
    of: Option<usize>,
) -> Result<(), CuResult> {
    let stream = stream::get(context::current(call)?, of.unwrap_or(0))?;
    if let Some(copy) = Copy::linear(target, source, length)? {
        copy::enqueue(&stream, copy, of.is_none());
    }
    Ok(())
}

/// The name as a C string that stays.
fn name_of(code: CuResult) -> *const c_char {
    use std::collections::BTreeMap;
    use std::ffi::CString;
    use std::sync::Mutex;
    static NAMES: Mutex<BTreeMap<CuResult, CString>> = Mutex::new(BTreeMap::new());
    let text = code.name().unwrap_or("CUDA_ERROR_UNKNOWN");
    let mut names = crate::lock(&NAMES);
    let name = names
        .entry(code)
        .or_insert_with(|| CString::new(text).unwrap_or_default());
    // The map only grows, and a CString's bytes stay where they are.
    name.as_ptr()
}

/// The host's address of `length` bytes on the device, or 0: for the libnvcuvid that writes pictures there.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_cuda_host_address(address: usize, length: usize) -> usize {
    memory::device_bytes(address, length).unwrap_or(0)
}

/// Whether a copy that is queued reads or writes any of `length` bytes on the device: 1 or 0.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_cuda_is_in_use(address: usize, length: usize) -> c_int {
    let host = memory::device_bytes(address, length);
    host.is_ok_and(|host| copy::is_in_use(host..host + length))
        .into()
}

/// Says and counts a mistake that another stand-in found.
///
/// # Safety
/// `what` has to be null or a C string.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn standin_cuda_mistake(what: *const c_char) {
    if what.is_null() {
        return;
    }
    // SAFETY: the caller passes a C string.
    let what = unsafe { CStr::from_ptr(what) };
    report::mistake(&what.to_string_lossy());
}

/// Lets every later call in a context fail with `code`.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_cuda_lose_context(handle: usize, code: u32) {
    context::lose(handle, CuResult(code));
}

/// How many mistakes the client has made. That this name exists tells a stand-in from a driver.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_cuda_mistakes() -> usize {
    report::mistakes()
}

/// How many contexts, streams, events and allocations there are: 0 where nothing leaks.
// SAFETY: no other library has this name.
#[unsafe(no_mangle)]
pub extern "C" fn standin_cuda_live() -> usize {
    context::live() + stream::live() + event::live() + memory::live()
}
