// SPDX-License-Identifier: MPL-2.0

//! NAL units with lengths before them (ISO/IEC 14496-15), and with start codes (Annex B).

/// How NAL units are told apart within a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A buffer is shown to the runtime as it is.
    Whole,
    /// Each NAL unit has its length before it, in so many bytes.
    LengthPrefixed(usize),
}

const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// A buffer that ends within a NAL unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a NAL unit of {length} bytes at offset {offset} does not fit into the buffer of {size} bytes"
)]
pub(crate) struct Truncated {
    length: usize,
    offset: usize,
    size: usize,
}

/// Replaces lengths by start codes.
pub(crate) fn to_annex_b(data: &[u8], length_size: usize) -> Result<Vec<u8>, Truncated> {
    let mut out = Vec::with_capacity(data.len() + 16);
    let mut at = 0;
    while at < data.len() {
        let prefix = data.get(at..at + length_size);
        let length = prefix.map_or(0, |bytes| {
            bytes
                .iter()
                .fold(0, |sum, &byte| sum << 8 | usize::from(byte))
        });
        let body = at + length_size;
        let nal = prefix.and_then(|_| data.get(body..body.checked_add(length)?));
        let nal = nal.ok_or(Truncated {
            length,
            offset: at,
            size: data.len(),
        })?;
        if !nal.is_empty() {
            out.extend_from_slice(&START_CODE);
            out.extend_from_slice(nal);
        }
        at = body + length;
    }
    Ok(out)
}

/// A reader of big-endian fields.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.get(count..)?;
        Some(())
    }

    fn short(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?) << 8 | usize::from(self.byte()?))
    }

    /// A NAL unit behind a length of two bytes, put behind `sets` with a start code.
    fn set(&mut self, sets: &mut Vec<u8>) -> Option<()> {
        let length = self.short()?;
        let nal: &'a [u8] = self.0.get(..length)?;
        self.skip(length)?;
        sets.extend_from_slice(&START_CODE);
        sets.extend_from_slice(nal);
        Some(())
    }
}

/// `AVCDecoderConfigurationRecord`: bytes of a length, and the parameter sets.
pub(crate) fn read_avc(data: &[u8]) -> Option<(usize, Vec<u8>)> {
    let mut fields = Fields(data);
    if fields.byte()? != 1 {
        return None;
    }
    fields.skip(3)?;
    let length_size = usize::from(fields.byte()? & 3) + 1;
    let mut sets = Vec::new();
    let sequence = fields.byte()? & 31;
    for _ in 0..sequence {
        fields.set(&mut sets)?;
    }
    for _ in 0..fields.byte()? {
        fields.set(&mut sets)?;
    }
    Some((length_size, sets))
}

/// `HEVCDecoderConfigurationRecord`, likewise.
pub(crate) fn read_hevc(data: &[u8]) -> Option<(usize, Vec<u8>)> {
    let mut fields = Fields(data);
    // Version 0 stands in files of before the standard was final.
    if fields.byte()? > 1 {
        return None;
    }
    fields.skip(20)?;
    let length_size = usize::from(fields.byte()? & 3) + 1;
    let mut sets = Vec::new();
    for _ in 0..fields.byte()? {
        fields.skip(1)?;
        for _ in 0..fields.short()? {
            fields.set(&mut sets)?;
        }
    }
    Some((length_size, sets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_become_start_codes() {
        let data = [0, 2, 9, 8, 0, 0, 0, 1, 7];
        assert_eq!(
            to_annex_b(&data, 2),
            Ok(vec![0, 0, 0, 1, 9, 8, 0, 0, 0, 1, 7])
        );
        let error = to_annex_b(&data[..8], 2).expect_err("the last unit is cut off");
        assert_eq!(
            error,
            Truncated {
                length: 1,
                offset: 6,
                size: 8
            }
        );
        assert!(to_annex_b(&[0, 0], 4).is_err());
    }

    #[test]
    fn a_configuration_gives_its_parameter_sets() {
        let avc = [1, 66, 0, 30, 0xff, 0xe1, 0, 2, 0x67, 66, 1, 0, 1, 0x68];
        let sets = vec![0, 0, 0, 1, 0x67, 66, 0, 0, 0, 1, 0x68];
        assert_eq!(read_avc(&avc), Some((4, sets)));
        let mut hevc = vec![1; 21];
        hevc.extend([0xfd, 1, 33, 0, 1, 0, 3, 0x42, 1, 1]);
        assert_eq!(read_hevc(&hevc), Some((2, vec![0, 0, 0, 1, 0x42, 1, 1])));
        for cut in 0..avc.len() {
            assert_eq!(read_avc(&avc[..cut]), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            data in proptest::collection::vec(any::<u8>(), 0..64),
            length_size in 1_usize..5,
        ) {
            let _ = read_avc(&data);
            let _ = read_hevc(&data);
            if let Ok(out) = to_annex_b(&data, length_size) {
                prop_assert!(out.len() <= data.len() * 4);
            }
        }
    }
}
