//! What recorded offsets say, and by how much an estimate contradicts them.

use super::Estimator;
use crate::pipeline::choice::Fit;
use crate::pipeline::clocks::ClockMap;
use crate::presync::RANGE;
use crate::presync::network::Anchor;
use crate::presync::observations::Offsets;
use crate::presync::steps::stepped;
use crate::presync::windows::Grid;
use crate::trace::Ticks;

/// Recorded offsets are trusted to this many floors of the observations.
const ANCHOR: f64 = 3.0;
/// Between measurements and beyond them, recorded clocks may be off by this many times what they are where offsets were measured.
const ELSEWHERE: f64 = 3.0;

impl Estimator {
    /// Recorded offsets as observations. A clock goes through its own already: its correction there is zero.
    pub(super) fn anchors(&self, map: &ClockMap, grid: &Grid, floor: f64) -> Vec<Anchor> {
        let mut anchors = Vec::new();
        for (clock, offsets) in map.offsets.iter().enumerate().filter(|(clock, _)| *clock != self.reference) {
            let constant = self.constants.get(clock).copied().unwrap_or(0);
            for offset in offsets {
                let time = map.bases[clock].map(Ticks(offset.time.min(RANGE as u64) as i64)).0;
                anchors.push(Anchor {
                    clock: clock as u32,
                    window: grid.window(time) as u32,
                    value: -(constant as f64) - self.step_at(clock, time),
                    sigma: (ANCHOR * floor).max(offset.standard_deviation),
                });
            }
        }
        anchors
    }

    /// What the steps of a clock add to its correction at a time of the recorded clock, in ticks.
    pub(super) fn step_at(&self, clock: usize, time: i64) -> f64 {
        self.steps.get(clock).map_or(0.0, |steps| (stepped(steps, time) - time) as f64)
    }

    /// What corrections would be that change nothing.
    pub(super) fn recorded(&self, grid: &Grid) -> Offsets {
        let value = |clock: usize, window: usize| {
            let constant = self.constants.get(clock).copied().unwrap_or(0);
            -(constant as f64) - self.step_at(clock, grid.centre(window))
        };
        (0..self.constants.len()).map(|clock| (0..grid.count).map(|window| value(clock, window)).collect()).collect()
    }

    /// How the estimate compares with the recorded clocks, as far as it can be told without their violations.
    pub(super) fn fit(&self, anchors: &[Anchor], grid: &Grid) -> Fit {
        let recorded = self.recorded(grid);
        let apart = |clock: usize| -> f64 {
            let rows = self.offsets.get(clock).into_iter().flatten().zip(recorded.get(clock).into_iter().flatten());
            rows.map(|(offset, own)| (offset - own).abs()).fold(0.0, f64::max)
        };
        // By anchor: there, and anywhere.
        let off = |anchor: &Anchor| {
            let there = self.offsets.get(anchor.clock as usize)?.get(anchor.window as usize)? - anchor.value;
            Some((there.abs(), apart(anchor.clock as usize)))
        };
        let off: Vec<(f64, f64)> = anchors.iter().filter_map(off).collect();
        let most = |of: &dyn Fn(&(f64, f64)) -> f64| off.iter().map(of).fold(0.0, f64::max);
        let mut trips: Vec<f64> = self.observations.shortest_trips.values().copied().collect();
        trips.sort_by(f64::total_cmp);
        Fit {
            misfit: self.misfits.map_or(1.0, |(estimated, recorded)| estimated / recorded.max(f64::MIN_POSITIVE)),
            // Beyond a latency, since round trips are all that either is known by.
            contradiction: most(&|off| off.0.max(off.1 / ELSEWHERE)) - self.shortest.other_node.0 as f64,
            measured: (!off.is_empty()).then(|| most(&|off| off.0)),
            anywhere: most(&|off| off.1),
            half_trip: trips.get(trips.len() / 4).copied().unwrap_or(0.0),
            gain: self.gain,
        }
    }
}
