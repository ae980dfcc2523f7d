// SPDX-License-Identifier: MPL-2.0

//! Caps: which codec they mean, and which caps pictures have.

use std::sync::LazyLock;

use gst_video::{
    VideoColorMatrix, VideoColorPrimaries, VideoColorRange, VideoColorimetry, VideoFormat,
    VideoInfo, VideoInterlaceMode, VideoTransferFunction,
};
use nvdecring_gpu::{Codec, PixelFormat, StreamFormat};

/// The memory feature of pictures in device memory.
pub(crate) const CUDA_MEMORY: &str = "memory:CUDAMemory";

/// ITU-T H.273: unspecified.
const UNSPECIFIED: u8 = 2;

fn streams() -> gst::Caps {
    let byte_stream = |name| {
        gst::Structure::builder(name)
            .field("stream-format", "byte-stream")
            .field("alignment", "au")
            .build()
    };
    gst::Caps::builder_full()
        .structure(byte_stream("video/x-h264"))
        .structure(byte_stream("video/x-h265"))
        .structure(
            gst::Structure::builder("video/x-av1")
                .field("stream-format", "obu-stream")
                .field("alignment", "tu")
                .build(),
        )
        .structure(
            gst::Structure::builder("video/x-vp9")
                .field("alignment", gst::List::new(["super-frame", "frame"]))
                .build(),
        )
        .structure(gst::Structure::new_empty("video/x-vp9"))
        .structure(gst::Structure::new_empty("video/x-vp8"))
        .structure(
            gst::Structure::builder("video/mpeg")
                .field("mpegversion", 2)
                .field("systemstream", false)
                .field("parsed", true)
                .build(),
        )
        .build()
}

fn pictures() -> gst::Caps {
    let formats = [
        VideoFormat::Nv12,
        VideoFormat::P01010le,
        VideoFormat::P016Le,
        VideoFormat::Y444,
        VideoFormat::Y44416le,
    ];
    let system = gst_video::VideoCapsBuilder::new()
        .format_list(formats)
        .build();
    let device = gst_video::VideoCapsBuilder::new()
        .features([CUDA_MEMORY])
        .format_list(formats)
        .build();
    let mut all = system;
    all.merge(device);
    all
}

/// The templates of both pads.
pub(crate) fn templates() -> &'static [gst::PadTemplate] {
    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
        let template = |name, direction, caps| {
            gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps)
                .expect("valid templates")
        };
        vec![
            template("sink", gst::PadDirection::Sink, streams()),
            template("src", gst::PadDirection::Src, pictures()),
        ]
    });
    &TEMPLATES
}

/// The codec that caps mean.
pub(crate) fn codec(caps: &gst::CapsRef) -> Option<Codec> {
    Some(match caps.structure(0)?.name().as_str() {
        "video/x-h264" => Codec::H264,
        "video/x-h265" => Codec::H265,
        "video/x-av1" => Codec::Av1,
        "video/x-vp9" => Codec::Vp9,
        "video/x-vp8" => Codec::Vp8,
        "video/mpeg" => Codec::Mpeg2,
        _ => return None,
    })
}

/// GStreamer's name of a format.
pub(crate) fn video_format(format: &StreamFormat) -> Option<VideoFormat> {
    Some(match format.pixel_format()? {
        PixelFormat::Nv12 => VideoFormat::Nv12,
        PixelFormat::P016 if format.depth() == 10 => VideoFormat::P01010le,
        PixelFormat::P016 => VideoFormat::P016Le,
        PixelFormat::Yuv444 => VideoFormat::Y444,
        PixelFormat::Yuv444_16 => VideoFormat::Y44416le,
    })
}

/// The colours that the stream itself describes; `None` where it leaves any of them open.
fn colorimetry(format: &StreamFormat) -> Option<VideoColorimetry> {
    let colour = format.colour;
    let codes = [colour.primaries, colour.transfer, colour.matrix];
    if codes.contains(&UNSPECIFIED) || codes.contains(&0) {
        return None;
    }
    let range = if colour.full_range {
        VideoColorRange::Range0_255
    } else {
        VideoColorRange::Range16_235
    };
    Some(VideoColorimetry::new(
        range,
        VideoColorMatrix::from_iso(colour.matrix.into()),
        VideoTransferFunction::from_iso(colour.transfer.into()),
        VideoColorPrimaries::from_iso(colour.primaries.into()),
    ))
}

/// What pictures are, from the stream itself where it says it and otherwise from the input caps.
pub(crate) fn output_info(format: &StreamFormat, input: &VideoInfo) -> Option<VideoInfo> {
    let video_format = video_format(format)?;
    let (width, height) = (format.crop.width, format.crop.height);
    let rate = |(numerator, denominator): (u32, u32)| {
        let numerator = i32::try_from(numerator).ok()?;
        Some(gst::Fraction::new(
            numerator,
            i32::try_from(denominator).ok()?,
        ))
    };
    let framerate = if input.fps().numer() > 0 {
        Some(input.fps())
    } else {
        format.frame_rate.and_then(rate)
    };
    let interlace_mode = match (format.progressive, input.interlace_mode()) {
        (true, _) => VideoInterlaceMode::Progressive,
        (false, VideoInterlaceMode::Interleaved) => VideoInterlaceMode::Interleaved,
        (false, _) => VideoInterlaceMode::Mixed,
    };
    let said = colorimetry(format);
    // What the input says of colours is only its own if it was said: an encoded stream's default is unknown.
    let given =
        Some(input.colorimetry()).filter(|colours| colours.matrix() != VideoColorMatrix::Unknown);
    VideoInfo::builder(video_format, width, height)
        .fps(framerate.unwrap_or(gst::Fraction::new(0, 1)))
        .par(input.par())
        .interlace_mode(interlace_mode)
        .colorimetry_if_some(said.as_ref().or(given.as_ref()))
        .build()
        .ok()
}

/// Caps and size of a format's pictures in device memory. Rates and colours do not matter to memory.
pub(crate) fn device_caps(format: &StreamFormat) -> Option<(gst::Caps, u32)> {
    let (width, height) = (format.crop.width, format.crop.height);
    let info = VideoInfo::builder(video_format(format)?, width, height)
        .build()
        .ok()?;
    let size = u32::try_from(info.size()).ok()?;
    Some((in_device_memory(&info)?, size))
}

/// The caps of pictures in device memory.
pub(crate) fn in_device_memory(info: &VideoInfo) -> Option<gst::Caps> {
    let mut caps = info.to_caps().ok()?;
    caps.make_mut()
        .set_features_simple(Some(gst::CapsFeatures::new([CUDA_MEMORY])));
    Some(caps)
}

/// Whether any of these caps are pictures in device memory.
pub(crate) fn take_device_memory(caps: &gst::CapsRef) -> bool {
    caps.iter_with_features()
        .any(|(_, features)| features.contains(CUDA_MEMORY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvcuvid_sys as nv;

    fn format(depth: u8, chroma: nv::cudaVideoChromaFormat) -> StreamFormat {
        StreamFormat::new(&nv::CUVIDEOFORMAT {
            coded_width: 64,
            coded_height: 48,
            chroma_format: chroma,
            bit_depth_luma_minus8: depth - 8,
            progressive_sequence: 1,
            ..Default::default()
        })
    }

    #[test]
    fn every_format_has_its_name() {
        gst::init().expect("GStreamer starts");
        let name = |depth, chroma| video_format(&format(depth, chroma));
        let yuv420 = nv::cudaVideoChromaFormat_420;
        let yuv444 = nv::cudaVideoChromaFormat_444;
        assert_eq!(name(8, yuv420), Some(VideoFormat::Nv12));
        assert_eq!(name(10, yuv420), Some(VideoFormat::P01010le));
        assert_eq!(name(12, yuv420), Some(VideoFormat::P016Le));
        assert_eq!(name(8, yuv444), Some(VideoFormat::Y444));
        assert_eq!(name(10, yuv444), Some(VideoFormat::Y44416le));
        assert_eq!(name(8, nv::cudaVideoChromaFormat_422), None);
    }

    #[test]
    fn the_layout_of_pictures_is_gstreamers_default() {
        gst::init().expect("GStreamer starts");
        for (depth, chroma) in [
            (8, nv::cudaVideoChromaFormat_420),
            (10, nv::cudaVideoChromaFormat_420),
            (8, nv::cudaVideoChromaFormat_444),
            (10, nv::cudaVideoChromaFormat_444),
        ] {
            for (width, height) in [(64, 48), (62, 47), (33, 21), (2, 2)] {
                let mut format = format(depth, chroma);
                (format.crop.width, format.crop.height) = (width, height);
                let layout = nvdecring_gpu::PictureLayout::new(&format).expect("a layout");
                let input = VideoInfo::builder(VideoFormat::Encoded, width, height)
                    .build()
                    .expect("an info");
                let info = output_info(&format, &input).expect("an info");
                let planes: Vec<_> = info
                    .offset()
                    .iter()
                    .zip(info.stride())
                    .map(|(offset, stride)| (*offset, *stride as usize))
                    .collect();
                let ours: Vec<_> = layout.planes.iter().map(|p| (p.offset, p.stride)).collect();
                assert_eq!(ours, planes, "{depth} bit, {width}x{height}");
                assert_eq!(layout.size, info.size(), "{depth} bit, {width}x{height}");
            }
        }
    }

    #[test]
    fn the_stream_says_its_colours_or_the_input_does() {
        gst::init().expect("GStreamer starts");
        let mut format = format(8, nv::cudaVideoChromaFormat_420);
        format.colour = nvdecring_gpu::Colour {
            primaries: 9,
            transfer: 16,
            matrix: 9,
            full_range: false,
        };
        let input = VideoInfo::builder(VideoFormat::Encoded, 64, 48)
            .fps(gst::Fraction::new(25, 1))
            .build()
            .expect("an info");
        let info = output_info(&format, &input).expect("an info");
        assert_eq!(info.colorimetry().to_string(), "bt2100-pq");
        assert_eq!(info.fps(), gst::Fraction::new(25, 1));
        format.colour.matrix = UNSPECIFIED;
        format.progressive = false;
        let info = output_info(&format, &input).expect("an info");
        assert_ne!(info.colorimetry().to_string(), "bt2100-pq");
        assert_eq!(info.interlace_mode(), VideoInterlaceMode::Mixed);
    }
}
