// SPDX-License-Identifier: MPL-2.0

//! The file behind the writer: a regular file, a device or a FIFO.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use thiserror::Error;

/// A score file that cannot be opened.
#[derive(Debug, Error)]
#[error("scores-path {}: {source}", path.display())]
pub(crate) struct OpenError {
    path: PathBuf,
    source: io::Error,
}

impl OpenError {
    pub(crate) fn new(path: &Path, source: io::Error) -> Self {
        Self {
            path: path.to_owned(),
            source,
        }
    }
}

/// An open file, or a FIFO that nobody reads yet.
#[derive(Debug)]
pub(crate) struct ScoreFile {
    path: PathBuf,
    append: bool,
    file: Option<File>,
    /// Bytes of whole lines, where torn lines can be cut off.
    whole: Option<u64>,
}

impl ScoreFile {
    /// Opens without waiting. A FIFO without a reader is no error: [`ScoreFile::ready`] tries again.
    pub(crate) fn open(path: &Path, append: bool) -> Result<Self, OpenError> {
        let mut this = Self {
            path: path.to_owned(),
            append,
            file: None,
            whole: None,
        };
        match this.try_open() {
            Ok(()) => Ok(this),
            Err(error) if error.raw_os_error() == Some(Errno::ENXIO as i32) && is_fifo(path) => {
                Ok(this)
            }
            Err(error) => Err(OpenError::new(path, error)),
        }
    }

    /// Whether somebody takes what is written.
    pub(crate) fn ready(&mut self) -> bool {
        self.file.is_some() || self.try_open().is_ok()
    }

    fn try_open(&mut self) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .append(self.append)
            .truncate(!self.append)
            // A FIFO must never block the thread: it could not be ended.
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(&self.path)?;
        if file.metadata()?.is_file() {
            if self.append && ends_inside_a_line(&self.path)? {
                file.write_all(b"\n")?;
            }
            self.whole = Some(file.seek(SeekFrom::End(0))?);
        }
        self.file = Some(file);
        Ok(())
    }

    /// Writes some of `bytes` without waiting for a reader ([`ErrorKind::WouldBlock`] then).
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// The reader of a FIFO went away; the next one gets what comes then.
    pub(crate) fn lost_reader(&mut self) {
        if is_fifo(&self.path) {
            self.file = None;
        }
    }

    /// Everything up to here are whole lines.
    pub(crate) fn committed(&mut self, bytes: u64) {
        if let Some(whole) = &mut self.whole {
            *whole += bytes;
        }
    }

    /// Removes what was written of a line that did not fit.
    pub(crate) fn cut_torn_line(&mut self) {
        if let (Some(file), Some(whole)) = (&mut self.file, self.whole) {
            // Where even that fails, a reader finds one broken line.
            let _ = file
                .set_len(whole)
                .and_then(|()| file.seek(SeekFrom::Start(whole)));
        }
    }
}

fn is_fifo(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// A writer that was killed may have left half a line.
fn ends_inside_a_line(path: &Path) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        // A file that we may write but not read is appended to as it is.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(false),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}
