//! A walk through the steps of the threads of a process in an order in which they can have happened, and what is known at each of operations on communicators and windows.

use crate::matching::within::steps::{OrderedSteps, StepOrders, Steps};
use std::collections::HashMap;

/// What a step does on one of the communicators and windows that several locations share, by its place among those.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// It begins an operation.
    Begins(usize),
    /// It accesses the window.
    Accesses(usize),
}

/// What is known of the operations on a communicator.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KnownOperations {
    /// How many are known to have begun one after the other.
    pub(super) begun: u32,
    /// The highest number of an operation that is known to come after an access not before it: one more than those that had begun at the access.
    pub(super) accessed: u32,
}

/// Of each communicator.
type Known = Box<[KnownOperations]>;

/// A walk through the steps of a process in an order in which they can have happened.
pub(super) struct Walk<'a> {
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
    pub(super) fn new(steps: &'a Steps, found: &StepOrders<'_>, communicators: usize) -> Self {
        let mut pairs = found.pairs.clone();
        pairs.sort_unstable_by_key(|pair| (pair.to, pair.from));
        let (mut departs, mut arrives, mut barriers) = (HashMap::new(), HashMap::new(), Vec::new());
        for (number, barrier) in found.barriers.iter().enumerate() {
            arrives.extend(barrier.iter().map(|&(arrival, _)| (arrival, number)));
            departs.extend(barrier.iter().map(|&(_, departure)| (departure, number)));
            barriers.push((nothing(communicators), barrier.len()));
        }
        let told = found.pairs.iter().map(|pair| (pair.from, None)).collect();
        Walk { steps, communicators, pairs, departs, arrives, told, barriers }
    }

    /// Goes through all steps. `begins` is told of each operation that begins, which `what_of` knows: the step, the place of its communicator, and what is known then. Whether the end was reached: steps
    /// may wait for each other in a cycle.
    pub(super) fn run(
        mut self,
        what_of: &HashMap<usize, Part>,
        mut begins: impl FnMut(usize, usize, &[KnownOperations]),
    ) -> bool {
        let mut locations: Vec<(Known, std::ops::Range<usize>)> =
            self.steps.by_location().map(|(_, of)| (nothing(self.communicators), of)).collect();
        loop {
            let mut moved = false;
            for (known, left) in &mut locations {
                while let Some(step) = left.clone().next()
                    && self.pass(step, known)
                {
                    moved = true;
                    left.next();
                    match what_of.get(&step) {
                        Some(&Part::Begins(place)) => {
                            known[place].begun += 1;
                            begins(step, place, known);
                        }
                        Some(&Part::Accesses(place)) => known[place].accessed = known[place].begun + 1,
                        None => {}
                    }
                }
            }
            if !moved {
                return locations.iter().all(|(_, left)| left.is_empty());
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

/// Of no communicator anything is known.
fn nothing(communicators: usize) -> Known {
    vec![KnownOperations::default(); communicators].into_boxed_slice()
}

/// Knows what others know.
fn learn(known: &mut Known, told: &Known) {
    for (known, told) in known.iter_mut().zip(told) {
        known.begun = known.begun.max(told.begun);
        known.accessed = known.accessed.max(told.accessed);
    }
}
