//! How analysis ranks talk: the [`Transport`] seam with two implementations, MPI and threads of one process.
//!
//! Uses the trace's vocabulary (errors) and the threads of a rank only. Knows nothing of what travels, but for [`MaxExcluding`], on which MPI has to reduce.

mod analysis_rank;
mod backoff;
mod exchange;
mod launch;
pub mod local;
mod max_excluding;
#[cfg(feature = "mpi")]
pub mod mpi;
// Ranks that wait for each other are processes of MPI.
#[cfg_attr(not(feature = "mpi"), allow(dead_code))]
mod watchdog;

pub use analysis_rank::AnalysisRank;
pub use exchange::{
    agree, all_gather_values, broadcast_value, exchange_values, gather_owned, gather_values, merge_to_first,
    merge_values, sparse_exchange,
};
pub use launch::{start, started_by_launcher};
pub use max_excluding::MaxExcluding;
pub use watchdog::check_setting;

use clc_trace::progress::{Progress, Silent};
use clc_trace::workers::Workers;
use clc_trace::{CommRank, Error, Result};
use std::collections::HashSet;
use std::time::Duration;

/// Separates kinds of messages that may be under way at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// Timestamps of a replay.
    Replay,
    /// Messages of [`sparse_exchange`], every other time.
    EvenExchange,
    /// Messages of [`sparse_exchange`], the other times.
    OddExchange,
}

impl Channel {
    /// Number of channels.
    pub(crate) const COUNT: usize = 3;
}

/// Reductions on integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReduceOp {
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Sum.
    Sum,
}

/// How a rank comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// All ranks have come to their ends.
    Together,
    /// Others have not, and this is the rank that says why and ends the run.
    First,
    /// Others have not, and another one that failed as well says why and ends the run.
    Follows,
}

/// A group of analysis ranks made by [`Transport::create_group`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupId(usize);

/// Communication of one analysis rank with all others. Ranks wait by yielding the processor, so that more ranks than cores stay
/// usable.
///
/// Collective operations (votes among them, separately) are called by all ranks in the same order. Every operation fails if the
/// underlying library does, or if an argument names no rank; the error says which one. Such an error is one rank's own and leaves the
/// ranks out of step: the caller has to end the run ([`Transport::leave`], [`Transport::abort`]).
pub trait Transport {
    /// This rank.
    fn rank(&self) -> AnalysisRank;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// What the library below calls itself, for the report.
    fn library(&self) -> String;

    /// Sends `words` without waiting, also to this rank itself. Messages of one channel between two ranks arrive in order.
    fn post(&mut self, destination: AnalysisRank, channel: Channel, words: Vec<u64>) -> Result<()>;

    /// The next message that has arrived on `channel`, with its sender; `None` if there is none now.
    fn poll(&mut self, channel: Channel) -> Result<Option<(AnalysisRank, Vec<u64>)>>;

    /// Counts the calls, the first is 1: which exchange [`sparse_exchange`] is at.
    fn next_exchange(&mut self) -> u64;

    /// Starts to sum `values` (the same number on every rank) over all ranks; one vote at a time.
    /// Other collective operations may come between start and end.
    fn start_vote(&mut self, values: &[i64]) -> Result<()>;

    /// The sums, as soon as all ranks have voted. `None` if they have not, or if no vote was started. A rank may see the result
    /// earlier than others: what it does next can reach a rank that still waits.
    fn poll_vote(&mut self) -> Result<Option<Vec<i64>>>;

    /// Called when there is nothing to do but wait: yields, and sleeps for moments when the wait is long.
    fn idle(&mut self);

    /// Waits for all ranks.
    fn barrier(&mut self) -> Result<()>;

    /// Combines `values` of all ranks, in place; the same number on every rank.
    fn all_reduce(&mut self, op: ReduceOp, values: &mut [i64]) -> Result<()>;

    /// The bytes of all ranks, in order of ranks.
    fn all_gather(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// The bytes of all ranks, in order of ranks, at `root` only.
    fn gather(&mut self, root: AnalysisRank, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>>;

    /// The bytes that `root` has; what the others give is ignored.
    fn broadcast(&mut self, root: AnalysisRank, bytes: Vec<u8>) -> Result<Vec<u8>>;

    /// Makes a group of `members` (in the order of the group's ranks). Called by its members only, who agree on `tag`; groups
    /// with common members have to be made in the same order everywhere.
    fn create_group(&mut self, members: &[AnalysisRank], tag: u32) -> Result<GroupId>;

    /// Sends one timestamp with a word that says what it belongs to (`Send`).
    fn send_time(&mut self, destination: AnalysisRank, words: [i64; 2]) -> Result<()>;

    /// Waits for the next timestamp of `source` (`Recv`).
    fn receive_time(&mut self, source: AnalysisRank) -> Result<[i64; 2]>;

    /// The value of the group's member `root` (`Bcast`).
    fn group_bcast(&mut self, group: GroupId, root: CommRank, value: i64) -> Result<i64>;

    /// The two largest of all values, at the group's member `root` only (`Reduce`).
    fn group_reduce(&mut self, group: GroupId, root: CommRank, value: MaxExcluding) -> Result<Option<MaxExcluding>>;

    /// The two largest of all values (`Allreduce`).
    fn group_all_reduce(&mut self, group: GroupId, value: MaxExcluding) -> Result<MaxExcluding>;

    /// The largest of the values of all lower ranks of the group; `None` at its rank 0 (`Exscan`).
    fn group_exscan(&mut self, group: GroupId, value: i64) -> Result<Option<i64>>;

    /// The threads that this rank may have for its own work. None of them calls this transport.
    fn workers(&self) -> Workers {
        Workers::ONE
    }

    /// To be told how far this rank is, so that others who wait for it can say so.
    fn progress(&self) -> Box<dyn Progress> {
        Box::new(Silent)
    }

    /// Called when this rank has nothing more to do, with or without an error of its own: whether all ranks have come to
    /// that point within `patience`. If not, the error is not shared by all, others may wait for this rank, and only
    /// [`Transport::abort`] ends the run.
    fn leave(&mut self, patience: Duration) -> Farewell;

    /// Ends the processes of all ranks at once with this exit status.
    fn abort(&mut self, status: i32) -> !;
}

/// The rank of analysis rank `own` in a group of `members`.
///
/// # Errors
/// It is no member, a member occurs twice, or one does not exist in a world of `size`.
fn place_in_group(members: &[AnalysisRank], own: AnalysisRank, size: usize) -> Result<usize> {
    let mut seen = HashSet::with_capacity(members.len());
    if let Some(member) = members.iter().find(|&&member| member.place() >= size || !seen.insert(member)) {
        return Err(Error::new(format!(
            "analysis rank {member} is listed twice in a group, or does not exist in a world of {size}"
        )));
    }
    let place = members.iter().position(|&member| member == own);
    place.ok_or_else(|| Error::new("a group can only be created by its members"))
}
