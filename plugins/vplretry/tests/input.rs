// SPDX-License-Identifier: MPL-2.0

//! Damaged input: errors or flagged frames, no hang, no crash, and every access unit accounted for.

mod common;

use common::{Player, assert_no_surfaces, in_child, source_of};
use gst::prelude::*;
use test_streams::{Coding, named};

const STREAMS: [&str; 6] = [
    "test-25fps.h264",
    "test-25fps-interlaced.h264",
    "bear.h265",
    "test-25fps.vp8",
    "test-25fps.vp9",
    "test-25fps.ivf.av1",
];

/// Plays bytes to the end or to an error.
fn play(name: &str, coding: Coding, bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("stream");
    std::fs::write(&file, bytes).expect("a file is written");
    let played = Player::new(&format!(
        "{} ! vplretrydec name=dec implementation=software",
        source_of(&file, coding)
    ))
    .run();
    assert!(played.eos || !played.errors.is_empty(), "{name}");
    if played.errors.is_empty() {
        played.assert_accounts();
    }
    assert_no_surfaces();
}

#[test]
fn truncated_streams() {
    in_child("truncated_streams", || {
        for name in STREAMS {
            let stream = named(name);
            let bytes = stream.bytes();
            for part in [0, 1, 7, 31, 33, 45, 500, bytes.len() / 3, bytes.len() - 5] {
                play(name, stream.coding, &bytes[..part]);
            }
        }
    });
}

#[test]
fn flipped_bits() {
    in_child("flipped_bits", || {
        let mut rng = fastrand::Rng::with_seed(3);
        for name in STREAMS {
            let stream = named(name);
            let whole = stream.bytes();
            for density in [20_000, 2_000, 200] {
                let mut bytes = whole.clone();
                for _ in 0..bytes.len() / density {
                    // The container's header and the first sequence header stay.
                    let at = rng.usize(200..bytes.len());
                    bytes[at] ^= 1 << rng.u8(..8);
                }
                play(name, stream.coding, &bytes);
            }
        }
    });
}

#[test]
fn noise_instead_of_access_units() {
    in_child("noise_instead_of_access_units", || {
        let mut rng = fastrand::Rng::with_seed(11);
        for caps in [
            "video/x-h264,stream-format=byte-stream,alignment=au",
            "video/x-h265,stream-format=byte-stream,alignment=au",
            "video/x-av1,stream-format=obu-stream,alignment=tu",
            "video/x-vp9,alignment=super-frame",
            "video/x-vp8",
            "video/mpeg,mpegversion=2,systemstream=false,parsed=true",
            "image/jpeg",
        ] {
            let caps = format!("{caps},width=64,height=64,framerate=25/1");
            let caps: gst::Caps = caps.parse().expect("caps");
            let decoder = gst::ElementFactory::make("vplretrydec")
                .property_from_str("implementation", "software")
                .build()
                .expect("an element");
            let mut harness = gst_check::Harness::with_element(&decoder, Some("sink"), Some("src"));
            harness.set_src_caps(caps.clone());
            for length in [0, 1, 2, 3, 4, 5, 8, 100, 1000, 5000] {
                let mut bytes: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
                if length > 4 && rng.bool() {
                    bytes[..4].copy_from_slice(&[0, 0, 0, 1]);
                }
                let _ = harness.push(gst::Buffer::from_slice(bytes));
            }
            harness.push_event(gst::event::Eos::new());
            let stats = decoder.property::<gst::Structure>("stats");
            println!("{caps}: {stats:?}");
            assert_eq!(stats.get("frames"), Ok(0_u64));
            let taken: u64 = ["dropped", "errored", "without-picture"]
                .iter()
                .map(|name| stats.get::<u64>(*name).expect("a counter"))
                .sum();
            assert_eq!(stats.get("frames-in"), Ok(taken));
        }
    });
}
