// SPDX-License-Identifier: MPL-2.0

//! What the ring asks of a decoder library: [`GpuApi`], with the types that cross it.
//!
//! The trait has the shape of NVIDIA's API (`nvcuvid.h`, `cuviddec.h`) without its pointers, so that both
//! the real library and a scripted model fit. Which thread makes which call, in which order, stands at
//! [`GpuApi`].

use std::fmt;
use std::sync::Arc;

/// Decode surfaces an NVDEC decoder can have at most.
pub const MAX_DECODE_SURFACES: u8 = 32;

/// The caller's name for a compressed frame. Grows from packet to packet within a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameToken(pub u64);

/// Bytes that can go to another thread, such as a mapped buffer.
pub type PacketData = Box<dyn AsRef<[u8]> + Send>;

/// One access unit (H.264, H.265, MPEG-2), frame or superframe (VP8, VP9), or temporal unit (AV1).
pub struct Packet {
    /// Must be greater than the token of every packet before it.
    pub token: FrameToken,
    /// The compressed bytes.
    pub data: PacketData,
    /// Parameter sets, sent before `data` when the parser is new or has been drained, because it then
    /// needs them again. `None` where every key picture carries its own.
    pub headers: Option<Arc<[u8]>>,
    /// `data` is exactly one frame or field (`CUVID_PKT_ENDOFPICTURE`): the parser decodes it at once
    /// instead of with the next packet, and drops whatever follows the first picture.
    pub end_of_picture: bool,
    /// Data is missing before this packet (`CUVID_PKT_DISCONTINUITY`).
    pub discontinuity: bool,
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("token", &self.token)
            .field("bytes", &(*self.data).as_ref().len())
            .field("end_of_picture", &self.end_of_picture)
            .finish_non_exhaustive()
    }
}

/// What one `cuvidParseVideoData` is given.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParserInput<'a> {
    /// The bytes; empty at the end of the stream.
    pub data: &'a [u8],
    /// `CUVID_PKT_TIMESTAMP` and its value. Never used as an identity: the parser reorders it.
    pub timestamp: Option<i64>,
    /// `CUVID_PKT_ENDOFPICTURE`.
    pub end_of_picture: bool,
    /// `CUVID_PKT_ENDOFSTREAM`: show what is left, then start anew.
    pub end_of_stream: bool,
    /// `CUVID_PKT_DISCONTINUITY`.
    pub discontinuity: bool,
}

/// What the ring needs to know of the picture to be decoded (from `CUVIDPICPARAMS`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureInfo {
    /// The surface that is shown: `CurrPicIdx`, below 32.
    pub index: u8,
    /// The second surface written by an AV1 picture with film grain, the one without grain
    /// (`CUVIDAV1PICPARAMS::decodePicIdx`). `None` where it equals `index`.
    pub film_grain_reference: Option<u8>,
    /// Refers to no other picture (`intra_pic_flag`, or the codec's key frame flag where the parser does
    /// not fill that). Ends the mark of pictures that depend on a damaged one.
    pub intra: bool,
    /// Other pictures may refer to it (`ref_pic_flag`).
    pub reference: bool,
    /// The second field of the frame in `index` (`second_field`).
    pub second_field: bool,
}

/// What the parser says of a picture to be shown (from `CUVIDPARSERDISPINFO`, without its timestamp).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisplayInfo {
    /// `picture_index`, below 32.
    pub index: u8,
    /// `progressive_frame`.
    pub progressive: bool,
    /// `top_field_first`.
    pub top_field_first: bool,
    /// `repeat_first_field`: fields shown again, -1 for a field without its pair.
    pub repeat_first_field: i8,
}

/// What `cuvidGetDecodeStatus` says of a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeStatus {
    /// 1: not finished.
    InProgress,
    /// 2: finished.
    Success,
    /// 8: finished with errors.
    Error,
    /// 9: finished with errors that were concealed.
    Concealed,
    /// 0 or a number the header does not know: nothing can be said. The map tells.
    Unknown,
}

/// What follows from an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The device or the library cannot do this at all.
    NotSupported,
    /// The context is broken: every later call in it fails too.
    Sticky,
    /// This call alone failed.
    Single,
}

impl ErrorClass {
    /// The class of a `CUresult` (numbers from `cuda.h`). 0, success, is nobody's error.
    pub const fn of_cuda(code: i32) -> Self {
        match code {
            // CUDA_ERROR_NOT_SUPPORTED
            801 => Self::NotSupported,
            // DEINITIALIZED, DEVICE_UNAVAILABLE, ECC_UNCORRECTABLE, ILLEGAL_ADDRESS, LAUNCH_TIMEOUT,
            // CONTEXT_IS_DESTROYED, HARDWARE_STACK_ERROR to LAUNCH_FAILED, UNKNOWN
            4 | 46 | 214 | 700 | 702 | 709 | 714..=719 | 999 => Self::Sticky,
            _ => Self::Single,
        }
    }
}

/// A call of the library that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {text} (error {code})")]
pub struct GpuError {
    /// The function, as the library names it.
    pub call: &'static str,
    /// The `CUresult`.
    pub code: i32,
    /// Its name or description.
    pub text: String,
    /// What follows from it.
    pub class: ErrorClass,
}

/// How many surfaces and slots a decoder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurfacePlan {
    /// `ulNumDecodeSurfaces`: what the stream needs, and one for each picture that waits in the ring.
    pub decode_surfaces: u8,
    /// `ulNumOutputSurfaces`: how many pictures are mapped at a time.
    pub output_surfaces: u8,
    /// Slots of the ring in use: the depth asked for, less where 32 decode surfaces do not suffice.
    pub ring_depth: u8,
}

/// The answer to the parser's sequence callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceReply {
    /// 0: fail the parse.
    Fail,
    /// The number of decode surfaces the parser may use.
    Surfaces(u8),
}

/// The parser's callbacks. They come on the thread that called [`GpuApi::parse`], during that call.
pub trait ParserEvents<G: GpuApi> {
    /// `pfnSequenceCallback`: the first header, a change of format, or the first header after the end of a
    /// stream.
    fn sequence(&mut self, format: &G::Format) -> SequenceReply;

    /// `pfnDecodePicture`, in decode order; two calls for a pair of fields. False fails the parse.
    fn decode(&mut self, info: PictureInfo, params: &G::Params) -> bool;

    /// `pfnDisplayPicture`, in display order; `None` is the end of the stream. False fails the parse.
    fn display(&mut self, shown: Option<DisplayInfo>) -> bool;
}

/// A decoder library.
///
/// | call | thread | when |
/// |---|---|---|
/// | [`open_context`](Self::open_context) | parser | first call of the session; again when the context is broken |
/// | [`create_parser`](Self::create_parser) | parser | after the context; again after each flush (the old one is dropped first) |
/// | [`parse`](Self::parse) | parser | once a packet, once more for headers, once for the end of the stream |
/// | [`create_decoder`](Self::create_decoder) | parser | in the sequence callback, or in the decode callback to replace a broken decoder; the old one is dropped first; no slot is occupied and no surface mapped |
/// | [`fits`](Self::fits), [`reconfigure`](Self::reconfigure) | parser | in the sequence callback, under the same conditions |
/// | [`decode`](Self::decode) | parser | in the decode callback, once the ring no longer needs the surface |
/// | [`status`](Self::status) | worker | for the oldest picture not mapped yet, and for surfaces in quarantine; never again in a decoder that answered `NotSupported` |
/// | [`map`](Self::map) | worker | once a picture, in display order, at most `output_surfaces` at a time |
/// | [`begin_copy`](Self::begin_copy) | worker | directly after the map |
/// | [`finish_copy`](Self::finish_copy) | worker | once a copy begun; the next picture may be mapped between, if its status is known |
/// | [`unmap`](Self::unmap) | worker | once a map, after `finish_copy`, or directly after a `begin_copy` that failed |
///
/// Both threads belong to the ring. None of its locks is held during a call; each call may block for ever
/// (the thread is then abandoned together with its references), so an implementation must not share a lock
/// of its own between the two threads. Each call makes its context current for its own duration.
///
/// Dropping a parser, decoder or context destroys it. A decoder keeps its context, a context the library:
/// whichever thread lets go last destroys. In a session that is not abandoned that is the parser thread, and
/// nothing is mapped then.
pub trait GpuApi: Send + Sync + Sized + 'static {
    /// A CUDA context with what belongs to it: streams, events, pinned buffers.
    type Context: Send + Sync;
    /// `CUvideoparser`.
    type Parser: Send;
    /// `CUvideodecoder`, with its context.
    type Decoder: Send + Sync;
    /// Everything of `CUVIDEOFORMAT` that a decoder depends on; equal only if all of it is.
    type Format: Clone + PartialEq + Send + Sync;
    /// `CUVIDPICPARAMS`.
    type Params;
    /// A mapped output surface.
    type Mapped: Send;
    /// A copy under way: its event and its destination.
    type Copy: Send;
    /// The copied picture, in host or device memory.
    type Frame: Send;

    /// Retains the device's context and prepares streams and events.
    ///
    /// # Errors
    /// The device cannot be opened.
    fn open_context(&self) -> Result<Self::Context, GpuError>;

    /// `cuvidCreateVideoParser`, for the codec and display delay the implementation was made with.
    ///
    /// # Errors
    /// The library refuses.
    fn create_parser(&self) -> Result<Self::Parser, GpuError>;

    /// `cuvidParseVideoData`: calls `events` before it returns.
    ///
    /// # Errors
    /// The library or a callback failed.
    fn parse(
        &self,
        parser: &mut Self::Parser,
        input: ParserInput<'_>,
        events: &mut dyn ParserEvents<Self>,
    ) -> Result<(), GpuError>;

    /// `min_num_decode_surfaces` of a format.
    fn min_decode_surfaces(&self, format: &Self::Format) -> u8;

    /// `cuvidGetDecoderCaps` and `cuvidCreateDecoder`.
    ///
    /// # Errors
    /// [`ErrorClass::NotSupported`] where the device cannot decode the format.
    fn create_decoder(
        &self,
        context: &Arc<Self::Context>,
        format: &Self::Format,
        plan: SurfacePlan,
    ) -> Result<Self::Decoder, GpuError>;

    /// Whether [`reconfigure`](Self::reconfigure) can do it: same codec, chroma format and bit depth, and a
    /// size within the decoder's greatest.
    fn fits(&self, decoder: &Self::Decoder, format: &Self::Format, plan: SurfacePlan) -> bool;

    /// `cuvidReconfigureDecoder`.
    ///
    /// # Errors
    /// The library refuses; the decoder is then replaced.
    fn reconfigure(
        &self,
        decoder: &Self::Decoder,
        format: &Self::Format,
        plan: SurfacePlan,
    ) -> Result<(), GpuError>;

    /// `cuvidDecodePicture`. May block while the driver's queue is full.
    ///
    /// # Errors
    /// The picture was not taken: its surface holds nothing of it.
    fn decode(&self, decoder: &Self::Decoder, params: &Self::Params) -> Result<(), GpuError>;

    /// `cuvidGetDecodeStatus`. Documented for H.264, H.265 and JPEG only.
    ///
    /// # Errors
    /// [`ErrorClass::NotSupported`] where the codec has no status.
    fn status(&self, decoder: &Self::Decoder, index: u8) -> Result<DecodeStatus, GpuError>;

    /// `cuvidMapVideoFrame64` on the implementation's own stream. Blocks until the picture is decoded.
    ///
    /// # Errors
    /// Nothing is mapped then.
    fn map(
        &self,
        decoder: &Arc<Self::Decoder>,
        shown: &DisplayInfo,
    ) -> Result<Self::Mapped, GpuError>;

    /// `cuMemcpy2DAsync` for each plane and `cuEventRecord`, on the map's stream.
    ///
    /// # Errors
    /// No copy is under way then.
    fn begin_copy(
        &self,
        decoder: &Self::Decoder,
        format: &Self::Format,
        mapped: &Self::Mapped,
    ) -> Result<Self::Copy, GpuError>;

    /// `cuEventSynchronize`: blocks until the copy is complete.
    ///
    /// # Errors
    /// The pixels are lost; nothing reads the mapped surface any more.
    fn finish_copy(&self, copy: Self::Copy) -> Result<Self::Frame, GpuError>;

    /// `cuvidUnmapVideoFrame64`.
    ///
    /// # Errors
    /// The library refuses.
    fn unmap(&self, decoder: &Self::Decoder, mapped: Self::Mapped) -> Result<(), GpuError>;
}
