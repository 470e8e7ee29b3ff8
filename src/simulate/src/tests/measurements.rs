//! Offset measurements against what is known.

use super::small;
use crate::{Discard, LatencyModel, MeasurementPlan, PatternKind, Scenario};
use clc_trace::Result;

fn scenario(measurements: u32, clock: &str) -> Result<Scenario> {
    let measurements = MeasurementPlan { count: measurements, exchanges: 10 };
    Ok(Scenario { measurements, clock: clock.parse()?, ..small(PatternKind::Halo2d, 12) })
}

/// The true offset (global minus local) of a node that shows `local` ticks, found by bisection on true time.
fn true_offset(scenario: &Scenario, node: u32, local: u64, length: i64) -> i64 {
    let (mut low, mut high) = (0, 10 * length);
    while high - low > 1 {
        let middle = (low + high) / 2;
        let shown = scenario.clock.clock(node, scenario.seed, length).read(middle) / 1000;
        if shown < local as i64 { low = middle } else { high = middle }
    }
    scenario.clock.clock(0, scenario.seed, length).read(high) / 1000 - local as i64
}

#[test]
fn errors_stay_within_the_round_trip() -> Result<()> {
    // Offsets refer to the clock of node 0, whether it is right or not.
    for (asymmetry, clock) in [(0.0, "sine"), (1.0, "sine"), (0.0, "all:sine"), (0.0, "all:drift=100ppm")] {
        let latency = LatencyModel { asymmetry, ..LatencyModel::default() };
        let scenario = Scenario { latency, ..scenario(5, clock)? };
        let summary = scenario.run(&mut Discard)?;
        let length = scenario.estimate_length()?;
        let offsets = scenario.offsets(&summary)?;
        assert_eq!(offsets.len(), 12);
        let mut worst = 0;
        for (rank, measured) in offsets.iter().enumerate() {
            assert_eq!(measured.len(), 5);
            assert!(measured.windows(2).all(|w| w[0].time < w[1].time));
            for m in measured {
                let error = (m.offset - true_offset(&scenario, rank as u32 / 3, m.time, length)).abs();
                // The best of ten round trips: twice the minimum, the asymmetry, and a little of the tail.
                assert!(error <= 2_000 + (asymmetry * 1_000.0) as i64, "rank {rank}: {error} ns");
                worst = worst.max(error);
                assert!((rank < 3) == (m.standard_deviation == 0.0));
            }
        }
        // An asymmetric route shifts every measurement by half of the difference: 1 us here.
        assert!(if asymmetry > 0.0 { worst > 900 } else { worst > 5 }, "errors are realistic: {worst} ns");
    }
    Ok(())
}

#[test]
fn there_are_as_many_as_asked_for() -> Result<()> {
    for n in [0, 1, 2, 7] {
        let scenario = scenario(n, "linear")?;
        let summary = scenario.run(&mut Discard)?;
        let offsets = scenario.offsets(&summary)?;
        assert!(offsets.iter().all(|m| m.len() == n as usize));
        for m in offsets.iter().filter(|m| n >= 2 && !m.is_empty()) {
            // From before the first event to after the last.
            let span = (m[m.len() - 1].time - m[0].time) as f64 / (summary.end as f64 / 1e3);
            assert!((0.98..1.02).contains(&span), "{span}");
        }
        assert!(offsets[..3].iter().flatten().all(|m| m.offset == 0));
    }
    Ok(())
}

#[test]
fn more_exchanges_measure_better() -> Result<()> {
    let mut sums = [0; 2];
    for (sum, exchanges) in sums.iter_mut().zip([1, 50]) {
        for seed in 0..40 {
            let measurements = MeasurementPlan { count: 1, exchanges };
            let scenario = Scenario { measurements, seed, ..scenario(1, "offset")? };
            let summary = scenario.run(&mut Discard)?;
            let length = scenario.estimate_length()?;
            let offsets = scenario.offsets(&summary)?;
            *sum += (offsets[3][0].offset - true_offset(&scenario, 1, offsets[3][0].time, length)).abs();
        }
    }
    assert!(sums[1] * 3 < sums[0], "{sums:?}");
    Ok(())
}

#[test]
fn a_clock_that_stands_still_is_measured_once() -> Result<()> {
    let scenario = scenario(4, "offset=1ms;1:resolution=500s")?;
    let summary = scenario.run(&mut Discard)?;
    let offsets = scenario.offsets(&summary)?;
    assert_eq!(offsets[3].len(), 1);
    assert_eq!(offsets[6].len(), 4);
    Ok(())
}
