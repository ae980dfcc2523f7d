// SPDX-License-Identifier: MPL-2.0

//! [`Setup`]: the parameters of a decoder, checked.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

use nvcuvid_sys::*;

use crate::caps;
use crate::pixels::{Area, Output};

/// Surfaces that can be mapped at once, at most.
const MAX_OUTPUTS: u64 = 64;

/// The parameters of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// `CodecType`.
    pub codec: cudaVideoCodec,
    /// Surfaces that pictures are decoded into.
    pub surfaces: usize,
    /// Surfaces that can be mapped at once.
    pub outputs: usize,
    /// Rows of a mapped surface.
    pub target_height: usize,
    target_width: usize,
    max_width: u32,
    max_height: u32,
    /// Bytes a sample of a mapped surface.
    bytes: usize,
    source: Area,
    target: Area,
}

impl Setup {
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for what is out of range, `CUDA_ERROR_NOT_SUPPORTED` for what the device cannot.
    pub fn new(info: &CUVIDDECODECREATEINFO) -> Result<Self, CuResult> {
        let out_of_range = |what: &str, value: u64| {
            eprintln!("standin_nvcuvid: cuvidCreateDecoder: {what} is {value}");
            Err(CuResult::INVALID_VALUE)
        };
        let depth = 8 + u32::try_from(info.bitDepthMinus8).unwrap_or(u32::MAX - 8);
        let can = caps::of(info.CodecType, info.ChromaFormat, depth);
        let Some(can) = can else {
            return Err(CuResult::NOT_SUPPORTED);
        };
        if !(1..=32).contains(&info.ulNumDecodeSurfaces) {
            return out_of_range("the number of decode surfaces", info.ulNumDecodeSurfaces);
        }
        if !(1..=MAX_OUTPUTS).contains(&info.ulNumOutputSurfaces) {
            return out_of_range("the number of output surfaces", info.ulNumOutputSurfaces);
        }
        let sizes = [info.ulWidth, info.ulHeight].map(|size| u32::try_from(size).unwrap_or(0));
        let [width, height] = sizes;
        if width == 0 || height == 0 || width > can.max_width || height > can.max_height {
            return out_of_range("the coded width", info.ulWidth);
        }
        let bytes = match info.OutputFormat {
            cudaVideoSurfaceFormat_NV12 => 1,
            cudaVideoSurfaceFormat_P016 if depth > 8 => 2,
            other => return out_of_range("the output format", other.into()),
        };
        let most = |asked: u64, size: u32| match u32::try_from(asked).unwrap_or(0) {
            0 => size,
            asked => asked.max(size),
        };
        let area = &info.display_area;
        let rect = &info.target_rect;
        let target = [info.ulTargetWidth, info.ulTargetHeight];
        let mut this = Self {
            codec: info.CodecType,
            surfaces: info.ulNumDecodeSurfaces as usize,
            outputs: info.ulNumOutputSurfaces as usize,
            max_width: most(info.ulMaxWidth, width),
            max_height: most(info.ulMaxHeight, height),
            bytes,
            target_width: 0,
            target_height: 0,
            source: Area::default(),
            target: Area::default(),
        };
        this.arrange(
            sizes,
            target,
            [area.left, area.top, area.right, area.bottom],
            [rect.left, rect.top, rect.right, rect.bottom],
        )?;
        Ok(this)
    }

    /// What a reconfiguration makes of it.
    ///
    /// # Errors
    /// `CUDA_ERROR_INVALID_VALUE` for what is out of range.
    pub fn reconfigured(&self, info: &CUVIDRECONFIGUREDECODERINFO) -> Result<Self, CuResult> {
        let mut next = *self;
        let fits = info.ulWidth <= self.max_width && info.ulHeight <= self.max_height;
        if !fits || !(1..=32).contains(&info.ulNumDecodeSurfaces) {
            eprintln!(
                "standin_nvcuvid: cuvidReconfigureDecoder to {}x{} with {} surfaces: the decoder was made for up to \
                 {}x{} and 32",
                info.ulWidth,
                info.ulHeight,
                info.ulNumDecodeSurfaces,
                self.max_width,
                self.max_height
            );
            return Err(CuResult::INVALID_VALUE);
        }
        next.surfaces = info.ulNumDecodeSurfaces as usize;
        let area = &info.display_area;
        let rect = &info.target_rect;
        next.arrange(
            [info.ulWidth, info.ulHeight],
            [info.ulTargetWidth.into(), info.ulTargetHeight.into()],
            [area.left, area.top, area.right, area.bottom],
            [rect.left, rect.top, rect.right, rect.bottom],
        )?;
        Ok(next)
    }

    fn arrange(
        &mut self,
        [width, height]: [u32; 2],
        [target_width, target_height]: [u64; 2],
        source: [i16; 4],
        target: [i16; 4],
    ) -> Result<(), CuResult> {
        let even = |size: u64| match size {
            0 => None,
            size => usize::try_from(size).ok().filter(|size| *size <= 16_384),
        };
        let sizes = even(target_width).zip(even(target_height));
        let (target_width, target_height) = sizes.ok_or_else(|| {
            eprintln!(
                "standin_nvcuvid: a target of {target_width}x{target_height} is out of range"
            );
            CuResult::INVALID_VALUE
        })?;
        self.target_width = target_width.next_multiple_of(2);
        self.target_height = target_height.next_multiple_of(2);
        self.source = area(source, width as usize, height as usize)?;
        self.target = area(target, self.target_width, self.target_height)?;
        Ok(())
    }

    /// Bytes of a row of samples.
    pub fn row_bytes(&self) -> usize {
        self.target_width * self.bytes
    }

    /// Whether output surfaces of `other` can stay.
    pub fn has_layout_of(&self, other: &Self) -> bool {
        self.row_bytes() == other.row_bytes() && self.target_height == other.target_height
    }

    /// How a mapped surface is written.
    pub fn output(&self, pitch: usize) -> Output {
        Output {
            width: self.target_width,
            height: self.target_height,
            pitch,
            bytes: self.bytes,
            source: self.source,
            target: self.target,
        }
    }

    /// Whether the driver keeps a status of pictures. It is documented for three codecs.
    pub fn has_status(&self) -> bool {
        let kept = matches!(
            self.codec,
            cudaVideoCodec_H264 | cudaVideoCodec_HEVC | cudaVideoCodec_JPEG
        );
        kept && std::env::var_os("NVSTANDIN_NO_STATUS").is_none()
    }
}

/// An area inside of `width` and `height`; all of it where the client left it out.
fn area(rect: [i16; 4], width: usize, height: usize) -> Result<Area, CuResult> {
    if rect == [0; 4] {
        return Ok(Area {
            left: 0,
            top: 0,
            right: width,
            bottom: height,
        });
    }
    let [left, top, right, bottom] = rect.map(|value| usize::try_from(value).unwrap_or(usize::MAX));
    let inside = left < right && top < bottom && right <= width && bottom <= height;
    if !inside {
        eprintln!("standin_nvcuvid: the area {rect:?} is no part of {width}x{height}");
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(Area {
        left,
        top,
        right,
        bottom,
    })
}
