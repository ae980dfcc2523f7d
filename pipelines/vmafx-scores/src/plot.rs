// SPDX-License-Identifier: MPL-2.0

//! Score files as a picture: a panel a feature, scores over time or frames, windows and scene cuts marked.

mod axis;
mod draw;

use std::io::BufRead;
use std::path::Path;
use std::sync::Once;

use plotters::prelude::*;
use vmaf_motion::pool::Feature;

use crate::reader::{ReadError, Records};
use crate::records::{Record, Window};
use crate::session::Session;

use axis::Axis;
use draw::{draw_panel, legend};

/// Windows of a session that are drawn at most; narrower ones could not be told apart.
const MAX_WINDOWS: usize = 400;
/// Colours of the sessions, in turn; readable on white.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x24, 0x63, 0xc4),
    RGBColor(0xd1, 0x62, 0x0a),
    RGBColor(0x14, 0x80, 0x5e),
    RGBColor(0xa3, 0x34, 0x8f),
    RGBColor(0x8a, 0x6a, 0x00),
    RGBColor(0x5b, 0x4b, 0xc4),
    RGBColor(0xb3, 0x26, 0x3f),
    RGBColor(0x2f, 0x72, 0x85),
];
const FONT: &str = "sans-serif";

/// What kind of file is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Pixels.
    Png,
    /// Vectors; the viewer brings the font.
    Svg,
}

impl Format {
    /// By the end of a file's name.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "svg" => Some(Self::Svg),
            _ => None,
        }
    }

    /// What the names of such files end in.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Png => ".png",
            Self::Svg => ".svg",
        }
    }
}

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// A score file.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The picture.
    #[error("cannot draw: {0}")]
    Draw(String),
}

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for PlotError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        Self::Draw(error.to_string())
    }
}

/// One session, as finely as a picture needs it.
#[derive(Debug)]
struct Series {
    name: String,
    session: Session,
    windows: Vec<Window>,
}

/// The sessions of some score files.
#[derive(Debug, Default)]
pub struct Plot {
    series: Vec<Series>,
}

impl Plot {
    /// Takes in a score file under the name that the picture shows.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn add<R: BufRead>(
        &mut self,
        name: &str,
        records: &mut Records<R>,
    ) -> Result<(), ReadError> {
        let first = self.series.len();
        for record in &mut *records {
            match record? {
                Record::Header(header) => self.series.push(Series {
                    name: name.to_owned(),
                    session: Session::new(header),
                    windows: Vec::new(),
                }),
                // The reader lets nothing before a header.
                record => {
                    if let Some(series) = self.series.last_mut() {
                        series.add(record);
                    }
                }
            }
        }
        if self.series.len() > first + 1 {
            for series in &mut self.series[first..] {
                series.name += &format!(", session {}", series.session.header.session);
            }
        }
        Ok(())
    }

    /// Draws the features, one below the other, into a file.
    ///
    /// # Errors
    /// Where the picture cannot be drawn or written.
    pub fn draw(
        &self,
        path: &Path,
        format: Format,
        size: (u32, u32),
        features: &[Feature],
    ) -> Result<(), PlotError> {
        bring_font();
        match format {
            Format::Png => self.draw_on(BitMapBackend::new(path, size), features),
            Format::Svg => self.draw_on(SVGBackend::new(path, size), features),
        }
    }

    fn draw_on<B: DrawingBackend>(&self, backend: B, features: &[Feature]) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let area = backend.into_drawing_area();
        area.fill(&WHITE)?;
        let drawn: Vec<(&Series, RGBColor)> = self
            .series
            .iter()
            .filter(|series| series.session.frames > 0)
            .zip(COLOURS.into_iter().cycle())
            .collect();
        let area = area.margin(8, 8, 8, 14);
        let rest = legend(&area, &drawn)?;
        let axis = Axis::of(&drawn);
        let panels = rest.split_evenly((features.len(), 1));
        for (panel, &feature) in panels.iter().zip(features) {
            draw_panel(panel, feature, &drawn, &axis)?;
        }
        area.present()?;
        Ok(())
    }
}

impl Axis {
    fn of(drawn: &[(&Series, RGBColor)]) -> Self {
        let timed = !drawn.is_empty() && drawn.iter().all(|(series, _)| series.is_timed());
        let mut axis = Self {
            timed,
            from: f64::INFINITY,
            to: f64::NEG_INFINITY,
        };
        for (series, _) in drawn {
            for cell in series.session.buckets.cells() {
                let place = axis.place(series, cell.first, cell.start);
                axis.from = axis.from.min(place);
                axis.to = axis.to.max(place);
            }
        }
        if !axis.from.is_finite() {
            (axis.from, axis.to) = (0.0, 1.0);
        }
        if axis.to <= axis.from {
            axis.to = axis.from + 1.0;
        }
        axis
    }

    /// Seconds since the session's first frame, or the frame's number.
    fn place(&self, series: &Series, frame: u64, time: Option<u64>) -> f64 {
        match (self.timed, time, series.session.span) {
            (true, Some(time), Some((first, _))) => time.saturating_sub(first) as f64 / 1e9,
            _ => frame as f64,
        }
    }

    /// The place of a frame whose time is not at hand, between those of the cells around it.
    fn place_of(&self, series: &Series, frame: u64) -> f64 {
        let cells = series.session.buckets.cells();
        let next = cells.partition_point(|cell| cell.first <= frame);
        let place = |i: usize| self.place(series, cells[i].first, cells[i].start);
        let (Some(before), true) = (next.checked_sub(1), self.timed) else {
            return frame as f64;
        };
        // Behind the last cell frames go on as they did in the last one.
        let (a, b) = match next < cells.len() {
            true => (before, next),
            false if before > 0 => (before - 1, before),
            false => return place(before),
        };
        let share = (frame as f64 - cells[a].first as f64)
            / (cells[b].first as f64 - cells[a].first as f64).max(1.0);
        place(a) + share * (place(b) - place(a))
    }
}

impl Series {
    fn add(&mut self, record: Record) {
        self.session.add(&record);
        if let Record::Window(window) = record
            && self.windows.len() <= MAX_WINDOWS
        {
            self.windows.push(window);
        }
    }

    fn is_timed(&self) -> bool {
        self.session.in_time() && self.session.span.is_some_and(|(first, last)| first < last)
    }

    /// The curve: each cell's extremes, which is the score itself where a cell is a frame.
    fn curve(&self, feature: Feature, axis: &Axis) -> impl Iterator<Item = (f64, f64)> {
        self.session.buckets.cells().iter().flat_map(move |cell| {
            let place = axis.place(self, cell.first, cell.start);
            let (min, max) = (cell.min(feature), cell.max(feature));
            let second = (min != max).then_some((place, max));
            [Some((place, min)), second].into_iter().flatten()
        })
    }
}

/// A font of our own, so that a machine without any draws the same picture.
fn bring_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It is refused only where it cannot be parsed, and then drawing text fails with a reason.
        let _ = plotters::style::register_font(
            FONT,
            FontStyle::Normal,
            epaint_default_fonts::UBUNTU_LIGHT,
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(times: impl Fn(u64) -> Option<u64>) -> Plot {
        let mut text = r#"{"type":"header","schema":1,"extractor":"integer","format":"I420","width":4,"height":4,"depth":8,"session":0}"#.to_owned() + "\n";
        for i in 0..100 {
            let time = times(i).map_or("null".to_owned(), |time| time.to_string());
            text += &format!(
                "{{\"type\":\"frame\",\"frame\":{i},\"timestamp\":{time},\"motion\":{i}.5,\"motion2\":1.0,\"motion3\":0.0}}\n"
            );
        }
        let mut plot = Plot::default();
        plot.add("clip", &mut Records::new(text.as_bytes()))
            .expect("a good file");
        plot
    }

    fn axis(plot: &Plot) -> Axis {
        Axis::of(&[(&plot.series[0], COLOURS[0])])
    }

    #[test]
    fn places_are_seconds_where_all_frames_have_times_in_order() {
        let timed = plot(|i| Some(i * 40_000_000 + 7_000_000_000));
        let time = axis(&timed);
        assert!(time.timed);
        assert_eq!((time.from, time.to), (0.0, 99.0 * 0.04));
        assert!((time.place_of(&timed.series[0], 25) - 1.0).abs() < 1e-9);
        assert!((time.place_of(&timed.series[0], 100) - 4.0).abs() < 1e-9);
        for untimed in [
            plot(|_| None),
            plot(|i| (i != 50).then_some(i * 40)),
            plot(|i| Some(1000 - i)),
        ] {
            let frames = axis(&untimed);
            assert!(!frames.timed);
            assert_eq!((frames.from, frames.to), (0.0, 99.0));
            assert_eq!(frames.place_of(&untimed.series[0], 25), 25.0);
        }
    }

    #[test]
    fn the_format_is_that_of_the_name() {
        assert_eq!(Format::of(Path::new("a.PNG")), Some(Format::Png));
        assert_eq!(Format::of(Path::new("b/c.svg")), Some(Format::Svg));
        assert_eq!(Format::of(Path::new("a.pdf")), None);
        assert_eq!(Format::of(Path::new("png")), None);
    }
}
