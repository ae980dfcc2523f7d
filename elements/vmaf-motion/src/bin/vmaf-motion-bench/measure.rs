// SPDX-License-Identifier: MPL-2.0

//! Rounds in which everything is timed in turn, so that all of it meets the same machine.

use std::fmt;
use std::hint::black_box;
use std::time::Instant;

use vmaf_motion::sad::{Distance, Kernel, MotionSad, PairSad, Steps, floor};

use crate::clip::Clip;

/// What is timed, over all neighbouring planes of a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Read two planes.
    Floor,
    /// Read two planes and write one.
    FloorInPlace,
    /// The SAD of two planes at hand.
    Pairs(Kernel),
    /// The SADs of a stream, whose last plane is kept and overwritten.
    Stream(Kernel),
    /// The same on two threads.
    TwoThreads(Kernel),
}

/// A subject's times on a clip.
pub struct Times {
    pub subject: Subject,
    /// Median over a round's frames, seconds a frame, by round.
    pub rounds: Vec<f64>,
    /// Least of all frames, seconds.
    pub least: f64,
    pub steps: Steps,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Floor => f.pad("floor: read two"),
            Self::FloorInPlace => f.pad("floor: read two, write one"),
            Self::Pairs(kernel) => f.pad(&format!("{kernel}")),
            Self::Stream(kernel) => f.pad(&format!("{kernel}, in place")),
            Self::TwoThreads(kernel) => f.pad(&format!("{kernel}, in place, two threads")),
        }
    }
}

impl Times {
    /// Seconds a frame, median of the rounds.
    pub fn seconds(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// How many times as long as another subject, round by round: least, median, greatest.
    pub fn ratios(&self, to: &Self) -> [f64; 3] {
        let ratios = self.rounds.iter().zip(&to.rounds).map(|(a, b)| a / b);
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        [
            ratios[0],
            ratios[ratios.len() / 2],
            ratios[ratios.len() - 1],
        ]
    }

    /// Shares of the steps: fast path, equal rows; `None` where there are no steps.
    pub fn shares(&self) -> Option<[f64; 2]> {
        let Steps {
            fast,
            general,
            equal,
        } = self.steps;
        let all = (fast + general + equal) as f64;
        (all > 0.0).then(|| [fast as f64 / all, equal as f64 / all])
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Times all subjects in turn, `rounds` times.
pub fn measure(clip: &Clip, subjects: &[Subject], rounds: usize) -> Vec<Times> {
    let mut all: Vec<Times> = subjects
        .iter()
        .map(|&subject| Times {
            subject,
            rounds: Vec::new(),
            least: f64::INFINITY,
            steps: Steps::default(),
        })
        .collect();
    for _ in 0..rounds {
        for times in &mut all {
            let (frames, steps) = frames(clip, times.subject);
            times.least = frames.iter().copied().fold(times.least, f64::min);
            times.rounds.push(median(frames));
            times.steps = steps;
        }
    }
    all
}

/// Seconds of every frame of a clip but the first, and how the kernel's steps went.
fn frames(clip: &Clip, subject: Subject) -> (Vec<f64>, Steps) {
    let timed = |mut frame: Box<dyn FnMut(usize) -> u64 + '_>| {
        (1..clip.planes.len())
            .map(|t| {
                let start = Instant::now();
                black_box(frame(t));
                start.elapsed().as_secs_f64()
            })
            .collect::<Vec<f64>>()
    };
    match subject {
        Subject::Floor => {
            let frame = |t: usize| floor::read_two(&clip.planes[t - 1], &clip.planes[t]);
            (timed(Box::new(frame)), Steps::default())
        }
        Subject::FloorInPlace => {
            let mut stored = clip.planes[0].clone();
            let frame = |t: usize| floor::read_two_write_one(&mut stored, &clip.planes[t]);
            (timed(Box::new(frame)), Steps::default())
        }
        Subject::Pairs(kernel) => {
            let pairs = PairSad::new(clip.geometry).with_kernel(kernel);
            let mut pairs = pairs.expect("an available kernel");
            let frame = |t: usize| {
                let sad = pairs.sad(&clip.plane(t - 1), &clip.plane(t));
                sad.expect("planes of one geometry")
            };
            let times = timed(Box::new(frame));
            (times, pairs.steps())
        }
        Subject::Stream(kernel) | Subject::TwoThreads(kernel) => {
            let stream = MotionSad::new(clip.geometry, Distance::One).with_kernel(kernel);
            let mut stream = stream.expect("an available kernel");
            if matches!(subject, Subject::TwoThreads(_)) {
                stream = stream.with_threads(2).expect("threads");
            }
            let mut push = |t: usize| {
                let sad = stream.push(&clip.plane(t));
                sad.expect("planes of one geometry").unwrap_or(0)
            };
            push(0);
            let times = timed(Box::new(&mut push));
            (times, stream.steps())
        }
    }
}
