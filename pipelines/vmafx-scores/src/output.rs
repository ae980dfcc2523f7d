// SPDX-License-Identifier: MPL-2.0

//! A file that appears under its name only when it is whole.

use std::fs::{self, Permissions};
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::failure::Failure;

/// The file while it is written, beside where it will lie.
pub(crate) struct Output {
    target: PathBuf,
    file: NamedTempFile,
}

impl Output {
    /// # Errors
    /// Where the folder cannot be written, or the file is one of `inputs`.
    pub(crate) fn new(target: &Path, inputs: &[PathBuf]) -> Result<Self, Failure> {
        Self::with_suffix(target, inputs, "")
    }

    /// The same; the name of the file while it is written has an end that libraries go by.
    pub(crate) fn with_suffix(
        target: &Path,
        inputs: &[PathBuf],
        suffix: &str,
    ) -> Result<Self, Failure> {
        let place = fs::canonicalize(target).ok();
        let same = |input: &&PathBuf| place.is_some() && fs::canonicalize(input).ok() == place;
        if inputs.iter().any(|input| same(&input)) {
            return Err(Failure::output(
                target,
                "is read and would be overwritten; choose another name",
            ));
        }
        if target.is_dir() {
            return Err(Failure::output(target, "is a folder"));
        }
        let folder = target.parent().filter(|name| !name.as_os_str().is_empty());
        let file = tempfile::Builder::new()
            .prefix(".vmafx-scores-")
            .suffix(suffix)
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| Failure::output(target, error))?;
        Ok(Self {
            target: target.to_owned(),
            file,
        })
    }

    /// For libraries that open the file themselves.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn writer(&mut self) -> BufWriter<&mut NamedTempFile> {
        BufWriter::with_capacity(1 << 16, &mut self.file)
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let named = self.file.persist(&self.target);
        named.map_err(|error| Failure::output(&self.target, error.error))?;
        Ok(())
    }
}
