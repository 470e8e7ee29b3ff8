//! From sums in ticks to the report.

use crate::analysis::gaps::Gaps;
use crate::analysis::largest::Largest;
use crate::analysis::replay::delays::{Costs, DelaySums};
use crate::analysis::replay::walk::Path;
use crate::analysis::same_regions::SameRegions;
use crate::analysis::sums::{AnalysisSums, PathPart, PathSum, ProcessSums};
use crate::pipeline::open::TraceHandle;
use crate::report::{
    Analysis, CallPathShare, CallPathWaiting, CriticalPath, DelayCost, DelayCosts, DetailWaiting, Execution,
    KindWaiting, PairWaiting, PathStretch, ProcessDelay, ProcessShare, ProcessTimes, ProcessWaiting, RegionDelay,
    RegionShare, Share, Stages, ThreadCallPathWaiting, ThreadKindWaiting, ThreadProcessWaiting, ThreadWaits,
    WaitStates, Waiting,
};
use clc_execution::parallelism::Parallelism;
use clc_execution::threads::ThreadWaitKind;
use clc_execution::waiting::{DetailKind, WaitKind, WaitingTally};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The report of a whole trace.
pub(super) fn report(
    opened: &TraceHandle,
    whole: AnalysisSums,
    parallelism: &[Parallelism],
    paths: &[Path],
) -> Analysis {
    let names = opened.definitions.regions.iter().map(|region| (region.id.0, region.name.as_str())).collect();
    let same = SameRegions::new(&opened.definitions);
    let maker = Maker { opened, names, same: &same, parallelism };
    let AnalysisSums {
        operations,
        without_region,
        times,
        longest_computation,
        processes,
        kinds,
        details,
        by_call_path,
        by_process,
        by_pair,
        threads,
        threads_by_call_path,
        threads_by_process,
        delays,
        traffic,
        ..
    } = whole;
    let executions = maker.executions(&times, &longest_computation, processes, traffic.messages());
    let critical_paths =
        whole.paths.into_iter().zip(paths).enumerate().map(|(stage, (part, path))| maker.path(stage, part, path));
    let last = parallelism.len() - 1;
    let by_call_path = by_call_path.joined(|region| same.first(region), |sum, more| sum.merge(&more));
    let threads_by_call_path = threads_by_call_path.joined(|region| same.first(region), |sum, more| sum.merge(&more));
    let waits = maker.waits(kinds, by_call_path.sorted(), by_process, by_pair);
    let threads = maker.threads(&threads, threads_by_call_path.sorted(), threads_by_process);
    Analysis {
        execution: stages(executions),
        waits: WaitStates {
            operations,
            without_region,
            details: maker.details(&details),
            delays: maker.delays(delays),
            threads,
            ..waits
        },
        critical_path: stages(critical_paths.collect()),
        traffic: traffic.report(opened, parallelism[last].windows()),
    }
}

/// One value per stage.
fn stages<T: Default>(values: Vec<T>) -> Stages<T> {
    let mut values = values.into_iter();
    Stages { before: values.next().unwrap_or_default(), after: values.next() }
}

struct Maker<'a> {
    opened: &'a TraceHandle,
    names: HashMap<u32, &'a str>,
    same: &'a SameRegions,
    parallelism: &'a [Parallelism],
}

impl Maker<'_> {
    fn seconds(&self, ticks: i128) -> f64 {
        ticks as f64 / self.opened.definitions.clock.resolution as f64
    }

    fn two_stages(&self) -> bool {
        self.parallelism.len() > 1
    }

    fn call_path(&self, regions: &[u32]) -> Vec<String> {
        regions.iter().take(Analysis::DEPTH).map(|region| self.region(*region)).collect()
    }

    fn region(&self, region: u32) -> String {
        self.names.get(&region).map_or_else(|| format!("region {region}"), |name| (*name).to_owned())
    }

    fn executions(
        &self,
        times: &[[i128; 3]],
        longest_computation: &[i64],
        processes: Largest<ProcessSums>,
        messages: u64,
    ) -> Vec<Execution> {
        let count = self.opened.timelines.processes as u64;
        let (mut list, further) = processes.finish();
        list.sort_by_key(|own| own.process);
        let execution = |(stage, (sums, parallelism)): (usize, (&[i128; 3], &Parallelism))| {
            let [span, communication, waiting] = *sums;
            let windows = parallelism.windows();
            let length = i128::from(windows.length());
            let computation = span - communication;
            let longest = i128::from(longest_computation[stage]);
            let ratio = |a: i128, b: i128| (b > 0).then(|| a as f64 / b as f64);
            let process = |own: &ProcessSums| {
                let (from, to) = own.span[stage];
                let (span, communication) = (i128::from(to - from), i128::from(own.communication[stage]));
                ProcessTimes {
                    process: own.process,
                    computation_seconds: self.seconds(span - communication),
                    communication_seconds: self.seconds(communication),
                    idle_seconds: self.seconds(length - span),
                    waiting_seconds: self.seconds(own.waiting[stage].into()),
                    computation_to_communication: ratio(span - communication, communication),
                }
            };
            Execution {
                seconds: self.seconds(length),
                processes: count,
                computation_seconds: self.seconds(computation),
                communication_seconds: self.seconds(communication),
                idle_seconds: self.seconds(length * i128::from(count) - span),
                waiting_seconds: self.seconds(waiting),
                speedup: ratio(computation, length).unwrap_or(0.0),
                efficiency: ratio(computation, length * i128::from(count)).unwrap_or(0.0),
                load_balance: ratio(computation, longest * i128::from(count)),
                communication_efficiency: ratio(longest, length).unwrap_or(0.0),
                computation_to_communication: ratio(computation, communication),
                granularity_seconds: (messages > 0).then(|| self.seconds(computation) / messages as f64),
                window_seconds: self.seconds(length) / windows.count as f64,
                parallelism: parallelism.degrees(),
                by_process: list.iter().map(process).collect(),
                further_processes: further,
            }
        };
        times.iter().zip(self.parallelism).enumerate().map(execution).collect()
    }

    fn waiting(&self, tally: &WaitingTally) -> Waiting {
        let after = |value: i128| self.two_stages().then(|| self.seconds(value));
        let share = || tally.artefact as f64 / tally.ticks[0] as f64;
        Waiting {
            before_seconds: self.seconds(tally.ticks[0]),
            after_seconds: after(tally.ticks[1]),
            artefact_seconds: after(tally.artefact),
            hidden_seconds: after(tally.hidden),
            artefact_share: (self.two_stages() && tally.ticks[0] > 0).then(share),
            before_count: tally.counts[0],
            after_count: self.two_stages().then_some(tally.counts[1]),
        }
    }

    fn details(&self, details: &BTreeMap<DetailKind, WaitingTally>) -> Vec<DetailWaiting> {
        let detail = |kind: DetailKind| {
            let tally = details.get(&kind).copied().unwrap_or_default();
            DetailWaiting { kind, part_of: kind.part_of(), waiting: self.waiting(&tally) }
        };
        DetailKind::ALL.into_iter().map(detail).collect()
    }

    fn waits(
        &self,
        kinds: BTreeMap<WaitKind, WaitingTally>,
        mut by_call_path: Vec<(WaitKind, Vec<u32>, WaitingTally)>,
        by_process: Largest<(WaitKind, u32, WaitingTally)>,
        by_pair: Largest<(WaitKind, u32, u32, [i128; 2])>,
    ) -> WaitStates {
        let mut total = WaitingTally::default();
        kinds.values().for_each(|tally| total.merge(tally));
        let kind = |kind: WaitKind| {
            let tally = kinds.get(&kind).copied().unwrap_or_default();
            KindWaiting { kind, waiting: self.waiting(&tally) }
        };
        by_call_path.sort_by_key(|(_, _, tally)| Reverse(tally.longest()));
        let entries = by_process.most();
        let further_call_paths = by_call_path.len().saturating_sub(entries) as u64;
        by_call_path.truncate(entries);
        let (by_process, further_processes) = by_process.finish();
        let (by_pair, further_pairs) = by_pair.finish();
        let at_path = |(kind, regions, tally): (WaitKind, Vec<u32>, WaitingTally)| CallPathWaiting {
            kind,
            call_path: self.call_path(&regions),
            waiting: self.waiting(&tally),
        };
        let at_process = |(kind, process, tally): (WaitKind, u32, WaitingTally)| ProcessWaiting {
            kind,
            process,
            waiting: self.waiting(&tally),
        };
        let of_pair = |(kind, process, cause, ticks): (WaitKind, u32, u32, [i128; 2])| PairWaiting {
            kind,
            process,
            cause,
            before_seconds: self.seconds(ticks[0]),
            after_seconds: self.two_stages().then(|| self.seconds(ticks[1])),
        };
        WaitStates {
            total: self.waiting(&total),
            kinds: WaitKind::ALL.into_iter().map(kind).collect(),
            details: Vec::new(),
            by_call_path: by_call_path.into_iter().map(at_path).collect(),
            further_call_paths,
            by_process: by_process.into_iter().map(at_process).collect(),
            further_processes,
            by_pair: by_pair.into_iter().map(of_pair).collect(),
            further_pairs,
            ..WaitStates::default()
        }
    }

    fn delays(&self, sums: DelaySums) -> DelayCosts {
        let cost = |ticks: [i128; 2]| DelayCost {
            before_seconds: self.seconds(ticks[0]),
            after_seconds: self.two_stages().then(|| self.seconds(ticks[1])),
        };
        let mut regions: Vec<(u32, Costs)> = sums.by_region.into_iter().collect();
        regions.sort_by_key(|(region, costs)| (Reverse(costs.largest()), *region));
        let long_term = [0, 1].map(|stage| regions.iter().map(|(_, costs)| costs.long_term[stage]).sum());
        let entries = sums.by_process.most();
        let further_regions = regions.len().saturating_sub(entries) as u64;
        let (processes, further_processes) = sums.by_process.finish();
        let name = |region| if region == Gaps::OUTSIDE { String::new() } else { self.region(region) };
        let both = |costs: Costs| (cost(costs.short_term), cost(costs.long_term));
        let of_region = |(region, costs)| {
            let (cost, long_term) = both(costs);
            RegionDelay { region: name(region), cost, long_term }
        };
        let of_process = |(process, costs)| {
            let (cost, long_term) = both(costs);
            ProcessDelay { process, cost, long_term }
        };
        DelayCosts {
            by_region: regions.into_iter().take(entries).map(of_region).collect(),
            further_regions,
            by_process: processes.into_iter().map(of_process).collect(),
            further_processes,
            propagated: cost(sums.propagated),
            long_term: cost(long_term),
            unexplained: cost(sums.unexplained),
            not_examined: cost(sums.not_examined),
        }
    }

    fn threads(
        &self,
        kinds: &BTreeMap<ThreadWaitKind, WaitingTally>,
        mut by_call_path: Vec<(ThreadWaitKind, Vec<u32>, WaitingTally)>,
        by_process: Largest<(ThreadWaitKind, u32, WaitingTally)>,
    ) -> ThreadWaits {
        let kind = |kind: ThreadWaitKind| {
            let tally = kinds.get(&kind).copied().unwrap_or_default();
            ThreadKindWaiting { kind, waiting: self.waiting(&tally) }
        };
        by_call_path.sort_by_key(|(_, _, tally)| Reverse(tally.longest()));
        let entries = by_process.most();
        let further_call_paths = by_call_path.len().saturating_sub(entries) as u64;
        by_call_path.truncate(entries);
        let (by_process, further_processes) = by_process.finish();
        let at_path = |(kind, regions, tally): (ThreadWaitKind, Vec<u32>, WaitingTally)| ThreadCallPathWaiting {
            kind,
            call_path: self.call_path(&regions),
            waiting: self.waiting(&tally),
        };
        let at_process = |(kind, process, tally): (ThreadWaitKind, u32, WaitingTally)| ThreadProcessWaiting {
            kind,
            process,
            waiting: self.waiting(&tally),
        };
        ThreadWaits {
            kinds: ThreadWaitKind::ALL.into_iter().map(kind).collect(),
            by_call_path: by_call_path.into_iter().map(at_path).collect(),
            further_call_paths,
            by_process: by_process.into_iter().map(at_process).collect(),
            further_processes,
        }
    }

    fn path(&self, stage: usize, part: PathPart, path: &Path) -> CriticalPath {
        let parallelism = &self.parallelism[stage];
        let windows = parallelism.windows();
        let add = |sum: &mut PathSum, more: PathSum| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        let all = part.by_call_path.joined(|region| self.same.first(region), add).sorted();
        let mut whole: PathSum = [0; 2];
        let mut regions: BTreeMap<Option<u32>, PathSum> = BTreeMap::new();
        for ((), path, sum) in &all {
            let region = regions.entry(path.last().copied()).or_default();
            for part in 0..2 {
                whole[part] += sum[part];
                region[part] += sum[part];
            }
        }
        let scaled = |weight: i128| parallelism.ticks(weight) / self.opened.definitions.clock.resolution as f64;
        let of_whole = |part: i128, whole: i128| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let share = |sum: PathSum| Share {
            seconds: self.seconds(sum[0]),
            share: of_whole(sum[0], whole[0]),
            weight_seconds: scaled(sum[1]),
            weight_share: of_whole(sum[1], whole[1]),
        };
        let entries = part.by_process.most();
        let mut all: Vec<(Vec<u32>, PathSum)> = all.into_iter().map(|((), path, sum)| (path, sum)).collect();
        all.sort_by_key(|(_, sum)| Reverse(sum[1]));
        let mut regions: Vec<(Option<u32>, PathSum)> = regions.into_iter().collect();
        regions.sort_by_key(|(_, sum)| Reverse(sum[1]));
        let further = |length: usize| length.saturating_sub(entries) as u64;
        let (further_call_paths, further_regions) = (further(all.len()), further(regions.len()));
        let (by_process, further_processes) = part.by_process.finish();
        let (mut stretches, further_stretches) = part.stretches.finish();
        stretches.sort();
        CriticalPath {
            seconds: self.seconds(whole[0]),
            weight_seconds: scaled(whole[1]),
            computation_seconds: self.seconds(part.length[0]),
            communication_seconds: self.seconds(part.length[1]),
            idle_seconds: self.seconds(part.length[2]),
            changes: path.changes,
            broken: path.broken,
            by_call_path: all
                .into_iter()
                .take(entries)
                .map(|(regions, sum)| CallPathShare { call_path: self.call_path(&regions), share: share(sum) })
                .collect(),
            further_call_paths,
            by_region: regions
                .into_iter()
                .take(entries)
                .map(|(region, sum)| RegionShare {
                    region: region.map(|region| self.region(region)).unwrap_or_default(),
                    share: share(sum),
                })
                .collect(),
            further_regions,
            by_process: by_process
                .into_iter()
                .map(|(process, sum)| ProcessShare { process, share: share(sum) })
                .collect(),
            further_processes,
            window_seconds: self.seconds(windows.length().into()) / windows.count as f64,
            windows: part.windows.into_iter().map(|longest| longest.map(|(_, process)| process)).collect(),
            stretches: stretches
                .into_iter()
                .map(|((from, to), process, weight)| PathStretch {
                    process,
                    from_seconds: self.seconds(i128::from(from) - i128::from(windows.first)),
                    to_seconds: self.seconds(i128::from(to) - i128::from(windows.first)),
                    weight_seconds: scaled(weight),
                })
                .collect(),
            further_stretches,
        }
    }
}
