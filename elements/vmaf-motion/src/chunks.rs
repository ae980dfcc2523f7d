// SPDX-License-Identifier: MPL-2.0

//! A film scored in chunks, on many machines, with the bits of the film scored whole.
//!
//! A chunk's stream is its frames with some before (preroll) and after (postroll) that feed their
//! neighbours and are not reported. How many are needed follows from what a frame's scores read:
//!
//! | window | moving average | earliest frame read for frame `i` | preroll |
//! |---|---|---|---|
//! | three frames | no | `i - 1`: own score | 1 |
//! | three frames | yes | `i - 2`: score of `i - 1`, for its processed value | 2 |
//! | five frames | no | `i - 3`: score of `i - 1` | 3 |
//! | five frames | yes | `i - 4`: score of `i - 2`, for the processed value of `i - 1` | 4 |
//!
//! At the start of the film all the frames there are suffice. One frame of postroll is needed, two
//! for a chunk of frame 0 alone under the five-frame window (frame 0 takes frame 2's score), none at
//! the end of the film. `tests/chunks.rs` tries every chunk of every short film.

mod join;
mod reporter;

pub use join::{JoinError, Joined, PartSpan, join};
pub use reporter::{Reported, Reporter};

use thiserror::Error;

use crate::sad::Distance;

/// Largest postroll: so many final scores may have to be held back.
pub const MAX_POSTROLL: u64 = 1024;

/// Largest index of a chunk's first frame: leaves room to count.
pub const MAX_FIRST_FRAME: u64 = i64::MAX as u64;

/// Frames before a chunk that its exact scores need, unless the film starts later.
pub const fn needed_preroll(distance: Distance, moving_average: bool) -> u64 {
    match (distance, moving_average) {
        (Distance::One, false) => 1,
        (Distance::One, true) => 2,
        (Distance::Two, false) => 3,
        (Distance::Two, true) => 4,
    }
}

/// Frames after a chunk that its exact scores need, unless the film ends earlier; `last_frame` is
/// the film's index of the chunk's last frame.
pub const fn needed_postroll(distance: Distance, last_frame: u64) -> u64 {
    match (distance, last_frame) {
        (Distance::Two, 0) => 2,
        _ => 1,
    }
}

/// Where a chunk lies in its film. The frames before are enough by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    first_frame: u64,
    preroll: u64,
    postroll: u64,
}

/// A chunk that cannot be scored exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PartError {
    /// Too few frames before the first one.
    #[error(
        "{preroll} frames before frame {first_frame} are too few: these options need {needed} \
         for scores that equal those of the whole film"
    )]
    TooLittlePreroll {
        /// Frames before, as asked.
        preroll: u64,
        /// First reported frame.
        first_frame: u64,
        /// Frames before, as needed.
        needed: u64,
    },
    /// More frames before the first one than the film has.
    #[error("{preroll} frames before frame {first_frame}, but the film starts at frame 0")]
    TooMuchPreroll {
        /// Frames before, as asked.
        preroll: u64,
        /// First reported frame.
        first_frame: u64,
    },
    /// More than [`MAX_POSTROLL`].
    #[error("{postroll} frames after the last are more than {MAX_POSTROLL}")]
    TooMuchPostroll {
        /// Frames after, as asked.
        postroll: u64,
    },
    /// More than [`MAX_FIRST_FRAME`].
    #[error("first frame {first_frame} is beyond {MAX_FIRST_FRAME}")]
    FirstFrame {
        /// First reported frame.
        first_frame: u64,
    },
}

impl Part {
    /// A chunk that starts at the film's frame `first_frame`, with `preroll` frames before it and
    /// `postroll` after it that are not reported. Whether the postroll is enough shows when the
    /// parts are joined: only then is the film's end known.
    ///
    /// # Errors
    /// [`PartError`].
    pub const fn new(
        first_frame: u64,
        preroll: u64,
        postroll: u64,
        distance: Distance,
        moving_average: bool,
    ) -> Result<Self, PartError> {
        if first_frame > MAX_FIRST_FRAME {
            return Err(PartError::FirstFrame { first_frame });
        }
        if preroll > first_frame {
            return Err(PartError::TooMuchPreroll {
                preroll,
                first_frame,
            });
        }
        let needed = needed_preroll(distance, moving_average);
        if preroll < needed && preroll < first_frame {
            return Err(PartError::TooLittlePreroll {
                preroll,
                first_frame,
                needed: if needed < first_frame {
                    needed
                } else {
                    first_frame
                },
            });
        }
        if postroll > MAX_POSTROLL {
            return Err(PartError::TooMuchPostroll { postroll });
        }
        Ok(Self {
            first_frame,
            preroll,
            postroll,
        })
    }

    /// The film's index of the first reported frame.
    pub const fn first_frame(&self) -> u64 {
        self.first_frame
    }

    /// Frames fed before the first reported one.
    pub const fn preroll(&self) -> u64 {
        self.preroll
    }

    /// Frames fed after the last reported one.
    pub const fn postroll(&self) -> u64 {
        self.postroll
    }
}
