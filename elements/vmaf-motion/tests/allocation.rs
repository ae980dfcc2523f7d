// SPDX-License-Identifier: MPL-2.0

//! Feeding a session allocates nothing, windows that open, complete and rank their scores included.

use vmaf_motion::Derivation;
use vmaf_motion::chunks::Part;
use vmaf_motion::clock::Cut;
use vmaf_motion::derive::Rules;
use vmaf_motion::sad::Distance;
use vmaf_motion::session::{Event, Session};
use vmaf_motion::windows::Config;

const RULES: Rules = Rules {
    distance: Distance::Two,
    blend_factor: 0.3,
    blend_offset: 5.0,
    max_val: 18.0,
    moving_average: true,
    blend_uncapped: false,
};

struct Run {
    session: Session,
    derivation: Derivation,
    frames: u64,
    windows: u64,
}

impl Run {
    fn feed(&mut self, frames: u64) {
        for _ in 0..frames {
            let (reported, windows) = (&mut self.frames, &mut self.windows);
            let mut count = |event: Event| match event {
                Event::Frame(_) => *reported += 1,
                Event::Window(result) => {
                    assert!(result.outcome.is_ok(), "{result:?}");
                    *windows += 1;
                }
            };
            let frame = self.session.feed(Some(self.session.fed() * 40), &mut count);
            let score = (frame.expect("not ended") * 7 % 31) as f64;
            for score in self.derivation.push(score).expect("in order").iter() {
                self.session.score(*score, &mut count).expect("in order");
            }
        }
    }
}

#[test]
fn feeding_allocates_nothing() {
    let cuts = [(0.0, 0), (1.5e-6, 0), (0.0, 700)]
        .map(|(seconds, frames)| Cut::from_settings(seconds, frames).expect("a length"));
    // Each cut once with a history that the windows outgrow.
    for (cut, history) in cuts.into_iter().flat_map(|cut| [(cut, 4096), (cut, 10)]) {
        let config = Config {
            history,
            cut,
            ..Config::default()
        };
        let part = Part::new(100, 4, 2, RULES.distance, RULES.moving_average).expect("enough");
        let mut run = Run {
            session: Session::new(part, config).expect("a good configuration"),
            derivation: Derivation::new(RULES),
            frames: 0,
            windows: 0,
        };
        for n in 0..100 {
            run.session
                .submit(100 + 20 * n, 1_000 + 25 * n, |_| {})
                .expect("room");
        }
        run.feed(16);
        let fed = allocation_counter::measure(|| run.feed(4_984));
        assert_eq!(fed.count_total, 0, "{config:?}");
        // All but the preroll, the postroll and what waits for the frame after it.
        assert_eq!(run.frames, 5_000 - 4 - 2);
        let cut_windows = match config.cut {
            None => 0,
            Some(Cut::Frames(_)) => 4_994 / 700,
            // 37 or 38 frames of 40 ns.
            Some(Cut::Time(_)) => 4_994 * 40 / 1_500,
        };
        assert_eq!(run.windows, 100 + cut_windows);
    }
}

/// The counter counts: a test that cannot fail proves nothing.
#[test]
fn the_counter_counts() {
    let boxed = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(boxed.count_total, 1);
}
