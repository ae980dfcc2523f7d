// SPDX-License-Identifier: MPL-2.0

//! Every float golden, bit for bit.

mod common;

use common::clips::{Clip, goldens};
use serde_json::Value;
use vmaf_motion::derive::{Derivation, FinalScore, Rules};
use vmaf_motion::float::{Component, FloatMotion, FloatParams};
use vmaf_motion::sad::Distance;
use vmaf_motion::{Geometry, SampleFormat};

/// How planes are laid out in memory; the score must not depend on it.
#[derive(Debug, Clone, Copy)]
enum Memory {
    /// As the clip gives them.
    Planar,
    /// Padded rows; at more than 8 bit in the high bits with garbage below; chroma interleaved.
    SemiPlanar,
}

struct Laid {
    bytes: Vec<u8>,
    stride: usize,
    step: usize,
    geometry: Geometry,
}

impl Laid {
    fn component(&self, offset: usize) -> Component<'_> {
        Component::new(&self.bytes[offset..], self.stride, self.step, self.geometry).unwrap()
    }
}

/// Component `c` of frame `t` (with semi-planar memory, each chroma component in memory of its own,
/// with every other sample foreign).
fn lay(clip: &Clip, t: u32, c: u32, memory: Memory) -> Laid {
    let bytes = clip.plane(t, c);
    let (width, height) = clip.plane_size(c);
    let low = SampleFormat::low(clip.depth).unwrap();
    let high = SampleFormat::high(clip.depth).unwrap();
    let sample = low.bytes();
    match memory {
        Memory::Planar => Laid {
            stride: width as usize * sample,
            step: sample,
            geometry: Geometry::new(width, height, low).unwrap(),
            bytes,
        },
        Memory::SemiPlanar => {
            let step = if c == 0 { sample } else { 2 * sample };
            let mut laid = Vec::new();
            for row in bytes.chunks(width as usize * sample) {
                for (x, value) in row.chunks(sample).enumerate() {
                    match value {
                        [byte] => laid.push(*byte),
                        word => {
                            let word = u16::from_le_bytes([word[0], word[1]]) << high.shift();
                            let garbage = (x as u16).wrapping_mul(77) & ((1 << high.shift()) - 1);
                            laid.extend((word | garbage).to_le_bytes());
                        }
                    }
                    laid.extend(std::iter::repeat_n(0x5a, step - sample));
                }
                laid.extend([0xc3; 6]);
            }
            Laid {
                bytes: laid,
                stride: width as usize * step + 6,
                step,
                geometry: Geometry::new(width, height, high).unwrap(),
            }
        }
    }
}

fn number(run: &Value, name: &str, default: f64) -> f64 {
    run["options"]
        .get(name)
        .map_or(default, |v| v.as_f64().unwrap())
}

fn flag(run: &Value, name: &str) -> bool {
    run["options"]
        .get(name)
        .is_some_and(|v| v.as_bool().unwrap())
}

fn scores(clip: &Clip, run: &Value, memory: Memory) -> Vec<FinalScore> {
    let params = FloatParams {
        filter_size: number(run, "motion_filter_size", 5.0) as u32,
        add_scale1: flag(run, "motion_add_scale1"),
        add_uv: flag(run, "motion_add_uv"),
    };
    let weight = number(run, "motion_fps_weight", 1.0);
    let force_zero = flag(run, "motion_force_zero");
    let mut derivation = Derivation::new(Rules {
        distance: Distance::One,
        blend_factor: number(run, "motion_blend_factor", 1.0),
        blend_offset: number(run, "motion_blend_offset", 40.0),
        max_val: number(run, "motion_max_val", 10_000.0),
        moving_average: false,
        blend_uncapped: true,
    });
    let mut scores: Vec<FinalScore> = Vec::new();
    let mut motion = None;
    for t in 0..clip.frames {
        let luma = lay(clip, t, 0, memory);
        let chroma = params
            .add_uv
            .then(|| [1, 2].map(|c| lay(clip, t, c, memory)));
        let motion = motion.get_or_insert_with(|| {
            let chroma = chroma.as_ref().map(|[u, _]| u.geometry);
            FloatMotion::new(params, luma.geometry, chroma).expect("a defined combination")
        });
        let planes = chroma
            .as_ref()
            .map(|planes| planes.each_ref().map(|it| it.component(0)));
        let raw = motion
            .push(&luma.component(0), planes)
            .expect("planes that fit");
        assert_eq!(raw.is_some(), t > 0);
        let weighted = if force_zero {
            0.0
        } else {
            raw.unwrap_or(0.0) * weight
        };
        scores.extend(derivation.push(weighted).unwrap().iter());
    }
    scores.extend(derivation.flush().iter());
    scores
}

#[test]
fn float_goldens() {
    let (mut values, mut sets) = (0, std::collections::BTreeSet::new());
    for golden in goldens() {
        let Some(clip) = Clip::of_golden(&golden) else {
            continue;
        };
        let runs = golden["runs"].as_array().expect("runs").iter();
        for run in runs.filter(|run| run["extractor"] == "float_motion") {
            sets.insert(run["set"].as_str().expect("a set").to_owned());
            for memory in [Memory::Planar, Memory::SemiPlanar] {
                let scores = scores(&clip, run, memory);
                for (output, value) in [
                    ("motion", (|score| score.motion) as fn(&FinalScore) -> f64),
                    ("motion2", |score| score.motion2),
                    ("motion3", |score| score.motion3),
                ] {
                    let Some(expected) = run[output].as_array() else {
                        continue;
                    };
                    assert_eq!(scores.len(), expected.len());
                    for (score, expected) in scores.iter().zip(expected) {
                        let (value, expected) = (value(score), expected.as_f64().unwrap());
                        assert_eq!(
                            value.to_bits(),
                            expected.to_bits(),
                            "{} {} {output} of frame {} ({memory:?}): {value:?}, libvmaf has {expected:?}",
                            golden["id"],
                            run["set"],
                            score.frame
                        );
                        values += 1;
                    }
                }
            }
        }
    }
    assert!(values > 2_000, "only {values} values");
    assert!(sets.len() >= 8, "only the sets {sets:?}");
}
