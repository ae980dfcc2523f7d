// SPDX-License-Identifier: MPL-2.0

//! The session thread: every call of the runtime is made here, so that one that hangs holds up nobody.
//!
//! The thread knows nothing of the element. It ends when it is told to and every surface has come back; one
//! that hangs in a call is left behind, and cleans up by itself should the call ever return.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use vplretry_core::{Damage, End, FrameLoop, Settings};

use crate::codec::StreamFormat;
use crate::driver::{Driver, Task};
use crate::failure::{Failure, Kind};
use crate::ledger::Fate;
use crate::link::{CallKind, Link, Order};
use crate::reply::Reply;
use crate::runtime::Runtime;
use crate::select::{self, Found, Selection};
use crate::unit::Unit;

/// What a stream is decoded with.
pub(crate) struct Setup {
    pub(crate) selection: Selection,
    pub(crate) format: StreamFormat,
    pub(crate) settings: Settings,
    pub(crate) low_latency: bool,
    pub(crate) surface_limit: u32,
    pub(crate) wrap: Arc<AtomicBool>,
}

/// What the thread is asked to do.
pub(crate) enum Command {
    /// Look for runtimes.
    Find(Selection),
    /// Decode a new stream.
    Configure(Box<Setup>),
    /// The stream goes on with these parameter sets.
    Parameters(Vec<u8>),
    /// Decode an access unit.
    Feed(Unit),
    /// Give out everything.
    Drain,
    /// Forget everything.
    Flush,
    /// End the stream.
    Close,
}

/// Starts the thread. It is not joined: it ends by itself after [`Link::end`].
///
/// # Errors
/// The system gives no thread.
pub(crate) fn start() -> Result<Arc<Link>, Failure> {
    let link = Arc::new(Link::default());
    let mut worker = Worker {
        link: Arc::clone(&link),
        decode: None,
        failed: None,
    };
    std::thread::Builder::new()
        .name("vplretrydec".to_owned())
        .spawn(move || worker.run())
        .map_err(|error| {
            Failure::new(Kind::Failed, format!("no thread for the session: {error}"))
        })?;
    Ok(link)
}

struct Worker {
    link: Arc<Link>,
    decode: Option<FrameLoop<Driver>>,
    /// Decoding has ended; every command is answered with this.
    failed: Option<Failure>,
}

impl Worker {
    fn run(&mut self) {
        while let Some(order) = self.link.take() {
            let number = order.number;
            let result = catch_unwind(AssertUnwindSafe(|| self.carry_out(order)));
            let result = result.unwrap_or_else(|_| {
                // What is in a state that nobody knows is not used again, and not dropped.
                std::mem::forget(self.decode.take());
                Err(Failure::new(
                    Kind::Internal,
                    "a defect of vplretrydec: the session thread panicked; please report it",
                ))
            });
            if let Some(decode) = &self.decode {
                self.link.set_stats(*decode.stats());
            }
            if let Err(failure) = &result {
                self.failed = Some(failure.clone());
            }
            if self.link.is_ending() {
                self.close();
            }
            self.link.tell(Reply::Done(number, result));
        }
        self.close();
        self.link.note_end();
    }

    fn close(&mut self) {
        let link = Arc::clone(&self.link);
        let decode = self.decode.take();
        link.call("closing the session", CallKind::Work, || drop(decode));
    }

    fn carry_out(&mut self, order: Order) -> Result<(), Failure> {
        let task = Task {
            number: order.number,
            epoch: order.epoch,
        };
        match order.command {
            Command::Find(selection) => {
                self.failed = None;
                self.find(&selection).map(|_| ())
            }
            Command::Configure(setup) => {
                self.failed = None;
                self.configure(&setup)
            }
            Command::Close => {
                self.failed = None;
                self.close();
                Ok(())
            }
            _ if self.failed.is_some() => self.failed.clone().map_or(Ok(()), Err),
            Command::Parameters(sets) => {
                if let Some(decode) = &mut self.decode {
                    decode.driver_mut().set_sets(sets);
                }
                Ok(())
            }
            Command::Feed(unit) => self.feed(task, unit),
            Command::Drain => self.drain(task),
            Command::Flush => self.flush(task),
        }
    }

    fn find(&self, selection: &Selection) -> Result<Found, Failure> {
        let name = "the search for runtimes";
        let found = self
            .link
            .call(name, CallKind::Work, || select::find(selection))?;
        if let Some(first) = found.candidates.first() {
            let api = first
                .api
                .map_or_else(String::new, |(a, b)| format!("{a}.{b}"));
            self.link.set_implementation(first.name.clone(), api);
        }
        Ok(found)
    }

    fn configure(&mut self, setup: &Setup) -> Result<(), Failure> {
        self.close();
        let found = self.find(&setup.selection)?;
        let mut runtime = Runtime::new(
            Arc::clone(&self.link),
            found,
            setup.format.codec,
            u16::try_from(setup.settings.async_depth).unwrap_or(u16::MAX),
            setup.surface_limit,
        );
        let opened = runtime.choose()?;
        self.link
            .set_implementation(opened.name.clone(), opened.api.clone());
        self.link.tell(Reply::Opened(opened));
        let driver = Driver::new(Arc::clone(&self.link), runtime, setup);
        self.decode = Some(FrameLoop::new(driver, setup.settings.clone()));
        Ok(())
    }

    fn feed(&mut self, task: Task, unit: Unit) -> Result<(), Failure> {
        let Some(decode) = &mut self.decode else {
            return Ok(());
        };
        // Of before a flush: the element has accounted for it.
        if self.link.epoch() != task.epoch {
            return Ok(());
        }
        decode.driver_mut().set_task(task);
        decode.driver_mut().hand_over(unit);
        loop {
            match decode.feed() {
                Ok(End::Damaged { damage, .. }) => {
                    if damage == Damage::UntilKeyframe {
                        decode.driver_mut().wait_for_key();
                    }
                }
                Ok(_) => return Ok(()),
                // The element accounts for what is inside.
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn drain(&mut self, task: Task) -> Result<(), Failure> {
        let Some(decode) = &mut self.decode else {
            return Ok(());
        };
        if self.link.epoch() != task.epoch {
            return Ok(());
        }
        decode.driver_mut().set_task(task);
        match decode.drain() {
            Ok(End::Cancelled) => Ok(()),
            Ok(_) => {
                let reason = "the stream was drained and it gave no frame".to_owned();
                decode.driver_mut().close_books(&Fate::Dropped(reason));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn flush(&mut self, task: Task) -> Result<(), Failure> {
        let Some(decode) = &mut self.decode else {
            return Ok(());
        };
        decode.driver_mut().set_task(task);
        match decode.flush() {
            Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
