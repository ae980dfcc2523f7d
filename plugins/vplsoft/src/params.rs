// SPDX-License-Identifier: MPL-2.0

//! Sequence headers and pictures in terms of `mfxVideoParam` and `mfxFrameInfo`.

use av_backend::{FieldOrder, Picture};
use elementary_stream::{Codec, Sampling, Sequence};
use onevpl_sys::*;

/// Operations in flight where the client does not say.
pub(crate) const DEFAULT_ASYNC_DEPTH: u16 = 4;
/// Operations in flight at most.
pub(crate) const MAX_ASYNC_DEPTH: u16 = 16;
/// Columns and rows at most. libavcodec takes more; the interface's 16-bit fields end at 65535.
pub(crate) const MAX_SIZE: u16 = 16384;

/// The codec of a `CodecId`.
pub(crate) fn codec_of(id: u32) -> Option<Codec> {
    CODECS
        .iter()
        .find(|(_, known)| *known == id)
        .map(|(codec, _)| *codec)
}

/// Every codec with its `CodecId`.
pub(crate) const CODECS: [(Codec, u32); 7] = [
    (Codec::H264, MFX_CODEC_AVC),
    (Codec::H265, MFX_CODEC_HEVC),
    (Codec::Av1, MFX_CODEC_AV1),
    (Codec::Vp9, MFX_CODEC_VP9),
    (Codec::Vp8, MFX_CODEC_VP8),
    (Codec::Mpeg2, MFX_CODEC_MPEG2),
    (Codec::Mjpeg, MFX_CODEC_JPEG),
];

/// How a surface's memory is laid out: luma rows, then chroma rows, one pitch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Bytes from one row to the next, a multiple of 64.
    pub(crate) pitch: usize,
    /// Luma rows, even.
    pub(crate) rows: usize,
    /// Bytes a sample.
    pub(crate) sample_bytes: usize,
}

impl Layout {
    pub(crate) fn of(info: &mfxFrameInfo) -> Self {
        let size = size(info);
        let sample_bytes = if info.FourCC == MFX_FOURCC_P010 { 2 } else { 1 };
        Self {
            pitch: (usize::from(size.Width) * sample_bytes).next_multiple_of(64),
            rows: usize::from(size.Height),
            sample_bytes,
        }
    }

    pub(crate) fn luma_bytes(self) -> usize {
        self.pitch * self.rows
    }

    pub(crate) fn bytes(self) -> usize {
        self.luma_bytes() + self.pitch * self.rows.div_ceil(2)
    }
}

/// Size and crop in an `mfxFrameInfo`.
pub(crate) type Size = mfxFrameInfo__bindgen_ty_1__bindgen_ty_1;

/// Reads size and crop.
pub(crate) fn size(info: &mfxFrameInfo) -> Size {
    // SAFETY: both arms of the union are plain integers; any bytes are valid.
    unsafe { info.__bindgen_anon_1.__bindgen_anon_1 }
}

/// Writes size and crop.
pub(crate) fn set_size(info: &mut mfxFrameInfo, size: Size) {
    info.__bindgen_anon_1 = mfxFrameInfo__bindgen_ty_1 {
        __bindgen_anon_1: size,
    };
}

/// The decoder's part of an `mfxVideoParam`.
pub(crate) fn mfx(par: &mfxVideoParam) -> &mfxInfoMFX {
    // SAFETY: both arms of the union are plain integers; any bytes are valid.
    unsafe { &par.__bindgen_anon_1.mfx }
}

/// The decoder's part of an `mfxVideoParam`, to change.
pub(crate) fn mfx_mut(par: &mut mfxVideoParam) -> &mut mfxInfoMFX {
    // SAFETY: both arms of the union are plain integers; any bytes are valid.
    unsafe { &mut par.__bindgen_anon_1.mfx }
}

/// The decoding options of an `mfxInfoMFX`.
pub(crate) fn decoding_options(info: &mfxInfoMFX) -> mfxInfoMFX__bindgen_ty_1__bindgen_ty_2 {
    // SAFETY: every arm of the union is plain integers; any bytes are valid.
    unsafe { info.__bindgen_anon_1.__bindgen_anon_2 }
}

/// Writes what a sequence header says. Everything else in `par` stays.
pub(crate) fn fill(par: &mut mfxVideoParam, codec: Codec, sequence: &Sequence) {
    let info = frame_info(sequence);
    let mfx = mfx_mut(par);
    mfx.FrameInfo = info;
    (mfx.CodecProfile, mfx.CodecLevel) = profile_and_level(codec, sequence);
    let mut options = decoding_options(mfx);
    options.MaxDecFrameBuffering = sequence.references as u16;
    mfx.__bindgen_anon_1.__bindgen_anon_2 = options;
}

fn profile_and_level(codec: Codec, sequence: &Sequence) -> (u16, u16) {
    let (profile, level) = (sequence.profile, sequence.level);
    let (profile, level) = match codec {
        Codec::H264 | Codec::Mpeg2 => (profile, level),
        Codec::H265 => (profile, level / 3),
        Codec::Vp8 | Codec::Mjpeg => (1, 0),
        Codec::Vp9 => (profile + 1, 0),
        Codec::Av1 => (profile + 1, (2 + level / 4) * 10 + level % 4),
    };
    (profile as u16, level as u16)
}

/// The surfaces that a sequence needs.
pub(crate) fn frame_info(sequence: &Sequence) -> mfxFrameInfo {
    let mut info = mfxFrameInfo::default();
    let crop = sequence.crop;
    set_size(
        &mut info,
        Size {
            Width: aligned(sequence.width, 16),
            Height: aligned(sequence.height, if sequence.progressive { 16 } else { 32 }),
            CropX: crop.left as u16,
            CropY: crop.top as u16,
            CropW: crop.width as u16,
            CropH: crop.height as u16,
        },
    );
    set_depth(&mut info, sequence.depth.max(sequence.chroma_depth));
    info.ChromaFormat = match sequence.sampling {
        Sampling::Monochrome => MFX_CHROMAFORMAT_MONOCHROME,
        Sampling::Yuv420 => MFX_CHROMAFORMAT_YUV420,
        Sampling::Yuv422 => MFX_CHROMAFORMAT_YUV422,
        Sampling::Yuv444 => MFX_CHROMAFORMAT_YUV444,
    } as u16;
    info.PicStruct = if sequence.progressive {
        MFX_PICSTRUCT_PROGRESSIVE
    } else {
        MFX_PICSTRUCT_UNKNOWN
    } as u16;
    if let Some((num, den)) = sequence.frame_rate {
        (info.FrameRateExtN, info.FrameRateExtD) = (num, den);
    }
    set_aspect(&mut info, sequence.sample_aspect);
    info
}

fn set_depth(info: &mut mfxFrameInfo, depth: u32) {
    info.BitDepthLuma = depth as u16;
    info.BitDepthChroma = depth as u16;
    info.Shift = u16::from(depth > 8);
    info.FourCC = if depth > 8 {
        MFX_FOURCC_P010
    } else {
        MFX_FOURCC_NV12
    };
}

fn set_aspect(info: &mut mfxFrameInfo, ratio: Option<(u32, u32)>) {
    if let Some((across, down)) = ratio
        && let (Ok(across), Ok(down)) = (u16::try_from(across), u16::try_from(down))
    {
        (info.AspectRatioW, info.AspectRatioH) = (across, down);
    }
}

/// Rounded up, and 0 where the field cannot hold it (which every check refuses).
fn aligned(value: u32, to: u32) -> u16 {
    u16::try_from(value.next_multiple_of(to)).unwrap_or(0)
}

/// What a picture's surface shows. `expected` is what the sequence header announced; the picture knows better.
pub(crate) fn picture_info(expected: &mfxFrameInfo, picture: &Picture) -> mfxFrameInfo {
    let mut info = *expected;
    let (left, top, width, height) = picture.crop();
    let announced = size(expected);
    // An interlaced sequence's rows are a multiple of 32.
    let rows = if announced.Height.is_multiple_of(32)
        && expected.PicStruct == MFX_PICSTRUCT_UNKNOWN as u16
    {
        32
    } else {
        16
    };
    set_size(
        &mut info,
        Size {
            Width: aligned(picture.width() as u32, 16),
            Height: aligned(picture.height() as u32, rows),
            CropX: left as u16,
            CropY: top as u16,
            CropW: width as u16,
            CropH: height as u16,
        },
    );
    if let Some((_, depth)) = picture.format() {
        set_depth(&mut info, depth);
    }
    set_aspect(&mut info, picture.sample_aspect_ratio());
    let repeat = match picture.repeat_fields() {
        0 => 0,
        1 => MFX_PICSTRUCT_FIELD_REPEATED,
        2 | 3 => MFX_PICSTRUCT_FRAME_DOUBLING,
        _ => MFX_PICSTRUCT_FRAME_TRIPLING,
    };
    let fields = match picture.field_order() {
        FieldOrder::Progressive => MFX_PICSTRUCT_PROGRESSIVE,
        FieldOrder::TopFirst => MFX_PICSTRUCT_FIELD_TFF,
        FieldOrder::BottomFirst => MFX_PICSTRUCT_FIELD_BFF,
    };
    info.PicStruct = (fields | repeat) as u16;
    info
}

/// Whether surfaces of one description hold pictures of the other without a change.
pub(crate) fn same_surfaces(one: &mfxFrameInfo, other: &mfxFrameInfo) -> bool {
    let (a, b) = (size(one), size(other));
    (a.Width, a.Height, one.FourCC) == (b.Width, b.Height, other.FourCC)
}

/// Checks the parameters of a decoder; `what` is set to 0 where it cannot be.
pub(crate) fn check(par: &mut mfxVideoParam) -> Result<Codec, MfxStatus> {
    let codec = codec_of(mfx(par).CodecId)
        .filter(|codec| av_backend::is_available(*codec))
        .ok_or(MfxStatus::ERR_UNSUPPORTED);
    let mut wrong = codec.is_err();
    let mut refuse = |field: &mut u16| {
        *field = 0;
        wrong = true;
    };
    if par.IOPattern != MFX_IOPATTERN_OUT_SYSTEM_MEMORY as u16 {
        refuse(&mut par.IOPattern);
    }
    if par.Protected != 0 {
        refuse(&mut par.Protected);
    }
    let mfx = mfx_mut(par);
    if codec.is_err() {
        mfx.CodecId = 0;
    }
    let info = &mut mfx.FrameInfo;
    let mut size = size(info);
    for side in [&mut size.Width, &mut size.Height] {
        if *side == 0 || !side.is_multiple_of(16) || *side > MAX_SIZE {
            refuse(side);
        }
    }
    let fits = |from: u16, length: u16, whole: u16| {
        u32::from(from) + u32::from(length) <= u32::from(whole)
    };
    if !fits(size.CropX, size.CropW, size.Width) {
        refuse(&mut size.CropW);
    }
    if !fits(size.CropY, size.CropH, size.Height) {
        refuse(&mut size.CropH);
    }
    set_size(info, size);
    let chroma = u32::from(info.ChromaFormat);
    if chroma != MFX_CHROMAFORMAT_YUV420 && chroma != MFX_CHROMAFORMAT_MONOCHROME {
        refuse(&mut info.ChromaFormat);
    }
    // A client may leave the depth open; 0 stands for the format's own.
    let depths: &[u16] = match info.FourCC {
        MFX_FOURCC_NV12 => &[0, 8],
        MFX_FOURCC_P010 => &[0, 10],
        _ => {
            info.FourCC = 0;
            refuse(&mut info.BitDepthLuma);
            &[0]
        }
    };
    for depth in [&mut info.BitDepthLuma, &mut info.BitDepthChroma] {
        if !depths.contains(depth) {
            refuse(depth);
        }
    }
    match codec {
        Ok(codec) if !wrong => Ok(codec),
        _ => Err(MfxStatus::ERR_UNSUPPORTED),
    }
}

/// The operations in flight that a client may have.
pub(crate) fn async_depth(par: &mfxVideoParam) -> u16 {
    match par.AsyncDepth {
        0 => DEFAULT_ASYNC_DEPTH,
        depth => depth.min(MAX_ASYNC_DEPTH),
    }
}
