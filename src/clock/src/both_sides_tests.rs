use super::*;
use crate::waits::Class;
use proptest::prelude::*;

const WINDOWS: usize = 200;
const GRID: Grid = Grid { first: 0, width: 1000, count: WINDOWS };

/// What the correction of the second clock is: zero where offsets were recorded, at both ends.
fn truth(window: usize) -> f64 {
    20_000.0 * (window as f64 * std::f64::consts::TAU / (WINDOWS - 1) as f64).sin()
}

/// One pair of clocks per entry of `pairs`, each with the windows in which receivers waited, for messages that take 2000 and up to 60 more, and those in which senders were
/// blocked, whose calls end 9000 after the post.
fn table(pairs: &[(&[usize], &[usize])]) -> BoundTable {
    let mut table = BoundTable::default();
    for (index, (waited, blocked)) in pairs.iter().enumerate() {
        let (a, b) = (2 * index as u32, 2 * index as u32 + 1);
        let mut add = |class: Class, window: usize, distance: f64| {
            let bound = Bound { distance: distance as i64, at: GRID.centre(window), kind: class.kind };
            table.waits.add(class, window, bound);
        };
        for &window in *waited {
            let noise = (window * 37 % 61) as f64;
            let late = if window == 60 { 50_000.0 } else { 0.0 };
            let class = Class { from: a, to: b, kind: BoundKind::waited(100) };
            add(class, window, 2000.0 + noise + late - truth(window));
        }
        for &window in *blocked {
            add(Class { from: b, to: a, kind: BoundKind::blocked(9_000_000) }, window, 9000.0 + truth(window));
        }
    }
    table
}

/// Recorded offsets of all clocks at both ends of the run.
fn anchors(pairs: usize) -> Vec<Anchor> {
    let ends =
        |clock| [0, WINDOWS as u32 - 1].map(|window| Anchor { clock, window, value: 0.0, sigma: 1.0, bound: 0.0 });
    (0..2 * pairs as u32).flat_map(ends).collect()
}

/// By how much the middles of both directions are off at most, and in how many windows there are both.
fn error(table: &BoundTable, a: u32) -> (f64, usize) {
    let (there, back) = (&table.pairs[&(a, a + 1)], &table.pairs[&(a + 1, a)]);
    let off = there.windows().iter().filter_map(|(window, there)| {
        let back = back.get(*window)?;
        Some(((back.distance - there.distance) as f64 / 2.0 - truth(*window as usize)).abs())
    });
    off.fold((0.0, 0), |(most, count), off| (most.max(off), count + 1))
}

#[test]
fn messages_of_one_way_hold_clocks_from_both_sides() {
    let all: Vec<usize> = (0..WINDOWS).collect();
    let now = vec![vec![0.0; WINDOWS]; 2];
    let found = from_both_sides(&table(&[(&all, &[])]), &GRID, &now, &anchors(1), usize::MAX, 1_000_000_000)
        .expect("observations");
    let (off, count) = error(&found, 0);
    // One message came late: it is left out.
    assert!(off < 250.0 && count == WINDOWS - 1, "{off} {count}");
    // The same clocks, half of what they are off known already.
    let half = vec![vec![0.0; WINDOWS], (0..WINDOWS).map(|window| truth(window) / 2.0).collect()];
    let mut measured = table(&[(&all, &[])]);
    let again = measured.waits.classes.values_mut();
    again.for_each(|bounds| *bounds = shifted(bounds, |window| truth(window) / 2.0));
    let found = from_both_sides(&measured, &GRID, &half, &anchors(1), usize::MAX, 1_000_000_000).expect("observations");
    let rest = |window: u32, bound: &Bound| {
        let back = found.pairs[&(1, 0)].get(window).map_or(0, |back| back.distance);
        (back - bound.distance) as f64 / 2.0 - truth(window as usize) / 2.0
    };
    assert!(found.pairs[&(0, 1)].windows().iter().all(|(window, bound)| rest(*window, bound).abs() < 250.0));
}

/// Distances with a clock of the receiver that is put forward.
fn shifted(bounds: &DirectedBounds, by: impl Fn(usize) -> f64) -> DirectedBounds {
    let mut other = DirectedBounds::default();
    for &(window, bound) in bounds.windows() {
        let distance = bound.distance + by(window as usize) as i64;
        other.add(window as usize, Bound { distance, ..bound }, 1);
    }
    other
}

#[test]
fn what_kinds_take_is_learned_from_all_pairs() {
    let (all, few): (Vec<usize>, Vec<usize>) = ((0..WINDOWS).collect(), (0..WINDOWS).step_by(4).collect());
    let late: Vec<usize> = (70..130).collect();
    // The last pair has nothing near recorded offsets, and shares no window with another class.
    let pairs: [(&[usize], &[usize]); 4] = [(&all, &few), (&all, &[]), (&few, &all), (&late, &[])];
    let now = vec![vec![0.0; WINDOWS]; 8];
    let mut anchors = anchors(4);
    // Offsets that are off by some.
    anchors.iter_mut().for_each(|anchor| anchor.value += f64::from(anchor.clock * 7919 % 5) * 100.0);
    let found =
        from_both_sides(&table(&pairs), &GRID, &now, &anchors, usize::MAX, 1_000_000_000).expect("observations");
    for pair in 0..3 {
        let (off, count) = error(&found, 2 * pair);
        assert!(off < 500.0 && count > 100, "{pair}: {off} {count}");
    }
    assert!(found.pairs[&(6, 7)].windows().len() > 50);
}

#[test]
fn what_tells_clocks_for_a_while_only_does_not_replace_recorded_offsets() {
    let now = vec![vec![0.0; WINDOWS]; 2];
    let waited = |windows: &[usize], anchors: &[Anchor]| {
        let mut table = table(&[(windows, &[])]);
        for window in 0..WINDOWS {
            // Late all the time: the receiver is behind.
            let bound = Bound { distance: 90_000, at: GRID.centre(window), kind: BoundKind::MESSAGE };
            table.pairs.entry((0, 1)).or_default().add(window, bound, 1);
        }
        let found = from_both_sides(&table, &GRID, &now, anchors, usize::MAX, 1_000_000_000).expect("a table");
        found.pairs.get(&(1, 0)).map_or(0, |back| back.windows().len())
    };
    let (begin, often): (Vec<usize>, Vec<usize>) = ((0..40).collect(), (0..WINDOWS).step_by(4).collect());
    assert_eq!(waited(&begin, &anchors(1)), 0);
    assert!(waited(&often, &anchors(1)) > 10);
    assert!(waited(&begin, &[]) > 30);
}

#[test]
fn little_or_no_evidence_adds_nothing() {
    let now = vec![vec![0.0; WINDOWS]; 2];
    assert_eq!(from_both_sides(&BoundTable::default(), &GRID, &now, &anchors(1), 0, 1_000_000_000), None);
    let few: Vec<usize> = (0..FEWEST - 1).collect();
    assert_eq!(from_both_sides(&table(&[(&few, &[])]), &GRID, &now, &anchors(1), 0, 1_000_000_000), None);
}

#[test]
fn only_traffic_without_a_way_back_is_looked_at() {
    let wanted_of = |pairs: &[(u32, u32, u64)]| {
        let mut table = BoundTable::default();
        for &(a, b, messages) in pairs {
            let bound = Bound { distance: 0, at: 0, kind: BoundKind::MESSAGE };
            table.pairs.entry((a, b)).or_default().add(0, bound, messages);
        }
        wanted(&table, 4, 1_000_000_000).one_way.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(wanted_of(&[(0, 1, 100), (1, 0, 100), (1, 2, 50), (2, 1, 90)]), []);
    assert_eq!(wanted_of(&[(0, 1, 100), (1, 2, 100), (2, 3, 100)]), [(0, 1), (1, 2), (2, 3)]);
    // A ring is a way back, a few collective operations are none.
    assert_eq!(wanted_of(&[(0, 1, 100), (1, 2, 100), (2, 0, 100)]), []);
    assert_eq!(wanted_of(&[(0, 1, 100), (1, 2, 100), (2, 0, 3), (1, 0, 3)]), [(0, 1), (1, 2)]);
    assert_eq!(wanted_of(&[]), []);
}

proptest! {
    #[test]
    fn any_series_have_values(points in prop::collection::btree_map(0u32..300, -1e9f64..1e9, 0..40), window in 0u32..300, most in 0u32..300) {
        let points: Vec<(u32, f64)> = points.into_iter().collect();
        match value_at(&points, window, most) {
            Some((value, distance)) => prop_assert!(value.is_finite() && distance <= most),
            None => prop_assert!(points.iter().all(|point| point.0.abs_diff(window) > most)),
        }
    }
}

#[test]
fn ends_that_come_together_tell_clocks_whatever_these_were() {
    // Three clocks, far off; each operation ends for one of the others up to 300 ticks before or after the first.
    let off = [0i64, 70_000, -5_000_000];
    let mut table = BoundTable::default();
    for window in 0..50i64 {
        for clock in [1u32, 2] {
            let kind = BoundKind::ENDS_OF_TIED;
            let apart = off[clock as usize] + if window % 2 == 0 { 300 } else { -300 };
            for (from, to, distance) in [(0, clock, apart), (clock, 0, -apart)] {
                table.waits.add(Class { from, to, kind }, window as usize / 2, Bound { distance, at: 0, kind });
            }
        }
    }
    let ends = of_ends(&table, 1000).unwrap();
    for clock in [1u32, 2] {
        let [there, back] = [(0, clock), (clock, 0)].map(|pair| ends.pairs[&pair].get(3).unwrap().distance);
        assert_eq!(((there - back) / 2, (there + back) / 2), (off[clock as usize], 700));
    }
    assert_eq!(of_ends(&BoundTable::default(), 1000), None);
    // They are no observations from both sides where traffic ties the clocks.
    assert!(
        from_both_sides(
            &table,
            &Grid { first: 0, width: 1000, count: 25 },
            &vec![vec![0.0; 25]; 3],
            &[],
            0,
            1_000_000_000
        )
        .is_none()
    );
}

/// Messages of so many bytes for which the receiver waited in so many windows, that take 2000 by true clocks, of which the second one is ahead.
fn unmeasured(bytes: u64, windows: usize, ahead: f64) -> BoundTable {
    let mut table = BoundTable::default();
    let class = Class { from: 0, to: 1, kind: BoundKind::waited(bytes) };
    for window in 0..windows {
        let distance = (2000.0 + (window * 37 % 61) as f64 - truth(window) + ahead) as i64;
        table.waits.add(class, window, Bound { distance, at: GRID.centre(window), kind: class.kind });
    }
    table
}

#[test]
fn short_messages_take_what_is_usual_where_no_clock_was_measured() {
    let now = vec![vec![0.0; WINDOWS]; 2];
    let off = |bytes, ahead| {
        let table = unmeasured(bytes, WINDOWS, ahead);
        let found = from_both_sides(&table, &GRID, &now, &[], usize::MAX, 1_000_000_000).expect("observations");
        let middle = |(window, there): &(u32, Bound)| {
            let back = found.pairs[&(1, 0)].get(*window)?;
            Some((back.distance - there.distance) as f64 / 2.0 - truth(*window as usize) + ahead)
        };
        found.pairs[&(0, 1)].windows().iter().filter_map(middle).map(f64::abs).fold(0.0, f64::max)
    };
    for ahead in [-5e6, 0.0, 700_000.0] {
        assert!(off(4096, ahead) < 250.0, "{ahead}: {}", off(4096, ahead));
    }
    // How long these take depends on the network, but not by so much: they are taken to take 4,458.
    assert!((2_200.0..2_700.0).contains(&off(8192, 700_000.0)), "{}", off(8192, 700_000.0));
    // These by more than clocks are known to that nothing ties: the clocks so far decide.
    assert!(off(1 << 20, 700_000.0) > 600_000.0);
    // Nor is anything usual where offsets were recorded.
    let measured = unmeasured(100, WINDOWS, 0.0);
    let anchors = [0, WINDOWS as u32 - 1].map(|window| Anchor { clock: 1, window, value: 9e5, sigma: 1.0, bound: 0.0 });
    let found = from_both_sides(&measured, &GRID, &now, &anchors, 0, 1_000_000_000).expect("observations");
    let (there, back) = (found.pairs[&(0, 1)].windows()[100].1, found.pairs[&(1, 0)].windows()[100].1);
    let middle = (back.distance - there.distance) as f64 / 2.0;
    assert!((middle - truth(100) - 9e5).abs() < 250.0, "{middle}");
}

#[test]
fn no_network_takes_so_long_for_all_short_messages() {
    let never = |bytes, windows, ahead, put: f64| {
        let now = vec![vec![0.0; WINDOWS], vec![put; WINDOWS]];
        are_never_so_slow(&unmeasured(bytes, windows, ahead), &now, 1_000_000_000)
    };
    // The quickest takes 182 us more than the second clock is ahead by.
    assert!(never(100, WINDOWS, 220_000.0, 0.0) && !never(100, WINDOWS, 190_000.0, 0.0));
    assert!(never(100, WINDOWS, 190_000.0, -50_000.0), "measured with a clock that was put back");
    assert!(!never(100_000, WINDOWS, 220_000.0, 0.0), "long messages");
    assert!(never(100, FEWEST, 220_000.0, 0.0) && !never(100, FEWEST - 1, 220_000.0, 0.0), "few of them");
}
