//! What is certain of operations on a communicator or window that threads with clocks of their own have made in an order that nothing tells.
//!
//! Of such an operation the number among those of the process is not known, but between which numbers it is. Whatever holds for all of them is certain, and the rest is left out: as with
//! messages whose records are missing ([`crate::matching::messages`]).

use crate::matching::operation_begin::CertainEnds;
use crate::matching::within::operations::{OperationOrders, Operations, OrderedBegin, Shared, SharedOperations};
use crate::matching::within::steps::{StepOrders, Steps};
use crate::matching::within::walk::{KnownOperations, Part, Walk};
use clc_trace::{CollectiveOp, Root};
use std::collections::HashMap;

/// So much is kept at most of what is known at steps, where an order is not known: numbers of operations by location.
const MOST_KNOWN: usize = 1 << 24;

/// An operation whose place among the others is not known.
struct Unplaced {
    step: usize,
    kind: Option<(CollectiveOp, Root)>,
    /// Its place comes at the earliest, and at the latest.
    earliest: u32,
    latest: u32,
}

impl SharedOperations {
    /// What is certain of operations whose order neither `orders` has nor steps tell. An operation comes at the earliest after all those that it is known to follow, and at the latest
    /// before all those that are known to follow it. Whichever place it has, the others have begun the operation of its earliest place when it ends, as they make theirs one after the
    /// other; and it has begun when they end that of its latest place. So begins are put in the order of their latest places and are certain there, ends in that of their earliest places.
    /// From operations on of which that does not even tell what they are, nothing is certain.
    pub(super) fn certain(&self, steps: &Steps, found: &StepOrders<'_>, orders: &OperationOrders) -> OperationOrders {
        let unknown = self.shared().filter(|(on, _)| !matches!(on, Shared::Epochs(_)) && !orders.contains_key(on));
        unknown.filter_map(|(on, of)| Some((on, in_certain_places(of.unplaced(steps, found)?)))).collect()
    }
}

impl Operations {
    /// The operations with the places that they may have; nothing if steps wait for each other in a cycle, or if there is too much to know.
    fn unplaced(&self, steps: &Steps, found: &StepOrders<'_>) -> Option<Vec<Unplaced>> {
        let locations: Vec<u32> = self.locations.iter().copied().collect();
        if (found.pairs.len() + steps.by_location().count()).saturating_mul(locations.len()) > MOST_KNOWN {
            return None;
        }
        let place = |step: usize| locations.binary_search(&steps.location(step)).unwrap_or(0);
        let what_of: HashMap<usize, Part> =
            self.begins.iter().map(|&begin| (begin, Part::Begins(place(begin)))).collect();
        // By location in their order: the step, and how many of each location are known to have begun, itself among them.
        let mut known: Vec<Vec<(usize, Vec<u32>)>> = vec![Vec::new(); locations.len()];
        let begins = |step: usize, place: usize, of: &[KnownOperations]| {
            known[place].push((step, of.iter().map(|known| known.begun).collect()));
        };
        if !Walk::new(steps, found, locations.len()).run(&what_of, begins) {
            return None;
        }
        let kinds: HashMap<usize, Option<(CollectiveOp, Root)>> =
            self.begins.iter().copied().zip(self.kinds.iter().copied()).collect();
        let mut unplaced = Vec::with_capacity(self.begins.len());
        for (place, of_location) in known.iter().enumerate() {
            for (before, (step, begun)) in (1u32..).zip(of_location) {
                let follow = known.iter().map(|of| of.len() - of.partition_point(|(_, known)| known[place] < before));
                // It is among those that follow itself.
                let latest = self.begins.len() + 1 - follow.sum::<usize>();
                let kind = kinds[step];
                unplaced.push(Unplaced { step: *step, kind, earliest: begun.iter().sum(), latest: latest as u32 });
            }
        }
        Some(unplaced)
    }
}

/// Begins and ends in the places in which they are certain, up to operations whose order is not known and which do not do the same, or are not blocking.
fn in_certain_places(mut operations: Vec<Unplaced>) -> Vec<OrderedBegin> {
    operations.sort_unstable_by_key(|operation| (operation.earliest, operation.step));
    let ends: Vec<(usize, bool)> =
        (1..).zip(&operations).map(|(place, operation)| (operation.step, operation.earliest == place)).collect();
    operations.sort_unstable_by_key(|operation| (operation.latest, operation.step));
    let mut placed: Vec<OrderedBegin> = Vec::with_capacity(operations.len());
    let mut whole = 0;
    for (place, (operation, (ended, end))) in (1..).zip(operations.iter().zip(ends)) {
        let certain = CertainEnds { begin: operation.latest == place, end };
        placed.push(OrderedBegin { step: operation.step, accessed: false, ended, certain });
        // Then all operations so far are in the places so far, in any order.
        if certain.begin {
            let unordered = &operations[whole..placed.len()];
            let alike = unordered.iter().all(|one| one.kind.is_some() && one.kind == operation.kind);
            if unordered.len() > 1 && !alike {
                break;
            }
            whole = placed.len();
        }
    }
    placed.truncate(whole);
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an operation is, if it is blocking.
    type Kind = Option<(CollectiveOp, Root)>;

    #[test]
    fn of_operations_in_an_unknown_order_latest_begins_and_earliest_ends_are_certain() {
        let kind = Some((CollectiveOp::BARRIER, Root::None));
        let places = |list: &[(u32, u32, Kind)]| {
            let operation = |(step, &(earliest, latest, kind))| Unplaced { step, kind, earliest, latest };
            let placed = in_certain_places(list.iter().enumerate().map(operation).collect());
            let place = |at: &OrderedBegin| (at.step, at.ended, at.certain.begin, at.certain.end);
            placed.iter().map(place).collect::<Vec<_>>()
        };
        // The first and the last one are known.
        let all = [(1, 1, kind), (2, 3, kind), (2, 3, kind), (4, 4, kind)];
        let known = [(0, 0, true, true), (1, 1, false, true), (2, 2, true, false), (3, 3, true, true)];
        assert_eq!(places(&all), known);
        // One of another kind, or a non-blocking one, may be either of two: from there on nothing is known.
        for other in [Some((CollectiveOp::ALLREDUCE, Root::None)), None] {
            assert_eq!(places(&[(1, 1, kind), (2, 3, kind), (2, 3, other), (4, 4, kind)]), known[..1]);
            assert_eq!(places(&[(1, 1, kind), (2, 2, other)]), [known[0], (1, 1, true, true)]);
        }
        // Two in a row, and one beside them.
        assert_eq!(
            places(&[(1, 2, kind), (2, 3, kind), (1, 3, kind)]),
            [(0, 0, false, true), (1, 2, false, false), (2, 1, true, false)]
        );
    }
}
