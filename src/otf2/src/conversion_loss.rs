//! What one format cannot hold of another.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
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

impl Lost {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Lost::Events => "events",
            Lost::EventFields => "fields of events",
            Lost::Attributes => "attributes of events",
            Lost::Definitions => "definitions",
            Lost::DefinitionFields => "fields of definitions",
            Lost::Markers => "markers",
            Lost::Snapshots => "snapshot files",
            Lost::Thumbnails => "thumbnails",
            Lost::Properties => "properties",
            Lost::Files => "other files",
        }
    }
}

/// Counts of what is lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversionLoss(BTreeMap<(Lost, String), u64>);

impl ConversionLoss {
    /// Adds `count` things of a kind.
    pub fn add(&mut self, thing: Lost, kind: impl Into<String>, count: u64) {
        if count > 0 {
            *self.0.entry((thing, kind.into())).or_default() += count;
        }
    }

    /// Adds the counts of others.
    pub fn merge(&mut self, other: ConversionLoss) {
        for ((thing, kind), count) in other.0 {
            self.add(thing, kind, count);
        }
    }

    /// How many things of one sort are left out.
    pub fn of(&self, thing: Lost) -> u64 {
        self.iter().filter(|(own, _, _)| *own == thing).map(|(_, _, count)| count).sum()
    }

    /// All counts in order.
    pub fn iter(&self) -> impl Iterator<Item = (Lost, &str, u64)> + '_ {
        self.0.iter().map(|((thing, kind), &count)| (*thing, kind.as_str(), count))
    }
}
