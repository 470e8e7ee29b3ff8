//! The pairs of clocks that clocks were estimated from, as a table.

use super::table::TextTable;
use crate::report::Report;
use clc_clock::Method;
use clc_trace::format::{count, duration};

/// Most rows; more of them are in the JSON report. Chosen by hand: with more, the rest of the report leaves the screen.
const ROWS: usize = 8;

/// The pairs that agree least with the estimate; nothing where the recorded clocks stayed.
pub(super) fn pairs(report: &Report, first: usize) -> String {
    let Some(estimate) = report.clocks.as_ref().filter(|estimate| estimate.chosen != Method::Linear) else {
        return String::new();
    };
    let signed = |seconds: f64| format!("{}{}", if seconds < 0.0 { "-" } else { "" }, duration(seconds.abs()));
    let mut pairs: Vec<_> = estimate.pairs.iter().collect();
    // The margin of a hull is the better the larger.
    let badness = |deviation: f64| if estimate.chosen == Method::Hull { -deviation } else { deviation };
    pairs.sort_by(|x, y| badness(y.deviation_seconds).total_cmp(&badness(x.deviation_seconds)));
    let mut table = TextTable::default();
    let deviation = if estimate.chosen == Method::Hull { "margin" } else { "deviation" };
    table.row(["Clocks of processes", "offset", "drift", deviation, "samples"]);
    for pair in pairs.iter().take(ROWS) {
        let drift = match pair.drift_error_ppm {
            Some(error) => format!("{:.3} ± {error:.3} ppm", pair.drift_ppm),
            None => format!("{:.3} ppm", pair.drift_ppm),
        };
        table.row([
            &format!("  {} and {}", pair.a, pair.b),
            &signed(pair.offset_seconds),
            &drift,
            &signed(pair.deviation_seconds),
            &count(pair.samples),
        ]);
    }
    let mut text = table.render(first);
    let more = pairs.len().saturating_sub(ROWS) as u64 + estimate.further.pairs;
    if more > 0 {
        text += &format!("  and {} more, see the JSON report\n", count(more));
    }
    text
}
