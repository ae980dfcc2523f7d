// SPDX-License-Identifier: MPL-2.0

//! Copies. The target of an asynchronous one is poisoned at once, unless queued work needs what it holds, and
//! filled late: who reads without waiting reads poison.

use std::ops::Range;
use std::ptr;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use nvcuvid_sys::CuResult;

use crate::memory::{self, DEVICE_BIAS, POISON};
use crate::report::mistake;
use crate::stream::Stream;
use crate::{lock, setting};

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

/// `CUDA_MEMCPY2D` with kinds of memory that need not be valid.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Memcpy2D {
    source_x: usize,
    source_y: usize,
    source_kind: u32,
    source_host: usize,
    source_device: usize,
    source_array: usize,
    source_pitch: usize,
    target_x: usize,
    target_y: usize,
    target_kind: u32,
    target_host: usize,
    target_device: usize,
    target_array: usize,
    target_pitch: usize,
    width: usize,
    height: usize,
}

/// One side of a copy, at the host's address.
#[derive(Clone, Copy, Debug)]
struct Side {
    start: usize,
    pitch: usize,
    /// Memory that the driver cannot copy by itself.
    pageable: bool,
}

/// A checked copy.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    source: Side,
    target: Side,
    width: usize,
    height: usize,
}

fn extent(pitch: usize, width: usize, height: usize) -> Result<usize, CuResult> {
    let rows = (height - 1).checked_mul(pitch);
    rows.and_then(|bytes| bytes.checked_add(width))
        .ok_or(CuResult::INVALID_VALUE)
}

impl Side {
    fn new(
        (kind, host, device): (u32, usize, usize),
        (x, y): (usize, usize),
        pitch: usize,
        (width, height): (usize, usize),
    ) -> Result<Self, CuResult> {
        let base = match kind {
            HOST => host,
            DEVICE | UNIFIED => device,
            _ => return Err(CuResult::NOT_SUPPORTED),
        };
        if height > 1 && x.checked_add(width).is_none_or(|end| end > pitch) {
            mistake("a copy whose rows are longer than their pitch");
            return Err(CuResult::INVALID_VALUE);
        }
        let offset = y.checked_mul(pitch).and_then(|bytes| bytes.checked_add(x));
        let address = offset.and_then(|offset| base.checked_add(offset));
        let address = address.ok_or(CuResult::INVALID_VALUE)?;
        if kind == DEVICE || (kind == UNIFIED && address >= DEVICE_BIAS) {
            let start = memory::device_bytes(address, extent(pitch, width, height)?)?;
            return Ok(Self {
                start,
                pitch,
                pageable: false,
            });
        }
        if base == 0 || address >= DEVICE_BIAS {
            mistake("a copy whose host address is null or the device's");
            return Err(CuResult::INVALID_VALUE);
        }
        Ok(Self {
            start: address,
            pitch,
            pageable: !memory::is_pinned(address),
        })
    }

    fn range(&self, width: usize, height: usize) -> Range<usize> {
        self.start..self.start + (height - 1) * self.pitch + width
    }

    fn row(&self, y: usize) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.start + y * self.pitch)
    }
}

impl Copy {
    /// `None` where there is nothing to copy.
    ///
    /// # Errors
    /// The device's side is not inside of an allocation, or the rectangle is impossible.
    pub fn new(of: &Memcpy2D) -> Result<Option<Self>, CuResult> {
        let size = (of.width, of.height);
        if of.width == 0 || of.height == 0 {
            return Ok(None);
        }
        let source = (of.source_kind, of.source_host, of.source_device);
        let target = (of.target_kind, of.target_host, of.target_device);
        Ok(Some(Self {
            source: Side::new(source, (of.source_x, of.source_y), of.source_pitch, size)?,
            target: Side::new(target, (of.target_x, of.target_y), of.target_pitch, size)?,
            width: of.width,
            height: of.height,
        }))
    }

    /// `length` bytes; a device address has the bias.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn linear(target: usize, source: usize, length: usize) -> Result<Option<Self>, CuResult> {
        if length == 0 {
            return Ok(None);
        }
        let side = |address: usize| {
            let kind = if address >= DEVICE_BIAS { DEVICE } else { HOST };
            Side::new((kind, address, address), (0, 0), length, (length, 1))
        };
        Ok(Some(Self {
            source: side(source)?,
            target: side(target)?,
            width: length,
            height: 1,
        }))
    }

    fn poison(&self) {
        for y in 0..self.height {
            // SAFETY: a device's side was checked, and for a host's the client vouches as with the real driver.
            unsafe { ptr::write_bytes(self.target.row(y), POISON, self.width) };
        }
    }

    fn run(&self) {
        for y in 0..self.height {
            // SAFETY: as above; the regions may overlap.
            unsafe { ptr::copy(self.source.row(y), self.target.row(y), self.width) };
        }
    }
}

/// What queued copies read and write.
struct Access {
    id: u64,
    ranges: [Range<usize>; 2],
}

#[derive(Default)]
struct Accesses {
    next: u64,
    queued: Vec<Access>,
}

static ACCESSES: Mutex<Accesses> = Mutex::new(Accesses {
    next: 0,
    queued: Vec::new(),
});

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Accesses {
    fn touches(&self, range: &Range<usize>) -> bool {
        let mut all = self.queued.iter().flat_map(|access| &access.ranges);
        all.any(|queued| overlaps(queued, range))
    }
}

/// Whether a queued copy reads or writes any byte of the range.
pub fn is_in_use(range: Range<usize>) -> bool {
    lock(&ACCESSES).touches(&range)
}

/// Puts a copy into a stream, and waits for it where `wait` says so or the driver would: a copy from or to
/// pageable memory is asynchronous in name only.
pub fn enqueue(stream: &Stream, copy: Copy, wait: bool) {
    let target = copy.target.range(copy.width, copy.height);
    let source = copy.source.range(copy.width, copy.height);
    let (id, poisoned) = {
        let mut accesses = lock(&ACCESSES);
        let free = !accesses.touches(&target) && !overlaps(&source, &target);
        accesses.next += 1;
        let id = accesses.next;
        let ranges = [source, target];
        accesses.queued.push(Access { id, ranges });
        (id, free)
    };
    if poisoned {
        copy.poison();
    }
    stream.submit(move || {
        sleep(Duration::from_micros(setting("NVSTANDIN_COPY_US", 100)));
        copy.run();
        lock(&ACCESSES).queued.retain(|access| access.id != id);
    });
    if wait || copy.source.pageable || copy.target.pageable {
        stream.synchronize();
    }
}

/// `cuMemsetD8Async`.
///
/// # Errors
/// The bytes are not inside of an allocation on the device.
pub fn fill(stream: &Stream, target: usize, value: u8, length: usize) -> Result<(), CuResult> {
    let start = memory::device_bytes(target, length)?;
    stream.submit(move || {
        let start = ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: the bytes are inside of an allocation, and freeing waits for this stream.
        unsafe { ptr::write_bytes(start, value, length) };
    });
    Ok(())
}
