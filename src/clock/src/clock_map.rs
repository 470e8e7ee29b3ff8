//! Which timelines share a clock.

use crate::{LinearClock, RANGE};
use clc_trace::{ClockOffset, OwnTimeline, Result, Ticks, TimelineNumber};
use serde::{Deserialize, Serialize};

/// Which clock every timeline has, and what was recorded about it. The clocks of nodes come first.
#[derive(Debug, Clone, Default)]
pub struct ClockMap {
    /// Clock of every timeline of the trace.
    pub of_timeline: Vec<u32>,
    /// The first timeline of each clock.
    pub first_timeline: Vec<u32>,
    /// Recorded offsets of each clock: those of the first of its timelines that has any.
    pub offsets: Vec<Vec<ClockOffset>>,
    /// The same as a function: joined by lines, or by curves ([`ClockMap::join_by_curves`]).
    pub bases: Vec<LinearClock>,
    /// What each base adds to a clock so that all begin together ([`ClockMap::begin_together`]), in ticks; nothing as a rule.
    pub together: Vec<i64>,
    /// Locations with timelines of their own, and their recorded clocks: these are refined as that of their process.
    pub own: Vec<(OwnTimeline, LinearClock)>,
}

/// Beyond measurements a clock is taken to drift by no more than this part. Chosen by hand: a smaller value calls a clock of its own what only
/// drifts, a larger one overlooks clocks that differ.
const DRIFTING: f64 = 1e-4;

/// Recorded offsets of one timeline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedOffsets {
    /// The timeline.
    pub timeline: TimelineNumber,
    /// In order of time.
    pub offsets: Vec<ClockOffset>,
}

impl ClockMap {
    /// One clock per node, but one per timeline on the nodes in `split` and on nodes whose recorded offsets differ by more than
    /// `apart` ticks.
    ///
    /// `nodes` has the node of every process's timeline; `recorded` is in order of timelines, with those of `own` behind all others.
    ///
    /// # Errors
    /// As [`LinearClock::new`].
    pub fn new(
        nodes: &[u32],
        recorded: &[RecordedOffsets],
        own: &[OwnTimeline],
        split: &[u32],
        apart: f64,
    ) -> Result<ClockMap> {
        let (recorded, recorded_own) =
            recorded.split_at(recorded.partition_point(|r| r.timeline.place() < nodes.len()));
        let count = nodes.iter().map(|node| *node as usize + 1).max().unwrap_or(0);
        let mut map = ClockMap::default();
        let mut separate: Vec<bool> = vec![false; count];
        split.iter().for_each(|&node| separate[node as usize] = true);
        let mut first: Vec<Option<(&[ClockOffset], LinearClock)>> = vec![None; count];
        for record in recorded.iter().filter(|record| !record.offsets.is_empty()) {
            let node = nodes[record.timeline] as usize;
            let clock = LinearClock::new(&record.offsets)?;
            match &first[node] {
                Some((offsets, known)) => {
                    separate[node] |= differ(&record.offsets, offsets, known, apart);
                    separate[node] |= differ(offsets, &record.offsets, &clock, apart);
                }
                None => first[node] = Some((&record.offsets, clock)),
            }
        }
        let mut known: Vec<Option<u32>> = vec![None; count];
        for (timeline, &node) in nodes.iter().enumerate() {
            let node = node as usize;
            let clock = match known[node] {
                Some(clock) if !separate[node] => clock,
                _ => {
                    let clock = map.first_timeline.len() as u32;
                    map.first_timeline.push(timeline as u32);
                    known[node] = Some(clock);
                    clock
                }
            };
            map.of_timeline.push(clock);
        }
        map.offsets = vec![Vec::new(); map.first_timeline.len()];
        for record in recorded {
            let offsets = &mut map.offsets[map.of_timeline[record.timeline] as usize];
            if offsets.is_empty() {
                offsets.clone_from(&record.offsets);
            }
        }
        map.bases = map.offsets.iter().map(|offsets| LinearClock::new(offsets)).collect::<Result<_>>()?;
        for (number, own) in (nodes.len() as u32..).map(TimelineNumber).zip(own) {
            let offsets = recorded_own.iter().find(|record| record.timeline == number);
            let clock = LinearClock::new(offsets.map_or(&[], |record| &record.offsets))?;
            map.own.push((own.clone(), clock));
            map.of_timeline.push(map.of_timeline[own.of]);
        }
        Ok(map)
    }

    /// Takes all clocks to begin together, as processes of one program do: each base adds what the first event of its timelines is before that of the first clock. For clocks that nobody has measured and by which some
    /// processes had ended before others began, so that nothing that happened together is in the same windows. `begins` has the time of the first event of every process's timeline, if it has any.
    ///
    /// # Errors
    /// As [`LinearClock::new`].
    pub fn begin_together(&mut self, begins: &[Option<i64>]) -> Result<()> {
        let mut first: Vec<Option<i64>> = vec![None; self.bases.len()];
        for (clock, begin) in self.of_timeline.iter().zip(begins) {
            let known = &mut first[*clock as usize];
            *known = known.iter().chain(begin).min().copied();
        }
        let Some(origin) = first.iter().flatten().next().copied() else { return Ok(()) };
        self.together = first.iter().map(|begin| begin.map_or(0, |begin| origin.saturating_sub(begin))).collect();
        let base = |offset: i64| LinearClock::new(&[ClockOffset { time: 0, offset, standard_deviation: 0.0 }]);
        self.bases = self.together.iter().map(|offset| base(*offset)).collect::<Result<_>>()?;
        for (own, clock) in &mut self.own {
            *clock = base(self.together[self.of_timeline[own.of] as usize])?;
        }
        Ok(())
    }

    /// Joins the recorded offsets of clocks by `curves`, one per process's timeline that has any: these are what the clocks were recorded to be then.
    pub fn join_by_curves(&mut self, curves: &[Option<LinearClock>]) {
        for (base, first) in self.bases.iter_mut().zip(&self.first_timeline) {
            if let Some(curve) = curves.get(*first as usize).and_then(Option::as_ref) {
                base.clone_from(curve);
            }
        }
    }

    /// Whether several processes have this clock, so that each can be given one of its own. Locations with timelines of their own keep the clock of their process.
    pub(crate) fn can_be_split(&self, clock: u32) -> bool {
        let processes = self.of_timeline.len() - self.own.len();
        self.of_timeline[..processes].iter().filter(|&&own| own == clock).nth(1).is_some()
    }
}

/// Whether any of these offsets is farther than `apart` ticks from a clock, beyond whose own measurements it can drift.
fn differ(offsets: &[ClockOffset], measured: &[ClockOffset], clock: &LinearClock, apart: f64) -> bool {
    offsets.iter().any(|offset| {
        let beyond = |own: &ClockOffset| offset.time.abs_diff(own.time);
        let inside = measured.first().is_some_and(|first| first.time <= offset.time)
            && measured.last().is_some_and(|last| offset.time <= last.time);
        let beyond = if inside { 0 } else { measured.iter().map(beyond).min().unwrap_or(0) };
        let time = offset.time.min(RANGE as u64) as i64;
        let off = clock.map(Ticks(time)).0 as f64 - (time as f64 + offset.offset as f64);
        off.abs() > apart + DRIFTING * beyond as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of one timeline, as (time, offset).
    fn recorded(timeline: u32, offsets: &[(u64, i64)]) -> RecordedOffsets {
        let offsets = offsets.iter().map(|&(time, offset)| ClockOffset { time, offset, standard_deviation: 0.0 });
        RecordedOffsets { timeline: TimelineNumber(timeline), offsets: offsets.collect() }
    }

    /// How many clocks the two processes of one node have.
    fn clocks(one: &[(u64, i64)], other: &[(u64, i64)]) -> usize {
        let records = [recorded(0, one), recorded(1, other)];
        ClockMap::new(&[0, 0], &records, &[], &[], 20.0).expect("a map").bases.len()
    }

    #[test]
    fn processes_whose_recorded_offsets_agree_share_a_clock() {
        assert_eq!(clocks(&[(0, 5), (1_000_000, 105)], &[(10, 15), (1_000_010, 115)]), 1);
        assert_eq!(clocks(&[(0, 5), (1_000_000, 105)], &[]), 1);
        // Beyond its measurements a clock may drift.
        assert_eq!(clocks(&[(0, 5)], &[(0, 5), (1_000_000, 95)]), 1);
    }

    #[test]
    fn only_clocks_of_several_processes_can_be_split() {
        let thread = |of: u32| OwnTimeline { of: TimelineNumber(of), location: 1 };
        let map = |split: &[u32]| ClockMap::new(&[0, 1, 1], &[], &[thread(0), thread(1)], split, 20.0).expect("a map");
        assert_eq!([0, 1].map(|clock| map(&[]).can_be_split(clock)), [false, true]);
        assert_eq!([0, 1, 2].map(|clock| map(&[1]).can_be_split(clock)), [false; 3]);
    }

    #[test]
    fn clocks_may_begin_together() {
        let thread = OwnTimeline { of: TimelineNumber(2), location: 1 };
        let mut map = ClockMap::new(&[0, 1, 1, 2], &[], &[thread], &[], 20.0).expect("a map");
        map.begin_together(&[None; 4]).expect("nothing to do");
        assert!(map.together.is_empty());
        map.begin_together(&[Some(1000), Some(70), Some(50), None]).expect("a map");
        assert_eq!(map.together, [0, 950, 0]);
        let shown = |clock: &LinearClock| clock.map(Ticks(60)).0;
        assert_eq!(map.bases.iter().map(shown).collect::<Vec<i64>>(), [60, 1010, 60]);
        assert_eq!(shown(&map.own[0].1), 1010);
    }

    #[test]
    fn clocks_may_have_been_recorded_as_curves() {
        let records = [recorded(0, &[(0, 5), (1000, 25)]), recorded(2, &[(0, 7), (1000, 7)])];
        let mut map = ClockMap::new(&[0, 0, 1], &records, &[], &[], 20.0).expect("a map");
        let curve = LinearClock::through(&[(Ticks(0), Ticks(5)), (Ticks(500), Ticks(40)), (Ticks(1000), Ticks(25))]);
        map.join_by_curves(&[Some(curve.expect("a clock")), None, None]);
        let offset = |clock: usize| map.bases[clock].map(Ticks(500)).0 - 500;
        assert_eq!([offset(0), offset(1)], [40, 7]);
    }

    #[test]
    fn processes_whose_recorded_offsets_differ_do_not() {
        assert_eq!(clocks(&[(0, 5), (1_000_000, 105)], &[(0, 45), (1_000_000, 145)]), 2);
        // They agree at first.
        assert_eq!(clocks(&[(0, 5), (1_000_000, 105)], &[(0, 5), (1_000_000, 1005)]), 2);
        // Between the measurements of the other.
        assert_eq!(clocks(&[(0, 5), (500_000, 305), (1_000_000, 5)], &[(0, 5), (1_000_000, 5)]), 2);
        assert_eq!(clocks(&[(0, 5), (1_000_000, 5)], &[(0, 5), (500_000, 305), (1_000_000, 5)]), 2);
        // Farther than it can have drifted.
        assert_eq!(clocks(&[(0, 5)], &[(0, 5), (1_000_000, 205)]), 2);
    }
}
