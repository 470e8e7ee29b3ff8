//! All definition records of OTF2 1.0 to 3.0, from one table; those from 10 on stand in local definition files as well.

use crate::fields::{CallingContextId, Few, Many, MetricId, Properties, StringId, Typed};
use crate::table::records;
use clc_trace::{CommId, GroupId, LocationGroupId, LocationId, RegionId, SystemTreeNodeId, WindowId};

records! {
    /// A definition, with the fields of its record in their order in the file. Fields that are optional came with later versions of the format.
    pub enum DefinitionRecord {
        /// The timer, and the time that the events span.
        5 ClockProperties framed { timer_resolution: u64, global_offset: u64, trace_length: u64, realtime: Option<u64> }
        /// A programming model.
        6 Paradigm framed { paradigm: u8, name: StringId, class: u8 }
        /// A property of a programming model.
        7 ParadigmProperty framed { paradigm: u8, property: u8, value: Typed }
        /// A way of input and output.
        8 IoParadigm framed {
            id: u8, identification: StringId, name: StringId, class: u8, flags: u32, properties: Properties,
        }
        /// A text that others refer to.
        10 String framed { id: StringId, text: String }
        /// An attribute of events.
        11 Attribute framed { id: u32, name: StringId, kind: u8, description: Option<StringId> }
        /// A node of the machine, or what consists of nodes.
        12 SystemTreeNode framed { id: SystemTreeNodeId, name: StringId, class: StringId, parent: SystemTreeNodeId }
        /// A process or an accelerator.
        13 LocationGroup framed {
            id: LocationGroupId, name: StringId, kind: u8, parent: SystemTreeNodeId, creator: Option<LocationGroupId>,
        }
        /// A stream of events.
        14 Location framed { id: LocationId, name: StringId, kind: u8, events: u64, group: LocationGroupId }
        /// A region of code.
        15 Region framed {
            id: RegionId, name: StringId, description: StringId, legacy_kind: u8, source_file: StringId, begin_line: u32,
            end_line: u32, canonical_name: Option<StringId>, role: Option<u8>, paradigm: Option<u8>, flags: Option<u32>,
        }
        /// Where a region is called.
        16 Callsite framed {
            id: u32, source_file: StringId, line: u32, entered_region: RegionId, left_region: RegionId,
        }
        /// A call path.
        17 Callpath framed { id: u32, parent: u32, region: RegionId }
        /// A set of locations, regions, processes.
        18 Group framed {
            id: GroupId, name: StringId, legacy_kind: u8, members: Many<u64>, kind: Option<u8>, paradigm: Option<u8>,
            flags: Option<u32>,
        }
        /// A metric.
        19 MetricMember framed {
            id: u32, name: StringId, description: StringId, kind: u8, mode: u8, value_kind: u8, base: u8, exponent: i64,
            unit: StringId,
        }
        /// Metrics that are recorded together.
        20 MetricClass framed { id: MetricId, members: Few<u32>, occurrence: u8, recorder_kind: Option<u8> }
        /// A class of metrics, recorded by one location for others.
        21 MetricInstance framed { id: MetricId, class: MetricId, recorder: LocationId, scope: u8, scope_id: u64 }
        /// A communicator.
        22 Comm framed { id: CommId, name: StringId, group: GroupId, parent: CommId, flags: Option<u32> }
        /// A parameter.
        23 Parameter framed { id: u32, name: StringId, kind: u8 }
        /// A window.
        24 RmaWin framed { id: WindowId, name: StringId, communicator: CommId, flags: Option<u32> }
        /// Who records a class of metrics.
        25 MetricClassRecorder framed { class: MetricId, recorder: LocationId }
        /// A property of a node.
        26 SystemTreeNodeProperty framed {
            node: SystemTreeNodeId, name: StringId, text: StringId, value: Option<Typed>,
        }
        /// What the locations of a node share.
        27 SystemTreeNodeDomain framed { node: SystemTreeNodeId, domain: u8 }
        /// A property of a process.
        28 LocationGroupProperty framed { group: LocationGroupId, name: StringId, text: StringId, value: Option<Typed> }
        /// A property of a location.
        29 LocationProperty framed { location: LocationId, name: StringId, text: StringId, value: Option<Typed> }
        /// A dimension of a grid of processes.
        30 CartDimension framed { id: u32, name: StringId, size: u32, periodic: u8 }
        /// A grid of processes.
        31 CartTopology framed { id: u32, name: StringId, communicator: CommId, dimensions: Few<u32> }
        /// A place in a grid.
        32 CartCoordinate framed { topology: u32, rank: u32, coordinates: Few<u32> }
        /// A line of source code.
        33 SourceCodeLocation framed { id: u32, file: StringId, line: u32 }
        /// A call path with its lines.
        34 CallingContext framed { id: CallingContextId, region: RegionId, source: u32, parent: CallingContextId }
        /// A property of a calling context.
        35 CallingContextProperty framed { context: CallingContextId, name: StringId, value: Typed }
        /// What makes samples.
        36 InterruptGenerator framed { id: u32, name: StringId, mode: u8, base: u8, exponent: i64, period: u64 }
        /// A property of a file.
        37 IoFileProperty framed { file: u32, name: StringId, value: Typed }
        /// A file.
        38 IoRegularFile framed { id: u32, name: StringId, scope: SystemTreeNodeId }
        /// A directory.
        39 IoDirectory framed { id: u32, name: StringId, scope: SystemTreeNodeId }
        /// A handle of a file.
        40 IoHandle framed {
            id: u32, name: StringId, file: u32, paradigm: u8, flags: u32, communicator: CommId, parent: u32,
        }
        /// A handle that was open from the beginning.
        41 IoPreCreatedHandleState framed { handle: u32, mode: u8, status_flags: u32 }
        /// A parameter of a call path.
        42 CallpathParameter framed { callpath: u32, parameter: u32, value: Typed }
        /// A communicator of two groups.
        43 InterComm framed {
            id: CommId, name: StringId, group_a: GroupId, group_b: GroupId, common: CommId, flags: u32,
        }
    }
}
