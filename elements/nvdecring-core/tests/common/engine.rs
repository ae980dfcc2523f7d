// SPDX-License-Identifier: MPL-2.0

//! A decoder library that follows a script: surfaces whose pixels arrive when the engine is done, out of
//! order with several engines, and that are overwritten without mercy. What is illegal is written down.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nvdecring_core::clock::Bell;
use nvdecring_core::*;

use super::parser::Parser;
use super::script::{Fault, Script};
use super::sim::Sim;

/// The driver's queue holds this many pictures that no engine has begun.
const QUEUE: usize = 4;

/// The pixels of a picture: the number of its packet.
pub type Pixels = usize;

#[derive(Debug, Clone, Default)]
struct Surface {
    before: Option<Pixels>,
    pixels: Option<Pixels>,
    done_at: Duration,
}

#[derive(Default)]
struct World {
    surfaces: Vec<Surface>,
    /// When each engine is free.
    engines: Vec<Duration>,
    /// When the pictures that were taken begin.
    begins: Vec<Duration>,
    calls: BTreeMap<&'static str, usize>,
    broken: Option<(Fault, u64)>,
    decoders_alive: u64,
    contexts_alive: u64,
    parsers_alive: u64,
    made: u64,
    /// The decode surface of each map: it is read until the copy is complete.
    mapped: BTreeMap<u64, usize>,
    most_mapped: usize,
    copying: BTreeMap<u64, u64>,
    status_refused: Option<u64>,
    violations: Vec<String>,
    trace: Vec<(&'static str, String)>,
    released: bool,
}

pub struct Engine {
    pub sim: Sim,
    pub script: Script,
    world: Mutex<World>,
    hang: Bell,
}

pub struct Context {
    engine: Arc<Handle>,
    id: u64,
}

pub struct Decoder {
    context: Arc<Context>,
    id: u64,
    output_surfaces: u8,
}

pub struct Mapped {
    id: u64,
}

pub struct Copy {
    id: u64,
    mapped: u64,
    done_at: Duration,
}

/// What the parser hands from one callback to the decoder.
pub struct Params {
    pub picture: usize,
    pub info: PictureInfo,
}

/// The engine as the session sees it: the parts that outlive a call need a reference of their own.
pub struct Handle(pub Arc<Engine>);

/// What is left after a session, and what went wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct Remains {
    pub decoders: u64,
    pub contexts: u64,
    pub parsers: u64,
    pub mapped: usize,
}

impl Engine {
    pub fn new(sim: &Sim, script: Script) -> Arc<Self> {
        let world = World {
            surfaces: vec![Surface::default(); 32],
            engines: vec![Duration::ZERO; script.engines],
            ..World::default()
        };
        Arc::new(Self {
            sim: sim.clone(),
            script,
            world: Mutex::new(world),
            hang: Bell::default(),
        })
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(|p| p.into_inner())
    }

    pub fn violation(&self, text: String) {
        self.world().violations.push(text);
    }

    pub fn violations(&self) -> Vec<String> {
        self.world().violations.clone()
    }

    pub fn most_mapped(&self) -> usize {
        self.world().most_mapped
    }

    /// How often a call was made.
    pub fn calls(&self, name: &str) -> usize {
        self.world().calls.get(name).copied().unwrap_or(0)
    }

    /// Every call with the thread that made it.
    pub fn trace(&self) -> Vec<(&'static str, String)> {
        self.world().trace.clone()
    }

    /// What hangs returns.
    pub fn release(&self) {
        self.world().released = true;
        self.hang.ring();
    }

    pub fn remains(&self) -> Remains {
        let world = self.world();
        Remains {
            decoders: world.decoders_alive,
            contexts: world.contexts_alive,
            parsers: world.parsers_alive,
            mapped: world.mapped.len(),
        }
    }

    /// The beginning of every call: others may run, the thread must be the right one, a fault may come.
    pub fn enter(&self, call: &'static str, thread: &str) -> Result<Option<Fault>, GpuError> {
        self.sim.yield_now();
        let current = std::thread::current();
        let name = current.name().unwrap_or("?").to_owned();
        if name != thread {
            self.violation(format!("{call} on the thread {name}"));
        }
        let fault = {
            let mut world = self.world();
            world.trace.push((call, name));
            let nth = world.calls.entry(call).or_default();
            let fault = self.script.faults.get(&(call, *nth)).copied();
            *nth += 1;
            let now_broken = match fault {
                Some(
                    fault @ (Fault::BreaksDecoder | Fault::BreaksContext | Fault::BreaksDevice),
                ) => Some((fault, world.made)),
                _ => None,
            };
            // A device that is lost stays so.
            if !matches!(world.broken, Some((Fault::BreaksDevice, _))) {
                world.broken = now_broken.or(world.broken);
            }
            fault
        };
        match fault {
            Some(Fault::Hangs) => {
                while !self.world().released {
                    self.sim.wait(&self.hang, 0, None);
                }
                Err(error(call, 1, ErrorClass::Single))
            }
            Some(Fault::NotSupported) => Err(error(call, 801, ErrorClass::NotSupported)),
            Some(Fault::NeverSettles) if call == "decode" => Ok(fault),
            Some(
                Fault::Single
                | Fault::NeverSettles
                | Fault::BreaksDecoder
                | Fault::BreaksContext
                | Fault::BreaksDevice,
            ) => Err(error(call, 1, self.class())),
            None => Ok(None),
        }
    }

    fn class(&self) -> ErrorClass {
        match self.world().broken {
            Some(_) => ErrorClass::Sticky,
            None => ErrorClass::Single,
        }
    }

    /// A call into a broken decoder or context.
    fn alive(&self, call: &'static str, decoder: Option<&Decoder>) -> Result<(), GpuError> {
        let broken = match (self.world().broken, decoder) {
            (None, _) => false,
            (Some((Fault::BreaksDevice, _)), _) => true,
            (Some((Fault::BreaksContext, since)), Some(decoder)) => decoder.context.id <= since,
            (Some((_, since)), Some(decoder)) => decoder.id <= since,
            (Some(_), None) => false,
        };
        if broken {
            Err(error(call, 999, ErrorClass::Sticky))
        } else {
            Ok(())
        }
    }

    fn number(&self) -> u64 {
        let mut world = self.world();
        world.made += 1;
        world.made
    }
}

pub fn error(call: &'static str, code: i32, class: ErrorClass) -> GpuError {
    GpuError {
        call,
        code,
        text: "scripted".into(),
        class,
    }
}

pub const PARSER: &str = "nvdecring-parser";
pub const WORKER: &str = "nvdecring-worker";

impl Drop for Context {
    fn drop(&mut self) {
        self.engine.0.world().contexts_alive -= 1;
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        let engine = &self.context.engine.0;
        let mut world = engine.world();
        world.decoders_alive -= 1;
        if !world.mapped.is_empty() {
            world
                .violations
                .push("a decoder is destroyed with a mapped surface".into());
        }
    }
}

impl GpuApi for Handle {
    type Context = Context;
    type Parser = Parser;
    type Decoder = Decoder;
    type Format = u32;
    type Params = Params;
    type Mapped = Mapped;
    type Copy = Copy;
    type Frame = Option<Pixels>;

    fn open_context(&self) -> Result<Context, GpuError> {
        self.0.enter("open_context", PARSER)?;
        self.0.alive("open_context", None)?;
        let id = self.0.number();
        self.0.world().contexts_alive += 1;
        Ok(Context {
            engine: Arc::new(Handle(self.0.clone())),
            id,
        })
    }

    fn create_parser(&self) -> Result<Parser, GpuError> {
        self.0.enter("create_parser", PARSER)?;
        self.0.world().parsers_alive += 1;
        Ok(Parser::new(self.0.clone()))
    }

    fn parse(
        &self,
        parser: &mut Parser,
        input: ParserInput<'_>,
        events: &mut dyn ParserEvents<Self>,
    ) -> Result<(), GpuError> {
        self.0.enter("parse", PARSER)?;
        parser.parse(input, events)
    }

    fn min_decode_surfaces(&self, format: &u32) -> u8 {
        self.0.script.min_surfaces(*format)
    }

    fn create_decoder(
        &self,
        context: &Arc<Context>,
        format: &u32,
        plan: SurfacePlan,
    ) -> Result<Decoder, GpuError> {
        self.0.enter("create_decoder", PARSER)?;
        let id = self.0.number();
        let decoder = Decoder {
            context: context.clone(),
            id,
            output_surfaces: plan.output_surfaces,
        };
        self.0.world().decoders_alive += 1;
        self.0.alive("create_decoder", Some(&decoder))?;
        let mut world = self.0.world();
        if world.decoders_alive > 1 {
            let alive = world.decoders_alive;
            world.violations.push(format!("{alive} decoders at a time"));
        }
        if plan.decode_surfaces < self.0.script.min_surfaces(*format) {
            world
                .violations
                .push(format!("{plan:?} is too small for format {format}"));
        }
        let now = self.0.sim.now();
        world.surfaces = vec![Surface::default(); 32];
        world.engines.fill(now);
        world.begins.clear();
        Ok(decoder)
    }

    fn fits(&self, _: &Decoder, _: &u32, _: SurfacePlan) -> bool {
        self.0.script.can_reconfigure
    }

    fn reconfigure(&self, decoder: &Decoder, _: &u32, _: SurfacePlan) -> Result<(), GpuError> {
        self.0.enter("reconfigure", PARSER)?;
        self.0.alive("reconfigure", Some(decoder))?;
        let mut world = self.0.world();
        if !world.mapped.is_empty() || !world.copying.is_empty() {
            world
                .violations
                .push("reconfigured with a mapped surface".into());
        }
        Ok(())
    }

    fn decode(&self, decoder: &Decoder, params: &Params) -> Result<(), GpuError> {
        let fault = self.0.enter("decode", PARSER)?;
        self.0.alive("decode", Some(decoder))?;
        // The driver's queue is full: the call blocks.
        loop {
            let now = self.0.sim.now();
            let mut waiting: Vec<_> = {
                let world = self.0.world();
                world
                    .begins
                    .iter()
                    .filter(|at| **at > now)
                    .copied()
                    .collect()
            };
            if waiting.len() < QUEUE {
                break;
            }
            waiting.sort_unstable();
            self.0.sim.sleep_until(waiting[0]);
        }
        let now = self.0.sim.now();
        let picture = &self.0.script.pictures[params.picture];
        let mut world = self.0.world();
        let Some(engine) = world.engines.iter_mut().min() else {
            return Err(error("decode", 1, ErrorClass::Single));
        };
        let begins = (*engine).max(now);
        let done = begins + picture.latency;
        let never = fault == Some(Fault::NeverSettles);
        if !never {
            *engine = done;
        }
        world.begins.push(begins);
        let written = [Some(params.info.index), params.info.film_grain_reference];
        for index in written.into_iter().flatten() {
            let surface = &mut world.surfaces[usize::from(index)];
            *surface = Surface {
                before: if surface.done_at <= now {
                    surface.pixels
                } else {
                    None
                },
                pixels: Some(params.picture),
                done_at: if never { Duration::MAX } else { done },
            };
        }
        Ok(())
    }

    fn status(&self, decoder: &Decoder, index: u8) -> Result<DecodeStatus, GpuError> {
        let entered = self.0.enter("status", WORKER);
        let refused = self.0.world().status_refused;
        if refused == Some(decoder.id) {
            self.0
                .violation("asked for a status the decoder does not have".into());
        }
        if !self.0.script.has_status {
            self.0.world().status_refused = Some(decoder.id);
            return Err(error("status", 801, ErrorClass::NotSupported));
        }
        entered?;
        self.0.alive("status", Some(decoder))?;
        let world = self.0.world();
        let surface = &world.surfaces[usize::from(index)];
        Ok(match surface.pixels {
            None => DecodeStatus::Unknown,
            Some(_) if surface.done_at > self.0.sim.now() => DecodeStatus::InProgress,
            Some(picture) => self.0.script.pictures[picture].status,
        })
    }

    fn map(&self, decoder: &Arc<Decoder>, shown: &DisplayInfo) -> Result<Mapped, GpuError> {
        self.0.enter("map", WORKER)?;
        self.0.alive("map", Some(decoder))?;
        let index = usize::from(shown.index);
        loop {
            let done_at = self.0.world().surfaces[index].done_at;
            if done_at == Duration::MAX {
                while !self.0.world().released {
                    self.0.sim.wait(&self.0.hang, 0, None);
                }
                break;
            }
            if done_at <= self.0.sim.now() {
                break;
            }
            self.0.sim.sleep_until(done_at);
        }
        let id = self.0.number();
        let mut world = self.0.world();
        world.mapped.insert(id, index);
        world.most_mapped = world.most_mapped.max(world.mapped.len());
        if world.mapped.len() > usize::from(decoder.output_surfaces) {
            world.violations.push("more maps than surfaces".into());
        }
        Ok(Mapped { id })
    }

    fn begin_copy(&self, decoder: &Decoder, _: &u32, mapped: &Mapped) -> Result<Copy, GpuError> {
        self.0.enter("begin_copy", WORKER)?;
        self.0.alive("begin_copy", Some(decoder))?;
        let id = self.0.number();
        self.0.world().copying.insert(id, mapped.id);
        Ok(Copy {
            id,
            mapped: mapped.id,
            done_at: self.0.sim.now() + self.0.script.copy,
        })
    }

    fn finish_copy(&self, copy: Copy) -> Result<Option<Pixels>, GpuError> {
        let entered = self.0.enter("finish_copy", WORKER);
        self.0.sim.sleep_until(copy.done_at);
        let mut world = self.0.world();
        world.copying.remove(&copy.id);
        let Some(index) = world.mapped.get(&copy.mapped).copied() else {
            world
                .violations
                .push("unmapped before the copy was complete".into());
            return Ok(None);
        };
        let surface = &world.surfaces[index];
        let pixels = if surface.done_at <= self.0.sim.now() {
            surface.pixels
        } else {
            surface.before
        };
        drop(world);
        entered?;
        Ok(pixels)
    }

    fn unmap(&self, _: &Decoder, mapped: Mapped) -> Result<(), GpuError> {
        let entered = self.0.enter("unmap", WORKER);
        let mut world = self.0.world();
        if world.copying.values().any(|id| *id == mapped.id) {
            world.violations.push("unmapped during the copy".into());
        }
        if world.mapped.remove(&mapped.id).is_none() {
            world.violations.push("unmapped twice".into());
        }
        drop(world);
        entered.map(|_| ())
    }
}

impl Engine {
    pub fn parser_gone(&self) {
        self.world().parsers_alive -= 1;
    }
}
