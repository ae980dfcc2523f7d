// SPDX-License-Identifier: MPL-2.0

//! Real and generated streams on the stand-in: every picture is the one that software decodes, in its order.

mod common;

use common::{Options, decode, file, sums};
use nvdecring_gpu::InputFile;
use standin_world::streams::{h264, h265_main10, join, mpeg2, vp9_hidden};
use standin_world::{assert_nothing_is_left, in_child};
use test_streams::{Coding, all};

#[track_caller]
fn equals(name: &str, got: &[String], expected: &[String]) {
    assert!(!expected.is_empty(), "{name}: something is expected");
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got, expected, "{name}: picture {at}");
    }
    assert_eq!(got.len(), expected.len(), "{name}: pictures");
}

/// Decodes and compares with what FFmpeg's software decoders make of it.
#[track_caller]
fn as_software(name: &str, made: &standin_world::Made, pixels: &str, options: &Options) {
    let decoded = decode(&file(&made.bytes()), options);
    assert_eq!(decoded.error, None, "{name}");
    equals(name, &sums(&decoded.told), &made.expected(pixels));
}

#[test]
fn the_package_of_streams_comes_out_as_its_lists_say() {
    in_child(|| {
        for stream in all() {
            let options = Options::default();
            let decoded = decode(&file(&stream.bytes()), &options);
            let expected = stream.expected();
            assert_eq!(decoded.error, None, "{}", stream.name);
            assert_eq!(
                decoded.told.pictures.len(),
                expected.len(),
                "{}",
                stream.name
            );
            for (at, (out, wanted)) in decoded
                .told
                .pictures
                .iter()
                .zip(expected.list())
                .enumerate()
            {
                if expected.covers(out.width) {
                    let got = expected.checksum(&out.samples);
                    assert_eq!(got, *wanted, "{}: picture {at}", stream.name);
                }
            }
            if stream.name.starts_with("resolution_change") {
                let changes = decoded.stats.decoders + decoded.stats.reconfigured;
                assert!(changes > 3, "{}: {:?}", stream.name, decoded.stats);
            }
        }
        assert_nothing_is_left();
    });
}

#[test]
fn reordered_pictures_go_on_their_own_packets() {
    in_child(|| {
        let made = h264("160x96", 90, "bframes=3:b-adapt=0:keyint=250");
        let input = file(&made.bytes());
        for (depth, delay, surfaces) in [(8, 0, 2), (1, 0, 1), (2, 4, 2), (16, 2, 2)] {
            let options = Options {
                ring_depth: depth,
                delay,
                output_surfaces: surfaces,
                ..Options::default()
            };
            let decoded = decode(&input, &options);
            equals("B-frames", &sums(&decoded.told), &made.expected("nv12"));
            // The first B-frame of a group of three comes behind the P-frame that follows it.
            let tokens: Vec<u64> = decoded.told.pictures.iter().map(|out| out.token).collect();
            let mut sorted = tokens.clone();
            sorted.sort_unstable();
            assert_ne!(tokens, sorted, "the stream reorders");
            assert_eq!(
                sorted,
                (0..90).collect::<Vec<_>>(),
                "each packet has its picture"
            );
        }
        assert_nothing_is_left();
    });
}

#[test]
fn long_groups_ten_bits_mpeg2_and_fields() {
    in_child(|| {
        let options = Options::default();
        let long = h264("176x144", 150, "keyint=infinite:bframes=2:ref=4");
        as_software("long group", &long, "nv12", &options);

        let deep = h265_main10("160x96", 40);
        as_software("10 bit", &deep, "p010le", &options);

        let plain = mpeg2("176x144", 50, &[]);
        as_software("MPEG-2", &plain, "nv12", &options);

        let fields = mpeg2("176x144", 30, &["-flags", "+ildct+ilme", "-top", "1"]);
        as_software("interlaced MPEG-2", &fields, "nv12", &options);

        let mbaff = h264("176x144", 50, "tff=1:bframes=2");
        as_software("interlaced H.264", &mbaff, "nv12", &options);
        assert_nothing_is_left();
    });
}

#[test]
fn odd_sizes_are_cropped_and_not_scaled() {
    in_child(|| {
        for size in ["162x98", "130x66", "318x178"] {
            let made = h264(size, 10, "bframes=0");
            as_software(size, &made, "nv12", &Options::default());
        }
        assert_nothing_is_left();
    });
}

#[test]
fn a_change_of_resolution_loses_nothing() {
    in_child(|| {
        let small = h264("160x96", 30, "bframes=2");
        let large = h264("320x180", 30, "bframes=2");
        let parts = [&small, &large, &small];
        let joined = join(&parts);
        let decoded = decode(&file(&joined.bytes()), &Options::default());
        assert_eq!(decoded.error, None);
        assert_eq!(decoded.told.pictures.len(), 90);
        let expected: Vec<String> = parts
            .iter()
            .flat_map(|part| part.expected("nv12"))
            .collect();
        equals("resolution", &sums(&decoded.told), &expected);
        assert_eq!(
            decoded.stats.reconfigured, 1,
            "back to the small size: {:?}",
            decoded.stats
        );
        assert_eq!(
            decoded.stats.decoders, 2,
            "one for each size that was the largest"
        );

        // More reference pictures at the same size are a change too.
        let more = h264("160x96", 30, "bframes=0:ref=12:keyint=60");
        let few = h264("160x96", 30, "bframes=0:ref=1:keyint=60");
        let joined = join(&[&few, &more]);
        let decoded = decode(&file(&joined.bytes()), &Options::default());
        let expected = [few.expected("nv12"), more.expected("nv12")].concat();
        equals("references", &sums(&decoded.told), &expected);
        assert_nothing_is_left();
    });
}

#[test]
fn hidden_frames_are_no_pictures() {
    in_child(|| {
        let made = vp9_hidden("160x96", 60);
        as_software(
            "alternate reference frames",
            &made,
            "nv12",
            &Options::default(),
        );

        // The same frames one a packet: those that are hidden show nothing.
        let stream = test_streams::named("vp90-2-10-show-existing-frame.vp9.ivf");
        let decoded = decode(&file(&stream.bytes()), &Options::default());
        assert_eq!(decoded.told.pictures.len(), stream.expected().len());
        assert_nothing_is_left();
    });
}

#[test]
fn broken_streams_end_and_account_for_every_packet() {
    in_child(|| {
        let whole = test_streams::named("test-25fps.h264").bytes();
        let mut flipped = whole.clone();
        for at in (2000..flipped.len()).step_by(997) {
            flipped[at] ^= 0x55;
        }
        let cut = whole[..whole.len() / 3].to_vec();
        for (name, bytes) in [("bit-flipped", flipped), ("truncated", cut)] {
            let decoded = decode(&file(&bytes), &Options::default());
            assert_eq!(decoded.error, None, "{name}");
            assert!(!decoded.told.pictures.is_empty(), "{name}");
        }
        // A stream that begins in the middle of a group has pictures from its first header on.
        let mut headless = file(&whole);
        headless.packets.remove(0);
        let decoded = decode(&headless, &Options::default());
        assert_eq!(decoded.error, None);
        // Nothing at all, and packets of nothing.
        let empty = InputFile {
            codec: headless.codec,
            packets: vec![vec![0; 100], vec![1, 2, 3]],
        };
        let decoded = decode(&empty, &Options::default());
        assert_eq!((decoded.error, decoded.stats.dropped), (None, 2));
        assert_nothing_is_left();
    });
}

#[test]
fn the_package_holds_every_codec_but_mpeg2() {
    for coding in [
        Coding::H264,
        Coding::H265,
        Coding::Vp8,
        Coding::Vp9,
        Coding::Av1,
    ] {
        assert!(
            all().iter().any(|stream| stream.coding == coding),
            "{coding:?}"
        );
    }
}
