//! Where the time went.

use clc_trace::format::rate;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// One phase of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Elapsed time in seconds, on the rank that took longest.
    pub seconds: f64,
    /// Events (of all ranks) over that time; zero if the phase has no events or took no time.
    pub events_per_second: f64,
}

impl Phase {
    /// A phase that handled `events` in `seconds`.
    pub fn new(name: &str, seconds: f64, events: u64) -> Self {
        // A clock too coarse for a short phase must not turn into an infinite rate.
        let events_per_second = if seconds > 0.0 { events as f64 / seconds } else { 0.0 };
        Phase { name: name.to_owned(), seconds, events_per_second }
    }

    /// The rate as text; empty if there is none, or if the phase was so short that it had nothing to do.
    pub fn rate(&self) -> String {
        const SHORT: f64 = 1e-5;
        match self.events_per_second {
            speed if speed > 0.0 && self.seconds >= SHORT => rate(speed, "events/s"),
            _ => String::new(),
        }
    }
}

/// Measures phases that follow each other.
#[derive(Debug)]
pub struct Stopwatch {
    since: Instant,
}

impl Default for Stopwatch {
    fn default() -> Self {
        Stopwatch::start()
    }
}

impl Stopwatch {
    /// Starts the first phase.
    pub fn start() -> Self {
        Stopwatch { since: Instant::now() }
    }

    /// Seconds since the start or the last lap; the next phase starts now.
    pub fn lap(&mut self) -> f64 {
        let now = Instant::now();
        let seconds = now.duration_since(self.since).as_secs_f64();
        self.since = now;
        seconds
    }
}
