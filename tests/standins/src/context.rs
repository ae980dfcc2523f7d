// SPDX-License-Identifier: MPL-2.0

//! Contexts, the stack of current ones that each thread has, and sticky errors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Mutex;

use nvcuvid_sys::CuResult;

use crate::report::mistake;
use crate::{lock, memory, new_handle, setting, stream};

/// What is known of a context.
#[derive(Clone, Copy, Debug)]
struct Context {
    device: i32,
    /// References to a primary context; `None` for one that was created.
    primary: Option<usize>,
    /// What every call answers once something went wrong for good.
    error: CuResult,
}

static CONTEXTS: Mutex<BTreeMap<usize, Context>> = Mutex::new(BTreeMap::new());

thread_local! {
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// How many devices there are.
pub fn devices() -> i32 {
    i32::try_from(setting("NVSTANDIN_DEVICES", 1)).unwrap_or(1)
}

fn check_device(device: i32) -> Result<(), CuResult> {
    if (0..devices()).contains(&device) {
        return Ok(());
    }
    Err(CuResult::INVALID_DEVICE)
}

fn add(device: i32, primary: Option<usize>) -> usize {
    let handle = new_handle();
    let context = Context {
        device,
        primary,
        error: CuResult::SUCCESS,
    };
    lock(&CONTEXTS).insert(handle, context);
    handle
}

/// `cuCtxCreate`: the new context is current.
///
/// # Errors
/// No such device.
pub fn create(device: i32) -> Result<usize, CuResult> {
    check_device(device)?;
    let handle = add(device, None);
    STACK.with_borrow_mut(|stack| stack.push(handle));
    Ok(handle)
}

/// `cuCtxDestroy`.
///
/// # Errors
/// No such context, or a primary one.
pub fn destroy(handle: usize) -> Result<(), CuResult> {
    match lock(&CONTEXTS).get(&handle) {
        None => return Err(CuResult::INVALID_CONTEXT),
        Some(context) if context.primary.is_some() => {
            mistake("cuCtxDestroy of a primary context");
            return Err(CuResult::INVALID_CONTEXT);
        }
        Some(_) => {}
    }
    remove(handle);
    STACK.with_borrow_mut(|stack| {
        if stack.last() == Some(&handle) {
            stack.pop();
        }
    });
    Ok(())
}

/// Everything that lives in a context goes with it.
fn remove(handle: usize) {
    stream::remove_all(handle);
    memory::remove_all(handle);
    lock(&CONTEXTS).remove(&handle);
}

/// `cuDevicePrimaryCtxRetain`.
///
/// # Errors
/// No such device.
pub fn retain_primary(device: i32) -> Result<usize, CuResult> {
    check_device(device)?;
    let mut contexts = lock(&CONTEXTS);
    for (handle, context) in contexts.iter_mut() {
        if let (Some(count), true) = (&mut context.primary, context.device == device) {
            *count += 1;
            return Ok(*handle);
        }
    }
    drop(contexts);
    Ok(add(device, Some(1)))
}

/// `cuDevicePrimaryCtxRelease`: the last reference destroys it.
///
/// # Errors
/// No such device, or nothing to release.
pub fn release_primary(device: i32) -> Result<(), CuResult> {
    check_device(device)?;
    let mut last = None;
    let mut found = false;
    for (handle, context) in lock(&CONTEXTS).iter_mut() {
        if let (Some(count), true) = (&mut context.primary, context.device == device) {
            found = true;
            *count -= 1;
            last = (*count == 0).then_some(*handle);
        }
    }
    if let Some(handle) = last {
        remove(handle);
    }
    if !found {
        mistake("cuDevicePrimaryCtxRelease without a reference");
        return Err(CuResult::INVALID_CONTEXT);
    }
    Ok(())
}

/// Whether the device's primary context exists.
pub fn primary_is_active(device: i32) -> bool {
    let is = |context: &Context| context.primary.is_some() && context.device == device;
    lock(&CONTEXTS).values().any(is)
}

/// `cuCtxPushCurrent`.
///
/// # Errors
/// No such context.
pub fn push(handle: usize) -> Result<(), CuResult> {
    if !lock(&CONTEXTS).contains_key(&handle) {
        mistake("cuCtxPushCurrent of a context that does not exist");
        return Err(CuResult::INVALID_CONTEXT);
    }
    STACK.with_borrow_mut(|stack| stack.push(handle));
    Ok(())
}

/// `cuCtxPopCurrent`.
///
/// # Errors
/// None is current.
pub fn pop() -> Result<usize, CuResult> {
    let popped = STACK.with_borrow_mut(Vec::pop);
    popped.ok_or_else(|| {
        mistake("cuCtxPopCurrent of an empty stack");
        CuResult::INVALID_CONTEXT
    })
}

/// `cuCtxSetCurrent`: takes the place of the one on top; 0 takes it away.
///
/// # Errors
/// No such context.
pub fn set_current(handle: usize) -> Result<(), CuResult> {
    STACK.with_borrow_mut(Vec::pop);
    match handle {
        0 => Ok(()),
        handle => push(handle),
    }
}

/// `cuCtxGetCurrent`: 0 where there is none.
pub fn get_current() -> usize {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

/// The context in which a call works.
///
/// # Errors
/// None is current, it was destroyed, or it has an error that stays.
pub fn current(call: &str) -> Result<usize, CuResult> {
    let handle = get_current();
    if handle == 0 {
        mistake(&format!("{call} without a current context"));
        return Err(CuResult::INVALID_CONTEXT);
    }
    match lock(&CONTEXTS).get(&handle).map(|context| context.error) {
        Some(CuResult::SUCCESS) => Ok(handle),
        Some(error) => Err(error),
        None => {
            mistake(&format!("{call} with a context that was destroyed"));
            Err(CuResult::CONTEXT_IS_DESTROYED)
        }
    }
}

/// The device of the current context.
///
/// # Errors
/// As for [`current`].
pub fn current_device() -> Result<i32, CuResult> {
    let handle = current("cuCtxGetDevice")?;
    let device = lock(&CONTEXTS).get(&handle).map(|context| context.device);
    device.ok_or(CuResult::CONTEXT_IS_DESTROYED)
}

/// Lets every later call in the context fail with `error`: a device that is lost.
pub fn lose(handle: usize, error: CuResult) {
    if let Some(context) = lock(&CONTEXTS).get_mut(&handle) {
        context.error = error;
    }
}

/// How many contexts there are.
pub fn live() -> usize {
    lock(&CONTEXTS).len()
}
