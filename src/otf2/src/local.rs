//! What is defined for one location: how its ids map to global ones, and its clock offsets.

use clc_trace::ClockOffset;
use std::collections::{BTreeMap, HashMap};

/// Kind of a mapping table of attributes.
pub(crate) const ATTRIBUTES: u8 = 1;
/// Kind of the mapping table of locations.
pub(crate) const LOCATIONS: u8 = 2;
/// Kind of a mapping table of regions.
pub(crate) const REGIONS: u8 = 3;
/// Kind of a mapping table of groups.
pub(crate) const GROUPS: u8 = 4;
/// Kind of a mapping table of communicators.
pub(crate) const COMMUNICATORS: u8 = 6;
/// Kind of a mapping table of parameters.
pub(crate) const PARAMETERS: u8 = 7;
/// Kind of a mapping table of windows.
pub(crate) const WINDOWS: u8 = 8;

/// From the ids that one location's events use to global ones. Ids that are not covered stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdMap {
    pub(crate) dense: Vec<u32>,
    pub(crate) sparse: HashMap<u32, u32>,
}

impl IdMap {
    /// The global id of `local`.
    #[inline]
    pub fn map(&self, local: u32) -> u32 {
        match self.dense.get(local as usize) {
            Some(&global) => global,
            None if self.sparse.is_empty() => local,
            None => self.sparse.get(&local).copied().unwrap_or(local),
        }
    }
}

/// What the local definitions of a location say, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalDefinitions {
    /// Measured clock offsets, in strictly increasing order of time.
    pub clock_offsets: Vec<ClockOffset>,
    /// Regions.
    pub regions: IdMap,
    /// Communicators.
    pub communicators: IdMap,
    /// Windows.
    pub windows: IdMap,
    /// Groups.
    pub groups: IdMap,
    /// Parameters.
    pub parameters: IdMap,
    /// Attributes.
    pub attributes: IdMap,
    /// Locations, whose global ids have 64 bits: those that are not the same.
    pub locations: BTreeMap<u64, u64>,
    /// All other tables, by kind (OTF2 `MappingType`); only [`LocalDefinitions::read_in_full`] reads them.
    pub others: BTreeMap<u8, IdMap>,
    /// What is odd.
    pub warnings: Vec<String>,
}

impl LocalDefinitions {
    /// The global id of what the location calls `id`, in the table of a kind (OTF2 `MappingType`); the same where there is none.
    pub fn map(&self, kind: u8, id: u32) -> u32 {
        let table = match kind {
            REGIONS => Some(&self.regions),
            COMMUNICATORS => Some(&self.communicators),
            WINDOWS => Some(&self.windows),
            GROUPS => Some(&self.groups),
            PARAMETERS => Some(&self.parameters),
            ATTRIBUTES => Some(&self.attributes),
            other => self.others.get(&other),
        };
        table.map_or(id, |table| table.map(id))
    }
}
