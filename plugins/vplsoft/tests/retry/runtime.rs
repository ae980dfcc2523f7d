// SPDX-License-Identifier: MPL-2.0

//! A session and its decoder, and the sessions that follow it.

use std::collections::VecDeque;
use std::rc::Rc;

use onevpl_sys::*;
use vplretry_core::{Decoded, Status};

use crate::client::Client;
use crate::play::set_session_faults;
use crate::surface::{Surface, Token};

pub(crate) struct Runtime {
    session: Option<Rc<Client>>,
    /// Between Init and Close.
    initialised: bool,
    codec: u32,
    depth: u16,
    /// Faults of the sessions that are still to be opened.
    faults: VecDeque<String>,
    /// Surfaces given out so far.
    given: u64,
}

/// What a call gave that brought neither surface nor sync point.
pub(crate) fn nothing(status: Status) -> Decoded<Surface, Token> {
    Decoded {
        status,
        surface: None,
        sync: None,
    }
}

impl Runtime {
    pub(crate) fn new(codec: u32, depth: u16, faults: &[String]) -> Self {
        Self {
            session: None,
            initialised: false,
            codec,
            depth,
            faults: faults.iter().cloned().collect(),
            given: 0,
        }
    }

    /// A new session in place of the old one, which lives as long as surfaces of it do.
    pub(crate) fn open(&mut self) -> Status {
        self.session = None;
        self.initialised = false;
        set_session_faults(self.faults.pop_front().as_deref().unwrap_or(""));
        match Client::dispatched(self.codec) {
            Ok(client) => {
                self.session = Some(Rc::new(client));
                Status::NONE
            }
            Err(status) => Status(status.0),
        }
    }

    pub(crate) fn session(&self) -> &Rc<Client> {
        let session = self.session.as_ref();
        session.expect("the loop calls only after a recovery that succeeded")
    }

    pub(crate) fn is_initialised(&self) -> bool {
        self.initialised
    }

    /// DecodeHeader and Init.
    pub(crate) fn init(&mut self, bs: &mut mfxBitstream) -> Status {
        match self.session().header(self.codec, bs) {
            Ok(mut par) => {
                par.AsyncDepth = self.depth;
                self.init_with(&mut par)
            }
            Err(status) => Status(status.0),
        }
    }

    fn init_with(&mut self, par: &mut mfxVideoParam) -> Status {
        let status = self.session().init(par);
        self.initialised = !status.is_error();
        Status(status.0)
    }

    pub(crate) fn close(&mut self) {
        if std::mem::take(&mut self.initialised) {
            self.session().close_decoder();
        }
    }

    /// Reset, or Close and Init where that is refused. What is not initialised has nothing to reset.
    pub(crate) fn reset(&mut self) -> Status {
        if !self.initialised {
            return Status::NONE;
        }
        let session = self.session();
        let mut par = session.video_param();
        // SAFETY: the session is open and the structure is valid.
        let status = unsafe { (session.f.MFXVideoDECODE_Reset)(session.session, &mut par) };
        if status != MfxStatus::ERR_INCOMPATIBLE_VIDEO_PARAM {
            return Status(status.0);
        }
        self.close();
        self.init_with(&mut par)
    }

    pub(crate) fn read_parameters(&self) -> Status {
        let session = self.session();
        let mut par = mfxVideoParam::default();
        // SAFETY: the session is open and the structure is valid.
        let status = unsafe { (session.f.MFXVideoDECODE_GetVideoParam)(session.session, &mut par) };
        Status(status.0)
    }

    /// `DecodeFrameAsync`; `None` drains.
    pub(crate) fn decode(&mut self, bs: Option<&mut mfxBitstream>) -> Decoded<Surface, Token> {
        let session = self.session();
        let (status, surface, sync) = session.call(bs);
        let decoded = Decoded {
            status: Status(status.0),
            surface: Surface::new(surface, self.given, session),
            sync: Token::new(sync, session),
        };
        self.given += u64::from(decoded.surface.is_some());
        decoded
    }
}
