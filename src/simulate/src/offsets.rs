//! Clock offset measurements as a tracer makes them, with the error that the network gives them.
//!
//! Cristian's method (F. Cristian, Probabilistic clock synchronization, Distributed Computing 3, 1989): the reference (node 0) asks and notes its clock `a`, the other node answers with its own clock `w`,
//! the answer is back when the reference's clock shows `b`. Then (a + b) / 2 - w estimates the offset, wrong by at most
//! (b - a) / 2 plus what the clocks drift meanwhile; of several exchanges the one with the shortest round trip counts.

use crate::clocks::{ClockSpec, SimulatedClock};
use crate::latency::{LatencyModel, PreparedLatencyModel};
use crate::measurement_plan::MeasurementPlan;
use crate::random::Random;
use crate::scenario::{RunSummary, Scenario};
use crate::units::TickRate;
use clc_trace::{ClockOffset, Result};

/// Domain of the random streams of measurements.
const MEASUREMENTS: u64 = 6;
/// Pause between two exchanges, and time in which the other node answers, in picoseconds. Chosen by hand: a longer pause lets clocks drift within a
/// measurement, a shorter one is none in which a real program would send.
const PAUSE: i64 = 5_000_000;
const ANSWER: i64 = 200_000;

/// Measures the clocks of nodes against that of node 0.
#[derive(Debug, Clone, Copy)]
pub struct OffsetMeter<'a> {
    /// When and how often.
    pub plan: MeasurementPlan,
    /// How long the messages of the measurement travel.
    pub latency: &'a LatencyModel,
    /// The clocks.
    pub clock: &'a ClockSpec,
    /// Seed of clocks and delays.
    pub seed: u64,
    /// Ticks per second.
    pub resolution: u64,
    /// Expected length of the run, as the clocks were made with, in picoseconds.
    pub length: i64,
}

impl OffsetMeter<'_> {
    /// Time that one measurement takes at most, nearly always, in picoseconds.
    pub fn duration(&self) -> i64 {
        let class = &self.latency.other_node;
        let slow = class.minimum + (class.minimum as f64 * self.latency.asymmetry) as i64;
        i64::from(self.plan.exchanges) * (2 * slow + 10 * class.tail + PAUSE + ANSWER)
    }

    /// The measurements of one node over a run that ends at true time `end` (picoseconds), in ticks: global (node 0's clock)
    /// minus local clock at a local time; times strictly increase. Nodes are measured at the same time, as if each had the
    /// reference to itself; those of node 0 are all zero. A node whose clock stands still between two measurements has only
    /// the first of them.
    pub fn measure(&self, node: u32, end: i64) -> Vec<ClockOffset> {
        let rate = TickRate::new(self.resolution);
        let network = PreparedLatencyModel::new(self.latency);
        let mut random = Random::new(self.seed, &[MEASUREMENTS, u64::from(node)]);
        let mut reference = self.clock.clock(0, self.seed, self.length);
        let mut local = self.clock.clock(node, self.seed, self.length);
        let mut measured: Vec<ClockOffset> = Vec::new();
        let mut free = 0;
        for k in 0..self.plan.count {
            let share = if k == 0 { 0.0 } else { f64::from(k) / f64::from(self.plan.count - 1) };
            let at = free.max((end as f64 * share) as i64);
            let offset = if node == 0 {
                let time = rate.ticks(reference.read(at)).0.max(0) as u64;
                ClockOffset { time, offset: 0, standard_deviation: 0.0 }
            } else {
                let mut exchange = OffsetMeasurement { network: &network, rate, node, random: &mut random };
                let (offset, next) = exchange.best_of(self.plan.exchanges, at, &mut reference, &mut local);
                free = next;
                offset
            };
            if measured.last().is_none_or(|last| last.time < offset.time) {
                measured.push(offset);
            }
        }
        measured
    }
}

impl Scenario {
    fn meter(&self, length: i64) -> OffsetMeter<'_> {
        OffsetMeter {
            plan: self.measurements,
            latency: &self.latency,
            clock: &self.clock,
            seed: self.seed,
            resolution: self.resolution,
            length,
        }
    }

    /// Time that is kept free for a measurement, in picoseconds.
    pub(super) fn measurement_length(&self) -> i64 {
        self.meter(0).duration()
    }

    /// The offset measurements of a run, per process ([`OffsetMeter::measure`]). Processes of one node share its measurements.
    /// `summary` is that of the run.
    ///
    /// # Errors
    /// An invalid scenario.
    pub fn offsets(&self, summary: &RunSummary) -> Result<Vec<Vec<ClockOffset>>> {
        let length = self.estimate_length()?;
        let nodes = self.nodes();
        let count = nodes.last().map_or(0, |last| last + 1);
        let per_node: Vec<Vec<ClockOffset>> =
            (0..count).map(|node| self.meter(length).measure(node, summary.end)).collect();
        Ok(nodes.iter().filter_map(|&node| per_node.get(node as usize).cloned()).collect())
    }
}

/// Exchanges between the reference and one node.
struct OffsetMeasurement<'a> {
    network: &'a PreparedLatencyModel,
    rate: TickRate,
    node: u32,
    random: &'a mut Random,
}

impl OffsetMeasurement<'_> {
    /// Makes `count` exchanges from true time `now` on and keeps the one with the shortest round trip; also gives the true
    /// time at which they are over.
    fn best_of(
        &mut self,
        count: u32,
        mut now: i64,
        reference: &mut SimulatedClock,
        local: &mut SimulatedClock,
    ) -> (ClockOffset, i64) {
        let mut best = (i64::MAX, ClockOffset { time: 0, offset: 0, standard_deviation: 0.0 });
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut first = None;
        for _ in 0..count {
            let asked = self.rate.ticks(reference.read(now)).0;
            now += self.network.delay(0, self.node, 8, self.random) + ANSWER / 2;
            let answered = self.rate.ticks(local.read(now)).0;
            now += ANSWER / 2 + self.network.delay(self.node, 0, 8, self.random);
            let back = self.rate.ticks(reference.read(now)).0;
            now += PAUSE;
            let offset = asked + (back - asked) / 2 - answered;
            // Relative to the first one, so that the squares keep their digits.
            let deviation = (offset - *first.get_or_insert(offset)) as f64;
            sum += deviation;
            squares += deviation * deviation;
            if back - asked < best.0 {
                best = (back - asked, ClockOffset { time: answered.max(0) as u64, offset, standard_deviation: 0.0 });
            }
        }
        let n = f64::from(count.max(1));
        best.1.standard_deviation = (squares / n - (sum / n) * (sum / n)).max(0.0).sqrt();
        (best.1, now)
    }
}
