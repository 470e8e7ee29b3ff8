//! Analysis ranks as MPI processes.
//!
//! `rsmpi` (crate `mpi`) initialises and finalises the library and provides its bindings. Calls go through [`call`], which
//! checks every return code: the safe layer of rsmpi discards them, and its reductions check neither element type nor
//! length. Every wait is an immediate operation with `test` and `yield`, since MPICH otherwise spins and more ranks than cores would
//! stand still.

mod call;

use crate::comm::{Channel, GroupId, ReduceOp, Top2, Transport};
use crate::trace::{Error, Result};
use call::{Communicator, PendingSend, TopReduction, Vote};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// One rank of `MPI_COMM_WORLD`.
pub struct MpiTransport {
    /// Dropped last: it finalises MPI.
    world: Communicator,
    groups: Vec<Option<Communicator>>,
    reduction: TopReduction,
    /// Messages under way, oldest first.
    sending: VecDeque<PendingSend>,
    vote: Option<Vote>,
    waiter: Waiter,
    _universe: mpi::environment::Universe,
}

const REPLAY_TAG: i32 = 1;
const EXCHANGE_TAG: i32 = 2;
const TIME_TAG: i32 = 3;

/// Yields for a while, then sleeps: a rank with nothing to do must not take the core from one that has.
#[derive(Debug, Default)]
struct Waiter {
    since: Option<Instant>,
    turns: u32,
}

impl Waiter {
    const PATIENCE: Duration = Duration::from_millis(20);
    const NAP: Duration = Duration::from_micros(200);

    fn rest(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        // Looking at the time costs as much as a yield.
        if self.turns.is_multiple_of(64) && self.since.get_or_insert_with(Instant::now).elapsed() > Self::PATIENCE {
            std::thread::sleep(Self::NAP);
        } else {
            std::thread::yield_now();
        }
    }

    fn success(&mut self) {
        self.since = None;
    }
}

impl MpiTransport {
    /// Initialises MPI. A panic on any rank from now on ends all of them, with its message printed once.
    ///
    /// # Errors
    /// MPI is initialised already or refuses.
    pub fn initialise() -> Result<MpiTransport> {
        let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled)
            .ok_or_else(|| Error::new("MPI is initialised already"))?;
        let world = Communicator::world()?;
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            call::abort(2);
        }));
        Ok(MpiTransport {
            world,
            groups: Vec::new(),
            reduction: TopReduction::new()?,
            sending: VecDeque::new(),
            vote: None,
            waiter: Waiter::default(),
            _universe: universe,
        })
    }

    /// Lets sends go on, and frees the buffers of those that are done.
    fn progress(&mut self) -> Result<()> {
        // In order, so that looking at one tells of all before it.
        while let Some(oldest) = self.sending.front_mut() {
            if !oldest.test()? {
                break;
            }
            self.sending.pop_front();
        }
        Ok(())
    }

    /// Waits for an immediate operation.
    fn wait(&mut self, mut test: impl FnMut() -> Result<bool>) -> Result<()> {
        while !test()? {
            self.progress()?;
            self.waiter.rest();
        }
        self.waiter.success();
        Ok(())
    }

    fn group(&self, group: GroupId) -> Option<Communicator> {
        self.groups.get(group.0).copied().flatten()
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.world.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn library(&self) -> String {
        let version = mpi::environment::library_version().unwrap_or_default();
        let line = version.lines().next().unwrap_or_default();
        line.split(", package:").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn post(&mut self, destination: usize, channel: Channel, words: Vec<u64>) -> Result<()> {
        self.progress()?;
        let send = PendingSend::start(&self.world, destination, tag(channel), words)?;
        self.sending.push_back(send);
        Ok(())
    }

    fn poll(&mut self, channel: Channel) -> Result<Option<(usize, Vec<u64>)>> {
        self.progress()?;
        let message = self.world.poll(tag(channel))?;
        if message.is_some() {
            self.waiter.success();
        }
        Ok(message)
    }

    fn start_vote(&mut self, values: &[i64]) -> Result<()> {
        self.vote = Some(Vote::start(&self.world, ReduceOp::Sum, values)?);
        Ok(())
    }

    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>> {
        let Some(vote) = &mut self.vote else { return Ok(None) };
        if !vote.test()? {
            return Ok(None);
        }
        Ok(self.vote.take().map(Vote::result))
    }

    fn idle(&mut self) {
        self.waiter.rest();
    }

    fn all_reduce(&mut self, op: ReduceOp, values: &mut [i64]) -> Result<()> {
        let mut reduction = Vote::start(&self.world, op, values)?;
        self.wait(|| reduction.test())?;
        values.copy_from_slice(&reduction.result());
        Ok(())
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut lengths = vec![0i64; self.size()];
        lengths[self.rank()] = bytes.len() as i64;
        self.all_reduce(ReduceOp::Sum, &mut lengths)?;
        let mut gather = call::Gather::start(&self.world, None, bytes, &lengths)?;
        self.wait(|| gather.test())?;
        Ok(gather.result(&lengths).unwrap_or_default())
    }

    fn gather(&mut self, root: usize, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        let mut lengths = vec![0i64; self.size()];
        lengths[self.rank()] = bytes.len() as i64;
        self.all_reduce(ReduceOp::Sum, &mut lengths)?;
        let mut gather = call::Gather::start(&self.world, Some(root), bytes, &lengths)?;
        self.wait(|| gather.test())?;
        Ok(gather.result(&lengths))
    }

    fn broadcast(&mut self, root: usize, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let here = self.rank() == root;
        let mut length = [if here { bytes.len() as i64 } else { 0 }];
        self.all_reduce(ReduceOp::Sum, &mut length)?;
        let buffer = if here { bytes } else { vec![0; length[0] as usize] };
        let mut broadcast = call::Broadcast::start(&self.world, root, buffer)?;
        self.wait(|| broadcast.test())?;
        Ok(broadcast.result())
    }

    fn create_group(&mut self, members: &[usize], tag: u32) -> Result<GroupId> {
        // A group of one needs no communicator, of which libraries have few.
        let communicator = if members.len() > 1 { Some(self.world.subset(members, tag)?) } else { None };
        self.groups.push(communicator);
        Ok(GroupId(self.groups.len() - 1))
    }

    fn send_time(&mut self, destination: usize, words: [i64; 2]) -> Result<()> {
        let words = vec![words[0] as u64, words[1] as u64];
        let mut send = PendingSend::start(&self.world, destination, TIME_TAG, words)?;
        // A timestamp is small enough to be delivered eagerly: usually this is done at once.
        if !send.test()? {
            self.sending.push_back(send);
        }
        Ok(())
    }

    fn receive_time(&mut self, source: usize) -> Result<[i64; 2]> {
        let mut receive = call::ReceiveTime::start(&self.world, source, TIME_TAG)?;
        self.wait(|| receive.test())?;
        Ok(receive.result())
    }

    fn group_bcast(&mut self, group: GroupId, root: usize, value: i64) -> Result<i64> {
        let Some(communicator) = self.group(group) else { return Ok(value) };
        let mut broadcast = call::Broadcast::start(&communicator, root, value.to_ne_bytes().to_vec())?;
        self.wait(|| broadcast.test())?;
        let bytes = broadcast.result();
        Ok(bytes.first_chunk().map_or(i64::MIN, |bytes| i64::from_ne_bytes(*bytes)))
    }

    fn group_reduce(&mut self, group: GroupId, root: usize, value: Top2) -> Result<Option<Top2>> {
        let Some(communicator) = self.group(group) else { return Ok(Some(value)) };
        let mut reduce = self.reduction.start(&communicator, Some(root), value)?;
        self.wait(|| reduce.test())?;
        Ok((communicator.rank == root).then(|| reduce.result()))
    }

    fn group_all_reduce(&mut self, group: GroupId, value: Top2) -> Result<Top2> {
        let Some(communicator) = self.group(group) else { return Ok(value) };
        let mut reduce = self.reduction.start(&communicator, None, value)?;
        self.wait(|| reduce.test())?;
        Ok(reduce.result())
    }

    fn group_exscan(&mut self, group: GroupId, value: i64) -> Result<Option<i64>> {
        let Some(communicator) = self.group(group) else { return Ok(None) };
        let mut scan = call::Exscan::start(&communicator, value)?;
        self.wait(|| scan.test())?;
        Ok((communicator.rank > 0).then(|| scan.result()))
    }
}

fn tag(channel: Channel) -> i32 {
    match channel {
        Channel::Replay => REPLAY_TAG,
        Channel::Exchange => EXCHANGE_TAG,
    }
}
