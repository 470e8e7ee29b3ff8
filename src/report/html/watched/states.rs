//! Ranks by state over time: how many there are in each, and each of them.

use super::grid::TimeColumns;
use super::{WatchedPage, nothing};
use crate::report::html::element::figure;
use crate::report::html::plot::{PlotFrame, short, ticks};
use clc_monitor::history::Log;
use clc_monitor::state::WORDS;
use clc_trace::format::{count, plural};
use std::collections::{BTreeMap, BTreeSet};

/// So many ranks have a line of their own. Chosen by hand: a line has to be high enough to be read; those that are blamed come first.
const LINES: usize = 96;
/// Height of such a line.
const LINE: f64 = 9.0;

/// The state of each rank in each column: its place in [`WORDS`].
type States = BTreeMap<u32, Vec<Option<usize>>>;

/// The chapter.
pub(super) fn body(page: &WatchedPage, grid: Option<&TimeColumns>) -> String {
    let Some(grid) = grid else { return nothing("The agents have logged only one moment.") };
    let states = states(page.logs, grid);
    if states.is_empty() {
        return nothing("No rank was seen.");
    }
    let used: BTreeSet<usize> = states.values().flatten().flatten().copied().collect();
    let keys = used.iter().filter_map(|&state| Some((state, WORDS.get(state)?)));
    let legend: String =
        keys.map(|(state, word)| format!("<li><span class=\"key w{state}\"></span>{word}</li>")).collect();
    let chosen = chosen(page, &states);
    let all = states.len();
    let which = match all > chosen.len() {
        true => format!("{} of {} ranks: the ranks to blame, and the lowest ones", chosen.len(), count(all as u64)),
        false => "Each rank".to_owned(),
    };
    format!("<ul class=\"legend\">{legend}</ul>\n")
        + &figure("Number of ranks by state", &areas(&states, &used, grid))
        + &figure(&which, &lines(&states, &chosen, grid))
}

/// What the logs say; a rank that several agents have seen is that of the latest one.
fn states(logs: &[Log], grid: &TimeColumns) -> States {
    let mut states = States::new();
    for log in logs {
        let mut now: BTreeMap<u32, Option<usize>> = BTreeMap::new();
        let mut applied = 0;
        for (column, seen) in grid.until(log).into_iter().enumerate() {
            let Some(seen) = seen else { continue };
            for moment in &log.moments[applied..seen] {
                let place = |word: &str| WORDS.iter().position(|known| *known == word);
                now.extend(moment.ranks.iter().map(|(rank, word)| (*rank, place(word))));
            }
            applied = seen;
            for (&rank, &state) in &now {
                let row = states.entry(rank).or_insert_with(|| vec![None; grid.columns]);
                row[column] = state.or(row[column]);
            }
        }
    }
    states
}

fn chosen(page: &WatchedPage, states: &States) -> BTreeSet<u32> {
    let blamed = page.found.ranks.iter().copied().filter(|rank| states.contains_key(rank));
    let mut chosen: BTreeSet<u32> = blamed.take(LINES).collect();
    for &rank in states.keys() {
        if chosen.len() >= LINES {
            break;
        }
        chosen.insert(rank);
    }
    chosen
}

/// One above the other, as many as there are.
fn areas(states: &States, used: &BTreeSet<usize>, grid: &TimeColumns) -> String {
    let frame = PlotFrame::new(900.0, 260.0);
    let most = states.len() as f64;
    let mut below = vec![0_usize; grid.columns];
    let mut svg = String::new();
    let x = |column: usize| short((10.0 * frame.x(column as f64 / grid.columns as f64)).round() / 10.0);
    let y = |count: usize| short((10.0 * frame.y(count as f64 / most)).round() / 10.0);
    for &state in used {
        let count = |column: usize| states.values().filter(|row| row[column] == Some(state)).count();
        let above: Vec<usize> = below.iter().enumerate().map(|(column, below)| below + count(column)).collect();
        let mut path = String::new();
        for (column, &count) in above.iter().enumerate() {
            let pen = if column == 0 { "M" } else { "L" };
            path += &format!("{pen}{} {}H{}", x(column), y(count), x(column + 1));
        }
        for (column, &count) in below.iter().enumerate().rev() {
            path += &format!("L{} {}H{}", x(column + 1), y(count), x(column));
        }
        svg += &format!("<path class=\"w{state}\" d=\"{path}Z\"/>");
        below = above;
    }
    let whole = ticks(0.0, most, 5).into_iter().filter(|at| at.fract() == 0.0);
    let marks: Vec<(f64, String)> = whole.map(|at| (at / most, short(at))).collect();
    let axes = frame.y_axis(&marks, "ranks") + &frame.x_axis(&grid.marks(), "time since the log began");
    frame.svg("Numbers of ranks by state over time", &(axes + &svg))
}

/// A line for each rank.
fn lines(states: &States, chosen: &BTreeSet<u32>, grid: &TimeColumns) -> String {
    let height = LINE * chosen.len() as f64;
    let frame = PlotFrame::new(900.0, height + 56.0);
    let mut svg = frame.x_axis(&grid.marks(), "time since the log began");
    let every = chosen.len().div_ceil(24).max(1);
    for (line, rank) in chosen.iter().enumerate() {
        let top = frame.top + LINE * line as f64;
        if line % every == 0 {
            svg += &format!(
                "<text class=\"label rank\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{rank}</text>",
                frame.left - 6.0,
                top + LINE - 1.0
            );
        }
        let Some(row) = states.get(rank) else { continue };
        let mut column = 0;
        for run in row.chunk_by(|one, other| one == other) {
            if let Some(Some(state)) = run.first() {
                let (from, to) = (column as f64, (column + run.len()) as f64);
                let x = |column: f64| frame.x(column / grid.columns as f64);
                svg += &format!(
                    "<rect class=\"w{state}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    x(from),
                    x(to) - x(from),
                    LINE - 1.0
                );
            }
            column += run.len();
        }
    }
    let label = format!("States of {} over time", plural(chosen.len() as u64, "rank"));
    frame.svg(&label, &svg)
}
