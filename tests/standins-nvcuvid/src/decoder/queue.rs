// SPDX-License-Identifier: MPL-2.0

//! `cuvidDecodePicture`: pictures into the decoder's queue.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use nvcuvid_sys::*;

use super::{Decoder, Job, State, surface_index};
use crate::engine::{ENGINES, QUEUE, hang};
use crate::faults::Plan;
use crate::lock;
use crate::picture::{self, Coded};
use crate::report::{log, mistake, overwritten};
use crate::setup::Setup;

impl Decoder {
    fn wait_for_queue<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        room: usize,
    ) -> Result<MutexGuard<'a, State>, CuResult> {
        loop {
            let now = Instant::now();
            state.queue.retain(|done_at| *done_at > now);
            if state.destroyed {
                return Err(CuResult::INVALID_HANDLE);
            }
            if state.queue.len() < room {
                return Ok(state);
            }
            let first = state.queue.iter().min().copied().unwrap_or(now);
            state = self.wait(state, first);
        }
    }

    /// `cuvidDecodePicture`: blocks while the queue is full.
    ///
    /// # Errors
    /// The parameters are not this library's parser's, the surface does not exist, or a fault.
    pub fn decode(&self, params: &CUVIDPICPARAMS) -> Result<(), CuResult> {
        self.enter("cuvidDecodePicture", |cuda| {
            let Some(coded) = picture::find(params) else {
                eprintln!(
                    "standin_nvcuvid: cuvidDecodePicture with parameters that are not of a decode callback that \
                     runs: this library decodes what its own parser gives"
                );
                return Err(CuResult::NOT_SUPPORTED);
            };
            let plan = lock(&self.state).faults.next_unit();
            match plan {
                Plan::Refuse(code) => Err(code),
                Plan::Hang => hang("cuvidDecodePicture"),
                Plan::Lose => {
                    cuda.lose(self.context, CuResult::LAUNCH_FAILED);
                    Err(CuResult::LAUNCH_FAILED)
                }
                Plan::Decode {
                    drained,
                    pause,
                    answer,
                } => {
                    std::thread::sleep(pause);
                    let room = if drained { 1 } else { QUEUE };
                    self.queue(params, coded, room)?;
                    match answer {
                        CuResult::SUCCESS => Ok(()),
                        code => Err(code),
                    }
                }
            }
        })
    }

    fn queue(&self, params: &CUVIDPICPARAMS, coded: Coded, room: usize) -> Result<(), CuResult> {
        let state = lock(&self.state);
        let index = surface_index(params.CurrPicIdx, &state, "cuvidDecodePicture")?;
        if let Some(plain) = without_grain(&state.setup, params) {
            let plain = surface_index(plain, &state, "cuvidDecodePicture")?;
            if state.surfaces[plain].holders > 0 {
                mistake(&format!(
                    "cuvidDecodePicture into surface {plain}, which is mapped"
                ));
            }
        }
        if state.surfaces[index].holders > 0 {
            mistake(&format!(
                "cuvidDecodePicture into surface {index}, which is mapped"
            ));
        }
        if let Some(job) = &state.surfaces[index].job
            && !coded.second_field
            && job.showing.is_awaited()
        {
            overwritten(index);
        }
        let mut state = self.wait_for_queue(state, room)?;
        let faults = state.faults.next_picture(coded.kind, coded.second_field);
        let done_at = match state.faults.engines() {
            Some(engines) => ENGINES.schedule(faults.latency, engines),
            None => {
                let start = state.busy_until.max(Instant::now());
                state.busy_until = start + faults.latency;
                state.busy_until
            }
        };
        state.queue.push(done_at);
        let pixels = match (coded.pixels, faults.error) {
            (Some(pixels), true) => Some(Arc::new(pixels.half_lost())),
            (pixels, _) => pixels,
        };
        log(|| format!("surface {index} is decoded into: {faults:?}"));
        // A reconfiguration may have come while this waited.
        let surface = state
            .surfaces
            .get_mut(index)
            .ok_or(CuResult::INVALID_VALUE)?;
        surface.job = Some(Job {
            done_at,
            pixels,
            faults,
            showing: coded.showing,
        });
        self.changed.notify_all();
        Ok(())
    }
}

/// For AV1 with film grain, the second surface that is written.
fn without_grain(setup: &Setup, params: &CUVIDPICPARAMS) -> Option<i32> {
    if setup.codec != cudaVideoCodec_AV1 {
        return None;
    }
    // SAFETY: the parameters are this library's own parser's, which filled all of them.
    unsafe { av1::film_grain_reference(params) }
}
