//! Collective operations that several locations of a process take part in.
//!
//! The members of a communicator are processes, and the k-th operation of one is the k-th of all. If the locations of a process share a communicator, their
//! clocks tell which of its operations is the k-th. Where these clocks differ, only the steps of the threads can: MPI demands of a program that it puts such operations in
//! order (MPI 4.1, "MPI and Threads", on collective calls), and mostly that is done by what a trace records (the end of a team, a barrier, a lock). So an operation's number is one more than
//! that of the last operation that its begin is known to follow. If all operations of the process on the communicator get different numbers that way, each
//! follows the one before, and the order is certain, whatever the clocks show. So it is with fences and other collective operations on a window, and with the steps of post, start, complete and
//! wait.
//!
//! Whether a process has accessed a window between two fences is known in the same way: an access that follows fence k, and that fence k + 1 is known to follow.

use crate::matching::operation_begin::CertainEnds;
use crate::matching::within::steps::{StepOrders, Steps};
use crate::matching::within::walk::{KnownOperations, Part, Walk};
use clc_trace::{CollectiveOp, CommId, Event, Root, WindowId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What several locations share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shared {
    /// The collective operations on a communicator.
    Communicator(CommId),
    /// The epochs with groups on a window.
    Epochs(WindowId),
    /// The collective operations on a window.
    Window(WindowId),
}

/// The operations of a process on a communicator or a window, or its steps of epochs on a window.
#[derive(Debug, Default)]
pub(super) struct Operations {
    /// The locations that take part.
    pub(super) locations: BTreeSet<u32>,
    /// The step at which each begins, in the order in which they were read.
    pub(super) begins: Vec<usize>,
    /// What each of them is; nothing of a non-blocking one, the end of which may come after those of later ones.
    pub(super) kinds: Vec<Option<(CollectiveOp, Root)>>,
    /// The steps at which a window is accessed.
    accesses: Vec<usize>,
}

/// Which collective operations the locations of a process take part in.
#[derive(Debug, Default)]
pub struct SharedOperations {
    operations: BTreeMap<Shared, Operations>,
    /// Windows with locks or epochs with groups: which of their accesses fences complete, clocks tell.
    in_epochs: BTreeSet<WindowId>,
    /// The steps at which operations have begun that have not ended: blocking ones by location, on communicators and on windows.
    open: BTreeMap<u32, usize>,
    open_on_windows: BTreeMap<u32, usize>,
    /// Non-blocking ones by location and request.
    requests: BTreeMap<(u32, u64), usize>,
    /// By request, the locations that have completed an operation which they had not begun, with its communicator. Locations are read one after the other, so the end may be read before the begin.
    completed: BTreeMap<u64, Vec<(u32, CommId)>>,
    /// Locations of which that does not tell which operation one has completed for another.
    unknown: BTreeSet<u32>,
}

/// An operation of those that several locations share, in its place among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedBegin {
    /// The step at which it begins.
    pub step: usize,
    /// Whether an access of the process to the window is known to come between the operation before and this one.
    pub accessed: bool,
    /// The step at which the operation begins whose end is in this place.
    pub ended: usize,
    /// What is certain of both; all of it if the order is known.
    pub certain: CertainEnds,
}

/// For communicators, windows, and epochs on windows, that several locations share: the operations in the order in which they begin.
pub type OperationOrders = BTreeMap<Shared, Vec<OrderedBegin>>;

impl SharedOperations {
    /// Whether an event begins an operation on a communicator or a window, or is of an epoch: then it is a step, see [`SharedOperations::read`].
    #[inline]
    pub(super) fn begins(event: &Event) -> bool {
        let begins = matches!(event, Event::MpiCollectiveBegin | Event::NonBlockingCollectiveRequest(_));
        begins || matches!(event, Event::RmaCollectiveBegin | Event::RmaGroupSync(_))
    }

    /// Whether an event accesses a window: then it is a step, too.
    #[inline]
    pub(super) fn accesses(event: &Event) -> bool {
        matches!(event, Event::RmaPut(_) | Event::RmaGet(_) | Event::RmaAtomic(_))
    }

    /// Reads an event of a location, and which step it is, if it is one.
    #[inline]
    pub fn read(&mut self, location: u32, event: &Event, step: Option<usize>) {
        match (event, step) {
            (Event::MpiCollectiveBegin, Some(step)) => drop(self.open.insert(location, step)),
            (Event::NonBlockingCollectiveRequest(request), Some(step)) => {
                self.requests.insert((location, *request), step);
            }
            (Event::MpiCollectiveEnd(collective), _) => {
                let begin = self.open.remove(&location);
                let kind = Some((collective.op, collective.root));
                self.on(Shared::Communicator(collective.comm), location, begin, kind);
            }
            (Event::NonBlockingCollectiveComplete(collective, request), _) => {
                let begin = self.requests.remove(&(location, *request));
                if begin.is_none() {
                    self.completed.entry(*request).or_default().push((location, collective.comm));
                }
                self.on(Shared::Communicator(collective.comm), location, begin, None);
            }
            (Event::RmaGroupSync(sync), _) => {
                self.in_epochs.insert(sync.window);
                self.on(Shared::Epochs(sync.window), location, step, None);
            }
            (Event::RmaRequestLock(lock) | Event::RmaAcquireLock(lock), _) => drop(self.in_epochs.insert(lock.window)),
            (Event::RmaCollectiveBegin, Some(step)) => drop(self.open_on_windows.insert(location, step)),
            (Event::RmaCollectiveEnd(collective), _) => {
                let begin = self.open_on_windows.remove(&location);
                let kind = Some((collective.op, collective.root));
                self.on(Shared::Window(collective.window), location, begin, kind);
            }
            (Event::RmaPut(transfer) | Event::RmaGet(transfer), Some(step)) => self.access(transfer.window, step),
            (Event::RmaAtomic(atomic), Some(step)) => self.access(atomic.window, step),
            _ => {}
        }
    }

    fn on(&mut self, on: Shared, location: u32, begin: Option<usize>, kind: Option<(CollectiveOp, Root)>) {
        let operations = self.operations.entry(on).or_default();
        operations.locations.insert(location);
        operations.begins.extend(begin);
        operations.kinds.extend(begin.map(|_| kind));
    }

    /// All events have been read: operations that another location has completed than has begun them are of the communicators that were told at their ends. Returns their requests.
    pub fn finish(&mut self) -> BTreeSet<u64> {
        let mut handed_on = BTreeSet::new();
        let mut open: BTreeMap<u64, Vec<(u32, usize)>> = BTreeMap::new();
        for (&(location, request), &step) in &self.requests {
            open.entry(request).or_default().push((location, step));
        }
        for (request, completed) in std::mem::take(&mut self.completed) {
            let begun = open.remove(&request).unwrap_or_default();
            match (&begun[..], &completed[..]) {
                (&[(location, begin)], &[(_, comm)]) => {
                    self.requests.remove(&(location, request));
                    handed_on.insert(request);
                    self.on(Shared::Communicator(comm), location, Some(begin), None);
                }
                // Which of them is which is not known.
                _ => self.unknown.extend(begun.iter().map(|at| at.0).chain(completed.iter().map(|at| at.0))),
            }
        }
        handed_on
    }

    fn access(&mut self, window: WindowId, step: usize) {
        self.operations.entry(Shared::Window(window)).or_default().accesses.push(step);
    }

    /// The communicators, the windows, and the epochs on windows, that several locations share.
    pub(super) fn shared(&self) -> impl Iterator<Item = (Shared, &Operations)> {
        let all = self.operations.iter().map(|(&on, operations)| (on, operations));
        all.filter(|(_, operations)| operations.locations.len() > 1)
    }

    /// Which of so many locations have to stay in the timeline of their process, since nobody could say which of their operations is which: those that share a
    /// communicator or a window whose operations are not in `orders`; and those that may have completed what another location has begun.
    pub(super) fn bound(&self, locations: usize, orders: &OperationOrders) -> Vec<bool> {
        // Of epochs whose order is not known nothing is certain, but they are compared.
        let unknown = self.shared().filter(|(on, _)| !matches!(on, Shared::Epochs(_)) && !orders.contains_key(on));
        let bound: BTreeSet<u32> = unknown.flat_map(|(_, of)| &of.locations).chain(&self.unknown).copied().collect();
        (0..locations as u32).map(|location| bound.contains(&location)).collect()
    }

    /// The order of the operations on each communicator and window, and of the epochs on each window, that several locations share, as far as the steps of the threads tell it,
    /// which are `found`.
    pub(super) fn orders(&self, steps: &Steps, found: &StepOrders<'_>) -> OperationOrders {
        let mut places: Vec<(Shared, usize)> = Vec::new();
        let mut what_of: HashMap<usize, Part> = HashMap::new();
        for (on, operations) in self.shared() {
            let place = places.len();
            what_of.extend(operations.begins.iter().map(|&begin| (begin, Part::Begins(place))));
            if !matches!(on, Shared::Window(window) if self.in_epochs.contains(&window)) {
                what_of.extend(operations.accesses.iter().map(|&access| (access, Part::Accesses(place))));
            }
            places.push((on, operations.begins.len()));
        }
        if places.is_empty() {
            return OperationOrders::new();
        }
        let mut begun = Vec::with_capacity(what_of.len());
        let begins = |step: usize, place: usize, known: &[KnownOperations]| {
            let known = known[place];
            begun.push((step, place, known.begun, known.accessed == known.begun));
        };
        if !Walk::new(steps, found, places.len()).run(&what_of, begins) {
            return OperationOrders::new();
        }
        let mut orders: Vec<Vec<Option<OrderedBegin>>> = places.iter().map(|&(_, count)| vec![None; count]).collect();
        for (step, place, number, accessed) in begun {
            if let Some(ordered) = orders[place].get_mut(number as usize - 1) {
                *ordered = Some(OrderedBegin { step, accessed, ended: step, certain: CertainEnds::BOTH });
            }
        }
        let shared = places.into_iter().map(|(on, _)| on);
        shared.zip(orders).filter_map(|(on, order)| Some((on, order.into_iter().collect::<Option<_>>()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::channels::Trust;
    use crate::matching::sync::EventCoordinates;
    use crate::matching::within::steps::What;
    use clc_trace::{Collective, EventNumber, WindowCollective, WindowTransfer};

    fn collective(comm: u32) -> Collective {
        Collective { op: CollectiveOp::BARRIER, comm: CommId(comm), root: Root::None, sent: 0, received: 0 }
    }

    #[test]
    fn what_is_completed_elsewhere_has_one_begin_or_ties_the_locations() {
        let complete = Event::NonBlockingCollectiveComplete(collective(0), 7);
        let begin = Event::NonBlockingCollectiveRequest(7);
        let tied = |events: &[(u32, &Event)], known: bool| {
            let mut operations = SharedOperations::default();
            events.iter().zip(0..).for_each(|((location, event), step)| operations.read(*location, event, Some(step)));
            let handed_on = operations.finish();
            let order = known.then_some((Shared::Communicator(CommId(0)), Vec::new()));
            (operations.bound(4, &order.into_iter().collect()), handed_on.contains(&7))
        };
        // Whichever of the two locations is read first: they share the communicator.
        for events in [[(1, &begin), (2, &complete)], [(1, &complete), (2, &begin)]] {
            assert_eq!(tied(&events, false), (vec![false, true, true, false], true));
            assert_eq!(tied(&events, true), (vec![false; 4], true));
        }
        // Which of two has been completed elsewhere is not known, whatever order there is.
        let two = [(1, &complete), (2, &begin), (3, &begin)];
        assert_eq!(tied(&two, true), (vec![false, true, true, true], false));
        // One location does all of it, another one with the same request is still busy.
        assert_eq!(tied(&[(1, &begin), (1, &complete), (2, &begin)], true), (vec![false; 4], false));
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

    /// An operation in a place that is known.
    fn known(step: usize) -> OrderedBegin {
        OrderedBegin { step, accessed: false, ended: step, certain: CertainEnds::BOTH }
    }

    #[test]
    fn a_pair_of_steps_puts_operations_in_order() {
        // 0: operates, then 1 follows 2, 3: operates; 4: operates last, after 5.
        let locations: [&[Does]; 2] = [&[Operates(3), Step, Step, Operates(3)], &[Step, Operates(3), Step]];
        let (found, bound) = orders(&locations, &[(1, 4), (6, 2)], &[]);
        assert_eq!(
            (found, bound),
            (
                OperationOrders::from([(Shared::Communicator(CommId(3)), [0, 5, 3].map(known).into())]),
                vec![false, false]
            )
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
            (
                OperationOrders::from([(Shared::Communicator(CommId(3)), [0, 6].map(known).into())]),
                vec![true, false, true]
            )
        );
    }

    #[test]
    fn an_access_between_two_fences_is_known_by_steps() {
        let fence = Event::RmaCollectiveEnd(WindowCollective {
            op: CollectiveOp::BARRIER,
            level: 3,
            window: WindowId(1),
            root: Root::None,
            sent: 0,
            received: 0,
        });
        let access = Event::RmaPut(WindowTransfer { window: WindowId(1), remote: 0, bytes: 8, matching: 1 });
        // Location 0 fences, tells 1, which accesses the window and tells 0, which fences again; and the same without being told.
        let accessed = |pairs: &[(usize, usize)]| {
            let (mut steps, mut operations) = (Steps::default(), SharedOperations::default());
            let mut add = |location: u32, what: What, events: &[&Event]| {
                let at = EventCoordinates { time: 0, raw: 0, number: EventNumber(1), location };
                let step = steps.push(at, what);
                events.iter().for_each(|event| operations.read(location, event, Some(step)));
            };
            add(0, What::Operation, &[&Event::RmaCollectiveBegin, &fence]);
            add(0, What::Other, &[]);
            add(0, What::Other, &[]);
            add(0, What::Operation, &[&Event::RmaCollectiveBegin, &fence]);
            add(0, What::Other, &[]);
            add(1, What::Other, &[]);
            add(1, What::Access, &[&access]);
            add(1, What::Other, &[]);
            add(1, What::Operation, &[&Event::RmaCollectiveBegin, &fence]);
            let mut found = StepOrders::default();
            pairs.iter().for_each(|&(from, to)| found.pair(Trust::Locked, from, to));
            let order = operations.orders(&steps, &found).remove(&Shared::Window(WindowId(1)))?;
            Some(order.iter().map(|begin| begin.accessed).collect::<Vec<bool>>())
        };
        assert_eq!(accessed(&[(1, 5), (7, 2), (4, 8)]), Some(vec![false, true, false]));
        // It may have been before the first fence.
        assert_eq!(accessed(&[(7, 2), (4, 8)]), Some(vec![false; 3]));
        assert_eq!(accessed(&[]), None);
    }

    #[test]
    fn steps_in_a_cycle_tell_no_order() {
        let locations: [&[Does]; 2] = [&[Step, Operates(3), Step], &[Step, Operates(3), Step]];
        assert_eq!(orders(&locations, &[(2, 3), (5, 0)], &[]).0, OperationOrders::new());
        assert_eq!(
            orders(&locations, &[(2, 3)], &[]).0,
            OperationOrders::from([(Shared::Communicator(CommId(3)), [1, 4].map(known).into())])
        );
    }
}
