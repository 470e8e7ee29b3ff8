//! Archives of all kinds of events, written by the library under test.

use clc_otf2::{ArchiveWriter, ByteOrder, CreateOptions, MappingTable, Otf2Archive};
use clc_trace::{
    ClockOffset, ClockProperties, Collective, CollectiveOp, CommId, CommMembers, Communicator, Definitions, Event,
    Location, LocationGroup, LocationGroupId, LocationId, LocationKind, Message, MpiRank, Region, RegionId, Root,
    SystemTreeNode, SystemTreeNodeId,
};
use std::collections::HashMap;
use std::path::Path;

pub(crate) const PROCESSES: u32 = 3;
pub(crate) const EVENTS: u64 = 40_000;

pub(crate) fn options(order: ByteOrder) -> CreateOptions {
    CreateOptions { order, event_chunk: 1 << 18, definition_chunk: 1 << 18, ..CreateOptions::default() }
}

/// Three processes on two nodes, communicators of every sort.
pub(crate) fn definitions() -> Definitions {
    let node = |id: u32, name: &str, class: &str, parent: Option<u32>| SystemTreeNode {
        id: SystemTreeNodeId(id),
        name: name.into(),
        class: class.into(),
        parent: parent.map(SystemTreeNodeId),
    };
    let communicator = |id: u32, name: &str, members: CommMembers| Communicator {
        id: CommId(id),
        name: name.into(),
        members,
        global_ranks: false,
    };
    Definitions {
        clock: ClockProperties {
            resolution: 1_000_000_000,
            global_offset: 0,
            trace_length: 10 * EVENTS,
            realtime: Some(1_700_000_000_000_000_000),
        },
        locations: (0..PROCESSES)
            .map(|rank| Location {
                id: LocationId(u64::from(rank) << 33),
                name: "Master thread".into(),
                kind: LocationKind::CpuThread,
                group: LocationGroupId(rank),
                claimed_events: EVENTS,
            })
            .collect(),
        location_groups: (0..PROCESSES)
            .map(|rank| LocationGroup {
                id: LocationGroupId(rank),
                name: format!("MPI Rank {rank}"),
                accelerator: false,
                parent: Some(SystemTreeNodeId(1 + rank % 2)),
                creator: None,
            })
            .collect(),
        system_tree: vec![
            node(0, "machine", "machine", None),
            node(1, "a", "node", Some(0)),
            node(2, "b", "node", Some(0)),
        ],
        processes: (0..PROCESSES).map(|rank| LocationId(u64::from(rank) << 33)).collect(),
        communicators: vec![
            communicator(0, "MPI_COMM_WORLD", CommMembers::Intra((0..PROCESSES).map(MpiRank).collect())),
            communicator(1, "MPI_COMM_SELF", CommMembers::SelfOnly),
            communicator(2, "reversed", CommMembers::Intra((0..PROCESSES).rev().map(MpiRank).collect())),
            communicator(3, "between", CommMembers::Inter([0, 2].map(MpiRank).into(), [MpiRank(1)].into())),
            communicator(4, "threads", CommMembers::NotMpi),
        ],
        windows: Vec::new(),
        groups: Vec::new(),
        thread_barriers: Vec::new(),
        callsites: Vec::new(),
        accelerator_attributes: Default::default(),
        regions: ["main", "MPI_Send", "läuft"]
            .iter()
            .zip(0..)
            .map(|(name, id)| Region { id: RegionId(id), name: (*name).into() })
            .collect(),
    }
}

/// Event `number` of a process: every kind in turn, with values of all sizes.
pub(crate) fn event(number: u64) -> Event {
    let wide = 1u64.rotate_left((number % 64) as u32).wrapping_mul(number | 1);
    let small = wide as u32 & 0x7FFF_FFFF;
    let comm = CommId([0, 1, 2, 3][(number / 16) as usize % 4]);
    // Rank 0 is in every communicator, and on both sides of the one between two groups.
    let message = Message { peer: 0, comm, tag: small, length: wide >> 1 };
    let collective = Collective {
        op: CollectiveOp((number % 17) as u8),
        comm: CommId(number as u32 % 3),
        root: if number.is_multiple_of(2) { Root::None } else { Root::Rank(0) },
        sent: wide >> 1,
        received: number,
    };
    match number % 16 {
        0 => Event::Enter(RegionId(number as u32 % 3)),
        1 => Event::Leave(RegionId(number as u32 % 3)),
        2 => Event::MpiSend(message),
        3 => Event::MpiIsend(message, wide),
        4 => Event::MpiIsendComplete(wide),
        5 => Event::MpiIrecvRequest(number),
        6 => Event::MpiRecv(message),
        7 => Event::MpiIrecv(message, number),
        8 => Event::MpiRequestTest(wide),
        9 => Event::MpiRequestCancelled(wide),
        10 => Event::MpiCollectiveBegin,
        11 => Event::MpiCollectiveEnd(collective),
        12 => Event::NonBlockingCollectiveRequest(wide),
        13 => Event::NonBlockingCollectiveComplete(collective, wide),
        14 => Event::MpiCollectiveEnd(Collective { comm: CommId(3), root: Root::ThisProcess, ..collective }),
        _ => Event::MpiCollectiveEnd(Collective { comm: CommId(3), root: Root::OwnGroup, ..collective }),
    }
}

pub(crate) fn time(number: u64) -> u64 {
    // Three events share a time; the first ones are at time 0.
    number / 3 * 10
}

pub(crate) fn offsets() -> Vec<ClockOffset> {
    let offset = |time, offset| ClockOffset { time, offset, standard_deviation: 0.25 };
    vec![offset(0, 1000), offset(200_000, 900), offset(400_000, 1100)]
}

/// An archive of all kinds of events, several chunks in each file, the locations written by threads of their own.
pub(crate) fn create(directory: &Path, order: ByteOrder) -> Otf2Archive {
    create_with(directory, order, &definitions())
}

pub(crate) fn create_with(directory: &Path, order: ByteOrder, definitions: &Definitions) -> Otf2Archive {
    let writer = ArchiveWriter::create(directory, "sample", options(order)).unwrap();
    let counts: HashMap<LocationId, u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = definitions
            .locations
            .iter()
            .map(|location| {
                let mut events = writer.events(location.id).unwrap();
                let thread = scope.spawn(move || {
                    for number in 0..EVENTS {
                        events.event(time(number), &event(number)).unwrap();
                    }
                    events.finish().unwrap()
                });
                (location.id, thread)
            })
            .collect();
        threads.into_iter().map(|(id, thread)| (id, thread.join().unwrap())).collect()
    });
    for (location, count) in definitions.locations.iter().zip(0..) {
        let tables: &[MappingTable] = match count {
            0 => &[],
            1 => &[MappingTable { kind: 3, ids: vec![(0, 2), (1, 1), (2, 0)] }],
            _ => &[MappingTable { kind: 3, ids: vec![(1, 2), (2, 1)] }, MappingTable { kind: 6, ids: vec![] }],
        };
        writer.local_definitions_with_tables(location.id, tables, &offsets()).unwrap();
    }
    writer.finish(definitions, &counts).unwrap();
    Otf2Archive::open(directory).unwrap()
}
