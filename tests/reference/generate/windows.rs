//! Steps on windows: accesses, and fences with and without them.

use super::program::{Program, Thread};
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{
    CollectiveOp, CommMembers, Event, GroupId, MpiRank, Root, Window, WindowAtomic, WindowCollective, WindowGroup,
    WindowId, WindowLock, WindowTransfer,
};

/// In the place of the tag: the location for calls on a window.
const CALLS: u32 = 1_000;

/// OTF2 `RmaSyncLevel`: processes; processes and memory.
const PROCESSES: u32 = 1;
const BOTH: u32 = 3;

impl Program<'_> {
    /// Some processes access others, with a lock or without; then all make a fence, or another collective call.
    pub(super) fn window_step(&mut self) {
        let index = self.rng.below(self.run.windows.len());
        let Window { id, comm, .. } = self.run.windows[index];
        let members: Vec<usize> = match self.run.communicators.iter().find(|c| c.id == comm).map(|c| &c.members) {
            Some(CommMembers::Intra(members)) => members.iter().map(|process| process.place()).collect(),
            _ => vec![self.rng.below(self.options.processes)],
        };
        let threads: Vec<Thread> =
            members.iter().map(|&process| self.thread(process, comm, Some(CALLS + index as u32))).collect();
        // What is accessed is completed by a fence.
        let fence = self.rng.percent(85);
        let (mut accessed, often) = (false, if fence { self.rng.pick(&[0, 30]) } else { 0 });
        for &thread in &threads {
            let remote = self.rng.below(members.len()) as u32;
            if self.rng.percent(20) {
                let lock = WindowLock { window: id, remote, lock: 0, kind: 0 };
                self.call(thread, |program| program.record(thread, 0, Event::RmaRequestLock(lock)));
                self.access(thread, id, remote);
                self.call(thread, |program| program.record(thread, 0, Event::RmaReleaseLock(lock)));
            }
            if self.rng.percent(often) {
                self.access(thread, id, remote);
                accessed = true;
            }
        }
        let op = if fence { CollectiveOp::BARRIER } else { CollectiveOp::CREATE_HANDLE_AND_ALLOCATE };
        let end = WindowCollective { op, level: BOTH, window: id, root: Root::None, sent: 0, received: 0 };
        // Without accesses all may assert that it need not synchronise.
        let barrier = fence
            && match self.options.rules.fences {
                Fences::All | Fences::Auto => true,
                Fences::Operations => accessed,
                Fences::None => self.rng.percent(50),
            };
        let begins: Vec<i64> =
            threads.iter().map(|&thread| self.record(thread, 0, Event::RmaCollectiveBegin)).collect();
        for (to, &thread) in threads.iter().enumerate() {
            let others = (0..members.len()).filter(|&from| barrier && from != to);
            let ready = others.map(|from| begins[from] + self.latency(members[from], members[to])).max().unwrap_or(0);
            self.record(thread, ready, Event::RmaCollectiveEnd(end));
        }
    }

    /// Some processes post for others, which start an epoch with them and complete it; those who posted wait for that.
    pub(super) fn epoch_step(&mut self) {
        let index = self.rng.below(self.run.windows.len());
        let Window { id, comm, .. } = self.run.windows[index];
        let members: Vec<usize> = match self.run.communicators.iter().find(|c| c.id == comm).map(|c| &c.members) {
            Some(CommMembers::Intra(members)) => members.iter().map(|process| process.place()).collect(),
            _ => return,
        };
        let threads: Vec<Thread> =
            members.iter().map(|&process| self.thread(process, comm, Some(CALLS + index as u32))).collect();
        let ranks = 0..members.len();
        // Who accesses whom.
        let mut pairs = Vec::new();
        for (origin, target) in ranks.clone().flat_map(|a| ranks.clone().map(move |b| (a, b))) {
            if origin != target && self.rng.percent(40) {
                pairs.push((origin, target));
            }
        }
        let targets = |of: usize| pairs.iter().filter(|pair| pair.0 == of).map(|pair| pair.1).collect::<Vec<usize>>();
        let origins = |of: usize| pairs.iter().filter(|pair| pair.1 == of).map(|pair| pair.0).collect::<Vec<usize>>();
        let (mut posted, mut completed) = (vec![0; members.len()], vec![0; members.len()]);
        for rank in ranks.clone().filter(|&rank| !origins(rank).is_empty()) {
            let group = self.group(&members, &origins(rank));
            posted[rank] = self.step_on(threads[rank], "MPI_Win_post", id, (group, PROCESSES), 0);
        }
        for rank in ranks.clone().filter(|&rank| !targets(rank).is_empty()) {
            let group = self.group(&members, &targets(rank));
            self.step_on(threads[rank], "MPI_Win_start", id, (group, PROCESSES), 0);
            self.access(threads[rank], id, targets(rank)[0] as u32);
            let arrival = |from: usize| posted[from] + self.latency(members[from], members[rank]);
            let end = targets(rank).into_iter().map(arrival).max().unwrap_or(0);
            completed[rank] = self.step_on(threads[rank], "MPI_Win_complete", id, (group, BOTH), end);
        }
        for rank in ranks.filter(|&rank| !origins(rank).is_empty()) {
            let group = self.group(&members, &origins(rank));
            let arrival = |from: usize| completed[from] + self.latency(members[from], members[rank]);
            let end = origins(rank).into_iter().map(arrival).max().unwrap_or(0);
            self.step_on(threads[rank], "MPI_Win_wait", id, (group, BOTH), end);
        }
    }

    /// A call that synchronises a group, not left before `end`; returns when it was entered.
    fn step_on(
        &mut self,
        thread: Thread,
        name: &str,
        window: WindowId,
        (group, level): (GroupId, u32),
        end: i64,
    ) -> i64 {
        let event = Event::RmaGroupSync(WindowGroup { level, window, group });
        self.call_named(thread, name, end, |program| program.record(thread, 0, event)).0
    }

    /// The group of these ranks among the `members` of a communicator.
    fn group(&mut self, members: &[usize], ranks: &[usize]) -> GroupId {
        let processes: Vec<MpiRank> = ranks.iter().map(|&rank| MpiRank(members[rank] as u32)).collect();
        let groups = &mut self.run.groups;
        if let Some((id, _)) = groups.iter().find(|(_, members)| members[..] == processes[..]) {
            return *id;
        }
        let id = GroupId(2 * groups.len() as u32 + 3);
        groups.push((id, processes.into()));
        id
    }

    fn access(&mut self, thread: Thread, window: WindowId, remote: u32) {
        let transfer = WindowTransfer { window, remote, bytes: 8, matching: 1 };
        let event = match self.rng.below(3) {
            0 => Event::RmaPut(transfer),
            1 => Event::RmaGet(transfer),
            _ => Event::RmaAtomic(WindowAtomic { window, remote, kind: 0, sent: 8, received: 8, matching: 1 }),
        };
        self.call(thread, |program| program.record(thread, 0, event));
    }
}
