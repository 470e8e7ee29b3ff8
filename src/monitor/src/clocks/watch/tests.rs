use super::*;
use crate::random::Random;

/// What is said of a clock whose distance after so many seconds is a function, observed every half a second with some microseconds of noise.
fn verdicts(seconds: u64, distance: impl Fn(f64) -> f64) -> Vec<(f64, ClockFault)> {
    let (mut watch, mut random, mut found) = (ClockWatch::new(ClockLimits::default()), Random::new(5), Vec::new());
    for step in 0..seconds * 2 {
        let noise = random.below(10_000) as f64 - 5_000.0;
        let at = step as f64 / 2.0;
        let verdict = watch.observe(step * SECOND / 2, distance(at) + noise, 5_000.0);
        found.extend(verdict.map(|verdict| (at, verdict)));
    }
    found
}

#[test]
fn a_good_clock_is_not_remarked_on() {
    assert_eq!(verdicts(3_600, |_| 0.0), []);
    assert_eq!(verdicts(3_600, |at| 5e9 + 50_000.0 * at), [], "50 ppm, from another start");
    assert_eq!(verdicts(600, |at| 20_000.0 * (at / 10.0).sin()), [], "a temperature that changes");
}

#[test]
fn a_jump_is_named_once_with_its_size() {
    for by in [-2e6, 1e6, 5e9] {
        let found = verdicts(60, |at| if at < 30.0 { 0.0 } else { by });
        assert!(matches!(found[..], [(30.5, ClockFault::Jumped(size))] if (size - by).abs() < 2e4), "{by}: {found:?}");
    }
    let found = verdicts(60, |at| (at / 20.0).floor() * 1e6);
    assert_eq!(found.len(), 2, "each jump: {found:?}");
}

#[test]
fn a_clock_that_runs_away_is_named_once_with_its_rate() {
    for ppm in [-1_000.0, 300.0, 5_000.0] {
        let found = verdicts(120, |at| if at < 30.0 { 0.0 } else { (at - 30.0) * ppm * 1e3 });
        let runs: Vec<_> = found.iter().filter(|(_, verdict)| matches!(verdict, ClockFault::RunsAway(_))).collect();
        assert_eq!((runs.len(), found.len()), (1, 1), "{ppm}: {found:?}");
        assert!((30.0..40.0).contains(&runs[0].0), "{ppm}: {found:?}");
    }
}

/// Before, the part of the first step that shows was taken for a jump.
#[test]
fn a_clock_that_begins_to_run_away_between_two_observations_has_not_jumped() {
    for from in [30.05, 30.2, 30.35, 30.49] {
        for ppm in [-1_000.0, 3_000.0, 50_000.0] {
            let found = verdicts(120, |at| (at - from).max(0.0) * ppm * 1e3);
            let [(_, ClockFault::RunsAway(rate))] = found[..] else { panic!("{from} {ppm}: {found:?}") };
            assert!((rate * 1e6 - ppm).abs() < 0.05 * ppm.abs(), "{from} {ppm}: {rate}");
        }
    }
    // A jump and a larger one right after it are two, or the two of them together.
    for (second, third) in [(3e6, 0.0), (3e6, 9e6)] {
        let found = verdicts(60, |at| {
            [(30.0, 1e6), (30.5, second), (31.0, third)].iter().filter(|step| at >= step.0).map(|step| step.1).sum()
        });
        let jumped = found.iter().map(|(_, verdict)| if let ClockFault::Jumped(by) = verdict { *by } else { f64::NAN });
        let all: f64 = jumped.sum();
        assert!((all - 1e6 - second - third).abs() < 5e4, "{found:?}");
    }
}

#[test]
fn a_clock_that_stands_still_is_named_at_once() {
    let found = verdicts(60, |at| if at < 30.0 { 0.0 } else { -(at - 30.0) * 1e9 });
    assert_eq!(found, [(30.5, ClockFault::StandsStill)]);
}

#[test]
fn nonsense_is_passed_over() {
    let mut watch = ClockWatch::new(ClockLimits::default());
    assert_eq!(watch.observe(5, f64::NAN, 0.0), None);
    assert_eq!(watch.observe(5, 0.0, -1.0), None);
    assert_eq!(watch.observe(5, 1e12, 0.0), None, "no time has passed");
    assert_eq!(watch.observe(4, 1e12, 0.0), None);
}
