// SPDX-License-Identifier: MPL-2.0

//! What a picture is made of: the legend, and a panel a feature.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use vmaf_motion::pool::{Feature, Method, pooled_name};

use super::axis::{Across, Axis};
use super::{FONT, MAX_WINDOWS, PlotError, Series};

/// Scene cuts of a session that are marked at most, the highest.
const MAX_MARKS: usize = 200;
const INK: RGBColor = RGBColor(0x1b, 0x23, 0x30);
const QUIET: RGBColor = RGBColor(0x5c, 0x66, 0x75);
const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xeb);
const CUT: RGBColor = RGBColor(0xc2, 0x41, 0x0c);

/// Sessions by colour, and what the marks mean; gives the area below.
pub(super) fn legend<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    drawn: &[(&Series, RGBColor)],
) -> Result<DrawingArea<B, Shift>, PlotError>
where
    B::ErrorType: 'static,
{
    let text = (FONT, 15).into_font().color(&INK);
    let (width, _) = area.dim_in_pixel();
    let (mut x, mut y) = (8, 4);
    let mut entry = |name: &str, colour: RGBColor| -> Result<(), PlotError> {
        // An estimate of the text's width: the viewer of an SVG may have another font anyway.
        let room = 34 + 8 * name.chars().count() as i32;
        if x > 8 && x + room > width as i32 {
            (x, y) = (8, y + 20);
        }
        area.draw(&Rectangle::new(
            [(x, y + 2), (x + 12, y + 14)],
            colour.filled(),
        ))?;
        area.draw(&Text::new(name.to_owned(), (x + 18, y), text.clone()))?;
        x += room;
        Ok(())
    };
    for (series, colour) in drawn {
        entry(&series.name, *colour)?;
    }
    if drawn.is_empty() {
        entry("no frame was scored", QUIET)?;
    }
    if let [(series, _)] = drawn
        && series.draws_windows()
    {
        entry("window mean", QUIET)?;
    }
    let cuts = |(series, _): &(&Series, RGBColor)| !series.session.cuts.clone().finish().is_empty();
    if drawn.iter().any(cuts) {
        entry("likely scene cut", CUT)?;
    }
    Ok(area.split_vertically(y + 24).1)
}

impl Series {
    fn draws_windows(&self) -> bool {
        !self.windows.is_empty() && self.windows.len() <= MAX_WINDOWS
    }
}

type Panel<'a, B> = ChartContext<'a, B, Cartesian2d<Across, RangedCoordf64>>;

pub(super) fn draw_panel<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    feature: Feature,
    drawn: &[(&Series, RGBColor)],
    axis: &Axis,
) -> Result<(), PlotError>
where
    B::ErrorType: 'static,
{
    let pooled = |series: &Series| series.session.pools.feature(feature).pool(Method::Max);
    let highest = drawn
        .iter()
        .filter_map(|(series, _)| pooled(series))
        .fold(1e-3, f64::max);
    // A label needs about a hundred pixels.
    let across = Across {
        axis: *axis,
        most: (area.dim_in_pixel().0 as usize / 100).max(2),
    };
    let mut panel = ChartBuilder::on(area)
        .caption(feature.name(), (FONT, 16).into_font().color(&INK))
        .margin_right(8)
        .x_label_area_size(26)
        .y_label_area_size(58)
        .build_cartesian_2d(across, 0.0..highest * 1.06)?;
    panel
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .axis_style(QUIET)
        .y_label_formatter(&|score| score.to_string())
        .label_style((FONT, 13).into_font().color(&QUIET))
        .draw()?;
    for (series, colour) in drawn {
        draw_cuts(&mut panel, series, axis, highest)?;
        let curve = series.curve(feature, axis);
        panel.draw_series(LineSeries::new(curve, colour.stroke_width(1)))?;
        // Among several sessions a mean belongs to the one of its colour.
        let means = match drawn.len() {
            1 => QUIET.mix(0.8),
            _ => colour.mix(0.5),
        };
        draw_windows(&mut panel, series, feature, axis, means)?;
    }
    Ok(())
}

fn draw_cuts<B: DrawingBackend>(
    panel: &mut Panel<'_, B>,
    series: &Series,
    axis: &Axis,
    highest: f64,
) -> Result<(), PlotError>
where
    B::ErrorType: 'static,
{
    let cuts = series.session.cuts.clone().finish();
    let marks = cuts.iter().take(MAX_MARKS).map(|cut| {
        let place = axis.place_of(series, cut.frame);
        let ends = vec![(place, highest), (place, highest * 1.06)];
        PathElement::new(ends, CUT.stroke_width(2))
    });
    panel.draw_series(marks)?;
    Ok(())
}

fn draw_windows<B: DrawingBackend>(
    panel: &mut Panel<'_, B>,
    series: &Series,
    feature: Feature,
    axis: &Axis,
    colour: RGBAColor,
) -> Result<(), PlotError>
where
    B::ErrorType: 'static,
{
    if !series.draws_windows() {
        return Ok(());
    }
    let name = pooled_name(feature, Method::Mean);
    let means = series.windows.iter().filter_map(|window| {
        let mean = window.values.get(name)?.as_f64()?;
        let ends = [window.first, window.last.saturating_add(1)]
            .map(|frame| (axis.place_of(series, frame).min(axis.to), mean));
        Some(PathElement::new(ends.to_vec(), colour.stroke_width(3)))
    });
    panel.draw_series(means)?;
    Ok(())
}
