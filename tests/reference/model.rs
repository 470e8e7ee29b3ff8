//! A trace as plain data: processes, their locations, what each recorded, and who is in which communicator.

use clc_trace::{
    AcceleratorAttributes, AttributeId, ClockProperties, CommId, CommMembers, Communicator, Definitions, Event,
    GroupId, Location, LocationGroup, LocationGroupId, LocationId, LocationKind, MpiRank, ParameterId, Region,
    RegionId, SystemTreeNode, SystemTreeNodeId, Window,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Regions of the application in generated traces have the ids `0..REGIONS`.
pub(crate) const REGIONS: u32 = 4;

/// The names of all regions, by their ids.
pub(crate) const REGION_NAMES: [&str; 28] = [
    "region 0",
    "region 1",
    "region 2",
    "region 3",
    "MPI_Ssend",
    "MPI_Issend",
    "MPI_Recv",
    "MPI_Irecv",
    "MPI_Win_post",
    "MPI_Win_start",
    "MPI_Win_complete",
    "MPI_Win_wait",
    "!$omp implicit barrier",
    "cuLaunchKernel",
    "hipLaunchKernel",
    "cuStreamSynchronize",
    "hipDeviceSynchronize",
    "hipMemcpyDtoH",
    "GPU IDLE",
    "a kernel",
    "MPI_Comm_split",
    "pmpi_comm_dup_",
    "MPI_Comm_create_group",
    "MPI_Neighbor_alltoall",
    "MPI_Send",
    "cuEventRecord",
    "cuEventSynchronize",
    "MPI_Request_free",
];

/// Regions of accelerators.
pub(crate) const CU_LAUNCH: u32 = 13;
pub(crate) const HIP_LAUNCH: u32 = 14;
pub(crate) const STREAM_WAIT: u32 = 15;
pub(crate) const DEVICE_WAIT: u32 = 16;
pub(crate) const COPY_TO_HOST: u32 = 17;
pub(crate) const IDLE: u32 = 18;
pub(crate) const KERNEL: u32 = 19;
pub(crate) const PLACE_EVENT: u32 = 25;
pub(crate) const EVENT_WAIT: u32 = 26;
/// The parameter of call sites, and the attributes that name streams and events.
pub(crate) const CALLSITE: u32 = 3;
const STREAM_REFERENCE: u32 = 4;
const EVENT_REFERENCE: u32 = 5;

/// The attributes by which calls name streams and events.
pub(crate) fn attributes() -> AcceleratorAttributes {
    AcceleratorAttributes { streams: vec![AttributeId(STREAM_REFERENCE)], events: vec![AttributeId(EVENT_REFERENCE)] }
}

/// The one in which the threads of a team wait for each other.
pub(crate) const BARRIER: u32 = 12;

/// A recorded event. `time` is the pre-synchronised time C in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub time: i64,
    pub event: Event,
}

/// One process: where it runs, and its event streams (threads), each with nondecreasing times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub node: u32,
    pub locations: Vec<Vec<Recorded>>,
}

/// A trace. The index of a process is its global MPI rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub processes: Vec<Process>,
    pub communicators: Vec<Communicator>,
    /// Windows of one-sided communication, and groups that events on them name.
    pub windows: Vec<Window>,
    pub groups: Vec<(GroupId, Arc<[MpiRank]>)>,
    /// Locations (process, location) that are streams of accelerators, with the number of the device in the process.
    pub streams: BTreeMap<(usize, usize), u32>,
    /// Events (process, location, number) that name a stream of their process, and those that name what is put into streams.
    pub references: BTreeMap<(usize, usize, usize), usize>,
    pub event_references: BTreeMap<(usize, usize, usize), u64>,
    /// Of events (process, location, number) that come later among those of their time than their locations say: how many times they do.
    pub layers: BTreeMap<(usize, usize, usize), u32>,
}

/// An event in the merged stream of its process, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub time: i64,
    pub location: usize,
    pub number: usize,
    pub event: Event,
}

/// The events of all locations of one process, merged by (time, location, number). One logical clock ticks on it.
pub(crate) type Timeline = Vec<Entry>;

/// An event of a trace: its process, and its index in the timeline of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventRef {
    pub process: usize,
    pub index: usize,
}

/// One value per event, `[process][index in the timeline]`.
pub(crate) type PerEvent = Vec<Vec<i64>>;

/// One value per event, `[process][location][number]`.
pub(crate) type PerLocation = Vec<Vec<Vec<i64>>>;

impl Trace {
    /// The timeline of every process.
    pub(crate) fn timelines(&self) -> Vec<Timeline> {
        let mut timelines: Vec<Timeline> = self.processes.iter().map(Process::timeline).collect();
        if !self.layers.is_empty() {
            for (process, timeline) in timelines.iter_mut().enumerate() {
                // What is at one time keeps its order otherwise.
                let layer = |entry: &Entry| self.layers.get(&(process, entry.location, entry.number)).copied();
                timeline.sort_by_key(|entry| (entry.time, layer(entry).unwrap_or(0)));
            }
        }
        timelines
    }

    /// The pre-synchronised times C.
    pub(crate) fn times(&self) -> PerEvent {
        self.timelines().iter().map(|timeline| timeline.iter().map(|entry| entry.time).collect()).collect()
    }

    /// Brings values per location into the order of the timelines.
    pub(crate) fn merge(&self, values: &PerLocation) -> PerEvent {
        let value = |process: usize, entry: &Entry| values[process][entry.location][entry.number];
        let timelines = self.timelines();
        timelines.iter().enumerate().map(|(p, timeline)| timeline.iter().map(|e| value(p, e)).collect()).collect()
    }

    /// The inverse of [`Trace::merge`].
    pub(crate) fn split(&self, values: &PerEvent) -> PerLocation {
        let mut split: PerLocation =
            self.processes.iter().map(|p| p.locations.iter().map(|events| vec![0; events.len()]).collect()).collect();
        for (process, timeline) in self.timelines().iter().enumerate() {
            for (index, entry) in timeline.iter().enumerate() {
                split[process][entry.location][entry.number] = values[process][index];
            }
        }
        split
    }

    /// The communicator with this id, if it is defined.
    pub(crate) fn members(&self, comm: CommId) -> Option<&CommMembers> {
        self.communicators.iter().find(|c| c.id == comm).map(|c| &c.members)
    }

    /// The id that [`Trace::definitions`] gives to a location; not in the order of the processes, so that a rank is no index.
    pub(crate) fn location_id(&self, process: usize, location: usize) -> LocationId {
        let processes = self.processes.len();
        LocationId((processes * (location + 1) - process) as u64)
    }

    /// The location group of a device.
    fn device_group(&self, process: usize, device: u32) -> LocationGroupId {
        LocationGroupId(1000 * (process as u32 + 1) + device)
    }

    /// The same definitions as an archive would hold them: all locations of process 0, then of process 1, ...
    pub(crate) fn definitions(&self) -> Definitions {
        let mut locations = Vec::new();
        for (p, process) in self.processes.iter().enumerate() {
            for (l, events) in process.locations.iter().enumerate() {
                let device = self.streams.get(&(p, l));
                locations.push(Location {
                    id: self.location_id(p, l),
                    name: format!("thread {l}"),
                    kind: device.map_or(LocationKind::CpuThread, |_| LocationKind::AcceleratorStream),
                    group: device.map_or(LocationGroupId(p as u32), |&device| self.device_group(p, device)),
                    claimed_events: events.len() as u64,
                });
            }
        }
        let group = |(p, process): (usize, &Process)| LocationGroup {
            id: LocationGroupId(p as u32),
            name: format!("rank {p}"),
            accelerator: false,
            parent: Some(SystemTreeNodeId(process.node + 1)),
            creator: None,
        };
        let node = |id: u32, name: String, class: &str, parent| SystemTreeNode {
            id: SystemTreeNodeId(id),
            name,
            class: class.to_string(),
            parent,
        };
        let mut devices: Vec<(usize, u32)> = self.streams.iter().map(|(&(p, _), &device)| (p, device)).collect();
        devices.dedup();
        let device = |(p, device): (usize, u32)| LocationGroup {
            id: self.device_group(p, device),
            name: format!("device {device}"),
            accelerator: true,
            parent: Some(SystemTreeNodeId(self.processes[p].node + 1)),
            creator: Some(LocationGroupId(p as u32)),
        };
        let nodes = self.processes.iter().map(|p| p.node + 1).max().unwrap_or(0);
        let mut system_tree = vec![node(0, "machine".into(), "machine", None)];
        system_tree.extend((0..nodes).map(|n| node(n + 1, format!("node {n}"), "node", Some(SystemTreeNodeId(0)))));
        let all_times = || self.processes.iter().flat_map(|p| &p.locations).flatten().map(|recorded| recorded.time);
        let (first, last) = (all_times().min().unwrap_or(0), all_times().max().unwrap_or(0));
        Definitions {
            clock: ClockProperties {
                resolution: 1_000_000_000,
                global_offset: u64::try_from(first).expect("times of a trace are not negative"),
                trace_length: u64::try_from(last - first).expect("a maximum is not below a minimum"),
                realtime: None,
            },
            locations,
            location_groups: self
                .processes
                .iter()
                .enumerate()
                .map(group)
                .chain(devices.into_iter().map(device))
                .collect(),
            system_tree,
            processes: (0..self.processes.len()).map(|p| self.location_id(p, 0)).collect(),
            communicators: self.communicators.clone(),
            windows: self.windows.clone(),
            groups: self.groups.clone(),
            thread_barriers: vec![RegionId(BARRIER)],
            callsites: vec![ParameterId(CALLSITE)],
            accelerator_attributes: attributes(),
            regions: (0..)
                .zip(REGION_NAMES)
                .map(|(id, name)| Region { id: RegionId(id), name: name.to_owned() })
                .collect(),
        }
    }
}

impl Process {
    /// The merged events of all locations.
    pub(crate) fn timeline(&self) -> Timeline {
        let mut timeline = Vec::new();
        for (location, events) in self.locations.iter().enumerate() {
            for (number, recorded) in events.iter().enumerate() {
                timeline.push(Entry { time: recorded.time, location, number, event: recorded.event });
            }
        }
        timeline.sort_by_key(|entry| (entry.time, entry.location, entry.number));
        timeline
    }
}
