//! Clocks that do not bend: straight lines per pair and segment, if they are asked for, and over the whole run, as rivals of the estimate.
//!
//! Where clocks drift evenly, nothing is known better than a line through all that was seen, and an estimate that may bend follows whatever messages were late together. Whether
//! clocks drift evenly the messages tell ([`super::Estimator`] judges both by the same ones).

use super::Estimator;
use super::knots::STEEPEST;
use crate::Method;
use crate::anchor::Anchor;
use crate::edge::{EdgePrior, edges};
use crate::grid::Grid;
use crate::hull::{Limit, Steepest, hulls};
use crate::observations::{Observations, Offsets, OneWay};
use crate::reference::{Composition, PairLine, compose};
use crate::regression::regression;
use crate::windows::BoundTable;

/// How far a line may be from the estimate in the mean over the run, in units of what the better observations are known to (a fiftieth of half a round trip): travel times are learned by direction, so that
/// messages do not tell clocks from others that are off by a constant. Recorded offsets do, and the estimate goes by them.
const NEAR: f64 = 100.0;

/// Whether no clock of two sets is farther from itself than that, in the mean over the run.
pub(super) fn are_near(one: &Offsets, other: &Offsets, precision: f64) -> bool {
    let apart = |(one, other): (&Vec<f64>, &Vec<f64>)| {
        let sum: f64 = one.iter().zip(other).map(|(one, other)| one - other).sum();
        (sum / one.len().max(1) as f64).abs()
    };
    one.iter().zip(other).map(apart).all(|apart| apart <= NEAR * precision)
}

/// How far a line with a loss may be from recorded offsets, in the same units: half a half round trip. Two recordings in which it was farther were worse with lines.
const HELD: f64 = 25.0;

/// How many times as far from recorded offsets lines are at most as an estimate, to have them as well: offsets that were measured badly are no reason to prefer either. (Of 400 generated traces with offsets one was decided by that: 0.16 us from the truth instead of 4.0.)
const AS_WELL: f64 = 1.25;

/// Whether clocks have all recorded offsets to that, or within the bounds that were recorded with them.
pub(super) fn hold(offsets: &Offsets, anchors: &[Anchor], precision: f64) -> bool {
    anchors.iter().all(|anchor| off(offsets, anchor) <= (HELD * precision).max(anchor.bound))
}

/// By how much clocks differ from a recorded offset.
fn off(offsets: &Offsets, anchor: &Anchor) -> f64 {
    let own = offsets.get(anchor.clock as usize).and_then(|row| row.get(anchor.window as usize));
    own.map_or(f64::INFINITY, |own| (own - anchor.value).abs())
}

/// Whether lines have all recorded offsets about as well as an estimate does.
pub(super) fn hold_as_well(lines: &Offsets, estimate: &Offsets, anchors: &[Anchor]) -> bool {
    let farthest = |clocks: &Offsets| anchors.iter().map(|anchor| off(clocks, anchor)).fold(0.0, f64::max);
    farthest(lines) <= AS_WELL * farthest(estimate)
}

/// How many times the precision of observations a message may arrive before it was sent, and of how many observations that may be so: where clocks bend by more than messages
/// take, no line keeps to it. In 206 recordings with known truth none, as a rule, was early by lines that were the better ones, and one in 300 to one in two where clocks were sines of 20 us.
pub(super) const EARLY: f64 = 3.0;
pub(super) const FEW: f64 = 5e-4;

/// By how much messages arrive before they were sent, those that do, beyond what observations are known to.
fn contradictions(offsets: &Offsets, seen: &Observations) -> Vec<f64> {
    let windows = offsets.first().map_or(0, Vec::len);
    let offsets: Vec<f64> = offsets.iter().flatten().copied().collect();
    let early = |one: &OneWay| -EARLY * seen.precision - one.travel(&offsets, windows);
    seen.one_way.iter().map(early).filter(|early| *early > 0.0).collect()
}

/// How many messages arrive before they were sent.
fn early(offsets: &Offsets, seen: &Observations) -> usize {
    contradictions(offsets, seen).len()
}

/// Whether hardly any message arrives before it was sent.
pub(super) fn are_possible(offsets: &Offsets, seen: &Observations) -> bool {
    early(offsets, seen) as f64 <= FEW * seen.one_way.len() as f64
}

/// Whether messages contradict lines hardly more than they do the estimate.
pub(super) fn are_as_possible(lines: &Offsets, estimate: &Offsets, seen: &Observations) -> bool {
    early(lines, seen) as f64 <= (FEW * seen.one_way.len() as f64).max(early(estimate, seen) as f64)
}

/// Whether lines may be the better clocks where messages are late: hardly any message contradicts them, and in the mean over the run they are no farther from the estimate than messages usually take.
pub(super) fn fit_late_messages(lines: &Offsets, estimate: &Offsets, seen: &Observations) -> bool {
    seen.are_late()
        && are_near(lines, estimate, seen.floor)
        && differ(lines, estimate, seen)
        && are_possible(lines, seen)
}

/// Share of messages by which an estimate is astray if they contradict it, and how many these are at least: the right clocks leave next to none, and a few may have another cause. Of 48 recordings without offsets whose
/// curves were far from lines 13 had as many: with lines nine were 1.4 to 21 times as close to the truth, two as close, and two 1.6 times as far from it. Of the other ones 11 were 1.2 to 3.5 times as close, and seven 1.2 to 2.3
/// times as far. With fewer messages in all, lines were up to nine times as far from it.
const ASTRAY: f64 = 0.01;
const SEVERAL: usize = 10;

/// How many times as far from lines an estimate is as messages show, so that it has run away even if no message contradicts it: late messages permit any clocks, and those that swing were followed by a drift of 5,000 ppm. Of
/// recordings without offsets four were 200 to 3,500 times as far, and 0.9 ms from the truth (12 to 48 us with lines); those that were 4 to 80 times as far were 1.4 times as close with lines, or up to 1.2 times as far.
const LOST: f64 = 100.0;

/// How many times as much as they contradict the lines messages contradict an estimate, in the sum over all messages, that has run away. (Of a recording of a conjugate gradient, five times: 64 us from the truth, 6.9 with lines.)
const CONTRADICTED: f64 = 3.0;

/// Whether an estimate has run away from `lines` between hulls: messages contradict it, and it is farther from the lines (in the root mean square) than half a round trip, and
/// than any message that contradicts those shows, or they contradict those by much less; or it is very much farther. Where clocks bend so much that no line is possible, messages contradict the lines by about as much as the clocks bend.
pub(super) fn has_run_away(estimate: &Offsets, lines: &Offsets, seen: &Observations) -> bool {
    let windows = lines.first().map_or(0, Vec::len);
    let flat: Vec<f64> = lines.iter().flatten().copied().collect();
    let worst = seen.one_way.iter().map(|one| -one.travel(&flat, windows)).fold(0.0, f64::max);
    let apart = apart(estimate, lines);
    let half_trip = seen.quick_half_trip().unwrap_or(0.0);
    let shown = worst.max(half_trip);
    let [own, of_lines] = [estimate, lines].map(|offsets| contradictions(offsets, seen));
    let astray = own.len() >= SEVERAL && own.len() as f64 > ASTRAY * seen.one_way.len() as f64;
    let worse = || own.iter().sum::<f64>() > CONTRADICTED * of_lines.iter().sum::<f64>();
    apart > LOST * shown || astray && apart > half_trip && (apart > worst || worse())
}

/// How far apart two sets of clocks are, in the root mean square.
fn apart(one: &Offsets, other: &Offsets) -> f64 {
    let squares = one.iter().flatten().zip(other.iter().flatten()).map(|(one, other)| (one - other).powi(2));
    let count: usize = other.iter().map(Vec::len).sum();
    (squares.sum::<f64>() / count.max(1) as f64).sqrt()
}

/// By how much the message arrives before it was sent, beyond what observations are known to, that contradicts clocks most.
pub(super) fn worst(offsets: &Offsets, seen: &Observations) -> f64 {
    contradictions(offsets, seen).into_iter().fold(0.0, f64::max)
}

/// How many times as bad as the worst message that contradicts lines the worst is that contradicts an estimate, which is then no better. Of 640 traces made from recordings without offsets seven were like that: five were 5 to 36 times as close to
/// the truth with lines, and two twice as close.
const AS_BAD: f64 = 2.0;

/// Whether several messages contradict an estimate, the worst of them by much more than any contradicts lines, which is `worst`: curves are there to leave less.
pub(super) fn is_worse(estimate: &Offsets, worst: f64, seen: &Observations) -> bool {
    let own = contradictions(estimate, seen);
    let half_trip = seen.quick_half_trip().unwrap_or(0.0);
    own.len() >= SEVERAL && own.into_iter().fold(0.0, f64::max) > AS_BAD * worst.max(half_trip)
}

/// Part of what no network takes by which no message contradicts lines that curves have to leave violations beside.
const NONE: f64 = 0.05;

/// Whether several messages arrive before they were sent by curves, by more than `long`, which no network takes, and none by lines: where all messages wait, observations are known to so little that this is within their precision.
pub(super) fn leaves_more(estimate: &Offsets, lines: &Offsets, seen: &Observations, long: f64) -> bool {
    let windows = lines.first().map_or(0, Vec::len);
    let early = |clocks: &Offsets, by: f64| {
        let flat: Vec<f64> = clocks.iter().flatten().copied().collect();
        seen.one_way.iter().filter(|one| one.travel(&flat, windows) < -by).count()
    };
    early(estimate, long) >= SEVERAL && early(lines, NONE * long) == 0
}

/// Whether two sets of lines are as far apart as half a round trip at most, in the root mean square.
pub(super) fn agree(one: &Offsets, other: &Offsets, seen: &Observations) -> bool {
    apart(one, other) <= seen.quick_half_trip().unwrap_or(0.0)
}

/// How many times as far from lines of regression an estimate is as the worst message that contradicts these shows, and as messages contradict them in the mean over all, so that it follows nothing but messages that are late. Of 170 traces
/// made from recordings without offsets, 20 of 25 in which it was at least as far were 1.4 to 18 times as close to the truth with the lines, and none was farther by more than a tenth but those whose lines no message contradicts; of the others with
/// late messages, three of 90 were closer by as much.
const BEYOND_WORST: f64 = 1.5;
const BEYOND_MEAN: f64 = 100.0;

/// Whether an estimate follows messages that are late, far from `lines` of regression: where nearly all are, quick round trips are rare, and in between curves go where late messages look prompt. Where there are such round trips, clocks that bend
/// would show: they contradict the lines by as much as the clocks bend.
pub(super) fn follows_late_messages(estimate: &Offsets, lines: &Offsets, seen: &Observations) -> bool {
    if !seen.are_late() {
        return false;
    }
    let against = contradictions(lines, seen);
    let worst = against.iter().copied().fold(seen.quick_half_trip().unwrap_or(0.0), f64::max);
    let mean = against.iter().sum::<f64>() / seen.one_way.len().max(1) as f64 + seen.precision;
    let apart = apart(estimate, lines);
    apart > BEYOND_WORST * worst && apart > BEYOND_MEAN * mean
}

/// Whether messages contradict lines between hulls by less than this part of what they contradict lines of regression: where nearly all are late, the mean of quick round trips tells more than the quickest messages, unless it tells of something else.
const MUCH_LESS: f64 = 0.5;

/// Which lines are to be tried where an estimate is none: those between hulls, or those of regression.
pub(super) fn better_lines(hulls: Option<&Offsets>, regression: Option<&Offsets>, seen: &Observations) -> Method {
    let against = |lines: &Offsets| contradictions(lines, seen).iter().sum::<f64>();
    match (hulls, regression) {
        (Some(hulls), Some(lines)) if seen.are_late() && against(hulls) >= MUCH_LESS * against(lines) => {
            Method::Regression
        }
        // Of clocks that are far off, round trips do not tell lines.
        (None, _) if seen.are_late() => Method::Regression,
        _ => Method::Hull,
    }
}

/// Part of half a round trip from which on it matters which of two sets of clocks is taken. Chosen by hand: a larger part gives up the better of two
/// sets, a smaller one solves for both where nobody can tell them apart.
const APART: f64 = 0.2;

/// Whether two sets of clocks differ anywhere by more than what either is known to.
pub(super) fn differ(one: &Offsets, other: &Offsets, seen: &Observations) -> bool {
    let apart = |(one, other): (&Vec<f64>, &Vec<f64>)| {
        let apart = one.iter().zip(other).map(|(one, other)| (one - other).abs());
        apart.fold(0.0, f64::max)
    };
    let known = APART * seen.quick_half_trip().unwrap_or(0.0);
    one.iter().zip(other).map(apart).any(|apart| apart > known)
}

/// Largest drift, as a part of one, that two clocks are given by messages whose directions hardly overlap in time. Crystals differ by a tenth of that at most.
const UNLIKELY: f64 = 1e-3;

/// Whether no two clocks drift apart by more than that, from the first to the last window. Lines between hulls may be just as steep ([`steepest`]), which rounding must not decide.
pub(super) fn are_drifts(lines: &Offsets, grid: &Grid) -> bool {
    drift_apart(lines) <= UNLIKELY * (1.0 + 1e-9) * length(grid)
}

/// By which part of one two crystals differ at most, each of which is off by a hundred parts in a million. Of 105 generated pipelines without offsets, estimates from what waits tell with larger drifts were up to 50 times as far from the truth
/// as clocks without waits (0.73 times as far in the geometric mean over all of them); with 400 parts as the limit 0.775, with 1,000 0.83.
const CRYSTALS: f64 = 2e-4;

/// By how much crystals drift apart at most, from the first to the last window.
pub(super) fn drift_of_crystals(grid: &Grid) -> f64 {
    CRYSTALS * length(grid)
}

/// Whether no two clocks drift apart by more than crystals do, from the first to the last window.
pub(super) fn are_crystals(clocks: &Offsets, grid: &Grid) -> bool {
    drift_apart(clocks) <= drift_of_crystals(grid)
}

/// By which part of one clocks drift apart at most that were estimated from late messages, beside what they may jump by. Of traces made from recordings without offsets, five had estimates with larger ones, all of which were 1.5 to 17 times as far from the truth as lines; one with 2,100 ppm was twice as close.
const IMPOSSIBLE: f64 = 3e-3;
/// What clocks may have jumped by beside a drift, in seconds: in a short run that is a steep one.
const JUMPED: f64 = 1e-3;
/// Observations per clock from which on these tell drifts at all, so that one that no clock has is none of these clocks. Of a program with 9, lines were two and three times as far from the truth as curves with impossible drifts.
const TELLING: usize = 16;

/// Whether clocks drift apart as no clocks do, by messages that are nearly all late, with `resolution` ticks per second.
pub(super) fn drift_away(estimate: &Offsets, grid: &Grid, seen: &Observations, resolution: u64) -> bool {
    seen.are_late() && are_steeper(IMPOSSIBLE, estimate, grid, seen, resolution)
}

/// Whether two of the estimated clocks drift apart by more than clocks do, as enough messages would tell.
pub(super) fn are_steep(estimate: &Offsets, grid: &Grid, seen: &Observations, resolution: u64) -> bool {
    are_steeper(UNLIKELY, estimate, grid, seen, resolution)
}

fn are_steeper(drift: f64, estimate: &Offsets, grid: &Grid, seen: &Observations, resolution: u64) -> bool {
    let most = drift * length(grid) + JUMPED * resolution as f64;
    seen.one_way.len() >= TELLING * estimate.len() && drift_apart(estimate) > most
}

/// By how much more one clock drifts than another at most, from the first to the last window, in ticks.
fn drift_apart(rows: &Offsets) -> f64 {
    let rise = |row: &Vec<f64>| row.last().zip(row.first()).map_or(0.0, |(last, first)| last - first);
    let widen = |(low, high): (f64, f64), rise: f64| (low.min(rise), high.max(rise));
    let (low, high) = rows.iter().map(rise).fold((f64::INFINITY, f64::NEG_INFINITY), widen);
    (high - low).max(0.0)
}

/// Drifts of clocks usually differ by this part of one: crystals are specified to 20 to 50 ppm.
pub(super) const USUAL: f64 = 30e-6;
/// Messages that take less than that, in seconds, are as quick as each other where an edge of what they take is looked for. Chosen by hand: networks of clusters take one to two millionths.
const QUICK: f64 = 1e-6;

/// From the first to the last window, in ticks.
fn length(grid: &Grid) -> f64 {
    grid.width as f64 * grid.count.saturating_sub(1) as f64
}

/// How steep lines of pairs may be, in ticks per window of the grid.
pub(super) fn steepest(grid: &Grid) -> Steepest {
    let of = |drift: f64| drift * grid.width as f64;
    Steepest { overlapping: of(STEEPEST), apart: of(UNLIKELY) }
}

/// Straight lines of pairs, and what they make of all clocks.
pub(super) struct StraightClocks {
    /// What the lines were made by: hull or regression.
    pub method: Method,
    /// The lines.
    pub lines: Vec<PairLine>,
    /// The corrections, and along which pairs they were composed.
    pub composition: Composition,
}

impl Estimator {
    /// The corrections of all clocks by lines between hulls and by regression, if lines connect all clocks. None where clocks jump.
    pub(super) fn straight(
        &self,
        table: &BoundTable,
        seen: &Observations,
        grid: &Grid,
        clocks: usize,
    ) -> Vec<StraightClocks> {
        if self.steps.iter().any(|steps| !steps.is_empty()) {
            return Vec::new();
        }
        let whole = grid.count.max(2);
        let (hulls, regression) = self.workers.both(
            || hulls(self.limits_of(table, seen, grid), whole as u32, steepest(grid)),
            || regression(seen, whole as u32, self.limits.confidence),
        );
        let rivals = [(Method::Hull, hulls), (Method::Regression, regression)];
        let rivals = rivals.into_iter().filter(|(_, lines)| !lines.is_empty());
        let composed = rivals.map(|(method, lines)| {
            let composition = compose(&lines, clocks, grid.count, whole, Some(self.reference as u32));
            StraightClocks { method, lines, composition }
        });
        composed.filter(|straight| straight.composition.roots.len() == 1).collect()
    }

    /// What messages say at the moments of their receives.
    fn limits_of(&self, table: &BoundTable, seen: &Observations, grid: &Grid) -> Vec<Limit> {
        let mut limits = Vec::with_capacity(seen.one_way.len());
        for messages in seen.one_way.chunk_by(|one, other| (one.a, one.b) == (other.a, other.b)) {
            let Some(&OneWay { a, b, .. }) = messages.first() else { continue };
            let Some(bounds) = table.pairs.get(&(a, b)) else { continue };
            limits.extend(messages.iter().filter_map(|&OneWay { window, .. }| {
                let bound = bounds.get(window)?;
                let now =
                    |clock: u32| self.offsets.get(clock as usize).map_or(0.0, |row| self.correction(row, bound.at));
                let at = (bound.at - grid.centre(0)) as f64 / grid.width as f64;
                Some(Limit { a, b, window, at, least: now(b) - now(a) - bound.distance as f64 })
            }));
        }
        limits
    }

    /// Straight lines per pair and segment, composed to corrections of all clocks. None if there are too few messages for any. `measured` if any offset was recorded: what messages that go one way tell without is not needed then.
    pub(super) fn lines(
        &mut self,
        table: &BoundTable,
        seen: &Observations,
        grid: &Grid,
        clocks: usize,
        measured: bool,
    ) -> Option<Offsets> {
        let segment = ((self.limits.segment * self.resolution as f64 / grid.width as f64) as u32).max(2);
        let lines = match self.model {
            Method::Hull => {
                let limits = self.limits_of(table, seen, grid);
                let mut lines = hulls(limits.iter().copied(), segment, steepest(grid));
                if !measured && segment as usize >= grid.count {
                    let of = |drift: f64| drift * grid.width as f64;
                    let prior = EdgePrior {
                        usual: of(USUAL),
                        steepest: of(CRYSTALS),
                        known: (QUICK * self.resolution as f64).max(1.0),
                    };
                    lines.extend(edges(&limits, &lines, prior));
                }
                lines
            }
            _ => regression(seen, segment, self.limits.confidence),
        };
        if lines.is_empty() {
            return None;
        }
        let root = self.reference_given.then_some(self.reference as u32);
        let composition = compose(&lines, clocks, grid.count, segment as usize, root);
        self.reference = composition.roots.first().map_or(0, |root| *root as usize);
        (self.lines, self.towards) = (lines, composition.towards);
        Some(composition.offsets)
    }

    /// What the lines between pairs were made by, if there are any.
    pub(super) fn method_of_lines(&self) -> Method {
        self.straight.unwrap_or(self.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// So many messages from clock 0 to clock 1 in as many windows, each of which bounds the correction of the latter from below by 1000.
    fn seen(windows: u32) -> Observations {
        let one_way = (0..windows).map(|window| OneWay::new(0, 1, window, 1000.0)).collect();
        let shortest_trips = BTreeMap::from([((0, 1), 500.0)]);
        Observations { one_way, shortest_trips, precision: 10.0, ..Observations::default() }
    }

    #[test]
    fn lines_are_possible_if_hardly_any_message_is_early() {
        let rows = |early: usize| {
            let row = (0..4000).map(|window| if window < early { 960.0 } else { 980.0 }).collect();
            vec![vec![0.0; 4000], row]
        };
        assert!(are_possible(&rows(0), &seen(4000)) && are_possible(&rows(2), &seen(4000)));
        assert!(!are_possible(&rows(3), &seen(4000)));
        // The estimate is not perfect, either.
        let as_possible = |line, estimate| are_as_possible(&rows(line), &rows(estimate), &seen(4000));
        assert!(as_possible(2, 0) && !as_possible(3, 0) && as_possible(30, 30) && !as_possible(31, 30));
    }

    #[test]
    fn an_estimate_has_run_away_if_messages_contradict_it_and_lines_are_contradicted_by_less() {
        // The correction of clock 1 is at least 1000; half a round trip takes 500.
        let rows = |value: f64, early: usize| {
            let at = |window: usize| if window < early { 0.0 } else { value };
            vec![vec![0.0; 2000], (0..2000).map(at).collect()]
        };
        let has = |own: f64, early: usize, line: f64| has_run_away(&rows(own, early), &rows(line, 0), &seen(2000));
        // As seen from lines that messages contradict by 2000 at most.
        assert!(has(5000.0, 21, -1000.0));
        assert!(!has(5000.0, 20, -1000.0), "hardly any message contradicts it");
        assert!(!has(1500.0, 21, -1000.0), "as near to the lines as these are to messages");
        // However few messages contradict it.
        assert!(has(400_000.0, 0, -1000.0) && !has(250_000.0, 0, -1000.0));
        // Nothing contradicts these; what is known of either is half a round trip.
        assert!(has(1800.0, 21, 1000.0) && !has(1600.0, 21, 1000.0));
        // However near they are, messages contradict the estimate by much more than lines, by which one is early by 3000.
        let lines = |others: f64| {
            let mut rows = rows(1000.0, 0);
            rows[1][..100].fill(others);
            rows[1][0] = -2000.0;
            rows
        };
        assert!(has_run_away(&rows(1800.0, 400), &lines(1000.0), &seen(2000)));
        assert!(
            !has_run_away(&rows(1800.0, 400), &lines(-1000.0), &seen(2000)),
            "these they contradict by half as much"
        );
    }

    #[test]
    fn clocks_do_not_drift_apart_by_more_than_a_thousandth() {
        // Windows of 1,000 ticks.
        let are = |first: f64, second: f64| {
            let row = |slope: f64| (0..11).map(|window| 7.0 + slope * f64::from(window)).collect();
            are_drifts(&vec![row(0.0), row(first), row(second)], &Grid::new(0, 10_999, 11))
        };
        assert!(are(0.9, 0.0) && are(0.4, -0.5) && !are(0.5, -0.6) && !are(1.1, 0.0));
    }

    #[test]
    fn clocks_that_late_messages_make_drift_away_are_none() {
        // Ten windows of a second, with a million ticks each.
        let (grid, resolution) = (Grid::new(0, 10_999_999, 11), 1_000_000);
        let rows = |drift: f64| vec![vec![0.0; 11], (0..11).map(|window| 1e6 * drift * f64::from(window)).collect()];
        let away = |drift: f64, usual| drift_away(&rows(drift), &grid, &usually(usual), resolution);
        // Beside 3,000 and 1,000 ppm, a clock may have jumped by 1 ms.
        assert!(away(0.0032, 10.0) && away(-0.0032, 10.0) && !away(0.003, 10.0));
        assert!(!away(0.0032, 2.0), "messages are not late");
        let few = Observations { one_way: usually(10.0).one_way[..31].to_vec(), ..usually(10.0) };
        assert!(!drift_away(&rows(0.0032), &grid, &few, resolution), "too few messages");
        let steep = |drift: f64, seen: &Observations| are_steep(&rows(drift), &grid, seen, resolution);
        assert!(steep(0.0012, &usually(2.0)) && !steep(0.001, &usually(2.0)) && !steep(0.0012, &few));
    }

    #[test]
    fn offsets_are_held_to_half_a_half_round_trip_or_to_what_was_recorded_with_them() {
        let held = |miss: f64, stated: f64| {
            let anchor =
                Anchor { clock: 1, window: 0, value: 7.0 - miss, sigma: stated.max(1.0), bound: 3f64.sqrt() * stated };
            hold(&vec![vec![0.0], vec![7.0]], &[anchor], 10.0)
        };
        assert!(held(249.0, 0.0) && !held(251.0, 0.0));
        assert!(held(249.0, 50.0) && held(1700.0, 1000.0) && !held(1800.0, 1000.0));
    }

    #[test]
    fn lines_may_be_better_where_messages_are_late() {
        // Half round trips: the shortest takes 500, most of them much longer.
        let seen =
            |usual| Observations { half_trips: BTreeMap::from([((0, 1), usual)]), floor: 0.02 * usual, ..seen(2000) };
        let rows = |value: f64| vec![vec![0.0; 2000], vec![value; 2000]];
        let fits = |line: f64, estimate: f64, usual: f64| fit_late_messages(&rows(line), &rows(estimate), &seen(usual));
        assert!(fits(1100.0, 4000.0, 1600.0));
        assert!(!fits(1100.0, 4000.0, 1400.0), "messages are not late");
        assert!(!fits(1100.0, 4400.0, 1600.0), "too far from the estimate");
        assert!(!fits(900.0, 2000.0, 1600.0), "messages contradict the line");
        assert!(!fits(1100.0, 1150.0, 1600.0), "as well known as either");
    }

    #[test]
    fn clocks_differ_if_they_do_anywhere_by_a_part_of_a_round_trip() {
        let rows = |last: f64| vec![vec![0.0, 0.0], vec![0.0, last]];
        assert!(differ(&rows(101.0), &rows(0.0), &seen(2)) && !differ(&rows(99.0), &rows(0.0), &seen(2)));
    }

    /// The same messages if a round trip usually takes so many half ones of the quickest.
    fn usually(usual: f64) -> Observations {
        Observations { half_trips: BTreeMap::from([((0, 1), 500.0 * usual)]), ..seen(2000) }
    }

    #[test]
    fn an_estimate_that_is_farther_from_lines_than_messages_show_follows_late_ones() {
        // By the lines, one message in a hundred is early by 970 at most: clocks bend by that much.
        let lines: Offsets =
            vec![vec![0.0; 2000], (0..2000).map(|at| if at % 100 == 0 { 0.0 } else { 1000.0 }).collect()];
        let rows = |value: f64| vec![vec![0.0; 2000], vec![value; 2000]];
        let follows = |value: f64, usual: f64| follows_late_messages(&rows(value), &lines, &usually(usual));
        assert!(follows(5000.0, 10.0));
        assert!(!follows(5000.0, 2.0), "messages are not late");
        assert!(!follows(2900.0, 10.0), "hardly farther than the worst message shows");
        // As many are early as are not.
        let many: Offsets =
            vec![vec![0.0; 2000], (0..2000).map(|at| if at % 2 == 0 { 900.0 } else { 1000.0 }).collect()];
        assert!(!follows_late_messages(&rows(4000.0), &many, &usually(10.0)), "less than a hundred times the mean");
        assert!(follows_late_messages(&rows(12_000.0), &many, &usually(10.0)));
    }

    #[test]
    fn regression_is_tried_where_messages_are_late_unless_hulls_are_contradicted_by_much_less() {
        let rows = |value: f64| vec![vec![0.0; 2000], vec![value; 2000]];
        // Early by 170 and by 370, beyond what observations are known to.
        let (near, far) = (rows(800.0), rows(600.0));
        let better = |hulls, regression, usual| better_lines(hulls, regression, &usually(usual));
        assert_eq!(better(Some(&near), Some(&far), 10.0), Method::Hull);
        assert_eq!(better(Some(&far), Some(&near), 10.0), Method::Regression);
        assert_eq!(better(Some(&near), Some(&near), 10.0), Method::Regression);
        assert_eq!(better(Some(&far), Some(&near), 2.0), Method::Hull, "messages are not late");
        assert_eq!([Some(&near), None].map(|lines| better(None, lines, 10.0)), [Method::Regression; 2]);
        assert_eq!(better(None, None, 2.0), Method::Hull);
    }

    #[test]
    fn curves_leave_more_if_they_leave_violations_and_lines_none() {
        // Where all messages wait for milliseconds, that is within what observations are known to.
        let seen = Observations { precision: 20_000.0, ..seen(2000) };
        let rows = |early: usize, by: f64| {
            vec![vec![0.0; 2000], (0..2000).map(|window| if window < early { 1000.0 - by } else { 1000.0 }).collect()]
        };
        assert!(are_possible(&rows(10, 30_000.0), &seen));
        let leaves = |early, by| leaves_more(&rows(early, by), &rows(0, 0.0), &seen, 20_000.0);
        assert!(leaves(10, 30_000.0) && !leaves(9, 30_000.0) && !leaves(10, 19_000.0));
        assert!(leaves_more(&rows(10, 30_000.0), &rows(1, 900.0), &seen, 20_000.0));
        assert!(!leaves_more(&rows(10, 30_000.0), &rows(1, 1100.0), &seen, 20_000.0));
    }

    #[test]
    fn lines_hold_offsets_as_well_as_an_estimate() {
        let rows = |value: f64| vec![vec![0.0; 10], vec![value; 10]];
        let anchors = [0, 9].map(|window| Anchor { clock: 1, window, value: 100.0, sigma: 1.0, bound: 0.0 });
        let holds = |line, estimate| hold_as_well(&rows(line), &rows(estimate), &anchors);
        assert!(holds(1300.0, 1100.0) && holds(-900.0, 1100.0) && !holds(1400.0, 1100.0));
        assert!(!hold(&rows(1300.0), &anchors, 10.0) && hold(&rows(300.0), &anchors, 10.0));
    }

    #[test]
    fn an_estimate_is_worse_than_lines_if_it_leaves_much_worse_contradictions() {
        let rows = |early: usize, value: f64| {
            vec![vec![0.0; 2000], (0..2000).map(|at| if at < early { value } else { 1000.0 }).collect()]
        };
        assert!(is_worse(&rows(10, -1200.0), 1000.0, &seen(2000)));
        assert!(!is_worse(&rows(9, -1200.0), 1000.0, &seen(2000)), "a few may have another cause");
        assert!(!is_worse(&rows(10, -900.0), 1000.0, &seen(2000)), "not twice as bad");
        assert!(!is_worse(&rows(10, 10.0), 0.0, &seen(2000)), "by less than what is known of either");
        assert_eq!(worst(&rows(10, -1200.0), &seen(2000)), 2170.0);
    }
}
