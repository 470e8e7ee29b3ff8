//! What one format cannot hold of another.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thing {
    /// Whole events, by type.
    Events,
    /// The fields of events whose time and type are kept, by type.
    EventFields,
    /// Attributes of events, by type of the event.
    Attributes,
    /// Whole definitions, by type.
    Definitions,
    /// Some of the fields of definitions, by type.
    DefinitionFields,
    /// Markers.
    Markers,
    /// Files of snapshots.
    Snapshots,
    /// Thumbnails.
    Thumbnails,
    /// Named properties of the archive, and its machine.
    Properties,
    /// Files in the directory of the trace that are no part of it.
    Files,
}

impl Thing {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Thing::Events => "events",
            Thing::EventFields => "fields of events",
            Thing::Attributes => "attributes of events",
            Thing::Definitions => "definitions",
            Thing::DefinitionFields => "fields of definitions",
            Thing::Markers => "markers",
            Thing::Snapshots => "snapshot files",
            Thing::Thumbnails => "thumbnails",
            Thing::Properties => "properties",
            Thing::Files => "other files",
        }
    }
}

/// Counts of what is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut(BTreeMap<(Thing, String), u64>);

impl LeftOut {
    /// Adds `count` things of a kind.
    pub fn add(&mut self, thing: Thing, kind: impl Into<String>, count: u64) {
        if count > 0 {
            *self.0.entry((thing, kind.into())).or_default() += count;
        }
    }

    /// Adds the counts of others.
    pub fn merge(&mut self, other: LeftOut) {
        for ((thing, kind), count) in other.0 {
            self.add(thing, kind, count);
        }
    }

    /// How many things of one sort are left out.
    pub fn of(&self, thing: Thing) -> u64 {
        self.iter().filter(|(own, _, _)| *own == thing).map(|(_, _, count)| count).sum()
    }

    /// All counts in order.
    pub fn iter(&self) -> impl Iterator<Item = (Thing, &str, u64)> + '_ {
        self.0.iter().map(|((thing, kind), &count)| (*thing, kind.as_str(), count))
    }
}
