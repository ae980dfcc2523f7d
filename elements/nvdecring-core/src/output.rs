// SPDX-License-Identifier: MPL-2.0

//! What comes out: pictures, dropped frames with their reason, and events.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{DisplayInfo, FrameToken, GpuApi, GpuError};
use crate::calls::Call;
use crate::health::Recovery;
use crate::ring::Ticket;

/// Whether a picture's pixels are what the stream says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// As far as the device tells.
    None,
    /// The device found errors and concealed them.
    Concealed,
    /// The device found errors.
    Errors,
    /// It may refer to a picture that is damaged or was not decoded.
    References,
}

/// When a picture passed the stations of its way, on the session's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Its packet was taken.
    pub submitted: Duration,
    /// It was given to the decoder.
    pub decoded: Duration,
    /// The parser showed it.
    pub shown: Duration,
    /// It was mapped.
    pub mapped: Duration,
    /// Its pixels were copied.
    pub copied: Duration,
    /// It was handed to the output.
    pub out: Duration,
    /// How long the parser waited for its surface, because the ring still needed it.
    pub surface_wait: Duration,
    /// How long the parser waited for a slot.
    pub slot_wait: Duration,
    /// Slots occupied before it took its own.
    pub queued: u8,
}

/// A decoded picture.
pub struct Picture<G: GpuApi> {
    /// The packet it belongs to.
    pub token: FrameToken,
    /// Its place in display order; flushed and failed pictures count too.
    pub ticket: Ticket,
    /// The pixels.
    pub frame: G::Frame,
    /// Their format: the same `Arc` as long as it does not change.
    pub format: Arc<G::Format>,
    /// Fields and their order.
    pub shown: DisplayInfo,
    /// Whether the pixels can be trusted.
    pub damage: Damage,
    /// Where the time went.
    pub times: Times,
}

/// Why a frame has no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DropReason {
    /// The parser found no picture in the packet.
    #[error("no picture in the packet")]
    NoPicture,
    /// The packet holds only pictures that are not shown (VP8, VP9, AV1).
    #[error("the packet shows no picture")]
    Hidden,
    /// The packet holds the second field of the picture before.
    #[error("second field of the picture before")]
    SecondField,
    /// The picture was decoded, and the parser did not show it.
    #[error("decoded and never shown")]
    NeverShown,
    /// The decoder did not take the picture.
    #[error(transparent)]
    Decode(GpuError),
    /// The picture was not decoded in time. Its surface is not used until it is.
    #[error("not decoded within {0:?}")]
    TimedOut(Duration),
    /// The picture could not be mapped.
    #[error(transparent)]
    Map(GpuError),
    /// The pixels could not be copied.
    #[error(transparent)]
    Copy(GpuError),
    /// The decoder broke before the picture could be mapped.
    #[error("lost with the decoder: {0}")]
    DecoderLost(GpuError),
}

impl DropReason {
    /// Whether something went wrong; otherwise the stream has no picture for this packet.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::NoPicture | Self::Hidden | Self::SecondField | Self::NeverShown => false,
            Self::Decode(_)
            | Self::TimedOut(_)
            | Self::Map(_)
            | Self::Copy(_)
            | Self::DecoderLost(_) => true,
        }
    }
}

/// Where pictures go. Called on the worker thread, one call at a time, with no lock held. May block: the
/// ring then fills, and the packets wait. Each token that was submitted comes exactly once, in one of the
/// two calls, unless a flush or stop overtakes it.
pub trait Sink<G: GpuApi>: Send {
    /// A picture, in display order.
    fn picture(&mut self, picture: Picture<G>);

    /// A frame without a picture. Failed pictures come in their place in display order, the others
    /// as soon as they are known.
    fn dropped(&mut self, token: FrameToken, reason: DropReason);
}

/// Something worth telling. Comes on whichever thread notices, with no lock held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A call takes longer than the decode timeout. Told once a call.
    Stalled {
        /// The call.
        call: Call,
        /// For how long so far.
        elapsed: Duration,
    },
    /// The decoder failed and works again. Pictures up to the next intra picture are marked
    /// [`Damage::References`]: ask the source for one.
    Recovered {
        /// What was replaced.
        by: Recovery,
        /// Why.
        after: GpuError,
    },
}

/// Takes the [`Event`]s.
pub type Observer = Box<dyn Fn(Event) + Send + Sync>;
