// SPDX-License-Identifier: MPL-2.0

//! [`Decoder`]: pictures are queued by number, done later, and mapped by number.

mod queue;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nvcuvid_sys::*;

use crate::cuda::Cuda;
use crate::engine::hang;
use crate::faults::{DecoderFaults, PictureFaults};
use crate::mapped::OutputSurface;
use crate::picture::Showing;
use crate::pixels::Pixels;
use crate::report::{log, mistake};
use crate::setup::Setup;
use crate::{faults, lock};

/// A picture in a decode surface.
#[derive(Clone, Debug)]
struct Job {
    done_at: Instant,
    pixels: Option<Arc<Pixels>>,
    faults: PictureFaults,
    showing: Arc<Showing>,
}

impl Job {
    fn is_done(&self, now: Instant) -> bool {
        !self.faults.sync_hangs && now >= self.done_at
    }
}

/// A surface that pictures are decoded into.
#[derive(Debug, Default)]
struct Surface {
    job: Option<Job>,
    /// Maps that wait for it or show it.
    holders: usize,
}

#[derive(Debug)]
struct State {
    setup: Setup,
    surfaces: Vec<Surface>,
    outputs: Vec<Arc<OutputSurface>>,
    /// When the pictures in the queue are done.
    queue: Vec<Instant>,
    /// When the last picture is done: one decoder uses one engine, unless several are asked for.
    busy_until: Instant,
    faults: DecoderFaults,
    destroyed: bool,
}

/// One decoder.
#[derive(Debug)]
pub struct Decoder {
    context: usize,
    /// The context of a lock that the client gave with it: calls need no current context then.
    has_lock: bool,
    state: Mutex<State>,
    changed: Condvar,
}

/// How a map selects a picture.
#[derive(Clone, Copy, Debug)]
pub struct MapRequest {
    /// `nPicIdx`.
    pub index: i32,
    /// `output_stream`.
    pub stream: usize,
}

impl Decoder {
    /// `cuvidCreateDecoder` in the current context, or in `lock_context`.
    ///
    /// # Errors
    /// The parameters are out of range or not supported; there is no context; memory is short.
    pub fn create(
        info: &CUVIDDECODECREATEINFO,
        lock_context: Option<usize>,
    ) -> Result<Arc<Self>, CuResult> {
        let cuda = Cuda::get()?;
        let faults = faults::current()?;
        let context = lock_context.unwrap_or_else(|| cuda.current());
        if context == 0 {
            mistake("cuvidCreateDecoder without a current context");
            return Err(CuResult::INVALID_CONTEXT);
        }
        cuda.with(context, || {
            cuda.health()?;
            let setup = Setup::new(info)?;
            if faults.init_hang {
                hang("cuvidCreateDecoder");
            }
            let outputs = allocate(cuda, &setup)?;
            log(|| format!("a decoder: {setup:?}"));
            Ok(Arc::new(Self {
                context,
                has_lock: lock_context.is_some(),
                state: Mutex::new(State {
                    surfaces: empty_surfaces(&setup),
                    outputs,
                    setup,
                    queue: Vec::new(),
                    busy_until: Instant::now(),
                    faults: DecoderFaults::new(faults),
                    destroyed: false,
                }),
                changed: Condvar::new(),
            }))
        })
    }

    /// Runs a call in the decoder's context, which has to be current.
    fn enter<T>(
        &self,
        call: &str,
        body: impl FnOnce(&'static Cuda) -> Result<T, CuResult>,
    ) -> Result<T, CuResult> {
        let cuda = Cuda::get()?;
        let current = cuda.current();
        if current != self.context && !self.has_lock {
            let what = match current {
                0 => "without a current context",
                _ => "with another context than the decoder's",
            };
            mistake(&format!("{call} {what}"));
            return Err(CuResult::INVALID_CONTEXT);
        }
        cuda.with(self.context, || {
            cuda.health()?;
            body(cuda)
        })
    }

    /// Waits until a point in time, or until something changes.
    fn wait<'a>(&self, state: MutexGuard<'a, State>, until: Instant) -> MutexGuard<'a, State> {
        let length = until.saturating_duration_since(Instant::now());
        self.changed
            .wait_timeout(state, length)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// `cuvidGetDecodeStatus`.
    ///
    /// # Errors
    /// The codec keeps no status, or the surface does not exist.
    pub fn status(&self, index: i32) -> Result<cuvidDecodeStatus, CuResult> {
        self.enter("cuvidGetDecodeStatus", |_| {
            let state = lock(&self.state);
            if !state.setup.has_status() {
                return Err(CuResult::NOT_SUPPORTED);
            }
            let index = surface_index(index, &state, "cuvidGetDecodeStatus")?;
            Ok(match &state.surfaces[index].job {
                None => cuvidDecodeStatus_Invalid,
                Some(job) if !job.is_done(Instant::now()) => cuvidDecodeStatus_InProgress,
                Some(job) if job.faults.error => cuvidDecodeStatus_Error,
                Some(job) if job.faults.concealed || job.showing.is_damaged() => {
                    cuvidDecodeStatus_Error_Concealed
                }
                Some(_) => cuvidDecodeStatus_Success,
            })
        })
    }

    /// `cuvidMapVideoFrame`: waits for the picture; answers address and pitch.
    ///
    /// # Errors
    /// The surface holds no picture, every output surface is mapped, or a fault.
    pub fn map(&self, request: MapRequest) -> Result<(usize, usize), CuResult> {
        self.enter("cuvidMapVideoFrame", |cuda| {
            let mut state = lock(&self.state);
            let index = surface_index(request.index, &state, "cuvidMapVideoFrame")?;
            if state.faults.map_is_busy() {
                return Err(CuResult::NOT_READY);
            }
            if state.surfaces[index].job.is_none() {
                log(|| format!("surface {index} is mapped and holds no picture"));
                return Err(CuResult::MAP_FAILED);
            }
            state.surfaces[index].holders += 1;
            let mapped = self.map_held(cuda, state, index, request.stream);
            if mapped.is_err() {
                let mut state = lock(&self.state);
                if let Some(surface) = state.surfaces.get_mut(index) {
                    surface.holders = surface.holders.saturating_sub(1);
                }
            }
            mapped
        })
    }

    fn map_held(
        &self,
        cuda: &'static Cuda,
        mut state: MutexGuard<'_, State>,
        index: usize,
        stream: usize,
    ) -> Result<(usize, usize), CuResult> {
        loop {
            if state.destroyed {
                return Err(CuResult::INVALID_HANDLE);
            }
            let surface = state.surfaces.get(index);
            let job = surface.and_then(|surface| surface.job.as_ref());
            let job = job.ok_or(CuResult::MAP_FAILED)?;
            if job.is_done(Instant::now()) {
                break;
            }
            let until = match job.faults.sync_hangs {
                true => Instant::now() + Duration::from_secs(3600),
                false => job.done_at,
            };
            state = self.wait(state, until);
        }
        let job = state.surfaces[index].job.as_ref();
        let job = job.ok_or(CuResult::MAP_FAILED)?;
        if job.faults.map_hangs {
            drop(state);
            hang("cuvidMapVideoFrame");
        }
        job.showing.settle();
        let pixels = job.pixels.clone();
        let most = state
            .faults
            .pool()
            .and_then(|pool| usize::try_from(pool).ok());
        let mapped = state
            .outputs
            .iter()
            .filter(|output| output.is_mapped())
            .count();
        let free = state.outputs.iter().find(|output| output.claim(index));
        let Some(output) = free.filter(|_| most.is_none_or(|most| mapped < most)) else {
            if let Some(output) = free {
                output.release(cuda);
            }
            log(|| format!("surface {index} is not mapped: {mapped} are"));
            return Err(CuResult::MAP_FAILED);
        };
        let output = output.clone();
        let layout = state.setup.output(output.pitch);
        drop(state);
        let filled = output.fill(cuda, stream, pixels, layout);
        if let Err(code) = filled {
            output.release(cuda);
            return Err(code);
        }
        log(|| format!("surface {index} is mapped at {:#x}", output.address));
        Ok((output.address, output.pitch))
    }

    /// `cuvidUnmapVideoFrame`.
    ///
    /// # Errors
    /// Nothing is mapped there, or the context is lost.
    pub fn unmap(&self, address: usize) -> Result<(), CuResult> {
        let mut lost = Ok(());
        let unmapped = self.enter_lost("cuvidUnmapVideoFrame", &mut lost, |cuda| {
            let mut state = lock(&self.state);
            let found = state
                .outputs
                .iter()
                .find(|output| output.address == address);
            let Some(output) = found.cloned().filter(|output| output.is_mapped()) else {
                drop(state);
                mistake(&format!(
                    "cuvidUnmapVideoFrame of {address:#x}, where nothing is mapped"
                ));
                return Err(CuResult::INVALID_VALUE);
            };
            // In a context that is lost nobody can wait for the copy.
            if cuda.health().is_ok() && output.is_read(cuda) {
                mistake("cuvidUnmapVideoFrame before the copy from the surface is done");
            }
            let index = output.release(cuda);
            let surface = index.and_then(|index| state.surfaces.get_mut(index));
            if let Some(surface) = surface {
                surface.holders = surface.holders.saturating_sub(1);
            }
            self.changed.notify_all();
            Ok(())
        });
        unmapped.and(lost)
    }

    /// As [`enter`](Self::enter), for calls that give something back: they are done in a lost context too, and
    /// say that it is lost.
    fn enter_lost<T>(
        &self,
        call: &str,
        lost: &mut Result<(), CuResult>,
        body: impl FnOnce(&'static Cuda) -> Result<T, CuResult>,
    ) -> Result<T, CuResult> {
        let cuda = Cuda::get()?;
        if cuda.current() != self.context && !self.has_lock {
            mistake(&format!("{call} without the decoder's context"));
            return Err(CuResult::INVALID_CONTEXT);
        }
        cuda.with(self.context, || {
            *lost = cuda.health();
            body(cuda)
        })
    }

    /// `cuvidReconfigureDecoder`: every surface then holds nothing.
    ///
    /// # Errors
    /// The decoder cannot become that, or surfaces are mapped.
    pub fn reconfigure(&self, info: &CUVIDRECONFIGUREDECODERINFO) -> Result<(), CuResult> {
        self.enter("cuvidReconfigureDecoder", |cuda| {
            let mut state = lock(&self.state);
            let setup = state.setup.reconfigured(info)?;
            let mapped = state
                .outputs
                .iter()
                .filter(|output| output.is_mapped())
                .count();
            if mapped > 0 {
                drop(state);
                mistake(&format!(
                    "cuvidReconfigureDecoder while {mapped} surfaces are mapped"
                ));
                return Err(CuResult::ILLEGAL_STATE);
            }
            let now = Instant::now();
            let waiting = state
                .surfaces
                .iter()
                .filter(|surface| surface.holders > 0)
                .count();
            if waiting > 0 {
                mistake("cuvidReconfigureDecoder while a picture is being mapped");
            }
            if state.queue.iter().any(|done_at| *done_at > now) {
                log(|| "the decoder is reconfigured with pictures in its queue".to_owned());
            }
            if !setup.has_layout_of(&state.setup) {
                let outputs = allocate(cuda, &setup)?;
                let old = std::mem::replace(&mut state.outputs, outputs);
                old.iter().for_each(|output| output.free(cuda));
            }
            state.surfaces = empty_surfaces(&setup);
            state.queue.clear();
            state.setup = setup;
            self.changed.notify_all();
            log(|| format!("the decoder is now {:?}", state.setup));
            Ok(())
        })
    }

    /// `cuvidDestroyDecoder`.
    ///
    /// # Errors
    /// The context is not current, or it is lost; the decoder is gone all the same.
    pub fn destroy(&self) -> Result<(), CuResult> {
        let mut lost = Ok(());
        let destroyed = self.enter_lost("cuvidDestroyDecoder", &mut lost, |cuda| {
            let mut state = lock(&self.state);
            if state.faults.close_hangs() {
                drop(state);
                hang("cuvidDestroyDecoder");
            }
            state.destroyed = true;
            let outputs = std::mem::take(&mut state.outputs);
            self.changed.notify_all();
            drop(state);
            let mapped = outputs.iter().filter(|output| output.is_mapped()).count();
            if mapped > 0 {
                mistake(&format!(
                    "cuvidDestroyDecoder while {mapped} surfaces are mapped"
                ));
            }
            for output in outputs {
                output.release(cuda);
                output.free(cuda);
            }
            Ok(())
        });
        destroyed.and(lost)
    }

    /// How many surfaces are mapped.
    pub fn mapped(&self) -> usize {
        let state = lock(&self.state);
        state
            .outputs
            .iter()
            .filter(|output| output.is_mapped())
            .count()
    }
}

fn surface_index(index: i32, state: &State, call: &str) -> Result<usize, CuResult> {
    let found = usize::try_from(index)
        .ok()
        .filter(|index| *index < state.surfaces.len());
    found.ok_or_else(|| {
        let count = state.surfaces.len();
        mistake(&format!(
            "{call} of picture {index}: there are {count} surfaces"
        ));
        CuResult::INVALID_VALUE
    })
}

fn empty_surfaces(setup: &Setup) -> Vec<Surface> {
    std::iter::repeat_with(Surface::default)
        .take(setup.surfaces)
        .collect()
}

fn allocate(cuda: &Cuda, setup: &Setup) -> Result<Vec<Arc<OutputSurface>>, CuResult> {
    let mut outputs: Vec<Arc<OutputSurface>> = Vec::new();
    for _ in 0..setup.outputs {
        match OutputSurface::new(cuda, setup.row_bytes(), setup.target_height) {
            Ok(output) => outputs.push(Arc::new(output)),
            Err(code) => {
                outputs.iter().for_each(|output| output.free(cuda));
                return Err(code);
            }
        }
    }
    Ok(outputs)
}
