// SPDX-License-Identifier: MPL-2.0

//! [`Sequence`]: what a sequence header says of the pictures that follow it.

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// H.264, byte stream (ITU-T H.264, Annex B).
    H264,
    /// H.265, byte stream (ITU-T H.265, Annex B).
    H265,
    /// AV1, temporal units of the low-overhead format.
    Av1,
    /// VP9, frames or superframes.
    Vp9,
    /// VP8, frames.
    Vp8,
    /// MPEG-2 and MPEG-1 video, elementary stream.
    Mpeg2,
    /// Motion JPEG, images one after another.
    Mjpeg,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Codec; 7] = [
        Codec::H264,
        Codec::H265,
        Codec::Av1,
        Codec::Vp9,
        Codec::Vp8,
        Codec::Mpeg2,
        Codec::Mjpeg,
    ];
}

/// How chroma is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Luma alone.
    Monochrome,
    /// Half the columns, half the rows.
    Yuv420,
    /// Half the columns, every row.
    Yuv422,
    /// As luma.
    Yuv444,
}

/// The part of a picture that is meant to be seen, in luma samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Crop {
    /// Columns left of it.
    pub left: u32,
    /// Rows above it.
    pub top: u32,
    /// Its columns, at least 1.
    pub width: u32,
    /// Its rows, at least 1.
    pub height: u32,
}

/// How far pictures come in another order than they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reorder {
    /// The stream says it, or its format settles it.
    Declared,
    /// It may be as far as the level allows.
    UpToLevel,
    /// Pictures come in the order in which they are shown.
    None,
}

/// What a sequence header says. Two equal values need no new decoder between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence {
    /// Coded columns.
    pub width: u32,
    /// Coded rows.
    pub height: u32,
    /// What is to be seen of them.
    pub crop: Crop,
    /// Bits a luma sample.
    pub depth: u32,
    /// Bits a chroma sample.
    pub chroma_depth: u32,
    /// Chroma sampling.
    pub sampling: Sampling,
    /// Whether every picture is a frame of one moment. Otherwise pictures may be interlaced.
    pub progressive: bool,
    /// Frames a second as a fraction, where the stream says.
    pub frame_rate: Option<(u32, u32)>,
    /// Width to height of a sample, where the stream says.
    pub sample_aspect: Option<(u32, u32)>,
    /// The codec's own number for the profile, 0 where it has none.
    pub profile: u32,
    /// The codec's own number for the level, 0 where it has none.
    pub level: u32,
    /// Pictures that a decoder may have to keep.
    pub references: u32,
    /// Reordering.
    pub reorder: Reorder,
}

impl Sequence {
    /// A sequence of which only size, depth and sampling are known.
    pub(crate) fn plain(width: u32, height: u32, depth: u32, sampling: Sampling) -> Option<Self> {
        // 65535 is the largest size that any of the headers can carry; the product bounds allocations.
        if width == 0 || height == 0 || width > 65_536 || height > 65_536 {
            return None;
        }
        Some(Self {
            width,
            height,
            crop: Crop {
                left: 0,
                top: 0,
                width,
                height,
            },
            depth,
            chroma_depth: depth,
            sampling,
            progressive: true,
            frame_rate: None,
            sample_aspect: None,
            profile: 0,
            level: 0,
            references: 1,
            reorder: Reorder::Declared,
        })
    }

    /// Sets the crop from what is cut off at each side; `None` where nothing would be left.
    pub(crate) fn cut(mut self, left: u32, right: u32, top: u32, bottom: u32) -> Option<Self> {
        let across = left.checked_add(right)?;
        let down = top.checked_add(bottom)?;
        if across >= self.width || down >= self.height {
            return None;
        }
        self.crop = Crop {
            left,
            top,
            width: self.width - across,
            height: self.height - down,
        };
        Some(self)
    }
}

/// The sample aspect ratios of table E-1 (H.264 and H.265), by `aspect_ratio_idc`.
pub(crate) const SAMPLE_ASPECTS: [(u32, u32); 17] = [
    (0, 0),
    (1, 1),
    (12, 11),
    (10, 11),
    (16, 11),
    (40, 33),
    (24, 11),
    (20, 11),
    (32, 11),
    (80, 33),
    (18, 11),
    (15, 11),
    (64, 33),
    (160, 99),
    (4, 3),
    (3, 2),
    (2, 1),
];
