// SPDX-License-Identifier: MPL-2.0

//! SADs of a stream of planes, and of two planes at hand.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::rows::{HALO, Stepper, Steps, StoredBand, walk};
use super::scalar::{self, reflect};
use super::scratch::Aligned;
use super::{Distance, Kernel, KernelError, stepper};
use crate::plane::{Geometry, Plane, PlaneError};

/// Rows of a stored plane start on cache lines.
const ROW_ALIGN: usize = 64;

/// Fewest rows that are worth a thread.
const MIN_BAND: usize = 16;

/// How often the caller looks whether the other threads are done before it sleeps: 50 to 100 us, longer
/// than two bands of one height differ where each has a core, and less than going to sleep and waking up.
const AWAKE: usize = 2000;

/// The rows of one thread.
#[derive(Debug)]
struct Band {
    rows: Range<usize>,
    stepper: Box<dyn Stepper>,
    /// The rows of the stored plane around the band, as [`StoredBand`] wants them.
    halo: Vec<u8>,
}

/// The SADs of a stream of planes. Keeps the earlier planes it needs (one, or two at
/// [`Distance::Two`]) and overwrites the oldest in the same pass that reads it. All memory is
/// taken when it is made.
#[derive(Debug)]
pub struct MotionSad {
    geometry: Geometry,
    kernel: Kernel,
    /// Empty for the reference.
    bands: Vec<Band>,
    /// The threads beside the calling one.
    helpers: Option<ThreadPool>,
    /// The last planes, plane `n` of the stream in `n % distance`.
    stored: Vec<Aligned<u8>>,
    stride: usize,
    seen: u64,
}

impl MotionSad {
    /// For planes of one geometry, with the kernel that [`Kernel::chosen`] names, on the calling
    /// thread.
    pub fn new(geometry: Geometry, distance: Distance) -> Self {
        let stride = geometry.row_bytes().next_multiple_of(ROW_ALIGN);
        let kernel = Kernel::chosen();
        Self {
            geometry,
            kernel,
            bands: bands(kernel, geometry, 1),
            helpers: None,
            stored: vec![Aligned::new(stride * geometry.height()); distance as usize],
            stride,
            seen: 0,
        }
    }

    /// The same with another kernel; to be called before the first plane.
    ///
    /// # Errors
    /// [`KernelError::Unsupported`] when this processor cannot run it.
    pub fn with_kernel(mut self, kernel: Kernel) -> Result<Self, KernelError> {
        self.kernel = kernel.require()?;
        self.bands = bands(kernel, self.geometry, self.threads());
        Ok(self)
    }

    /// The same on `threads` threads, each with its share of the rows: the calling one, and others that
    /// live as long as this does; to be called before the first plane. 0 and 1 stay on the calling
    /// thread, and so does [`Kernel::Scalar`]; low pictures get no more threads than they have use for.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn with_threads(mut self, threads: usize) -> std::io::Result<Self> {
        let most = (self.geometry.height() / MIN_BAND).max(1);
        let threads = threads.clamp(1, most);
        self.bands = bands(self.kernel, self.geometry, threads);
        self.helpers = None;
        if threads > 1 {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads - 1)
                .thread_name(|index| format!("vmaf-motion-{index}"))
                .build();
            self.helpers = Some(pool.map_err(std::io::Error::other)?);
        }
        Ok(self)
    }

    /// The kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Threads in use; 1 is the calling thread alone.
    pub fn threads(&self) -> usize {
        let helpers = self.helpers.as_ref();
        1 + helpers.map_or(0, ThreadPool::current_num_threads)
    }

    /// How the steps of two rows went so far; all zero for [`Kernel::Scalar`].
    pub fn steps(&self) -> Steps {
        let mut steps = Steps::default();
        for band in &self.bands {
            steps.add(band.stepper.steps());
        }
        steps
    }

    /// Takes the next plane; gives its SAD against the plane `distance` frames earlier, or `None`
    /// for the first planes of the stream, which have none.
    ///
    /// # Errors
    /// [`PlaneError::Geometry`] when the plane is not of this stream's geometry; nothing changes.
    pub fn push(&mut self, plane: &Plane<'_>) -> Result<Option<u64>, PlaneError> {
        if plane.geometry() != self.geometry {
            return Err(PlaneError::Geometry);
        }
        let distance = self.stored.len() as u64;
        let slot = (self.seen % distance) as usize;
        let is_first = self.seen < distance;
        self.seen += 1;
        if is_first {
            self.store(slot, plane);
            return Ok(None);
        }
        if self.bands.is_empty() {
            let earlier = Plane::new(&self.stored[slot], self.stride, self.geometry)?;
            let sad = scalar::sad(&earlier, plane);
            self.store(slot, plane);
            return Ok(Some(sad));
        }
        Ok(Some(self.compare_and_store(slot, plane)))
    }

    fn store(&mut self, slot: usize, plane: &Plane<'_>) {
        let row_bytes = self.geometry.row_bytes();
        let rows = self.stored[slot].chunks_mut(self.stride);
        for (y, row) in rows.enumerate() {
            row[..row_bytes].copy_from_slice(plane.row(y));
        }
    }

    fn compare_and_store(&mut self, slot: usize, plane: &Plane<'_>) -> u64 {
        let (row_bytes, height) = (self.geometry.row_bytes(), self.geometry.height());
        let (stored, stride) = (&mut self.stored[slot], self.stride);
        // Before any band overwrites what another one, or a reflection, still needs.
        for band in &mut self.bands {
            let (start, end) = (band.rows.start as isize, band.rows.end as isize);
            let around = [start - 2, start - 1, end, end + 1];
            for (row, copy) in around.into_iter().zip(band.halo.chunks_mut(row_bytes)) {
                copy.copy_from_slice(&stored[reflect(row, height) * stride..][..row_bytes]);
            }
        }
        // All bands but the last have the same number of rows.
        let band_rows = self.bands[0].rows.len();
        let sad = |band: &mut Band, stored: &mut [u8]| {
            let mut earlier = StoredBand {
                rows: band.rows.clone(),
                stored,
                stride,
                row_bytes,
                halo: &band.halo,
            };
            let rows = band.rows.clone();
            walk(band.stepper.as_mut(), &mut earlier, plane, rows)
        };
        let (own, others) = self.bands.split_at_mut(1);
        let (own_stored, others_stored) = stored.split_at_mut(own[0].rows.len() * stride);
        let Some(helpers) = &self.helpers else {
            return sad(&mut own[0], own_stored);
        };
        let (total, pending) = (AtomicU64::new(0), AtomicUsize::new(others.len()));
        let others = others
            .iter_mut()
            .zip(others_stored.chunks_mut(band_rows * stride));
        helpers.in_place_scope(|scope| {
            for (band, stored) in others {
                scope.spawn(|_| {
                    total.fetch_add(sad(band, stored), Ordering::Relaxed);
                    pending.fetch_sub(1, Ordering::Release);
                });
            }
            total.fetch_add(sad(&mut own[0], own_stored), Ordering::Relaxed);
            for _ in 0..AWAKE {
                if pending.load(Ordering::Acquire) == 0 {
                    break;
                }
                std::hint::spin_loop();
            }
        });
        total.into_inner()
    }
}

/// Bands of equal height for `threads` threads, the last one may be lower; none for the reference.
fn bands(kernel: Kernel, geometry: Geometry, threads: usize) -> Vec<Band> {
    let height = geometry.height();
    let rows = height.div_ceil(threads).next_multiple_of(2);
    let band = |start: usize| {
        Some(Band {
            rows: start..(start + rows).min(height),
            stepper: stepper(kernel, geometry)?,
            halo: vec![0; 2 * HALO * geometry.row_bytes()],
        })
    };
    (0..height).step_by(rows).filter_map(band).collect()
}

/// The SAD of two planes at hand, neither of which is changed: for files, where pairs of frames can
/// be compared in any order and on several threads, each with a `PairSad` of its own.
#[derive(Debug)]
pub struct PairSad {
    geometry: Geometry,
    stepper: Option<Box<dyn Stepper>>,
}

impl PairSad {
    /// For planes of one geometry, with the kernel that [`Kernel::chosen`] names.
    pub fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            stepper: stepper(Kernel::chosen(), geometry),
        }
    }

    /// The same with another kernel.
    ///
    /// # Errors
    /// [`KernelError::Unsupported`] when this processor cannot run it.
    pub fn with_kernel(self, kernel: Kernel) -> Result<Self, KernelError> {
        let stepper = stepper(kernel.require()?, self.geometry);
        Ok(Self { stepper, ..self })
    }

    /// How the steps of two rows went so far; all zero for [`Kernel::Scalar`].
    pub fn steps(&self) -> Steps {
        let steps = self.stepper.as_ref().map(|stepper| stepper.steps());
        steps.unwrap_or_default()
    }

    /// SAD of `earlier` minus `later`.
    ///
    /// # Errors
    /// [`PlaneError::Geometry`] when one of them is of another geometry.
    pub fn sad(&mut self, earlier: &Plane<'_>, later: &Plane<'_>) -> Result<u64, PlaneError> {
        if [earlier, later].map(Plane::geometry) != [self.geometry; 2] {
            return Err(PlaneError::Geometry);
        }
        let height = self.geometry.height();
        Ok(match &mut self.stepper {
            None => scalar::sad(earlier, later),
            Some(stepper) => walk(stepper.as_mut(), &mut { *earlier }, later, 0..height),
        })
    }
}

/// SADs of many pairs of planes (earlier, later) of one geometry, on `threads` threads that each take
/// a run of pairs: for files, whose pairs do not wait for each other. In the order of the pairs.
///
/// # Errors
/// [`PlaneError::Geometry`] when a plane is of another geometry than the first.
pub fn sads(pairs: &[[Plane<'_>; 2]], threads: usize) -> Result<Vec<u64>, PlaneError> {
    let Some([first, _]) = pairs.first() else {
        return Ok(Vec::new());
    };
    let geometry = first.geometry();
    let run = |run: &[[Plane<'_>; 2]]| {
        let mut sad = PairSad::new(geometry);
        let sads = run.iter().map(|[earlier, later]| sad.sad(earlier, later));
        sads.collect::<Result<Vec<u64>, PlaneError>>()
    };
    let share = pairs.len().div_ceil(threads.max(1));
    std::thread::scope(|scope| {
        let shares = pairs
            .chunks(share)
            .map(|pairs| scope.spawn(move || run(pairs)));
        let workers: Vec<_> = shares.collect();
        let mut sads = Vec::with_capacity(pairs.len());
        for worker in workers {
            match worker.join() {
                Ok(some) => sads.extend(some?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(sads)
    })
}
