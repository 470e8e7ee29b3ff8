//! What a program tells of itself: its functions, regions, markers and metrics, with their numbers in the archive.

use super::records::Own;
use super::survey::ProcessSurvey;
use super::symbols::{ModuleMap, Place, names};
use clc_trace::{Region, RegionId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// The regions and metrics of all processes.
#[derive(Debug, Default)]
pub struct OwnNames {
    functions: HashMap<Place, RegionId>,
    regions: HashMap<Arc<str>, RegionId>,
    metrics: BTreeMap<Arc<str>, u32>,
    modules: BTreeMap<u32, ModuleMap>,
    /// Definitions of the regions.
    pub definitions: Vec<Region>,
}

impl OwnNames {
    /// Of what the processes have recorded into a directory; numbers of regions begin with `first`.
    pub fn new(directory: &Path, surveys: &BTreeMap<u32, ProcessSurvey>, first: u32) -> OwnNames {
        let mut own = OwnNames::default();
        let mut places = BTreeSet::new();
        for (&rank, survey) in surveys.iter().filter(|(_, survey)| !survey.addresses.is_empty()) {
            let modules = ModuleMap::read(directory, rank);
            places.extend(survey.addresses.iter().map(|&address| place(&modules, address)));
            own.modules.insert(rank, modules);
        }
        let names = names(&places);
        let mut ids = (first..).map(RegionId);
        for place in places {
            let Some(id) = ids.next() else { break };
            own.definitions.push(Region { id, name: names.get(&place).cloned().unwrap_or_default() });
            own.functions.insert(place, id);
        }
        let regions: BTreeSet<&Arc<str>> = surveys.values().flat_map(|survey| &survey.own_regions).collect();
        for (name, id) in regions.into_iter().zip(ids) {
            own.definitions.push(Region { id, name: name.to_string() });
            own.regions.insert(Arc::clone(name), id);
        }
        let metrics: BTreeSet<&Arc<str>> = surveys.values().flat_map(|survey| &survey.metrics).collect();
        own.metrics = metrics.into_iter().cloned().zip(0..).collect();
        own
    }

    /// The region that a process means.
    pub fn region(&self, rank: u32, own: &Own) -> Option<RegionId> {
        match own {
            Own::Function(address) | Own::FunctionEnd(address) => {
                let modules = self.modules.get(&rank)?;
                self.functions.get(&place(modules, *address)).copied()
            }
            Own::Region(name) | Own::RegionEnd(name) | Own::Marker(name) => self.regions.get(name).copied(),
            Own::Metric(..) => None,
        }
    }

    /// Number of a metric.
    pub fn metric(&self, name: &Arc<str>) -> Option<u32> {
        self.metrics.get(name).copied()
    }

    /// The metrics, in the order of their numbers.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.metrics.keys().map(AsRef::as_ref)
    }
}

/// Where a function is; one in no file is by its address alone.
fn place(modules: &ModuleMap, address: u64) -> Place {
    modules.place(address).unwrap_or_else(|| (Arc::from("unknown"), address))
}
