// SPDX-License-Identifier: MPL-2.0

//! The parser's callbacks: surfaces, identities and slots. All of it runs on the parser thread.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{
    DisplayInfo, FrameToken, GpuApi, GpuError, ParserEvents, PictureInfo, SequenceReply,
};
use crate::calls::{Call, Role};
use crate::config::Identity;
use crate::decoder::DecoderOwner;
use crate::output::{DropReason, Times};
use crate::packets::Packets;
use crate::pictures::{Decoded, Hold, PictureTable};
use crate::state::{Party, Shared, State, Step, Waiting};
use crate::verdict::timed_out;

/// The job ends here: a flush, a stop or a fatal error has overtaken it.
#[derive(Debug)]
pub(crate) struct Overtaken;

/// What the parser thread waited for.
enum Surface {
    Writable,
    /// The decoder has to be replaced first.
    Lost,
}

pub(crate) struct Driver<G: GpuApi> {
    shared: Arc<Shared<G>>,
    api: Arc<G>,
    pub(crate) decoder: DecoderOwner<G>,
    pub(crate) packets: Packets,
    /// A picture shown by the packet being parsed, where the last one shown counts.
    pending: Option<(DisplayInfo, Decoded, Hold)>,
    /// The flush epoch of the job.
    pub(crate) epoch: u64,
}

impl<G: GpuApi> Driver<G> {
    pub(crate) fn new(shared: Arc<Shared<G>>, api: Arc<G>, decoder: DecoderOwner<G>) -> Self {
        Self {
            packets: Packets::new(shared.config.identity),
            shared,
            api,
            decoder,
            pending: None,
            epoch: 0,
        }
    }

    /// A callback: the thread is not in the parser meanwhile, whatever it waits for.
    fn outside_parser<T>(&mut self, callback: impl FnOnce(&mut Self) -> T) -> T {
        self.shared.leave(Role::Parser);
        let result = callback(self);
        self.shared.enter(Role::Parser, Call::Parse);
        result
    }

    fn new_format(&mut self, format: &G::Format) -> Result<u8, Overtaken> {
        self.commit()?;
        let minimum = self.api.min_decode_surfaces(format);
        let plan = self.shared.config.plan(minimum).map_err(|error| {
            self.shared.with(|state| state.fail(error));
            Overtaken
        })?;
        if let Some(open) = self.decoder.open()
            && *open.format == *format
            && plan.decode_surfaces <= open.plan.decode_surfaces
        {
            return Ok(open.plan.decode_surfaces);
        }
        self.decoder.change(format, plan, self.epoch)?;
        Ok(plan.decode_surfaces)
    }

    fn decode_picture(&mut self, info: PictureInfo, params: &G::Params) -> Result<(), Overtaken> {
        let second = info.second_field
            && self
                .shared
                .read(|state| state.pictures.decoded(info.index).is_some());
        if self.decoder.open().is_none() || !PictureTable::knows(&info) {
            self.shared.with(|state| state.ledger.stats.unclaimed += 1);
            return Ok(());
        }
        if second {
            return self.decode_second_field(info, params);
        }
        let mut token = self.packets.claim();
        loop {
            let waited = match self.surface(&info)? {
                (Surface::Writable, waited) => waited,
                (Surface::Lost, _) => {
                    self.decoder.recover(self.epoch)?;
                    continue;
                }
            };
            let Some(open) = self.decoder.open().cloned() else {
                return Ok(());
            };
            self.begin(&info, token, waited)?;
            let result = self.shared.call(Role::Parser, Call::Decode, || {
                self.api.decode(&open.decoder, params)
            });
            drop(open);
            let Err(error) = result else {
                self.shared.quietly(|state| state.health.taken());
                return Ok(());
            };
            let max_errors = self.shared.config.max_errors;
            let lost = self.shared.with(|state| {
                state.health.error(Role::Parser, &error, max_errors);
                state.health.lost().is_some()
            });
            if lost {
                // The same picture once more, in a new decoder.
                token = self
                    .shared
                    .with(|state| state.pictures.take_token(info.index));
                self.decoder.recover(self.epoch)?;
                continue;
            }
            self.shared.with(|state| state.refused(&info, &error));
            return Ok(());
        }
    }

    fn decode_second_field(
        &mut self,
        info: PictureInfo,
        params: &G::Params,
    ) -> Result<(), Overtaken> {
        let token = self.packets.claim_second_field();
        let epoch = self.epoch;
        self.shared.with(|state| {
            if let Some(token) = token {
                state.drop_frame(token, DropReason::SecondField);
            }
            if state.overtaken(epoch) {
                Err(Overtaken)
            } else {
                Ok(())
            }
        })?;
        let Some(open) = self.decoder.open().cloned() else {
            return Ok(());
        };
        let result = self.shared.call(Role::Parser, Call::Decode, || {
            self.api.decode(&open.decoder, params)
        });
        if let Err(error) = result {
            let max_errors = self.shared.config.max_errors;
            self.shared.with(|state| {
                state.health.error(Role::Parser, &error, max_errors);
                state.pictures.second_field(info.index, Some(error.clone()));
                state.refused(&info, &error);
            });
        }
        Ok(())
    }

    /// Waits until nobody needs what the picture overwrites.
    fn surface(&mut self, info: &PictureInfo) -> Result<(Surface, Duration), Overtaken> {
        let kept = self.pending.as_ref().map(|(shown, ..)| shown.index);
        if kept == Some(info.index) || (kept.is_some() && kept == info.film_grain_reference) {
            // The hold is this thread's own: it would wait for itself.
            self.commit()?;
        }
        let started = self.shared.clock.now();
        let limit = self.shared.config.decode_timeout;
        let epoch = self.epoch;
        let found = self.shared.wait(Party::Parser, |state, now| {
            if state.overtaken(epoch) {
                return Step::Done(Err(Overtaken));
            }
            if state.health.lost().is_some() {
                return Step::Done(Ok(Surface::Lost));
            }
            if state.pictures.writable(info) {
                return Step::Done(Ok(Surface::Writable));
            }
            let Some(since) = state.pictures.waits_for_quarantine(info) else {
                return Step::Wait(None);
            };
            if now < since + limit {
                return Step::Wait(Some(since + limit));
            }
            // The surface never settles.
            state.health.lose(&timed_out(limit));
            Step::Done(Ok(Surface::Lost))
        })?;
        if matches!(found, Surface::Lost) {
            // The worker has to let its pictures go.
            self.shared.with(|_| ());
        }
        Ok((found, self.shared.clock.now().saturating_sub(started)))
    }

    fn begin(
        &mut self,
        info: &PictureInfo,
        token: Option<FrameToken>,
        waited: Duration,
    ) -> Result<(), Overtaken> {
        let now = self.shared.clock.now();
        let epoch = self.epoch;
        let lost = self.shared.quietly(|state| {
            if state.overtaken(epoch) {
                return Err(Overtaken);
            }
            let decoded = Decoded {
                order: state.health.decode(info),
                reference: info.reference,
                at: now,
                waited,
                error: None,
            };
            state.ledger.stats.surface_wait += waited;
            Ok(state.pictures.begin(info, token, decoded))
        })?;
        if let Some(lost) = lost {
            self.shared
                .with(|state| state.drop_frame(lost, DropReason::NeverShown));
        }
        Ok(())
    }

    fn show(&mut self, shown: DisplayInfo) -> Result<(), Overtaken> {
        let epoch = self.epoch;
        let identity = self.shared.config.identity;
        let found = self.shared.quietly(|state| {
            if state.overtaken(epoch) {
                return Err(Overtaken);
            }
            let token = match identity {
                Identity::Decoded => state.pictures.take_token(shown.index).map(Some),
                Identity::Shown => Some(None),
            };
            let decoded = state.pictures.decoded(shown.index).cloned();
            Ok(match (token, decoded) {
                (Some(token), Some(decoded)) => state
                    .pictures
                    .hold(shown.index)
                    .map(|hold| (token, decoded, hold)),
                _ => {
                    state.ledger.stats.unclaimed += 1;
                    None
                }
            })
        })?;
        match found {
            None => Ok(()),
            Some((Some(token), decoded, hold)) => self.enqueue(token, shown, decoded, hold),
            Some((None, decoded, hold)) => {
                let before = self.pending.replace((shown, decoded, hold));
                if let Some((_, _, hold)) = before {
                    self.shared.with(|state| {
                        state.pictures.release(hold);
                        state.ledger.stats.unclaimed += 1;
                    });
                }
                Ok(())
            }
        }
    }

    /// The last picture a packet showed belongs to it.
    fn commit(&mut self) -> Result<(), Overtaken> {
        let Some((shown, decoded, hold)) = self.pending.take() else {
            return Ok(());
        };
        match self.packets.claim_shown() {
            Some(token) => self.enqueue(token, shown, decoded, hold),
            None => {
                self.shared.with(|state| {
                    state.pictures.release(hold);
                    state.ledger.stats.unclaimed += 1;
                });
                Ok(())
            }
        }
    }

    /// Waits for a slot and takes it.
    fn enqueue(
        &mut self,
        token: FrameToken,
        shown: DisplayInfo,
        decoded: Decoded,
        hold: Hold,
    ) -> Result<(), Overtaken> {
        let started = self.shared.clock.now();
        let epoch = self.epoch;
        let open = self.decoder.open().cloned();
        let mut picture = Some(Waiting {
            token,
            shown,
            open,
            hold: Some(hold),
            times: Times {
                decoded: decoded.at,
                surface_wait: decoded.waited,
                ..Times::default()
            },
            decoded,
        });
        let entered = self.shared.wait(Party::Parser, |state, now| {
            if state.overtaken(epoch) {
                state.pictures.release(hold);
                return Step::Done(Err(Overtaken));
            }
            if state.ring.is_full() {
                return Step::Wait(None);
            }
            if let Some(mut picture) = picture.take() {
                let waited = now.saturating_sub(started);
                picture.times = Times {
                    submitted: state.ledger.submitted(token).unwrap_or_default(),
                    shown: now,
                    slot_wait: waited,
                    queued: state.ring.occupied(),
                    ..picture.times
                };
                // There is room: looked at just now, under the same lock.
                let _ = state.ring.push(picture);
                let stats = &mut state.ledger.stats;
                stats.slot_wait += waited;
                stats.most_queued = stats.most_queued.max(state.ring.occupied());
            }
            Step::Done(Ok(()))
        });
        self.shared.wake(Party::Worker);
        entered
    }

    /// The packet has been parsed.
    pub(crate) fn end_packet(&mut self, end_of_picture: bool) -> Result<(), Overtaken> {
        self.commit()?;
        if let Some((token, reason)) = self.packets.end(end_of_picture) {
            self.shared.with(|state| state.drop_frame(token, reason));
        }
        Ok(())
    }

    /// The parser has shown all it will: what is left has no picture.
    pub(crate) fn end_stream(&mut self) -> Result<(), Overtaken> {
        self.commit()?;
        let left = self.packets.take();
        self.shared.with(|state| {
            for token in left {
                state.drop_frame(token, DropReason::NoPicture);
            }
            for token in state.pictures.forget_tokens() {
                state.drop_frame(token, DropReason::NeverShown);
            }
        });
        Ok(())
    }

    /// Forgets what the parser was at.
    pub(crate) fn flush(&mut self) {
        self.packets.clear();
        if let Some((_, _, hold)) = self.pending.take() {
            self.shared.with(|state| state.pictures.release(hold));
        }
    }
}

impl<G: GpuApi> State<G> {
    /// Whether a job of this epoch has no effect any more.
    pub(crate) fn overtaken(&self, epoch: u64) -> bool {
        self.epoch != epoch || self.stopping || self.fatal.is_some()
    }

    /// The decoder did not take a picture.
    fn refused(&mut self, info: &PictureInfo, error: &GpuError) {
        self.pictures.failed(info, error);
        if info.reference
            && let Some(decoded) = self.pictures.decoded(info.index)
        {
            let order = decoded.order;
            self.health.damage(order);
        }
    }
}

impl<G: GpuApi> ParserEvents<G> for Driver<G> {
    fn sequence(&mut self, format: &G::Format) -> SequenceReply {
        match self.outside_parser(|driver| driver.new_format(format)) {
            Ok(surfaces) => SequenceReply::Surfaces(surfaces),
            Err(Overtaken) => SequenceReply::Fail,
        }
    }

    fn decode(&mut self, info: PictureInfo, params: &G::Params) -> bool {
        self.outside_parser(|driver| driver.decode_picture(info, params))
            .is_ok()
    }

    fn display(&mut self, shown: Option<DisplayInfo>) -> bool {
        match shown {
            Some(shown) => self.outside_parser(|driver| driver.show(shown)).is_ok(),
            None => true,
        }
    }
}
