//! How an archive is to be written.

use crate::anchor::CHUNK_SIZES;
use crate::bytes::ByteOrder;
use crate::metrics::NodeMetrics;
use clc_trace::{CommMembers, Definitions};

/// How to write an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateOptions {
    /// Byte order of all files.
    pub order: ByteOrder,
    /// Chunk size of event files in bytes, 256 KiB to 16 MiB.
    pub event_chunk: u64,
    /// Chunk size of definition files in bytes, likewise.
    pub definition_chunk: u64,
    /// The tool that writes it.
    pub creator: String,
    /// Free text.
    pub description: String,
    /// Identifies the trace.
    pub trace_id: u64,
    /// Properties of the trace, by names such as `NAMESPACE::KEY`.
    pub properties: Vec<(String, String)>,
    /// Names of metrics that events give values (doubles) to: each has the class of its place in this list.
    pub metrics: Vec<String>,
    /// Names of parameters (unsigned integers) that events give values to: each has the number of its place in this list.
    pub parameters: Vec<String>,
    /// Metrics of nodes of the system tree; their references follow those.
    pub node_metrics: NodeMetrics,
}

impl Default for CreateOptions {
    fn default() -> Self {
        CreateOptions {
            order: ByteOrder::Little,
            event_chunk: 1 << 20,
            definition_chunk: 1 << 18,
            creator: concat!("clc-replay ", env!("CARGO_PKG_VERSION")).to_owned(),
            description: String::new(),
            trace_id: 0x636c_632d_7265_706c,
            properties: Vec::new(),
            metrics: Vec::new(),
            parameters: Vec::new(),
            node_metrics: NodeMetrics::default(),
        }
    }
}

/// Most bytes of one member of a group: a packed 64-bit number.
const MEMBER: u64 = 9;

/// Bytes of a group or string definition beside its members or its text, and of the marks of a chunk; generously.
const FRAME: u64 = 256;

impl CreateOptions {
    /// With chunks into which every one of these definitions fits: a group has all its members in one record.
    #[must_use]
    pub fn fitting(self, definitions: &Definitions) -> CreateOptions {
        let members = definitions.communicators.iter().map(|communicator| match &communicator.members {
            CommMembers::Intra(members) => members.len(),
            CommMembers::Inter(a, b) => a.len().max(b.len()),
            CommMembers::SelfOnly | CommMembers::NotMpi | CommMembers::Undefined => 0,
        });
        let members = members.chain(definitions.groups.iter().map(|(_, members)| members.len()));
        let members = members.chain([definitions.processes.len(), definitions.locations.len()]).max().unwrap_or(0);
        let names = definitions.regions.iter().map(|region| region.name.len());
        let names = names.chain(self.parameters.iter().map(String::len));
        let names = names.chain(definitions.locations.iter().map(|location| location.name.len()));
        let longest = (members as u64).saturating_mul(MEMBER).max(names.max().unwrap_or(0) as u64);
        let needed = longest.saturating_add(FRAME).next_power_of_two();
        // What does not fit into the largest is refused when it is written.
        CreateOptions { definition_chunk: self.definition_chunk.max(needed).min(*CHUNK_SIZES.end()), ..self }
    }
}
