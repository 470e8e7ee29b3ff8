//! Where the time goes.

use crate::report::Phase;
use clc_engine::comm::{ReduceOp, Transport};
use clc_trace::Result;
use std::time::Instant;

/// Measures the phases of this analysis rank.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    watch: Stopwatch,
    laps: Vec<(&'static str, f64, u64)>,
}

impl Timing {
    /// The first phase begins.
    pub(crate) fn start() -> Self {
        Timing { watch: Stopwatch::start(), laps: Vec::new() }
    }

    /// A phase ends that handled `events` events on this rank; the next one begins. One that comes again is part of the first.
    pub(crate) fn lap(&mut self, name: &'static str, events: u64) {
        let seconds = self.watch.lap();
        match self.laps.iter_mut().find(|lap| lap.0 == name) {
            Some(lap) => *lap = (name, lap.1 + seconds, lap.2 + events),
            None => self.laps.push((name, seconds, events)),
        }
    }

    /// The phases of all ranks: longest time, sum of events. All ranks must have made the same laps. Collective.
    ///
    /// # Errors
    /// Failures of the transport.
    pub(crate) fn gather(self, transport: &mut dyn Transport) -> Result<Vec<Phase>> {
        let mut nanoseconds: Vec<i64> = self.laps.iter().map(|(_, seconds, _)| (seconds * 1e9) as i64).collect();
        let mut events: Vec<i64> = self.laps.iter().map(|(_, _, events)| *events as i64).collect();
        transport.all_reduce(ReduceOp::Max, &mut nanoseconds)?;
        transport.all_reduce(ReduceOp::Sum, &mut events)?;
        let laps = self.laps.iter().zip(nanoseconds).zip(events);
        Ok(laps.map(|(((name, ..), time), events)| Phase::new(name, time as f64 / 1e9, events as u64)).collect())
    }
}

/// Measures phases that follow each other.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    since: Instant,
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch::start()
    }
}

impl Stopwatch {
    /// Starts the first phase.
    pub(crate) fn start() -> Self {
        Stopwatch { since: Instant::now() }
    }

    /// Seconds since the start or the last lap; the next phase starts now.
    pub(crate) fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let seconds = now.duration_since(self.since).as_secs_f64();
        self.since = now;
        seconds
    }
}
