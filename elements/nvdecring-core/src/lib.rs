// SPDX-License-Identifier: MPL-2.0

//! A ring of decoded pictures between NVDEC's parser and its user.
//!
//! The parser shows pictures in display order and then regards their surfaces as free; the ring keeps each
//! shown picture in a slot until its pixels are copied, so that parsing, decoding, copying and what comes
//! after overlap at display delay 0, and the right picture always reaches the right packet. Every wait ends
//! by a flush, a stop, an error or its deadline.
//!
//! | module | idea |
//! |---|---|
//! | [`api`] | what a decoder library is: [`GpuApi`], and on which thread each call comes |
//! | [`session`] | what a caller holds: [`Session`] |
//! | [`output`] | what comes out: pictures, dropped frames, events |
//! | [`config`] | settings with their ranges |
//! | [`clock`] | time, waiting and threads |
//! | [`gate`] | one opening or closing on a device at a time |
//! | [`ring`] | slots in the order of tickets |
//! | `pictures` | whose picture each surface holds, and who still needs it |
//! | `packets` | which packet a picture belongs to |
//! | `ledger` | each frame that goes in comes out once |
//! | `health` | damage and recovery |
//! | `calls` | which call each thread is in, and since when |
//! | `state` | all of these under one lock |
//! | `parser`, `driver`, `decoder` | the parser thread: jobs, callbacks, the decoder's life |
//! | `worker`, `verdict` | the worker thread: map, copy, hand out; what becomes of a picture |
//!
//! This crate knows nothing of GStreamer or CUDA. `docs/nvdecring-core.md` has the picture, the invariants and
//! the test that proves each.

#![forbid(unsafe_code)]

pub mod api;
mod calls;
pub mod clock;
pub mod config;
mod decoder;
mod driver;
pub mod error;
pub mod gate;
mod health;
mod ledger;
pub mod output;
mod packets;
mod parser;
mod pictures;
pub mod ring;
pub mod session;
mod state;
mod sync;
mod verdict;
mod worker;

pub use api::{
    DecodeStatus, DisplayInfo, ErrorClass, FrameToken, GpuApi, GpuError, MAX_DECODE_SURFACES,
    Packet, PacketData, ParserEvents, ParserInput, PictureInfo, SequenceReply, SurfacePlan,
};
pub use calls::{Call, Role};
pub use clock::{Clock, SystemClock};
pub use config::{Config, Identity, Overflow, PACKETS_AHEAD, RingDepth};
pub use error::Error;
pub use gate::DeviceGate;
pub use health::Recovery;
pub use ledger::Stats;
pub use output::{Damage, DropReason, Event, Observer, Picture, Sink, Times};
pub use ring::{SlotState, Ticket};
pub use session::{Session, Stopped};
