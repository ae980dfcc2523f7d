// SPDX-License-Identifier: MPL-2.0

//! The devices of this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use nvdecring_core::DeviceGate;

/// The gate of a device: the same for every session of the process, so that opening and closing on one
/// device never happens twice at a time.
pub fn gate(device: u32) -> Arc<DeviceGate> {
    static GATES: Mutex<BTreeMap<u32, Arc<DeviceGate>>> = Mutex::new(BTreeMap::new());
    let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
    gates.entry(device).or_default().clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_one_gate() {
        assert!(Arc::ptr_eq(&gate(7), &gate(7)));
        assert!(!Arc::ptr_eq(&gate(7), &gate(8)));
    }
}
