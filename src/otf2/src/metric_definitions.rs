//! Definitions of metrics.

use crate::definition_writer::DefinitionWriter;
use clc_trace::Result;

/// OTF2 definition records.
const METRIC_MEMBER: u8 = 19;
const METRIC_CLASS: u8 = 20;
const METRIC_INSTANCE: u8 = 21;
/// Types of metrics: of no special source, and of users.
const OTHER: u8 = 0;
const OF_USERS: u8 = 3;
/// Modes: absolute values, valid since the last one, and until the next one.
const ABSOLUTE_LAST: u8 = 33;
const ABSOLUTE_NEXT: u8 = 49;
/// Values of other fields: doubles, decimal; at any time, of threads and of what is no thread; of a node.
const DOUBLE: u8 = 10;
const DECIMAL: u8 = 1;
const ASYNCHRONOUS: u8 = 2;
const ABSTRACT: u8 = 1;
const THREAD: u8 = 2;
const SYSTEM_TREE_NODE: u8 = 2;

impl DefinitionWriter<'_> {
    /// A class of its own for each metric, then that of the nodes with its instances.
    pub(crate) fn metrics(&mut self) -> Result<()> {
        let names = self.options.metrics.clone();
        for (name, id) in names.iter().zip(0..) {
            self.member(id, name, "", OF_USERS, ABSOLUTE_NEXT)?;
            self.class(id, &[id], THREAD)?;
        }
        let nodes = self.options.node_metrics.clone();
        if nodes.recorders.is_empty() {
            return Ok(());
        }
        let class = names.len() as u32;
        let members: Vec<u32> = (class..).take(nodes.members.len()).collect();
        for (&id, (name, unit)) in members.iter().zip(&nodes.members) {
            self.member(id, name, unit, OTHER, ABSOLUTE_LAST)?;
        }
        self.class(class, &members, ABSTRACT)?;
        for ((recorder, node), id) in nodes.recorders.iter().zip(nodes.first_instance(&names)..) {
            self.write(METRIC_INSTANCE, |payload| {
                payload.u32(id);
                payload.u32(class);
                payload.u64(recorder.0);
                payload.u8(SYSTEM_TREE_NODE);
                payload.u64(u64::from(node.0));
            })?;
        }
        Ok(())
    }

    fn member(&mut self, id: u32, name: &str, unit: &str, source: u8, mode: u8) -> Result<()> {
        let (name, empty, unit) = (self.string(name)?, self.string("")?, self.string(unit)?);
        self.write(METRIC_MEMBER, |payload| {
            payload.u32(id);
            payload.u32(name);
            payload.u32(empty);
            [source, mode, DOUBLE, DECIMAL].into_iter().for_each(|value| payload.u8(value));
            payload.i64(0);
            payload.u32(unit);
        })
    }

    fn class(&mut self, id: u32, members: &[u32], recorder: u8) -> Result<()> {
        self.write(METRIC_CLASS, |payload| {
            payload.u32(id);
            payload.u8(members.len() as u8);
            members.iter().for_each(|&member| payload.u32(member));
            payload.u8(ASYNCHRONOUS);
            payload.u8(recorder);
        })
    }
}
