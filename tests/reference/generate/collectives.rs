//! Collective steps: blocking, non-blocking, and staggered ones in which members leave before others have entered.
//!
//! What a member waits for is written here as a flow of data from rank to rank.

use super::super::model::REGION_NAMES;
use super::program::{Pending, Program, Thread};
use clc_trace::{Collective, CollectiveOp, CommId, Event, RegionId, Root};

/// The tag of messages between the members of a staggered collective.
const STAGGER: u32 = 7;

/// Operations 0 to 22 are known to OTF2; one beyond them is not.
const OPERATIONS: usize = 24;

/// A collective that is going to happen: who takes part, what each records, and who sends data to whom.
struct Planned {
    members: Vec<usize>,
    threads: Vec<Thread>,
    calls: Vec<Collective>,
    /// `flow[from][to]`, ranks of the communicator.
    flow: Vec<Vec<bool>>,
    /// Whether it has two groups.
    between: bool,
    /// The region of the call of each member, if it has one of its own.
    regions: Vec<Option<&'static str>>,
}

/// How data flows in an operation if nobody's part is empty.
fn flows(op: CollectiveOp, root: usize, from: usize, to: usize) -> bool {
    match op {
        CollectiveOp::BCAST | CollectiveOp::SCATTER | CollectiveOp::SCATTERV => from == root,
        CollectiveOp::REDUCE | CollectiveOp::GATHER | CollectiveOp::GATHERV => to == root,
        CollectiveOp::SCAN | CollectiveOp::EXSCAN => from < to,
        CollectiveOp(17..) => false,
        _ => true,
    }
}

impl Program<'_> {
    /// All members call, and leave as soon as their data is there.
    pub(super) fn blocking_collective(&mut self) {
        let plan = self.plan_collective();
        let begins: Vec<i64> = (0..plan.members.len()).map(|rank| self.begin(&plan, rank)).collect();
        for rank in 0..plan.members.len() {
            let ready = self.ready(&plan, rank, |from| begins[from]);
            self.end(&plan, rank, ready);
        }
    }

    /// The members call one after the other, each leaving before the next one enters, as far as the data allows it: a
    /// root of a Bcast is gone long before the others come. Those who left send messages to those who have not entered.
    pub(super) fn staggered_collective(&mut self) {
        let plan = self.plan_collective();
        let size = plan.members.len();
        // Whoever needs less data from others comes first.
        let needs = |to: usize| (0..size).filter(|&from| from != to && plan.flow[from][to]).count();
        let mut order: Vec<usize> = (0..size).collect();
        self.rng.shuffle(&mut order);
        order.sort_by_key(|&rank| needs(rank));
        let mut begins = vec![None; size];
        let mut inside: Vec<usize> = Vec::new();
        let mut previous: Option<usize> = None;
        for (position, &rank) in order.iter().enumerate() {
            if let Some(previous) = previous
                && !plan.between
                && self.rng.percent(70)
            {
                let channel = (plan.members[previous], plan.members[rank], plan.calls[rank].comm, STAGGER);
                self.send(channel, rank as u32);
                self.receive(channel, previous as u32);
            }
            begins[rank] = Some(self.begin(&plan, rank));
            inside.push(rank);
            let to_come = &order[position + 1..];
            let waits = |&rank: &usize| to_come.iter().any(|&next| plan.flow[next][rank]);
            let (stay, leave): (Vec<usize>, Vec<usize>) = inside.into_iter().partition(waits);
            for &rank in &leave {
                let ready = self.ready(&plan, rank, |from| begins[from].expect("who sends data has entered"));
                self.end(&plan, rank, ready);
                previous = Some(rank);
            }
            inside = stay;
        }
    }

    /// All members request; each completes it some time later.
    pub(super) fn non_blocking_collective(&mut self) {
        let plan = self.plan_collective();
        let mut requests = Vec::new();
        for &thread in &plan.threads {
            let request = self.new_request(thread);
            let event = Event::NonBlockingCollectiveRequest(request);
            requests.push((request, self.call(thread, |program| program.record(thread, 0, event))));
        }
        for (rank, &(process, location)) in plan.threads.iter().enumerate() {
            let not_before = self.ready(&plan, rank, |from| requests[from].1);
            let (request, collective) = (requests[rank].0, plan.calls[rank]);
            self.pending[process][location].push(Pending::Collective { request, collective, not_before });
            if self.rng.percent(30) {
                self.complete((process, location), 70);
            }
        }
    }

    fn begin(&mut self, plan: &Planned, rank: usize) -> i64 {
        let thread = plan.threads[rank];
        if let Some(name) = plan.regions[rank] {
            self.record(thread, 0, Event::Enter(region(name)));
        }
        self.record(thread, 0, Event::MpiCollectiveBegin)
    }

    fn end(&mut self, plan: &Planned, rank: usize, ready: i64) {
        let thread = plan.threads[rank];
        self.record(thread, ready, Event::MpiCollectiveEnd(plan.calls[rank]));
        if let Some(name) = plan.regions[rank] {
            self.record(thread, 0, Event::Leave(region(name)));
        }
    }

    /// When all data for a rank is there.
    fn ready(&self, plan: &Planned, to: usize, begin: impl Fn(usize) -> i64) -> i64 {
        let sources = (0..plan.members.len()).filter(|&from| from != to && plan.flow[from][to]);
        let arrival = |from: usize| begin(from) + self.latency(plan.members[from], plan.members[to]);
        sources.map(arrival).max().unwrap_or(0)
    }

    /// Draws an operation, a root, and how many bytes each member sends and receives.
    fn plan_collective(&mut self) -> Planned {
        let (comm, members, first) = self.pick_for_collective();
        let size = members.len();
        let op = CollectiveOp(self.rng.below(OPERATIONS) as u8);
        let root = self.rng.below(size);
        let ranks = 0..size;
        let mut flow: Vec<Vec<bool>> =
            ranks.clone().map(|from| ranks.clone().map(|to| flows(op, root, from, to)).collect()).collect();
        // Each group of an inter-communicator exchanges data with the other one.
        let with = |a: usize, b: usize| first > 0 && (a < first) == (b < first);
        for (from, to) in ranks.clone().flat_map(|from| ranks.clone().map(move |to| (from, to))) {
            flow[from][to] &= !with(from, to);
        }
        let mut bytes = vec![(0, 0); size];
        let vector = op == CollectiveOp::ALLTOALLV || op == CollectiveOp::ALLTOALLW;
        if vector && !self.options.rules.vector_all_to_all {
            // Only some pairs exchange data, and the trace does not say which.
            for (from, to) in ranks.clone().flat_map(|from| ranks.clone().map(move |to| (from, to))) {
                flow[from][to] = !with(from, to) && self.rng.percent(40);
                bytes[from].0 += u64::from(flow[from][to]);
                bytes[to].1 += u64::from(flow[from][to]);
            }
        } else if op != CollectiveOp::BARRIER {
            let empty_parts = self.rng.percent(40);
            for part in &mut bytes {
                let mut length =
                    || if empty_parts && self.rng.percent(30) { 0 } else { 1 + self.rng.below(100) as u64 };
                *part = (length(), length());
            }
            for (from, to) in ranks.clone().flat_map(|from| ranks.clone().map(move |to| (from, to))) {
                flow[from][to] &= bytes[from].0 > 0 && bytes[to].1 > 0;
            }
        }
        let mut regions = vec![None; size];
        if op == CollectiveOp::CREATE_HANDLE && self.rng.percent(80) {
            let name = self.rng.pick(&["MPI_Comm_split", "pmpi_comm_dup_", "MPI_Comm_create_group"]);
            regions.fill(Some(name));
            // By all of them: whoever has made one knows that the others have begun, whatever the numbers of bytes say.
            let by_all = self.options.rules.handles && name != "MPI_Comm_create_group";
            for (from, to) in ranks.clone().flat_map(|from| ranks.clone().map(move |to| (from, to))) {
                flow[from][to] = by_all && !with(from, to);
            }
            if self.options.anomalies.truncated && self.rng.percent(10) {
                // One of them has recorded no region, so the operations differ.
                regions[root] = None;
            }
        }
        let recorded_root = |rank: usize| match has_root(op) {
            false => Root::None,
            true if first == 0 => Root::Rank(root as u32),
            true if rank == root => Root::ThisProcess,
            true if with(rank, root) => Root::OwnGroup,
            true => Root::Rank((if root < first { root } else { root - first }) as u32),
        };
        let call = |(rank, &(sent, received)): (usize, &(u64, u64))| Collective {
            op,
            comm,
            root: recorded_root(rank),
            sent,
            received,
        };
        let threads = self.threads(&members, comm);
        Planned {
            calls: bytes.iter().enumerate().map(call).collect(),
            members,
            threads,
            flow,
            between: first > 0,
            regions,
        }
    }

    fn threads(&self, members: &[usize], comm: CommId) -> Vec<Thread> {
        members.iter().map(|&process| self.thread(process, comm, None)).collect()
    }
}

/// The region of this name.
fn region(name: &str) -> RegionId {
    RegionId(REGION_NAMES.iter().position(|known| *known == name).expect("a region of this name") as u32)
}

/// Whether an operation has a root.
fn has_root(op: CollectiveOp) -> bool {
    let rooted = [
        CollectiveOp::BCAST,
        CollectiveOp::SCATTER,
        CollectiveOp::SCATTERV,
        CollectiveOp::REDUCE,
        CollectiveOp::GATHER,
        CollectiveOp::GATHERV,
    ];
    rooted.contains(&op)
}
