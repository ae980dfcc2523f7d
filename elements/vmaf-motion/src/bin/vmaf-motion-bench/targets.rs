// SPDX-License-Identifier: MPL-2.0

//! What the kernels have to reach, as ratios of times of one run.

use vmaf_motion::sad::Kernel;

use crate::clip::{Clip, Content};
use crate::measure::{Subject, Times};

/// Greatest ratio to the time of reading two planes.
fn greatest(size: &str, content: Content, kernel: Kernel) -> Option<f64> {
    let ordinary = content == Content::Smooth;
    let pick = |any, other| Some(if ordinary { other } else { any });
    match (size, content, kernel) {
        (_, Content::Video, _) => None,
        (_, Content::Static, Kernel::Avx512 | Kernel::Avx2) => Some(1.15),
        (_, Content::Static, _) => None,
        ("1080p8", _, Kernel::Avx512) => pick(3.9, 3.3),
        ("2160p10", _, Kernel::Avx512) => pick(1.8, 1.8),
        ("1080p8", _, Kernel::Avx2) => pick(6.6, 4.9),
        ("2160p10", _, Kernel::Avx2) => pick(2.9, 2.1),
        ("1080p8", _, Kernel::PortableAvx2) => pick(18.0, 10.0),
        _ => None,
    }
}

/// The in-place form may take so many times as long as the SAD of two planes at hand, at 1080p8.
const IN_PLACE: f64 = 1.2;

/// Two threads are at least so many times as fast as one. Compared by the best frames: a second
/// core is seldom left alone for long.
const TWO_THREADS: f64 = 1.8;

/// One line for each target of a clip: whether it was met, and what it is.
pub fn judge(size: &str, clip: &Clip, times: &[Times]) -> Vec<(bool, String)> {
    let of = |subject| times.iter().find(|times| times.subject == subject);
    let mut lines = Vec::new();
    let mut line = |met: bool, what: String| lines.push((met, what));
    let Some(floor) = of(Subject::Floor) else {
        return lines;
    };
    for kernel in Kernel::available() {
        let (Some(pairs), Some(stream)) = (of(Subject::Pairs(kernel)), of(Subject::Stream(kernel)))
        else {
            continue;
        };
        if let Some(most) = greatest(size, clip.content, kernel) {
            let [_, ratio, _] = pairs.ratios(floor);
            let what = format!(
                "{}, {kernel}: {ratio:.2} times the floor, at most {most}",
                clip.name
            );
            line(ratio <= most, what);
        }
        let is_explicit = matches!(kernel, Kernel::Avx2 | Kernel::Avx512);
        let is_busy = matches!(clip.content, Content::Smooth | Content::Noise);
        if size == "1080p8" && is_explicit && is_busy {
            let [_, ratio, _] = stream.ratios(pairs);
            let what = format!(
                "{}, {kernel} in place: {ratio:.2} times as long, at most {IN_PLACE}",
                clip.name
            );
            line(ratio <= IN_PLACE, what);
        }
        if let Some(two) = of(Subject::TwoThreads(kernel))
            && is_busy
        {
            let ratio = stream.least / two.least;
            let what = format!(
                "{}, {kernel} on two threads: {ratio:.2} times as fast, at least {TWO_THREADS}",
                clip.name
            );
            line(ratio >= TWO_THREADS, what);
        }
    }
    lines
}
