//! Recorded offsets tell how high clocks are where messages cannot: who waits for whom, and in which order an operation asks its members, shifts a clock by the same time throughout a run, by up to half a
//! round trip, and no held-out message knows better. Offsets are measured in both directions alike.

use crate::anchor::Anchor;
use crate::observations::{Observations, Offsets};

/// Differences of offsets of the same clock, over all clocks, from which on these tell what a measurement is off by. Assumed: of fewer, some agree by chance.
const FEWEST: usize = 3;
/// A clock is off its offsets for another reason than their errors if it is by so many standard errors of their mean; so are all of them together.
const CERTAIN: f64 = 4.0;

/// By how much an estimate is off the recorded offsets of each clock, in ticks.
#[derive(Debug, Default)]
struct Misses {
    /// Clock, number of its offsets, and their mean difference from the estimate.
    clocks: Vec<(usize, f64, f64)>,
    /// Standard deviation of one offset of a clock about the mean of all of it, and how many differences tell it.
    scatter: f64,
    freedom: usize,
}

impl Misses {
    fn of(rows: &Offsets, anchors: &[Anchor], fixed: &[bool]) -> Misses {
        let (mut found, mut squares) = (Misses::default(), 0.0);
        for own in anchors.chunk_by(|one, other| one.clock == other.clock) {
            let clock = own.first().map_or(0, |anchor| anchor.clock as usize);
            let Some(row) = rows.get(clock).filter(|_| fixed.get(clock) == Some(&false)) else { continue };
            let misses: Vec<f64> =
                own.iter().filter_map(|anchor| Some(anchor.value - row.get(anchor.window as usize)?)).collect();
            let count = misses.len() as f64;
            let mean = misses.iter().sum::<f64>() / count.max(1.0);
            squares += misses.iter().map(|miss| (miss - mean).powi(2)).sum::<f64>();
            found.freedom += misses.len().saturating_sub(1);
            found.clocks.push((clock, count, mean));
        }
        found.scatter = (squares / found.freedom.max(1) as f64).sqrt();
        found
    }

    /// The clocks that are off for another reason than errors of their offsets, and by how much; none if these tell too little.
    fn shifts(&self) -> Vec<(usize, f64)> {
        let units = |&(_, count, mean): &(usize, f64, f64)| mean * count.sqrt() / self.scatter.max(f64::MIN_POSITIVE);
        let squares: f64 = self.clocks.iter().map(|clock| units(clock).powi(2)).sum();
        let all = squares > CERTAIN * CERTAIN * self.clocks.len() as f64;
        let off = |clock: &&(usize, f64, f64)| self.freedom >= FEWEST && all && units(clock).abs() > CERTAIN;
        self.clocks.iter().filter(off).map(|&(clock, _, mean)| (clock, mean)).collect()
    }
}

/// Shifts each clock that is off its recorded offsets by the same throughout the run, if these scatter by much less, to their mean; but by no more than a round trip, and not if messages contradict that, which were `seen`: then all
/// clocks stay. `precision` is what observations are known to, in ticks.
pub(super) fn level(rows: &mut Offsets, seen: &Observations, anchors: &[Anchor], fixed: &[bool], precision: f64) {
    let Some(half_trip) = seen.quick_half_trip() else { return };
    let shifts = Misses::of(rows, anchors, fixed).shifts().into_iter();
    let shifts: Vec<(usize, f64)> = shifts.filter(|(_, shift)| shift.abs() <= 2.0 * half_trip).collect();
    if shifts.iter().all(|(_, shift)| shift.abs() <= precision) {
        return;
    }
    let windows = rows.first().map_or(0, Vec::len);
    let contradictions = |rows: &Offsets| {
        let flat: Vec<f64> = rows.iter().flatten().copied().collect();
        seen.one_way.iter().filter(|seen| seen.travel(&flat, windows) < -precision).count()
    };
    let mut levelled = rows.clone();
    for (clock, shift) in shifts {
        levelled[clock].iter_mut().for_each(|offset| *offset += shift);
    }
    if contradictions(&levelled) <= contradictions(rows) {
        *rows = levelled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observations::OneWay;

    /// Offsets of clocks 1 and 2, whose estimates are 0 throughout.
    fn anchors(of: [[f64; 3]; 2]) -> Vec<Anchor> {
        let clock = |clock: usize| {
            let value = move |at: usize| of[clock][at];
            (0..3).map(move |at| Anchor {
                clock: clock as u32 + 1,
                window: 40 * at as u32,
                value: value(at),
                sigma: 1.0,
                bound: 0.0,
            })
        };
        (0..2).flat_map(clock).collect()
    }

    /// What messages between clocks 0 and 1 say that took at least so long in either direction, where half their shortest round trip is that.
    fn seen(least: f64, half_trip: f64) -> Observations {
        let message = |a, b| OneWay::new(a, b, 50, -least);
        let shortest_trips = [((0, 1), half_trip)].into_iter().collect();
        Observations { one_way: vec![message(0, 1), message(1, 0)], shortest_trips, ..Observations::default() }
    }

    /// The first value of each clock once they are level.
    fn by_offsets(anchors: &[Anchor], seen: &Observations) -> [f64; 3] {
        let mut rows = vec![vec![0.0; 100]; 3];
        level(&mut rows, seen, anchors, &[true, false, false], 10.0);
        assert!(rows.iter().all(|row| row.iter().all(|value| *value == row[0])));
        [rows[0][0], rows[1][0], rows[2][0]]
    }

    /// The same with all of these offsets.
    fn levelled(of: [[f64; 3]; 2], least: f64, half_trip: f64) -> [f64; 3] {
        by_offsets(&anchors(of), &seen(least, half_trip))
    }

    #[test]
    fn clocks_that_are_off_all_their_offsets_by_the_same_are_shifted() {
        let off = [[990.0, 1010.0, 1000.0], [-5.0, 5.0, 0.0]];
        assert_eq!(levelled(off, 2000.0, 800.0), [0.0, 1000.0, 0.0]);
        // By more than messages leave room for.
        assert_eq!(levelled(off, 2000.0, 400.0), [0.0; 3]);
        // Messages would come before they were sent.
        assert_eq!(levelled(off, 500.0, 800.0), [0.0; 3]);
    }

    #[test]
    fn offsets_that_scatter_shift_nothing() {
        assert_eq!(levelled([[300.0, 1700.0, 1000.0], [-5.0, 5.0, 0.0]], 2000.0, 800.0), [0.0; 3]);
        // By next to nothing.
        assert_eq!(levelled([[9.0, 9.1, 9.0], [0.0, 0.1, 0.0]], 2000.0, 800.0), [0.0; 3]);
        // Two offsets of one clock may agree by chance, and so may three; of two clocks with two and three of them that is unlikely.
        let all = anchors([[1000.0; 3]; 2]);
        let shifted = |number: usize| by_offsets(&all[..number], &seen(2000.0, 800.0));
        assert_eq!((shifted(2), shifted(3)), ([0.0; 3], [0.0; 3]));
        assert_eq!(shifted(5), [0.0, 1000.0, 1000.0]);
    }
}
