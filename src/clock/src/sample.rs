//! Some clocks of many, by which models of all are compared ([`super::selection`]): how stiff clocks are, how messages are delayed and which windows
//! they support does not take hundreds of clocks to tell.

use super::anchor::{Anchor, RecordedLevels};
use super::graph::components;
use super::observations::{Observations, Offsets, OneWay, TwoWay};
use super::view::TrialData;
use super::waits::QuickestWaits;
use super::windows::BoundTable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Clocks of a sample. Halo exchanges of 64 nodes with collective operations: clocks come out to 64 ns between processes if models are compared by all of
/// them, by 24 of them to the same, by 16 to 68. With 1,024 nodes there is no difference.
const MOST: usize = 16;

/// Clocks that have much to do with each other, one of them fixed if any is.
#[derive(Debug)]
pub(super) struct ClockSample {
    /// In rising order.
    clocks: Vec<u32>,
    /// The place of each clock of all among them.
    places: Vec<Option<u32>>,
}

impl ClockSample {
    /// From the clocks of `observations`. None if there are few, or if those of the sample are not held from both sides among each other as they are
    /// among all: a ring is only closed by all of its clocks.
    pub(super) fn of(observations: &Observations, fixed: &[bool]) -> Option<ClockSample> {
        if fixed.len() <= MOST {
            return None;
        }
        let mut links: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for seen in &observations.two_way {
            *links.entry((seen.a, seen.b)).or_default() += 1;
        }
        let mut neighbours: Vec<Vec<(u32, u64)>> = vec![Vec::new(); fixed.len()];
        for (&(a, b), &weight) in &links {
            neighbours[a as usize].push((b, weight));
            neighbours[b as usize].push((a, weight));
        }
        // From a fixed clock along the strongest links (Prim), the first clock where several are as strong.
        let begin = fixed.iter().position(|fixed| *fixed).unwrap_or(0);
        let mut links: Vec<u64> = vec![0; fixed.len()];
        let mut places: Vec<Option<u32>> = vec![None; fixed.len()];
        let mut clocks = Vec::with_capacity(MOST);
        let mut next = Some(begin);
        while let Some(clock) = next.filter(|_| clocks.len() < MOST) {
            clocks.push(clock as u32);
            places[clock] = Some(0);
            for &(other, weight) in &neighbours[clock] {
                links[other as usize] = links[other as usize].max(weight);
            }
            let outside = (0..fixed.len()).filter(|clock| places[*clock].is_none() && links[*clock] > 0);
            next = outside.max_by_key(|clock| (links[*clock], std::cmp::Reverse(*clock)));
        }
        clocks.sort_unstable();
        clocks.iter().enumerate().for_each(|(place, clock)| places[*clock as usize] = Some(place as u32));
        let sample = ClockSample { clocks, places };
        let directions = observations.directions().pairs().iter().filter_map(|pair| sample.pair(*pair));
        let held = components(sample.clocks.len(), directions);
        (sample.clocks.len() == MOST && held.iter().all(|of| *of == 0)).then_some(sample)
    }

    fn place(&self, clock: u32) -> Option<u32> {
        self.places.get(clock as usize).copied().flatten()
    }

    fn pair(&self, (a, b): (u32, u32)) -> Option<(u32, u32)> {
        Some((self.place(a)?, self.place(b)?))
    }

    /// What there is of all clocks, of those of the sample.
    pub(super) fn rows<T: Clone>(&self, of_all: &[T]) -> Vec<T> {
        self.clocks.iter().filter_map(|clock| of_all.get(*clock as usize)).cloned().collect()
    }

    /// The same to be changed.
    pub(super) fn rows_of<'a, T>(&self, of_all: &'a mut [T]) -> Vec<&'a mut T> {
        let with_clock = of_all.iter_mut().enumerate();
        with_clock.filter(|(clock, _)| self.place(*clock as u32).is_some()).map(|(_, row)| row).collect()
    }

    /// The bounds between these clocks.
    pub(super) fn table(&self, of_all: &BoundTable) -> BoundTable {
        let between = |from: u32, to: u32| self.pair((from, to)).is_some();
        let pairs = of_all.pairs.iter().filter(|(pair, _)| between(pair.0, pair.1));
        let classes = of_all.waits.classes.iter().filter(|(class, _)| between(class.from, class.to));
        BoundTable {
            pairs: pairs.map(|(pair, bounds)| (*pair, bounds.clone())).collect(),
            shared: of_all.shared.clone(),
            waits: QuickestWaits {
                classes: classes.map(|(class, bounds)| (*class, bounds.clone())).collect(),
                ..of_all.waits
            },
        }
    }

    /// What these clocks observe of each other.
    pub(super) fn view(&self, view: &TrialData) -> TrialData {
        let all = &view.observations;
        let two_way = all.two_way.iter().filter_map(|seen| {
            let (a, b) = self.pair((seen.a, seen.b))?;
            Some(TwoWay { a, b, ..*seen })
        });
        let one_way = all.one_way.iter().filter_map(|seen| {
            let (a, b) = self.pair((seen.a, seen.b))?;
            Some(OneWay { a, b, ..*seen })
        });
        let trips = |of_all: &BTreeMap<(u32, u32), f64>| {
            of_all.iter().filter_map(|(pair, trip)| Some((self.pair(*pair)?, *trip))).collect()
        };
        let anchors =
            view.anchors.iter().filter_map(|anchor| Some(Anchor { clock: self.place(anchor.clock)?, ..*anchor }));
        let anchors: Vec<Anchor> = anchors.collect();
        let observations = Observations {
            levels: RecordedLevels {
                anchors: anchors.clone(),
                reference: self.place(all.levels.reference).unwrap_or(u32::MAX),
                long: all.levels.long,
            },
            two_way: two_way.collect(),
            one_way: one_way.collect(),
            component: vec![0; self.clocks.len()],
            one_sided: all.one_sided.iter().filter_map(|pair| self.pair(*pair)).collect::<BTreeSet<_>>(),
            indirect: all.indirect.iter().filter_map(|pair| self.pair(*pair)).collect::<BTreeSet<_>>(),
            half_trips: trips(&all.half_trips),
            shortest_trips: trips(&all.shortest_trips),
            variations: trips(&all.variations),
            directions: OnceLock::new(),
            ..*all
        };
        let otherwise: Option<Offsets> = view.otherwise.as_ref().map(|rows| self.rows(rows));
        TrialData { grid: view.grid, observations, now: self.rows(&view.now), otherwise, anchors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bound;
    use crate::grid::Grid;
    use crate::kind::BoundKind;

    /// Clocks with messages in both directions in so many windows of each of some pairs.
    fn observed(links: impl IntoIterator<Item = (u32, u32, u32)>) -> Observations {
        let mut all = Observations::default();
        for (a, b, windows) in links {
            for window in 0..windows {
                let trip = TwoWay { a, b, window, middle: f64::from(b), half_trip: 5.0, awaited: true, sigma: 1.0 };
                all.two_way.push(trip);
                all.one_way.push(OneWay::new(a, b, window, 1.0));
                all.one_way.push(OneWay::new(b, a, window, -1.0));
            }
            all.half_trips.insert((a, b), 5.0);
        }
        all.one_way.sort_by_key(|seen| (seen.a, seen.b, seen.window));
        all
    }

    fn fixed(clocks: usize, which: usize) -> Vec<bool> {
        (0..clocks).map(|clock| clock == which).collect()
    }

    #[test]
    fn a_sample_goes_along_the_strongest_links_from_the_fixed_clock() {
        // A chain whose links are the stronger the farther to the right; some more to the left.
        let chain = (0..99).map(|clock| (clock, clock + 1, 2 + clock));
        let sample = ClockSample::of(&observed(chain), &fixed(100, 50)).unwrap();
        assert_eq!(sample.clocks, (50..50 + MOST as u32).collect::<Vec<_>>());
        let rows: Vec<usize> = sample.rows(&(0..100).collect::<Vec<_>>());
        assert_eq!(rows, (50..50 + MOST).collect::<Vec<_>>());
    }

    #[test]
    fn bounds_and_rows_are_those_of_its_clocks() {
        let chain = (0..99).map(|clock| (clock, clock + 1, 2 + clock));
        let sample = ClockSample::of(&observed(chain), &fixed(100, 50)).unwrap();
        let mut table = BoundTable::default();
        for clock in 0..99 {
            let bound = Bound { distance: 5, at: 7, kind: BoundKind::MESSAGE };
            table.pairs.entry((clock, clock + 1)).or_default().add(0, bound, 1);
        }
        let last = 50 + MOST as u32 - 1;
        let pairs: Vec<_> = sample.table(&table).pairs.into_keys().collect();
        assert_eq!(pairs, (50..last).map(|clock| (clock, clock + 1)).collect::<Vec<_>>());
        let mut rows: Vec<u32> = (0..100).collect();
        sample.rows_of(&mut rows).into_iter().for_each(|row| *row += 1000);
        let changed = (0..100).map(|clock| if (50..=last).contains(&clock) { clock + 1000 } else { clock });
        assert_eq!(rows, changed.collect::<Vec<_>>());
    }

    #[test]
    fn few_clocks_or_such_that_only_all_of_them_hold_make_none() {
        let chain = |clocks: u32| (0..clocks - 1).map(|clock| (clock, clock + 1, 3));
        assert!(ClockSample::of(&observed(chain(MOST as u32)), &fixed(MOST, 0)).is_none());
        // Messages in both directions, but of few clocks only.
        assert!(ClockSample::of(&observed(chain(MOST as u32 - 1)), &fixed(64, 0)).is_none());
        // A ring in one direction.
        let ring = (0..64).map(|clock| OneWay::new(clock, (clock + 1) % 64, 0, 0.0));
        let mut ring = Observations { one_way: ring.collect(), ..Observations::default() };
        ring.one_way.sort_by_key(|seen| (seen.a, seen.b));
        assert!(ClockSample::of(&ring, &fixed(64, 0)).is_none());
    }

    #[test]
    fn what_they_observe_is_told_of_their_places() {
        let clocks = 40;
        let observations = observed((0..clocks as u32 - 1).map(|clock| (clock, clock + 1, 2)));
        let sample = ClockSample::of(&observations, &fixed(clocks, 10)).unwrap();
        let first = sample.clocks[0];
        let anchors = [clocks as u32 - 1, first + 2]
            .map(|clock| Anchor { clock, window: 1, value: 7.0, sigma: 1.0, bound: 0.0 })
            .to_vec();
        let now: Offsets = (0..clocks).map(|clock| vec![clock as f64; 2]).collect();
        let view = TrialData { grid: Grid::new(0, 99, 2), observations, now, otherwise: None, anchors };
        let seen = sample.view(&view);
        assert_eq!(seen.now.len(), MOST);
        assert_eq!(seen.now[1], [f64::from(first) + 1.0; 2]);
        assert_eq!(seen.anchors.iter().map(|anchor| anchor.clock).collect::<Vec<_>>(), [2]);
        let among = |seen: &&OneWay| sample.place(seen.a).is_some() && sample.place(seen.b).is_some();
        assert_eq!(seen.observations.one_way.len(), view.observations.one_way.iter().filter(among).count());
        assert!(seen.observations.one_way.is_sorted_by_key(|seen| (seen.a, seen.b, seen.window)));
        let pairs = seen.observations.directions().pairs().to_vec();
        assert_eq!(pairs.len(), 2 * (MOST - 1));
        assert!(pairs.iter().all(|(a, b)| a.abs_diff(*b) == 1));
        assert_eq!(seen.observations.half_trips.len(), MOST - 1);
        assert_eq!(seen.observations.component, [0; MOST]);
    }
}
