//! Synchronous sends, fences, epochs of groups and locks in true time, by the names of regions and without any code of the simulator.

use super::{EventCollector, Record};
use crate::Scenario;
use clc_trace::{Event, Message, RegionId};
use std::collections::{BTreeMap, HashMap};

/// Its order goes through the target.
const LOCK: &str = "an exclusive lock";

/// What one process did, with true times.
#[derive(Default)]
struct Done {
    /// When regions of a name were entered and left, in order.
    regions: BTreeMap<String, Vec<(i64, i64)>>,
    fences: Vec<(i64, i64)>,
    /// Target, acquisition, and when the call that released it was entered.
    locks: Vec<(u32, i64, i64)>,
    /// By receiver and tag: when synchronous sends were over.
    synchronous: HashMap<(u32, u32), Vec<i64>>,
    /// By sender and tag: when the calls that received were entered.
    received: HashMap<(u32, u32), Vec<i64>>,
}

/// What a process did that takes part in such orders.
fn done_by(names: &HashMap<RegionId, String>, records: &[Record]) -> Done {
    let mut done = Done::default();
    let mut stack: Vec<(i64, String)> = Vec::new();
    let (mut begin, mut held, mut sent) = (0, HashMap::new(), None);
    for &(time, _, event) in records {
        let entered = stack.last().map_or(0, |(entered, _)| *entered);
        match event {
            Event::Enter(region) => stack.push((time.0, names[&region].clone())),
            Event::Leave(_) => {
                let (entered, name) = stack.pop().expect("a region");
                if let Some(Message { peer, tag, .. }) = sent.take().filter(|_| name == "MPI_Ssend") {
                    done.synchronous.entry((peer, tag)).or_default().push(time.0);
                }
                done.regions.entry(name).or_default().push((entered, time.0));
            }
            Event::MpiSend(message) => sent = Some(message),
            Event::MpiRecv(m) => done.received.entry((m.peer, m.tag)).or_default().push(entered),
            Event::RmaCollectiveBegin => begin = time.0,
            Event::RmaCollectiveEnd(_) => done.fences.push((begin, time.0)),
            Event::RmaAcquireLock(lock) => drop(held.insert(lock.remote, time.0)),
            Event::RmaReleaseLock(lock) => {
                done.locks.push((lock.remote, held.remove(&lock.remote).expect("a lock"), entered));
            }
            _ => {}
        }
    }
    done
}

/// Checks all such orders of a run; returns how many there are.
pub(super) fn check(scenario: &Scenario, run: &EventCollector) -> usize {
    let definitions = scenario.definitions();
    let names: HashMap<_, _> = definitions.regions.iter().map(|region| (region.id, region.name.clone())).collect();
    let threads = scenario.locations() as usize;
    if scenario.pattern.has_parts() {
        return run.0.chunks(threads).map(|process| check_parts(&names, process)).sum();
    }
    let all: Vec<Done> = run.0.iter().step_by(threads).map(|records| done_by(&names, records)).collect();
    let nodes = scenario.nodes();
    let latency = &scenario.latency;
    let minimum = |a: usize, b: usize| {
        let class = if nodes[a] == nodes[b] { latency.same_node } else { latency.other_node };
        class.minimum / 1000 - 1
    };
    // What goes by a third process may be quicker than what stays within a node.
    let least = latency.same_node.minimum.min(latency.other_node.minimum) / 1000 - 1;
    let mut orders = 0;
    let mut after = |(a, from): (usize, i64), (b, to): (usize, i64), what: &str| {
        let minimum = if what == LOCK { least } else { minimum(a, b) };
        assert!(to >= from + minimum, "{what}: process {b} at {to}, but process {a} at {from}");
        orders += 1;
    };
    for (a, own) in all.iter().enumerate() {
        for (&(peer, tag), ends) in &own.synchronous {
            let posted = &all[peer as usize].received[&(a as u32, tag)];
            assert_eq!(posted.len(), ends.len());
            for (&posted, &end) in posted.iter().zip(ends) {
                after((peer as usize, posted), (a, end), "a synchronous send");
            }
        }
        for (b, other) in all.iter().enumerate().filter(|(b, _)| *b != a) {
            assert_eq!(own.fences.len(), other.fences.len());
            for (own, other) in own.fences.iter().zip(&other.fences) {
                after((b, other.0), (a, own.1), "a fence");
            }
            if a.abs_diff(b) != 1 {
                continue;
            }
            let of = |done: &Done, name: &str| done.regions.get(name).cloned().unwrap_or_default();
            for (post, complete) in of(other, "MPI_Win_post").iter().zip(of(own, "MPI_Win_complete")) {
                after((b, post.0), (a, complete.1), "complete after post");
            }
            for (complete, wait) in of(other, "MPI_Win_complete").iter().zip(of(own, "MPI_Win_wait")) {
                after((b, complete.0), (a, wait.1), "wait after complete");
            }
        }
    }
    let mut locks: Vec<(u32, i64, i64, usize)> = Vec::new();
    for (process, done) in all.iter().enumerate() {
        locks.extend(done.locks.iter().map(|&(target, acquired, released)| (target, acquired, released, process)));
    }
    locks.sort_unstable();
    for pair in locks.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        after((pair[0].3, pair[0].2), (pair[1].3, pair[1].1), LOCK);
    }
    orders
}

/// When a location did something of a kind, in order.
fn times(records: &[Record], of: impl Fn(&Event) -> bool) -> Vec<i64> {
    records.iter().filter(|record| of(&record.2)).map(|record| record.0.0).collect()
}

/// The k-th of one list is not after the k-th of the other; returns how many there are.
fn before(from: &[i64], to: &[i64], what: &str) -> usize {
    assert_eq!(from.len(), to.len(), "{what}");
    from.iter().zip(to).for_each(|(from, to)| assert!(from <= to, "{what}: {to} is before {from}"));
    from.len()
}

/// What the locations of one process do with each other: the first one forks and joins teams with the others, or issues work to them and waits.
fn check_parts(names: &HashMap<RegionId, String>, process: &[Vec<Record>]) -> usize {
    let enters = |name: &'static str| move |event: &Event| matches!(event, Event::Enter(r) if names[r] == name);
    let leaves = |name: &'static str| move |event: &Event| matches!(event, Event::Leave(r) if names[r] == name);
    let step = |kind: u8| move |event: &Event| matches!(event, Event::Thread(step) if step.kind() == kind);
    let main = &process[0];
    let (launches, waits) = (times(main, enters("hipLaunchKernel")), times(main, leaves("hipDeviceSynchronize")));
    let mut orders = 0;
    let barrier = "!$omp implicit barrier";
    for (place, location) in process.iter().enumerate() {
        // Fork, team begin, team end, join.
        orders += before(&times(main, step(53)), &times(location, step(55)), "a fork");
        orders += before(&times(location, step(56)), &times(main, step(54)), "a join");
        for other in process {
            orders += before(&times(location, enters(barrier)), &times(other, leaves(barrier)), "a barrier");
        }
        if place > 0 && !launches.is_empty() {
            let streams = process.len() - 1;
            let own: Vec<i64> = launches.iter().skip(place - 1).step_by(streams).copied().collect();
            orders += before(&own, &times(location, enters("stencil")), "a launch");
            orders += before(&times(location, leaves("stencil")), &waits, "a wait");
            let site = |event: &Event| matches!(event, Event::Parameter(p) if p.value == place as u64);
            assert_eq!(times(location, site).len(), times(main, site).len(), "call sites");
        }
    }
    let copies = times(main, enters("hipMemcpyDtoH"));
    if !copies.is_empty() {
        orders += before(&copies, &times(&process[1], |e| matches!(e, Event::RmaPut(_))), "a copy");
        let done = times(&process[1], |e| matches!(e, Event::RmaOpCompleteBlocking(..)));
        orders += before(&done, &times(main, leaves("hipMemcpyDtoH")), "the end of a copy");
    }
    orders
}
