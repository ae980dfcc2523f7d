// SPDX-License-Identifier: MPL-2.0

//! [`Parser`]: a bitstream goes in, and a [`ParserClient`] is told what to decode and to show.

use std::any::Any;
use std::ffi::{c_int, c_longlong, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use crate::bindings::*;
use crate::picture::PictureParams;
use crate::{CuError, Error, Nvcuvid};

/// A callback that failed: the parser stops there, and [`Parser::parse`] fails. The client keeps the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackFailed;

/// What the client answers to a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceAnswer {
    /// The parser keeps the number of surfaces that it has.
    Keep,
    /// The decoder has this many; the parser goes through them. 2 to 32.
    Surfaces(u32),
}

/// Which operating point of a scalable AV1 stream is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OperatingPoint {
    /// Its number, 0 to 31.
    pub index: u8,
    /// Whether every layer is shown, not the highest alone.
    pub all_layers: bool,
}

/// What a parser reports to. Every call comes from inside [`Parser::parse`], on its thread.
pub trait ParserClient {
    /// A first or changed sequence header: make or reconfigure the decoder now.
    ///
    /// # Errors
    /// [`CallbackFailed`] stops the parser.
    fn sequence(&mut self, format: &CUVIDEOFORMAT) -> Result<SequenceAnswer, CallbackFailed>;

    /// A picture, in decoding order.
    ///
    /// # Errors
    /// [`CallbackFailed`] stops the parser.
    fn decode(&mut self, picture: &PictureParams) -> Result<(), CallbackFailed>;

    /// A picture to be shown, in output order. Once this returns the parser gives its surface to another
    /// picture as soon as none refers to it. The timestamp may be another packet's: where pictures are
    /// reordered the parser may sort timestamps.
    ///
    /// # Errors
    /// [`CallbackFailed`] stops the parser.
    fn display(&mut self, display: &CUVIDPARSERDISPINFO) -> Result<(), CallbackFailed>;

    /// The end that [`Packet::notify_end_of_stream`] asked for: nothing more is shown.
    fn end_of_stream(&mut self) {}

    /// The operating points of a scalable AV1 stream.
    fn operating_point(&mut self, _points: &CUVIDOPERATINGPOINTINFO) -> OperatingPoint {
        OperatingPoint::default()
    }
}

/// How a parser is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParserConfig {
    /// `cudaVideoCodec_*`.
    pub codec: cudaVideoCodec,
    /// Pictures that may wait for their turn to be shown beyond what reordering needs; 0 shows each as soon as
    /// possible.
    pub max_display_delay: u32,
    /// Percent of a picture that may be damaged before it is not decoded: 0 strict, 100 everything is decoded.
    pub error_threshold: u32,
    /// Ticks of the timestamps a second; 0 stands for 10 MHz.
    pub clock_rate: u32,
    /// AV1 in the form of its Annex B.
    pub annex_b: bool,
}

impl ParserConfig {
    /// No display delay, everything is decoded, timestamps of 10 MHz.
    pub fn new(codec: cudaVideoCodec) -> Self {
        Self {
            codec,
            max_display_delay: 0,
            error_threshold: 100,
            clock_rate: 0,
            annex_b: false,
        }
    }
}

/// A piece of bitstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Packet<'a> {
    /// The bytes; none is allowed at the end of the stream.
    pub data: &'a [u8],
    /// When it is to be shown, in ticks.
    pub timestamp: Option<i64>,
    /// It is exactly one frame or field, which is decoded at once. A second one would be lost.
    pub end_of_picture: bool,
    /// Data before it is missing.
    pub discontinuity: bool,
    /// It is the last: everything is shown, and the parser forgets the sequence (the next packet has to bring
    /// its headers again).
    pub end_of_stream: bool,
    /// With the last packet: [`ParserClient::end_of_stream`] is called behind the last picture.
    pub notify_end_of_stream: bool,
}

impl Packet<'_> {
    fn flags(&self) -> c_ulong {
        let flags = [
            (self.end_of_stream, CUVID_PKT_ENDOFSTREAM),
            (self.timestamp.is_some(), CUVID_PKT_TIMESTAMP),
            (self.discontinuity, CUVID_PKT_DISCONTINUITY),
            (self.end_of_picture, CUVID_PKT_ENDOFPICTURE),
            (self.notify_end_of_stream, CUVID_PKT_NOTIFY_EOS),
        ];
        let set = flags.iter().filter(|(on, _)| *on);
        set.fold(0, |all, (_, flag)| all | c_ulong::from(*flag))
    }
}

/// Why a packet was not parsed to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The client failed, in this packet. The parser itself need not report it.
    #[error("a parser callback failed")]
    Callback,
    /// The client panicked, in this packet or an earlier one; nothing is parsed any more.
    #[error("a parser callback panicked: {0}")]
    Panic(String),
    /// The parser refused.
    #[error(transparent)]
    Cuda(#[from] CuError),
}

/// What the parser's user pointer points to.
struct State {
    /// There while a packet is parsed.
    client: Option<NonNull<dyn ParserClient>>,
    failed: bool,
    panicked: Option<String>,
}

/// A parser. It belongs to one thread at a time: [`parse`](Self::parse) takes it exclusively. It needs no
/// context, so that it outlives one that is lost.
pub struct Parser {
    nvcuvid: &'static Nvcuvid,
    raw: CUvideoparser,
    /// From a box; the library keeps the same pointer.
    state: NonNull<State>,
}

// SAFETY: the library keeps no thread of its own for a parser and nothing of the thread that made it; the
// state holds no client between two packets.
unsafe impl Send for Parser {}

impl Parser {
    /// Makes a parser.
    ///
    /// # Errors
    /// [`Error::Parameter`], or what the library says (`CUDA_ERROR_NOT_SUPPORTED` for a codec that it does not
    /// know).
    pub fn new(nvcuvid: &'static Nvcuvid, config: &ParserConfig) -> Result<Self, Error> {
        if config.error_threshold > 100 {
            return Err(Error::Parameter(format!(
                "the error threshold {} is more than 100 percent",
                config.error_threshold
            )));
        }
        let state = NonNull::from(Box::leak(Box::new(State {
            client: None,
            failed: false,
            panicked: None,
        })));
        let mut params = CUVIDPARSERPARAMS {
            CodecType: config.codec,
            // The sequence callback answers the true number.
            ulMaxNumDecodeSurfaces: 1,
            ulClockRate: config.clock_rate,
            ulErrorThreshold: config.error_threshold,
            ulMaxDisplayDelay: config.max_display_delay,
            pUserData: state.as_ptr().cast(),
            pfnSequenceCallback: Some(on_sequence),
            pfnDecodePicture: Some(on_decode),
            pfnDisplayPicture: Some(on_display),
            pfnGetOperatingPoint: Some(on_operating_point),
            ..Default::default()
        };
        params.set_bAnnexb(config.annex_b.into());
        let mut raw: CUvideoparser = ptr::null_mut();
        // SAFETY: both pointers are locals'; the callbacks fit the state, which outlives the parser.
        let created =
            unsafe { (nvcuvid.functions().cuvidCreateVideoParser)(&mut raw, &mut params) };
        if let Err(error) = created.check("cuvidCreateVideoParser") {
            // SAFETY: the state is the box leaked above, and the library refused to keep it.
            drop(unsafe { Box::from_raw(state.as_ptr()) });
            return Err(error.into());
        }
        Ok(Self {
            nvcuvid,
            raw,
            state,
        })
    }

    /// Parses a packet. `client` is called before this returns.
    ///
    /// # Errors
    /// [`ParseError`]. After [`ParseError::Callback`] the parser is usable still.
    pub fn parse(
        &mut self,
        packet: &Packet<'_>,
        client: &mut dyn ParserClient,
    ) -> Result<(), ParseError> {
        let client = NonNull::from(client);
        // SAFETY: the lifetime is the only difference, and the pointer is taken away again below.
        let client = unsafe {
            std::mem::transmute::<NonNull<dyn ParserClient + '_>, NonNull<dyn ParserClient>>(client)
        };
        let state = self.state_mut();
        if let Some(text) = &state.panicked {
            return Err(ParseError::Panic(text.clone()));
        }
        state.failed = false;
        state.client = Some(client);
        let mut raw = CUVIDSOURCEDATAPACKET {
            flags: packet.flags(),
            payload_size: packet.data.len() as c_ulong,
            payload: match packet.data {
                [] => ptr::null(),
                data => data.as_ptr(),
            },
            timestamp: packet.timestamp.unwrap_or(0) as c_longlong,
        };
        // SAFETY: the parser is alive, the packet a local's; no reference to the state is alive.
        let parsed = unsafe { (self.nvcuvid.functions().cuvidParseVideoData)(self.raw, &mut raw) };
        let state = self.state_mut();
        state.client = None;
        match &state.panicked {
            Some(text) => Err(ParseError::Panic(text.clone())),
            None if state.failed => Err(ParseError::Callback),
            None => Ok(parsed.check("cuvidParseVideoData")?),
        }
    }

    fn state_mut(&mut self) -> &mut State {
        // SAFETY: the box is alive as long as `self`, and callbacks use it inside `parse` alone, which holds
        // no reference across the call.
        unsafe { self.state.as_mut() }
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        let destroy = self.nvcuvid.functions().cuvidDestroyVideoParser;
        // A failure leaves the parser behind; it makes no call of its own.
        // SAFETY: the parser was made by `new` and is given up here.
        let _ = unsafe { destroy(self.raw) };
        // SAFETY: the box was leaked by `new`, and the parser that pointed to it is gone.
        drop(unsafe { Box::from_raw(self.state.as_ptr()) });
    }
}

/// Calls the client, stops a panic, and remembers what went wrong. `None` outside of [`Parser::parse`], and
/// after a panic.
///
/// # Safety
/// `user` has to be the state of a parser, to which no reference is alive.
unsafe fn call(
    user: *mut c_void,
    call: impl FnOnce(&mut dyn ParserClient) -> Result<c_int, CallbackFailed>,
) -> Option<c_int> {
    // SAFETY: the caller vouches for it.
    let state = unsafe { &mut *user.cast::<State>() };
    let mut client = state.client.filter(|_| state.panicked.is_none())?;
    // SAFETY: it was put there by the `parse` that is running, which borrows the client exclusively.
    let client = unsafe { client.as_mut() };
    match catch_unwind(AssertUnwindSafe(|| call(client))) {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(CallbackFailed)) => {
            state.failed = true;
            None
        }
        Err(payload) => {
            state.panicked = Some(panic_text(payload.as_ref()));
            None
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a text").to_owned()
}

unsafe extern "C" fn on_sequence(user: *mut c_void, format: *mut CUVIDEOFORMAT) -> c_int {
    // SAFETY: the library passes a format that is valid until this returns, or none.
    let Some(format) = (unsafe { format.as_ref() }) else {
        return 0;
    };
    let answer = |client: &mut dyn ParserClient| {
        client.sequence(format).map(|answer| match answer {
            SequenceAnswer::Keep => 1,
            SequenceAnswer::Surfaces(count) => c_int::try_from(count).unwrap_or(0),
        })
    };
    // SAFETY: the library passes the user pointer of the parser that is inside `parse`.
    unsafe { call(user, answer) }.unwrap_or(0)
}

unsafe extern "C" fn on_decode(user: *mut c_void, picture: *mut CUVIDPICPARAMS) -> c_int {
    // SAFETY: the library passes parameters that are valid and its client's alone until this returns.
    let Some(picture) = (unsafe { PictureParams::of(picture) }) else {
        return 0;
    };
    let answer = |client: &mut dyn ParserClient| client.decode(picture).map(|()| 1);
    // SAFETY: as in `on_sequence`.
    unsafe { call(user, answer) }.unwrap_or(0)
}

unsafe extern "C" fn on_display(user: *mut c_void, display: *mut CUVIDPARSERDISPINFO) -> c_int {
    // SAFETY: the library passes what is valid until this returns, or null at the end of the stream.
    let display = unsafe { display.as_ref() };
    let answer = |client: &mut dyn ParserClient| match display {
        Some(display) => client.display(display).map(|()| 1),
        None => {
            client.end_of_stream();
            Ok(1)
        }
    };
    // SAFETY: as in `on_sequence`.
    unsafe { call(user, answer) }.unwrap_or(0)
}

unsafe extern "C" fn on_operating_point(
    user: *mut c_void,
    points: *mut CUVIDOPERATINGPOINTINFO,
) -> c_int {
    // SAFETY: as in `on_sequence`.
    let Some(points) = (unsafe { points.as_ref() }) else {
        return -1;
    };
    let answer = |client: &mut dyn ParserClient| {
        let point = client.operating_point(points);
        Ok(c_int::from(point.index) | c_int::from(point.all_layers) << 10)
    };
    // SAFETY: as in `on_sequence`.
    unsafe { call(user, answer) }.unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_without_a_timestamp_claims_none() {
        assert_eq!(Packet::default().flags(), 0);
        let packet = Packet {
            timestamp: Some(0),
            end_of_picture: true,
            ..Default::default()
        };
        assert_eq!(packet.flags(), 0x0a);
        let last = Packet {
            end_of_stream: true,
            notify_end_of_stream: true,
            discontinuity: true,
            ..Default::default()
        };
        assert_eq!(last.flags(), 0x15);
    }
}
