//! Locks of windows that were held at the same time though they exclude each other. The order of locks is recorded nowhere, so this is no violation of
//! the clock condition: a finding.

use crate::report::{EventPlace, Stages};
use clc_trace::format::count;
use serde::{Deserialize, Serialize};

/// Locks of one stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Locks {
    /// How many were compared with those that others acquired before.
    pub compared: u64,
    /// Those of them whose acquisition is not recorded: taken as held when the call that requested it was left.
    pub assumed: u64,
    /// How many were acquired while another process held one that excludes them.
    pub overlapping: u64,
    /// The longest overlap.
    pub worst: Option<Overlap>,
}

/// Two locks that exclude each other and overlap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// Number of the window in the definitions.
    pub window: u32,
    /// The target: a rank in the communicator of the window; null for all of them.
    pub target: Option<u32>,
    /// Where the one that was held longer was released.
    pub held: EventPlace,
    /// Where the other one was acquired.
    pub acquired: EventPlace,
    /// How long both were held, in ticks.
    pub ticks: i64,
    /// The same in seconds.
    pub seconds: f64,
}

impl Overlap {
    /// In words.
    pub fn words(&self) -> String {
        let target = self.target.map_or_else(|| "all targets".to_owned(), |target| format!("target {target}"));
        let (held, acquired) = (&self.held, &self.acquired);
        format!(
            "window {}, {target}: rank {} acquires it at {:.9} s (location {}, event {}), rank {} holds it until {:.9} s (location {}, event {})",
            self.window,
            acquired.process,
            acquired.seconds,
            acquired.location,
            count(acquired.event.0),
            held.process,
            held.seconds,
            held.location,
            count(held.event.0),
        )
    }
}

impl Locks {
    /// Adds those of other windows.
    pub fn merge(&mut self, other: Locks) {
        self.compared += other.compared;
        self.assumed += other.assumed;
        self.overlapping += other.overlapping;
        let order = |worst: &Option<Overlap>| {
            worst.as_ref().map(|worst| (worst.ticks, std::cmp::Reverse((worst.acquired.process, worst.acquired.event))))
        };
        if order(&other.worst) > order(&self.worst) {
            self.worst = other.worst;
        }
    }
}

/// Of two stages.
pub type LockStages = Stages<Locks>;
