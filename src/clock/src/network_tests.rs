use super::*;
use crate::bounds::Bound;
use crate::grid::Grid;
use crate::kind::BoundKind;
use crate::selection::{Choice, select, steady};
use crate::view::TrialData;
use crate::waits::Class;
use crate::windows::BoundTable;
use clc_trace::workers::Workers;
use proptest::prelude::*;

/// Exact two-way observations along `edges` of clocks whose true corrections are `truth`.
fn observe(edges: &[(u32, u32)], truth: &Offsets, latency: i64) -> Observations {
    let windows = truth[0].len();
    let grid = Grid { first: 0, width: 1000, count: windows };
    let mut table = BoundTable::default();
    for &(a, b) in edges {
        for (w, (x, y)) in truth[a as usize].iter().zip(&truth[b as usize]).enumerate() {
            let difference = (y - x) as i64;
            let at = grid.centre(w);
            table.pairs.entry((a, b)).or_default().add(
                w,
                Bound { distance: latency - difference, at, kind: BoundKind::MESSAGE },
                1,
            );
            table.pairs.entry((b, a)).or_default().add(
                w,
                Bound { distance: latency + difference, at, kind: BoundKind::MESSAGE },
                1,
            );
        }
    }
    Observations::new(&table, &grid, &vec![vec![0.0; windows]; truth.len()], 1.0, f64::INFINITY, Workers::ONE)
}

fn problem<'a>(observations: &'a Observations, truth: &Offsets, anchors: &'a [Anchor]) -> Problem<'a> {
    Problem {
        clocks: truth.len(),
        windows: truth[0].len(),
        fixed: &[true],
        observations,
        anchors,
        reading: Reading::Mode,
        roughness: 10.0 * observations.floor,
        trend: None,
        afresh: true,
        rounds: ROUNDS,
        leaning: false,
        alike: false,
        cuts: &[],
        around: None,
        firm: false,
        workers: Workers::ONE,
    }
}

/// What the messages themselves choose.
fn chosen_roughness(problem: &Problem<'_>, start: &Offsets) -> f64 {
    let grid = Grid { first: 0, width: 1000, count: problem.windows };
    let view = TrialData {
        grid,
        observations: problem.observations.clone(),
        now: start.clone(),
        otherwise: None,
        anchors: Vec::new(),
    };
    let selection = select(&[view], problem, None, clc_trace::workers::Workers::ONE).unwrap();
    selection.choice.roughness_for(grid.width)
}

fn worst(a: &Offsets, b: &Offsets) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn known_offsets_are_recovered_over_any_tree(
        parents in prop::collection::vec(0u32..100, 1..12), values in prop::collection::vec(-1_000_000i64..1_000_000, 12),
        drift in prop::collection::vec(-2000i64..2000, 12), windows in 1usize..40
    ) {
        let edges: Vec<(u32, u32)> = parents.iter().enumerate().map(|(k, &p)| (p % (k as u32 + 1), k as u32 + 1)).collect();
        let clocks = edges.len() + 1;
        let truth: Offsets = (0..clocks).map(|n| (0..windows)
            .map(|w| if n == 0 { 0.0 } else { (values[n % 12] + drift[n % 12] * w as i64) as f64 }).collect()).collect();
        let seen = observe(&edges, &truth, 500);
        let found = problem(&seen, &truth, &[]).solve(&Vec::new());
        prop_assert!(worst(&found, &truth) < 2.0, "{}", worst(&found, &truth));
    }

    #[test]
    fn a_sinusoid_is_followed(amplitude in 100.0f64..50_000.0, period in 20usize..200) {
        let windows = 200;
        let wave = |w: usize| (w as f64 * std::f64::consts::TAU / period as f64).sin();
        let truth: Offsets = vec![vec![0.0; windows], (0..windows).map(|w| (amplitude * wave(w)).round()).collect()];
        let seen = observe(&[(0, 1)], &truth, 2000);
        let start = vec![vec![0.0; windows]; 2];
        let mut problem = problem(&seen, &truth, &[]);
        problem.roughness = chosen_roughness(&problem, &start);
        let found = problem.solve(&start);
        prop_assert!(worst(&found, &truth) < 0.02 * amplitude + 40.0, "{}", worst(&found, &truth));
    }
}

#[test]
fn clocks_along_a_long_chain_are_found_as_exactly_as_they_can_be() {
    let truth: Offsets = (0..600).map(|n| (0..20).map(|w| f64::from(n * 1000 + n % 7 * 50 * w)).collect()).collect();
    let edges: Vec<(u32, u32)> = (1..600).map(|clock| (clock - 1, clock)).collect();
    let seen = observe(&edges, &truth, 500);
    let found = problem(&seen, &truth, &[]).solve(&Vec::new());
    // The difference of neighbours is known to the floor in each of 20 windows, that of the ends to 55 ticks.
    assert!(seen.floor == 10.0 && worst(&found, &truth) < 110.0, "{}", worst(&found, &truth));
}

#[test]
fn a_jump_stays_sharp() {
    let windows = 100;
    let truth: Offsets = vec![vec![0.0; windows], (0..windows).map(|w| if w < 50 { 0.0 } else { 500_000.0 }).collect()];
    let seen = observe(&[(0, 1)], &truth, 2000);
    let start = vec![vec![0.0; windows]; 2];
    let mut problem = problem(&seen, &truth, &[]);
    problem.roughness = chosen_roughness(&problem, &start);
    assert!(worst(&problem.solve(&start), &truth) < 1000.0);
}

/// Numbers from 0 to 1, the same ones for the same seed.
/// Numbers from 0 to 1 that look like chance.
pub(crate) fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        // Xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Two clocks whose messages are late by some hundred ticks, each as chance has it.
fn observe_late(truth: &Offsets, seed: u64) -> Observations {
    let mut random = random(seed);
    let mut seen = observe(&[(0, 1)], truth, 2000);
    seen.one_way.iter_mut().for_each(|one| one.least += 300.0 * random().ln().max(-20.0));
    seen.two_way.clear();
    seen.directions = std::sync::OnceLock::new();
    seen
}

/// The clocks that bend as chance has it, and those that bend steadily if these are taken.
fn solve_both(seen: &Observations, truth: &Offsets) -> (Offsets, Option<Offsets>) {
    let grid = Grid { first: 0, width: 1000, count: truth[0].len() };
    let problem = Problem { afresh: false, ..problem(seen, truth, &[]) };
    let view = |now| TrialData { grid, observations: seen.clone(), now, otherwise: None, anchors: Vec::new() };
    let Choice { reading, roughness, .. } =
        select(&[view(truth.clone())], &problem, None, Workers::ONE).unwrap().choice;
    let problem = Problem { reading, roughness, ..problem };
    let plain = problem.solve(truth);
    let choice = Choice { reading, roughness, width: grid.width, trend: None };
    let steady =
        steady(&[view(plain.clone())], &problem, choice, Workers::ONE).filter(|steady| steady.gain.is_no_chance());
    let trend = steady.and_then(|steady| steady.choice.trend_for(grid.width));
    (plain, trend.map(|_| Problem { trend, rounds: TREND_ROUNDS, ..problem }.solve(truth)))
}

/// Root mean square of what the second clock is off.
fn deviation(found: &Offsets, truth: &Offsets) -> f64 {
    let squares = found[1].iter().zip(&truth[1]).map(|(found, truth)| (found - truth) * (found - truth));
    (squares.sum::<f64>() / truth[1].len() as f64).sqrt()
}

#[test]
fn clocks_bend_steadily_where_that_is_better() {
    let windows = 1500;
    let of =
        |offset: &dyn Fn(usize) -> f64| vec![vec![0.0; windows], (0..windows).map(|w| offset(w).round()).collect()];
    for seed in [1, 2] {
        let swings: Offsets = of(&|window| 1e6 * (window as f64 / 24.0).sin());
        let (plain, steady) = solve_both(&observe_late(&swings, seed), &swings);
        let steady = steady.expect("messages are predicted better by far");
        assert!(deviation(&steady, &swings) < 0.6 * deviation(&plain, &swings));
        // Slewed to and fro.
        for slope in [50.0, 500.0, 2000.0] {
            let corners: Offsets = of(&|window| slope * (window % 60).abs_diff(30) as f64);
            let (plain, steady) = solve_both(&observe_late(&corners, seed), &corners);
            let worse = steady.filter(|steady| deviation(steady, &corners) > deviation(&plain, &corners));
            assert!(worse.is_none(), "{slope}");
        }
    }
}

#[test]
fn recorded_offsets_hold_clocks_that_nobody_talks_to() {
    let truth: Offsets = vec![vec![0.0; 9], (0..9).map(|w| 100.0 * f64::from(w)).collect()];
    let anchors: Vec<Anchor> = [0, 8]
        .map(|window| Anchor { clock: 1, window, value: 100.0 * f64::from(window), sigma: 5.0, bound: 0.0 })
        .to_vec();
    let nothing = Observations { floor: 10.0, ..Observations::default() };
    let found = problem(&nothing, &truth, &anchors).solve(&Vec::new());
    assert!(worst(&found, &truth) < 1.0, "{found:?}");
}

#[test]
fn a_wrong_recorded_offset_gives_way_to_the_messages() {
    let truth: Offsets = vec![vec![0.0; 30], vec![1000.0; 30]];
    let seen = observe(&[(0, 1)], &truth, 2000);
    let anchors = [Anchor { clock: 1, window: 29, value: 9_000_000.0, sigma: 40.0, bound: 0.0 }];
    let found = problem(&seen, &truth, &anchors).solve(&Vec::new());
    assert!(worst(&found, &truth) < 100.0, "{}", worst(&found, &truth));
}

#[test]
fn delayed_directions_say_nothing() {
    use crate::observations::OneWay;
    let truth: Offsets = vec![vec![0.0; 60], vec![300.0; 60]];
    let mut seen = observe(&[(0, 1)], &truth, 2000);
    // In two windows of three one direction was delayed, by much.
    seen.one_way = seen
        .one_way
        .iter()
        .map(|one| {
            let late = (one.window + one.a) % 3 == 0;
            OneWay { least: one.least - if late { 1e6 + 1e4 * f64::from(one.window) } else { 0.0 }, ..*one }
        })
        .collect();
    let start = vec![vec![0.0; 60], vec![1500.0; 60]];
    let mut problem = problem(&seen, &truth, &[]);
    problem.afresh = false;
    assert!(worst(&problem.solve(&start), &truth) < 50.0, "{}", worst(&problem.solve(&start), &truth));
}

#[test]
fn clocks_that_are_decades_apart_are_found() {
    // Over a path of three, one of them drifting.
    let far = (1i64 << 60) as f64;
    for windows in [1, 8] {
        let drift = |w: usize| far / 2.0 + 10_240.0 * w as f64;
        let truth: Offsets = vec![vec![0.0; windows], vec![-far; windows], (0..windows).map(drift).collect()];
        let seen = observe(&[(0, 1), (1, 2)], &truth, 2048);
        let found = problem(&seen, &truth, &[]).solve(&Vec::new());
        // To what a number of this size can say.
        assert!(worst(&found, &truth) <= 1024.0, "{windows}: {}", worst(&found, &truth));
    }
}

#[test]
fn drift_is_forgotten_as_fast_as_it_changes_and_a_lasting_change_is_not() {
    let wave: Vec<f64> = (0..600).map(|window| (f64::from(window) * std::f64::consts::TAU / 60.0).cos()).collect();
    // The cosine falls to one half in a sixth of its period.
    let found = memory(&wave, 0.0).unwrap();
    assert!((9.0..=13.0).contains(&found), "{found}");
    let changed: Vec<f64> = (0..600).map(|window| if window < 240 { -3.0 } else { 2.0 }).collect();
    assert_eq!(memory(&changed, 0.0), None);
    assert_eq!(memory(&[0.0; 50], 0.0), None);
    assert_eq!(memory(&[], 0.0), None);
}

#[test]
fn before_the_first_message_a_clock_that_bends_goes_on_for_no_longer_than_it_remembers() {
    // Two hundred windows without a message, then a wave of period 40.
    let wave = |window: usize| 1000.0 * (window as f64 * std::f64::consts::TAU / 40.0).sin();
    let (silent, windows) = (200, 1000);
    let truth: Offsets = vec![vec![0.0; windows], (0..windows).map(wave).collect()];
    let all = observe(&[(0, 1)], &truth, 3000);
    let seen = all.part(|window| window as usize >= silent);
    let problem = Problem { leaning: true, roughness: 30.0, ..problem(&seen, &truth, &[]) };
    let found = problem.solve(&vec![vec![0.0; windows]; 2]);
    assert!((silent..windows).all(|window| (found[1][window] - truth[1][window]).abs() < 100.0));
    // 157 per window at the first message: for ever it would be 31,400 off at the begin.
    assert!(found[1][0].abs() < 3000.0, "{}", found[1][0]);
}

#[test]
fn a_straight_clock_goes_on_behind_the_last_message_whatever_it_did_before_it_was_steered() {
    // Recorded offsets around a jump are joined by a steep line, which a straight clock has to undo; nothing is seen in the last window.
    let steep = |window: usize| 5000.0 * window.clamp(200, 300) as f64;
    let windows = 400;
    let truth: Offsets = vec![vec![0.0; windows], (0..windows).map(steep).collect()];
    let seen = observe(&[(0, 1)], &truth, 3000).part(|window| window as usize + 1 < windows);
    let problem = Problem {
        afresh: false,
        leaning: true,
        alike: true,
        roughness: 1e-9,
        rounds: LAST_ROUNDS,
        ..problem(&seen, &truth, &[])
    };
    let found = problem.solve(&truth);
    assert!(worst(&found, &truth) < 1000.0, "{}", worst(&found, &truth));
    // The mean of all drifts is none of them, and the clock is too stiff to bend.
    let mean = Problem { alike: false, ..problem }.solve(&truth);
    assert!(worst(&mean, &truth) > 10_000.0);
}

#[test]
fn messages_that_nobody_waited_for_do_not_bend_clocks() {
    // A wave of period 200; in most windows messages lie there for longer in one direction than in the other.
    let wave = |window: usize| 20_000.0 * (window as f64 * std::f64::consts::TAU / 200.0).sin();
    let (windows, lain) = (1000, 200..800);
    let truth: Offsets = vec![vec![0.0; windows], (0..windows).map(wave).collect()];
    let grid = Grid { first: 0, width: 1000, count: windows };
    let mut table = BoundTable::default();
    for (window, difference) in truth[1].iter().enumerate() {
        let late = if lain.contains(&window) { [400_000, 138_000] } else { [0, 0] };
        for (index, (from, to)) in [(0, 1), (1, 0)].into_iter().enumerate() {
            let seen = if from == 0 { -difference } else { *difference };
            let distance = 3000 + late[index] + seen as i64;
            let bound = Bound { distance, at: grid.centre(window), kind: BoundKind::MESSAGE };
            table.pairs.entry((from, to)).or_default().add(window, bound, 1);
            if !lain.contains(&window) {
                table.waits.add(Class { from, to, kind: BoundKind::WAITED_OF_TIED }, window, bound);
            }
        }
    }
    let solve = |table: &BoundTable| {
        let now = vec![vec![0.0; windows]; 2];
        let seen = Observations::new(table, &grid, &now, 1.0, f64::INFINITY, Workers::ONE);
        let problem = Problem { leaning: true, roughness: 30.0, ..problem(&seen, &truth, &[]) };
        [Reading::Mode, Reading::Edge(0.05)].map(|reading| Problem { reading, ..problem }.solve(&now))
    };
    for found in solve(&table) {
        // What is left is the wave that nobody has seen.
        assert!(worst(&found, &truth) < 45_000.0, "{}", worst(&found, &truth));
        let known = |window: &usize| !(180..820).contains(window);
        assert!((0..windows).filter(known).all(|window| (found[1][window] - truth[1][window]).abs() < 2000.0));
    }
    table.waits.classes.clear();
    // By half of the 262,000 that one direction is later than the other, or until none is late in the other one.
    let believed = solve(&table).map(|found| worst(&found, &truth));
    assert!(believed[0] > 50_000.0 && believed[1] > 120_000.0, "{believed:?}");
}

#[test]
fn recorded_offsets_tell_how_long_messages_around_a_ring_travel() {
    // Eight equal clocks, messages to the next one only; in each window one of them is late.
    let (clocks, windows, latency, late) = (8u32, 80usize, 2000i64, 1_000_000i64);
    let grid = Grid { first: 0, width: 1000, count: windows };
    let mut table = BoundTable::default();
    for (window, from) in (0..windows).flat_map(|window| (0..clocks).map(move |from| (window, from))) {
        let delayed = window as u32 / 10 % clocks == from;
        let bound = Bound {
            distance: latency + if delayed { late } else { 0 },
            at: grid.centre(window),
            kind: BoundKind::MESSAGE,
        };
        table.pairs.entry((from, (from + 1) % clocks)).or_default().add(window, bound, 1);
    }
    let truth: Offsets = vec![vec![0.0; windows]; clocks as usize];
    let seen = Observations::new(&table, &grid, &truth, 100.0, f64::INFINITY, Workers::ONE);
    // As if messages took no time: each clock is that much before the one from which it has them, up to the late one.
    let quick = |clock: u32, window: usize| match window as u32 / 10 % clocks {
        delayed if clock <= delayed => -latency * i64::from(clock),
        _ => latency * i64::from(clocks - clock),
    };
    let start: Offsets =
        (0..clocks).map(|clock| (0..windows).map(|window| quick(clock, window) as f64).collect()).collect();
    let ends = [0, windows as u32 - 1];
    let measured =
        (1..clocks).flat_map(|clock| ends.map(|window| Anchor { clock, window, value: 0.0, sigma: 500.0, bound: 0.0 }));
    let anchors: Vec<Anchor> = measured.collect();
    let alone = Problem { afresh: false, ..problem(&seen, &truth, &anchors) };
    assert!(alone.goes_around() && !alone.contradicts_anchors(&truth) && alone.contradicts_anchors(&start));
    assert!(worst(&alone.solve(&start), &truth) > 4000.0, "{}", worst(&alone.solve(&start), &truth));
    assert_eq!(alone.latency_at_anchors(&truth), None);
    let around = alone.latency_at_anchors(&start);
    assert!(around.is_some_and(|around| (around - latency as f64).abs() < 1.0), "{around:?}");
    let found = Problem { around, firm: true, ..alone }.solve(&start);
    assert!(worst(&found, &truth) < 200.0, "{}", worst(&found, &truth));
    // Of pairs that answer each other, no latency need be known.
    let answered = observe(&[(0, 1), (1, 2)], &vec![vec![0.0; 20]; 3], 2000);
    assert!(!problem(&answered, &vec![vec![0.0; 20]; 3], &[]).goes_around());
}
