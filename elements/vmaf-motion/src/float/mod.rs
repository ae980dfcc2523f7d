// SPDX-License-Identifier: MPL-2.0

//! `float_motion`: blur each picture in 32-bit floats, then take the mean absolute difference of two
//! blurred pictures (libvmaf 3.2, `float_motion.c`).
//!
//! Every operation is an `f32` operation in libvmaf's order: the order is part of the result. Samples
//! are computed many at a time where each has its own sum; the sum of a row's differences is
//! sequential, so several rows are summed side by side.

mod blur;
mod component;
mod half;

pub use component::Component;

use thiserror::Error;

use crate::plane::Geometry;
use blur::Blurred;
use half::HalfSize;

/// Widest plane at half size that libvmaf takes.
pub const MAX_HALF_WIDTH: usize = 7_680;

/// What is computed. Defaults: 5 taps, luma at full size alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatParams {
    /// `motion_filter_size`: 1 is no blur, 3 is three taps, all else five.
    pub filter_size: u32,
    /// `motion_add_scale1`: adds the difference at half the size.
    pub add_scale1: bool,
    /// `motion_add_uv`: adds the chroma planes.
    pub add_uv: bool,
}

impl Default for FloatParams {
    fn default() -> Self {
        Self {
            filter_size: 5,
            add_scale1: false,
            add_uv: false,
        }
    }
}

impl FloatParams {
    /// Weights of five neighbours. Fewer taps are the same sum with zeros around them.
    fn taps(self) -> [f32; 5] {
        match self.filter_size {
            1 => [0.0, 0.0, 1.0, 0.0, 0.0],
            3 => [0.0, 0.166_378_5, 0.667_243, 0.166_378_5, 0.0],
            _ => [
                0.054_488_685,
                0.244_201_35,
                0.402_619_96,
                0.244_201_35,
                0.054_488_685,
            ],
        }
    }
}

/// A combination that has no defined score, or a picture that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FloatError {
    /// libvmaf misreads other depths.
    #[error(
        "float motion is not defined for {depth} bit: use 8, 10, 12 or 16 bit, or the integer extractor"
    )]
    Depth {
        /// Bits of a sample.
        depth: u32,
    },
    /// Chroma was asked for where there is none.
    #[error("motion_add_uv needs chroma planes: this format has none")]
    NoChroma,
    /// libvmaf reads memory that nobody wrote.
    #[error(
        "motion_add_uv together with motion_add_scale1 is defined for 4:4:4 alone: leave one of them out"
    )]
    HalfSizeChroma,
    /// Too wide for the half size.
    #[error(
        "motion_add_scale1 takes pictures of at most {} samples a row, this one has {width}",
        2 * MAX_HALF_WIDTH
    )]
    TooWide {
        /// Samples in a row.
        width: usize,
    },
    /// A picture that does not fit the stream it was given to.
    #[error("picture of another size or format than the stream's")]
    Geometry,
    /// The stream needs chroma planes and the picture came without, or the other way round.
    #[error("chroma planes are given exactly when motion_add_uv is set")]
    ChromaPlanes,
}

/// One plane of the stream: what is kept of the picture before.
#[derive(Debug)]
struct Channel {
    blurred: Blurred,
    half: Option<HalfSize>,
}

impl Channel {
    fn new(params: FloatParams, geometry: Geometry) -> Self {
        Self {
            blurred: Blurred::new(params.taps(), geometry),
            half: params.add_scale1.then(|| HalfSize::new(geometry)),
        }
    }

    /// Difference to the plane before, which the new one replaces.
    fn push(&mut self, plane: &Component<'_>) -> f32 {
        let mut score = self.blurred.push(plane);
        if let Some(half) = &mut self.half {
            score += half.push(&self.blurred);
        }
        score
    }
}

/// The raw scores of a stream of pictures, before weight, cap and blend.
#[derive(Debug)]
pub struct FloatMotion {
    luma: Channel,
    chroma: Option<[Channel; 2]>,
    geometry: Geometry,
    chroma_geometry: Option<Geometry>,
    seen: u64,
}

impl FloatMotion {
    /// For pictures of one geometry. `chroma` is that of each chroma plane, `None` for grey ones; it
    /// counts only with `add_uv`.
    ///
    /// The size of the chroma planes is part of the score. libvmaf rounds half of an odd luma size
    /// down, GStreamer and files round it up.
    ///
    /// # Errors
    /// [`FloatError`] for what libvmaf leaves undefined.
    pub fn new(
        params: FloatParams,
        luma: Geometry,
        chroma: Option<Geometry>,
    ) -> Result<Self, FloatError> {
        let depth = luma.format().depth();
        if ![8, 10, 12, 16].contains(&depth) {
            return Err(FloatError::Depth { depth });
        }
        let half_width = luma.width().div_ceil(2);
        if params.add_scale1 && half_width > MAX_HALF_WIDTH {
            return Err(FloatError::TooWide {
                width: luma.width(),
            });
        }
        let chroma_geometry = match (params.add_uv, chroma) {
            (false, _) => None,
            (true, None) => return Err(FloatError::NoChroma),
            (true, Some(chroma)) if chroma.format().depth() != depth => {
                return Err(FloatError::Geometry);
            }
            (true, Some(chroma)) => Some(chroma),
        };
        let size = |geometry: Geometry| (geometry.width(), geometry.height());
        if params.add_scale1 && chroma_geometry.is_some_and(|chroma| size(chroma) != size(luma)) {
            return Err(FloatError::HalfSizeChroma);
        }
        let channel = |geometry| Channel::new(params, geometry);
        Ok(Self {
            luma: channel(luma),
            chroma: chroma_geometry.map(|chroma| [channel(chroma), channel(chroma)]),
            geometry: luma,
            chroma_geometry,
            seen: 0,
        })
    }

    /// Whether pictures come with chroma planes.
    pub fn needs_chroma(&self) -> bool {
        self.chroma_geometry.is_some()
    }

    /// Takes the next picture; gives its difference to the one before in 8-bit code values, or
    /// `None` for the first picture. `chroma` is given exactly when [`FloatMotion::needs_chroma`].
    ///
    /// # Errors
    /// [`FloatError::Geometry`] and [`FloatError::ChromaPlanes`]; nothing changes.
    pub fn push(
        &mut self,
        luma: &Component<'_>,
        chroma: Option<[Component<'_>; 2]>,
    ) -> Result<Option<f64>, FloatError> {
        if luma.geometry() != self.geometry {
            return Err(FloatError::Geometry);
        }
        let planes = chroma.as_ref().into_iter().flatten();
        for plane in planes {
            if self
                .chroma_geometry
                .is_some_and(|it| it != plane.geometry())
            {
                return Err(FloatError::Geometry);
            }
        }
        let mut score = match (&mut self.chroma, &chroma) {
            (None, None) | (Some(_), Some(_)) => f64::from(self.luma.push(luma)),
            _ => return Err(FloatError::ChromaPlanes),
        };
        if let (Some(channels), Some(planes)) = (&mut self.chroma, &chroma) {
            for (channel, plane) in channels.iter_mut().zip(planes) {
                score += f64::from(channel.push(plane));
            }
        }
        self.seen += 1;
        Ok((self.seen > 1).then_some(score))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::SampleFormat;

    fn geometry(width: u32, depth: u32) -> Geometry {
        Geometry::new(width, 9, SampleFormat::low(depth).unwrap()).unwrap()
    }

    #[test]
    fn what_is_undefined_is_refused() {
        let new = |add_scale1, add_uv, luma, chroma| {
            let params = FloatParams {
                add_scale1,
                add_uv,
                ..FloatParams::default()
            };
            FloatMotion::new(params, luma, chroma).map(|_| ())
        };
        for depth in [9, 11, 13, 14, 15] {
            let refused = new(false, false, geometry(16, depth), None);
            assert_eq!(refused, Err(FloatError::Depth { depth }));
        }
        let (full, half) = (geometry(16, 8), geometry(8, 8));
        assert_eq!(new(false, true, full, None), Err(FloatError::NoChroma));
        assert_eq!(
            new(true, true, full, Some(half)),
            Err(FloatError::HalfSizeChroma)
        );
        assert_eq!(new(true, true, full, Some(full)), Ok(()));
        assert_eq!(new(false, true, full, Some(half)), Ok(()));
        let wide = new(true, false, geometry(15_361, 8), None);
        assert_eq!(wide, Err(FloatError::TooWide { width: 15_361 }));
        assert_eq!(new(true, false, geometry(15_360, 8), None), Ok(()));
    }

    #[test]
    fn planes_must_fit_the_stream() {
        let (full, half) = (geometry(16, 8), geometry(8, 8));
        let bytes = [7; 16 * 9];
        let luma = Component::new(&bytes, 16, 1, full).unwrap();
        let chroma = Component::new(&bytes, 16, 2, half).unwrap();
        let params = FloatParams {
            add_uv: true,
            ..FloatParams::default()
        };
        let mut motion = FloatMotion::new(params, full, Some(half)).unwrap();
        assert!(motion.needs_chroma());
        let luma_only = FloatMotion::new(FloatParams::default(), full, None).unwrap();
        assert!(!luma_only.needs_chroma());
        assert_eq!(motion.push(&luma, None), Err(FloatError::ChromaPlanes));
        assert_eq!(
            motion.push(&chroma, Some([chroma; 2])),
            Err(FloatError::Geometry)
        );
        assert_eq!(
            motion.push(&luma, Some([luma; 2])),
            Err(FloatError::Geometry)
        );
        assert_eq!(motion.push(&luma, Some([chroma; 2])), Ok(None));
        assert_eq!(motion.push(&luma, Some([chroma; 2])), Ok(Some(0.0)));
    }
}
