//! Analysis ranks as threads of one process: for tests with any number of ranks, and with one rank for runs without a launcher.
//!
//! A rank whose thread has panicked or dropped its transport is an error for those who wait for it, never a hang.

mod collective_rounds;
mod departures;
mod shared_world;

use crate::comm::backoff::Backoff;
use crate::comm::{AnalysisRank, Channel, Farewell, GroupId, MaxExcluding, ReduceOp, Transport};
use clc_trace::workers::Workers;
use clc_trace::{CommRank, Error, Result};
use collective_rounds::{CollectiveRounds, Operation, Payload, Round};
use shared_world::SharedWorld;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One rank of a world of threads.
#[derive(Debug)]
pub struct LocalTransport {
    rank: usize,
    size: usize,
    shared: Arc<SharedWorld>,
    world: LocalGroup,
    votes: LocalGroup,
    farewell: LocalGroup,
    groups: Vec<LocalGroup>,
    /// How many groups of one description this rank has made.
    made: HashMap<(Vec<usize>, u32), u64>,
    voting: bool,
    exchanges: u64,
    backoff: Backoff,
    workers: Workers,
}

/// This rank's view of a group.
#[derive(Debug)]
struct LocalGroup {
    rounds: Arc<CollectiveRounds>,
    /// This rank's rank in the group.
    rank: usize,
    /// Operations begun so far.
    round: u64,
}

impl LocalGroup {
    fn new(rounds: &Arc<CollectiveRounds>, rank: usize) -> LocalGroup {
        LocalGroup { rounds: rounds.clone(), rank, round: 0 }
    }

    fn begin(&mut self, operation: Operation, payload: Payload) -> Result<()> {
        self.round += 1;
        self.rounds.give(self.round, self.rank, operation, payload)
    }

    fn outcome<T>(&self, shared: &SharedWorld, take: impl FnOnce(&mut Round) -> T) -> Result<T> {
        let taken = self.rounds.take(&shared.departures, self.round, self.rank, Some(None), take)?;
        taken.ok_or_else(|| Error::new("an operation without a time limit ended without a result"))
    }

    fn run<T>(
        &mut self,
        shared: &SharedWorld,
        operation: Operation,
        payload: Payload,
        take: impl FnOnce(&mut Round) -> T,
    ) -> Result<T> {
        self.begin(operation, payload)?;
        self.outcome(shared, take)
    }
}

fn words(values: &[i64]) -> Payload {
    Payload::Words(values.into())
}

fn bytes(values: &[u8]) -> Payload {
    Payload::Bytes(values.into())
}

fn top_payload(top: MaxExcluding) -> Payload {
    words(&[top.max, top.holder, top.second])
}

fn top_of(words: &[i64]) -> MaxExcluding {
    match *words {
        [max, holder, second] => MaxExcluding { max, holder, second },
        _ => MaxExcluding::NONE,
    }
}

/// Element by element; as long as the shortest.
fn reduce(op: ReduceOp, round: &Round) -> Vec<i64> {
    let mut rows = round.given().map(Payload::words);
    let mut combined = rows.next().unwrap_or_default().to_vec();
    for row in rows {
        combined.truncate(row.len());
        for (sum, &value) in combined.iter_mut().zip(row) {
            *sum = match op {
                ReduceOp::Min => value.min(*sum),
                ReduceOp::Max => value.max(*sum),
                // As MPI does.
                ReduceOp::Sum => sum.wrapping_add(value),
            };
        }
    }
    combined
}

fn reduce_tops(round: &Round) -> Vec<i64> {
    let top = round.given().map(|payload| top_of(payload.words())).fold(MaxExcluding::NONE, MaxExcluding::merge);
    vec![top.max, top.holder, top.second]
}

fn all_bytes(round: &mut Round) -> Vec<Payload> {
    round.given().cloned().collect()
}

impl LocalTransport {
    /// With more ranks than this, they are far more than the cores of most machines. Chosen by hand: below it, a yield ends a wait sooner than a
    /// sleep does.
    const CROWD: usize = 256;

    /// A world of `size` ranks, one for each thread.
    pub fn world(size: usize) -> Vec<LocalTransport> {
        let shared = Arc::new(SharedWorld::new(size));
        let [world, votes, farewell] = [(); 3].map(|()| shared.collective_rounds((0..size).collect()));
        (0..size)
            .map(|rank| LocalTransport {
                rank,
                size,
                shared: shared.clone(),
                world: LocalGroup::new(&world, rank),
                votes: LocalGroup::new(&votes, rank),
                farewell: LocalGroup::new(&farewell, rank),
                groups: Vec::new(),
                made: HashMap::new(),
                voting: false,
                exchanges: 0,
                backoff: Backoff::default(),
                workers: Workers::ONE,
            })
            .collect()
    }

    /// The only rank of its world.
    pub fn alone() -> LocalTransport {
        let mut world = LocalTransport::world(1);
        world.swap_remove(0)
    }

    /// With threads for this rank's own work.
    pub fn with_workers(mut self, workers: Workers) -> LocalTransport {
        self.workers = workers;
        self
    }

    fn group(&mut self, group: GroupId) -> Result<(&mut LocalGroup, &SharedWorld)> {
        match self.groups.get_mut(group.0) {
            Some(group) => Ok((group, &self.shared)),
            None => Err(Error::new("unknown group of analysis ranks")),
        }
    }
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        self.shared.depart(self.rank, std::thread::panicking());
    }
}

impl Transport for LocalTransport {
    fn rank(&self) -> AnalysisRank {
        AnalysisRank::at(self.rank)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn library(&self) -> String {
        "none (one process)".to_owned()
    }

    fn workers(&self) -> Workers {
        self.workers
    }

    fn post(&mut self, destination: AnalysisRank, channel: Channel, words: Vec<u64>) -> Result<()> {
        self.shared.post(self.rank, destination.place(), channel, words)
    }

    fn poll(&mut self, channel: Channel) -> Result<Option<(AnalysisRank, Vec<u64>)>> {
        let message = self.shared.poll(self.rank, channel)?;
        if message.is_some() {
            self.backoff.success();
        }
        Ok(message.map(|(source, words)| (AnalysisRank::at(source), words)))
    }

    fn next_exchange(&mut self) -> u64 {
        self.exchanges += 1;
        self.exchanges
    }

    fn start_vote(&mut self, values: &[i64]) -> Result<()> {
        if self.voting {
            return Err(Error::new("a vote was started before the previous one had ended"));
        }
        self.votes.begin(Operation::AllReduce(ReduceOp::Sum), words(values))?;
        self.voting = true;
        Ok(())
    }

    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>> {
        if !self.voting {
            return Ok(None);
        }
        let votes = &self.votes;
        let take = |round: &mut Round| round.combined(|round| reduce(ReduceOp::Sum, round)).to_vec();
        let sums = votes.rounds.take(&self.shared.departures, votes.round, votes.rank, None, take)?;
        if sums.is_some() {
            self.voting = false;
            self.backoff.success();
        }
        Ok(sums)
    }

    fn idle(&mut self) {
        if self.size > Self::CROWD {
            // So many threads would only hand the processors to each other.
            std::thread::sleep(Duration::from_millis(2));
        } else {
            let _ = self.backoff.rest();
        }
    }

    fn barrier(&mut self) -> Result<()> {
        self.world.run(&self.shared, Operation::Barrier, words(&[]), |_| ())
    }

    fn all_reduce(&mut self, op: ReduceOp, values: &mut [i64]) -> Result<()> {
        let take = |round: &mut Round| round.combined(|round| reduce(op, round));
        let combined = self.world.run(&self.shared, Operation::AllReduce(op), words(values), take)?;
        if combined.len() != values.len() {
            return Err(Error::new("analysis ranks contribute different numbers of values"));
        }
        values.copy_from_slice(&combined);
        Ok(())
    }

    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let all = self.world.run(&self.shared, Operation::AllGather, bytes(own), all_bytes)?;
        Ok(all.iter().map(|payload| payload.bytes().to_vec()).collect())
    }

    fn gather(&mut self, root: AnalysisRank, own: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let (here, root) = (root == self.rank(), root.place());
        let take = |round: &mut Round| here.then(|| all_bytes(round));
        let all = self.world.run(&self.shared, Operation::Gather(root), bytes(own), take)?;
        Ok(all.map(|all| all.iter().map(|payload| payload.bytes().to_vec()).collect()))
    }

    fn broadcast(&mut self, root: AnalysisRank, own: Vec<u8>) -> Result<Vec<u8>> {
        let (here, root) = (root == self.rank(), root.place());
        let payload = bytes(if here { &own } else { &[] });
        let given =
            self.world.run(&self.shared, Operation::Broadcast(root), payload, |round| round.of(root).cloned())?;
        Ok(if here { own } else { given.map(|payload| payload.bytes().to_vec()).unwrap_or_default() })
    }

    fn create_group(&mut self, members: &[AnalysisRank], tag: u32) -> Result<GroupId> {
        let rank = crate::comm::place_in_group(members, self.rank(), self.size)?;
        let members: Vec<usize> = members.iter().map(|member| member.place()).collect();
        let occurrence = self.made.entry((members.clone(), tag)).or_default();
        *occurrence += 1;
        let rounds = self.shared.join(&members, tag, *occurrence);
        self.groups.push(LocalGroup::new(&rounds, rank));
        Ok(GroupId(self.groups.len() - 1))
    }

    fn send_time(&mut self, destination: AnalysisRank, words: [i64; 2]) -> Result<()> {
        self.shared.send_time(self.rank, destination.place(), words)
    }

    fn receive_time(&mut self, source: AnalysisRank) -> Result<[i64; 2]> {
        self.shared.receive_time(source.place(), self.rank)
    }

    fn group_bcast(&mut self, group: GroupId, root: CommRank, value: i64) -> Result<i64> {
        let (group, shared) = self.group(group)?;
        let take = |round: &mut Round| round.of(root.place()).and_then(|payload| payload.words().first().copied());
        let given = group.run(shared, Operation::Broadcast(root.place()), words(&[value]), take)?;
        given.ok_or_else(|| Error::new("the root of a broadcast contributed no data"))
    }

    fn group_reduce(&mut self, group: GroupId, root: CommRank, value: MaxExcluding) -> Result<Option<MaxExcluding>> {
        let (group, shared) = self.group(group)?;
        let here = group.rank == root.place();
        let take = |round: &mut Round| here.then(|| round.combined(reduce_tops));
        let top = group.run(shared, Operation::ReduceTop(root.place()), top_payload(value), take)?;
        Ok(top.map(|words| top_of(&words)))
    }

    fn group_all_reduce(&mut self, group: GroupId, value: MaxExcluding) -> Result<MaxExcluding> {
        let (group, shared) = self.group(group)?;
        let take = |round: &mut Round| round.combined(reduce_tops);
        group.run(shared, Operation::AllReduceTop, top_payload(value), take).map(|words| top_of(&words))
    }

    fn group_exscan(&mut self, group: GroupId, value: i64) -> Result<Option<i64>> {
        let (group, shared) = self.group(group)?;
        let rank = group.rank;
        let take = |round: &mut Round| {
            let lower = (0..rank).filter_map(|rank| round.of(rank));
            lower.filter_map(|payload| payload.words().first().copied()).max()
        };
        group.run(shared, Operation::Exscan, words(&[value]), take)
    }

    fn leave(&mut self, patience: Duration) -> Farewell {
        let deadline = Instant::now().checked_add(patience);
        let farewell = &mut self.farewell;
        if farewell.round == 0 && farewell.begin(Operation::Barrier, words(&[])).is_err() {
            return Farewell::First;
        }
        match farewell.rounds.take(&self.shared.departures, 1, farewell.rank, Some(deadline), |_| ()) {
            Ok(Some(())) => Farewell::Together,
            _ => Farewell::First,
        }
    }

    fn abort(&mut self, status: i32) -> ! {
        std::process::exit(status)
    }
}

#[cfg(test)]
mod tests;
