//! Steps of threads at the same time.
//!
//! Where timers are coarse, steps that follow each other have the same time. Events of one timeline and time come in the order of its locations, which need not be
//! the order of the steps: a worker may arrive at a barrier that the main thread, whose location comes first, has left by then. As long as both are moved by the same amount, that does not
//! matter. But a correction that changes between the two would part them in the wrong direction. So if steps of one time demand another order than that of locations, the later ones come in a later
//! *layer*, with all events of their location that follow at that time: events of one time come in the order of their layers, those of a layer in that of their locations
//! ([`clc_trace::Position`]).

use crate::matching::channels::Trust;
use crate::matching::within::steps::{OrderedSteps, StepOrders, Steps};
use clc_trace::{EventNumber, Position};
use std::collections::BTreeMap;

/// From an event on, those of its location that have the same time are in a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tie {
    /// Of the event.
    pub location: u32,
    /// The event.
    pub number: EventNumber,
    /// Which step it is.
    pub step: usize,
    /// Its time.
    pub time: i64,
    /// Its recorded time.
    pub raw: i64,
    /// The layer; 0 is that of all events before.
    pub layer: u32,
}

/// The layer of an event of a location: `ties` are sorted.
pub fn layer_of(ties: &[Tie], location: u32, number: EventNumber, time: i64) -> u32 {
    Position::layer_among(
        ties,
        |tie| (tie.location, tie.number) <= (location, number),
        |tie| tie.location == location && tie.time == time,
        |tie| tie.layer,
    )
}

/// What orders steps of one time.
#[derive(Debug, Clone, Copy)]
enum Order<'a> {
    Pair(OrderedSteps),
    Barrier(&'a [(usize, usize)]),
}

/// The ties of the locations that share the timeline of their process, those of `part_of` 0: sorted by location and event.
pub(super) fn find(steps: &Steps, found: &StepOrders<'_>, part_of: &[u32]) -> Vec<Tie> {
    let is_shared = |step: usize| part_of[steps.location(step) as usize] == 0;
    let mut orders: Vec<(i64, Order<'_>)> = Vec::new();
    // Mostly times differ, so that is asked first.
    let pairs = found.pairs.iter().filter(|pair| steps.time(pair.from) == steps.time(pair.to));
    let shared = pairs.filter(|pair| is_shared(pair.from) && is_shared(pair.to));
    orders.extend(shared.map(|pair| (steps.time(pair.from), Order::Pair(*pair))));
    for barrier in found.barriers.iter() {
        let shared = || barrier.iter().filter(|&&(arrival, _)| is_shared(arrival));
        let latest = shared().map(|&(arrival, _)| steps.time(arrival)).max();
        let earliest = shared().map(|&(_, departure)| steps.time(departure)).min();
        if let Some((latest, earliest)) = latest.zip(earliest)
            && latest == earliest
        {
            orders.push((latest, Order::Barrier(barrier)));
        }
    }
    orders.sort_by_key(|&(time, _)| time);
    let mut ties = Vec::new();
    for group in orders.chunk_by(|(one, _), (other, _)| one == other) {
        at_one_time(steps, &is_shared, group, &mut ties);
    }
    ties.sort_unstable();
    ties
}

/// The ties of steps of one time.
fn at_one_time(steps: &Steps, is_shared: &dyn Fn(usize) -> bool, orders: &[(i64, Order<'_>)], ties: &mut Vec<Tie>) {
    let Some(&(time, _)) = orders.first() else { return };
    // Steps have numbers that ascend along locations, and with these.
    let mut layers: BTreeMap<usize, u32> = BTreeMap::new();
    let pairs: Vec<OrderedSteps> =
        orders.iter().flat_map(|(_, order)| pairs_of(steps, is_shared, *order, time)).collect();
    layers.extend(pairs.iter().flat_map(|pair| [(pair.from, 0), (pair.to, 0)]));
    // Each round takes a layer further: no order is longer than there are steps.
    for _ in 0..=layers.len() {
        let mut changed = false;
        for pair in &pairs {
            let behind = u32::from(steps.location(pair.from) > steps.location(pair.to));
            let least = layers[&pair.from] + behind;
            let own = layers.entry(pair.to).or_default();
            changed |= *own < least;
            *own = least.max(*own);
        }
        let mut before: Option<(u32, u32)> = None;
        for (&step, layer) in &mut layers {
            let location = steps.location(step);
            if let Some((_, least)) = before.filter(|&(other, least)| other == location && least > *layer) {
                *layer = least;
                changed = true;
            }
            before = Some((location, *layer));
        }
        if !changed {
            let mut last = (u32::MAX, 0);
            for (step, layer) in layers {
                let at = steps.at(step);
                let known = if last.0 == at.location { last.1 } else { 0 };
                if layer > known && layer <= Position::LAYERS && at.location < Position::LOCATIONS {
                    ties.push(Tie { location: at.location, number: at.number, step, time, raw: at.raw, layer });
                }
                last = (at.location, layer);
            }
            return;
        }
    }
    // Steps that wait for each other in a cycle have no order.
}

/// The pairs of steps at `time` that an order consists of.
fn pairs_of(steps: &Steps, is_shared: &dyn Fn(usize) -> bool, order: Order<'_>, time: i64) -> Vec<OrderedSteps> {
    let barrier = match order {
        Order::Pair(pair) => return vec![pair],
        Order::Barrier(barrier) => barrier,
    };
    let now = |step: &usize| steps.time(*step) == time;
    let shared = || barrier.iter().filter(|&&(arrival, _)| is_shared(arrival));
    let arrivals = || shared().map(|&(arrival, _)| arrival).filter(now);
    let departures = || shared().map(|&(_, departure)| departure).filter(now);
    let pairs = arrivals().flat_map(|from| departures().map(move |to| (from, to)));
    let others = pairs.filter(|&(from, to)| steps.location(from) != steps.location(to));
    others.map(|(from, to)| OrderedSteps { kind: Trust::Barrier, from, to }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::sync::EventCoordinates;
    use crate::matching::within::steps::What;

    /// Location, event and layer of each tie; steps are given by location and time.
    fn ties(
        list: &[(u32, i64)],
        pairs: &[(usize, usize)],
        barriers: &[&[(usize, usize)]],
        own: &[u32],
    ) -> Vec<[u64; 3]> {
        let mut steps = Steps::default();
        for (&(location, time), number) in list.iter().zip(1..) {
            steps.push(EventCoordinates { time, raw: 10 * time, number: EventNumber(number), location }, What::Other);
        }
        let mut found = StepOrders::default();
        pairs.iter().for_each(|&(from, to)| found.pair(Trust::Forked, from, to));
        barriers.iter().for_each(|barrier| found.barrier(barrier.iter().copied()));
        let found = find(&steps, &found, own);
        assert!(
            found.iter().all(
                |tie| tie.raw == 10 * tie.time && layer_of(&found, tie.location, tie.number, tie.time) == tie.layer
            )
        );
        found.iter().map(|tie| [tie.location.into(), tie.number.0, tie.layer.into()]).collect()
    }

    #[test]
    fn what_follows_a_later_location_at_the_same_time_is_in_a_layer_of_its_own() {
        let list = [(0, 7), (0, 9), (1, 7), (1, 8)];
        // 0 joins what 1 has ended, and is then waited for by 1.
        assert_eq!(ties(&list, &[(2, 0)], &[], &[0, 0]), [[0, 1, 1]]);
        assert_eq!(ties(&list, &[(0, 2)], &[], &[0, 0]), [[0; 3]; 0]);
        assert_eq!(ties(&list, &[(3, 1)], &[], &[0, 0]), [[0; 3]; 0]);
        assert_eq!(ties(&list, &[(2, 0)], &[], &[0, 1]), [[0; 3]; 0]);
    }

    #[test]
    fn layers_go_on_along_locations_and_through_others() {
        // 1 before 0, which then forks 1 and 2, and joins 2: all at one time.
        let list = [(0, 7), (0, 7), (0, 7), (1, 7), (1, 7), (2, 7), (2, 7)];
        let pairs = [(3, 0), (1, 4), (1, 5), (6, 2)];
        let expected = [[0, 1, 1], [0, 3, 2], [1, 5, 1], [2, 6, 1]];
        assert_eq!(ties(&list, &pairs, &[], &[0, 0, 0]), expected);
    }

    #[test]
    fn at_a_barrier_only_those_matter_that_are_at_the_time() {
        let list = [(0, 5), (0, 7), (1, 7), (1, 8), (2, 6), (2, 7)];
        let barrier: &[(usize, usize)] = &[(0, 1), (2, 3), (4, 5)];
        assert_eq!(ties(&list, &[], &[barrier], &[0, 0, 0]), [[0, 2, 1]]);
    }

    #[test]
    fn a_cycle_has_no_layers() {
        let list = [(0, 7), (0, 7), (1, 7), (1, 7)];
        assert_eq!(ties(&list, &[(3, 0), (1, 2)], &[], &[0, 0]), [[0; 3]; 0]);
    }
}
