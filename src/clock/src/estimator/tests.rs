use super::*;
use crate::bounds::Bound;
use crate::kind::BoundKind;
use crate::network::tests::random;

/// Clocks without recorded offsets.
fn clocks(count: usize) -> ClockMap {
    ClockMap {
        of_timeline: (0..count as u32).collect(),
        first_timeline: (0..count as u32).collect(),
        offsets: vec![Vec::new(); count],
        bases: vec![LinearClock::identity(); count],
        own: Vec::new(),
        together: Vec::new(),
    }
}

/// All levels, for messages as (sending clock, receiving clock, sent, received); the refinements in the end, or why there are none.
fn estimate(model: Method, resolution: u64, messages: &[(u32, u32, i64, i64)]) -> Result<Vec<LinearClock>> {
    let count = messages.iter().map(|message| message.0.max(message.1) as usize + 1).max().unwrap();
    let map = clocks(count);
    let mut estimator = Estimator::new(&map, resolution, model, Reference::Process(0), MeasurementLimits::default());
    let mut refinements = vec![LinearClock::identity(); count];
    let mut windows = observed_windows(count);
    for _ in 0..20 {
        let at = |clock: u32, time: i64| refinements[clock as usize].map(Ticks(time)).0;
        let seen: Vec<_> =
            messages.iter().map(|&(a, b, sent, received)| (a, b, at(a, sent), at(b, received))).collect();
        let first = seen.iter().map(|message| message.2).min().unwrap();
        let last = seen.iter().map(|message| message.3).max().unwrap();
        let grid = Grid::new(first, last, windows);
        let mut table = BoundTable::default();
        for (a, b, sent, at) in seen {
            let bounds = table.pairs.entry((a, b)).or_default();
            bounds.add(grid.window(at), Bound { distance: at - sent, at, kind: BoundKind::MESSAGE }, 1);
        }
        match estimator.level(&table, grid, &map) {
            Decision::Level(knots, count) => {
                refinements = knots.iter().map(refinement).collect::<Result<_>>()?;
                windows = count;
            }
            Decision::Done(knots, _) => return knots.iter().map(refinement).collect(),
            other => panic!("{other:?}"),
        }
    }
    panic!("twenty levels and no end");
}

/// `count` round trips, one every `step` ticks, with a clock that is `ahead`.
fn ping_pong(count: i64, step: i64, latency: i64, ahead: i64) -> Vec<(u32, u32, i64, i64)> {
    let trip = |k: i64| [(0, 1, k * step, k * step + latency + ahead), (1, 0, k * step + ahead, k * step + latency)];
    (0..count).flat_map(trip).collect()
}

#[test]
fn a_trace_with_coarse_ticks_has_room_for_fewer_windows_than_messages_would_support() {
    for model in [Method::Network, Method::Regression, Method::Hull] {
        for count in [100, 1000, 2500] {
            let found = estimate(model, 1_000_000, &ping_pong(count, 4, 3, -7000)).unwrap();
            assert!((found[1].map(Ticks(-5000)).0 - 2000).abs() <= 1, "{model:?} {count}");
        }
    }
}

#[test]
fn clocks_that_are_decades_apart_are_known_to_the_tick() {
    // One counts from 1970, the other from the start of its machine.
    let ahead = (1i64 << 60) + 12_345;
    for model in [Method::Network, Method::Regression, Method::Hull] {
        for count in [1, 2, 5, 300] {
            let found = estimate(model, 1_000_000_000, &ping_pong(count, 1_000_000, 2000, ahead)).unwrap();
            let off = found[1].map(Ticks(ahead + 10)).0 - 10;
            assert!(off.abs() <= 1, "{model:?} {count}: {off}");
        }
    }
}

#[test]
fn clocks_that_nothing_can_reconcile_do_not_overflow() {
    // Each is a century off the one before: together more than there are ticks.
    let far = 1i64 << 61;
    let pairs = (0..6).flat_map(|k| [(k, k + 1, far - 9, -far + 9), (k + 1, k, -far, far)]);
    let messages: Vec<_> = pairs.collect();
    for model in [Method::Network, Method::Regression, Method::Hull] {
        // Refused, or clocks in which time goes on.
        for clock in estimate(model, 1_000_000_000, &messages).unwrap_or_default() {
            assert!(clock.map(Ticks(-far)) <= clock.map(Ticks(far)), "{model:?}");
        }
    }
}

#[test]
fn recorded_offsets_are_contradicted_where_they_were_measured_and_less_so_elsewhere() {
    let mut estimator =
        Estimator::new(&clocks(2), 1_000_000_000, Method::Auto, Reference::Auto, MeasurementLimits::default());
    let anchors = [0, 4].map(|window| crate::anchor::Anchor { clock: 1, window, value: 7.0, sigma: 1.0, bound: 0.0 });
    let grid = Grid { first: 0, width: 100, count: 5 };
    estimator.constants = vec![0, -7];
    estimator.offsets = vec![vec![0.0; 5], vec![7.0, 27.0, 97.0, 27.0, 7.0]];
    assert_eq!(estimator.fit(&anchors, &grid).contradiction, 30.0);
    estimator.offsets[1][4] = 57.0;
    assert_eq!(estimator.fit(&anchors, &grid).contradiction, 50.0);
    estimator.shortest.other_node = Ticks(20);
    assert_eq!(estimator.fit(&anchors, &grid).contradiction, 30.0);
}

#[test]
fn a_clock_that_bends_by_many_latencies_within_an_early_window_is_found() {
    // 25 s, a sine of 20 us and 0.25 s, messages that take 3 us in both directions at once: the 512 windows of the first look are 50 ms long.
    let shows = |time: i64| time + (20_000.0 * (time as f64 * std::f64::consts::TAU / 0.25e9).sin()).round() as i64;
    let sent = |k: i64| k * 500_000 + 7919 * (k % 13);
    let take = |k: i64| 3000 + 137 * (k % 7) + if k % 29 == 0 { 9000 } else { 0 };
    let trip = |k: i64| {
        let time = sent(k);
        [(0, 1, time, shows(time + take(k))), (1, 0, shows(time), time + take(k + 3))]
    };
    let messages: Vec<_> = (0..50_000).flat_map(trip).collect();
    let found = estimate(Method::Network, 1_000_000_000, &messages).unwrap();
    let off = |k: i64| (found[1].map(Ticks(shows(sent(k)))).0 - sent(k)) as f64;
    let squares: f64 = (0..50_000).map(|k| off(k) * off(k)).sum();
    let rms = (squares / 50_000.0).sqrt();
    assert!(rms < 500.0, "{rms} ns");
}

#[test]
fn clocks_that_no_message_ties_to_the_reference_follow_the_mean_of_what_was_recorded() {
    // Clocks 0 and 1 talk, and 2 and 3. Clock 2 was held, and clock 3 is 14 ticks off what was recorded of it in the middle.
    let mut map = clocks(4);
    let recorded = [0, 1_000_000_000].map(|time| ClockOffset { time, offset: 0, standard_deviation: 0.0 });
    map.offsets = vec![recorded.to_vec(); 4];
    let mut estimator =
        Estimator::new(&map, 1_000_000_000, Method::Network, Reference::Auto, MeasurementLimits::default());
    estimator.observations.component = vec![0, 0, 2, 2];
    estimator.offsets = vec![vec![0.0; 3], vec![0.0, 5.0, 0.0], vec![0.0; 3], vec![0.0, 14.0, 0.0]];
    estimator.centre_groups(&map);
    assert_eq!(estimator.offsets[..2], [vec![0.0; 3], vec![0.0, 5.0, 0.0]]);
    assert_eq!(estimator.offsets[2..], [vec![0.0, -7.0, 0.0], vec![0.0, 7.0, 0.0]]);
}

/// A number that looks like chance, below `most`.
fn chance(k: i64, most: i64) -> i64 {
    (k.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33).rem_euclid(most)
}

#[test]
fn pairs_with_large_messages_only_are_not_taken_for_late_ones() {
    // Two pairs that are near each other, and large messages from one to the other: every clock is ahead by some us.
    let ahead = [0, 40_000, -25_000, 9_000];
    let mut messages = Vec::new();
    for k in 0..4000 {
        for (at, (a, b, takes)) in (0..).zip([(0, 1, 2000), (2, 3, 2000), (0, 2, 60_000), (1, 3, 60_000)]) {
            let times = |a: usize, b: usize, sent: i64, noise: i64| {
                (a as u32, b as u32, sent + ahead[a], sent + takes + chance(k * 8 + at + noise, takes / 100) + ahead[b])
            };
            let sent = k * 1_000_000 + at * 150_000;
            messages.extend([times(a, b, sent, 0), times(b, a, sent + takes + 5000, 4)]);
        }
    }
    let found = estimate(Method::Network, 1_000_000_000, &messages).unwrap();
    for (clock, ahead) in ahead.into_iter().enumerate() {
        let off = found[clock].map(Ticks(2_000_000_000 + ahead)).0 - 2_000_000_000;
        assert!(off.abs() <= 500, "{clock}: {off}");
    }
}

#[test]
fn clocks_that_drift_evenly_do_not_follow_late_messages() {
    // The second clock drifts by 20 ppm; in every other stretch all messages to it are late by about the same.
    let shows = |time: i64| time + time / 50_000 + 7000;
    let mut messages = Vec::new();
    for k in 0..6000 {
        let sent = k * 500_000;
        let late = if k / 300 % 2 == 1 { 900 + chance(k, 300) } else { 0 };
        messages.push((0, 1, sent, shows(sent + 2000 + late + chance(3 * k + 1, 80))));
        messages.push((1, 0, shows(sent + 100_000), sent + 102_000 + chance(3 * k + 2, 80)));
    }
    let found = estimate(Method::Network, 1_000_000_000, &messages).unwrap();
    let off = |k: i64| (found[1].map(Ticks(shows(k * 500_000))).0 - k * 500_000).abs();
    let worst = (0..6000).map(off).max().unwrap();
    assert!(worst <= 60, "{worst}");
}

#[test]
fn clocks_that_drift_evenly_do_not_bend_by_what_late_messages_feign() {
    // Messages to the second clock are late by chance, and by somewhat more for the length of many windows, as where a process is the slower one for a while.
    let shows = |time: i64| time + time / 50_000 + 7000;
    let mut messages = Vec::new();
    for k in 0..6000 {
        let sent = k * 500_000;
        let late = if k / 750 % 2 == 1 { 600 } else { 0 } + chance(k, 1000);
        messages.push((0, 1, sent, shows(sent + 2000 + late)));
        messages.push((1, 0, shows(sent + 100_000), sent + 102_000 + chance(3 * k + 2, 1000)));
    }
    let found = estimate(Method::Network, 1_000_000_000, &messages).unwrap();
    let off = |k: i64| (found[1].map(Ticks(shows(k * 500_000))).0 - k * 500_000).abs();
    let worst = (0..6000).map(off).max().unwrap();
    assert!(worst <= 100, "{worst}");
}

#[test]
fn clocks_do_not_settle_where_late_messages_agree() {
    // Neighbours in a chain exchange messages in every step. Some are slower than others, and only seldom does chance have it otherwise: most messages one way are received long after they have arrived.
    let (clocks, steps, step) = (8, 600, 5_000_000);
    let mut random = random(6);
    let shows = |clock: u32, time: i64| {
        let turns = time as f64 / 2e9 + 0.37 * f64::from(clock);
        time + (f64::from(clock.min(1)) * 200_000.0 * (std::f64::consts::TAU * turns).sin()) as i64
    };
    let slower: Vec<f64> = (0..clocks).map(|_| 1e6 * random()).collect();
    let mut messages = Vec::new();
    for k in 0..steps {
        let ready = slower.iter().map(|slower| k * step + (slower - 2e5 * random().ln()) as i64);
        let ready: Vec<i64> = ready.collect();
        for (from, to) in (1..clocks).flat_map(|a| [(a - 1, a), (a, a - 1)]) {
            let sent = ready[from as usize];
            let arrived = sent + 3000 - (500.0 * random().ln()) as i64;
            let received = arrived.max(ready[to as usize] + 1000);
            messages.push((from, to, shows(from, sent), shows(to, received)));
        }
    }
    let found = estimate(Method::Network, 1_000_000_000, &messages).unwrap();
    let square = |clock: u32, k: i64| {
        let off = found[clock as usize].map(Ticks(shows(clock, k * step))).0 - k * step;
        (off * off) as f64
    };
    let squares: f64 =
        (0..clocks).flat_map(|clock| (10..590).map(move |k| (clock, k))).map(|(clock, k)| square(clock, k)).sum();
    let deviation = (squares / f64::from(clocks * 580)).sqrt();
    // 1,605 where they first settle.
    assert!(deviation < 250.0, "{deviation}");
}

#[test]
fn only_nodes_of_several_processes_are_divided() {
    // A message within clock 0 arrives a millisecond too early: clocks of two processes, or of two threads of one, which keep the clock of their process.
    let messages = ping_pong(100, 1_000_000, 2000, 0);
    let divided = |nodes: &[u32]| {
        let map = ClockMap::new(nodes, &[], &[], &[], 20.0).unwrap();
        let limits = MeasurementLimits::default();
        let mut estimator = Estimator::new(&map, 1_000_000_000, Method::Network, Reference::Auto, limits);
        let grid = Grid::new(0, 100_000_000, observed_windows(2));
        let mut table = BoundTable::default();
        table.share(0, -1_000_000);
        for &(a, b, sent, at) in &messages {
            let bounds = table.pairs.entry((a, b)).or_default();
            bounds.add(grid.window(at), Bound { distance: at - sent, at, kind: BoundKind::MESSAGE }, 1);
        }
        estimator.level(&table, grid, &map)
    };
    assert!(matches!(divided(&[0, 0, 1]), Decision::Split(clocks) if clocks == [0]));
    assert!(!matches!(divided(&[0, 1, 1]), Decision::Split(_) | Decision::Nothing(_)));
}
