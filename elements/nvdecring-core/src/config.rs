// SPDX-License-Identifier: MPL-2.0

//! What a user can set, with its range.

use std::time::Duration;

use crate::api::{MAX_DECODE_SURFACES, SurfacePlan};
use crate::error::Error;

/// Pictures that may wait between the parser and the output: 1 to 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingDepth(u8);

impl RingDepth {
    /// The greatest depth.
    pub const MAX: u8 = 16;

    /// The number of slots.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for RingDepth {
    fn default() -> Self {
        Self(8)
    }
}

impl TryFrom<u8> for RingDepth {
    type Error = Error;

    fn try_from(depth: u8) -> Result<Self, Error> {
        if (1..=Self::MAX).contains(&depth) {
            Ok(Self(depth))
        } else {
            Err(Error::Config(format!(
                "ring depth {depth}: must be 1 to {}",
                Self::MAX
            )))
        }
    }
}

/// Packets ahead of the parser for a stream that is decoded as fast as it comes: caller and parser thread wake
/// each other once for several packets.
pub const PACKETS_AHEAD: u8 = 4;

/// What happens to a packet while the ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// It waits until a slot is free.
    #[default]
    Block,
    /// It is refused, and nothing of it is consumed.
    Fail,
}

/// Which packet a picture belongs to. A rule of the codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The one that was decoded: pictures are reordered, and each packet is one picture or one field
    /// (H.264, H.265, MPEG-2).
    Decoded,
    /// The one that is being parsed when the picture is shown: nothing is reordered, and a packet may
    /// show a picture decoded earlier, or none (VP8, VP9, AV1).
    Shown,
}

/// The settings of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Slots of the ring. Default 8.
    pub ring_depth: RingDepth,
    /// What happens while they are all taken. Default: wait.
    pub overflow: Overflow,
    /// Packets that may wait for the parser when `submit` returns. Default 0: it returns when the packet is
    /// parsed. Of no effect with [`Overflow::Fail`], which has to know how many pictures a packet shows before it
    /// takes the next.
    pub packets_ahead: u8,
    /// How long the oldest picture may take to be decoded, counted from when nothing is ahead of it.
    /// After this a call that has not returned is reported as stalled. Default 500 ms.
    pub decode_timeout: Duration,
    /// How long a call may take before the device is given up. Default 2 s, not below `decode_timeout`.
    pub wedge_timeout: Duration,
    /// The same for opening a context, creating, reconfiguring and destroying. Default 10 s.
    pub open_timeout: Duration,
    /// How long stopping waits for the threads before it abandons them. Default 100 ms.
    pub stop_timeout: Duration,
    /// `ulMaxDisplayDelay`: pictures the parser may hold back before it shows them. Default 0.
    pub display_delay: u8,
    /// Pictures mapped at a time: 1, or 2 to copy one while the next is mapped. Default 2.
    pub output_surfaces: u8,
    /// Pictures that may fail in a row before the decoder is replaced. Default 8.
    pub max_errors: u32,
    /// Which packet a picture belongs to.
    pub identity: Identity,
}

impl Config {
    /// The defaults, for a codec.
    pub fn new(identity: Identity) -> Self {
        Self {
            ring_depth: RingDepth::default(),
            overflow: Overflow::default(),
            packets_ahead: 0,
            decode_timeout: Duration::from_millis(500),
            wedge_timeout: Duration::from_secs(2),
            open_timeout: Duration::from_secs(10),
            stop_timeout: Duration::from_millis(100),
            display_delay: 0,
            output_surfaces: 2,
            max_errors: 8,
            identity,
        }
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`Error::Config`] with the setting, its value and its range.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Config(text));
        if self.decode_timeout.is_zero() {
            return wrong("decode timeout 0: must be greater".into());
        }
        if self.wedge_timeout < self.decode_timeout {
            return wrong(format!(
                "wedge timeout {:?}: must not be below the decode timeout, {:?}",
                self.wedge_timeout, self.decode_timeout
            ));
        }
        if !(1..=2).contains(&self.output_surfaces) {
            return wrong(format!(
                "{} output surfaces: must be 1 or 2",
                self.output_surfaces
            ));
        }
        if self.display_delay > 4 {
            return wrong(format!(
                "display delay {}: must be 0 to 4",
                self.display_delay
            ));
        }
        if self.identity == Identity::Shown && self.display_delay != 0 {
            return wrong(format!(
                "display delay {}: must be 0 for codecs that do not reorder, because their pictures \
                 belong to the packet that shows them",
                self.display_delay
            ));
        }
        if self.max_errors == 0 {
            return wrong("0 errors in a row: must be 1 or more".into());
        }
        Ok(())
    }

    /// [`packets_ahead`](Self::packets_ahead), where it has an effect.
    pub(crate) fn ahead(&self) -> u64 {
        match self.overflow {
            Overflow::Block => self.packets_ahead.into(),
            Overflow::Fail => 0,
        }
    }

    /// The surfaces for a stream that needs `minimum`. Where 32 do not suffice the ring shrinks, never the
    /// decoded picture buffer.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the stream alone needs more than 32.
    pub fn plan(&self, minimum: u8) -> Result<SurfacePlan, Error> {
        let needed = minimum.max(1);
        if needed > MAX_DECODE_SURFACES {
            return Err(Error::Unsupported(format!(
                "the stream needs {needed} decode surfaces, NVDEC has {MAX_DECODE_SURFACES}"
            )));
        }
        let spare = MAX_DECODE_SURFACES - needed;
        let ring_depth = self
            .ring_depth
            .get()
            .min(spare.saturating_sub(self.display_delay))
            .max(1);
        Ok(SurfacePlan {
            decode_surfaces: (needed + ring_depth + self.display_delay).min(MAX_DECODE_SURFACES),
            output_surfaces: self.output_surfaces,
            ring_depth,
        })
    }
}
