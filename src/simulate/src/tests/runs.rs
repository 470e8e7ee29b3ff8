//! Properties of whole runs.

use super::checker::check;
use super::{record, small};
use crate::{Discard, LatencyModel, MeasurementPlan, PairClass, PatternKind, Scenario};
use clc_trace::{Error, Event, Result, Ticks};
use proptest::prelude::*;

#[test]
fn every_pattern_obeys_the_clock_condition_in_true_time() -> Result<()> {
    for &pattern in PatternKind::ALL {
        for ranks in [2, 3, 4, 7, 8, 12, 27] {
            if ranks >= pattern.least_ranks() {
                let scenario = Scenario { clock: "mixed".parse()?, ..small(pattern, ranks) };
                let seen = check(&scenario, &record(&scenario)?);
                let orders = pattern.is_beyond_messages() || pattern.has_parts();
                assert!(orders == (seen.orders > 0), "{}: {seen:?}", pattern.name());
                if pattern.has_window() || pattern == PatternKind::Collectives {
                    continue;
                }
                assert!(seen.messages > 0, "{} has messages", pattern.name());
                // Receives that are completed together are recorded late.
                let most = if pattern == PatternKind::Alltoall { 5_000 } else { 2_000 };
                assert!(
                    seen.slack < most,
                    "{}: some message is nearly as fast as possible: {} ns",
                    pattern.name(),
                    seen.slack
                );
            }
        }
    }
    Ok(())
}

#[test]
fn mix_uses_every_class_of_operation() -> Result<()> {
    let scenario = Scenario { events: 20_000, ..small(PatternKind::Mix, 7) };
    let seen = check(&scenario, &record(&scenario)?);
    for op in 0..17 {
        for non_blocking in [false, true] {
            assert!(seen.collectives.contains_key(&(op, non_blocking)), "operation {op}, {non_blocking}");
        }
    }
    assert!(seen.overtaken > 0 && seen.silent > 0 && seen.cancelled > 0 && seen.tests > 0 && seen.ties > 0);
    Ok(())
}

#[test]
fn halo_receives_complete_out_of_order() -> Result<()> {
    for pattern in [PatternKind::Halo2d, PatternKind::Halo3d] {
        let run = record(&small(pattern, 12))?;
        let mut swapped = 0;
        for records in &run.0 {
            let ids: Vec<u64> =
                records.iter().filter_map(|r| if let Event::MpiIrecv(_, id) = r.2 { Some(id) } else { None }).collect();
            swapped += ids.windows(2).filter(|w| w[0] > w[1]).count();
        }
        assert!(swapped > 20, "{}: {swapped}", pattern.name());
    }
    Ok(())
}

#[test]
fn the_master_takes_results_from_any_source() -> Result<()> {
    let run = record(&small(PatternKind::MasterWorker, 6))?;
    let sources: Vec<u32> =
        run.0[0].iter().filter_map(|r| if let Event::MpiRecv(m) = r.2 { Some(m.peer) } else { None }).collect();
    let in_turn = sources.windows(2).filter(|w| w[1] == w[0] % 5 + 1).count();
    assert!(in_turn < sources.len() * 3 / 4, "not in rank order: {sources:?}");
    Ok(())
}

#[test]
fn large_messages_wait_for_their_receive() -> Result<()> {
    // A ring of rendezvous messages: every send lasts at least until the receiver has entered its receive.
    let scenario = Scenario { message_bytes: 1_000_000, ..small(PatternKind::Ring, 4) };
    let run = record(&scenario)?;
    check(&scenario, &run);
    let transfer = 100_000;
    for records in &run.0 {
        for w in records.windows(2) {
            if matches!(w[0].2, Event::MpiSend(_)) {
                assert!(w[1].0 - w[0].0 >= Ticks(transfer), "{w:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_run_has_about_the_events_asked_for() -> Result<()> {
    for &pattern in PatternKind::ALL {
        let scenario = Scenario { events: 5_000, ..small(pattern, 9) };
        let summary = scenario.run(&mut Discard)?;
        let mean = summary.events.iter().sum::<u64>() as f64 / 9.0;
        assert!((5_000.0..5_300.0).contains(&mean), "{}: {mean}", pattern.name());
        let length = scenario.estimate_length()? as f64;
        assert!((length / summary.end as f64 - 1.0).abs() < 0.2, "{}: {length} {}", pattern.name(), summary.end);
    }
    Ok(())
}

#[test]
fn seeds_decide_everything() -> Result<()> {
    for &pattern in PatternKind::ALL {
        let scenario = Scenario { clock: "mixed".parse()?, threads: 2, ..small(pattern, 8) };
        let other = Scenario { seed: 2, ..scenario.clone() };
        let run = record(&scenario)?;
        assert_eq!(run, record(&scenario)?, "{}", pattern.name());
        assert_ne!(run, record(&other)?, "{}", pattern.name());
    }
    Ok(())
}

#[test]
fn the_bits_are_the_same_on_every_machine() -> Result<()> {
    // A digest of a run with all random models: it may change only together with the models.
    let scenario = Scenario { clock: "mixed".parse()?, ..small(PatternKind::Mix, 8) };
    let mut digest = crc32fast::Hasher::new();
    for records in record(&scenario)?.0 {
        for (true_time, local_time, _) in records {
            digest.update(&true_time.0.to_le_bytes());
            digest.update(&local_time.0.to_le_bytes());
        }
    }
    assert_eq!(digest.finalize(), 535_894_752);
    Ok(())
}

#[test]
fn clocks_disturb_local_times_only() -> Result<()> {
    let perfect = small(PatternKind::Halo2d, 9);
    let wrong = Scenario { clock: "linear".parse()?, ..perfect.clone() };
    let (perfect, wrong) = (record(&perfect)?, record(&wrong)?);
    for (location, (a, b)) in perfect.0.iter().zip(&wrong.0).enumerate() {
        assert!(a.iter().zip(b).all(|(a, b)| (a.0, a.2) == (b.0, b.2)));
        assert!(a.iter().all(|r| r.0 == r.1), "a perfect clock shows true time");
        assert_eq!(b.iter().all(|r| r.0 == r.1), location < 3, "only the reference node is right");
    }
    Ok(())
}

#[test]
fn locations_of_a_node_share_a_clock() -> Result<()> {
    let scenario = Scenario { clock: "mixed".parse()?, threads: 3, ..small(PatternKind::Ring, 6) };
    let run = record(&scenario)?;
    check(&scenario, &run);
    for node in 0..2 {
        let mut all: Vec<_> = run.0[node * 9..(node + 1) * 9].iter().flatten().map(|r| (r.0, r.1)).collect();
        all.sort_unstable();
        // A tick of true time is a thousand picoseconds, within which a clock may pass one tick of its own.
        assert!(all.windows(2).all(|w| w[0].1 <= w[1].1 + Ticks(1)));
    }
    Ok(())
}

#[test]
fn definitions_describe_the_run() -> Result<()> {
    let scenario = Scenario { threads: 2, ..small(PatternKind::Mix, 7) };
    let mut definitions = scenario.definitions();
    let summary = scenario.run(&mut Discard)?;
    summary.complete(&mut definitions);
    assert_eq!(definitions.locations.len(), 14);
    assert_eq!(definitions.processes.len(), 7);
    assert_eq!(definitions.system_tree.len(), 1 + 3);
    let sum: u64 = definitions.locations.iter().map(|l| l.claimed_events).sum();
    assert_eq!(sum, summary.events.iter().sum::<u64>());
    assert!(definitions.clock.trace_length > 0);
    for (id, comm) in definitions.communicators.iter().enumerate() {
        assert_eq!(comm.id.0 as usize, id);
    }
    for record in record(&scenario)?.0.iter().flatten() {
        if let Event::Enter(region) = record.2 {
            assert!(definitions.regions.iter().any(|r| r.id == region && !r.name.is_empty()));
        }
        let clock = &definitions.clock;
        assert!((clock.global_offset..=clock.global_offset + clock.trace_length).contains(&(record.1.0 as u64)));
    }
    assert_eq!(definitions.regions[18].name, "MPI_Bcast");
    Ok(())
}

#[test]
fn an_idle_phase_is_silent_and_makes_the_run_longer() -> Result<()> {
    for &pattern in PatternKind::ALL {
        let busy = small(pattern, 8);
        let idle = Scenario { idle: 1_000_000_000_000, ..busy.clone() };
        check(&idle, &record(&idle)?);
        let silence = |scenario: &Scenario| -> Result<i64> {
            let recorded = record(scenario)?;
            // Nobody does anything but compute between these two.
            let mut times: Vec<i64> = recorded.0.iter().flatten().map(|record| record.1.0).collect();
            times.sort_unstable();
            Ok(times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0))
        };
        let second = i64::try_from(idle.resolution).unwrap_or(i64::MAX);
        assert!(silence(&idle)? > second * 9 / 10 && silence(&busy)? < second / 10, "{}", pattern.name());
        assert_eq!(idle.estimate_length()?, busy.estimate_length()? + idle.idle);
    }
    Ok(())
}

#[test]
fn impossible_scenarios_are_refused() -> Result<()> {
    let good = Scenario::default();
    good.validate()?;
    let class = PairClass { minimum: -5, ..good.latency.other_node };
    let slow = LatencyModel { other_node: class, ..good.latency };
    for (scenario, part) in [
        (Scenario { ranks: 0, ..good.clone() }, "0 ranks (allowed: 1 to 1048576)"),
        (Scenario { ranks: 3, ..good.clone() }, "halo2d needs at least 4 ranks, not 3"),
        (Scenario { ranks_per_node: 0, ..good.clone() }, "0 ranks per node"),
        (Scenario { threads: 0, ..good.clone() }, "0 threads"),
        (Scenario { events: 0, ..good.clone() }, "0 events"),
        (Scenario { latency: slow, ..good.clone() }, "allowed: 0 to 1 s"),
        (Scenario { resolution: 0, ..good.clone() }, "resolution"),
        (Scenario { imbalance: f64::NAN, ..good.clone() }, "imbalance"),
        (Scenario { compute: -1, ..good.clone() }, "computation"),
        (Scenario { idle: -1, ..good.clone() }, "without communication"),
        (Scenario { measurements: MeasurementPlan { exchanges: 0, count: 2 }, ..good.clone() }, "exchanges"),
    ] {
        let error = scenario.run(&mut Discard).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains(part), "'{error}' should say '{part}'");
    }
    let error = "halo9d".parse::<PatternKind>().err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("patterns: ring, halo1d"), "{error}");
    Ok(())
}

#[test]
fn an_error_of_the_sink_ends_the_run() {
    struct Full;
    impl crate::EventSink for Full {
        fn event(&mut self, _: usize, _: Ticks, _: Ticks, _: &Event) -> Result<()> {
            Err(Error::new("disk full"))
        }
    }
    assert!(Scenario::default().run(&mut Full).is_err_and(|e| e.message == "disk full"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_scenario_obeys_the_clock_condition(
        pattern in 0..PatternKind::ALL.len(),
        ranks in 8u32..20,
        ranks_per_node in 1u32..6,
        threads in 1u32..3,
        seed in any::<u64>(),
        bytes in prop::sample::select(vec![0u64, 8, 4096, 20_000, 3_000_000]),
        compute in prop::sample::select(vec![0i64, 1_000_000, 50_000_000]),
        minimum in prop::sample::select(vec![0i64, 500_000, 5_000_000]),
        asymmetry in 0.0..2.0,
    ) {
        let other_node = PairClass { minimum, ..LatencyModel::default().other_node };
        let scenario = Scenario {
            ranks, ranks_per_node, threads, seed, compute,
            pattern: PatternKind::ALL[pattern],
            message_bytes: bytes,
            events: 600,
            latency: LatencyModel { other_node, asymmetry, ..LatencyModel::default() },
            clock: "mixed".parse().map_err(|e| TestCaseError::fail(format!("{e}")))?,
            ..Scenario::default()
        };
        let run = record(&scenario).map_err(|e| TestCaseError::fail(e.to_string()))?;
        check(&scenario, &run);
    }
}
