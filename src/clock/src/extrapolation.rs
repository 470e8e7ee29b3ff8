//! Where nothing is observed before the first and after the last message of a clock: how it goes on.

use crate::LinearClock;
use crate::grid::Grid;
use crate::network::memory;
use crate::observations::Offsets;
use crate::prediction;
use crate::steps::quantile;

/// Fewest windows with messages that tell the drift of a clock. Chosen by hand: from fewer, a drift is mostly noise, which would be continued; with a
/// larger number, more clocks are continued without any.
const FEWEST: usize = 8;
/// Recorded offsets of a clock from which on lines between them bend.
pub(crate) const BENT: usize = 3;
/// Drifts that are so many times as far from the median as most are count as if they were that far from it. Chosen by hand: a larger value lets what
/// is no drift, such as a jump, into the mean; a smaller one cuts off how a clock really wanders.
const ASTRAY: f64 = 3.0;
const MOST: f64 = 0.9;

/// Order of linear prediction: four sinusoids. Chosen by experiments with ten kinds of clocks (docs/history.md, twenty-third set): of 2, 4 and 8, the largest was best for clocks that swing, and made no difference elsewhere.
const ORDER: usize = 8;
/// With fewer windows than that, a clock is not predicted from its values. Chosen by hand: with fewer, a clock that is hardly observed is predicted from noise; with more, short runs are not.
const VALUES: usize = 64;
/// As many of its values are taken, and some twelve in the time in which it comes and goes; a prediction counts by how it comes out where it is tried out. Neighbours of many differ by noise; of few, swings are lost. Chosen by experiments (docs/history.md, twenty-fourth set): with twelve values per swing alone, clocks that
/// swing and walk are 1.2 to 1.7 times as far off; with 16, 32, 64 and 128 values it is about the same as with these.
const TAKEN: [usize; 3] = [24, 48, 96];
/// Fewest values that tell anything.
const FEWEST_TAKEN: usize = 16;
/// By this part of the run predictions are tried out, from what lies before several places in the last [`RECENT`] of it. Chosen by experiments, as above: with longer ones, too little is left to predict from where a clock comes and goes once or twice (a recording: 68 us with a third of the run, 7 with this);
/// with shorter ones, clocks whose frequency walks are predicted too (1.2 times as far off).
const AHEAD: usize = 8;
const RECENT: f64 = 0.3;
/// Values are predicted from values if that comes out better by this factor where it was tried out, in the geometric mean over the clocks, and for clocks for which it comes out better. Chosen by experiments, as above: no kind of clock is more than 1.02 times as far off as without it,
/// and clocks that swing a third to a half as far. With 0.85, one is 1.1 times as far off; with each clock for itself, 1.15 times.
const BETTER: f64 = 0.7;
/// A clock that was observed for less than so many times as long as its drift takes to be correlated with itself by one half (a sixth of a period) has swung once or so: then it is predicted only for up to this part of that time. Found with recordings whose first
/// offset is a fifth of a second after the begin: of three with a single swing, one was predicted for a third of it, and was four times as far off as by lines; the others for a tenth and a fifth, and a third and an eighth as far.
const SEVERAL: f64 = 7.5;
const SINGLE: usize = 4;
/// More or less than by this factor counts as that: what is predicted to the last bit is no better for it.
const FACTOR: f64 = 100.0;

/// An end of the run.
#[derive(Clone, Copy)]
enum Side {
    Begin,
    End,
}

impl Side {
    /// The values of a row in the order in which it goes on at this end. Towards the begin they are turned in time and in value.
    fn turned(self, row: &[f64]) -> Vec<f64> {
        match self {
            Side::Begin => row.iter().rev().map(|value| -value).collect(),
            Side::End => row.to_vec(),
        }
    }
}

/// What is known of a clock towards an end of the run, its last value next to the windows in which nothing is observed. Towards the begin it is turned in time and in value, so that the drift is the same.
struct End {
    clock: usize,
    known: Vec<f64>,
    count: usize,
}

impl End {
    /// None if the clock is nowhere `observed`.
    fn of(clock: usize, row: &[f64], observed: &[bool], side: Side) -> Option<End> {
        let first = observed.iter().position(|seen| *seen)?;
        let last = observed.iter().rposition(|seen| *seen)?;
        let count = match side {
            Side::Begin => first,
            Side::End => row.len() - 1 - last,
        };
        Some(End { clock, known: side.turned(&row[first..=last]), count })
    }

    /// How it is predicted from values, where that is tried out. None if it is not known, or if the clock is not seen to come and go.
    fn trial(&self) -> Option<Trial> {
        let End { known, count, .. } = self;
        // A few windows make no difference; and farther than it was observed nobody knows how it goes on.
        if known.len() < VALUES || *count > known.len() || count * VALUES < known.len() {
            return None;
        }
        let by_swing = comes_and_goes(known).map(|half| half / 2);
        let mut steps: Vec<usize> =
            TAKEN.iter().map(|values| known.len() / values).chain(by_swing).map(|step| step.max(1)).collect();
        steps.sort_unstable();
        steps.dedup();
        let by_drift = missed(known, *count, by_drift);
        let tried = steps.into_iter().filter(|step| self.may_take(*step)).map(|step| {
            let missed = missed(known, *count, |known, count| by_values(known, count, step));
            (step, missed / by_drift)
        });
        let known = tried.filter(|(_, gain)| gain.is_finite());
        let tried: Vec<(usize, f64)> = known.map(|(step, gain)| (step, gain.clamp(1.0 / FACTOR, FACTOR))).collect();
        let gain = tried.iter().map(|(_, gain)| *gain).min_by(f64::total_cmp)?;
        // As the mean of several measurements is best made, by the inverse squares of their errors.
        Some(Trial {
            gain,
            steps: tried.into_iter().map(|(step, gain)| Share { step, weight: gain.powi(-2) }).collect(),
        })
    }

    /// Whether every so many-th of its values show that it comes and goes.
    fn may_take(&self, step: usize) -> bool {
        let some = every(&self.known, step);
        let Some(half) = comes_and_goes(&some).filter(|_| some.len() >= FEWEST_TAKEN) else { return false };
        // Of a single swing, predictions are tried out over a small part only.
        some.len() as f64 >= SEVERAL * half as f64 || self.count <= self.known.len() / SINGLE
    }
}

/// How predictions from values came out where they were tried out.
struct Trial {
    /// Of which predictions the mean is taken.
    steps: Vec<Share>,
    /// By how much the best of them was off, as a part of what the drift alone would have been.
    gain: f64,
}

/// A prediction from every so many-th value, and how much it counts.
struct Share {
    step: usize,
    weight: f64,
}

/// Goes on before the first and after the last message of each clock, of which `rows` are the corrections of its recorded offsets.
/// The equations say how a clock goes on, too, but where messages alone make a clock their weights are so small that rounding decides.
/// `observed`: in which windows there are messages of each clock; `lines`: those between its recorded offsets ([`lines_between`]), which bend where there is one.
pub(crate) fn extrapolate(rows: &mut Offsets, observed: &[Vec<bool>], fixed: &[bool], lines: &Offsets) {
    let whole = |clock: usize, row: &[f64]| -> Vec<f64> {
        let line = lines.get(clock).map_or(&[][..], Vec::as_slice);
        row.iter().zip(line.iter().chain(std::iter::repeat(&0.0))).map(|(value, line)| value + line).collect()
    };
    for side in [Side::Begin, Side::End] {
        let clocks = rows.iter().zip(observed).zip(fixed).enumerate().filter(|(_, (_, fixed))| !**fixed);
        let ends: Vec<End> = clocks
            .filter_map(|(clock, ((row, observed), _))| {
                let corrections = End::of(clock, row, observed, side)?;
                // A few messages tell nothing but where the recorded clock is.
                let few = corrections.known.len() <= FEWEST || lines.get(clock).is_none_or(Vec::is_empty);
                if few { Some(corrections) } else { End::of(clock, &whole(clock, row), observed, side) }
            })
            .collect();
        for (end, values) in ends.iter().zip(go_on(&ends)) {
            let line = lines.get(end.clock).filter(|_| end.known.len() > FEWEST);
            let line = |window: usize| line.and_then(|line| line.get(window)).copied().unwrap_or(0.0);
            let row = &mut rows[end.clock];
            let count = row.len();
            for (ahead, value) in (1..).zip(values) {
                match side {
                    Side::Begin => row[end.count - ahead] = -value - line(end.count - ahead),
                    Side::End => row[count - 1 - end.count + ahead] = value - line(count - 1 - end.count + ahead),
                }
            }
        }
    }
}

/// What the recorded clocks (lines or curves through offsets) are at the middles of windows, and beyond the first and the last offset, from the first one on; nothing of clocks whose offsets make but one line.
pub(crate) fn lines_between(bases: &[LinearClock], grid: &Grid) -> Offsets {
    let of_clock = |base: &LinearClock| {
        let Some((_, first)) = base.points().next().filter(|_| base.measurements() >= BENT) else { return Vec::new() };
        let point = |(time, offset): (i64, i64)| {
            let global = time.saturating_add(offset).saturating_sub(grid.first);
            (global as f64, offset.saturating_sub(first) as f64)
        };
        let points: Vec<(f64, f64)> = base.points().map(point).collect();
        let line = |window: usize| {
            let time = grid.centre(window).saturating_sub(grid.first) as f64;
            let from = points.partition_point(|point| point.0 <= time).clamp(1, points.len() - 1) - 1;
            let ((begin, value), (end, other)) = (points[from], points[from + 1]);
            if end > begin { value + (time - begin) / (end - begin) * (other - value) } else { value }
        };
        (0..grid.count).map(line).collect()
    };
    bases.iter().map(of_clock).collect()
}

/// How clocks go on before the first and after the last of their values, a row of them each, by as many as these `counts`: the farthest first before, and last behind. Nothing where it is not seen that they come and go.
pub(crate) fn swings(rows: &[Vec<f64>], counts: &[[usize; 2]]) -> Vec<[Vec<f64>; 2]> {
    let mut found = vec![[Vec::new(), Vec::new()]; rows.len()];
    for (side, at) in [(Side::Begin, 0), (Side::End, 1)] {
        let of = |(clock, (row, counts)): (usize, (&Vec<f64>, &[usize; 2]))| End {
            clock,
            known: side.turned(row),
            count: counts[at],
        };
        let ends: Vec<End> = rows.iter().zip(counts).enumerate().map(of).collect();
        for (end, steps) in ends.iter().zip(predicted(&ends)) {
            let Some(steps) = steps else { continue };
            let mut values = by_several(&end.known, end.count, &steps);
            if at == 0 {
                values.reverse();
                values.iter_mut().for_each(|value| *value = -*value);
            }
            found[end.clock][at] = values;
        }
    }
    found
}

/// The values that follow those that are known, of each clock.
fn go_on(ends: &[End]) -> Vec<Vec<f64>> {
    let values = |(End { known, count, .. }, steps): (&End, Option<Vec<Share>>)| match steps {
        _ if known.len() <= FEWEST => vec![known.last().copied().unwrap_or(0.0); *count],
        Some(steps) => by_several(known, *count, &steps),
        None => by_drift(known, *count),
    };
    ends.iter().zip(predicted(ends)).map(values).collect()
}

/// By which of their values these clocks are predicted; none if they are not.
fn predicted(ends: &[End]) -> Vec<Option<Vec<Share>>> {
    let trials: Vec<Option<Trial>> = ends.iter().map(End::trial).collect();
    let logarithms: Vec<f64> = trials.iter().flatten().map(|trial| trial.gain.ln()).collect();
    let gain = (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp();
    let taken = |trial: Option<Trial>| trial.filter(|own| gain < BETTER && own.gain < 1.0).map(|trial| trial.steps);
    trials.into_iter().map(taken).collect()
}

/// By how much predictions of `known` values from those before them are off, of as many windows as `count` or as one may try out (root mean square).
fn missed(known: &[f64], count: usize, predict: impl Fn(&[f64], usize) -> Vec<f64>) -> f64 {
    let ahead = count.min(known.len() / AHEAD).max(1);
    let places = (ahead..=(RECENT * known.len() as f64) as usize).step_by((ahead / 2).max(known.len() / (2 * AHEAD)));
    let misses = places.flat_map(|place| {
        let (before, behind) = known.split_at(known.len() - place);
        predict(before, ahead).into_iter().zip(behind).map(|(predicted, value)| (predicted - value).powi(2))
    });
    let misses: Vec<f64> = misses.collect();
    (misses.iter().sum::<f64>() / misses.len().max(1) as f64).sqrt()
}

/// With the mean drift; with the drift that it has at the end, which returns to the mean (an Ornstein-Uhlenbeck process), only if it is not seen to come and go within the run: a clock that swings is back where it was after a while.
/// If its messages are too close together to tell a drift, with that of the recorded clock.
fn by_drift(known: &[f64], count: usize) -> Vec<f64> {
    let mut slopes: Vec<f64> = known.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = quantile(slopes.clone(), 0.5);
    let usual = quantile(slopes.iter().map(|slope| (slope - middle).abs()).collect(), MOST);
    slopes.iter_mut().for_each(|slope| *slope = slope.clamp(middle - ASTRAY * usual, middle + ASTRAY * usual));
    let mean = slopes.iter().sum::<f64>() / slopes.len().max(1) as f64;
    let drift = match memory(&slopes, mean) {
        Some(_) => mean,
        None => quantile(slopes.split_off(slopes.len() / 2), 0.5),
    };
    let (last, forgets) = (known.last().copied().unwrap_or(0.0), (known.len() - 1) as f64);
    let gone = |windows: f64| mean * windows + (drift - mean) * forgets * (1.0 - (-windows / forgets).exp());
    (1..=count).map(|windows| last + gone(windows as f64)).collect()
}

/// In how many windows the drift of a clock is correlated with itself by one half, if that is seen.
fn comes_and_goes(known: &[f64]) -> Option<usize> {
    let slopes: Vec<f64> = known.windows(2).map(|pair| pair[1] - pair[0]).collect();
    memory(&slopes, slopes.iter().sum::<f64>() / slopes.len().max(1) as f64).map(|windows| windows as usize)
}

/// The last value, and every so many-th before it.
fn every(known: &[f64], step: usize) -> Vec<f64> {
    let mut values: Vec<f64> = known.iter().rev().step_by(step).copied().collect();
    values.reverse();
    values
}

/// The mean of several predictions.
fn by_several(known: &[f64], count: usize, steps: &[Share]) -> Vec<f64> {
    let whole: f64 = steps.iter().map(|share| share.weight).sum();
    let mut mean = vec![0.0; count];
    for share in steps {
        let values = by_values(known, count, share.step);
        mean.iter_mut().zip(values).for_each(|(mean, value)| *mean += share.weight / whole * value);
    }
    mean
}

/// By linear prediction of how far every so many-th value is from the straight line that is nearest to them.
fn by_values(known: &[f64], count: usize, step: usize) -> Vec<f64> {
    let values = every(known, step);
    let number = values.len() as f64;
    let centre = (number - 1.0) / 2.0;
    let level = values.iter().sum::<f64>() / number;
    let spread = number * (number * number - 1.0) / 12.0;
    let tilt = values.iter().enumerate().map(|(at, value)| (at as f64 - centre) * (value - level)).sum::<f64>();
    let slope = if spread > 0.0 { tilt / spread } else { 0.0 };
    let line = |at: f64| level + slope * (at - centre);
    let apart: Vec<f64> = values.iter().enumerate().map(|(at, value)| value - line(at as f64)).collect();
    let predicted = prediction::predict(&apart, ORDER, count / step + 1);
    let mut points = vec![known.last().copied().unwrap_or(0.0)];
    points.extend(predicted.into_iter().enumerate().map(|(ahead, value)| value + line(number + ahead as f64)));
    let between = |windows: usize| {
        let (at, share) = (windows / step, (windows % step) as f64 / step as f64);
        let next = points.get(at + 1).copied().unwrap_or(points[at]);
        points[at] + share * (next - points[at])
    };
    (1..=count).map(between).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clc_trace::ClockOffset;

    /// Messages between clocks 0 and 1 in some windows.
    fn seen(windows: std::ops::Range<usize>) -> Vec<Vec<bool>> {
        vec![(0..100).map(|window| windows.contains(&window)).collect(); 2]
    }

    /// Clock 1 is corrected by this, clock 0 by nothing.
    fn rows(of: impl Fn(usize) -> f64) -> Offsets {
        vec![vec![0.0; 100], (0..100).map(of).collect()]
    }

    #[test]
    fn a_clock_goes_on_with_its_mean_drift() {
        let line = |window: usize| 7.0 * window as f64;
        // What rounding has left, and a clock that was set on the way.
        let set = |window: usize| line(window) + if window < 50 { 0.0 } else { 1e5 };
        let mut found = rows(|window| if (20..80).contains(&window) { set(window) } else { 1e6 });
        extrapolate(&mut found, &seen(20..80), &[true, false], &Offsets::new());
        assert!((0..100).all(|window| (found[1][window] - set(window)).abs() < 1e-6));
    }

    #[test]
    fn a_clock_that_swings_is_not_thrown_off() {
        let swing = |window: usize| 1000.0 * (window as f64 / 2.0).sin();
        let mut found = rows(swing);
        extrapolate(&mut found, &seen(20..80), &[true, false], &Offsets::new());
        assert!(found[1].iter().all(|value| value.abs() < 2000.0));
    }

    #[test]
    fn drift_that_has_changed_for_good_stays() {
        let turn = |window: usize| if window < 50 { 0.0 } else { 100.0 * (window - 50) as f64 };
        let mut found = rows(turn);
        extrapolate(&mut found, &seen(20..80), &[true, false], &Offsets::new());
        assert!((found[1][99] - turn(99)).abs() < 400.0 && found[1][0].abs() < 400.0);
    }

    #[test]
    fn a_few_messages_tell_no_drift() {
        let mut found = rows(|window| window as f64 * window as f64);
        extrapolate(&mut found, &seen(20..24), &[true, false], &Offsets::new());
        assert_eq!((found[1][0], found[1][19], found[1][21], found[1][99]), (400.0, 400.0, 441.0, 529.0));
    }

    #[test]
    fn the_reference_and_clocks_without_messages_stay() {
        let before = rows(|window| window as f64 * window as f64);
        for (fixed, windows) in [([true, true], 20..80), ([true, false], 20..20)] {
            let mut found = before.clone();
            extrapolate(&mut found, &seen(windows), &fixed, &Offsets::new());
            assert_eq!(found, before);
        }
    }

    #[test]
    fn a_clock_that_comes_and_goes_twice_goes_on_like_that() {
        // As in a recording: its messages begin after two fifths of a run in which it swings twice or so.
        let swing = |window: usize| 20.0 * window as f64 + 1000.0 * (window as f64 / 45.0).sin();
        let mut rows = vec![vec![0.0; 700], (0..700).map(swing).collect()];
        rows[1][..280].fill(0.0);
        let observed = vec![(0..700).map(|window| window >= 280).collect(); 2];
        extrapolate(&mut rows, &observed, &[true, false], &Offsets::new());
        let worst = (0..280).map(|window| (rows[1][window] - swing(window)).abs()).fold(0.0, f64::max);
        assert!(worst < 300.0, "{worst}");
        let drift = by_drift(&(280..700).rev().map(swing).collect::<Vec<f64>>(), 280);
        let misses = drift.iter().enumerate().map(|(ahead, value)| (value - swing(279 - ahead)).abs());
        let worst = misses.fold(0.0, f64::max);
        assert!(worst > 1000.0, "the drift would do as well: {worst}");
    }

    #[test]
    fn a_clock_is_predicted_from_what_it_does_and_not_from_what_it_is_off_lines_between_its_offsets() {
        // The offsets of a clock that swings, every tenth window; its corrections are scallops on top of the lines between them.
        let swing = |at: f64| 2e5 * (at / 30.0).sin();
        let grid = Grid::new(0, 399_999_999, 400);
        let offsets: Vec<ClockOffset> = (8..36)
            .map(|number| {
                let at = f64::from(number) * 10.0;
                let offset = swing(at).round() as i64;
                let time = (grid.centre(0) + (at * grid.width as f64) as i64 - offset) as u64;
                ClockOffset { time, offset, standard_deviation: 0.0 }
            })
            .collect();
        let first = offsets[0].offset as f64;
        let lines = lines_between(&[LinearClock::identity(), LinearClock::new(&offsets).unwrap()], &grid);
        assert!(
            lines[0].is_empty() && (lines[1][80]).abs() < 1.0 && (lines[1][90] - (swing(90.0) - first)).abs() < 1.0
        );
        let row: Vec<f64> = (0..400).map(|window| swing(window as f64) - first - lines[1][window]).collect();
        let observed = vec![(0..400).map(|window| (80..350).contains(&window)).collect(); 2];
        let worst = |lines: &Offsets| {
            let mut rows = vec![vec![0.0; 400], row.clone()];
            extrapolate(&mut rows, &observed, &[true, false], lines);
            assert_eq!(rows[1][80..350], row[80..350]);
            rows[1].iter().zip(&row).map(|(found, row)| (found - row).abs()).fold(0.0, f64::max)
        };
        let (by_lines, by_clock) = (worst(&Offsets::new()), worst(&lines));
        assert!(by_clock < 0.1 * by_lines, "{by_clock} {by_lines}");
    }

    #[test]
    fn a_clock_that_walks_goes_on_from_where_it_is() {
        let mut random = 1u32;
        let mut walk = vec![0.0];
        for at in 0..600 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            walk.push(walk[at] + f64::from(random >> 16) - 32768.0);
        }
        let values = by_drift(&walk, 100);
        assert_eq!(go_on(&[End { clock: 3, known: walk, count: 100 }]), [values]);
    }
}
