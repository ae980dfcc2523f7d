// SPDX-License-Identifier: MPL-2.0

//! Times the motion kernels against the time it takes to read the planes.
//!
//! All that is compared is timed in the same run, in rounds, on planes that the caches do not hold.

mod clip;
mod measure;

use std::process::ExitCode;

use clip::{Clip, Content};
use measure::{Subject, Times, measure};
use vmaf_motion::sad::Kernel;
use vmaf_motion::{Geometry, SampleFormat};

fn main() -> ExitCode {
    let bytes = 330 << 20;
    for (name, w, h, depth) in [("1080p8", 1920, 1080, 8), ("2160p10", 3840, 2160, 10)] {
        let g = Geometry::new(w, h, SampleFormat::low(depth).unwrap()).unwrap();
        for content in [Content::Smooth, Content::Noise, Content::Static] {
            let clip = Clip::made(name, content, g, bytes);
            let mut subjects = vec![Subject::Floor, Subject::FloorInPlace];
            for kernel in Kernel::available().filter(|&k| {
                k != Kernel::Scalar
                    && std::env::args()
                        .skip(1)
                        .all(|a| a != "fast" || k == Kernel::Avx2 || k == Kernel::Avx512)
            }) {
                subjects.extend([Subject::Pairs(kernel), Subject::Stream(kernel)]);
            }
            let times = measure(&clip, &subjects, 5);
            println!("{} {} planes", clip.name, clip.planes.len());
            for t in &times {
                let r = t.ratios(&times[0]);
                println!(
                    "  {:32} {:8.4} ms {:7.4} ns/px  {:6.2} [{:.2} .. {:.2}] fast {:.3}",
                    format!("{:?}", t.subject),
                    t.seconds() * 1e3,
                    t.seconds() * 1e9 / clip.samples() as f64,
                    r[1],
                    r[0],
                    r[2],
                    t.fast_share()
                );
            }
        }
    }
    ExitCode::SUCCESS
}
