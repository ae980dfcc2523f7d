// SPDX-License-Identifier: MPL-2.0

//! Without faults: every stream through the loop has the checksums of its package.

use test_streams::all;
use vplretry_core::End;

use crate::books::Fate;
use crate::client::stage::{in_child, md5_of};
use crate::play::{Played, Setup, play};
use crate::units::Source;

fn check(source: &Source, path: &str, played: &Played) {
    let name = source.name;
    assert_eq!(played.end, Ok(End::Drained), "{name}");
    assert!(played.damages.is_empty(), "{name}: {:?}", played.damages);
    assert_eq!(played.pictures.len(), source.expected.len(), "{name}");
    let covers = |width: u16| source.expected.covers(width.into());
    for (number, (picture, wanted)) in played
        .pictures
        .iter()
        .zip(source.expected.list())
        .enumerate()
    {
        assert!(picture.corruption.is_clean(), "{name}: picture {number}");
        if covers(picture.width) {
            assert_eq!(&picture.checksum, wanted, "{name}: picture {number}");
        }
    }
    if !played.pictures.iter().all(|picture| covers(picture.width)) {
        assert_eq!(played.md5s(), md5_of(path, "nv12"), "{name}");
    }
    // A second field, or a frame that is not shown, is a unit without a picture of its own.
    let silent = played.books.with(|fate| *fate == Fate::NoPicture).len();
    assert_eq!(silent + played.pictures.len(), source.units.len(), "{name}");
}

#[test]
fn every_stream_has_its_checksums() {
    in_child("streams::every_stream_has_its_checksums", "", || {
        for stream in all() {
            let source = Source::of(&stream);
            let path = stream.path.to_str().expect("a plain path");
            let changes = stream.name.starts_with("resolution_change");
            for depth in [1, 4] {
                if changes && depth == 4 {
                    continue; // the longest of all, and the first pass has it
                }
                let played = play(&source, &Setup::with("").async_depth(depth));
                check(&source, path, &played);
                assert_eq!(played.stats.reinits, if changes { 4 } else { 0 });
                assert_eq!(played.stats.recoveries, 0);
                println!(
                    "{}: depth {depth}, {} pictures of {} units",
                    stream.name,
                    played.pictures.len(),
                    source.units.len()
                );
            }
        }
    });
}
