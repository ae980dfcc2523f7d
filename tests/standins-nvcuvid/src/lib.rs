// SPDX-License-Identifier: MPL-2.0

//! A libnvcuvid without a GPU: NVDEC's parser and decoder, made of libavcodec and libdav1d, for clients that run
//! on the libcuda stand-in of this workspace.
//!
//! | module | idea |
//! |---|---|
//! | [`parser`] | a bitstream goes in, callbacks come out in decoding and in display order |
//! | [`client`] | the callbacks of a parser's client |
//! | [`codec_params`] | the codec's own picture parameters, as far as clients look into them |
//! | [`units`] | places inside of units |
//! | [`input`] | packets in, units of the stream with their timestamps out |
//! | [`mod@format`] | a sequence header as the sequence callback tells it |
//! | [`timestamps`] | the rule by which the parser gives out timestamps |
//! | [`backend`] | what the decoding libraries make of a unit of the stream |
//! | [`dav1d`] | AV1 by libdav1d itself |
//! | [`surfaces`] | surfaces by number, in use exactly as long as the decoding library or the parser needs them |
//! | [`picture`] | what ties the parser's picture parameters to the decoder |
//! | [`decoder`] | pictures by number: queued, decoded late, mapped, unmapped |
//! | [`setup`] | the parameters of a decoder, checked |
//! | [`mapped`] | output surfaces in device memory, poisoned whenever they are nobody's |
//! | [`engine`] | the device's engines and queue |
//! | [`pixels`] | samples, and how a mapped surface shows them |
//! | [`faults`] | what `NVSTANDIN_FAULTS` asks for |
//! | [`context_lock`] | `cuvidCtxLock` |
//! | [`caps`] | what the device decodes |
//! | [`cuda`] | the libcuda of this process |
//! | [`report`] | mistakes of the client, and the log |
//! | [`exports`] | the C interface |
//!
//! The pixels are those of libavcodec, so that a test on this library proves order, identity and lifetime, and
//! that calls are legal; it does not prove another decoder's arithmetic.

pub mod backend;
pub mod caps;
pub mod client;
pub mod codec_params;
pub mod context_lock;
pub mod cuda;
pub mod dav1d;
pub mod decoder;
pub mod engine;
pub mod exports;
pub mod faults;
pub mod format;
pub mod input;
pub mod mapped;
pub mod parser;
pub mod picture;
pub mod pixels;
pub mod report;
pub mod setup;
pub mod surfaces;
pub mod timestamps;
pub mod units;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A panic elsewhere does not make this library's tables wrong: each change is one statement.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that was never given before, and is not 0.
pub(crate) fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Objects by the handles that clients know. No handle is an address, and none is used twice.
#[derive(Debug)]
pub(crate) struct Table<T>(Mutex<BTreeMap<usize, Arc<T>>>);

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn add(&self, object: Arc<T>) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0x5800_0010);
        let handle = NEXT.fetch_add(0x10, Ordering::Relaxed);
        lock(&self.0).insert(handle, object);
        handle
    }

    pub(crate) fn get(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.0).get(&handle).cloned()
    }

    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.0).remove(&handle)
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.0).values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}
