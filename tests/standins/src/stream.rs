// SPDX-License-Identifier: MPL-2.0

//! Streams: work that runs in order on a thread of its own.
//!
//! A blocking stream (flags 0) shares the queue of its context's default stream. That is more order than a
//! device gives, but no order is missing; only non-blocking streams run by themselves.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use nvcuvid_sys::CuResult;

use crate::report::mistake;
use crate::{lock, new_handle};

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    submitted: u64,
    done: u64,
    closed: bool,
}

/// A queue and its thread. Once closed the thread runs what is left and ends.
#[derive(Default)]
pub struct Stream {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Stream {
    fn start() -> Result<Arc<Self>, CuResult> {
        let stream = Arc::new(Self::default());
        let worker = stream.clone();
        std::thread::Builder::new()
            .name("standin-stream".to_owned())
            .spawn(move || worker.run())
            .map_err(|_| CuResult::OUT_OF_MEMORY)?;
        Ok(stream)
    }

    fn run(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(work) = queue.work.pop_front() {
                drop(queue);
                work();
                queue = lock(&self.queue);
                queue.done += 1;
                self.changed.notify_all();
            } else if queue.closed {
                return;
            } else {
                queue = self.wait(queue);
            }
        }
    }

    fn wait<'a>(
        &self,
        queue: std::sync::MutexGuard<'a, Queue>,
    ) -> std::sync::MutexGuard<'a, Queue> {
        self.changed
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts work behind everything that is there.
    pub fn submit(&self, work: impl FnOnce() + Send + 'static) {
        let mut queue = lock(&self.queue);
        queue.work.push_back(Box::new(work));
        queue.submitted += 1;
        self.changed.notify_all();
    }

    /// Waits until everything that is there now is done.
    pub fn synchronize(&self) {
        let mut queue = lock(&self.queue);
        let until = queue.submitted;
        while queue.done < until {
            queue = self.wait(queue);
        }
    }

    /// Whether nothing is left to be done.
    pub fn is_idle(&self) -> bool {
        let queue = lock(&self.queue);
        queue.done == queue.submitted
    }

    fn close(&self) {
        lock(&self.queue).closed = true;
        self.changed.notify_all();
    }
}

struct Entry {
    context: usize,
    stream: Arc<Stream>,
    /// Whether the queue is this handle's alone.
    own: bool,
}

#[derive(Default)]
struct Tables {
    streams: BTreeMap<usize, Entry>,
    /// By context.
    defaults: BTreeMap<usize, Arc<Stream>>,
}

static TABLES: Mutex<Tables> = Mutex::new(Tables {
    streams: BTreeMap::new(),
    defaults: BTreeMap::new(),
});

impl Tables {
    fn default_of(&mut self, context: usize) -> Result<Arc<Stream>, CuResult> {
        if let Some(stream) = self.defaults.get(&context) {
            return Ok(stream.clone());
        }
        let stream = Stream::start()?;
        self.defaults.insert(context, stream.clone());
        Ok(stream)
    }
}

/// `cuStreamCreate` in `context`.
///
/// # Errors
/// Unknown flags, or no thread.
pub fn create(context: usize, flags: u32) -> Result<usize, CuResult> {
    let mut tables = lock(&TABLES);
    let (stream, own) = match flags {
        0 => (tables.default_of(context)?, false),
        1 => (Stream::start()?, true),
        _ => return Err(CuResult::INVALID_VALUE),
    };
    let handle = new_handle();
    let entry = Entry {
        context,
        stream,
        own,
    };
    tables.streams.insert(handle, entry);
    Ok(handle)
}

/// The queue of a handle in `context`; 0, 1 and 2 are the default stream's names.
///
/// # Errors
/// No such stream, or another context's.
pub fn get(context: usize, handle: usize) -> Result<Arc<Stream>, CuResult> {
    let mut tables = lock(&TABLES);
    if handle <= 2 {
        return tables.default_of(context);
    }
    let found = tables.streams.get(&handle);
    match found {
        Some(entry) if entry.context == context => Ok(entry.stream.clone()),
        Some(_) => {
            drop(tables);
            mistake("a stream of another context");
            Err(CuResult::INVALID_HANDLE)
        }
        None => {
            drop(tables);
            mistake("a stream that does not exist");
            Err(CuResult::INVALID_HANDLE)
        }
    }
}

/// `cuStreamDestroy`: what is in it is done still.
///
/// # Errors
/// No such stream.
pub fn destroy(handle: usize) -> Result<(), CuResult> {
    let Some(entry) = lock(&TABLES).streams.remove(&handle) else {
        mistake("cuStreamDestroy of a stream that does not exist");
        return Err(CuResult::INVALID_HANDLE);
    };
    if entry.own {
        entry.stream.close();
    }
    Ok(())
}

/// Waits for every stream of a context.
pub fn synchronize_all(context: usize) {
    let tables = lock(&TABLES);
    let of_context = |entry: &&Entry| entry.context == context;
    let streams = tables.streams.values().filter(of_context);
    let mut streams: Vec<_> = streams.map(|entry| entry.stream.clone()).collect();
    streams.extend(tables.defaults.get(&context).cloned());
    drop(tables);
    for stream in streams {
        stream.synchronize();
    }
}

/// Ends every stream of a context that goes.
pub(crate) fn remove_all(context: usize) {
    synchronize_all(context);
    let mut tables = lock(&TABLES);
    let gone: Vec<usize> = tables
        .streams
        .iter()
        .filter(|(_, entry)| entry.context == context)
        .map(|(handle, _)| *handle)
        .collect();
    for handle in gone {
        if let Some(entry) = tables.streams.remove(&handle) {
            entry.stream.close();
        }
    }
    if let Some(stream) = tables.defaults.remove(&context) {
        stream.close();
    }
}

/// How many streams clients have.
pub fn live() -> usize {
    lock(&TABLES).streams.len()
}
