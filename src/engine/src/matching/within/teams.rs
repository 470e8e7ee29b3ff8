//! Teams of threads: which thread was in which instance of a team, and which barriers are the same.
//!
//! The main thread of a team is the one whose begin directly follows its fork; its k-th one is the k-th instance. Another thread is in all of them, or in those
//! of at least so many threads as makes their number right.

use crate::matching::channels::Trust;
use crate::matching::within::steps::{ParallelRegion, StepOrders, Steps, What};
use clc_trace::{CommId, RegionId};
use std::collections::BTreeMap;

/// What a location does in an instance of a team.
#[derive(Debug)]
struct TeamPart {
    begin: usize,
    end: Option<usize>,
    /// Its barriers are those of the list before this one that are not of memberships before it.
    barriers: usize,
}

/// A fork, with the number of threads.
#[derive(Debug)]
struct Fork {
    step: usize,
    threads: u32,
    join: Option<usize>,
}

/// What a location does in a team.
#[derive(Debug)]
struct Memberships {
    location: u32,
    list: Vec<TeamPart>,
    /// Those forks that its memberships directly follow.
    forks: Vec<Fork>,
    /// Arrivals and departures.
    barriers: Vec<(usize, usize)>,
}

impl Memberships {
    fn new(location: u32) -> Self {
        Memberships { location, list: Vec::new(), forks: Vec::new(), barriers: Vec::new() }
    }

    fn barriers(&self, place: usize) -> &[(usize, usize)] {
        let begin = place.checked_sub(1).map_or(0, |before| self.list[before].barriers);
        &self.barriers[begin..self.list[place].barriers]
    }

    fn add_barrier(&mut self, place: usize, steps: (usize, usize)) {
        // The last one nearly always: else a team is within itself.
        self.barriers.insert(self.list[place].barriers, steps);
        self.list[place..].iter_mut().for_each(|membership| membership.barriers += 1);
    }
}

/// All teams of a process.
#[derive(Debug, Default)]
struct Teams {
    /// The memberships of each, by location in ascending order.
    lists: Vec<Vec<Memberships>>,
    numbers: BTreeMap<CommId, usize>,
    /// The last one that was asked for.
    last: Option<(CommId, usize)>,
}

impl Teams {
    /// What the location that is being read does in a team.
    #[inline]
    fn of(&mut self, team: CommId, location: u32) -> (usize, &mut Memberships) {
        let number = match self.last {
            Some((last, number)) if last == team => number,
            _ => {
                let lists = &mut self.lists;
                let number = *self.numbers.entry(team).or_insert_with(|| {
                    lists.push(Vec::new());
                    lists.len() - 1
                });
                self.last = Some((team, number));
                number
            }
        };
        let lists = &mut self.lists[number];
        if lists.last().is_none_or(|last| last.location != location) {
            lists.push(Memberships::new(location));
        }
        let last = lists.len() - 1;
        (number, &mut lists[last])
    }

    /// What the location that is being read does in a team where it has done something.
    #[inline]
    fn known(&mut self, number: usize) -> Option<&mut Memberships> {
        self.lists[number].last_mut()
    }
}

/// A fork that has not been joined: its step, its number of threads, and the number of the team and the place among its forks if a membership has followed it.
type UnjoinedFork = (usize, u32, Option<(usize, usize)>);

/// What is open at a location.
#[derive(Debug, Default)]
struct OpenConstructs {
    forks: Vec<UnjoinedFork>,
    /// The last step was a fork.
    forked: bool,
    /// Teams with their numbers, and the places of the memberships.
    teams: Vec<(CommId, usize, usize)>,
    /// The arrival at a barrier, and how deep in others.
    barrier: Option<(RegionId, usize, u32)>,
}

/// Finds what all locations do in their teams.
pub(super) fn find(steps: &Steps, found: &mut StepOrders<'_>) {
    let mut teams = Teams::default();
    for (location, of) in steps.by_location() {
        let mut open = OpenConstructs::default();
        for (step, what) in steps.what(of) {
            if matches!(what, What::Accelerator | What::Operation) {
                continue;
            }
            let forked = std::mem::take(&mut open.forked);
            match what {
                What::Fork(threads) => {
                    open.forks.push((step, threads, None));
                    open.forked = true;
                }
                What::Join => match open.forks.pop() {
                    Some((_, _, Some((team, place)))) => {
                        if let Some(list) = teams.known(team) {
                            list.forks[place].join = Some(step);
                        }
                    }
                    _ => found.counts.of(Trust::Forked).left_out += 1,
                },
                What::TeamBegin(team) => {
                    let (number, memberships) = teams.of(team, location);
                    if let Some((fork, threads, place)) = open.forks.last_mut().filter(|_| forked) {
                        *place = Some((number, memberships.forks.len()));
                        memberships.forks.push(Fork { step: *fork, threads: *threads, join: None });
                    }
                    open.teams.push((team, number, memberships.list.len()));
                    let barriers = memberships.barriers.len();
                    memberships.list.push(TeamPart { begin: step, end: None, barriers });
                }
                What::TeamEnd(team) => {
                    let place = open.teams.iter().rposition(|(other, ..)| *other == team);
                    match place.map(|place| open.teams.remove(place)) {
                        Some((_, number, place)) => {
                            if let Some(memberships) = teams.known(number) {
                                memberships.list[place].end = Some(step);
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
                        let team = open.teams.last().copied();
                        match team.and_then(|(_, number, place)| Some((teams.known(number)?, place))) {
                            Some((memberships, place)) => memberships.add_barrier(place, (arrival, step)),
                            None => found.counts.of(Trust::Barrier).left_out += 1,
                        }
                    }
                    None => {}
                },
                What::Other | What::Accelerator | What::Operation | What::Access => {}
            }
        }
    }
    for &number in teams.numbers.values() {
        instances(&teams.lists[number], found);
    }
}

/// Puts the memberships of a team together: the k-th instance is the k-th fork of the one location that forks it.
fn instances(team: &[Memberships], found: &mut StepOrders<'_>) {
    let forks = |memberships: &Memberships| memberships.forks.len() == memberships.list.len();
    let masters: Vec<usize> = (0..team.len()).filter(|&place| forks(&team[place])).collect();
    let alone = |master: usize| (0..team.len()).all(|place| place == master || team[place].forks.is_empty());
    let master = match masters[..] {
        [master] if alone(master) => master,
        _ => {
            let all = team.iter().map(|memberships| memberships.list.len() as u64);
            found.counts.of(Trust::Forked).left_out += all.sum::<u64>();
            return;
        }
    };
    let others: Vec<&Memberships> =
        (0..team.len()).filter(|&place| place != master).map(|place| &team[place]).collect();
    let master = &team[master];
    // So many instances have at least so many threads.
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    master.forks.iter().for_each(|fork| *sizes.entry(fork.threads).or_default() += 1);
    let mut sum = 0;
    sizes.values_mut().rev().for_each(|count| {
        sum += *count;
        *count = sum;
    });
    let mut whole = true;
    // The other threads, with the least number of threads of the instances that they are in, and with how many of them have been seen.
    let mut members: Vec<(&Memberships, u32, usize)> = Vec::new();
    for &memberships in &others {
        let count = memberships.list.len();
        // A thread is in all instances, or in those of more threads than its number.
        let least = match count == master.forks.len() {
            true => Some(0),
            false => sizes.iter().find(|&(_, &instances)| instances == count).map(|(&threads, _)| threads),
        };
        match least {
            Some(least) => members.push((memberships, least, 0)),
            None => {
                found.counts.of(Trust::Forked).left_out += count as u64;
                // Nobody knows in which of them it was.
                whole = false;
            }
        }
    }
    if master.location == 0 {
        found.workers.extend(others.iter().map(|memberships| memberships.location));
    }
    let mut barriers: Vec<&[(usize, usize)]> = Vec::new();
    for (place, fork) in master.forks.iter().enumerate() {
        barriers.clear();
        for (memberships, _, next) in members.iter_mut().filter(|(_, least, _)| fork.threads >= *least) {
            let TeamPart { begin, end, .. } = memberships.list[*next];
            found.pair(Trust::Forked, fork.step, begin);
            if let (Some(from), Some(to)) = (end, fork.join) {
                found.pair(Trust::Forked, from, to);
            }
            barriers.push(memberships.barriers(*next));
            *next += 1;
        }
        let others = barriers.len() as u32;
        if let Some(join) = fork.join.filter(|_| whole && master.location == 0) {
            found.regions.push(ParallelRegion { fork: fork.step, join, others });
        }
        barriers.push(master.barriers(place));
        let count = master.barriers(place).len();
        if !whole || barriers.iter().any(|own| own.len() != count) {
            found.counts.of(Trust::Barrier).left_out += barriers.iter().map(|own| own.len() as u64).sum::<u64>();
        } else if others > 0 {
            (0..count).for_each(|k| found.barrier(barriers.iter().map(|own| own[k])));
        }
    }
}
