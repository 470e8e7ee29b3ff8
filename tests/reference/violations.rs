//! Counts what is wrong with an assignment of times to all events, whoever computed it.

use super::matching::{Dependency, Kind};
use super::model::PerEvent;
use std::collections::BTreeMap;

/// Pairs of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// All pairs.
    pub pairs: usize,
    /// Pairs whose receive comes earlier than send + mu.
    pub violated: usize,
    /// Pairs whose receive comes earlier than the send.
    pub reversed: usize,
    /// The most that is missing for a receive to be at send + mu, in ticks.
    pub worst: i64,
}

/// What is wrong with a time assignment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Violations {
    /// Happened-before pairs, by kind.
    pub pairs: BTreeMap<Kind, Count>,
    /// Neighbours on a timeline whose times are in the wrong order.
    pub disordered: usize,
}

impl Violations {
    /// All violations together.
    pub(crate) fn total(&self) -> usize {
        self.disordered + self.pairs.values().map(|count| count.violated).sum::<usize>()
    }
}

/// Looks at every happened-before pair and every pair of neighbours.
pub(crate) fn violations(dependencies: &[Dependency], times: &PerEvent) -> Violations {
    let mut found = Violations::default();
    for Dependency { kind, send, receive, latency } in dependencies {
        let distance = times[receive.process][receive.index] - times[send.process][send.index];
        let count = found.pairs.entry(*kind).or_default();
        count.pairs += 1;
        count.violated += usize::from(distance < *latency);
        count.reversed += usize::from(distance < 0);
        count.worst = count.worst.max(latency - distance);
    }
    found.disordered = times.iter().map(|timeline| timeline.windows(2).filter(|pair| pair[1] < pair[0]).count()).sum();
    found
}
