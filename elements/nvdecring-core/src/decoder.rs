// SPDX-License-Identifier: MPL-2.0

//! The decoder and its context: created, reconfigured, replaced and destroyed by the parser thread, never
//! while the ring needs the old one.

use std::sync::Arc;

use crate::api::{ErrorClass, GpuApi, GpuError, SurfacePlan};
use crate::calls::{Call, Role};
use crate::driver::Overtaken;
use crate::error::Error;
use crate::gate::DeviceGate;
use crate::health::Recovery;
use crate::output::{DropReason, Event};
use crate::state::{Open, Party, Shared, Step};

pub(crate) struct DecoderOwner<G: GpuApi> {
    shared: Arc<Shared<G>>,
    api: Arc<G>,
    gate: Arc<DeviceGate>,
    context: Option<Arc<G::Context>>,
    open: Option<Open<G>>,
}

impl<G: GpuApi> DecoderOwner<G> {
    pub(crate) fn new(shared: Arc<Shared<G>>, api: Arc<G>, gate: Arc<DeviceGate>) -> Self {
        Self {
            shared,
            api,
            gate,
            context: None,
            open: None,
        }
    }

    pub(crate) fn open(&self) -> Option<&Open<G>> {
        self.open.as_ref()
    }

    /// A call that opens or closes: one at a time on a device.
    fn gated<T>(&self, call: Call, make: impl FnOnce() -> T) -> Result<T, Error> {
        let limit = self.shared.config.open_timeout;
        let _pass = self.gate.enter(&*self.shared.clock, call, limit)?;
        Ok(self.shared.call(Role::Parser, call, make))
    }

    pub(crate) fn open_context(&mut self) -> Result<(), Error> {
        let context = self
            .gated(Call::OpenContext, || self.api.open_context())?
            .map_err(Error::Open)?;
        self.context = Some(Arc::new(context));
        self.shared.with(|state| state.ledger.stats.contexts += 1);
        Ok(())
    }

    pub(crate) fn create_parser(&self) -> Result<G::Parser, Error> {
        self.shared
            .call(Role::Parser, Call::CreateParser, || {
                self.api.create_parser()
            })
            .map_err(Error::Open)
    }

    /// Waits until the ring is empty and the worker is in no call.
    fn quiet(&self, epoch: u64) -> Result<(), Overtaken> {
        self.shared.wait(Party::Parser, |state, _| {
            state.waits_for_quiet = false;
            if state.overtaken(epoch) {
                Step::Done(Err(Overtaken))
            } else if state.decoder_is_quiet() {
                Step::Done(Ok(()))
            } else {
                state.waits_for_quiet = true;
                Step::Wait(None)
            }
        })
    }

    /// A new format: reconfigures the decoder if it can, replaces it otherwise.
    pub(crate) fn change(
        &mut self,
        format: &G::Format,
        plan: SurfacePlan,
        epoch: u64,
    ) -> Result<(), Overtaken> {
        self.quiet(epoch)?;
        // A surface that has not settled, or a broken decoder, cannot be reconfigured.
        let sound = self.shared.with(|state| {
            for token in state.pictures.forget_tokens() {
                state.drop_frame(token, DropReason::NeverShown);
            }
            state.health.lost().is_none() && state.pictures.quarantined().next().is_none()
        });
        if sound && self.reconfigure(format, plan) {
            return Ok(());
        }
        let format = Arc::new(format.clone());
        match self.replace(&format, plan)? {
            Ok(()) => {
                self.shared.with(|state| state.health.replaced());
                Ok(())
            }
            Err(error) => self.try_on(&format, plan, error),
        }
    }

    fn reconfigure(&mut self, format: &G::Format, plan: SurfacePlan) -> bool {
        let Some(open) = &self.open else {
            return false;
        };
        if !self.api.fits(&open.decoder, format, plan) {
            return false;
        }
        let done = self.shared.call(Role::Parser, Call::Reconfigure, || {
            self.api.reconfigure(&open.decoder, format, plan)
        });
        if done.is_err() {
            // Replacing it tells more.
            return false;
        }
        let open = Open {
            decoder: open.decoder.clone(),
            format: Arc::new(format.clone()),
            plan,
        };
        self.install(open);
        self.shared
            .with(|state| state.ledger.stats.reconfigured += 1);
        true
    }

    /// The decoder is broken: a new one, then a new context, then an error.
    pub(crate) fn recover(&mut self, epoch: u64) -> Result<(), Overtaken> {
        self.quiet(epoch)?;
        let (Some(open), Some(error)) = (
            &self.open,
            self.shared.read(|state| state.health.lost().cloned()),
        ) else {
            return Ok(());
        };
        let (format, plan) = (open.format.clone(), open.plan);
        self.try_on(&format, plan, error)
    }

    fn try_on(
        &mut self,
        format: &Arc<G::Format>,
        plan: SurfacePlan,
        mut error: GpuError,
    ) -> Result<(), Overtaken> {
        let after = error.clone();
        loop {
            let Some(by) = self.shared.with(|state| state.health.next_recovery()) else {
                return self.fail(Error::DeviceLost(error));
            };
            if by == Recovery::Context {
                self.close()?;
                match self.open_context() {
                    Ok(()) => {}
                    Err(Error::Open(refused)) => {
                        error = refused;
                        continue;
                    }
                    Err(other) => return self.fail(other),
                }
            }
            match self.replace(format, plan)? {
                Ok(()) => {
                    self.shared.with(|state| state.health.recovered());
                    self.shared.tell(Event::Recovered { by, after });
                    return Ok(());
                }
                Err(refused) => error = refused,
            }
        }
    }

    /// Destroys the decoder, if there is one, and creates another.
    fn replace(
        &mut self,
        format: &Arc<G::Format>,
        plan: SurfacePlan,
    ) -> Result<Result<(), GpuError>, Overtaken> {
        self.destroy()?;
        let Some(context) = &self.context else {
            return Ok(Err(GpuError {
                call: "cuvidCreateDecoder",
                code: 201,
                text: "no context is open".into(),
                class: ErrorClass::Single,
            }));
        };
        let created = self.gated(Call::CreateDecoder, || {
            self.api.create_decoder(context, format, plan)
        });
        match created {
            Ok(Ok(decoder)) => {
                self.install(Open {
                    decoder: Arc::new(decoder),
                    format: format.clone(),
                    plan,
                });
                self.shared.with(|state| {
                    state.has_status = true;
                    state.ledger.stats.decoders += 1;
                });
                Ok(Ok(()))
            }
            Ok(Err(error)) if error.class == ErrorClass::NotSupported => {
                Err(self.failed(Error::Unsupported(error.to_string())))
            }
            Ok(Err(error)) => Ok(Err(error)),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Makes a decoder, or what a decoder has become, the one in use. Nothing of the old one is left.
    fn install(&mut self, open: Open<G>) {
        self.open = Some(open.clone());
        let old = self.shared.with(|state| {
            for token in state.pictures.clear() {
                state.drop_frame(token, DropReason::NeverShown);
            }
            state.ring.limit(open.plan.ring_depth);
            state.open.replace(open)
        });
        drop(old);
    }

    fn destroy(&mut self) -> Result<(), Overtaken> {
        let shared_open = self.shared.with(|state| {
            let lost = state.health.lost().cloned();
            for token in state.pictures.clear() {
                let reason = match &lost {
                    Some(error) => DropReason::DecoderLost(error.clone()),
                    None => DropReason::NeverShown,
                };
                state.drop_frame(token, reason);
            }
            state.open.take()
        });
        drop(shared_open);
        let open = self.open.take();
        self.end(open)
    }

    /// Destroys decoder and context.
    pub(crate) fn close(&mut self) -> Result<(), Overtaken> {
        self.destroy()?;
        let context = self.context.take();
        self.end(context)
    }

    /// Lets go of the last reference to something of the device.
    fn end<T>(&self, last: Option<T>) -> Result<(), Overtaken> {
        let Some(last) = last else {
            return Ok(());
        };
        let limit = self.shared.config.open_timeout;
        match self.gate.enter(&*self.shared.clock, Call::Destroy, limit) {
            Ok(_pass) => {
                self.shared.call(Role::Parser, Call::Destroy, || drop(last));
                Ok(())
            }
            Err(error) => {
                // Another session hangs in the device; this thread would hang with it.
                std::mem::forget(last);
                Err(self.failed(error))
            }
        }
    }

    fn failed(&self, error: Error) -> Overtaken {
        self.shared.with(|state| state.fail(error));
        Overtaken
    }

    fn fail(&self, error: Error) -> Result<(), Overtaken> {
        Err(self.failed(error))
    }
}
