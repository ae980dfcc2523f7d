// SPDX-License-Identifier: MPL-2.0

//! [`Picture`]: what a decoder gives, seen safely.

use std::ptr::NonNull;

use ff::AVPixelFormat::*;
use ffmpeg_sys_next as ff;

/// How chroma is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chroma {
    /// Luma alone.
    None,
    /// Half the columns, half the rows.
    Half,
    /// Half the columns, every row.
    HalfColumns,
    /// As luma.
    Full,
}

/// How a picture was predicted, as its slices say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PictureKind {
    /// Intra.
    I,
    /// From one direction.
    P,
    /// From two directions.
    B,
}

/// Progressive, or interlaced with the first field named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldOrder {
    /// One moment in time.
    Progressive,
    /// Two fields, the top one first.
    TopFirst,
    /// Two fields, the bottom one first.
    BottomFirst,
}

/// What the decoder knows to be wrong with a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Part of the data could not be decoded; what is missing was concealed.
    pub slices: bool,
    /// A reference picture is missing.
    pub reference: bool,
    /// The decoder marks the picture as a whole.
    pub whole: bool,
}

impl Damage {
    /// Whether anything is wrong.
    pub fn any(self) -> bool {
        self.slices || self.reference || self.whole
    }
}

/// One plane of samples: 8-bit, or 16-bit words in the machine's order with the value in the low bits.
#[derive(Clone, Copy, Debug)]
pub struct PlaneView<'a> {
    /// The rows, `stride` apart; the last may be shorter than the stride.
    pub data: &'a [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Samples in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// A decoded picture. The samples stay valid after the decoder that made it is gone.
#[derive(Debug)]
pub struct Picture {
    frame: NonNull<ff::AVFrame>,
}

// SAFETY: the frame and its reference-counted buffers have no thread of their own, and nothing is written.
unsafe impl Send for Picture {}

impl Picture {
    /// Takes over a frame that `av_frame_alloc` made.
    pub(crate) fn adopt(frame: NonNull<ff::AVFrame>) -> Self {
        Self { frame }
    }

    fn frame(&self) -> &ff::AVFrame {
        // SAFETY: the frame is owned, allocated and only read.
        unsafe { self.frame.as_ref() }
    }

    /// Chroma sampling and bits a sample, or `None` for a pixel format that no video codec here uses.
    pub fn format(&self) -> Option<(Chroma, u32)> {
        let format = self.frame().format;
        const FORMATS: [(ff::AVPixelFormat, Chroma, u32); 16] = [
            (AV_PIX_FMT_YUV420P, Chroma::Half, 8),
            (AV_PIX_FMT_YUVJ420P, Chroma::Half, 8),
            (AV_PIX_FMT_YUV420P10LE, Chroma::Half, 10),
            (AV_PIX_FMT_YUV420P12LE, Chroma::Half, 12),
            (AV_PIX_FMT_YUV422P, Chroma::HalfColumns, 8),
            (AV_PIX_FMT_YUVJ422P, Chroma::HalfColumns, 8),
            (AV_PIX_FMT_YUV422P10LE, Chroma::HalfColumns, 10),
            (AV_PIX_FMT_YUV422P12LE, Chroma::HalfColumns, 12),
            (AV_PIX_FMT_YUV444P, Chroma::Full, 8),
            (AV_PIX_FMT_YUVJ444P, Chroma::Full, 8),
            (AV_PIX_FMT_YUV444P10LE, Chroma::Full, 10),
            (AV_PIX_FMT_YUV444P12LE, Chroma::Full, 12),
            (AV_PIX_FMT_GRAY8, Chroma::None, 8),
            (AV_PIX_FMT_GRAY10LE, Chroma::None, 10),
            (AV_PIX_FMT_GRAY12LE, Chroma::None, 12),
            (AV_PIX_FMT_GRAY16LE, Chroma::None, 16),
        ];
        FORMATS
            .iter()
            .find(|(known, _, _)| *known as i32 == format)
            .map(|(_, chroma, depth)| (*chroma, *depth))
    }

    /// Columns of the coded area, crop included.
    pub fn width(&self) -> usize {
        usize::try_from(self.frame().width).unwrap_or(0)
    }

    /// Rows of the coded area, crop included.
    pub fn height(&self) -> usize {
        usize::try_from(self.frame().height).unwrap_or(0)
    }

    /// The part that is meant to be seen: left, top, width, height. Never outside the coded area.
    pub fn crop(&self) -> (usize, usize, usize, usize) {
        let frame = self.frame();
        let (width, height) = (self.width(), self.height());
        let across = frame.crop_left.saturating_add(frame.crop_right);
        let down = frame.crop_top.saturating_add(frame.crop_bottom);
        if across >= width || down >= height {
            return (0, 0, width, height); // a crop that leaves nothing is not one
        }
        (
            frame.crop_left,
            frame.crop_top,
            width - across,
            height - down,
        )
    }

    /// The plane `index` (0 luma, 1 and 2 chroma), or `None` where the format has none.
    pub fn plane(&self, index: usize) -> Option<PlaneView<'_>> {
        let (chroma, depth) = self.format()?;
        let (width, height) = match (index, chroma) {
            (0, _) => (self.width(), self.height()),
            (1 | 2, Chroma::Half) => (self.width().div_ceil(2), self.height().div_ceil(2)),
            (1 | 2, Chroma::HalfColumns) => (self.width().div_ceil(2), self.height()),
            (1 | 2, Chroma::Full) => (self.width(), self.height()),
            _ => return None,
        };
        let stride = usize::try_from(self.frame().linesize[index]).ok()?;
        let row = width * if depth > 8 { 2 } else { 1 };
        let start = NonNull::new(self.frame().data[index])?;
        if height == 0 || row == 0 || stride < row {
            return None;
        }
        let length = stride * (height - 1) + row;
        // SAFETY: libavcodec allocated each plane with at least `height` rows of `stride` bytes, the frame
        // holds a reference to that memory, and nobody writes to a frame that was given out.
        let data = unsafe { std::slice::from_raw_parts(start.as_ptr(), length) };
        Some(PlaneView {
            data,
            stride,
            width,
            height,
        })
    }

    /// The token of the packet in which the picture begins.
    pub fn token(&self) -> Option<i64> {
        let pts = self.frame().pts;
        (pts != ff::AV_NOPTS_VALUE).then_some(pts)
    }

    /// What [`Surfaces`](crate::Surfaces) tied to its buffer.
    pub fn tag(&self) -> Option<crate::surfaces::Tag> {
        crate::surfaces::tag_of(self.frame())
    }

    /// How it was predicted. What is neither P nor B counts as I.
    pub fn kind(&self) -> PictureKind {
        use ff::AVPictureType::*;
        match self.frame().pict_type {
            AV_PICTURE_TYPE_P | AV_PICTURE_TYPE_S | AV_PICTURE_TYPE_SP => PictureKind::P,
            AV_PICTURE_TYPE_B => PictureKind::B,
            _ => PictureKind::I,
        }
    }

    /// Progressive or which field is first.
    pub fn field_order(&self) -> FieldOrder {
        let frame = self.frame();
        #[cfg(field_flags)]
        let (interlaced, top_first) = (
            frame.flags & ff::AV_FRAME_FLAG_INTERLACED != 0,
            frame.flags & ff::AV_FRAME_FLAG_TOP_FIELD_FIRST != 0,
        );
        #[cfg(not(field_flags))]
        let (interlaced, top_first) = (frame.interlaced_frame != 0, frame.top_field_first != 0);
        match (interlaced, top_first) {
            (false, _) => FieldOrder::Progressive,
            (true, true) => FieldOrder::TopFirst,
            (true, false) => FieldOrder::BottomFirst,
        }
    }

    /// Fields by which the picture is to be shown longer than usual.
    pub fn repeat_fields(&self) -> u32 {
        u32::try_from(self.frame().repeat_pict).unwrap_or(0)
    }

    /// Width to height of a sample, or `None` where the stream does not say.
    pub fn sample_aspect_ratio(&self) -> Option<(u32, u32)> {
        let ratio = self.frame().sample_aspect_ratio;
        match (u32::try_from(ratio.num), u32::try_from(ratio.den)) {
            (Ok(num @ 1..), Ok(den @ 1..)) => Some((num, den)),
            _ => None,
        }
    }

    /// What the decoder knows to be wrong.
    pub fn damage(&self) -> Damage {
        let frame = self.frame();
        let errors = frame.decode_error_flags;
        let data = ff::FF_DECODE_ERROR_INVALID_BITSTREAM
            | ff::FF_DECODE_ERROR_CONCEALMENT_ACTIVE
            | ff::FF_DECODE_ERROR_DECODE_SLICES;
        Damage {
            slices: errors & data != 0,
            reference: errors & ff::FF_DECODE_ERROR_MISSING_REFERENCE != 0,
            whole: frame.flags & ff::AV_FRAME_FLAG_CORRUPT != 0,
        }
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        let mut frame = self.frame.as_ptr();
        // SAFETY: the frame is owned and given up here.
        unsafe { ff::av_frame_free(&mut frame) };
    }
}
