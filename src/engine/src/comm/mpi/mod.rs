//! Analysis ranks as MPI processes.
//!
//! `rsmpi` (crate `mpi`) initialises and finalises the library and provides its bindings. Calls go through `call`, which
//! checks every return code: the safe layer of rsmpi discards them, and its reductions check neither element type nor
//! length. Every wait is an immediate operation with `test` and `yield`, since MPICH otherwise spins and more ranks than cores would
//! stand still.

mod call;
mod error_arbiter;
mod heartbeat;
mod mail;
mod max_excluding;
mod operations;
mod start;

use crate::comm::backoff::Backoff;
use crate::comm::{AnalysisRank, Channel, Farewell, GroupId, MaxExcluding, ReduceOp, Transport};
use call::{ImmediateOperation, MpiCommunicator};
use clc_trace::progress::Progress;
use clc_trace::{CommRank, Error, Result};
use error_arbiter::ErrorArbiter;
use heartbeat::Heartbeat;
use mail::{Mail, TIME_TAG};
use max_excluding::MaxExcludingReduction;
use operations::SendReceive;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// One rank of `MPI_COMM_WORLD`. Stays on the thread that initialised MPI.
pub struct MpiTransport {
    /// Used for nothing but the farewell and complaints, so that no operation that another rank has not come to can mix with it.
    world: MpiCommunicator,
    /// Messages, timestamps and collective operations.
    traffic: MpiCommunicator,
    /// Votes run beside everything else.
    votes: MpiCommunicator,
    groups: Vec<MpiGroup>,
    reduction: MaxExcludingReduction,
    mail: Mail,
    vote: Option<ImmediateOperation<SendReceive<i64>>>,
    farewell: Option<ImmediateOperation<()>>,
    heartbeat: Heartbeat,
    /// What the signs of life travel on.
    signs: MpiCommunicator,
    exchanges: u64,
    backoff: Backoff,
    /// Last of the fields that MPI knows of: dropping it finalises MPI.
    _universe: mpi::environment::Universe,
    _not_send: PhantomData<*const ()>,
}

/// A group of one needs no communicator, of which libraries have few.
#[derive(Clone, Copy)]
enum MpiGroup {
    Alone,
    Several(MpiCommunicator),
}

impl MpiGroup {
    /// This rank's rank in the group, and the number of members.
    fn place(self) -> (usize, usize) {
        match self {
            MpiGroup::Alone => (0, 1),
            MpiGroup::Several(communicator) => (communicator.rank, communicator.size),
        }
    }
}

impl MpiTransport {
    /// How long a rank waits at its end for its last messages to be taken. Chosen by hand: a shorter wait may lose messages to a rank that is slow, a
    /// longer one keeps a rank whose partner has died.
    const LAST_MESSAGES: Duration = Duration::from_secs(5);
    /// Longest piece of a broadcast: a count has to fit a C int.
    const PIECE: usize = 1 << 30;

    /// Waits for an immediate operation.
    fn wait<B>(&mut self, mut request: ImmediateOperation<B>) -> Result<B> {
        while !request.test()? {
            self.mail.progress()?;
            self.heartbeat.waiting(self.backoff.rest())?;
        }
        self.backoff.success();
        request.finish()
    }

    fn group(&self, group: GroupId, root: CommRank) -> Result<MpiGroup> {
        let group = *self.groups.get(group.0).ok_or_else(|| Error::new("unknown group of analysis ranks"))?;
        let (_, size) = group.place();
        if root.place() >= size {
            return Err(Error::new(format!("rank {root} is not a member of a group of {size}")));
        }
        Ok(group)
    }

    fn check_root(&self, root: AnalysisRank) -> Result<()> {
        if root.place() >= self.traffic.size {
            return Err(Error::new(format!("there is no analysis rank {root}")));
        }
        Ok(())
    }

    fn all_bytes(&mut self, root: Option<usize>, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        // Everybody learns whether it is too much for MPI, so that nobody waits for those who do.
        let mut total = [i64::try_from(bytes.len()).unwrap_or(i64::MAX)];
        self.all_reduce(ReduceOp::Sum, &mut total)?;
        if total[0] > i64::from(i32::MAX) {
            return Err(Error::new(format!(
                "{} bytes from all analysis ranks are too many to gather at once",
                total[0]
            )));
        }
        let lengths = self.traffic.gather_one(root, bytes.len() as i64)?;
        let (_, lengths) = self.wait(lengths)?;
        let gather = self.traffic.gather(root, bytes, &lengths)?;
        let (_, all, _, _) = self.wait(gather)?;
        if root.is_some_and(|root| root != self.traffic.rank) {
            return Ok(None);
        }
        let mut rest: &[u8] = &all;
        let mut parts = Vec::with_capacity(lengths.len());
        for &length in &lengths {
            let split = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
            let (part, next) =
                split.ok_or_else(|| Error::new("the gathered data does not have the announced length"))?;
            parts.push(part.to_vec());
            rest = next;
        }
        Ok(Some(parts))
    }
}

impl Drop for MpiTransport {
    fn drop(&mut self) {
        let deadline = Instant::now() + Self::LAST_MESSAGES;
        while !self.mail.is_sent() && self.mail.progress().is_ok() && Instant::now() < deadline {
            let _ = self.backoff.rest();
        }
        let together = self.heartbeat.end(deadline);
        // In the same order everywhere, as they were made. With an operation still under way, finalising has to do.
        if self.vote.is_none() && self.mail.is_sent() && together {
            for group in self.groups.drain(..) {
                if let MpiGroup::Several(communicator) = group {
                    communicator.free();
                }
            }
            self.signs.free();
            self.votes.free();
            self.traffic.free();
        }
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> AnalysisRank {
        AnalysisRank::at(self.traffic.rank)
    }

    fn size(&self) -> usize {
        self.traffic.size
    }

    fn library(&self) -> String {
        let version = mpi::environment::library_version().unwrap_or_default();
        let line = version.lines().next().unwrap_or_default();
        line.split(", package:").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn post(&mut self, destination: AnalysisRank, channel: Channel, words: Vec<u64>) -> Result<()> {
        self.mail.send(&self.traffic, destination.place(), channel as i32, words)
    }

    fn poll(&mut self, channel: Channel) -> Result<Option<(AnalysisRank, Vec<u64>)>> {
        let message = self.mail.receive(&self.traffic, channel)?;
        if message.is_some() {
            self.backoff.success();
        } else {
            self.mail.progress()?;
        }
        Ok(message.map(|(source, words)| (AnalysisRank::at(source), words)))
    }

    fn next_exchange(&mut self) -> u64 {
        self.exchanges += 1;
        self.exchanges
    }

    fn start_vote(&mut self, values: &[i64]) -> Result<()> {
        if self.vote.is_some() {
            return Err(Error::new("a vote was started before the previous one had ended"));
        }
        self.vote = Some(self.votes.all_reduce(ReduceOp::Sum, values)?);
        Ok(())
    }

    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>> {
        let Some(vote) = &mut self.vote else { return Ok(None) };
        if !vote.test()? {
            return Ok(None);
        }
        self.backoff.success();
        self.vote.take().map(|vote| Ok(vote.finish()?.1.into_vec())).transpose()
    }

    fn idle(&mut self) {
        // A failure of MPI shows in what is waited for.
        let _ = self.heartbeat.waiting(self.backoff.rest());
    }

    fn barrier(&mut self) -> Result<()> {
        let barrier = self.traffic.barrier()?;
        self.wait(barrier)
    }

    fn all_reduce(&mut self, op: ReduceOp, values: &mut [i64]) -> Result<()> {
        let reduction = self.traffic.all_reduce(op, values)?;
        let (_, combined) = self.wait(reduction)?;
        values.copy_from_slice(&combined);
        Ok(())
    }

    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(self.all_bytes(None, bytes)?.unwrap_or_default())
    }

    fn gather(&mut self, root: AnalysisRank, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        self.check_root(root)?;
        self.all_bytes(Some(root.place()), bytes)
    }

    fn broadcast(&mut self, root: AnalysisRank, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.check_root(root)?;
        let (here, root) = (self.rank() == root, root.place());
        let length = self.traffic.broadcast(root, (bytes.len() as u64).to_ne_bytes().to_vec())?;
        let length = u64::from_ne_bytes(*self.wait(length)?.first_chunk().unwrap_or(&[0; 8]));
        let length = usize::try_from(length).map_err(|_| Error::new("a broadcast does not fit into memory"))?;
        let mut received = Vec::new();
        for start in (0..length).step_by(Self::PIECE) {
            let end = length.min(start.saturating_add(Self::PIECE));
            let piece = if here { bytes[start..end].to_vec() } else { vec![0; end - start] };
            let broadcast = self.traffic.broadcast(root, piece)?;
            let piece = self.wait(broadcast)?;
            match here {
                true => {}
                false if length <= Self::PIECE => received = piece.into_vec(),
                false => received.extend_from_slice(&piece),
            }
        }
        Ok(if here { bytes } else { received })
    }

    fn create_group(&mut self, members: &[AnalysisRank], tag: u32) -> Result<GroupId> {
        crate::comm::place_in_group(members, self.rank(), self.size())?;
        self.groups.push(match members {
            [_] => MpiGroup::Alone,
            _ => MpiGroup::Several(
                self.traffic.subset(&members.iter().map(|member| member.place()).collect::<Vec<_>>(), tag)?,
            ),
        });
        Ok(GroupId(self.groups.len() - 1))
    }

    fn send_time(&mut self, destination: AnalysisRank, words: [i64; 2]) -> Result<()> {
        self.mail.send(&self.traffic, destination.place(), TIME_TAG, words.map(i64::cast_unsigned).to_vec())
    }

    fn receive_time(&mut self, source: AnalysisRank) -> Result<[i64; 2]> {
        let receive = self.traffic.receive_time(source.place(), TIME_TAG)?;
        match *self.wait(receive)? {
            [time, which] => Ok([time.cast_signed(), which.cast_signed()]),
            _ => Err(Error::new("a timestamp has an unexpected length")),
        }
    }

    fn group_bcast(&mut self, group: GroupId, root: CommRank, value: i64) -> Result<i64> {
        let MpiGroup::Several(communicator) = self.group(group, root)? else { return Ok(value) };
        let broadcast = communicator.broadcast(root.place(), value.to_ne_bytes().to_vec())?;
        let bytes = self.wait(broadcast)?;
        Ok(bytes.first_chunk().map_or(i64::MIN, |bytes| i64::from_ne_bytes(*bytes)))
    }

    fn group_reduce(&mut self, group: GroupId, root: CommRank, value: MaxExcluding) -> Result<Option<MaxExcluding>> {
        let MpiGroup::Several(communicator) = self.group(group, root)? else { return Ok(Some(value)) };
        let reduction = self.reduction.start(&communicator, Some(root.place()), value)?;
        let (_, received) = self.wait(reduction)?;
        Ok(received.first().copied().filter(|_| communicator.rank == root.place()))
    }

    fn group_all_reduce(&mut self, group: GroupId, value: MaxExcluding) -> Result<MaxExcluding> {
        let MpiGroup::Several(communicator) = self.group(group, CommRank(0))? else { return Ok(value) };
        let reduction = self.reduction.start(&communicator, None, value)?;
        let (_, received) = self.wait(reduction)?;
        Ok(received.first().copied().unwrap_or(MaxExcluding::NONE))
    }

    fn group_exscan(&mut self, group: GroupId, value: i64) -> Result<Option<i64>> {
        let MpiGroup::Several(communicator) = self.group(group, CommRank(0))? else { return Ok(None) };
        let scan = communicator.exscan(value)?;
        let (_, received) = self.wait(scan)?;
        Ok(received.first().copied().filter(|_| communicator.rank > 0))
    }

    fn progress(&self) -> Box<dyn Progress> {
        self.heartbeat.progress()
    }

    fn leave(&mut self, patience: Duration) -> Farewell {
        let start = Instant::now();
        let mut farewell = match self.farewell.take() {
            Some(farewell) => farewell,
            None => match self.world.barrier() {
                Ok(farewell) => farewell,
                Err(_) => return Farewell::First,
            },
        };
        let mut arbiter = ErrorArbiter::default();
        loop {
            match farewell.test() {
                Ok(true) => break Farewell::Together,
                Ok(false) if start.elapsed() < patience => {
                    // Messages may still be needed by those who are not there yet; a failure shows in the farewell.
                    let _ = self.mail.progress();
                    arbiter.turn(&self.world, start.elapsed());
                    let _ = self.backoff.rest();
                }
                Ok(false) => {
                    self.farewell = Some(farewell);
                    break if arbiter.follows(self.world.rank) { Farewell::Follows } else { Farewell::First };
                }
                Err(_) => break Farewell::First,
            }
        }
    }

    fn abort(&mut self, status: i32) -> ! {
        call::abort(status);
        std::process::exit(status)
    }
}
