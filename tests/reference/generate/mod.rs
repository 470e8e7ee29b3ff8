//! Random traces of valid MPI programs.
//!
//! [`program`] runs a random, deadlock-free MPI program in true time ([`messages`], [`collectives`] are its steps);
//! [`clocks`] turns true times into the readings of bad node clocks; [`truncate`] cuts processes short.
//! Everything follows from the seed. In true time every happened-before pair holds, with the latencies of
//! [`Options::rules`] as minimum latencies.

pub(crate) mod clocks;
mod collectives;
mod messages;
mod program;
pub(crate) mod rng;
mod truncate;
mod windows;

use super::matching::Rules;
use super::model::{PerLocation, Process, Trace};
use clc_engine::matching::collectives::fences::Fences;
use clocks::ClockErrors;
use rng::Rng;

/// What may be wrong with a recorded trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Anomalies {
    /// Messages that are never received, and receives whose sender did not record.
    pub unmatched: bool,
    /// Receives that were posted and whose completion was not recorded, and sends without completion.
    pub never_completed: bool,
    /// Cancelled requests.
    pub cancelled: bool,
    /// Processes that stop recording early.
    pub truncated: bool,
}

/// Size and character of a generated trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// Number of processes, at least 1.
    pub processes: usize,
    /// Number of nodes over which they are spread, at least 1.
    pub nodes: u32,
    /// A process has 1 up to so many locations.
    pub locations: usize,
    /// Number of global steps of the program (a batch of messages, a collective, local work).
    pub steps: usize,
    /// The true minimum latencies (at least 1 tick each), whether Alltoallv and Alltoallw synchronise all with all, which fences do, and whether making communicators does.
    pub rules: Rules,
    /// How bad the clocks of the nodes are.
    pub clocks: ClockErrors,
    /// What is missing in the trace.
    pub anomalies: Anomalies,
}

/// A trace with its truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Generated {
    /// What the program recorded, with the readings of the node clocks as times.
    pub trace: Trace,
    /// The true time of each event.
    pub truth: PerLocation,
    /// What it was generated with.
    pub options: Options,
}

impl Options {
    /// Small, and anything possible.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let processes = 1 + rng.below(12);
        let anomalies = if rng.percent(50) {
            Anomalies::default()
        } else {
            let mut sometimes = || rng.percent(50);
            Anomalies {
                unmatched: sometimes(),
                never_completed: sometimes(),
                cancelled: sometimes(),
                truncated: sometimes(),
            }
        };
        let same_node = rng.between(1, 20);
        Options {
            processes,
            nodes: rng.between(1, processes as i64) as u32,
            locations: rng.pick(&[1, 1, 2, 3]),
            steps: 1 + rng.below(40),
            rules: Rules {
                same_node,
                other_node: same_node * rng.between(1, 20),
                vector_all_to_all: rng.percent(30),
                fences: rng.pick(&[Fences::Auto, Fences::Auto, Fences::All, Fences::Operations, Fences::None]),
                handles: rng.percent(50),
            },
            clocks: ClockErrors::random(rng),
            anomalies,
        }
    }
}

/// A trace of random size and character.
pub(crate) fn generate(seed: u64) -> Generated {
    let options = Options::random(&mut Rng(seed));
    generate_with(seed, options)
}

/// A trace of the given size and character.
pub(crate) fn generate_with(seed: u64, options: Options) -> Generated {
    let mut rng = Rng(!seed);
    let run = program::run(&mut rng, &options);
    let clocks: Vec<clocks::Clock> =
        (0..options.nodes).map(|_| clocks::Clock::random(&mut rng, &options.clocks)).collect();
    let mut truth = PerLocation::new();
    let mut processes = Vec::new();
    for (streams, &node) in run.streams.iter().zip(&run.nodes) {
        processes.push(Process { node, locations: clocks[node as usize].record(streams, options.clocks.resolution) });
        truth.push(streams.iter().map(|stream| stream.iter().map(|&(time, _)| time).collect()).collect());
    }
    let mut generated = Generated {
        trace: Trace {
            processes,
            communicators: run.communicators,
            windows: run.windows,
            groups: run.groups,
            ..Trace::default()
        },
        truth,
        options,
    };
    if generated.options.anomalies.truncated {
        truncate::truncate(&mut rng, &mut generated);
    }
    generated
}
