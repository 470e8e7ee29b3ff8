//! Regions of one name. Some recorders define the regions of each process anew (EZTrace): the first one of a name is all of them.

use clc_trace::Definitions;
use std::collections::HashMap;

/// Which regions are the same.
#[derive(Debug, Default)]
pub(super) struct SameRegions {
    /// The first one of its name, of every region that is not that itself.
    first: HashMap<u32, u32>,
}

impl SameRegions {
    /// Of all regions that are defined.
    pub(super) fn new(definitions: &Definitions) -> SameRegions {
        let mut named: HashMap<&str, u32> = HashMap::new();
        let mut first = HashMap::new();
        for region in &definitions.regions {
            let known = *named.entry(&region.name).or_insert(region.id.0);
            if known != region.id.0 {
                first.insert(region.id.0, known);
            }
        }
        SameRegions { first }
    }

    /// The first region with the name of this one.
    pub(super) fn first(&self, region: u32) -> u32 {
        self.first.get(&region).copied().unwrap_or(region)
    }
}
