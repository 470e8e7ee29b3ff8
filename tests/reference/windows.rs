//! Collective calls on windows, and which fences are barriers.
//!
//! A fence at which no process ends an epoch in which it accessed others may have been asserted not to synchronise. It can have been a barrier if, from
//! the fence before it to itself and from itself to the fence after it, no process took longer at least than another one at most.

use super::calls;
use super::halves::{Halves, LoneEnd, settle};
use super::matching::Call;
use super::model::{Timeline, Trace};
use super::uneven::{self, Compared};
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{Collective, CollectiveOp, CommId, Event, MpiRank, WindowId};
use std::collections::{BTreeMap, BTreeSet};

/// A call of one process on a window.
#[derive(Clone, Copy)]
struct OnWindow {
    begin: usize,
    end: usize,
    fence: bool,
    /// Which operation.
    op: u8,
    /// The process has accessed others since its fence before.
    accessed: bool,
}

/// A fence without operations that counts as a barrier, unless clocks speak against it.
pub(crate) const ASSUMED: CollectiveOp = CollectiveOp::WIN_FENCE_ASSUMED;
/// What stands for an operation that constrains nobody.
const NOTHING: CollectiveOp = CollectiveOp::CREATE_HANDLE;

/// The calls of each of the `members` on a window, a barrier for each fence that is one; how many have the same number with all members.
pub(crate) fn calls_on(
    window: WindowId,
    timelines: &[Timeline],
    members: &[MpiRank],
    (choice, only_begins): (Fences, bool),
) -> (Vec<Vec<Call>>, usize) {
    let recorded = members.iter().map(|&process| of_process(window, &timelines[process]));
    let (mut calls, halves): (Vec<Vec<OnWindow>>, Vec<Halves>) = recorded.unzip();
    let numbered = settle(&mut calls, &halves, |call| (call.begin, call.end), only_begins);
    let at = |member: usize, index: usize| timelines[members[member]][index].time;
    let compared = |(member, list): (usize, &Vec<OnWindow>)| -> Vec<Compared> {
        let one = |call: &OnWindow| Compared {
            kind: (call.op, u32::from(call.fence)),
            begin: at(member, call.begin),
            end: at(member, call.end),
            all_wait: false,
        };
        list.iter().map(one).collect()
    };
    let violated = |k: usize| {
        let fences = || (0..calls.len()).filter(|&member| calls[member][k].fence);
        let last = fences().map(|member| at(member, calls[member][k].begin)).max();
        let first = fences().map(|member| at(member, calls[member][k].end)).min();
        last > first
    };
    let even = uneven::numbered(&calls.iter().enumerate().map(compared).collect::<Vec<_>>(), violated);
    let numbered = numbered.min(even);
    let complete = numbered;
    let alike = |k: &usize| calls.iter().all(|list| list[*k].fence == calls[0][*k].fence);
    let complete = (0..complete).take_while(alike).count();
    let fences: Vec<usize> = (0..complete).filter(|&k| calls[0][k].fence).collect();
    let time = |member: usize, index: usize| timelines[members[member]][index].time;
    let accessed = |k: usize| calls.iter().any(|list| list[k].accessed);
    let agree = |j: usize| {
        let (Some(&before), Some(&k)) = (j.checked_sub(1).and_then(|i| fences.get(i)), fences.get(j)) else {
            return true;
        };
        let least = (0..calls.len()).map(|p| time(p, calls[p][k].begin) - time(p, calls[p][before].end)).max().unwrap();
        let most = (0..calls.len()).map(|p| time(p, calls[p][k].end) - time(p, calls[p][before].begin)).min().unwrap();
        least <= most + most.max(0) / 192
    };
    let fits = |j: usize| agree(j) && agree(j + 1);
    let open: Vec<usize> = (0..fences.len()).filter(|&j| !accessed(fences[j])).collect();
    let trusted = open.iter().filter(|&&j| !fits(j)).count() * 16 <= open.len();
    // The first one needs others like it, all of which agree.
    let first = open.len() > usize::from(open.first() == Some(&0)) && open.iter().all(|&j| fits(j));
    let barriers: BTreeSet<usize> = (0..fences.len())
        .filter(|&j| match choice {
            Fences::All => true,
            Fences::None => false,
            Fences::Operations => accessed(fences[j]),
            Fences::Auto => accessed(fences[j]) || (trusted && fits(j) && (j > 0 || first)),
        })
        .map(|j| fences[j])
        .collect();
    let call = |(k, call): (usize, &OnWindow)| {
        let op = match barriers.contains(&k) {
            true if accessed(k) => CollectiveOp::BARRIER,
            true => ASSUMED,
            false => NOTHING,
        };
        let op = if k >= complete && call.fence { CollectiveOp::BARRIER } else { op };
        let collective = Collective { op, comm: CommId(u32::MAX), root: clc_trace::Root::None, sent: 0, received: 0 };
        Call { begin: call.begin, end: call.end, collective }
    };
    (calls.iter().map(|list| list.iter().enumerate().map(call).collect()).collect(), numbered)
}

/// Whether a call on a window ends somewhere that has not begun.
pub(crate) fn end_alone(trace: &Trace, timelines: &[Timeline]) -> bool {
    let mut windows = trace.windows.iter();
    windows.any(|window| timelines.iter().any(|timeline| !of_process(window.id, timeline).1.ends.is_empty()))
}

fn of_process(window: WindowId, timeline: &Timeline) -> (Vec<OnWindow>, Halves) {
    let (mut found, mut half): (Vec<OnWindow>, Halves) = Default::default();
    let mut begun: BTreeMap<usize, usize> = BTreeMap::new();
    let (mut accesses, mut groups) = (0, 0u32);
    let mut locked: BTreeSet<u32> = BTreeSet::new();
    for (index, entry) in timeline.iter().enumerate() {
        let mut access = |on: WindowId| accesses += u32::from(on == window && locked.is_empty() && groups == 0);
        match entry.event {
            Event::RmaCollectiveBegin => {
                half.begins.extend(begun.insert(entry.location, index));
            }
            Event::RmaCollectiveEnd(end) => {
                let begin = begun.remove(&entry.location);
                if end.window != window {
                    continue;
                }
                let fence = end.op == CollectiveOp::BARRIER && end.level != 0;
                let accessed = fence && std::mem::take(&mut accesses) > 0;
                match begin {
                    Some(begin) => found.push(OnWindow { begin, end: index, fence, op: end.op.0, accessed }),
                    None => half.ends.push(LoneEnd { index, immediate: false }),
                }
            }
            Event::RmaPut(transfer) | Event::RmaGet(transfer) => access(transfer.window),
            Event::RmaAtomic(atomic) => access(atomic.window),
            Event::RmaRequestLock(lock) | Event::RmaAcquireLock(lock) if lock.window == window => {
                locked.insert(lock.remote);
            }
            Event::RmaReleaseLock(lock) if lock.window == window => {
                locked.remove(&lock.remote);
            }
            Event::RmaGroupSync(sync) if sync.window == window => {
                let begins = match calls::around(timeline, index) {
                    Some("MPI_Win_post" | "MPI_Win_start") => true,
                    Some("MPI_Win_complete" | "MPI_Win_wait") => false,
                    _ => sync.level & 2 == 0,
                };
                match (begins, groups) {
                    (true, _) => groups += 1,
                    // An epoch that has not begun may have had all accesses before.
                    (false, 0) => accesses = 0,
                    (false, _) => groups -= 1,
                }
            }
            _ => {}
        }
    }
    found.sort_by_key(|call| call.begin);
    half.begins.extend(begun.into_values());
    half.begins.sort_unstable();
    (found, half)
}

/// Whether a process leaves a collective call on a window open at `cut`, the later ones of which would be taken for it.
pub(crate) fn cuts_a_call(trace: &Trace, timeline: &Timeline, cut: usize) -> Option<usize> {
    let calls = trace.windows.iter().map(|window| of_process(window.id, timeline).0);
    let mut overtaken = calls.filter_map(|calls| {
        let open = calls.iter().find(|call| call.begin < cut && cut <= call.end)?;
        calls.iter().any(|later| later.begin > open.begin && later.end < cut).then_some(open.begin)
    });
    overtaken.next()
}
