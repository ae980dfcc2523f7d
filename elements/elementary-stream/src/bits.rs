// SPDX-License-Identifier: MPL-2.0

//! Reading bits, most significant first. Whatever lies beyond the end is `None`, never zero.

/// A reader over bytes without emulation prevention.
#[derive(Clone, Debug)]
pub struct Bits<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> Bits<'a> {
    /// Starts at the first bit of `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// One bit.
    pub fn flag(&mut self) -> Option<bool> {
        let byte = self.data.get(self.position / 8)?;
        let bit = byte >> (7 - self.position % 8) & 1;
        self.position += 1;
        Some(bit == 1)
    }

    /// `count` bits, at most 32.
    pub fn bits(&mut self, count: u32) -> Option<u32> {
        let mut value = 0_u64;
        for _ in 0..count.min(32) {
            value = value << 1 | u64::from(self.flag()?);
        }
        Some(value as u32)
    }

    /// Passes over `count` bits; they have to exist.
    pub fn skip(&mut self, count: usize) -> Option<()> {
        let end = self.position.checked_add(count)?;
        (end <= self.data.len() * 8).then(|| self.position = end)
    }

    /// An unsigned Exp-Golomb value, ue(v).
    pub fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let rest = u64::from(self.bits(zeros)?);
        u32::try_from((1_u64 << zeros) - 1 + rest).ok()
    }

    /// An unsigned Exp-Golomb value that may not exceed `most`.
    pub fn ue_max(&mut self, most: u32) -> Option<u32> {
        self.ue().filter(|value| *value <= most)
    }

    /// A signed Exp-Golomb value, se(v).
    pub fn se(&mut self) -> Option<i64> {
        let code = i64::from(self.ue()?);
        Some(if code % 2 == 1 {
            (code + 1) / 2
        } else {
            -(code / 2)
        })
    }
}

/// Takes the emulation prevention bytes out of a NAL unit (H.264 7.4.1.1, H.265 7.4.2).
pub fn unescape(nal: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(nal.len());
    let mut zeros = 0;
    for byte in nal {
        if zeros >= 2 && *byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_golomb_follows_table_9_2() {
        // 1 | 010 | 011 | 00100 | 00101 | 1 (and padding)
        let data = [0b1010_0110, 0b0100_0010, 0b1100_0000];
        let mut bits = Bits::new(&data);
        let values: Vec<_> = (0..6).map(|_| bits.ue()).collect();
        assert_eq!(
            values,
            [Some(0), Some(1), Some(2), Some(3), Some(4), Some(0)]
        );
        let mut bits = Bits::new(&data);
        let values: Vec<_> = (0..5).map(|_| bits.se()).collect();
        assert_eq!(values, [Some(0), Some(1), Some(-1), Some(2), Some(-2)]);
    }

    #[test]
    fn the_end_is_none_and_not_zero() {
        let mut bits = Bits::new(&[0xff]);
        assert_eq!(bits.bits(8), Some(255));
        assert_eq!(bits.flag(), None);
        assert_eq!(Bits::new(&[0, 0]).ue(), None);
        assert_eq!(Bits::new(&[0; 9]).ue(), None);
        assert_eq!(Bits::new(&[0]).skip(9), None);
    }

    #[test]
    fn emulation_prevention_goes_and_other_threes_stay() {
        assert_eq!(
            unescape(&[0, 0, 3, 1, 3, 0, 0, 3, 0, 0, 3]),
            [0, 0, 1, 3, 0, 0, 0, 0]
        );
    }
}
