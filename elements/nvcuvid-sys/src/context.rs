// SPDX-License-Identifier: MPL-2.0

//! [`Context`]: a CUDA context, made current around each call and left as it was found.

use std::any::Any;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUcontext;

use crate::{CuError, Device, Driver};

/// How the context goes when its last owner is gone.
enum Ownership {
    /// The device's shared context: the reference is given back.
    Primary(Device),
    /// Made here: it is destroyed.
    Created,
    /// Somebody else's, kept alive by what is held.
    Borrowed(#[allow(dead_code, reason = "it is held, never read")] Box<dyn Any + Send + Sync>),
}

/// A CUDA context. Everything that lives in it holds it.
pub struct Context {
    driver: &'static Driver,
    raw: CUcontext,
    ownership: Ownership,
}

// SAFETY: a context may be current in several threads at once, and every use here makes it current itself.
unsafe impl Send for Context {}
// SAFETY: as above; the fields never change.
unsafe impl Sync for Context {}

impl Context {
    /// A reference to the device's primary context, which every library of the process shares.
    ///
    /// # Errors
    /// What the driver says.
    pub fn retain_primary(driver: &'static Driver, device: Device) -> Result<Arc<Self>, CuError> {
        let mut raw: CUcontext = ptr::null_mut();
        // SAFETY: the pointer is a local's, and the device is one of this driver.
        unsafe { (driver.functions().cuDevicePrimaryCtxRetain)(&mut raw, device.raw()) }
            .check("cuDevicePrimaryCtxRetain")?;
        Ok(Arc::new(Self {
            driver,
            raw,
            ownership: Ownership::Primary(device),
        }))
    }

    /// A context of its own. It costs device memory (of the order of 100 MB) and time; unlike the primary one
    /// it can be replaced after a sticky error while others use the device.
    ///
    /// # Errors
    /// What the driver says.
    pub fn create(driver: &'static Driver, device: Device) -> Result<Arc<Self>, CuError> {
        let mut raw: CUcontext = ptr::null_mut();
        // SAFETY: the pointer is a local's, and the device is one of this driver.
        unsafe { (driver.functions().cuCtxCreate_v2)(&mut raw, 0, device.raw()) }
            .check("cuCtxCreate")?;
        let context = Arc::new(Self {
            driver,
            raw,
            ownership: Ownership::Created,
        });
        // The call above made it current.
        context.pop();
        Ok(context)
    }

    /// Somebody else's context, which is used and never destroyed.
    ///
    /// # Safety
    /// `raw` has to be a context of `driver` and has to stay valid until `owner` is dropped.
    pub unsafe fn borrow(
        driver: &'static Driver,
        raw: CUcontext,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            driver,
            raw,
            ownership: Ownership::Borrowed(owner),
        })
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUcontext {
        self.raw
    }

    /// The driver.
    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    /// Whether both are the same context of the driver.
    pub fn is_same(&self, other: &Context) -> bool {
        self.raw == other.raw
    }

    /// Runs `call` with the context current in this thread, and then makes current what was so before,
    /// also where `call` fails or panics.
    ///
    /// # Errors
    /// What `call` answers, or what the driver says to making the context current.
    pub fn with<R, E: From<CuError>>(&self, call: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
        let _current = Current::enter(self)?;
        call()
    }

    /// Takes the current context off this thread's stack. After a sticky error the driver reports that error
    /// here too although it does as asked; who meets the error in a call of his own has been told.
    fn pop(&self) {
        let mut popped: CUcontext = ptr::null_mut();
        // SAFETY: the pointer is a local's.
        let _ = unsafe { (self.driver.functions().cuCtxPopCurrent_v2)(&mut popped) };
    }
}

/// The context is current while this lives, which is on the stack of one thread.
struct Current<'a> {
    context: &'a Context,
}

impl<'a> Current<'a> {
    fn enter(context: &'a Context) -> Result<Self, CuError> {
        // SAFETY: the context is alive: it is borrowed.
        unsafe { (context.driver.functions().cuCtxPushCurrent_v2)(context.raw) }
            .check("cuCtxPushCurrent")?;
        Ok(Self { context })
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        self.context.pop();
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A failure cannot be answered here, and nobody is left whom it would concern.
        let _ = match &self.ownership {
            Ownership::Primary(device) => {
                // SAFETY: the reference was taken by `retain_primary` and is given back once.
                unsafe { (self.driver.functions().cuDevicePrimaryCtxRelease_v2)(device.raw()) }
            }
            Ownership::Created => {
                // SAFETY: it was made by `create`, and whatever lives in it held it.
                unsafe { (self.driver.functions().cuCtxDestroy_v2)(self.raw) }
            }
            Ownership::Borrowed(_) => return,
        };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.ownership {
            Ownership::Primary(_) => "primary",
            Ownership::Created => "created",
            Ownership::Borrowed(_) => "borrowed",
        };
        write!(f, "Context({:?}, {kind})", self.raw)
    }
}
