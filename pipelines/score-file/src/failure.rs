// SPDX-License-Identifier: MPL-2.0

//! What can go wrong, in the words of someone who has a file and wants scores.

use std::path::{Path, PathBuf};

use gst::glib;

use crate::pipeline::DECODER;

/// Why there are no scores, or not all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Something beside the file.
    #[error("{0}")]
    Setup(String),
    /// The file.
    #[error("{}: {reason}", .file.display())]
    Input { file: PathBuf, reason: String },
    /// The preferred decoder does not decode this kind of stream; another may.
    #[error("{0}")]
    Decoder(String),
}

/// Puts the pipeline's error in the user's terms. `missing` holds what GStreamer found no plugin for.
pub(crate) fn explain(
    file: &Path,
    element: &str,
    error: &glib::Error,
    debug: Option<&str>,
    missing: &[String],
    frames: u64,
) -> Failure {
    let input = |reason: String| Failure::Input {
        file: file.to_owned(),
        reason,
    };
    if !missing.is_empty() && frames == 0 {
        return input(missing_plugins(missing));
    }
    if element.starts_with(DECODER) && frames == 0 && !error.matches(gst::StreamError::Decode) {
        return Failure::Decoder(error.message().to_owned());
    }
    match error.kind::<gst::StreamError>() {
        Some(gst::StreamError::TypeNotFound) => input(
            "GStreamer does not know this type of file: no video, or raw pictures without a header"
                .to_owned(),
        ),
        Some(gst::StreamError::WrongType) => input(format!("is no video: {}", error.message())),
        Some(gst::StreamError::CodecNotFound) => input(missing_plugins(missing)),
        _ => {
            let mut text = format!("{element}: {}", error.message());
            if let Some(detail) = debug.and_then(|debug| debug.lines().last()) {
                text += &format!(" [{}]", detail.trim());
            }
            if frames > 0 {
                text += &format!(" (after {frames} frames)");
            }
            // What vmafxmotion refuses need not be the file's fault: it may be the scores' path.
            if element.starts_with("vmafxmotion") {
                Failure::Setup(text)
            } else {
                input(text)
            }
        }
    }
}

/// Says what no installed plugin can do.
pub(crate) fn missing_plugins(missing: &[String]) -> String {
    let what = if missing.is_empty() {
        "a decoder".to_owned()
    } else {
        missing.join(", ")
    };
    format!(
        "GStreamer lacks {what}; Debian has most in gstreamer1.0-libav and \
         gstreamer1.0-plugins-good, -bad and -ugly"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(error: &glib::Error, missing: &[String], frames: u64) -> String {
        explain(
            Path::new("a file.mp4"),
            "source",
            error,
            Some("first\nlast"),
            missing,
            frames,
        )
        .to_string()
    }

    #[test]
    fn a_file_of_no_known_type_is_blamed_on_the_file() {
        let error = glib::Error::new(gst::StreamError::TypeNotFound, "text");
        assert!(explained(&error, &[], 0).starts_with("a file.mp4: GStreamer does not know"));
    }

    #[test]
    fn what_vmafxmotion_refuses_is_not_the_files_fault() {
        let error = glib::Error::new(gst::ResourceError::OpenWrite, "no such folder");
        let failure = explain(
            Path::new("a file.mp4"),
            "vmafxmotion0",
            &error,
            None,
            &[],
            0,
        );
        assert_eq!(failure.to_string(), "vmafxmotion0: no such folder");
    }

    #[test]
    fn what_the_preferred_decoder_refuses_is_left_to_another() {
        let error = glib::Error::new(gst::StreamError::CodecNotFound, "not supported");
        let failure = |frames| {
            let element = "vplretrydec0";
            explain(Path::new("a.mp4"), element, &error, None, &[], frames)
        };
        assert!(matches!(failure(0), Failure::Decoder(text) if text == "not supported"));
        assert!(matches!(failure(1), Failure::Input { .. }));
    }

    #[test]
    fn what_is_missing_is_named_until_frames_have_come() {
        let error = glib::Error::new(gst::StreamError::Failed, "text");
        let missing = ["H.266 decoder".to_owned()];
        assert!(explained(&error, &missing, 0).contains("lacks H.266 decoder;"));
        assert_eq!(
            explained(&error, &missing, 7),
            "a file.mp4: source: text [last] (after 7 frames)"
        );
    }
}
