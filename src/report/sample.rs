//! Hand-made reports for the tests.

use super::*;
use clc_clock::Method;
use clc_engine::matching::collectives::fences::Fences;
use clc_trace::{CommId, EventNumber, LocationId, MpiRank, TimelineNumber};
use controlled_logical_clock::CorrectionForm;
use controlled_logical_clock::latency::LatencyBasis;

fn place(process: u32, event: u64, ticks: i64, region: &str) -> EventPlace {
    let seconds = ticks as f64 * 1e-9;
    EventPlace {
        process: TimelineNumber(process),
        location: LocationId(process.into()),
        event: EventNumber(event),
        ticks,
        seconds,
        region: Some(region.into()),
    }
}

fn stage(message_violations: u64, collective_violations: u64, worst_ticks: i64) -> StageViolations {
    StageViolations {
        point_to_point: PointToPointCheck { checked: 1_234_567, violated: message_violations },
        collectives: vec![CollectiveCheck {
            kind: CollectiveKind::NToN,
            instances_checked: 4_321,
            violated: collective_violations,
        }],
        worst: (worst_ticks > 0).then(|| WorstViolation {
            kind: WorstKind::Message,
            from: place(3, 12_345, 1_234_567_890, "MPI_Isend"),
            to: place(17, 23_456, 1_234_567_890 - worst_ticks, "MPI_Waitall"),
            ticks: worst_ticks,
            seconds: worst_ticks as f64 * 1e-9,
        }),
    }
}

fn trace() -> TraceSummary {
    TraceSummary {
        path: "traces/lulesh".into(),
        name: "traces".into(),
        creator: "Score-P 8.4".into(),
        timer_resolution: 1_000_000_000,
        locations: 64,
        processes: 64,
        nodes: 4,
        communicators: 3,
        span_seconds: 12.34,
        events: 123_456_789,
        events_by_kind: EventCount::sorted([
            ("MpiSend".into(), 0),
            ("MpiIsend".into(), 1_234_567),
            ("Enter".into(), 60_000_000),
            ("Other".into(), 62_222_222),
        ]),
    }
}

/// A correction of 64 processes, with something in every field.
pub(super) fn corrected() -> Report {
    let matching = matching();
    let pass = |gamma, ticks: i64| Pass {
        gamma,
        largest_advance_ticks: ticks,
        largest_advance_seconds: ticks as f64 * 1e-9,
        error: ticks as f64 / 14_000.0,
        mirrored: None,
        displacement_ticks: None,
        displacement_seconds: None,
    };
    let back = MirroredPass { largest_move_ticks: 15_400, largest_move_seconds: 15.4e-6, error: 0.125 };
    let last = Pass {
        mirrored: Some(back),
        displacement_ticks: Some(11_800),
        displacement_seconds: Some(11.8e-6),
        ..pass(0.9999, 16_100)
    };
    let violations = Violations {
        raw: Some(stage(12_345, 1_024, 33_000_000)),
        presynchronised: Some(stage(120, 3, 4_500)),
        corrected: Some(stage(0, 0, 0)),
    };
    let coverage = Coverage::new(violations.checked(), &matching, 0, &[]);
    Report {
        schema: SCHEMA,
        verdict: Verdict::new(&violations, &coverage, 64),
        coverage,
        program: ProgramInfo {
            version: "0.1.0".into(),
            command_line: ["clc-replay", "traces/lulesh"].map(String::from).into(),
            mpi_library: "Open MPI v4.1.4".into(),
            analysis_ranks: 64,
        },
        trace: trace(),
        parameters: ParametersUsed {
            presync: Method::Linear,
            clocks: ClockCounts { identity: 16, constant: 0, piecewise: 48 },
            latency: LatencyUsed { same_node_seconds: 3e-7, other_node_seconds: 1.2e-6, basis: LatencyBasis::Given },
            gamma: Some(0.99999),
            max_passes: Some(5),
            max_error: Some(1.5),
            slope: Some(0.01),
            alltoallv: false,
            handles: false,
            fences: Fences::Auto,
        },
        clocks: Some(clocks()),
        matching,
        violations,
        replay: Some(Replay {
            form: ReplayForm::Canonical,
            d0_ticks: 14_000,
            d0_seconds: 14e-6,
            passes: vec![pass(0.99999, 234_000), last],
            correction: CorrectionForm::Common,
            common_motion: Some(CommonMotion {
                largest_ticks: 9_200,
                largest_seconds: 9.2e-6,
                steepest: 0.0005,
                restored_ticks: 2,
                restored_seconds: 2e-9,
            }),
        }),
        displacement: Some(displacement()),
        phases: vec![
            Phase::new("scan", 1.25, 123_456_789),
            Phase::new("forward", 0.5, 0),
            Phase::new("rewrite", 2.5, 123_456_789),
        ],
        memory: MemoryUse { largest_rank_bytes: 12 << 20, all_ranks_bytes: 700 << 20 },
        warnings: vec![
            Warning { text: "Location definitions claim a wrong number of events; it was counted.".into(), count: 64 },
            Warning { text: "One odd thing.".into(), count: 1 },
        ],
        output: Some("traces/lulesh-clc".into()),
        details: Some(details()),
        locks: Some(locks()),
        analysis: None,
    }
}

fn matching() -> Matching {
    let mut matching = Matching {
        messages: 1_234_567,
        self_messages: 12,
        unmatched_sends: 7,
        unmatched_receives: 1,
        implied_orders: 2,
        channels_in_doubt: 1,
        channels_of_several_threads: 0,
        doubtful_channels: vec![DoubtfulChannel {
            sender: 0,
            receiver: 1,
            communicator: 4,
            tag: 7,
            sends: 10,
            receives: 3,
            matched: 3,
            implied_orders: 2,
            several_threads: false,
        }],
        contradicted_orders: 5,
        undefined_peers: 3,
        receives_never_completed: 7,
        cancelled_requests: 2,
        calls_without_records: vec![CallCount { region: "MPI_Mrecv".into(), count: 6, never_recorded: true }],
        threads: vec![ThreadSteps {
            kind: CollectiveKind::Fork,
            one_timeline: 25_600,
            several_timelines: 400,
            left_out: 0,
        }],
        collectives: vec![
            CollectiveCounts {
                operation: "allreduce".into(),
                matched: 4_321,
                incomplete: 1,
                inconsistent: 0,
                unconstrained: 0,
                unconstrained_reasons: vec![],
            },
            CollectiveCounts {
                operation: "alltoallv".into(),
                matched: 0,
                incomplete: 0,
                inconsistent: 0,
                unconstrained: 1_000,
                unconstrained_reasons: vec![ReasonCount {
                    reason: "the trace does not say who exchanged data (--alltoallv)".into(),
                    count: 1_000,
                }],
            },
        ],
        ..Matching::default()
    };
    let pair = |sender, receiver, sends, receives| UnmatchedPair { sender, receiver, sends, receives };
    matching.set_unmatched_pairs(vec![pair(5, 6, 0, 1), pair(0, 1, 7, 0), pair(1, 2, 0, 0)]);
    matching
}

fn clocks() -> ClockEstimate {
    ClockEstimate {
        requested: Method::Auto,
        chosen: Method::Linear,
        reason: "the recorded clocks agree with the messages as well as estimated clocks would".into(),
        reference: clc_clock::reference::Reference::Auto,
        confidence: 0.9,
        segment_seconds: 1800.0,
        max_delay_seconds: None,
        windows: 512,
        window_seconds: 0.25,
        latency_seconds: 1.2e-6,
        misfit_estimated: Some(2.1),
        misfit_recorded: Some(2.125),
        discarded: 0,
        skew_recorded_seconds: 1.5e-5,
        skew_estimated_seconds: 2.5e-7,
        skew_median_recorded_seconds: 7.5e-6,
        skew_median_estimated_seconds: 5e-7,
        further: FurtherClocks { pairs: 3, clocks: 2, drift_ppm: 1.5, ..FurtherClocks::default() },
        pairs: vec![ClockPair {
            a: 0,
            b: 16,
            samples: 1024,
            offset_seconds: -0.0125,
            drift_ppm: 1.75,
            residual_seconds: 2.5e-7,
            deviation_seconds: 2.5e-7,
            offset_error_seconds: None,
            drift_error_ppm: None,
        }],
        clocks: vec![
            NodeClock {
                first_process: 0,
                reference: true,
                observations: 1024,
                hops: Some(0),
                drift_ppm: 0.0,
                residual_seconds: 2.5e-7,
                uncertainty_seconds: Some(0.0),
                steps: Vec::new(),
            },
            NodeClock {
                first_process: 16,
                reference: false,
                observations: 1024,
                hops: Some(1),
                drift_ppm: 1.75,
                residual_seconds: 2.5e-7,
                uncertainty_seconds: Some(1.45e-6),
                steps: vec![ClockStep { at_seconds: 0.75, forward_seconds: -0.001 }],
            },
        ],
    }
}

fn displacement() -> Displacement {
    Displacement {
        events: 123_456_789,
        events_moved: 1_234_567,
        largest_ticks: 16_100,
        largest_seconds: 16.1e-6,
        mean_seconds: 2.3e-6,
        from_recorded_events: 92_592_591,
        from_recorded_largest_ticks: 33_012_000,
        from_recorded_largest_seconds: 33.012e-3,
        interval_change: IntervalChange {
            largest_percent: 12.5,
            median_percent: 0.0,
            classes: IntervalChange::classes([122_000_000, 400_000, 500_000, 556_720, 5, 0, 0]),
            histogram: vec![
                ChangeOctave { from_percent: 0.78125, intervals: 1_400_000 },
                ChangeOctave { from_percent: 1.5625, intervals: 56_725 },
            ],
        },
    }
}

fn locks() -> LockStages {
    let place = |process: u32, event, ticks: i64| EventPlace {
        process: TimelineNumber(process),
        location: LocationId(process.into()),
        event: EventNumber(event),
        ticks,
        seconds: ticks as f64 / 1e9,
        region: None,
    };
    let (held, acquired) = (place(3, 777, 1_250_000_000), place(5, 888, 1_249_997_500));
    let worst = Some(Overlap { window: 2, target: Some(1), held, acquired, ticks: 2500, seconds: 2.5e-6 });
    let after = Locks { compared: 40, ..Locks::default() };
    Stages { before: Locks { overlapping: 3, worst, ..after.clone() }, after: Some(after) }
}

/// A stage with so many violations.
fn violated(stage: Stage, violated: u64) -> StageDetails {
    StageDetails {
        stage,
        operations: vec![OperationCheck { operation: "message".into(), checked: 1_234_567, violated }],
        checked: vec![600_000, 638_888],
        violated: vec![0, violated],
        distances: match violated {
            0 => vec![],
            _ => vec![DistanceClass {
                over_seconds: 2e-6,
                up_to_seconds: Some(5e-6),
                messages: violated,
                collective_ends: 3,
            }],
        },
    }
}

/// Something in every field, for two windows and two nodes.
fn details() -> Details {
    let node = |name: &str, first_process, presync: i64| NodeCurve {
        name: name.into(),
        first_process: Some(MpiRank(first_process)),
        processes: 16,
        location: (first_process > 0).then_some(LocationId(first_process.into())),
        presync_ticks: vec![Some(presync), Some(presync + 250)],
        forward_ticks: vec![Some(0), Some(1_200)],
        backward_ticks: vec![None, Some(300)],
        forward_largest_ticks: vec![Some(0), Some(4_500)],
        backward_largest_ticks: vec![None, Some(4_000)],
    };
    let bar = |level, from, to| RegionBar { region: "MPI_Waitall".into(), level, from_seconds: from, to_seconds: to };
    let picture = |stage: Stage, send, receive| Picture {
        stage,
        seconds: 13.5e-6,
        lanes: [
            Lane { at_seconds: send, bars: vec![bar(0, 0.0, 13.5e-6), bar(1, 4e-6, 12e-6)] },
            Lane { at_seconds: receive, bars: vec![bar(0, 2e-6, 9e-6)] },
        ],
    };
    Details {
        clock_error: ClockError {
            window_seconds: 6.17,
            windows: 2,
            nodes: vec![node("node0", 0, 0), node("node1", 16, -3_000)],
            further_nodes: 2,
        },
        window_seconds: 6.17,
        stages: vec![
            violated(Stage::Raw, 12_345),
            violated(Stage::Presynchronised, 120),
            violated(Stage::Corrected, 0),
        ],
        pairs: PairMatrix {
            unit: PairUnit::Process,
            size: 64,
            block: 1,
            senders: vec![3, 17],
            receivers: vec![17, 3],
            messages: vec![20, 20],
            stages: [12, 2, 0]
                .map(|violated| PairStage {
                    violated: vec![violated, 0],
                    largest_ticks: vec![violated as i64 * 500, 0],
                })
                .into(),
        },
        worst: vec![Case {
            stage: Stage::Presynchronised,
            kind: WorstKind::Message,
            operation: "message".into(),
            from: place(3, 12_345, 1_234_567_890, "MPI_Isend"),
            to: place(17, 23_456, 1_234_563_390, "MPI_Waitall"),
            ticks: 4_500,
            seconds: 4.5e-6,
            pictures: vec![picture(Stage::Presynchronised, 9e-6, 4.5e-6), picture(Stage::Corrected, 6.75e-6, 6.75e-6)],
        }],
        slopes: Some(Slopes { ordinary: 120, steeper: 3, steepest: 0.25, vertical: 1, decay: 1e-4 }),
        locations: vec![LocationDisplacement {
            location: LocationId(17),
            process: Some(MpiRank(17)),
            events: 1_929_012,
            events_moved: 20_000,
            largest_ticks: 16_100,
            largest_seconds: 16.1e-6,
            mean_seconds: 2.3e-6,
        }],
        further_locations: 63,
    }
}

/// The same trace, only checked.
pub(super) fn checked() -> Report {
    let mut report = corrected();
    report.violations.corrected = None;
    report.matching = Matching { messages: 1_234_567, ..Matching::default() };
    report.coverage = Coverage::new(report.violations.checked(), &report.matching, 0, &[]);
    report.verdict = Verdict::new(&report.violations, &report.coverage, report.trace.processes);
    (report.replay, report.displacement, report.output, report.details) = (None, None, None, None);
    report.locks = None;
    report.warnings.clear();
    let parameters = &mut report.parameters;
    (parameters.gamma, parameters.max_passes, parameters.max_error, parameters.slope) = (None, None, None, None);
    report
}

/// A trace of `processes` processes, 16 per node.
pub(super) fn info(processes: u32) -> Info {
    let locations = (0..processes).map(|rank| LocationInfo {
        id: LocationId(rank.into()),
        name: "Master thread".into(),
        group: format!("MPI Rank {rank}"),
        node: Some(format!("node{}", rank / 16)),
        rank: Some(MpiRank(rank)),
        events: 1_000 + u64::from(rank),
        first_seconds: Some(0.0),
        last_seconds: Some(12.34),
        clock: ClockInfo {
            measurements: 2,
            first_offset_ticks: Some(i64::from(rank) * -1_000),
            last_offset_ticks: Some(i64::from(rank) * -1_100),
            drift_ppm: Some(f64::from(rank) * -0.01),
        },
    });
    let rows = (0..processes / 4).map(|row| CommunicatorInfo {
        id: CommId(row + 1),
        name: String::new(),
        size: 4,
        inter: false,
    });
    let world = CommunicatorInfo { id: CommId(0), name: "MPI_COMM_WORLD".into(), size: processes.into(), inter: false };
    Info {
        schema: SCHEMA,
        trace: TraceSummary { processes: processes.into(), locations: processes.into(), ..trace() },
        nodes: (0..processes.div_ceil(16))
            .map(|node| NodeInfo { name: format!("node{node}"), processes: 16, locations: 16 })
            .collect(),
        communicators: std::iter::once(world).chain(rows).collect(),
        locations: locations.collect(),
        warnings: vec![Warning { text: "One odd thing.".into(), count: 2 }],
    }
}
