//! From lines between pairs of clocks to one time for all: which clock is the reference, how the others reach it, or a time
//! made from all of them.

use super::observations::Offsets;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The correction of clock b minus that of clock a as a straight line over windows: intercept + slope · window, in ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairLine {
    /// One clock.
    pub a: u32,
    /// The other, a < b.
    pub b: u32,
    /// Segment of the run in which it holds.
    pub segment: u32,
    /// Value at window 0.
    pub intercept: f64,
    /// Per window.
    pub slope: f64,
    /// Standard deviation of the residuals, or margin of a hull.
    pub deviation: f64,
    /// Window at which the line is known best.
    pub centre: f64,
    /// Standard error there.
    pub centre_error: f64,
    /// Standard error of the slope.
    pub slope_error: f64,
    /// Standard error of the intercept.
    pub intercept_error: f64,
    /// Largest standard error within its segment.
    pub error: f64,
    /// What it was made from.
    pub samples: u64,
}

impl PairLine {
    /// Standard error of the value at a window.
    pub(crate) fn error_at(&self, window: f64) -> f64 {
        self.centre_error.hypot(self.slope_error * (window - self.centre))
    }

    /// What paths are judged by: the standard deviation of a value that the line predicts, or the margin.
    fn length(&self) -> f64 {
        self.deviation.hypot(self.error)
    }
}

/// Corrections of all clocks from lines between pairs of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Composition {
    /// The corrections.
    pub offsets: Offsets,
    /// One reference per group of clocks that lines connect.
    pub roots: Vec<u32>,
    /// The neighbour on every clock's way to its root, in the last segment; none for roots.
    pub towards: Vec<Option<u32>>,
}

/// What is global time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// The clock that recorded offsets refer to; where none are recorded, the mean of the clocks that agree.
    #[default]
    Auto,
    /// The clock of this process.
    Process(u32),
    /// The median of all clocks: one that fails or jumps pulls nobody.
    Median,
    /// Their arithmetic mean.
    Mean,
    /// Their harmonic mean.
    Harmonic,
}

/// Shortest paths from `root`: for each clock the sum of deviations and the neighbour on the way to the root.
fn paths(clocks: usize, edges: &BTreeMap<u32, Vec<(u32, f64)>>, root: u32) -> Vec<Option<(f64, u32)>> {
    let mut best: Vec<Option<(f64, u32)>> = vec![None; clocks];
    // Distances are not negative, so their bits are in order.
    let mut open = BinaryHeap::from([Reverse((0u64, root, root))]);
    while let Some(Reverse((bits, clock, from))) = open.pop() {
        let Some(slot) = best.get_mut(clock as usize).filter(|slot| slot.is_none()) else { continue };
        let distance = f64::from_bits(bits);
        *slot = Some((distance, from));
        for &(next, length) in edges.get(&clock).into_iter().flatten() {
            open.push(Reverse(((distance + length).to_bits(), next, clock)));
        }
    }
    best
}

/// The corrections of all clocks that the lines of all segments give, on `windows` windows with `segment` of them each: along
/// the paths of least deviation from the root, which is `root` or the clock with the smallest sum of deviations. Clocks that no
/// path reaches form groups of their own, each with its own root.
pub fn compose(lines: &[PairLine], clocks: usize, windows: usize, segment: usize, root: Option<u32>) -> Composition {
    let mut towards: Vec<Option<u32>> = vec![None; clocks];
    let mut offsets: Offsets = vec![vec![0.0; windows]; clocks];
    let mut roots = Vec::new();
    // A line that messages violate is the last resort: longer than any path without one.
    let detour: f64 = lines.iter().map(PairLine::length).sum();
    let length = |line: &PairLine| if line.deviation < 0.0 { detour + line.length() } else { line.length() };
    let mut here: BTreeMap<(u32, u32), PairLine> = BTreeMap::new();
    lines.iter().for_each(|line| _ = here.entry((line.a, line.b)).or_insert(*line));
    for number in 0..windows.div_ceil(segment.max(1)) {
        // A pair that is silent for a segment keeps the line of the one before, or has already that of its first one.
        here.extend(lines.iter().filter(|line| line.segment as usize == number).map(|line| ((line.a, line.b), *line)));
        let mut edges: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
        for line in here.values() {
            edges.entry(line.a).or_default().push((line.b, length(line)));
            edges.entry(line.b).or_default().push((line.a, length(line)));
        }
        if roots.is_empty() {
            roots = choose_roots(clocks, &edges, root);
        }
        for &root in &roots {
            let best = paths(clocks, &edges, root);
            let mut order: Vec<(u64, u32, u32)> = best
                .iter()
                .enumerate()
                .filter_map(|(clock, found)| found.map(|(distance, from)| (distance.to_bits(), clock as u32, from)))
                .filter(|(_, clock, from)| clock != from)
                .collect();
            order.sort_unstable();
            // A neighbour on the way is no farther, and with equal distances may come later: until all are done.
            let mut done = vec![false; clocks];
            done[root as usize] = true;
            while !order.is_empty() {
                let before = order.len();
                order.retain(|&(_, clock, from)| {
                    if !done[from as usize] {
                        return true;
                    }
                    done[clock as usize] = true;
                    towards[clock as usize] = Some(from);
                    let line = here.get(&(from.min(clock), from.max(clock)));
                    let source = offsets[from as usize].clone();
                    let sign = if from < clock { 1.0 } else { -1.0 };
                    let windows = source.iter().zip(&mut offsets[clock as usize]).enumerate();
                    for (window, (known, offset)) in windows.skip(number * segment).take(segment) {
                        let difference = line.map_or(0.0, |line| line.intercept + line.slope * window as f64);
                        *offset = known + sign * difference;
                    }
                    false
                });
                if order.len() == before {
                    break;
                }
            }
        }
    }
    Composition { offsets, roots, towards }
}

/// One root per group of connected clocks.
fn choose_roots(clocks: usize, edges: &BTreeMap<u32, Vec<(u32, f64)>>, wanted: Option<u32>) -> Vec<u32> {
    let mut group: Vec<bool> = vec![false; clocks];
    let mut roots = Vec::new();
    for start in wanted.into_iter().chain(0..clocks as u32) {
        if group.get(start as usize).copied().unwrap_or(true) {
            continue;
        }
        let members: Vec<u32> =
            (0..).zip(paths(clocks, edges, start)).filter(|(_, found)| found.is_some()).map(|(c, _)| c).collect();
        members.iter().for_each(|&member| group[member as usize] = true);
        roots.push(if wanted == Some(start) { start } else { most_central(clocks, edges, members).unwrap_or(start) });
    }
    roots
}

/// Edges that are looked at to find the most central clock: one with few neighbours is not tried where there are very many.
const EFFORT: usize = 1 << 24;

/// The one of `members` with the smallest sum of deviations to all that it reaches.
fn most_central(clocks: usize, edges: &BTreeMap<u32, Vec<(u32, f64)>>, mut members: Vec<u32>) -> Option<u32> {
    let neighbours = |clock: &u32| edges.get(clock).map_or(0, Vec::len);
    let work = members.iter().map(neighbours).sum::<usize>().max(1);
    members.sort_by_key(|clock| (Reverse(neighbours(clock)), *clock));
    members.truncate((EFFORT / work).max(1));
    let sum = |root: u32| paths(clocks, edges, root).iter().flatten().map(|found| found.0).sum::<f64>();
    let sums = members.into_iter().map(|root| (sum(root), root));
    sums.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|best| best.1)
}

/// A clock does not agree with the others in a window if its step is farther from the median step than this many times what is typical. Chosen by
/// hand: a smaller value leaves out clocks that agree, a larger one lets steps of single clocks into the global time.
const OUTLIER: f64 = 5.0;

/// The time that clocks make together (Umansky and Leontev): from what each has counted since the first window (`elapsed[clock][window]`,
/// in ticks) what the median or a mean of all has counted. The means follow a clock that fails, the median does not, but it knows less: of
/// clocks that are all good the mean is wrong by their error over the square root of their number. Without a choice
/// ([`Reference::Auto`]) it is the mean of those that agree.
pub(crate) fn synthesise(elapsed: &Offsets, reference: Reference) -> Vec<f64> {
    let windows = elapsed.iter().map(Vec::len).min().unwrap_or(0);
    if reference == Reference::Auto {
        return agreed(elapsed, windows);
    }
    let count = elapsed.len().max(1) as f64;
    let at = |window: usize| {
        let mut values: Vec<f64> = elapsed.iter().filter_map(|row| row.get(window).copied()).collect();
        values.sort_by(f64::total_cmp);
        match reference {
            Reference::Mean => values.iter().sum::<f64>() / count,
            Reference::Harmonic if values.iter().all(|value| *value > 0.0) => {
                count / values.iter().map(|value| 1.0 / value).sum::<f64>()
            }
            Reference::Harmonic => 0.0,
            _ => median(&values),
        }
    };
    (0..windows).map(at).collect()
}

/// The time whose steps from window to window are the mean of the clocks' steps, without those that are far from the median: a clock that jumps is
/// left out where it jumps, one that runs away from then on.
fn agreed(elapsed: &Offsets, windows: usize) -> Vec<f64> {
    let steps = |window: usize| elapsed.iter().map(move |row| row[window] - row[window - 1]);
    let sorted = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values
    };
    let middles: Vec<f64> = (1..windows).map(|window| median(&sorted(steps(window).collect()))).collect();
    let spread =
        |window: usize| median(&sorted(steps(window).map(|step| (step - middles[window - 1]).abs()).collect()));
    let limit = OUTLIER * median(&sorted((1..windows).map(spread).collect()));
    let mut now = 0.0;
    let mut time = vec![now; windows.min(1)];
    for (window, middle) in (1..windows).zip(&middles) {
        let (count, sum) = steps(window)
            .map(|step| step - middle)
            .filter(|off| off.abs() <= limit)
            .fold((0u32, 0.0), |(count, sum), off| (count + 1, sum + off));
        now += middle + sum / f64::from(count.max(1));
        time.push(now);
    }
    time
}

/// What clocks are off their median (the Skew of Umansky and Leontev): the sum over all clocks of the distance of their corrections from the median
/// of all, mean over the windows, in ticks. `constants` is a part of every correction that is the same in all windows.
pub(crate) fn skew_to_median(offsets: &Offsets, constants: &[i64]) -> f64 {
    let windows = offsets.iter().map(Vec::len).min().unwrap_or(0);
    // Against one of them, so that the squares of centuries do not cost the nanoseconds.
    let origin = constants.first().copied().unwrap_or(0);
    let at = |window: usize| {
        let values = offsets
            .iter()
            .zip(constants)
            .filter_map(|(row, constant)| Some(row.get(window)? + constant.saturating_sub(origin) as f64));
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = median(&values);
        values.iter().map(|value| (value - middle).abs()).fold(0.0, |sum, off| sum + off)
    };
    (0..windows).map(at).fold(0.0, |sum, skew| sum + skew) / windows.max(1) as f64
}

/// The median of sorted values; 0 of none.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match (sorted.get(middle), middle.checked_sub(1).and_then(|before| sorted.get(before))) {
        (Some(upper), Some(lower)) if sorted.len().is_multiple_of(2) => (lower + upper) / 2.0,
        (upper, _) => upper.copied().unwrap_or(0.0),
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
