//! Round trips of random events; damage and layout in files of their own.

mod damage;
mod layout;

use super::*;
use crate::TimeMap;
use clc_trace::{
    AcceleratorAttributes, AcceleratorReference, AttributeId, CallParameter, ClockOffset, ClockProperties, Collective,
    CollectiveOp, CommId, CommMembers, Communicator, Definitions, Error, Event, EventNumber, GroupId, Location,
    LocationGroup, LocationGroupId, LocationId, LocationKind, Message, MpiRank, ParameterId, Region, RegionId, Result,
    Root, SystemTreeNode, SystemTreeNodeId, ThreadEvent, Window, WindowAtomic, WindowCollective, WindowGroup, WindowId,
    WindowLock, WindowTransfer,
};
use proptest::prelude::*;

const HERE: LocationId = LocationId(7);
const RESOLUTION: u64 = 1_000_000;

fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

fn number32() -> impl Strategy<Value = u32> {
    (any::<u32>(), 0u32..32).prop_map(|(value, shift)| value >> shift)
}

fn message() -> impl Strategy<Value = Message> {
    (number32(), number32(), number32(), number()).prop_map(|(peer, comm, tag, length)| Message {
        peer,
        comm: CommId(comm),
        tag,
        length,
    })
}

fn collective() -> impl Strategy<Value = Collective> {
    let root = prop_oneof![
        Just(Root::None),
        Just(Root::ThisProcess),
        Just(Root::OwnGroup),
        number32().prop_map(|rank| Root::Rank(rank.min(u32::MAX - 3)))
    ];
    (any::<u8>(), number32(), root, number(), number()).prop_map(|(op, comm, root, sent, received)| Collective {
        op: CollectiveOp(op),
        comm: CommId(comm),
        root,
        sent,
        received,
    })
}

fn one_sided() -> impl Strategy<Value = Event> {
    let lock = || {
        (number32(), number32(), number(), any::<u8>()).prop_map(|(window, remote, lock, kind)| WindowLock {
            window: WindowId(window),
            remote,
            lock,
            kind,
        })
    };
    let transfer = || {
        (number32(), number32(), number(), number()).prop_map(|(window, remote, bytes, matching)| WindowTransfer {
            window: WindowId(window),
            remote,
            bytes,
            matching,
        })
    };
    let window = || number32().prop_map(WindowId);
    prop_oneof![
        Just(Event::RmaCollectiveBegin),
        (collective(), number32()).prop_map(|(c, level)| {
            let Collective { op, comm, root, sent, received } = c;
            Event::RmaCollectiveEnd(WindowCollective { op, level, window: WindowId(comm.0), root, sent, received })
        }),
        (number32(), window(), number32().prop_map(GroupId))
            .prop_map(|(level, window, group)| Event::RmaGroupSync(WindowGroup { level, window, group })),
        lock().prop_map(Event::RmaRequestLock),
        lock().prop_map(Event::RmaAcquireLock),
        lock().prop_map(Event::RmaTryLock),
        lock().prop_map(Event::RmaReleaseLock),
        transfer().prop_map(Event::RmaPut),
        transfer().prop_map(Event::RmaGet),
        (window(), number()).prop_map(|(window, matching)| Event::RmaOpCompleteBlocking(window, matching)),
        (window(), number32(), any::<u8>(), number(), number(), number()).prop_map(
            |(window, remote, kind, sent, received, matching)| {
                Event::RmaAtomic(WindowAtomic { window, remote, kind, sent, received, matching })
            }
        ),
    ]
}

fn record() -> impl Strategy<Value = NativeRecord> {
    let event = prop_oneof![
        number32().prop_map(|region| Event::Enter(RegionId(region))),
        number32().prop_map(|region| Event::Leave(RegionId(region))),
        message().prop_map(Event::MpiSend),
        (message(), number()).prop_map(|(m, request)| Event::MpiIsend(m, request)),
        number().prop_map(Event::MpiIsendComplete),
        number().prop_map(Event::MpiIrecvRequest),
        message().prop_map(Event::MpiRecv),
        (message(), number()).prop_map(|(m, request)| Event::MpiIrecv(m, request)),
        number().prop_map(Event::MpiRequestTest),
        number().prop_map(Event::MpiRequestCancelled),
        Just(Event::MpiCollectiveBegin),
        collective().prop_map(Event::MpiCollectiveEnd),
        number().prop_map(Event::NonBlockingCollectiveRequest),
        one_sided(),
        (53u8..=65, [number32(), number32(), number32()]).prop_filter_map("fields of its type", |(kind, fields)| {
            ThreadEvent::from_fields(kind, fields.map(u64::from)).map(Event::Thread)
        }),
        (collective(), number()).prop_map(|(c, request)| Event::NonBlockingCollectiveComplete(c, request)),
        (number32(), number()).prop_map(|(parameter, value)| {
            Event::Parameter(CallParameter { parameter: ParameterId(parameter), value })
        }),
    ];
    prop_oneof![
        8 => event.prop_map(NativeRecord::Event),
        1 => number().prop_map(NativeRecord::BufferFlush),
        1 => (number32(), proptest::option::of(number()), proptest::option::of(number()), any::<bool>())
            .prop_filter("a reference", |(_, stream, event, _)| stream.is_some() || event.is_some())
            .prop_map(|(region, stream, event, enter)| {
                NativeRecord::Referring(RegionId(region), AcceleratorReference { stream: stream.map(LocationId), event }, enter)
            }),
        1 => any::<u8>().prop_filter_map("a type of its own", NativeRecord::other),
    ]
}

/// Events with decreasing probability of large steps, and clock offsets.
fn events() -> impl Strategy<Value = (Vec<(u64, NativeRecord)>, Vec<ClockOffset>)> {
    let step = prop_oneof![4 => 0u64..300, 1 => 0u64..(1 << 50)];
    let offsets = prop::collection::vec((1u64..1 << 40, any::<i64>(), 0.0f64..1e9), 0..4);
    (prop::collection::vec((step, record()), 0..200), offsets).prop_map(|(steps, offsets)| {
        let mut time = 0;
        let add = |(step, record)| {
            time += step;
            (time, record)
        };
        let events = steps.into_iter().map(add).collect();
        let mut time = 0;
        let offset = |(step, offset, standard_deviation)| {
            time += step;
            ClockOffset { time, offset, standard_deviation }
        };
        (events, offsets.into_iter().map(offset).collect())
    })
}

fn definitions() -> Definitions {
    Definitions {
        clock: ClockProperties { resolution: RESOLUTION, global_offset: 5, trace_length: 300, realtime: Some(1 << 60) },
        locations: vec![Location {
            id: HERE,
            name: "Master thread".into(),
            kind: LocationKind::CpuThread,
            group: LocationGroupId(3),
            claimed_events: 2,
        }],
        location_groups: vec![LocationGroup {
            id: LocationGroupId(3),
            name: "rank 0".into(),
            accelerator: false,
            parent: Some(SystemTreeNodeId(0)),
            creator: None,
        }],
        system_tree: vec![SystemTreeNode {
            id: SystemTreeNodeId(0),
            name: "n1".into(),
            class: "node".into(),
            parent: None,
        }],
        processes: vec![HERE],
        communicators: vec![Communicator {
            id: CommId(0),
            name: "world".into(),
            members: CommMembers::Intra([MpiRank(0)].into()),
            global_ranks: false,
        }],
        regions: vec![Region { id: RegionId(9), name: "main".into() }],
        windows: vec![Window { id: WindowId(3), name: "w".into(), comm: CommId(4) }],
        groups: vec![(GroupId(6), [MpiRank(0)].into())],
        thread_barriers: vec![RegionId(9)],
        callsites: vec![ParameterId(2)],
        accelerator_attributes: AcceleratorAttributes { streams: vec![AttributeId(5)], events: vec![AttributeId(6)] },
    }
}

fn write(directory: &Path, events: &[(u64, NativeRecord)], offsets: &[ClockOffset]) -> Result<NativeTrace> {
    let trace = NativeWriter::create(directory, RESOLUTION)?;
    let mut writer = trace.events(HERE)?;
    for (time, record) in events {
        writer.record(*time, record)?;
    }
    assert_eq!(writer.finish(offsets)?, events.len() as u64);
    trace.finish(&TraceHeader { creator: "test".into(), description: String::new() }, &definitions())?;
    NativeTrace::open(directory)
}

type Contents = (Vec<(u64, NativeRecord)>, Vec<ClockOffset>);

fn read(trace: &NativeTrace) -> Result<Contents> {
    let mut events = Vec::new();
    trace.scan_records(HERE, |number, time, record| {
        assert_eq!(number, EventNumber::after(events.len() as u64));
        events.push((time, record));
        Ok(())
    })?;
    Ok((events, trace.clock_offsets(HERE)?))
}

struct Shift(u64);

impl TimeMap for Shift {
    fn event(&mut self, _: EventNumber, time: u64) -> Result<u64> {
        Ok(time + self.0)
    }

    fn flush_stop(&mut self, _: EventNumber, stop: u64) -> u64 {
        stop.wrapping_add(self.0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_come_back((events, offsets) in events()) {
        let directory = tempfile::tempdir().unwrap();
        let trace = write(directory.path(), &events, &offsets).unwrap();
        prop_assert_eq!(read(&trace).unwrap(), (events.clone(), offsets.clone()));
        prop_assert_eq!(trace.read_definitions().unwrap(), definitions());

        // And again, with other times and without offsets.
        let other = tempfile::tempdir().unwrap();
        std::fs::create_dir(other.path().join(EVENTS)).unwrap();
        trace.rewrite_events(HERE, other.path(), &mut Shift(3)).unwrap();
        trace.rewrite_definitions(other.path(), None).unwrap();
        let shifted = NativeTrace::open(other.path()).unwrap();
        let moved = events.iter().map(|&(time, record)| match record {
            NativeRecord::BufferFlush(stop) => (time + 3, NativeRecord::BufferFlush(stop.wrapping_add(3))),
            _ => (time + 3, record),
        });
        prop_assert_eq!(read(&shifted).unwrap(), (moved.clone().collect::<Vec<_>>(), offsets));
        trace.replace_clock_offsets(HERE, other.path(), &[]).unwrap();
        prop_assert_eq!(read(&shifted).unwrap(), (moved.collect::<Vec<_>>(), Vec::new()));
    }
}

#[test]
fn a_file_of_many_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let events: Vec<(u64, NativeRecord)> =
        (0..40_000).map(|i| (i * 200, NativeRecord::Event(Event::Enter(RegionId(i as u32 % 300))))).collect();
    let trace = write(directory.path(), &events, &[]).unwrap();
    let size = trace.event_file_size(HERE).unwrap();
    assert!((4 * 40_000..6 * 40_000).contains(&size), "{size} bytes");
    assert_eq!(read(&trace).unwrap().0, events);
}

/// A small trace with several kinds of events and two clock offsets.
fn small(directory: &Path) -> NativeTrace {
    let m = Message { peer: 0, comm: CommId(0), tag: 1, length: 700 };
    let events = [
        (100, NativeRecord::Event(Event::Enter(RegionId(9)))),
        (120, NativeRecord::Event(Event::MpiSend(m))),
        (120, NativeRecord::Other(31)),
        (900, NativeRecord::BufferFlush(950)),
        (1000, NativeRecord::Event(Event::MpiRecv(m))),
        (1001, NativeRecord::Event(Event::Leave(RegionId(9)))),
    ];
    let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 1.5 };
    write(directory, &events, &[offset(50, -3), offset(2000, 4)]).unwrap()
}

#[test]
fn time_does_not_run_backwards_between_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let trace = NativeWriter::create(directory.path(), RESOLUTION).unwrap();
    let mut writer = trace.events(HERE).unwrap();
    writer.event(5, &Event::MpiCollectiveBegin).unwrap();
    let error = writer.event(4, &Event::MpiCollectiveBegin).unwrap_err();
    assert!(error.to_string().contains("location 7, event 2: time 4 is earlier than the preceding one, 5"), "{error}");
    let unordered = [9, 9].map(|time| ClockOffset { time, offset: 0, standard_deviation: 0.0 });
    assert!(writer.finish(&unordered).unwrap_err().message.contains("not in order"));
}

#[test]
fn thousands_of_locations_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let trace = NativeWriter::create(directory.path(), RESOLUTION).unwrap();
    let ids: Vec<LocationId> = (0..5000).map(LocationId).collect();
    let mut writers: Vec<NativeEventWriter> = ids.iter().map(|&id| trace.events(id).unwrap()).collect();
    for time in 0..3 {
        for writer in &mut writers {
            writer.event(time, &Event::MpiCollectiveBegin).unwrap();
        }
    }
    for writer in writers {
        assert_eq!(writer.finish(&[]).unwrap(), 3);
    }
    let location = definitions().locations.remove(0);
    let locations = ids.iter().map(|&id| Location { id, ..location.clone() }).collect();
    trace.finish(&TraceHeader::default(), &Definitions { locations, ..definitions() }).unwrap();
    let trace = NativeTrace::open(directory.path()).unwrap();
    for id in ids {
        assert_eq!(trace.scan_with(id, |_, _, _| Ok(())).unwrap().events, 3);
    }
}
