// SPDX-License-Identifier: MPL-2.0

//! [`Decoder`]: the bitstream in, pictures out in the order in which they are shown.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use av_backend::{DecoderOptions, Error, Picture, Received, Sent};
use elementary_stream::{Codec, Reader, Reorder, Sequence, Step};
use onevpl_sys::*;

use crate::faults::{SessionFaults, UnitFault};
use crate::params;
use crate::pool::Pool;

/// Time stamps that are kept for pictures which have not come out.
const TIMESTAMPS_KEPT: usize = 256;

/// The client's bitstream.
pub(crate) struct Input<'a> {
    bitstream: &'a mut mfxBitstream,
}

impl<'a> Input<'a> {
    /// Checks a client's structure.
    ///
    /// # Errors
    /// `ERR_NULL_PTR` where there is length but no data, `ERR_UNDEFINED_BEHAVIOR` where it ends outside.
    pub(crate) fn new(bitstream: &'a mut mfxBitstream) -> Result<Self, MfxStatus> {
        let end = u64::from(bitstream.DataOffset) + u64::from(bitstream.DataLength);
        if bitstream.DataLength > 0 && bitstream.Data.is_null() {
            return Err(MfxStatus::ERR_NULL_PTR);
        }
        if end > u64::from(bitstream.MaxLength) {
            return Err(MfxStatus::ERR_UNDEFINED_BEHAVIOR);
        }
        Ok(Self { bitstream })
    }

    /// The bytes that are left.
    pub(crate) fn data(&self) -> &[u8] {
        if self.bitstream.DataLength == 0 {
            return &[];
        }
        let start = self
            .bitstream
            .Data
            .wrapping_add(self.bitstream.DataOffset as usize);
        // SAFETY: offset and length lie within MaxLength, which is what the client allocated at Data; it
        // leaves the data alone during the call.
        unsafe { std::slice::from_raw_parts(start, self.bitstream.DataLength as usize) }
    }

    /// The data ends with an access unit.
    pub(crate) fn is_whole(&self) -> bool {
        let flags = MFX_BITSTREAM_COMPLETE_FRAME | MFX_BITSTREAM_EOS;
        u32::from(self.bitstream.DataFlag) & flags != 0
    }

    /// Removes bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        let count = (count as u32).min(self.bitstream.DataLength);
        self.bitstream.DataOffset += count;
        self.bitstream.DataLength -= count;
    }

    fn timestamp(&self) -> u64 {
        self.bitstream.TimeStamp
    }
}

/// What came of looking at the bitstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// A picture waits in the queue.
    Picture,
    /// More data is needed, or the drain is complete.
    MoreData,
    /// A new sequence header; decoding goes on with the next call.
    ParamChanged,
    /// A new sequence header that needs another decoder. Its bytes were left.
    Incompatible,
    /// An error.
    Failed(MfxStatus),
    /// The call is not to return.
    Hang,
}

/// A picture with its time stamp.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) picture: Picture,
    pub(crate) timestamp: u64,
    /// Data before it could not be decoded.
    pub(crate) after_loss: bool,
}

/// Counters of `MFXVideoDECODE_GetDecodeStat`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) pictures: u32,
    pub(crate) skipped: u32,
    pub(crate) errors: u32,
}

/// A decoder between Init and Close.
pub(crate) struct Decoder {
    pub(crate) codec: Codec,
    /// As `GetVideoParam` answers.
    pub(crate) param: mfxVideoParam,
    pub(crate) pool: Arc<Pool>,
    pub(crate) queue: VecDeque<Decoded>,
    pub(crate) counters: Counters,
    /// The client brings surfaces.
    pub(crate) external: bool,
    silent_resize: bool,
    reader: Reader,
    libav: Option<av_backend::Decoder>,
    timestamps: BTreeMap<i64, u64>,
    next_token: i64,
    /// The time stamp of the access unit whose beginning the reader holds.
    held_timestamp: u64,
    /// A copy of the bytes that the last bitstream was left with.
    rest: Vec<u8>,
    used_timestamp: Option<u64>,
    drained: bool,
    loss: bool,
}

// SAFETY: the one pointer in it, `param.ExtParam`, is always null.
unsafe impl Send for Decoder {}

impl Decoder {
    /// A decoder for checked parameters.
    pub(crate) fn new(
        codec: Codec,
        param: &mfxVideoParam,
        pool: Arc<Pool>,
        silent_resize: bool,
    ) -> Self {
        let mut param = *param;
        param.ExtParam = std::ptr::null_mut();
        param.NumExtParam = 0;
        param.AsyncDepth = params::async_depth(&param);
        Self {
            codec,
            param,
            pool,
            queue: VecDeque::new(),
            counters: Counters::default(),
            external: false,
            silent_resize,
            reader: Reader::new(codec),
            libav: None,
            timestamps: BTreeMap::new(),
            next_token: 0,
            held_timestamp: TIMESTAMP_UNKNOWN,
            rest: Vec::new(),
            used_timestamp: None,
            drained: false,
            loss: false,
        }
    }

    /// The description of the surfaces.
    pub(crate) fn info(&self) -> &mfxFrameInfo {
        &params::mfx(&self.param).FrameInfo
    }

    /// Decodes until a picture waits or the data is used up. `None`: drain.
    pub(crate) fn advance(
        &mut self,
        input: Option<&mut Input<'_>>,
        faults: &mut SessionFaults,
    ) -> Advance {
        let result = match input {
            Some(input) => self.feed(input, faults),
            None => self.drain(faults),
        };
        result.unwrap_or_else(|stop| stop)
    }

    fn feed(
        &mut self,
        input: &mut Input<'_>,
        faults: &mut SessionFaults,
    ) -> Result<Advance, Advance> {
        if !self.queue.is_empty() {
            return Ok(Advance::Picture);
        }
        if self.drained {
            // Feeding goes on after a drain: what follows begins with a key picture or is undecodable.
            self.drained = false;
            if let Some(libav) = &mut self.libav {
                libav.flush();
            }
        }
        self.rest.clear();
        loop {
            match self.reader.step(input.data(), input.is_whole()) {
                Step::Sequence(sequence) => self.meet(sequence)?,
                Step::Unit {
                    taken,
                    data,
                    continued,
                } => {
                    let timestamp = if continued {
                        std::mem::replace(&mut self.held_timestamp, TIMESTAMP_UNKNOWN)
                    } else {
                        self.take_timestamp(input)
                    };
                    input.consume(taken);
                    self.submit(&data, timestamp, faults)?;
                    if !self.queue.is_empty() {
                        return Ok(Advance::Picture);
                    }
                }
                Step::More { taken } => {
                    // More is held than before: if nothing was, it begins here.
                    if taken > 0 && self.reader.held() == taken {
                        self.held_timestamp = self.take_timestamp(input);
                    }
                    input.consume(taken);
                    self.rest.extend_from_slice(input.data());
                    return Ok(Advance::MoreData);
                }
            }
        }
    }

    /// A bitstream's time stamp belongs to the first access unit that begins in it.
    fn take_timestamp(&mut self, input: &Input<'_>) -> u64 {
        let timestamp = input.timestamp();
        if self.used_timestamp == Some(timestamp) {
            return TIMESTAMP_UNKNOWN;
        }
        self.used_timestamp = Some(timestamp);
        timestamp
    }

    fn drain(&mut self, faults: &mut SessionFaults) -> Result<Advance, Advance> {
        if !self.queue.is_empty() {
            return Ok(Advance::Picture);
        }
        if !self.drained {
            self.finish_rest(faults)?;
            self.drained = true;
            self.used_timestamp = None;
            if let Some(libav) = &mut self.libav {
                libav.drain();
            }
            self.collect()?;
        }
        Ok(if self.queue.is_empty() {
            Advance::MoreData
        } else {
            Advance::Picture
        })
    }

    /// Decodes what the reader holds and what the last bitstream was left with: to a client that drains, the
    /// bytes in its buffer are gone.
    fn finish_rest(&mut self, faults: &mut SessionFaults) -> Result<(), Advance> {
        loop {
            let Step::Unit { taken, data, .. } = self.reader.step(&self.rest, true) else {
                self.rest.clear();
                return Ok(());
            };
            self.rest.drain(..taken);
            let timestamp = std::mem::replace(&mut self.held_timestamp, TIMESTAMP_UNKNOWN);
            self.submit(&data, timestamp, faults)?;
        }
    }

    /// A sequence header that is not in force.
    fn meet(&mut self, sequence: Sequence) -> Result<(), Advance> {
        let new = params::frame_info(&sequence);
        let first = self.reader.sequence().is_none();
        let decodable = params::size(&new).Width > 0
            && [MFX_CHROMAFORMAT_YUV420, MFX_CHROMAFORMAT_MONOCHROME]
                .contains(&u32::from(new.ChromaFormat))
            && [8, 10].contains(&new.BitDepthLuma);
        let fits = params::same_surfaces(self.info(), &new);
        if !decodable || !fits && !self.silent_resize {
            return Err(Advance::Incompatible);
        }
        let codec = self.codec;
        let before = params::size(self.info());
        let before_rate = (self.info().FrameRateExtN, self.info().FrameRateExtD);
        params::fill(&mut self.param, codec, &sequence);
        if sequence.frame_rate.is_none() {
            let info = &mut params::mfx_mut(&mut self.param).FrameInfo;
            (info.FrameRateExtN, info.FrameRateExtD) = before_rate;
        }
        self.reader.accept(sequence);
        if first {
            // Init's parameters come from this very header as a rule; a client that gave others with the
            // same surfaces hears of it.
            let after = params::size(self.info());
            let same = (before.CropX, before.CropY, before.CropW, before.CropH)
                == (after.CropX, after.CropY, after.CropW, after.CropH);
            if same || before.CropW == 0 || self.silent_resize {
                return Ok(());
            }
        }
        if self.silent_resize {
            Ok(())
        } else {
            Err(Advance::ParamChanged)
        }
    }

    fn submit(
        &mut self,
        data: &[u8],
        timestamp: u64,
        faults: &mut SessionFaults,
    ) -> Result<(), Advance> {
        let Some(sequence) = self.reader.sequence().copied() else {
            self.counters.skipped += 1;
            return Ok(()); // before the first sequence header nothing can be decoded
        };
        match faults.next_unit() {
            UnitFault::None => {}
            UnitFault::Hang => return Err(Advance::Hang),
            UnitFault::Lost => return Err(Advance::Failed(MfxStatus::ERR_DEVICE_LOST)),
            UnitFault::Fail => {
                self.counters.errors += 1;
                self.loss = true;
                return Err(Advance::Failed(MfxStatus::ERR_UNKNOWN));
            }
        }
        let token = self.next_token;
        self.next_token += 1;
        self.timestamps.insert(token, timestamp);
        while self.timestamps.len() > TIMESTAMPS_KEPT {
            self.timestamps.pop_first();
        }
        loop {
            let sent = self.libav(&sequence)?.send(data, Some(token));
            match sent {
                Ok(Sent::Accepted) => return self.collect(),
                Ok(Sent::Full) => self.collect()?,
                Err(error) => {
                    self.note(&error)?;
                    return self.collect();
                }
            }
        }
    }

    fn libav(&mut self, sequence: &Sequence) -> Result<&mut av_backend::Decoder, Advance> {
        if self.libav.is_none() {
            let processors =
                std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
            let options = DecoderOptions {
                frame_threads: u32::from(self.param.AsyncDepth).min(processors),
                full_reorder_delay: sequence.reorder == Reorder::UpToLevel,
            };
            let opened = av_backend::Decoder::open(self.codec, options);
            self.libav = Some(opened.map_err(|error| Advance::Failed(status_of(&error)))?);
        }
        self.libav
            .as_mut()
            .ok_or(Advance::Failed(MfxStatus::ERR_UNKNOWN))
    }

    /// Takes every picture that is ready.
    fn collect(&mut self) -> Result<(), Advance> {
        let Some(libav) = &mut self.libav else {
            return Ok(());
        };
        loop {
            match libav.receive() {
                Ok(Received::Picture(picture)) => {
                    let timestamp = picture
                        .token()
                        .and_then(|token| self.timestamps.remove(&token));
                    self.queue.push_back(Decoded {
                        picture,
                        timestamp: timestamp.unwrap_or(TIMESTAMP_UNKNOWN),
                        after_loss: std::mem::take(&mut self.loss),
                    });
                }
                Ok(Received::NeedInput | Received::Drained) => return Ok(()),
                Err(Error::InvalidData) => {
                    self.counters.errors += 1;
                    self.loss = true;
                }
                Err(error) => return Err(Advance::Failed(status_of(&error))),
            }
        }
    }

    /// Data that cannot be decoded is passed over and the next picture marked; everything else is an error.
    fn note(&mut self, error: &Error) -> Result<(), Advance> {
        self.counters.errors += 1;
        self.loss = true;
        match error {
            Error::NoMemory | Error::NoDecoder(_) => Err(Advance::Failed(status_of(error))),
            Error::InvalidData | Error::PacketTooLarge(_) | Error::Other { .. } => Ok(()),
        }
    }
}

fn status_of(error: &Error) -> MfxStatus {
    match error {
        Error::NoDecoder(_) => MfxStatus::ERR_UNSUPPORTED,
        Error::NoMemory => MfxStatus::ERR_MEMORY_ALLOC,
        Error::InvalidData | Error::PacketTooLarge(_) | Error::Other { .. } => {
            MfxStatus::ERR_UNKNOWN
        }
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The parameters are unions and say nothing by themselves.
        f.debug_struct("Decoder")
            .field("codec", &self.codec)
            .field("queue", &self.queue.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
