//! Archives of given events.

use clc_otf2::{ArchiveWriter, CreateOptions};
use clc_simulate::{PatternKind, Scenario};
use clc_trace::{Collective, CollectiveOp, CommId, Definitions, Event, Message, Region, RegionId, Root};
use std::path::{Path, PathBuf};

pub(crate) const USER: u32 = 0;
pub(crate) const SEND: u32 = 1;
pub(crate) const RECEIVE: u32 = 2;
pub(crate) const COLLECTIVE: u32 = 3;
pub(crate) const ISEND: u32 = 4;
pub(crate) const IRECEIVE: u32 = 5;
pub(crate) const WAIT: u32 = 6;
pub(crate) const NAMES: [&str; 7] =
    ["user", "MPI_Send", "MPI_Recv", "MPI_Collective", "MPI_Isend", "mpi_irecv_", "PMPI_Waitall"];

/// Events with their times in microseconds.
pub(crate) type Events = Vec<(u64, Event)>;

/// An archive of these events of each rank, with a timer of 1 MHz; `--as-recorded` shows exactly them.
pub(crate) fn hand_made(directory: &Path, ranks: &[Events]) -> PathBuf {
    hand_made_of(directory, &NAMES, ranks)
}

/// The same with other names of the regions.
pub(crate) fn hand_made_of(directory: &Path, names: &[&str], ranks: &[Events]) -> PathBuf {
    hand_made_with(directory, names, ranks, |_| {})
}

/// The same with other definitions.
pub(crate) fn hand_made_with(
    directory: &Path,
    names: &[&str],
    ranks: &[Events],
    change: impl FnOnce(&mut Definitions),
) -> PathBuf {
    let scenario = Scenario {
        ranks: ranks.len() as u32,
        ranks_per_node: 1,
        resolution: 1_000_000,
        pattern: PatternKind::Ring,
        ..Scenario::default()
    };
    let mut definitions = scenario.definitions();
    definitions.clock.global_offset = 0;
    let region = |(id, name): (u32, &&str)| Region { id: RegionId(id), name: (*name).into() };
    definitions.regions = (0..).zip(names).map(region).collect();
    change(&mut definitions);
    let trace = directory.join("hand-made");
    let archive = ArchiveWriter::create(&trace, "traces", CreateOptions::default()).expect("an archive");
    for (rank, events) in ranks.iter().enumerate() {
        let id = definitions.locations[rank].id;
        let mut file = archive.events(id).expect("an event file");
        events.iter().for_each(|(time, event)| file.event(*time, event).expect("an event"));
        file.finish().expect("an event file");
        archive.local_definitions(id, &[]).expect("local definitions");
    }
    archive.finish(&definitions, &Default::default()).expect("an archive");
    trace
}

pub(crate) fn message(peer: u32, tag: u32) -> Message {
    Message { peer, comm: CommId(0), tag, length: 100 }
}

/// A region of `number` from `enter` to `leave` with events inside.
pub(crate) fn region(number: u32, enter: u64, leave: u64, inside: &[(u64, Event)]) -> Events {
    let mut events = vec![(enter, Event::Enter(RegionId(number)))];
    events.extend(inside);
    events.push((leave, Event::Leave(RegionId(number))));
    events
}

/// A blocking collective operation on the world.
pub(crate) fn collective(op: CollectiveOp, root: Root, enter: u64, leave: u64) -> Events {
    let end = Collective { op, comm: CommId(0), root, sent: 8, received: 8 };
    region(COLLECTIVE, enter, leave, &[(enter, Event::MpiCollectiveBegin), (leave, Event::MpiCollectiveEnd(end))])
}
