// SPDX-License-Identifier: MPL-2.0

//! What `VPLSOFT_FAULTS`, or `vplsoft_set_faults`, asks of a session.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use av_backend::PictureKind;
use fault_script::{Dice, FaultError, Faults, RandomFault, ScriptPlayer, ScriptStep};
use onevpl_sys::MfxStatus;

use crate::memory::lock;
use crate::pin;

/// The environment variable.
const VARIABLE: &str = "VPLSOFT_FAULTS";

/// The faults of the sessions that are opened from now on, where the environment does not decide.
static OVERRIDE: Mutex<Option<Faults>> = Mutex::new(None);

/// Sessions that have created a decoder, for `device-lost=FRAME:SESSIONS`.
static DECODING_SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Sets the faults of sessions that are opened later; `None` leaves them to the environment again.
pub(crate) fn set(text: Option<&str>) -> Result<(), FaultError> {
    let faults = text.map(str::parse).transpose()?;
    *lock(&OVERRIDE) = faults;
    Ok(())
}

/// What to do with a call before anything is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Decode.
    Normal,
    /// Decode; a picture is given out with this status, and with a sync point or without.
    WithPicture { status: MfxStatus, sync: bool },
    /// Answer this and do nothing.
    Answer { status: MfxStatus, sync: bool },
}

/// What to do with an access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitFault {
    None,
    Fail,
    Hang,
    Lost,
}

/// What to do with a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PictureFaults {
    pub(crate) corrupt: bool,
    pub(crate) status_error: bool,
    pub(crate) sync_hangs: bool,
    pub(crate) map_hangs: bool,
    pub(crate) latency: Duration,
}

/// The faults of one session and how far they have come.
#[derive(Debug)]
pub(crate) struct SessionFaults {
    faults: Faults,
    script: ScriptPlayer,
    dice: Option<Dice>,
    /// This session's number among those that decode, from 0.
    ordinal: Option<u64>,
    lost: bool,
    units: u64,
    pictures: u64,
    /// Drawn for the call that is going on.
    late: Duration,
    corrupt: bool,
}

impl SessionFaults {
    /// Reads what a session that is opened now is to do.
    ///
    /// # Errors
    /// The text of the message: a fault that is not understood must not be passed over.
    pub(crate) fn for_new_session() -> Result<Self, String> {
        if let Some(faults) = lock(&OVERRIDE).clone() {
            return Ok(Self::new(faults));
        }
        let Some(text) = std::env::var_os(VARIABLE) else {
            return Ok(Self::new(Faults::default()));
        };
        let text = text
            .to_str()
            .ok_or_else(|| format!("{VARIABLE}: the value is not UTF-8"))?;
        let faults = text
            .parse()
            .map_err(|error| format!("{VARIABLE}: {error}"))?;
        Ok(Self::new(faults))
    }

    fn new(faults: Faults) -> Self {
        Self {
            script: ScriptPlayer::new(faults.script.clone()),
            dice: faults.seed.map(Dice::new),
            faults,
            ordinal: None,
            lost: false,
            units: 0,
            pictures: 0,
            late: Duration::ZERO,
            corrupt: false,
        }
    }

    /// The settings that do not change.
    pub(crate) fn settings(&self) -> &Faults {
        &self.faults
    }

    /// The session creates a decoder.
    pub(crate) fn begin_decoding(&mut self) {
        if self.faults.device_lost.is_some() || self.faults.engines.is_some() {
            // What is counted for the whole process has to outlive the unloading between two sessions.
            pin::keep_loaded();
        }
        self.ordinal
            .get_or_insert_with(|| DECODING_SESSIONS.fetch_add(1, Ordering::SeqCst));
    }

    /// Whether the device is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// The next `DecodeFrameAsync`.
    pub(crate) fn plan(&mut self) -> Plan {
        (self.late, self.corrupt) = (Duration::ZERO, false);
        let busy = MfxStatus::WRN_DEVICE_BUSY;
        let answer = |status, sync| Plan::Answer { status, sync };
        if self.lost {
            return answer(MfxStatus::ERR_DEVICE_LOST, false);
        }
        if self.faults.busy.as_mut().is_some_and(|times| times.take()) {
            return answer(busy, false);
        }
        if self
            .faults
            .busy_with_sync
            .as_mut()
            .is_some_and(|times| times.take())
        {
            return answer(busy, true);
        }
        match self.script.current() {
            ScriptStep::Normal => self.script.advance(),
            ScriptStep::Answer { status, sync } => {
                self.script.advance();
                return answer(MfxStatus(status), sync);
            }
            ScriptStep::WithPicture { status, sync } => {
                return Plan::WithPicture {
                    status: MfxStatus(status),
                    sync,
                };
            }
        }
        match self.dice.as_mut().map_or(RandomFault::None, Dice::roll) {
            RandomFault::None => Plan::Normal,
            RandomFault::Busy(_) => answer(busy, false),
            RandomFault::BusyWithSync => answer(busy, true),
            RandomFault::Warning => answer(MfxStatus::WRN_VIDEO_PARAM_CHANGED, false),
            RandomFault::Starved => answer(MfxStatus::WRN_ALLOC_TIMEOUT_EXPIRED, false),
            RandomFault::PictureWithWarning => Plan::WithPicture {
                status: MfxStatus::WRN_VIDEO_PARAM_CHANGED,
                sync: true,
            },
            RandomFault::Late(microseconds) => {
                self.late = Duration::from_micros(microseconds);
                Plan::Normal
            }
            RandomFault::Corrupt => {
                self.corrupt = true;
                Plan::Normal
            }
        }
    }

    /// A picture was given out under [`Plan::WithPicture`].
    pub(crate) fn picture_planned(&mut self) {
        if matches!(self.script.current(), ScriptStep::WithPicture { .. }) {
            self.script.advance();
        }
    }

    /// The next access unit goes to the decoder.
    pub(crate) fn next_unit(&mut self) -> UnitFault {
        let number = self.units;
        self.units += 1;
        if let Some(lost) = self.faults.device_lost
            && lost.frame == number
            && self.ordinal.is_some_and(|ordinal| ordinal < lost.sessions)
        {
            self.lost = true;
            return UnitFault::Lost;
        }
        if self.faults.decode_hang == Some(number) {
            return UnitFault::Hang;
        }
        if self.faults.fail_decode == Some(number) {
            return UnitFault::Fail;
        }
        UnitFault::None
    }

    /// The next picture is given out.
    pub(crate) fn next_picture(&mut self, kind: PictureKind) -> PictureFaults {
        let number = self.pictures;
        self.pictures += 1;
        let at = |wanted: Option<u64>| wanted == Some(number);
        let latency = self.faults.latency.map_or(0, |latency| match kind {
            PictureKind::I => latency.i,
            PictureKind::P => latency.p,
            PictureKind::B => latency.b,
        });
        PictureFaults {
            corrupt: at(self.faults.corrupt) || self.corrupt,
            status_error: at(self.faults.status_error),
            sync_hangs: at(self.faults.sync_hang),
            map_hangs: at(self.faults.map_hang),
            latency: Duration::from_micros(latency) + self.late,
        }
    }
}
