// SPDX-License-Identifier: MPL-2.0

//! What the session thread tells the element.

use onevpl_sys::PictureInfo;
use vplretry_core::{Corruption, Event, Stats};

use crate::failure::Failure;
use crate::ledger::Fate;
use crate::picture::Picture;
use crate::unit::Token;

/// A frame for the element.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) token: Token,
    /// The flush that it came after.
    pub(crate) epoch: u64,
    pub(crate) info: PictureInfo,
    pub(crate) corruption: Corruption,
    /// Access units that were fed after its own before it came out.
    pub(crate) delay: u32,
    pub(crate) picture: Content,
}

/// The picture of a frame.
#[derive(Debug)]
pub(crate) enum Content {
    /// Still in its surface.
    Surface(Picture),
    /// Copied into the spare buffer.
    Copied(gst::Buffer),
}

/// What a session runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) api: String,
    pub(crate) hardware: bool,
    /// Hardware was asked for first and is not what runs.
    pub(crate) fallback: Option<String>,
    pub(crate) path: String,
}

/// What the session thread tells.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A session was opened.
    Opened(Opened),
    /// A frame.
    Output(Box<Output>),
    /// An access unit will give no frame.
    Lost(Token, Fate),
    /// A frame was dropped for its corruption flags.
    DroppedCorrupted(Token, Corruption),
    /// The loop reports something.
    Event(Event, Box<Stats>),
    /// What is decoded next refers to something that is lost.
    NeedKeyFrame,
    /// The command with this number has ended.
    Done(u64, Result<(), Failure>),
}
