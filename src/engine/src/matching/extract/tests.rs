use super::*;
use crate::matching::message_ends::MessageKey;
use clc_trace::{
    ClockProperties, Collective, CollectiveOp, CommMembers, Communicator, Definitions, EventNumber, LocationId,
    Message, Root,
};

fn definitions() -> Definitions {
    Definitions {
        clock: ClockProperties { resolution: 1_000_000_000, global_offset: 0, trace_length: 0, realtime: None },
        locations: vec![],
        location_groups: vec![],
        system_tree: vec![],
        processes: vec![LocationId(0), LocationId(1)],
        communicators: vec![Communicator {
            id: CommId(4),
            name: String::new(),
            members: CommMembers::Intra([1, 0].map(MpiRank).into()),
            global_ranks: false,
        }],
        regions: vec![],
        windows: Vec::new(),
        groups: Vec::new(),
        thread_barriers: Vec::new(),
        callsites: Vec::new(),
        accelerator_attributes: Default::default(),
    }
}

fn extract(events: &[Event]) -> Result<Extract> {
    let definitions = definitions();
    let table = CommTable::new(&definitions);
    let mut extractor = Extractor::new(&table, Some(MpiRank(0)));
    for (i, event) in events.iter().enumerate() {
        let at = EventCoordinates { time: i as i64, raw: i as i64, number: EventNumber::after(i as u64), location: 0 };
        extractor.event(at, event)?;
    }
    Ok(extractor.finish())
}

fn ends(list: &[MessageEnd]) -> Vec<u32> {
    list.iter().map(|end| end.event).collect()
}

fn message(tag: u32) -> Message {
    Message { peer: 0, comm: CommId(4), tag, length: 8 }
}

#[test]
fn receives_are_listed_as_posted_not_as_completed() {
    let events = [
        Event::MpiIrecvRequest(1),
        Event::MpiIrecvRequest(2),
        Event::MpiIrecv(message(7), 2),
        Event::MpiIrecv(message(7), 1),
    ];
    let extract = extract(&events).unwrap();
    assert_eq!(ends(&extract.receives[&MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 }]), [1, 0]);
}

#[test]
fn a_receive_without_a_recorded_request_has_no_place_in_the_order() {
    let events_of = [Event::MpiIrecvRequest(1), Event::MpiIrecv(message(7), 2), Event::MpiIrecv(message(7), 1)];
    let extract = extract(&events_of).unwrap();
    let key = MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 };
    assert_eq!((ends(&extract.receives[&key]), ends(&extract.unplaced[&key])), (vec![1], vec![0]));
}

#[test]
fn blocking_receives_are_posted_where_their_region_is_entered() {
    let definitions = definitions();
    let table = CommTable::new(&definitions);
    let mut extractor = Extractor::new(&table, Some(MpiRank(0)));
    let at = |time: i64, location: u32| EventCoordinates {
        time,
        raw: time,
        number: EventNumber::after(time as u64),
        location,
    };
    extractor.enter_receive(at(1, 0)).unwrap();
    extractor.event(at(2, 1), &Event::MpiIrecvRequest(9)).unwrap();
    extractor.event(at(3, 1), &Event::MpiIrecv(message(7), 9)).unwrap();
    extractor.event(at(4, 0), &Event::MpiRecv(message(7))).unwrap();
    extractor.event(at(5, 0), &Event::MpiRecv(message(7))).unwrap();
    let extract = extractor.finish();
    assert_eq!(ends(&extract.receives[&MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 }]), [1, 0, 2]);
}

#[test]
fn a_cancelled_send_is_no_send() {
    let events = [
        Event::MpiIsend(message(7), 1),
        Event::MpiIsend(message(7), 2),
        Event::MpiRequestCancelled(1),
        Event::MpiIsendComplete(2),
    ];
    let extract = extract(&events).unwrap();
    assert_eq!(ends(&extract.sends[&MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 }]), [1]);
    assert_eq!(extract.leftovers.cancelled, 1);
}

#[test]
fn messages_without_a_peer_leave_gaps() {
    let undefined = |peer| Message { peer, ..message(7) };
    let events = [
        Event::MpiSend(message(7)),
        // Undefined, not in the communicator, cancelled.
        Event::MpiSend(undefined(u32::MAX)),
        Event::MpiSend(undefined(2)),
        Event::MpiIsend(undefined(u32::MAX), 1),
        Event::MpiRequestCancelled(1),
        Event::MpiSend(message(7)),
        Event::MpiIrecvRequest(2),
        Event::MpiRecv(message(7)),
        // Posted before the one above.
        Event::MpiIrecv(undefined(u32::MAX), 2),
    ];
    let extract = extract(&events).unwrap();
    let key = MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 };
    assert_eq!((extract.sends.len(), ends(&extract.sends[&key])), (1, vec![0, 4]));
    assert_eq!(extract.send_gaps[&key], Gaps { count: 2, after: vec![1, 1] });
    assert_eq!((extract.receives.len(), ends(&extract.receives[&key])), (1, vec![5]));
    assert_eq!(extract.receive_gaps[&key], Gaps { count: 1, after: vec![0] });
    assert_eq!(extract.undefined, [(1, true), (2, true), (6, false)]);
    assert_eq!((extract.leftovers.undefined_peer, extract.leftovers.cancelled), (3, 1));
}

#[test]
fn messages_to_and_from_nobody_are_none() {
    let null = Message { peer: Message::NOBODY, ..message(7) };
    let events = [
        Event::MpiSend(null),
        Event::MpiIsend(null, 1),
        Event::MpiIsendComplete(1),
        Event::MpiSend(message(7)),
        Event::MpiIrecvRequest(2),
        Event::MpiIrecv(null, 2),
        Event::MpiRecv(null),
    ];
    let extract = extract(&events).unwrap();
    assert_eq!(ends(&extract.sends[&MessageKey { peer: MpiRank(1), comm: CommIndex(0), tag: 7 }]), [0]);
    assert!(extract.receives.is_empty() && extract.send_gaps.is_empty() && extract.undefined.is_empty());
    assert_eq!((extract.leftovers.undefined_peer, extract.leftovers.never_completed), (0, 0));
}

#[test]
fn a_posted_receive_without_completion_is_counted() {
    let extract = extract(&[Event::MpiIrecvRequest(1)]).unwrap();
    assert_eq!(extract.leftovers.never_completed, 1);
    assert!(extract.receives.is_empty());
}

#[test]
fn non_blocking_collectives_are_ordered_by_their_begin() {
    let end = Collective { op: CollectiveOp::BARRIER, comm: CommId(4), root: Root::None, sent: 0, received: 0 };
    let events = [
        Event::NonBlockingCollectiveRequest(1),
        Event::NonBlockingCollectiveRequest(2),
        Event::NonBlockingCollectiveComplete(end, 2),
        Event::NonBlockingCollectiveComplete(end, 1),
    ];
    let extract = extract(&events).unwrap();
    let begins: Vec<_> = extract.collectives[&CommIndex(0)].iter().map(|p| (p.begin, p.end)).collect();
    assert_eq!(begins, [(0, 3), (1, 2)]);
}
