// SPDX-License-Identifier: MPL-2.0

//! Real streams through parsers and demuxers: every frame has its checksum, as the package lists it and as
//! libavcodec decodes it.

mod common;

use common::{Played, decode, in_child, source, through};
use gst::prelude::*;
use test_streams::{Coding, Stream, all, named};

/// Frame by frame against the package's list.
#[track_caller]
fn assert_listed(stream: &Stream, played: &Played) {
    let name = stream.name;
    assert!(played.errors.is_empty(), "{name}: {:?}", played.errors);
    let expected = stream.expected();
    assert_eq!(played.frames.len(), expected.len(), "{name}");
    for (number, (frame, wanted)) in played.frames.iter().zip(expected.list()).enumerate() {
        if expected.covers(frame.width as usize) {
            let sum = expected.checksum(&frame.pixels);
            assert_eq!(&sum, wanted, "{name}: frame {number}");
        }
    }
}

fn anchor(stream: &Stream) -> &'static str {
    match stream.coding {
        Coding::H264 => "avdec_h264",
        Coding::H265 => "avdec_h265",
        Coding::Vp8 => "avdec_vp8",
        // libavcodec's wrapper gives two frames of show-existing-frame the time of one.
        Coding::Vp9 => "vp9dec",
        Coding::Av1 => "av1dec",
    }
}

/// Frames of the anchor, in NV12 and of their own size.
fn by_anchor(stream: &Stream) -> Played {
    let source = source(stream);
    let anchor = anchor(stream);
    decode(&format!(
        "{source} ! {anchor} ! videoconvert ! video/x-raw,format=NV12"
    ))
}

#[test]
fn every_stream_has_its_checksums() {
    in_child("every_stream_has_its_checksums", || {
        for stream in all() {
            let played = through(&stream, "");
            assert_listed(&stream, &played);
            played.assert_clean();
            let api = played
                .stats
                .as_ref()
                .and_then(|stats| stats.get::<String>("api").ok());
            assert_eq!(api.as_deref(), Some("2.8"));
            println!("{}: {:?}", stream.name, played.stats);
            common::assert_no_surfaces();
        }
    });
}

#[test]
fn frames_and_times_are_those_of_other_decoders() {
    in_child("frames_and_times_are_those_of_other_decoders", || {
        for stream in all() {
            let (ours, theirs) = (through(&stream, ""), by_anchor(&stream));
            assert_eq!(ours.frames.len(), theirs.frames.len(), "{}", stream.name);
            for (number, (ours, theirs)) in ours.frames.iter().zip(&theirs.frames).enumerate() {
                let name = stream.name;
                assert!(ours.pixels == theirs.pixels, "{name}: frame {number}");
                assert_eq!(
                    (ours.pts, ours.dts, ours.duration),
                    (theirs.pts, theirs.dts, theirs.duration),
                    "{name}: frame {number}"
                );
            }
        }
    });
}

#[test]
fn depth_and_low_latency_and_wrapping_change_no_frame() {
    in_child("depth_and_low_latency_and_wrapping_change_no_frame", || {
        const PROPERTIES: [&str; 5] = [
            "async-depth=1",
            "zero-copy=true surface-limit=40 low-latency=true async-depth=2",
            "async-depth=16",
            "low-latency=true",
            "zero-copy=true",
        ];
        for (name, count) in [
            ("test-25fps.h264", 5),
            ("test-25fps-interlaced.h264", 4),
            ("bear.h265", 5),
            ("test-25fps.vp9", 2),
            ("resolution_change_500frames-vp9.ivf", 2),
        ] {
            let stream = named(name);
            for properties in &PROPERTIES[..count] {
                let played = through(&stream, properties);
                assert_listed(&stream, &played);
                played.assert_clean();
            }
            common::assert_no_surfaces();
        }
    });
}

/// Containers: the elements that take them apart, with what the demuxer gives and with a parser behind it.
const CONTAINERS: [(&str, &[&str]); 3] = [
    ("mp4", &["qtdemux", "qtdemux ! PARSE"]),
    ("mkv", &["matroskademux", "matroskademux ! PARSE"]),
    ("ts", &["tsdemux ! PARSE"]),
];

#[test]
fn containers_give_the_frames_and_times_of_libavcodec() {
    in_child("containers_give_the_frames_and_times_of_libavcodec", || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (encoder, codec) in [("libx264", "h264"), ("libx265", "h265")] {
            for (container, ways) in CONTAINERS {
                let file = folder.path().join(format!("{codec}.{container}"));
                common::encode(encoder, &["-bf", "3", "-g", "24"], 48, &file);
                for way in ways {
                    let way = way.replace("PARSE", &format!("{codec}parse"));
                    let source = format!("filesrc location={} ! {way}", file.display());
                    let ours = decode(&format!(
                        "{source} ! vplretrydec name=dec implementation=software"
                    ));
                    ours.assert_clean();
                    let theirs = decode(&format!(
                        "{source} ! avdec_{codec} ! videoconvert ! video/x-raw,format=NV12"
                    ));
                    assert_eq!(ours.frames.len(), 48, "{source}");
                    for (number, (ours, theirs)) in
                        ours.frames.iter().zip(&theirs.frames).enumerate()
                    {
                        assert!(ours.pixels == theirs.pixels, "{source}: frame {number}");
                        assert_eq!(ours.pts, theirs.pts, "{source}: frame {number}");
                        assert_eq!(ours.dts, theirs.dts, "{source}: frame {number}");
                        assert_eq!(ours.duration, theirs.duration, "{source}: frame {number}");
                    }
                    let times: Vec<_> = ours.frames.iter().map(|frame| frame.pts).collect();
                    assert!(
                        times.is_sorted() && times[0].is_some(),
                        "{source}: {times:?}"
                    );
                }
            }
        }
    });
}

#[test]
fn decodebin_takes_it_where_its_rank_is_raised() {
    in_child("decodebin_takes_it_where_its_rank_is_raised", || {
        let factory = gst::ElementFactory::find("vplretrydec").expect("it is registered");
        assert_eq!(factory.rank(), gst::Rank::NONE);
        factory.set_rank(gst::Rank::PRIMARY + 512);
        for name in [
            "test-25fps.h264",
            "bear.h265",
            "test-25fps.vp8",
            "test-25fps.vp9",
        ] {
            let stream = named(name);
            let played = decode(&format!(
                "filesrc location={} ! decodebin ! video/x-raw,format=NV12",
                stream.path.display()
            ));
            assert_listed(&stream, &played);
            let ours = |info: &String| info.contains("vplsoft");
            assert!(played.infos.iter().any(ours), "{:?}", played.infos);
        }
    });
}

#[test]
fn mpeg_2_and_jpeg_are_decoded() {
    in_child("mpeg_2_and_jpeg_are_decoded", || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (encoder, options, name, way, anchor) in [
            (
                "mpeg2video",
                &["-bf", "2", "-g", "12", "-q:v", "3"][..],
                "film.vob",
                "mpegpsdemux ! mpegvideoparse",
                "avdec_mpeg2video",
            ),
            (
                "mpeg2video",
                &["-bf", "0", "-g", "12", "-q:v", "3"],
                "film.mkv",
                "matroskademux ! mpegvideoparse",
                "avdec_mpeg2video",
            ),
            (
                "mjpeg",
                &["-pix_fmt", "yuvj420p", "-q:v", "3"],
                "film.avi",
                "avidemux ! jpegparse",
                "avdec_mjpeg",
            ),
        ] {
            let file = folder.path().join(name);
            common::encode(encoder, options, 30, &file);
            let source = format!("filesrc location={} ! {way}", file.display());
            let ours = decode(&format!(
                "{source} ! vplretrydec name=dec implementation=software ! video/x-raw,format=I420"
            ));
            ours.assert_clean();
            assert_eq!(ours.frames.len(), 30, "{name}");
            let theirs = decode(&format!("{source} ! {anchor}"));
            for (number, (ours, theirs)) in ours.frames.iter().zip(&theirs.frames).enumerate() {
                assert!(ours.pixels == theirs.pixels, "{name}: frame {number}");
                assert_eq!(ours.pts, theirs.pts, "{name}: frame {number}");
            }
        }
    });
}

#[test]
fn a_stream_goes_on_over_new_caps() {
    in_child("a_stream_goes_on_over_new_caps", || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let files = ["one.mp4", "two.mp4"].map(|name| folder.path().join(name));
        common::encode("libx264", &["-bf", "2"], 10, &files[0]);
        common::encode("libx264", &["-bf", "2", "-s", "176x144"], 10, &files[1]);
        // Other parameter sets in other caps, one stream behind the other; then the same again.
        let parts = [&files[0], &files[1], &files[1], &files[0]].map(|file| {
            let pipeline =
                common::Player::new(&format!("filesrc location={} ! qtdemux", file.display()));
            pipeline.play();
            let samples = std::iter::from_fn(|| pipeline.sink.pull_sample().ok());
            samples.collect::<Vec<gst::Sample>>()
        });
        let player = common::Player::new(
            "appsrc name=src format=time ! vplretrydec name=dec implementation=software",
        );
        let source = player.pipeline.by_name("src").expect("it is there");
        let source = source.downcast::<gst_app::AppSrc>().expect("an appsrc");
        for (number, part) in parts.iter().enumerate() {
            for sample in part {
                let mut buffer = sample.buffer_owned().expect("a buffer");
                let later = gst::ClockTime::from_seconds(number as u64);
                let inner = buffer.make_mut();
                inner.set_pts(inner.pts().map(|pts| pts + later));
                inner.set_dts(inner.dts().map(|dts| dts + later));
                let sample = gst::Sample::builder()
                    .buffer(&buffer)
                    .caps(&sample.caps_owned().expect("caps"))
                    .build();
                source.push_sample(&sample).expect("it is taken");
            }
        }
        source.end_of_stream().expect("it is taken");
        let played = player.run();
        played.assert_clean();
        let widths: Vec<u32> = played.frames.iter().map(|frame| frame.width).collect();
        assert_eq!(
            widths,
            [[320; 10], [176; 10], [176; 10], [320; 10]].concat()
        );
        for (a, b) in [(0, 30), (10, 20)] {
            for number in 0..10 {
                let frames = &played.frames;
                assert!(frames[a + number].pixels == frames[b + number].pixels);
            }
        }

        // Caps that say nothing of the bitstream change: no frame is lost in the middle of a group.
        let stream = named("test-25fps.h264");
        common::init();
        let player = common::Player::new(&format!(
            "{} ! capssetter name=caps caps=video/x-h264,framerate=25/1 ! vplretrydec name=dec implementation=software",
            common::source(&stream)
        ));
        let setter = player.pipeline.by_name("caps").expect("it is there");
        let pad = player.decoder().static_pad("sink").expect("a sink pad");
        let count = std::sync::atomic::AtomicU32::new(0);
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if number % 30 == 17 {
                let caps = format!("video/x-h264,framerate={}/1", 26 + number);
                setter.set_property("caps", caps.parse::<gst::Caps>().expect("caps"));
            }
            gst::PadProbeReturn::Ok
        });
        let played = player.run();
        played.assert_clean();
        assert_listed(&stream, &played);
        let rates: std::collections::BTreeSet<String> = played
            .frames
            .iter()
            .map(|frame| frame.caps.to_string())
            .collect();
        assert!(rates.len() > 3, "{rates:?}");
    });
}
