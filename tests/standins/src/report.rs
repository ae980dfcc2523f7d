// SPDX-License-Identifier: MPL-2.0

//! What a client does wrong.

use std::sync::Mutex;

use crate::lock;

static MISTAKES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says on the standard error what a client did wrong, and counts it.
pub fn mistake(what: &str) {
    eprintln!("standin_cuda: mistake of the client: {what}");
    lock(&MISTAKES).push(what.to_owned());
    if std::env::var_os("NVSTANDIN_STRICT").is_some() {
        std::process::abort();
    }
}

/// How many mistakes were made so far.
pub fn mistakes() -> usize {
    lock(&MISTAKES).len()
}
