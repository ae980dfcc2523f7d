// SPDX-License-Identifier: MPL-2.0

//! What is asked of the element and what it says: properties, caps, formats, latency, missing runtimes.

mod common;

use common::{Child, Player, decode, in_child, in_child_with, source, through};
use gst::prelude::*;
use test_streams::named;

fn element() -> gst::Element {
    gst::ElementFactory::make("vplretrydec")
        .build()
        .expect("an element")
}

#[test]
fn properties_have_their_names_ranges_and_defaults() {
    common::init();
    let element = element();
    let numbers = [
        ("async-depth", 0, 0, 16),
        ("retry-interval", 1000, 1, 1_000_000),
        ("max-attempts", 60_000, 1, u32::MAX),
        ("retry-timeout", 60_000, 0, 3_600_000),
        ("sync-timeout", 60_000, 1, 3_600_000),
        ("device-retries", 3, 0, 1000),
        ("surface-limit", 0, 0, 1024),
    ];
    for (name, default, least, most) in numbers {
        let spec = element.find_property(name).expect(name);
        let spec = spec.downcast::<gst::glib::ParamSpecUInt>().expect(name);
        assert_eq!((spec.minimum(), spec.maximum()), (least, most), "{name}");
        assert_eq!(element.property::<u32>(name), default, "{name}");
        element.set_property(name, most);
        assert_eq!(element.property::<u32>(name), most, "{name}");
    }
    for name in ["allow-cwd-runtime", "low-latency", "zero-copy"] {
        assert!(!element.property::<bool>(name), "{name}");
        element.set_property(name, true);
        assert!(element.property::<bool>(name), "{name}");
    }
    for name in ["runtime-path", "render-device"] {
        assert_eq!(element.property::<Option<String>>(name), None, "{name}");
        element.set_property(name, "/a/path");
        assert_eq!(
            element.property::<Option<String>>(name).as_deref(),
            Some("/a/path")
        );
    }
    for (name, values) in [
        ("implementation", ["auto", "hardware", "software"]),
        ("corrupted-frames", ["mark", "drop", "error"]),
    ] {
        let nick = |element: &gst::Element| {
            let value = element.property_value(name);
            let (_, value) = gst::glib::EnumValue::from_value(&value).expect("an enum");
            value.nick().to_owned()
        };
        assert_eq!(nick(&element), values[0]);
        for value in values {
            element.set_property_from_str(name, value);
            assert_eq!(nick(&element), value);
        }
    }
    let stats = element.property::<gst::Structure>("stats");
    for name in [
        "frames",
        "attempts",
        "busy",
        "starved",
        "reinits",
        "recoveries",
        "corrupted",
        "max-attempts-per-frame",
        "unmatched",
    ] {
        assert_eq!(stats.get(name), Ok(0_u64), "{name}");
    }
    assert_eq!(stats.get("busy-time"), Ok(0_u32));
    assert_eq!(
        element.property::<Option<String>>("implementation-name"),
        None
    );
    for spec in element.list_properties().iter() {
        if spec.owner_type() == element.type_() {
            assert!(
                spec.blurb().is_some_and(|blurb| blurb.len() > 10),
                "{spec:?}"
            );
        }
    }
}

#[test]
fn downstream_chooses_between_planar_and_semi_planar() {
    in_child("downstream_chooses_between_planar_and_semi_planar", || {
        let stream = named("test-25fps.h264");
        let expected = decode(&format!(
            "{} ! avdec_h264 ! video/x-raw,format=I420",
            source(&stream)
        ));
        for (filter, format) in [("format=I420", "I420"), ("format={YV12,I420}", "I420")] {
            let played = decode(&format!(
                "{} ! vplretrydec name=dec implementation=software ! video/x-raw,{filter}",
                source(&stream)
            ));
            assert_eq!(played.frames.len(), 250);
            let caps = played.frames[0].caps.structure(0).expect("caps");
            assert_eq!(caps.get("format"), Ok(format));
            for (ours, theirs) in played.frames.iter().zip(&expected.frames) {
                assert!(ours.pixels == theirs.pixels);
            }
        }
        let played = decode(&format!(
            "{} ! vplretrydec name=dec implementation=software ! video/x-raw,format=YUY2",
            source(&stream)
        ));
        let error = played.error();
        assert!(error.message().contains("videoconvert"), "{error}");
    });
}

#[test]
fn ten_bits_are_p010_and_planar_where_asked() {
    in_child("ten_bits_are_p010_and_planar_where_asked", || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("ten.mkv");
        common::encode("libx265", &["-pix_fmt", "yuv420p10le"], 12, &file);
        let source = format!("filesrc location={} ! matroskademux", file.display());
        let theirs = decode(&format!("{source} ! avdec_h265"));
        let [planar, semi_planar] = ["I420_10LE", "P010_10LE"].map(|format| {
            let played = decode(&format!(
                "{source} ! vplretrydec name=dec implementation=software ! video/x-raw,format={format}"
            ));
            played.assert_clean();
            assert_eq!(played.frames.len(), 12);
            played
        });
        let words = |bytes: &[u8]| -> Vec<u16> {
            let pairs = bytes.chunks_exact(2);
            pairs
                .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
                .collect()
        };
        for ((planar, semi_planar), theirs) in planar
            .frames
            .iter()
            .zip(&semi_planar.frames)
            .zip(&theirs.frames)
        {
            assert!(planar.pixels == theirs.pixels);
            let (planar, semi_planar) = (words(&planar.pixels), words(&semi_planar.pixels));
            let luma = planar.len() * 2 / 3;
            let chroma = planar[luma..].split_at(luma / 4);
            let pairs = chroma.0.iter().zip(chroma.1).flat_map(|(u, v)| [u, v]);
            let expected = planar[..luma].iter().chain(pairs).map(|word| word << 6);
            assert!(expected.eq(semi_planar));
        }
    });
}

#[test]
fn depth_and_size_change_in_the_stream_without_a_loss() {
    in_child("depth_and_size_change_in_the_stream_without_a_loss", || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (a, b, joined) = (
            folder.path().join("a.h265"),
            folder.path().join("b.h265"),
            folder.path().join("joined.h265"),
        );
        common::encode("libx265", &["-bf", "3"], 12, &a);
        common::encode(
            "libx265",
            &["-bf", "3", "-pix_fmt", "yuv420p10le", "-s", "200x120"],
            12,
            &b,
        );
        let parts = [&a, &b, &a].map(|file| std::fs::read(file).expect("a stream"));
        std::fs::write(&joined, parts.concat()).expect("a file is written");
        for depth in [1, 4] {
            let played = decode(&format!(
                "filesrc location={} ! h265parse ! vplretrydec name=dec implementation=software async-depth={depth}",
                joined.display()
            ));
            played.assert_clean();
            assert_eq!(played.frames.len(), 36);
            let sizes: Vec<u32> = played.frames.iter().map(|frame| frame.width).collect();
            assert_eq!(sizes, [[320; 12], [200; 12], [320; 12]].concat());
            assert!(
                played.frames[..12]
                    .iter()
                    .zip(&played.frames[24..])
                    .all(|(a, b)| a.pixels == b.pixels)
            );
        }
    });
}

#[test]
fn fields_crop_and_shape_come_out() {
    in_child("fields_crop_and_shape_come_out", || {
        let played = through(&named("test-25fps-interlaced.h264"), "");
        let caps = played.frames[0].caps.structure(0).expect("caps");
        let mode = caps.get::<&str>("interlace-mode").expect("a mode");
        assert!(["mixed", "interleaved"].contains(&mode), "{mode}");
        let interlaced = gst_video::VideoBufferFlags::INTERLACED;
        assert!(
            played
                .frames
                .iter()
                .any(|frame| frame.fields.contains(interlaced))
        );

        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("shape.mkv");
        // 190 and 142 are no multiples of 16.
        let options = [
            "-vf",
            // Newer versions take the colours from the frames.
            "scale=190:142,setsar=4/3,setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc",
            "-color_primaries",
            "bt2020",
            "-color_trc",
            "smpte2084",
            "-colorspace",
            "bt2020nc",
        ];
        common::encode("libx264", &options, 6, &file);
        let played = decode(&format!(
            "filesrc location={} ! matroskademux ! h264parse ! vplretrydec name=dec implementation=software",
            file.display()
        ));
        let frame = &played.frames[0];
        assert_eq!((frame.width, frame.height), (190, 142));
        let caps = frame.caps.structure(0).expect("caps");
        assert_eq!(caps.get("pixel-aspect-ratio"), Ok(gst::Fraction::new(4, 3)));
        assert_eq!(caps.get("colorimetry"), Ok("bt2100-pq"));
        assert_eq!(caps.get("framerate"), Ok(gst::Fraction::new(25, 1)));
    });
}

#[test]
fn light_levels_of_upstream_are_passed_on() {
    in_child("light_levels_of_upstream_are_passed_on", || {
        let display = "35399:14599:8500:39850:6550:2300:15634:16450:10000000:1";
        let caps = format!(
            "video/x-h264,mastering-display-info=(string){display},content-light-level=(string)1000:400"
        );
        let stream = named("test-25fps.h264");
        let played = decode(&format!(
            "{} ! capssetter caps=\"{caps}\" ! vplretrydec name=dec implementation=software",
            source(&stream)
        ));
        let caps = played.frames[0].caps.structure(0).expect("caps");
        assert_eq!(caps.get("mastering-display-info"), Ok(display));
        assert_eq!(caps.get("content-light-level"), Ok("1000:400"));
    });
}

#[test]
fn latency_is_reported() {
    in_child("latency_is_reported", || {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("plain.mkv");
        common::encode("libx264", &["-bf", "0", "-tune", "zerolatency"], 30, &file);
        for (properties, frames) in [("async-depth=1 low-latency=true", 0), ("async-depth=1", 1)] {
            let mut player = Player::new(&format!(
                "filesrc location={} ! matroskademux ! vplretrydec name=dec implementation=software {properties}",
                file.display()
            ));
            player.play();
            player.pull(20);
            let pad = player.decoder().static_pad("src").expect("a source pad");
            let mut query = gst::query::Latency::new();
            assert!(pad.query(&mut query));
            let (_, least, _) = query.result();
            assert_eq!(least.mseconds(), 40 * frames, "{properties}");
            player.stop();
        }
    });
}

#[test]
fn the_bundled_runtime_needs_no_dispatcher_path() {
    let setup = Child {
        no_search: true,
        ..Child::default()
    };
    in_child_with(
        "the_bundled_runtime_needs_no_dispatcher_path",
        &setup,
        || {
            let library = common::library();
            let folder = library.parent().expect("a folder").to_owned();
            let stream = named("test-25fps.h264");
            for path in [&library, &folder] {
                let played = decode(&format!(
                    "{} ! vplretrydec name=dec runtime-path={}",
                    source(&stream),
                    path.display()
                ));
                assert_eq!(played.md5s(), stream.expected().list());
                let said = |text: &String| text.contains("vplsoft") && text.contains("software");
                assert!(played.infos.iter().any(said), "{:?}", played.infos);
                // Hardware was looked for first.
                let warned = |text: &String| text.contains("render nodes");
                assert!(played.warnings.iter().any(warned), "{:?}", played.warnings);
            }
            // Without it there is none, which READY says.
            let element = element();
            let bus = gst::Bus::new();
            element.set_bus(Some(&bus));
            for (implementation, path) in [("auto", "/nonexistent/libvplsoft.so"), ("hardware", "")]
            {
                element.set_property_from_str("implementation", implementation);
                element.set_property("runtime-path", path);
                assert!(element.set_state(gst::State::Ready).is_err());
                let message = bus
                    .pop_filtered(&[gst::MessageType::Error])
                    .expect("an error");
                let gst::MessageView::Error(error) = message.view() else {
                    panic!("{message:?}");
                };
                let error = error.error();
                assert!(error.matches(gst::ResourceError::NotFound), "{error:?}");
                assert!(error.message().contains(path), "{error}");
                assert!(error.message().contains("install"), "{error}");
                assert!(
                    bus.pop_filtered(&[gst::MessageType::Error]).is_none(),
                    "one error"
                );
                element.set_state(gst::State::Null).expect("NULL");
            }
            element.set_property_from_str("implementation", "auto");
            element.set_property("render-device", "/dev/dri/renderD999");
            assert!(element.set_state(gst::State::Ready).is_err());
            let message = bus
                .pop_filtered(&[gst::MessageType::Error])
                .expect("an error");
            let gst::MessageView::Error(error) = message.view() else {
                panic!("{message:?}");
            };
            assert!(
                error
                    .error()
                    .message()
                    .contains("renderD999 does not exist")
            );
            element.set_state(gst::State::Null).expect("NULL");
        },
    );
}

/// N of the file `libvpl.so.2.N` that this process has loaded.
fn dispatcher_minor() -> Option<u32> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let (_, name) = maps.split_once("/libvpl.so.2.")?;
    let digits = name.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[test]
fn a_stray_library_in_the_current_folder_is_refused() {
    let folder = common::search_folder();
    std::fs::rename(
        folder.path().join("libvplsoft.so"),
        folder.path().join("libvplstray.so"),
    )
    .expect("the runtime is renamed");
    let setup = Child {
        no_search: true,
        folder: Some(folder.path()),
        ..Child::default()
    };
    in_child_with(
        "a_stray_library_in_the_current_folder_is_refused",
        &setup,
        || {
            let stream = named("test-25fps.h264");
            let library = common::library();
            let launch = format!(
                "{} ! vplretrydec name=dec implementation=software runtime-path={}",
                source(&stream),
                library.display()
            );
            let mut player = Player::new(&launch);
            player.play();
            player.pull(1);
            let error = player.played.error();
            assert!(
                error.matches(gst::ResourceError::NotAuthorized),
                "{error:?}"
            );
            assert!(error.message().contains("libvplstray.so"), "{error}");
            assert!(
                error.message().contains("allow-cwd-runtime=true"),
                "{error}"
            );
            // It was not loaded.
            let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
            assert!(!maps.contains("libvplstray.so"));
            drop(player);

            let played = decode(&format!("{launch} allow-cwd-runtime=true"));
            assert_eq!(played.md5s(), stream.expected().list());
            let ran = |text: &String| text.contains("libvplstray.so");
            // Debian 13's dispatcher does not look there.
            let loads = dispatcher_minor().is_some_and(|minor| minor <= 10);
            assert_eq!(played.infos.iter().any(ran), loads, "{:?}", played.infos);
        },
    );
}

#[test]
fn caps_that_say_too_little_are_refused_in_a_sentence() {
    in_child("caps_that_say_too_little_are_refused_in_a_sentence", || {
        let decoder = element();
        let bus = gst::Bus::new();
        decoder.set_bus(Some(&bus));
        let mut harness = gst_check::Harness::with_element(&decoder, Some("sink"), Some("src"));
        harness.set_src_caps(
            "video/x-h264,stream-format=avc,alignment=au,width=64,height=64"
                .parse()
                .expect("caps"),
        );
        assert!(harness.push(gst::Buffer::from_slice([0; 9])).is_err());
        let message = bus
            .pop_filtered(&[gst::MessageType::Error])
            .expect("an error");
        let gst::MessageView::Error(error) = message.view() else {
            panic!("{message:?}");
        };
        let error = error.error();
        assert!(error.matches(gst::StreamError::Format), "{error:?}");
        assert!(error.message().contains("carry no codec_data"), "{error}");
    });
}

#[test]
fn a_live_stream_has_the_least_delay() {
    in_child("a_live_stream_has_the_least_delay", || {
        let mut player = Player::new(
            "videotestsrc is-live=true num-buffers=20 ! video/x-raw,format=I420,width=64,height=48,framerate=100/1 \
             ! x264enc tune=zerolatency ! h264parse ! vplretrydec name=dec implementation=software",
        );
        // Each picture comes out in the call that its access unit goes in with.
        let fed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let most = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let order = std::sync::atomic::Ordering::SeqCst;
        let decoder = player.decoder();
        let counter = std::sync::Arc::clone(&fed);
        let sink = decoder.static_pad("sink").expect("a sink pad");
        sink.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            counter.fetch_add(1, order);
            gst::PadProbeReturn::Ok
        });
        let (counter, furthest) = (fed, std::sync::Arc::clone(&most));
        let out = std::sync::atomic::AtomicUsize::new(0);
        let src = decoder.static_pad("src").expect("a source pad");
        src.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            let out = out.fetch_add(1, order) + 1;
            furthest.fetch_max(counter.load(order) - out, order);
            gst::PadProbeReturn::Ok
        });
        player.play();
        player.pull(usize::MAX);
        player.stop();
        assert!(
            player.played.errors.is_empty(),
            "{:?}",
            player.played.errors
        );
        assert_eq!(player.played.frames.len(), 20);
        assert_eq!(most.load(order), 0);
    });
}

#[test]
fn a_machine_without_the_dispatcher_decodes_all_the_same() {
    let needs = std::process::Command::new("ldd")
        .arg(common::library())
        .output()
        .expect("ldd is part of the C library");
    if String::from_utf8_lossy(&needs.stdout).contains("libvpl.so.2") {
        println!("here libavcodec itself needs the dispatcher, so there is no such machine");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["libvpl.so.2", "libvpl.so"] {
        std::fs::write(folder.path().join(name), "not a library").expect("a file is written");
    }
    let setup = Child {
        no_search: true,
        libraries: Some(folder.path()),
        ..Child::default()
    };
    let test = "a_machine_without_the_dispatcher_decodes_all_the_same";
    in_child_with(test, &setup, || {
        let stream = named("test-25fps.h264");
        let played = decode(&format!(
            "{} ! vplretrydec name=dec runtime-path={}",
            source(&stream),
            common::library().display()
        ));
        assert_eq!(played.md5s(), stream.expected().list());
        let warned = |text: &String| text.contains("libvpl2");
        assert!(played.warnings.iter().any(warned), "{:?}", played.warnings);

        let element = element();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        element.set_property_from_str("implementation", "hardware");
        assert!(element.set_state(gst::State::Ready).is_err());
        let message = bus
            .pop_filtered(&[gst::MessageType::Error])
            .expect("an error");
        let gst::MessageView::Error(error) = message.view() else {
            panic!("{message:?}");
        };
        let error = error.error();
        assert!(error.matches(gst::ResourceError::NotFound), "{error:?}");
        assert!(
            error.message().contains("install the package libvpl2"),
            "{error}"
        );
    });
}

#[test]
fn hardware_comes_first_and_is_said() {
    let setup = Child {
        pose: true,
        ..Child::default()
    };
    in_child_with("hardware_comes_first_and_is_said", &setup, || {
        let stream = named("test-25fps.h264");
        for implementation in ["auto", "hardware"] {
            let played = decode(&format!(
                "{} ! vplretrydec name=dec implementation={implementation}",
                source(&stream)
            ));
            assert_eq!(played.md5s(), stream.expected().list());
            played.assert_clean();
            let said = |text: &String| text.contains(", hardware, ");
            assert!(played.infos.iter().any(said), "{:?}", played.infos);
            assert!(played.warnings.is_empty(), "{:?}", played.warnings);
        }
        // It is the only one, and no software.
        let element = element();
        element.set_property_from_str("implementation", "software");
        assert!(element.set_state(gst::State::Ready).is_err());
        element.set_state(gst::State::Null).expect("NULL");
    });
}
