// SPDX-License-Identifier: MPL-2.0

//! What ties the parser's picture parameters to the decoder: a number in `Reserved[0..2]`, by which
//! `cuvidDecodePicture` finds the samples while the decode callback runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use av_backend::PictureKind;
use nvcuvid_sys::CUVIDPICPARAMS;

use crate::lock;
use crate::pixels::Pixels;

/// Whether a picture's turn to be shown has come and gone.
#[derive(Debug, Default)]
pub struct Showing {
    shown: AtomicBool,
    /// Nobody waits for it any more: it was mapped, or its parser is gone.
    settled: AtomicBool,
    damaged: AtomicBool,
}

impl Showing {
    /// The display callback was called.
    pub fn show(&self) {
        self.shown.store(true, Ordering::Relaxed);
    }

    /// What the stream lacks of it was concealed.
    pub fn damage(&self) {
        self.damaged.store(true, Ordering::Relaxed);
    }

    /// Whether the stream is damaged there.
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// It is mapped, or the parser is gone.
    pub fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    /// It was shown, and is lost if its surface is written now.
    pub fn is_awaited(&self) -> bool {
        self.shown.load(Ordering::Relaxed) && !self.settled.load(Ordering::Relaxed)
    }
}

/// A picture between parser and decoder.
#[derive(Clone, Debug)]
pub struct Coded {
    /// The picture's number in this process.
    pub token: u64,
    /// What the surface holds when the engine is done.
    pub pixels: Option<Arc<Pixels>>,
    /// How it is predicted.
    pub kind: PictureKind,
    /// It is the second field of a picture that is in the decoder already.
    pub second_field: bool,
    /// Whether it was shown.
    pub showing: Arc<Showing>,
}

static CODED: Mutex<BTreeMap<u64, Coded>> = Mutex::new(BTreeMap::new());

/// Keeps a picture until this is dropped, and names it in `params`.
pub fn publish(coded: Coded, params: &mut CUVIDPICPARAMS) -> Published {
    let key = crate::new_number();
    params.Reserved[0] = key as u32;
    params.Reserved[1] = (key >> 32) as u32;
    lock(&CODED).insert(key, coded);
    Published(key)
}

/// A picture that can be decoded.
#[derive(Debug)]
pub struct Published(u64);

impl Drop for Published {
    fn drop(&mut self) {
        lock(&CODED).remove(&self.0);
    }
}

/// The picture that the parameters name; `None` where they are not the parser's, or its callback has returned.
pub fn find(params: &CUVIDPICPARAMS) -> Option<Coded> {
    let key = u64::from(params.Reserved[0]) | u64::from(params.Reserved[1]) << 32;
    lock(&CODED).get(&key).cloned()
}
