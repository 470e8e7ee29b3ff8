//! Files in order, contents that make no sense: what the processes did does not fit together.

use crate::case::{Case, Scene, corrected, refused, uncovered};
use crate::common::damage::{self, edit, find};
use crate::common::fixture;
use clc_otf2::{ArchiveWriter, CreateOptions, Otf2Archive};
use clc_trace::{ClockOffset, Collective, CollectiveOp, CommId, Event, LocationId, Message, MpiRank, RegionId, Root};
use std::collections::HashMap;
use std::path::Path;

/// World of the trace whose definitions are used.
const WORLD: CommId = CommId(0);

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = messages();
    cases.extend(collectives());
    cases.extend(cycles());
    cases.extend(times());
    cases.extend(shapes());
    cases
}

fn message(peer: u32, tag: u32) -> Message {
    Message { peer, comm: WORLD, tag, length: 1 }
}

fn send(peer: u32, tag: u32) -> Event {
    Event::MpiSend(message(peer, tag))
}

fn receive(peer: u32, tag: u32) -> Event {
    Event::MpiRecv(message(peer, tag))
}

fn begin() -> Event {
    Event::MpiCollectiveBegin
}

fn end(op: CollectiveOp, root: Root) -> Event {
    Event::MpiCollectiveEnd(Collective { op, comm: WORLD, root, sent: 1, received: 1 })
}

fn barrier() -> [Event; 2] {
    [begin(), end(CollectiveOp::BARRIER, Root::None)]
}

fn begun(request: u64) -> Event {
    Event::NonBlockingCollectiveRequest(request)
}

fn complete(op: CollectiveOp, root: Root, request: u64) -> Event {
    match end(op, root) {
        Event::MpiCollectiveEnd(collective) => Event::NonBlockingCollectiveComplete(collective, request),
        other => other,
    }
}

/// Writes a trace of four processes, each event with its time; `offsets` are the clock offsets of all.
fn write_timed(path: &Path, events: &[Vec<(u64, Event)>; 4], offsets: &[ClockOffset]) {
    let (mut definitions, _) = Otf2Archive::open(&fixture("tracer-halo-4")).unwrap().read_definitions().unwrap();
    let span = events.iter().flatten().map(|(time, _)| *time).max().unwrap_or(0);
    definitions.clock.global_offset = 0;
    definitions.clock.trace_length = span;
    let writer = ArchiveWriter::create(path, "traces", CreateOptions::default()).unwrap();
    let mut counts = HashMap::new();
    for (&location, events) in definitions.processes.iter().zip(events) {
        writer.local_definitions(location, offsets).unwrap();
        let mut file = writer.events(location).unwrap();
        for (time, event) in events {
            file.event(*time, event).unwrap();
        }
        counts.insert(location, file.finish().unwrap());
    }
    writer.finish(&definitions, &counts).unwrap();
}

/// The scene's trace becomes these events, a microsecond apart.
fn script(scene: &mut Scene, events: [&[Event]; 4]) {
    let timed = events.map(|events| events.iter().zip(1..).map(|(event, i)| (i * 1000, *event)).collect());
    timed_script(scene, timed);
}

fn timed_script(scene: &mut Scene, events: [Vec<(u64, Event)>; 4]) {
    std::fs::remove_dir_all(&scene.copy.trace).unwrap();
    write_timed(&scene.copy.trace, &events, &[]);
}

fn messages() -> Vec<Case> {
    vec![
        uncovered("send_unmatched", "a send without a receive", |s| {
            script(s, [&[send(1, 5), send(1, 5)], &[receive(0, 5)], &[], &[]]);
            // Either of them may be the one that was received: the first comes before that in any case.
            s.says([r#""messages":0"#, r#""unmatched_sends":2"#, r#""implied_orders":1"#]);
        }),
        uncovered("receive_unmatched", "a receive without a send", |s| {
            script(s, [&[send(1, 5)], &[receive(0, 5), receive(0, 5), receive(2, 5)], &[], &[]]);
            s.says([r#""messages":0"#, r#""unmatched_receives":3"#, r#""implied_orders":1"#]);
        }),
        uncovered("tags_crossed", "sent with tag 5, received with tag 6", |s| {
            script(s, [&[send(1, 5)], &[receive(0, 6)], &[], &[]]);
            s.says([r#""messages":0"#, r#""unmatched_sends":1"#, r#""unmatched_receives":1"#]);
        }),
        corrected("tags_overtaking", "messages with two tags received in the other order", |s| {
            script(s, [&[send(1, 5), send(1, 6)], &[receive(0, 6), receive(0, 5)], &[], &[]]);
            s.says([r#""messages":2"#]);
        }),
        uncovered("ranks_crossed", "sent to one rank, received by another", |s| {
            script(s, [&[send(1, 5)], &[], &[receive(0, 5)], &[]]);
            s.says([r#""messages":0"#, r#""unmatched_sends":1"#, r#""unmatched_receives":1"#]);
        }),
        uncovered("receiver_undefined", "a send to the undefined rank among good ones", |s| {
            script(s, [&[send(1, 5), send(u32::MAX, 5), send(1, 5)], &[receive(0, 5), receive(0, 5)], &[], &[]]);
            s.says([r#""messages":2"#, r#""undefined_peers":1"#, "send at location 0, event 2"]);
        }),
        uncovered("receiver_beyond", "a send to a rank that the communicator does not have", |s| {
            script(s, [&[send(77, 5), send(1, 5)], &[receive(0, 5)], &[], &[]]);
            s.says([r#""messages":1"#, r#""undefined_peers":1"#, "send at location 0, event 1"]);
        }),
        corrected("receive_posted_twice", "a request posted twice and completed once", |s| {
            let posted = [Event::MpiIrecvRequest(7), Event::MpiIrecvRequest(7), Event::MpiIrecv(message(0, 5), 7)];
            script(s, [&[send(1, 5)], &posted, &[], &[]]);
            s.says([r#""messages":1"#, r#""receives_never_completed":1"#]);
        }),
        uncovered("receive_never_posted", "a completion of a request that was never posted", |s| {
            script(s, [&[send(1, 5)], &[Event::MpiIrecv(message(0, 5), 9)], &[], &[]]);
            s.says([r#""messages":0"#, r#""channels_in_doubt":1"#]);
        }),
        uncovered("receive_completed_twice", "one request completed twice", |s| {
            let twice =
                [Event::MpiIrecvRequest(7), Event::MpiIrecv(message(0, 5), 7), Event::MpiIrecv(message(0, 5), 7)];
            script(s, [&[send(1, 5), send(1, 5)], &twice, &[], &[]]);
            s.says([r#""channels_in_doubt":1"#]);
        }),
        corrected("request_cancelled", "a cancelled receive, and a good one with its number", |s| {
            let cancelled = [
                Event::MpiIrecvRequest(7),
                Event::MpiRequestCancelled(7),
                Event::MpiIrecvRequest(7),
                Event::MpiIrecv(message(0, 5), 7),
            ];
            script(s, [&[send(1, 5)], &cancelled, &[], &[]]);
            s.says([r#""messages":1"#, r#""cancelled_requests":1"#]);
        }),
        corrected("request_cancelled_unknown", "a cancellation of a request that nobody made", |s| {
            script(s, [&[send(1, 5), Event::MpiRequestCancelled(3)], &[receive(0, 5)], &[], &[]]);
            s.says([r#""messages":1"#]);
        }),
        uncovered("receive_never_completed", "a posted receive that never completes", |s| {
            script(s, [&[send(1, 5)], &[Event::MpiIrecvRequest(7)], &[], &[]]);
            s.says([r#""messages":0"#, r#""receives_never_completed":1"#, r#""unmatched_sends":1"#]);
        }),
    ]
}

fn collectives() -> Vec<Case> {
    let full = || barrier().to_vec();
    let bcast = |root| vec![begin(), end(CollectiveOp::BCAST, root)];
    let reduce = |root| vec![begin(), end(CollectiveOp::REDUCE, root)];
    vec![
        uncovered("collective_missing", "a collective that one member lacks", move |s| {
            script(s, [&full(), &full(), &[], &full()]);
            s.says([r#""incomplete":1"#]);
        }),
        uncovered("collective_missing_late", "the last of three is missing on one member", |s| {
            let three = [barrier(), barrier(), barrier()].concat();
            script(s, [&three, &three, &three[..4], &three]);
            s.says([r#""matched":2"#, r#""incomplete":1"#]);
        }),
        uncovered("collective_other_root", "members name different roots", move |s| {
            script(s, [&bcast(Root::Rank(0)), &bcast(Root::Rank(0)), &bcast(Root::Rank(1)), &bcast(Root::Rank(0))]);
            s.says(["disagree on the operation or root of instance 1", r#""inconsistent":1"#]);
        }),
        uncovered("collective_other_kind", "a broadcast on three members, a reduction on one", move |s| {
            let root = Root::Rank(0);
            script(s, [&bcast(root), &bcast(root), &reduce(root), &bcast(root)]);
            s.says(["disagree on the operation or root of instance 1"]);
        }),
        uncovered("collective_root_beyond", "a root that the communicator does not have", move |s| {
            let root = Root::Rank(9);
            script(s, [&bcast(root), &bcast(root), &bcast(root), &bcast(root)]);
            s.says(["no valid root"]);
        }),
        uncovered("collective_without_end", "a collective that never ends on one member", |s| {
            script(s, [&barrier(), &[begin()], &barrier(), &barrier()]);
            s.says(["without a begin or an end"]);
        }),
        uncovered("collective_without_begin", "a collective that ends without begin on one member", |s| {
            script(s, [&barrier(), &barrier()[1..], &barrier(), &barrier()]);
            s.says(["without a begin or an end"]);
        }),
        uncovered("collective_unknown_kind", "an operation that no version of the format knows", |s| {
            let odd = [begin(), end(CollectiveOp(200), Root::None)];
            script(s, [&odd, &odd, &odd, &odd]);
        }),
    ]
}

/// Who waits for whom has to be in the message.
const CONTRADICTS: &str = "the trace is contradictory: events wait for each other in a cycle: ";

fn cycles() -> Vec<Case> {
    vec![
        refused("cycle_of_messages", "two that receive before they send", |s| {
            script(s, [&[], &[receive(2, 5), send(2, 5)], &[receive(1, 5), send(1, 5)], &[receive(2, 6)]]);
            s.says([format!(
                "trace: location 1, event 1: {CONTRADICTS}process 1 receives a message from process 2 (location 1, event 1); \
                 process 2 receives a message from process 1 (location 2, event 1)"
            )]);
        })
        .on(&[1, 3, 4]),
        // Everybody waits in the barrier for process 3, which waits for a message that process 1 would send after it.
        refused("cycle_with_collective", "a message and a collective that wait for each other", |s| {
            let [begin, end] = barrier();
            script(s, [&[begin, end], &[begin, end, send(3, 5)], &[begin, end], &[receive(1, 5), begin, end]]);
            s.says([format!(
                "trace: location 1, event 2: {CONTRADICTS}process 1 ends barrier, which process 3 has not begun (location 1, \
                 event 2); process 3 receives a message from process 1 (location 3, event 1)"
            )]);
        })
        .on(&[1, 3, 4]),
        // Process 0 waits in a reduction for process 2, that for a message of process 3, that in a broadcast for process 0.
        refused("cycle_of_collectives", "two collectives and a message that wait for each other", |s| {
            let reduce = complete(CollectiveOp::REDUCE, Root::Rank(0), 1);
            let scan = complete(CollectiveOp::SCAN, Root::None, 2);
            let broadcast = complete(CollectiveOp::BCAST, Root::Rank(0), 3);
            let first = [begun(1), reduce, begun(2), scan, begun(3), broadcast];
            let early = [begun(1), begun(2), begun(3), reduce, scan, broadcast];
            let late = [receive(3, 5), begun(1), begun(2), begun(3), reduce, scan, broadcast];
            let waits = [begun(1), begun(2), begun(3), broadcast, send(2, 5), reduce, scan];
            script(s, [&first, &early, &late, &waits]);
            s.says([format!(
                "trace: location 0, event 2: {CONTRADICTS}process 0 ends reduce, which process 2 has not begun (location 0, \
                 event 2); process 2 receives a message from process 3 (location 2, event 1); process 3 ends bcast, which \
                 process 0 has not begun (location 3, event 4)"
            )]);
        })
        .on(&[1, 3, 4]),
        refused("cycle_with_suspects", "a cycle, and messages to nobody that may be its cause", |s| {
            let lost = [receive(2, 5), send(2, 5), send(u32::MAX, 9), receive(4, 9)];
            script(s, [&[], &lost, &[receive(1, 5), send(1, 5)], &[]]);
            s.says([
                "(messages to or from an undefined rank may have shifted the matching of later ones with the same tag: send at location 1, \
                 event 3, receive at location 1, event 4)",
            ]);
        }),
        // A root may leave a broadcast before others come: only MPI calls that synchronise more than that would hang here.
        corrected("canonical_would_hang", "a broadcast that blocking MPI calls could not replay", |s| {
            let bcast = [begin(), end(CollectiveOp::BCAST, Root::Rank(0))];
            let root = [bcast[0], bcast[1], send(1, 5)];
            let member = [receive(0, 5), bcast[0], bcast[1]];
            script(s, [&root, &member, &bcast, &bcast]);
            s.says([r#""messages":1"#]);
        })
        .on(&[1, 4]),
    ]
}

/// A year of nanoseconds.
const YEAR: u64 = 31_557_600_000_000_000;

fn times() -> Vec<Case> {
    let exchange = |first: u64, second: u64| {
        [
            vec![(first, send(1, 5)), (first + 1000, receive(1, 5))],
            vec![(second, receive(0, 5)), (second + 1000, send(0, 5))],
            vec![],
            vec![],
        ]
    };
    let falling = move |s: &mut Scene| {
        std::fs::remove_dir_all(&s.copy.trace).unwrap();
        let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
        write_timed(&s.copy.trace, &exchange(1000, 1000), &[offset(0, 0), offset(1000, -5000)]);
    };
    let beyond = |name: &str, fault: &str, time: u64, presync: &'static str| {
        refused(name, fault, move |s| {
            s.options(&["--presync", presync]);
            edit(&s.copy.events(1), |bytes| {
                let last = damage::items(bytes, true).into_iter().rfind(|item| item.kind == damage::TIMESTAMP).unwrap();
                bytes[last.payload].copy_from_slice(&time.to_le_bytes());
            });
            s.says(["1.evt: location 1, event ", "time"]);
        })
    };
    vec![
        corrected("clocks_a_year_apart", "clocks a year apart", move |s| timed_script(s, exchange(YEAR, 1000))),
        corrected("clocks_a_year_apart_backwards", "clocks a year apart, the other way", move |s| {
            timed_script(s, exchange(1000, YEAR));
        }),
        corrected("times_zero", "all events at time 0", move |s| {
            timed_script(
                s,
                [vec![(0, send(1, 5)), (0, receive(1, 5))], vec![(0, receive(0, 5)), (0, send(0, 5))], vec![], vec![]],
            );
        }),
        corrected("times_largest", "times just below 2^62 - 1 s", move |s| {
            timed_script(s, exchange((1 << 62) - 1_000_000_000, (1 << 62) - 2_000_000_000));
        }),
        beyond("times_2_62", "a time of 2^62", 1 << 62, "linear"),
        beyond("times_2_62_raw", "a time of 2^62, without pre-synchronisation", 1 << 62, "none"),
        beyond("times_2_63", "a time of 2^63", 1 << 63, "linear"),
        beyond("times_2_63_less", "a time of 2^63-1, without pre-synchronisation", (1 << 63) - 1, "none"),
        beyond("times_2_64", "a time of 2^64-1", u64::MAX, "linear"),
        beyond("times_2_64_raw", "a time of 2^64-6, without pre-synchronisation", u64::MAX - 5, "none"),
        refused("times_backwards", "local time runs backwards", |s| {
            let mut event = 0;
            edit(&s.copy.events(1), |bytes| {
                let item = find(bytes, true, damage::TIMESTAMP, 100);
                event = item.event + 1;
                bytes[item.payload].copy_from_slice(&1u64.to_le_bytes());
            });
            s.says([format!("1.evt: location 1, event {event}: time runs backwards")]);
        }),
        refused("offsets_beyond", "a clock offset of 2^63-1", move |s| {
            std::fs::remove_dir_all(&s.copy.trace).unwrap();
            let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
            write_timed(&s.copy.trace, &exchange(1000, 1000), &[offset(0, i64::MAX), offset(10_000, i64::MAX)]);
            s.says(["0.def: location 0"]);
        }),
        refused("offsets_steep", "clock offsets that let time run 2^40 times faster", move |s| {
            std::fs::remove_dir_all(&s.copy.trace).unwrap();
            let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 0.0 };
            write_timed(&s.copy.trace, &exchange(1 << 30, 1 << 30), &[offset(0, 0), offset(1, 1 << 40)]);
            s.says(["0.def: location 0"]);
        }),
        refused("offsets_falling", "clock offsets that let time run backwards, with `--presync linear`", move |s| {
            falling(s);
            s.options(&["--presync", "linear"]);
            s.says(["0.def: location 0"]);
        }),
        corrected("offsets_falling_auto", "clock offsets that let time run backwards", move |s| {
            falling(s);
            s.says(["time would run backwards are left out"]);
        }),
    ]
}

fn shapes() -> Vec<Case> {
    vec![
        uncovered("events_none", "locations without events", |s| script(s, [&[], &[], &[], &[]])),
        uncovered("events_one", "one event in the whole trace", |s| script(s, [&[], &[], &[send(0, 1)], &[]])),
        corrected("processes_more_ranks", "more analysis ranks than processes", |s| {
            script(s, [&[send(1, 5)], &[receive(0, 5)], &[], &[]]);
        })
        .on(&[1, 6]),
        uncovered("processes_none", "threads only, no MPI", |s| {
            std::fs::remove_dir_all(&s.copy.trace).unwrap();
            let (mut definitions, _) =
                Otf2Archive::open(&fixture("tracer-halo-4")).unwrap().read_definitions().unwrap();
            definitions.processes.clear();
            definitions.communicators.clear();
            let group = definitions.locations[0].group;
            definitions.locations.iter_mut().for_each(|location| location.group = group);
            let writer = ArchiveWriter::create(&s.copy.trace, "traces", CreateOptions::default()).unwrap();
            let mut counts = HashMap::new();
            for location in &definitions.locations {
                writer.local_definitions(location.id, &[]).unwrap();
                let mut file = writer.events(location.id).unwrap();
                let region = definitions.regions.first().map_or(RegionId(0), |region| region.id);
                file.event(1000, &Event::Enter(region)).unwrap();
                file.event(2000, &Event::Leave(region)).unwrap();
                counts.insert(location.id, file.finish().unwrap());
            }
            writer.finish(&definitions, &counts).unwrap();
        }),
        uncovered("processes_left_out", "a communicator whose other members were not recorded", |s| {
            // Location 3 and its files are gone, and the world has three processes.
            let archive = Otf2Archive::open(&s.copy.trace).unwrap();
            let (mut definitions, _) = archive.read_definitions().unwrap();
            definitions.locations.retain(|location| location.id != LocationId(3));
            definitions.processes.retain(|location| *location != LocationId(3));
            for communicator in &mut definitions.communicators {
                if let clc_trace::CommMembers::Intra(members) = &mut communicator.members {
                    *members = members.iter().copied().filter(|&member| member != MpiRank(3)).collect();
                }
            }
            let made = s.directory().join("made");
            let counts: HashMap<_, _> = definitions.locations.iter().map(|l| (l.id, l.claimed_events)).collect();
            ArchiveWriter::create(&made, "traces", CreateOptions::default())
                .unwrap()
                .finish(&definitions, &counts)
                .unwrap();
            for name in ["traces.def", "traces.otf2"] {
                std::fs::rename(made.join(name), s.copy.trace.join(name)).unwrap();
            }
            std::fs::remove_dir_all(made).unwrap();
            std::fs::remove_file(s.copy.events(3)).unwrap();
            std::fs::remove_file(s.copy.local(3)).unwrap();
            s.says(["undefined_peers"]);
        }),
    ]
}
