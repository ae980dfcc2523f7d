// SPDX-License-Identifier: MPL-2.0

//! [`MappedSurface`]: a decoded picture in device memory, until it is unmapped.

#![allow(
    non_upper_case_globals,
    reason = "constants of the headers stand in patterns"
)]

use std::fmt;
use std::sync::Arc;

use crate::bindings::*;
use crate::copy::PlaneCopy;
use crate::{Decoder, DecoderConfig, Error, Stream};

/// Which fields of a picture are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldSelection {
    /// Both at one moment.
    pub progressive: bool,
    /// The top field is the first.
    pub top_field_first: bool,
    /// There is one field only.
    pub unpaired: bool,
}

impl FieldSelection {
    /// A progressive picture.
    pub const PROGRESSIVE: Self = Self {
        progressive: true,
        top_field_first: false,
        unpaired: false,
    };

    /// What the parser says of a picture that is to be shown.
    pub fn of(display: &CUVIDPARSERDISPINFO) -> Self {
        Self {
            progressive: display.progressive_frame != 0,
            top_field_first: display.top_field_first != 0,
            unpaired: display.repeat_first_field < 0,
        }
    }

    pub(crate) fn proc_params(self, stream: &Stream) -> CUVIDPROCPARAMS {
        CUVIDPROCPARAMS {
            progressive_frame: self.progressive.into(),
            top_field_first: self.top_field_first.into(),
            unpaired_field: self.unpaired.into(),
            // Stream 0 would wait for everything else on the device.
            output_stream: stream.raw(),
            ..Default::default()
        }
    }
}

/// How a mapped surface lies in memory: planes one behind the other, rows `pitch` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceLayout {
    /// `cudaVideoSurfaceFormat_*`: NV12 and P016 have luma and interleaved chroma at half the rows, YUV444 and
    /// its 16-bit form three planes of equal size.
    pub format: cudaVideoSurfaceFormat,
    /// Columns of luma, an even number.
    pub width: u32,
    /// Rows of luma, an even number.
    pub height: u32,
    /// Bytes from one row to the next.
    pub pitch: u32,
}

impl SurfaceLayout {
    pub(crate) fn new(config: &DecoderConfig, pitch: u32) -> Self {
        Self {
            format: config.output_format,
            width: config.target_width(),
            height: config.target_height(),
            pitch,
        }
    }

    /// Bytes of one sample.
    pub fn bytes_per_sample(&self) -> usize {
        match self.format {
            cudaVideoSurfaceFormat_P016 | cudaVideoSurfaceFormat_YUV444_16Bit => 2,
            _ => 1,
        }
    }

    /// How many planes it has.
    pub fn planes(&self) -> usize {
        match self.format {
            cudaVideoSurfaceFormat_YUV444 | cudaVideoSurfaceFormat_YUV444_16Bit => 3,
            _ => 2,
        }
    }

    /// Rows of a plane, or `None` where there is no plane of this number.
    pub fn plane_height(&self, plane: usize) -> Option<usize> {
        let height = self.height as usize;
        match (plane, self.planes()) {
            (0, _) | (1 | 2, 3) => Some(height),
            (1, 2) => Some(height / 2),
            _ => None,
        }
    }

    /// Bytes from the surface's start to a plane's.
    pub fn plane_offset(&self, plane: usize) -> Option<usize> {
        self.plane_height(plane)?;
        Some(plane * self.height as usize * self.pitch as usize)
    }

    /// Bytes of the whole surface.
    pub fn size(&self) -> usize {
        let rows: usize = (0..self.planes())
            .filter_map(|plane| self.plane_height(plane))
            .sum();
        rows * self.pitch as usize
    }

    /// The planes, cropped to `columns` by `rows` of luma from the origin, packed one behind the other with
    /// rows of exactly their length: what a file of raw video has. `None` where the crop is empty or larger
    /// than the surface. Chroma of an odd size is rounded up.
    pub fn packed(&self, columns: u32, rows: u32) -> Option<Vec<PlaneCopy>> {
        if columns == 0 || rows == 0 || columns > self.width || rows > self.height {
            return None;
        }
        let semiplanar = self.planes() == 2;
        let mut start = 0;
        (0..self.planes())
            .map(|plane| {
                let (columns, rows) = match (plane, semiplanar) {
                    (1, true) => (columns.next_multiple_of(2), rows.div_ceil(2)),
                    _ => (columns, rows),
                };
                let width = columns as usize * self.bytes_per_sample();
                let copy = PlaneCopy {
                    source: self.plane_offset(plane)?,
                    width,
                    height: rows as usize,
                    target: start,
                    target_pitch: width,
                };
                start += width * rows as usize;
                Some(copy)
            })
            .collect()
    }
}

/// A decoded picture in device memory. Its last owner unmaps it; the work that reads it has to be done by
/// then, which [`copy_to_host`](Self::copy_to_host) takes care of: a copy in flight is an owner.
pub struct MappedSurface {
    decoder: Arc<Decoder>,
    stream: Arc<Stream>,
    /// `None` once it was unmapped, which is the last that happens to it.
    address: Option<u64>,
    layout: SurfaceLayout,
}

impl MappedSurface {
    pub(crate) fn new(
        decoder: Arc<Decoder>,
        stream: Arc<Stream>,
        address: u64,
        layout: SurfaceLayout,
    ) -> Self {
        Self {
            decoder,
            stream,
            address: Some(address),
            layout,
        }
    }

    /// Its address on the device.
    pub fn address(&self) -> u64 {
        self.address.unwrap_or(0)
    }

    /// How it lies there.
    pub fn layout(&self) -> SurfaceLayout {
        self.layout
    }

    /// The stream in which it is written, and in which it has to be read.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Its decoder.
    pub fn decoder(&self) -> &Arc<Decoder> {
        &self.decoder
    }

    /// Gives it up. The last owner unmaps it, and learns whether the driver did.
    ///
    /// # Errors
    /// What the driver says.
    pub fn unmap(self: Arc<Self>) -> Result<(), Error> {
        match Arc::into_inner(self) {
            Some(mut last) => last.unmap_now(),
            None => Ok(()),
        }
    }

    fn unmap_now(&mut self) -> Result<(), Error> {
        match self.address.take() {
            Some(address) => self.decoder.unmap(address),
            None => Ok(()),
        }
    }
}

impl Drop for MappedSurface {
    fn drop(&mut self) {
        // A failure means that the context is lost, and the surface with it.
        let _ = self.unmap_now();
    }
}

impl fmt::Debug for MappedSurface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedSurface({:#x}, {:?})", self.address(), self.layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_lie_one_behind_the_other_and_a_crop_packs_them() {
        let nv12 = SurfaceLayout {
            format: cudaVideoSurfaceFormat_NV12,
            width: 176,
            height: 144,
            pitch: 256,
        };
        assert_eq!(nv12.plane_offset(1), Some(256 * 144));
        assert_eq!(nv12.plane_offset(2), None);
        assert_eq!(nv12.size(), 256 * 216);
        let planes = nv12.packed(175, 143).expect("the crop fits");
        assert_eq!((planes[0].width, planes[0].height), (175, 143));
        assert_eq!((planes[1].width, planes[1].height), (176, 72));
        assert_eq!(planes[1].target, 175 * 143);
        assert!(nv12.packed(177, 144).is_none() && nv12.packed(0, 1).is_none());

        let p444 = SurfaceLayout {
            format: cudaVideoSurfaceFormat_YUV444_16Bit,
            ..nv12
        };
        assert_eq!(p444.plane_offset(2), Some(2 * 256 * 144));
        assert_eq!(p444.bytes_per_sample(), 2);
        assert_eq!(
            p444.packed(100, 10).expect("it fits")[2].target,
            2 * 200 * 10
        );
    }
}
