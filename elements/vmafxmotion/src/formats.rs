// SPDX-License-Identifier: MPL-2.0

//! Which raw video formats can be scored, and where their luma samples are.

use gst_video::{VideoFormat, VideoFormatInfo};
use vmaf_motion::SampleFormat;

/// How the luma samples of a format lie in memory, or `None` where they are not one little-endian
/// 8- or 16-bit word after the other (packed, tiled, big-endian or RGB formats).
pub(crate) fn luma_format(info: &VideoFormatInfo) -> Option<SampleFormat> {
    let linear = (info.is_yuv() || info.is_gray())
        && !info.is_complex()
        && !info.is_tiled()
        && !info.has_palette()
        && info.plane()[0] == 0
        && info.w_sub()[0] == 0
        && info.h_sub()[0] == 0;
    if !linear {
        return None;
    }
    match (info.pixel_stride()[0], info.depth()[0], info.shift()[0]) {
        (1, 8, 0) => Some(SampleFormat::EIGHT_BIT),
        (2, depth @ 9..=16, 0) if info.is_le() => SampleFormat::low(depth).ok(),
        (2, depth @ 9..=16, shift) if info.is_le() && shift == 16 - depth => {
            SampleFormat::high(depth).ok()
        }
        _ => None,
    }
}

/// Every format of the running GStreamer that can be scored; the everyday ones first, for elements
/// that take the first format they are offered.
pub(crate) fn formats() -> impl Iterator<Item = VideoFormat> {
    const EVERYDAY: [VideoFormat; 4] = [
        VideoFormat::I420,
        VideoFormat::Nv12,
        VideoFormat::I42010le,
        VideoFormat::P01010le,
    ];
    let others = VideoFormat::iter_raw()
        .filter(|format| !EVERYDAY.contains(format))
        .filter(|&format| luma_format(&VideoFormatInfo::from_format(format)).is_some());
    EVERYDAY.into_iter().chain(others)
}

/// The caps of both pads: these formats in system memory.
pub(crate) fn caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format_list(formats())
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_s_formats_and_no_others() {
        gst::init().unwrap();
        let names: Vec<String> = formats()
            .map(|format| format.to_str().to_string())
            .collect();
        for name in [
            "I420",
            "YV12",
            "NV12",
            "NV21",
            "Y42B",
            "Y444",
            "GRAY8",
            "I420_10LE",
            "P010_10LE",
            "I422_10LE",
            "Y444_10LE",
            "I420_12LE",
            "P012_LE",
            "P016_LE",
            "GRAY16_LE",
        ] {
            assert!(
                names.iter().any(|found| found == name),
                "{name} is missing in {names:?}"
            );
        }
        for name in [
            "RGB",
            "GBR",
            "GBR_10LE",
            "BGRx",
            "YUY2",
            "UYVY",
            "AYUV",
            "Y210",
            "Y410",
            "v210",
            "NV12_64Z32",
            "NV12_10LE32",
            "I420_10BE",
            "GRAY16_BE",
            "VUYA",
            "GRAY10_LE32",
        ] {
            assert!(
                !names.iter().any(|found| found == name),
                "{name} must not be taken"
            );
        }
    }

    #[test]
    fn samples_are_where_the_format_says() {
        gst::init().unwrap();
        let luma = |format| luma_format(&VideoFormatInfo::from_format(format));
        assert_eq!(luma(VideoFormat::Nv12), Some(SampleFormat::EIGHT_BIT));
        assert_eq!(luma(VideoFormat::I42010le), SampleFormat::low(10).ok());
        assert_eq!(luma(VideoFormat::P01010le), SampleFormat::high(10).ok());
        assert_eq!(luma(VideoFormat::P012Le), SampleFormat::high(12).ok());
        assert_eq!(luma(VideoFormat::P016Le), SampleFormat::low(16).ok());
        assert_eq!(luma(VideoFormat::Gray16Le), SampleFormat::low(16).ok());
    }
}
