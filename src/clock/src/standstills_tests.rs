use super::*;

/// Global time of a clock that stands still at 20,000 for `length` ticks, and then runs `speed` times as fast until it has caught up; and what it shows.
fn shown(global: i64, length: i64, speed: i64) -> i64 {
    let (stops, goes) = (20_000, 20_000 + length);
    let caught_up = stops + speed * (global - goes);
    if global < stops { global } else { global.min(caught_up.max(stops)) }
}

/// Messages every 250 ticks of global time, received and sent in turns, that take 100, one in three of them up to 2,000 more.
fn crossings(length: i64, speed: i64) -> Vec<Crossing> {
    let message = |k: i64| {
        let (global, received) = (250 * k, k % 2 == 0);
        let own = shown(global, length, speed);
        let late = if k % 3 == 0 { (k * 7_919) % 2_000 } else { 0 };
        let other = if received { global - 100 - late } else { global + 100 + late };
        let travel = |own: i64| if received { own - other } else { other - own } as f64;
        // The estimate follows a third of it.
        Crossing { own, before: travel(own), after: travel(own), without: travel(own + (global - own) / 3), received }
    };
    (0..200).map(message).collect()
}

#[test]
fn a_clock_that_stands_still_is_corrected_by_how_late_it_is() {
    for (length, speed) in [(5_000, 2), (8_000, 2), (5_000, 3)] {
        let step = standstill(crossings(length, speed), length as f64 / 2.0, 10.0)
            .unwrap_or_else(|| panic!("a standstill of {length}, {speed} times as fast"));
        assert!((19_500..=20_000).contains(&step.at), "{step:?}");
        for global in (20_050 + length..60_000).step_by(50) {
            let own = shown(global, length, speed);
            let corrected = crate::steps::stepped(&[step], own);
            assert!((corrected - global).abs() < 250, "{own} is {global}, not {corrected}: {step:?}");
        }
    }
}

#[test]
fn messages_that_are_late_are_no_standstill() {
    // The clock is right, though it shows each time twice, and what it receives for a while is late.
    let late = |k: i64, estimate: f64| {
        let (time, received) = (500 * (k / 2), k % 2 == 0);
        let held = if received && (20_000..25_000).contains(&time) { 5_000.0 } else { 0.0 };
        let travel = 100.0 + held;
        Crossing { own: time, before: travel, after: travel, without: travel + estimate, received }
    };
    let all = |estimate: f64| -> Vec<Crossing> { (0..200).map(|k| late(k, estimate)).collect() };
    assert_eq!(standstill(all(0.0), 2_500.0, 10.0), None);
    // Nor if the estimate is worse.
    assert_eq!(standstill(all(500.0), 2_500.0, 10.0), None);
    assert_eq!(standstill(Vec::new(), 2_500.0, 10.0), None);
    assert_eq!(standstill(crossings(5_000, 2)[..1].to_vec(), 2_500.0, 10.0), None);
}

#[test]
fn a_clock_that_shows_no_time_again_did_not_stand_still() {
    let mut crossings = crossings(5_000, 2);
    assert!(standstill(crossings.clone(), 2_500.0, 10.0).is_some());
    crossings.dedup_by_key(|crossing| crossing.own);
    assert_eq!(standstill(crossings, 2_500.0, 10.0), None);
}
