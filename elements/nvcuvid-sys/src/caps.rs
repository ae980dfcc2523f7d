// SPDX-License-Identifier: MPL-2.0

//! [`DecoderCaps`]: what a device decodes.

use crate::bindings::*;
use crate::{Context, CuError, Nvcuvid};

/// What the device says about one codec, chroma format and bit depth (`cuvidGetDecoderCaps`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderCaps {
    /// Whether it decodes it at all; where not, the other fields are zero.
    pub supported: bool,
    /// How many of the device's engines can do it.
    pub engines: u8,
    /// Bit n stands for `cudaVideoSurfaceFormat` n.
    pub output_formats: u16,
    /// Columns of the coded picture, at least.
    pub min_width: u16,
    /// Rows of the coded picture, at least.
    pub min_height: u16,
    /// Columns of the coded picture, at most.
    pub max_width: u32,
    /// Rows of the coded picture, at most.
    pub max_height: u32,
    /// Macroblocks (16 by 16) of the coded picture, at most.
    pub max_macroblocks: u32,
}

/// Why a device does not decode a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapsRefusal {
    /// Not this codec, or not with this chroma format and depth.
    #[error("this device does not decode the codec with this chroma format and bit depth")]
    Format,
    /// The picture is too small or too large.
    #[error(
        "pictures of {width}x{height} are outside {min_width}x{min_height} to {max_width}x{max_height}, which \
         this device decodes"
    )]
    Size {
        /// Columns.
        width: u32,
        /// Rows.
        height: u32,
        /// The least columns.
        min_width: u16,
        /// The least rows.
        min_height: u16,
        /// The most columns.
        max_width: u32,
        /// The most rows.
        max_height: u32,
    },
    /// Each side is in range, their product is not.
    #[error(
        "pictures of {macroblocks} macroblocks are more than the {most} that this device decodes"
    )]
    Area {
        /// Macroblocks of the picture.
        macroblocks: u64,
        /// The most.
        most: u32,
    },
    /// The device does not write the surface format.
    #[error("this device does not write cudaVideoSurfaceFormat {0}")]
    OutputFormat(cudaVideoSurfaceFormat),
}

impl DecoderCaps {
    /// Asks the device of `context`.
    ///
    /// # Errors
    /// What the driver says. A codec that is not supported is no error.
    pub fn query(
        context: &Context,
        nvcuvid: &Nvcuvid,
        codec: cudaVideoCodec,
        chroma: cudaVideoChromaFormat,
        bit_depth: u32,
    ) -> Result<Self, CuError> {
        let mut caps = CUVIDDECODECAPS {
            eCodecType: codec,
            eChromaFormat: chroma,
            nBitDepthMinus8: bit_depth.saturating_sub(8),
            ..Default::default()
        };
        context.with(|| {
            // SAFETY: the pointer is a local's.
            unsafe { (nvcuvid.functions().cuvidGetDecoderCaps)(&mut caps) }
                .check("cuvidGetDecoderCaps")
        })?;
        Ok(Self {
            supported: caps.bIsSupported != 0,
            engines: caps.nNumNVDECs,
            output_formats: caps.nOutputFormatMask,
            min_width: caps.nMinWidth,
            min_height: caps.nMinHeight,
            max_width: caps.nMaxWidth,
            max_height: caps.nMaxHeight,
            max_macroblocks: caps.nMaxMBCount,
        })
    }

    /// Whether a picture of this coded size can be decoded into surfaces of this format.
    ///
    /// # Errors
    /// The first limit that it breaks.
    pub fn check(
        &self,
        width: u32,
        height: u32,
        output: cudaVideoSurfaceFormat,
    ) -> Result<(), CapsRefusal> {
        if !self.supported {
            return Err(CapsRefusal::Format);
        }
        let columns = u32::from(self.min_width)..=self.max_width;
        let rows = u32::from(self.min_height)..=self.max_height;
        if !columns.contains(&width) || !rows.contains(&height) {
            return Err(CapsRefusal::Size {
                width,
                height,
                min_width: self.min_width,
                min_height: self.min_height,
                max_width: self.max_width,
                max_height: self.max_height,
            });
        }
        let macroblocks = u64::from(width / 16) * u64::from(height / 16);
        if macroblocks > u64::from(self.max_macroblocks) {
            return Err(CapsRefusal::Area {
                macroblocks,
                most: self.max_macroblocks,
            });
        }
        // Drivers before 9.0 leave the mask empty and write NV12.
        let mask = self.output_formats.max(1 << cudaVideoSurfaceFormat_NV12);
        match u32::from(mask).checked_shr(output) {
            Some(bits) if bits & 1 == 1 => Ok(()),
            _ => Err(CapsRefusal::OutputFormat(output)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPS: DecoderCaps = DecoderCaps {
        supported: true,
        engines: 7,
        output_formats: 0b01,
        min_width: 48,
        min_height: 16,
        max_width: 4096,
        max_height: 4096,
        max_macroblocks: 65_536,
    };

    #[test]
    fn each_limit_refuses_what_is_beyond_it_and_nothing_else() {
        let nv12 = cudaVideoSurfaceFormat_NV12;
        assert_eq!(CAPS.check(48, 16, nv12), Ok(()));
        assert_eq!(CAPS.check(4096, 4096, nv12), Ok(()));
        for (width, height) in [(47, 16), (48, 15), (4097, 16), (48, 4097)] {
            let refused = CAPS.check(width, height, nv12);
            assert!(
                matches!(refused, Err(CapsRefusal::Size { .. })),
                "{refused:?}"
            );
        }
        let small = DecoderCaps {
            max_macroblocks: 65_535,
            ..CAPS
        };
        assert_eq!(
            small.check(4096, 4096, nv12),
            Err(CapsRefusal::Area {
                macroblocks: 65_536,
                most: 65_535
            })
        );
        for output in [cudaVideoSurfaceFormat_P016, 40] {
            assert_eq!(
                CAPS.check(48, 16, output),
                Err(CapsRefusal::OutputFormat(output))
            );
        }
        let none = DecoderCaps {
            supported: false,
            ..CAPS
        };
        assert_eq!(none.check(48, 16, nv12), Err(CapsRefusal::Format));
    }
}
