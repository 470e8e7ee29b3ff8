//! Traces in which events wait for each other: no run hangs, and the error names the whole circle.

mod common;

use clc_replay::archive::otf2::{ArchiveWriter, CreateOptions, Otf2Archive};
use clc_replay::trace::{Collective, CollectiveOp, CommId, Event, Message, Root};
use common::{alone, fixture, run, with_ranks};
use std::collections::HashMap;
use std::path::Path;

/// World of the trace whose definitions are used.
const WORLD: CommId = CommId(0);

fn message(peer: u32, tag: u32) -> Message {
    Message { peer, comm: WORLD, tag, length: 1 }
}

fn send(peer: u32, tag: u32) -> Event {
    Event::MpiSend(message(peer, tag))
}

fn receive(peer: u32, tag: u32) -> Event {
    Event::MpiRecv(message(peer, tag))
}

fn end(op: CollectiveOp, root: Root) -> Event {
    Event::MpiCollectiveEnd(Collective { op, comm: WORLD, root, sent: 1, received: 1 })
}

/// Writes a trace of four processes, one tick between two events.
fn write(path: &Path, events: [&[Event]; 4]) {
    let (definitions, _) = Otf2Archive::open(&fixture("tracer-halo-4")).unwrap().read_definitions().unwrap();
    let writer = ArchiveWriter::create(path, "traces", CreateOptions::default()).unwrap();
    let mut counts = HashMap::new();
    for (&location, events) in definitions.processes.iter().zip(events) {
        writer.local_definitions(location, &[]).unwrap();
        let mut file = writer.events(location).unwrap();
        for (event, time) in events.iter().zip(1..) {
            file.event(time, event).unwrap();
        }
        counts.insert(location, file.finish().unwrap());
    }
    writer.finish(&definitions, &counts).unwrap();
}

/// The error on one process and on three, which has to be the same.
fn refusal(events: [&[Event]; 4]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    write(&trace, events);
    let mut errors = Vec::new();
    for mut command in [alone(), with_ranks(3)] {
        let finished = run(command.arg("trace").current_dir(directory.path())).expect(2, "not refused");
        let lines = finished.stderr.lines().filter(|line| line.starts_with("clc-replay: error: "));
        errors.push(lines.map(str::to_owned).collect::<Vec<_>>());
        assert!(!directory.path().join("trace-clc").exists());
    }
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0].len(), 1, "{errors:?}");
    errors.remove(0).remove(0)
}

#[test]
fn two_that_receive_before_they_send() {
    let error = refusal([&[], &[receive(2, 5), send(2, 5)], &[receive(1, 5), send(1, 5)], &[receive(2, 6)]]);
    assert_eq!(
        error,
        "clc-replay: error: trace: location 1, event 1: the trace contradicts itself: events wait for each other in a \
         circle: process 1 receives a message of process 2 (location 1, event 1); process 2 receives a message of \
         process 1 (location 2, event 1)"
    );
}

/// Everybody waits in the barrier for process 3, which waits for a message that process 1 would send after it.
#[test]
fn a_circle_of_a_message_and_a_collective() {
    let barrier = [Event::MpiCollectiveBegin, end(CollectiveOp::BARRIER, Root::None)];
    let sends = [barrier[0], barrier[1], send(3, 5)];
    let receives = [receive(1, 5), barrier[0], barrier[1]];
    let error = refusal([&barrier, &sends, &barrier, &receives]);
    assert_eq!(
        error,
        "clc-replay: error: trace: location 1, event 2: the trace contradicts itself: events wait for each other in a \
         circle: process 1 ends barrier, which process 3 has not begun (location 1, event 2); process 3 receives a \
         message of process 1 (location 3, event 1)"
    );
}

/// Process 0 waits in a reduction for process 2, that for a message of process 3, that in a broadcast for process 0.
#[test]
fn a_circle_of_two_collectives_and_a_message() {
    let complete = |op, root, request| match end(op, root) {
        Event::MpiCollectiveEnd(collective) => Event::NonBlockingCollectiveComplete(collective, request),
        other => other,
    };
    let reduce = complete(CollectiveOp::REDUCE, Root::Rank(0), 1);
    let scan = complete(CollectiveOp::SCAN, Root::None, 2);
    let broadcast = complete(CollectiveOp::BCAST, Root::Rank(0), 3);
    let begin = Event::NonBlockingCollectiveRequest;
    let first = [begin(1), reduce, begin(2), scan, begin(3), broadcast];
    let early = [begin(1), begin(2), begin(3), reduce, scan, broadcast];
    let late = [receive(3, 5), begin(1), begin(2), begin(3), reduce, scan, broadcast];
    let waits = [begin(1), begin(2), begin(3), broadcast, send(2, 5), reduce, scan];
    let error = refusal([&first, &early, &late, &waits]);
    assert_eq!(
        error,
        "clc-replay: error: trace: location 0, event 2: the trace contradicts itself: events wait for each other in a \
         circle: process 0 ends reduce, which process 2 has not begun (location 0, event 2); process 2 receives a \
         message of process 3 (location 2, event 1); process 3 ends bcast, which process 0 has not begun (location \
         3, event 4)"
    );
}

#[test]
fn events_without_a_partner_are_suspects() {
    let lost = [receive(2, 5), send(2, 5), send(u32::MAX, 9), receive(4, 9)];
    let error = refusal([&[], &lost, &[receive(1, 5), send(1, 5)], &[]]);
    let suspects = "(messages to or from an undefined rank may have shifted the later ones of their tag: send at \
                    location 1, event 3, receive at location 1, event 4)";
    assert!(error.ends_with(suspects), "{error}");
}
