// SPDX-License-Identifier: MPL-2.0

//! [`Input`]: packets in, units of the stream out, each with the timestamp of the packet in which it begins.

use std::collections::VecDeque;

use elementary_stream::{Codec, Reader, Sequence, Step};

use crate::units::first_picture;

/// Timestamps of packets that are kept for pictures which have not begun.
const QUEUED_TIMESTAMPS: usize = 16;

/// What comes next.
pub enum Next {
    /// Another sequence header than the one in force: [`Input::accept`] it and ask again.
    Sequence(Sequence),
    /// A unit of the stream.
    Unit {
        /// Its bytes.
        data: Vec<u8>,
        /// Where its picture begins, in bytes from the first packet's beginning.
        place: u64,
        /// That of its packet, unless an earlier picture took it.
        timestamp: Option<i64>,
    },
    /// Nothing before another packet comes.
    Nothing,
}

/// The bytes that were not decoded yet.
pub struct Input {
    codec: Codec,
    reader: Reader,
    /// Bytes that the reader left.
    pending: Vec<u8>,
    /// Bytes of every packet so far.
    received: u64,
    /// Where packets began, and their timestamps until a picture takes them.
    packets: VecDeque<(u64, Option<i64>)>,
}

impl Input {
    /// At the beginning of a stream.
    pub fn new(codec: Codec) -> Self {
        Self {
            codec,
            reader: Reader::new(codec),
            pending: Vec::new(),
            received: 0,
            packets: VecDeque::new(),
        }
    }

    /// A packet: where it begins.
    pub fn push(&mut self, data: &[u8], timestamp: Option<i64>) -> u64 {
        let begins_at = self.received;
        self.packets.push_back((begins_at, timestamp));
        if self.packets.len() > QUEUED_TIMESTAMPS {
            self.packets.pop_front();
        }
        self.received += data.len() as u64;
        self.pending.extend_from_slice(data);
        begins_at
    }

    /// The bytes from which the next unit is taken.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Forgets them.
    pub fn drop_pending(&mut self) {
        self.pending.clear();
    }

    /// Puts a sequence header in force.
    pub fn accept(&mut self, sequence: Sequence) {
        self.reader.accept(sequence);
    }

    /// The next unit. `whole`: one ends with the bytes that are there.
    pub fn next(&mut self, whole: bool) -> Next {
        match self.reader.step(&self.pending, whole) {
            Step::Sequence(sequence) => Next::Sequence(sequence),
            Step::Unit { taken, data, .. } => {
                self.pending.drain(..taken);
                let end = self.received - self.pending.len() as u64;
                let start = end.saturating_sub(data.len() as u64);
                let place = start + first_picture(self.codec, &data) as u64;
                Next::Unit {
                    timestamp: self.take_timestamp(place),
                    data,
                    place,
                }
            }
            Step::More { taken } => {
                self.pending.drain(..taken);
                Next::Nothing
            }
        }
    }

    fn take_timestamp(&mut self, place: u64) -> Option<i64> {
        let begun = self.packets.iter().rposition(|(at, _)| *at <= place)?;
        self.packets.drain(..begun);
        self.packets.front_mut()?.1.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_timestamp_of_the_packet_in_which_it_begins() {
        let slice = |number: u8| [0, 0, 1, 0x65, 0x88, number, number, number, number];
        let mut input = Input::new(Codec::H264);
        let stream = [slice(1), slice(2), slice(3)].concat();
        // The second picture begins in the first packet, the third in the last.
        for (number, packet) in [&stream[..15], &stream[15..17], &stream[17..]]
            .iter()
            .enumerate()
        {
            input.push(packet, Some(number as i64));
        }
        let mut found = Vec::new();
        while let Next::Unit {
            place, timestamp, ..
        } = input.next(true)
        {
            found.push((place, timestamp));
        }
        assert_eq!(found, [(0, Some(0)), (9, None), (18, Some(2))]);
    }
}
