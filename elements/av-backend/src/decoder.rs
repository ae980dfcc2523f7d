// SPDX-License-Identifier: MPL-2.0

//! [`Decoder`]: packets in decoding order go in, pictures in output order come out.

use std::ffi::{CStr, c_int};
use std::ptr::{self, NonNull};

use ffmpeg_sys_next as ff;

use crate::picture::Picture;
use crate::surfaces::{Surfaces, get_buffer};

pub use elementary_stream::Codec;

/// libavcodec's decoders for a codec, the preferred one first. Each decodes on the processor: the decoder
/// that libavcodec calls `av1` only drives hardware.
fn decoder_names(codec: Codec) -> &'static [&'static CStr] {
    match codec {
        Codec::H264 => &[c"h264"],
        Codec::H265 => &[c"hevc"],
        Codec::Av1 => &[c"libdav1d", c"libaom-av1"],
        Codec::Vp9 => &[c"vp9"],
        Codec::Vp8 => &[c"vp8"],
        Codec::Mpeg2 => &[c"mpeg2video"],
        Codec::Mjpeg => &[c"mjpeg"],
    }
}

fn find(codec: Codec) -> Option<NonNull<ff::AVCodec>> {
    decoder_names(codec).iter().find_map(|name| {
        // SAFETY: the name is a C string; the result points to a static description or is null.
        NonNull::new(unsafe { ff::avcodec_find_decoder_by_name(name.as_ptr()) }.cast_mut())
    })
}

/// Whether the libavcodec of this machine can decode it.
pub fn is_available(codec: Codec) -> bool {
    find(codec).is_some()
}

/// How a decoder is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderOptions {
    /// Pictures decoded at once, 1 to 16. Each above 1 costs a thread and delays the output by a picture.
    pub frame_threads: u32,
    /// H.264 only: where the stream does not say how far pictures are reordered, hold back as many as its
    /// level allows instead of guessing. The guess can drop a picture at the stream's beginning.
    pub full_reorder_delay: bool,
}

impl Default for DecoderOptions {
    /// One thread, exact output order.
    fn default() -> Self {
        Self {
            frame_threads: 1,
            full_reorder_delay: true,
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The installed libavcodec has no software decoder for the codec.
    #[error("libavcodec was built without a software decoder for {0:?}")]
    NoDecoder(Codec),
    /// The data cannot be decoded. The decoder is usable still.
    #[error("the data cannot be decoded")]
    InvalidData,
    /// Memory is short.
    #[error("out of memory")]
    NoMemory,
    /// A packet is larger than libavcodec takes (2 GiB).
    #[error("a packet of {0} bytes is too large")]
    PacketTooLarge(usize),
    /// Anything else that libavcodec says.
    #[error("libavcodec: {text} ({code})")]
    Other {
        /// libavcodec's error code.
        code: i32,
        /// Its text.
        text: String,
    },
}

impl Error {
    fn from_code(code: c_int) -> Self {
        if code == ff::AVERROR_INVALIDDATA || code == ff::AVERROR_PATCHWELCOME {
            return Error::InvalidData;
        }
        if code == -ff::ENOMEM {
            return Error::NoMemory;
        }
        let mut buffer = [0 as std::ffi::c_char; 128];
        // SAFETY: the buffer's own length is given, and the result is terminated within it.
        unsafe { ff::av_strerror(code, buffer.as_mut_ptr(), buffer.len()) };
        // SAFETY: the array was zeroed and the call above terminates what it writes.
        let text = unsafe { CStr::from_ptr(buffer.as_ptr()) };
        Error::Other {
            code,
            text: text.to_string_lossy().into_owned(),
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// The decoder has it.
    Accepted,
    /// The decoder did not take it: receive pictures first, then send it again.
    Full,
}

/// What the decoder has to give.
#[derive(Debug)]
#[must_use]
pub enum Received {
    /// The next picture in output order.
    Picture(Picture),
    /// None before another packet is sent.
    NeedInput,
    /// None, and the drain is complete: [`Decoder::flush`] makes the decoder usable again.
    Drained,
}

/// An open decoder. Closing it (dropping it) ends every thread that it started.
pub struct Decoder {
    context: NonNull<ff::AVCodecContext>,
    packet: NonNull<ff::AVPacket>,
    codec: Codec,
    /// From a box; the context keeps the same pointer.
    surfaces: Option<NonNull<Box<dyn Surfaces>>>,
}

// SAFETY: a codec context may be used from any thread as long as one uses it at a time, which `&mut` asks.
unsafe impl Send for Decoder {}

impl Decoder {
    /// Opens a decoder.
    ///
    /// # Errors
    /// [`Error::NoDecoder`] where libavcodec lacks it, [`Error::NoMemory`], or what opening it said.
    pub fn open(codec: Codec, options: DecoderOptions) -> Result<Self, Error> {
        Self::open_any(codec, options, None)
    }

    /// Opens a decoder that asks `surfaces` for each picture. It decodes on the caller's thread.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_with_surfaces(
        codec: Codec,
        options: DecoderOptions,
        surfaces: Box<dyn Surfaces>,
    ) -> Result<Self, Error> {
        let options = DecoderOptions {
            frame_threads: 1,
            ..options
        };
        Self::open_any(codec, options, Some(surfaces))
    }

    fn open_any(
        codec: Codec,
        options: DecoderOptions,
        surfaces: Option<Box<dyn Surfaces>>,
    ) -> Result<Self, Error> {
        let description = find(codec).ok_or(Error::NoDecoder(codec))?;
        // SAFETY: the description is libavcodec's own.
        let context = unsafe { ff::avcodec_alloc_context3(description.as_ptr()) };
        // SAFETY: no argument.
        let packet = unsafe { ff::av_packet_alloc() };
        let (Some(context), Some(packet)) = (NonNull::new(context), NonNull::new(packet)) else {
            free(context, packet);
            return Err(Error::NoMemory);
        };
        // From here on Drop frees both.
        let mut this = Self {
            context,
            packet,
            codec,
            surfaces: surfaces.map(|surfaces| NonNull::from(Box::leak(Box::new(surfaces)))),
        };
        this.configure(options);
        // SAFETY: context and description belong together; no options dictionary is passed.
        let code =
            unsafe { ff::avcodec_open2(context.as_ptr(), description.as_ptr(), ptr::null_mut()) };
        if code < 0 {
            return Err(Error::from_code(code));
        }
        Ok(this)
    }

    fn configure(&mut self, options: DecoderOptions) {
        // SAFETY: the context is allocated, not yet open, and reached through `&mut self` alone.
        let context = unsafe { self.context.as_mut() };
        let threads = options.frame_threads.clamp(1, 16);
        context.thread_count = threads as c_int;
        context.thread_type = ff::FF_THREAD_FRAME;
        // Damage is told by status and flags. The texts stay for a host that asks libavutil for debug output:
        // the log's level belongs to the whole process and is not this crate's to set.
        context.log_level_offset = ff::AV_LOG_DEBUG - ff::AV_LOG_ERROR;
        // The crop is reported, not applied: a runtime's surfaces show the coded area.
        context.apply_cropping = 0;
        context.flags |= ff::AV_CODEC_FLAG_OUTPUT_CORRUPT as c_int;
        if let Some(surfaces) = self.surfaces {
            context.opaque = surfaces.as_ptr().cast();
            context.get_buffer2 = Some(get_buffer);
        }
        if self.codec == Codec::H264 && options.full_reorder_delay {
            context.strict_std_compliance = ff::FF_COMPLIANCE_STRICT;
        }
        // For libdav1d the flag means "no delay of its own"; elsewhere it would forbid reordering.
        if self.codec == Codec::Av1 && threads == 1 {
            context.flags |= ff::AV_CODEC_FLAG_LOW_DELAY as c_int;
        }
    }

    /// The codec it was opened for.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Sends one packet: an access unit, a field, a frame or superframe, a temporal unit, an image.
    /// `token` comes back with the picture that begins in this packet ([`Picture::token`]).
    ///
    /// # Errors
    /// [`Error::InvalidData`] where it cannot be decoded: the packet is consumed, the decoder usable.
    pub fn send(&mut self, data: &[u8], token: Option<i64>) -> Result<Sent, Error> {
        if data.is_empty() {
            return Ok(Sent::Accepted); // libavcodec would take an empty packet for the beginning of a drain
        }
        let size = c_int::try_from(data.len()).map_err(|_| Error::PacketTooLarge(data.len()))?;
        // SAFETY: the packet is allocated and blank; the call gives it `size` bytes and padding.
        let code = unsafe { ff::av_new_packet(self.packet.as_ptr(), size) };
        if code < 0 {
            return Err(Error::from_code(code));
        }
        // SAFETY: the packet is reached through `&mut self` alone.
        let packet = unsafe { self.packet.as_mut() };
        packet.pts = token.unwrap_or(ff::AV_NOPTS_VALUE);
        // SAFETY: the packet has room for `data.len()` bytes, and fresh memory overlaps nothing.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), packet.data, data.len()) };
        // SAFETY: both are valid; the decoder takes a reference to the packet's data.
        let code = unsafe { ff::avcodec_send_packet(self.context.as_ptr(), self.packet.as_ptr()) };
        // SAFETY: the packet is valid.
        unsafe { ff::av_packet_unref(self.packet.as_ptr()) };
        match code {
            0.. => Ok(Sent::Accepted),
            code if code == ff::AVERROR(ff::EAGAIN) => Ok(Sent::Full),
            code => Err(Error::from_code(code)),
        }
    }

    /// Takes the next picture.
    ///
    /// # Errors
    /// [`Error::InvalidData`] where a packet sent earlier cannot be decoded; call it again for the others.
    pub fn receive(&mut self) -> Result<Received, Error> {
        // SAFETY: no argument.
        let frame = NonNull::new(unsafe { ff::av_frame_alloc() }).ok_or(Error::NoMemory)?;
        // The picture owns the frame from here on, whatever the call says.
        let picture = Picture::adopt(frame);
        // SAFETY: both are valid.
        let code = unsafe { ff::avcodec_receive_frame(self.context.as_ptr(), frame.as_ptr()) };
        match code {
            0.. => Ok(Received::Picture(picture)),
            code if code == ff::AVERROR(ff::EAGAIN) => Ok(Received::NeedInput),
            code if code == ff::AVERROR_EOF => Ok(Received::Drained),
            code => Err(Error::from_code(code)),
        }
    }

    /// Begins a drain: [`receive`](Self::receive) then gives what is left, and at last
    /// [`Received::Drained`]. Beginning it twice is harmless.
    pub fn drain(&mut self) {
        // SAFETY: a null packet is the documented signal; an error only says that the drain has begun.
        unsafe { ff::avcodec_send_packet(self.context.as_ptr(), ptr::null()) };
    }

    /// Forgets every packet and picture and ends a drain. Parameter sets stay known.
    pub fn flush(&mut self) {
        // SAFETY: the context is open.
        unsafe { ff::avcodec_flush_buffers(self.context.as_ptr()) };
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("codec", &self.codec)
            .finish_non_exhaustive()
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        free(self.context.as_ptr(), self.packet.as_ptr());
        if let Some(surfaces) = self.surfaces {
            // SAFETY: the box was leaked by `open_any`, and the context that pointed to it is gone.
            drop(unsafe { Box::from_raw(surfaces.as_ptr()) });
        }
    }
}

fn free(mut context: *mut ff::AVCodecContext, mut packet: *mut ff::AVPacket) {
    // SAFETY: null is accepted, and the caller gives up what is not null.
    unsafe { ff::avcodec_free_context(&mut context) };
    // SAFETY: as above.
    unsafe { ff::av_packet_free(&mut packet) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_has_a_software_decoder_here() {
        for codec in Codec::ALL {
            assert!(is_available(codec), "{codec:?}");
        }
    }

    #[test]
    fn an_empty_packet_begins_no_drain() {
        let mut decoder =
            Decoder::open(Codec::H264, DecoderOptions::default()).expect("h264 opens");
        assert_eq!(decoder.send(&[], None), Ok(Sent::Accepted));
        assert!(matches!(decoder.receive(), Ok(Received::NeedInput)));
    }

    #[test]
    fn a_drain_ends_and_a_flush_makes_the_decoder_usable_again() {
        for codec in Codec::ALL {
            let mut decoder = Decoder::open(codec, DecoderOptions::default()).expect("it opens");
            decoder.drain();
            decoder.drain();
            assert!(
                matches!(decoder.receive(), Ok(Received::Drained)),
                "{codec:?}"
            );
            decoder.flush();
            assert!(
                matches!(decoder.receive(), Ok(Received::NeedInput)),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn rubbish_is_an_error_or_nothing_and_never_a_picture() {
        let rubbish: Vec<u8> = (0..2000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for codec in Codec::ALL {
            for frame_threads in [1, 4] {
                let options = DecoderOptions {
                    frame_threads,
                    ..Default::default()
                };
                let mut decoder = Decoder::open(codec, options).expect("it opens");
                let _ = decoder.send(&rubbish, Some(1));
                decoder.drain();
                let mut calls = 0;
                loop {
                    calls += 1;
                    assert!(calls < 100, "{codec:?}: the drain never ends");
                    match decoder.receive() {
                        Ok(Received::Drained) => break,
                        Ok(Received::Picture(_)) => panic!("{codec:?} made a picture of rubbish"),
                        Ok(Received::NeedInput) | Err(_) => {}
                    }
                }
            }
        }
    }
}
