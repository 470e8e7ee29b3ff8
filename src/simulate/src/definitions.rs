//! The definitions of a simulated trace.

use crate::engine::{CALLSITE, WINDOW, group_of, regions, thread_barriers};
use crate::patterns::{PatternKind, communicators};
use crate::scenario::{RunSummary, Scenario};
use crate::units::{EPOCH, TickRate};
use clc_trace::{
    ClockProperties, CommId, Definitions, Location, LocationGroup, LocationGroupId, LocationId, LocationKind,
    SystemTreeNode, SystemTreeNodeId, Window,
};

impl Scenario {
    /// The global definitions: a machine with its nodes, a location group per process, [`Scenario::locations`] per process
    /// (location `t` of rank `r` has index `r * locations + t` and id `t * 2^32 + r`), communicators and regions.
    ///
    /// The numbers of events and the length of the trace are 0 until [`RunSummary::complete`] has filled them in.
    /// An invalid scenario has definitions too; [`Scenario::validate`] is the judge.
    pub fn definitions(&self) -> Definitions {
        let nodes = self.nodes();
        let root = SystemTreeNode {
            id: SystemTreeNodeId(0),
            name: "simulated machine".into(),
            class: "machine".into(),
            parent: None,
        };
        let node = |node: u32| SystemTreeNode {
            id: SystemTreeNodeId(node + 1),
            name: format!("node{node}"),
            class: "node".into(),
            parent: Some(SystemTreeNodeId(0)),
        };
        let one_sided = self.pattern.has_window();
        let offload = self.pattern == PatternKind::Offload;
        // Of an accelerator, it belongs to no processes.
        let (name, comm) = if offload { ("HIP", CommId(1)) } else { ("halo", CommId(0)) };
        let windows = (one_sided || offload).then(|| Window { id: WINDOW, name: name.into(), comm });
        let windows: Vec<Window> = windows.into_iter().collect();
        // For each process the neighbours that it synchronises with.
        let groups = match self.pattern {
            PatternKind::RmaPscw => (0..self.ranks).map(|rank| group_of(rank, self.ranks)).collect(),
            _ => Vec::new(),
        };
        let count = nodes.last().map_or(0, |last| last + 1);
        let group = |(rank, &node): (usize, &u32)| LocationGroup {
            id: LocationGroupId(rank as u32),
            name: format!("MPI Rank {rank}"),
            accelerator: false,
            parent: Some(SystemTreeNodeId(node + 1)),
            creator: None,
        };
        let accelerator = |(rank, &node): (usize, &u32)| LocationGroup {
            id: LocationGroupId(self.ranks + rank as u32),
            name: format!("accelerator of rank {rank}"),
            accelerator: true,
            parent: Some(SystemTreeNodeId(node + 1)),
            creator: Some(LocationGroupId(rank as u32)),
        };
        let accelerators = nodes.iter().enumerate().filter(|_| offload).map(accelerator);
        let location = |rank: u32, thread: u32| Location {
            id: LocationId(u64::from(thread) << 32 | u64::from(rank)),
            name: match thread {
                0 => "Master thread".into(),
                _ if offload => format!("Stream {thread}"),
                _ => format!("Thread {thread}"),
            },
            kind: if offload && thread > 0 { LocationKind::AcceleratorStream } else { LocationKind::CpuThread },
            group: LocationGroupId(if offload && thread > 0 { self.ranks + rank } else { rank }),
            claimed_events: 0,
        };
        Definitions {
            clock: ClockProperties {
                resolution: self.resolution,
                global_offset: TickRate::new(self.resolution).ticks(EPOCH).0 as u64,
                trace_length: 0,
                realtime: None,
            },
            locations: (0..self.ranks)
                .flat_map(|rank| (0..self.locations()).map(move |thread| location(rank, thread)))
                .collect(),
            location_groups: nodes.iter().enumerate().map(group).chain(accelerators).collect(),
            system_tree: std::iter::once(root).chain((0..count).map(node)).collect(),
            processes: (0..self.ranks).map(|rank| LocationId(u64::from(rank))).collect(),
            communicators: communicators(self.pattern, &nodes, self.communicators, self.seed).0,
            regions: regions(self.pattern.is_beyond_messages(), self.pattern.has_parts()),
            windows,
            groups,
            thread_barriers: if self.pattern == PatternKind::Hybrid { thread_barriers() } else { Vec::new() },
            callsites: if offload { vec![CALLSITE] } else { Vec::new() },
            accelerator_attributes: Default::default(),
        }
    }
}

impl RunSummary {
    /// Fills in what is known only after the run: events per location and the length of the trace.
    pub fn complete(&self, definitions: &mut Definitions) {
        for (location, &events) in definitions.locations.iter_mut().zip(&self.events) {
            location.claimed_events = events;
        }
        let clock = &mut definitions.clock;
        clock.trace_length = (self.latest.0.max(0) as u64).saturating_sub(clock.global_offset);
    }
}
