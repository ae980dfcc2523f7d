// SPDX-License-Identifier: MPL-2.0

//! [`Stream`] and [`Event`]: the order of asynchronous work, and marks in it.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUevent_flags, CUstream, CUstream_flags};

use crate::{Context, CuError, CuResult, Error};

/// A stream that does not wait for the default stream.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    raw: CUstream,
}

// SAFETY: the driver takes calls on a stream from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Makes a stream in `context`.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(context: &Arc<Context>) -> Result<Arc<Self>, CuError> {
        let mut raw: CUstream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        context.with(|| {
            // SAFETY: the pointer is a local's.
            unsafe { (context.driver().functions().cuStreamCreate)(&mut raw, flags) }
                .check("cuStreamCreate")
        })?;
        Ok(Arc::new(Self {
            context: context.clone(),
            raw,
        }))
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUstream {
        self.raw
    }

    /// Its context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits, without a deadline, until everything that was put into the stream is done.
    ///
    /// # Errors
    /// What the driver says; a failure of the work itself shows here too.
    pub fn synchronize(&self) -> Result<(), CuError> {
        self.context.with(|| {
            // SAFETY: the stream is alive.
            unsafe { (self.context.driver().functions().cuStreamSynchronize)(self.raw) }
                .check("cuStreamSynchronize")
        })
    }

    /// Lets whatever is put into the stream from now on wait for the event.
    ///
    /// # Errors
    /// What the driver says, [`Error::OtherContext`].
    pub fn wait_for(&self, event: &Event) -> Result<(), Error> {
        if !self.context.is_same(&event.context) {
            return Err(Error::OtherContext("the event"));
        }
        self.context.with(|| {
            // SAFETY: both are alive; 0 is the only flag used.
            unsafe { (self.context.driver().functions().cuStreamWaitEvent)(self.raw, event.raw, 0) }
                .check("cuStreamWaitEvent")
                .map_err(Error::from)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let functions = self.context.driver().functions();
        // The driver ends the stream once its work is done, without a wait here. A failure means that the
        // context is lost, and the stream with it.
        let _ = self.context.with(|| {
            // SAFETY: the stream was made by `new` and is given up here.
            unsafe { (functions.cuStreamDestroy_v2)(self.raw) }.check("cuStreamDestroy")
        });
    }
}

/// A mark in a stream. It carries no time.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: the driver takes calls on an event from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Makes an event in `context`; it counts as reached until it is recorded. Waiting for it sleeps instead
    /// of spinning.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(context: &Arc<Context>) -> Result<Self, CuError> {
        let mut raw: CUevent = ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32
            | CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        context.with(|| {
            // SAFETY: the pointer is a local's.
            unsafe { (context.driver().functions().cuEventCreate)(&mut raw, flags) }
                .check("cuEventCreate")
        })?;
        Ok(Self {
            context: context.clone(),
            raw,
        })
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUevent {
        self.raw
    }

    /// Sets the mark behind everything that is in `stream` now.
    ///
    /// # Errors
    /// What the driver says, [`Error::OtherContext`].
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        if !self.context.is_same(&stream.context) {
            return Err(Error::OtherContext("the stream"));
        }
        self.context.with(|| {
            // SAFETY: both are alive and of one context.
            unsafe { (self.context.driver().functions().cuEventRecord)(self.raw, stream.raw) }
                .check("cuEventRecord")
                .map_err(Error::from)
        })
    }

    /// Whether the mark was reached, without waiting.
    ///
    /// # Errors
    /// What the driver says; a failure of the work before the mark shows here too.
    pub fn is_reached(&self) -> Result<bool, CuError> {
        self.context.with(|| {
            // SAFETY: the event is alive.
            match unsafe { (self.context.driver().functions().cuEventQuery)(self.raw) } {
                CuResult::NOT_READY => Ok(false),
                code => code.check("cuEventQuery").map(|()| true),
            }
        })
    }

    /// Waits, without a deadline, until the mark is reached.
    ///
    /// # Errors
    /// As for [`is_reached`](Self::is_reached).
    pub fn synchronize(&self) -> Result<(), CuError> {
        self.context.with(|| {
            // SAFETY: the event is alive.
            unsafe { (self.context.driver().functions().cuEventSynchronize)(self.raw) }
                .check("cuEventSynchronize")
        })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let functions = self.context.driver().functions();
        // A failure means that the context is lost, and the event with it.
        let _ = self.context.with(|| {
            // SAFETY: the event was made by `new` and is given up here.
            unsafe { (functions.cuEventDestroy_v2)(self.raw) }.check("cuEventDestroy")
        });
    }
}
