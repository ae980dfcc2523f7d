// SPDX-License-Identifier: MPL-2.0

use std::num::NonZeroU64;

use super::*;
use crate::pool::{Feature, Method, Methods};

/// A stream without a lag of its own: scores are those of `motion`, times their frame.
struct Stream {
    windows: Windows,
    emitted: Vec<WindowResult>,
}

impl Stream {
    fn new(config: Config) -> Self {
        let windows = Windows::new(config).expect("a good configuration");
        let emitted = Vec::new();
        Self { windows, emitted }
    }

    fn submit(&mut self, first: u64, last: u64) -> WindowId {
        let emit = |result: &WindowResult| self.emitted.push(*result);
        self.windows.submit(first, last, emit).expect("room")
    }

    fn feed(&mut self) -> u64 {
        let emit = |result: &WindowResult| self.emitted.push(*result);
        let timestamp = Some(self.windows.fed * 10);
        self.windows.feed(timestamp, emit).expect("not ended")
    }

    fn push(&mut self) {
        let frame = self.windows.history.next();
        let emit = |result: &WindowResult| self.emitted.push(*result);
        self.windows.push(score(frame), emit).expect("in order");
    }

    /// Feeds and finishes so many frames.
    fn run(&mut self, frames: u64) {
        for _ in 0..frames {
            self.feed();
            self.push();
        }
    }

    fn flush(&mut self) {
        let emit = |result: &WindowResult| self.emitted.push(*result);
        self.windows.flush(emit);
    }

    /// What was emitted since the last call.
    fn taken(&mut self) -> Vec<WindowResult> {
        std::mem::take(&mut self.emitted)
    }

    fn one(&mut self) -> WindowResult {
        let taken = self.taken();
        assert_eq!(taken.len(), 1, "{taken:?}");
        taken[0]
    }
}

fn score(frame: u64) -> FinalScore {
    FinalScore {
        frame,
        motion: frame as f64,
        motion2: 1.0,
        motion3: 0.0,
    }
}

fn subsampled(n: u64) -> Config {
    Config {
        n_subsample: NonZeroU64::new(n).expect("not zero"),
        ..Config::default()
    }
}

fn value(result: &WindowResult, method: Method) -> f64 {
    let pooled = result.outcome.expect("complete");
    pooled.get(Feature::Motion, method).expect("asked for")
}

#[test]
fn before_during_and_after() {
    let mut stream = Stream::new(Config::default());
    let before = stream.submit(2, 5);
    stream.run(4);
    let during = stream.submit(2, 5);
    stream.feed();
    stream.feed();
    stream.push();
    assert_eq!(stream.taken(), []);
    assert_eq!(stream.windows.poll(before), Poll::Pending);
    stream.push();
    let done = stream.taken();
    let after = stream.submit(2, 5);
    let late = stream.one();
    for (result, id) in done.iter().chain([&late]).zip([before, during, after]) {
        assert_eq!((result.id, result.first, result.last), (id, 2, 5));
        assert_eq!(
            (result.n_frames, result.n_scored, result.partial),
            (4, 4, false)
        );
        assert_eq!(value(result, Method::Mean), 3.5);
        assert_eq!(result.span, None);
        assert_eq!(stream.windows.poll(id), Poll::Done(*result));
    }
    assert_eq!(done.len(), 2);
    assert_eq!(stream.windows.open(), 0);
}

#[test]
fn a_result_stays_until_it_is_taken_or_cancelled() {
    let mut stream = Stream::new(Config::default());
    let ids = [
        stream.submit(0, 0),
        stream.submit(0, 0),
        stream.submit(9, 9),
    ];
    stream.run(1);
    assert_eq!(stream.taken().len(), 2);
    assert!(matches!(stream.windows.poll(ids[0]), Poll::Done(_)));
    assert!(matches!(stream.windows.take(ids[0]), Poll::Done(_)));
    assert_eq!(stream.windows.take(ids[0]), Poll::Unknown);
    assert!(stream.windows.cancel(ids[1]));
    assert!(!stream.windows.cancel(ids[1]));
    assert_eq!(stream.windows.poll(ids[1]), Poll::Unknown);
    assert_eq!(stream.windows.take(ids[2]), Poll::Pending);
    assert!(stream.windows.cancel(ids[2]));
    assert_eq!(stream.windows.poll(ids[2]), Poll::Unknown);
    stream.run(20);
    stream.flush();
    assert_eq!(stream.taken(), [], "a cancelled window is never emitted");
    assert_eq!(stream.windows.poll(WindowId(77)), Poll::Unknown);
}

#[test]
fn the_limit_of_open_windows_is_named() {
    let mut stream = Stream::new(Config::default());
    let ids: Vec<_> = (0..MAX_OPEN as u64)
        .map(|n| stream.submit(n, n + 10))
        .collect();
    let busy = stream.windows.submit(0, 0, |_| {});
    assert_eq!(busy, Err(SubmitError::Busy));
    assert!(SubmitError::Busy.to_string().contains("1024"));
    assert!(stream.windows.cancel(ids[7]));
    assert!(stream.windows.submit(0, 0, |_| {}).is_ok());
    assert_eq!(stream.windows.submit(0, 0, |_| {}), Err(SubmitError::Busy));
}

#[test]
fn windows_of_the_clock_do_not_count_as_open() {
    let mut stream = Stream::new(Config {
        cut: Cut::from_settings(0.0, 2).expect("a length"),
        ..Config::default()
    });
    stream.feed();
    assert_eq!(stream.windows.open(), 0);
    for n in 0..MAX_OPEN as u64 {
        stream.submit(1_000 + n, 1_000 + n);
    }
    stream.push();
    stream.run(4);
    assert_eq!(stream.taken().len(), 2);
}

#[test]
fn the_oldest_results_make_room() {
    let mut stream = Stream::new(Config::default());
    stream.run(1);
    let ids: Vec<_> = (0..MAX_KEPT + 2).map(|_| stream.submit(0, 0)).collect();
    assert_eq!(stream.taken().len(), MAX_KEPT + 2);
    let known = |id: &&WindowId| stream.windows.poll(**id) != Poll::Unknown;
    assert!(ids.iter().filter(known).eq(&ids[2..]));
}

#[test]
fn an_empty_range_is_refused() {
    let mut windows = Windows::new(Config::default()).expect("defaults");
    let refused = windows.submit(5, 4, |_| {});
    assert_eq!(refused, Err(SubmitError::Order { first: 5, last: 4 }));
    assert!(windows.submit(5, 5, |_| {}).is_ok());
}

#[test]
fn configurations_out_of_range_are_refused() {
    let config = |history, first_frame| Config {
        history,
        first_frame,
        ..Config::default()
    };
    let error = |config| Windows::new(config).expect_err("out of range");
    let history = MAX_HISTORY + 1;
    assert_eq!(error(config(history, 0)), ConfigError::History { history });
    let first_frame = crate::chunks::MAX_FIRST_FRAME + 1;
    assert_eq!(
        error(config(1, first_frame)),
        ConfigError::FirstFrame { first_frame }
    );
    let windows = Windows::new(config(MAX_HISTORY, first_frame - 1)).expect("the limits");
    assert_eq!(*windows.config(), config(MAX_HISTORY, first_frame - 1));
}

#[test]
fn a_stream_that_ends_inside_leaves_the_window_partial() {
    let mut stream = Stream::new(Config::default());
    stream.submit(2, 9);
    stream.submit(3, u64::MAX);
    stream.submit(4, 4);
    stream.run(4);
    stream.feed();
    stream.push();
    assert!(!stream.one().partial);
    stream.flush();
    let results = stream.taken();
    assert_eq!(results.len(), 2);
    for (result, n_frames) in results.iter().zip([3, 2]) {
        assert!(result.partial);
        assert_eq!((result.n_frames, result.n_scored), (n_frames, n_frames));
        assert_eq!(value(result, Method::Max), 4.0);
    }
    stream.flush();
    stream
        .windows
        .abandon(|result| panic!("{result:?} after the flush"));
    assert_eq!(stream.taken(), [], "a retried flush emits nothing");
    stream.submit(4, 5);
    assert!(stream.one().partial, "asked for after the end");
}

#[test]
fn every_failure_has_its_reason() {
    let mut stream = Stream::new(Config {
        first_frame: 10,
        history: 3,
        methods: Method::Mean.into(),
        ..subsampled(4)
    });
    let fails = |stream: &mut Stream, first, last, failure: Failure, reason, partial| {
        let id = stream.submit(first, last);
        let result = stream.one();
        assert_eq!((result.id, result.outcome), (id, Err(failure)));
        assert_eq!(
            (result.n_frames, result.n_scored, result.partial),
            (0, 0, partial)
        );
        assert_eq!(failure.reason(), reason);
        assert_eq!(stream.windows.poll(id), Poll::Done(result));
    };
    let before = Failure::BeforeStream { first: 10 };
    fails(&mut stream, 9, 12, before, "range", false);
    fails(&mut stream, 13, 15, Failure::NothingScored, "range", false);
    fails(
        &mut stream,
        u64::MAX - 2,
        u64::MAX,
        Failure::NothingScored,
        "range",
        false,
    );
    stream.run(10);
    let gone = Failure::LeftHistory { oldest: 17 };
    fails(&mut stream, 12, 13, gone, "range", false);
    fails(&mut stream, 16, 30, gone, "range", false);
    // Its first frame is gone, its first scored frame has not come.
    stream.submit(14, 15);
    stream.taken();
    let open = stream.submit(17, 21);
    stream.run(2);
    assert_eq!(value(&stream.one(), Method::Mean), 20.0);
    assert!(matches!(stream.windows.poll(open), Poll::Done(_)));
    // Frames 22 to 25 are fed; 22 and 23 become final.
    let missing = stream.submit(21, 24);
    let nothing = stream.submit(25, 40);
    let behind = stream.submit(28, 40);
    for _ in 0..4 {
        stream.feed();
    }
    stream.push();
    stream.push();
    assert_eq!(stream.taken(), []);
    stream.flush();
    let outcomes: Vec<_> = stream
        .taken()
        .iter()
        .map(|r| (r.id, r.outcome, r.n_frames, r.partial))
        .collect();
    let missing_24 = Failure::NoScore { frame: 24 };
    let after = Failure::AfterStream { fed: 26 };
    assert_eq!(
        outcomes,
        [
            (missing, Err(missing_24), 0, false),
            (nothing, Err(Failure::NothingScored), 0, true),
            (behind, Err(after), 0, true),
        ]
    );
    assert_eq!(
        (missing_24.reason(), after.reason()),
        ("not-found", "range")
    );
}

#[test]
fn a_session_that_goes_away_fails_what_is_open() {
    let mut stream = Stream::new(Config {
        cut: Cut::from_settings(0.0, 3).expect("a length"),
        ..Config::default()
    });
    stream.submit(0, 1);
    stream.run(2);
    assert!(stream.one().outcome.is_ok());
    stream.submit(1, 3);
    stream.submit(8, 9);
    let emitted = &mut stream.emitted;
    stream.windows.abandon(|result| emitted.push(*result));
    let results = stream.taken();
    assert_eq!(results.len(), 3);
    assert_eq!(results.iter().filter(|r| r.span.is_some()).count(), 1);
    for result in results {
        let cut = result.span.is_some();
        assert!(result.partial);
        // The window of the clock ends with the stream, so nothing of it is missing.
        assert_eq!(result.outcome.err(), (!cut).then_some(Failure::Ended));
    }
    assert_eq!(Failure::Ended.reason(), "ended");
    stream.flush();
    assert_eq!(stream.taken(), []);
    stream.submit(0, 1);
    assert!(stream.one().outcome.is_ok(), "its frames were final");
    stream.submit(0, 2);
    assert_eq!(stream.one().outcome, Err(Failure::Ended));
}

/// The fault found beside the seed: a frame that was fed was answered as if it did not exist.
#[test]
fn a_fed_frame_is_never_not_found() {
    let mut stream = Stream::new(Config {
        history: 2,
        first_frame: 5,
        ..Config::default()
    });
    let failed = FrameScore::Failed;
    assert_eq!(
        stream.windows.frame_score(4),
        failed(Failure::BeforeStream { first: 5 })
    );
    assert_eq!(
        stream.windows.frame_score(5),
        failed(Failure::NotFed { fed: 5 })
    );
    assert_eq!(Failure::NotFed { fed: 5 }.reason(), "not-found");
    for frame in 5..20 {
        assert_eq!(stream.feed(), frame);
        assert_eq!(stream.windows.frame_score(frame), FrameScore::Pending);
        assert_eq!(
            stream.windows.frame_score(frame + 1),
            failed(Failure::NotFed { fed: frame + 1 })
        );
        if frame > 5 {
            stream.push();
            assert_eq!(
                stream.windows.frame_score(frame - 1),
                FrameScore::Final(score(frame - 1))
            );
        }
    }
    assert_eq!(
        stream.windows.frame_score(16),
        failed(Failure::LeftHistory { oldest: 17 })
    );
    assert_eq!(stream.windows.frame_score(17), FrameScore::Final(score(17)));
    stream.flush();
    assert_eq!(stream.windows.frame_score(18), FrameScore::Final(score(18)));
    assert_eq!(stream.windows.frame_score(19), failed(Failure::Ended));
    assert_eq!(
        stream.windows.frame_score(20),
        failed(Failure::AfterStream { fed: 20 })
    );
}

#[test]
fn scores_come_in_order_after_their_frames() {
    let mut windows = Windows::new(Config::default()).expect("defaults");
    let order = |frame, expected, fed| {
        Err(FeedError::Order {
            frame,
            expected,
            fed,
        })
    };
    assert_eq!(windows.push(score(0), |_| {}), order(0, 0, 0));
    assert_eq!(windows.feed(None, |_| {}), Ok(0));
    assert_eq!(windows.feed(None, |_| {}), Ok(1));
    assert_eq!(windows.push(score(1), |_| {}), order(1, 0, 2));
    assert_eq!(windows.push(score(0), |_| {}), Ok(()));
    assert_eq!(windows.push(score(0), |_| {}), order(0, 1, 2));
    windows.flush(|_| {});
    assert_eq!(
        windows.push(score(1), |_| {}),
        Err(FeedError::Ended { frame: 1 })
    );
    assert_eq!(
        windows.feed(None, |_| {}),
        Err(FeedError::Ended { frame: 2 })
    );
}

/// libvmaf's minimum starts at 0 when the first frame of the range is not scored.
#[test]
fn subsampling_pools_the_scored_frames_only() {
    let mut stream = Stream::new(subsampled(2));
    stream.submit(3, 7);
    stream.submit(3, 9);
    stream.run(5);
    stream.feed();
    stream.feed();
    stream.push();
    stream.push();
    assert_eq!(stream.taken(), [], "frame 7 was not fed");
    stream.feed();
    let result = stream.one();
    assert_eq!((result.n_frames, result.n_scored), (5, 2));
    assert_eq!(value(&result, Method::Min), 4.0);
    assert_eq!(value(&result, Method::Max), 6.0);
    assert_eq!(value(&result, Method::Median), 5.0);
    stream.flush();
    let result = stream.one();
    assert_eq!(
        (result.n_frames, result.n_scored, result.partial),
        (5, 2, true)
    );
}

#[test]
fn the_clock_cuts_windows_longer_than_the_history() {
    let mut stream = Stream::new(Config {
        history: 2,
        cut: Cut::from_settings(100e-9, 0).expect("a length"),
        first_frame: 7,
        ..Config::default()
    });
    let mut ends = Vec::new();
    stream.run(26);
    stream.flush();
    for result in stream.taken() {
        let span = result.span.expect("cut");
        assert_eq!((span.first, span.last), (result.first, result.last));
        assert_eq!(result.n_frames, span.n_frames);
        assert_eq!(value(&result, Method::Min), span.first as f64);
        assert_eq!(value(&result, Method::Max), span.last as f64);
        assert_eq!(
            value(&result, Method::Median),
            (span.first + span.last) as f64 / 2.0
        );
        assert_eq!(stream.windows.poll(result.id), Poll::Unknown, "not kept");
        ends.push((span.last, result.partial));
    }
    assert_eq!(ends, [(16, false), (26, false), (32, true)]);
}

#[test]
fn the_history_does_not_grow_with_the_stream() {
    let mut stream = Stream::new(Config {
        history: 100,
        cut: Cut::from_settings(0.0, 300).expect("a length"),
        ..Config::default()
    });
    let rooms = |windows: &Windows| {
        (
            windows.history.room(),
            windows.open.capacity(),
            windows.kept.capacity(),
            windows.scratch.capacity(),
        )
    };
    stream.submit(50, 450);
    let room = rooms(&stream.windows);
    stream.run(200_000);
    assert_eq!(rooms(&stream.windows), room);
    assert!(stream.windows.history.next() - stream.windows.history.first() <= 300);
    stream.submit(0, u64::MAX);
    stream.submit(200_000, u64::MAX);
    assert!(
        stream.windows.history.room() <= 2 * (RESERVED + 100),
        "no gigabytes up front"
    );
}

#[test]
fn a_window_too_long_to_rank_fails_and_frees_its_scores() {
    let mut stream = Stream::new(Config {
        history: 10,
        ..Config::default()
    });
    let exact = stream.submit(0, MAX_RANKED - 1);
    let long = stream.submit(0, MAX_RANKED);
    stream.run(MAX_RANKED);
    let result = stream.one();
    assert_eq!(result.id, exact);
    assert_eq!(
        value(&result, Method::Median),
        (MAX_RANKED - 1) as f64 / 2.0
    );
    stream.run(1);
    let result = stream.one();
    assert_eq!((result.id, result.outcome), (long, Err(Failure::TooLong)));
    assert_eq!(Failure::TooLong.reason(), "range");
    stream.run(1);
    assert_eq!(
        stream.windows.history.next() - stream.windows.history.first(),
        10
    );
}

#[test]
fn without_percentiles_a_window_may_be_of_any_length() {
    let basic = Method::Min | Method::Max | Method::Mean | Method::HarmonicMean;
    for cut in [None, Cut::from_settings(1e9, 0).expect("a length")] {
        let mut stream = Stream::new(Config {
            history: 10,
            methods: basic,
            cut,
            ..Config::default()
        });
        if cut.is_none() {
            stream.submit(0, u64::MAX);
        }
        stream.run(MAX_RANKED + 5);
        assert_eq!(
            stream.windows.history.next() - stream.windows.history.first(),
            10
        );
        stream.flush();
        let result = stream.one();
        assert_eq!(result.n_frames, MAX_RANKED + 5);
        assert_eq!(value(&result, Method::Max), (MAX_RANKED + 4) as f64);
    }
}

#[test]
fn a_cut_window_too_long_to_rank_fails_when_it_is_closed() {
    let mut stream = Stream::new(Config {
        history: 10,
        methods: Methods::from(Method::Perc5),
        cut: Cut::from_settings(0.0, MAX_RANKED + 1).expect("a length"),
        ..Config::default()
    });
    stream.run(MAX_RANKED + 1);
    stream.run(3);
    let result = stream.one();
    assert_eq!(result.outcome, Err(Failure::TooLong));
    assert_eq!(result.span.map(|span| span.last), Some(MAX_RANKED));
    assert_eq!(
        stream.windows.history.next() - stream.windows.history.first(),
        10
    );
    stream.flush();
    assert_eq!(stream.one().n_frames, 3);
}
