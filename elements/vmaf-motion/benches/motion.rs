// SPDX-License-Identifier: MPL-2.0

//! The motion kernels beside the time it takes to read and difference two planes, and their ratio.
//!
//! The planes are few and may stay in the caches, and criterion measures one thing after the other:
//! `vmaf-motion-bench` is what the targets are judged with.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use vmaf_motion::float::{Component, FloatMotion, FloatParams};
use vmaf_motion::sad::{Distance, Kernel, MotionSad, PairSad, floor};
use vmaf_motion::{Geometry, Plane, SampleFormat};

/// Two planes of moving waves with grain.
fn planes(geometry: Geometry) -> [Vec<u8>; 2] {
    let max = u32::from(geometry.format().max());
    [0usize, 1].map(|t| {
        let mut state = 0x9E37_79B9_u32.wrapping_add(t as u32);
        let mut bytes = Vec::new();
        for y in 0..geometry.height() {
            for x in 0..geometry.width() {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let wave = ((x + 3 * t) % 211).abs_diff(105) + ((2 * y + t) % 173).abs_diff(86);
                let sample = (wave as u32 * max / 255 + (state >> 29)).min(max);
                match geometry.format().bytes() {
                    1 => bytes.push(sample as u8),
                    _ => bytes.extend((sample as u16).to_le_bytes()),
                }
            }
        }
        bytes
    })
}

/// Median seconds of `run`, over about a third of a second.
fn median(mut run: impl FnMut()) -> f64 {
    let (start, mut times) = (Instant::now(), Vec::new());
    while start.elapsed() < Duration::from_millis(300) || times.len() < 5 {
        let start = Instant::now();
        run();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn motion(criterion: &mut Criterion) {
    for (name, width, height, depth) in [("1080p8", 1920, 1080, 8), ("2160p10", 3840, 2160, 10)] {
        let format = SampleFormat::low(depth).expect("a depth");
        let geometry = Geometry::new(width, height, format).expect("a size");
        let bytes = planes(geometry);
        let [a, b] = bytes.each_ref().map(|bytes| {
            Plane::new(bytes, geometry.row_bytes(), geometry).expect("a plane that fits")
        });
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20);
        group.measurement_time(Duration::from_secs(2));
        group.throughput(Throughput::Elements(u64::from(width) * u64::from(height)));
        group.bench_function("floor", |bencher| {
            bencher.iter(|| floor::read_two(black_box(&bytes[0]), black_box(&bytes[1])));
        });
        let mut ratios = Vec::new();
        for kernel in Kernel::available().filter(|&kernel| kernel != Kernel::Scalar) {
            let pairs = PairSad::new(geometry).with_kernel(kernel);
            let mut pairs = pairs.expect("an available kernel");
            group.bench_function(BenchmarkId::new("pair", kernel), |bencher| {
                bencher.iter(|| pairs.sad(black_box(&a), black_box(&b)));
            });
            let stream = MotionSad::new(geometry, Distance::One).with_kernel(kernel);
            let mut stream = stream.expect("an available kernel");
            group.bench_function(BenchmarkId::new("in place", kernel), |bencher| {
                bencher.iter(|| [stream.push(black_box(&a)), stream.push(black_box(&b))]);
            });
            let floor = median(|| {
                black_box(floor::read_two(black_box(&bytes[0]), black_box(&bytes[1])));
            });
            let pair = median(|| {
                black_box(pairs.sad(black_box(&a), black_box(&b))).expect("planes that fit");
            });
            ratios.push((kernel, pair / floor));
        }
        let float = FloatMotion::new(FloatParams::default(), geometry, None);
        let mut float = float.expect("a defined combination");
        let [a, b] = [a, b].map(Component::from);
        group.bench_function("float, two pictures", |bencher| {
            bencher.iter(|| {
                [
                    float.push(black_box(&a), None),
                    float.push(black_box(&b), None),
                ]
            });
        });
        group.finish();
        for (kernel, ratio) in ratios {
            println!("{name} {kernel}: {ratio:.2} times the floor");
        }
    }
}

criterion_group!(benches, motion);
criterion_main!(benches);
