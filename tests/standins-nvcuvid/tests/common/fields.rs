// SPDX-License-Identifier: MPL-2.0

//! Streams of field pictures, which no encoder at hand makes: flat pictures, written bit by bit.

use elementary_stream::Codec;

use super::clips::Clip;

/// Columns and rows of a frame.
pub const SIZE: (usize, usize) = (64, 64);

/// The luma of a frame's top and bottom field.
pub fn luma_of(frame: usize) -> (u8, u8) {
    (20 + 4 * frame as u8, 120 + 4 * frame as u8)
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// Bits of the last byte that are used, 0 where it is full.
    used: u32,
}

impl Writer {
    fn bits(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let last = self.bytes.last_mut().expect("a byte was pushed");
            *last |= ((value >> bit & 1) as u8) << (7 - self.used);
            self.used = (self.used + 1) % 8;
        }
    }

    /// Exp-Golomb.
    fn ue(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.bits(0, length);
        self.bits(value + 1, length + 1);
    }

    fn align(&mut self) {
        self.used = 0;
    }

    /// A NAL unit: its end is marked, and no start code is in it.
    fn nal(mut self, header: u8) -> Vec<u8> {
        self.bits(1, 1);
        let mut unit = vec![0, 0, 0, 1, header];
        let mut zeros = 0;
        for byte in self.bytes {
            if zeros >= 2 && byte <= 3 {
                unit.push(3);
                zeros = 0;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            unit.push(byte);
        }
        unit
    }
}

/// H.264 (ITU-T H.264, 7.3): each frame an IDR field and an I field of raw samples, a unit each.
pub fn h264(frames: usize) -> Clip {
    let mut sequence = Writer::default();
    sequence.bits(77, 8); // Main
    sequence.bits(0, 8);
    sequence.bits(30, 8);
    for value in [0, 0, 2, 1] {
        sequence.ue(value); // id, 4 bits of frame_num, output in decoding order, one reference
    }
    sequence.bits(0, 1);
    sequence.ue(SIZE.0 as u32 / 16 - 1);
    sequence.ue(SIZE.1 as u32 / 32 - 1);
    sequence.bits(0b00100, 5); // fields, no MBAFF, direct_8x8_inference, no crop, no VUI
    let mut picture = Writer::default();
    picture.bits(0b1100111, 7); // ids 0, CAVLC, one slice group, one reference in each list
    picture.bits(0, 3);
    picture.bits(0b111, 3); // quantisers
    picture.bits(0, 3);
    let mut stream = [sequence.nal(0x67), picture.nal(0x68)].concat();
    for frame in 0..frames {
        let (top, bottom) = luma_of(frame);
        stream.extend(h264_field(frame, false, top));
        stream.extend(h264_field(frame, true, bottom));
    }
    Clip::byte_stream(Codec::H264, &stream)
}

fn h264_field(frame: usize, bottom: bool, luma: u8) -> Vec<u8> {
    let mut slice = Writer::default();
    for value in [0, 7, 0] {
        slice.ue(value); // first macroblock, I, parameter set
    }
    slice.bits(0, 4); // frame_num
    slice.bits(1, 1);
    slice.bits(bottom.into(), 1);
    if bottom {
        slice.bits(0, 1); // no marking
    } else {
        slice.ue(frame as u32 % 2); // idr_pic_id
        slice.bits(0, 2);
    }
    slice.bits(1, 1); // quantiser
    for _ in 0..SIZE.0 / 16 * (SIZE.1 / 32) {
        slice.ue(25); // I_PCM
        slice.align();
        slice.bytes.extend([luma; 256]);
        slice.bytes.extend([128; 128]);
    }
    slice.nal(if bottom { 0x41 } else { 0x65 })
}

/// MPEG-2 (ITU-T H.262, 6.2): each frame two I fields, grey, in one unit.
pub fn mpeg2(frames: usize) -> Clip {
    let mut stream = Vec::new();
    for frame in 0..frames {
        if frame == 0 {
            let mut header = Writer::default();
            header.bits(SIZE.0 as u32, 12);
            header.bits(SIZE.1 as u32, 12);
            header.bits(0x13, 8); // square, 25 frames a second
            header.bits(0x3ffff, 18);
            header.bits(1, 1);
            header.bits(20, 10);
            header.bits(0, 3);
            code(&mut stream, 0xb3, header);
            let mut extension = Writer::default();
            extension.bits(0x148, 12); // main profile at main level
            extension.bits(0b0010000, 7); // interlaced, 4:2:0
            extension.bits(1, 13);
            extension.bits(0, 16);
            code(&mut stream, 0xb5, extension);
        }
        for structure in [1, 2] {
            let mut picture = Writer::default();
            picture.bits(frame as u32, 10);
            picture.bits(1, 3); // I
            picture.bits(0xffff, 16);
            picture.bits(0, 1);
            code(&mut stream, 0, picture);
            let mut extension = Writer::default();
            extension.bits(8, 4);
            extension.bits(0xffff, 16);
            extension.bits(structure, 4); // intra_dc_precision 0
            extension.bits(0, 10);
            code(&mut stream, 0xb5, extension);
            for row in 0..SIZE.1 / 32 {
                let mut slice = Writer::default();
                slice.bits(2, 6); // quantiser 1
                for _ in 0..SIZE.0 / 16 {
                    slice.bits(0b11, 2); // the next macroblock, intra
                    for _ in 0..4 {
                        slice.bits(0b10010, 5); // luma as before, end of block
                    }
                    for _ in 0..2 {
                        slice.bits(0b0010, 4);
                    }
                }
                code(&mut stream, row as u8 + 1, slice);
            }
        }
    }
    Clip::byte_stream(Codec::Mpeg2, &stream)
}

fn code(stream: &mut Vec<u8>, code: u8, unit: Writer) {
    stream.extend([0, 0, 1, code]);
    stream.extend(unit.bytes);
}
