//! What every simulated run must fulfil, judged by an independent checker.

mod checker;
mod measurements;
mod orders;
mod runs;

use crate::{EventSink, PatternKind, Scenario};
use clc_trace::{Event, Result, Ticks};

/// An event with its true and its local time.
type Record = (Ticks, Ticks, Event);

/// Keeps everything, per location.
#[derive(Debug, Default, PartialEq)]
struct EventCollector(Vec<Vec<Record>>);

impl EventSink for EventCollector {
    fn event(&mut self, location: usize, true_time: Ticks, local_time: Ticks, event: &Event) -> Result<()> {
        if self.0.len() <= location {
            self.0.resize_with(location + 1, Vec::new);
        }
        self.0[location].push((true_time, local_time, *event));
        Ok(())
    }
}

/// A small scenario: `ranks` ranks, three per node.
fn small(pattern: PatternKind, ranks: u32) -> Scenario {
    Scenario { ranks, ranks_per_node: 3, pattern, events: 1500, ..Scenario::default() }
}

fn record(scenario: &Scenario) -> Result<EventCollector> {
    let mut recorder = EventCollector::default();
    scenario.run(&mut recorder)?;
    Ok(recorder)
}
