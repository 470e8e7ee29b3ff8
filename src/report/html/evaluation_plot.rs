//! The clock error over time per location, before and after, as SVG (as figure 2 of the CLC paper shows it).

use crate::report::{Evaluation, GENERATOR, PhaseAccuracy};
use clc_trace::{Error, Result};
use plotters::prelude::*;

const WIDTH: u32 = 900;
const PANEL: u32 = 300;
const MARGIN: u32 = 12;
const LEGEND: u32 = 90;
/// More curves than this have no names.
const NAMED: usize = 12;
/// More curves than this are not drawn.
const CURVES: usize = 64;

/// One panel per phase but the raw one, all with the same scale of time; each has its own scale of error.
///
/// # Errors
/// There is nothing to draw.
pub fn evaluation_plot(evaluation: &Evaluation) -> Result<String> {
    let shown: Vec<&PhaseAccuracy> = match evaluation.phases.len() {
        0 => return Err(Error::new("nothing to plot: the trace has no events")),
        1 | 2 => evaluation.phases.iter().collect(),
        _ => evaluation.phases.iter().skip(1).collect(),
    };
    let mut svg = String::new();
    draw(&mut svg, evaluation, &shown).map_err(|error| Error::new(format!("cannot draw the plot: {error}")))?;
    // Within the picture: tools know one by how it begins.
    Ok(svg.replacen('>', &format!(">\n<!-- {GENERATOR} -->"), 1))
}

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw(svg: &mut String, evaluation: &Evaluation, phases: &[&PhaseAccuracy]) -> Drawn {
    let height = PANEL * phases.len() as u32 + 40;
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("Clock error against the truth: {}", evaluation.trace);
    let root = root.titled(&title, ("sans-serif", 18))?;
    for (area, phase) in root.split_evenly((phases.len(), 1)).iter().zip(phases) {
        panel(area, evaluation, phase)?;
    }
    root.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    evaluation: &Evaluation,
    phase: &PhaseAccuracy,
) -> Drawn {
    let curves: Vec<Vec<(f64, f64)>> = phase
        .locations
        .iter()
        .take(CURVES)
        .map(|location| {
            let points = phase.over_time.iter().zip(&location.over_time);
            points.filter_map(|(slice, error)| error.map(|error| (slice.at_seconds, error))).collect()
        })
        .collect();
    let curves: Vec<Vec<(f64, f64)>> = if curves.iter().any(|curve| !curve.is_empty()) {
        curves
    } else {
        vec![phase.over_time.iter().map(|slice| (slice.at_seconds, slice.rms_seconds)).collect()]
    };
    let values = || curves.iter().flatten().map(|point| point.1);
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let (scale, unit) = unit_of(low.abs().max(high));
    let room = ((high - low) * 0.05).max(f64::MIN_POSITIVE) / scale;
    let range = if high > low { low / scale - room..high / scale + room } else { -1.0..1.0 };
    let (time_scale, time_unit) = unit_of(evaluation.true_seconds);
    let statistics = format!(
        "{}: rms {}, largest {}, {} of {} in wrong order",
        phase.phase,
        clc_trace::format::duration(phase.clock.rms_seconds),
        clc_trace::format::duration(phase.clock.max_seconds),
        clc_trace::format::count(phase.violations),
        clc_trace::format::count(phase.checked),
    );
    let (area, legend) = if (2..=NAMED).contains(&curves.len()) {
        let (chart, legend) = area.split_horizontally(WIDTH - LEGEND);
        (chart, Some(legend))
    } else {
        (area.clone(), None)
    };
    let mut chart = ChartBuilder::on(&area)
        .caption(statistics, ("sans-serif", 15))
        .margin(MARGIN)
        .x_label_area_size(36)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..(evaluation.true_seconds / time_scale).max(f64::MIN_POSITIVE), range)?;
    chart
        .configure_mesh()
        .x_desc(format!("true time [{time_unit}]"))
        .y_desc(format!("clock error [{unit}]"))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .draw()?;
    let many = curves.len();
    for (number, curve) in curves.iter().enumerate() {
        let colour = HSLColor(number as f64 / many.max(1) as f64, 0.75, 0.42);
        let points = curve.iter().map(|&(time, error)| (time / time_scale, error / scale));
        chart.draw_series(LineSeries::new(points, colour.stroke_width(1)))?;
        if let (Some(legend), Some(location)) = (&legend, phase.locations.get(number)) {
            let y = 40 + 16 * number as i32;
            let name = match location.rank {
                Some(rank) => format!("rank {rank}"),
                None => format!("location {}", location.location),
            };
            legend.draw(&PathElement::new([(4, y), (20, y)], colour.stroke_width(2)))?;
            legend.draw(&Text::new(name, (26, y - 5), ("sans-serif", 11)))?;
        }
    }
    Ok(())
}

/// The unit in which numbers up to `largest` seconds are short.
fn unit_of(largest: f64) -> (f64, &'static str) {
    let units = [(1e-9, "ns"), (1e-6, "us"), (1e-3, "ms")];
    units.into_iter().find(|(unit, _)| largest < 1000.0 * unit).unwrap_or((1.0, "s"))
}
