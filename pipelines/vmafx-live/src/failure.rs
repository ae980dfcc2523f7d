// SPDX-License-Identifier: MPL-2.0

//! What ends the program with an exit status that is not 0, in the words of an operator.

use std::net::SocketAddr;
use std::time::Duration;

use gst::glib;
use vmafx_scores::reader::ReadError;

/// Why the program failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The page cannot be served.
    #[error(
        "cannot listen on {address}: {source}; --listen takes another address, and port 0 any free port"
    )]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Something on this machine, or on the command line.
    #[error("{0}")]
    Setup(String),
    /// The pipeline.
    #[error("{0}")]
    Pipeline(String),
    /// Standard input holds something else than score records.
    #[error("standard input, {0}")]
    Records(#[from] ReadError),
    /// What wrote standard input was cut off.
    #[error("standard input, line {line}: ends after {bytes} bytes, in the middle of a record")]
    Torn {
        /// The line, from 1.
        line: u64,
        /// Its bytes until then.
        bytes: usize,
    },
    /// Asked to end, the pipeline did not.
    #[error(
        "the pipeline did not end within {} s of being asked to: the last windows may be missing",
        .0.as_secs()
    )]
    Stuck(Duration),
}

/// An error message of a pipeline. `missing` names what GStreamer found no plugin for, `frames` how many were
/// scored until then.
pub(crate) fn of_error(
    element: &str,
    error: &glib::Error,
    debug: Option<&str>,
    missing: &[String],
    frames: u64,
) -> Failure {
    let mut text = format!("{element}: {}", error.message());
    if let Some(detail) = debug.and_then(|debug| debug.lines().last()) {
        // Source file, line and function come first, which say nothing to an operator.
        let detail = detail.rsplit_once("): ").map_or(detail, |(_, said)| said);
        text += &format!(" [{}]", detail.trim());
    }
    if !missing.is_empty() {
        text += &format!(
            "; GStreamer lacks {}, Debian has most in gstreamer1.0-libav and gstreamer1.0-plugins-good, -bad and -ugly",
            missing.join(", ")
        );
    }
    text += &match frames {
        0 => "; no frame was scored".to_owned(),
        1 => "; 1 frame was scored".to_owned(),
        frames => format!("; {frames} frames were scored"),
    };
    Failure::Pipeline(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where_what_and_how_far() {
        let error = glib::Error::new(gst::ResourceError::NotFound, "No such file \"a.mp4\".");
        let debug = "../gstfilesrc.c(553): gst_file_src_start (): /GstPipeline:p/GstFileSrc:s:\nsystem error";
        assert_eq!(
            of_error("s", &error, Some(debug), &[], 0).to_string(),
            "s: No such file \"a.mp4\". [system error]; no frame was scored"
        );
        let missing = ["H.266 decoder".to_owned()];
        let text = of_error("s", &error, None, &missing, 1).to_string();
        assert!(
            text.contains("; GStreamer lacks H.266 decoder, Debian"),
            "{text}"
        );
        assert!(text.ends_with("; 1 frame was scored"), "{text}");
    }
}
