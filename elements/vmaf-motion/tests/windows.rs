// SPDX-License-Identifier: MPL-2.0

//! Every window equals the pool over the stream scored whole at its flush, bit for bit, and is
//! answered in the very step that makes it final: random windows, submission times, arrival orders,
//! gaps, subsampling, chunks and options.

mod reference;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use proptest::prelude::*;
use proptest::sample::Index;
use vmaf_motion::chunks::{Part, needed_postroll, needed_preroll};
use vmaf_motion::clock::{Cut, Span, WindowClock};
use vmaf_motion::derive::{Derivation, FinalScore, Rules};
use vmaf_motion::pool::{Method, Methods, Pooled, Scores, pool};
use vmaf_motion::sad::Distance;
use vmaf_motion::session::{Event, Session};
use vmaf_motion::windows::{Config, Failure, FeedError, FrameScore, Poll, WindowId, WindowResult};

use reference::flushed_integer;

#[derive(Debug, Clone)]
struct Case {
    rules: Rules,
    /// Weighted scores of the film's frames.
    film: Vec<f64>,
    /// The frames that are reported.
    chunk: (usize, usize),
    extra_roll: (u64, u64),
    /// How late each score comes, in frames.
    delays: Vec<u64>,
    /// A frame of the stream whose score never comes; whole films only.
    lost: Option<usize>,
    timestamps: Vec<Option<u64>>,
    n_subsample: NonZeroU64,
    methods: Methods,
    history: usize,
    cut: Option<Cut>,
    /// First frame, length, and when it is asked for, in half frames.
    windows: Vec<(u64, u64, u64)>,
}

fn methods() -> impl Strategy<Value = Methods> {
    let bits = prop_oneof![Just(0x1fe_u32), (1..256_u32).prop_map(|bits| bits << 1)];
    bits.prop_map(|bits| Methods::from_bits(bits).unwrap())
}

fn rules() -> impl Strategy<Value = Rules> {
    (
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(1.0), Just(0.3)],
    )
        .prop_map(|(five, moving_average, blend_factor)| Rules {
            distance: if five { Distance::Two } else { Distance::One },
            blend_factor,
            blend_offset: 5.0,
            max_val: 18.0,
            moving_average,
            blend_uncapped: false,
        })
}

fn cut() -> impl Strategy<Value = Option<Cut>> {
    let length = (1..30_u64).prop_map(|n| NonZeroU64::new(n).unwrap());
    prop_oneof![
        Just(None),
        length.clone().prop_map(|n| Some(Cut::Frames(n))),
        length.prop_map(|n| Some(Cut::Time(n))),
    ]
}

/// Delay of a score: mostly none, so that streams in order are common too.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 1 => 0..12_u64]
}

fn case() -> impl Strategy<Value = Case> {
    let frame = (0.0..30.0, delay(), prop::option::weighted(0.9, 0..4_u64));
    let windows = prop::collection::vec((0..60_u64, 1..25_u64, 0..140_u64), 0..30);
    let stream = (
        prop::collection::vec(frame, 1..50),
        prop::option::weighted(0.4, (any::<Index>(), any::<Index>())),
        prop::option::weighted(0.2, any::<Index>()),
        (0..3_u64, 0..4_u64),
    );
    let config = (
        1..6_u64,
        methods(),
        prop_oneof![2 => Just(4096_usize), 1 => 0..20_usize],
        cut(),
    );
    (rules(), stream, config, windows).prop_map(
        |(rules, (frames, chunk, lost, extra_roll), (n, methods, history, cut), windows)| {
            let length = frames.len();
            let chunk = chunk.map(|(a, b)| (a.index(length), b.index(length)));
            let mut now = 0;
            Case {
                rules,
                film: reference::unscored_head(frames.iter().map(|f| f.0).collect(), &rules),
                chunk: chunk.map_or((0, length - 1), |(a, b)| (a.min(b), a.max(b))),
                extra_roll,
                delays: frames.iter().map(|f| f.1).collect(),
                lost: if chunk.is_none() {
                    lost.map(|i| i.index(length))
                } else {
                    None
                },
                timestamps: frames
                    .iter()
                    .map(|f| {
                        let step = f.2?;
                        now += step;
                        Some(now)
                    })
                    .collect(),
                n_subsample: NonZeroU64::new(n).unwrap(),
                methods,
                history,
                cut,
                windows,
            }
        },
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Feed(usize),
    Score(usize),
    Submit(u64, u64),
    Flush,
}

/// The case as it runs: the film's frames `start..end` are the stream.
struct Run {
    case: Case,
    part: Part,
    start: usize,
    end: usize,
    /// The film's scores at its flush, from frame 0.
    whole: Vec<Scores>,
}

impl Run {
    fn new(case: Case) -> Self {
        let (distance, average) = (case.rules.distance, case.rules.moving_average);
        let (first, last) = (case.chunk.0 as u64, case.chunk.1 as u64);
        let after = case.film.len() as u64 - 1 - last;
        let preroll = (needed_preroll(distance, average) + case.extra_roll.0).min(first);
        let postroll = (needed_postroll(distance, last) + case.extra_roll.1).min(after);
        let known = case.lost.unwrap_or(case.film.len());
        Self {
            part: Part::new(first, preroll, postroll, distance, average).unwrap(),
            start: (first - preroll) as usize,
            end: (last + postroll + 1) as usize,
            whole: flushed_integer(&case.film[..known], &case.rules),
            case,
        }
    }

    /// Everything that happens, in order.
    fn steps(&self) -> Vec<Step> {
        let case = &self.case;
        let mut steps: Vec<(u64, Step)> = Vec::new();
        let mut end = 0;
        for local in 0..self.end - self.start {
            let fed = 2 * local as u64;
            let scored = fed + 1 + 2 * case.delays[self.start + local];
            steps.push((fed, Step::Feed(local)));
            if case.lost != Some(local) {
                steps.push((scored, Step::Score(local)));
            }
            end = end.max(scored + 1);
        }
        steps.push((end, Step::Flush));
        for (first, length, time) in &case.windows {
            steps.push((*time, Step::Submit(*first, first + length - 1)));
        }
        steps.sort();
        steps.into_iter().map(|(_, step)| step).collect()
    }

    fn score(&self, local: usize) -> f64 {
        let unscored = local < self.case.rules.distance as usize;
        if unscored {
            0.0
        } else {
            self.case.film[self.start + local]
        }
    }

    fn is_scored(&self, frame: u64) -> bool {
        frame.is_multiple_of(self.case.n_subsample.get())
    }

    /// The pool over the film's frames `first..=last`.
    fn pool(&self, first: u64, last: u64) -> Option<(u64, Pooled)> {
        let scored = |frame: &u64| self.is_scored(*frame);
        let frames: Vec<Scores> = (first..=last)
            .filter(scored)
            .map(|frame| self.whole[frame as usize])
            .collect();
        pool(&frames, self.case.methods).map(|pooled| (frames.len() as u64, pooled))
    }
}

/// What has happened so far, as the specification counts it.
#[derive(Default)]
struct Progress {
    fed: usize,
    arrived: Vec<bool>,
    flushed: bool,
}

impl Progress {
    /// The film's indices after the last frame that is certainly reported and the last final one.
    fn film(&self, run: &Run) -> (u64, u64) {
        let m = run.case.rules.distance as u64;
        let known = self.arrived.iter().take_while(|a| **a).count() as u64;
        let finals = match known {
            _ if self.flushed => known,
            k if k > m => k - 1,
            _ => 0,
        };
        let certain = (self.fed as u64)
            .saturating_sub(run.part.preroll())
            .saturating_sub(run.part.postroll());
        let reported = finals.saturating_sub(run.part.preroll()).min(certain);
        (
            run.part.first_frame() + certain,
            run.part.first_frame() + reported,
        )
    }
}

/// What a window must answer now, if it must.
fn expected(
    run: &Run,
    (first, last): (u64, u64),
    (fed, finals): (u64, u64),
    flushed: bool,
) -> Option<Result<u64, Failure>> {
    let scored: Vec<u64> = (first..=last)
        .filter(|frame| run.is_scored(*frame))
        .collect();
    if first < run.part.first_frame() {
        let first = run.part.first_frame();
        return Some(Err(Failure::BeforeStream { first }));
    }
    if scored.is_empty() {
        return Some(Err(Failure::NothingScored));
    }
    if last < fed && scored.iter().all(|frame| *frame < finals) {
        return Some(Ok(last));
    }
    if !flushed {
        return None;
    }
    if fed <= first {
        return Some(Err(Failure::AfterStream { fed }));
    }
    let end = last.min(fed - 1);
    let mut inside = scored.into_iter().filter(|frame| *frame <= end).peekable();
    if inside.peek().is_none() {
        return Some(Err(Failure::NothingScored));
    }
    match inside.find(|frame| *frame >= finals) {
        Some(frame) => Some(Err(Failure::NoScore { frame })),
        None => Some(Ok(end)),
    }
}

fn check_result(run: &Run, result: &WindowResult, expected: Result<u64, Failure>) {
    match (expected, &result.outcome) {
        (Ok(end), Ok(pooled)) => {
            let (n_scored, reference) = run.pool(result.first, end).expect("scored frames");
            assert_eq!(bits(pooled), bits(&reference), "{result:?}");
            assert_eq!(pooled.methods(), run.case.methods);
            assert_eq!(result.n_frames, end - result.first + 1, "{result:?}");
            assert_eq!(result.n_scored, n_scored, "{result:?}");
        }
        (Err(expected), Err(failure)) => {
            assert_eq!(*failure, expected, "{result:?}");
            assert_eq!((result.n_frames, result.n_scored), (0, 0), "{result:?}");
        }
        _ => panic!("expected {expected:?}, got {result:?}"),
    }
}

fn bits(pooled: &Pooled) -> Vec<(&'static str, u64)> {
    pooled
        .iter()
        .map(|(name, value)| (name, value.to_bits()))
        .collect()
}

/// Runs the case and checks every step.
fn run_case(case: Case) {
    let run = Run::new(case);
    let config = Config {
        methods: run.case.methods,
        n_subsample: run.case.n_subsample,
        history: run.case.history,
        cut: run.case.cut,
        ..Config::default()
    };
    let mut session = Session::new(run.part, config).expect("a good configuration");
    let mut derivation = Derivation::new(run.case.rules);
    let mut progress = Progress::default();
    let mut pending: BTreeMap<WindowId, (u64, u64)> = BTreeMap::new();
    let mut frames = Vec::new();
    let mut spans: Vec<Span> = Vec::new();
    for step in run.steps() {
        let mut events = Vec::new();
        let emit = |event| events.push(event);
        match step {
            Step::Feed(local) => {
                let timestamp = run.case.timestamps[run.start + local];
                assert_eq!(session.feed(timestamp, emit), Ok(local as u64));
                progress.fed += 1;
                progress.arrived.push(false);
            }
            Step::Score(local) => {
                derivation_step(&mut derivation, &mut session, emit, |derivation, each| {
                    derivation
                        .insert(local as u64, run.score(local), each)
                        .expect("new");
                });
                progress.arrived[local] = true;
            }
            Step::Submit(first, last) => {
                let oldest = progress
                    .film(&run)
                    .1
                    .saturating_sub(run.case.history as u64);
                let id = session.submit(first, last, emit).expect("room");
                pending.insert(id, (first, last));
                let scored = (first..=last).find(|frame| run.is_scored(*frame));
                let left = |event: &Event| match event {
                    Event::Window(result) => {
                        matches!(result.outcome, Err(Failure::LeftHistory { .. }))
                    }
                    Event::Frame(_) => false,
                };
                if events.iter().any(left) {
                    // Within the history it may not fail; beyond, an older window may have kept it.
                    assert!(scored.expect("some") < oldest, "{events:?}");
                    pending.remove(&id);
                    continue;
                }
            }
            Step::Flush => {
                derivation_step(&mut derivation, &mut session, emit, |derivation, each| {
                    derivation.flush_each(each);
                });
                session.flush(|event| events.push(event));
                progress.flushed = true;
            }
        }
        let (fed, finals) = progress.film(&run);
        for event in events {
            match event {
                Event::Frame(reported) => frames.push(reported),
                Event::Window(result) if result.span.is_some() => {
                    let span = result.span.expect("cut");
                    assert_eq!((span.first, span.last), (result.first, result.last));
                    assert!(span.last < fed);
                    let range = (span.first, span.last);
                    let answer = expected(&run, range, (fed, finals), progress.flushed);
                    check_result(&run, &result, answer.expect("answered too early"));
                    assert_eq!(result.partial, span.partial);
                    assert_eq!(session.poll(result.id), Poll::Unknown);
                    spans.push(span);
                }
                Event::Window(result) => {
                    let range = pending
                        .remove(&result.id)
                        .expect("asked for, answered once");
                    assert_eq!((result.first, result.last), range);
                    let answer = expected(&run, range, (fed, finals), progress.flushed);
                    check_result(&run, &result, answer.expect("answered too early"));
                    assert_eq!(result.partial, progress.flushed && fed <= result.last);
                    assert_eq!(session.poll(result.id), Poll::Done(result));
                }
            }
        }
        for (id, range) in &pending {
            let answer = expected(&run, *range, (fed, finals), progress.flushed);
            assert_eq!(
                answer, None,
                "window {range:?} is not answered after {step:?}"
            );
            assert_eq!(session.poll(*id), Poll::Pending);
        }
        check_frames(&run, &session, &progress);
    }
    check_reports(&run, &frames, &spans, &session);
}

fn derivation_step(
    derivation: &mut Derivation,
    session: &mut Session,
    mut emit: impl FnMut(Event),
    step: impl FnOnce(&mut Derivation, &mut dyn FnMut(FinalScore)),
) {
    step(derivation, &mut |score| {
        session.score(score, &mut emit).expect("in order")
    });
}

/// Every frame around the stream: pending, final or failed as it must be.
fn check_frames(run: &Run, session: &Session, progress: &Progress) {
    let (_, finals) = progress.film(run);
    let start = run.part.first_frame();
    let seen = start + (progress.fed as u64).saturating_sub(run.part.preroll());
    for frame in start.saturating_sub(2)..seen + 3 {
        match session.frame_score(frame) {
            FrameScore::Final(score) => {
                assert!((start..finals).contains(&frame));
                assert_eq!(score.frame, frame);
                let expected = run.whole[frame as usize].map(f64::to_bits);
                assert_eq!(Scores::from(score).map(f64::to_bits), expected);
            }
            FrameScore::Pending => assert!((finals..seen).contains(&frame) && !progress.flushed),
            FrameScore::Failed(failure) => {
                let fed = (start..seen).contains(&frame);
                assert!(
                    !fed || failure.reason() != "not-found",
                    "{frame} was fed: {failure}"
                );
                let kept = finals.saturating_sub(frame) <= run.case.history as u64;
                assert!(
                    !(start..finals).contains(&frame) || !kept,
                    "{frame}: {failure}"
                );
                assert!(!(finals..seen).contains(&frame) || progress.flushed);
            }
        }
    }
}

/// The frames reported, the windows of the clock and the summary, over the whole stream.
fn check_reports(
    run: &Run,
    frames: &[vmaf_motion::chunks::Reported],
    spans: &[Span],
    session: &Session,
) {
    let (first, last) = run.case.chunk;
    let reported_end = run.whole.len().min(last + 1);
    let expected: Vec<_> = (first..reported_end)
        .map(|f| {
            (
                f as u64,
                run.case.timestamps[f],
                run.whole[f].map(f64::to_bits),
            )
        })
        .collect();
    let got: Vec<_> = frames
        .iter()
        .map(|r| {
            (
                r.score.frame,
                r.timestamp,
                Scores::from(r.score).map(f64::to_bits),
            )
        })
        .collect();
    assert_eq!(got, expected);

    let mut clock_spans = Vec::new();
    if let Some(mut clock) = run.case.cut.map(WindowClock::new) {
        for frame in first..=last {
            clock_spans.extend(
                clock
                    .frame(frame as u64, run.case.timestamps[frame])
                    .unwrap(),
            );
        }
        clock_spans.extend(clock.finish());
    }
    // Windows whose scored frames are final overtake one that waits; the clock numbers them.
    let mut spans = spans.to_vec();
    spans.sort_by_key(|span| span.window);
    assert_eq!(spans, clock_spans);

    let basic = Method::Min | Method::Max | Method::Mean | Method::HarmonicMean;
    let scored: Vec<Scores> = (first..reported_end)
        .filter(|frame| run.is_scored(*frame as u64))
        .map(|frame| run.whole[frame])
        .collect();
    let expected = pool(&scored, basic)
        .map(|pooled| bits(&pooled))
        .unwrap_or_default();
    let summary = session.summary();
    let got: Vec<_> = summary
        .iter()
        .map(|(name, value)| (name, value.to_bits()))
        .collect();
    assert_eq!(got, expected);
    assert_eq!(
        summary.frames(),
        (reported_end.saturating_sub(first)) as u64
    );
    assert_eq!(summary.scored(), scored.len() as u64);
}

/// Also within the preroll, where nothing is reported yet.
#[test]
fn a_session_takes_scores_in_order_after_their_frames() {
    let part = Part::new(10, 2, 1, Distance::One, true).unwrap();
    let mut session = Session::new(part, Config::default()).expect("defaults");
    assert_eq!(*session.part(), part);
    let score = |frame| FinalScore {
        frame,
        ..FinalScore::default()
    };
    let order = |frame, expected, fed| {
        Err(FeedError::Order {
            frame,
            expected,
            fed,
        })
    };
    let mut reported = Vec::new();
    let mut emit = |event: Event| match event {
        Event::Frame(frame) => reported.push(frame.score.frame),
        Event::Window(result) => panic!("{result:?}"),
    };
    assert_eq!(session.score(score(0), &mut emit), order(0, 0, 0));
    for frame in 0..5 {
        assert_eq!(session.feed(None, &mut emit), Ok(frame));
        assert_eq!(session.fed(), frame + 1);
        assert_eq!(
            session.score(score(frame + 1), &mut emit),
            order(frame + 1, frame, frame + 1)
        );
        assert_eq!(session.score(score(frame), &mut emit), Ok(()));
        assert_eq!(
            session.score(score(frame), &mut emit),
            order(frame, frame + 1, frame + 1)
        );
    }
    assert!(!session.has_ended());
    session.flush(&mut emit);
    assert!(session.has_ended());
    assert_eq!(
        session.score(score(5), &mut emit),
        Err(FeedError::Ended { frame: 5 })
    );
    assert_eq!(
        session.feed(None, &mut emit),
        Err(FeedError::Ended { frame: 5 })
    );
    assert_eq!(reported, [10, 11]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn every_window_equals_the_pool_over_the_flushed_stream(case in case()) {
        run_case(case);
    }
}
