//! Orders of a process's timeline that follow through locations with clocks of their own.
//!
//! A location that stays in the timeline of its process is merged with the others by time. If its own clock is wrong, and it has no steps with them that would show
//! it, locations with clocks of their own that both have steps with may: what follows through them then contradicts the order of times, and events would wait for
//! each other in a cycle.

use crate::matching::sync::EventCoordinates;
use crate::matching::within::steps::{OrderedSteps, Steps};
use clc_trace::EventNumber;

/// Of the steps in the timeline that must be before an earlier one of it, since `orders` between timelines (by location: `part_of`, 0 for that of the process)
/// imply it: the earliest such step, and the last one that has to be before it. Pairs of locations that may both `stay` are not looked at.
pub(super) fn first_contradiction(
    steps: &Steps,
    part_of: &[u32],
    orders: &[OrderedSteps],
    stays: impl Fn(u32) -> bool,
) -> Option<(usize, usize)> {
    let part = |step: usize| part_of[steps.location(step) as usize] as usize;
    let later = |a: Option<usize>, b: Option<usize>| a.into_iter().chain(b).max_by_key(|&step| place(&steps.at(step)));
    let parts = part_of.iter().copied().max().map_or(0, |most| most as usize + 1);
    // What each timeline of its own does, in its order: it waits for orders, and others wait for it.
    let mut ends: Vec<Vec<(usize, bool, usize)>> = vec![Vec::new(); parts];
    // By order: the last step of the timeline of the process that it follows, when that is known.
    let mut follows: Vec<Option<Option<usize>>> = vec![None; orders.len()];
    for (number, order) in orders.iter().enumerate() {
        match part(order.from) {
            0 => follows[number] = Some(Some(order.from)),
            from => ends[from].push((order.from, true, number)),
        }
        match part(order.to) {
            0 => {}
            to => ends[to].push((order.to, false, number)),
        }
    }
    ends.iter_mut().for_each(|list| list.sort_unstable());
    let mut position = vec![0; parts];
    let mut latest: Vec<Option<usize>> = vec![None; parts];
    let mut ready: Vec<usize> = (1..parts).collect();
    while let Some(at) = ready.pop() {
        while let Some(&(_, sends, number)) = ends[at].get(position[at]) {
            if sends {
                follows[number] = Some(latest[at]);
                let to = part(orders[number].to);
                let waits = ends[to].get(position[to]).is_some_and(|&(_, sends, other)| !sends && other == number);
                ready.extend(waits.then_some(to));
            } else {
                let Some(known) = follows[number] else { break };
                latest[at] = later(latest[at], known);
            }
            position[at] += 1;
        }
    }
    let found = orders.iter().zip(follows).filter_map(|(order, follows)| {
        let before = follows??;
        let at = [order.to, before].map(|step| steps.at(step));
        let stay = at.iter().all(|at| stays(at.location));
        (part(order.to) == 0 && part(order.from) > 0 && place(&at[1]) > place(&at[0]) && !stay)
            .then_some((order.to, before))
    });
    // The earliest, and of that the last.
    let mut earliest: Option<(usize, usize)> = None;
    for (step, before) in found {
        let key =
            |(step, before): (usize, usize)| (place(&steps.at(step)), std::cmp::Reverse(place(&steps.at(before))));
        if earliest.is_none_or(|known| key((step, before)) < key(known)) {
            earliest = Some((step, before));
        }
    }
    earliest
}

/// Where a step is in the timeline of the process.
fn place(at: &EventCoordinates) -> (i64, u32, EventNumber) {
    (at.time, at.location, at.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::channels::Trust;
    use crate::matching::within::steps::What;

    /// Steps as location and time; orders between them.
    fn contradiction(list: &[(u32, i64)], orders: &[(usize, usize)], part_of: &[u32]) -> Option<(usize, usize)> {
        let mut steps = Steps::default();
        for (number, &(location, time)) in (1..).map(EventNumber).zip(list) {
            steps.push(EventCoordinates { time, raw: time, number, location }, What::Other);
        }
        let order = |&(from, to): &(usize, usize)| OrderedSteps { kind: Trust::Forked, from, to };
        let orders: Vec<OrderedSteps> = orders.iter().map(order).collect();
        first_contradiction(&steps, part_of, &orders, |location| location == 0)
    }

    #[test]
    fn what_follows_through_a_clock_of_its_own_must_not_contradict_the_times() {
        // The main thread forks location 1, which has a clock of its own; that forks location 2.
        let orders = [(0, 1), (2, 3)];
        assert_eq!(contradiction(&[(0, 10), (1, 500), (1, 510), (2, 5)], &orders, &[0, 1, 0]), Some((3, 0)));
        assert_eq!(contradiction(&[(0, 10), (1, 500), (1, 510), (2, 15)], &orders, &[0, 1, 0]), None);
        // With clocks of their own no times are compared.
        assert_eq!(contradiction(&[(0, 10), (1, 500), (1, 510), (2, 5)], &orders, &[0, 1, 2]), None);
    }

    #[test]
    fn it_may_follow_through_several() {
        let list = [(0, 10), (0, 30), (1, 0), (1, 1), (2, 0), (2, 1), (3, 20)];
        // 0 to 1, 1 to 2, 2 to 3; the second order of the main thread comes too late for that.
        assert_eq!(contradiction(&list, &[(0, 2), (3, 4), (5, 6)], &[0, 1, 2, 0]), None);
        assert_eq!(contradiction(&list, &[(1, 2), (3, 4), (5, 6)], &[0, 1, 2, 0]), Some((6, 1)));
        // Steps of one that come before do not follow.
        assert_eq!(contradiction(&list, &[(1, 3), (2, 4), (5, 6)], &[0, 1, 2, 0]), None);
    }

    #[test]
    fn locations_that_have_to_stay_are_left() {
        let list = [(0, 10), (0, 30), (1, 0), (1, 1)];
        assert_eq!(contradiction(&list, &[(1, 2), (3, 0)], &[0, 1]), None);
    }
}
