//! Which fences of a window synchronise its processes.
//!
//! `MPI_Win_fence` is a barrier, unless all processes assert that no epoch with operations ends there (`MPI_MODE_NOPRECEDE`). Traces do not have
//! assertions. If any process has accessed the window since the fence before, nobody can have asserted that. Of the others
//! it is asked whether they *can* have been barriers. The moment at which the last process entered is between begin and end of every process. So
//! the time from one such moment to the next is for every process, by its own clock,
//!
//! ```text
//! at least  begin - end of the fence before,   at most  end - begin of the fence before
//! ```
//!
//! and the same for all of them, as far as clocks run at the same rate. No agreement between the clocks is needed for that.

use crate::comm::{AnalysisRank, Transport};
use crate::matching::collectives::homes::{exchange, tell_hosts};
use crate::matching::comm_index::CommIndex;
use crate::matching::communicators::CommTable;
use crate::matching::extracted::{Extract, Participation};
use crate::matching::local_timeline::LocalTimeline;
use crate::matching::placement::Placement;
use clc_trace::{CollectiveOp, CommRank, Result};
use controlled_logical_clock::semantics::MemberRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which fences count as barriers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fences {
    /// Those that end an epoch with operations, and others as far as they agree with the fences around them.
    #[default]
    Auto,
    /// All of them.
    All,
    /// Those that end an epoch with operations.
    Operations,
    /// None of them.
    None,
}

impl Fences {
    /// All choices.
    pub const ALL: [Fences; 4] = [Fences::Auto, Fences::All, Fences::Operations, Fences::None];

    /// The name of the choice.
    pub fn name(self) -> &'static str {
        match self {
            Fences::Auto => "auto",
            Fences::All => "all",
            Fences::Operations => "operations",
            Fences::None => "none",
        }
    }
}

/// Rates of clocks are taken to differ by no more than one part in so many, 0.5 %: ten times what NTP may slew, and two clocks that swing by 200 us with a period of half a second against each
/// other. With more, fences of perfect clocks agree that were left by one process shortly before another entered.
pub(super) const SAME_RATE: i64 = 192;

/// If more than one in so many of a window's fences without operations cannot have been a barrier, none of them counts as one: such fences are called
/// in a loop.
const FEW: usize = 16;

/// What the members of a window say of one of its fences, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Fence {
    /// The time since the fence before is at least so long,
    least: i64,
    /// and at most so long.
    most: i64,
    /// A process has accessed the window since then.
    accessed: bool,
}

/// What a fence counts as.
fn op_of(fence: &Fence, barrier: bool) -> CollectiveOp {
    match (barrier, fence.accessed) {
        (true, true) => CollectiveOp::WIN_FENCE,
        (true, false) => CollectiveOp::WIN_FENCE_ASSUMED,
        (false, _) => CollectiveOp::WIN_FENCE_UNORDERED,
    }
}

impl Fence {
    const UNKNOWN: Fence = Fence { least: i64::MIN, most: i64::MAX, accessed: false };

    fn merge(&mut self, other: Fence) {
        self.least = self.least.max(other.least);
        self.most = self.most.min(other.most);
        self.accessed |= other.accessed;
    }

    /// Whether this fence and the one before can both have been barriers.
    fn agrees(&self) -> bool {
        self.least <= self.most.saturating_add(self.most.max(0) / SAME_RATE)
    }
}

/// Which of a window's fences count as barriers.
fn decide(fences: &[Fence], choice: Fences) -> Vec<bool> {
    match choice {
        Fences::All => vec![true; fences.len()],
        Fences::None => vec![false; fences.len()],
        Fences::Operations => fences.iter().map(|fence| fence.accessed).collect(),
        Fences::Auto => {
            let agrees = |k: usize| fences.get(k).is_none_or(Fence::agrees);
            let fits = |k: &usize| agrees(*k) && agrees(k + 1);
            let open: Vec<usize> = (0..fences.len()).filter(|&k| !fences[k].accessed).collect();
            let contradicted = open.iter().filter(|k| !fits(k)).count();
            let trusted = contradicted * FEW <= open.len();
            // Nothing can precede the first one, so that is where programs assert it, and there is none before it to agree with. Others tell whether this one does not.
            let first = contradicted == 0 && open.iter().any(|&k| k > 0);
            let counts = |k: usize| trusted && fits(&k) && (k > 0 || first);
            (0..fences.len()).map(|k| fences[k].accessed || counts(k)).collect()
        }
    }
}

/// What a member knows of its fences among `list`, which are the `fences`. Recorded times: they need no model of the clock. Those of threads with different clocks cannot be compared.
fn of_member(list: &[Participation], fences: &[usize], extract: &Extract, loose: bool, into: &mut [Fence]) {
    let sync = &extract.sync;
    let time = |event: u32| sync.recorded_time(event as usize).unwrap_or(0);
    let part = |own: &Participation| extract.part_of.get(sync.location(own.begin as usize) as usize);
    let mut before: Option<&Participation> = None;
    for (&k, fence) in fences.iter().zip(into) {
        let own = &list[k];
        let (least, most) = match before.filter(|before| !loose && part(before) == part(own)) {
            Some(before) => (time(own.begin) - time(before.end), time(own.end) - time(before.begin)),
            None => (Fence::UNKNOWN.least, Fence::UNKNOWN.most),
        };
        fence.merge(Fence { least, most, accessed: own.part.accessed });
        before = Some(own);
    }
}

fn is_fence(participation: &Participation) -> bool {
    participation.part.op == CollectiveOp::WIN_FENCE
}

/// The participations of members hosted here, by communicator: rank, timeline, and what it took part in.
pub(super) type Ours = BTreeMap<CommIndex, Vec<(CommRank, LocalTimeline, Vec<Participation>)>>;

/// Gives fences without operations an operation of their own: those that count as barriers [`CollectiveOp::WIN_FENCE_ASSUMED`], and of those and all others
/// that constrain nobody [`CollectiveOp::WIN_FENCE_UNORDERED`]. All members
/// agree on the first `valid` operations of each window. Collective over the analysis ranks.
///
/// # Errors
/// Failures of the transport.
pub(super) fn settle(
    transport: &mut dyn Transport,
    placement: &Placement,
    table: &CommTable<'_>,
    extracts: &[Extract],
    ours: &mut Ours,
    valid: &BTreeMap<CommIndex, u64>,
    choice: Fences,
) -> Result<()> {
    if !table.has_windows() {
        return Ok(());
    }
    let home_of = |window: CommIndex| {
        table.participants(window).map_or(AnalysisRank::FIRST, |processes| placement.host_of_process(processes[0]))
    };
    let mut outgoing: Vec<(AnalysisRank, (CommIndex, Vec<Fence>))> = Vec::new();
    for (&window, members) in ours.iter().filter(|(index, _)| table.is_window(**index)) {
        let count = valid.get(&window).copied().unwrap_or(0) as usize;
        let fences = fences_of(members, count);
        let mut known = vec![Fence::UNKNOWN; fences.len()];
        for (_, timeline, list) in members {
            let extract = &extracts[*timeline];
            of_member(list, &fences, extract, extract.loose.contains_key(&window), &mut known);
        }
        outgoing.push((home_of(window), (window, known)));
    }
    let mut known: BTreeMap<CommIndex, Vec<Fence>> = BTreeMap::new();
    for (window, fences) in exchange(transport, outgoing.into_iter())? {
        let all = known.entry(window).or_insert_with(|| vec![Fence::UNKNOWN; fences.len()]);
        all.iter_mut().zip(fences).for_each(|(fence, more)| fence.merge(more));
    }
    let decided: BTreeMap<CommIndex, Vec<CollectiveOp>> = known
        .into_iter()
        .map(|(window, fences)| {
            let barriers = decide(&fences, choice);
            let ops = fences.iter().zip(barriers).map(|(fence, barrier)| op_of(fence, barrier));
            (window, ops.collect())
        })
        .collect();
    for (window, ops) in tell_hosts(transport, placement, table, &decided)? {
        let Some(members) = ours.get_mut(&window) else { continue };
        let fences = fences_of(members, valid.get(&window).copied().unwrap_or(0) as usize);
        for (_, _, list) in members {
            for (&k, &op) in fences.iter().zip(&ops) {
                list[k].part = MemberRecord { op, ..list[k].part };
            }
        }
    }
    Ok(())
}

/// Which of the first `count` operations on a window are fences: the same for all members.
fn fences_of(members: &[(CommRank, LocalTimeline, Vec<Participation>)], count: usize) -> Vec<usize> {
    let Some((_, _, list)) = members.first() else { return Vec::new() };
    (0..count).filter(|&k| is_fence(&list[k])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(least: i64, most: i64, accessed: bool) -> Fence {
        Fence { least, most, accessed }
    }

    #[test]
    fn a_fence_without_operations_counts_where_it_agrees() {
        let agreeing = [fence(i64::MIN, i64::MAX, false), fence(900, 1000, true), fence(990, 986, false)];
        assert_eq!(decide(&agreeing, Fences::Auto), [true, true, true]);
        assert_eq!(decide(&agreeing, Fences::Operations), [false, true, false]);
        assert_eq!(decide(&agreeing, Fences::All), [true; 3]);
        assert_eq!(decide(&agreeing, Fences::None), [false; 3]);
    }

    #[test]
    fn the_first_fence_counts_only_if_others_without_operations_do() {
        let (first, barrier) = (fence(i64::MIN, i64::MAX, false), fence(900, 1000, true));
        assert_eq!(decide(&[first, barrier, barrier], Fences::Auto), [false, true, true]);
        let open = fence(900, 1000, false);
        assert_eq!(decide(&[first, open, barrier], Fences::Auto), [true; 3]);
        // One of the others was no barrier, though it is one of many.
        let mut fences = vec![first, open, fence(1100, 1000, false), barrier];
        fences.extend(vec![open; 40]);
        assert_eq!(decide(&fences, Fences::Auto)[..4], [false, false, false, true]);
        assert_eq!(decide(&fences, Fences::Auto)[4..], [true; 40]);
    }

    #[test]
    fn one_that_cannot_have_been_a_barrier_speaks_against_the_others() {
        // A process had left before another entered.
        let mut fences =
            vec![fence(900, 1000, true), fence(1100, 1000, false), fence(0, 2000, false), fence(0, 9, true)];
        assert_eq!(decide(&fences, Fences::Auto), [true, false, false, true]);
        fences.extend(vec![fence(0, 9, false); 30]);
        let decided = decide(&fences, Fences::Auto);
        assert_eq!(decided[..4], [true, false, true, true]);
        assert!(decided[4..].iter().all(|&barrier| barrier));
    }
}
