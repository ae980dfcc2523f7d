// SPDX-License-Identifier: MPL-2.0

//! Machines and streams that cannot be: a clear error, once, and nothing that hangs.

mod common;

use common::{Bench, init};
use gst::prelude::*;
use standin_world::child::in_child_of;
use standin_world::streams::make;
use standin_world::{World, in_child, libraries};

/// The error of an element that does not go to READY.
#[track_caller]
fn refused(set: impl FnOnce(&gst::Element)) -> (gst::glib::Error, String) {
    init();
    let element = gst::ElementFactory::make("nvdecringdec")
        .build()
        .expect("it is registered");
    set(&element);
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let refused = element.set_state(gst::State::Ready);
    assert!(refused.is_err(), "something is missing");
    let errors: Vec<_> = std::iter::from_fn(|| bus.pop())
        .filter_map(|message| match message.view() {
            gst::MessageView::Error(error) => Some((error.error(), error.error().to_string())),
            _ => None,
        })
        .collect();
    element
        .set_state(gst::State::Null)
        .expect("it goes to NULL");
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.into_iter().next().expect("one")
}

#[test]
fn without_a_driver_the_element_says_what_to_install() {
    in_child_of(World::without_libraries, || {
        let (error, text) = refused(|_| {});
        assert!(error.matches(gst::ResourceError::NotFound), "{text}");
        assert!(
            text.contains("libcuda.so.1") && text.contains("libcuda1"),
            "{text}"
        );
    });
}

#[test]
fn without_libnvcuvid_the_element_says_so() {
    let world = || {
        let world = World::without_libraries();
        libraries::install(world.folder());
        for name in ["libnvcuvid.so", "libnvcuvid.so.1"] {
            std::fs::remove_file(world.folder().join(name)).expect("it was installed");
        }
        world
    };
    in_child_of(world, || {
        let (error, text) = refused(|_| {});
        assert!(error.matches(gst::ResourceError::NotFound), "{text}");
        assert!(
            text.contains("libnvcuvid.so.1") && text.contains("video"),
            "{text}"
        );
    });
}

#[test]
fn a_device_that_is_not_there_is_named() {
    in_child(|| {
        let (error, text) = refused(|element| element.set_property("cuda-device-id", 3_u32));
        assert!(error.matches(gst::ResourceError::NotFound), "{text}");
        assert!(text.contains("no CUDA device 3"), "{text}");
    });
}

#[test]
fn a_stream_that_the_device_does_not_decode_is_refused_once() {
    in_child_of(
        || World::new().set("NVSTANDIN_NO_AV1", "1"),
        || {
            let stream = test_streams::named("test-25fps.ivf.av1");
            let out = Bench::file(&stream.path, "", "").run();
            assert_eq!(out.errors.len(), 1, "{:?}", out.errors);
            assert!(out.errors[0].contains("cannot decode"), "{:?}", out.errors);
            assert!(out.errors[0].contains("AV1"), "{:?}", out.errors);

            let high10 = [
                "-c:v",
                "libx264",
                "-pix_fmt",
                "yuv420p10le",
                "-preset",
                "veryfast",
            ];
            let made = make("made.h264", "96x64", 5, &high10);
            let out = Bench::file(&made.path(), "", "").run();
            assert_eq!(out.errors.len(), 1, "{:?}", out.errors);
            assert!(
                out.errors[0].contains("H.264 4:2:0 with 10 bit"),
                "{:?}",
                out.errors
            );
        },
    );
}

#[test]
fn properties_have_their_names_ranges_and_defaults() {
    in_child_of(World::without_libraries, || {
        init();
        let element = gst::ElementFactory::make("nvdecringdec")
            .build()
            .expect("an element");
        let number = |name: &str, least: u32, most: u32, default: u32| {
            let pspec = element
                .find_property(name)
                .unwrap_or_else(|| panic!("{name}"));
            let pspec = pspec
                .downcast::<gst::glib::ParamSpecUInt>()
                .expect("an unsigned number");
            assert_eq!(
                (pspec.minimum(), pspec.maximum(), pspec.default_value()),
                (least, most, default),
                "{name}"
            );
        };
        number("ring-depth", 1, 16, 8);
        number("decode-timeout", 1, 600_000, 500);
        number("max-display-delay", 0, 4, 0);
        number("num-output-surfaces", 1, 2, 2);
        number("cuda-device-id", 0, i32::MAX as u32, 0);
        assert!(!element.property::<bool>("cuda-memory"));
        assert!(!element.property::<bool>("frame-messages"));
        for (name, values) in [
            ("overflow", vec!["block", "fail"]),
            ("corrupted-frames", vec!["mark", "drop", "error"]),
        ] {
            for value in values {
                element.set_property_from_str(name, value);
                let now = element.property_value(name);
                let (_, now) = gst::glib::EnumValue::from_value(&now).expect("an enumeration");
                assert_eq!(now.nick(), value);
            }
        }
        let stats: gst::Structure = element.property("stats");
        assert_eq!(stats.name(), "nvdecringdec-stats");
        let factory = element.factory().expect("a factory");
        assert_eq!(factory.rank(), gst::Rank::NONE);
        assert!(
            factory
                .metadata("klass")
                .is_some_and(|klass| klass.contains("Decoder/Video/Hardware"))
        );
    });
}

#[test]
fn streams_are_taken_in_the_format_that_the_parser_reads() {
    in_child_of(World::without_libraries, || {
        init();
        let element = gst::ElementFactory::make("nvdecringdec")
            .build()
            .expect("an element");
        let pad = element.static_pad("sink").expect("a pad");
        let h264 = |format: &str, alignment: &str| {
            let caps = gst::Caps::builder("video/x-h264")
                .field("stream-format", format)
                .field("alignment", alignment)
                .build();
            pad.pad_template_caps().can_intersect(&caps)
        };
        assert!(h264("byte-stream", "au"));
        assert!(!h264("avc", "au"));
        assert!(!h264("byte-stream", "nal"));
        let vp9 = gst::Caps::builder("video/x-vp9").field("width", 64).build();
        assert!(pad.pad_template_caps().can_intersect(&vp9));
    });
}
