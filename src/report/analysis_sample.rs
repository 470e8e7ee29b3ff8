//! An analysis with something in every field.

use super::*;
use clc_execution::threads::ThreadWaitKind;
use clc_execution::waiting::DetailKind;

fn waiting(before: f64, after: f64, artefact: f64) -> Waiting {
    Waiting {
        before_seconds: before,
        after_seconds: Some(after),
        artefact_seconds: Some(artefact),
        hidden_seconds: Some(after - before + artefact),
        artefact_share: Some(artefact / before),
        before_count: 1_200,
        after_count: Some(1_100),
    }
}

fn execution(seconds: f64) -> Execution {
    let times = ProcessTimes {
        process: 3,
        computation_seconds: 0.6 * seconds,
        communication_seconds: 0.3 * seconds,
        idle_seconds: 0.1 * seconds,
        waiting_seconds: 0.2 * seconds,
        computation_to_communication: Some(2.0),
    };
    Execution {
        seconds,
        processes: 64,
        computation_seconds: 38.4 * seconds,
        communication_seconds: 19.2 * seconds,
        idle_seconds: 6.4 * seconds,
        waiting_seconds: 12.8 * seconds,
        speedup: 38.4,
        efficiency: 0.6,
        load_balance: Some(0.8),
        communication_efficiency: 0.75,
        computation_to_communication: Some(2.0),
        granularity_seconds: Some(4.8e-3 * seconds),
        window_seconds: 0.5 * seconds,
        parallelism: vec![0.25, 0.95],
        by_process: vec![times],
        further_processes: 63,
    }
}

fn path(seconds: f64, broken: u64) -> CriticalPath {
    let share = Share { seconds: 0.75 * seconds, share: 0.75, weight_seconds: 20.0 * seconds, weight_share: 0.8 };
    CriticalPath {
        seconds,
        weight_seconds: 25.0 * seconds,
        computation_seconds: 0.9 * seconds,
        communication_seconds: 0.08 * seconds,
        idle_seconds: 0.02 * seconds,
        changes: 1_234,
        broken,
        by_call_path: vec![CallPathShare { call_path: ["main", "solve", "smooth"].map(str::to_owned).into(), share }],
        further_call_paths: 11,
        by_region: vec![RegionShare { region: "smooth".into(), share }],
        further_regions: 9,
        by_process: vec![ProcessShare { process: 17, share }],
        further_processes: 20,
        window_seconds: 0.5 * seconds,
        windows: vec![Some(17), None],
        stretches: vec![PathStretch { process: 17, from_seconds: 0.1, to_seconds: 0.35, weight_seconds: 1.5 }],
        further_stretches: 1_233,
    }
}

fn delays() -> DelayCosts {
    let cost = |before: f64, after: f64| DelayCost { before_seconds: before, after_seconds: Some(after) };
    DelayCosts {
        by_region: vec![
            RegionDelay { region: "smooth".into(), cost: cost(90.0, 30.0), long_term: cost(60.0, 12.0) },
            RegionDelay { region: String::new(), cost: cost(10.0, 2.0), long_term: cost(5.0, 0.0) },
        ],
        further_regions: 6,
        by_process: vec![ProcessDelay { process: 3, cost: cost(40.0, 20.0), long_term: cost(65.0, 12.0) }],
        further_processes: 63,
        propagated: cost(80.0, 18.0),
        long_term: cost(65.0, 12.0),
        unexplained: cost(20.0, 1.0),
        not_examined: cost(10.0, 1.0),
    }
}

fn threads() -> ThreadWaits {
    let barrier = waiting(20.0, 18.0, 3.0);
    let kind = |kind| ThreadKindWaiting {
        kind,
        waiting: match kind {
            ThreadWaitKind::WaitAtOpenMpBarrier => barrier,
            _ => Waiting { after_seconds: Some(0.0), after_count: Some(0), ..Waiting::default() },
        },
    };
    let call_path = ["!$omp parallel @solve.c:12", "!$omp implicit barrier @solve.c:30"].map(str::to_owned).into();
    let kinds = ThreadWaitKind::ALL.into_iter().map(kind).collect();
    let kind = ThreadWaitKind::WaitAtOpenMpBarrier;
    ThreadWaits {
        kinds,
        by_call_path: vec![ThreadCallPathWaiting { kind, call_path, waiting: barrier }],
        further_call_paths: 4,
        by_process: vec![ThreadProcessWaiting { kind, process: 17, waiting: waiting(2.0, 1.5, 1.0) }],
        further_processes: 63,
    }
}

/// Before and after of the trace in [`super::sample`].
pub(super) fn analysis() -> Analysis {
    let late_sender = waiting(200.0, 40.0, 164.0);
    let path_of = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let kind = |kind| KindWaiting {
        kind,
        waiting: match kind {
            WaitKind::LateSender => late_sender,
            WaitKind::WaitAtNxn => waiting(10.0, 12.0, 1.0),
            _ => Waiting { after_seconds: Some(0.0), after_count: Some(0), ..Waiting::default() },
        },
    };
    Analysis {
        execution: Stages { before: execution(12.34), after: Some(execution(12.35)) },
        waits: WaitStates {
            operations: 123_456,
            without_region: 2,
            total: waiting(210.0, 52.0, 165.0),
            kinds: WaitKind::ALL.into_iter().map(kind).collect(),
            details: vec![DetailWaiting {
                kind: DetailKind::WrongOrderSameSource,
                part_of: Some(WaitKind::LateSender),
                waiting: waiting(3.0, 1.0, 2.5),
            }],
            by_call_path: vec![CallPathWaiting {
                kind: WaitKind::LateSender,
                call_path: path_of(&["main", "a region with a name that is much too long for a table", "MPI_Waitall"]),
                waiting: late_sender,
            }],
            further_call_paths: 3,
            by_process: vec![ProcessWaiting {
                kind: WaitKind::LateSender,
                process: 17,
                waiting: waiting(9.0, 2.0, 8.0),
            }],
            further_processes: 60,
            by_pair: vec![PairWaiting {
                kind: WaitKind::LateSender,
                process: 17,
                cause: 3,
                before_seconds: 8.0,
                after_seconds: Some(1.5),
            }],
            further_pairs: 250,
            delays: delays(),
            threads: threads(),
        },
        critical_path: Stages { before: path(12.34, 7), after: Some(path(12.35, 0)) },
        traffic: Traffic {
            messages: 40,
            bytes: 1 << 20,
            unit: PairUnit::Node,
            size: 4,
            block: 1,
            pairs: vec![PairTraffic { sender: 0, receiver: 3, messages: 40, bytes: 1 << 20 }],
            window_seconds: 6.17,
            messages_by_window: vec![40, 0],
            bytes_by_window: vec![1 << 20, 0],
            over_time: PairsOverTime {
                unit: PairUnit::Block,
                size: 2,
                block: 2,
                window_seconds: 6.17,
                windows: 2,
                window: vec![0],
                senders: vec![0],
                receivers: vec![1],
                messages: vec![40],
                bytes: vec![1 << 20],
            },
        },
    }
}
