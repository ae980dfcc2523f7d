// SPDX-License-Identifier: MPL-2.0

//! Pictures in device memory, taken by GStreamer's own `cudadownload` on the stand-ins.

mod common;

use common::{Bench, LONG, init};
use gst::prelude::*;
use standin_world::child::in_child_of;
use standin_world::streams::{h264, h265_main10, join};
use standin_world::{World, assert_nothing_is_left, gstreamer_is_1_22, set_faults};

/// Debian's nvcodec plugin is scanned, and what it does there is no matter of this test.
fn world() -> World {
    World::new()
}

#[test]
fn device_memory_holds_the_same_pictures() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(world, || {
        init();
        let made = h264("162x98", 40, "bframes=2");
        let expected = made.expected("nv12");
        let after = "video/x-raw(memory:CUDAMemory) ! cudadownload !";
        let out = Bench::file(&made.path(), "cuda-memory=true", after).run();
        assert!(out.eos, "{:?} {:?}", out.errors, out.other_errors);
        assert_eq!(out.sums(), expected);

        let deep = h265_main10("160x96", 10);
        let out = Bench::file(&deep.path(), "cuda-memory=true", after).run();
        assert_eq!(out.sums(), deep.expected("p010le"));

        // A change of size is a change of the pool.
        let large = h264("322x182", 20, "bframes=2");
        let joined = join(&[&made, &large]);
        let out = Bench::file(&joined.path(), "cuda-memory=true", after).run();
        assert_eq!(out.sums(), [expected, large.expected("nv12")].concat());
        assert_nothing_is_left();
    });
}

#[test]
fn system_memory_is_given_where_it_is_asked_for() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(world, || {
        let made = h264("96x64", 20, "bframes=0");
        for (properties, after) in [
            (
                "cuda-memory=true",
                "videoconvert ! video/x-raw,format=NV12 !",
            ),
            ("cuda-memory=false", ""),
        ] {
            let out = Bench::file(&made.path(), properties, after).run();
            assert!(out.eos, "{:?}", out.errors);
            assert_eq!(out.sums(), made.expected("nv12"), "{properties}");
        }
        // Downstream takes nothing else, and it was not asked for: a clear end.
        let after = "video/x-raw(memory:CUDAMemory) ! cudadownload !";
        let out = Bench::file(&made.path(), "", after).run();
        assert!(!out.eos && out.pictures.is_empty());
    });
}

#[test]
fn the_context_is_shared_with_the_neighbours() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(world, || {
        let made = h264("96x64", 20, "bframes=0");
        let after = "cudadownload name=down !";
        let bench = Bench::file(&made.path(), "cuda-memory=true", after);
        bench
            .pipeline
            .set_state(gst::State::Paused)
            .expect("it pauses");
        bench.pipeline.state(LONG).0.expect("it has a picture");
        let context = |element: &gst::Element| {
            let context = element.context("gst.cuda.context").expect("a context");
            context
                .structure()
                .value("gst.cuda.context")
                .and_then(|value| value.get::<gst::Object>().map_err(|_| unreachable!()))
                .unwrap_or_else(|error| panic!("{error}"))
        };
        let down = bench.pipeline.by_name("down").expect("cudadownload");
        assert_eq!(context(&bench.decoder()), context(&down));
        let caps = bench
            .decoder()
            .static_pad("src")
            .and_then(|pad| pad.current_caps());
        assert!(caps.is_some_and(|caps| caps.to_string().contains("memory:CUDAMemory")));
        bench.stop();
    });
}

#[test]
fn damage_travels_with_device_memory_and_a_broken_shared_context_is_told() {
    if !gstreamer_is_1_22() {
        return;
    }
    in_child_of(world, || {
        let made = h264("96x64", 40, "bframes=0:keyint=20:scenecut=0");
        let after = "cudadownload !";
        set_faults(Some("status-error=30"));
        let out = Bench::file(&made.path(), "cuda-memory=true", after).run();
        assert_eq!(out.pictures.len(), 40);
        let told = out.named("nvdecringdec-corrupted");
        assert_eq!(told.len(), 10);
        set_faults(Some("device-lost=10:1000"));
        let out = Bench::file(&made.path(), "cuda-memory=true", after).run();
        set_faults(None);
        assert!(!out.errors.is_empty(), "{:?}", out.other_errors);
        assert!(
            out.errors[0].contains("The device is lost"),
            "{:?}",
            out.errors
        );
        assert!(
            out.errors[0].contains("shared with other elements"),
            "{:?}",
            out.errors
        );
    });
}
