//! Tests of the linear clock against its definition.

use super::*;
use proptest::prelude::*;

fn record(time: u64, offset: i64) -> ClockOffset {
    ClockOffset { time, offset, standard_deviation: 0.0 }
}

fn clock(records: &[(u64, i64)]) -> LinearClock {
    let records: Vec<_> = records.iter().map(|&(time, offset)| record(time, offset)).collect();
    LinearClock::new(&records).expect("valid records")
}

fn failure(records: &[(u64, i64)]) -> String {
    let records: Vec<_> = records.iter().map(|&(time, offset)| record(time, offset)).collect();
    LinearClock::new(&records).expect_err("invalid records").to_string()
}

#[test]
fn no_record_is_the_identity_and_one_is_constant() {
    assert_eq!(clock(&[]).kind(), ModelKind::Identity);
    assert_eq!(clock(&[]).map(Ticks(42)), Ticks(42));
    let constant = clock(&[(100, -7)]);
    assert_eq!(constant.kind(), ModelKind::Constant);
    for time in [0, 99, 100, 101, 1_000_000] {
        assert_eq!(constant.map(Ticks(time)), Ticks(time - 7));
        assert_eq!(constant.cursor().map(Ticks(time)), Ticks(time - 7));
    }
    assert_eq!(clock(&[(1, 5), (2, 5)]).kind(), ModelKind::Constant);
    assert_eq!(clock(&[(1, 0), (2, 0)]).kind(), ModelKind::Identity);
    assert_eq!(clock(&[(1, 0), (2, 1)]).kind(), ModelKind::Piecewise);
}

#[test]
fn outer_intervals_are_extrapolated_with_their_slopes() {
    let clock = clock(&[(100, 10), (200, 20), (300, 10)]);
    let times = [(0, 0), (100, 110), (105, 115), (106, 117), (200, 220), (300, 310), (400, 400)];
    for (local, global) in times {
        assert_eq!(clock.map(Ticks(local)), Ticks(global), "at {local}");
    }
    // 105 and 115: offsets 10.5 and 11.5, both ties, go to the even neighbour.
    assert_eq!(clock.map(Ticks(115)), Ticks(115 + 12));
    let drifts: Vec<f64> = clock.drifts().map(|drift| drift.ppm).collect();
    assert_eq!(drifts, [1e5, -1e5]);
}

#[test]
fn bad_records_are_named() {
    assert!(failure(&[(5, 0), (5, 1)]).contains("records 1 and 2: time does not increase"));
    assert!(failure(&[(1, 0), (9, 0), (8, 0)]).contains("records 2 and 3: time does not increase"));
    assert!(failure(&[(0, 0), (10, 0), (20, -10)]).contains("records 2 and 3: the offset falls by 10 ticks within 10"));
    assert!(failure(&[(1 << 62, 0)]).contains("record 1: time is outside the range"));
    assert!(failure(&[(u64::MAX, 0)]).contains("record 1: time is outside the range"));
    assert!(failure(&[(0, 0), (1, i64::MIN)]).contains("record 2: offset is outside the range"));
    assert!(failure(&[(0, 1 << 62)]).contains("record 1: offset is outside the range"));
    clock(&[(0, 0), (10, 0), (20, -9)]);
}

#[test]
fn a_time_out_of_range_is_reported_and_clamped() {
    let clock = clock(&[(0, 0), (1, RANGE - 1)]);
    assert_eq!(clock.map(Ticks(1_000)), Ticks(RANGE));
    assert_eq!(clock.map(Ticks::MIN), Ticks(-RANGE));
    assert!(clock.check_range(Ticks(0), Ticks(0)).is_ok());
    assert!(clock.check_range(Ticks(0), Ticks(2)).is_err());
}

#[test]
fn a_clock_survives_serialisation_and_a_broken_one_does_not() {
    let valid = clock(&[(0, 0), (10, 3)]);
    let text = serde_json::to_string(&valid).expect("serialisable");
    assert_eq!(serde_json::from_str::<LinearClock>(&text).expect("readable"), valid);
    assert!(serde_json::from_str::<LinearClock>(&text.replace("10", "0")).is_err());
}

/// Any valid records: gaps and slopes of every magnitude, with clocks that nearly stand still among them.
fn records() -> impl Strategy<Value = Vec<(u64, i64)>> {
    let step = prop_oneof![
        (1i64..20, -30i64..30),
        (1i64..1 << 50, -(1i64 << 50)..1 << 50),
        (1_000_000_000i64..100_000_000_000, -50_000i64..50_000),
    ];
    (0u64..1 << 40, -(1i64 << 40)..1 << 40, prop::collection::vec(step, 0..6)).prop_map(
        |(mut time, mut offset, steps)| {
            let mut records = vec![(time, offset)];
            for (gap, rise) in steps {
                time += gap as u64;
                offset += rise.max(1 - gap);
                records.push((time, offset));
            }
            records
        },
    )
}

/// Times around the records, and anywhere.
fn probes(records: &[(u64, i64)], extra: &[i64]) -> Vec<i64> {
    let near = records.iter().flat_map(|&(time, _)| (-40..40).map(move |step| time as i64 + step));
    let mut times: Vec<i64> = near.chain(extra.iter().copied()).chain([i64::MIN, i64::MAX, 0]).collect();
    times.sort_unstable();
    times
}

proptest! {
    #[test]
    fn nondecreasing_and_the_cursor_agrees(
        records in records(), extra in prop::collection::vec(any::<i64>().prop_map(|n| n >> 12), 0..20),
        order in any::<prop::sample::Index>()
    ) {
        let clock = clock(&records);
        let mut cursor = clock.cursor();
        let times = probes(&records, &extra);
        let mut last = Ticks::MIN;
        for &time in &times {
            let global = clock.map(Ticks(time));
            prop_assert!(global >= last, "at {}", time);
            prop_assert_eq!(cursor.map(Ticks(time)), global);
            last = global;
        }
        // Backwards too: a cursor that is used out of order is slower, never wrong.
        let time = Ticks(times[order.index(times.len())]);
        prop_assert_eq!(cursor.map(time), clock.map(time));
    }

    #[test]
    fn exact_at_every_record(records in records()) {
        let clock = clock(&records);
        for (time, offset) in records {
            prop_assert_eq!(clock.map(Ticks(time as i64)), Ticks(time as i64 + offset));
        }
    }

    #[test]
    fn zero_offsets_change_nothing(gaps in prop::collection::vec(1u64..1 << 40, 0..5), time in -(1i64 << 60)..1 << 60) {
        let mut at = 0;
        let records: Vec<_> = gaps.iter().map(|gap| { at += gap; (at, 0) }).collect();
        prop_assert_eq!(clock(&records).map(Ticks(time)), Ticks(time));
        prop_assert_eq!(clock(&records).cursor().map(Ticks(time)), Ticks(time));
    }

    /// libotf2 in floating point: slope as double, rint. Realistic: nanoseconds, minutes to hours, drifts up to 100 ppm.
    #[test]
    fn agrees_with_floating_point_within_one_tick(
        start in 0u64..1 << 50, gap in 1_000_000_000u64..10_000_000_000_000,
        offset in -1_000_000_000i64..1_000_000_000, ppm in -100.0f64..100.0, share in -0.1f64..1.1
    ) {
        let rise = (gap as f64 * ppm * 1e-6) as i64;
        let time = start as i64 + (gap as f64 * share) as i64;
        let slope = rise as f64 / gap as f64;
        let expected = time + offset + (slope * (time - start as i64) as f64).round_ties_even() as i64;
        let got = clock(&[(start, offset), (start + gap, offset + rise)]).map(Ticks(time));
        prop_assert!((got.0 - expected).abs() <= 1, "{} and {}", got.0, expected);
    }
}
