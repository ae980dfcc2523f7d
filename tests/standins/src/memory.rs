// SPDX-License-Identifier: MPL-2.0

//! Device and pinned memory. Both are memory of the host; a device address differs from the host's by
//! [`DEVICE_BIAS`], so that a host that follows it faults as it would with a device.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ptr;
use std::sync::Mutex;

use nvcuvid_sys::CuResult;

use crate::copy;
use crate::lock;
use crate::report::mistake;
use crate::stream;

/// No host address has this bit.
pub const DEVICE_BIAS: usize = 1 << 56;
/// What memory holds that nobody has written, or that is not written yet.
pub const POISON: u8 = 0xdb;
/// What the driver aligns allocations and pitches to.
pub const ALIGNMENT: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// Where an allocation belongs.
pub enum Kind {
    /// Addressed with the bias.
    Device,
    /// Locked memory of the host.
    Pinned,
}

struct Allocation {
    size: usize,
    kind: Kind,
    context: usize,
}

impl Allocation {
    fn layout(&self) -> Layout {
        // `allocate` made the same layout.
        Layout::from_size_align(self.size, ALIGNMENT).unwrap_or(Layout::new::<u8>())
    }
}

/// By the host's address.
static ALLOCATIONS: Mutex<BTreeMap<usize, Allocation>> = Mutex::new(BTreeMap::new());

/// Allocates poisoned memory and answers the address that clients know.
///
/// # Errors
/// No bytes, or no memory.
pub fn allocate(context: usize, size: usize, kind: Kind) -> Result<usize, CuResult> {
    let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| CuResult::OUT_OF_MEMORY)?;
    if size == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    // SAFETY: the layout has a size.
    let start = unsafe { alloc(layout) };
    if start.is_null() {
        return Err(CuResult::OUT_OF_MEMORY);
    }
    // SAFETY: `size` bytes were allocated.
    unsafe { ptr::write_bytes(start, POISON, size) };
    let host = start.expose_provenance();
    let allocation = Allocation {
        size,
        kind,
        context,
    };
    lock(&ALLOCATIONS).insert(host, allocation);
    Ok(match kind {
        Kind::Device => host + DEVICE_BIAS,
        Kind::Pinned => host,
    })
}

/// Frees what [`allocate`] answered. Like the driver it waits for the context's work first.
///
/// # Errors
/// The address is not one that was answered.
pub fn free(address: usize, kind: Kind) -> Result<(), CuResult> {
    let host = match kind {
        Kind::Device => address.wrapping_sub(DEVICE_BIAS),
        Kind::Pinned => address,
    };
    let known = {
        let allocations = lock(&ALLOCATIONS);
        let found = allocations.get(&host).filter(|found| found.kind == kind);
        found.map(|found| (found.context, found.size))
    };
    let Some((context, size)) = known else {
        mistake("memory is freed that is not allocated");
        return Err(CuResult::INVALID_VALUE);
    };
    if copy::is_in_use(host..host + size) {
        mistake("memory is freed while a copy uses it");
    }
    stream::synchronize_all(context);
    let removed = lock(&ALLOCATIONS).remove(&host);
    if let Some(allocation) = removed {
        release(host, &allocation);
    }
    Ok(())
}

fn release(host: usize, allocation: &Allocation) {
    let start = ptr::with_exposed_provenance_mut::<u8>(host);
    // SAFETY: the allocation was in the table, from which it has been taken; nobody finds it any more.
    unsafe { ptr::write_bytes(start, POISON, allocation.size) };
    // SAFETY: as above, and the layout is the one it was allocated with.
    unsafe { dealloc(start, allocation.layout()) };
}

/// The host's address of `length` bytes from a device address.
///
/// # Errors
/// They are not inside of one allocation.
pub fn device_bytes(address: usize, length: usize) -> Result<usize, CuResult> {
    let host = address.wrapping_sub(DEVICE_BIAS);
    let allocations = lock(&ALLOCATIONS);
    let found = allocations.range(..=host).next_back();
    let inside = found.is_some_and(|(start, allocation)| {
        let end = host.checked_add(length);
        allocation.kind == Kind::Device && end.is_some_and(|end| end <= start + allocation.size)
    });
    drop(allocations);
    if inside {
        return Ok(host);
    }
    mistake(&format!(
        "{length} bytes at {address:#x} are not inside of an allocation on the device"
    ));
    Err(CuResult::INVALID_VALUE)
}

/// Whether a host's address is inside of pinned memory.
pub fn is_pinned(host: usize) -> bool {
    let allocations = lock(&ALLOCATIONS);
    let found = allocations.range(..=host).next_back();
    found.is_some_and(|(start, allocation)| {
        allocation.kind == Kind::Pinned && host < start + allocation.size
    })
}

/// Frees what a context leaves behind.
pub(crate) fn remove_all(context: usize) {
    let mut allocations = lock(&ALLOCATIONS);
    let of_context = |allocation: &Allocation| allocation.context == context;
    let left: Vec<usize> = allocations
        .iter()
        .filter(|(_, allocation)| of_context(allocation))
        .map(|(host, _)| *host)
        .collect();
    for host in left {
        if let Some(allocation) = allocations.remove(&host) {
            release(host, &allocation);
        }
    }
}

/// How many allocations there are.
pub fn live() -> usize {
    lock(&ALLOCATIONS).len()
}
