//! Messages whose receivers come late: between busy processes they lie there until somebody asks for them, for as long as that takes, time and again for about as long, and longer
//! in one direction than in the other. Then they are no measurements: a clock that bends explains them as well. What tells are the messages that a receiver waited for.

use super::bounds::{Bound, DirectedBounds};
use super::windows::BoundTable;
use std::collections::{BTreeMap, BTreeSet};

/// Windows that tell how long round trips take between two clocks, at least, and from what length on receivers may be late, in seconds: messages that are waited for are quicker on
/// most networks.
const OFTEN: usize = 20;
const LONG: f64 = 40e-6;
/// Quick is what a twentieth of the round trips stay below. Chosen by hand: nearer to the minimum, single messages decide; nearer to the median,
/// delays do.
const QUICK_SHARE: usize = 20;
/// Quick round trips of messages that were waited for take at most so many times as long as those of all messages; if more, something else kept them waiting. In twelve recordings with nine clocks each,
/// 1 and 2 were worse.
const AS_QUICK: f64 = 4.0;
/// Part of the windows in which messages were waited for, from which on the others are no matter. There, 0.6 was worse, and 0.66 and 0.8 as good.
const MOST: f64 = 0.75;
/// Receivers are late if most round trips take more than so many times as long as quick ones of awaited messages. Of 108 traces the mean error was 1.16 with this rule, 1.24
/// without (docs/history.md, "Late receivers").
const LATE: f64 = 3.0;
/// For how many windows round trips are alike where receivers are late for reasons that last. Those that are late by chance are as often late in either direction, and tell as much as
/// others: their round trips were alike for 1 to 1.6 windows in simulated traces; in recorded ones with many late messages for 2 to 40.
const LASTING: f64 = 2.0;
/// Smallest correlation that counts for that: what chance makes of a hundred windows.
const ALIKE: f64 = 0.1;

/// Directions of pairs of clocks between which there and back takes long in most windows, with `resolution` ticks per second: it is worth asking who waited.
pub(super) fn late_directions(table: &BoundTable, resolution: u64) -> BTreeSet<(u32, u32)> {
    let long = (LONG * resolution as f64) as i64;
    let (mut late, mut trips) = (BTreeSet::new(), Vec::new());
    for (&(a, b), there) in table.pairs.iter().filter(|((a, b), _)| a < b) {
        let Some(back) = table.pairs.get(&(b, a)) else { continue };
        if there.windows().len().min(back.windows().len()) < OFTEN {
            continue;
        }
        let is_message = |bound: &Bound| bound.kind.is_message();
        trips.clear();
        let both = there.beside(back).filter(|(there, back)| is_message(there) && is_message(back));
        trips.extend(both.map(|(there, back)| there.distance.saturating_add(back.distance)));
        let middle = trips.len() / 2;
        if trips.len() >= OFTEN && *trips.select_nth_unstable(middle).1 > long {
            late.extend([(a, b), (b, a)]);
        }
    }
    late
}

/// Who waited, by direction of the pairs of clocks between which other messages are no measurements.
#[derive(Debug, Default)]
pub(super) struct AwaitedMessages<'a> {
    directions: BTreeMap<(u32, u32), &'a DirectedBounds>,
}

impl<'a> AwaitedMessages<'a> {
    /// Of a table whose distances were measured with clocks that drift by little from window to window.
    pub(super) fn of(table: &'a BoundTable) -> Self {
        let mut directions = BTreeMap::new();
        for (&(a, b), there) in table.pairs.iter().filter(|((a, b), _)| a < b) {
            let Some(back) = table.pairs.get(&(b, a)) else { continue };
            let (Some(waited), Some(waited_back)) = (table.waits.awaited((a, b)), table.waits.awaited((b, a))) else {
                continue;
            };
            let windows = |there: &DirectedBounds, back: &DirectedBounds| there.windows().len() + back.windows().len();
            let rare = windows(waited, waited_back) as f64 <= MOST * windows(there, back) as f64;
            if !rare {
                continue;
            }
            let (awaited, trips) = (nearest_trips(waited, waited_back), trips(there, back));
            // Where offsets hold the clocks, less is to be won.
            let typical = middle(&trips);
            if table.waits.measured && middle(&awaited) > typical {
                continue;
            }
            let lasting = lasting(&trips) >= LASTING;
            let quick = [quick(awaited), quick(trips), typical];
            if lasting
                && matches!(quick, [Some(waited), Some(all), Some(typical)] if waited <= AS_QUICK * all && waited * LATE < typical)
            {
                directions.extend([((a, b), waited), ((b, a), waited_back)]);
            }
        }
        AwaitedMessages { directions }
    }

    /// Whether a message from one clock to another was waited for in this window, or may be taken to have been.
    pub(super) fn has(&self, pair: (u32, u32), window: u32) -> bool {
        self.directions.get(&pair).is_none_or(|waited| waited.get(window).is_some())
    }
}

/// For how many windows round trips, in the order of time, are alike: the sum of the correlations of their logarithms with those some windows later, up to the first one that is small.
fn lasting(trips: &[i64]) -> f64 {
    let mut logarithms: Vec<f64> = trips.iter().map(|trip| ((*trip).max(1) as f64).ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64;
    logarithms.iter_mut().for_each(|value| *value -= mean);
    let product = |lag: usize| {
        let pairs = logarithms.iter().zip(&logarithms[lag..]);
        pairs.map(|(one, later)| one * later).sum::<f64>() / (logarithms.len() - lag) as f64
    };
    let (mut sum, mut lag, mut step) = (1.0, 1, 1);
    while 2 * lag < logarithms.len() {
        let correlation = product(lag) / product(0);
        if correlation.is_nan() || correlation <= ALIKE {
            break;
        }
        sum += 2.0 * correlation * step as f64;
        // In steps of a quarter.
        step = (lag / 4).max(1);
        lag += step;
    }
    sum
}

/// Round trips of messages in the same window, in ticks.
fn trips(there: &DirectedBounds, back: &DirectedBounds) -> Vec<i64> {
    there.beside(back).map(|(there, back)| there.distance.saturating_add(back.distance)).collect()
}

/// Round trips of messages there and the nearest ones back, in ticks: both are rarely waited for in the same window.
fn nearest_trips(there: &DirectedBounds, back: &DirectedBounds) -> Vec<i64> {
    let back = back.windows();
    let trip = |(window, bound): &(u32, Bound)| {
        let at = back.partition_point(|other| other.0 < *window);
        let around = [at.checked_sub(1), Some(at)].into_iter().flatten().filter_map(|at| back.get(at));
        let nearest = around.min_by_key(|other| other.0.abs_diff(*window))?;
        Some(bound.distance.saturating_add(nearest.1.distance))
    };
    there.windows().iter().filter_map(trip).collect()
}

/// What the quick ones of these stay below; none without any.
fn quick(trips: Vec<i64>) -> Option<f64> {
    at_share(trips, QUICK_SHARE)
}

/// The median of these; none without any.
fn middle(trips: &[i64]) -> Option<f64> {
    at_share(trips.to_vec(), 2)
}

/// What one in `share` stays below. Where clocks jump, trips are nonsense.
fn at_share(mut trips: Vec<i64>, share: usize) -> Option<f64> {
    trips.retain(|trip| *trip > 0);
    let at = trips.len() / share;
    (at < trips.len()).then(|| *trips.select_nth_unstable(at).1 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::BoundKind;
    use crate::waits::Class;

    const MICROSECONDS: i64 = 1000;

    /// Messages between clocks 0 and 1 that take 5 us if they are waited for, which happens in every `waited`th window, and else lie there for 400 us in one direction and 150 us in the other
    /// in the first half of the run, and for 60 and 90 in the second one.
    fn table(waited: u32) -> BoundTable {
        let mut table = BoundTable::default();
        for window in 0..100 {
            let lain = if window < 50 { [400, 150] } else { [60, 90] };
            for (pair, lain) in [(0, 1), (1, 0)].into_iter().zip(lain) {
                let asked = window % waited == 0;
                let distance = if asked { 5 } else { lain } * MICROSECONDS;
                let bound = Bound { distance, at: i64::from(window), kind: BoundKind::MESSAGE };
                table.pairs.entry(pair).or_default().add(window as usize, bound, 1);
                if asked {
                    let class = Class { from: pair.0, to: pair.1, kind: BoundKind::WAITED_OF_TIED };
                    table.waits.add(class, window as usize, bound);
                }
            }
        }
        table
    }

    #[test]
    fn what_lay_there_is_no_measurement_where_little_was_waited_for() {
        let table = table(10);
        assert_eq!(late_directions(&table, 1_000_000_000), [(0, 1), (1, 0)].into());
        let waits = AwaitedMessages::of(&table);
        assert!(waits.has((0, 1), 10) && !waits.has((0, 1), 11) && !waits.has((1, 0), 99));
        // Nothing is known of others.
        assert!(waits.has((0, 2), 11));
    }

    #[test]
    fn all_messages_tell_where_most_were_waited_for_or_none() {
        let waits = |table: &BoundTable| AwaitedMessages::of(table).has((0, 1), 11);
        assert!(waits(&table(1)));
        assert!(waits(&BoundTable { waits: Default::default(), ..table(10) }));
        // Too few.
        assert!(waits(&table(50)));
    }

    #[test]
    fn what_was_waited_for_tells_nothing_if_it_was_kept_waiting() {
        let mut slow = table(10);
        for bounds in slow.waits.classes.values_mut() {
            let kept = |&(window, bound): &(u32, Bound)| (window, Bound { distance: 5000 * MICROSECONDS, ..bound });
            let windows: Vec<(u32, Bound)> = bounds.windows().iter().map(kept).collect();
            *bounds = DirectedBounds::default();
            windows.into_iter().for_each(|(window, bound)| bounds.add(window as usize, bound, 1));
        }
        assert!(AwaitedMessages::of(&slow).has((0, 1), 11));
    }

    #[test]
    fn with_recorded_offsets_what_was_waited_for_has_to_be_quicker_in_the_median() {
        let mut table = table(10);
        table.waits.measured = true;
        assert!(!AwaitedMessages::of(&table).has((0, 1), 11));
        // One in eight of them is as quick as before.
        for bounds in table.waits.classes.values_mut() {
            let windows: Vec<(u32, Bound)> = bounds.windows().to_vec();
            *bounds = DirectedBounds::default();
            for (index, (window, bound)) in windows.into_iter().enumerate() {
                let distance = if index % 8 == 0 { bound.distance } else { 900 * MICROSECONDS };
                bounds.add(window as usize, Bound { distance, ..bound }, 1);
            }
        }
        assert!(AwaitedMessages::of(&table).has((0, 1), 11));
        table.waits.measured = false;
        assert!(!AwaitedMessages::of(&table).has((0, 1), 11));
    }

    #[test]
    fn in_windows_so_long_that_most_have_a_prompt_message_nobody_is_late() {
        let mut prompt = table(10);
        for bounds in prompt.pairs.values_mut() {
            let windows: Vec<(u32, Bound)> = bounds.windows().to_vec();
            *bounds = DirectedBounds::default();
            for (window, bound) in windows {
                bounds.add(window as usize, Bound { distance: bound.distance.min(12 * MICROSECONDS), ..bound }, 1);
            }
        }
        assert!(AwaitedMessages::of(&prompt).has((0, 1), 11));
        assert!(!AwaitedMessages::of(&table(10)).has((0, 1), 11));
    }

    #[test]
    fn what_is_late_by_chance_lasts_for_one_window() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            10_000 + (random >> 44) as i64
        };
        let chance: Vec<i64> = (0..400).map(|_| next()).collect();
        let lasting_for =
            |windows: usize| lasting(&chance.iter().flat_map(|trip| vec![*trip; windows]).collect::<Vec<i64>>());
        assert!(lasting(&chance) < 1.3 && lasting_for(4) > 3.0 && lasting_for(16) > 10.0);
        assert_eq!([lasting(&[]), lasting(&[7])], [1.0; 2]);
    }

    #[test]
    fn quick_networks_are_not_asked() {
        let mut quick = BoundTable::default();
        for window in 0..100 {
            let bound = Bound { distance: 15 * MICROSECONDS, at: window, kind: BoundKind::MESSAGE };
            [(0, 1), (1, 0)]
                .into_iter()
                .for_each(|pair| quick.pairs.entry(pair).or_default().add(window as usize, bound, 1));
        }
        assert!(late_directions(&quick, 1_000_000_000).is_empty());
    }
}
