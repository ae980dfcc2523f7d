// SPDX-License-Identifier: MPL-2.0

//! [`DecoderConfig`]: the parameters of a decoder.

use std::ffi::{c_short, c_ulong};

use crate::Error;
use crate::bindings::*;

/// Surfaces that pictures are decoded into, at most (the library's own limit).
pub const MAX_DECODE_SURFACES: u32 = 32;
/// Surfaces that can be mapped at once, at most.
pub const MAX_OUTPUT_SURFACES: u32 = 64;

/// An area in pixels; `right` and `bottom` lie outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rect {
    /// First column.
    pub left: u32,
    /// First row.
    pub top: u32,
    /// Column behind the last.
    pub right: u32,
    /// Row behind the last.
    pub bottom: u32,
}

impl Rect {
    /// From the origin.
    pub fn of_size(width: u32, height: u32) -> Self {
        Self {
            left: 0,
            top: 0,
            right: width,
            bottom: height,
        }
    }

    fn shorts(self) -> Result<[c_short; 4], Error> {
        let mut shorts = [0; 4];
        for (short, value) in shorts
            .iter_mut()
            .zip([self.left, self.top, self.right, self.bottom])
        {
            *short = c_short::try_from(value)
                .map_err(|_| Error::Parameter(format!("{self:?} is beyond 32767 pixels")))?;
        }
        Ok(shorts)
    }
}

/// How a decoder is made. Deinterlacing is always `Weave`: both fields as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderConfig {
    /// `cudaVideoCodec_*`.
    pub codec: cudaVideoCodec,
    /// `cudaVideoChromaFormat_*`.
    pub chroma: cudaVideoChromaFormat,
    /// Bits a sample.
    pub bit_depth: u32,
    /// Columns of the coded picture.
    pub coded_width: u32,
    /// Rows of the coded picture.
    pub coded_height: u32,
    /// The largest coded columns that a later reconfiguration may ask for.
    pub max_width: u32,
    /// The largest coded rows that a later reconfiguration may ask for.
    pub max_height: u32,
    /// Surfaces that pictures are decoded into: what the parser asks for, and one for each picture that is
    /// held beyond that. 1 to 32.
    pub decode_surfaces: u32,
    /// Surfaces that can be mapped at once, 1 to 64.
    pub output_surfaces: u32,
    /// `cudaVideoSurfaceFormat_*`.
    pub output_format: cudaVideoSurfaceFormat,
    /// The part of the coded picture that a mapped surface shows.
    pub display_area: Rect,
}

impl DecoderConfig {
    /// What a stream of `format` asks for. A mapped surface shows the whole coded picture, so that nothing is
    /// scaled; cropping is the copy's matter.
    pub fn for_format(format: &CUVIDEOFORMAT, decode_surfaces: u32, output_surfaces: u32) -> Self {
        let bit_depth = 8 + u32::from(
            format
                .bit_depth_luma_minus8
                .max(format.bit_depth_chroma_minus8),
        );
        Self {
            codec: format.codec,
            chroma: format.chroma_format,
            bit_depth,
            coded_width: format.coded_width,
            coded_height: format.coded_height,
            max_width: format.coded_width,
            max_height: format.coded_height,
            decode_surfaces,
            output_surfaces,
            output_format: output_format(format.chroma_format, bit_depth),
            display_area: Rect::of_size(format.coded_width, format.coded_height),
        }
    }

    /// Columns of a mapped surface: those of the display area, rounded up to an even number.
    pub fn target_width(&self) -> u32 {
        (self.display_area.right - self.display_area.left).next_multiple_of(2)
    }

    /// Rows of a mapped surface: those of the display area, rounded up to an even number.
    pub fn target_height(&self) -> u32 {
        (self.display_area.bottom - self.display_area.top).next_multiple_of(2)
    }

    /// # Errors
    /// [`Error::Parameter`] for the first parameter that is out of range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let range = |what: &str, value: u32, most: u32| {
            if (1..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::Parameter(format!(
                "{what} {value} is outside 1 to {most}"
            )))
        };
        range(
            "the number of decode surfaces",
            self.decode_surfaces,
            MAX_DECODE_SURFACES,
        )?;
        range(
            "the number of output surfaces",
            self.output_surfaces,
            MAX_OUTPUT_SURFACES,
        )?;
        range("the bit depth", self.bit_depth, 16)?;
        range("the coded width", self.coded_width, self.max_width)?;
        range("the coded height", self.coded_height, self.max_height)?;
        let area = self.display_area;
        let inside = area.left < area.right
            && area.top < area.bottom
            && area.right <= self.coded_width
            && area.bottom <= self.coded_height;
        if !inside {
            return Err(Error::Parameter(format!(
                "the display area {area:?} is no part of a picture of {}x{}",
                self.coded_width, self.coded_height
            )));
        }
        Ok(())
    }

    pub(crate) fn create_info(&self) -> Result<CUVIDDECODECREATEINFO, Error> {
        self.check()?;
        let mut info = CUVIDDECODECREATEINFO {
            ulWidth: c_ulong::from(self.coded_width),
            ulHeight: c_ulong::from(self.coded_height),
            ulNumDecodeSurfaces: c_ulong::from(self.decode_surfaces),
            CodecType: self.codec,
            ChromaFormat: self.chroma,
            ulCreationFlags: c_ulong::from(cudaVideoCreate_PreferCUVID),
            bitDepthMinus8: c_ulong::from(self.bit_depth.saturating_sub(8)),
            ulMaxWidth: c_ulong::from(self.max_width),
            ulMaxHeight: c_ulong::from(self.max_height),
            OutputFormat: self.output_format,
            DeinterlaceMode: cudaVideoDeinterlaceMode_Weave,
            ulTargetWidth: c_ulong::from(self.target_width()),
            ulTargetHeight: c_ulong::from(self.target_height()),
            ulNumOutputSurfaces: c_ulong::from(self.output_surfaces),
            ..Default::default()
        };
        let area = &mut info.display_area;
        [area.left, area.top, area.right, area.bottom] = self.display_area.shorts()?;
        // An odd size stays what it is inside an even target: without this the picture would be scaled.
        let rect = &mut info.target_rect;
        [rect.left, rect.top, rect.right, rect.bottom] = self.target_rect().shorts()?;
        Ok(info)
    }

    pub(crate) fn reconfigure_info(&self) -> Result<CUVIDRECONFIGUREDECODERINFO, Error> {
        self.check()?;
        let mut info = CUVIDRECONFIGUREDECODERINFO {
            ulWidth: self.coded_width,
            ulHeight: self.coded_height,
            ulTargetWidth: self.target_width(),
            ulTargetHeight: self.target_height(),
            ulNumDecodeSurfaces: self.decode_surfaces,
            ..Default::default()
        };
        let area = &mut info.display_area;
        [area.left, area.top, area.right, area.bottom] = self.display_area.shorts()?;
        let rect = &mut info.target_rect;
        [rect.left, rect.top, rect.right, rect.bottom] = self.target_rect().shorts()?;
        Ok(info)
    }

    fn target_rect(&self) -> Rect {
        let area = self.display_area;
        Rect::of_size(area.right - area.left, area.bottom - area.top)
    }

    /// Whether a decoder made with `self` can be reconfigured to `next` instead of being made anew.
    pub fn can_become(&self, next: &DecoderConfig) -> bool {
        self.codec == next.codec
            && self.chroma == next.chroma
            && self.bit_depth == next.bit_depth
            && self.output_format == next.output_format
            && self.output_surfaces == next.output_surfaces
            && next.coded_width <= self.max_width
            && next.coded_height <= self.max_height
    }
}

/// The surface format that keeps every bit of a stream.
pub fn output_format(chroma: cudaVideoChromaFormat, bit_depth: u32) -> cudaVideoSurfaceFormat {
    match (chroma == cudaVideoChromaFormat_444, bit_depth > 8) {
        (false, false) => cudaVideoSurfaceFormat_NV12,
        (false, true) => cudaVideoSurfaceFormat_P016,
        (true, false) => cudaVideoSurfaceFormat_YUV444,
        (true, true) => cudaVideoSurfaceFormat_YUV444_16Bit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> DecoderConfig {
        let format = CUVIDEOFORMAT {
            codec: cudaVideoCodec_VP9,
            coded_width: 175,
            coded_height: 143,
            chroma_format: cudaVideoChromaFormat_420,
            bit_depth_luma_minus8: 2,
            ..Default::default()
        };
        DecoderConfig::for_format(&format, 12, 2)
    }

    #[test]
    fn an_odd_size_is_not_scaled_to_the_even_target() {
        let info = config().create_info().expect("a valid configuration");
        assert_eq!((info.ulTargetWidth, info.ulTargetHeight), (176, 144));
        assert_eq!(
            (info.target_rect.right, info.target_rect.bottom),
            (175, 143)
        );
        assert_eq!(
            (info.display_area.right, info.display_area.bottom),
            (175, 143)
        );
        assert_eq!(info.OutputFormat, cudaVideoSurfaceFormat_P016);
        assert_eq!(info.bitDepthMinus8, 2);
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let said = |config: DecoderConfig| {
            config
                .create_info()
                .expect_err("it is out of range")
                .to_string()
        };
        let good = config();
        assert!(
            said(DecoderConfig {
                decode_surfaces: 33,
                ..good
            })
            .contains("decode surfaces 33")
        );
        assert!(
            said(DecoderConfig {
                output_surfaces: 0,
                ..good
            })
            .contains("output surfaces 0")
        );
        assert!(
            said(DecoderConfig {
                max_width: 100,
                ..good
            })
            .contains("coded width 175")
        );
        let area = Rect::of_size(176, 143);
        assert!(
            said(DecoderConfig {
                display_area: area,
                ..good
            })
            .contains("display area")
        );
        let large = DecoderConfig {
            coded_width: 40_000,
            max_width: 40_000,
            display_area: Rect::of_size(40_000, 143),
            ..good
        };
        assert!(said(large).contains("32767"));
    }

    #[test]
    fn a_smaller_size_and_more_surfaces_are_a_reconfiguration_another_depth_is_not() {
        let made = DecoderConfig {
            max_width: 640,
            max_height: 480,
            ..config()
        };
        let next = DecoderConfig {
            coded_width: 640,
            coded_height: 480,
            decode_surfaces: 20,
            ..made
        };
        assert!(made.can_become(&next));
        assert!(!made.can_become(&DecoderConfig {
            coded_width: 641,
            ..next
        }));
        assert!(!made.can_become(&DecoderConfig {
            bit_depth: 8,
            ..next
        }));
    }
}
