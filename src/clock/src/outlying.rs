//! Recorded offsets that other measurements of the same clock contradict: of a few round trips, all were disturbed.
//!
//! Processes of one node share its clock, as a rule, so what they have measured at about the same time is the same. And a clock that was measured often is where the measurements before and after
//! put it. A clock that jumps stays where it has jumped to, and one that drifts otherwise goes on: a single measurement that is far from all others is none of that.

use crate::RecordedOffsets;
use clc_trace::{ClockOffset, TimelineNumber};
use std::collections::BTreeMap;

/// How many times as far from others as these are from each other an offset is that is left out. Assumed: of measurements by a few round trips each, the worst is some five times as far off as a typical one.
const FAR: f64 = 20.0;
/// The same beside the worst of the others.
const FARTHER: f64 = 10.0;
/// In seconds: measurements differ by a microsecond for many reasons.
const LEAST: f64 = 2e-6;
/// Measurements from which on a clock tells by itself which of them is wrong.
const OFTEN: usize = 5;
/// Measurements of one clock that are left out at most. Assumed: if more are wrong, nobody knows which ones are right.
const MOST: usize = 16;
/// How many of those that are farthest off are looked at.
const SUSPECTS: usize = 4;
/// Change of the drift from which on the first or last measurement is an error rather than a clock that warms up or is steered: crystals change by a few millionths.
const TURN: f64 = 20e-6;
/// Measurements of one clock of which those are sought by which time runs backwards: every one is compared with every other one.
const MOST_CHECKED: usize = 20_000;
/// Processes on its node that one is compared with, at most: the next ones.
const PEERS: usize = 16;
/// Of two processes with a clock in common that have measured another time, the one that is so many times as far from its other measurements is wrong.
const TELLING: f64 = 5.0;

/// An offset that others contradict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlyingOffset {
    /// The timeline for which it was recorded.
    pub timeline: TimelineNumber,
    /// When, by its clock, in ticks.
    pub time: u64,
    /// By how much it is larger than what the others say, in ticks.
    pub excess: i64,
}

/// The recorded offsets of some timelines without what others contradict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CleanedOffsets {
    /// By timeline, of those that have such offsets only: what to take instead of all of them.
    pub instead: BTreeMap<TimelineNumber, Vec<ClockOffset>>,
    /// What was wrong.
    pub outlying: Vec<OutlyingOffset>,
}

/// Which measurements may be found wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought {
    /// Those that other processes contradict, or that are between others of their clock.
    Certain,
    /// The first and the last one of a clock as well. It may have jumped just behind the first one, or before the last one.
    AlsoEnds,
}

/// Most of the `offsets` of one clock, in order of time, without those by which global time would run backwards between two of them; none if nobody knows which these are, since it is not less than half of
/// them. Of several ways to leave out as few, that in which the clock drifts least. Nothing if time runs forwards, or if their times do not increase.
pub fn without_impossible(offsets: &[ClockOffset]) -> Option<Vec<ClockOffset>> {
    // OTF2 has times and offsets of 64 bits each.
    let global = |one: &ClockOffset| i128::from(one.time) + i128::from(one.offset);
    let pairs = || offsets.iter().zip(offsets.iter().skip(1));
    let possible = pairs().all(|(one, next)| global(one) < global(next));
    if possible || offsets.len() > MOST_CHECKED || pairs().any(|(one, next)| one.time >= next.time) {
        return None;
    }
    let drift = |one: &ClockOffset, next: &ClockOffset| {
        (i128::from(next.offset) - i128::from(one.offset)).unsigned_abs() as f64 / next.time.abs_diff(one.time) as f64
    };
    // The best that ends with each: how many, the largest drift, and the one before.
    let mut best: Vec<(usize, f64, Option<usize>)> = Vec::new();
    for (at, next) in offsets.iter().enumerate() {
        let before = (0..at).filter(|&before| global(&offsets[before]) < global(next));
        let through = before.map(|before| {
            let (count, largest, _) = best[before];
            (count + 1, largest.max(drift(&offsets[before], next)), Some(before))
        });
        best.push(through.fold((1, 0.0, None), better));
    }
    let (count, _, _) = best.iter().copied().fold((0, 0.0, None), better);
    if 2 * count <= offsets.len() {
        return Some(Vec::new());
    }
    let ends = (0..offsets.len()).filter(|&at| best[at].0 == count);
    let mut at = ends.min_by(|&one, &other| best[one].1.total_cmp(&best[other].1));
    let mut kept = Vec::new();
    while let Some(here) = at {
        kept.push(offsets[here]);
        at = best[here].2;
    }
    kept.reverse();
    Some(kept)
}

/// The one with more measurements, and of equally many the one with less drift.
fn better(one: (usize, f64, Option<usize>), other: (usize, f64, Option<usize>)) -> (usize, f64, Option<usize>) {
    if other.0 > one.0 || other.0 == one.0 && other.1 < one.1 { other } else { one }
}

/// Finds them among the offsets `recorded`, those of each timeline in order of time; `nodes` has the node of each timeline of a process, others are left alone. `resolution` is in ticks per second.
pub fn without_outlying(
    recorded: &[RecordedOffsets],
    nodes: &[u32],
    resolution: u64,
    sought: Sought,
) -> CleanedOffsets {
    let mut by_node: BTreeMap<u32, Vec<(TimelineNumber, Vec<ClockOffset>)>> = BTreeMap::new();
    for record in recorded {
        let measures = record.offsets.iter().any(|one| one.offset != 0);
        if let Some(&node) = nodes.get(record.timeline.0 as usize).filter(|_| measures) {
            by_node.entry(node).or_default().push((record.timeline, record.offsets.clone()));
        }
    }
    let least = LEAST * resolution as f64;
    let mut cleaned = CleanedOffsets::default();
    for mut processes in by_node.into_values() {
        let before = cleaned.outlying.len();
        compare_processes(&mut processes, least, &mut cleaned.outlying);
        // Of several processes the others know.
        if let [(timeline, offsets)] = &mut processes[..] {
            compare_times(*timeline, offsets, (least, sought), &mut cleaned.outlying);
        }
        for (timeline, offsets) in processes {
            if cleaned.outlying[before..].iter().any(|outlying| outlying.timeline == timeline) {
                cleaned.instead.insert(timeline, offsets);
            }
        }
    }
    cleaned
}

/// Puts the offsets of processes on one node right that others on it contradict.
fn compare_processes(
    processes: &mut [(TimelineNumber, Vec<ClockOffset>)],
    least: f64,
    outlying: &mut Vec<OutlyingOffset>,
) {
    let count = processes.first().map_or(0, |(_, offsets)| offsets.len());
    if processes.len() < 2 || count == 0 || processes.iter().any(|(_, offsets)| offsets.len() != count) {
        return;
    }
    // By process and measurement: by how much the others say another offset.
    let others = |process: usize, at: usize| -> Vec<f64> {
        let own = processes[process].1[at];
        let peers = processes.iter().cycle().skip(process + 1).take(PEERS.min(processes.len() - 1));
        peers.map(|(_, offsets)| difference(value(offsets, own.time, None), own.offset)).collect()
    };
    let all: Vec<Vec<Vec<f64>>> =
        (0..processes.len()).map(|process| (0..count).map(|at| others(process, at)).collect()).collect();
    let middle: Vec<Vec<f64>> =
        all.iter().map(|of| of.iter().map(|others| median(others.iter().copied())).collect()).collect();
    let typical = median(middle.iter().flatten().map(|difference| difference.abs()));
    let far = least.max(FAR * typical);
    let mut wrong: Vec<(usize, usize)> = Vec::new();
    for (process, of) in all.iter().enumerate() {
        for (at, others) in of.iter().enumerate() {
            let differs = middle[process][at].abs() > far;
            let elsewhere = (0..count).filter(|&other| other != at);
            let (agrees, times) = elsewhere.fold((0, 0), |(agrees, times), other| {
                (agrees + usize::from(middle[process][other].abs() <= far), times + 1)
            });
            let near = others.iter().filter(|other| (*other - middle[process][at]).abs() <= far).count();
            let told = match others.len() {
                1 => count >= OFTEN && agrees == times && is_the_wrong_one(processes, process, at),
                2 => near == 2 && 2 * agrees >= times && agrees > 0,
                several => 2 * near > several && 2 * agrees >= times,
            };
            if differs && told {
                wrong.push((process, at));
            }
        }
    }
    for (process, at) in wrong {
        let (timeline, offsets) = &mut processes[process];
        let excess = -(middle[process][at].round() as i64);
        outlying.push(OutlyingOffset { timeline: *timeline, time: offsets[at].time, excess });
        offsets[at].offset = offsets[at].offset.saturating_sub(excess);
    }
}

/// Whether of two processes this one is farther from its other measurements.
fn is_the_wrong_one(processes: &[(TimelineNumber, Vec<ClockOffset>)], process: usize, at: usize) -> bool {
    let own = |process: usize| excess(&processes[process].1, at).abs();
    processes.len() == 2 && own(process) > TELLING * own(1 - process)
}

/// Leaves out offsets of one clock that those before and after contradict.
fn compare_times(
    timeline: TimelineNumber,
    offsets: &mut Vec<ClockOffset>,
    (least, sought): (f64, Sought),
    outlying: &mut Vec<OutlyingOffset>,
) {
    // One in five at most.
    for _ in 0..(offsets.len() / OFTEN).min(MOST) {
        let excesses: Vec<f64> = (0..offsets.len()).map(|at| excess(offsets, at)).collect();
        let mut suspects: Vec<usize> = (0..offsets.len()).collect();
        suspects.sort_by(|&one, &other| excesses[other].abs().total_cmp(&excesses[one].abs()));
        // Beside a wrong one its neighbours are far off as well, and the first and the last one may be farther.
        suspects.truncate(SUSPECTS);
        let without = |at: usize| {
            let mut rest = offsets.clone();
            rest.remove(at);
            let others: Vec<f64> = (0..rest.len()).map(|at| excess(&rest, at).abs()).collect();
            let (typical, worst) = (median(others.iter().copied()), others.iter().copied().fold(0.0, f64::max));
            (at, rest, typical, worst)
        };
        let best = suspects.into_iter().map(without).min_by(|one, other| one.3.total_cmp(&other.3));
        let Some((at, rest, typical, worst)) = best else { return };
        let one = offsets[at];
        let own = excesses[at].abs();
        let turns =
            |next: usize| sought == Sought::AlsoEnds && own > TURN * offsets[next].time.abs_diff(one.time) as f64;
        let turns = match at {
            _ if offsets.len() < OFTEN => false,
            0 => turns(1),
            at if at + 1 == offsets.len() => turns(at - 1),
            _ => true,
        };
        if own <= least.max(FAR * typical).max(FARTHER * worst) || !turns {
            return;
        }
        outlying.push(OutlyingOffset { timeline, time: one.time, excess: excesses[at].round() as i64 });
        *offsets = rest;
    }
}

/// By how much an offset is larger than the others say.
fn excess(offsets: &[ClockOffset], at: usize) -> f64 {
    -difference(value(offsets, offsets[at].time, Some(at)), offsets[at].offset)
}

/// A value, as a whole number and the rest, that some measurements, but for one of them, give for a time: by the line through the two next to it.
fn value(offsets: &[ClockOffset], time: u64, except: Option<usize>) -> (i64, f64) {
    let used = offsets.len() - usize::from(except.is_some());
    let at = |k: usize| &offsets[k + usize::from(except.is_some_and(|except| k >= except))];
    if used < 2 {
        return (if used == 1 { at(0).offset } else { 0 }, 0.0);
    }
    // The line through the last one before it and the next one; at the ends through the first or last two.
    let before = offsets.partition_point(|one| one.time < time);
    let next = (before - usize::from(except.is_some_and(|except| except < before))).clamp(1, used - 1);
    let (before, after) = (at(next - 1), at(next));
    let length = after.time.abs_diff(before.time) as f64;
    let rise = after.offset.saturating_sub(before.offset) as f64;
    let since = time.wrapping_sub(before.time) as i64 as f64;
    (before.offset, if length > 0.0 { rise * since / length } else { 0.0 })
}

/// A value minus an offset.
fn difference((whole, rest): (i64, f64), offset: i64) -> f64 {
    whole.saturating_sub(offset) as f64 + rest
}

/// The median; 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count => (values[(count - 1) / 2] + values[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(values: &[i64]) -> Vec<ClockOffset> {
        let one =
            |(at, &offset): (u64, &i64)| ClockOffset { time: at * 1_000_000_000, offset, standard_deviation: 0.0 };
        (0..).zip(values).map(one).collect()
    }

    fn of(processes: &[(u32, &[i64])]) -> CleanedOffsets {
        let nodes: Vec<u32> = processes.iter().map(|(node, _)| *node).collect();
        let record = |(timeline, (_, values)): (u32, &(u32, &[i64]))| RecordedOffsets {
            timeline: TimelineNumber(timeline),
            offsets: offsets(values),
        };
        let recorded: Vec<RecordedOffsets> = (0..).zip(processes).map(record).collect();
        without_outlying(&recorded, &nodes, 1_000_000_000, Sought::AlsoEnds)
    }

    fn excesses(processes: &[(u32, &[i64])]) -> Vec<(u32, u64, i64)> {
        let found = of(processes).outlying.into_iter();
        found.map(|one| (one.timeline.0, one.time / 1_000_000_000, one.excess)).collect()
    }

    #[test]
    fn processes_of_a_node_contradict_one_of_them() {
        let far = -9_782_000;
        let node: [(u32, &[i64]); 5] =
            [(0, &[0, 0]), (1, &[500 + far, 46_000]), (1, &[500, 47_000]), (1, &[3000, 49_500]), (1, &[4000, 48_000])];
        // By the median of what the others say.
        assert_eq!(excesses(&node), [(1, 0, far + 500 - 3000)]);
        let instead = &of(&node).instead;
        assert_eq!(instead[&TimelineNumber(1)].iter().map(|one| one.offset).collect::<Vec<_>>(), [3000, 46_000]);
        // A clock of its own is far away again and again.
        let own: [(u32, &[i64]); 4] = [(1, &[far, far]), (1, &[0, 100]), (1, &[30, 90]), (1, &[90, 0])];
        assert_eq!(of(&own), CleanedOffsets::default());
        // Each has its own.
        let all: [(u32, &[i64]); 4] = [(1, &[far]), (1, &[7_000_000]), (1, &[30]), (1, &[1_000_000])];
        assert_eq!(of(&all), CleanedOffsets::default());
        // Of two with two measurements nobody knows.
        assert_eq!(of(&[(1, &[far, 5]), (1, &[100, 90])]), CleanedOffsets::default());
    }

    #[test]
    fn of_two_processes_the_one_that_contradicts_itself_is_wrong() {
        let right: &[i64] = &[1893, 209_130, 393_180, 556_295, 806_988, 976_316];
        let wrong: &[i64] = &[-128_977, 209_508, 393_257, 557_060, 806_905, 976_719];
        assert_eq!(excesses(&[(0, &[0; 6]), (3, wrong), (3, right)]), [(1, 0, -128_977 - 1893)]);
    }

    #[test]
    fn a_measurement_far_from_those_before_and_after_is_left_out() {
        let mut values: Vec<i64> = (0..12).map(|k| 1000 * k + k * k % 3).collect();
        assert_eq!(excesses(&[(0, &[0; 12]), (1, &values)]), []);
        values[5] += 300_000;
        let found = of(&[(0, &[0; 12]), (1, &values)]);
        assert_eq!(found.outlying.len(), 1);
        assert!((found.outlying[0].excess - 300_000).abs() < 5 && found.outlying[0].time == 5_000_000_000);
        assert_eq!(found.instead[&TimelineNumber(1)].len(), 11);
        // The ones beside the first and the last one pull these even farther away.
        for at in [1, 2, 9, 10] {
            let mut values: Vec<i64> = (0..12).map(|k| 1000 * k + k * k % 3).collect();
            values[at] += 300_000;
            assert_eq!(of(&[(0, &[0; 12]), (1, &values)]).outlying[0].time, at as u64 * 1_000_000_000);
        }
        // Too few to tell.
        assert_eq!(excesses(&[(0, &[0; 3]), (1, &[0, 300_000, 20])]), []);
        // The first one, if no clock turns so sharply.
        values[5] -= 300_000;
        values[0] -= 300_000;
        assert_eq!(excesses(&[(0, &[0; 12]), (1, &values)]).len(), 1);
        let record = RecordedOffsets { timeline: TimelineNumber(0), offsets: offsets(&values) };
        assert_eq!(without_outlying(&[record], &[0], 1_000_000_000, Sought::Certain), CleanedOffsets::default());
        values[0] += 290_000;
        assert_eq!(excesses(&[(0, &[0; 12]), (1, &values)]), []);
    }

    #[test]
    fn measurements_by_which_time_runs_backwards_are_left_out() {
        const S: i64 = 1_000_000_000;
        let kept = |values: &[i64]| {
            without_impossible(&offsets(values)).map(|kept| kept.iter().map(|one| one.offset).collect::<Vec<_>>())
        };
        assert_eq!(kept(&[]), None);
        assert_eq!(kept(&[5, -S + 6, -2 * S + 7]), None);
        // The second one is late, or early.
        assert_eq!(kept(&[100, 3 * S, 300, 400]).unwrap(), [100, 300, 400]);
        assert_eq!(kept(&[100, -3 * S, 300, 400]).unwrap(), [100, 300, 400]);
        // Not one that the clock would have to run ten times as fast for.
        assert_eq!(kept(&[9 * S, 100, 200, 8 * S]).unwrap(), [100, 200, 8 * S]);
        assert_eq!(kept(&[100, 5 * S, 3 * S]).unwrap(), [100, 3 * S]);
        // Of two nobody knows, nor of four two by two.
        assert_eq!(kept(&[100, -S]).unwrap(), [0; 0]);
        assert_eq!(kept(&[9 * S, 9 * S, 0, 0]).unwrap(), [0; 0]);
        assert_eq!(kept(&[i64::MAX, 0, i64::MIN]).unwrap(), [0; 0]);
        // Records that were written in another order are no measurements of one clock.
        let mut twice = offsets(&[0, 0, 0]);
        twice[2].time = 0;
        assert_eq!(without_impossible(&twice), None);
    }

    #[test]
    fn clocks_that_jump_or_drift_otherwise_are_believed() {
        let jumps: Vec<i64> = (0..20).map(|k| 100 * k + if k > 8 { 5_000_000 } else { k % 3 }).collect();
        let turns: Vec<i64> = (0..20).map(|k| if k > 8 { 100_000 * (k - 8) } else { k % 3 }).collect();
        let both = [(0, &[0i64; 20][..]), (1, &jumps), (2, &turns)];
        assert_eq!(of(&both), CleanedOffsets::default());
    }

    #[test]
    fn many_measurements_and_processes_take_no_time() {
        // An hour with ten per second; a thousand processes on one node.
        let values: Vec<i64> =
            (0..36_000).map(|k| 100 * k + if k % 7 == 3 { 500_000 * (k % 11) } else { k % 3 }).collect();
        assert!(of(&[(0, &values)]).outlying.len() <= MOST);
        let (right, wrong): (&[i64], &[i64]) = (&[1000, 2000, 1500], &[1000, 9_002_000, 1500]);
        let node: Vec<(u32, &[i64])> =
            (0..1000).map(|process| (0, if process == 700 { wrong } else { right })).collect();
        assert_eq!(excesses(&node), [(700, 1, 9_000_000)]);
    }

    #[test]
    fn strange_measurements_do_no_harm() {
        let same_time = |offset: i64| ClockOffset { time: 7, offset, standard_deviation: f64::NAN };
        let record = |timeline, offsets| RecordedOffsets { timeline: TimelineNumber(timeline), offsets };
        let strange = [
            record(0, vec![same_time(i64::MIN), same_time(i64::MAX), same_time(0)]),
            record(1, vec![same_time(5); 9]),
            record(2, Vec::new()),
            record(9, vec![same_time(5)]),
        ];
        let _ = without_outlying(&strange, &[0, 0, 0], 1, Sought::AlsoEnds);
        let _ = without_outlying(&strange, &[0, 1, 2], 1, Sought::AlsoEnds);
        let _ = without_outlying(&[], &[], 0, Sought::Certain);
    }
}
