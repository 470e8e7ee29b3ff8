//! Metrics of nodes, as whoever writes an archive names them.

use clc_trace::{LocationId, SystemTreeNodeId};

/// Values that locations record for nodes of the system tree, together at one time: one class with these members, and an instance for each recorder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeMetrics {
    /// Names and units of the values (doubles), each of which is valid since the one before it.
    pub members: Vec<(String, String)>,
    /// Who records, and for which node.
    pub recorders: Vec<(LocationId, SystemTreeNodeId)>,
}

impl NodeMetrics {
    /// What the events of the first recorder refer to; those of the others have the next numbers. `metrics` are those that have a class each.
    pub fn first_instance(&self, metrics: &[String]) -> u32 {
        metrics.len() as u32 + 1
    }
}
