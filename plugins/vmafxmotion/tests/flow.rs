// SPDX-License-Identifier: MPL-2.0

//! One buffer in, the same buffer out, with its scores.

mod common;

use common::{Bench, assert_same_score, expected, gray, luma, timed};
use gst::prelude::*;
use gst_video::{VideoFormat, VideoInfo, VideoMeta};
use vmaf_motion::MotionOptions;
use vmafxmotion::{FinalFrames, MotionScore};

const SIZE: (usize, usize) = (20, 11);

fn addresses(buffer: &gst::BufferRef) -> Vec<*const u8> {
    let maps = (0..buffer.n_memory()).map(|i| buffer.peek_memory(i).map_readable());
    maps.map(|map| map.expect("readable").as_slice().as_ptr())
        .collect()
}

#[test]
fn each_buffer_goes_on_at_once_with_its_memory_untouched() {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, |_| {});
    for frame in 0..5 {
        let buffer = gray(SIZE.0, SIZE.1, frame);
        let (before, bytes) = (addresses(&buffer), buffer.map_readable().unwrap().to_vec());
        let out = bench.harness.push_and_pull(buffer).unwrap();
        assert_eq!(addresses(&out), before);
        assert_eq!(out.map_readable().unwrap().as_slice(), bytes);
        assert_eq!(
            out.pts(),
            Some(gst::ClockTime::from_mseconds(40 * frame as u64))
        );
        assert_eq!(bench.harness.buffers_in_queue(), 0);
    }
}

#[test]
fn a_buffer_that_others_hold_keeps_their_view() {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, |_| {});
    let buffer = gray(SIZE.0, SIZE.1, 0);
    let held = buffer.clone();
    let out = bench.harness.push_and_pull(buffer).unwrap();
    assert_eq!(addresses(&out), addresses(&held));
    assert!(MotionScore::from_buffer(&out).is_some());
    assert_eq!(MotionScore::from_buffer(&held), None);
}

#[test]
fn meta_of_the_three_frame_window() {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, |_| {});
    let scores = expected(&MotionOptions::default(), (SIZE.0, SIZE.1, 8), 6);
    for (frame, score) in scores.iter().enumerate() {
        let meta = bench.score(gray(SIZE.0, SIZE.1, frame));
        assert_eq!((meta.session, meta.frame), (0, frame as u64));
        assert_eq!(meta.motion.to_bits(), score.motion.to_bits());
        assert!(!meta.is_final);
        let finals = frame.checked_sub(1).map(|last| FinalFrames {
            first: last as u64,
            last: last as u64,
            motion2: scores[last].motion2,
            motion3: scores[last].motion3,
        });
        assert_eq!(meta.finals, finals);
    }
}

#[test]
fn meta_of_the_five_frame_window() {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, |element| {
        element.set_property("motion-five-frame-window", true);
    });
    let options = MotionOptions {
        five_frame_window: true,
        ..MotionOptions::default()
    };
    let scores = expected(&options, (SIZE.0, SIZE.1, 8), 5);
    let finals: Vec<_> = (0..5)
        .map(|frame| bench.score(gray(SIZE.0, SIZE.1, frame)).finals)
        .map(|finals| finals.map(|finals| (finals.first, finals.last, finals.motion3)))
        .collect();
    let motion3 = |frame: usize| scores[frame].motion3;
    assert_eq!(motion3(0), motion3(1));
    let expected = [
        None,
        None,
        Some((0, 1, motion3(1))),
        Some((2, 2, motion3(2))),
        Some((3, 3, motion3(3))),
    ];
    assert_eq!(finals, expected);
}

#[test]
fn without_meta_the_very_buffer_goes_on() {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, |element| {
        element.set_property("meta", false)
    });
    for frame in 0..2 {
        let buffer = gray(SIZE.0, SIZE.1, frame);
        let held = buffer.clone();
        let out = bench.harness.push_and_pull(buffer).unwrap();
        assert_eq!(out.as_ptr(), held.as_ptr());
        assert_eq!(MotionScore::from_buffer(&out), None);
    }
}

/// Writes a luma plane into a picture of `info`, everything else set to `filler`.
fn picture(info: &VideoInfo, frame: usize, place: impl Fn(u16) -> u16, filler: u8) -> Vec<u8> {
    let (width, height) = (info.width() as usize, info.height() as usize);
    let mut bytes = vec![filler; info.size()];
    let depth = info.format_info().depth()[0];
    for (y, samples) in luma(width, height, frame, depth).chunks(width).enumerate() {
        let start = info.offset()[0] + y * info.stride()[0] as usize;
        for (x, &sample) in samples.iter().enumerate() {
            match info.format_info().pixel_stride()[0] {
                1 => bytes[start + x] = sample as u8,
                _ => bytes[start + 2 * x..][..2].copy_from_slice(&place(sample).to_le_bytes()),
            }
        }
    }
    bytes
}

fn scores_in(format: VideoFormat, place: impl Fn(u16) -> u16, depth: u32) {
    let mut bench = Bench::new(|_| {});
    let info = VideoInfo::builder(format, SIZE.0 as u32, SIZE.1 as u32)
        .build()
        .unwrap();
    bench.harness.set_src_caps(info.to_caps().unwrap());
    let scores = expected(&MotionOptions::default(), (SIZE.0, SIZE.1, depth), 4);
    for frame in 0..4 {
        let bytes = picture(&info, frame, &place, 0x55 + frame as u8);
        bench.score(timed(gst::Buffer::from_mut_slice(bytes), frame));
    }
    assert!(bench.harness.push_event(gst::event::Eos::new()));
    let messages = bench.messages().frames;
    assert_eq!(messages.len(), 4, "{format:?}");
    for (message, score) in messages.iter().zip(&scores) {
        assert_same_score(&message.score, score);
    }
}

#[test]
fn the_format_does_not_matter() {
    use VideoFormat as F;
    gst::init().unwrap();
    for format in [
        F::I420,
        F::Yv12,
        F::Nv12,
        F::Nv21,
        F::Y42b,
        F::Y444,
        F::Gray8,
        F::Y41b,
        F::Nv16,
    ] {
        scores_in(format, |sample| sample, 8);
    }
    // Foreign bits above or below the sample are not part of it.
    for format in [F::I42010le, F::I42210le, F::Y44410le] {
        scores_in(format, |sample| sample | 0xA400, 10);
    }
    scores_in(F::P01010le, |sample| sample << 6 | 0x2B, 10);
    for format in [F::I42012le, F::I42212le, F::Y44412le] {
        scores_in(format, |sample| sample | 0x7000, 12);
    }
    scores_in(F::P012Le, |sample| sample << 4 | 0x0D, 12);
    for format in [F::P016Le, F::Gray16Le, F::Y44416le] {
        scores_in(format, |sample| sample, 16);
    }
}

/// Frames whose luma lies as `lay` says, scored against the plain ones.
fn scores_laid(lay: impl Fn(&[u8], usize) -> gst::Buffer) {
    let (width, height) = SIZE;
    let mut bench = Bench::gray(width, height, |_| {});
    let scores = expected(&MotionOptions::default(), (width, height, 8), 4);
    for frame in 0..4 {
        let samples: Vec<u8> = luma(width, height, frame, 8)
            .iter()
            .map(|&s| s as u8)
            .collect();
        bench.score(timed(lay(&samples, frame), frame));
    }
    bench.harness.push_event(gst::event::Eos::new());
    let messages = bench.messages().frames;
    assert_eq!(messages.len(), 4);
    for (message, score) in messages.iter().zip(&scores) {
        assert_same_score(&message.score, score);
    }
}

fn with_meta(
    bytes: Vec<u8>,
    (width, height): (usize, usize),
    offset: usize,
    stride: i32,
) -> gst::Buffer {
    let mut buffer = gst::Buffer::from_mut_slice(bytes);
    VideoMeta::add_full(
        buffer.make_mut(),
        gst_video::VideoFrameFlags::empty(),
        VideoFormat::Gray8,
        width as u32,
        height as u32,
        &[offset],
        &[stride],
    )
    .unwrap();
    buffer
}

/// Rows `stride` bytes apart behind `offset` bytes of garbage.
fn laid(samples: &[u8], offset: usize, stride: usize) -> Vec<u8> {
    let mut bytes = vec![0xEE; offset + stride * SIZE.1];
    for (row, samples) in bytes[offset..]
        .chunks_mut(stride)
        .zip(samples.chunks(SIZE.0))
    {
        row[..SIZE.0].copy_from_slice(samples);
    }
    bytes
}

#[test]
fn strides_and_offsets_come_from_the_video_meta() {
    scores_laid(|samples, frame| {
        // Another layout for every frame.
        let (offset, stride) = (7 * frame, SIZE.0 + 13 + frame);
        with_meta(laid(samples, offset, stride), SIZE, offset, stride as i32)
    });
}

#[test]
fn a_picture_that_runs_bottom_up() {
    scores_laid(|samples, frame| {
        let flipped: Vec<u8> = samples.chunks(SIZE.0).rev().flatten().copied().collect();
        let stride = 24;
        let top = stride * (SIZE.1 - 1);
        // Mixed with plain frames: the two are compared with each other.
        match frame % 2 {
            0 => with_meta(laid(&flipped, 0, stride), SIZE, top, -(stride as i32)),
            _ => with_meta(laid(samples, 0, stride), SIZE, 0, stride as i32),
        }
    });
}

#[test]
fn a_picture_inside_a_larger_surface() {
    let surface = (SIZE.0 + 9, SIZE.1 + 6);
    scores_laid(|samples, frame| {
        let (x, y) = (frame % 3 + 1, frame % 4);
        let mut bytes = vec![0xEE; surface.0 * surface.1];
        for (row, samples) in bytes
            .chunks_mut(surface.0)
            .skip(y)
            .zip(samples.chunks(SIZE.0))
        {
            row[x..x + SIZE.0].copy_from_slice(samples);
        }
        let mut buffer = with_meta(bytes, surface, 0, surface.0 as i32);
        let rect = (x as u32, y as u32, SIZE.0 as u32, SIZE.1 as u32);
        gst_video::VideoCropMeta::add(buffer.make_mut(), rect);
        buffer
    });
}

#[test]
fn a_plane_in_several_memories() {
    scores_laid(|samples, frame| {
        let stride = 20;
        let bytes = laid(samples, 0, stride);
        let mut buffer = gst::Buffer::new();
        for part in bytes.chunks(37 + frame) {
            buffer
                .make_mut()
                .append_memory(gst::Memory::from_mut_slice(part.to_vec()));
        }
        buffer
    });
}

#[test]
fn memories_are_not_merged() {
    let mut bench = Bench::gray(SIZE.0, SIZE.1, |_| {});
    let bytes = gray(SIZE.0, SIZE.1, 0).map_readable().unwrap().to_vec();
    let mut buffer = gst::Buffer::new();
    for part in bytes.chunks(100) {
        buffer
            .make_mut()
            .append_memory(gst::Memory::from_mut_slice(part.to_vec()));
    }
    let before = addresses(&buffer);
    assert!(before.len() > 2);
    let out = bench.harness.push_and_pull(buffer).unwrap();
    assert_eq!(addresses(&out), before);
}

#[test]
fn threads_change_nothing() {
    let size = (320, 200);
    let scores = expected(&MotionOptions::default(), (size.0, size.1, 8), 12);
    for threads in [2u32, 3, 64] {
        let mut bench = Bench::gray(size.0, size.1, |element| {
            element.set_property("threads", threads)
        });
        for frame in 0..12 {
            bench.score(gray(size.0, size.1, frame));
        }
        bench.harness.push_event(gst::event::Eos::new());
        let messages = bench.messages().frames;
        assert_eq!(messages.len(), 12);
        for (message, score) in messages.iter().zip(&scores) {
            assert_same_score(&message.score, score);
        }
    }
}
