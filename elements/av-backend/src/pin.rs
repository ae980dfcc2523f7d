// SPDX-License-Identifier: MPL-2.0

//! Keeping the library loaded that this code is part of: threads that hang in it, and objects that a client
//! still has, outlive the client's last handle on it.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Once;
use std::time::Duration;

/// Makes the library stay loaded for the life of the process.
pub fn keep_loaded() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
        let here = keep_loaded as *const c_void;
        // SAFETY: the address lies in this library and `info` has room for the answer.
        let found = unsafe { libc::dladdr(here, info.as_mut_ptr()) };
        if found == 0 {
            return;
        }
        // SAFETY: the call above filled it.
        let info = unsafe { info.assume_init() };
        if info.dli_fname.is_null() {
            return;
        }
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name is the loader's own string; nothing new is loaded.
        unsafe { libc::dlopen(info.dli_fname, flags) };
    });
}

/// Never returns, and says so in the name of `library`. What the calling thread holds stays alive with it.
pub fn hang(library: &str, what: &str) -> ! {
    keep_loaded();
    eprintln!("{library}: {what} hangs on command");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
