// SPDX-License-Identifier: MPL-2.0

//! The writer's thread: takes what is queued, makes lines of it, writes them together.

use std::io::{ErrorKind, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError};
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use score_records::Record;

use super::file::ScoreFile;
use super::{Counters, Job, Loss, OnLoss};

/// How often a FIFO is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(10);

/// Lines are written together up to about this many bytes.
const BATCH: usize = 64 * 1024;

/// Lines that are on their way to the file.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    lines: u64,
    flushes: Vec<SyncSender<()>>,
}

impl Batch {
    fn add(&mut self, job: Job) {
        let start = self.bytes.len();
        let serialised = match job {
            Job::Frame(frame) => serde_json::to_writer(&mut self.bytes, &Record::Frame(frame)),
            Job::Other(record) => serde_json::to_writer(&mut self.bytes, &record),
            Job::Flush(reply) => {
                self.flushes.push(reply);
                return;
            }
        };
        // Records have string keys and go to memory: neither step can fail.
        if serialised.is_err() || writeln!(self.bytes).is_err() {
            self.bytes.truncate(start);
        } else {
            self.lines += 1;
        }
    }
}

/// Runs until the queue is closed and empty, or until it is told to give up.
pub(super) fn run(
    mut file: ScoreFile,
    queue: &Receiver<Job>,
    counters: &Counters,
    on_loss: &OnLoss,
) {
    // A reader that goes away is an error of the write, never the end of the process. Where the
    // mask cannot be set the process keeps the disposition it has.
    let _ = SigSet::from(Signal::SIGPIPE).thread_block();
    let mut batch = Batch::default();
    let take = |batch: &mut Batch, job| {
        counters.queued.fetch_sub(1, Ordering::Relaxed);
        batch.add(job);
    };
    let mut open = true;
    while open {
        // The queue holds the lines while a FIFO has no reader: there they are bounded.
        if !file.ready() {
            if counters.closing.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(RETRY);
            continue;
        }
        let Ok(job) = queue.recv() else {
            break;
        };
        take(&mut batch, job);
        while batch.bytes.len() < BATCH {
            match queue.try_recv() {
                Ok(job) => take(&mut batch, job),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    open = false;
                    break;
                }
            }
        }
        write(&mut file, &mut batch, counters, on_loss);
    }
    let unwritten = queue
        .try_iter()
        .filter(|job| !matches!(job, Job::Flush(_)))
        .count();
    if unwritten > 0 {
        counters.drop_lines(unwritten as u64);
        counters.queued.store(0, Ordering::Relaxed);
        on_loss(Loss::Unfinished);
    }
}

/// Writes the batch and empties it; what cannot be written is dropped and counted.
fn write(file: &mut ScoreFile, batch: &mut Batch, counters: &Counters, on_loss: &OnLoss) {
    let mut rest = &batch.bytes[..];
    let mut failure = None;
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => failure = Some(Loss::Write(ErrorKind::WriteZero.into())),
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if counters.give_up.load(Ordering::Acquire) {
                    failure = Some(Loss::Unfinished);
                } else {
                    std::thread::sleep(RETRY);
                }
            }
            Err(error) => failure = Some(Loss::Write(error)),
        }
        if failure.is_some() {
            break;
        }
    }
    if matches!(&failure, Some(Loss::Write(error)) if error.kind() == ErrorKind::BrokenPipe) {
        file.lost_reader();
    }
    // Lines that went out whole stay; the torn one and those behind it are lost.
    let out = batch.bytes.len() - rest.len();
    let whole = batch.bytes[..out]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let lines = batch.bytes[..whole]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count() as u64;
    counters.written.fetch_add(lines, Ordering::Relaxed);
    file.committed(whole as u64);
    if let Some(loss) = failure {
        file.cut_torn_line();
        counters.drop_lines(batch.lines - lines);
        on_loss(loss);
    }
    batch.bytes.clear();
    batch.lines = 0;
    for flush in batch.flushes.drain(..) {
        // Whoever asked may have stopped waiting.
        let _ = flush.try_send(());
    }
}
