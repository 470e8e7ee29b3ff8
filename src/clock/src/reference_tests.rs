use super::*;
use proptest::prelude::*;

fn line(a: u32, b: u32, intercept: f64, slope: f64, deviation: f64) -> PairLine {
    let (centre, centre_error, slope_error, intercept_error, error) = (0.0, 0.0, 0.0, 0.0, 0.0);
    PairLine {
        a,
        b,
        segment: 0,
        intercept,
        slope,
        deviation,
        centre,
        centre_error,
        slope_error,
        intercept_error,
        error,
        samples: 9,
    }
}

proptest! {
    #[test]
    fn lines_compose_along_any_tree(parents in prop::collection::vec(0u32..50, 1..10), values in prop::collection::vec((-1e5f64..1e5, -30.0f64..30.0), 11)) {
        let clocks = parents.len() + 1;
        let truth = |n: usize, w: usize| values[n].0 + values[n].1 * w as f64;
        let lines: Vec<PairLine> = parents.iter().enumerate().map(|(k, p)| {
            let (a, b) = (*p as usize % (k + 1), k + 1);
            line(a as u32, b as u32, values[b].0 - values[a].0, values[b].1 - values[a].1, 1.0)
        }).collect();
        let Composition { offsets, roots, .. } = compose(&lines, clocks, 7, 3, Some(0));
        prop_assert_eq!(roots, [0]);
        for (n, row) in offsets.iter().enumerate() {
            for (w, offset) in row.iter().enumerate() {
                prop_assert!((offset - (truth(n, w) - truth(0, w))).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn the_best_path_and_the_most_central_clock_are_taken() {
    // 0 - 1 - 2 in good lines, 0 - 2 in a bad one.
    let lines = [line(0, 1, 10.0, 0.0, 1.0), line(1, 2, 5.0, 0.0, 1.0), line(0, 2, 99.0, 0.0, 50.0)];
    let Composition { offsets, roots, towards } = compose(&lines, 4, 1, 1, None);
    assert_eq!(towards, [Some(1), None, Some(1), None]);
    // Clock 3 talks to nobody.
    assert_eq!(roots, [1, 3]);
    assert_eq!([offsets[0][0], offsets[1][0], offsets[2][0], offsets[3][0]], [-10.0, 0.0, 5.0, 0.0]);
    assert_eq!(compose(&lines, 4, 1, 1, Some(2)).offsets[0][0], -15.0);
}

#[test]
fn a_line_that_is_exact_by_chance_is_not_the_best_path() {
    // Its residuals are small, its slope is unknown.
    let chance = PairLine { error: 70.0, ..line(0, 2, 99.0, 0.0, 0.1) };
    let lines = [line(0, 1, 10.0, 0.0, 30.0), line(1, 2, 5.0, 0.0, 30.0), chance];
    assert_eq!(compose(&lines, 3, 1, 1, Some(0)).offsets[2], [15.0]);
}

#[test]
fn a_line_that_messages_violate_is_the_last_resort() {
    // Hardly violated, but a detour of good lines is better.
    let lines = [line(0, 1, 10.0, 0.0, 90.0), line(1, 2, 5.0, 0.0, 90.0), line(0, 2, 99.0, 0.0, -1.0)];
    assert_eq!(compose(&lines, 3, 1, 1, Some(0)).offsets[2], [15.0]);
    // Without one it is what there is.
    assert_eq!(compose(&lines[1..], 3, 1, 1, Some(0)).offsets[2], [99.0]);
}

#[test]
fn a_silent_pair_keeps_its_latest_line() {
    let at = |segment: u32, slope: f64| PairLine { segment, ..line(0, 1, 0.0, slope, 1.0) };
    // Silent in the segments 0, 3 and 4.
    let Composition { offsets, .. } = compose(&[at(1, 1.0), at(2, 2.0)], 2, 10, 2, Some(0));
    assert_eq!(offsets[1], [0.0, 1.0, 2.0, 3.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0]);
}

/// Clocks of nodes that count true time within 10 ppm, and the first `failing` of them run fast by 1 % from half time on.
fn failing(nodes: usize, failing: usize) -> Offsets {
    (0..nodes)
        .map(|node| {
            let rate = 1.0 + 1e-5 * (node as f64 / nodes as f64 - 0.5);
            let time = |window: usize| 1e9 * window as f64;
            let fails = |window: usize| if node < failing { 0.01 * (time(window) - 5e10).max(0.0) } else { 0.0 };
            (0..=100).map(|window| rate * time(window) + fails(window)).collect()
        })
        .collect()
}

#[test]
fn the_median_stays_where_means_follow_nodes_that_fail() {
    for (nodes, bad) in [(3, 1), (12, 4)] {
        let elapsed = failing(nodes, bad);
        let error = |reference| synthesise(&elapsed, reference).last().map_or(0.0, |last| (last - 1e11).abs());
        let drifted = 0.01 * 5e10 * bad as f64 / nodes as f64;
        assert!(error(Reference::Median) <= 1e-5 * 1e11, "{nodes}");
        assert!((error(Reference::Mean) - drifted).abs() < 0.02 * drifted, "{nodes}");
        assert!((error(Reference::Harmonic) - drifted).abs() < 0.05 * drifted, "{nodes}");
    }
}

#[test]
fn skew_is_what_clocks_are_off_their_median() {
    // Corrections 0, 10 and 100, then 0, 30 and 20: medians 10 and 20.
    let offsets = vec![vec![0.0, 0.0], vec![4.0, 24.0], vec![100.0, 20.0]];
    assert_eq!(skew_to_median(&offsets, &[0, 6, 0]), (10.0 + 90.0 + 20.0 + 10.0) / 2.0);
    // What all have in common does not matter, however large it is.
    let far = i64::MAX / 2;
    assert_eq!(skew_to_median(&offsets, &[far, far + 6, far]), 65.0);
    assert_eq!(skew_to_median(&Offsets::new(), &[]), 0.0);
    assert_eq!(skew_to_median(&vec![vec![3.0], vec![5.0]], &[0, 0]), 2.0, "two clocks are off their mean");
}

#[test]
fn without_a_reference_clocks_that_agree_make_the_time() {
    let last = |elapsed: &Offsets, reference| synthesise(elapsed, reference).last().copied().unwrap_or(0.0);
    for nodes in [2, 3, 12] {
        let elapsed = failing(nodes, 0);
        assert!((last(&elapsed, Reference::Auto) - last(&elapsed, Reference::Mean)).abs() < 1e-3, "{nodes}");
    }
    // Some run away from half time on.
    for (nodes, bad) in [(3, 1), (12, 4)] {
        let error = (last(&failing(nodes, bad), Reference::Auto) - 1e11).abs();
        assert!(error <= 1e-5 * 1e11, "{bad} of {nodes}: {error}");
    }
    // Each jumps once, and nobody follows; of two nobody knows which one it was.
    let jumping = |nodes: usize| -> Offsets {
        let mut elapsed = failing(nodes, 0);
        for (node, row) in elapsed.iter_mut().enumerate() {
            row.iter_mut().skip(10 * (node + 1) / nodes + 5).for_each(|reading| *reading += 1e8);
        }
        elapsed
    };
    assert!((last(&jumping(5), Reference::Auto) - 1e11).abs() <= 1e-5 * 1e11);
    assert!((last(&jumping(5), Reference::Mean) - 1e11).abs() > 9e7);
    assert!((last(&jumping(2), Reference::Auto) - 1e11 - 1e8).abs() <= 1e-5 * 1e11);
    // Clocks that are equal.
    assert_eq!(synthesise(&vec![vec![0.0, 7.0]; 4], Reference::Auto), [0.0, 7.0]);
    assert_eq!(synthesise(&vec![vec![0.0]; 4], Reference::Auto), [0.0]);
    assert_eq!(synthesise(&Offsets::new(), Reference::Auto), Vec::<f64>::new());
}
