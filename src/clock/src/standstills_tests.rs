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
    // The clock is right, and what it receives for a while is late.
    let late = |crossing: Crossing| {
        let held = crossing.received && (20_000..25_000).contains(&crossing.own);
        let held = if held { 5_000.0 } else { 0.0 };
        let all = |travel: f64| travel + held;
        Crossing {
            before: all(crossing.before),
            after: all(crossing.after),
            without: all(crossing.before) - held / 3.0,
            ..crossing
        }
    };
    assert_eq!(standstill(crossings(0, 2).into_iter().map(late).collect(), 2_500.0, 10.0), None);
    assert_eq!(standstill(Vec::new(), 2_500.0, 10.0), None);
    assert_eq!(standstill(crossings(0, 2)[..1].to_vec(), 2_500.0, 10.0), None);
}
