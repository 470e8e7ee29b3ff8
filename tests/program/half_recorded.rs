//! One end of a collective operation was not recorded: those behind it must not be taken for each other.

use crate::missing_records::{RULES, assert_untouched, call, corrected_with, generated, receive, send, trace};
use crate::reference::generate::rng::Rng;
use crate::reference::matching::Rules;
use crate::reference::model::{Recorded, Trace};
use clc_trace::{Collective, CollectiveOp, CommId, Event, Root};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const US: i64 = 1_000;

fn barrier() -> Collective {
    Collective { op: CollectiveOp::BARRIER, comm: CommId(0), root: Root::None, sent: 0, received: 0 }
}

/// Which record of an operation process 0 lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    Begin,
    End,
}

/// Two processes with barriers in which process 1 begins last and process 0 ends last, messages between them, and one half of the barrier `lost` missing.
fn barriers(rounds: i64, immediate: bool, lost: (i64, Lost)) -> Trace {
    let mut processes = vec![Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (process, events) in (0..).zip(&mut processes) {
            let time = (10 + 100 * round) * US;
            let (begin, end) = (time + process * 5 * US, time + (9 - process) * US);
            let request = round as u64;
            let [first, last] = match immediate {
                true => [
                    Event::NonBlockingCollectiveRequest(request),
                    Event::NonBlockingCollectiveComplete(barrier(), request),
                ],
                false => [Event::MpiCollectiveBegin, Event::MpiCollectiveEnd(barrier())],
            };
            if (process, lost) != (0, (round, Lost::Begin)) {
                events.push((begin, first));
            }
            if (process, lost) != (0, (round, Lost::End)) {
                events.push((end, last));
            }
            let sent = time + 40 * US;
            if process == 0 {
                events.extend(send(sent, 1));
            } else {
                events.extend(receive(sent - US, sent + 3 * US, 0));
            }
        }
    }
    trace(processes.into_iter().map(|events| vec![events]).collect())
}

#[test]
fn half_a_barrier_does_not_shift_those_behind_it() {
    for immediate in [false, true] {
        for lost in [Lost::Begin, Lost::End] {
            for round in [0, 3, 9] {
                let trace = barriers(10, immediate, (round, lost));
                let outcome = corrected_with(&trace, &[1, 2], &RULES).unwrap();
                assert_untouched(&trace, &outcome);
                assert_eq!(outcome.received, [10, 0, 0]);
                // The end of a blocking operation has a number: nothing but its operation is left out. Nobody knows where a begin belongs: what follows is left out. A non-blocking operation
                // may have begun before all that began before it ended.
                let left = match (lost, immediate) {
                    (Lost::Begin, true) if round > 0 => 0,
                    (Lost::Begin, _) => 9,
                    (Lost::End, _) => round as u64,
                };
                assert_eq!(outcome.instances, left, "{immediate} {lost:?} {round}");
            }
        }
    }
}

#[test]
fn an_end_whose_begin_may_come_before_or_behind_another_one_is_in_doubt() {
    // Process 0 begins a barrier, and another one that is not recorded, and completes the second one first.
    let immediate = |begin: i64, end: i64, request: u64| {
        [
            (begin, Event::NonBlockingCollectiveRequest(request)),
            (end, Event::NonBlockingCollectiveComplete(barrier(), request)),
        ]
    };
    let own = |process: i64| {
        let mut events =
            [immediate(10, 20, 0), immediate(30 + process, 60, 1), immediate(40 + process, 50, 2)].concat();
        events.extend(immediate(70 + process, 80, 3));
        events.sort_by_key(|event| event.0);
        events.retain(|event| process > 0 || event.1 != Event::NonBlockingCollectiveRequest(2));
        events.into_iter().map(|(time, event)| (time * US, event)).collect::<Vec<_>>()
    };
    let trace = trace(vec![vec![own(0)], vec![own(1)]]);
    let outcome = corrected_with(&trace, &[1, 2], &RULES).unwrap();
    assert_untouched(&trace, &outcome);
    assert_eq!(outcome.instances, 0);
}

#[test]
fn a_begin_on_another_communicator_leaves_one_alone_that_all_have_used_equally_often() {
    // What process 0 begins in the end is never completed, as the program was stopped.
    let own = |process: i64| {
        let mut events: Vec<_> = Vec::new();
        for round in 0..3 {
            let begin = (10 + 10 * round + process) * US;
            events.extend([(begin, Event::MpiCollectiveBegin), (begin + 5 * US, Event::MpiCollectiveEnd(barrier()))]);
            if process == 0 && round == 1 {
                events.push((begin + 6 * US, Event::NonBlockingCollectiveRequest(7)));
            }
        }
        events.extend(call(100 * US, 101 * US, Event::MpiRequestCancelled(9), 102 * US));
        events
    };
    let trace = trace(vec![vec![own(0)], vec![own(1)]]);
    let outcome = corrected_with(&trace, &[1, 2], &RULES).unwrap();
    assert_untouched(&trace, &outcome);
    assert_eq!(outcome.instances, 3);
}

#[test]
fn operations_without_sizes_are_not_called_checked() {
    // Some tracers do not record how much was sent, or how much was received: nobody knows who waits for whom.
    let reduce = |sizes: (u64, u64)| {
        let one = |op: CollectiveOp, (sent, received): (u64, u64)| Collective { op, sent, received, ..barrier() };
        let own = |process: i64| {
            let mut events = Vec::new();
            for (round, op) in (0..).zip([CollectiveOp::ALLREDUCE, CollectiveOp::ALLREDUCE, CollectiveOp::BARRIER]) {
                // The first of them is without data in any case.
                let sizes = if round == 0 { (0, 0) } else { sizes };
                let begin = (10 + 10 * round + process) * US;
                events.extend([
                    (begin, Event::MpiCollectiveBegin),
                    (begin + 5 * US, Event::MpiCollectiveEnd(one(op, sizes))),
                ]);
            }
            events
        };
        corrected_with(&trace(vec![vec![own(0)], vec![own(1)]]), &[1, 2], &RULES).unwrap().instances
    };
    assert_eq!([reduce((8, 8)), reduce((8, 0)), reduce((0, 8)), reduce((0, 0))], [3, 1, 1, 1]);
}

/// Two processes with barriers at these times, of which process 1 has recorded some; by how much its clock is ahead. A message comes back behind each second one.
fn uneven(times: &[i64], recorded: impl Fn(usize) -> bool, ahead: i64) -> Trace {
    let own = |process: i64| {
        let mut events: Vec<_> = Vec::new();
        for (k, time) in times.iter().enumerate() {
            let begin = (time + process + process * ahead) * US;
            if process == 0 || recorded(k) {
                events
                    .extend([(begin, Event::MpiCollectiveBegin), (begin + 5 * US, Event::MpiCollectiveEnd(barrier()))]);
            }
            if k % 2 == 0 {
                let after = begin + 10 * US;
                if process == 0 {
                    events.extend(receive(after, after + 9 * US, 1))
                } else {
                    events.extend(send(after, 0))
                }
            }
        }
        events
    };
    trace(vec![vec![own(0)], vec![own(1)]])
}

#[test]
fn whole_operations_may_be_missing() {
    let irregular = [10, 100, 250, 310, 500, 740, 790, 950];
    let regular: Vec<i64> = (0..8).map(|k| 10 + 100 * k).collect();
    for times in [&irregular[..], &regular] {
        // From the begin on, in between, to the end: nothing is claimed, and what there is before is kept.
        let cases: [(&dyn Fn(usize) -> bool, u64); 5] =
            [(&|k| k > 0, 0), (&|k| k > 4, 0), (&|k| k != 3, 3), (&|k| !(2..5).contains(&k), 2), (&|k| k < 6, 6)];
        for (recorded, left) in cases {
            let trace = uneven(times, recorded, 0);
            let outcome = corrected_with(&trace, &[1, 2], &RULES).unwrap();
            assert_untouched(&trace, &outcome);
            assert_eq!((outcome.instances, outcome.received[2]), (left, 0), "{times:?}");
        }
    }
    // Of what stopped early the clocks may be wrong, unless the program is regular.
    for (times, left) in [(&irregular[..], 6), (&regular, 0)] {
        let outcome = corrected_with(&uneven(times, |k| k < 6, 30), &[1, 2], &RULES).unwrap();
        assert_eq!((outcome.instances, outcome.violated.0 > 0), (left, true), "{times:?}");
    }
}

/// A trace that lacks one end each of so many percent of its collective operations. Never an end and the begin that the same location (and request) recorded next: what is left of the two looks like one operation.
/// Nor ends only, several of a process: then they are taken for what the tracer never records.
fn halved(complete: &Trace, percent: usize, seed: u64) -> Trace {
    let mut rng = Rng(seed);
    let mut trace = complete.clone();
    let (mut lone_ends, mut most_begins) = (0, 0);
    for process in &mut trace.processes {
        let mut begins = 0;
        for events in &mut process.locations {
            let mut keep = vec![true; events.len()];
            let mut begun: BTreeMap<Option<u64>, usize> = BTreeMap::new();
            let mut lacks_end: BTreeSet<Option<u64>> = BTreeSet::new();
            for (number, Recorded { event, .. }) in events.iter().enumerate() {
                let request = match event {
                    Event::MpiCollectiveBegin => {
                        begun.insert(None, number);
                        continue;
                    }
                    Event::NonBlockingCollectiveRequest(request) => {
                        begun.insert(Some(*request), number);
                        continue;
                    }
                    Event::MpiCollectiveEnd(_) => None,
                    Event::NonBlockingCollectiveComplete(_, request) => Some(*request),
                    _ => continue,
                };
                let behind_lost = lacks_end.remove(&request);
                if rng.percent(percent) {
                    let begin = begun.get(&request).copied().filter(|_| !behind_lost && rng.percent(50));
                    keep[begin.unwrap_or(number)] = false;
                    if begin.is_some() {
                        lone_ends += 1;
                    } else {
                        lacks_end.insert(request);
                        begins += 1;
                    }
                }
            }
            let mut keep = keep.iter();
            events.retain(|_| keep.next().is_none_or(|keep| *keep));
        }
        most_begins = most_begins.max(begins);
    }
    if lone_ends == 0 && most_begins > 1 { complete.clone() } else { trace }
}

/// A trace of a tracer that never records where operations of one kind end, of which a process may only begin some.
#[test]
fn ends_that_are_never_recorded_leave_the_others_alone() {
    let own = |process: i64| {
        let mut events: Vec<_> = Vec::new();
        for round in 0..9 {
            let begin = (10 + 10 * round + process) * US;
            events.push((begin, Event::MpiCollectiveBegin));
            if round % 4 != 1 {
                events.push((begin + 5 * US, Event::MpiCollectiveEnd(barrier())));
            }
        }
        events
    };
    let outcome = corrected_with(&trace(vec![vec![own(0)], vec![own(1)]]), &[1, 2], &RULES).unwrap();
    assert_eq!((outcome.instances, outcome.violated.0), (7, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// With perfect clocks nothing is claimed, moved or refused, whichever ends are missing, on any number of ranks.
    #[test]
    fn halves_are_no_violations(seed: u64, percent in prop_oneof![Just(1usize), Just(5), Just(30), Just(80)]) {
        let generated = generated(seed, None);
        let trace = halved(&generated.trace, percent, !seed);
        let rules = Rules { vector_all_to_all: generated.options.rules.vector_all_to_all, ..RULES };
        let outcome = corrected_with(&trace, &[1, 3, trace.processes.len()], &rules).unwrap();
        assert_untouched(&trace, &outcome);
        prop_assert_eq!(outcome.received[2], 0);
    }
}
