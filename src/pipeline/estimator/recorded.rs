//! What recorded offsets say, and by how much an estimate contradicts them.

use super::Estimator;
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

    /// By how much the estimate contradicts recorded offsets at most, beyond a latency: round trips are all that either is known by. That
    /// is what they differ where offsets were measured, and a part of what they differ elsewhere.
    pub(super) fn contradiction(&self, anchors: &[Anchor], grid: &Grid) -> f64 {
        let recorded = self.recorded(grid);
        let off = anchors.iter().filter_map(|anchor| {
            let (row, recorded) = (self.offsets.get(anchor.clock as usize)?, recorded.get(anchor.clock as usize)?);
            let anywhere = row.iter().zip(recorded).map(|(offset, own)| (offset - own).abs()).fold(0.0, f64::max);
            let there = (row.get(anchor.window as usize)? - anchor.value).abs();
            Some(there.max(anywhere / ELSEWHERE))
        });
        off.fold(0.0, f64::max) - self.shortest.other_node.0 as f64
    }
}
