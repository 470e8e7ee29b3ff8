//! Where the time went.

use clc_trace::format::rate;
use serde::{Deserialize, Serialize};

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
        // A phase that only asks the time and agrees with the other ranks takes about as long.
        const SHORT: f64 = 1e-5;
        match self.events_per_second {
            speed if speed > 0.0 && self.seconds >= SHORT => rate(speed, "events/s"),
            _ => String::new(),
        }
    }
}
