// SPDX-License-Identifier: MPL-2.0

//! A film as the element writes it, of any length.

use std::fmt::Write as _;

/// Nanoseconds a frame.
pub const FRAME_TIME: u64 = 40_000_000;
/// Frames a window.
const WINDOW: u64 = 100;

fn motion(frame: u64) -> f64 {
    match frame % 1000 {
        _ if frame == 0 => 0.0,
        500 => 40.0 + frame as f64 / 7.0,
        _ => 1.0 + (frame as f64 / 50.0).sin() / 3.0,
    }
}

/// `motion`, `motion2` and `motion3` of a frame of a film of so many.
pub fn score(frame: u64, count: u64) -> [f64; 3] {
    let own = motion(frame);
    let smaller = if frame + 1 < count {
        own.min(motion(frame + 1))
    } else {
        own
    };
    [own, smaller, smaller * 0.1]
}

/// The score file of a film with windows of a hundred frames and a scene cut in every thousand.
pub fn film(count: u64) -> String {
    let mut text = r#"{"type":"header","schema":1,"version":"0.1.0","extractor":"integer","options":{"motion-max-val":18.0},"feature-names":{},"format":"I420","width":640,"height":360,"depth":8,"session":0,"n-stats-frames":100,"pool":["mean"]}"#.to_owned() + "\n";
    for frame in 0..count {
        let [motion, motion2, motion3] = score(frame, count);
        writeln!(
            text,
            r#"{{"type":"frame","frame":{frame},"timestamp":{},"motion":{motion:?},"motion2":{motion2:?},"motion3":{motion3:?}}}"#,
            frame * FRAME_TIME
        )
        .expect("a string takes text");
        if frame % WINDOW == WINDOW - 1 {
            let first = frame + 1 - WINDOW;
            let sum: f64 = (first..=frame).map(|frame| score(frame, count)[1]).sum();
            writeln!(
                text,
                r#"{{"type":"window","window":{},"first":{first},"last":{frame},"start":{},"end":{},"n-frames":100,"n-scored":100,"partial":false,"motion2.mean":{:?}}}"#,
                first / WINDOW,
                first * FRAME_TIME,
                (frame + 1) * FRAME_TIME,
                sum / 100.0
            )
            .expect("a string takes text");
        }
    }
    text + &format!(
        "{{\"type\":\"summary\",\"session\":0,\"n-frames\":{count},\"frames-without-timestamp\":0,\"discontinuities\":0}}\n"
    )
}
