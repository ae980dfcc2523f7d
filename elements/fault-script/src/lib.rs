// SPDX-License-Identifier: MPL-2.0

//! The grammar in which a software runtime is told to misbehave.
//!
//! A text such as `busy=3;latency-us=500:800:900;corrupt=7` is read into [`Faults`]. Keys are separated by
//! `;`, spaces around them do not count, and a key may stand once. Numbers of frames, pictures and access
//! units count from 0. What the keys do is the runtime's matter; this crate reads them, keeps the place in a
//! script of statuses ([`ScriptPlayer`]) and draws the random faults of a seed ([`Dice`]).

mod dice;
mod parse;
mod script;

pub use dice::{Dice, RandomFault};
pub use parse::FaultError;
pub use script::{ScriptEntry, ScriptPlayer, ScriptStep};

/// A number of times, or without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// That many.
    Count(u64),
    /// For ever.
    Forever,
}

impl Times {
    /// Uses one time up; false when none was left.
    pub fn take(&mut self) -> bool {
        match self {
            Times::Forever => true,
            Times::Count(0) => false,
            Times::Count(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// The device is lost at a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLost {
    /// The access unit at which it happens.
    pub frame: u64,
    /// How many sessions, counted from the process's first, lose it.
    pub sessions: u64,
}

/// Microseconds that decoding a picture takes, by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Intra pictures.
    pub i: u64,
    /// Pictures predicted from one direction.
    pub p: u64,
    /// Pictures predicted from two directions.
    pub b: u64,
}

/// What was asked for. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// `busy=N|forever`: the first N decode calls find the device busy.
    pub busy: Option<Times>,
    /// `busy-with-sync=N`: the first N decode calls find it busy and give something to wait for.
    pub busy_with_sync: Option<Times>,
    /// `script=...`: one entry a decode call.
    pub script: Vec<ScriptEntry>,
    /// `latency-us=I:P:B`.
    pub latency: Option<Latency>,
    /// `engines=N`: pictures that are decoded at once, by all sessions together.
    pub engines: Option<u64>,
    /// `pool=N`: pictures that a client may hold.
    pub pool: Option<u64>,
    /// `fail-decode=N`: submitting access unit N fails.
    pub fail_decode: Option<u64>,
    /// `status-error=N`: the result of picture N is an error.
    pub status_error: Option<u64>,
    /// `device-lost=FRAME[:SESSIONS]`.
    pub device_lost: Option<DeviceLost>,
    /// `init-hang`: creating the decoder never returns.
    pub init_hang: bool,
    /// `decode-hang=FRAME`: submitting the access unit never returns.
    pub decode_hang: Option<u64>,
    /// `sync-hang=FRAME`: waiting for the picture never ends.
    pub sync_hang: Option<u64>,
    /// `map-hang=FRAME`: mapping the picture never returns.
    pub map_hang: Option<u64>,
    /// `close-hang`: destroying the decoder never returns.
    pub close_hang: bool,
    /// `corrupt=FRAME`: the picture is marked as damaged.
    pub corrupt: Option<u64>,
    /// `silent-resize`: a new size is not told.
    pub silent_resize: bool,
    /// `seed=N`: random faults that a careful client survives without losing a picture.
    pub seed: Option<u64>,
}

impl Faults {
    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
