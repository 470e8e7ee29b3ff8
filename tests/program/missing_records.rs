//! Records of messages are missing: matching must not invent pairs.

use crate::common::{alone, more_traces, name, run};
use crate::reference::against::{Choice, Outcome, compare, on_ranks, write};
use crate::reference::forward::{Control, forward_of, lamport_advance};
use crate::reference::generate::clocks::ClockErrors;
use crate::reference::generate::rng::Rng;
use crate::reference::generate::{Anomalies, Generated, Options, generate_with};
use crate::reference::matching::{Rules, matching};
use crate::reference::model::{EventRef, Process, Recorded, Trace};
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{CommId, CommMembers, Communicator, Error, Event, Message, MpiRank, RegionId, Ticks};
use controlled_logical_clock::latency::MinimumLatency;
use controlled_logical_clock::{CorrectionForm, Parameters};
use proptest::prelude::*;
use std::collections::BTreeMap;

const US: i64 = 1_000;
pub(crate) const RULES: Rules =
    Rules { same_node: 0, other_node: 0, vector_all_to_all: false, fences: Fences::All, handles: false };

type Timed = (i64, Event);

/// Processes on nodes of their own, by process and location, and one communicator.
pub(crate) fn trace(processes: Vec<Vec<Vec<Timed>>>) -> Trace {
    let members: Vec<MpiRank> = (0..processes.len() as u32).map(MpiRank).collect();
    let world = Communicator {
        id: CommId(0),
        name: String::new(),
        members: CommMembers::Intra(members.into()),
        global_ranks: false,
    };
    let location =
        |events: Vec<Timed>| events.into_iter().map(|(time, event)| Recorded { time, event }).collect::<Vec<_>>();
    let process = |(node, locations): (usize, Vec<Vec<Timed>>)| Process {
        node: node as u32,
        locations: locations.into_iter().map(location).collect(),
    };
    Trace {
        processes: processes.into_iter().enumerate().map(process).collect(),
        communicators: vec![world],
        ..Trace::default()
    }
}

fn message(peer: u32, length: u64) -> Message {
    Message { peer, comm: CommId(0), tag: 7, length }
}

/// A call from `enter` to `leave` with one event at `at`.
pub(crate) fn call(enter: i64, at: i64, event: Event, leave: i64) -> [Timed; 3] {
    [(enter, Event::Enter(RegionId(0))), (at, event), (leave, Event::Leave(RegionId(0)))]
}

pub(crate) fn send(at: i64, to: u32) -> [Timed; 3] {
    call(at, at, Event::MpiSend(message(to, 8)), at + US)
}

pub(crate) fn receive(enter: i64, at: i64, from: u32) -> [Timed; 3] {
    call(enter, at, Event::MpiRecv(message(from, 8)), at)
}

/// What comes out on any of these numbers of ranks.
fn corrected(trace: &Trace, ranks: &[usize]) -> Result<Outcome, Error> {
    corrected_with(trace, ranks, &RULES)
}

pub(crate) fn corrected_with(trace: &Trace, ranks: &[usize], rules: &Rules) -> Result<Outcome, Error> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    write(trace, &path);
    let latency = MinimumLatency { same_node: Ticks(rules.same_node), other_node: Ticks(rules.other_node) };
    let parameters = Parameters { latency, ..Parameters::default() };
    let mut outcomes = ranks.iter().map(|&ranks| on_ranks(ranks, &path, trace, &parameters, rules));
    let first = outcomes.next().expect("a number of ranks")?;
    for other in outcomes {
        let other = other?;
        assert_eq!((&other.times, other.violated, other.received), (&first.times, first.violated, first.received));
    }
    Ok(first)
}

/// Nothing is claimed to be wrong, and nothing is moved.
#[track_caller]
pub(crate) fn assert_untouched(trace: &Trace, outcome: &Outcome) {
    assert_eq!((outcome.violated, outcome.least_advance), ((0, 0), 0), "{outcome:?}");
    let times = |process: &Process| -> Vec<Vec<i64>> {
        process.locations.iter().map(|events| events.iter().map(|recorded| recorded.time).collect()).collect()
    };
    assert_eq!(outcome.times, trace.processes.iter().map(times).collect::<Vec<_>>());
}

#[test]
fn a_send_without_a_record_makes_no_violation() {
    // The first of two messages was sent by MPI_Isendrecv, of which Score-P 8.4 records the region only.
    let a = vec![send(1000 * US, 1).to_vec()];
    let b = vec![[receive(5 * US, 15 * US, 0), receive(900 * US, 1006 * US, 0)].concat()];
    let trace = trace(vec![a, b]);
    let outcome = corrected(&trace, &[1, 2]).unwrap();
    assert_untouched(&trace, &outcome);
    assert_eq!(outcome.received, [0, 1, 0]);
}

/// Process 0 sends, process 1 receives and answers; without those of the `sends` of process 0 and `receives` of process 1.
fn ping_pong(rounds: i64, sends: &[i64], receives: &[i64]) -> Trace {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let time = (10 + 100 * round) * US;
        if !sends.contains(&round) {
            a.extend(send(time, 1));
        }
        if !receives.contains(&round) {
            b.extend(receive(time - US, time + 2 * US, 0));
        }
        b.extend(send(time + 3 * US, 0));
        a.extend(receive(time + 2 * US, time + 5 * US, 1));
    }
    trace(vec![vec![a], vec![b]])
}

#[test]
fn the_first_send_of_a_ping_pong_may_be_missing() {
    for missing in 0..20 {
        let trace = ping_pong(20, &[missing], &[]);
        let outcome = corrected(&trace, &[1, 2]).unwrap();
        assert_untouched(&trace, &outcome);
        assert_eq!(outcome.received, [20, 19, 0]);
        let trace = ping_pong(20, &[], &[missing]);
        let outcome = corrected(&trace, &[1, 2]).unwrap();
        assert_untouched(&trace, &outcome);
        assert_eq!(outcome.received, [20, 19, 0]);
    }
}

#[test]
fn what_is_inferred_wrongly_is_taken_back() {
    // As if one send was missing, the third would come before the second receive, from which it follows.
    let trace = ping_pong(20, &[0, 1], &[19]);
    let outcome = corrected(&trace, &[1, 2]).unwrap();
    assert_untouched(&trace, &outcome);
    assert_eq!(outcome.received, [20, 0, 18]);
}

#[test]
fn a_blocking_receive_is_posted_where_it_is_entered() {
    // Posted before the receive of the other thread, and complete after that one was posted.
    let a = vec![[send(100 * US, 1), send(1000 * US, 1)].concat()];
    let first = receive(10 * US, 102 * US, 0).to_vec();
    let second = [
        call(50 * US, 51 * US, Event::MpiIrecvRequest(5), 52 * US),
        call(53 * US, 1002 * US, Event::MpiIrecv(message(0, 8), 5), 1003 * US),
    ];
    let trace = trace(vec![a, vec![first, second.concat()]]);
    let outcome = corrected(&trace, &[1, 2]).unwrap();
    assert_untouched(&trace, &outcome);
    assert_eq!(outcome.received, [2, 0, 0]);
}

#[test]
fn without_regions_of_mpi_a_receive_is_posted_after_what_its_location_did_before() {
    // One region around everything: the second receive of thread 0 was not posted at 0, before the one of thread 1.
    let a = vec![[send(100 * US, 1), send(200 * US, 1), send(300 * US, 1)].concat()];
    let enter = (0, Event::Enter(RegionId(0)));
    let received = Event::MpiRecv(message(0, 8));
    let first = vec![enter, (102 * US, received), (202 * US, received)];
    let second = vec![(150 * US, Event::MpiIrecvRequest(5)), (302 * US, Event::MpiIrecv(message(0, 8), 5))];
    let trace = trace(vec![a, vec![first, second]]);
    // Nobody can know that the second was posted between 102 and 150: it counts as posted at 202. Then it would have got the last message before that was
    // sent, which may be the fault of this order. Only the first one is complete before anything else is called; of the others the numbers of sends and of receives
    // are used.
    let outcome = corrected(&trace, &[1, 2]).unwrap();
    assert_eq!((outcome.received, outcome.violated), ([1, 2, 0], (0, 0)));
}

/// `count` messages with lengths from `length`, of which the receiver has recorded those that are `kept`, its clock behind by 500 us.
fn lengths(
    count: i64,
    length: impl Fn(i64) -> u64,
    kept: impl Fn(i64) -> bool,
    recorded: impl Fn(u64) -> u64,
) -> Trace {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for k in 0..count {
        let time = (1000 + 100 * k) * US;
        a.extend(call(time, time, Event::MpiSend(message(1, length(k))), time + US));
        if kept(k) {
            let event = Event::MpiRecv(message(0, recorded(length(k))));
            b.extend(call(time - 510 * US, time - 490 * US, event, time - 480 * US));
        }
    }
    trace(vec![vec![a], vec![b]])
}

#[test]
fn lengths_tell_which_receives_are_missing() {
    // Every second one was made by MPI_Mprobe and MPI_Mrecv, of which Score-P 8.4 records nothing.
    let trace = lengths(100, |k| 8 * (k as u64 % 5 + 1), |k| k % 2 == 0, |length| length);
    let outcome = corrected(&trace, &[1, 2]).unwrap();
    assert_eq!((outcome.received, outcome.violated), ([50, 0, 0], (50, 0)));
    assert_eq!(outcome.least_advance, 490 * US);
    // With one length nothing is certain. What is implied reaches as far as the receives are too early.
    let trace = lengths(100, |_| 8, |k| k % 2 == 0, |length| length);
    assert_eq!(corrected(&trace, &[1, 2]).unwrap().received, [0, 50, 0]);
}

#[test]
fn sizes_of_buffers_are_no_lengths() {
    let trace = lengths(40, |k| 8 * (k as u64 % 5 + 1), |_| true, |_| 1024);
    let outcome = corrected(&trace, &[1, 2]).unwrap();
    assert_eq!((outcome.received, outcome.violated), ([40, 0, 0], (40, 0)));
    // Some are larger than what they are said to have been received into: messages that others got.
    let trace = lengths(40, |k| 8 * (k as u64 % 5 + 1), |_| true, |length| if length == 8 { 16 } else { 8 });
    assert_eq!(corrected(&trace, &[1, 2]).unwrap().received[0], 0);
}

/// The number under the last `"name":` of a JSON report.
fn number(report: &str, part: &str, name: &str) -> Vec<u64> {
    let value: serde_json::Value = serde_json::from_str(report).expect("JSON");
    let mut found = Vec::new();
    fn look(value: &serde_json::Value, inside: bool, part: &str, name: &str, found: &mut Vec<u64>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    if inside && key == name {
                        found.extend(value.as_u64());
                    }
                    look(value, inside || key == part, part, name, found);
                }
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| look(value, inside, part, name, found)),
            _ => {}
        }
    }
    look(&value, part.is_empty(), part, name, &mut found);
    found
}

#[test]
fn receives_of_matched_probes_shift_nobody() {
    let Some(recorded) = more_traces().into_iter().find(|trace| name(trace) == "scorep-mrecv-4") else { return };
    let directory = tempfile::tempdir().unwrap();
    for presync in ["auto", "linear", "none"] {
        let output = directory.path().join(presync);
        let mut command = alone();
        command.arg(&recorded).args(["--presync", presync, "--report", "-", "-o"]).arg(&output);
        // A quarter of the sends have no receive: partly checked.
        let report = run(&mut command).expect(3, presync).stdout;
        assert_eq!(number(&report, "matching", "unmatched_sends"), [400]);
        assert_eq!(number(&report, "matching", "unmatched_receives"), [0]);
        let mut command = alone();
        command.arg("evaluate").arg(&output).arg("--truth").arg(recorded.join("truth"));
        let told = run(&mut command).expect(0, presync).stdout;
        let violations = told.lines().find(|line| line.trim_start().starts_with("violations")).expect("a row");
        assert_eq!(violations.split_whitespace().last(), Some("0"), "{told}");
    }
}

/// What is taken out of a trace.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// Any records of messages; every message has a length of its own.
    Any { percent: usize },
    /// Of each channel sends or receives, with or without their requests; there are so many lengths.
    OneEnd { percent: usize, lengths: u64 },
}

fn losses() -> impl Strategy<Value = Loss> {
    let percent = prop_oneof![Just(0usize), Just(3), Just(30), Just(80)];
    prop_oneof![
        percent.clone().prop_map(|percent| Loss::Any { percent }),
        (percent, 1u64..5).prop_map(|(percent, lengths)| Loss::OneEnd { percent, lengths }),
    ]
}

/// A trace without some records, and the index in the complete timeline of each event that is left.
fn thin(complete: &Trace, loss: Loss, seed: u64) -> (Trace, Vec<Vec<usize>>) {
    let mut rng = Rng(seed);
    let (percent, lengths) = match loss {
        Loss::Any { percent } => (percent, None),
        Loss::OneEnd { percent, lengths } => (percent, Some(lengths)),
    };
    // A receive that is taken out takes its request with it; else the request might be taken for that of a later one.
    let mut trace = complete.clone();
    let mut kept: Vec<Vec<Vec<bool>>> = Vec::new();
    for (process, streams) in trace.processes.iter_mut().enumerate() {
        let mut of_process = Vec::new();
        for events in &mut streams.locations {
            let mut keep = vec![true; events.len()];
            let mut posted: BTreeMap<u64, usize> = BTreeMap::new();
            for (number, Recorded { event, .. }) in events.iter_mut().enumerate() {
                let lost = rng.percent(percent);
                let (message, sends) = match event {
                    Event::MpiSend(message) | Event::MpiIsend(message, _) => (message, true),
                    Event::MpiRecv(message) => (message, false),
                    Event::MpiIrecv(message, request) => {
                        let request = posted.remove(request);
                        let one_end = lengths.is_some() && loses_sends(seed, complete, process, message);
                        if let (Some(request), Some(_), true, false) = (request, lengths, lost, one_end) {
                            keep[request] = false;
                        }
                        (message, false)
                    }
                    Event::MpiIrecvRequest(request) => {
                        posted.insert(*request, number);
                        keep[number] = !lost;
                        continue;
                    }
                    Event::MpiIsendComplete(_) => {
                        keep[number] = !lost;
                        continue;
                    }
                    _ => continue,
                };
                // Lengths in no order, all different.
                message.length = message.length * 0x9e37_79b1 % 0xffff_fffb;
                if let Some(lengths) = lengths {
                    let peer = if sends { process } else { peer_of(complete, process, message) };
                    let other = if sends { peer_of(complete, process, message) } else { process };
                    keep[number] = !lost || side(seed, peer, other, message) != sends;
                    message.length %= lengths;
                } else {
                    keep[number] = !lost;
                }
            }
            of_process.push(keep);
        }
        kept.push(of_process);
    }
    let mut indices = Vec::new();
    for (process, timeline) in complete.timelines().iter().enumerate() {
        let keep = |index: &usize| kept[process][timeline[*index].location][timeline[*index].number];
        indices.push((0..timeline.len()).filter(keep).collect());
    }
    for (streams, kept) in trace.processes.iter_mut().zip(&kept) {
        for (events, kept) in streams.locations.iter_mut().zip(kept) {
            let mut kept = kept.iter();
            events.retain(|_| *kept.next().expect("one for each"));
        }
    }
    (trace, indices)
}

/// The process that a message event names.
fn peer_of(trace: &Trace, process: usize, message: &Message) -> usize {
    match trace.members(message.comm).expect("a communicator") {
        CommMembers::Intra(members) => members[message.peer as usize].place(),
        _ => process,
    }
}

/// Whether a channel loses sends; else it loses receives.
fn side(seed: u64, sender: usize, receiver: usize, message: &Message) -> bool {
    let key =
        (sender as u64) << 48 | (receiver as u64) << 32 | u64::from(message.comm.0) << 16 | u64::from(message.tag);
    Rng(seed ^ key).percent(50)
}

fn loses_sends(seed: u64, trace: &Trace, process: usize, message: &Message) -> bool {
    side(seed, peer_of(trace, process, message), process, message)
}

pub(crate) fn generated(seed: u64, clocks: Option<ClockErrors>) -> Generated {
    let mut options = Options::random(&mut Rng(seed));
    options.anomalies = Anomalies::default();
    let perfect = ClockErrors { offset: 0, drift: 0, wave: 0, jumps: (0, 0), resolution: 1 };
    options.clocks = clocks.unwrap_or(perfect);
    options.processes = options.processes.min(6);
    options.rules.fences = Fences::All;
    generate_with(seed, options)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// With perfect clocks nothing is claimed, moved or refused, whatever is missing. The program in front of the archive, on any number of ranks.
    #[test]
    fn missing_records_are_no_violations(seed: u64, loss in losses(), own_latency: bool) {
        let generated = generated(seed, None);
        let (trace, _) = thin(&generated.trace, loss, !seed);
        let rules = Rules { vector_all_to_all: generated.options.rules.vector_all_to_all, ..RULES };
        let rules = if own_latency { generated.options.rules } else { rules };
        let outcome = corrected_with(&trace, &[1, 3, trace.processes.len()], &rules).unwrap();
        assert_untouched(&trace, &outcome);
        prop_assert_eq!(outcome.received[2], 0);
    }

    /// With wrong clocks: the program does what the oracle does. And that is sound: what is called a message is one, an implied order is one, and no event is
    /// moved further than it would be if no record was missing (exactly so where the decay does not round).
    #[test]
    fn missing_records_move_nothing_that_is_right(seed: u64, loss in losses(), decay in prop_oneof![Just(0u64), 0u64..=1 << 39]) {
        let generated = generated(seed, Some(ClockErrors::random(&mut Rng(!seed))));
        let (trace, indices) = thin(&generated.trace, loss, !seed);
        let rules = generated.options.rules;
        let (all, left) = (matching(&generated.trace, &rules), matching(&trace, &rules));
        let complete = |event: EventRef| EventRef { index: indices[event.process][event.index], ..event };
        for &(send, receive) in &left.messages {
            let pair = (complete(send), complete(receive));
            prop_assert!(send.process == receive.process || all.messages.contains(&pair), "{:?}", pair);
        }
        let truth = generated.trace.merge(&generated.truth);
        for &(send, receive) in &left.implied {
            let time = |event: EventRef| truth[event.process][complete(event).index];
            prop_assert!(time(send) < time(receive));
        }
        for control in [Control { decay: 0, delta: 1 }, Control { decay: 1 << 40, delta: 0 }] {
            let with_all = forward_of(&generated.trace, &all.dependencies, control).unwrap();
            let with_some = forward_of(&trace, &left.dependencies, control).unwrap();
            for (process, clock) in with_some.clock.iter().enumerate() {
                for (index, &time) in clock.iter().enumerate() {
                    prop_assert!(time <= with_all.clock[process][indices[process][index]]);
                }
            }
        }
        let least = |trace: &Trace, of: &crate::reference::matching::Matching| lamport_advance(&trace.times(), &of.dependencies);
        prop_assert!(least(&trace, &left).unwrap() <= least(&generated.trace, &all).unwrap());
        let choice = Choice {
            decay,
            slope: 10_995_116_278,
            delta: 1,
            same_node: rules.same_node,
            other_node: rules.other_node,
            alltoallv: rules.vector_all_to_all,
            form: CorrectionForm::Common,
            median: false,
            fences: rules.fences,
            handles: false,
        };
        prop_assert_eq!(compare(&trace, choice, &[1, 2, trace.processes.len()]), Ok(true));
    }
}
