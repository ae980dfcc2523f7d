// SPDX-License-Identifier: MPL-2.0

//! Which libavcodec this is built for, as `ffmpeg-sys-next` has found it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(field_flags)");
    // libavutil of FFmpeg 6.1 has flags for the fields of a frame; that of FFmpeg 9 has nothing else.
    if std::env::var("DEP_FFMPEG_FFMPEG_6_1").is_ok_and(|known| known == "true") {
        println!("cargo::rustc-cfg=field_flags");
    }
}
