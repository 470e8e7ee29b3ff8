//! The motion that all corrected clocks share, over the analysis ranks.
//!
//! At each end of a window it is the mean, over the timelines that constraints tie to each other, of how far the corrected moment is ahead of
//! what the timeline's own clock shows then. Sums of integers and floors: the same on any number of ranks.

use crate::comm::{AnalysisRank, ReduceOp, Transport, all_gather_values, exchange_values};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::sync::{SyncKind, SyncTimeline};
use crate::matching::visited_times::{TimelineTimes, VisitedTimes};
use crate::replay::components::components;
use crate::replay::program::Program;
use clc_trace::workers::Workers;
use clc_trace::{CommonTime, Result, Ticks};
use controlled_logical_clock::Centre;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most ends of windows, of all components together. Chosen by hand: memory and time grow with them; with fewer, the map of time that timelines share
/// is coarser.
const MOST_ENDS: usize = 1 << 16;

/// What the correction of a trace consists of beside its replays.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CommonCorrection {
    /// The most that the common motion moved any moment.
    pub largest: Ticks,
    /// Its steepest change, in ticks per tick.
    pub slope: f64,
    /// The most that an event was moved at last, to restore latencies and distances.
    pub finish: Ticks,
    /// The most that any event that takes part in communication is moved before that, but for a shift of the whole trace.
    pub displacement: Ticks,
}

/// The sums of `values` over all ranks. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn sum(transport: &mut dyn Transport, values: &[i128]) -> Result<Vec<i128>> {
    // Two words each, so that no sum of 2^31 of them overflows.
    let mut words: Vec<i64> =
        values.iter().flat_map(|value| [(value >> 32) as i64, (value & 0xffff_ffff) as i64]).collect();
    transport.all_reduce(ReduceOp::Sum, &mut words)?;
    Ok(words.chunks_exact(2).map(|pair| (i128::from(pair[0]) << 32) + i128::from(pair[1])).collect())
}

/// The common time of every hosted timeline; none for those that nothing ties to others. `times` are the corrected times of the visited
/// events, windows are at least as wide as `least`. Timelines are shared out among `workers`. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(crate) fn common_times(
    transport: &mut dyn Transport,
    workers: Workers,
    program: &Program,
    times: &[VisitedTimes<'_>],
    least: Ticks,
    centre: Centre,
) -> Result<Vec<Option<Arc<CommonTime>>>> {
    let roots = components(transport, program)?;
    let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
    roots.iter().for_each(|&root| *sizes.entry(root).or_default() += 1);
    sizes.retain(|_, size| *size > 1);
    let number: BTreeMap<u32, usize> = sizes.keys().zip(0..).map(|(&root, number)| (root, number)).collect();
    let sizes: Vec<u32> = sizes.into_values().collect();
    let of_timeline = |local: usize| -> Option<usize> {
        let root = roots.get(program.number(LocalTimeline::at(local)).place())?;
        number.get(root).copied()
    };

    let mut span = [i64::MAX; 3];
    let ends = workers.map(times.len(), |local| {
        let mut events = synchronising(&program.timelines[local]);
        let first = events.next()?;
        let (last, more) = events.fold((first, 0), |(_, count), event| (event, count + 1));
        Some((times[local].at(first as u32), times[local].at(last as u32), more + 1))
    });
    for (first, last, count) in ends.into_iter().flatten() {
        // Of all three the largest, negated.
        span = [span[0].min(first), span[1].min(-last), span[2].min(-count)];
    }
    transport.all_reduce(ReduceOp::Min, &mut span)?;
    if sizes.is_empty() || span[0] == i64::MAX {
        return Ok(vec![None; program.timelines.len()]);
    }
    let (first, last, events) = (span[0], -span[1], -span[2]);
    let most = (MOST_ENDS / sizes.len()).clamp(2, events.max(2) as usize) as i64;
    let length = (i128::from(last) - i128::from(first)).max(1);
    let width = (length / i128::from(most) + 1).max(i128::from(least.0)).max(2) as u64;
    // Times are below 2^62.
    let bits = width.next_power_of_two().trailing_zeros().min(61);
    let ends = (length >> bits) as usize + 2;

    let grid = WindowEnds { first, bits, ends };
    let advances = match centre {
        Centre::Mean => {
            let parts = workers.map(workers.threads(), |share| {
                let mut sums = vec![0_i128; sizes.len() * ends];
                for local in (share..times.len()).step_by(workers.threads()) {
                    let Some(component) = of_timeline(local) else { continue };
                    let sums = &mut sums[component * ends..][..ends];
                    grid.advances(&program.timelines[local], times[local], |end, advance| {
                        sums[end] += i128::from(advance);
                    });
                }
                sums
            });
            let mut parts = parts.into_iter();
            let mut sums = parts.next().unwrap_or_default();
            parts.for_each(|part| sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
            let sums = sum(transport, &sums)?;
            let of_size = |(sums, &size): (&[i128], &u32)| -> Vec<i64> {
                sums.iter().map(|sum| sum.div_euclid(i128::from(size)) as i64).collect()
            };
            sums.chunks_exact(ends).zip(&sizes).map(of_size).collect()
        }
        Centre::Median => medians(transport, program, times, &grid, sizes.len(), of_timeline)?,
    };
    let common: Vec<Arc<CommonTime>> = advances
        .into_iter()
        .map(|advances: Vec<i64>| Arc::new(CommonTime::new(Ticks(first), bits, advances)))
        .collect();
    Ok((0..program.timelines.len())
        .map(|local| of_timeline(local).map(|component| common[component].clone()))
        .collect())
}

/// The part of a `distance` that belongs to a part `along` of its `span`.
#[inline]
fn part_of(distance: i64, along: i64, span: i64) -> i64 {
    match distance.checked_mul(along) {
        // Nearly always, and faster.
        Some(product) => product / span,
        None => (i128::from(distance) * i128::from(along) / i128::from(span)) as i64,
    }
}

/// Ends of windows.
struct WindowEnds {
    first: i64,
    bits: u32,
    ends: usize,
}

impl WindowEnds {
    /// How far a timeline's corrected time is ahead of its clock at each end of a window: between the events that synchronise, its clock goes
    /// evenly, before the first and after the last the advance is constant.
    fn advances(&self, timeline: &SyncTimeline, times: VisitedTimes<'_>, mut take: impl FnMut(usize, i64)) {
        let (clock, times) = (|event: usize| timeline.time(event), |event: usize| times.at(event as u32));
        let mut events = synchronising(timeline).peekable();
        let mut before: Option<usize> = None;
        for end in 0..self.ends {
            let moment = self.first + ((end as i64) << self.bits);
            while let Some(event) = events.next_if(|&event| times(event) <= moment) {
                before = Some(event);
            }
            let advance = match (before, events.peek()) {
                (Some(a), Some(&b)) => {
                    let (span, along) = (times(b) - times(a), moment - times(a));
                    moment - clock(a) - part_of(clock(b) - clock(a), along, span)
                }
                (Some(a), None) => times(a) - clock(a),
                (None, Some(&b)) => times(b) - clock(b),
                (None, None) => 0,
            };
            take(end, advance);
        }
    }
}

/// The visited events that take part in communication: which others are visited depends on δ.
pub(super) fn synchronising(timeline: &SyncTimeline) -> impl Iterator<Item = usize> + '_ {
    (0..timeline.len()).filter(|&event| timeline.kind(event) != SyncKind::Local)
}

/// The median of the advances of each component at each end of a window: of two in the middle, the floor of their mean. The ends are shared
/// out among the ranks.
fn medians(
    transport: &mut dyn Transport,
    program: &Program,
    times: &[VisitedTimes<'_>],
    grid: &WindowEnds,
    components: usize,
    of_timeline: impl Fn(usize) -> Option<usize>,
) -> Result<Vec<Vec<i64>>> {
    let ranks = transport.size();
    // Places and advances.
    let mut outgoing: BTreeMap<AnalysisRank, Vec<(u64, i64)>> = BTreeMap::new();
    for (local, (timeline, times)) in program.timelines.iter().zip(times).enumerate() {
        let Some(component) = of_timeline(local) else { continue };
        grid.advances(timeline, *times, |end, advance| {
            let place = (component * grid.ends + end) as u64;
            outgoing.entry(AnalysisRank::at(end % ranks)).or_default().push((place, advance));
        });
    }
    let mut lists: BTreeMap<u64, Vec<i64>> = BTreeMap::new();
    for (place, advance) in exchange_values(transport, outgoing)?.into_iter().flat_map(|(_, advances)| advances) {
        lists.entry(place).or_default().push(advance);
    }
    let own: Vec<(u64, i64)> = lists.into_iter().map(|(place, list)| (place, median(list))).collect();
    let mut advances = vec![vec![0; grid.ends]; components];
    for (place, advance) in all_gather_values(transport, &own)?.into_iter().flatten() {
        advances[place as usize / grid.ends][place as usize % grid.ends] = advance;
    }
    Ok(advances)
}

fn median(mut list: Vec<i64>) -> i64 {
    list.sort_unstable();
    let half = list.len() / 2;
    if list.len() % 2 == 1 {
        return list[half];
    }
    // Never empty.
    let (a, b) = (list.get(half.wrapping_sub(1)).copied().unwrap_or(0), list.get(half).copied().unwrap_or(0));
    (a & b) + ((a ^ b) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_exact_however_large_they_are(
            (distance, along, span) in (0u32..63, 0u32..63, 0u32..63).prop_flat_map(|(a, b, c)| (0..=(1i64 << a) - 1, 0..=(1i64 << b) - 1, 1..=1i64 << c)),
        ) {
            let along = along.min(span);
            let expected = i128::from(distance) * i128::from(along) / i128::from(span);
            prop_assert_eq!(i128::from(part_of(distance, along, span)), expected);
        }
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median(vec![9, 1, 4]), 4);
        assert_eq!(median(vec![9, 1, 4, 7]), 5);
        assert_eq!(median(vec![-4, 1]), -2);
    }
}
