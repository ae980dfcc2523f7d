// SPDX-License-Identifier: MPL-2.0

//! What the units of a byte stream mean to the [`Reader`](crate::Reader): which begin an access unit, which
//! are pictures, and which sequence header a picture is coded with.

use std::collections::BTreeMap;

use crate::sequence::{Codec, Sequence};
use crate::{h264, h265, mpeg2};

/// What a unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    /// After a picture, it begins the next access unit.
    pub(crate) begins_unit: bool,
    /// It is (part of) a picture.
    pub(crate) is_picture: bool,
    /// It is part of a sequence header.
    pub(crate) is_header: bool,
}

/// What came of reading a unit for parameter sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// It is none.
    Nothing,
    /// It is one, and part of it is missing.
    Incomplete,
    /// It is a sequence header; `None` if it makes no sense.
    Sequence(Option<Sequence>),
}

/// The parameter sets of a stream.
#[derive(Debug)]
pub(crate) struct Parameters {
    codec: Codec,
    sequences: BTreeMap<u32, Sequence>,
    pictures: BTreeMap<u32, u32>,
    /// MPEG-2: the sequence header whose extension has not come yet.
    header: Vec<u8>,
    /// MPEG-2: the picture so far is one field, and the other belongs to the same access unit.
    awaits_field: bool,
    second_field: bool,
}

/// MPEG-2 has one sequence header and no number for it.
const ONLY: u32 = 0;

impl Parameters {
    pub(crate) fn new(codec: Codec) -> Self {
        Self {
            codec,
            sequences: BTreeMap::new(),
            pictures: BTreeMap::new(),
            header: Vec::new(),
            awaits_field: false,
            second_field: false,
        }
    }

    /// What the unit is. Its first bytes suffice.
    pub(crate) fn role(&self, unit: &[u8]) -> Role {
        let Some(first) = unit.first().copied() else {
            return Role::default();
        };
        match self.codec {
            Codec::H264 => h264_role(first, unit),
            Codec::H265 => h265_role(first, unit),
            _ => Role {
                begins_unit: matches!(first, 0xb3 | 0xb8) || first == 0 && !self.awaits_field,
                is_picture: first == 0,
                is_header: first == 0xb3,
            },
        }
    }

    /// The unit becomes part of the access unit.
    pub(crate) fn pass(&mut self, unit: &[u8]) {
        if self.codec != Codec::Mpeg2 {
            return;
        }
        match unit.first() {
            Some(0) => {
                self.second_field = self.awaits_field;
                self.awaits_field = false;
            }
            Some(0xb5) if !self.second_field => {
                if let Some(field) = mpeg2::is_field(unit) {
                    self.awaits_field = field;
                }
            }
            _ => {}
        }
    }

    /// The access unit is complete.
    pub(crate) fn end_unit(&mut self) {
        self.awaits_field = false;
        self.second_field = false;
    }

    /// Remembers a parameter set. `whole`: nothing of the unit is missing.
    pub(crate) fn learn(&mut self, unit: &[u8], whole: bool) -> Learned {
        let Some(first) = unit.first().copied() else {
            return Learned::Nothing;
        };
        let (is_sequence, is_picture) = match self.codec {
            Codec::H264 => (first & 31 == 7, first & 31 == 8),
            Codec::H265 if is_base_layer(unit) => (first >> 1 & 63 == 33, first >> 1 & 63 == 34),
            Codec::H265 => (false, false),
            _ => return self.learn_mpeg2(first, unit, whole),
        };
        if !is_sequence && !is_picture {
            return Learned::Nothing;
        }
        if !whole {
            return Learned::Incomplete;
        }
        let h264 = self.codec == Codec::H264;
        if is_picture {
            let read = if h264 {
                h264::picture_parameter_set
            } else {
                h265::picture_parameter_set
            };
            if let Some((id, sequence)) = read(unit) {
                self.pictures.insert(id, sequence);
            }
            return Learned::Nothing;
        }
        let read = if h264 {
            h264::sequence_parameter_set
        } else {
            h265::sequence_parameter_set
        };
        Learned::Sequence(read(unit).map(|(id, sequence)| {
            self.sequences.insert(id, sequence);
            sequence
        }))
    }

    fn learn_mpeg2(&mut self, first: u8, unit: &[u8], whole: bool) -> Learned {
        let is_header = first == 0xb3;
        let is_extension =
            first == 0xb5 && self.is_undecided() && unit.get(1).is_some_and(|byte| byte >> 4 == 1);
        if !is_header && !is_extension {
            return Learned::Nothing;
        }
        if !whole {
            return Learned::Incomplete;
        }
        if is_header {
            // What it says is known when an extension follows, or none.
            self.header = unit.to_vec();
            return Learned::Nothing;
        }
        let header = std::mem::take(&mut self.header);
        let read = mpeg2::sequence_header(&header, Some(unit));
        if let Some(sequence) = read {
            self.sequences.insert(ONLY, sequence);
        }
        Learned::Sequence(read)
    }

    /// Whether a sequence header was met of which it is not yet known what it says.
    fn is_undecided(&self) -> bool {
        !self.header.is_empty()
    }

    /// The sequence header that a picture is coded with.
    pub(crate) fn active(&mut self, unit: &[u8]) -> Option<Sequence> {
        if self.is_undecided() {
            let header = std::mem::take(&mut self.header);
            if let Some(sequence) = mpeg2::sequence_header(&header, None) {
                self.sequences.insert(ONLY, sequence);
            }
        }
        let id = match self.codec {
            Codec::H264 => *self.pictures.get(&h264::slice_parameter_set(unit)?)?,
            Codec::H265 => *self.pictures.get(&h265::slice_parameter_set(unit)?)?,
            _ => ONLY,
        };
        self.sequences.get(&id).copied()
    }
}

fn h264_role(first: u8, unit: &[u8]) -> Role {
    let kind = first & 31;
    // first_mb_in_slice is 0 exactly if the bit behind the header is set.
    let first_slice = unit.get(1).is_some_and(|byte| byte & 0x80 != 0);
    let is_picture = matches!(kind, 1 | 2 | 5);
    Role {
        begins_unit: is_picture && first_slice || matches!(kind, 6..=9 | 15..=18),
        is_picture,
        is_header: kind == 7,
    }
}

fn h265_role(first: u8, unit: &[u8]) -> Role {
    if !is_base_layer(unit) {
        return Role::default();
    }
    let kind = first >> 1 & 63;
    let first_segment = unit.get(2).is_some_and(|byte| byte & 0x80 != 0);
    let is_picture = kind < 32;
    Role {
        begins_unit: is_picture && first_segment
            || matches!(kind, 32..=35 | 39 | 41..=44 | 48..=55),
        is_picture,
        is_header: matches!(kind, 32 | 33),
    }
}

/// Whether an H.265 unit's nuh_layer_id is 0.
fn is_base_layer(unit: &[u8]) -> bool {
    unit.len() >= 2 && unit[0] & 1 == 0 && unit[1] >> 3 == 0
}
