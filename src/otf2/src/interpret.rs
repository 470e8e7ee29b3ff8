//! Between the records of events and what is interpreted of them.

use crate::event_record::EventRecord;
use clc_trace::{
    CallParameter, Collective, CollectiveOp, Event, Message, Root, ThreadEvent, ThreadLock, ThreadStart, ThreadTask,
    WindowAtomic, WindowCollective, WindowGroup, WindowLock, WindowTransfer,
};

/// The field of a root, or what it stands for (OTF2 `OTF2_UNDEFINED_UINT32` and its neighbours).
pub(crate) fn root_of(field: u32) -> Root {
    match field {
        u32::MAX => Root::None,
        0xFFFF_FFFE => Root::ThisProcess,
        0xFFFF_FFFD => Root::OwnGroup,
        rank => Root::Rank(rank),
    }
}

fn field_of(root: Root) -> u32 {
    match root {
        Root::None => u32::MAX,
        Root::ThisProcess => u32::MAX - 1,
        Root::OwnGroup => u32::MAX - 2,
        Root::Rank(rank) => rank,
    }
}

impl From<&EventRecord> for Event {
    /// What is interpreted of a record with global ids; [`Event::Other`] if that is nothing.
    fn from(record: &EventRecord) -> Event {
        use EventRecord as R;
        let message = |peer, comm, tag, length| Message { peer, comm, tag, length };
        let collective = |op, comm, root, sent, received| {
            let (op, root) = (CollectiveOp(op), root_of(root));
            Collective { op, comm, root, sent, received }
        };
        match *record {
            R::Enter { region } => Event::Enter(region),
            R::Leave { region } => Event::Leave(region),
            R::MpiSend { receiver, communicator, tag, length } => {
                Event::MpiSend(message(receiver, communicator, tag, length))
            }
            R::MpiIsend { receiver, communicator, tag, length, request } => {
                Event::MpiIsend(message(receiver, communicator, tag, length), request)
            }
            R::MpiIsendComplete { request } => Event::MpiIsendComplete(request),
            R::MpiIrecvRequest { request } => Event::MpiIrecvRequest(request),
            R::MpiRecv { sender, communicator, tag, length } => {
                Event::MpiRecv(message(sender, communicator, tag, length))
            }
            R::MpiIrecv { sender, communicator, tag, length, request } => {
                Event::MpiIrecv(message(sender, communicator, tag, length), request)
            }
            R::MpiRequestTest { request } => Event::MpiRequestTest(request),
            R::MpiRequestCancelled { request } => Event::MpiRequestCancelled(request),
            R::MpiCollectiveBegin {} => Event::MpiCollectiveBegin,
            R::MpiCollectiveEnd { operation, communicator, root, sent, received } => {
                Event::MpiCollectiveEnd(collective(operation, communicator, root, sent, received))
            }
            R::RmaCollectiveBegin {} => Event::RmaCollectiveBegin,
            R::RmaCollectiveEnd { operation, sync_level: level, window, root, sent, received } => {
                let (op, root) = (CollectiveOp(operation), root_of(root));
                Event::RmaCollectiveEnd(WindowCollective { op, level, window, root, sent, received })
            }
            R::RmaGroupSync { sync_level: level, window, group } => {
                Event::RmaGroupSync(WindowGroup { level, window, group })
            }
            R::RmaRequestLock { window, remote, lock, lock_type: kind } => {
                Event::RmaRequestLock(WindowLock { window, remote, lock, kind })
            }
            R::RmaAcquireLock { window, remote, lock, lock_type: kind } => {
                Event::RmaAcquireLock(WindowLock { window, remote, lock, kind })
            }
            R::RmaTryLock { window, remote, lock, lock_type: kind } => {
                Event::RmaTryLock(WindowLock { window, remote, lock, kind })
            }
            R::RmaReleaseLock { window, remote, lock } => {
                Event::RmaReleaseLock(WindowLock { window, remote, lock, kind: 0 })
            }
            R::RmaPut { window, remote, bytes, matching } => {
                Event::RmaPut(WindowTransfer { window, remote, bytes, matching })
            }
            R::RmaGet { window, remote, bytes, matching } => {
                Event::RmaGet(WindowTransfer { window, remote, bytes, matching })
            }
            R::RmaAtomic { window, remote, kind, sent, received, matching } => {
                Event::RmaAtomic(WindowAtomic { window, remote, kind, sent, received, matching })
            }
            R::ParameterUnsignedInt { parameter, value } => Event::Parameter(CallParameter { parameter, value }),
            R::RmaOpCompleteBlocking { window, matching } => Event::RmaOpCompleteBlocking(window, matching),
            R::NonBlockingCollectiveRequest { request } => Event::NonBlockingCollectiveRequest(request),
            R::NonBlockingCollectiveComplete { operation, communicator, root, sent, received, request } => {
                Event::NonBlockingCollectiveComplete(collective(operation, communicator, root, sent, received), request)
            }
            _ => thread_step(record).map_or(Event::Other, Event::Thread),
        }
    }
}

/// The fields of records of threads, in their order.
fn thread_step(record: &EventRecord) -> Option<ThreadEvent> {
    use EventRecord as R;
    let list = |a: u32, b: u32, c: u32| [a, b, c].map(u64::from);
    let fields = match *record {
        R::ThreadFork { model, requested_threads } => list(model.into(), requested_threads, 0),
        R::ThreadJoin { model } => list(model.into(), 0, 0),
        R::ThreadTeamBegin { team } | R::ThreadTeamEnd { team } => list(team.0, 0, 0),
        R::ThreadAcquireLock { model, lock, acquisition_order }
        | R::ThreadReleaseLock { model, lock, acquisition_order } => list(model.into(), lock, acquisition_order),
        R::ThreadTaskCreate { team, creating_thread, generation }
        | R::ThreadTaskSwitch { team, creating_thread, generation }
        | R::ThreadTaskComplete { team, creating_thread, generation } => list(team.0, creating_thread, generation),
        R::ThreadCreate { contingent, sequence }
        | R::ThreadBegin { contingent, sequence }
        | R::ThreadWait { contingent, sequence }
        | R::ThreadEnd { contingent, sequence } => [u64::from(contingent.0), sequence, 0],
        _ => return None,
    };
    ThreadEvent::from_fields(record.number(), fields)
}

impl EventRecord {
    /// The record of an event; none of [`Event::Other`].
    pub fn of(event: &Event) -> Option<EventRecord> {
        use EventRecord as R;
        Some(match *event {
            Event::Other => return None,
            Event::Enter(region) => R::Enter { region },
            Event::Leave(region) => R::Leave { region },
            Event::MpiSend(Message { peer: receiver, comm: communicator, tag, length }) => {
                R::MpiSend { receiver, communicator, tag, length }
            }
            Event::MpiIsend(Message { peer: receiver, comm: communicator, tag, length }, request) => {
                R::MpiIsend { receiver, communicator, tag, length, request }
            }
            Event::MpiIsendComplete(request) => R::MpiIsendComplete { request },
            Event::MpiIrecvRequest(request) => R::MpiIrecvRequest { request },
            Event::MpiRecv(Message { peer: sender, comm: communicator, tag, length }) => {
                R::MpiRecv { sender, communicator, tag, length }
            }
            Event::MpiIrecv(Message { peer: sender, comm: communicator, tag, length }, request) => {
                R::MpiIrecv { sender, communicator, tag, length, request }
            }
            Event::MpiRequestTest(request) => R::MpiRequestTest { request },
            Event::MpiRequestCancelled(request) => R::MpiRequestCancelled { request },
            Event::MpiCollectiveBegin => R::MpiCollectiveBegin {},
            Event::MpiCollectiveEnd(Collective { op, comm: communicator, root, sent, received }) => {
                R::MpiCollectiveEnd { operation: op.0, communicator, root: field_of(root), sent, received }
            }
            Event::RmaCollectiveBegin => R::RmaCollectiveBegin {},
            Event::RmaCollectiveEnd(WindowCollective { op, level: sync_level, window, root, sent, received }) => {
                R::RmaCollectiveEnd { operation: op.0, sync_level, window, root: field_of(root), sent, received }
            }
            Event::RmaGroupSync(WindowGroup { level: sync_level, window, group }) => {
                R::RmaGroupSync { sync_level, window, group }
            }
            Event::RmaRequestLock(WindowLock { window, remote, lock, kind: lock_type }) => {
                R::RmaRequestLock { window, remote, lock, lock_type }
            }
            Event::RmaAcquireLock(WindowLock { window, remote, lock, kind: lock_type }) => {
                R::RmaAcquireLock { window, remote, lock, lock_type }
            }
            Event::RmaTryLock(WindowLock { window, remote, lock, kind: lock_type }) => {
                R::RmaTryLock { window, remote, lock, lock_type }
            }
            Event::RmaReleaseLock(WindowLock { window, remote, lock, .. }) => {
                R::RmaReleaseLock { window, remote, lock }
            }
            Event::RmaPut(WindowTransfer { window, remote, bytes, matching }) => {
                R::RmaPut { window, remote, bytes, matching }
            }
            Event::RmaGet(WindowTransfer { window, remote, bytes, matching }) => {
                R::RmaGet { window, remote, bytes, matching }
            }
            Event::RmaAtomic(WindowAtomic { window, remote, kind, sent, received, matching }) => {
                R::RmaAtomic { window, remote, kind, sent, received, matching }
            }
            Event::RmaOpCompleteBlocking(window, matching) => R::RmaOpCompleteBlocking { window, matching },
            Event::Thread(step) => of_thread(&step),
            Event::Parameter(CallParameter { parameter, value }) => R::ParameterUnsignedInt { parameter, value },
            Event::NonBlockingCollectiveRequest(request) => R::NonBlockingCollectiveRequest { request },
            Event::NonBlockingCollectiveComplete(
                Collective { op, comm: communicator, root, sent, received },
                request,
            ) => R::NonBlockingCollectiveComplete {
                operation: op.0,
                communicator,
                root: field_of(root),
                sent,
                received,
                request,
            },
        })
    }
}

fn of_thread(step: &ThreadEvent) -> EventRecord {
    use EventRecord as R;
    match *step {
        ThreadEvent::Fork { model, threads: requested_threads } => R::ThreadFork { model, requested_threads },
        ThreadEvent::Join { model } => R::ThreadJoin { model },
        ThreadEvent::TeamBegin(team) => R::ThreadTeamBegin { team },
        ThreadEvent::TeamEnd(team) => R::ThreadTeamEnd { team },
        ThreadEvent::AcquireLock(ThreadLock { model, lock, order: acquisition_order }) => {
            R::ThreadAcquireLock { model, lock, acquisition_order }
        }
        ThreadEvent::ReleaseLock(ThreadLock { model, lock, order: acquisition_order }) => {
            R::ThreadReleaseLock { model, lock, acquisition_order }
        }
        ThreadEvent::TaskCreate(ThreadTask { team, creator: creating_thread, generation }) => {
            R::ThreadTaskCreate { team, creating_thread, generation }
        }
        ThreadEvent::TaskSwitch(ThreadTask { team, creator: creating_thread, generation }) => {
            R::ThreadTaskSwitch { team, creating_thread, generation }
        }
        ThreadEvent::TaskComplete(ThreadTask { team, creator: creating_thread, generation }) => {
            R::ThreadTaskComplete { team, creating_thread, generation }
        }
        ThreadEvent::Create(ThreadStart { contingent, sequence }) => R::ThreadCreate { contingent, sequence },
        ThreadEvent::Begin(ThreadStart { contingent, sequence }) => R::ThreadBegin { contingent, sequence },
        ThreadEvent::Wait(ThreadStart { contingent, sequence }) => R::ThreadWait { contingent, sequence },
        ThreadEvent::End(ThreadStart { contingent, sequence }) => R::ThreadEnd { contingent, sequence },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{ByteOrder, Reader, Writer};
    use crate::definition_record::DefinitionRecord;
    use crate::local::LocalDefinitions;
    use crate::{decode, framing};
    use proptest::prelude::*;

    const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

    proptest! {
        #[test]
        fn what_is_read_by_hand_is_what_the_table_says(
            kind in 10u8..100, payload in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..60), big in any::<bool>()
        ) {
            let order = ORDERS[usize::from(big)];
            let local = LocalDefinitions::default();
            let fields = EventRecord::read(kind, &mut Reader::new(&payload, order));
            let by_hand = decode::decode_fields(kind, &mut Reader::new(&payload, order), &local);
            match fields {
                Ok(record) => {
                    prop_assert_eq!(by_hand.ok(), Some(Event::from(&record)));
                    // And back: the same record from the bytes that are written of it.
                    let mut writer = Writer::new(order);
                    prop_assert_eq!(record.write(&mut writer), kind);
                    prop_assert!(writer.bytes.len() <= payload.len() || kind < 89);
                    let again = EventRecord::read(kind, &mut Reader::new(&writer.bytes, order)).expect("what was written");
                    prop_assert_eq!(&again, &record);
                    if let Some(interpreted) = EventRecord::of(&Event::from(&record)) {
                        prop_assert_eq!(interpreted, record);
                    }
                }
                Err(_) => {
                    // What is not interpreted is not looked at.
                    prop_assert!(by_hand.is_err() || by_hand == Ok(Event::Other));
                }
            }
        }

        #[test]
        fn no_record_is_longer_than_its_bound(
            kind in 10u8..89, payload in prop::collection::vec(prop_oneof![0u8..10, any::<u8>()], 0..80)
        ) {
            let order = ByteOrder::Little;
            if let Ok(record) = EventRecord::read(kind, &mut Reader::new(&payload, order)) {
                let mut writer = Writer::new(order);
                record.write(&mut writer);
                let framing = if framing::singleton_width(kind).is_some() { 1 } else { 2 };
                prop_assert!(writer.bytes.len() + framing <= framing::bound(kind, &writer.bytes, order));
            }
        }

        #[test]
        fn definitions_come_back(kind in 5u8..48, payload in prop::collection::vec(prop_oneof![0u8..12, any::<u8>()], 0..80), big in any::<bool>()) {
            let order = ORDERS[usize::from(big)];
            if let Ok(record) = DefinitionRecord::read(kind, &mut Reader::new(&payload, order)) {
                let mut writer = Writer::new(order);
                prop_assert_eq!(record.write(&mut writer), kind);
                let again = DefinitionRecord::read(kind, &mut Reader::new(&writer.bytes, order)).expect("what was written");
                prop_assert_eq!(again, record);
            }
        }
    }

    #[test]
    fn the_table_is_that_of_otf2_3() {
        let numbers: Vec<u8> = EventRecord::TABLE.iter().map(|record| record.0).collect();
        assert_eq!(numbers, (10..=88).collect::<Vec<u8>>());
        let numbers: Vec<u8> = DefinitionRecord::TABLE.iter().map(|record| record.0).collect();
        assert_eq!(numbers, (5..=8).chain(10..=43).collect::<Vec<u8>>());
        // Bounds as libotf2 computes them.
        for (name, most) in [("MpiIsend", 33), ("MpiCollectiveEnd", 29), ("RmaAtomic", 38), ("IoOperationBegin", 29)] {
            assert_eq!(EventRecord::TABLE.iter().find(|record| record.1 == name).map(|record| record.2), Some(most));
        }
    }
}
