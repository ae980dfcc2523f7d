// SPDX-License-Identifier: MPL-2.0

//! Random faults from a seed: the same seed gives the same faults.

/// A fault that a careful client survives without losing a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomFault {
    /// None this time.
    None,
    /// The device is busy for this and the next calls, together this many.
    Busy(u64),
    /// The device is busy, and there is something to wait for.
    BusyWithSync,
    /// A warning without a picture.
    Warning,
    /// The client is told to give pictures back.
    Starved,
    /// The picture comes with a warning.
    PictureWithWarning,
    /// The picture takes this many microseconds longer.
    Late(u64),
    /// The picture is marked as damaged.
    Corrupt,
}

/// The source of random faults.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
    busy_left: u64,
}

impl Dice {
    /// The faults of that seed.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            busy_left: 0,
        }
    }

    /// The fault of the next call. One call in four has one.
    pub fn roll(&mut self) -> RandomFault {
        if self.busy_left > 0 {
            self.busy_left -= 1;
            return RandomFault::Busy(self.busy_left + 1);
        }
        match self.below(32) {
            0 => {
                let length = 1 + self.below(6);
                self.busy_left = length - 1;
                RandomFault::Busy(length)
            }
            1 => RandomFault::BusyWithSync,
            2 => RandomFault::Warning,
            3 => RandomFault::Starved,
            4 | 5 => RandomFault::PictureWithWarning,
            6 => RandomFault::Late(self.below(2000)),
            7 => RandomFault::Corrupt,
            _ => RandomFault::None,
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// splitmix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::*;

    fn rolls(seed: u64, count: usize) -> Vec<RandomFault> {
        let mut dice = Dice::new(seed);
        (0..count).map(|_| dice.roll()).collect()
    }

    #[test]
    fn a_seed_repeats_and_seeds_differ() {
        assert_eq!(rolls(1, 200), rolls(1, 200));
        assert_ne!(rolls(1, 200), rolls(2, 200));
    }

    #[test]
    fn every_fault_comes_and_most_calls_have_none() {
        let all = rolls(7, 4000);
        assert_eq!(
            all.iter().map(discriminant).collect::<HashSet<_>>().len(),
            8
        );
        let none = all
            .iter()
            .filter(|fault| **fault == RandomFault::None)
            .count();
        assert!(
            (2400..3400).contains(&none),
            "{none} of 4000 calls have no fault"
        );
    }
}
