// SPDX-License-Identifier: MPL-2.0

//! What a client does wrong, and what it does.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cuda::Cuda;

static MISTAKES: AtomicUsize = AtomicUsize::new(0);
static OVERWRITTEN: AtomicUsize = AtomicUsize::new(0);

/// Says what a client did wrong and counts it, here and in libcuda, which ends the process on request.
pub fn mistake(what: &str) {
    MISTAKES.fetch_add(1, Ordering::Relaxed);
    match Cuda::get() {
        Ok(cuda) => cuda.mistake(what),
        Err(_) => eprintln!("standin_nvcuvid: mistake of the client: {what}"),
    }
}

/// How many mistakes were made so far.
pub fn mistakes() -> usize {
    MISTAKES.load(Ordering::Relaxed)
}

/// A picture that was shown is decoded over before it was mapped. A client may drop pictures, so this is
/// counted and no mistake.
pub fn overwritten(index: usize) {
    OVERWRITTEN.fetch_add(1, Ordering::Relaxed);
    log(|| format!("surface {index} was shown and never mapped"));
}

/// How many pictures were decoded over between being shown and being mapped.
pub fn overwritten_count() -> usize {
    OVERWRITTEN.load(Ordering::Relaxed)
}

/// A line on the standard error where `NVSTANDIN_LOG` is set.
pub fn log(text: impl FnOnce() -> String) {
    if std::env::var_os("NVSTANDIN_LOG").is_some() {
        eprintln!("standin_nvcuvid: {}", text());
    }
}
