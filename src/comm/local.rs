//! Analysis ranks as threads of one process: for tests, and with one rank for runs without a launcher.

use crate::comm::{Channel, GroupId, ReduceOp, Top2, Transport};
use crate::trace::{Error, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// One rank of a world of threads.
#[derive(Debug)]
pub struct LocalTransport {
    rank: usize,
    size: usize,
    hub: Arc<Hub>,
    /// Group 0 is the world, group 1 the votes.
    groups: Vec<Group>,
    vote: Option<u64>,
}

#[derive(Debug)]
struct Group {
    key: (Vec<usize>, u32),
    /// This rank's rank in the group.
    rank: usize,
    /// Collective operations so far.
    round: u64,
}

const WORLD: GroupId = GroupId(0);
const VOTES: GroupId = GroupId(1);

#[derive(Debug, Default)]
struct Hub {
    state: Mutex<State>,
    changed: Condvar,
}

type RoundKey = ((Vec<usize>, u32), u64);

#[derive(Debug, Default)]
struct State {
    /// Arrived messages by destination and channel.
    messages: HashMap<(usize, bool), VecDeque<(usize, Vec<u64>)>>,
    /// Timestamps by source and destination.
    times: HashMap<(usize, usize), VecDeque<[i64; 2]>>,
    /// Contributions to collective operations, by rank in the group; and how many members have taken them.
    rounds: HashMap<RoundKey, (HashMap<usize, Vec<u8>>, usize)>,
    /// A rank has gone without finishing.
    broken: bool,
}

impl LocalTransport {
    /// A world of `size` ranks, one for each thread.
    pub fn world(size: usize) -> Vec<LocalTransport> {
        let hub = Arc::new(Hub::default());
        let everybody: Vec<usize> = (0..size).collect();
        let group = |rank, tag| Group { key: (everybody.clone(), tag), rank, round: 0 };
        (0..size)
            .map(|rank| LocalTransport {
                rank,
                size,
                hub: hub.clone(),
                groups: vec![group(rank, u32::MAX), group(rank, u32::MAX - 1)],
                vote: None,
            })
            .collect()
    }

    /// The only rank of its world.
    pub fn alone() -> LocalTransport {
        let hub = Arc::new(Hub::default());
        let group = |tag| Group { key: (vec![0], tag), rank: 0, round: 0 };
        LocalTransport { rank: 0, size: 1, hub, groups: vec![group(u32::MAX), group(u32::MAX - 1)], vote: None }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.hub.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<T>(&self, mut ready: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let mut state = self.state();
        loop {
            if let Some(value) = ready(&mut state) {
                return Ok(value);
            }
            if state.broken {
                return Err(Error::new("another analysis rank has failed"));
            }
            state = self.hub.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Contributes to the next collective operation of a group and returns its round.
    fn contribute(&mut self, group: GroupId, bytes: Vec<u8>) -> u64 {
        let Group { key, rank, round } = &mut self.groups[group.0];
        *round += 1;
        let (key, rank, round) = ((key.clone(), *round), *rank, *round);
        self.state().rounds.entry(key).or_default().0.insert(rank, bytes);
        self.hub.changed.notify_all();
        round
    }

    /// Everybody's contributions to a round, if all are there.
    fn collect(group: &Group, round: u64, state: &mut State) -> Option<Vec<Vec<u8>>> {
        let members = group.key.0.len();
        let key = (group.key.clone(), round);
        let (contributions, taken) = state.rounds.get_mut(&key)?;
        if contributions.len() < members {
            return None;
        }
        let all = (0..members).map(|rank| contributions.get(&rank).cloned().unwrap_or_default()).collect();
        *taken += 1;
        if *taken == members {
            state.rounds.remove(&key);
        }
        Some(all)
    }

    fn everybody(&mut self, group: GroupId, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let round = self.contribute(group, bytes);
        let group = &self.groups[group.0];
        self.wait(|state| Self::collect(group, round, state))
    }

    fn tops(&mut self, group: GroupId, value: Top2) -> Result<Top2> {
        let bytes = words(&[value.max, value.holder, value.second]);
        let all = self.everybody(group, bytes)?;
        Ok(all.iter().map(|bytes| numbers(bytes)).fold(Top2::NONE, |top, words| match words[..] {
            [max, holder, second] => top.merge(Top2 { max, holder, second }),
            _ => top,
        }))
    }
}

fn words(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|word| i64::from_ne_bytes(*word)).collect()
}

fn reduce(op: ReduceOp, all: &[Vec<u8>]) -> Vec<i64> {
    let mut rows = all.iter().map(|bytes| numbers(bytes));
    let first = rows.next().unwrap_or_default();
    rows.fold(first, |sums, row| {
        let pairs = sums.into_iter().zip(row);
        pairs
            .map(|(a, b)| match op {
                ReduceOp::Min => a.min(b),
                ReduceOp::Max => a.max(b),
                ReduceOp::Sum => a + b,
            })
            .collect()
    })
}

impl Drop for LocalTransport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.state().broken = true;
            self.hub.changed.notify_all();
        }
    }
}

impl Transport for LocalTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn library(&self) -> String {
        "none (one process)".to_owned()
    }

    fn post(&mut self, destination: usize, channel: Channel, words: Vec<u64>) -> Result<()> {
        let key = (destination, channel == Channel::Replay);
        self.state().messages.entry(key).or_default().push_back((self.rank, words));
        self.hub.changed.notify_all();
        Ok(())
    }

    fn poll(&mut self, channel: Channel) -> Result<Option<(usize, Vec<u64>)>> {
        let mut state = self.state();
        if state.broken {
            return Err(Error::new("another analysis rank has failed"));
        }
        let key = (self.rank, channel == Channel::Replay);
        Ok(state.messages.get_mut(&key).and_then(VecDeque::pop_front))
    }

    fn start_vote(&mut self, values: &[i64]) -> Result<()> {
        self.vote = Some(self.contribute(VOTES, words(values)));
        Ok(())
    }

    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>> {
        let Some(round) = self.vote else { return Ok(None) };
        let group = &self.groups[VOTES.0];
        let all = Self::collect(group, round, &mut self.state());
        if all.is_some() {
            self.vote = None;
        }
        Ok(all.map(|all| reduce(ReduceOp::Sum, &all)))
    }

    fn idle(&mut self) {
        std::thread::yield_now();
    }

    fn all_reduce(&mut self, op: ReduceOp, values: &mut [i64]) -> Result<()> {
        let all = self.everybody(WORLD, words(values))?;
        values.copy_from_slice(&reduce(op, &all));
        Ok(())
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.everybody(WORLD, bytes.to_vec())
    }

    fn gather(&mut self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let all = self.everybody(WORLD, bytes.to_vec())?;
        Ok((self.rank == root).then_some(all))
    }

    fn broadcast(&mut self, root: usize, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let bytes = if self.rank == root { bytes } else { Vec::new() };
        let mut all = self.everybody(WORLD, bytes)?;
        Ok(all.swap_remove(root))
    }

    fn create_group(&mut self, members: &[usize], tag: u32) -> Result<GroupId> {
        let rank = members
            .iter()
            .position(|&member| member == self.rank)
            .ok_or_else(|| Error::new("a group is made by its members only"))?;
        self.groups.push(Group { key: (members.to_vec(), tag), rank, round: 0 });
        Ok(GroupId(self.groups.len() - 1))
    }

    fn send_time(&mut self, destination: usize, words: [i64; 2]) -> Result<()> {
        self.state().times.entry((self.rank, destination)).or_default().push_back(words);
        self.hub.changed.notify_all();
        Ok(())
    }

    fn receive_time(&mut self, source: usize) -> Result<[i64; 2]> {
        let key = (source, self.rank);
        self.wait(|state| state.times.get_mut(&key).and_then(VecDeque::pop_front))
    }

    fn group_bcast(&mut self, group: GroupId, root: usize, value: i64) -> Result<i64> {
        let all = self.everybody(group, words(&[value]))?;
        Ok(all.get(root).and_then(|bytes| numbers(bytes).first().copied()).unwrap_or(i64::MIN))
    }

    fn group_reduce(&mut self, group: GroupId, root: usize, value: Top2) -> Result<Option<Top2>> {
        let top = self.tops(group, value)?;
        Ok((self.groups[group.0].rank == root).then_some(top))
    }

    fn group_all_reduce(&mut self, group: GroupId, value: Top2) -> Result<Top2> {
        self.tops(group, value)
    }

    fn group_exscan(&mut self, group: GroupId, value: i64) -> Result<Option<i64>> {
        let rank = self.groups[group.0].rank;
        let all = self.everybody(group, words(&[value]))?;
        Ok(all[..rank].iter().filter_map(|bytes| numbers(bytes).first().copied()).max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::{agree, all_gather_values, broadcast_value, sparse_exchange};

    fn on_all<T: Send>(size: usize, run: impl Fn(&mut LocalTransport) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> = LocalTransport::world(size)
                .into_iter()
                .map(|mut transport| scope.spawn(move || run(&mut transport)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn exchanges_in_a_row_do_not_mix() {
        let results = on_all(4, |t| {
            let mut log = Vec::new();
            for round in 0..20u64 {
                let to = [(t.rank() + 1) % 4, (t.rank() + round as usize) % 4];
                let outgoing = to.iter().map(|&d| (d, vec![round, t.rank() as u64])).collect();
                let mut got: Vec<_> = sparse_exchange(t, outgoing).unwrap();
                got.sort();
                assert!(got.iter().all(|(from, words)| words == &[round, *from as u64]));
                log.push(got.len());
            }
            log
        });
        assert_eq!(results.iter().flatten().sum::<usize>(), 4 * 20 * 2);
    }

    #[test]
    fn everybody_hears_of_a_failure() {
        let results = on_all(3, |t| {
            let outcome = if t.rank() > 0 { Err(Error::new(format!("rank {}", t.rank()))) } else { Ok(7) };
            agree(t, outcome).unwrap_err().message
        });
        assert_eq!(results, ["rank 1"; 3]);
        assert_eq!(on_all(2, |t| agree(t, Ok(7)).unwrap()), [7, 7]);
    }

    #[test]
    fn values_and_groups() {
        on_all(3, |t| {
            let rank = t.rank() as i64;
            assert_eq!(broadcast_value(t, 1, rank).unwrap(), 1);
            assert_eq!(all_gather_values(t, &rank).unwrap(), [0, 1, 2]);
            let group = t.create_group(&[2, 1, 0], 5).unwrap();
            let in_group = 2 - rank;
            assert_eq!(t.group_bcast(group, 0, rank).unwrap(), 2);
            assert_eq!(t.group_exscan(group, rank).unwrap(), (in_group > 0).then_some(2));
            let top = t.group_all_reduce(group, Top2::one(rank, in_group)).unwrap();
            assert_eq!(top, Top2 { max: 2, holder: 0, second: 1 });
            assert_eq!(t.group_reduce(group, 1, Top2::one(rank, in_group)).unwrap().is_some(), in_group == 1);
            t.send_time((t.rank() + 1) % 3, [rank, 9]).unwrap();
            assert_eq!(t.receive_time((t.rank() + 2) % 3).unwrap(), [(rank + 2) % 3, 9]);
        });
    }
}
