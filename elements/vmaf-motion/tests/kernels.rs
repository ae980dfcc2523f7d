// SPDX-License-Identifier: MPL-2.0

//! Every kernel that this processor can run gives the reference's sums, bit for bit.

mod common;

use common::clips::{Clip, goldens};
use common::content::{Content, Owned, formats};
use proptest::prelude::*;
use vmaf_motion::sad::{Distance, Kernel, MotionSad, PairSad, scalar};
use vmaf_motion::{Geometry, Plane, SampleFormat};

/// The kernels to be compared with the reference.
fn fast() -> Vec<Kernel> {
    Kernel::available()
        .filter(|&kernel| kernel != Kernel::Scalar)
        .collect()
}

fn motion(geometry: Geometry, distance: Distance, kernel: Kernel) -> MotionSad {
    MotionSad::new(geometry, distance)
        .with_kernel(kernel)
        .expect("a kernel that this processor can run")
}

/// Compares all kernels over two planes, both ways round, each with one object that sees all of
/// them in turn, and in the overwriting form with the same planes at both distances.
fn compare(planes: &[Owned; 2], what: &dyn std::fmt::Debug) {
    let [a, b] = [planes[0].plane(), planes[1].plane()];
    let geometry = a.geometry();
    let expected = [scalar::sad(&a, &b), scalar::sad(&b, &a)];
    for kernel in fast() {
        let mut pairs = PairSad::new(geometry).with_kernel(kernel).unwrap();
        let found = [pairs.sad(&a, &b).unwrap(), pairs.sad(&b, &a).unwrap()];
        assert_eq!(found, expected, "{kernel}: {geometry:?} {what:?}");

        let mut one = motion(geometry, Distance::One, kernel);
        let found = [&a, &b, &a, &a].map(|plane| one.push(plane).unwrap());
        let sads = [None, Some(expected[0]), Some(expected[1]), Some(0)];
        assert_eq!(found, sads, "{kernel} in place: {geometry:?} {what:?}");
    }
}

fn compare_size(width: u32, height: u32, format: SampleFormat, padding: usize, seed: u32) {
    let geometry = Geometry::new(width, height, format).unwrap();
    for content in Content::ALL {
        let planes = [0, 1].map(|t| content.plane(geometry, padding, t, seed));
        compare(&planes, &content);
    }
}

/// Every size from 3 to 80 each way: all contents, the formats in turn, so that each size meets
/// several and all meet each other.
fn compare_sizes(heights: impl Iterator<Item = u32>) {
    let formats = formats();
    for height in heights {
        for width in 3..=80 {
            for (i, content) in Content::ALL.into_iter().enumerate() {
                let turn = i + (width + 5 * height) as usize;
                // Every other one with bytes, the most common format.
                let format = if turn.is_multiple_of(2) {
                    SampleFormat::EIGHT_BIT
                } else {
                    formats[turn / 2 % formats.len()]
                };
                let geometry = Geometry::new(width, height, format).unwrap();
                let planes = [0, 1].map(|t| content.plane(geometry, turn % 5, t, 1));
                compare(&planes, &content);
            }
        }
    }
}

#[test]
fn sizes_to_80_even_heights() {
    compare_sizes((4..=80).step_by(2));
}

#[test]
fn sizes_to_80_odd_heights() {
    compare_sizes((3..=79).step_by(2));
}

#[test]
fn every_format_over_widths_to_80() {
    for format in formats() {
        for width in 3..=80 {
            compare_size(width, 9 + width % 4, format, 3, width);
        }
    }
}

#[test]
fn widths_around_vector_boundaries() {
    let boundaries = [
        96, 112, 128, 160, 192, 256, 320, 384, 512, 640, 720, 1024, 1280, 1920, 2048, 3840, 4096,
    ];
    for (i, boundary) in boundaries.into_iter().enumerate() {
        for width in boundary - 4..=boundary + 4 {
            for (j, format) in formats().into_iter().enumerate() {
                // The wide ones with some of the formats each, so that all are met.
                if width < 700 || (i + j + width as usize).is_multiple_of(4) {
                    compare_size(width, 5, format, width as usize % 3, 3);
                }
            }
        }
    }
}

#[test]
fn a_tall_picture_changes_paths_and_back() {
    for format in formats() {
        let geometry = Geometry::new(67, 331, format).unwrap();
        for content in [Content::Blocks, Content::Rare, Content::EqualRows] {
            let planes = [0, 1].map(|t| content.plane(geometry, 1, t, 4));
            compare(&planes, &content);
        }
    }
}

#[test]
fn two_frames_apart() {
    let geometry = Geometry::new(61, 23, SampleFormat::high(10).unwrap()).unwrap();
    let planes: Vec<Owned> = (0..6)
        .map(|t| Content::Noise.plane(geometry, 7, t, 5))
        .collect();
    let expected = |i: usize, distance: usize| {
        (i >= distance).then(|| scalar::sad(&planes[i - distance].plane(), &planes[i].plane()))
    };
    for kernel in Kernel::available() {
        for distance in [Distance::One, Distance::Two] {
            let mut sad = motion(geometry, distance, kernel);
            for (i, plane) in planes.iter().enumerate() {
                let found = sad.push(&plane.plane()).unwrap();
                assert_eq!(found, expected(i, distance as usize), "{kernel} {i}");
            }
        }
    }
}

#[test]
fn several_threads_give_the_same() {
    // Odd heights, bands of odd height, fewer rows than threads could use.
    for (width, height, threads) in [
        (37, 33, 2),
        (64, 64, 2),
        (130, 101, 3),
        (20, 90, 5),
        (9, 20, 4),
    ] {
        for format in formats() {
            let geometry = Geometry::new(width, height, format).unwrap();
            for content in [
                Content::Noise,
                Content::EqualRows,
                Content::Rare,
                Content::Static,
            ] {
                let planes: Vec<Owned> = (0..4).map(|t| content.plane(geometry, 5, t, 6)).collect();
                for distance in [Distance::One, Distance::Two] {
                    for kernel in Kernel::available() {
                        let sad = motion(geometry, distance, kernel);
                        let mut sad = sad.with_threads(threads).expect("threads");
                        let distance = distance as usize;
                        for (i, plane) in planes.iter().enumerate() {
                            let found = sad.push(&plane.plane()).unwrap();
                            let expected = (i >= distance).then(|| {
                                scalar::sad(&planes[i - distance].plane(), &plane.plane())
                            });
                            assert_eq!(found, expected, "{kernel} {geometry:?} {content:?} {i}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn pairs_on_threads_keep_their_order() {
    let geometry = Geometry::new(33, 14, SampleFormat::low(10).unwrap()).unwrap();
    let planes: Vec<Owned> = (0..8)
        .map(|t| Content::Motion.plane(geometry, 0, t, 0))
        .collect();
    let pairs: Vec<[Plane<'_>; 2]> = planes
        .windows(2)
        .map(|pair| [pair[0].plane(), pair[1].plane()])
        .collect();
    let expected: Vec<u64> = pairs.iter().map(|[a, b]| scalar::sad(a, b)).collect();
    for threads in [0, 1, 2, 3, 7, 20] {
        assert_eq!(
            vmaf_motion::sad::sads(&pairs, threads),
            Ok(expected.clone())
        );
    }
    assert_eq!(vmaf_motion::sad::sads(&[], 2), Ok(Vec::new()));
    let other = Geometry::new(14, 33, geometry.format()).unwrap();
    let odd = Content::Motion.plane(other, 0, 0, 0);
    let mixed = [pairs[0], [odd.plane(), odd.plane()]];
    assert!(vmaf_motion::sad::sads(&mixed, 2).is_err());
}

#[test]
fn threads_are_as_many_as_have_use() {
    let sad = |height, threads| {
        let geometry = Geometry::new(40, height, SampleFormat::EIGHT_BIT).unwrap();
        let sad = MotionSad::new(geometry, Distance::One);
        sad.with_threads(threads).expect("threads").threads()
    };
    assert_eq!([sad(1080, 0), sad(1080, 1), sad(1080, 3)], [1, 1, 3]);
    assert_eq!([sad(20, 4), sad(40, 4)], [1, 2]);
}

#[test]
fn the_paths_are_taken() {
    let geometry = Geometry::new(200, 100, SampleFormat::EIGHT_BIT).unwrap();
    for kernel in fast() {
        let steps = |content: Content| {
            let planes = [0, 1].map(|t| content.plane(geometry, 0, t, 1));
            let mut sad = PairSad::new(geometry).with_kernel(kernel).unwrap();
            sad.sad(&planes[0].plane(), &planes[1].plane()).unwrap();
            sad.steps()
        };
        assert_eq!(steps(Content::Smooth).fast, 50, "{kernel}");
        assert_eq!(steps(Content::Static).equal, 50, "{kernel}");
        let flash = steps(Content::Flash);
        assert!(flash.general == 50 || kernel == Kernel::Avx512, "{kernel}");
        assert!(steps(Content::EqualRows).equal > 0, "{kernel}");
    }
}

#[test]
fn the_fast_path_comes_back_behind_a_flash() {
    let geometry = Geometry::new(200, 100, SampleFormat::EIGHT_BIT).unwrap();
    for kernel in fast()
        .into_iter()
        .filter(|&kernel| kernel != Kernel::Avx512)
    {
        let mut sad = PairSad::new(geometry).with_kernel(kernel).unwrap();
        let mut compare = |content: Content| {
            let planes = [0, 1].map(|t| content.plane(geometry, 0, t, 1));
            sad.sad(&planes[0].plane(), &planes[1].plane()).unwrap();
            sad.steps()
        };
        let flash = compare(Content::Flash);
        assert_eq!(flash.general, 50, "{kernel}");
        // Not at once, for it may come again, and within this very picture.
        let smooth = compare(Content::Smooth);
        let general = smooth.general - flash.general;
        assert!((1..50).contains(&general), "{kernel}: {smooth:?}");
        assert_eq!(smooth.fast, 50 - general, "{kernel}");
        let again = compare(Content::Smooth);
        assert_eq!(again.fast - smooth.fast, 50, "{kernel}");
    }
}

#[test]
fn the_steps_of_all_threads_are_counted() {
    let geometry = Geometry::new(200, 104, SampleFormat::EIGHT_BIT).unwrap();
    for (kernel, threads) in fast()
        .into_iter()
        .flat_map(|kernel| [(kernel, 1), (kernel, 3)])
    {
        let sad = motion(geometry, Distance::One, kernel);
        let mut sad = sad.with_threads(threads).expect("threads");
        let mut total = 0;
        // One plane apart they are smooth, smooth, equal, and a flash for every kernel but one.
        for (content, t) in [
            (Content::Smooth, 0),
            (Content::Smooth, 1),
            (Content::Smooth, 1),
            (Content::Flash, 0),
            (Content::Flash, 1),
        ] {
            sad.push(&content.plane(geometry, 0, t, 1).plane()).unwrap();
            let steps = sad.steps();
            let sum = steps.fast + steps.general + steps.equal;
            // Two rows a step; the first plane is compared with none.
            assert_eq!(sum, total, "{kernel}, {threads} threads: {steps:?}");
            total += 52;
        }
        let steps = sad.steps();
        assert!(steps.equal == 52 && steps.fast >= 52, "{kernel}: {steps:?}");
        assert!(
            (steps.general > 0) == (kernel != Kernel::Avx512),
            "{kernel}: {steps:?}"
        );
    }
}

#[test]
fn another_geometry_is_refused() {
    let [wide, high] = [(8, 5), (5, 8)].map(|(width, height)| {
        let geometry = Geometry::new(width, height, SampleFormat::EIGHT_BIT).unwrap();
        Content::Noise.plane(geometry, 0, 0, 0)
    });
    let mut sad = MotionSad::new(wide.geometry, Distance::One);
    assert_eq!(sad.push(&wide.plane()), Ok(None));
    assert!(sad.push(&high.plane()).is_err());
    assert_eq!(sad.push(&wide.plane()), Ok(Some(0)));
    let mut pairs = PairSad::new(wide.geometry);
    assert!(pairs.sad(&wide.plane(), &high.plane()).is_err());
}

#[test]
fn goldens_on_every_kernel() {
    let mut checked = 0;
    for golden in goldens() {
        let Some(clip) = Clip::of_golden(&golden) else {
            continue;
        };
        let low = SampleFormat::low(clip.depth).unwrap();
        let geometry = Geometry::new(clip.w, clip.h, low).unwrap();
        let planes = clip.luma(&golden);
        let sads = |key: &str| -> Vec<u64> {
            let sads = golden[key].as_array().expect("an array of SADs");
            sads.iter()
                .map(|sad| sad.as_u64().expect("a SAD"))
                .collect()
        };
        let expected = [sads("raw_sad_stride1"), sads("raw_sad_stride2")];
        for kernel in Kernel::available() {
            for (distance, expected) in [Distance::One, Distance::Two].into_iter().zip(&expected) {
                let mut sad = motion(geometry, distance, kernel);
                for (t, (luma, &expected)) in planes.iter().zip(expected).enumerate() {
                    let plane = Plane::new(luma, geometry.row_bytes(), geometry).unwrap();
                    let found = sad.push(&plane).unwrap();
                    assert_eq!(
                        (found.is_some(), found.unwrap_or(0)),
                        (t >= distance as usize, expected),
                        "{kernel}: {} frame {t} against {distance:?} before",
                        golden["id"]
                    );
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 1000, "only {checked} frames were checked");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_two_planes(
        (width, height, format) in (3u32..150, 3u32..20, 0..formats().len()),
        padding in 0usize..70,
        levels in proptest::collection::vec(any::<u16>(), 1..40),
        picks in any::<u64>(),
    ) {
        // Samples are drawn from few levels, so that equal rows, flat areas and extremes are common.
        let format = formats()[format];
        let geometry = Geometry::new(width, height, format).unwrap();
        let planes = [0u64, 1].map(|t| {
            let mut state = picks ^ (t << 63) | 1;
            let stride = geometry.row_bytes() + padding;
            let bytes = (0..stride * geometry.height()).map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let level = levels[(state >> 40) as usize % levels.len()];
                level.to_le_bytes()[(state >> 33) as usize % 2]
            });
            Owned { bytes: bytes.collect(), stride, geometry }
        });
        compare(&planes, &"proptest");
    }
}
