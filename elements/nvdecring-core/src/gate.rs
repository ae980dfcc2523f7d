// SPDX-License-Identifier: MPL-2.0

//! One opening or closing on a device at a time.

use std::sync::Arc;
use std::time::Duration;

use crate::calls::Call;
use crate::clock::{Bell, Clock};
use crate::error::Error;
use crate::sync::{Mutex, PoisonError};

/// Serialises the opening and closing of contexts and decoders on one device: one gate a device, shared by
/// all its sessions. A call that never returns keeps the gate, so that nobody else is drawn in: later
/// sessions get [`Error::DeviceBusy`].
#[derive(Debug, Default)]
pub struct DeviceGate {
    holder: Mutex<Option<Call>>,
    bell: Bell,
}

/// The right to open or close.
#[derive(Debug)]
pub(crate) struct Pass<'a>(&'a DeviceGate);

impl DeviceGate {
    /// A gate for a device.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Waits for the gate, at most `limit`.
    pub(crate) fn enter(
        &self,
        clock: &dyn Clock,
        call: Call,
        limit: Duration,
    ) -> Result<Pass<'_>, Error> {
        let deadline = clock.now() + limit;
        loop {
            let now = clock.now();
            let (held_for, seen) = {
                let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
                match *holder {
                    None => {
                        *holder = Some(call);
                        return Ok(Pass(self));
                    }
                    Some(held_for) => (held_for, self.bell.count()),
                }
            };
            if now >= deadline {
                return Err(Error::DeviceBusy(held_for));
            }
            clock.wait(&self.bell, seen, Some(deadline));
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        *self.0.holder.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.bell.ring();
    }
}
