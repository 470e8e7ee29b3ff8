//! Global definitions of an archive, as far as a correction needs them.

use crate::{
    AttributeId, CommId, GroupId, LocationGroupId, LocationId, MpiRank, ParameterId, RegionId, SystemTreeNodeId,
    WindowId,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// OTF2 `ClockProperties`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockProperties {
    /// Ticks per second.
    pub resolution: u64,
    /// Lower bound of all (corrected) timestamps, in ticks.
    pub global_offset: u64,
    /// Span of all timestamps from `global_offset` on, in ticks.
    pub trace_length: u64,
    /// Wall-clock time at `global_offset`, in nanoseconds since 1970 UTC, if recorded.
    pub realtime: Option<u64>,
}

/// What kind of stream a location is (OTF2 `LocationType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocationKind {
    /// A thread of execution on a CPU.
    CpuThread,
    /// A stream of an accelerator.
    AcceleratorStream,
    /// A stream of metric values only.
    Metric,
    /// A kind this program does not know; it passes through.
    Other(u8),
}

/// One event stream (OTF2 `Location`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Its id, which is also the name of its event file.
    pub id: LocationId,
    /// Its name, for people.
    pub name: String,
    /// Its kind.
    pub kind: LocationKind,
    /// The group (process) it belongs to.
    pub group: LocationGroupId,
    /// Number of events as the definition claims; not reliable (EZTrace writes 2 for everything).
    pub claimed_events: u64,
}

/// A process or an accelerator (OTF2 `LocationGroup`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationGroup {
    /// Its id.
    pub id: LocationGroupId,
    /// Its name, for people.
    pub name: String,
    /// `true` for an accelerator, `false` for a process.
    pub accelerator: bool,
    /// Where it runs in the system tree.
    pub parent: Option<SystemTreeNodeId>,
    /// For an accelerator: the process that drives it (OTF2 3.0).
    pub creator: Option<LocationGroupId>,
}

/// A machine, node, or other level of the system (OTF2 `SystemTreeNode`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemTreeNode {
    /// Its id.
    pub id: SystemTreeNodeId,
    /// Its name, for people.
    pub name: String,
    /// Its class ("node", "machine", ...), free text.
    pub class: String,
    /// The level above, none for the root.
    pub parent: Option<SystemTreeNodeId>,
}

/// Who is in a communicator. Communicators of the same group share one list: there can be thousands of duplicates of a large one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommMembers {
    /// An intra-communicator: its members in communicator-rank order.
    Intra(Arc<[MpiRank]>),
    /// Every process's own `MPI_COMM_SELF`, or another one-member communicator without a member list
    /// (OTF2 group type `COMM_SELF`): rank 0 is the event's own process.
    SelfOnly,
    /// An inter-communicator (OTF2 3.0): the members of the two groups, each in its own rank order.
    Inter(Arc<[MpiRank]>, Arc<[MpiRank]>),
    /// Belongs to another paradigm (threads, measurement system, accelerators): synchronises no processes.
    NotMpi,
    /// Its group is not defined; an error as soon as an event uses it.
    Undefined,
}

/// A communicator (OTF2 `Comm`, `InterComm`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Communicator {
    /// Its global id.
    pub id: CommId,
    /// Its name, possibly empty.
    pub name: String,
    /// Its members.
    pub members: CommMembers,
    /// Ranks in its events are global MPI ranks instead of ranks in the communicator (OTF2 `GroupFlag` global members).
    pub global_ranks: bool,
}

/// A window of one-sided communication (OTF2 `RmaWin`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its global id.
    pub id: WindowId,
    /// Its name, possibly empty.
    pub name: String,
    /// The communicator whose members have it in common.
    pub comm: CommId,
}

/// A code region (OTF2 `Region`), for reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Its global id.
    pub id: RegionId,
    /// Its name, for people.
    pub name: String,
}

/// The global definitions of an archive. Read once by analysis rank 0 and broadcast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definitions {
    /// The unit and bounds of all timestamps.
    pub clock: ClockProperties,
    /// Event streams, in the order of their definitions.
    pub locations: Vec<Location>,
    /// Processes and accelerators.
    pub location_groups: Vec<LocationGroup>,
    /// Machines and nodes.
    pub system_tree: Vec<SystemTreeNode>,
    /// The location that stands for each MPI rank of the application
    /// (OTF2 group of type `COMM_LOCATIONS`, paradigm MPI): index = global rank. Empty if there is no MPI in the trace.
    pub processes: Vec<LocationId>,
    /// Communicators, in the order of their definitions.
    pub communicators: Vec<Communicator>,
    /// Code regions.
    pub regions: Vec<Region>,
    /// Windows of one-sided communication, in the order of their definitions.
    pub windows: Vec<Window>,
    /// Groups of MPI processes that events name by themselves, as those that post and start epochs on windows do; by increasing
    /// id. Only where there are windows.
    pub groups: Vec<(GroupId, Arc<[MpiRank]>)>,
    /// Regions in which the threads of an OpenMP team wait for each other (OTF2 region roles barrier and implicit barrier), ascending.
    pub thread_barriers: Vec<RegionId>,
    /// Parameters that tell at which call site a kernel of an accelerator was launched, with the launching call and with the kernel; ascending.
    pub callsites: Vec<ParameterId>,
    /// Attributes by which calls of an accelerator's interface name what they refer to.
    pub accelerator_attributes: AcceleratorAttributes,
}

/// Attributes by which calls of an accelerator's interface name what they refer to; each list ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceleratorAttributes {
    /// A stream, by its location (Score-P: `CUDA_STREAM_REF`).
    pub streams: Vec<AttributeId>,
    /// An event that is put into a stream and waited for, by its address (Score-P: `CUDA_EVENT_REF`).
    pub events: Vec<AttributeId>,
}

impl AcceleratorAttributes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.events.is_empty()
    }
}

/// What a call of an accelerator's interface refers to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceleratorReference {
    /// The location of a stream.
    pub stream: Option<LocationId>,
    /// An event that is put into a stream or waited for.
    pub event: Option<u64>,
}

impl AcceleratorReference {
    /// Whether it refers to something.
    pub fn is_some(&self) -> bool {
        self.stream.is_some() || self.event.is_some()
    }
}

/// Definitions on their way to another rank: a list of members that communicators share is sent once.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireDefinitions {
    /// With empty lists.
    definitions: Definitions,
    lists: Vec<Arc<[MpiRank]>>,
    /// Which of them belongs to each place for a list, in the order of the communicators.
    used: Vec<u32>,
}

impl WireDefinitions {
    /// Packs.
    pub fn new(mut definitions: Definitions) -> WireDefinitions {
        let (mut lists, mut used) = (Vec::new(), Vec::new());
        let mut known: HashMap<*const MpiRank, u32> = HashMap::new();
        let empty: Arc<[MpiRank]> = Arc::default();
        // The place of a list in memory tells lists apart, and empty ones are alike.
        definitions.each_list(|list| {
            let taken = std::mem::replace(list, Arc::clone(&empty));
            used.push(*known.entry(taken.as_ptr()).or_insert_with(|| {
                lists.push(taken);
                lists.len() as u32 - 1
            }));
        });
        WireDefinitions { definitions, lists, used }
    }

    /// Unpacks.
    pub fn open(self) -> Definitions {
        let WireDefinitions { mut definitions, lists, used } = self;
        let mut used = used.into_iter();
        definitions.each_list(|list| {
            if let Some(its) = used.next().and_then(|index| lists.get(index as usize)) {
                *list = Arc::clone(its);
            }
        });
        definitions
    }
}

impl Definitions {
    /// A trace of nothing.
    pub fn empty(clock: ClockProperties) -> Definitions {
        Definitions {
            clock,
            locations: Vec::new(),
            location_groups: Vec::new(),
            system_tree: Vec::new(),
            processes: Vec::new(),
            communicators: Vec::new(),
            regions: Vec::new(),
            windows: Vec::new(),
            groups: Vec::new(),
            thread_barriers: Vec::new(),
            callsites: Vec::new(),
            accelerator_attributes: AcceleratorAttributes::default(),
        }
    }

    fn each_list(&mut self, mut act: impl FnMut(&mut Arc<[MpiRank]>)) {
        for communicator in &mut self.communicators {
            match &mut communicator.members {
                CommMembers::Intra(members) => act(members),
                CommMembers::Inter(a, b) => [a, b].into_iter().for_each(&mut act),
                CommMembers::SelfOnly | CommMembers::NotMpi | CommMembers::Undefined => {}
            }
        }
        self.groups.iter_mut().for_each(|(_, members)| act(members));
    }
}
