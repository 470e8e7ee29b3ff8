//! The oracle itself: hand-computed cases, and what must hold for all generated traces.

use crate::reference::backward::{Tube, backward};
use crate::reference::forward::{Control, Forward, ONE, forward, lamport_advance};
use crate::reference::generate::{Options, generate, generate_with, rng::Rng};
use crate::reference::matching::{Dependency, Kind, Rules, matching};
use crate::reference::model::{EventRef, Process, Recorded, Trace};
use crate::reference::properties;
use crate::reference::violations::violations;
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{Collective, CollectiveOp, CommId, CommMembers, Communicator, Event, Message, MpiRank, Root};
use proptest::prelude::*;

const HALF: i64 = ONE / 2;
const WORLD: CommId = CommId(5);
const RULES: Rules =
    Rules { same_node: 10, other_node: 100, vector_all_to_all: false, fences: Fences::Auto, handles: false };

fn at(process: usize, index: usize) -> EventRef {
    EventRef { process, index }
}

fn message(peer: u32, tag: u32) -> Message {
    Message { peer, comm: WORLD, tag, length: 8 }
}

/// One location per process, event j at time 10 j, all on node 0 but the last process, on node 1.
fn trace(processes: &[&[Event]]) -> Trace {
    let stream = |events: &[Event]| -> Vec<Recorded> {
        (0..).zip(events).map(|(j, &event)| Recorded { time: 10 * j, event }).collect()
    };
    let node = |p: usize| u32::from(p > 0 && p + 1 == processes.len());
    let process = |(p, events): (usize, &&[Event])| Process { node: node(p), locations: vec![stream(events)] };
    let world = CommMembers::Intra((0..processes.len() as u32).map(MpiRank).collect());
    Trace {
        processes: processes.iter().enumerate().map(process).collect(),
        communicators: vec![Communicator { id: WORLD, name: "world".into(), members: world, global_ranks: false }],
        ..Trace::default()
    }
}

/// A constraint between two events, whatever its kind.
fn pair(send: (usize, usize), receive: (usize, usize), latency: i64) -> Dependency {
    let kind = Kind::PointToPoint;
    Dependency { kind, send: at(send.0, send.1), receive: at(receive.0, receive.1), latency }
}

#[test]
fn timelines_merge_by_time_then_location_then_number() {
    let location = |times: &[i64]| times.iter().map(|&time| Recorded { time, event: Event::Other }).collect();
    let process = Process { node: 0, locations: vec![location(&[5, 5, 9]), location(&[1, 5, 9])] };
    let order: Vec<(usize, usize)> = process.timeline().iter().map(|e| (e.location, e.number)).collect();
    assert_eq!(order, [(1, 0), (0, 0), (0, 1), (1, 1), (0, 2), (1, 2)]);
}

#[test]
fn messages_match_in_the_order_of_posting() {
    let found = matching(
        &trace(&[
            &[Event::MpiSend(message(1, 0)), Event::MpiIsend(message(1, 0), 1), Event::MpiSend(message(1, 9))],
            &[
                Event::MpiIrecvRequest(7),
                Event::MpiRecv(message(0, 0)),
                Event::MpiIrecv(message(0, 0), 7),
                Event::MpiRecv(message(0, 8)),
            ],
        ]),
        &RULES,
    );
    assert_eq!(found.messages, [(at(0, 0), at(1, 2)), (at(0, 1), at(1, 1))]);
    assert_eq!(found.dependencies, [pair((0, 0), (1, 2), 100), pair((0, 1), (1, 1), 100)]);
    assert_eq!((found.unmatched_sends, found.unmatched_receives), (vec![at(0, 2)], vec![at(1, 3)]));
}

#[test]
fn request_ids_are_used_again_and_cancelled_requests_are_nothing() {
    let found = matching(
        &trace(&[
            &[
                Event::MpiIsend(message(1, 0), 1),
                Event::MpiRequestCancelled(1),
                Event::MpiIsend(message(1, 0), 1),
                Event::MpiIsendComplete(1),
                Event::MpiIsend(message(1, 0), 1),
            ],
            &[
                Event::MpiIrecvRequest(1),
                Event::MpiRequestCancelled(1),
                Event::MpiIrecvRequest(2), // is never completed
                Event::MpiIrecvRequest(1),
                Event::MpiRequestTest(1),
                Event::MpiIrecv(message(0, 0), 1),
                Event::MpiIrecvRequest(1),
                Event::MpiIrecv(message(0, 0), 1),
            ],
        ]),
        &RULES,
    );
    assert_eq!(found.messages, [(at(0, 2), at(1, 5)), (at(0, 4), at(1, 7))]);
    assert!(found.unmatched_sends.is_empty() && found.unmatched_receives.is_empty());
}

#[test]
fn messages_to_oneself_match_and_constrain_nobody() {
    let found = matching(&trace(&[&[Event::MpiSend(message(0, 0)), Event::MpiRecv(message(0, 0))], &[]]), &RULES);
    assert_eq!((found.messages.len(), found.dependencies.len()), (1, 0));
}

/// The pairs of ranks that a collective constrains, with latency. Three processes: 0 and 1 share a node, 2 has its own.
fn collective_pairs(op: CollectiveOp, root: Root, bytes: [(u64, u64); 3], rules: &Rules) -> Vec<(usize, usize, i64)> {
    let call = |(sent, received)| {
        let end = Collective { op, comm: WORLD, root, sent, received };
        [Event::MpiCollectiveBegin, Event::MpiCollectiveEnd(end)]
    };
    let calls = bytes.map(call);
    let found = matching(&trace(&[&calls[0], &calls[1], &calls[2]]), rules);
    assert!(found.dependencies.iter().all(|d| d.send.index == 0 && d.receive.index == 1));
    found.dependencies.iter().map(|d| (d.send.process, d.receive.process, d.latency)).collect()
}

#[test]
fn collectives_constrain_by_their_class() {
    let full = [(1, 1); 3];
    let pairs = |op, root| collective_pairs(op, root, full, &RULES);
    let (root, none) = (Root::Rank(1), Root::None);
    let all_to_all = [(0, 1, 10), (0, 2, 10), (1, 0, 10), (1, 2, 10), (2, 0, 10), (2, 1, 10)];
    for op in [CollectiveOp::BCAST, CollectiveOp::SCATTER, CollectiveOp::SCATTERV] {
        assert_eq!(pairs(op, root), [(1, 0, 10), (1, 2, 100)], "{op}");
    }
    for op in [CollectiveOp::REDUCE, CollectiveOp::GATHER, CollectiveOp::GATHERV] {
        assert_eq!(pairs(op, root), [(0, 1, 10), (2, 1, 10)], "{op}");
        assert_eq!(pairs(op, Root::Rank(2)), [(0, 2, 100), (1, 2, 100)], "{op}");
    }
    for op in [0, 6, 7, 8, 11, 13, 16].map(CollectiveOp) {
        assert_eq!(pairs(op, none), all_to_all, "{op}");
    }
    for op in [CollectiveOp::SCAN, CollectiveOp::EXSCAN] {
        assert_eq!(pairs(op, none), [(0, 1, 10), (0, 2, 10), (1, 2, 10)], "{op}");
    }
    for op in [9, 10, 17, 18, 19, 20, 21, 22, 23].map(CollectiveOp) {
        assert_eq!(pairs(op, none), [], "{op}");
    }
    let rules = Rules { vector_all_to_all: true, ..RULES };
    assert_eq!(collective_pairs(CollectiveOp::ALLTOALLV, none, full, &rules), all_to_all);
}

#[test]
fn members_without_bytes_take_no_part() {
    let pairs = |op, root, bytes| collective_pairs(op, root, bytes, &RULES);
    let zero = [(1, 0), (1, 1), (0, 1)];
    assert_eq!(pairs(CollectiveOp::ALLREDUCE, Root::None, zero), [(0, 1, 10), (0, 2, 10), (1, 2, 10)]);
    assert_eq!(pairs(CollectiveOp::SCAN, Root::None, [(0, 1), (1, 1), (1, 1)]), [(1, 2, 10)]);
    assert_eq!(pairs(CollectiveOp::BCAST, Root::Rank(1), zero), [(1, 2, 100)]);
    assert_eq!(pairs(CollectiveOp::BCAST, Root::Rank(2), zero), []);
    assert_eq!(pairs(CollectiveOp::REDUCE, Root::Rank(1), zero), [(0, 1, 10)]);
    assert_eq!(pairs(CollectiveOp::REDUCE, Root::Rank(0), zero), []);
    assert_eq!(pairs(CollectiveOp::BARRIER, Root::None, [(0, 0); 3]).len(), 6);
}

#[test]
fn collectives_match_in_the_order_of_their_begin() {
    let end = |op| Collective { op, comm: WORLD, root: Root::None, sent: 1, received: 1 };
    let (scan, allreduce) = (end(CollectiveOp::SCAN), end(CollectiveOp::ALLREDUCE));
    let late = [
        Event::NonBlockingCollectiveRequest(1),
        Event::MpiCollectiveBegin,
        Event::MpiCollectiveEnd(allreduce),
        Event::NonBlockingCollectiveComplete(scan, 1),
    ];
    let early = [
        Event::NonBlockingCollectiveRequest(4),
        Event::NonBlockingCollectiveComplete(scan, 4),
        Event::MpiCollectiveBegin,
        Event::MpiCollectiveEnd(allreduce),
        Event::MpiCollectiveBegin,
        Event::MpiCollectiveEnd(allreduce),
    ];
    let found = matching(&trace(&[&late, &early]), &RULES);
    let pairs: Vec<_> = found.dependencies.iter().map(|d| (d.kind, d.send, d.receive)).collect();
    let both = [(Kind::AllToAll, at(0, 1), at(1, 3)), (Kind::AllToAll, at(1, 2), at(0, 2))];
    assert_eq!(pairs, [both[0], both[1], (Kind::Prefix, at(0, 0), at(1, 1))]);
    assert_eq!(found.incomplete_collectives, [at(1, 5)]);
}

#[test]
fn a_late_receive_jumps_and_its_offset_decays() {
    let times = vec![vec![100], vec![40, 50, 60, 61, 200]];
    let control = Control { decay: HALF, delta: 0 };
    let result = forward(&times, &[pair((0, 0), (1, 1), 10)], control).unwrap();
    // R = 110, X = 50. Then 60 - floor(10 / 2) = 55, 60 - floor(11 / 2) = 55, and nothing is left at 200.
    assert_eq!(result.clock, [vec![100], vec![40, 110, 115, 116, 200]]);
    assert_eq!(result.jumps, [vec![0], vec![0, 60, 0, 0, 0]]);
}

#[test]
fn delta_keeps_distinct_events_apart_and_anchors_the_offset() {
    let times = vec![vec![100], vec![50, 51, 51, 53, 63]];
    let control = Control { decay: HALF, delta: 2 };
    let result = forward(&times, &[pair((0, 0), (1, 0), 0)], control).unwrap();
    // The distances 1, 0, 2 stay. At time 53 that takes an offset of 50 again, of which 45 are left ten ticks later.
    assert_eq!(result.clock[1], [100, 101, 101, 103, 108]);
    assert_eq!(lamport_advance(&times, &[pair((0, 0), (1, 0), 0)]), Ok(50));
}

#[test]
fn advances_propagate_and_add_up_over_processes() {
    let times = vec![vec![100], vec![10, 20], vec![5, 6]];
    let pairs = [pair((0, 0), (1, 0), 7), pair((1, 1), (2, 1), 7)];
    let result = forward(&times, &pairs, Control { decay: 0, delta: 0 }).unwrap();
    assert_eq!(result.clock, [vec![100], vec![107, 117], vec![5, 124]]);
    assert_eq!(result.jumps, [vec![0], vec![97, 0], vec![0, 118]]);
    assert_eq!(lamport_advance(&times, &pairs), Ok(108)); // 107, 107, 114
}

#[test]
fn a_second_jump_starts_from_what_is_left_of_the_first() {
    let times = vec![vec![100, 130], vec![50, 90]];
    let pairs = [pair((0, 0), (1, 0), 0), pair((0, 1), (1, 1), 0)];
    let result = forward(&times, &pairs, Control { decay: HALF, delta: 0 }).unwrap();
    assert_eq!(result.clock[1], [100, 130]); // X = 90 + 30
    assert_eq!(result.jumps[1], [50, 10]);
}

#[test]
fn a_cycle_is_found() {
    let pairs = [pair((0, 1), (1, 0), 0), pair((1, 1), (0, 0), 0)];
    let cycle = forward(&vec![vec![1, 2], vec![1, 2]], &pairs, Control { decay: 0, delta: 0 }).unwrap_err();
    assert_eq!(cycle.0, [at(0, 0), at(1, 0)]);
}

/// Checks that the curve over a tube is the string that it should be.
fn check_curve(tube: &Tube) -> Result<(), String> {
    let curve = tube.curve();
    properties::check_tube(tube, &curve.level)?;
    properties::check_slope(tube, &curve.level)?;
    properties::check_taut(tube, &curve)
}

/// The curve over a tube.
fn curve(times: &[i64], stairs: &[i64], bounds: &[(usize, i64)], slope: i64) -> Vec<i64> {
    let bound = |j: usize| bounds.iter().find(|(index, _)| *index == j).map(|&(_, bound)| bound);
    let bounds = (0..times.len()).map(bound).collect();
    let tube = Tube { times: times.to_vec(), stairs: stairs.to_vec(), bounds, slope };
    check_curve(&tube).unwrap();
    tube.curve().level
}

/// A random tube: narrow and wide places, events of equal time, jumps of any size.
fn random_tube(rng: &mut Rng) -> Tube {
    let slope = rng.pick(&[0, ONE / 100, ONE / 3, HALF, ONE, 3 * ONE]);
    let mut tube = Tube { times: Vec::new(), stairs: Vec::new(), bounds: Vec::new(), slope };
    let (mut time, mut stair) = (0, 0);
    for _ in 0..rng.below(40) {
        time += rng.pick(&[0, 0, 1, 3, 10, 100]);
        let jumps = rng.percent(30);
        stair += if jumps { rng.pick(&[1, 5, 30, 200]) } else { 0 };
        let send = !jumps && rng.percent(50);
        tube.times.push(time);
        tube.stairs.push(stair);
        tube.bounds.push(send.then(|| stair + rng.pick(&[0, 1, 5, 30, 200])));
    }
    tube
}

#[test]
fn a_ramp_comes_down_with_the_slope() {
    let times = [0, 79, 80, 81, 99, 100, 110];
    assert_eq!(curve(&times, &[0, 0, 0, 0, 0, 10, 10], &[], HALF), [0, 0, 0, 1, 10, 10, 10]);
    assert_eq!(curve(&times, &[0, 0, 0, 0, 0, 10, 10], &[], 0), [10; 7]);
}

#[test]
fn ramps_share_the_slope() {
    // From (100, 30) down to (90, 25), above the corner (90, 20), to (50, 5); (48, 5) is a corner.
    let times = [0, 40, 48, 50, 70, 90, 100];
    assert_eq!(curve(&times, &[0, 0, 5, 5, 5, 20, 30], &[], HALF), [0, 1, 5, 5, 15, 25, 30]);
}

#[test]
fn the_curve_takes_the_line_to_the_steepest_cap() {
    // The ramp would be at 20 above time 80, and the bound is 6: the line from (100, 30) to (80, 6). The bound at 90
    // asks for less. From (80, 6) the ramp goes on: 6 - floor(10 / 2), and so on.
    let times = [60, 70, 80, 85, 90, 100];
    assert_eq!(curve(&times, &[0, 0, 0, 0, 0, 30], &[(2, 6), (4, 24)], HALF), [0, 1, 6, 12, 18, 30]);
    // A second bound asks for less than the first, but more than the ramp.
    assert_eq!(curve(&times, &[0, 0, 0, 0, 0, 30], &[(1, 0), (2, 8)], HALF), [0, 0, 8, 13, 19, 30]);
}

#[test]
fn a_corner_in_the_way_of_a_cap_becomes_a_vertex() {
    // The line from (100, 30) to the bound (60, 0) would be at 22 above time 90, where the staircase is at 24.
    let times = [60, 75, 90, 95, 100];
    let stairs = [0, 0, 24, 24, 30];
    assert_eq!(curve(&times, &stairs, &[(0, 0)], HALF), [0, 12, 24, 27, 30]);
    // With the bound at 16 the ramp of slope 0.5 from (100, 30) passes the corner at 25 and is at 10 above time 60.
    assert_eq!(curve(&times, &stairs, &[(0, 16)], HALF), [10, 18, 25, 28, 30]);
    // The line to a bound ends there if a corner further left lies above it.
    assert_eq!(curve(&[0, 90, 95, 100], &[0, 20, 20, 30], &[(2, 20)], HALF), [0, 20, 20, 30]);
}

#[test]
fn events_of_equal_time_fall_to_the_lowest_cap_but_not_below_the_staircase() {
    let times = [0, 50, 50, 50, 50, 50];
    assert_eq!(curve(&times, &[0, 0, 0, 0, 0, 10], &[(1, 3), (3, 5)], HALF), [0, 3, 3, 3, 3, 10]);
    assert_eq!(curve(&times, &[0, 0, 0, 4, 4, 10], &[(1, 3), (4, 6)], HALF), [0, 3, 3, 4, 4, 10]);
    assert_eq!(curve(&times, &[0, 0, 0, 4, 4, 10], &[(4, 6)], HALF), [0, 6, 6, 6, 6, 10]);
    assert_eq!(curve(&times, &[0, 0, 0, 4, 4, 10], &[], HALF), [0, 10, 10, 10, 10, 10]);
}

#[test]
fn caps_follow_from_the_receivers() {
    // Process 1 receives at 50 what was sent at 100, and sent itself at 40 what process 0 receives at 104.
    let times = vec![vec![100, 104], vec![0, 40, 50]];
    let pairs = [pair((0, 0), (1, 2), 10), pair((1, 1), (0, 1), 10)];
    let forward = forward(&times, &pairs, Control { decay: 0, delta: 0 }).unwrap();
    assert_eq!(
        forward,
        Forward { clock: vec![vec![100, 104], vec![0, 40, 110]], jumps: vec![vec![0, 0], vec![0, 0, 60]] }
    );
    let result = backward(&times, &pairs, &forward, HALF);
    // The send at 40 may move to 94; the ramp wants it at 40 + 60 - 5 = 95. At time 0 the curve is at 54 - 20.
    assert_eq!(result.tubes[1].bounds, [None, Some(54), None]);
    assert_eq!(result.corrected, [vec![100, 104], vec![34, 94, 110]]);
    properties::check(&pairs, &forward, &result).unwrap();
}

#[test]
fn violations_are_counted_by_kind() {
    let found = violations(&[pair((0, 0), (1, 0), 5), pair((0, 0), (1, 1), 5)], &vec![vec![10], vec![9, 15, 14]]);
    let count = found.pairs[&Kind::PointToPoint];
    assert_eq!((count.pairs, count.violated, count.reversed, count.worst), (2, 1, 1, 6));
    assert_eq!((found.disordered, found.total()), (1, 2));
}

#[test]
fn the_generator_is_deterministic_and_varied() {
    assert_eq!(generate(3), generate(3));
    let mut kinds = std::collections::BTreeMap::new();
    let (mut threads, mut unmatched, mut incomplete, mut straight) = (0, 0, 0, 0);
    for seed in 0..200 {
        let generated = generate(seed);
        let found = matching(&generated.trace, &generated.options.rules);
        let times = generated.trace.times();
        for (kind, count) in violations(&found.dependencies, &times).pairs {
            *kinds.entry(kind).or_insert(0) += count.violated;
        }
        let clock = forward(&times, &found.dependencies, Control { decay: ONE >> 10, delta: 1 }).unwrap();
        let result = backward(&times, &found.dependencies, &clock, ONE / 100);
        straight += result.curves.iter().flat_map(|curve| &curve.vertices).filter(|vertex| vertex.straight).count();
        threads += generated.trace.processes.iter().filter(|process| process.locations.len() > 1).count();
        unmatched += found.unmatched_sends.len() + found.unmatched_receives.len();
        incomplete += found.incomplete_collectives.len();
    }
    let least = |what: &str, count: usize| assert!(count > 50, "{what}: {count}");
    assert_eq!(kinds.len(), 7);
    kinds.iter().for_each(|(kind, &violated)| least(&format!("{kind:?}"), violated));
    least("processes with several threads", threads);
    least("unmatched", unmatched);
    least("incomplete collectives", incomplete);
    least("curves bent by bounds", straight);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_traces_are_valid_in_true_time(seed: u64) {
        let generated = generate(seed);
        let trace = &generated.trace;
        let found = matching(trace, &generated.options.rules);
        prop_assert_eq!(violations(&found.dependencies, &trace.merge(&generated.truth)).total(), 0);
        prop_assert_eq!(&trace.split(&trace.merge(&generated.truth)), &generated.truth);
        for location in trace.processes.iter().flat_map(|process| &process.locations) {
            prop_assert!(location.is_sorted_by_key(|recorded| recorded.time));
        }
        let definitions = trace.definitions();
        let mut ids: Vec<_> = definitions.locations.iter().map(|location| location.id).collect();
        prop_assert!(definitions.processes.iter().enumerate().all(|(p, &id)| id == trace.location_id(p, 0)));
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), trace.processes.iter().map(|process| process.locations.len()).sum::<usize>());
    }

    #[test]
    fn matching_finds_the_messages_that_were_sent(seed: u64) {
        let mut options = Options::random(&mut Rng(seed));
        options.anomalies.never_completed = false;
        options.anomalies.truncated = false;
        let generated = generate_with(seed, options);
        let found = matching(&generated.trace, &generated.options.rules);
        let timelines = generated.trace.timelines();
        let length = |event: EventRef| match timelines[event.process][event.index].event {
            Event::MpiSend(m) | Event::MpiIsend(m, _) | Event::MpiRecv(m) | Event::MpiIrecv(m, _) => m.length,
            other => panic!("{other:?} is no message"),
        };
        for (send, receive) in found.messages {
            prop_assert_eq!(length(send), length(receive));
        }
        prop_assert!(generated.options.anomalies.unmatched || (found.unmatched_sends.is_empty() && found.unmatched_receives.is_empty()));
        prop_assert!(found.incomplete_collectives.is_empty());
    }

    #[test]
    fn forward_and_backward_leave_no_violation(seed: u64) {
        let generated = generate(seed);
        let mut rng = Rng(seed ^ 0xC10C);
        let true_rules = generated.options.rules;
        let zero = Rules { same_node: 0, other_node: 0, ..true_rules };
        let rules = rng.pick(&[zero, true_rules]);
        let control = Control { decay: rng.pick(&[0, ONE / 100_000, ONE / 50, HALF, ONE]), delta: rng.pick(&[0, 1, 10]) };
        let slope = rng.pick(&[0, ONE / 100, ONE / 3, ONE]);
        let found = matching(&generated.trace, &rules);
        let times = generated.trace.times();
        let clock = forward(&times, &found.dependencies, control).expect("no cycle");
        prop_assert_eq!(violations(&found.dependencies, &clock.clock).total(), 0);
        let result = backward(&times, &found.dependencies, &clock, slope);
        prop_assert_eq!(properties::check(&found.dependencies, &clock, &result), Ok(()));
    }

    #[test]
    fn curves_are_strings(seed: u64) {
        prop_assert_eq!(check_curve(&random_tube(&mut Rng(seed))), Ok(()));
    }

    #[test]
    fn a_trace_without_violations_stays_as_it_is(seed: u64, delta in 0i64..20) {
        let generated = generate(seed);
        let times = generated.trace.merge(&generated.truth);
        let dependencies = matching(&generated.trace, &generated.options.rules).dependencies;
        let clock = forward(&times, &dependencies, Control { decay: HALF, delta }).expect("no cycle");
        prop_assert_eq!(&clock.clock, &times);
        prop_assert_eq!(&backward(&times, &dependencies, &clock, ONE / 100).corrected, &times);
    }
}
