// SPDX-License-Identifier: MPL-2.0

//! [`Nvdec`]: the ring's calls on NVIDIA's libraries.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nvcuvid_sys as nv;
use nvcuvid_sys::{Context, DecoderCaps, Driver, MappedSurface, Nvcuvid, PictureParams};
use nvdecring_core::{
    DecodeStatus, DisplayInfo, ErrorClass, GpuApi, GpuError, ParserEvents, ParserInput,
    PictureInfo, SequenceReply, SurfacePlan,
};

use crate::codec::Codec;
use crate::destination::Destination;
use crate::failure;
use crate::format::StreamFormat;
use crate::gpu::Gpu;

/// Where the context comes from.
#[derive(Debug, Clone)]
pub enum ContextSource {
    /// The device of this number. The context is the device's primary one, shared with the rest of the
    /// process, unless that is broken: it stays so as long as anybody holds it, so the session then has one of
    /// its own.
    Device(u32),
    /// Somebody else's. If it breaks the session ends: a new one could not be shared.
    Shared(Arc<Context>),
}

/// How streams are decoded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What they are coded with.
    pub codec: Codec,
    /// `ulMaxDisplayDelay`, as in the session's configuration.
    pub display_delay: u8,
    /// The context.
    pub context: ContextSource,
}

/// NVIDIA's decoder. One a session.
pub struct Nvdec<D> {
    settings: Settings,
    destination: D,
    contexts: AtomicU64,
    /// The largest coded size seen: decoders are made for it, so that the next change of size needs no
    /// other. Only the parser thread looks.
    largest: Mutex<(u32, u32)>,
}

impl<D: Destination> Nvdec<D> {
    /// A decoder that copies its pictures to `destination`. Opens nothing yet.
    pub fn new(settings: Settings, destination: D) -> Self {
        Self {
            settings,
            destination,
            contexts: AtomicU64::new(0),
            largest: Mutex::default(),
        }
    }

    /// Where pictures go.
    pub fn destination(&self) -> &D {
        &self.destination
    }

    fn open_on(number: u32, primary: bool) -> Result<Gpu, GpuError> {
        let driver = Driver::load().map_err(|error| failure::of_loading(&error))?;
        let device = driver
            .device(number)
            .map_err(|error| failure::of_loading(&error))?;
        let context = if primary {
            Context::retain_primary(driver, device)
        } else {
            Context::create(driver, device)
        };
        context.and_then(Gpu::new).map_err(failure::of_driver)
    }

    /// Whether the device can do it.
    fn check_caps(
        &self,
        gpu: &Gpu,
        nvcuvid: &Nvcuvid,
        config: &nv::DecoderConfig,
        format: &StreamFormat,
    ) -> Result<(), GpuError> {
        let caps = DecoderCaps::query(
            gpu.context(),
            nvcuvid,
            config.codec,
            config.chroma,
            config.bit_depth,
        )
        .map_err(failure::of_driver)?;
        caps.check(
            config.coded_width,
            config.coded_height,
            config.output_format,
        )
        .map_err(|refusal| self.unsupported(format, &refusal.to_string()))
    }

    fn unsupported(&self, format: &StreamFormat, why: &str) -> GpuError {
        failure::unsupported(
            "cuvidGetDecoderCaps",
            format!(
                "{} {} with {} bit: {why}",
                self.settings.codec,
                format.chroma_name(),
                format.depth()
            ),
        )
    }

    fn config(
        &self,
        format: &StreamFormat,
        plan: SurfacePlan,
    ) -> Result<nv::DecoderConfig, GpuError> {
        let largest = *self.largest.lock().unwrap_or_else(PoisonError::into_inner);
        format
            .decoder_config(plan.decode_surfaces, plan.output_surfaces, largest)
            .ok_or_else(|| self.unsupported(format, "no surface format keeps every sample of it"))
    }
}

/// A decoder with its context.
#[derive(Debug)]
pub struct Decoder {
    decoder: Arc<nv::Decoder>,
    gpu: Arc<Gpu>,
}

/// The parser's callbacks as the ring's events.
struct Client<'a, D: Destination> {
    events: &'a mut dyn ParserEvents<Nvdec<D>>,
    codec: nv::cudaVideoCodec,
}

/// An index as the ring has it; beyond its range where the library's makes no sense.
fn index(raw: i32) -> u8 {
    u8::try_from(raw).unwrap_or(u8::MAX)
}

impl<D: Destination> nv::ParserClient for Client<'_, D> {
    fn sequence(
        &mut self,
        format: &nv::CUVIDEOFORMAT,
    ) -> Result<nv::SequenceAnswer, nv::CallbackFailed> {
        match self.events.sequence(&StreamFormat::new(format)) {
            SequenceReply::Surfaces(count) => Ok(nv::SequenceAnswer::Surfaces(count.into())),
            SequenceReply::Fail => Err(nv::CallbackFailed),
        }
    }

    fn decode(&mut self, picture: &PictureParams) -> Result<(), nv::CallbackFailed> {
        let shown = picture.picture_index();
        let plain = picture.film_grain_reference(self.codec);
        let info = PictureInfo {
            index: index(shown),
            film_grain_reference: plain.filter(|plain| *plain != shown).map(index),
            intra: picture.is_intra(self.codec),
            reference: picture.is_reference(),
            second_field: picture.second_field() == Some(true),
        };
        let taken = self.events.decode(info, picture);
        taken.then_some(()).ok_or(nv::CallbackFailed)
    }

    fn display(&mut self, display: &nv::CUVIDPARSERDISPINFO) -> Result<(), nv::CallbackFailed> {
        let shown = DisplayInfo {
            index: index(display.picture_index),
            progressive: display.progressive_frame != 0,
            top_field_first: display.top_field_first != 0,
            repeat_first_field: i8::try_from(display.repeat_first_field).unwrap_or(0),
        };
        let taken = self.events.display(Some(shown));
        taken.then_some(()).ok_or(nv::CallbackFailed)
    }

    fn end_of_stream(&mut self) {
        self.events.display(None);
    }
}

impl<D: Destination> GpuApi for Nvdec<D> {
    type Context = Gpu;
    type Parser = nv::Parser;
    type Decoder = Decoder;
    type Format = StreamFormat;
    type Params = PictureParams;
    type Mapped = Arc<MappedSurface>;
    type Copy = D::Pending;
    type Frame = D::Frame;

    fn open_context(&self) -> Result<Gpu, GpuError> {
        let first = self.contexts.fetch_add(1, Ordering::Relaxed) == 0;
        match &self.settings.context {
            ContextSource::Device(number) => {
                let shared = first.then(|| Self::open_on(*number, true));
                match shared {
                    Some(Err(error)) if error.class == ErrorClass::Sticky => {}
                    Some(result) => return result,
                    None => {}
                }
                // The primary context is broken, and stays so while anybody in the process holds it.
                Self::open_on(*number, false)
            }
            ContextSource::Shared(context) if first => {
                Gpu::new(context.clone()).map_err(failure::of_driver)
            }
            ContextSource::Shared(_) => Err(failure::refused(
                "cuCtxCreate",
                "the context is shared with other elements and cannot be replaced".to_owned(),
            )),
        }
    }

    fn create_parser(&self) -> Result<nv::Parser, GpuError> {
        let nvcuvid = Nvcuvid::load().map_err(|error| failure::of_loading(&error))?;
        let config = nv::ParserConfig {
            max_display_delay: self.settings.display_delay.into(),
            ..nv::ParserConfig::new(self.settings.codec.raw())
        };
        nv::Parser::new(nvcuvid, &config)
            .map_err(|error| failure::of_call("cuvidCreateVideoParser", error))
    }

    fn parse(
        &self,
        parser: &mut nv::Parser,
        input: ParserInput<'_>,
        events: &mut dyn ParserEvents<Self>,
    ) -> Result<(), GpuError> {
        let packet = nv::Packet {
            data: input.data,
            timestamp: input.timestamp,
            end_of_picture: input.end_of_picture,
            discontinuity: input.discontinuity,
            end_of_stream: input.end_of_stream,
            notify_end_of_stream: false,
        };
        let mut client = Client {
            events,
            codec: self.settings.codec.raw(),
        };
        match parser.parse(&packet, &mut client) {
            Ok(()) => Ok(()),
            Err(nv::ParseError::Cuda(error)) => Err(failure::of_driver(error)),
            Err(nv::ParseError::Callback) => Err(failure::refused(
                "cuvidParseVideoData",
                "a callback failed".to_owned(),
            )),
            #[expect(
                clippy::panic,
                reason = "a panic of a callback goes on here, where no foreign frame is in its way: \
                          the session ends and says so"
            )]
            Err(nv::ParseError::Panic(text)) => panic!("{text}"),
        }
    }

    fn min_decode_surfaces(&self, format: &StreamFormat) -> u8 {
        format.min_decode_surfaces
    }

    fn create_decoder(
        &self,
        context: &Arc<Gpu>,
        format: &StreamFormat,
        plan: SurfacePlan,
    ) -> Result<Decoder, GpuError> {
        let nvcuvid = Nvcuvid::load().map_err(|error| failure::of_loading(&error))?;
        let mut config = self.config(format, plan)?;
        self.check_caps(context, nvcuvid, &config, format)?;
        let create =
            |config: &nv::DecoderConfig| nv::Decoder::new(context.context(), nvcuvid, config);
        let mut created = create(&config);
        let exact = (format.coded_width, format.coded_height);
        if created.is_err() && (config.max_width, config.max_height) != exact {
            // Room for a larger size is a convenience: without it, it may work.
            (config.max_width, config.max_height) = exact;
            created = create(&config);
        }
        let decoder = created.map_err(|error| failure::of_call("cuvidCreateDecoder", error))?;
        let mut largest = self.largest.lock().unwrap_or_else(PoisonError::into_inner);
        *largest = (largest.0.max(exact.0), largest.1.max(exact.1));
        Ok(Decoder {
            decoder,
            gpu: context.clone(),
        })
    }

    fn fits(&self, decoder: &Decoder, format: &StreamFormat, plan: SurfacePlan) -> bool {
        let has_it = Nvcuvid::load().is_ok_and(Nvcuvid::has_reconfigure);
        has_it
            && self
                .config(format, plan)
                .is_ok_and(|next| decoder.decoder.config().can_become(&next))
    }

    fn reconfigure(
        &self,
        decoder: &Decoder,
        format: &StreamFormat,
        plan: SurfacePlan,
    ) -> Result<(), GpuError> {
        let next = self.config(format, plan)?;
        decoder
            .decoder
            .reconfigure(&next)
            .map_err(|error| failure::of_call("cuvidReconfigureDecoder", error))
    }

    fn decode(&self, decoder: &Decoder, params: &PictureParams) -> Result<(), GpuError> {
        decoder
            .decoder
            .decode(params)
            .map_err(|error| failure::of_call("cuvidDecodePicture", error))
    }

    fn status(&self, decoder: &Decoder, index: u8) -> Result<DecodeStatus, GpuError> {
        let status = decoder
            .decoder
            .status(index.into())
            .map_err(|error| failure::of_call("cuvidGetDecodeStatus", error))?;
        Ok(match status {
            nv::DecodeStatus::InProgress => DecodeStatus::InProgress,
            nv::DecodeStatus::Success => DecodeStatus::Success,
            nv::DecodeStatus::Error => DecodeStatus::Error,
            nv::DecodeStatus::ErrorConcealed => DecodeStatus::Concealed,
            nv::DecodeStatus::Invalid | nv::DecodeStatus::Reserved(_) => DecodeStatus::Unknown,
        })
    }

    fn map(
        &self,
        decoder: &Arc<Decoder>,
        shown: &DisplayInfo,
    ) -> Result<Arc<MappedSurface>, GpuError> {
        let fields = nv::FieldSelection {
            progressive: shown.progressive,
            top_field_first: shown.top_field_first,
            unpaired: shown.repeat_first_field < 0,
        };
        decoder
            .decoder
            .map(shown.index.into(), fields, decoder.gpu.stream())
            .map_err(|error| failure::of_call("cuvidMapVideoFrame", error))
    }

    fn begin_copy(
        &self,
        decoder: &Decoder,
        format: &StreamFormat,
        mapped: &Arc<MappedSurface>,
    ) -> Result<D::Pending, GpuError> {
        self.destination.begin(&decoder.gpu, format, mapped)
    }

    fn finish_copy(&self, copy: D::Pending) -> Result<D::Frame, GpuError> {
        self.destination.finish(copy)
    }

    fn unmap(&self, _: &Decoder, mapped: Arc<MappedSurface>) -> Result<(), GpuError> {
        mapped
            .unmap()
            .map_err(|error| failure::of_call("cuvidUnmapVideoFrame", error))
    }
}
