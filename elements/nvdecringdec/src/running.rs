// SPDX-License-Identifier: MPL-2.0

//! A session with its watchdog, and calls that may hang on threads of their own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nvdecring_core::{Error, Stopped};
use nvdecring_gpu::Codec;

use crate::target::Session;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// Somebody asked to stop waiting.
    Cancelled,
    /// It took too long.
    TimedOut(Duration),
    /// The system gives no thread.
    NoThread(String),
}

/// Waits for calls that may hang, until somebody cancels. A call that is abandoned ends on its own thread
/// one day, and what it gives is dropped there.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    cancelled: Mutex<bool>,
    changed: Condvar,
}

enum Slot<T> {
    Pending,
    Done(T),
    Abandoned,
}

impl Patience {
    /// Ends every wait, now and until [`reset`](Self::reset).
    pub(crate) fn cancel(&self) {
        *lock(&self.cancelled) = true;
        self.changed.notify_all();
    }

    pub(crate) fn reset(&self) {
        *lock(&self.cancelled) = false;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *lock(&self.cancelled)
    }

    /// Runs `body` on a thread and waits for what it gives.
    pub(crate) fn run<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        limit: Duration,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Abandoned> {
        let slot = Arc::new(Mutex::new(Slot::Pending));
        let (theirs, patience) = (slot.clone(), self.clone());
        let deadline = Instant::now() + limit;
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let result = body();
                let too_late = {
                    let mut slot = lock(&theirs);
                    match *slot {
                        Slot::Abandoned => Some(result),
                        Slot::Pending | Slot::Done(_) => {
                            *slot = Slot::Done(result);
                            None
                        }
                    }
                };
                drop(too_late);
                // Under the lock, so that nobody is between looking and waiting.
                let _guard = lock(&patience.cancelled);
                patience.changed.notify_all();
            })
            .map_err(|error| Abandoned::NoThread(error.to_string()))?;
        let mut cancelled = lock(&self.cancelled);
        loop {
            {
                let mut slot = lock(&slot);
                let left = deadline.saturating_duration_since(Instant::now());
                let end = match *slot {
                    Slot::Done(_) => None,
                    _ if *cancelled => Some(Abandoned::Cancelled),
                    _ if left.is_zero() => Some(Abandoned::TimedOut(limit)),
                    _ => {
                        drop(slot);
                        cancelled = self
                            .changed
                            .wait_timeout(cancelled, left)
                            .unwrap_or_else(PoisonError::into_inner)
                            .0;
                        continue;
                    }
                };
                match (end, std::mem::replace(&mut *slot, Slot::Abandoned)) {
                    (None, Slot::Done(result)) => return Ok(result),
                    (end, _) => return Err(end.unwrap_or(Abandoned::Cancelled)),
                }
            }
        }
    }
}

/// A session and the thread that looks after it while nobody submits anything.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) session: Arc<Session>,
    pub(crate) codec: Codec,
    watchdog: Arc<Watchdog>,
}

struct Watchdog {
    ended: Mutex<bool>,
    changed: Condvar,
    /// How the session ended.
    stopped: Mutex<Option<Stopped>>,
}

impl Running {
    /// Starts the watchdog, which tells `failed` once why the session cannot go on.
    ///
    /// # Errors
    /// The system gives no thread; the session is stopped then.
    pub(crate) fn new(
        session: Session,
        codec: Codec,
        interval: Duration,
        failed: impl FnOnce(&Error) + Send + 'static,
    ) -> Result<Self, Error> {
        let running = Self {
            session: Arc::new(session),
            codec,
            watchdog: Arc::new(Watchdog {
                ended: Mutex::new(false),
                changed: Condvar::new(),
                stopped: Mutex::new(None),
            }),
        };
        let (watchdog, session) = (running.watchdog.clone(), Arc::downgrade(&running.session));
        std::thread::Builder::new()
            .name("nvdecring-watch".to_owned())
            .spawn(move || {
                while !watchdog.sleep(interval) {
                    // A strong reference for the look alone: nobody is stopped from here.
                    let Some(session) = session.upgrade() else {
                        return;
                    };
                    match session.check() {
                        Ok(()) => {}
                        Err(Error::Stopped) => return,
                        Err(error) => return failed(&error),
                    }
                }
            })
            .map_err(|error| Error::Thread(error.to_string()))?;
        Ok(running)
    }

    /// Stops the session. A second call waits again only for what downstream held back at the first: a call
    /// that hung then hangs still.
    pub(crate) fn stop(&self) -> Stopped {
        *lock(&self.watchdog.ended) = true;
        self.watchdog.changed.notify_all();
        let before = lock(&self.watchdog.stopped).clone();
        if let Some(before) = before
            && (before.clean || !before.stuck.is_empty())
        {
            let stats = self.session.stats();
            return Stopped { stats, ..before };
        }
        let stopped = self.session.stop();
        *lock(&self.watchdog.stopped) = Some(stopped.clone());
        stopped
    }
}

impl Watchdog {
    /// True when it is to end.
    fn sleep(&self, interval: Duration) -> bool {
        let ended = lock(&self.ended);
        if *ended {
            return true;
        }
        let (ended, _) = self
            .changed
            .wait_timeout(ended, interval)
            .unwrap_or_else(PoisonError::into_inner);
        *ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_call_gives_comes_back() {
        let patience = Arc::new(Patience::default());
        assert_eq!(patience.run("test", LONG, || 7), Ok(7));
    }

    #[test]
    fn a_call_that_hangs_is_abandoned_at_its_limit_or_when_it_is_cancelled() {
        let patience = Arc::new(Patience::default());
        let (release, hold) = channel::<()>();
        let limit = Duration::from_millis(10);
        let hang = move || hold.recv();
        assert_eq!(
            patience.run("test", limit, hang),
            Err(Abandoned::TimedOut(limit))
        );
        drop(release);

        let (release, hold) = channel::<()>();
        let (begun, wait) = channel::<()>();
        let other = patience.clone();
        let canceller = std::thread::spawn(move || {
            let _ = wait.recv();
            other.cancel();
        });
        let hang = move || {
            let _ = begun.send(());
            let _ = hold.recv();
        };
        assert_eq!(patience.run("test", LONG, hang), Err(Abandoned::Cancelled));
        canceller.join().expect("the canceller ends");
        drop(release);
        assert_eq!(patience.run("test", LONG, || ()), Err(Abandoned::Cancelled));
        patience.reset();
        assert_eq!(patience.run("test", LONG, || ()), Ok(()));
    }

    #[test]
    fn what_comes_too_late_is_dropped_where_it_comes() {
        struct Told(std::sync::mpsc::Sender<()>);
        impl Drop for Told {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        let patience = Arc::new(Patience::default());
        let (release, hold) = channel::<()>();
        let (dropped, wait) = channel();
        let late = patience.run("test", Duration::from_millis(1), move || {
            let _ = hold.recv();
            Told(dropped)
        });
        assert!(matches!(late, Err(Abandoned::TimedOut(_))));
        drop(release);
        assert_eq!(wait.recv_timeout(LONG), Ok(()));
    }
}
