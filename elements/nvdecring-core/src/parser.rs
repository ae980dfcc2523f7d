// SPDX-License-Identifier: MPL-2.0

//! The parser thread: owns the parser and the decoder, takes one job at a time.

use std::sync::Arc;

use crate::api::{GpuApi, Packet, ParserInput};
use crate::calls::{Call, Role};
use crate::decoder::DecoderOwner;
use crate::driver::{Driver, Overtaken};
use crate::gate::DeviceGate;
use crate::output::DropReason;
use crate::state::{Job, Party, Shared, Step};

pub(crate) struct Parser<G: GpuApi> {
    shared: Arc<Shared<G>>,
    api: Arc<G>,
    parser: Option<G::Parser>,
    driver: Driver<G>,
    /// The parser needs the headers before the next packet.
    fresh: bool,
}

impl<G: GpuApi> Parser<G> {
    pub(crate) fn new(shared: Arc<Shared<G>>, api: Arc<G>, gate: Arc<DeviceGate>) -> Self {
        let decoder = DecoderOwner::new(shared.clone(), api.clone(), gate);
        Self {
            driver: Driver::new(shared.clone(), api.clone(), decoder),
            shared,
            api,
            parser: None,
            fresh: true,
        }
    }

    pub(crate) fn run(mut self) {
        let opened = self.driver.decoder.open_context().and_then(|()| {
            self.parser = Some(self.driver.decoder.create_parser()?);
            Ok(())
        });
        self.shared.with(|state| match opened {
            Ok(()) => state.opened = true,
            Err(error) => state.fail(error),
        });
        while let Some((job, epoch)) = self.next_job() {
            self.driver.epoch = epoch;
            // A job that is overtaken has no more to say: who overtook it knows.
            let _: Result<(), Overtaken> = match job {
                Job::Packet(packet) => self.packet(packet),
                Job::Drain => self.drain(),
                Job::Flush => self.flush(),
            };
            let left = self.shared.quietly(|state| {
                state.end_job();
                state.unfinished()
            });
            // Who waits for room is woken for several packets, not for each.
            if 2 * left <= self.shared.config.ahead() {
                self.shared.wake(Party::Caller);
            }
        }
        self.close();
    }

    fn next_job(&self) -> Option<(Job, u64)> {
        self.shared.wait(Party::Parser, |state, _| {
            if state.stopping {
                return Step::Done(None);
            }
            match state.jobs.pop_front() {
                Some(job) => Step::Done(Some((job, state.epoch))),
                None => Step::Wait(None),
            }
        })
    }

    /// Whether the library says that it went well. That says little: a parser may drop a broken packet and
    /// return success, and one whose callback failed returns that. What came of a packet is in the ledger.
    fn parse(&mut self, input: ParserInput<'_>) -> bool {
        let (api, driver) = (&self.api, &mut self.driver);
        let Some(parser) = &mut self.parser else {
            return false;
        };
        self.shared
            .call(Role::Parser, Call::Parse, || {
                api.parse(parser, input, driver)
            })
            .is_ok()
    }

    fn packet(&mut self, packet: Packet) -> Result<(), Overtaken> {
        if self.fresh {
            // Headers that could not be parsed are sent again with the next packet.
            self.fresh = packet.headers.as_ref().is_some_and(|headers| {
                !self.parse(ParserInput {
                    data: headers,
                    ..ParserInput::default()
                })
            });
        }
        let left = self
            .driver
            .packets
            .start(packet.token, packet.end_of_picture);
        if let Some(token) = left {
            self.shared
                .with(|state| state.drop_frame(token, DropReason::NoPicture));
        }
        self.parse(ParserInput {
            data: (*packet.data).as_ref(),
            timestamp: i64::try_from(packet.token.0).ok(),
            end_of_picture: packet.end_of_picture,
            end_of_stream: false,
            discontinuity: packet.discontinuity,
        });
        self.driver.end_packet(packet.end_of_picture)
    }

    fn drain(&mut self) -> Result<(), Overtaken> {
        self.parse(ParserInput {
            end_of_stream: true,
            ..ParserInput::default()
        });
        self.fresh = true;
        self.driver.end_stream()?;
        let epoch = self.driver.epoch;
        self.shared.wait(Party::Parser, |state, _| {
            if state.overtaken(epoch) {
                Step::Done(Err(Overtaken))
            } else if state.is_drained() {
                Step::Done(Ok(()))
            } else {
                Step::Wait(None)
            }
        })
    }

    fn flush(&mut self) -> Result<(), Overtaken> {
        self.driver.flush();
        self.drop_parser();
        match self.driver.decoder.create_parser() {
            Ok(parser) => self.parser = Some(parser),
            Err(error) => self.shared.with(|state| state.fail(error)),
        }
        self.fresh = true;
        Ok(())
    }

    fn drop_parser(&mut self) {
        if let Some(parser) = self.parser.take() {
            self.shared
                .call(Role::Parser, Call::Destroy, || drop(parser));
        }
    }

    /// The session is stopped: the worker lets go first, unless it is stuck. Then what it needs lives on
    /// with it.
    fn close(mut self) {
        let deadline = self.shared.clock.now() + self.shared.config.stop_timeout;
        self.shared.wait(Party::Parser, |state, now| {
            if state.exited[Role::Worker as usize] || now >= deadline {
                Step::Done(())
            } else {
                Step::Wait(Some(deadline))
            }
        });
        self.drop_parser();
        let _ = self.driver.decoder.close();
    }
}
