// SPDX-License-Identifier: MPL-2.0

//! [`Decoder`]: pictures are decoded into surfaces by index, and mapped by index.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bindings::*;
use crate::surface::{FieldSelection, MappedSurface, SurfaceLayout};
use crate::{Context, DecoderConfig, Error, Nvcuvid, PictureParams, Stream};

/// What the decoder says about a picture (`cuvidGetDecodeStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeStatus {
    /// Nothing is known.
    Invalid,
    /// It is being decoded.
    InProgress,
    /// Decoded without an error.
    Success,
    /// Decoded with an error that shows.
    Error,
    /// Decoded with an error that was concealed.
    ErrorConcealed,
    /// A value that the headers reserve.
    Reserved(u32),
}

impl From<cuvidDecodeStatus> for DecodeStatus {
    fn from(status: cuvidDecodeStatus) -> Self {
        match status {
            cuvidDecodeStatus_Invalid => DecodeStatus::Invalid,
            cuvidDecodeStatus_InProgress => DecodeStatus::InProgress,
            cuvidDecodeStatus_Success => DecodeStatus::Success,
            cuvidDecodeStatus_Error => DecodeStatus::Error,
            cuvidDecodeStatus_Error_Concealed => DecodeStatus::ErrorConcealed,
            other => DecodeStatus::Reserved(other),
        }
    }
}

/// What mapping and reconfiguring have to agree on. The lock is never held over a call into the driver.
#[derive(Debug)]
struct Gate {
    config: DecoderConfig,
    mapped: usize,
    reconfiguring: bool,
}

/// A decoder. One thread decodes while another maps; it is destroyed with its last owner, and every mapped
/// surface is one.
pub struct Decoder {
    context: Arc<Context>,
    nvcuvid: &'static Nvcuvid,
    raw: CUvideodecoder,
    gate: Mutex<Gate>,
}

// SAFETY: the NVDECODE guide has one thread decode and another map on one decoder (section 4.2.4); the
// library does its own locking.
unsafe impl Send for Decoder {}
// SAFETY: as above.
unsafe impl Sync for Decoder {}

impl Decoder {
    /// Makes a decoder. It takes tens of milliseconds and may hang on a wedged device.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a configuration out of range, or what the driver says.
    pub fn new(
        context: &Arc<Context>,
        nvcuvid: &'static Nvcuvid,
        config: &DecoderConfig,
    ) -> Result<Arc<Self>, Error> {
        let mut info = config.create_info()?;
        let mut raw: CUvideodecoder = ptr::null_mut();
        context.with(|| {
            // SAFETY: both pointers are locals'.
            unsafe { (nvcuvid.functions().cuvidCreateDecoder)(&mut raw, &mut info) }
                .check("cuvidCreateDecoder")
        })?;
        Ok(Arc::new(Self {
            context: context.clone(),
            nvcuvid,
            raw,
            gate: Mutex::new(Gate {
                config: *config,
                mapped: 0,
                reconfiguring: false,
            }),
        }))
    }

    /// The state is whole between any two statements that change it: a panic elsewhere does not spoil it.
    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The parameters that it was made with or last reconfigured to.
    pub fn config(&self) -> DecoderConfig {
        self.gate().config
    }

    /// How many surfaces are mapped.
    pub fn mapped(&self) -> usize {
        self.gate().mapped
    }

    fn check_index(&self, index: i64) -> Result<i32, Error> {
        let surfaces = self.gate().config.decode_surfaces;
        match i32::try_from(index) {
            Ok(number) if (0..i64::from(surfaces)).contains(&index) => Ok(number),
            _ => Err(Error::PictureIndex { index, surfaces }),
        }
    }

    /// Puts a picture into the decoder's queue. It blocks while the queue (of 4) is full.
    ///
    /// The surface of [`PictureParams::picture_index`] is written, and for AV1 with film grain that of
    /// [`PictureParams::film_grain_reference`] too: nothing may need what they held.
    ///
    /// # Errors
    /// [`Error::PictureIndex`], or what the driver says.
    pub fn decode(&self, picture: &PictureParams) -> Result<(), Error> {
        let codec = self.config().codec;
        self.check_index(i64::from(picture.picture_index()))?;
        if let Some(index) = picture.film_grain_reference(codec) {
            self.check_index(i64::from(index))?;
        }
        self.context.with(|| {
            // SAFETY: the decoder is alive, and the parameters are the parser's own, valid until its callback
            // returns, which the borrow ensures.
            unsafe { (self.nvcuvid.functions().cuvidDecodePicture)(self.raw, picture.as_ptr()) }
                .check("cuvidDecodePicture")
                .map_err(Error::from)
        })
    }

    /// What is known about the picture that was last decoded into a surface. It does not wait.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the driver lacks the function, `CUDA_ERROR_NOT_SUPPORTED` for a codec of
    /// which the driver keeps no status (it is documented for H.264, H.265 and JPEG only), or what else it says.
    pub fn status(&self, index: u32) -> Result<DecodeStatus, Error> {
        let number = self.check_index(i64::from(index))?;
        let get = self
            .nvcuvid
            .functions()
            .cuvidGetDecodeStatus
            .ok_or(Error::Unsupported("cuvidGetDecodeStatus"))?;
        let mut status = CUVIDGETDECODESTATUS::default();
        self.context.with(|| {
            // SAFETY: the decoder is alive, and the pointer is a local's.
            unsafe { get(self.raw, number, &mut status) }
                .check("cuvidGetDecodeStatus")
                .map_err(Error::from)
        })?;
        Ok(status.decodeStatus.into())
    }

    /// Waits, without a deadline, until the picture is decoded, and converts it into an output surface; what
    /// the device does for that is put into `stream`. The surface is to be read in the same stream.
    ///
    /// # Errors
    /// [`Error::PictureIndex`], [`Error::Reconfiguring`], [`Error::OtherContext`], or what the driver says
    /// (also where all output surfaces are mapped).
    pub fn map(
        self: &Arc<Self>,
        index: u32,
        fields: FieldSelection,
        stream: &Arc<Stream>,
    ) -> Result<Arc<MappedSurface>, Error> {
        let number = self.check_index(i64::from(index))?;
        if !self.context.is_same(stream.context()) {
            return Err(Error::OtherContext("the stream"));
        }
        let config = {
            let mut gate = self.gate();
            if gate.reconfiguring {
                return Err(Error::Reconfiguring);
            }
            gate.mapped += 1;
            gate.config
        };
        let mut params = fields.proc_params(stream);
        let mut address = 0;
        let mut pitch = 0;
        let mapped: Result<(), Error> = self.context.with(|| {
            let map = self.nvcuvid.functions().cuvidMapVideoFrame64;
            // SAFETY: the decoder is alive, and the pointers are locals'.
            unsafe { map(self.raw, number, &mut address, &mut pitch, &mut params) }
                .check("cuvidMapVideoFrame")
                .map_err(Error::from)
        });
        if let Err(error) = mapped {
            self.gate().mapped -= 1;
            return Err(error);
        }
        let layout = SurfaceLayout::new(&config, pitch);
        Ok(Arc::new(MappedSurface::new(
            self.clone(),
            stream.clone(),
            address,
            layout,
        )))
    }

    pub(crate) fn unmap(&self, address: u64) -> Result<(), Error> {
        let unmapped = self.context.with(|| {
            // SAFETY: the decoder is alive, and `map` gave the address, which only its surface gives back.
            unsafe { (self.nvcuvid.functions().cuvidUnmapVideoFrame64)(self.raw, address) }
                .check("cuvidUnmapVideoFrame")
                .map_err(Error::from)
        });
        self.gate().mapped -= 1;
        unmapped
    }

    /// Changes size and number of surfaces. To be called in the parser's sequence callback, with no picture
    /// of the old size undone; every surface then holds nothing.
    ///
    /// # Errors
    /// [`Error::Unsupported`], [`Error::SurfacesMapped`], [`Error::Parameter`] where the decoder cannot become
    /// that ([`DecoderConfig::can_become`]), or what the driver says. The decoder is as it was, as far as the
    /// driver lets it be.
    pub fn reconfigure(&self, next: &DecoderConfig) -> Result<(), Error> {
        let reconfigure = self
            .nvcuvid
            .functions()
            .cuvidReconfigureDecoder
            .ok_or(Error::Unsupported("cuvidReconfigureDecoder"))?;
        let mut info = next.reconfigure_info()?;
        {
            let mut gate = self.gate();
            if !gate.config.can_become(next) {
                return Err(Error::Parameter(format!(
                    "a decoder of {:?} cannot become {next:?}",
                    gate.config
                )));
            }
            if gate.mapped > 0 {
                return Err(Error::SurfacesMapped(gate.mapped));
            }
            if gate.reconfiguring {
                return Err(Error::Reconfiguring);
            }
            gate.reconfiguring = true;
        }
        let done = self.context.with(|| {
            // SAFETY: the decoder is alive, the pointer is a local's, and nothing is mapped.
            unsafe { reconfigure(self.raw, &mut info) }
                .check("cuvidReconfigureDecoder")
                .map_err(Error::from)
        });
        let mut gate = self.gate();
        gate.reconfiguring = false;
        if done.is_ok() {
            // The largest size stays what the decoder was made with.
            gate.config = DecoderConfig {
                max_width: gate.config.max_width,
                max_height: gate.config.max_height,
                ..*next
            };
        }
        done
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        let functions = self.nvcuvid.functions();
        // A failure means that the context is lost, and the decoder with it.
        let _ = self.context.with(|| {
            // SAFETY: the decoder was made by `new`; every surface held it, so that nothing is mapped.
            unsafe { (functions.cuvidDestroyDecoder)(self.raw) }.check("cuvidDestroyDecoder")
        });
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Decoder({:?}, {:?})", self.raw, self.gate())
    }
}
