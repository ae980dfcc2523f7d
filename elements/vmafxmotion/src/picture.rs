// SPDX-License-Identifier: MPL-2.0

//! The luma plane of a buffer, read where it lies.

use gst::BufferRef;
use gst_video::{VideoInfo, VideoMeta};
use thiserror::Error;
use vmaf_motion::{Geometry, Plane, PlaneError};

use crate::formats::luma_format;

/// Caps that cannot be scored, or a buffer that does not hold what its caps say.
#[derive(Debug, Clone, PartialEq, Error)]
pub(crate) enum PictureError {
    #[error("these caps describe no raw video")]
    Caps,
    #[error("video format {0} has no plain luma plane")]
    Format(String),
    #[error(
        "interlace-mode=alternate (one field a buffer) cannot be scored: put a deinterlacer before this element"
    )]
    Alternate,
    #[error(transparent)]
    Plane(#[from] PlaneError),
    #[error("buffer of {size} bytes is too short for a {picture} picture, which needs {needed}")]
    Truncated {
        size: usize,
        needed: usize,
        picture: String,
    },
    #[error("buffer's video meta says {meta}, its caps say {picture}")]
    Meta { meta: String, picture: String },
    #[error("buffer's memory cannot be read: {0}")]
    Map(String),
}

/// Where the samples of a stream's pictures are, unless a buffer's video meta says otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    info: VideoInfo,
    geometry: Geometry,
}

impl Layout {
    pub(crate) fn of_caps(caps: &gst::CapsRef) -> Result<Self, PictureError> {
        // Without its caps feature this mode makes no valid video info.
        let mode = caps
            .structure(0)
            .and_then(|s| s.get::<&str>("interlace-mode").ok());
        if mode == Some("alternate") {
            return Err(PictureError::Alternate);
        }
        let info = VideoInfo::from_caps(caps).map_err(|_| PictureError::Caps)?;
        let format = luma_format(&info.format_info())
            .ok_or_else(|| PictureError::Format(info.format().to_str().to_string()))?;
        let geometry = Geometry::new(info.width(), info.height(), format)?;
        Ok(Self { info, geometry })
    }

    pub(crate) fn info(&self) -> &VideoInfo {
        &self.info
    }

    pub(crate) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Whether scores can go on over a change to these caps.
    pub(crate) fn continues(&self, other: &Self) -> bool {
        self.info.format() == other.info.format() && self.geometry == other.geometry
    }

    fn describe(&self) -> String {
        let (width, height) = (self.info.width(), self.info.height());
        format!("{} {width}x{height}", self.info.format().to_str())
    }

    /// Calls `read` with the luma plane of `buffer`. The memory is mapped in place and not touched;
    /// only where a plane is spread over several memories or runs bottom up, it is gathered in
    /// `staging`.
    pub(crate) fn with_luma<T>(
        &self,
        buffer: &BufferRef,
        staging: &mut Vec<u8>,
        read: impl FnOnce(&Plane<'_>) -> T,
    ) -> Result<T, PictureError> {
        let rows = self.luma_rows(buffer)?;
        let contiguous = usize::try_from(rows.stride)
            .ok()
            .filter(|_| rows.stride > 0);
        if let Some(stride) = contiguous {
            let len = (self.geometry.height() - 1) * stride + self.geometry.row_bytes();
            if let Some((memories, skip)) = buffer.find_memory(rows.start..rows.start + len)
                && memories.len() == 1
            {
                let memory = buffer.peek_memory(memories.start);
                let map = memory
                    .map_readable()
                    .map_err(|e| PictureError::Map(e.to_string()))?;
                let plane = Plane::new(&map.as_slice()[skip..], stride, self.geometry)?;
                return Ok(read(&plane));
            }
        }
        self.gather(buffer, &rows, staging)?;
        let plane = Plane::new(staging, self.geometry.row_bytes(), self.geometry)?;
        Ok(read(&plane))
    }

    /// Copies the rows of the luma plane, top first, without padding.
    fn gather(
        &self,
        buffer: &BufferRef,
        rows: &Rows,
        staging: &mut Vec<u8>,
    ) -> Result<(), PictureError> {
        let row_bytes = self.geometry.row_bytes();
        staging.resize(row_bytes * self.geometry.height(), 0);
        for (y, row) in staging.chunks_exact_mut(row_bytes).enumerate() {
            let start = rows.start as isize + y as isize * rows.stride;
            let copied = buffer.copy_to_slice(start as usize, row);
            copied.map_err(|_| PictureError::Map("a memory refused to be mapped".to_owned()))?;
        }
        Ok(())
    }

    /// Finds the luma rows and checks that the buffer holds the whole picture, all planes of it.
    fn luma_rows(&self, buffer: &BufferRef) -> Result<Rows, PictureError> {
        let size = buffer.size();
        let truncated = |needed: usize| PictureError::Truncated {
            size,
            needed,
            picture: self.describe(),
        };
        let Some(meta) = buffer.meta::<VideoMeta>() else {
            if size < self.info.size() {
                return Err(truncated(self.info.size()));
            }
            return Ok(Rows {
                start: self.info.offset()[0],
                stride: self.info.stride()[0] as isize,
            });
        };
        let described = || PictureError::Meta {
            meta: format!(
                "{} {}x{}",
                meta.format().to_str(),
                meta.width(),
                meta.height()
            ),
            picture: self.describe(),
        };
        let fits = meta.format() == self.info.format()
            && meta.width() >= self.info.width()
            && meta.height() >= self.info.height()
            && meta.n_planes() as usize == self.info.n_planes() as usize;
        if !fits {
            return Err(described());
        }
        let (crop_x, crop_y) = self.crop(buffer, &meta);
        let format = self.info.format_info();
        let mut luma = None;
        for (plane, (&offset, &stride)) in meta.offset().iter().zip(meta.stride()).enumerate() {
            let component = format.component(plane as u32)[0];
            let Ok(component) = usize::try_from(component) else {
                return Err(described());
            };
            let scale = |length: u32, sub: u32| (length as usize).div_ceil(1 << sub);
            let (w_sub, h_sub) = (format.w_sub()[component], format.h_sub()[component]);
            let pixel = format.pixel_stride()[component] as usize;
            let row = scale(self.info.width(), w_sub) * pixel;
            let height = scale(self.info.height(), h_sub);
            let stride = stride as isize;
            if stride.unsigned_abs() < row {
                return Err(PlaneError::Stride {
                    stride: stride.unsigned_abs(),
                    row,
                }
                .into());
            }
            let start = offset as isize
                + (crop_y as usize >> h_sub) as isize * stride
                + ((crop_x as usize >> w_sub) * pixel) as isize;
            let last = start + (height as isize - 1) * stride;
            let (lowest, highest) = (start.min(last), start.max(last) + row as isize);
            if lowest < 0 || highest > size as isize {
                return Err(truncated(highest.max(0) as usize));
            }
            if plane == 0 {
                luma = Some(Rows {
                    start: start as usize,
                    stride,
                });
            }
        }
        luma.ok_or_else(described)
    }

    /// Top left corner of the picture inside a larger surface: decoders that crop by meta put the
    /// caps' size at this place.
    fn crop(&self, buffer: &BufferRef, meta: &VideoMeta) -> (u32, u32) {
        let Some(crop) = buffer.meta::<gst_video::VideoCropMeta>() else {
            return (0, 0);
        };
        let (x, y, width, height) = crop.rect();
        let is_the_picture = (width, height) == (self.info.width(), self.info.height())
            && x.saturating_add(width) <= meta.width()
            && y.saturating_add(height) <= meta.height();
        if is_the_picture { (x, y) } else { (0, 0) }
    }
}

/// The rows of a plane that lies inside its buffer: start of the top row and distance of the rows,
/// both in bytes; the distance is negative where the picture runs bottom up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rows {
    start: usize,
    stride: isize,
}
