//! From exchanges of messages between the leaders of the nodes to offsets of their clocks to that of rank 0.

use crate::recording::clocks::ProcessClock;
use crate::recording::clocks::measured::{Batch, Exchange};
use crate::recording::raw::format::measured::KERNEL;
use clc_trace::ClockOffset;
use std::collections::BTreeMap;

/// Of the messages of the kernel in one direction, the fastest one counts that so many others follow closely: within this part of what the fastest ones of both directions took
/// together. Faster ones are exceptions, which long batches find in one direction only. Of 240 measurements between emulated nodes, half of the errors were below 40 ns, 90 % below
/// 195 and 95 % below 430 ns; with three others 35, 180 and 646, with seven 50, 195 and 512; by the very fastest messages 65, 420 and 566 ns.
const ALIKE: usize = 5;
const NEARLY: i64 = 250;
/// Messages of MPI count where they are so many times faster than those of the kernel: the others are made alike in both directions. Four is assumed: what such messages
/// gain by a shorter round trip has to make up for what they may lose by different directions.
const FASTER: i64 = 4;
/// A drift is known from measurements that are so many times as far apart as they may be wrong: closer ones could show one of more than a thousandth, which no
/// clock of a computer has.
const STEEP: i64 = 1_000;
/// No clock of a computer drifts by more than this part: offsets that would show a drift less exactly do not show any.
const DRIFTING: f64 = 1e-4;
/// Measurements in between count if their messages took at most so many times as long as the fastest ones of all: a straight line past the others is better.
const WORSE: i64 = 2;
/// The fastest messages of both directions do not take so many times less than the fastest exchange: it is the drift assumed that is wrong.
const FALSE: i64 = 4;
/// So many times the drift between measurements is made of better ones: first of single exchanges, then of all of each batch.
const REFINED: usize = 2;
/// Measurements by different methods that are less far apart, in nanoseconds, are the same one. Chosen by hand: with less, measurements of one phase
/// are not compared; with more, clocks have drifted apart in between.
const TOGETHER: u64 = 1_000_000_000;

/// The offset of a clock to that of a partner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Relative {
    partner: u32,
    /// By the own clock, in nanoseconds.
    time: i64,
    offset: i64,
    /// How long the fastest messages of both directions took together.
    range: i64,
    method: u64,
    /// Begin and end of the batch, by the own clock.
    during: [i64; 2],
}

impl Relative {
    /// From a batch. The fastest message of each direction counts that is no exception, whichever exchanges they belong to. If both took equally long, the offset is
    /// exact; it is certainly wrong by no more than half of the time that both took together. `slope` is how much the offset changes per nanosecond. None if messages
    /// took no time then: the slope is wrong.
    fn new(batch: &Batch, own: &ProcessClock, partner: &ProcessClock, slope: f64) -> Option<Relative> {
        let shown = shown(batch, own, partner);
        let during = [shown.first()?[0], shown.last()?[3]];
        let time = during[0].midpoint(during[1]);
        let drifted = |at: i64| (slope * (at - time) as f64).round() as i64;
        let mut there: Vec<i64> = shown.iter().map(|[asked, came, ..]| came - asked - drifted(*asked)).collect();
        let mut back: Vec<i64> =
            shown.iter().map(|[.., left, answered]| answered - left + drifted(*answered)).collect();
        let fastest = [there.iter().min()?, back.iter().min()?];
        let together = fastest[0].saturating_add(*fastest[1]);
        let near = if batch.method == KERNEL { together / NEARLY } else { i64::MAX };
        Relative::of(batch, during, time, [ordinary(&mut there, near)?, ordinary(&mut back, near)?])
    }

    /// From the shortest exchange of a batch alone: it is wrong by more, but however the clocks drift while the batch is made, messages take their time.
    fn of_one_exchange(batch: &Batch, own: &ProcessClock, partner: &ProcessClock) -> Option<Relative> {
        let shown = shown(batch, own, partner);
        let during = [shown.first()?[0], shown.last()?[3]];
        let made = shown.iter().filter_map(|[asked, came, left, answered]| {
            Relative::of(batch, during, asked.midpoint(*answered), [came - asked, answered - left])
        });
        made.min_by_key(|relative| relative.range)
    }

    /// From the times that a message there and one back took, by both clocks.
    fn of(batch: &Batch, during: [i64; 2], time: i64, [there, back]: [i64; 2]) -> Option<Relative> {
        let range = Some(there.saturating_add(back)).filter(|&range| range > 0)?;
        let offset = there.saturating_sub(back).div_euclid(2);
        Some(Relative { partner: batch.partner, time, offset, range, method: batch.method, during })
    }

    /// That of a uniform distribution over all that is possible: an upper bound, since nothing is known of the difference between the directions.
    fn variance(&self) -> f64 {
        (self.range as f64 / 2.0).powi(2) / 3.0
    }
}

/// The least number of a list that [`ALIKE`] others follow, the last one no further away than `near`; the very least if there is none.
fn ordinary(list: &mut [i64], near: i64) -> Option<i64> {
    list.sort_unstable();
    let followed = list.windows(ALIKE + 1).find(|few| few[ALIKE].saturating_sub(few[0]) <= near);
    followed.unwrap_or(list).first().copied()
}

/// The exchanges of a batch: when the question left and came, when the answer left and came, by the clocks of both sides.
fn shown(batch: &Batch, own: &ProcessClock, partner: &ProcessClock) -> Vec<[i64; 4]> {
    let (mut own, mut its) = (own.clone(), partner.clone());
    let one = |&Exchange { asked, answered, came, left }: &Exchange| {
        let ((_, asked), (_, came)) = (own.times(asked), its.times(came));
        let ((_, left), (_, answered)) = (its.times(left), own.times(answered));
        [asked, came, left, answered]
    };
    batch.exchanges.iter().map(one).collect()
}

/// What a process has measured, in the order of time. Its clocks and those of its partners come from `clock`.
pub(crate) fn relatives(rank: u32, batches: &[Batch], clock: impl Fn(u32) -> Option<ProcessClock>) -> Vec<Relative> {
    let Some(own) = clock(rank) else { return Vec::new() };
    let made = |one: &dyn Fn(&Batch, &ProcessClock) -> Option<Relative>| {
        let mut list: Vec<Relative> = batches.iter().filter_map(|batch| one(batch, &clock(batch.partner)?)).collect();
        list.sort_by_key(|relative| relative.time);
        certain(chosen(list))
    };
    // However clocks drift while a batch is made, its shortest exchange is right up to its own length. Those show by how much they drift, roughly; and what is made with
    // that shows it exactly.
    let mut list = made(&|batch, partner| Relative::of_one_exchange(batch, &own, partner));
    for _ in 0..REFINED {
        list = made(&|batch, partner| {
            let alone = Relative::of_one_exchange(batch, &own, partner)?;
            let found = Relative::new(batch, &own, partner, slope_at(&alone, &list));
            found.filter(|found| found.range.saturating_mul(FALSE) >= alone.range).or(Some(alone))
        });
    }
    list
}

/// By how much the offset changes per nanosecond at a measurement: what it does between the two neighbours of it, or between it and the only one.
fn slope_at(of: &Relative, list: &[Relative]) -> f64 {
    let list = || list.iter().filter(|other| other.partner == of.partner);
    let before = list().rev().find(|other| other.during[1] < of.during[0]);
    let after = list().find(|other| other.during[0] > of.during[1]);
    let (Some(one), Some(other)) = (before.or(Some(of)), after.or(Some(of))) else { return 0.0 };
    let passed = other.time - one.time;
    // Closer together, or worse, it would be the error of the measurements.
    let error = one.range.max(other.range);
    if passed < error.saturating_mul(STEEP) { 0.0 } else { (other.offset - one.offset) as f64 / passed as f64 }
}

/// Without measurements in between that a busy machine has spoilt, unless even so they show that the clock does not go straight past them.
fn certain(list: Vec<Relative>) -> Vec<Relative> {
    let best = list.iter().map(|relative| relative.range).min().unwrap_or(0);
    let ends = list.first().zip(list.last()).map(|(first, last)| [first.time, last.time]);
    let (mut certain, mut spoilt): (Vec<Relative>, Vec<Relative>) = list.into_iter().partition(|relative| {
        ends.is_some_and(|ends| ends.contains(&relative.time)) || relative.range <= WORSE.saturating_mul(best)
    });
    spoilt.sort_by_key(|relative| relative.range);
    for relative in spoilt {
        if is_off_the_line(&relative, &certain) {
            let at = certain.partition_point(|other| other.time < relative.time);
            certain.insert(at, relative);
        }
    }
    certain
}

/// Whether a measurement differs by more than both can be wrong from the straight line between its neighbours.
fn is_off_the_line(of: &Relative, list: &[Relative]) -> bool {
    let list = || list.iter().filter(|other| other.partner == of.partner);
    let (before, after) = (list().rfind(|other| other.time < of.time), list().find(|other| other.time > of.time));
    let (Some(before), Some(after)) = (before, after) else { return false };
    let part = (of.time - before.time) as f64 / (after.time - before.time).max(1) as f64;
    let between = |of: &dyn Fn(&Relative) -> i64| of(before) as f64 * (1.0 - part) + of(after) as f64 * part;
    let off = (of.offset as f64 - between(&|other| other.offset)).abs();
    2.0 * off > of.range as f64 + between(&|other| other.range)
}

/// Of measurements at the same time by different methods, the better one. Two are at the same time if each is the nearest one to the other: at the end of a short run
/// only one method may have worked, and what the other one has measured at its beginning is no substitute for that.
fn chosen(list: Vec<Relative>) -> Vec<Relative> {
    use crate::recording::raw::format::measured::MPI;
    let nearest = |of: &Relative, method: u64| {
        let near = |other: &&Relative| other.method == method && other.time.abs_diff(of.time) < TOGETHER;
        list.iter().filter(near).min_by_key(|other| other.time.abs_diff(of.time))
    };
    // In a short run, the only measurement by one method is near to all by the other one; it is an alternative to one of them.
    let rival = |of: &Relative, method: u64| {
        let rival = nearest(of, method)?;
        nearest(rival, of.method).filter(|back| back.time == of.time).map(|_| rival.range)
    };
    let better = |relative: &&Relative| match relative.method {
        MPI => rival(relative, KERNEL).is_none_or(|range| relative.range.saturating_mul(FASTER) < range),
        _ => rival(relative, MPI).is_none_or(|range| range.saturating_mul(FASTER) >= relative.range),
    };
    list.iter().filter(better).copied().collect()
}

/// Offsets to the clock of rank 0 of all that have measured, from what each has measured with its partner. `relatives` of rank 0, which close a ring, show by how
/// much the others contradict each other, and are distributed over them.
pub(crate) fn composed(relatives: &BTreeMap<u32, Vec<Relative>>) -> BTreeMap<u32, Vec<ClockOffset>> {
    let mut known: BTreeMap<u32, Vec<ClockOffset>> = BTreeMap::new();
    let compose = |list: &[Relative], known: &BTreeMap<u32, Vec<ClockOffset>>| -> Vec<ClockOffset> {
        let mut offsets: Vec<ClockOffset> = list
            .iter()
            .filter_map(|relative| {
                let there = relative.time + relative.offset;
                let (more, variance) = match relative.partner {
                    0 => (0, 0.0),
                    partner => at(there, known.get(&partner)?)?,
                };
                Some(ClockOffset {
                    time: u64::try_from(relative.time).ok()?,
                    offset: relative.offset + more,
                    standard_deviation: (relative.variance() + variance).sqrt(),
                })
            })
            .collect();
        offsets.dedup_by(|later, earlier| later.time <= earlier.time);
        level(&mut offsets);
        offsets
    };
    // Partners have smaller ranks.
    for (&rank, list) in relatives.iter().filter(|(rank, _)| **rank > 0) {
        let offsets = compose(list, &known);
        known.insert(rank, offsets);
    }
    let closing = relatives.get(&0).map(|list| compose(list, &known)).unwrap_or_default();
    if !closing.is_empty() {
        known.values_mut().flatten().for_each(|offset| close(offset, &closing));
    }
    known
}

/// Offsets of a run so short that their differences are errors of the measurements become their mean. Else all times before the first one and after the last one, and
/// those of clocks that were measured by this one, would lie on a line that is steeper than any clock's.
fn level(offsets: &mut [ClockOffset]) {
    let [first, .., last] = &*offsets else { return };
    let passed = last.time.abs_diff(first.time) as f64;
    let vague = first.standard_deviation.hypot(last.standard_deviation) > DRIFTING * passed;
    // By half of the range, each of them may be wrong.
    let possible = 3.0_f64.sqrt() * (first.standard_deviation + last.standard_deviation);
    if !vague || (last.offset.abs_diff(first.offset) as f64) > possible {
        return;
    }
    let weight = |offset: &ClockOffset| 1.0 / offset.standard_deviation.powi(2).max(f64::MIN_POSITIVE);
    let weights: f64 = offsets.iter().map(weight).sum();
    let start = first.offset;
    let moved: f64 = offsets.iter().map(|offset| weight(offset) * (offset.offset - start) as f64).sum();
    let mean = start.saturating_add((moved / weights).round() as i64);
    // The mean is wrong by no more than its parts are.
    let least = offsets.iter().map(|offset| weight(offset) * offset.standard_deviation).sum::<f64>() / weights;
    for offset in offsets {
        offset.offset = mean;
        offset.standard_deviation = offset.standard_deviation.max(least);
    }
}

/// Takes its share of what a ring is off: as large as its part of the variance.
fn close(offset: &mut ClockOffset, closing: &[ClockOffset]) {
    let Some(closure) = closing.iter().min_by_key(|closure| closure.time.abs_diff(offset.time)) else { return };
    let (own, all) = (offset.standard_deviation.powi(2), closure.standard_deviation.powi(2));
    if all > own {
        offset.offset -= (closure.offset as f64 * own / all).round() as i64;
        // If the measurements contradict each other by more than they may, they are that much worse.
        let worse = (closure.offset as f64).powi(2) / all;
        offset.standard_deviation = (own * (all - own) / all * worse.max(1.0)).sqrt();
    }
}

/// Offset and variance at a time: between measured ones along a straight line, outside of them along that of the next two.
fn at(time: i64, offsets: &[ClockOffset]) -> Option<(i64, f64)> {
    let index = offsets.partition_point(|offset| offset.time as i64 <= time);
    let nearest = [index.checked_sub(1), Some(index)].into_iter().flatten().filter_map(|index| offsets.get(index));
    let nearest = nearest.min_by_key(|offset| offset.time.abs_diff(time.max(0) as u64))?;
    Some((globally(time, offsets) - time, nearest.standard_deviation.powi(2)))
}

/// A time by the clock of rank 0: between measured offsets along a straight line, outside of them along that of the next two.
pub(crate) fn globally(time: i64, offsets: &[ClockOffset]) -> i64 {
    let index = offsets.partition_point(|offset| offset.time as i64 <= time);
    let start = index.saturating_sub(1).min(offsets.len().saturating_sub(2));
    match (offsets.get(start), offsets.get(start + 1)) {
        (Some(a), Some(b)) if b.time > a.time => {
            let passed = i128::from(time) - i128::from(a.time);
            let change = i128::from(b.offset - a.offset) * passed / i128::from(b.time - a.time);
            time.saturating_add(a.offset).saturating_add(i64::try_from(change).unwrap_or(0))
        }
        (Some(a), _) => time.saturating_add(a.offset),
        _ => time,
    }
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
