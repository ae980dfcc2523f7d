// SPDX-License-Identifier: MPL-2.0

//! Live behaviour: a window is complete with the frame after its last one, also while the producer
//! stalls; every event comes once.

mod reference;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use vmaf_motion::Derivation;
use vmaf_motion::chunks::Part;
use vmaf_motion::derive::{DerivationError, Rules};
use vmaf_motion::live::{LiveError, LiveScorer, MAX_UNDELIVERED};
use vmaf_motion::pool::{Pooled, Scores, pool};
use vmaf_motion::sad::Distance;
use vmaf_motion::session::{Event, Session};
use vmaf_motion::windows::{
    Config, Failure, FeedError, FrameScore, MAX_OPEN, Poll, SubmitError, WindowId, WindowResult,
};

use reference::{flushed_integer, unscored_head};

/// No wait here ends by it, unless something is broken.
const LONG: Duration = Duration::from_secs(60);
const NO_TIME: Duration = Duration::ZERO;

fn rules(distance: Distance) -> Rules {
    Rules {
        distance,
        blend_factor: 0.3,
        blend_offset: 5.0,
        max_val: 18.0,
        moving_average: true,
        blend_uncapped: false,
    }
}

fn film(frames: u64, distance: Distance) -> Vec<f64> {
    let scores = (0..frames).map(|i| (i * i * 7 % 31) as f64 / 3.0).collect();
    unscored_head(scores, &rules(distance))
}

fn pooled(film: &[f64], distance: Distance, first: usize, last: usize) -> Pooled {
    let whole: Vec<Scores> = flushed_integer(film, &rules(distance));
    pool(&whole[first..=last], Config::default().methods).expect("frames")
}

fn session() -> Session {
    Session::new(Part::default(), Config::default()).expect("defaults")
}

fn live<F: Fn(&Event)>(distance: Distance, handler: F) -> LiveScorer<F> {
    LiveScorer::new(Derivation::new(rules(distance)), session(), handler)
}

fn done(poll: Poll) -> WindowResult {
    match poll {
        Poll::Done(result) => result,
        other => panic!("{other:?}"),
    }
}

#[test]
fn window_completes_after_the_frame_after_last() {
    for distance in [Distance::One, Distance::Two] {
        let film = film(12, distance);
        let scorer = live(distance, |_| {});
        let id = scorer.submit(2, 5).expect("room");
        for (frame, score) in (0..).zip(&film[..=6]) {
            assert_eq!(scorer.poll(id), Poll::Pending, "before frame {frame}");
            assert_eq!(scorer.feed(None), Ok(frame));
            scorer.score(frame, *score).expect("fed");
        }
        let result = done(scorer.poll(id));
        assert_eq!(result.outcome, Ok(pooled(&film, distance, 2, 5)));
        assert_eq!(
            (result.n_frames, result.n_scored, result.partial),
            (4, 4, false)
        );
    }
}

/// Two workers, frames 0 to 6 are submitted, then the producer falls silent. The last score comes
/// from a worker after that.
#[test]
fn window_completes_while_the_feeder_stalls() {
    for distance in [Distance::One, Distance::Two] {
        for late in [6, 3] {
            stalled_feeder(distance, late);
        }
    }
}

fn stalled_feeder(distance: Distance, late: u64) {
    let film = film(7, distance);
    let (events_in, events) = channel();
    let events_in = Mutex::new(events_in);
    let scorer = live(distance, move |event: &Event| {
        events_in
            .lock()
            .expect("no panic")
            .send(*event)
            .expect("the test listens");
    });
    let (jobs_in, jobs) = channel::<u64>();
    let jobs = Mutex::new(jobs);
    let (silent, is_silent) = channel::<()>();
    let is_silent = Mutex::new(is_silent);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let next = || jobs.lock().expect("no panic").recv();
                while let Ok(frame) = next() {
                    if frame == late {
                        is_silent
                            .lock()
                            .expect("no panic")
                            .recv()
                            .expect("the feeder stalls");
                    }
                    scorer.score(frame, film[frame as usize]).expect("fed");
                }
            });
        }
        let id = scorer.submit(2, 5).expect("room");
        for frame in 0..7 {
            assert_eq!(scorer.feed(None), Ok(frame));
            jobs_in.send(frame).expect("workers run");
        }
        assert_eq!(scorer.poll(id), Poll::Pending);
        silent.send(()).expect("a worker waits");
        // From here on nothing but a wait: the workers alone complete the window.
        let result = loop {
            match events.recv_timeout(LONG).expect("the window completes") {
                Event::Window(result) => break result,
                Event::Frame(reported) => assert!(reported.score.frame < 6),
            }
        };
        assert_eq!(result.id, id);
        assert_eq!(result.outcome, Ok(pooled(&film, distance, 2, 5)));
        assert_eq!(done(scorer.wait(id, LONG)), result);
        drop(jobs_in);
    });
}

type Handler = fn(&Event);
type Shared = Arc<LiveScorer<Handler>>;

/// Many times: one thread waits, then another acts. Gives what the waits answered. A wait that is
/// not woken would last an hour; it is given up after a minute.
fn woken<T: Send + 'static>(
    make: fn() -> Shared,
    wait: fn(&Shared) -> T,
    act: fn(&Shared),
) -> Vec<T> {
    let trial = |_| {
        let scorer = make();
        let (answer_in, answer) = channel();
        let (started_in, started) = channel();
        let waiting = Arc::clone(&scorer);
        thread::spawn(move || {
            started_in.send(()).expect("the test listens");
            // After a failure nobody listens any more.
            let _ = answer_in.send(wait(&waiting));
        });
        started.recv().expect("the thread runs");
        (0..50).for_each(|_| thread::yield_now());
        act(&scorer);
        answer.recv_timeout(LONG).expect("the wait is woken")
    };
    (0..100).map(trial).collect()
}

const HOUR: Duration = Duration::from_secs(3600);

/// Frames 0 to 6 are fed, the score of frame 6 is missing, window [2, 5] has id 0.
fn last_score_missing() -> Shared {
    let film = film(7, Distance::One);
    let scorer: Shared = Arc::new(live(Distance::One, |_| {}));
    assert_eq!(scorer.submit(2, 5), Ok(WindowId(0)));
    for frame in 0..7 {
        scorer.feed(None).expect("not ended");
        if frame != 6 {
            scorer.score(frame, film[frame as usize]).expect("fed");
        }
    }
    assert_eq!(scorer.wait(WindowId(0), NO_TIME), Poll::Pending);
    assert_eq!(scorer.wait_frame(5, NO_TIME), FrameScore::Pending);
    scorer
}

fn last_score(scorer: &Shared) {
    let score = film(7, Distance::One)[6];
    scorer.score(6, score).expect("fed");
}

#[test]
fn a_waiting_reader_is_woken_by_the_worker() {
    let film = film(7, Distance::One);
    let expected = pooled(&film, Distance::One, 2, 5);
    for poll in woken(
        last_score_missing,
        |s| s.wait(WindowId(0), HOUR),
        last_score,
    ) {
        assert_eq!(done(poll).outcome, Ok(expected));
    }
    assert_eq!(last_score_missing().wait(WindowId(99), HOUR), Poll::Unknown);
}

/// The fault found beside the seed: a read of a frame that a worker still held was refused.
#[test]
fn a_read_of_a_fed_frame_waits_for_its_worker() {
    let film = film(7, Distance::One);
    let expected = flushed_integer(&film, &rules(Distance::One))[5];
    for score in woken(last_score_missing, |s| s.wait_frame(5, HOUR), last_score) {
        let FrameScore::Final(score) = score else {
            panic!("{score:?}");
        };
        assert_eq!(Scores::from(score), expected);
    }
    let scorer = last_score_missing();
    last_score(&scorer);
    assert_eq!(scorer.frame_score(6), FrameScore::Pending);
    let not_fed = FrameScore::Failed(Failure::NotFed { fed: 7 });
    assert_eq!(scorer.wait_frame(7, HOUR), not_fed);
}

#[test]
fn cancelling_wakes_who_waits() {
    fn make() -> Shared {
        let scorer: Shared = Arc::new(live(Distance::One, |event| {
            panic!("{event:?} of a cancelled window")
        }));
        assert_eq!(scorer.submit(0, 0), Ok(WindowId(0)));
        scorer
    }
    let wait = |s: &Shared| s.wait(WindowId(0), HOUR);
    for poll in woken(make, wait, |s| assert!(s.cancel(WindowId(0)))) {
        assert_eq!(poll, Poll::Unknown);
    }
    let scorer = make();
    assert!(scorer.cancel(WindowId(0)));
    assert!(!scorer.cancel(WindowId(0)));
}

#[test]
fn a_flush_waits_for_the_workers() {
    for flushed in woken(last_score_missing, |s| s.flush(HOUR), last_score) {
        assert_eq!(flushed, Ok(()));
    }
}

#[test]
fn the_end_wakes_who_waits() {
    fn make() -> Shared {
        let scorer = last_score_missing();
        last_score(&scorer);
        assert_eq!(scorer.submit(3, 9), Ok(WindowId(1)));
        scorer
    }
    let wait = |s: &Shared| s.wait(WindowId(1), HOUR);
    for poll in woken(make, wait, |s| assert_eq!(s.flush(NO_TIME), Ok(()))) {
        let result = done(poll);
        assert_eq!((result.n_frames, result.partial), (4, true));
    }
    for poll in woken(make, wait, |s| s.abandon()) {
        assert_eq!(done(poll).outcome, Err(Failure::Ended));
    }
}

/// Workers, a producer and two threads that ask for windows, all at once: each frame and each
/// window becomes exactly one event, frames in order, no two handlers at a time.
#[test]
fn callbacks_run_once() {
    const FRAMES: u64 = 2_000;
    let distance = Distance::Two;
    let film = film(FRAMES, distance);
    let running = AtomicU64::new(0);
    let seen = Mutex::new(Vec::new());
    let scorer = live(distance, |event: &Event| {
        assert_eq!(
            running.fetch_add(1, Ordering::SeqCst),
            0,
            "two handlers at a time"
        );
        seen.lock().expect("no panic").push(*event);
        running.fetch_sub(1, Ordering::SeqCst);
    });
    let (senders, receivers): (Vec<Sender<u64>>, Vec<Receiver<u64>>) =
        (0..2).map(|_| channel()).unzip();
    let asked: Vec<WindowId> = thread::scope(|scope| {
        for jobs in receivers {
            scope.spawn(|| {
                // Blocks of three, newest first, as workers may finish them.
                let mut block = Vec::new();
                for frame in jobs {
                    block.push(frame);
                    if block.len() == 3 {
                        for frame in block.drain(..).rev() {
                            scorer.score(frame, film[frame as usize]).expect("fed");
                        }
                    }
                }
                for frame in block {
                    scorer.score(frame, film[frame as usize]).expect("fed");
                }
            });
        }
        let askers: Vec<_> = [1, 2]
            .map(|step: u64| {
                let scorer = &scorer;
                scope.spawn(move || {
                    let ask = |n| scorer.submit(n * step, n * step + 9).expect("room");
                    (0..400).map(ask).collect::<Vec<_>>()
                })
            })
            .into_iter()
            .collect();
        for frame in 0..FRAMES {
            scorer.feed(Some(frame)).expect("the handler keeps up");
            senders[(frame / 3 % 2) as usize]
                .send(frame)
                .expect("workers run");
        }
        drop(senders);
        askers
            .into_iter()
            .flat_map(|asker| asker.join().expect("no panic"))
            .collect()
    });
    assert_eq!(scorer.flush(LONG), Ok(()));
    let whole: Vec<Scores> = flushed_integer(&film, &rules(distance));
    let seen = seen.lock().expect("no panic");
    let frames = seen.iter().filter_map(|event| match event {
        Event::Frame(reported) => Some((reported.score.frame, Scores::from(reported.score))),
        Event::Window(_) => None,
    });
    assert!(frames.eq((0..FRAMES).zip(whole.iter().copied())));
    let mut ids = Vec::new();
    for event in seen.iter() {
        if let Event::Window(result) = event {
            ids.push(result.id);
            let frames = &whole[result.first as usize..=result.last as usize];
            assert_eq!(result.outcome.ok(), pool(frames, Config::default().methods));
        }
    }
    ids.sort();
    let mut asked = asked;
    asked.sort();
    assert_eq!(ids, asked);
}

#[test]
fn a_retried_flush_emits_nothing() {
    let count = AtomicU64::new(0);
    let scorer = live(Distance::One, |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let id = scorer.submit(0, 9).expect("room");
    for frame in 0..3 {
        scorer.feed(None).expect("not ended");
        if frame != 1 {
            scorer.score(frame, 1.0).expect("fed");
        }
    }
    assert_eq!(scorer.flush(NO_TIME), Err(LiveError::Missing { frame: 1 }));
    assert_eq!(
        count.load(Ordering::SeqCst),
        0,
        "a failed flush changes nothing"
    );
    scorer.score(1, 1.0).expect("fed");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert_eq!(scorer.flush(NO_TIME), Ok(()));
    assert_eq!(
        count.load(Ordering::SeqCst),
        4,
        "the last frame and the window"
    );
    let result = done(scorer.take(id));
    assert!(result.partial);
    assert_eq!(result.n_frames, 3);
    assert_eq!(scorer.take(id), Poll::Unknown);
    for _ in 0..2 {
        assert_eq!(scorer.flush(NO_TIME), Ok(()));
        scorer.abandon();
        assert_eq!(scorer.feed(None), Err(FeedError::Ended { frame: 3 }.into()));
        let ended = DerivationError::Ended { frame: 2 };
        assert_eq!(scorer.score(2, 1.0), Err(ended.into()));
    }
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

#[test]
fn an_abandoned_session_fails_what_is_open() {
    let seen = Mutex::new(Vec::new());
    let scorer = live(Distance::One, |event| {
        seen.lock().expect("no panic").push(*event)
    });
    scorer.feed(None).expect("not ended");
    scorer.feed(None).expect("not ended");
    scorer.score(0, 0.0).expect("fed");
    let id = scorer.submit(0, 1).expect("room");
    scorer.abandon();
    assert_eq!(done(scorer.poll(id)).outcome, Err(Failure::Ended));
    assert_eq!(seen.lock().expect("no panic").len(), 1);
    let ended = DerivationError::Ended { frame: 1 };
    assert_eq!(scorer.score(1, 1.0), Err(LiveError::Score(ended)));
    assert_eq!(
        scorer.flush(NO_TIME),
        Ok(()),
        "a missing score no longer matters"
    );
    assert_eq!(seen.lock().expect("no panic").len(), 1);
}

#[test]
fn bad_calls_change_nothing() {
    let scorer = live(Distance::One, |_| {});
    assert_eq!(
        scorer.score(0, 0.0),
        Err(LiveError::NotFed { frame: 0, fed: 0 })
    );
    scorer.feed(None).expect("not ended");
    scorer.score(0, 0.0).expect("fed");
    let twice = DerivationError::Duplicate { frame: 0 };
    assert_eq!(scorer.score(0, 0.0), Err(twice.into()));
    let order = SubmitError::Order { first: 2, last: 1 };
    assert_eq!(scorer.submit(2, 1), Err(order.into()));
    for _ in 0..MAX_OPEN {
        scorer.submit(7, 7).expect("room");
    }
    assert_eq!(scorer.submit(7, 7), Err(SubmitError::Busy.into()));
    assert!(format!("{scorer:?}").starts_with("LiveScorer"));
}

/// The handler may call anything; what that causes is handed over after it, not inside it.
#[test]
fn a_handler_may_call_back() {
    static SCORER: OnceLock<LiveScorer<Handler>> = OnceLock::new();
    static IDS: Mutex<Vec<(WindowId, bool)>> = Mutex::new(Vec::new());
    fn handler(event: &Event) {
        let scorer = SCORER.get().expect("made before");
        if let Event::Window(result) = event {
            assert_eq!(scorer.wait(result.id, LONG), Poll::Done(*result));
            let again = result.id < WindowId(5);
            IDS.lock().expect("no panic").push((result.id, again));
            if again {
                // Final already: becomes an event of its own at once.
                scorer.submit(0, 0).expect("room");
            }
            scorer.cancel(result.id);
        }
    }
    let scorer = SCORER.get_or_init(|| live(Distance::One, handler as Handler));
    scorer.submit(0, 0).expect("room");
    for frame in 0..2 {
        scorer.feed(None).expect("not ended");
        scorer.score(frame, 1.0).expect("fed");
    }
    let ids = IDS.lock().expect("no panic");
    let expected: Vec<_> = (0..=5).map(|n| (WindowId(n), n < 5)).collect();
    assert_eq!(*ids, expected);
}

#[test]
fn a_panic_in_the_handler_stops_no_later_event() {
    let seen = Mutex::new(Vec::new());
    let scorer = live(Distance::One, |event| {
        if let Event::Frame(reported) = event {
            assert_ne!(reported.score.frame, 1, "this panic is part of the test");
            seen.lock()
                .expect("not poisoned")
                .push(reported.score.frame);
        }
    });
    for frame in 0..5 {
        scorer.feed(None).expect("not ended");
        let score = std::panic::AssertUnwindSafe(|| scorer.score(frame, 1.0));
        assert_eq!(std::panic::catch_unwind(score).is_err(), frame == 2);
    }
    assert_eq!(*seen.lock().expect("not poisoned"), [0, 2, 3]);
}

#[test]
fn a_handler_that_hangs_is_a_limit_not_a_leak() {
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let (entered_in, entered) = channel();
    let entered_in = Mutex::new(entered_in);
    let count = AtomicU64::new(0);
    let scorer = live(Distance::One, |_| {
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            entered_in
                .lock()
                .expect("no panic")
                .send(())
                .expect("the test waits");
            // Ends by the release or, if the test fails, by the sender's end.
            let _ = released.lock().expect("no panic").recv();
        }
    });
    thread::scope(|scope| {
        let release = release;
        scorer.feed(None).expect("not ended");
        scorer.feed(None).expect("not ended");
        scorer.score(0, 0.0).expect("fed");
        let id = scorer.submit(0, 2).expect("room");
        scope.spawn(|| scorer.score(1, 1.0).expect("fed"));
        entered.recv_timeout(LONG).expect("the handler runs");
        let mut frame = 2;
        let refused = loop {
            match scorer.feed(None) {
                Ok(fed) => assert_eq!(fed, frame),
                Err(error) => break error,
            }
            scorer.score(frame, 1.0).expect("fed");
            frame += 1;
        };
        assert_eq!(refused, LiveError::HandlerBehind);
        assert!(refused.to_string().contains("8192"));
        assert_eq!(scorer.submit(0, 0), Err(LiveError::HandlerBehind));
        assert!(frame >= MAX_UNDELIVERED as u64);
        assert!(
            matches!(scorer.poll(id), Poll::Done(_)),
            "completions do not wait for it"
        );
        drop(release);
    });
    scorer.feed(None).expect("the handler caught up");
}
