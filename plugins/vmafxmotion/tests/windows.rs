// SPDX-License-Identifier: MPL-2.0

//! Windows: cut from the stream or asked for, complete one frame after their last frame.

mod common;

use std::sync::{Arc, Mutex};

use common::{Bench, expected, gray, read_scores, timed};
use gst::ClockTime;
use gst::prelude::*;
use score_records::Record;
use vmaf_motion::pool::{Feature, Method, Methods, Scores, pool};
use vmaf_motion::{FinalScore, MotionOptions};
use vmafxmotion::{MotionScore, WindowMessage};

const SIZE: (usize, usize) = (16, 12);

fn bench(set: impl FnOnce(&gst::Element)) -> Bench {
    Bench::gray(SIZE.0, SIZE.1, set)
}

fn push(bench: &mut Bench, frames: std::ops::Range<usize>) {
    for frame in frames {
        bench.score(gray(SIZE.0, SIZE.1, frame));
    }
}

fn eos(bench: &mut Bench) {
    assert!(bench.harness.push_event(gst::event::Eos::new()));
}

fn submit(bench: &Bench, first: u64, last: u64) -> u64 {
    bench
        .element
        .emit_by_name("submit-window", &[&first, &last])
}

fn poll(bench: &Bench, id: u64) -> gst::Structure {
    bench.element.emit_by_name("poll-window", &[&id])
}

fn state(bench: &Bench, id: u64) -> String {
    poll(bench, id).get("state").expect("a state")
}

fn frame_score(bench: &Bench, frame: u64) -> gst::Structure {
    bench.element.emit_by_name("frame-score", &[&frame])
}

fn whole(frames: usize) -> Vec<FinalScore> {
    expected(&MotionOptions::default(), (SIZE.0, SIZE.1, 8), frames)
}

/// The window equals the pool over the whole stream's scores, to the last bit.
#[track_caller]
fn assert_pooled(window: &WindowMessage, scores: &[FinalScore]) {
    let frames: Vec<Scores> = scores.iter().map(|&score| score.into()).collect();
    let pooled = pool(&frames, Methods::ALL).expect("frames to pool");
    let ours = window.outcome.as_ref().expect("a complete window");
    for feature in Feature::ALL {
        for method in Method::ALL {
            assert_eq!(
                ours.get(feature, method).map(f64::to_bits),
                pooled.get(feature, method).map(f64::to_bits),
                "{}.{}",
                feature.name(),
                method.name()
            );
        }
    }
}

#[test]
fn cut_by_frames() {
    let mut bench = bench(|element| element.set_property("n-stats-frames", 4u64));
    push(&mut bench, 0..10);
    let scores = whole(11);
    let windows = bench.messages().windows;
    assert_eq!(windows.len(), 2);
    for (number, window) in windows.iter().enumerate() {
        let first = 4 * number;
        assert_eq!(
            (window.session, window.window, window.submitted),
            (0, number as u64, false)
        );
        assert_eq!(
            (window.first, window.last),
            (first as u64, first as u64 + 3)
        );
        assert_eq!(
            (window.n_frames, window.n_scored, window.partial),
            (4, 4, false)
        );
        assert_pooled(window, &scores[first..first + 4]);
    }
    push(&mut bench, 10..11);
    eos(&mut bench);
    let windows = bench.messages().windows;
    assert_eq!(windows.len(), 1);
    assert_eq!(
        (windows[0].first, windows[0].last, windows[0].partial),
        (8, 10, true)
    );
    assert_pooled(&windows[0], &scores[8..11]);
}

#[test]
fn cut_by_time() {
    // 40 ms a frame: windows of 100 ms have frames 0-2, 3-4, 5-7, ...
    let mut bench = bench(|element| element.set_property("n-stats", 0.1));
    push(&mut bench, 0..7);
    eos(&mut bench);
    let windows = bench.messages().windows;
    let ranges: Vec<_> = windows
        .iter()
        .map(|window| (window.first, window.last))
        .collect();
    assert_eq!(ranges, [(0, 2), (3, 4), (5, 6)]);
    let ms = |ms| Some(ClockTime::from_mseconds(ms));
    assert_eq!((windows[1].start, windows[1].end), (ms(100), ms(200)));
    assert_eq!(windows[1].times.timestamp, ms(120));
    assert_eq!(windows[1].times.running_time, ms(120));
    assert_eq!(windows[1].times.duration, ms(80));
    assert!(windows[2].partial && !windows[1].partial);
}

#[test]
fn completes_after_the_frame_after_last_and_before_its_buffer_is_pushed() {
    let mut bench = bench(|element| element.set_property("n-stats-frames", 3u64));
    let windows = Arc::new(Mutex::new(Vec::new()));
    let seen = windows.clone();
    bench.bus.set_sync_handler(move |_, message| {
        if let Some(structure) = message.structure()
            && let Ok(window) = WindowMessage::try_from(structure)
        {
            seen.lock().unwrap().push(window.last);
        }
        gst::BusSyncReply::Drop
    });
    let at_push = Arc::new(Mutex::new(Vec::new()));
    let (order, known) = (at_push.clone(), windows.clone());
    bench
        .element
        .static_pad("src")
        .unwrap()
        .add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            order.lock().unwrap().push(known.lock().unwrap().len());
            gst::PadProbeReturn::Ok
        });
    push(&mut bench, 0..8);
    assert_eq!(*windows.lock().unwrap(), [2, 5]);
    assert_eq!(*at_push.lock().unwrap(), [0, 0, 0, 1, 1, 1, 2, 2]);
}

#[test]
fn asked_for_before_during_and_after() {
    let mut bench = bench(|_| {});
    let before = submit(&bench, 2, 5);
    assert_eq!(state(&bench, before), "pending");
    push(&mut bench, 0..4);
    let during = submit(&bench, 3, 7);
    let ahead = submit(&bench, 6, 100);
    push(&mut bench, 4..9);
    let after = submit(&bench, 0, 1);
    assert_eq!(
        [before, during, ahead, after].map(|id| state(&bench, id)),
        ["complete", "complete", "pending", "complete"]
    );
    let scores = whole(9);
    let windows = bench.messages().windows;
    let ids: Vec<_> = windows.iter().map(|window| window.window).collect();
    assert_eq!(ids, [before, during, after]);
    assert!(windows.iter().all(|window| window.submitted));
    assert_pooled(&windows[0], &scores[2..6]);
    assert_pooled(&windows[1], &scores[3..8]);
    assert_pooled(&windows[2], &scores[0..2]);
    let polled = WindowMessage::try_from(poll(&bench, during).as_ref()).unwrap();
    assert_eq!(polled, windows[1]);
    assert_eq!(polled.times.timestamp, Some(ClockTime::from_mseconds(120)));
    assert_eq!(polled.end, Some(ClockTime::from_mseconds(320)));

    eos(&mut bench);
    let windows = bench.messages().windows;
    assert_eq!(windows.len(), 1);
    assert_eq!(
        (windows[0].window, windows[0].n_frames, windows[0].partial),
        (ahead, 3, true)
    );
    assert_pooled(&windows[0], &scores[6..9]);
}

#[test]
fn asked_for_after_the_end() {
    let mut bench = bench(|_| {});
    push(&mut bench, 0..6);
    eos(&mut bench);
    let id = submit(&bench, 1, 4);
    assert_eq!(state(&bench, id), "complete");
    let beyond = submit(&bench, 6, 9);
    let answer = poll(&bench, beyond);
    assert_eq!(answer.get::<&str>("state"), Ok("failed"));
    assert_eq!(answer.get::<&str>("reason"), Ok("range"));
}

#[test]
fn a_window_of_the_next_session_waits_for_it() {
    let mut bench = bench(|_| {});
    push(&mut bench, 0..3);
    bench.harness.set_src_caps(common::gray_caps(8, 8));
    let id = submit(&bench, 0, 1);
    assert_eq!(state(&bench, id), "pending");
    for frame in 0..3 {
        bench.score(gray(8, 8, frame));
    }
    assert_eq!(state(&bench, id), "complete");
    let session: u64 = poll(&bench, id).get("session").unwrap();
    assert_eq!(session, 1);
}

#[test]
fn cancelled_windows_never_answer() {
    let mut bench = bench(|_| {});
    let id = submit(&bench, 0, 1);
    assert!(bench.element.emit_by_name::<bool>("cancel-window", &[&id]));
    assert!(!bench.element.emit_by_name::<bool>("cancel-window", &[&id]));
    push(&mut bench, 0..4);
    assert!(bench.messages().windows.is_empty());
    assert_eq!(state(&bench, id), "unknown");
    assert_eq!(state(&bench, 1 << 40), "unknown");
}

#[test]
fn refusals_say_why() {
    let bench = bench(|_| {});
    assert_eq!(submit(&bench, 5, 4), 0);
    let answer = poll(&bench, 0);
    assert_eq!(answer.get::<&str>("state"), Ok("failed"));
    assert!(
        answer
            .get::<&str>("message")
            .unwrap()
            .contains("first frame 5")
    );

    for _ in 0..1024 {
        assert_ne!(submit(&bench, 0, 9), 0);
    }
    assert_eq!(submit(&bench, 0, 9), 0);
    let answer = poll(&bench, 0);
    assert_eq!(answer.get::<&str>("reason"), Ok("busy"));
    assert!(answer.get::<&str>("message").unwrap().contains("1024"));
    bench.stop();
    // Their session never had a frame.
    let windows = bench.messages().windows;
    assert_eq!(windows.len(), 1024);
    assert_eq!(windows[0].outcome.as_ref().unwrap_err().reason, "ended");
    assert_eq!(submit(&bench, 0, 9), 0);
    assert_eq!(poll(&bench, 0).get::<&str>("reason"), Ok("ended"));
}

#[test]
fn frame_scores_are_pending_final_or_failed() {
    let mut bench = bench(|element| element.set_property("score-history", 3u32));
    let state =
        |bench: &Bench, frame: u64| -> String { frame_score(bench, frame).get("state").unwrap() };
    assert_eq!(state(&bench, 0), "failed");
    push(&mut bench, 0..6);
    assert_eq!(
        state(&bench, 5),
        "pending",
        "a frame that was fed is never not found"
    );
    let score = frame_score(&bench, 4);
    assert_eq!(score.get::<&str>("state"), Ok("final"));
    assert_eq!(score.get::<f64>("motion2"), Ok(whole(7)[4].motion2));
    let gone = frame_score(&bench, 0);
    assert_eq!(
        (gone.get::<&str>("state"), gone.get::<&str>("reason")),
        (Ok("failed"), Ok("range"))
    );
    assert_eq!(
        frame_score(&bench, 6).get::<&str>("reason"),
        Ok("not-found")
    );
    eos(&mut bench);
    assert_eq!(state(&bench, 5), "final");
}

#[test]
fn a_window_whose_frames_have_left_the_history() {
    let mut bench = bench(|element| element.set_property("score-history", 4u32));
    push(&mut bench, 0..10);
    let late = submit(&bench, 0, 3);
    assert_eq!(poll(&bench, late).get::<&str>("reason"), Ok("range"));
    let recent = submit(&bench, 6, 8);
    assert_eq!(state(&bench, recent), "complete");
}

#[test]
fn subsampling_pools_every_second_frame_and_scores_all() {
    let mut bench = bench(|element| {
        element.set_property("n-subsample", 2u32);
        element.set_property("n-stats-frames", 5u64);
    });
    push(&mut bench, 0..6);
    let posted = bench.messages();
    assert_eq!(posted.frames.len(), 5);
    let window = &posted.windows[0];
    assert_eq!((window.n_frames, window.n_scored), (5, 3));
    let scored: Vec<_> = whole(6).into_iter().take(5).step_by(2).collect();
    assert_pooled(window, &scored);
}

#[test]
fn only_the_methods_that_pool_names() {
    let mut bench = bench(|element| {
        element.set_property("n-stats-frames", 2u64);
        element.set_property_from_str("pool", "mean+perc10");
    });
    push(&mut bench, 0..3);
    let windows = bench.messages().windows;
    let names: Vec<_> = windows[0]
        .outcome
        .as_ref()
        .unwrap()
        .iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            "motion.mean",
            "motion.perc10",
            "motion2.mean",
            "motion2.perc10",
            "motion3.mean",
            "motion3.perc10"
        ]
    );
}

#[test]
fn settings_that_cannot_be() {
    for (set, part) in [
        (("n-stats", "1", "n-stats-frames", "5"), "set one to 0"),
        (("pool", "0", "n-stats", "1"), "at least one method"),
        (("first-frame", "10", "preroll-frames", "0"), "need 1"),
        (
            ("first-frame", "0", "preroll-frames", "2"),
            "film starts at frame 0",
        ),
        (("n-stats", "1e-12", "messages", "window"), "rounds to 0"),
    ] {
        let bench = Bench::new(|_| {});
        bench.element.set_state(gst::State::Ready).unwrap();
        bench.element.set_property_from_str(set.0, set.1);
        bench.element.set_property_from_str(set.2, set.3);
        assert!(
            bench.element.set_state(gst::State::Paused).is_err(),
            "{set:?}"
        );
        let errors = bench.messages().errors;
        assert!(errors[0].contains(part), "{errors:?} does not say {part}");
    }
}

#[test]
fn windows_of_a_flushed_session_are_answered() {
    let mut bench = bench(|element| element.set_property("n-stats-frames", 4u64));
    let id = submit(&bench, 1, 8);
    push(&mut bench, 0..3);
    bench.harness.push_event(gst::event::FlushStart::new());
    bench.harness.push_event(gst::event::FlushStop::new(true));
    let windows = bench.messages().windows;
    let mut ranges: Vec<_> = windows
        .iter()
        .map(|w| (w.submitted, w.first, w.n_frames, w.partial))
        .collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(false, 0, 3, true), (true, 1, 2, true)]);
    assert_eq!(state(&bench, id), "complete");
}

#[test]
fn window_messages_are_limited_and_counted_lines_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scores.ndjson");
    let mut bench = bench(|element| {
        element.set_property("n-stats-frames", 1u64);
        element.set_property("scores-path", path.to_str());
    });
    let asked: Vec<u64> = (0..20).map(|frame| submit(&bench, frame, frame)).collect();
    push(&mut bench, 0..101);
    let posted = bench.messages().windows;
    let cut = posted.iter().filter(|window| !window.submitted).count() as u64;
    assert!(cut >= 10, "{cut}");
    assert_eq!(cut + bench.stat("window-messages-skipped"), 100);
    assert_eq!(
        posted.iter().filter(|window| window.submitted).count(),
        asked.len()
    );
    bench.stop();
    let windows = read_scores(&path)
        .into_iter()
        .filter(|record| matches!(record, Record::Window(_)));
    assert_eq!(windows.count(), 121);
}

#[test]
fn window_lines_have_the_messages_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scores.ndjson");
    let mut bench = bench(|element| {
        element.set_property("n-stats-frames", 3u64);
        element.set_property("scores-path", path.to_str());
    });
    push(&mut bench, 0..4);
    let message = bench.messages().windows.remove(0);
    bench.stop();
    let records = read_scores(&path);
    let line = records.iter().find_map(|record| match record {
        Record::Window(window) => Some(window),
        _ => None,
    });
    let line = line.expect("a window line");
    assert_eq!((line.window, line.first, line.last), (0, 0, 2));
    assert_eq!((line.start, line.end), (Some(0), Some(80_000_000)));
    for (name, value) in message.outcome.unwrap().iter() {
        assert_eq!(
            line.values[name].as_f64().map(f64::to_bits),
            Some(value.to_bits()),
            "{name}"
        );
    }
}

#[test]
fn signals_work_from_any_thread_and_from_a_synchronous_handler() {
    let mut bench = bench(|element| element.set_property("n-stats-frames", 2u64));
    let element = bench.element.clone();
    let answers = Arc::new(Mutex::new(Vec::new()));
    let seen = answers.clone();
    bench.bus.set_sync_handler(move |_, message| {
        if let Some(structure) = message.structure()
            && let Ok(window) = WindowMessage::try_from(structure)
            && !window.submitted
        {
            // Asks for what it was just told.
            let id: u64 = element.emit_by_name("submit-window", &[&window.first, &window.last]);
            let answer: gst::Structure = element.emit_by_name("poll-window", &[&id]);
            seen.lock()
                .unwrap()
                .push(answer.get::<String>("state").unwrap());
        }
        gst::BusSyncReply::Drop
    });
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let element = bench.element.clone();
            std::thread::spawn(move || {
                for round in 0..200u64 {
                    let first = round % 50 + thread;
                    let id: u64 = element.emit_by_name("submit-window", &[&first, &(first + 5)]);
                    let _: gst::Structure = element.emit_by_name("poll-window", &[&id]);
                    let _: gst::Structure = element.emit_by_name("frame-score", &[&first]);
                    let _: bool = element.emit_by_name("cancel-window", &[&id]);
                }
            })
        })
        .collect();
    push(&mut bench, 0..60);
    for thread in threads {
        thread.join().unwrap();
    }
    let answers = answers.lock().unwrap();
    // Of 29, those that the limit of messages let through.
    assert!(answers.len() >= 10, "{answers:?}");
    assert!(answers.iter().all(|state| state == "complete"));
}

#[test]
fn the_score_text_is_the_newest_window() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("score.txt");
    let mut bench = bench(|element| {
        element.set_property("n-stats-frames", 3u64);
        element.set_property("score-text-path", path.to_str());
    });
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "\n");
    push(&mut bench, 0..7);
    let message = bench.messages().windows.pop().unwrap();
    bench.stop();
    let scores = message.outcome.unwrap();
    let value = |method| scores.get(Feature::Motion2, method).unwrap();
    // The last, partial window comes with the end.
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("window 2 frames 6-6 motion2 mean "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
    assert!(value(Method::Min) <= value(Method::Max));
    // Nothing else is left in the folder.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_score_text_that_cannot_be_written() {
    let bench = Bench::new(|_| {});
    bench.element.set_state(gst::State::Ready).unwrap();
    bench
        .element
        .set_property("score-text-path", "/nonexistent/folder/score.txt");
    assert!(bench.element.set_state(gst::State::Paused).is_err());
    let errors = bench.messages().errors;
    assert!(
        errors[0].contains("score-text-path /nonexistent/folder/score.txt"),
        "{errors:?}"
    );
}

#[test]
fn chunks_have_the_films_indices_and_bits() {
    let frames = 14;
    for (five, average, preroll) in [
        (false, false, 1),
        (false, true, 2),
        (true, false, 3),
        (true, true, 4),
    ] {
        let options = MotionOptions {
            five_frame_window: five,
            moving_average: average,
            ..MotionOptions::default()
        };
        let film = expected(&options, (SIZE.0, SIZE.1, 8), frames);
        for cut in 5..12 {
            for (start, end) in [(0, cut), (cut, frames)] {
                let before = start.min(preroll);
                let after = (frames - end).min(1);
                let mut bench = bench(|element| {
                    element.set_property("motion-five-frame-window", five);
                    element.set_property("motion-moving-average", average);
                    element.set_property("first-frame", start as u64);
                    element.set_property("preroll-frames", before as u32);
                    element.set_property("postroll-frames", after as u32);
                    element.set_property("n-stats-frames", 100u64);
                });
                for frame in start - before..end + after {
                    let out = bench
                        .harness
                        .push_and_pull(timed(gray(SIZE.0, SIZE.1, frame), frame))
                        .unwrap();
                    let score = MotionScore::from_buffer(&out);
                    assert_eq!(
                        score.map(|score| score.frame),
                        (frame >= start).then_some(frame as u64)
                    );
                }
                eos(&mut bench);
                let posted = bench.messages();
                assert_eq!(posted.frames.len(), end - start);
                for (message, score) in posted.frames.iter().zip(&film[start..end]) {
                    common::assert_same_score(&message.score, score);
                    let time = ClockTime::from_mseconds(40 * score.frame);
                    assert_eq!(message.times.timestamp, Some(time));
                }
                assert_eq!(posted.summaries[0].n_frames, (end - start) as u64);
                let window = &posted.windows[0];
                assert_eq!(
                    (window.first, window.n_frames),
                    (start as u64, (end - start) as u64)
                );
                assert_pooled(window, &film[start..end]);
            }
        }
    }
}
