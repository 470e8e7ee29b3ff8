//! Timelines: which locations share a clock and are corrected together.

use crate::{Definitions, LocationGroupId, LocationId, MpiRank, SystemTreeNodeId, number};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The locations of one process: they share one clock, so one correction applies to all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// The process; `None` for locations that belong to no MPI process.
    pub process: Option<MpiRank>,
    /// Indexes into [`Definitions::locations`], the process's main location first.
    pub locations: Vec<usize>,
    /// Number of the node it runs on (0, 1, ... in order of appearance): processes of one node share a minimum latency class.
    pub node: u32,
}

number! {
    /// A timeline by its number in the whole trace, the same on all analysis ranks: from 0 up to but without [`Timelines::processes`] it is the timeline of the process with
    /// that global MPI rank; those of other location groups follow, then those that locations have of their own ([`OwnTimeline`]).
    TimelineNumber(u32), one per "timeline of the trace"
}

impl TimelineNumber {
    /// The timeline of this process.
    #[inline]
    pub fn of_process(rank: MpiRank) -> TimelineNumber {
        TimelineNumber(rank.0)
    }

    /// The process whose timeline this is. To be asked only where the timeline is that of a process: others have numbers that no process has.
    #[inline]
    pub fn process(self) -> MpiRank {
        MpiRank(self.0)
    }
}

/// A location whose clock is not that of its process, and which has a timeline of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTimeline {
    /// The timeline of its process.
    pub of: TimelineNumber,
    /// Its place among the locations of the process.
    pub location: u32,
}

/// All timelines of a trace. Timeline i is MPI rank i of the application for i below [`Timelines::processes`];
/// timelines of other location groups follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timelines {
    /// The timelines.
    pub all: Vec<Timeline>,
    /// How many of them are MPI processes.
    pub processes: usize,
    /// Number of distinct nodes.
    pub nodes: usize,
}

impl Timelines {
    /// Groups the locations of `definitions`.
    ///
    /// A location belongs to the MPI process whose main location (in `COMM_LOCATIONS`) is in the same location group, or
    /// in the group that created its own (accelerators). If that is not unique (an archive that puts all ranks
    /// in one group), each main location stands alone and the others of that group form one timeline.
    pub fn new(definitions: &Definitions) -> Timelines {
        let index: HashMap<_, _> = definitions.locations.iter().enumerate().map(|(i, l)| (l.id, i)).collect();
        let mains: Vec<usize> = definitions.processes.iter().filter_map(|id| index.get(id).copied()).collect();
        let mut all = Vec::new();
        let mut of_group: HashMap<LocationGroupId, Option<usize>> = HashMap::new();
        let mut taken = vec![false; definitions.locations.len()];
        for (rank, &main) in (0..).map(MpiRank).zip(&mains) {
            taken[main] = true;
            of_group.entry(definitions.locations[main].group).and_modify(|e| *e = None).or_insert(Some(rank.place()));
            all.push(Timeline { process: Some(rank), locations: vec![main], node: 0 });
        }
        let processes = all.len();
        let creators: HashMap<_, _> =
            definitions.location_groups.iter().filter_map(|g| g.creator.map(|creator| (g.id, creator))).collect();
        let mut others: HashMap<LocationGroupId, usize> = HashMap::new();
        for (i, location) in definitions.locations.iter().enumerate() {
            if std::mem::replace(&mut taken[i], true) {
                continue;
            }
            let group = location.group;
            let owner = [Some(group), creators.get(&group).copied()]
                .into_iter()
                .flatten()
                .find_map(|group| of_group.get(&group).copied().flatten());
            match owner {
                Some(timeline) => all[timeline].locations.push(i),
                None => {
                    let timeline = *others.entry(group).or_insert_with(|| {
                        all.push(Timeline { process: None, locations: Vec::new(), node: 0 });
                        all.len() - 1
                    });
                    all[timeline].locations.push(i);
                }
            }
        }
        let nodes = number_nodes(definitions, &mut all);
        Timelines { all, processes, nodes }
    }
}

impl Timelines {
    /// The timeline that a location belongs to.
    pub fn of_location(&self, definitions: &Definitions, id: LocationId) -> Option<usize> {
        let index = definitions.locations.iter().position(|location| location.id == id)?;
        self.all.iter().position(|timeline| timeline.locations.contains(&index))
    }
}

/// Numbers the nodes on which the timelines run; returns how many there are.
fn number_nodes(definitions: &Definitions, timelines: &mut [Timeline]) -> usize {
    let tree: HashMap<_, _> = definitions.system_tree.iter().map(|node| (node.id, node)).collect();
    let parents: HashMap<_, _> = definitions.location_groups.iter().map(|group| (group.id, group.parent)).collect();
    // The nearest level called "node" at or above each level that has been asked for: a level is passed once, however many are below it.
    let mut nearest: HashMap<SystemTreeNodeId, Option<SystemTreeNodeId>> = HashMap::new();
    // That, or the level directly above the process where nothing is called so.
    let mut node_of = |group: LocationGroupId| -> Option<SystemTreeNodeId> {
        let direct = parents.get(&group).copied().flatten();
        let mut passed = Vec::new();
        let mut at = direct;
        let found = loop {
            let Some(node) = at.and_then(|id| tree.get(&id)) else { break None };
            if node.class.eq_ignore_ascii_case("node") {
                break Some(node.id);
            }
            if let Some(&known) = nearest.get(&node.id) {
                break known;
            }
            // Whoever comes here again before there is an answer has gone in a cycle, and there is none.
            nearest.insert(node.id, None);
            passed.push(node.id);
            at = node.parent;
        };
        if found.is_some() {
            nearest.extend(passed.into_iter().map(|id| (id, found)));
        }
        found.or(direct)
    };
    let mut numbers = HashMap::new();
    for timeline in timelines {
        let node = timeline.locations.first().and_then(|&i| node_of(definitions.locations[i].group));
        let next = numbers.len() as u32;
        timeline.node = *numbers.entry(node).or_insert(next);
    }
    numbers.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockProperties, Location, LocationGroup, LocationKind, SystemTreeNode};

    /// A tree of levels (name of the class, level above), and a process below each of `places`.
    fn definitions(tree: &[(&str, Option<u32>)], places: &[u32]) -> Definitions {
        let node = |(id, &(class, parent)): (usize, &(&str, Option<u32>))| SystemTreeNode {
            id: SystemTreeNodeId(id as u32),
            name: String::new(),
            class: class.into(),
            parent: parent.map(SystemTreeNodeId),
        };
        let group = |(id, &parent): (usize, &u32)| LocationGroup {
            id: LocationGroupId(id as u32),
            name: String::new(),
            accelerator: false,
            parent: Some(SystemTreeNodeId(parent)),
            creator: None,
        };
        let location = |process: u32| Location {
            id: LocationId(process.into()),
            name: String::new(),
            kind: LocationKind::CpuThread,
            group: LocationGroupId(process),
            claimed_events: 0,
        };
        let processes = 0..places.len() as u32;
        Definitions {
            clock: ClockProperties { resolution: 1, global_offset: 0, trace_length: 0, realtime: None },
            locations: processes.clone().map(location).collect(),
            location_groups: places.iter().enumerate().map(group).collect(),
            system_tree: tree.iter().enumerate().map(node).collect(),
            processes: processes.map(|process| LocationId(process.into())).collect(),
            communicators: Vec::new(),
            regions: Vec::new(),
            windows: Vec::new(),
            groups: Vec::new(),
            thread_barriers: Vec::new(),
            callsites: Vec::new(),
            accelerator_attributes: Default::default(),
        }
    }

    fn nodes(tree: &[(&str, Option<u32>)], places: &[u32]) -> Vec<u32> {
        Timelines::new(&definitions(tree, places)).all.iter().map(|timeline| timeline.node).collect()
    }

    #[test]
    fn the_nearest_node_counts() {
        let tree = [
            ("machine", None),
            ("node", Some(0)),
            ("Node", Some(0)),
            ("socket", Some(1)),
            ("core", Some(3)),
            ("node", Some(4)),
        ];
        assert_eq!(nodes(&tree, &[4, 1, 3, 2, 5, 4, 0]), [0, 0, 0, 1, 2, 0, 3]);
    }

    #[test]
    fn cycles_of_levels_end() {
        let tree = [("machine", Some(2)), ("rack", Some(0)), ("row", Some(1)), ("shelf", Some(0)), ("self", Some(4))];
        // Nothing there is called a node: what is directly above counts.
        assert_eq!(nodes(&tree, &[0, 1, 2, 3, 4, 9, 1]), [0, 1, 2, 3, 4, 5, 1]);
    }

    /// Work in proportion to the definitions; it would take hours if each process passed every level.
    #[test]
    fn a_deep_tree_is_passed_once() {
        let mut tree: Vec<(&str, Option<u32>)> =
            (0..200_000_u32).map(|level| ("level", level.checked_sub(1))).collect();
        let bottom = tree.len() as u32 - 1;
        assert_eq!(nodes(&tree, &vec![bottom; 200_000]), vec![0; 200_000]);
        tree[0].0 = "node";
        let places: Vec<u32> = (0..=bottom).rev().collect();
        assert_eq!(nodes(&tree, &places), vec![0; 200_000]);
    }
}
