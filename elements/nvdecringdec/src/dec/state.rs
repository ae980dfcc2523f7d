// SPDX-License-Identifier: MPL-2.0

//! What the element knows while it runs. Its lock is never held over a call of the ring or of GStreamer.

use std::collections::BTreeMap;
use std::sync::Arc;

use gst_video::VideoInfo;
use nvdecring_gpu::{Codec, Packetizer, StreamFormat};

use crate::messages::Account;
use crate::running::Running;

/// A frame on its way through the ring.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// GStreamer's number of it.
    pub(super) number: u32,
    /// What its caps said.
    pub(super) input: Arc<VideoInfo>,
}

/// What downstream was told of the pictures.
#[derive(Debug, Clone)]
pub(super) struct Configured {
    pub(super) format: Arc<StreamFormat>,
    pub(super) input: Arc<VideoInfo>,
    pub(super) video: gst_video::VideoFormat,
    /// In device memory.
    pub(super) device: bool,
}

#[derive(Default)]
pub(super) struct State {
    /// What the caps say.
    pub(super) codec: Option<Codec>,
    pub(super) input: Option<Arc<VideoInfo>>,
    pub(super) running: Option<Running>,
    pub(super) packetizer: Option<Packetizer>,
    /// Counts frames over all sessions: a picture of an earlier one finds nobody.
    pub(super) next_token: u64,
    pub(super) frames: BTreeMap<u64, Entry>,
    pub(super) configured: Option<Configured>,
    /// The latency that was reported.
    pub(super) latency: Option<(gst::ClockTime, gst::ClockTime)>,
    /// What downstream answered to a picture, if it was no success.
    pub(super) flow: Option<gst::FlowError>,
    /// The session cannot go on, and the bus knows.
    pub(super) failed: bool,
    /// The element goes to READY: nothing is opened any more.
    pub(super) stopping: bool,
    /// Between FLUSH_START and FLUSH_STOP.
    pub(super) flushing: bool,
    /// Something was submitted since the last flush or drain.
    pub(super) dirty: bool,
    /// Ask upstream for a key picture with the next damaged one.
    pub(super) wants_sync_point: bool,
    /// The account without the session that runs.
    pub(super) past: Account,
}
