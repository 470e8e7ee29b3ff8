//! The definitions of a simulated trace.

use crate::engine::{WINDOW, group_of, regions};
use crate::patterns::{PatternKind, communicators};
use crate::scenario::{RunSummary, Scenario};
use crate::units::{EPOCH, TickRate};
use clc_trace::{
    ClockProperties, CommId, Definitions, Location, LocationGroup, LocationGroupId, LocationId, LocationKind,
    SystemTreeNode, SystemTreeNodeId, Window,
};

impl Scenario {
    /// The global definitions: a machine with its nodes, a location group per process, `threads` locations per process
    /// (location `t` of rank `r` has index `r * threads + t` and id `t * 2^32 + r`), communicators and regions.
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
        let windows = one_sided.then(|| Window { id: WINDOW, name: "halo".into(), comm: CommId(0) });
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
        let location = |rank: u32, thread: u32| Location {
            id: LocationId(u64::from(thread) << 32 | u64::from(rank)),
            name: if thread == 0 { "Master thread".into() } else { format!("Thread {thread}") },
            kind: LocationKind::CpuThread,
            group: LocationGroupId(rank),
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
                .flat_map(|rank| (0..self.threads).map(move |thread| location(rank, thread)))
                .collect(),
            location_groups: nodes.iter().enumerate().map(group).collect(),
            system_tree: std::iter::once(root).chain((0..count).map(node)).collect(),
            processes: (0..self.ranks).map(|rank| LocationId(u64::from(rank))).collect(),
            communicators: communicators(self.pattern, &nodes, self.communicators, self.seed).0,
            regions: regions(self.pattern.is_beyond_messages()),
            windows,
            groups,
            thread_barriers: Vec::new(),
            callsites: Vec::new(),
            stream_references: Vec::new(),
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
