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
//! What it does with the streams of accelerators is added by [`crate::matching::accelerators`].
//!
//! All of them are between threads of one process, which share a clock. So they need no replay, unless one of them is violated as recorded: then
//! the clocks differ, which is found out here ([`ProcessThreadSteps::divide`]).

use crate::matching::accelerators::ProcessAccelerators;
use crate::matching::channels::Trust;
use crate::matching::steps::{Barrier, OrderedSteps, StepOrders, ThreadCounts};
pub use crate::matching::steps::{ParallelRegion, ThreadConstructs};
use crate::matching::sync::EventCoordinates;
use clc_trace::{AttributeId, CommId, Event, EventNumber, LocationId, RegionId, ThreadEvent, ThreadLock};
use std::collections::BTreeMap;

/// One step of a thread.
#[derive(Debug, Clone, Copy)]
struct ThreadStep {
    at: EventCoordinates,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// What the process does with an accelerator, or a stream of one.
    Accelerator,
    Thread(ThreadEvent),
    Arrive(RegionId),
    Depart,
}

/// The steps of all threads of a process.
#[derive(Debug)]
pub struct ProcessThreadSteps<'a> {
    /// Ascending.
    barriers: &'a [RegionId],
    /// Location after location, each in its order.
    steps: Vec<ThreadStep>,
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
    /// Orders between timelines, as steps; in ascending order.
    orders: Vec<OrderedSteps>,
    /// What was found.
    pub counts: ThreadCounts,
    /// By location with a timeline of its own: how far its clock has to be put forward, so that it agrees with the process.
    pub bounds: BTreeMap<u32, AheadBounds>,
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
        ProcessThreadSteps { barriers, steps: Vec::new(), accelerators }
    }

    /// The attributes by which calls name the streams of accelerators, ascending; `None` if the process has no streams.
    pub fn stream_references(&self) -> Option<&'a [AttributeId]> {
        self.accelerators.as_ref().map(ProcessAccelerators::references)
    }

    /// Whether an event of a location matters to accelerators.
    #[inline]
    pub fn takes_of_accelerators(&self, location: u32, event: &Event) -> bool {
        self.accelerators.as_ref().is_some_and(|accelerators| accelerators.takes(location, event))
    }

    /// Reads such an event, with the stream that it names; those of a location come in their order, one location after the other.
    pub fn add_of_accelerators(&mut self, at: EventCoordinates, event: &Event, stream: Option<LocationId>) {
        let Self { steps, accelerators, .. } = self;
        if let Some(accelerators) = accelerators {
            accelerators.read(at, event, stream, || {
                steps.push(ThreadStep { at, what: What::Accelerator });
                steps.len() - 1
            });
        }
    }

    /// Whether an event is a step.
    #[inline]
    pub fn takes(&self, event: &Event) -> bool {
        match event {
            Event::Thread(_) => true,
            Event::Enter(region) | Event::Leave(region) => self.barriers.binary_search(region).is_ok(),
            _ => false,
        }
    }

    /// Adds a step; those of a location come in their order, one location after the other.
    pub fn add(&mut self, at: EventCoordinates, event: &Event) {
        let what = match event {
            Event::Thread(step) => What::Thread(*step),
            Event::Enter(region) => What::Arrive(*region),
            Event::Leave(_) => What::Depart,
            _ => return,
        };
        self.steps.push(ThreadStep { at, what });
    }

    /// Finds the pairs, and which locations cannot have the clock of the others: those of the `locations` that are `apart` anyway, and those of violated
    /// pairs. Location 0 and those that are `bound` to it stay in the timeline of the process.
    pub fn divide(&self, apart: &[bool], bound: &[bool]) -> Divided {
        let mut found = self.find();
        let mut own: Vec<bool> = apart.to_vec();
        let location = |step: usize| self.steps[step].at.location as usize;
        let time = |step: usize| self.steps[step].at.time;
        let stays = |location: usize| location == 0 || bound[location];
        (0..own.len()).filter(|&l| stays(l)).for_each(|l| own[l] = false);
        // Mostly all is in order, and there is nothing else to find out.
        if !own.contains(&true) && self.in_order(&found) {
            self.count_shared(&mut found);
            return Divided { part_of: vec![0; own.len()], counts: found.counts, ..Divided::default() };
        }
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
            for barrier in &found.barriers {
                let shared = |steps: &[usize]| -> Vec<usize> { steps.iter().copied().filter(|&s| shared(s)).collect() };
                let (arrivals, departures) = (shared(&barrier.arrivals), shared(&barrier.departures));
                let latest = arrivals.iter().filter(|&&s| fixed(s)).map(|&s| time(s)).max();
                let earliest = departures.iter().filter(|&&s| fixed(s)).map(|&s| time(s)).min();
                let late = arrivals.into_iter().filter(|&s| earliest.is_some_and(|earliest| time(s) > earliest));
                let early = departures.into_iter().filter(|&s| latest.is_some_and(|latest| time(s) < latest));
                late.chain(early).map(location).filter(|&l| !stays(l)).for_each(|l| own[l] = true);
            }
        }
        let mut parts = 0;
        let part_of: Vec<u32> = own
            .iter()
            .map(|&own| {
                parts += u32::from(own);
                if own { parts } else { 0 }
            })
            .collect();
        let mut divided = Divided { part_of, ..Divided::default() };
        self.count(&mut found, &mut divided);
        divided.counts = found.counts;
        divided
    }

    /// What the threads do together, whatever clocks they have. The main location of the process is the one with number 0.
    pub fn constructs(&self) -> ThreadConstructs {
        let StepOrders { pairs, barriers, mut regions, workers, .. } = self.find();
        let locks = pairs.into_iter().filter(|pair| pair.kind == Trust::Locked).map(|pair| (pair.from, pair.to));
        regions.sort_unstable_by_key(|region| region.fork);
        let mut joined = None;
        regions.retain(|region| {
            let outermost = joined.is_none_or(|joined| region.fork > joined);
            joined = if outermost { Some(region.join) } else { joined };
            outermost
        });
        ThreadConstructs {
            barriers: barriers.into_iter().map(|of| of.arrivals.into_iter().zip(of.departures).collect()).collect(),
            locks: locks.collect(),
            regions,
            workers: workers.len() as u32,
        }
    }

    /// Whether no pair and no barrier is violated by the times as they are.
    fn in_order(&self, found: &StepOrders) -> bool {
        let time = |&step: &usize| self.steps[step].at.time;
        let in_order = |barrier: &Barrier| {
            let latest = barrier.arrivals.iter().map(time).max();
            latest.zip(barrier.departures.iter().map(time).min()).is_none_or(|(latest, earliest)| latest <= earliest)
        };
        found.pairs.iter().all(|pair| time(&pair.from) <= time(&pair.to)) && found.barriers.iter().all(in_order)
    }

    /// As [`ProcessThreadSteps::count`], where all is in order and all locations share a timeline.
    fn count_shared(&self, found: &mut StepOrders) {
        for pair in &found.pairs {
            found.counts.of(pair.kind).shared += 1;
        }
        let barriers =
            found.barriers.iter().filter(|barrier| barrier.arrivals.len() > 1 && !barrier.departures.is_empty());
        let shared = barriers.count() as u64;
        if shared > 0 {
            found.counts.of(Trust::Barrier).shared += shared;
        }
    }

    /// Counts the pairs within timelines, and keeps those between timelines.
    fn count(&self, found: &mut StepOrders, divided: &mut Divided) {
        let part = |divided: &Divided, step: usize| divided.part_of[self.steps[step].at.location as usize];
        let place = |step: usize| {
            let at = &self.steps[step].at;
            (at.time, at.location, at.number)
        };
        for pair in &found.pairs {
            let (from, to) = (part(divided, pair.from), part(divided, pair.to));
            if from != to {
                divided.orders.push(*pair);
            } else if self.steps[pair.from].at.time <= self.steps[pair.to].at.time {
                found.counts.of(pair.kind).shared += 1;
            } else {
                found.counts.of(pair.kind).left_out += 1;
            }
        }
        for barrier in &found.barriers {
            // Of a timeline the last arrival and the first departure say it all.
            let mut arrivals: BTreeMap<u32, usize> = BTreeMap::new();
            for &step in &barrier.arrivals {
                let last = arrivals.entry(part(divided, step)).or_insert(step);
                *last = if place(step) > place(*last) { step } else { *last };
            }
            let mut departures: BTreeMap<u32, usize> = BTreeMap::new();
            for &step in &barrier.departures {
                let first = departures.entry(part(divided, step)).or_insert(step);
                *first = if place(step) < place(*first) { step } else { *first };
            }
            for (&from_part, &from) in &arrivals {
                for (&to_part, &to) in &departures {
                    if from_part != to_part {
                        divided.orders.push(OrderedSteps { kind: Trust::Barrier, from, to });
                    } else if from_part == 0 && barrier.arrivals.len() > arrivals.len() {
                        // Several threads of the process share this timeline.
                        let within = self.steps[from].at.time <= self.steps[to].at.time;
                        let count = found.counts.of(Trust::Barrier);
                        *(if within { &mut count.shared } else { &mut count.left_out }) += 1;
                    }
                }
            }
        }
        // What the first of several in one timeline waits for, all wait for; and who waits for the last of several, waits for all.
        let mut first: BTreeMap<(Trust, usize, u32), usize> = BTreeMap::new();
        for pair in &divided.orders {
            let to = first.entry((pair.kind, pair.from, part(divided, pair.to))).or_insert(pair.to);
            *to = if place(pair.to) < place(*to) { pair.to } else { *to };
        }
        let mut last: BTreeMap<(Trust, u32, usize), usize> = BTreeMap::new();
        for ((kind, from, _), to) in first {
            let known = last.entry((kind, part(divided, from), to)).or_insert(from);
            *known = if place(from) > place(*known) { from } else { *known };
        }
        divided.orders = last.into_iter().map(|((kind, _, to), from)| OrderedSteps { kind, from, to }).collect();
        divided.orders.sort_unstable();
        for pair in &divided.orders {
            found.counts.of(pair.kind).apart += 1;
        }
        for pair in &divided.orders {
            let (from, to) = (&self.steps[pair.from].at, &self.steps[pair.to].at);
            // By how much the location with a clock of its own has to be put forward against the timeline of the process.
            if part(divided, pair.from) == 0 {
                let bounds = divided.bounds.entry(to.location).or_default();
                bounds.least.push((to.raw, from.time.saturating_sub(to.time)));
            } else if part(divided, pair.to) == 0 {
                let bounds = divided.bounds.entry(from.location).or_default();
                bounds.most.push((from.raw, to.time.saturating_sub(from.time)));
            }
        }
    }

    /// Gives the steps of a location the times that belong to their recorded ones.
    pub fn map(&mut self, location: u32, time: impl Fn(i64) -> i64) {
        for step in self.steps.iter_mut().filter(|step| step.at.location == location) {
            step.at.time = time(step.at.raw);
        }
    }

    /// The steps that have to be visited, by their places, ascending.
    pub fn places(&self, divided: &Divided) -> Vec<EventCoordinates> {
        let mut steps: Vec<usize> = divided.orders.iter().flat_map(|pair| [pair.from, pair.to]).collect();
        steps.sort_unstable();
        steps.dedup();
        steps.into_iter().map(|step| self.steps[step].at).collect()
    }

    /// The orders between timelines; `event_of` has the visited event of each step by location and number.
    pub fn orders(&self, divided: &Divided, event_of: &BTreeMap<(u32, EventNumber), u32>) -> Vec<ThreadOrder> {
        let event = |step: usize| {
            let at = &self.steps[step].at;
            event_of.get(&(at.location, at.number)).copied()
        };
        divided.orders.iter().filter_map(|pair| Some((pair.kind, event(pair.from)?, event(pair.to)?))).collect()
    }
}

/// What a location does in an instance of a team.
#[derive(Debug)]
struct TeamMembership {
    begin: usize,
    end: Option<usize>,
    /// The fork that it has made, with the number of threads.
    fork: Option<(usize, u32)>,
    join: Option<usize>,
    /// Arrival and departure at each barrier.
    barriers: Vec<(usize, usize)>,
}

/// What is open at a location.
#[derive(Debug, Default)]
struct OpenConstructs {
    /// Forks, with the place of the membership that has followed.
    forks: Vec<(usize, u32, Option<usize>)>,
    /// The last step was a fork.
    forked: bool,
    /// Teams, with the places of the memberships.
    teams: Vec<(CommId, usize)>,
    /// The arrival at a barrier, and how deep in others.
    barrier: Option<(RegionId, usize, u32)>,
}

/// The memberships of one team, by location.
type Team = BTreeMap<u32, Vec<TeamMembership>>;

impl ProcessThreadSteps<'_> {
    fn find(&self) -> StepOrders {
        let mut found = StepOrders::default();
        self.teams(&mut found);
        self.locks(&mut found);
        self.starts(&mut found);
        if let Some(accelerators) = &self.accelerators {
            accelerators.find(&mut found);
        }
        found
    }

    /// What all locations do in their teams.
    fn teams(&self, found: &mut StepOrders) {
        let mut teams: BTreeMap<CommId, Team> = BTreeMap::new();
        let mut location = None;
        let mut open = OpenConstructs::default();
        for (step, ThreadStep { at, what }) in self.steps.iter().enumerate() {
            if matches!(what, What::Accelerator) {
                continue;
            }
            if location.replace(at.location) != Some(at.location) {
                open = OpenConstructs::default();
            }
            let forked = std::mem::take(&mut open.forked);
            match *what {
                What::Thread(ThreadEvent::Fork { threads, .. }) => {
                    open.forks.push((step, threads, None));
                    open.forked = true;
                }
                What::Thread(ThreadEvent::Join { .. }) => match open.forks.pop() {
                    Some((_, _, Some(place))) => {
                        let team = open_team(&mut teams, at.location, place);
                        if let Some(membership) = team {
                            membership.join = Some(step);
                        }
                    }
                    _ => found.counts.of(Trust::Forked).left_out += 1,
                },
                What::Thread(ThreadEvent::TeamBegin(team)) => {
                    let list = teams.entry(team).or_default().entry(at.location).or_default();
                    let fork = match open.forks.last_mut().filter(|_| forked) {
                        Some((fork, threads, place)) => {
                            *place = Some(step);
                            Some((*fork, *threads))
                        }
                        None => None,
                    };
                    open.teams.push((team, list.len()));
                    list.push(TeamMembership { begin: step, end: None, fork, join: None, barriers: Vec::new() });
                }
                What::Thread(ThreadEvent::TeamEnd(team)) => {
                    let place = open.teams.iter().rposition(|(other, _)| *other == team);
                    match place.map(|place| open.teams.remove(place)) {
                        Some((_, place)) => {
                            let list = teams.get_mut(&team).and_then(|team| team.get_mut(&at.location));
                            if let Some(membership) = list.and_then(|list| list.get_mut(place)) {
                                membership.end = Some(step);
                            }
                        }
                        None => found.counts.of(Trust::Forked).left_out += 1,
                    }
                }
                What::Arrive(region) => match &mut open.barrier {
                    Some((_, _, depth)) => *depth += 1,
                    None => open.barrier = Some((region, step, 0)),
                },
                What::Depart => match open.barrier.take() {
                    Some((region, arrival, depth)) if depth > 0 => open.barrier = Some((region, arrival, depth - 1)),
                    Some((_, arrival, _)) => {
                        let membership = open
                            .teams
                            .last()
                            .and_then(|&(team, place)| teams.get_mut(&team)?.get_mut(&at.location)?.get_mut(place));
                        match membership {
                            Some(membership) => membership.barriers.push((arrival, step)),
                            None => found.counts.of(Trust::Barrier).left_out += 1,
                        }
                    }
                    None => {}
                },
                What::Thread(_) | What::Accelerator => {}
            }
        }
        let main = |step: usize| self.steps[step].at.location == 0;
        for team in teams.into_values() {
            instances(team, main, found);
        }
    }

    fn locks(&self, found: &mut StepOrders) {
        // By lock and order: the acquisition, and the last release.
        let mut held: BTreeMap<ThreadLock, (Option<usize>, Option<usize>)> = BTreeMap::new();
        for (step, ThreadStep { what, .. }) in self.steps.iter().enumerate() {
            match what {
                What::Thread(ThreadEvent::AcquireLock(lock)) => held.entry(*lock).or_default().0 = Some(step),
                What::Thread(ThreadEvent::ReleaseLock(lock)) => held.entry(*lock).or_default().1 = Some(step),
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
    fn starts(&self, found: &mut StepOrders) {
        let mut threads: BTreeMap<_, [Vec<usize>; 4]> = BTreeMap::new();
        let mut tasks: BTreeMap<_, (Vec<usize>, BTreeMap<u32, usize>)> = BTreeMap::new();
        for (step, ThreadStep { at, what }) in self.steps.iter().enumerate() {
            let What::Thread(event) = what else { continue };
            match event {
                ThreadEvent::Create(start) => threads.entry(*start).or_default()[0].push(step),
                ThreadEvent::Begin(start) => threads.entry(*start).or_default()[1].push(step),
                ThreadEvent::End(start) => threads.entry(*start).or_default()[2].push(step),
                ThreadEvent::Wait(start) => threads.entry(*start).or_default()[3].push(step),
                ThreadEvent::TaskCreate(task) => tasks.entry(*task).or_default().0.push(step),
                ThreadEvent::TaskSwitch(task) => {
                    tasks.entry(*task).or_default().1.entry(at.location).or_insert(step);
                }
                _ => {}
            }
        }
        for steps in threads.into_values() {
            for (from, to) in [(0, 1), (2, 3)] {
                match (&steps[from][..], &steps[to][..]) {
                    ([from], [to]) => self.pair(Trust::Created, *from, *to, found),
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
    fn pair(&self, kind: Trust, from: usize, to: usize, found: &mut StepOrders) {
        if self.steps[from].at.location != self.steps[to].at.location {
            found.pairs.push(OrderedSteps { kind, from, to });
        }
    }
}

/// The membership of a location that begins with step `begin`.
fn open_team(teams: &mut BTreeMap<CommId, Team>, location: u32, begin: usize) -> Option<&mut TeamMembership> {
    teams.values_mut().find_map(|team| {
        let list = team.get_mut(&location)?;
        let place = list.binary_search_by_key(&begin, |membership| membership.begin).ok()?;
        list.get_mut(place)
    })
}

/// Puts the memberships of a team together: the k-th instance is the k-th fork of the one location that forks it.
fn instances(mut team: Team, of_main: impl Fn(usize) -> bool, found: &mut StepOrders) {
    let forks = |list: &[TeamMembership]| list.iter().all(|membership| membership.fork.is_some());
    let masters: Vec<u32> = team.iter().filter(|(_, list)| forks(list)).map(|(&location, _)| location).collect();
    let all: usize = team.values().map(Vec::len).sum();
    let ([master], true) = (
        &masters[..],
        team.iter().all(|(location, list)| {
            masters.contains(location) || list.iter().all(|membership| membership.fork.is_none())
        }),
    ) else {
        found.counts.of(Trust::Forked).left_out += all as u64;
        return;
    };
    let Some(master) = team.remove(master) else { return };
    let sizes: Vec<u32> = master.iter().map(|membership| membership.fork.map_or(0, |(_, threads)| threads)).collect();
    // The members of each instance, beside the master.
    let mut members: Vec<Vec<&TeamMembership>> = sizes.iter().map(|_| Vec::new()).collect();
    let mut whole: Vec<bool> = vec![true; sizes.len()];
    for list in team.values() {
        let of = |least: u32| sizes.iter().filter(|&&size| size >= least).count();
        let mut leasts: Vec<u32> = sizes.clone();
        leasts.sort_unstable();
        leasts.dedup();
        // A thread is in all instances, or in those of more threads than its number.
        let least = if list.len() == sizes.len() { Some(0) } else { leasts.into_iter().find(|&s| of(s) == list.len()) };
        match least {
            Some(least) => {
                let places = (0..sizes.len()).filter(|&place| sizes[place] >= least);
                places.zip(list).for_each(|(place, membership)| members[place].push(membership));
            }
            None => {
                found.counts.of(Trust::Forked).left_out += list.len() as u64;
                // Nobody knows in which of them it was.
                whole.fill(false);
            }
        }
    }
    if master.first().is_some_and(|own| of_main(own.begin)) {
        found.workers.extend(team.keys());
        for ((own, members), _) in master.iter().zip(&members).zip(&whole).filter(|(_, whole)| **whole) {
            if let (Some((fork, _)), Some(join)) = (own.fork, own.join) {
                found.regions.push(ParallelRegion { fork, join, others: members.len() as u32 });
            }
        }
    }
    for ((own, members), whole) in master.iter().zip(&members).zip(whole) {
        for member in members {
            if let Some((from, _)) = own.fork {
                found.pairs.push(OrderedSteps { kind: Trust::Forked, from, to: member.begin });
            }
            if let (Some(from), Some(to)) = (member.end, own.join) {
                found.pairs.push(OrderedSteps { kind: Trust::Forked, from, to });
            }
        }
        let count = own.barriers.len();
        let all = || members.iter().copied().chain([own]);
        if !whole || all().any(|membership| membership.barriers.len() != count) {
            found.counts.of(Trust::Barrier).left_out += all().map(|m| m.barriers.len() as u64).sum::<u64>();
            continue;
        }
        if members.is_empty() {
            continue;
        }
        found.barriers.extend((0..count).map(|k| Barrier {
            arrivals: all().map(|membership| membership.barriers[k].0).collect(),
            departures: all().map(|membership| membership.barriers[k].1).collect(),
        }));
    }
}
