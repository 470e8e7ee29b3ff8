//! Where the time goes.

use crate::report::{Phase, Stopwatch};
use clc_engine::comm::{ReduceOp, Transport};
use clc_trace::Result;

/// Measures the phases of this analysis rank.
#[derive(Debug, Default)]
pub struct Timing {
    watch: Stopwatch,
    laps: Vec<(&'static str, f64, u64)>,
}

impl Timing {
    /// The first phase begins.
    pub fn start() -> Self {
        Timing { watch: Stopwatch::start(), laps: Vec::new() }
    }

    /// A phase ends that handled `events` events on this rank; the next one begins.
    pub fn lap(&mut self, name: &'static str, events: u64) {
        self.laps.push((name, self.watch.lap(), events));
    }

    /// The phases of all ranks: longest time, sum of events. All ranks must have made the same laps. Collective.
    ///
    /// # Errors
    /// Failures of the transport.
    pub fn gather(self, transport: &mut dyn Transport) -> Result<Vec<Phase>> {
        let mut nanoseconds: Vec<i64> = self.laps.iter().map(|(_, seconds, _)| (seconds * 1e9) as i64).collect();
        let mut events: Vec<i64> = self.laps.iter().map(|(_, _, events)| *events as i64).collect();
        transport.all_reduce(ReduceOp::Max, &mut nanoseconds)?;
        transport.all_reduce(ReduceOp::Sum, &mut events)?;
        let laps = self.laps.iter().zip(nanoseconds).zip(events);
        Ok(laps.map(|(((name, ..), time), events)| Phase::new(name, time as f64 / 1e9, events as u64)).collect())
    }
}
