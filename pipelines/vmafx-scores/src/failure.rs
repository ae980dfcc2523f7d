// SPDX-License-Identifier: MPL-2.0

//! Why a command ends early, in the words of its user.

use std::io;
use std::path::{Path, PathBuf};

use vmafx_scores::merge::MergeError;

/// Why a command ends early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{}: {reason}", .file.display())]
    Input { file: PathBuf, reason: String },
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    #[error("{}: {reason}", .file.display())]
    OutputFile { file: PathBuf, reason: String },
    #[error(transparent)]
    Merge(#[from] MergeError),
}

impl Failure {
    pub(crate) fn input(file: &Path, reason: impl ToString) -> Self {
        Self::Input {
            file: file.to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn output(file: &Path, reason: impl ToString) -> Self {
        Self::OutputFile {
            file: file.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Whether whoever reads the output has seen enough.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        let (Self::Output(error) | Self::Merge(MergeError::Output(error))) = self else {
            return false;
        };
        error.kind() == io::ErrorKind::BrokenPipe
    }
}
