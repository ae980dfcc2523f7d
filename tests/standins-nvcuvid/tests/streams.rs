// SPDX-License-Identifier: MPL-2.0

//! Every stream gives its pictures, in order and unharmed, whichever way it is cut into packets.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

mod common;

use common::client::{Client, Options, Player};
use common::clips::{self, Clip};
use common::{live, mistakes, on_standins, overwritten};
use elementary_stream::Codec;
use nvcuvid_sys::*;
use test_streams::{Coding, Expected, all};

fn assert_clean() {
    assert_eq!(mistakes(), 0);
    assert_eq!(overwritten(), 0);
    assert_eq!(live(), (0, 0), "nothing is left");
}

fn assert_listed(client: &Client, expected: &Expected, name: &str) {
    assert_eq!(client.shown.len(), expected.len(), "{name}");
    for (number, shown) in client.shown.iter().enumerate() {
        if expected.covers(shown.size.0 as usize) {
            let picture = shown.pixels.as_ref().expect("it was mapped");
            let sum = expected.checksum(picture);
            assert_eq!(sum, expected.list()[number], "{name} {number}");
        }
    }
}

#[test]
fn every_stream_gives_the_pictures_of_its_list() {
    on_standins(|| {
        for stream in all() {
            let clip = Clip::of(&stream);
            let expected = stream.expected();
            let client = Player::play(&clip, Options::default(), false);
            assert_listed(&client, &expected, stream.name);
            drop(client);
            assert_clean();
        }
    });
}

#[test]
fn packets_of_any_size_and_whole_pictures_give_the_same() {
    on_standins(|| {
        for name in ["test-25fps.h264", "bbb.h265"] {
            let clip = Clip::named(name);
            let whole = Player::play(&clip, Options::default(), true).pictures();
            let bytes = clip.bytes();
            for size in [1, 7, 4096, bytes.len()] {
                // One byte at a time is slow, and shows everything at the beginning.
                let bytes = if size < 100 {
                    &bytes[..20_000]
                } else {
                    &bytes[..]
                };
                let mut player = Player::new(clip.codec, Options::default());
                for data in bytes.chunks(size) {
                    let packet = Packet {
                        data,
                        ..Packet::default()
                    };
                    player.send(&packet).expect("it is parsed");
                }
                player.end();
                let pictures = player.client.pictures();
                if size < 100 {
                    assert!(pictures.len() > 2, "{name} {size}: {}", pictures.len());
                    // The last one is cut off.
                    let sure = pictures.len() - 2;
                    assert!(pictures[..sure] == whole[..sure], "{name} {size}");
                } else {
                    assert!(pictures == whole, "{name} {size}");
                }
            }
        }
        assert_clean();
    });
}

#[test]
fn surfaces_are_just_enough_with_a_display_delay() {
    on_standins(|| {
        // The longest add nothing here.
        for stream in all().iter().filter(|stream| stream.bytes().len() < 500_000) {
            let clip = Clip::of(stream);
            let options = Options {
                max_display_delay: 4,
                extra_surfaces: 0,
                ..Options::default()
            };
            let tight = Player::play(&clip, options, false);
            assert_listed(&tight, &stream.expected(), stream.name);
            drop(tight);
            assert_clean();
        }
    });
}

#[test]
fn a_new_size_is_a_sequence_and_every_picture_of_the_old_one_comes_before() {
    on_standins(|| {
        let mut clip = Clip::named("resolution_change_500frames-vp9.ivf");
        clip.units.truncate(140);
        let anew = Player::play(&clip, Options::default(), false);
        let options = Options {
            largest: Some((1920, 1080)),
            max_display_delay: 4,
            ..Options::default()
        };
        let reconfigured = Player::play(&clip, options, false);
        assert_eq!(anew.shown.len(), 140);
        assert!(anew.pictures() == reconfigured.pictures());
        let pairs = anew.shown.windows(2);
        let changes = pairs.filter(|pair| pair[0].size != pair[1].size).count();
        assert!(changes > 0, "the size changes {changes} times");
        drop((anew, reconfigured));
        assert_clean();
    });
}

#[test]
fn h264_of_another_size_loses_no_picture_with_reordering_and_delay() {
    on_standins(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let part = |size: &str| {
            let how = format!("-f lavfi -i testsrc2=s={size}:r=25:d=1 -c:v libx264 -bf 3");
            let path = clips::make(folder.path(), &how, &format!("{size}.h264"));
            std::fs::read(path).expect("it was made")
        };
        let (small, large) = (part("160x96"), part("320x180"));
        let clip = Clip::byte_stream(Codec::H264, &[&small[..], &large, &small].concat());
        for end_of_picture in [true, false] {
            let options = Options {
                max_display_delay: 4,
                ..Options::default()
            };
            let client = Player::play(&clip, options, end_of_picture);
            let sizes: Vec<u32> = client.shown.iter().map(|shown| shown.size.0).collect();
            let expected = [[160; 25], [320; 25], [160; 25]].concat();
            assert_eq!(sizes, expected);
            let pictures = client.pictures();
            assert!(
                pictures[..25] == pictures[50..],
                "the same part gives the same"
            );
        }
        assert_clean();
    });
}

#[test]
fn sessions_at_once_do_not_disturb_each_other() {
    on_standins(|| {
        let names = [
            "test-25fps.vp8",
            "test-25fps.vp9",
            "bbb.h265",
            "64x64-I-P-B-P.h264",
        ];
        std::thread::scope(|scope| {
            for name in names.iter().chain(&names) {
                scope.spawn(move || {
                    let stream = test_streams::named(name);
                    let client = Player::play(&Clip::of(&stream), Options::default(), false);
                    assert_listed(&client, &stream.expected(), name);
                });
            }
        });
        assert_clean();
    });
}

/// A clip that ffmpeg makes, and its pictures decoded in software.
fn compare(arguments: &str, file: &str, codec: cudaVideoCodec, format: &str, size: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = clips::make(folder.path(), arguments, file);
    let expected = clips::in_software(&path, format, size);
    let bytes = || std::fs::read(&path).expect("the file was made");
    let clip = match codec {
        cudaVideoCodec_H264 => Clip::byte_stream(Codec::H264, &bytes()),
        cudaVideoCodec_HEVC => Clip::byte_stream(Codec::H265, &bytes()),
        cudaVideoCodec_MPEG2 => Clip::byte_stream(Codec::Mpeg2, &bytes()),
        _ => clips::ivf(codec, &path),
    };
    let client = Player::play(&clip, Options::default(), false);
    assert_eq!(client.shown.len(), expected.len(), "{file}");
    for (number, picture) in client.pictures().iter().enumerate() {
        assert!(
            *picture == expected[number],
            "{file}: picture {number} differs"
        );
    }
    drop(client);
    assert_clean();
}

const SOURCE: &str = "-f lavfi -i testsrc2=s=320x180:r=25:d=1";
const SIZE: usize = 320 * 180 * 3 / 2;

#[test]
fn ten_bit_h265_comes_as_p016() {
    on_standins(|| {
        let how = format!("{SOURCE} -pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=none");
        compare(&how, "deep.h265", cudaVideoCodec_HEVC, "p010le", 2 * SIZE);
    });
}

#[test]
fn mpeg2_with_b_pictures_and_interlaced() {
    on_standins(|| {
        // A size that is no multiple of a block: what is coded is larger than what is shown.
        let small = "-f lavfi -i testsrc2=s=190x142:r=25:d=1 -c:v mpeg2video -bf 2";
        compare(
            small,
            "b.m2v",
            cudaVideoCodec_MPEG2,
            "nv12",
            190 * 142 * 3 / 2,
        );
        let interlaced = format!("{SOURCE} -c:v mpeg2video -bf 2 -flags +ildct+ilme");
        compare(&interlaced, "i.m2v", cudaVideoCodec_MPEG2, "nv12", SIZE);
    });
}

#[test]
fn h264_with_frames_of_two_fields() {
    on_standins(|| {
        let how = format!("{SOURCE} -c:v libx264 -x264-params interlaced=1");
        compare(&how, "i.h264", cudaVideoCodec_H264, "nv12", SIZE);
    });
}

#[test]
fn vp9_and_av1_with_hidden_frames_and_film_grain() {
    on_standins(|| {
        let vp9 = "-f lavfi -i testsrc2=s=320x180:r=25:d=2 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 \
                   -auto-alt-ref 1 -lag-in-frames 16 -b:v 300k";
        compare(vp9, "hidden.ivf", cudaVideoCodec_VP9, "nv12", SIZE);
        let av1 = format!("{SOURCE} -c:v libsvtav1 -preset 12 -svtav1-params film-grain=20");
        compare(&av1, "grain.ivf", cudaVideoCodec_AV1, "nv12", SIZE);
    });
}

#[test]
fn the_streams_have_every_codec_that_is_promised() {
    let has = |coding| all().iter().any(|stream| stream.coding == coding);
    for coding in [
        Coding::H264,
        Coding::H265,
        Coding::Vp8,
        Coding::Vp9,
        Coding::Av1,
    ] {
        assert!(has(coding), "{coding:?}");
    }
}
