// SPDX-License-Identifier: MPL-2.0

//! The score file for people: one line with the newest window, replaced as a whole, so that a
//! reader (a text source in OBS, an overlay) never sees half of it.
//!
//! The line: `window 3 frames 75-99 motion2 mean 0.7082 min 0.6227 max 0.8364`. A value that is not
//! pooled is `-`; a failed window has its reason in place of the values. Before the first window
//! the file holds an empty line.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vmaf_motion::pool::{Feature, Method};

use crate::messages::WindowMessage;
use crate::writer::{Loss, OnLoss};

/// The line of a window.
pub(crate) fn line(message: &WindowMessage) -> String {
    let WindowMessage {
        window,
        first,
        last,
        outcome,
        ..
    } = message;
    let scores = match outcome {
        Err(failure) => format!("failed {}", failure.reason),
        Ok(scores) => {
            let value = |method| match scores.get(Feature::Motion2, method) {
                Some(value) => format!("{} {value:.4}", method.name()),
                None => format!("{} -", method.name()),
            };
            [Method::Mean, Method::Min, Method::Max]
                .map(value)
                .join(" ")
        }
    };
    format!("window {window} frames {first}-{last} motion2 {scores}\n")
}

/// What waits to be written: only the newest line.
#[derive(Debug, Default)]
struct Slot {
    newest: Option<String>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Shared {
    slot: Mutex<Slot>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hand of the streaming thread.
#[derive(Debug)]
pub(crate) struct ScoreText {
    shared: Arc<Shared>,
    done: Mutex<Receiver<()>>,
}

impl ScoreText {
    /// Writes the empty line, which shows whether the file can be written at all, and starts the
    /// thread. `on_loss` is called at most once.
    pub(crate) fn open(path: &Path, on_loss: OnLoss) -> io::Result<Self> {
        replace(path, "\n")?;
        let shared = Arc::new(Shared::default());
        let (finished, done) = mpsc::sync_channel(1);
        let thread = {
            let (shared, path) = (shared.clone(), path.to_owned());
            move || run(&path, &shared, &on_loss, &finished)
        };
        std::thread::Builder::new()
            .name("vmafxmotion-text".to_owned())
            .spawn(thread)?;
        Ok(Self {
            shared,
            done: Mutex::new(done),
        })
    }

    /// Hands over a line; never waits.
    pub(crate) fn show(&self, line: String) {
        self.shared.lock().newest = Some(line);
        self.shared.changed.notify_one();
    }

    /// Ends the thread when the newest line is written, at most after `timeout`; a thread that hangs
    /// in the file system is abandoned.
    pub(crate) fn close(&self, timeout: Duration) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        // The line that is lost then is one of many.
        let _ = done.recv_timeout(timeout);
    }
}

fn run(path: &Path, shared: &Shared, on_loss: &OnLoss, finished: &SyncSender<()>) {
    let mut warned = false;
    loop {
        let (newest, closed) = {
            let idle = |slot: &mut Slot| slot.newest.is_none() && !slot.closed;
            let waited = shared.changed.wait_while(shared.lock(), idle);
            let mut slot = waited.unwrap_or_else(PoisonError::into_inner);
            (slot.newest.take(), slot.closed)
        };
        if let Some(line) = newest
            && let Err(error) = replace(path, &line)
            && !std::mem::replace(&mut warned, true)
        {
            on_loss(Loss::Write(error));
        }
        if closed {
            // Nobody listens any more where the thread was abandoned.
            let _ = finished.send(());
            return;
        }
    }
}

/// Writes a new file beside the old one and renames it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".vmafxmotion-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
