// SPDX-License-Identifier: MPL-2.0

//! Opening, initialising and closing, one at a time for each device.
//!
//! Drivers crash where sessions start and stop at the same time, so these calls hold the device. It is taken
//! with a deadline: a call that does not come back must not stop every decoder of the process.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A call that holds the device for longer has wedged it.
const WEDGED: Duration = Duration::from_secs(5);

/// What holds a device.
#[derive(Debug, Clone, Copy)]
struct Holder {
    call: &'static str,
    since: Instant,
}

/// A device, by its name.
#[derive(Debug)]
pub(crate) struct Device {
    name: String,
    holder: Mutex<Option<Holder>>,
    freed: Condvar,
}

/// The device cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{device} is wedged: {call} of another session has not returned for {} ms; \
     restart the process, and look at the kernel's log",
    elapsed.as_millis()
)]
pub(crate) struct Wedged {
    device: String,
    call: &'static str,
    elapsed: Duration,
}

impl Device {
    /// The device of that name; the same for everyone who asks.
    pub(crate) fn named(name: &str) -> Arc<Self> {
        static DEVICES: LazyLock<Mutex<HashMap<String, Arc<Device>>>> =
            LazyLock::new(Mutex::default);
        let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        let device = devices.entry(name.to_owned()).or_insert_with(|| {
            Arc::new(Self {
                name: name.to_owned(),
                holder: Mutex::default(),
                freed: Condvar::new(),
            })
        });
        Arc::clone(device)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Holder>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call with the device.
    ///
    /// # Errors
    /// Another call holds the device and does not return; `act` was not called.
    pub(crate) fn with<T>(&self, call: &'static str, act: impl FnOnce() -> T) -> Result<T, Wedged> {
        let mut holder = self.lock();
        while let Some(held) = *holder {
            let elapsed = held.since.elapsed();
            let Some(left) = WEDGED.checked_sub(elapsed).filter(|left| !left.is_zero()) else {
                return Err(Wedged {
                    device: self.name.clone(),
                    call: held.call,
                    elapsed,
                });
            };
            holder = self
                .freed
                .wait_timeout(holder, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *holder = Some(Holder {
            call,
            since: Instant::now(),
        });
        drop(holder);
        let _held = Held(self);
        Ok(act())
    }
}

/// Gives the device back, after a panic too.
struct Held<'a>(&'a Device);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn one_call_at_a_time() {
        let device = Device::named("one at a time");
        let (entered, inside) = mpsc::channel();
        let (leave, left) = mpsc::channel::<()>();
        let other = Arc::clone(&device);
        let first = std::thread::spawn(move || {
            other.with("Init", || {
                entered.send(()).expect("the test waits");
                left.recv().expect("the test says when");
            })
        });
        inside.recv().expect("the first call is made");
        let other = Device::named("one at a time");
        let second = std::thread::spawn(move || other.with("Close", || 7));
        leave.send(()).expect("the first call waits");
        assert_eq!(first.join().expect("no panic"), Ok(()));
        assert_eq!(second.join().expect("no panic"), Ok(7));
    }

    #[test]
    fn a_call_that_does_not_return_is_named() {
        let device = Device::named("wedged");
        *device.lock() = Instant::now().checked_sub(WEDGED).map(|since| Holder {
            call: "MFXVideoDECODE_Init",
            since,
        });
        let refused = device.with("MFXInit", || ()).expect_err("it is held");
        let text = refused.to_string();
        assert!(text.contains("wedged: MFXVideoDECODE_Init"), "{text}");
    }
}
