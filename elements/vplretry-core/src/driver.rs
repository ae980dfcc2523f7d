// SPDX-License-Identifier: MPL-2.0

//! The trait through which the loop reaches a runtime, a clock and an output.

use std::fmt;
use std::time::Duration;

use crate::classify::Outcome;
use crate::event::{Event, Reason};
use crate::stats::Stats;
use crate::status::Status;

/// What a `DecodeFrameAsync` call is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The driver's bitstream.
    Bitstream,
    /// NULL: the runtime is to give what it still holds.
    Drain,
}

/// What a `DecodeFrameAsync` call gave.
#[derive(Debug)]
pub struct Decoded<S, Y> {
    /// The returned status.
    pub status: Status,
    /// `surface_out`, owned: dropping it releases it.
    pub surface: Option<S>,
    /// `syncp`.
    pub sync: Option<Y>,
}

impl<S, Y> Decoded<S, Y> {
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            status: self.status,
            has_surface: self.surface.is_some(),
            has_sync: self.sync.is_some(),
        }
    }
}

/// Why a pause ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The time is over.
    Elapsed,
    /// The loop was cancelled.
    Cancelled,
}

/// Why the runtime is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// A drain is over; the runtime refuses new input until it is reset.
    Drained,
    /// The runtime answered `MFX_ERR_ABORTED`. The driver puts the access unit at hand back to its
    /// beginning.
    Aborted,
    /// A flush: what was fed is not wanted any more.
    Flushed,
}

/// What `mfxFrameData::Corrupted` says of a frame, plus partial output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Corruption {
    /// The `MFX_CORRUPTION_*` bits; 0 is a clean frame.
    pub flags: u16,
    /// The wait ended with `MFX_ERR_NONE_PARTIAL_OUTPUT`.
    pub partial_output: bool,
}

impl Corruption {
    /// The names of the bits, in the order of their values (`mfxstructures.h`).
    const NAMES: [&str; 6] = [
        "minor",
        "major",
        "top field absent",
        "bottom field absent",
        "corrupted reference frame",
        "wrong reference list",
    ];

    /// Nothing is wrong with the frame.
    pub fn is_clean(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = (0..16)
            .filter(|bit| self.flags & (1 << bit) != 0)
            .map(|bit| match Self::NAMES.get(bit) {
                Some(name) => (*name).to_owned(),
                None => format!("bit {bit}"),
            });
        let words: Vec<String> = named
            .chain(self.partial_output.then(|| "partial output".to_owned()))
            .collect();
        if words.is_empty() {
            f.write_str("none")
        } else {
            f.write_str(&words.join(", "))
        }
    }
}

/// A runtime, a clock and an output, as the loop needs them.
///
/// The loop owns its driver and calls it from one thread. Surfaces are RAII: dropping one releases
/// it, so no branch of the loop can leak one, release it twice or publish what was never there.
/// A surface keeps what it depends on alive (session, loader).
///
/// Methods that return `Result<Status, Self::Error>` return the runtime's status in `Ok`, also a
/// negative one: the loop decides what follows. `Err` is for what the runtime has no part in
/// (caps refused downstream, an input that cannot be read) and ends the call as
/// [`crate::Error::Driver`].
pub trait VplDecodeDriver {
    /// A decoded surface (`mfxFrameSurface1`).
    type Surface;
    /// A sync point (`mfxSyncPoint`).
    type Sync;
    /// What the output side must know of a surface: size, crop, FourCC, bit depth, field order,
    /// aspect ratio. Two surfaces with equal formats need no negotiation in between.
    type Format: PartialEq;
    /// The driver's own errors.
    type Error: std::error::Error + 'static;

    // The bitstream.

    /// Bytes that the runtime has not consumed yet (`mfxBitstream::DataLength`).
    fn bitstream_len(&self) -> usize;

    /// Bytes that the bitstream buffer can hold, grown as far as it can grow.
    fn buffer_size(&self) -> usize;

    /// No further input will come.
    fn is_eof(&self) -> bool;

    /// Appends the next access unit (or, for a plain file, the next piece) to the bitstream and
    /// returns the number of bytes; 0 where there is none now. Unconsumed bytes stay in front.
    ///
    /// # Errors
    /// The input cannot be read.
    fn refill(&mut self) -> Result<usize, Self::Error>;

    /// Enlarges the bitstream buffer after `MFX_ERR_NOT_ENOUGH_BUFFER`; `false` where it cannot.
    fn grow(&mut self) -> bool {
        false
    }

    /// The access unit at hand is given up: what is left of it in the bitstream is dropped, and the
    /// driver accounts for it unless its frame came out already. With [`Reason::Flushed`] this goes
    /// for everything that was handed to the driver, appended or not.
    fn drop_unit(&mut self, reason: Reason);

    // The runtime.

    /// `MFXVideoDECODE_DecodeFrameAsync`. A session that is not initialised (the first call, after
    /// [`recover`](Self::recover), after a failed [`reinit`](Self::reinit)) is initialised here
    /// from the bitstream's header: `MFX_ERR_MORE_DATA` while that is incomplete, or while
    /// draining; otherwise the status of the step that failed.
    fn decode_async(&mut self, input: Input) -> Decoded<Self::Surface, Self::Sync>;

    /// Waits for a decoded surface, at most `wait` (zero: only asks): `MFXVideoCORE_SyncOperation`
    /// with its sync point or, where the runtime gave none, the surface's own `Synchronize`.
    fn wait_frame(
        &mut self,
        surface: &Self::Surface,
        sync: Option<&Self::Sync>,
        wait: Duration,
    ) -> Status;

    /// Waits, at most `wait`, for a sync point that came without a surface.
    fn wait_token(&mut self, token: &Self::Sync, wait: Duration) -> Status;

    /// `MFXVideoDECODE_GetVideoParam`. Frames of the old parameters may still be pending, so
    /// nothing is negotiated here: [`format_changed`](Self::format_changed) says when.
    ///
    /// # Errors
    /// The driver's own.
    fn read_parameters(&mut self) -> Result<Status, Self::Error>;

    /// `MFXVideoDECODE_Reset`, or Close and Init with the same parameters where that answers
    /// `MFX_ERR_INCOMPATIBLE_VIDEO_PARAM`. Reset forgets parameter sets: the next bytes that are
    /// fed are preceded by the cached ones. Frames that the runtime had not given out are gone;
    /// the driver accounts for them. A session that is not initialised has nothing to reset:
    /// `MFX_ERR_NONE`.
    ///
    /// # Errors
    /// The driver's own.
    fn reset(&mut self, why: Reset) -> Result<Status, Self::Error>;

    /// Initialises the runtime anew from the header in the unconsumed bytes: Close (or Reset with
    /// the new parameters), DecodeHeader, Init. The loop has drained it and published everything;
    /// frames that the runtime still did not give out are gone and the driver accounts for them.
    ///
    /// # Errors
    /// The driver's own.
    fn reinit(&mut self) -> Result<Status, Self::Error>;

    /// Makes a new session on a newly opened device. All surfaces of the lost one that the loop
    /// held are discarded; frames inside it are gone and the driver accounts for them. In the
    /// bitstream it leaves what the new session is to be fed first: the access unit at hand from
    /// its beginning if that is a key frame and none of its frames was published, otherwise
    /// nothing (dropped, and a key frame waited for).
    ///
    /// # Errors
    /// The driver's own.
    fn recover(&mut self, cause: Status) -> Result<Status, Self::Error>;

    /// The implementation's name, for messages.
    fn implementation(&self) -> &str;

    // The output.

    /// The `MFX_CORRUPTION_*` bits of a surface; asked after the wait, when they are valid.
    fn corruption(&self, surface: &Self::Surface) -> u16;

    /// The format of a surface; asked after the wait.
    fn format(&self, surface: &Self::Surface) -> Self::Format;

    /// The next frame that is published has this format, unlike the one before it.
    ///
    /// # Errors
    /// The format cannot be negotiated.
    fn format_changed(&mut self, format: &Self::Format) -> Result<(), Self::Error>;

    /// Hands out a complete frame. Frames come in the runtime's order.
    ///
    /// # Errors
    /// The output refuses it.
    fn publish(
        &mut self,
        surface: Self::Surface,
        corruption: Corruption,
    ) -> Result<(), Self::Error>;

    /// A surface that will not be published; dropping it releases it.
    fn discard(&mut self, surface: Self::Surface, reason: Reason);

    // Time and reports.

    /// Monotonic time since any fixed moment.
    fn now(&self) -> Duration;

    /// Pauses for `pause`, or until the loop is cancelled, whichever comes first. Returns at once
    /// where it is cancelled already.
    fn backoff(&mut self, pause: Duration) -> Wake;

    /// The loop is to return as soon as it can. Asked before every call that can take time.
    fn cancelled(&self) -> bool;

    /// Something worth a message happened; `stats` is the state at that moment.
    fn on_event(&mut self, event: &Event, stats: &Stats);
}
