//! What the nodes of a job have and do together: aggregates of their readings and of the user's data, and the user's formulas.
//!
//! Of its own group a node knows the readings; of each other group what the lowest living node there tells of it.

use super::settings::InForce;
use crate::gossip::Node;
use crate::query::Computed;
use crate::resources::{Aggregate, Formula, GroupAggregates, MAX_AGGREGATES, Quantity, Reading, Variable};
use std::collections::BTreeMap;

/// What is told of each job without being asked.
const USUAL: [(Quantity, Aggregate); 14] = [
    (Quantity::Load1, Aggregate::Mean),
    (Quantity::Load1, Aggregate::Median),
    (Quantity::Load1, Aggregate::Maximum),
    (Quantity::CpuUse, Aggregate::Mean),
    (Quantity::CpuUse, Aggregate::Minimum),
    (Quantity::CpuUse, Aggregate::Maximum),
    (Quantity::MemoryAvailable, Aggregate::Minimum),
    (Quantity::MemoryAvailable, Aggregate::Sum),
    (Quantity::MemoryTotal, Aggregate::Sum),
    (Quantity::NetworkOut, Aggregate::Sum),
    (Quantity::NetworkOut, Aggregate::Maximum),
    (Quantity::DiskWritten, Aggregate::Sum),
    (Quantity::MajorFaults, Aggregate::Maximum),
    (Quantity::Temperature, Aggregate::Maximum),
];

/// What is computed of all nodes.
#[derive(Debug, Clone, Default)]
pub(super) struct Together {
    groups: Vec<GroupAggregates>,
    /// The user's data that are numbers: by key, of all nodes.
    data: BTreeMap<String, Vec<f64>>,
    nodes: usize,
}

/// The aggregates that are usual, and those that formulas need.
pub(super) fn wanted(in_force: &InForce) -> Vec<(Quantity, Aggregate)> {
    let mut wanted = USUAL.to_vec();
    for (_, formula) in in_force.formulas() {
        for variable in formula.variables() {
            if let Variable::Of(quantity, how) = *variable
                && !wanted.contains(&(quantity, how))
            {
                wanted.push((quantity, how));
            }
        }
    }
    wanted.truncate(MAX_AGGREGATES);
    wanted
}

/// A group of nodes that live.
pub(super) struct LiveGroup {
    /// Number, name and reading of each that has told one.
    pub members: Vec<(u32, String, Reading)>,
    /// Whether this node is the lowest of them.
    pub is_lowest: bool,
}

/// The group of this node, with what its members read under that key.
pub(super) fn of_group(node: &Node, readings: u16) -> LiveGroup {
    let group = node.config().group_of(node.id());
    let members = node.members().filter(|member| group.contains(&member.id.0) && member.liveness.is_there());
    let members: Vec<_> = members.collect();
    let is_lowest = members.iter().map(|member| member.id).min() == Some(node.id());
    let read = members.iter().filter_map(|member| {
        let reading = Reading::decode(node.get(member.id, readings)?).ok()?;
        Some((member.id.0, member.name.to_owned(), reading))
    });
    LiveGroup { members: read.collect(), is_lowest }
}

/// The groups of other nodes, as the lowest living node of each tells of it.
pub(super) fn of_others(node: &Node, summaries: u16) -> Vec<GroupAggregates> {
    let own = node.config().group_of(node.id());
    let mut groups = BTreeMap::new();
    for member in node.members().filter(|member| !own.contains(&member.id.0) && member.liveness.is_there()) {
        if let Some(summary) = node.get(member.id, summaries).and_then(|bytes| GroupAggregates::decode(bytes).ok()) {
            groups.entry(node.config().group_of(member.id).start).or_insert(summary);
        }
    }
    groups.into_values().collect()
}

impl Together {
    /// Of all groups, and all data of the user's as key and value.
    pub(super) fn new<'a>(groups: Vec<GroupAggregates>, data: impl Iterator<Item = (&'a str, &'a str)>) -> Together {
        let mut numbers = BTreeMap::<String, Vec<f64>>::new();
        for (key, value) in data {
            if let Ok(number) = value.trim().parse::<f64>()
                && number.is_finite()
            {
                numbers.entry(key.to_owned()).or_default().push(number);
            }
        }
        let nodes = groups.iter().map(|group| group.nodes as usize).sum();
        Together { groups, data: numbers, nodes }
    }

    /// The usual aggregates.
    pub(super) fn usual(&self) -> Vec<(String, f64, String)> {
        let value = |&(quantity, how): &(Quantity, Aggregate)| {
            let value = GroupAggregates::together(&self.groups, quantity, how)?;
            Some((format!("{}_{}", quantity.name(), how.name()), value, quantity.unit().to_owned()))
        };
        let mut values: Vec<_> = USUAL.iter().filter_map(value).collect();
        values.extend(self.data.iter().flat_map(|(key, numbers)| {
            [Aggregate::Mean, Aggregate::Maximum, Aggregate::Sum].into_iter().filter_map(move |how| {
                Some((format!("data_{key}_{}", how.name()), how.of(numbers.iter().copied())?, String::new()))
            })
        }));
        values
    }

    /// A formula.
    pub(super) fn value(&self, formula: &Formula) -> Option<f64> {
        formula.value(|variable| match variable {
            Variable::Nodes => Some(self.nodes as f64),
            Variable::Of(quantity, how) => GroupAggregates::together(&self.groups, *quantity, *how),
            Variable::Data(key, how) => how.of(self.data.get(key)?.iter().copied()),
        })
    }

    /// All formulas that are in force.
    pub(super) fn formulas(&self, in_force: &InForce) -> Vec<Computed> {
        let computed = in_force.formulas().map(|(name, formula)| Computed {
            name: name.to_owned(),
            formula: formula.text().to_owned(),
            value: self.value(&formula),
        });
        computed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_see_groups_and_data() {
        let summary = |nodes, mean, most| GroupAggregates {
            nodes,
            values: vec![(Quantity::Load1, Aggregate::Mean, mean), (Quantity::Load1, Aggregate::Maximum, most)],
        };
        let data = [("queue", "3"), ("queue", "5"), ("queue", "soon"), ("phase", "solve")];
        let together = Together::new(vec![summary(3, 1.0, 2.0), summary(1, 5.0, 5.0)], data.into_iter());
        let value = |text: &str| together.value(&Formula::parse(text).unwrap());
        assert_eq!(value("load1_max / load1_mean"), Some(2.5));
        assert_eq!(value("data_queue_sum + nodes"), Some(12.0));
        assert_eq!(value("data_phase_max"), None, "no number");
        assert_eq!(value("cpu_mean"), None, "nobody tells it");
        let usual = together.usual();
        assert!(usual.contains(&("load1_mean".to_owned(), 2.0, String::new())));
        assert!(usual.contains(&("data_queue_mean".to_owned(), 4.0, String::new())));
    }
}
