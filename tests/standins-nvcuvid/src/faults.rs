// SPDX-License-Identifier: MPL-2.0

//! What `NVSTANDIN_FAULTS`, or `standin_nvcuvid_set_faults`, asks of a decoder.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use av_backend::PictureKind;
use fault_script::{Dice, FaultError, Faults, RandomFault, ScriptPlayer, ScriptStep};
use nvcuvid_sys::CuResult;

use crate::engine::DEFAULT_LATENCY;
use crate::lock;

/// The environment variable.
const VARIABLE: &str = "NVSTANDIN_FAULTS";

/// The faults of what is created from now on, where the environment does not decide.
static OVERRIDE: Mutex<Option<Faults>> = Mutex::new(None);

/// Decoders that were created, for `device-lost=FRAME:SESSIONS`.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Sets the faults of parsers and decoders that are created later; `None` leaves them to the environment.
///
/// # Errors
/// The text is not understood; nothing changes.
pub fn set(text: Option<&str>) -> Result<(), FaultError> {
    let faults = text.map(str::parse).transpose()?;
    *lock(&OVERRIDE) = faults;
    Ok(())
}

/// The faults of what is created now.
///
/// # Errors
/// `CUDA_ERROR_INVALID_VALUE`, and a line that says why: a fault that is not understood is not passed over.
pub fn current() -> Result<Faults, CuResult> {
    if let Some(faults) = lock(&OVERRIDE).clone() {
        return Ok(faults);
    }
    let Some(text) = std::env::var_os(VARIABLE) else {
        return Ok(Faults::default());
    };
    let parsed = match text.to_str() {
        Some(text) => text.parse().map_err(|error: FaultError| error.to_string()),
        None => Err("the value is not UTF-8".to_owned()),
    };
    parsed.map_err(|error| {
        eprintln!("standin_nvcuvid: {VARIABLE}: {error}");
        CuResult::INVALID_VALUE
    })
}

/// What a call of `cuvidDecodePicture` is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Decode.
    Decode {
        /// Wait until the queue is empty first.
        drained: bool,
        /// Wait that much longer first.
        pause: Duration,
        /// Answer this although the picture was taken.
        answer: CuResult,
    },
    /// Answer this; the picture is not taken.
    Refuse(CuResult),
    /// Never return.
    Hang,
    /// Lose the device.
    Lose,
}

/// What becomes of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PictureFaults {
    /// Its status is an error that was concealed.
    pub concealed: bool,
    /// Its status is an error, and its lower half is lost.
    pub error: bool,
    /// It is never done.
    pub sync_hangs: bool,
    /// It is done, and mapping it never returns.
    pub map_hangs: bool,
    /// What decoding it takes.
    pub latency: Duration,
}

/// The faults of one decoder and how far they have come.
#[derive(Debug)]
pub struct DecoderFaults {
    faults: Faults,
    script: ScriptPlayer,
    dice: Option<Dice>,
    /// This decoder's number in the process, from 0.
    ordinal: u64,
    units: u64,
    pictures: u64,
    late: Duration,
    corrupt: bool,
}

impl DecoderFaults {
    /// A decoder was created.
    pub fn new(faults: Faults) -> Self {
        Self {
            script: ScriptPlayer::new(faults.script.clone()),
            dice: faults.seed.map(Dice::new),
            ordinal: SESSIONS.fetch_add(1, Ordering::SeqCst),
            faults,
            units: 0,
            pictures: 0,
            late: Duration::ZERO,
            corrupt: false,
        }
    }

    /// `engines=N`.
    pub fn engines(&self) -> Option<u64> {
        self.faults.engines
    }

    /// `pool=N`.
    pub fn pool(&self) -> Option<u64> {
        self.faults.pool
    }

    /// `close-hang`.
    pub fn close_hangs(&self) -> bool {
        self.faults.close_hang
    }

    /// The next `cuvidDecodePicture`.
    pub fn next_unit(&mut self) -> Plan {
        (self.late, self.corrupt) = (Duration::ZERO, false);
        let number = self.units;
        let plain = Plan::Decode {
            drained: false,
            pause: Duration::ZERO,
            answer: CuResult::SUCCESS,
        };
        // A refused call does not count: the picture that it was about comes again, or never.
        if self.faults.busy.as_mut().is_some_and(|times| times.take()) {
            return Plan::Refuse(CuResult::NOT_READY);
        }
        let step = self.script.current();
        self.script.advance();
        match step {
            ScriptStep::Normal => {}
            // 0 is a success, which a picture that is not taken cannot be.
            ScriptStep::Answer { status, .. } if status != 0 => {
                return Plan::Refuse(CuResult(status as u32));
            }
            ScriptStep::Answer { status, sync } | ScriptStep::WithPicture { status, sync } => {
                self.units += 1;
                return Plan::Decode {
                    drained: sync,
                    pause: Duration::ZERO,
                    answer: CuResult(status as u32),
                };
            }
        }
        self.units += 1;
        if let Some(lost) = self.faults.device_lost
            && lost.frame == number
            && self.ordinal < lost.sessions
        {
            return Plan::Lose;
        }
        if self.faults.decode_hang == Some(number) {
            return Plan::Hang;
        }
        if self.faults.fail_decode == Some(number) {
            return Plan::Refuse(CuResult::INVALID_VALUE);
        }
        let pause = |length: Duration| Plan::Decode {
            drained: false,
            pause: length,
            answer: CuResult::SUCCESS,
        };
        match self.dice.as_mut().map_or(RandomFault::None, Dice::roll) {
            RandomFault::None => plain,
            RandomFault::Busy(calls) => pause(DEFAULT_LATENCY * calls.min(16) as u32),
            RandomFault::BusyWithSync | RandomFault::Starved => Plan::Decode {
                drained: true,
                pause: Duration::ZERO,
                answer: CuResult::SUCCESS,
            },
            RandomFault::Warning => pause(DEFAULT_LATENCY),
            RandomFault::Late(microseconds) => {
                self.late = Duration::from_micros(microseconds);
                plain
            }
            RandomFault::PictureWithWarning | RandomFault::Corrupt => {
                self.corrupt = true;
                plain
            }
        }
    }

    /// The next `cuvidMapVideoFrame` finds the device busy.
    pub fn map_is_busy(&mut self) -> bool {
        let times = self.faults.busy_with_sync.as_mut();
        times.is_some_and(|times| times.take())
    }

    /// The picture of the call that [`next_unit`](Self::next_unit) let pass. A second field is part of its frame.
    pub fn next_picture(&mut self, kind: PictureKind, second_field: bool) -> PictureFaults {
        if second_field {
            self.pictures = self.pictures.saturating_sub(1);
        }
        let number = self.pictures;
        self.pictures += 1;
        let at = |wanted: Option<u64>| wanted == Some(number);
        let latency = self.faults.latency.map_or(DEFAULT_LATENCY, |latency| {
            Duration::from_micros(match kind {
                PictureKind::I => latency.i,
                PictureKind::P => latency.p,
                PictureKind::B => latency.b,
            })
        });
        PictureFaults {
            concealed: at(self.faults.corrupt) || self.corrupt,
            error: at(self.faults.status_error),
            sync_hangs: at(self.faults.sync_hang),
            map_hangs: at(self.faults.map_hang),
            latency: latency + self.late,
        }
    }
}
