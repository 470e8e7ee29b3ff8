//! What is simulated, checked and run.

use crate::clocks::{ClockSpec, SimulatedClock};
use crate::engine::{Engine, Setup};
use crate::latency::{LatencyModel, PreparedLatencyModel};
use crate::measurement_plan::MeasurementPlan;
use crate::patterns::{Pattern, PatternKind, Work, communicators};
use crate::sink::{Discard, EventSink};
use crate::units::{SECOND, TickRate};
use clc_trace::{CommMembers, Error, Result, Ticks};

/// Most processes, and most locations, of a scenario. Chosen by hand: state takes memory per location; a limit for numbers that are mistyped.
const MOST: u32 = 1 << 20;
/// Most steps that are simulated to estimate the length of a run. Chosen by hand: with fewer, pipelines that fill distort the rate of events; more
/// take longer before the run begins.
const TRIAL_STEPS: u64 = 64;

/// One simulated run of one application on one machine. All fields may be set freely; [`Scenario::validate`] says what is
/// wrong with them.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Number of processes.
    pub ranks: u32,
    /// Processes per node, in blocks: ranks 0 to n-1 on node 0, and so on. Locations of a node share a clock.
    pub ranks_per_node: u32,
    /// Locations per process: the first makes the MPI calls, the others join in computation; of [`PatternKind::Offload`] they are streams of an
    /// accelerator. [`PatternKind::Hybrid`] and [`PatternKind::Offload`] have at least two ([`Scenario::locations`]).
    pub threads: u32,
    /// Every further thread of a process has a clock of its own. Streams of accelerators always have.
    pub thread_clocks: bool,
    /// Events per process, on average over all processes and counting all its locations. The run ends with the first step
    /// that reaches this.
    pub events: u64,
    /// What the application does.
    pub pattern: PatternKind,
    /// Sub-communicators of [`PatternKind::Subsets`]; the other patterns have their own.
    pub communicators: u32,
    /// How wrong the clocks are.
    pub clock: ClockSpec,
    /// How long messages travel.
    pub latency: LatencyModel,
    /// Mean computation time of a process between communication, in picoseconds.
    pub compute: i64,
    /// Once, when half of the events are there, all compute for so long without communication, in picoseconds.
    pub idle: i64,
    /// Calls of a user function within each computation, which add events without communication.
    pub calls: u32,
    /// Load imbalance: the mean computation of each process is up to this share longer or shorter (0 to 1).
    pub imbalance: f64,
    /// Size of a typical message, in bytes.
    pub message_bytes: u64,
    /// Everything random follows from it.
    pub seed: u64,
    /// Ticks per second of all timestamps (1 to 10^12).
    pub resolution: u64,
    /// Clock offset measurements.
    pub measurements: MeasurementPlan,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            ranks: 16,
            ranks_per_node: 4,
            threads: 1,
            thread_clocks: false,
            events: 10_000,
            pattern: PatternKind::Halo2d,
            communicators: 64,
            clock: ClockSpec::default(),
            latency: LatencyModel::default(),
            compute: 50_000_000,
            idle: 0,
            calls: 0,
            imbalance: 0.2,
            message_bytes: 4096,
            seed: 1,
            resolution: 1_000_000_000,
            measurements: MeasurementPlan::default(),
        }
    }
}

/// What a finished run was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Events per location, in the order of the definitions.
    pub events: Vec<u64>,
    /// True time at which the application ended, in picoseconds since the start of the simulation.
    pub end: i64,
    /// Upper bound of all true and local times, in ticks.
    pub latest: Ticks,
}

impl Scenario {
    /// Checks that the scenario can be run.
    ///
    /// # Errors
    /// The first parameter that is out of bounds, with what is allowed.
    pub fn validate(&self) -> Result<()> {
        let check = |fine: bool, what: String, allowed: &str| {
            if fine { Ok(()) } else { Err(Error::new(what).hint(allowed)) }
        };
        check((1..=MOST).contains(&self.ranks), format!("{} ranks", self.ranks), "allowed: 1 to 1048576")?;
        let least = self.pattern.least_ranks();
        if self.ranks < least {
            let message = format!("pattern {} needs at least {least} ranks, not {}", self.pattern.name(), self.ranks);
            return Err(Error::new(message).hint("use more ranks, or another pattern"));
        }
        check(self.ranks_per_node >= 1, "0 ranks per node".into(), "at least 1")?;
        let locations = u64::from(self.ranks) * u64::from(self.locations());
        check(
            self.threads >= 1 && locations <= u64::from(MOST),
            format!("{} threads per rank", self.threads),
            "at least 1, and at most 1048576 locations altogether",
        )?;
        check(
            (1..=1_000_000_000_000).contains(&self.events),
            format!("{} events per process", self.events),
            "allowed: 1 to 10^12",
        )?;
        check(
            (1..=MOST).contains(&self.communicators),
            format!("{} communicators", self.communicators),
            "allowed: 1 to 1048576",
        )?;
        check((0..=SECOND).contains(&self.compute), format!("a computation of {} ps", self.compute), "0 to 1 s")?;
        check((0..=3600 * SECOND).contains(&self.idle), format!("{} ps without communication", self.idle), "0 to 1 h")?;
        check(self.calls <= 1_000_000, format!("{} calls per computation", self.calls), "0 to 1000000")?;
        check((0.0..=1.0).contains(&self.imbalance), format!("an imbalance of {}", self.imbalance), "0 to 1")?;
        check(self.message_bytes <= 1 << 30, format!("messages of {} bytes", self.message_bytes), "at most 2^30")?;
        check(
            (1..=SECOND as u64).contains(&self.resolution),
            format!("a resolution of {} ticks per second", self.resolution),
            "allowed: 1 to 10^12",
        )?;
        self.measurements.validate()?;
        self.latency.validate()
    }

    /// Locations per process.
    pub fn locations(&self) -> u32 {
        if self.pattern.has_parts() { self.threads.max(2) } else { self.threads }
    }

    /// The node that each rank runs on.
    pub fn nodes(&self) -> Vec<u32> {
        (0..self.ranks).map(|rank| rank / self.ranks_per_node.max(1)).collect()
    }

    /// Streams all events into `sink`.
    ///
    /// # Errors
    /// An invalid scenario, a run of more than 26 days, and whatever the sink reports.
    pub fn run<S: EventSink + ?Sized>(&self, sink: &mut S) -> Result<RunSummary> {
        self.validate()?;
        let length = self.estimate_length()?;
        let per_process = self.locations();
        let own = self.thread_clocks || self.pattern == PatternKind::Offload;
        // What has a clock of its own counts as a node of its own, after all nodes.
        let clock_of = |(rank, node): (u32, u32)| {
            (0..per_process).map(move |location| match location {
                location if location > 0 && own => MOST + rank * per_process + location,
                _ => node,
            })
        };
        let locations = (0..).zip(self.nodes()).flat_map(clock_of);
        // Every location has a clock of its own that shows the same as its node's: locations are simulated in turns.
        let mut clocks: Vec<SimulatedClock> = Vec::with_capacity(self.ranks as usize * per_process as usize);
        let mut last = None;
        for node in locations {
            let clock = match (last, clocks.last()) {
                (Some(same), Some(clock)) if same == node => clock.clone(),
                _ => self.clock.clock(node, self.seed, length),
            };
            clocks.push(clock);
            last = Some(node);
        }
        let target = self.events.saturating_mul(u64::from(self.ranks));
        self.simulate(clocks, target, u64::MAX, sink)
    }

    /// The expected length of the run in true time, in picoseconds, from the start of the simulation to the end of the
    /// application: a share of the run such as `jump=1ms@50%` refers to it. Found by simulating the first steps.
    ///
    /// # Errors
    /// An invalid scenario.
    pub(crate) fn estimate_length(&self) -> Result<i64> {
        self.validate()?;
        if self.idle > 0 {
            return Ok(Scenario { idle: 0, ..self.clone() }.estimate_length()? + self.idle);
        }
        let target = self.events.saturating_mul(u64::from(self.ranks));
        let perfect = || vec![SimulatedClock::perfect(); self.ranks as usize * self.locations() as usize];
        // The first steps fill pipelines; the rate is that of the steps after them.
        let filling = self.simulate(perfect(), target, TRIAL_STEPS / 2, &mut Discard)?;
        let trial = self.simulate(perfect(), target, TRIAL_STEPS, &mut Discard)?;
        let events = |summary: &RunSummary| summary.events.iter().sum::<u64>();
        let (some, more) = (events(&filling), events(&trial));
        if more <= some {
            return Ok(trial.end);
        }
        let per_event = (trial.end - filling.end) as f64 / (more - some) as f64;
        Ok(trial.end + (per_event * target.saturating_sub(more) as f64) as i64)
    }

    /// True time at which the application starts, after the first offset measurement.
    pub(super) fn start(&self) -> i64 {
        self.measurement_length() + 1_000_000_000
    }

    /// Simulates steps until `target` events or `steps` steps have been done.
    fn simulate<S>(&self, clocks: Vec<SimulatedClock>, target: u64, steps: u64, sink: &mut S) -> Result<RunSummary>
    where
        S: EventSink + ?Sized,
    {
        let nodes = self.nodes();
        let (definitions, families) = communicators(self.pattern, &nodes, self.communicators, self.seed);
        let members = |members: CommMembers| match members {
            CommMembers::Intra(members) => (members.to_vec(), None),
            CommMembers::Inter(first, second) => ([&*first, &*second].concat(), Some(first.len())),
            _ => (Vec::new(), None),
        };
        let rate = TickRate::new(self.resolution);
        let setup = Setup {
            rate,
            network: PreparedLatencyModel::new(&self.latency),
            threads: self.locations() as usize,
            streams: self.pattern == PatternKind::Offload,
            teams: self.pattern == PatternKind::Hybrid,
            calls: self.calls,
            clocks,
            nodes,
            comms: definitions.into_iter().map(|comm| members(comm.members)).collect(),
            seed: self.seed,
            start: self.start(),
        };
        let mut engine = Engine::new(setup, sink);
        let work = Work::new(self.ranks, self.compute, self.imbalance, self.message_bytes, self.seed);
        let mut pattern = Pattern::new(self.pattern, self.ranks, families, self.seed);
        engine.initialise()?;
        let mut number = 0;
        let mut idle = self.idle;
        while engine.emitted < target && number < steps {
            if idle > 0 && engine.emitted >= target / 2 {
                for rank in 0..self.ranks as usize {
                    engine.compute(rank, idle)?;
                }
                idle = 0;
            }
            pattern.step(&work, number, &mut engine)?;
            number += 1;
        }
        pattern.finish(&work, &mut engine)?;
        engine.finalise()?;
        Ok(RunSummary { events: engine.counts.clone(), end: engine.now(), latest: rate.ticks(engine.latest) })
    }
}
