// SPDX-License-Identifier: MPL-2.0

//! A stream of pictures in, the scores that became final out.

use thiserror::Error;

use crate::derive::{Derivation, Finals, Rules};
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
    /// The extractor is not built in.
    #[error("extractor `{0}` is not available in this version")]
    Extractor(Extractor),
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
    sad: MotionSad,
    derivation: Derivation,
    flushed: bool,
}

impl MotionStream {
    /// A stream of no pictures.
    ///
    /// # Errors
    /// [`StreamError::Option`] when an option is out of its range or not of the extractor.
    pub fn new(options: &MotionOptions, geometry: Geometry) -> Result<Self, StreamError> {
        options.validate()?;
        if options.extractor == Extractor::Float {
            return Err(StreamError::Extractor(Extractor::Float));
        }
        let distance = if options.five_frame_window {
            Distance::Two
        } else {
            Distance::One
        };
        Ok(Self {
            options: options.clone(),
            geometry,
            sad: MotionSad::new(geometry, distance),
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

    /// Size and sample format of the pictures.
    pub fn geometry(&self) -> Geometry {
        self.geometry
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
        if self.flushed {
            return Err(StreamError::Ended);
        }
        let sad = self.sad.push(luma)?;
        let weighted = match sad {
            Some(sad) if !self.options.force_zero => {
                let (width, height) = (self.geometry.width(), self.geometry.height());
                weighted_score(sad, width, height, self.options.fps_weight)
            }
            _ => 0.0,
        };
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
