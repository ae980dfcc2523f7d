// SPDX-License-Identifier: MPL-2.0

//! [`Reader`]: a stream in pieces of any size, cut into access units.
//!
//! The reader takes bytes only when it is sure of them. Two kinds stay with the caller: bytes that may be
//! the beginning of a start code, and an access unit whose sequence header differs from the one in force.
//! The caller hears of the latter ([`Step::Sequence`]) while all its bytes are still there.

use crate::nal::{READABLE, Unit, unfinished_tail, units};
use crate::sequence::{Codec, Sequence};
use crate::start_codes::{Learned, Parameters, Role};
use crate::{av1, jpeg, vp8, vp9};

/// What the reader found at the beginning of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The access unit that begins here has another sequence header than the one in force. Nothing was
    /// taken: [`Reader::accept`] the sequence and step again, or leave the data alone.
    Sequence(Sequence),
    /// An access unit is complete with the first `taken` bytes of the data.
    Unit {
        /// Bytes to remove from the data.
        taken: usize,
        /// The whole access unit.
        data: Vec<u8>,
        /// The access unit began in bytes of an earlier step.
        continued: bool,
    },
    /// More data is needed. The first `taken` bytes are kept by the reader.
    More {
        /// Bytes to remove from the data.
        taken: usize,
    },
}

/// Cuts one stream into access units. For H.264 a field is an access unit of its own; for MPEG-2 both
/// fields of a frame are one.
#[derive(Debug)]
pub struct Reader {
    codec: Codec,
    parameters: Parameters,
    current: Option<Sequence>,
    held: Vec<u8>,
    /// The held bytes contain the beginning of a picture.
    in_picture: bool,
}

impl Reader {
    /// A reader at the beginning of a stream. No sequence header is in force.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            parameters: Parameters::new(codec),
            current: None,
            held: Vec::new(),
            in_picture: false,
        }
    }

    /// The sequence header in force. Access units before the first cannot be decoded.
    pub fn sequence(&self) -> Option<&Sequence> {
        self.current.as_ref()
    }

    /// Puts a sequence header in force.
    pub fn accept(&mut self, sequence: Sequence) {
        self.current = Some(sequence);
    }

    /// Bytes that were taken and belong to no complete access unit yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Looks at the data. `last`: an access unit ends with it, whatever follows.
    pub fn step(&mut self, data: &[u8], last: bool) -> Step {
        match self.codec {
            Codec::H264 | Codec::H265 | Codec::Mpeg2 => self.step_start_codes(data, last),
            Codec::Vp8 => self.step_frame(data, data.len(), vp8::key_frame(data)),
            Codec::Vp9 => self.step_frame(data, data.len(), vp9::key_frame(data)),
            Codec::Av1 => {
                let end = av1::temporal_unit_end(data);
                let sequence = av1::sequence_header(&data[..end]).map(|(_, sequence)| sequence);
                self.step_frame(data, end, sequence)
            }
            Codec::Mjpeg => match jpeg::first_image(data) {
                Some(image) => match image.end.or(last.then_some(data.len())) {
                    Some(end) => self.step_frame(data, end, image.sequence),
                    None => Step::More { taken: 0 },
                },
                // The last two bytes may begin a start marker.
                None if !last => Step::More {
                    taken: data.len().saturating_sub(2),
                },
                None => Step::More { taken: data.len() },
            },
        }
    }

    fn step_frame(&mut self, data: &[u8], end: usize, sequence: Option<Sequence>) -> Step {
        if end == 0 {
            return Step::More { taken: 0 };
        }
        match sequence {
            Some(sequence) if self.current != Some(sequence) => Step::Sequence(sequence),
            _ => Step::Unit {
                taken: end,
                data: data[..end].to_vec(),
                continued: false,
            },
        }
    }

    fn step_start_codes(&mut self, data: &[u8], last: bool) -> Step {
        let mut limit = data.len();
        if !self.in_picture {
            match self.look_ahead(data, last) {
                Ahead::Differs(sequence) => return Step::Sequence(sequence),
                Ahead::Clear { until } => limit = until,
            }
        }
        for unit in units(data, self.codec != Codec::Mpeg2) {
            if unit.start >= limit {
                break;
            }
            if !readable(&unit, last) {
                limit = unit.start;
                break;
            }
            let role = self.parameters.role(unit.bytes);
            if self.in_picture && role.begins_unit {
                return self.complete(&data[..unit.start]);
            }
            self.in_picture |= role.is_picture;
            self.parameters.pass(unit.bytes);
        }
        if last && self.in_picture && limit == data.len() {
            return self.complete(data);
        }
        if !last && limit == data.len() {
            limit -= unfinished_tail(data);
        }
        self.held.extend_from_slice(&data[..limit]);
        Step::More { taken: limit }
    }

    fn complete(&mut self, rest: &[u8]) -> Step {
        let continued = !self.held.is_empty();
        let mut unit = std::mem::take(&mut self.held);
        unit.extend_from_slice(rest);
        self.in_picture = false;
        self.parameters.end_unit();
        Step::Unit {
            taken: rest.len(),
            data: unit,
            continued,
        }
    }

    /// Reads the parameter sets up to the next picture, and how far the data may be taken before it.
    fn look_ahead(&mut self, data: &[u8], last: bool) -> Ahead {
        let (mut doubtful, mut header) = (None, None);
        for unit in units(data, self.codec != Codec::Mpeg2) {
            if !readable(&unit, last) {
                break;
            }
            let role = self.parameters.role(unit.bytes);
            if role.is_header {
                header = header.or(Some(unit.start));
            }
            if role.is_picture {
                return match self.parameters.active(unit.bytes) {
                    Some(sequence) if self.current != Some(sequence) => Ahead::Differs(sequence),
                    _ => Ahead::Clear { until: data.len() },
                };
            }
            match self.parameters.learn(unit.bytes, unit.ended || last) {
                Learned::Nothing => {}
                Learned::Incomplete => {
                    // An MPEG-2 extension is read together with its header.
                    doubtful = doubtful.or(header).or(Some(unit.start));
                    break;
                }
                Learned::Sequence(said) => {
                    if self.current.is_some() && said != self.current {
                        doubtful = doubtful.or(header);
                    }
                    header = None;
                }
            }
        }
        if !last {
            // The beginning of a header says nothing yet.
            doubtful = doubtful.or(header);
        }
        Ahead::Clear {
            until: doubtful.unwrap_or(data.len()),
        }
    }
}

enum Ahead {
    Differs(Sequence),
    Clear { until: usize },
}

/// Whether enough of the unit is there to tell its role.
fn readable(unit: &Unit<'_>, last: bool) -> bool {
    last || unit.ended || unit.bytes.len() >= READABLE
}

/// Where a stream's first sequence header lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Decoding can begin at `offset`.
    Found {
        /// The first byte that belongs to the header.
        offset: usize,
        /// What it says.
        sequence: Sequence,
    },
    /// There is none; the first `skip` bytes cannot belong to one.
    Missing {
        /// Bytes that can be dropped.
        skip: usize,
    },
}

/// Finds the first sequence header in `data`. `last`: the data ends with a whole unit.
pub fn find_header(codec: Codec, data: &[u8], last: bool) -> Header {
    let found = |offset, sequence| Header::Found { offset, sequence };
    match codec {
        Codec::H264 | Codec::H265 | Codec::Mpeg2 => find_parameter_sets(codec, data, last),
        Codec::Vp8 => {
            vp8::key_frame(data).map_or(Header::Missing { skip: data.len() }, |s| found(0, s))
        }
        Codec::Vp9 => {
            vp9::key_frame(data).map_or(Header::Missing { skip: data.len() }, |s| found(0, s))
        }
        Codec::Av1 => match av1::sequence_header(data) {
            // From the temporal unit's beginning: the delimiter belongs to it.
            Some((_, sequence)) => found(0, sequence),
            None => Header::Missing { skip: data.len() },
        },
        Codec::Mjpeg => match jpeg::first_image(data) {
            Some(image) => match image.sequence {
                Some(sequence) => found(image.start, sequence),
                None if image.end.is_none() => Header::Missing { skip: image.start },
                None => Header::Missing {
                    skip: image.end.unwrap_or(data.len()),
                },
            },
            None => Header::Missing {
                skip: data.len().saturating_sub(if last { 0 } else { 2 }),
            },
        },
    }
}

fn find_parameter_sets(codec: Codec, data: &[u8], last: bool) -> Header {
    let mut parameters = Parameters::new(codec);
    let (mut first, mut said) = (None, None);
    let mut keep = data.len() - if last { 0 } else { unfinished_tail(data) };
    for unit in units(data, codec != Codec::Mpeg2) {
        if !readable(&unit, last) {
            keep = unit.start;
            break;
        }
        let Role {
            is_picture,
            is_header,
            ..
        } = parameters.role(unit.bytes);
        if is_header {
            first = first.or(Some(unit.start));
        }
        match parameters.learn(unit.bytes, unit.ended || last) {
            Learned::Nothing => {}
            Learned::Incomplete => keep = keep.min(unit.start),
            Learned::Sequence(sequence) => said = said.or(sequence),
        }
        if is_picture && first.is_some() {
            said = parameters.active(unit.bytes).or(said);
            break;
        }
    }
    match (first, said) {
        (Some(offset), Some(sequence)) => Header::Found { offset, sequence },
        (Some(offset), None) => Header::Missing {
            skip: offset.min(keep),
        },
        (None, _) => Header::Missing { skip: keep },
    }
}
