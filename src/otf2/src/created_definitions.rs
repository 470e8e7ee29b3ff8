//! The global definitions of an archive that is written from nothing.

use crate::definition_writer::DefinitionWriter;
use crate::definitions::{
    CALLSITE, EVENT_REFERENCE, OPENMP, STREAM_REFERENCE, TYPE_LOCATION, TYPES_UNSIGNED, UNSIGNED, kind,
};
use crate::region_roles::{ARTIFICIAL, JOINED_POLLS, MPI_FILE, is_mpi, is_openmp, mpi_role, openmp_role};
use clc_trace::{
    AcceleratorAttributes, AttributeId, CommMembers, Definitions, LocationId, LocationKind, MpiRank, Result,
};
use std::collections::HashMap;

const UNDEFINED: u32 = u32::MAX;
/// OTF2 `Paradigm` MPI.
const MPI: u8 = 4;
/// OTF2 `Paradigm` user.
const USER: u8 = 1;
/// OTF2 `Paradigm` measurement system.
const MEASUREMENT_SYSTEM: u8 = 6;
/// OTF2 definition record `Paradigm`, and its class of processes.
const PARADIGM: u8 = 6;
const PROCESS: u8 = 0;
/// OTF2 definition record `SystemTreeNodeDomain`, and two of its values.
const SYSTEM_TREE_NODE_DOMAIN: u8 = 27;
const MACHINE: u8 = 0;
const SHARED_MEMORY: u8 = 1;

impl DefinitionWriter<'_> {
    /// All of them; `events` is the number of events by location.
    pub(crate) fn all(&mut self, definitions: &Definitions, events: &HashMap<LocationId, u64>) -> Result<()> {
        let clock = definitions.clock;
        self.write(kind::CLOCK_PROPERTIES, |payload| {
            payload.u64(clock.resolution);
            payload.u64(clock.global_offset);
            payload.u64(clock.trace_length);
            payload.u64(clock.realtime.unwrap_or(u64::MAX));
        })?;
        let empty = self.string("")?;
        self.paradigm(MPI, "MPI")?;
        if !definitions.thread_barriers.is_empty() || definitions.regions.iter().any(|region| is_openmp(&region.name)) {
            self.paradigm(OPENMP, "OpenMP")?;
        }
        self.system_tree(definitions)?;
        self.locations(definitions, events)?;
        self.regions(definitions, empty)?;
        self.references(definitions, empty)?;
        self.metrics()?;
        self.communicators(definitions, empty)
    }

    /// Machines, nodes, and groups of locations on them.
    fn system_tree(&mut self, definitions: &Definitions) -> Result<()> {
        for node in &definitions.system_tree {
            let (name, class) = (self.string(&node.name)?, self.string(&node.class)?);
            self.write(kind::SYSTEM_TREE_NODE, |payload| {
                payload.u32(node.id.0);
                payload.u32(name);
                payload.u32(class);
                payload.u32(node.parent.map_or(UNDEFINED, |parent| parent.0));
            })?;
            let domain = match node.class.as_str() {
                "machine" => MACHINE,
                "node" => SHARED_MEMORY,
                _ => continue,
            };
            self.write(SYSTEM_TREE_NODE_DOMAIN, |payload| {
                payload.u32(node.id.0);
                payload.u8(domain);
            })?;
        }
        for group in &definitions.location_groups {
            let name = self.string(&group.name)?;
            self.write(kind::LOCATION_GROUP, |payload| {
                payload.u32(group.id.0);
                payload.u32(name);
                payload.u8(if group.accelerator { 2 } else { 1 });
                payload.u32(group.parent.map_or(UNDEFINED, |parent| parent.0));
                payload.u32(group.creator.map_or(UNDEFINED, |creator| creator.0));
            })?;
        }
        Ok(())
    }

    fn locations(&mut self, definitions: &Definitions, events: &HashMap<LocationId, u64>) -> Result<()> {
        for location in &definitions.locations {
            let name = self.string(&location.name)?;
            self.write(kind::LOCATION, |payload| {
                payload.u64(location.id.0);
                payload.u32(name);
                payload.u8(match location.kind {
                    LocationKind::CpuThread => 1,
                    LocationKind::AcceleratorStream => 2,
                    LocationKind::Metric => 3,
                    LocationKind::Other(kind) => kind,
                });
                payload.u64(events.get(&location.id).copied().unwrap_or(location.claimed_events));
                payload.u32(location.group.0);
            })?;
        }
        Ok(())
    }

    fn regions(&mut self, definitions: &Definitions, empty: u32) -> Result<()> {
        for region in &definitions.regions {
            let name = self.string(&region.name)?;
            let barrier = definitions.thread_barriers.binary_search(&region.id).is_ok();
            let (role, paradigm, file) = match is_mpi(&region.name) {
                _ if is_openmp(&region.name) || barrier => (openmp_role(&region.name, barrier), OPENMP, UNDEFINED),
                true => (mpi_role(&region.name), MPI, self.string(MPI_FILE)?),
                false if region.name == JOINED_POLLS => (ARTIFICIAL, MPI, self.string(MPI_FILE)?),
                false => (0, USER, UNDEFINED),
            };
            self.write(kind::REGION, |payload| {
                payload.u32(region.id.0);
                payload.u32(name);
                payload.u32(empty);
                payload.u8(0);
                payload.u32(file);
                payload.u32(0);
                payload.u32(0);
                payload.u32(name);
                payload.u8(role);
                payload.u8(paradigm);
                payload.u32(0);
            })?;
        }
        Ok(())
    }

    /// Parameters, and attributes of calls of accelerators.
    fn references(&mut self, definitions: &Definitions, empty: u32) -> Result<()> {
        for (name, id) in self.options.parameters.clone().iter().zip(0..) {
            let name = self.string(name)?;
            self.write(kind::PARAMETER, |payload| {
                payload.u32(id);
                payload.u32(name);
                payload.u8(UNSIGNED);
            })?;
        }
        for parameter in &definitions.callsites {
            let name = self.string(CALLSITE)?;
            self.write(kind::PARAMETER, |payload| {
                payload.u32(parameter.0);
                payload.u32(name);
                payload.u8(UNSIGNED);
            })?;
        }
        let AcceleratorAttributes { streams, events } = &definitions.accelerator_attributes;
        let of_type = |list: &[AttributeId], name, kind| list.iter().map(|id| (id.0, name, kind)).collect::<Vec<_>>();
        let mut attributes = of_type(streams, STREAM_REFERENCE, TYPE_LOCATION);
        attributes.extend(of_type(events, EVENT_REFERENCE, *TYPES_UNSIGNED.end()));
        for (id, name, kind) in attributes {
            let name = self.string(name)?;
            self.write(kind::ATTRIBUTE, |payload| {
                payload.u32(id);
                payload.u32(name);
                payload.u8(kind);
                payload.u32(empty);
            })?;
        }
        Ok(())
    }

    fn paradigm(&mut self, paradigm: u8, name: &str) -> Result<()> {
        let name = self.string(name)?;
        self.write(PARADIGM, |payload| {
            payload.u8(paradigm);
            payload.u32(name);
            payload.u8(PROCESS);
        })
    }

    /// Groups and communicators; every communicator has a group of its own.
    fn communicators(&mut self, definitions: &Definitions, empty: u32) -> Result<()> {
        const COMM_LOCATIONS: u8 = 4;
        const COMM_GROUP: u8 = 5;
        const COMM_SELF: u8 = 6;
        // After those that events name, unless these have left the first place to the locations: readers expect ids in their order.
        let first = definitions.groups.iter().all(|(id, _)| id.0 > 0) && !definitions.groups.is_empty();
        let mut next = definitions.groups.iter().map(|(id, _)| id.0.saturating_add(1)).max().unwrap_or(0);
        let define = |file: &mut Self,
                      id: u32,
                      kind: u8,
                      paradigm: u8,
                      members: &mut dyn Iterator<Item = u64>,
                      global: bool|
         -> Result<u32> {
            let members: Vec<u64> = members.collect();
            file.write(kind::GROUP, |payload| {
                payload.u32(id);
                payload.u32(empty);
                // The kinds of before OTF2 1.2: communicator, self, locations.
                payload.u8(match kind {
                    COMM_GROUP => 4,
                    COMM_SELF => 5,
                    _ => 6,
                });
                payload.u32(members.len() as u32);
                members.iter().for_each(|&member| payload.u64(member));
                payload.u8(kind);
                payload.u8(paradigm);
                payload.u32(u32::from(global));
            })?;
            Ok(id)
        };
        let mut group =
            |file: &mut Self, kind: u8, paradigm: u8, members: &mut dyn Iterator<Item = u64>, global: bool| {
                next += 1;
                define(file, next - 1, kind, paradigm, members, global)
            };
        if !definitions.processes.is_empty() {
            let mut processes = definitions.processes.iter().map(|id| id.0);
            match first {
                true => define(self, 0, COMM_LOCATIONS, MPI, &mut processes, false)?,
                false => group(self, COMM_LOCATIONS, MPI, &mut processes, false)?,
            };
        }
        // Their members refer to the locations.
        for (id, members) in &definitions.groups {
            define(self, id.0, COMM_GROUP, MPI, &mut members.iter().map(|rank| u64::from(rank.0)), false)?;
        }
        // Readers expect the locations of every paradigm that has communicators.
        if definitions.communicators.iter().any(|communicator| communicator.members == CommMembers::NotMpi) {
            self.paradigm(MEASUREMENT_SYSTEM, "Measurement system")?;
            let mut locations = definitions.locations.iter().map(|location| location.id.0);
            group(self, COMM_LOCATIONS, MEASUREMENT_SYSTEM, &mut locations, false)?;
        }
        for communicator in &definitions.communicators {
            let name = self.string(&communicator.name)?;
            let global = communicator.global_ranks;
            let ranks =
                |members: &[MpiRank]| members.iter().map(|rank| u64::from(rank.0)).collect::<Vec<_>>().into_iter();
            let (a, b) = match &communicator.members {
                CommMembers::Intra(members) => (group(self, COMM_GROUP, MPI, &mut ranks(members), global)?, None),
                CommMembers::SelfOnly => (group(self, COMM_SELF, MPI, &mut std::iter::empty(), false)?, None),
                CommMembers::Inter(a, b) => {
                    let a = group(self, COMM_GROUP, MPI, &mut ranks(a), false)?;
                    (a, Some(group(self, COMM_GROUP, MPI, &mut ranks(b), false)?))
                }
                CommMembers::NotMpi => {
                    (group(self, COMM_GROUP, MEASUREMENT_SYSTEM, &mut std::iter::empty(), false)?, None)
                }
                CommMembers::Undefined => continue,
            };
            self.communicator(communicator.id.0, name, a, b)?;
        }
        self.windows(definitions)
    }

    /// With one group or two.
    fn communicator(&mut self, id: u32, name: u32, a: u32, b: Option<u32>) -> Result<()> {
        match b {
            None => self.write(kind::COMM, |payload| {
                payload.u32(id);
                payload.u32(name);
                payload.u32(a);
                payload.u32(UNDEFINED);
                payload.u32(0);
            }),
            Some(b) => self.write(kind::INTER_COMM, |payload| {
                payload.u32(id);
                payload.u32(name);
                payload.u32(a);
                payload.u32(b);
                payload.u32(UNDEFINED);
                payload.u32(0);
            }),
        }
    }

    fn windows(&mut self, definitions: &Definitions) -> Result<()> {
        for window in &definitions.windows {
            let name = self.string(&window.name)?;
            self.write(kind::RMA_WIN, |payload| {
                payload.u32(window.id.0);
                payload.u32(name);
                payload.u32(window.comm.0);
                payload.u32(0);
            })?;
        }
        Ok(())
    }
}
