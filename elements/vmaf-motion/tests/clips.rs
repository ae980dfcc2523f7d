// SPDX-License-Identifier: MPL-2.0

//! The clips of the goldens regenerate from their formulas.

mod common;

use common::clips::{Clip, goldens};

#[test]
fn every_clip_regenerates() {
    let goldens = goldens();
    let clips = goldens
        .iter()
        .filter_map(|golden| Some((golden, Clip::of_golden(golden)?)));
    let mut checked = 0;
    for (golden, clip) in clips {
        assert_eq!(clip.luma(golden).len(), clip.frames as usize);
        checked += 1;
    }
    assert!(checked >= 70, "only {checked} clips");
}
