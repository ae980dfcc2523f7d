// SPDX-License-Identifier: MPL-2.0

//! A stream of pictures in, the scores that became final out.

use thiserror::Error;

use crate::derive::{Derivation, Finals, Rules};
use crate::float::{Component, FloatError, FloatMotion, FloatParams};
use crate::options::{Extractor, MotionOptions, OptionError};
use crate::plane::{Geometry, Plane, PlaneError};
use crate::sad::{Distance, MotionSad};
use crate::score::{cmin, weighted_score};

/// What one picture brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Index of this picture, from 0.
    pub frame: u64,
    /// Its own score; final at once. 0 for the first picture (the first two of a five-frame window).
    pub motion: f64,
    /// The frames whose scores became final with it.
    pub finals: Finals,
}

/// Why a stream cannot be scored.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StreamError {
    /// An option is out of range or of the other extractor.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The picture does not fit.
    #[error(transparent)]
    Plane(#[from] PlaneError),
    /// `float_motion` is not defined for this.
    #[error(transparent)]
    Float(#[from] FloatError),
    /// The system gives no more threads.
    #[error("no threads to score with: {0}")]
    Threads(String),
    /// The stream was flushed.
    #[error("the stream has ended")]
    Ended,
}

/// Scores one stream of pictures of one geometry. Keeps the previous luma plane (two for the
/// five-frame window) and a constant number of scores; allocates nothing after the first pictures.
///
/// ```
/// use vmaf_motion::{Geometry, MotionOptions, MotionStream, Plane, SampleFormat};
///
/// let geometry = Geometry::new(4, 3, SampleFormat::EIGHT_BIT)?;
/// let mut stream = MotionStream::new(&MotionOptions::default(), geometry)?;
/// for value in [0, 5, 7] {
///     let picture = [value; 12];
///     let step = stream.push(&Plane::new(&picture, 4, geometry)?)?;
///     for score in step.finals.iter() {
///         println!("frame {} motion2 {}", score.frame, score.motion2);
///     }
/// }
/// assert_eq!(stream.flush()[0].motion2, 2.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MotionStream {
    options: MotionOptions,
    geometry: Geometry,
    pixels: Pixels,
    derivation: Derivation,
    flushed: bool,
}

/// What is kept of the earlier pictures.
#[derive(Debug)]
enum Pixels {
    Integer(MotionSad),
    Float(Box<FloatMotion>),
}

impl MotionStream {
    /// A stream of no pictures that have no chroma planes, or none that count.
    ///
    /// # Errors
    /// [`StreamError::Option`] when an option is out of its range or not of the extractor,
    /// [`StreamError::Float`] when `float_motion` is not defined for the geometry.
    pub fn new(options: &MotionOptions, geometry: Geometry) -> Result<Self, StreamError> {
        Self::with_chroma(options, geometry, None)
    }

    /// The same where each picture has two chroma planes of that geometry. They count only with
    /// [`MotionOptions::add_uv`].
    ///
    /// # Errors
    /// Those of [`MotionStream::new`].
    pub fn with_chroma(
        options: &MotionOptions,
        geometry: Geometry,
        chroma: Option<Geometry>,
    ) -> Result<Self, StreamError> {
        options.validate()?;
        let distance = if options.five_frame_window {
            Distance::Two
        } else {
            Distance::One
        };
        Ok(Self {
            options: options.clone(),
            geometry,
            pixels: match options.extractor {
                Extractor::Integer => Pixels::Integer(MotionSad::new(geometry, distance)),
                Extractor::Float => {
                    let params = FloatParams {
                        filter_size: options.filter_size,
                        add_scale1: options.add_scale1,
                        add_uv: options.add_uv,
                    };
                    Pixels::Float(Box::new(FloatMotion::new(params, geometry, chroma)?))
                }
            },
            derivation: Derivation::new(Rules {
                distance,
                blend_factor: options.blend_factor,
                blend_offset: options.blend_offset,
                max_val: options.max_val,
                moving_average: options.moving_average,
                blend_uncapped: options.extractor == Extractor::Float,
            }),
            flushed: false,
        })
    }

    /// The same with the rows of each picture split over so many threads of its own; to be called
    /// before the first picture. The scores do not change. [`Extractor::Float`] stays on the calling
    /// thread, as do 0 and 1.
    ///
    /// # Errors
    /// [`StreamError::Threads`].
    pub fn with_threads(mut self, threads: usize) -> Result<Self, StreamError> {
        if let Pixels::Integer(sad) = self.pixels {
            let sad = sad.with_threads(threads);
            self.pixels = Pixels::Integer(sad.map_err(|e| StreamError::Threads(e.to_string()))?);
        }
        Ok(self)
    }

    /// Size and sample format of the pictures.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Whether [`MotionStream::push_with_chroma`] is the one to call.
    pub fn needs_chroma(&self) -> bool {
        matches!(&self.pixels, Pixels::Float(float) if float.needs_chroma())
    }

    /// Pictures taken so far; also the index of the next one.
    pub fn frames(&self) -> u64 {
        self.derivation.known()
    }

    /// Takes the next picture's luma plane.
    ///
    /// # Errors
    /// [`StreamError::Plane`] when it is of another geometry, [`StreamError::Ended`] after a flush;
    /// the stream does not change.
    pub fn push(&mut self, luma: &Plane<'_>) -> Result<Step, StreamError> {
        self.step(luma, None)
    }

    /// Takes the next picture's luma and chroma planes.
    ///
    /// # Errors
    /// Those of [`MotionStream::push`].
    pub fn push_with_chroma(
        &mut self,
        luma: &Plane<'_>,
        chroma: [Component<'_>; 2],
    ) -> Result<Step, StreamError> {
        self.step(luma, Some(chroma))
    }

    fn step(
        &mut self,
        luma: &Plane<'_>,
        chroma: Option<[Component<'_>; 2]>,
    ) -> Result<Step, StreamError> {
        if self.flushed {
            return Err(StreamError::Ended);
        }
        let weight = self.options.fps_weight;
        let weighted = match &mut self.pixels {
            Pixels::Integer(sad) => sad.push(luma)?.map(|sad| {
                let (width, height) = (self.geometry.width(), self.geometry.height());
                weighted_score(sad, width, height, weight)
            }),
            Pixels::Float(float) => {
                let chroma = chroma.filter(|_| float.needs_chroma());
                float
                    .push(&Component::from(*luma), chroma)?
                    .map(|score| score * weight)
            }
        };
        let weighted = weighted.filter(|_| !self.options.force_zero).unwrap_or(0.0);
        let frame = self.derivation.known();
        let finals = self
            .derivation
            .push(weighted)
            .map_err(|_| StreamError::Ended)?;
        Ok(Step {
            frame,
            motion: cmin(weighted, self.options.max_val),
            finals,
        })
    }

    /// Ends the stream: the frames that were not final yet. A second flush gives none.
    pub fn flush(&mut self) -> Finals {
        self.flushed = true;
        self.derivation.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SampleFormat;

    fn geometry(width: u32, height: u32) -> Geometry {
        Geometry::new(width, height, SampleFormat::EIGHT_BIT).unwrap()
    }

    #[test]
    fn a_refused_picture_leaves_the_stream_as_it_is() {
        let (own, other) = (geometry(16, 8), geometry(8, 8));
        let bytes = [9; 16 * 8];
        let mut stream = MotionStream::new(&MotionOptions::default(), own).unwrap();
        assert_eq!((stream.geometry(), stream.needs_chroma()), (own, false));
        let good = Plane::new(&bytes, 16, own).unwrap();
        let bad = Plane::new(&bytes, 16, other).unwrap();
        for frame in 0..4 {
            assert_eq!(stream.frames(), frame);
            assert!(matches!(stream.push(&bad), Err(StreamError::Plane(_))));
            assert_eq!(stream.push(&good).unwrap().frame, frame);
        }
        assert_eq!(stream.flush().len(), 1);
        assert_eq!(stream.flush().len(), 0);
        assert!(matches!(stream.push(&good), Err(StreamError::Ended)));
        assert_eq!(stream.frames(), 4);
    }

    #[test]
    fn chroma_is_wanted_where_the_options_add_it() {
        let options = MotionOptions {
            extractor: crate::Extractor::Float,
            add_uv: true,
            ..MotionOptions::default()
        };
        let (luma, chroma) = (geometry(16, 8), geometry(8, 4));
        let stream = MotionStream::with_chroma(&options, luma, Some(chroma)).unwrap();
        assert!(stream.needs_chroma());
        let luma_only = MotionOptions {
            add_uv: false,
            ..options
        };
        let stream = MotionStream::with_chroma(&luma_only, luma, Some(chroma)).unwrap();
        assert!(!stream.needs_chroma());
    }
}
