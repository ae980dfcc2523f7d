// SPDX-License-Identifier: MPL-2.0

//! The luma plane of a buffer, read where it lies.

use gst::BufferRef;
use gst_video::{VIDEO_MAX_PLANES, VideoFormatInfo, VideoInfo, VideoMeta};
use thiserror::Error;
use vmaf_motion::float::Component;
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

    /// Size and sample format of the chroma planes, where there are two.
    pub(crate) fn chroma_geometry(&self) -> Option<Geometry> {
        let format = self.info.format_info();
        if format.n_components() < 3 || !format.is_yuv() {
            return None;
        }
        let (width, height) = (self.info.comp_width(1), self.info.comp_height(1));
        Geometry::new(width, height, self.geometry.format()).ok()
    }

    /// Calls `read` with the luma plane of `buffer` and, where `chroma` asks for them, its two
    /// chroma planes. The memory is mapped in place and not touched; only where a plane is spread
    /// over several memories or runs bottom up, it is gathered in `staging`.
    pub(crate) fn with_picture<T>(
        &self,
        buffer: &BufferRef,
        chroma: bool,
        staging: &mut Staging,
        read: impl FnOnce(&Plane<'_>, Option<[Component<'_>; 2]>) -> T,
    ) -> Result<T, PictureError> {
        let rows = self.rows(buffer)?;
        let [luma_staging, u_staging, v_staging] = staging;
        let luma = View::of(buffer, &rows[0], luma_staging)?;
        let luma = Plane::new(luma.data(), luma.stride, self.geometry)?;
        let Some(geometry) = self.chroma_geometry().filter(|_| chroma) else {
            return Ok(read(&luma, None));
        };
        let format = self.info.format_info();
        let plane = |component: usize| format.plane()[component] as usize;
        let (u, v) = (
            View::of(buffer, &rows[plane(1)], u_staging)?,
            View::of(buffer, &rows[plane(2)], v_staging)?,
        );
        let chroma = [
            u.component(&format, 1, geometry)?,
            v.component(&format, 2, geometry)?,
        ];
        Ok(read(&luma, Some(chroma)))
    }

    /// Finds the rows of every plane and checks that the buffer holds the whole picture.
    fn rows(&self, buffer: &BufferRef) -> Result<[Rows; VIDEO_MAX_PLANES], PictureError> {
        let size = buffer.size();
        let truncated = |needed: usize| PictureError::Truncated {
            size,
            needed,
            picture: self.describe(),
        };
        let mut rows = [Rows::default(); VIDEO_MAX_PLANES];
        let meta = buffer.meta::<VideoMeta>();
        let (offsets, strides, crop) = match &meta {
            None if size < self.info.size() => return Err(truncated(self.info.size())),
            None => (self.info.offset(), self.info.stride(), (0, 0)),
            Some(meta) => {
                let fits = meta.format() == self.info.format()
                    && meta.width() >= self.info.width()
                    && meta.height() >= self.info.height()
                    && meta.n_planes() == self.info.n_planes();
                if !fits {
                    let (width, height) = (meta.width(), meta.height());
                    return Err(PictureError::Meta {
                        meta: format!("{} {width}x{height}", meta.format().to_str()),
                        picture: self.describe(),
                    });
                }
                (meta.offset(), meta.stride(), self.crop(buffer, meta))
            }
        };
        let format = self.info.format_info();
        let planes = rows.iter_mut().zip(offsets.iter().zip(strides));
        for (plane, (rows, (&offset, &stride))) in planes.enumerate() {
            let Ok(component) = usize::try_from(format.component(plane as u32)[0]) else {
                continue;
            };
            let pixel = format.pixel_stride()[component] as usize;
            let len = self.info.comp_width(component as u8) as usize * pixel;
            let count = self.info.comp_height(component as u8) as usize;
            let stride = stride as isize;
            if stride.unsigned_abs() < len {
                return Err(PlaneError::Stride {
                    stride: stride.unsigned_abs(),
                    row: len,
                }
                .into());
            }
            let (x, y) = (
                crop.0 as usize >> format.w_sub()[component],
                crop.1 as usize >> format.h_sub()[component],
            );
            let start = offset as isize + y as isize * stride + (x * pixel) as isize;
            let last = start + (count as isize - 1) * stride;
            let (lowest, highest) = (start.min(last), start.max(last) + len as isize);
            if lowest < 0 || highest > size as isize {
                return Err(truncated(highest.max(0) as usize));
            }
            *rows = Rows {
                start: start as usize,
                stride,
                len,
                count,
            };
        }
        Ok(rows)
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

/// Room for the planes that cannot be read in place: luma and two chroma planes.
pub(crate) type Staging = [Vec<u8>; 3];

/// The rows of a plane that lies inside its buffer, in bytes: start of the top row, distance of the
/// rows (negative where the picture runs bottom up), and what a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Rows {
    start: usize,
    stride: isize,
    len: usize,
    count: usize,
}

/// A plane that can be read.
struct View<'a> {
    memory: Memory<'a>,
    stride: usize,
}

enum Memory<'a> {
    /// In place, behind so many bytes.
    Mapped(gst::MemoryMap<'a, gst::memory::Readable>, usize),
    Gathered(&'a [u8]),
}

impl<'a> View<'a> {
    fn of(
        buffer: &'a BufferRef,
        rows: &Rows,
        staging: &'a mut Vec<u8>,
    ) -> Result<Self, PictureError> {
        if let Ok(stride) = usize::try_from(rows.stride) {
            let len = rows.count.saturating_sub(1) * stride + rows.len;
            if let Some((memories, skip)) = buffer.find_memory(rows.start..rows.start + len)
                && memories.len() == 1
            {
                let map = buffer.peek_memory(memories.start).map_readable();
                let map = map.map_err(|error| PictureError::Map(error.to_string()))?;
                return Ok(Self {
                    memory: Memory::Mapped(map, skip),
                    stride,
                });
            }
        }
        staging.resize(rows.len * rows.count, 0);
        for (y, row) in staging.chunks_exact_mut(rows.len.max(1)).enumerate() {
            let start = rows.start as isize + y as isize * rows.stride;
            let copied = buffer.copy_to_slice(start as usize, row);
            copied.map_err(|_| PictureError::Map("a memory refused to be mapped".to_owned()))?;
        }
        Ok(Self {
            memory: Memory::Gathered(staging),
            stride: rows.len,
        })
    }

    /// One component of the plane, which may share it with another.
    fn component(
        &self,
        format: &VideoFormatInfo,
        component: usize,
        geometry: Geometry,
    ) -> Result<Component<'_>, PlaneError> {
        let (offset, step) = (
            format.poffset()[component],
            format.pixel_stride()[component],
        );
        let data = self.data().get(offset as usize..).unwrap_or_default();
        Component::new(data, self.stride, step as usize, geometry)
    }

    fn data(&self) -> &[u8] {
        match &self.memory {
            Memory::Mapped(map, skip) => map.as_slice().get(*skip..).unwrap_or_default(),
            Memory::Gathered(bytes) => bytes,
        }
    }
}
