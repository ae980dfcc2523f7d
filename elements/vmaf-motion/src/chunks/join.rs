// SPDX-License-Identifier: MPL-2.0

//! Whether scored parts make up a film.

use thiserror::Error;

use super::{needed_postroll, needed_preroll};
use crate::sad::Distance;

/// What a scored part says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartSpan {
    /// The film's index of the first reported frame.
    pub first_frame: u64,
    /// Frames reported.
    pub frames: u64,
    /// Frames fed before them.
    pub preroll: u64,
    /// Frames fed after them.
    pub postroll: u64,
}

/// Parts that meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Positions of the given parts, in film order.
    pub order: Vec<usize>,
    /// The film's index of the first frame.
    pub first_frame: u64,
    /// Frames of all parts.
    pub frames: u64,
}

/// Parts that do not make up a film. Parts are named by their position as given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JoinError {
    /// There is no part.
    #[error("no parts to join")]
    Nothing,
    /// A part without a frame.
    #[error("part {part} reports no frame")]
    Empty {
        /// The part.
        part: usize,
    },
    /// A part whose frames cannot be counted.
    #[error("part {part} reports more frames than can be numbered from its first frame on")]
    TooLong {
        /// The part.
        part: usize,
    },
    /// Frames that no part reports.
    #[error("frames {first} to {last} are missing between part {before} and part {after}")]
    Gap {
        /// The part before the gap.
        before: usize,
        /// The part after it.
        after: usize,
        /// First missing frame.
        first: u64,
        /// Last missing frame.
        last: u64,
    },
    /// Frames that two parts report.
    #[error("frames {first} to {last} are in part {before} and in part {after}")]
    Overlap {
        /// The part that starts earlier.
        before: usize,
        /// The part that starts later.
        after: usize,
        /// First frame in both.
        first: u64,
        /// Last frame in both.
        last: u64,
    },
    /// Too few frames before a part.
    #[error("part {part} was scored with {preroll} frames before it, exact scores need {needed}")]
    Preroll {
        /// The part.
        part: usize,
        /// What it had.
        preroll: u64,
        /// What it needs.
        needed: u64,
    },
    /// Too few frames after a part that another follows.
    #[error("part {part} was scored with {postroll} frames after it, exact scores need {needed}")]
    Postroll {
        /// The part.
        part: usize,
        /// What it had.
        postroll: u64,
        /// What it needs.
        needed: u64,
    },
}

/// Checks that the parts, given in any order, meet without gap or overlap and were each scored with
/// enough frames around them. The last part counts as the end of the film.
///
/// # Errors
/// The first [`JoinError`] in film order.
pub fn join(
    parts: &[PartSpan],
    distance: Distance,
    moving_average: bool,
) -> Result<Joined, JoinError> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|i| parts[*i].first_frame);
    let (Some(&start), Some(&end)) = (order.first(), order.last()) else {
        return Err(JoinError::Nothing);
    };
    for &part in &order {
        last_frame(parts, part)?;
    }
    for pair in order.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        let last = last_frame(parts, before)?;
        let next = parts[after].first_frame;
        if next <= last {
            return Err(JoinError::Overlap {
                before,
                after,
                first: next,
                last: last.min(last_frame(parts, after)?),
            });
        }
        if next - last > 1 {
            return Err(JoinError::Gap {
                before,
                after,
                first: last + 1,
                last: next - 1,
            });
        }
    }
    let film_last = last_frame(parts, end)?;
    for &part in &order {
        let PartSpan {
            first_frame,
            preroll,
            postroll,
            ..
        } = parts[part];
        let needed = needed_preroll(distance, moving_average).min(first_frame);
        if preroll < needed {
            return Err(JoinError::Preroll {
                part,
                preroll,
                needed,
            });
        }
        let last = last_frame(parts, part)?;
        let needed = needed_postroll(distance, last).min(film_last - last);
        if postroll < needed {
            return Err(JoinError::Postroll {
                part,
                postroll,
                needed,
            });
        }
    }
    let first_frame = parts[start].first_frame;
    Ok(Joined {
        order,
        first_frame,
        frames: film_last - first_frame + 1,
    })
}

/// The film's index of a part's last frame.
fn last_frame(parts: &[PartSpan], part: usize) -> Result<u64, JoinError> {
    let PartSpan {
        first_frame,
        frames,
        ..
    } = parts[part];
    let more = frames.checked_sub(1).ok_or(JoinError::Empty { part })?;
    first_frame
        .checked_add(more)
        .filter(|last| *last < u64::MAX)
        .ok_or(JoinError::TooLong { part })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first_frame: u64, frames: u64) -> PartSpan {
        PartSpan {
            first_frame,
            frames,
            preroll: 4.min(first_frame),
            postroll: 2,
        }
    }

    fn joined(parts: &[PartSpan]) -> Result<Joined, JoinError> {
        join(parts, Distance::Two, true)
    }

    #[test]
    fn in_any_order() {
        let film = joined(&[part(10, 5), part(0, 4), part(4, 6)]);
        let expected = Joined {
            order: vec![1, 2, 0],
            first_frame: 0,
            frames: 15,
        };
        assert_eq!(film, Ok(expected));
        let excerpt = joined(&[part(100, 1)]).expect("one part");
        assert_eq!((excerpt.first_frame, excerpt.frames), (100, 1));
    }

    #[test]
    fn gap_and_overlap_name_the_frames() {
        let gap = JoinError::Gap {
            before: 1,
            after: 0,
            first: 4,
            last: 9,
        };
        assert_eq!(joined(&[part(10, 5), part(0, 4)]), Err(gap));
        let overlap = |last| JoinError::Overlap {
            before: 0,
            after: 1,
            first: 8,
            last,
        };
        assert_eq!(joined(&[part(0, 10), part(8, 5)]), Err(overlap(9)));
        assert_eq!(joined(&[part(0, 10), part(8, 1)]), Err(overlap(8)));
    }

    #[test]
    fn nothing_empty_and_uncountable() {
        assert_eq!(joined(&[]), Err(JoinError::Nothing));
        assert_eq!(
            joined(&[part(0, 4), part(4, 0)]),
            Err(JoinError::Empty { part: 1 })
        );
        for long in [part(u64::MAX, 1), part(u64::MAX, 2), part(1, u64::MAX)] {
            assert_eq!(joined(&[long]), Err(JoinError::TooLong { part: 0 }));
        }
        assert!(joined(&[part(u64::MAX - 1, 1)]).is_ok());
    }

    #[test]
    fn frames_around_must_be_enough() {
        let mut parts = [part(0, 4), part(4, 4), part(8, 4)];
        parts[2].postroll = 0;
        assert!(joined(&parts).is_ok(), "the film ends there");
        parts[1].preroll = 3;
        let preroll = JoinError::Preroll {
            part: 1,
            preroll: 3,
            needed: 4,
        };
        assert_eq!(joined(&parts), Err(preroll));
        assert!(join(&parts, Distance::Two, false).is_ok(), "three suffice");
        parts[1] = part(4, 4);
        parts[1].postroll = 0;
        let postroll = JoinError::Postroll {
            part: 1,
            postroll: 0,
            needed: 1,
        };
        assert_eq!(joined(&parts), Err(postroll));
    }

    #[test]
    fn frame_0_alone_needs_two_after_it_if_there_are() {
        let alone = PartSpan {
            postroll: 1,
            ..part(0, 1)
        };
        assert!(joined(&[alone, part(1, 1)]).is_ok(), "a film of two frames");
        let postroll = JoinError::Postroll {
            part: 0,
            postroll: 1,
            needed: 2,
        };
        assert_eq!(joined(&[alone, part(1, 2)]), Err(postroll));
        assert!(join(&[alone, part(1, 2)], Distance::One, true).is_ok());
    }
}
