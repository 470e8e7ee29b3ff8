//! The samples of the nodes in the trace, or what their agents have noted: metrics of locations of their own.

use crate::recording::clocks::START;
use crate::recording::clocks::offsets::globally;
use crate::recording::definitions::{RESOLUTION, location};
use crate::recording::extra::{EventOrExtra, Extra, Values};
use crate::recording::nodes::samples::Sampled;
use crate::recording::plan::Plan;
use crate::recording::target::TraceTarget;
use crate::recording::written::WrittenProcess;
use clc_archive::truth::{self, TruthWriter};
use clc_otf2::NodeMetrics;
use clc_trace::{Definitions, LocationId, Result, Ticks};
use std::path::Path;

impl Plan {
    /// Where the samples of the node of a process go that has taken them: beside its threads.
    pub(crate) fn sample_location(&self, rank: u32) -> Option<LocationId> {
        self.samples.get(&rank)?;
        Some(location(rank, self.threads(rank).last()?.checked_add(1)?))
    }

    /// The metrics of the nodes, for the definitions: the class, and who records it for which node.
    pub(crate) fn node_metrics(&self, definitions: &Definitions) -> NodeMetrics {
        let recorder = |&rank: &u32| {
            let group = definitions.location_groups.iter().find(|group| group.id.0 == rank)?;
            Some((self.sample_location(rank)?, group.parent?))
        };
        NodeMetrics { members: self.sampled.clone(), recorders: self.samples.keys().filter_map(recorder).collect() }
    }

    /// Writes the samples of a node that were taken at their times as metric `metric`, the first instance of all nodes.
    pub(crate) fn write_samples(
        &self,
        rank: u32,
        metric: u32,
        archive: &TraceTarget,
        target: &Path,
        written: &mut WrittenProcess,
    ) -> Result<()> {
        let found = self.samples.get(&rank).zip(self.sample_location(rank)).zip(self.process_clock(rank));
        let Some(((samples, id), mut clock)) = found else { return Ok(()) };
        // Instances are numbered as their recorders are listed.
        let metric = metric + self.samples.range(..rank).count() as u32;
        let mut writer = archive.events(id)?;
        let mut truths = match &self.clock {
            Some(_) => Some(TruthWriter::create(&truth::path(target, id), id, RESOLUTION)?),
            None => None,
        };
        let span = self.base..=self.end;
        let counter = self.counter(rank);
        let mut sampled = Sampled::default();
        for sample in &samples.list {
            if !counter.is_some_and(|counter| span.contains(&counter.nanoseconds(sample.counter))) {
                continue;
            }
            sampled.turns = Some((sampled.turns.map_or(sample.turn, |(first, _)| first), sample.turn));
            let (truth, shown) = clock.times(sample.counter);
            let global = if self.clock.is_some() { truth } else { globally(shown, &written.offsets) };
            // The clocks may not have agreed as well as they had thought.
            let late =
                |(period, bound)| self.agreed(period, sample.turn).is_none_or(|agreed| global.abs_diff(agreed) > bound);
            if samples.agreed.is_some_and(late) {
                continue;
            }
            writer
                .write(shown.max(0) as u64, EventOrExtra::Extra(Extra::Sample(metric, Values::of(&sample.values))))?;
            if let Some(truths) = &mut truths {
                truths.push(Ticks(truth))?;
            }
            sampled.written += 1;
        }
        written.sampled = samples.agreed.map(|_| sampled);
        let (events, without_fields) = archive.end(id, writer, &written.offsets)?;
        written.threads.push((id, events));
        written.without_fields += without_fields;
        if let Some(truths) = truths {
            truths.finish()?;
        }
        Ok(())
    }

    /// The global time, in nanoseconds of the trace, of a turn.
    fn agreed(&self, period: u64, turn: u64) -> Option<i64> {
        let reading = self.reading(self.node(0)?, turn.checked_mul(period)?)?;
        let passed = self.counter(0)?.nanoseconds(reading).checked_sub(self.base)?;
        START.checked_add(passed)
    }
}
