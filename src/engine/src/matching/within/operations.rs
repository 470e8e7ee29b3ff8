//! Collective operations that several locations of a process take part in.
//!
//! The members of a communicator are processes, and the k-th operation of one is the k-th of all. If the locations of a process share a communicator, their
//! clocks tell which of its operations is the k-th. Where these clocks differ, only the steps of the threads can: MPI demands of a program that it puts such operations in
//! order (MPI 4.1, "MPI and Threads", on collective calls), and mostly that is done by what a trace records (the end of a team, a barrier, a lock). So an operation's number is one more than
//! that of the last operation that its begin is known to follow. If all operations of the process on the communicator get different numbers that way, each
//! follows the one before, and the order is certain, whatever the clocks show. So it is with the steps of post, start, complete and wait on a window.

use crate::matching::within::steps::{OrderedSteps, StepOrders, Steps};
use clc_trace::{CommId, Event, WindowId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What several locations share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shared {
    /// The collective operations on a communicator.
    Communicator(CommId),
    /// The epochs with groups on a window.
    Epochs(WindowId),
}

/// The operations of a process on a communicator, or its steps of epochs on a window.
#[derive(Debug, Default)]
struct Operations {
    /// The locations that take part.
    locations: BTreeSet<u32>,
    /// The step at which each begins, in the order in which they were read.
    begins: Vec<usize>,
}

/// Which collective operations the locations of a process take part in.
#[derive(Debug, Default)]
pub struct SharedOperations {
    operations: BTreeMap<Shared, Operations>,
    /// The locations that take part in operations on each window.
    on_windows: BTreeMap<WindowId, BTreeSet<u32>>,
    /// The steps at which operations have begun that have not ended: blocking ones by location.
    open: BTreeMap<u32, usize>,
    /// Non-blocking ones by location and request.
    requests: BTreeMap<(u32, u64), usize>,
    /// By request, the locations that have begun an operation, and those that have completed one which they had not begun. Locations are read one after the other, so
    /// the end may be read before the begin.
    begun: BTreeMap<u64, BTreeSet<u32>>,
    completed: BTreeMap<u64, BTreeSet<u32>>,
}

/// For communicators, and epochs on windows, that several locations share: the steps at which operations begin, in the order in which they do.
pub type OperationOrders = BTreeMap<Shared, Vec<usize>>;

impl SharedOperations {
    /// Whether an event begins an operation on a communicator, or is of an epoch: then it is a step, see [`SharedOperations::read`].
    #[inline]
    pub(super) fn begins(event: &Event) -> bool {
        matches!(event, Event::MpiCollectiveBegin | Event::NonBlockingCollectiveRequest(_) | Event::RmaGroupSync(_))
    }

    /// Reads an event of a location, and which step it is, if it is one.
    #[inline]
    pub fn read(&mut self, location: u32, event: &Event, step: Option<usize>) {
        match (event, step) {
            (Event::MpiCollectiveBegin, Some(step)) => drop(self.open.insert(location, step)),
            (Event::NonBlockingCollectiveRequest(request), Some(step)) => {
                self.requests.insert((location, *request), step);
                self.begun.entry(*request).or_default().insert(location);
            }
            (Event::MpiCollectiveEnd(collective), _) => {
                let begin = self.open.remove(&location);
                self.on(Shared::Communicator(collective.comm), location, begin);
            }
            (Event::NonBlockingCollectiveComplete(collective, request), _) => {
                let begin = self.requests.remove(&(location, *request));
                if begin.is_none() {
                    self.completed.entry(*request).or_default().insert(location);
                }
                self.on(Shared::Communicator(collective.comm), location, begin);
            }
            (Event::RmaGroupSync(sync), _) => self.on(Shared::Epochs(sync.window), location, step),
            (Event::RmaCollectiveEnd(collective), _) => {
                self.on_windows.entry(collective.window).or_default().insert(location);
            }
            _ => {}
        }
    }

    fn on(&mut self, on: Shared, location: u32, begin: Option<usize>) {
        let operations = self.operations.entry(on).or_default();
        operations.locations.insert(location);
        operations.begins.extend(begin);
    }

    /// The communicators, and the epochs on windows, that several locations share.
    fn shared(&self) -> impl Iterator<Item = (Shared, &Operations)> {
        let all = self.operations.iter().map(|(&on, operations)| (on, operations));
        all.filter(|(_, operations)| operations.locations.len() > 1)
    }

    /// Which of so many locations have to stay in the timeline of their process, since nobody could say which of their operations is which: those that share a
    /// communicator whose operations are not in `orders`, or a window; and those that complete what another location has begun.
    pub(super) fn bound(&self, locations: usize, orders: &OperationOrders) -> Vec<bool> {
        // Of epochs whose order is not known nothing is certain, but they are compared.
        let unknown = self.shared().filter(|(on, _)| matches!(on, Shared::Communicator(_)) && !orders.contains_key(on));
        let unknown = unknown.map(|(_, of)| &of.locations);
        let windows = self.on_windows.values().filter(|locations| locations.len() > 1);
        let mut bound: BTreeSet<u32> = unknown.chain(windows).flatten().copied().collect();
        for (request, completed) in &self.completed {
            bound.extend(completed.iter().chain(self.begun.get(request).into_iter().flatten()));
        }
        (0..locations as u32).map(|location| bound.contains(&location)).collect()
    }

    /// The order of the operations on each communicator, and of the epochs on each window, that several locations share, as far as the steps of the threads tell it, which are
    /// `found`.
    pub(super) fn orders(&self, steps: &Steps, found: &StepOrders<'_>) -> OperationOrders {
        let mut places: Vec<(Shared, usize)> = Vec::new();
        let mut number_of: HashMap<usize, usize> = HashMap::new();
        for (on, operations) in self.shared() {
            number_of.extend(operations.begins.iter().map(|&begin| (begin, places.len())));
            places.push((on, operations.begins.len()));
        }
        if places.is_empty() {
            return OperationOrders::new();
        }
        let Some(numbers) = Walk::new(steps, found, places.len()).run(&number_of) else {
            return OperationOrders::new();
        };
        let mut orders: Vec<Vec<usize>> = places.iter().map(|&(_, count)| vec![usize::MAX; count]).collect();
        for (begin, number) in numbers {
            if let Some(place) = orders[number_of[&begin]].get_mut(number as usize - 1) {
                *place = begin;
            }
        }
        let shared = places.into_iter().map(|(on, _)| on);
        shared.zip(orders).filter(|(_, order)| !order.contains(&usize::MAX)).collect()
    }
}

/// Of each communicator, how many operations are known to have begun one after the other.
type Known = Box<[u32]>;

/// A walk through the steps of a process in an order in which they can have happened.
struct Walk<'a> {
    steps: &'a Steps,
    /// How many communicators there are.
    communicators: usize,
    /// Pairs by their second step.
    pairs: Vec<OrderedSteps>,
    /// Of each step that departs from a barrier, which one; and of each that arrives.
    departs: HashMap<usize, usize>,
    arrives: HashMap<usize, usize>,
    /// What was known at each step that others wait for.
    told: HashMap<usize, Option<Known>>,
    /// What those that have arrived at each barrier know, and how many have not.
    barriers: Vec<(Known, usize)>,
}

impl<'a> Walk<'a> {
    fn new(steps: &'a Steps, found: &StepOrders<'_>, communicators: usize) -> Self {
        let mut pairs = found.pairs.clone();
        pairs.sort_unstable_by_key(|pair| (pair.to, pair.from));
        let (mut departs, mut arrives, mut barriers) = (HashMap::new(), HashMap::new(), Vec::new());
        for (number, barrier) in found.barriers.iter().enumerate() {
            arrives.extend(barrier.iter().map(|&(arrival, _)| (arrival, number)));
            departs.extend(barrier.iter().map(|&(_, departure)| (departure, number)));
            barriers.push((vec![0; communicators].into_boxed_slice(), barrier.len()));
        }
        let told = found.pairs.iter().map(|pair| (pair.from, None)).collect();
        Walk { steps, communicators, pairs, departs, arrives, told, barriers }
    }

    /// The number of each operation's begin, which `communicator_of` knows; nothing if steps wait for each other in a cycle.
    fn run(mut self, communicator_of: &HashMap<usize, usize>) -> Option<Vec<(usize, u32)>> {
        let mut locations: Vec<(Known, std::ops::Range<usize>)> =
            self.steps.by_location().map(|(_, of)| (vec![0; self.communicators].into_boxed_slice(), of)).collect();
        let mut numbers = Vec::with_capacity(communicator_of.len());
        loop {
            let mut moved = false;
            for (known, left) in &mut locations {
                while let Some(step) = left.clone().next()
                    && self.pass(step, known)
                {
                    moved = true;
                    left.next();
                    if let Some(&communicator) = communicator_of.get(&step) {
                        known[communicator] += 1;
                        numbers.push((step, known[communicator]));
                    }
                }
            }
            if !moved {
                return locations.iter().all(|(_, left)| left.is_empty()).then_some(numbers);
            }
        }
    }

    /// Passes a step, unless that waits for others which have not been passed. `known`, of its location, becomes what is known there.
    fn pass(&mut self, step: usize, known: &mut Known) -> bool {
        let from = self.pairs.partition_point(|pair| pair.to < step);
        let before = self.pairs[from..].iter().take_while(|pair| pair.to == step);
        let before: Option<Vec<&Known>> = before.map(|pair| self.told[&pair.from].as_ref()).collect();
        let Some(before) = before else { return false };
        before.into_iter().for_each(|told| learn(known, told));
        if let Some(&barrier) = self.departs.get(&step) {
            let (told, missing) = &self.barriers[barrier];
            if *missing > 0 {
                return false;
            }
            learn(known, told);
        }
        if let Some(&barrier) = self.arrives.get(&step) {
            let (told, missing) = &mut self.barriers[barrier];
            learn(told, known);
            *missing -= 1;
        }
        if let Some(told) = self.told.get_mut(&step) {
            *told = Some(known.clone());
        }
        true
    }
}

/// Knows what others know.
fn learn(known: &mut Known, told: &Known) {
    known.iter_mut().zip(told).for_each(|(known, told)| *known = (*known).max(*told));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::channels::Trust;
    use crate::matching::sync::EventCoordinates;
    use crate::matching::within::steps::What;
    use clc_trace::{Collective, CollectiveOp, EventNumber, Root};

    fn collective(comm: u32) -> Collective {
        Collective { op: CollectiveOp::BARRIER, comm: CommId(comm), root: Root::None, sent: 0, received: 0 }
    }

    #[test]
    fn what_is_completed_elsewhere_ties_both_locations() {
        let complete = Event::NonBlockingCollectiveComplete(collective(0), 7);
        let begin = Event::NonBlockingCollectiveRequest(7);
        let tied = |events: &[(u32, &Event)]| {
            let mut operations = SharedOperations::default();
            events.iter().zip(0..).for_each(|((location, event), step)| operations.read(*location, event, Some(step)));
            // Were its order known, it would make no difference.
            operations.bound(4, &OperationOrders::from([(Shared::Communicator(CommId(0)), vec![])]))
        };
        // Whichever of the two locations is read first.
        assert_eq!(tied(&[(1, &begin), (2, &complete)]), [false, true, true, false]);
        assert_eq!(tied(&[(1, &complete), (2, &begin)]), [false, true, true, false]);
        // One location does all of it, another one with the same request is still busy.
        assert_eq!(tied(&[(1, &begin), (1, &complete), (2, &begin)]), [false; 4]);
    }

    /// What some locations do one after the other: a step, or an operation on a communicator.
    #[derive(Clone, Copy)]
    enum Does {
        Step,
        Operates(u32),
    }

    /// The orders found, and who is bound; `pairs` are of steps, and `barriers` of arrivals and departures, counted over all locations.
    fn orders(
        locations: &[&[Does]],
        pairs: &[(usize, usize)],
        barriers: &[&[(usize, usize)]],
    ) -> (OperationOrders, Vec<bool>) {
        let (mut steps, mut operations) = (Steps::default(), SharedOperations::default());
        for (location, does) in (0..).zip(locations) {
            for (does, number) in does.iter().zip(1..) {
                // Of clocks nothing is known.
                let at = EventCoordinates { time: 0, raw: 0, number: EventNumber(number), location };
                let step = steps.push(at, What::Other);
                if let Does::Operates(comm) = does {
                    operations.read(location, &Event::MpiCollectiveBegin, Some(step));
                    operations.read(location, &Event::MpiCollectiveEnd(collective(*comm)), None);
                }
            }
        }
        let mut found = StepOrders::default();
        pairs.iter().for_each(|&(from, to)| found.pair(Trust::Forked, from, to));
        barriers.iter().for_each(|barrier| found.barrier(barrier.iter().copied()));
        let orders = operations.orders(&steps, &found);
        let bound = operations.bound(locations.len(), &orders);
        (orders, bound)
    }

    use Does::{Operates, Step};

    #[test]
    fn a_pair_of_steps_puts_operations_in_order() {
        // 0: operates, then 1 follows 2, 3: operates; 4: operates last, after 5.
        let locations: [&[Does]; 2] = [&[Operates(3), Step, Step, Operates(3)], &[Step, Operates(3), Step]];
        let (found, bound) = orders(&locations, &[(1, 4), (6, 2)], &[]);
        assert_eq!(
            (found, bound),
            (OperationOrders::from([(Shared::Communicator(CommId(3)), vec![0, 5, 3])]), vec![false, false])
        );
        // Nothing tells whether the last one of the first location comes before that of the other one.
        let (found, bound) = orders(&locations, &[(1, 4)], &[]);
        assert_eq!((found, bound), (OperationOrders::new(), vec![true, true]));
    }

    #[test]
    fn a_barrier_puts_operations_in_order() {
        let locations: [&[Does]; 3] =
            [&[Operates(3), Step, Step, Operates(4)], &[Step, Step, Operates(3)], &[Step, Step, Operates(4)]];
        let barrier: &[(usize, usize)] = &[(1, 2), (4, 5), (7, 8)];
        let (found, bound) = orders(&locations, &[], &[barrier]);
        // Both operations on communicator 4 come after it.
        assert_eq!(
            (found, bound),
            (OperationOrders::from([(Shared::Communicator(CommId(3)), vec![0, 6])]), vec![true, false, true])
        );
    }

    #[test]
    fn steps_in_a_cycle_tell_no_order() {
        let locations: [&[Does]; 2] = [&[Step, Operates(3), Step], &[Step, Operates(3), Step]];
        assert_eq!(orders(&locations, &[(2, 3), (5, 0)], &[]).0, OperationOrders::new());
        assert_eq!(
            orders(&locations, &[(2, 3)], &[]).0,
            OperationOrders::from([(Shared::Communicator(CommId(3)), vec![1, 4])])
        );
    }
}
