// SPDX-License-Identifier: MPL-2.0

//! Every stream, picture by picture, against the checksums that come with it.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a row of calls with the same arguments has one reason to be sound"
)]

mod client;

use client::stage::{in_child, made, md5_of};
use client::{Client, Feed, Frame, Options};
use onevpl_sys::*;
use test_streams::{Coding, Stream, all, named};

fn codec(coding: Coding) -> u32 {
    match coding {
        Coding::H264 => MFX_CODEC_AVC,
        Coding::H265 => MFX_CODEC_HEVC,
        Coding::Vp8 => MFX_CODEC_VP8,
        Coding::Vp9 => MFX_CODEC_VP9,
        Coding::Av1 => MFX_CODEC_AV1,
    }
}

fn feed(stream: &Stream, piece: usize) -> Feed {
    match stream.ivf_frames() {
        Some(frames) => Feed::frames(codec(stream.coding), frames),
        None => Feed::pieces(codec(stream.coding), &stream.bytes(), piece),
    }
}

fn check(stream: &Stream, frames: &[Frame]) {
    let expected = stream.expected();
    assert_eq!(frames.len(), expected.len(), "{}", stream.name);
    let covered = frames.iter().all(|frame| expected.covers(frame.width));
    for (number, (frame, wanted)) in frames.iter().zip(expected.list()).enumerate() {
        if expected.covers(frame.width) {
            assert_eq!(
                &expected.checksum(&frame.pixels),
                wanted,
                "{}: picture {number}",
                stream.name
            );
        }
        assert!(
            frame.coded.0 % 16 == 0 && frame.coded.1 % 16 == 0,
            "{}",
            stream.name
        );
        assert_eq!(frame.corrupted, 0, "{}", stream.name);
    }
    if !covered {
        let path = stream.path.to_str().expect("a plain path");
        let sums: Vec<String> = frames.iter().map(Frame::md5).collect();
        assert_eq!(sums, md5_of(path, "nv12"), "{}", stream.name);
    }
}

#[test]
fn every_stream_through_the_dispatcher_has_its_checksums() {
    in_child(
        "every_stream_through_the_dispatcher_has_its_checksums",
        "",
        || {
            for stream in all() {
                let client =
                    Client::dispatched(codec(stream.coding)).expect("the runtime is found");
                let (frames, log) = client.decode(&feed(&stream, 4096), Options::default());
                check(&stream, &frames);
                assert!(log.errors.is_empty(), "{}: {log:?}", stream.name);
                let reinits = if stream.name.starts_with("resolution_change") {
                    4
                } else {
                    0
                };
                assert_eq!(log.reinits, reinits, "{}", stream.name);
                assert_eq!((frames[0].width, frames[0].height), stream.size);
            }
        },
    );
}

#[test]
fn async_depth_and_pieces_do_not_matter() {
    for name in [
        "test-25fps-interlaced.h264",
        "64x64-I-P-B-P-high.h264",
        "bear.h265",
        "test-25fps.vp9",
    ] {
        let stream = named(name);
        for (async_depth, piece, hold) in
            [(1, 1 << 20, 1), (1, 997, 1), (6, 50_000, 4), (16, 300, 16)]
        {
            let options = Options {
                async_depth,
                hold,
                ..Options::default()
            };
            let (frames, _) = Client::direct("").decode(&feed(&stream, piece), options);
            check(&stream, &frames);
        }
    }
}

#[test]
fn interlaced_pictures_say_so_and_have_rows_in_multiples_of_32() {
    let stream = named("test-25fps-interlaced.h264");
    let (frames, _) = Client::direct("").decode(&feed(&stream, 4096), Options::default());
    // ffprobe: interlaced, bottom field first.
    let field = MFX_PICSTRUCT_FIELD_BFF as u16;
    assert!(frames.iter().all(|frame| frame.pic_struct == field));
    assert!(frames.iter().all(|frame| frame.coded == (320, 256)));
}

#[test]
fn a_time_stamp_returns_with_its_own_picture() {
    // One access unit a bitstream: the 64x64 streams are shown in another order than they are coded.
    let stream = named("64x64-I-P-B-P-high.h264");
    let mut reader = Vec::new();
    let bytes = stream.bytes();
    // Each access unit begins with its delimiter.
    let starts: Vec<usize> = bytes
        .windows(5)
        .enumerate()
        .filter(|(_, window)| window[..4] == [0, 0, 0, 1] && window[4] & 31 == 9)
        .map(|(at, _)| at)
        .chain([bytes.len()])
        .collect();
    for pair in starts.windows(2) {
        reader.push(bytes[pair[0]..pair[1]].to_vec());
    }
    let feed = Feed::frames(MFX_CODEC_AVC, reader);
    let (frames, _) = Client::direct("").decode(&feed, Options::default());
    let mut stamps: Vec<u64> = frames.iter().map(|frame| frame.timestamp).collect();
    check(&stream, &frames);
    assert_ne!(
        stamps,
        (0..stamps.len() as u64).collect::<Vec<_>>(),
        "the stream is reordered"
    );
    stamps.sort_unstable();
    assert_eq!(stamps, (0..frames.len() as u64).collect::<Vec<_>>());
}

#[test]
fn streams_made_by_ffmpeg_decode_to_its_own_checksums() {
    let mpeg2 = made(
        &["-c:v", "mpeg2video", "-bf", "2", "-q:v", "3"],
        "m2v",
        "nv12",
    );
    let interlaced = made(
        &["-c:v", "mpeg2video", "-flags", "+ildct+ilme", "-q:v", "3"],
        "m2v",
        "nv12",
    );
    let hevc10 = made(
        &[
            "-c:v",
            "libx265",
            "-pix_fmt",
            "yuv420p10le",
            "-x265-params",
            "log-level=none",
        ],
        "h265",
        "p010le",
    );
    let h264 = made(
        &["-c:v", "libx264", "-bf", "3", "-slices", "3"],
        "h264",
        "nv12",
    );
    let vp9 = made(
        &["-c:v", "libvpx-vp9", "-b:v", "1M", "-cpu-used", "8"],
        "ivf",
        "nv12",
    );
    let mjpeg = made(
        &["-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-q:v", "4"],
        "mjpeg",
        // JPEG has the full range, which ffmpeg would squeeze into that of video.
        "nv12:full",
    );
    let frames = test_streams::ivf_frames(&vp9.0);
    for (name, codec, stream, sums, fourcc) in [
        (
            "MPEG-2",
            MFX_CODEC_MPEG2,
            &mpeg2.0,
            &mpeg2.1,
            MFX_FOURCC_NV12,
        ),
        (
            "interlaced MPEG-2",
            MFX_CODEC_MPEG2,
            &interlaced.0,
            &interlaced.1,
            MFX_FOURCC_NV12,
        ),
        (
            "10-bit H.265",
            MFX_CODEC_HEVC,
            &hevc10.0,
            &hevc10.1,
            MFX_FOURCC_P010,
        ),
        ("H.264", MFX_CODEC_AVC, &h264.0, &h264.1, MFX_FOURCC_NV12),
        ("MJPEG", MFX_CODEC_JPEG, &mjpeg.0, &mjpeg.1, MFX_FOURCC_NV12),
    ] {
        for piece in [700, 1 << 20] {
            let (frames, log) =
                Client::direct("").decode(&Feed::pieces(codec, stream, piece), Options::default());
            let got: Vec<String> = frames.iter().map(Frame::md5).collect();
            assert_eq!(&got, sums, "{name} in pieces of {piece}: {log:?}");
            assert!(frames.iter().all(|frame| frame.fourcc == fourcc), "{name}");
            assert!(
                frames
                    .iter()
                    .all(|frame| (frame.width, frame.height) == (190, 142)),
                "{name}"
            );
        }
    }
    let (got, _) =
        Client::direct("").decode(&Feed::frames(MFX_CODEC_VP9, frames), Options::default());
    assert_eq!(got.iter().map(Frame::md5).collect::<Vec<_>>(), vp9.1);
}

#[test]
fn a_change_of_the_crop_alone_is_a_warning() {
    // Both are coded as 192x144.
    let first = made(&["-c:v", "libx264", "-bf", "0"], "h264", "nv12");
    let second = made(
        &["-c:v", "libx264", "-bf", "0", "-vf", "crop=180:130"],
        "h264",
        "nv12",
    );
    let both = [first.0.as_slice(), second.0.as_slice()].concat();
    let (frames, log) =
        Client::direct("").decode(&Feed::pieces(MFX_CODEC_AVC, &both, 900), Options::default());
    assert_eq!((log.param_changed, log.reinits), (1, 0), "{log:?}");
    let sums: Vec<String> = frames.iter().map(Frame::md5).collect();
    assert_eq!(sums, [first.1, second.1].concat());
    assert_eq!((frames[0].width, frames[23].width), (190, 180));
}

#[test]
fn a_change_of_size_or_depth_keeps_its_bytes_and_every_picture() {
    let eight = made(
        &["-c:v", "libx265", "-x265-params", "log-level=none"],
        "h265",
        "nv12",
    );
    let ten = made(
        &[
            "-c:v",
            "libx265",
            "-pix_fmt",
            "yuv420p10le",
            "-x265-params",
            "log-level=none",
        ],
        "h265",
        "p010le",
    );
    let large = made(
        &[
            "-c:v",
            "libx265",
            "-vf",
            "scale=320:240",
            "-x265-params",
            "log-level=none",
        ],
        "h265",
        "nv12",
    );
    let all = [eight.0.as_slice(), &ten.0, &large.0].concat();
    for piece in [500, 1 << 20] {
        let feed = Feed::pieces(MFX_CODEC_HEVC, &all, piece);
        let (frames, log) = Client::direct("").decode(&feed, Options::default());
        assert_eq!(log.reinits, 2, "{log:?}");
        let sums: Vec<String> = frames.iter().map(Frame::md5).collect();
        assert_eq!(
            sums,
            [eight.1.clone(), ten.1.clone(), large.1.clone()].concat()
        );
    }
}

#[test]
fn damaged_data_gives_marked_pictures_and_no_error() {
    let stream = named("test-25fps.h264");
    let mut bytes = stream.bytes();
    for at in (20_000..bytes.len()).step_by(3_001) {
        bytes[at] ^= 0x55;
    }
    let (frames, log) = Client::direct("").decode(
        &Feed::pieces(MFX_CODEC_AVC, &bytes, 4096),
        Options::default(),
    );
    assert!(log.errors.is_empty(), "{log:?}");
    assert!(frames.len() > 200, "{} pictures", frames.len());
    let marked = frames.iter().filter(|frame| frame.corrupted != 0).count();
    assert!(
        marked > 5,
        "{marked} of {} pictures are marked",
        frames.len()
    );
}
