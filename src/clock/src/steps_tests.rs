use super::*;
use crate::LinearClock;
use clc_trace::Ticks;
use proptest::prelude::*;

fn through(knots: &Knots) -> LinearClock {
    let points: Vec<(Ticks, Ticks)> = knots.iter().map(|&(time, offset)| (Ticks(time), Ticks(offset))).collect();
    LinearClock::through(&points).expect("time runs forward")
}

proptest! {
    #[test]
    fn a_correction_with_steps_is_a_clock(
        steps in prop::collection::vec((0i64..20_000, -900i64..900, prop_oneof![Just(0), 2i64..2_000]), 0..4),
        offsets in prop::collection::vec(-400i64..400, 2..9), times in prop::collection::vec(-2_000i64..25_000, 1..50)
    ) {
        let step = |(at, height, slower): (i64, i64, i64)| match slower {
            // Clocks with these offsets are fast by a seventh at most.
            1.. if height > 0 => {
                CorrectionStep { at, height, catch_up: height + height / 4 + slower, held: height * (slower % 3) / 4 }
            }
            _ => CorrectionStep::lasting(at, height),
        };
        let mut steps: Vec<CorrectionStep> = steps.into_iter().map(step).collect();
        steps.sort_by_key(|step| step.at);
        // Steps that lie in the gap of another one are no clock's.
        steps.dedup_by(|next, step| next.at <= step.at + step.gap());
        let knots: Knots = offsets.iter().enumerate().map(|(k, offset)| (3_000 * k as i64 - 1_000, *offset)).collect();
        let (smooth, whole) = (through(&knots), through(&compose(&steps, &knots)));
        // Beyond the outer points both go on with the slope of the two next to each, which rounding may tilt.
        let known = knots.first().map_or(0, |knot| knot.0)..knots.last().map_or(0, |knot| knot.0);
        for time in times.into_iter().filter(|time| known.contains(&stepped(&steps, *time))) {
            let expected = smooth.map(Ticks(stepped(&steps, time))).0;
            let found = whole.map(Ticks(time)).0;
            // Rounded twice; and points stay a tick apart.
            prop_assert!((found - expected).abs() <= 3 + steps.len() as i64, "{time}: {found}, not {expected}");
        }
    }
}

#[test]
fn without_steps_nothing_is_composed() {
    let knots = vec![(0, 5), (100, 7)];
    assert_eq!(compose(&[], &knots), knots);
    assert_eq!(stepped(&[], 42), 42);
}

/// A row of windows that drifts, wanders a little, and jumps by `height` between windows 99 and 100, smeared over three.
fn row(height: f64) -> Vec<f64> {
    let step = |window: usize| (((window as f64 - 98.0) / 3.0).clamp(0.0, 1.0)) * height;
    (0..200).map(|window| 3.0 * window as f64 + 5.0 * (window as f64 * 0.7).sin() + step(window)).collect()
}

#[test]
fn a_jump_is_found_with_its_height() {
    for height in [-50_000.0, 8_000.0] {
        let found = find(&row(height), 100_000, 2.0, JumpLimits::default());
        let [one] = &found[..] else { panic!("{found:?}") };
        assert!(one.windows.0 <= 98 && one.windows.1 >= 101, "{one:?}");
        assert!((one.height() - height).abs() < 25.0, "{one:?}");
    }
}

#[test]
fn what_clocks_can_do_is_no_jump() {
    assert_eq!(find(&row(0.0), 100_000, 10.0, JumpLimits::default()), []);
    // A change of frequency, a slow wave, too few windows, and noise.
    let bend: Vec<f64> =
        (0..200).map(|window| if window < 100 { 0.0 } else { 50.0 * f64::from(window - 100) }).collect();
    assert_eq!(find(&bend, 100_000, 10.0, JumpLimits::default()), []);
    let runaway: Vec<f64> =
        (0..200).map(|window| if window < 100 { 0.0 } else { 600.0 * f64::from(window - 100) }).collect();
    assert_eq!(find(&runaway, 100_000, 2.0, JumpLimits::default()), []);
    let wave: Vec<f64> = (0..200).map(|window| 20_000.0 * (f64::from(window) / 20.0).sin()).collect();
    assert_eq!(find(&wave, 100_000, 10.0, JumpLimits::default()), []);
    assert_eq!(find(&row(9_000.0)[90..110], 100_000, 10.0, JumpLimits::default()), []);
    let noise: Vec<f64> = (0u32..200).map(|window| f64::from(window.wrapping_mul(2_654_435_761) >> 20)).collect();
    assert_eq!(find(&noise, 100_000, 10.0, JumpLimits::default()), []);
}

/// Messages every 1,000 ticks of global time that take 100, received and sent in turns by a clock whose correction rises by `height` at `at`.
fn crossings(at: i64, height: i64) -> Vec<Crossing> {
    let own = |global: i64| if global < at { global } else { global - height };
    (0..40)
        .map(|k| {
            let (global, received) = (1_000 * k, k % 2 == 0);
            let shown = if height > 0 && global >= at && global < at + height { at } else { own(global) };
            let travel = |time: i64| 100.0 + if received { (time - global) as f64 } else { (global - time) as f64 };
            let ramp = shown + height * (k - 10) / 20;
            Crossing {
                own: shown,
                before: travel(shown),
                after: travel(shown + height),
                without: travel(ramp),
                received,
            }
        })
        .collect()
}

#[test]
fn a_jump_is_placed_between_two_messages() {
    // Set forward by 5,500: the clock shows nothing between 19,000 and 25,500.
    let step = place(crossings(19_500, -5_500), -5_500.0, 10.0, false).expect("a place");
    assert!((step.height + 5_500).abs() < 150, "{step:?}");
    assert!(step.at >= 19_000 && step.at + step.gap() <= 25_500, "{step:?}");
    // Set back by 5,500: it shows 19,500 until it has caught up.
    let step = place(crossings(19_500, 5_500), 5_500.0, 10.0, false).expect("a place");
    assert!((19_000..=19_500).contains(&step.at) && (step.height - 5_500).abs() < 150, "{step:?}");
}

#[test]
fn a_clock_that_was_set_back_stood_still_where_it_shows_a_time_again() {
    // The clock shows 19,500 only in between these messages, and 20,000 in three of them.
    let at = |own: i64, behind: bool| {
        let [before, after] = if behind { [-5_400.0, 100.0] } else { [100.0, 5_600.0] };
        Crossing { own, before, after, without: -3_000.0, received: true }
    };
    let before = [1_000, 9_000].map(|own| at(own, false));
    let place = |after: &[i64]| {
        let crossings: Vec<Crossing> = before.into_iter().chain(after.iter().map(|&own| at(own, true))).collect();
        super::place(crossings, 5_500.0, 10.0, false).expect("a place")
    };
    // Events of the other side are next to these messages: in the middle, none is on the wrong side.
    let between = place(&[20_000, 28_000]);
    assert!((14_000..15_000).contains(&between.at) && between.held == 0, "{between:?}");
    // Events of that time are as late as their messages say.
    let still = place(&[20_000, 20_000, 20_000, 28_000]);
    assert_eq!((still.at, stepped(&[still], 19_999)), (20_000, 19_999));
    assert!((25_400..=25_500).contains(&stepped(&[still], 20_000)), "{still:?}");
}

#[test]
fn where_messages_contradict_a_jump_there_is_none() {
    let fine: Vec<Crossing> =
        crossings(19_500, -5_500).into_iter().map(|crossing| Crossing { without: 0.0, ..crossing }).collect();
    assert_eq!(place(fine, 5_500.0, 10.0, false), None);
    assert_eq!(place(Vec::new(), 5_500.0, 10.0, false), None);
}

#[test]
fn messages_with_several_partners_tell_who_has_jumped() {
    // As `crossings`, with a partner against which the clock seems to step at a time of its own.
    let with = |partner: u32, at: i64, height: f64| {
        (0..40).map(move |k| {
            let (own, received) = (1_000 * k + i64::from(partner) * 300, k % 2 == 0);
            let by = if received { height } else { -height };
            let (before, after) = if own < at { (100.0, 100.0 + by) } else { (100.0 - by, 100.0) };
            (partner, Crossing { own, before, after, without: 0.0, received })
        })
    };
    for height in [-5_500.0, 5_500.0] {
        let apart = |jumps: &[i64]| {
            let all: Vec<(u32, Crossing)> =
                (0..).zip(jumps).flat_map(|(partner, at)| with(partner, *at, height)).collect();
            stepped_apart(&all, height, 10.0)
        };
        // The clock itself: all partners see it at once.
        assert!(apart(&[19_500, 19_500, 19_500]).abs() < 0.1, "{height}: {}", apart(&[19_500, 19_500, 19_500]));
        // Each partner for itself: five messages of two of them are impossible or late, whenever the clock is said to have jumped.
        assert!(apart(&[14_500, 19_500, 24_500]) > 10.0, "{height}: {}", apart(&[14_500, 19_500, 24_500]));
        assert!(apart(&[14_500, 19_500]) > apart(&[17_500, 19_500]), "{height}");
        assert!(apart(&[17_500, 19_500]) > 1.0, "{height}");
    }
    assert_eq!(stepped_apart(&[], 5_500.0, 10.0), 0.0);
}

proptest! {
    #[test]
    fn running_medians_are_medians(values in prop::collection::vec(prop_oneof![-3.0f64..3.0, Just(0.0), Just(-0.0), Just(1.0)], 0..60), beside in 0usize..20) {
        let found: Vec<u64> = running_medians(&values, beside).map(f64::to_bits).collect();
        let each = (0..values.len()).map(|at| {
            median(values[at.saturating_sub(beside)..(at + beside + 1).min(values.len())].to_vec()).to_bits()
        });
        prop_assert_eq!(found, each.collect::<Vec<u64>>());
    }
}
