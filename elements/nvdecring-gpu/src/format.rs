// SPDX-License-Identifier: MPL-2.0

//! [`StreamFormat`]: what the parser says of a stream, as far as decoder and output depend on it.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

use nvcuvid_sys as nv;

/// The part of the coded picture that is shown, in luma samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Crop {
    /// Columns left of it.
    pub left: u32,
    /// Rows above it.
    pub top: u32,
    /// Its columns.
    pub width: u32,
    /// Its rows.
    pub height: u32,
}

/// The colour description of the stream: numbers of ITU-T H.273, 2 where it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Colour {
    /// `colour_primaries`.
    pub primaries: u8,
    /// `transfer_characteristics`.
    pub transfer: u8,
    /// `matrix_coefficients`.
    pub matrix: u8,
    /// `video_full_range_flag`.
    pub full_range: bool,
}

/// The format of output pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// 8 bit, luma and interleaved chroma at half the columns and rows.
    Nv12,
    /// The same with 16-bit words, the sample's bits at the top (P010 for 10 bit, P016 for more).
    P016,
    /// 8 bit, three planes of equal size.
    Yuv444,
    /// The same with 16-bit words.
    Yuv444_16,
}

impl PixelFormat {
    /// The library's number (`cudaVideoSurfaceFormat`).
    pub const fn raw(self) -> nv::cudaVideoSurfaceFormat {
        match self {
            Self::Nv12 => nv::cudaVideoSurfaceFormat_NV12,
            Self::P016 => nv::cudaVideoSurfaceFormat_P016,
            Self::Yuv444 => nv::cudaVideoSurfaceFormat_YUV444,
            Self::Yuv444_16 => nv::cudaVideoSurfaceFormat_YUV444_16Bit,
        }
    }

    /// Bytes of a sample.
    pub const fn sample_bytes(self) -> usize {
        match self {
            Self::Nv12 | Self::Yuv444 => 1,
            Self::P016 | Self::Yuv444_16 => 2,
        }
    }

    /// Whether chroma is one interleaved plane at half the columns and rows.
    pub const fn is_semiplanar(self) -> bool {
        matches!(self, Self::Nv12 | Self::P016)
    }
}

/// Everything that a decoder or what comes after it depends on. Equal only if all of it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFormat {
    /// `cudaVideoCodec`.
    pub codec: nv::cudaVideoCodec,
    /// `cudaVideoChromaFormat`.
    pub chroma: nv::cudaVideoChromaFormat,
    /// Bits of a luma sample.
    pub bit_depth: u32,
    /// Bits of a chroma sample.
    pub chroma_depth: u32,
    /// Coded columns.
    pub coded_width: u32,
    /// Coded rows.
    pub coded_height: u32,
    /// What is shown of them.
    pub crop: Crop,
    /// Whether every picture is of one moment.
    pub progressive: bool,
    /// Frames a second as a fraction, where the stream says.
    pub frame_rate: Option<(u32, u32)>,
    /// Width to height of the whole picture as shown, where the stream says.
    pub display_aspect: Option<(u32, u32)>,
    /// Colours.
    pub colour: Colour,
    /// Decode surfaces that the stream needs, at least.
    pub min_decode_surfaces: u8,
}

impl StreamFormat {
    /// Reads what the parser passes to its sequence callback. A display area that makes no sense is the
    /// whole picture.
    pub fn new(format: &nv::CUVIDEOFORMAT) -> Self {
        let area = format.display_area;
        let within = |from: i32, to: i32, size: u32| {
            let (from, to) = (u32::try_from(from).ok()?, u32::try_from(to).ok()?);
            (from < to && to <= size).then_some((from, to - from))
        };
        let (left, width) =
            within(area.left, area.right, format.coded_width).unwrap_or((0, format.coded_width));
        let (top, height) =
            within(area.top, area.bottom, format.coded_height).unwrap_or((0, format.coded_height));
        let fraction = |a: u32, b: u32| (a > 0 && b > 0).then_some((a, b));
        let aspect = format.display_aspect_ratio;
        let signal = format.video_signal_description;
        Self {
            codec: format.codec,
            chroma: format.chroma_format,
            bit_depth: 8 + u32::from(format.bit_depth_luma_minus8),
            chroma_depth: 8 + u32::from(format.bit_depth_chroma_minus8),
            coded_width: format.coded_width,
            coded_height: format.coded_height,
            crop: Crop {
                left,
                top,
                width,
                height,
            },
            progressive: format.progressive_sequence != 0,
            frame_rate: fraction(format.frame_rate.numerator, format.frame_rate.denominator),
            display_aspect: fraction(
                u32::try_from(aspect.x).unwrap_or(0),
                u32::try_from(aspect.y).unwrap_or(0),
            ),
            colour: Colour {
                primaries: signal.color_primaries,
                transfer: signal.transfer_characteristics,
                matrix: signal.matrix_coefficients,
                full_range: signal.video_full_range_flag() != 0,
            },
            min_decode_surfaces: format.min_num_decode_surfaces,
        }
    }

    /// The greater of both depths: the output keeps every bit.
    pub fn depth(&self) -> u32 {
        self.bit_depth.max(self.chroma_depth)
    }

    /// The format of output pictures; `None` where none of the library's keeps every sample (4:2:2).
    pub fn pixel_format(&self) -> Option<PixelFormat> {
        let deep = self.depth() > 8;
        match self.chroma {
            nv::cudaVideoChromaFormat_Monochrome | nv::cudaVideoChromaFormat_420 => Some(if deep {
                PixelFormat::P016
            } else {
                PixelFormat::Nv12
            }),
            nv::cudaVideoChromaFormat_444 => Some(if deep {
                PixelFormat::Yuv444_16
            } else {
                PixelFormat::Yuv444
            }),
            _ => None,
        }
    }

    /// The chroma format as people write it.
    pub fn chroma_name(&self) -> &'static str {
        match self.chroma {
            nv::cudaVideoChromaFormat_Monochrome => "4:0:0",
            nv::cudaVideoChromaFormat_420 => "4:2:0",
            nv::cudaVideoChromaFormat_422 => "4:2:2",
            nv::cudaVideoChromaFormat_444 => "4:4:4",
            _ => "an unknown chroma format",
        }
    }

    /// The parameters of its decoder, which may later become as large as `largest`.
    pub fn decoder_config(
        &self,
        decode_surfaces: u8,
        output_surfaces: u8,
        largest: (u32, u32),
    ) -> Option<nv::DecoderConfig> {
        Some(nv::DecoderConfig {
            codec: self.codec,
            chroma: self.chroma,
            bit_depth: self.depth(),
            coded_width: self.coded_width,
            coded_height: self.coded_height,
            max_width: self.coded_width.max(largest.0),
            max_height: self.coded_height.max(largest.1),
            decode_surfaces: decode_surfaces.into(),
            output_surfaces: output_surfaces.into(),
            output_format: self.pixel_format()?.raw(),
            // The whole picture: nothing is scaled, and cropping is the copy's matter.
            display_area: nv::Rect::of_size(self.coded_width, self.coded_height),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_area_beyond_the_picture_is_the_whole_picture() {
        let mut raw = nv::CUVIDEOFORMAT {
            codec: nv::cudaVideoCodec_H264,
            coded_width: 320,
            coded_height: 192,
            chroma_format: nv::cudaVideoChromaFormat_420,
            ..Default::default()
        };
        raw.display_area.right = 320;
        raw.display_area.bottom = 180;
        let crop = StreamFormat::new(&raw).crop;
        assert_eq!((crop.width, crop.height), (320, 180));
        raw.display_area.left = -4;
        raw.display_area.bottom = 193;
        let crop = StreamFormat::new(&raw).crop;
        assert_eq!((crop.left, crop.width, crop.height), (0, 320, 192));
    }

    #[test]
    fn every_bit_is_kept_or_the_stream_refused() {
        let format = |chroma, depth: u8| {
            StreamFormat::new(&nv::CUVIDEOFORMAT {
                chroma_format: chroma,
                bit_depth_luma_minus8: depth - 8,
                coded_width: 64,
                coded_height: 64,
                ..Default::default()
            })
            .pixel_format()
        };
        assert_eq!(
            format(nv::cudaVideoChromaFormat_420, 8),
            Some(PixelFormat::Nv12)
        );
        assert_eq!(
            format(nv::cudaVideoChromaFormat_420, 10),
            Some(PixelFormat::P016)
        );
        assert_eq!(
            format(nv::cudaVideoChromaFormat_444, 8),
            Some(PixelFormat::Yuv444)
        );
        assert_eq!(
            format(nv::cudaVideoChromaFormat_444, 12),
            Some(PixelFormat::Yuv444_16)
        );
        assert_eq!(format(nv::cudaVideoChromaFormat_422, 8), None);
    }
}
