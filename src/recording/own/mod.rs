//! What a program tells of itself: its functions, regions, markers and metrics, with their numbers in the archive.

mod symbols;

use crate::recording::own::symbols::{ModuleMap, Place, names, source_names};
use crate::recording::raw::format::openmp::kind;
use crate::recording::raw::records::Own;
use crate::recording::survey::ProcessSurvey;
use clc_trace::{Region, RegionId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// The regions and metrics of all processes.
#[derive(Debug, Default)]
pub(super) struct OwnNames {
    functions: HashMap<Place, RegionId>,
    regions: HashMap<Arc<str>, RegionId>,
    metrics: BTreeMap<Arc<str>, u32>,
    /// By kind and place; those of no place by kind.
    openmp: HashMap<(u64, Option<Place>), RegionId>,
    /// Those in which threads of OpenMP wait for each other, ascending.
    pub barriers: Vec<RegionId>,
    modules: BTreeMap<u32, ModuleMap>,
    /// Definitions of the regions.
    pub definitions: Vec<Region>,
}

impl OwnNames {
    /// Of what the processes have recorded into a directory; numbers of regions begin with `first`.
    pub(super) fn new(directory: &Path, surveys: &BTreeMap<u32, ProcessSurvey>, first: u32) -> OwnNames {
        let mut own = OwnNames::default();
        let mut places = BTreeSet::new();
        let mut sites: BTreeSet<(u64, Option<Place>)> = BTreeSet::new();
        for (&rank, survey) in surveys {
            let has_places = survey.openmp.sites.iter().any(|&(_, address)| address != 0);
            let modules = match has_places || !survey.addresses.is_empty() {
                true => ModuleMap::read(directory, rank),
                false => ModuleMap::default(),
            };
            places.extend(survey.addresses.iter().map(|&address| place(&modules, address)));
            sites.extend(survey.openmp.sites.iter().map(|&(kind, address)| (kind, site(&modules, address))));
            own.modules.insert(rank, modules);
        }
        let names = names(&places);
        let mut ids = (first..).map(RegionId);
        for place in places {
            let Some(id) = ids.next() else { break };
            own.definitions.push(Region { id, name: names.get(&place).cloned().unwrap_or_default() });
            own.functions.insert(place, id);
        }
        own.openmp_regions(sites, &mut ids);
        let regions: BTreeSet<&Arc<str>> = surveys.values().flat_map(|survey| &survey.own_regions).collect();
        for (name, id) in regions.into_iter().zip(ids) {
            own.definitions.push(Region { id, name: name.to_string() });
            own.regions.insert(Arc::clone(name), id);
        }
        let metrics: BTreeSet<&Arc<str>> = surveys.values().flat_map(|survey| &survey.metrics).collect();
        own.metrics = metrics.into_iter().cloned().zip(0..).collect();
        own
    }

    /// Regions of OpenMP, with the places they are at. Those of one name are the same one.
    fn openmp_regions(&mut self, sites: BTreeSet<(u64, Option<Place>)>, ids: &mut impl Iterator<Item = RegionId>) {
        let names = source_names(&sites.iter().filter_map(|(_, place)| place.clone()).collect());
        let mut by_name: BTreeMap<String, RegionId> = BTreeMap::new();
        for (kind, place) in sites {
            let Some(what) = usize::try_from(kind).ok().and_then(|kind| kind::NAMES.get(kind)) else { continue };
            let at = place.as_ref().and_then(|place| names.get(place));
            let name = at.map_or_else(|| (*what).to_owned(), |at| format!("{what} @{at}"));
            let id = match by_name.get(&name) {
                Some(&id) => id,
                None => {
                    let Some(id) = ids.next() else { break };
                    self.definitions.push(Region { id, name: name.clone() });
                    if matches!(kind, kind::BARRIER | kind::IMPLICIT_BARRIER) {
                        self.barriers.push(id);
                    }
                    by_name.insert(name, id);
                    id
                }
            };
            self.openmp.insert((kind, place), id);
        }
    }

    /// The region of OpenMP of a kind at an address of a process, 0 for no place.
    pub(super) fn openmp(&self, rank: u32, kind: u64, address: u64) -> Option<RegionId> {
        let place = self.modules.get(&rank).and_then(|modules| site(modules, address));
        self.openmp.get(&(kind, place)).copied()
    }

    /// The region that a process means.
    pub(super) fn region(&self, rank: u32, own: &Own) -> Option<RegionId> {
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
    pub(super) fn metric(&self, name: &Arc<str>) -> Option<u32> {
        self.metrics.get(name).copied()
    }

    /// The metrics, in the order of their numbers.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &str> {
        self.metrics.keys().map(AsRef::as_ref)
    }
}

/// Where a construct is; none without an address.
fn site(modules: &ModuleMap, address: u64) -> Option<Place> {
    (address != 0).then(|| place(modules, address))
}

/// Where a function is; one in no file is by its address alone.
fn place(modules: &ModuleMap, address: u64) -> Place {
    modules.place(address).unwrap_or_else(|| (Arc::from("unknown"), address))
}
