// SPDX-License-Identifier: MPL-2.0

//! Errors of a session as messages that say what to do.

use gst::error_msg;
use nvdecring_core::Error;

/// The message for an error that ends the stream.
pub(crate) fn message(error: &Error) -> gst::ErrorMessage {
    match error {
        Error::Config(_) => error_msg!(gst::LibraryError::Settings, ("{error}")),
        Error::Overflow { depth } => error_msg!(
            gst::ResourceError::Busy,
            ("Ring overflow: all {depth} slots hold pictures that downstream has not taken. Use \
                 overflow=block, a greater ring-depth, or a queue after the decoder")
        ),
        Error::Unsupported(what) => error_msg!(
            gst::StreamError::CodecNotFound,
            ("This device cannot decode the stream: {what}. Use another device or a software decoder")
        ),
        Error::Open(error) => error_msg!(
            gst::ResourceError::NotFound,
            ("NVDEC cannot be opened: {error}")
        ),
        Error::DeviceBusy(call) => error_msg!(
            gst::ResourceError::Failed,
            ("The device is held by another decoder of this process that hangs in {call}: nothing can be \
                 opened on it until the process ends")
        ),
        Error::DeviceLost(error) => error_msg!(
            gst::ResourceError::Failed,
            ("The device is lost: {error}; a new decoder and a new context did not help. See the kernel's \
                 log for NVRM messages (Xid), and restart the process or reset the device")
        ),
        Error::Wedged { call, elapsed } => error_msg!(
            gst::ResourceError::Failed,
            ("The device hangs: {call} has not returned for {elapsed:?}. The decoder is given up; restart \
                 the process, and see the kernel's log for NVRM messages (Xid)")
        ),
        Error::OutputBusy(limit) => error_msg!(
            gst::ResourceError::Failed,
            ("A flush could not end: downstream has not given back a picture for {limit:?}")
        ),
        Error::Thread(_) => error_msg!(gst::ResourceError::Failed, ("{error}")),
        Error::Panicked(_) | Error::Token { .. } => error_msg!(
            gst::LibraryError::Failed,
            ("{error}: this is a defect of the element, please report it")
        ),
        Error::Flushing | Error::Stopped => error_msg!(gst::LibraryError::Failed, ("{error}")),
    }
}

/// The message for a library or device that is missing.
pub(crate) fn load_message(error: &nvcuvid_sys::LoadError) -> gst::ErrorMessage {
    error_msg!(gst::ResourceError::NotFound, ("{error}"))
}
