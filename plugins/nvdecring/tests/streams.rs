// SPDX-License-Identifier: MPL-2.0

//! Real and generated streams through the element on the stand-ins: every picture is the one that software
//! decodes, at its time.

mod common;

use common::{Bench, Out, equal, software};
use standin_world::streams::{h264, h265_main10, join, mpeg2, vp9_hidden};
use standin_world::{assert_nothing_is_left, in_child};
use test_streams::all;

#[test]
fn the_package_of_streams_comes_out_as_its_lists_say() {
    in_child(|| {
        for stream in all() {
            let out = Bench::file(&stream.path, "", "").run();
            assert!(out.eos, "{}: {:?}", stream.name, out.errors);
            let expected = stream.expected();
            assert_eq!(out.pictures.len(), expected.len(), "{}", stream.name);
            for (at, (picture, wanted)) in out.pictures.iter().zip(expected.list()).enumerate() {
                if expected.covers(picture.width as usize) {
                    let got = expected.checksum(&picture.samples);
                    assert_eq!(got, *wanted, "{}: picture {at}", stream.name);
                }
            }
            assert!(
                out.pictures.iter().all(|picture| !picture.corrupted),
                "{}",
                stream.name
            );
            out.account_is_whole();
        }
        assert_nothing_is_left();
    });
}

#[test]
fn pictures_keep_their_times_whatever_the_order_of_decoding() {
    in_child(|| {
        let b_frames = h264("160x96", 60, "bframes=3:b-adapt=0:keyint=250");
        let theirs = software(&b_frames.path(), "avdec_h264", "NV12");
        for properties in [
            "",
            "ring-depth=1",
            "max-display-delay=4 ring-depth=16",
            "num-output-surfaces=1",
        ] {
            let ours = Bench::file(&b_frames.path(), properties, "").run();
            equal(properties, &ours, &theirs);
            let times: Vec<_> = ours.pictures.iter().map(|out| out.pts).collect();
            assert!(times.is_sorted(), "{times:?}");
        }
        assert_nothing_is_left();
    });
}

#[test]
fn generated_streams_equal_software() {
    in_child(|| {
        let long = h264("176x144", 100, "keyint=infinite:bframes=2:ref=4");
        let theirs = software(&long.path(), "avdec_h264", "NV12");
        equal(
            "long group",
            &Bench::file(&long.path(), "", "").run(),
            &theirs,
        );

        let deep = h265_main10("160x96", 30);
        let ours = Bench::file(&deep.path(), "", "").run();
        assert_eq!(ours.sums(), deep.expected("p010le"), "10 bit");
        assert!(
            ours.caps[0].to_string().contains("P010_10LE"),
            "{:?}",
            ours.caps
        );

        let fields = mpeg2("176x144", 40, &[]);
        let theirs = software(&fields.path(), "avdec_mpeg2video", "NV12");
        equal(
            "MPEG-2",
            &Bench::file(&fields.path(), "", "").run(),
            &theirs,
        );

        let hidden = vp9_hidden("160x96", 50);
        let ours = Bench::file(&hidden.path(), "", "").run();
        assert_eq!(ours.sums(), hidden.expected("nv12"));
        assert_nothing_is_left();
    });
}

#[test]
fn fields_are_marked() {
    in_child(|| {
        let made = h264("176x144", 30, "tff=1:bframes=2");
        let ours = Bench::file(&made.path(), "", "").run();
        let theirs = software(&made.path(), "avdec_h264", "NV12");
        equal("interlaced", &ours, &theirs);
        let caps = ours.caps[0].to_string();
        assert!(
            caps.contains("interlace-mode=(string)mixed") || caps.contains("interleaved"),
            "{caps}"
        );
        let fields = gst_video::VideoBufferFlags::INTERLACED | gst_video::VideoBufferFlags::TFF;
        let marks = |out: &Out| out.flags & fields;
        let (ours, theirs): (Vec<_>, Vec<_>) = (
            ours.pictures.iter().map(marks).collect(),
            theirs.pictures.iter().map(marks).collect(),
        );
        assert_eq!(ours, theirs);
        assert!(
            ours.iter()
                .all(|flags| flags.contains(gst_video::VideoBufferFlags::INTERLACED))
        );

        // The other order of fields.
        let made = mpeg2("176x144", 10, &["-flags", "+ildct+ilme", "-top", "1"]);
        let ours = Bench::file(&made.path(), "", "").run();
        assert_eq!(ours.sums(), made.expected("nv12"));
        assert!(
            ours.pictures.iter().all(|out| out.flags.contains(fields)),
            "{:?}",
            ours.pictures[0].flags
        );
        let progressive = h264("176x144", 10, "bframes=0");
        let ours = Bench::file(&progressive.path(), "", "").run();
        assert!(
            ours.caps[0].to_string().contains("progressive"),
            "{:?}",
            ours.caps
        );
        assert!(ours.pictures.iter().all(|out| out.flags.is_empty()));
        assert_nothing_is_left();
    });
}

#[test]
fn a_change_of_resolution_loses_nothing() {
    in_child(|| {
        let small = h264("160x96", 30, "bframes=2");
        let large = h264("322x182", 30, "bframes=2");
        let joined = join(&[&small, &large, &small]);
        let out = Bench::file(&joined.path(), "", "").run();
        assert!(out.eos, "{:?}", out.errors);
        assert_eq!(out.pictures.len(), 90, "{:?}", out.stats);
        let expected = [
            small.expected("nv12"),
            large.expected("nv12"),
            small.expected("nv12"),
        ]
        .concat();
        assert_eq!(out.sums(), expected);
        let sizes: Vec<_> = out
            .caps
            .iter()
            .map(|caps| caps.structure(0).and_then(|s| s.get::<i32>("width").ok()))
            .collect();
        assert_eq!(sizes, [Some(160), Some(322), Some(160)]);
        assert_eq!((out.stat("decoders"), out.stat("reconfigured")), (2, 1));
        assert_nothing_is_left();
    });
}

#[test]
fn broken_and_empty_streams_end() {
    in_child(|| {
        let folder = std::env::temp_dir();
        let whole = test_streams::named("test-25fps.h264").bytes();
        let mut flipped = whole.clone();
        for at in (2000..flipped.len()).step_by(997) {
            flipped[at] ^= 0x55;
        }
        for (name, bytes) in [
            ("flipped", flipped),
            ("cut", whole[..whole.len() / 3].to_vec()),
            ("headless", whole[whole.len() / 2..].to_vec()),
        ] {
            let path = folder.join(format!("nvdecring-{}-{name}.h264", std::process::id()));
            std::fs::write(&path, bytes).expect("a file");
            let out = Bench::file(&path, "", "").run();
            std::fs::remove_file(&path).expect("it is there");
            // h264parse itself may end a stream without a header with an error.
            assert!(out.eos || name == "headless", "{name}: {:?}", out.errors);
            assert!(!out.pictures.is_empty(), "{name}");
            out.account_is_whole();
        }
        assert_nothing_is_left();
    });
}
