// SPDX-License-Identifier: MPL-2.0

//! A session and its decoder, and the sessions that follow it. Only the session thread calls it.

use std::sync::Arc;
use std::time::Duration;

use elementary_stream::Codec;
use onevpl_sys::{Input, MfxStatus, Parameters, Session, Surface, SyncPoint, VaDisplay};
use vplretry_core::{Decoded, Status};

use crate::codec;
use crate::device::{Device, Wedged};
use crate::failure::{Failure, Kind};
use crate::link::{CallKind, Link};
use crate::reply::Opened;
use crate::select::{Candidate, Found, Source};

pub(crate) struct Runtime {
    link: Arc<Link>,
    found: Found,
    codec: Codec,
    depth: u16,
    surface_limit: u32,
    chosen: usize,
    session: Option<Arc<Session>>,
    /// What the decoder was initialised with.
    parameters: Option<Parameters>,
    implementation: String,
}

/// What a call gave that brought neither surface nor sync point.
pub(crate) fn nothing(status: Status) -> Decoded<Surface, SyncPoint> {
    Decoded {
        status,
        surface: None,
        sync: None,
    }
}

fn status(status: MfxStatus) -> Status {
    Status(status.0)
}

/// The unit of the interface: rounded up, so that a wait that is not zero is none.
pub(crate) fn milliseconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u32::MAX)
}

impl Runtime {
    pub(crate) fn new(
        link: Arc<Link>,
        found: Found,
        codec: Codec,
        depth: u16,
        surface_limit: u32,
    ) -> Self {
        Self {
            link,
            found,
            codec,
            depth,
            surface_limit,
            chosen: 0,
            session: None,
            parameters: None,
            implementation: String::new(),
        }
    }

    pub(crate) fn implementation(&self) -> &str {
        &self.implementation
    }

    /// Opens the first candidate that decodes the codec.
    pub(crate) fn choose(&mut self) -> Result<Opened, Failure> {
        let fourcc = codec::fourcc(self.codec);
        let mut reasons = Vec::new();
        let mut kind = Kind::Unsupported;
        for number in 0..self.found.candidates.len() {
            let candidate = &self.found.candidates[number];
            if candidate
                .codecs
                .as_ref()
                .is_some_and(|codecs| !codecs.contains(&fourcc))
            {
                reasons.push(format!(
                    "{} ({}) does not decode it",
                    candidate.name, candidate.path
                ));
                continue;
            }
            self.chosen = number;
            match self.open() {
                Ok(()) => return Ok(self.opened(&reasons)),
                Err(failure) => {
                    kind = failure.kind;
                    reasons.push(failure.text);
                }
            }
        }
        Err(Failure::new(
            kind,
            format!(
                "no oneVPL implementation for {}: {}",
                codec::name(self.codec),
                reasons.join("; ")
            ),
        ))
    }

    fn candidate(&self) -> &Candidate {
        &self.found.candidates[self.chosen]
    }

    fn opened(&self, reasons: &[String]) -> Opened {
        let candidate = self.candidate();
        let api = candidate.api.or_else(|| {
            let session = self.session.as_ref()?;
            session.version().ok()
        });
        let fallback = (!candidate.hardware && !self.found.no_hardware.is_empty())
            .then(|| self.found.no_hardware.clone())
            .or_else(|| (!reasons.is_empty()).then(|| reasons.join("; ")));
        Opened {
            name: candidate.name.clone(),
            api: api.map_or_else(String::new, |(major, minor)| format!("{major}.{minor}")),
            hardware: candidate.hardware,
            fallback,
            path: candidate.path.clone(),
        }
    }

    fn device(&self) -> Arc<Device> {
        let candidate = self.candidate();
        Device::named(&match &candidate.render_device {
            Some(node) => node.display().to_string(),
            None => candidate.path.clone(),
        })
    }

    /// Makes a call with the device, seen by the other side.
    fn with_device<T>(&self, name: &'static str, act: impl FnOnce() -> T) -> Result<T, Wedged> {
        let device = self.device();
        let link = &self.link;
        device.with(name, || link.call(name, CallKind::Work, act))
    }

    /// A new session in place of the old one, which lives as long as surfaces of it do.
    pub(crate) fn open(&mut self) -> Result<(), Failure> {
        self.session = None;
        self.parameters = None;
        let candidate = self.candidate().clone();
        self.implementation.clone_from(&candidate.name);
        let session = self
            .with_device("MFXCreateSession", || create(&candidate))
            .map_err(|wedged| Failure::new(Kind::Failed, wedged.to_string()))??;
        self.session = Some(Arc::new(self.closed_with_device(session)));
        Ok(())
    }

    /// Closing it takes the device. A wedged one is not waited for: the session is leaked.
    fn closed_with_device(&self, mut session: Session) -> Session {
        let device = self.device();
        let link = Arc::clone(&self.link);
        session.set_closer(Box::new(move |close| {
            const CALL: &str = "MFXVideoDECODE_Close or MFXClose";
            // The reason is known to whoever wedged the device.
            let _: Result<(), Wedged> =
                device.with(CALL, || link.call(CALL, CallKind::Work, close));
        }));
        session
    }

    fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    pub(crate) fn is_initialised(&self) -> bool {
        self.session()
            .is_some_and(|session| session.is_initialised())
    }

    /// Every picture is a frame of one moment, as the header says.
    pub(crate) fn is_progressive(&self) -> bool {
        self.parameters.as_ref().is_some_and(|parameters| {
            u32::from(parameters.picture().pic_struct) == onevpl_sys::MFX_PICSTRUCT_PROGRESSIVE
        })
    }

    /// DecodeHeader, Query and Init.
    pub(crate) fn init(&mut self, input: &mut Input<'_>) -> Status {
        let Some(session) = self.session().cloned() else {
            return Status::DEVICE_LOST;
        };
        let mut parameters = Parameters::new(codec::fourcc(self.codec));
        let header = self
            .link
            .call("MFXVideoDECODE_DecodeHeader", CallKind::Work, || {
                session.decode_header(input, &mut parameters)
            });
        if header.is_error() {
            return status(header);
        }
        let picture = parameters.picture();
        if picture.width == 0 || picture.height == 0 {
            // Some runtimes find a header in half of one.
            return Status::MORE_DATA;
        }
        parameters.set_async_depth(self.depth);
        parameters.set_surface_limit(self.surface_limit);
        let query = self.link.call("MFXVideoDECODE_Query", CallKind::Work, || {
            session.query(&mut parameters)
        });
        if query == MfxStatus::ERR_UNSUPPORTED {
            return Status::UNSUPPORTED;
        }
        self.init_with(parameters)
    }

    fn init_with(&mut self, mut parameters: Parameters) -> Status {
        let Some(session) = self.session().cloned() else {
            return Status::DEVICE_LOST;
        };
        let init = self.with_device("MFXVideoDECODE_Init", || session.init(&mut parameters));
        match init {
            Ok(init) => {
                if !init.is_error() {
                    self.parameters = Some(parameters);
                }
                status(init)
            }
            // `open` says why.
            Err(_) => Status::DEVICE_FAILED,
        }
    }

    /// Ends the decoder, to begin anew. Where surfaces of it are in use, a new session takes its place.
    pub(crate) fn close_decoder(&mut self) -> Result<(), Failure> {
        let Some(session) = self.session().cloned() else {
            return self.open();
        };
        if !session.is_initialised() {
            return Ok(());
        }
        // One is the runtime's own and one is this function's.
        if Arc::strong_count(&session) > 2 {
            drop(session);
            return self.open();
        }
        let closed = self.with_device("MFXVideoDECODE_Close", || session.close_decoder());
        drop(session);
        match closed {
            Ok(_) => Ok(()),
            Err(wedged) => Err(Failure::new(Kind::Failed, wedged.to_string())),
        }
    }

    /// Reset, or Close and Init where that is refused. What is not initialised has nothing to reset.
    pub(crate) fn reset(&mut self) -> Result<Status, Failure> {
        let Some(session) = self
            .session()
            .cloned()
            .filter(|session| session.is_initialised())
        else {
            return Ok(Status::NONE);
        };
        let mut parameters = Parameters::new(codec::fourcc(self.codec));
        let read = self
            .link
            .call("MFXVideoDECODE_GetVideoParam", CallKind::Work, || {
                session.video_param(&mut parameters)
            });
        if read.is_error() {
            return Ok(status(read));
        }
        let reset = self.link.call("MFXVideoDECODE_Reset", CallKind::Work, || {
            session.reset(&mut parameters)
        });
        drop(session);
        if reset != MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM {
            return Ok(status(reset));
        }
        self.close_decoder()?;
        parameters.set_surface_limit(self.surface_limit);
        Ok(self.init_with(parameters))
    }

    pub(crate) fn read_parameters(&mut self) -> Status {
        let Some(session) = self.session().cloned() else {
            return Status::DEVICE_LOST;
        };
        let mut parameters = Parameters::new(codec::fourcc(self.codec));
        let read = self
            .link
            .call("MFXVideoDECODE_GetVideoParam", CallKind::Work, || {
                session.video_param(&mut parameters)
            });
        if !read.is_error() {
            self.parameters = Some(parameters);
        }
        status(read)
    }

    /// `DecodeFrameAsync`; `None` drains.
    pub(crate) fn decode(&self, input: Option<&mut Input<'_>>) -> Decoded<Surface, SyncPoint> {
        let Some(session) = self.session() else {
            return nothing(Status::DEVICE_LOST);
        };
        let call = self
            .link
            .call("MFXVideoDECODE_DecodeFrameAsync", CallKind::Work, || {
                session.decode(input)
            });
        Decoded {
            status: status(call.status),
            surface: call.surface,
            sync: call.sync,
        }
    }
}

fn create(candidate: &Candidate) -> Result<Session, Failure> {
    let refused = |status: MfxStatus| {
        Failure::new(
            Kind::Failed,
            format!(
                "{} ({}): no session, {status}",
                candidate.name, candidate.path
            ),
        )
    };
    let mut session = match &candidate.source {
        Source::Dispatcher(loader, index) => loader.session(*index),
        Source::Direct(runtime) => Session::direct(runtime),
    }
    .map_err(refused)?;
    if let Some(node) = &candidate.render_device {
        let display = VaDisplay::open(node)
            .map_err(|error| Failure::new(Kind::NotFound, error.to_string()))?;
        session.set_display(display).map_err(refused)?;
    }
    Ok(session)
}
