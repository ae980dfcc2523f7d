// SPDX-License-Identifier: MPL-2.0

//! [`Inspector`]: how an access unit is coded, told from its headers before it is decoded.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use ff::AVPictureStructure::*;
use ffmpeg_sys_next as ff;

use crate::decoder::{Codec, Error};
use crate::picture::PictureKind;

/// What an access unit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// A frame, or what its codec does not tell apart.
    Frame,
    /// A top field.
    TopField,
    /// A bottom field.
    BottomField,
}

/// How an access unit is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitInfo {
    /// How its picture is predicted.
    pub kind: PictureKind,
    /// Frame or field.
    pub structure: Structure,
}

/// libavcodec's parser of one codec, which remembers parameter sets from unit to unit.
#[derive(Debug)]
pub struct Inspector {
    parser: NonNull<ff::AVCodecParserContext>,
    context: NonNull<ff::AVCodecContext>,
    /// The unit with the padding that libavcodec reads into.
    padded: Vec<u8>,
}

// SAFETY: parser and context may be used from any thread as long as one uses them at a time.
unsafe impl Send for Inspector {}

fn id(codec: Codec) -> ff::AVCodecID {
    use ff::AVCodecID::*;
    match codec {
        Codec::H264 => AV_CODEC_ID_H264,
        Codec::H265 => AV_CODEC_ID_HEVC,
        Codec::Av1 => AV_CODEC_ID_AV1,
        Codec::Vp9 => AV_CODEC_ID_VP9,
        Codec::Vp8 => AV_CODEC_ID_VP8,
        Codec::Mpeg2 => AV_CODEC_ID_MPEG2VIDEO,
        Codec::Mjpeg => AV_CODEC_ID_MJPEG,
    }
}

impl Inspector {
    /// A parser that has seen nothing.
    ///
    /// # Errors
    /// [`Error::NoDecoder`] where libavcodec has no parser for the codec, [`Error::NoMemory`].
    pub fn new(codec: Codec) -> Result<Self, Error> {
        // A number in older versions, the enumeration in FFmpeg 9.
        // SAFETY: any value is allowed.
        let parser = unsafe { ff::av_parser_init(id(codec) as _) };
        let mut parser = NonNull::new(parser).ok_or(Error::NoDecoder(codec))?;
        // SAFETY: a context without a codec is what a parser needs.
        let context = NonNull::new(unsafe { ff::avcodec_alloc_context3(ptr::null()) });
        let Some(mut context) = context else {
            // SAFETY: the parser is nobody else's.
            unsafe { ff::av_parser_close(parser.as_ptr()) };
            return Err(Error::NoMemory);
        };
        // SAFETY: it was allocated above.
        let parser_mut = unsafe { parser.as_mut() };
        parser_mut.flags |= ff::PARSER_FLAG_COMPLETE_FRAMES as c_int;
        // SAFETY: as above.
        let context_mut = unsafe { context.as_mut() };
        context_mut.log_level_offset = ff::AV_LOG_DEBUG - ff::AV_LOG_ERROR;
        Ok(Self {
            parser,
            context,
            padded: Vec::new(),
        })
    }

    /// Reads the headers of one access unit. What they do not tell counts as an intra frame.
    pub fn inspect(&mut self, unit: &[u8]) -> UnitInfo {
        let nothing = UnitInfo {
            kind: PictureKind::I,
            structure: Structure::Frame,
        };
        let Ok(size) = c_int::try_from(unit.len()) else {
            return nothing;
        };
        self.padded.clear();
        self.padded.extend_from_slice(unit);
        self.padded
            .resize(unit.len() + ff::AV_INPUT_BUFFER_PADDING_SIZE as usize, 0);
        let (mut out, mut out_size) = (ptr::null_mut(), 0);
        // SAFETY: parser and context belong together, the input is padded, and the output is looked at by
        // nobody.
        unsafe {
            ff::av_parser_parse2(
                self.parser.as_ptr(),
                self.context.as_ptr(),
                &mut out,
                &mut out_size,
                self.padded.as_ptr(),
                size,
                ff::AV_NOPTS_VALUE,
                ff::AV_NOPTS_VALUE,
                0,
            )
        };
        // SAFETY: the parser is alive.
        let parser = unsafe { self.parser.as_ref() };
        let kind = match parser.pict_type {
            kind if kind == ff::AVPictureType::AV_PICTURE_TYPE_P as c_int => PictureKind::P,
            kind if kind == ff::AVPictureType::AV_PICTURE_TYPE_B as c_int => PictureKind::B,
            _ => PictureKind::I,
        };
        let structure = match parser.picture_structure {
            AV_PICTURE_STRUCTURE_TOP_FIELD => Structure::TopField,
            AV_PICTURE_STRUCTURE_BOTTOM_FIELD => Structure::BottomField,
            _ => Structure::Frame,
        };
        UnitInfo { kind, structure }
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        // SAFETY: the parser is given up here.
        unsafe { ff::av_parser_close(self.parser.as_ptr()) };
        let mut context = self.context.as_ptr();
        // SAFETY: so is the context.
        unsafe { ff::avcodec_free_context(&mut context) };
    }
}
