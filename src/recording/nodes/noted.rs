//! What the agents of a job that was monitored have noted of the resources of their nodes, for the trace: where nobody has sampled at agreed times.

use crate::recording::extra::MOST_VALUES;
use crate::recording::nodes::samples::{NodeSample, Samples};
use crate::recording::plan::Plan;
use clc_monitor::history::{EXTENSION, Log, RESOURCES};
use clc_monitor::resources::Quantity;
use std::collections::BTreeMap;
use std::path::Path;

impl Plan {
    /// Takes the notes in `directory`, if there are any: the values that all nodes know, of each moment that has all of them.
    pub(crate) fn take_notes(&mut self, directory: &Path, warnings: &mut Vec<String>) {
        let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let mut logs = Vec::new();
        for path in entries.filter(|path| path.extension().is_some_and(|end| end == EXTENSION)) {
            match Log::read(&path) {
                Ok(log) => logs.push(log),
                Err(error) => warnings.push(format!("{}: cannot read the log of the agent: {error}", path.display())),
            }
        }
        let known = |name: &&str| {
            !logs.is_empty()
                && logs.iter().all(|log| log.moments.iter().any(|moment| moment.resources.contains_key(*name)))
        };
        let names: Vec<&str> = RESOURCES.into_iter().filter(known).take(MOST_VALUES).collect();
        if names.is_empty() {
            return;
        }
        // Of several agents of a node, one after the other was killed, each has noted a part.
        let mut lists: BTreeMap<u32, Vec<(u64, Vec<f64>)>> = BTreeMap::new();
        for log in &logs {
            let ranks = log.moments.iter().flat_map(|moment| &moment.ranks).map(|&(rank, _)| rank);
            let Some(node) = ranks.into_iter().find_map(|rank| self.node(rank)) else { continue };
            let Some(first) = self.processes.keys().copied().find(|&rank| self.node(rank) == Some(node)) else {
                continue;
            };
            for moment in log.moments.iter().filter(|moment| moment.raw > 0) {
                let values: Option<Vec<f64>> = names.iter().map(|&name| moment.resources.get(name).copied()).collect();
                if let Some((counter, values)) = self.reading(node, moment.raw).zip(values) {
                    lists.entry(first).or_default().push((counter, values));
                }
            }
        }
        self.samples = lists
            .into_iter()
            .map(|(rank, mut list)| {
                list.sort_by_key(|sample| sample.0);
                list.dedup_by_key(|sample| sample.0);
                let sample = |(turn, (counter, values)): (u64, (u64, Vec<f64>))| NodeSample { turn, counter, values };
                (rank, Samples { agreed: None, list: (0..).zip(list).map(sample).collect() })
            })
            .collect();
        let unit = |name: &str| Quantity::named(name).map_or("", Quantity::unit).to_owned();
        self.sampled = names.into_iter().map(|name| (name.to_owned(), unit(name))).collect();
    }
}
