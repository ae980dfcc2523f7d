// SPDX-License-Identifier: MPL-2.0

//! The loop on a thread of its own, with a real clock and a condition variable: cancelled from
//! outside it returns, however long its pause is. Nothing here depends on speed: the pauses are
//! hours, and a loop that does not wake up fails the test.

use std::convert::Infallible;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use vplretry_core::{
    Corruption, Decoded, End, Event, FrameLoop, Input, Reason, Reset, Settings, Stats, Status,
    VplDecodeDriver, Wake,
};

/// The cancel flag of a session: what the threads that stop or flush hold.
#[derive(Default)]
struct Cancel {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    fn raise(&self) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn is_raised(&self) -> bool {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self, pause: Duration) -> Wake {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let (raised, _) = self
            .changed
            .wait_timeout_while(raised, pause, |raised| !*raised)
            .unwrap_or_else(PoisonError::into_inner);
        if *raised {
            Wake::Cancelled
        } else {
            Wake::Elapsed
        }
    }
}

/// A device that is busy for ever, or whose frame is never complete.
struct Stuck {
    cancel: Arc<Cancel>,
    started: Instant,
    input: usize,
    bitstream: usize,
    with_frame: bool,
    pausing: Sender<()>,
}

impl VplDecodeDriver for Stuck {
    type Surface = ();
    type Sync = ();
    type Format = ();
    type Error = Infallible;

    fn bitstream_len(&self) -> usize {
        self.bitstream
    }

    fn buffer_size(&self) -> usize {
        1000
    }

    fn is_eof(&self) -> bool {
        false
    }

    fn refill(&mut self) -> Result<usize, Infallible> {
        let taken = std::mem::take(&mut self.input);
        self.bitstream += taken;
        Ok(taken)
    }

    fn drop_unit(&mut self, _reason: Reason) {
        self.bitstream = 0;
    }

    fn decode_async(&mut self, _input: Input) -> Decoded<(), ()> {
        let frame = self.with_frame.then_some(());
        Decoded {
            status: if self.with_frame {
                Status::NONE
            } else {
                Status::DEVICE_BUSY
            },
            surface: frame,
            sync: frame,
        }
    }

    fn wait_frame(&mut self, _surface: &(), _sync: Option<&()>, _wait: Duration) -> Status {
        Status::IN_EXECUTION
    }

    fn wait_token(&mut self, _token: &(), _wait: Duration) -> Status {
        Status::IN_EXECUTION
    }

    fn read_parameters(&mut self) -> Result<Status, Infallible> {
        Ok(Status::NONE)
    }

    fn reset(&mut self, _why: Reset) -> Result<Status, Infallible> {
        Ok(Status::NONE)
    }

    fn reinit(&mut self) -> Result<Status, Infallible> {
        Ok(Status::NONE)
    }

    fn recover(&mut self, _cause: Status) -> Result<Status, Infallible> {
        Ok(Status::NONE)
    }

    fn implementation(&self) -> &str {
        "stuck"
    }

    fn corruption(&self, _surface: &()) -> u16 {
        0
    }

    fn format(&self, _surface: &()) {}

    fn format_changed(&mut self, _format: &()) -> Result<(), Infallible> {
        Ok(())
    }

    fn publish(&mut self, _surface: (), _corruption: Corruption) -> Result<(), Infallible> {
        Ok(())
    }

    fn discard(&mut self, _surface: (), _reason: Reason) {}

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn backoff(&mut self, pause: Duration) -> Wake {
        // The test may have stopped listening.
        let _ = self.pausing.send(());
        self.cancel.pause(pause)
    }

    fn cancelled(&self) -> bool {
        self.cancel.is_raised()
    }

    fn on_event(&mut self, _event: &Event, _stats: &Stats) {}
}

#[test]
fn a_stuck_loop_returns_when_it_is_cancelled_from_another_thread() {
    const HOURS: Duration = Duration::from_secs(10 * 3600);
    const LONG_ENOUGH: Duration = Duration::from_secs(100);
    for with_frame in [false, true] {
        let cancel = Arc::new(Cancel::default());
        let (pausing, is_pausing) = mpsc::channel();
        let driver = Stuck {
            cancel: Arc::clone(&cancel),
            started: Instant::now(),
            input: 100,
            bitstream: 0,
            with_frame,
            pausing,
        };
        let mut decode = FrameLoop::new(
            driver,
            Settings {
                retry_interval: HOURS,
                retry_timeout: HOURS,
                sync_timeout: HOURS,
                sync_slice: HOURS,
                ..Settings::default()
            },
        );
        let (done, is_done) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let end = decode.feed();
            let flushed = decode.flush();
            // The test may have given up.
            let _ = done.send((end, flushed, decode.pending()));
        });
        is_pausing.recv_timeout(LONG_ENOUGH).expect("a pause");
        cancel.raise();
        let (end, flushed, pending) = is_done
            .recv_timeout(LONG_ENOUGH)
            .expect("the loop returns when it is cancelled");
        assert_eq!(end, Ok(End::Cancelled));
        // A flush waits for nothing, so it works while the flag is still up.
        assert_eq!(flushed, Ok(End::Flushed));
        assert_eq!(pending, 0);
        thread.join().expect("the thread ends");
    }
}
