//! What the threads of one process do with each other: teams that are forked and joined, barriers of OpenMP, threads that are created and waited for,
//! tasks, locks.
//!
//! | from | to |
//! | --- | --- |
//! | a team is forked | each of its threads begins |
//! | each of its threads ends | it is joined |
//! | a thread of a team enters a barrier | each of the others leaves it |
//! | a thread is created | it begins |
//! | it ends | somebody has waited for it |
//! | a task is created | it runs first |
//! | a lock is released | it is acquired the next time |
//!
//! What it does with the streams of accelerators is added by [`crate::matching::within::accelerators`].
//!
//! All of them are between threads of one process, which share a clock. So they need no replay, unless one of them is violated as recorded: then
//! the clocks differ, which is found out here ([`ProcessThreadSteps::divide`]).

use crate::matching::channels::Trust;
use crate::matching::operation_begin::OperationBegin;
use crate::matching::sync::EventCoordinates;
use crate::matching::within::accelerators::ProcessAccelerators;
use crate::matching::within::operations::{OperationOrders, OrderedBegin, Shared, SharedOperations};
use crate::matching::within::steps::{OrderedSteps, StepOrders, Steps, ThreadConstructs, ThreadCounts, Unpaired, What};
use crate::matching::within::teams;
use crate::matching::within::through::first_contradiction;
use crate::matching::within::ties::{self, Tie, layer_of};
use clc_trace::{AcceleratorAttributes, AcceleratorReference, Event, RegionId, ThreadEvent, ThreadLock};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Numbers those that have timelines of their own, from 1.
fn parts(own: &[bool]) -> Vec<u32> {
    let mut parts = 0;
    let part = |&own: &bool| {
        parts += u32::from(own);
        if own { parts } else { 0 }
    };
    own.iter().map(part).collect()
}

/// The steps of all threads of a process.
#[derive(Debug)]
pub struct ProcessThreadSteps<'a> {
    /// Ascending.
    barriers: &'a [RegionId],
    steps: Steps,
    /// What it does with accelerators, if it has any.
    accelerators: Option<ProcessAccelerators<'a>>,
}

/// An order that a replay has to keep: kind, and the visited events.
pub(crate) type ThreadOrder = (Trust, u32, u32);

/// Which locations of a process have timelines of their own, and what ties them together.
#[derive(Debug, Default)]
pub struct Divided {
    /// By location: 0 if it shares the timeline of the process, else the number of its own one.
    pub part_of: Vec<u32>,
    /// Orders between timelines, as steps; of those of one kind that one step has with a timeline, only the one that says all.
    orders: Vec<OrderedSteps>,
    /// What was found.
    pub counts: ThreadCounts,
    /// By location with a timeline of its own: how far its clock has to be put forward, so that it agrees with the process.
    pub bounds: BTreeMap<u32, AheadBounds>,
    /// The locations that have to stay in the timeline of the process, see [`SharedOperations`]; nothing where all is in order.
    pub bound: Vec<bool>,
    /// Steps of one time that are in another order than their locations.
    pub ties: Vec<Tie>,
    /// Where operations begin on communicators and windows, and the epochs on windows, that several locations share, in the order that the steps of threads tell.
    pub operations: Vec<(Shared, Vec<OperationBegin>)>,
}

/// Recorded times of a location, and how far its clock has to be put forward then at least, and at most.
#[derive(Debug, Default)]
pub struct AheadBounds {
    /// At least.
    pub least: Vec<(i64, i64)>,
    /// At most.
    pub most: Vec<(i64, i64)>,
}

impl Divided {
    /// Whether there are several timelines.
    pub fn is_divided(&self) -> bool {
        self.part_of.iter().any(|&part| part > 0)
    }
}

impl<'a> ProcessThreadSteps<'a> {
    /// No steps; the regions of `barriers` (ascending) are barriers.
    pub fn new(barriers: &'a [RegionId], accelerators: Option<ProcessAccelerators<'a>>) -> Self {
        ProcessThreadSteps { barriers, steps: Steps::default(), accelerators }
    }

    /// The same, with memory that was used for the steps of another process.
    pub fn with_memory(self, memory: Steps) -> Self {
        ProcessThreadSteps { steps: memory, ..self }
    }

    /// Its memory, for the steps of another process.
    pub fn into_memory(self) -> Steps {
        let mut steps = self.steps;
        steps.clear();
        steps
    }

    /// The attributes by which calls name what they refer to of accelerators; `None` if there are none, or the process has no streams.
    pub fn accelerator_attributes(&self) -> Option<&'a AcceleratorAttributes> {
        self.accelerators.as_ref().map(ProcessAccelerators::attributes).filter(|attributes| !attributes.is_empty())
    }

    /// Whether an event of a location matters to accelerators.
    #[inline]
    pub fn takes_of_accelerators(&self, location: u32, event: &Event) -> bool {
        self.accelerators.as_ref().is_some_and(|accelerators| accelerators.takes(location, event))
    }

    /// Reads such an event, with what it refers to; those of a location come in their order, one location after the other.
    pub fn add_of_accelerators(&mut self, at: EventCoordinates, event: &Event, refers: AcceleratorReference) {
        let Self { steps, accelerators, .. } = self;
        if let Some(accelerators) = accelerators {
            accelerators.read(at, event, refers, || steps.push(at, What::Accelerator));
        }
    }

    /// Whether an event is a step.
    #[inline]
    pub fn takes(&self, event: &Event) -> bool {
        match event {
            Event::Thread(_) => true,
            Event::Enter(region) | Event::Leave(region) => self.barriers.binary_search(region).is_ok(),
            other => SharedOperations::begins(other) || SharedOperations::accesses(other),
        }
    }

    /// Adds a step, and says which one it is; those of a location come in their order, one location after the other.
    pub fn add(&mut self, at: EventCoordinates, event: &Event) -> usize {
        match event {
            Event::Thread(step) => self.steps.push_of_thread(at, *step),
            Event::Enter(region) => self.steps.push(at, What::Arrive(*region)),
            Event::Leave(_) => self.steps.push(at, What::Depart),
            other if SharedOperations::accesses(other) => self.steps.push_access(at),
            _ => self.steps.push(at, What::Operation),
        }
    }

    /// Finds the pairs, and which locations cannot have the clock of the others: those of the locations that are `apart` anyway, and those of violated
    /// pairs. Location 0 and those that `operations` bind to it stay in the timeline of the process.
    pub fn divide(&self, apart: &[bool], operations: &SharedOperations) -> Divided {
        let mut own: Vec<bool> = apart.to_vec();
        let location = |step: usize| self.steps.location(step) as usize;
        let time = |step: usize| self.steps.time(step);
        // Mostly all is in order, and there is nothing else to find out.
        if !own.iter().skip(1).any(|own| *own) {
            let mut found = self.find(StepOrders::comparing(&self.steps));
            found.count_last();
            if !found.contradicted {
                let part_of = vec![0; own.len()];
                let ties = ties::find(&self.steps, &found, &part_of);
                return Divided { part_of, counts: found.counts, ties, ..Divided::default() };
            }
        }
        let found = self.find(StepOrders::default());
        let (orders, bound) = self.orders_of_operations(own.len(), operations, &found);
        let stays = |location: usize| location == 0 || bound[location];
        (0..own.len()).filter(|&l| stays(l)).for_each(|l| own[l] = false);
        // The clock of a stream is not that of the process, so of the two it is the stream that is wrong.
        for pair in found.pairs.iter().filter(|pair| pair.kind.of_accelerators() && time(pair.from) > time(pair.to)) {
            let is_stream = |location: usize| {
                self.accelerators.as_ref().is_some_and(|accelerators| accelerators.is_stream(location as u32))
            };
            let streams = [pair.from, pair.to].map(location).into_iter().filter(|&l| is_stream(l) && !stays(l));
            streams.for_each(|l| own[l] = true);
        }
        // Those that contradict threads which stay have another clock; of those that contradict only each other, nobody knows which.
        for with_stays in [true, false] {
            let known = own.clone();
            let shared = |step: usize| !known[location(step)];
            let fixed = |step: usize| !with_stays || stays(location(step));
            for pair in &found.pairs {
                let wrong = time(pair.from) > time(pair.to) && shared(pair.from) && shared(pair.to);
                if wrong && (fixed(pair.from) || fixed(pair.to)) {
                    [pair.from, pair.to].map(location).into_iter().filter(|&l| !stays(l)).for_each(|l| own[l] = true);
                }
            }
            for barrier in found.barriers.iter() {
                let arrivals = || barrier.iter().map(|&(arrival, _)| arrival).filter(|&arrival| shared(arrival));
                let departures =
                    || barrier.iter().filter(|&&(arrival, _)| shared(arrival)).map(|&(_, departure)| departure);
                let latest = arrivals().filter(|&s| fixed(s)).map(time).max();
                let earliest = departures().filter(|&s| fixed(s)).map(time).min();
                let late = arrivals().filter(|&s| earliest.is_some_and(|earliest| time(s) > earliest));
                let early = departures().filter(|&s| latest.is_some_and(|latest| time(s) < latest));
                late.chain(early).map(location).filter(|&l| !stays(l)).for_each(|l| own[l] = true);
            }
        }
        loop {
            let part_of = parts(&own);
            let ties = ties::find(&self.steps, &found, &part_of);
            let mut divided = Divided { part_of, ties, counts: found.counts.clone(), ..Divided::default() };
            self.count(&found, &mut divided);
            let several = own.iter().filter(|own| !**own).count() > 1;
            let contradiction = several
                .then(|| first_contradiction(&self.steps, &divided.part_of, &divided.orders, |l| stays(l as usize)))
                .flatten();
            let Some((step, before)) = contradiction else {
                divided.bound = bound;
                divided.operations = self.operations_of(orders);
                return divided;
            };
            [step, before].map(location).into_iter().filter(|&l| !stays(l)).for_each(|l| own[l] = true);
        }
    }

    /// The orders of operations that several of so many `locations` share, and which locations have to stay together as there is none. Where clocks of these are known to differ, what is
    /// certain in any order takes its place.
    fn orders_of_operations(
        &self,
        locations: usize,
        operations: &SharedOperations,
        found: &StepOrders<'_>,
    ) -> (OperationOrders, Vec<bool>) {
        let mut orders = operations.orders(&self.steps, found);
        let bound = operations.bound(locations, &orders);
        let stays =
            |step: usize| matches!(self.steps.location(step), location if location == 0 || bound[location as usize]);
        let time = |step: usize| self.steps.time(step);
        let differ = bound.contains(&true)
            && (found.pairs.iter().any(|pair| time(pair.from) > time(pair.to) && stays(pair.from) && stays(pair.to))
                || found.barriers.iter().any(|barrier| {
                    let latest = barrier.iter().map(|at| at.0).filter(|&step| stays(step)).map(time).max();
                    let earliest = barrier.iter().map(|at| at.1).filter(|&step| stays(step)).map(time).min();
                    latest > earliest
                }));
        if !differ {
            return (orders, bound);
        }
        let certain = operations.certain(&self.steps, found, &orders);
        orders.extend(certain);
        let bound = operations.bound(locations, &orders);
        (orders, bound)
    }

    /// Where the steps of `orders` are.
    fn operations_of(&self, orders: OperationOrders) -> Vec<(Shared, Vec<OperationBegin>)> {
        let place = |OrderedBegin { step, accessed, ended, certain }: OrderedBegin| {
            let [begun, ended] = [step, ended].map(|step| self.steps.at(step));
            let ended = (ended.location, ended.number);
            OperationBegin { location: begun.location, number: begun.number, accessed, ended, certain }
        };
        orders.into_iter().map(|(on, steps)| (on, steps.into_iter().map(place).collect())).collect()
    }

    /// What the threads do together, whatever clocks they have. The main location of the process is the one with number 0.
    pub fn constructs(&self) -> ThreadConstructs {
        let StepOrders { pairs, barriers, mut regions, workers, .. } = self.find(StepOrders::default());
        let locks = pairs.into_iter().filter(|pair| pair.kind == Trust::Locked).map(|pair| (pair.from, pair.to));
        regions.sort_unstable_by_key(|region| region.fork);
        let mut joined = None;
        regions.retain(|region| {
            let outermost = joined.is_none_or(|joined| region.fork > joined);
            joined = if outermost { Some(region.join) } else { joined };
            outermost
        });
        ThreadConstructs { barriers, locks: locks.collect(), regions, workers: workers.len() as u32 }
    }

    /// What steps wait for, whatever clocks their locations have: kind, the step that is waited for, and the one that waits. Who leaves a barrier waits for the last of the others that
    /// entered it; of several at one time, for that of the location with the lowest number.
    pub fn waits(&self) -> Vec<(Trust, EventCoordinates, EventCoordinates)> {
        let found = self.find(StepOrders::default());
        let at = |step: usize| self.steps.at(step);
        let mut waits: Vec<_> = found.pairs.iter().map(|pair| (pair.kind, at(pair.from), at(pair.to))).collect();
        for barrier in found.barriers.iter() {
            let mut arrivals: Vec<EventCoordinates> = barrier.iter().map(|&(arrival, _)| at(arrival)).collect();
            arrivals.sort_unstable_by_key(|at| (Reverse(at.time), at.location, at.number));
            for &(_, departure) in barrier {
                let to = at(departure);
                let last = arrivals.iter().find(|arrival| arrival.location != to.location);
                waits.extend(last.map(|&from| (Trust::Barrier, from, to)));
            }
        }
        waits
    }

    /// Counts the pairs within timelines, and keeps those between timelines.
    fn count(&self, found: &StepOrders<'_>, divided: &mut Divided) {
        let part_of = self.parts_of_steps(&divided.part_of);
        let part = |step: usize| part_of[step];
        let ties = std::mem::take(&mut divided.ties);
        let place = |step: usize| {
            let at = self.steps.at(step);
            (at.time, layer_of(&ties, at.location, at.number, at.time), at.location, at.number)
        };
        let mut orders: Vec<OrderedSteps> = Vec::new();
        for pair in &found.pairs {
            if part(pair.from) != part(pair.to) {
                orders.push(*pair);
            } else if self.steps.time(pair.from) <= self.steps.time(pair.to) {
                divided.counts.of(pair.kind).shared += 1;
            } else {
                divided.counts.leave_out(pair.kind, Unpaired::Bound, 1);
            }
        }
        // What the first of several in one timeline waits for, all wait for; and who waits for the last of several, waits for all.
        let waiting = |pair: &OrderedSteps| (pair.kind, pair.from, part(pair.to));
        orders.sort_unstable_by(|a, b| waiting(a).cmp(&waiting(b)).then_with(|| place(a.to).cmp(&place(b.to))));
        orders.dedup_by_key(|pair| waiting(pair));
        let waited_for = |pair: &OrderedSteps| (pair.kind, part(pair.from), pair.to);
        orders
            .sort_unstable_by(|a, b| waited_for(a).cmp(&waited_for(b)).then_with(|| place(b.from).cmp(&place(a.from))));
        orders.dedup_by_key(|pair| waited_for(pair));
        let mut arrivals: Vec<(u32, usize)> = Vec::new();
        let mut departures: Vec<(u32, usize)> = Vec::new();
        for barrier in found.barriers.iter() {
            // Of a timeline the last arrival and the first departure say it all.
            arrivals.clear();
            arrivals.extend(barrier.iter().map(|&(step, _)| (part(step), step)));
            arrivals.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| place(b.1).cmp(&place(a.1))));
            arrivals.dedup_by_key(|&mut (part, _)| part);
            departures.clear();
            departures.extend(barrier.iter().map(|&(_, step)| (part(step), step)));
            departures.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| place(a.1).cmp(&place(b.1))));
            departures.dedup_by_key(|&mut (part, _)| part);
            for &(from_part, from) in &arrivals {
                for &(to_part, to) in &departures {
                    if from_part != to_part {
                        orders.push(OrderedSteps { kind: Trust::Barrier, from, to });
                    } else if from_part == 0 && barrier.len() > arrivals.len() {
                        // Several threads of the process share this timeline.
                        if self.steps.time(from) <= self.steps.time(to) {
                            divided.counts.of(Trust::Barrier).shared += 1;
                        } else {
                            divided.counts.leave_out(Trust::Barrier, Unpaired::Bound, 1);
                        }
                    }
                }
            }
        }
        divided.orders = orders;
        divided.ties = ties;
        for pair in &divided.orders {
            divided.counts.of(pair.kind).apart += 1;
        }
        for pair in &divided.orders {
            let (from, to) = (self.steps.at(pair.from), self.steps.at(pair.to));
            // By how much the location with a clock of its own has to be put forward against the timeline of the process.
            if part(pair.from) == 0 {
                let bounds = divided.bounds.entry(to.location).or_default();
                bounds.least.push((to.raw, from.time.saturating_sub(to.time)));
            } else if part(pair.to) == 0 {
                let bounds = divided.bounds.entry(from.location).or_default();
                bounds.most.push((from.raw, to.time.saturating_sub(from.time)));
            }
        }
    }

    /// Gives the steps of a location the times that belong to their recorded ones.
    pub fn map(&mut self, location: u32, time: impl Fn(i64) -> i64) {
        self.steps.map(location, time);
    }

    /// The steps that have to be visited, ascending, each with where it was.
    pub fn places(&self, divided: &Divided) -> impl Iterator<Item = (usize, EventCoordinates)> {
        let mut is_needed = vec![false; self.steps.count()];
        divided.orders.iter().flat_map(|pair| [pair.from, pair.to]).for_each(|step| is_needed[step] = true);
        divided.ties.iter().for_each(|tie| is_needed[tie.step] = true);
        let needed = is_needed.into_iter().enumerate().filter(|&(_, needed)| needed);
        needed.map(|(step, _)| (step, self.steps.at(step)))
    }

    /// The orders between timelines; `event_of` has each step of [`ProcessThreadSteps::places`] with its visited event, in any order.
    pub fn orders(&self, divided: &Divided, event_of: &[(usize, u32)]) -> Vec<ThreadOrder> {
        let mut events = vec![None; self.steps.count()];
        event_of.iter().for_each(|&(step, event)| events[step] = Some(event));
        let orders = divided.orders.iter();
        orders.filter_map(|pair| Some((pair.kind, events[pair.from]?, events[pair.to]?))).collect()
    }

    /// Of each step the timeline that its location is in.
    fn parts_of_steps(&self, part_of: &[u32]) -> Vec<u32> {
        let mut parts = vec![0; self.steps.count()];
        for (location, steps) in self.steps.by_location() {
            parts[steps].fill(part_of[location as usize]);
        }
        parts
    }
}

impl ProcessThreadSteps<'_> {
    /// Adds all pairs to `found`.
    fn find<'a>(&self, mut found: StepOrders<'a>) -> StepOrders<'a> {
        teams::find(&self.steps, &mut found);
        self.locks(&mut found);
        self.starts(&mut found);
        if let Some(accelerators) = &self.accelerators {
            accelerators.find(&mut found);
        }
        found
    }

    fn locks(&self, found: &mut StepOrders<'_>) {
        // By lock and order: the acquisition, and the last release.
        let mut held: BTreeMap<ThreadLock, (Option<usize>, Option<usize>)> = BTreeMap::new();
        for (step, event) in self.steps.others() {
            match event {
                ThreadEvent::AcquireLock(lock) => held.entry(*lock).or_default().0 = Some(*step),
                ThreadEvent::ReleaseLock(lock) => held.entry(*lock).or_default().1 = Some(*step),
                _ => {}
            }
        }
        let mut before: Option<(ThreadLock, Option<usize>)> = None;
        for (lock, (acquired, released)) in held {
            if let Some((other, from)) = before
                && (other.model, other.lock) == (lock.model, lock.lock)
            {
                match from.zip(acquired) {
                    Some((from, to)) => self.pair(Trust::Locked, from, to, found),
                    None => found.counts.of(Trust::Locked).left_out += 1,
                }
            }
            before = Some((lock, released));
        }
    }

    /// Threads that are created, and tasks.
    fn starts(&self, found: &mut StepOrders<'_>) {
        let mut threads: BTreeMap<_, [Vec<usize>; 4]> = BTreeMap::new();
        let mut tasks: BTreeMap<_, (Vec<usize>, BTreeMap<u32, usize>)> = BTreeMap::new();
        for &(step, ref event) in self.steps.others() {
            match event {
                ThreadEvent::Create(start) => threads.entry(*start).or_default()[0].push(step),
                ThreadEvent::Begin(start) => threads.entry(*start).or_default()[1].push(step),
                ThreadEvent::End(start) => threads.entry(*start).or_default()[2].push(step),
                ThreadEvent::Wait(start) => threads.entry(*start).or_default()[3].push(step),
                ThreadEvent::TaskCreate(task) => tasks.entry(*task).or_default().0.push(step),
                ThreadEvent::TaskSwitch(task) => {
                    let location = self.steps.location(step);
                    tasks.entry(*task).or_default().1.entry(location).or_insert(step);
                }
                _ => {}
            }
        }
        for steps in threads.into_values() {
            for (from, to) in [(0, 1), (2, 3)] {
                match (&steps[from][..], &steps[to][..]) {
                    ([from], [to]) => self.pair(Trust::Created, *from, *to, found),
                    // Nobody waits for a thread that is detached.
                    ([_], []) if to == 3 => {}
                    (from, to) => found.counts.of(Trust::Created).left_out += (from.len() + to.len()) as u64,
                }
            }
        }
        for (created, switches) in tasks.into_values() {
            match created[..] {
                // Implicit tasks are created by nobody.
                [] => {}
                [from] => switches.into_values().for_each(|to| self.pair(Trust::Tasked, from, to, found)),
                _ => found.counts.of(Trust::Tasked).left_out += created.len() as u64,
            }
        }
    }

    /// A pair, if it is not of one thread, which has an order anyway.
    fn pair(&self, kind: Trust, from: usize, to: usize, found: &mut StepOrders<'_>) {
        if self.steps.location(from) != self.steps.location(to) {
            found.pair(kind, from, to);
        }
    }
}
