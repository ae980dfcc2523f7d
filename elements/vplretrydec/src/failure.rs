// SPDX-License-Identifier: MPL-2.0

//! [`Failure`]: why decoding cannot start or go on, as it is told on the bus.

use vplretry_core::{Error, ErrorKind};

use crate::driver::DriverError;

/// What the application can tell apart by domain and code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// RESOURCE/NOT_FOUND: a library, runtime or device is missing.
    NotFound,
    /// RESOURCE/NOT_AUTHORIZED: a library that would be loaded is not trusted.
    NotTrusted,
    /// RESOURCE/BUSY: a limit was reached without progress.
    Busy,
    /// RESOURCE/FAILED: the device is lost, or a call does not return.
    Failed,
    /// RESOURCE/NO_SPACE_LEFT: out of memory.
    NoMemory,
    /// STREAM/CODEC_NOT_FOUND: no implementation decodes this.
    Unsupported,
    /// STREAM/DECODE: the stream is damaged.
    Damaged,
    /// LIBRARY/FAILED: a defect of the runtime or of this element.
    Internal,
}

/// A kind and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    /// The message for the bus.
    pub(crate) fn message(&self) -> gst::ErrorMessage {
        let text = &self.text;
        match self.kind {
            Kind::NotFound => gst::error_msg!(gst::ResourceError::NotFound, ("{text}")),
            Kind::NotTrusted => gst::error_msg!(gst::ResourceError::NotAuthorized, ("{text}")),
            Kind::Busy => gst::error_msg!(gst::ResourceError::Busy, ("{text}")),
            Kind::Failed => gst::error_msg!(gst::ResourceError::Failed, ("{text}")),
            Kind::NoMemory => gst::error_msg!(gst::ResourceError::NoSpaceLeft, ("{text}")),
            Kind::Unsupported => gst::error_msg!(gst::StreamError::CodecNotFound, ("{text}")),
            Kind::Damaged => gst::error_msg!(gst::StreamError::Decode, ("{text}")),
            Kind::Internal => gst::error_msg!(gst::LibraryError::Failed, ("{text}")),
        }
    }
}

/// What to do about an error of the loop; behind its text.
fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Busy => {
            "the device stays busy: run fewer decoders on it, raise retry-timeout and max-attempts, \
             or decode with implementation=software"
        }
        ErrorKind::Starved => {
            "downstream holds every surface: let it release frames, or turn zero-copy off"
        }
        ErrorKind::DeviceLost => {
            "the device does not come back: look at the kernel's log and the driver's version, \
             restart the pipeline, or decode with implementation=software"
        }
        ErrorKind::Unsupported => "use another implementation, or another decoder for this stream",
        ErrorKind::NoMemory => "free memory, or lower async-depth",
        ErrorKind::NoProgress | ErrorKind::Internal => {
            "the runtime behaves against its specification: update it, or set implementation=software"
        }
        ErrorKind::Stream => "set corrupted-frames=mark or drop to go on past such frames",
        ErrorKind::Driver => "",
    }
}

impl From<Error<DriverError>> for Failure {
    fn from(error: Error<DriverError>) -> Self {
        if let Error::Driver(DriverError(failure)) = error {
            return failure;
        }
        let kind = error.kind();
        let text = format!("{error}; {}", advice(kind));
        Self::new(
            match kind {
                ErrorKind::Busy | ErrorKind::Starved => Kind::Busy,
                ErrorKind::NoProgress => match error {
                    Error::Exhausted(_) => Kind::Busy,
                    _ => Kind::Failed,
                },
                ErrorKind::DeviceLost => Kind::Failed,
                ErrorKind::Unsupported => Kind::Unsupported,
                ErrorKind::NoMemory => Kind::NoMemory,
                ErrorKind::Internal | ErrorKind::Driver => Kind::Internal,
                ErrorKind::Stream => Kind::Damaged,
            },
            text,
        )
    }
}
