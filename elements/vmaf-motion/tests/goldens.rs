// SPDX-License-Identifier: MPL-2.0

//! Every integer golden, bit for bit, for every option set, with libvmaf's names.

mod common;

use common::clips::{Clip, goldens};
use serde_json::Value;
use vmaf_motion::float::Component;
use vmaf_motion::options::feature_names;
use vmaf_motion::{
    Extractor, FinalScore, Geometry, MotionOptions, MotionStream, Plane, SampleFormat,
};

/// The options of a golden run, set as a user would: by name and text.
fn options(run: &Value) -> MotionOptions {
    let mut options = MotionOptions {
        extractor: match run["extractor"].as_str() {
            Some("float_motion") => Extractor::Float,
            _ => Extractor::Integer,
        },
        ..MotionOptions::default()
    };
    for (name, value) in run["options"].as_object().expect("options") {
        let set = options.set(name, &value.to_string());
        set.unwrap_or_else(|error| panic!("{}: {error}", run["set"]));
    }
    options
}

/// Pushes the planes through a stream; checks that nothing comes early, late, twice or out of order.
fn scores(options: &MotionOptions, geometry: Geometry, planes: &[Vec<u8>]) -> Vec<FinalScore> {
    let mut stream = MotionStream::new(options, geometry).expect("a stream");
    let mut scores: Vec<FinalScore> = Vec::new();
    let first_scored = if options.five_frame_window { 2 } else { 1 };
    for (frame, plane) in planes.iter().enumerate() {
        let plane = Plane::new(plane, geometry.row_bytes(), geometry).expect("a plane");
        let step = stream.push(&plane).expect("a step");
        assert_eq!(step.frame, frame as u64);
        scores.extend(step.finals.iter());
        let known = frame + 1;
        let expected = if known > first_scored { known - 1 } else { 0 };
        assert_eq!(scores.len(), expected, "finality after frame {frame}");
    }
    scores.extend(stream.flush().iter());
    assert!(stream.flush().is_empty(), "a second flush gave scores");
    assert!(
        scores
            .iter()
            .map(|score| score.frame)
            .eq(0..planes.len() as u64)
    );
    scores
}

fn compare(what: &str, run: &Value, output: &str, values: impl Iterator<Item = f64>) -> usize {
    let Some(expected) = run[output].as_array() else {
        return 0;
    };
    let values: Vec<f64> = values.collect();
    assert_eq!(values.len(), expected.len(), "{what} {output}");
    for (frame, (value, expected)) in values.iter().zip(expected).enumerate() {
        let expected = expected.as_f64().expect("a number");
        assert_eq!(
            value.to_bits(),
            expected.to_bits(),
            "{what} {output} of frame {frame}: {value:?}, libvmaf has {expected:?}"
        );
    }
    expected.len()
}

/// An array of a golden run, and the score it is compared with.
type Output = (&'static str, fn(&FinalScore) -> f64);

/// Scores every run of an extractor as `score` does; gives the numbers of runs and values.
fn all(
    extractor: &str,
    score: impl Fn(&Clip, &MotionOptions, Geometry, &[Vec<u8>]) -> Vec<FinalScore>,
) -> (usize, usize) {
    let (mut runs, mut values) = (0, 0);
    for golden in goldens() {
        let Some(clip) = Clip::of_golden(&golden) else {
            continue;
        };
        let format = SampleFormat::low(clip.depth).expect("a depth");
        let geometry = Geometry::new(clip.w, clip.h, format).expect("a size");
        let planes = clip.luma(&golden);
        for run in golden["runs"].as_array().expect("runs") {
            if run["extractor"] != extractor {
                continue;
            }
            let what = format!("{} {}", golden["id"], run["set"]);
            let options = options(run);
            let scores = score(&clip, &options, geometry, &planes);
            runs += 1;
            let outputs: [Output; 4] = [
                ("motion_sad", |score| score.motion),
                ("motion", |score| score.motion),
                ("motion2", |score| score.motion2),
                ("motion3", |score| score.motion3),
            ];
            for (output, value) in outputs {
                values += compare(&what, run, output, scores.iter().map(value));
            }
            let names = feature_names(&options);
            for (output, name) in run["names"].as_object().expect("names") {
                let ours = names.iter().find(|ours| ours.output == output);
                let ours = ours.map(|ours| ours.collector.as_str());
                assert_eq!(ours, name.as_str(), "{what}");
            }
        }
    }
    println!("{runs} runs, {values} values");
    (runs, values)
}

#[test]
fn integer_goldens() {
    let found = all("motion", |_, options, geometry, planes| {
        scores(options, geometry, planes)
    });
    assert!(
        found.0 >= 254 && found.1 >= 5_749,
        "only {found:?} were found"
    );
}

#[test]
fn float_goldens() {
    let found = all("float_motion", |clip, options, luma_geometry, planes| {
        let chroma_size = options.add_uv.then(|| clip.plane_size(1));
        let chroma_geometry = chroma_size
            .map(|(w, h)| Geometry::new(w, h, luma_geometry.format()).expect("a chroma size"));
        let stream = MotionStream::with_chroma(options, luma_geometry, chroma_geometry);
        let mut stream = stream.expect("a stream");
        let mut scores: Vec<FinalScore> = Vec::new();
        for (frame, luma) in (0..).zip(planes) {
            let luma = Plane::new(luma, luma_geometry.row_bytes(), luma_geometry).expect("luma");
            let step = match chroma_geometry {
                None => stream.push(&luma),
                Some(geometry) => {
                    let chroma = [1, 2].map(|c| clip.plane(frame, c));
                    let chroma = chroma.each_ref().map(|plane| {
                        let step = geometry.format().bytes();
                        Component::new(plane, geometry.row_bytes(), step, geometry).expect("chroma")
                    });
                    stream.push_with_chroma(&luma, chroma)
                }
            };
            scores.extend(step.expect("a step").finals.iter());
        }
        scores.extend(stream.flush().iter());
        scores
    });
    assert!(
        found.0 >= 91 && found.1 >= 2_003,
        "only {found:?} were found"
    );
}
