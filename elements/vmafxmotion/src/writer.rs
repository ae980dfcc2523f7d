// SPDX-License-Identifier: MPL-2.0

//! The score file: one thread writes, the stream never waits for it.
//!
//! The streaming thread puts records into a bounded queue. Where the disk or the reader of a FIFO
//! is too slow, frame records are dropped and counted; a reserve of the queue is kept for headers,
//! windows and summaries.

mod file;
pub(crate) mod records;
mod thread;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use score_records::{Frame, Record};

pub(crate) use file::OpenError;
use file::ScoreFile;

/// Records that may wait: about two minutes of 60 frames a second.
const QUEUE: usize = 8192;

/// Places of the queue that frame records leave free.
const RESERVE: usize = 64;

/// What the streaming thread hands over.
#[derive(Debug)]
enum Job {
    /// The common record, without an allocation.
    Frame(Frame),
    /// The rare ones.
    Other(Box<Record>),
    /// Answered when everything before it is in the file.
    Flush(SyncSender<()>),
}

/// Counters that outlive the writer.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    queued: AtomicUsize,
    written: AtomicU64,
    dropped: AtomicU64,
    /// Nothing more is handed over: a FIFO that nobody has opened is not waited for any longer.
    closing: AtomicBool,
    /// Time is over: a FIFO that nobody empties is not waited for any longer.
    give_up: AtomicBool,
}

impl Counters {
    /// Lines in the file.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Lines lost.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn drop_lines(&self, lines: u64) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
    }
}

/// Told once, from the writer's thread or the streaming thread, when lines are lost.
pub(crate) type OnLoss = Arc<dyn Fn(Loss) + Send + Sync>;

/// Why lines are lost.
#[derive(Debug)]
pub(crate) enum Loss {
    /// The file does not take them.
    Write(std::io::Error),
    /// The queue is full: the file takes them too slowly.
    Slow,
    /// The writer was still busy when its time to finish was over.
    Unfinished,
}

/// Says that nothing more comes, also where the writer is dropped without being closed.
#[derive(Debug)]
struct Closing(Arc<Counters>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.closing.store(true, Ordering::Release);
    }
}

/// The hand of the streaming thread.
pub(crate) struct ScoreWriter {
    closing: Closing,
    jobs: SyncSender<Job>,
    /// Told by the thread when it ends. The lock only makes it shareable.
    done: Mutex<Receiver<()>>,
    thread: JoinHandle<()>,
    counters: Arc<Counters>,
    on_loss: OnLoss,
}

impl std::fmt::Debug for ScoreWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScoreWriter")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl ScoreWriter {
    /// Opens `path` (a FIFO without a reader is opened later, by the thread) and starts the thread.
    /// `on_loss` is called at most once.
    pub(crate) fn open(path: &Path, append: bool, on_loss: OnLoss) -> Result<Self, OpenError> {
        let file = ScoreFile::open(path, append)?;
        let once = std::sync::Once::new();
        let on_loss: OnLoss = Arc::new(move |loss| once.call_once(|| on_loss(loss)));
        let counters = Arc::new(Counters::default());
        let (jobs, queue) = mpsc::sync_channel(QUEUE);
        let (finished, done) = mpsc::sync_channel(1);
        let thread = {
            let (counters, on_loss) = (counters.clone(), on_loss.clone());
            let run = move || {
                thread::run(file, &queue, &counters, &on_loss);
                // Nobody listens any more where the writer was abandoned.
                let _ = finished.send(());
            };
            std::thread::Builder::new()
                .name("vmafxmotion-scores".to_owned())
                .spawn(run)
                .map_err(|source| OpenError::new(path, source))?
        };
        Ok(Self {
            closing: Closing(counters.clone()),
            jobs,
            done: Mutex::new(done),
            thread,
            counters,
            on_loss,
        })
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Hands over a frame; never waits.
    pub(crate) fn frame(&self, frame: Frame) {
        if self.counters.queued.load(Ordering::Relaxed) >= QUEUE - RESERVE {
            self.lost();
        } else {
            self.send(Job::Frame(frame));
        }
    }

    /// Hands over a rare record; never waits.
    pub(crate) fn record(&self, record: Record) {
        self.send(Job::Other(Box::new(record)));
    }

    /// Waits, at most `timeout`, until all that was handed over is in the file.
    pub(crate) fn flush(&self, timeout: Duration) {
        let (reply, replied) = mpsc::sync_channel(1);
        self.send(Job::Flush(reply));
        // A timeout is no loss yet: the thread goes on.
        let _ = replied.recv_timeout(timeout);
    }

    /// Ends the thread when it has written everything, at most after `timeout`; behind that, a
    /// thread that hangs in the file system is abandoned.
    pub(crate) fn close(self, timeout: Duration) {
        let Self {
            closing,
            jobs,
            done,
            thread,
            counters,
            on_loss,
        } = self;
        let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        drop(closing);
        drop(jobs);
        let finished = done.recv_timeout(timeout).or_else(|_| {
            counters.give_up.store(true, Ordering::Release);
            done.recv_timeout(thread::RETRY * 4)
        });
        if finished.is_ok() && thread.join().is_ok() {
            return;
        }
        counters.drop_lines(counters.queued.load(Ordering::Relaxed) as u64);
        on_loss(Loss::Unfinished);
    }

    fn send(&self, job: Job) {
        let is_line = !matches!(job, Job::Flush(_));
        self.counters.queued.fetch_add(1, Ordering::Relaxed);
        if self.jobs.try_send(job).is_err() {
            self.counters.queued.fetch_sub(1, Ordering::Relaxed);
            if is_line {
                self.lost();
            }
        }
    }

    fn lost(&self) {
        self.counters.drop_lines(1);
        (self.on_loss)(Loss::Slow);
    }
}
