//! Recorded and simulated traces: an independent judge, the truth, sums, numbers of analysis ranks.

use super::{analysis, check_sums, clc, judged, list, number, report, simulated, waits};
use crate::common::{alone, clean, fixtures, name, run, with_ranks};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Ticks per second of the traces here.
const GIGAHERTZ: f64 = 1e9;

#[test]
fn an_independent_judge_finds_the_same_waiting_times() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut traces, mut kinds, mut changed) = (Vec::new(), [0; 7], 0);
    for recorded in fixtures() {
        // libotf2's Python cannot read the definitions of EZTrace; those of a converted trace it can.
        let (native, archive) = (format!("{}.clct", name(&recorded)), name(&recorded));
        run(alone().arg("convert").arg(&recorded).arg(directory.path().join(&native)).arg("-q")).expect(0, &native);
        clc(&format!("convert {native} {archive} -q"), directory.path(), 0);
        let archive = directory.path().join(archive);
        let converted = analysis(&archive, &[]);
        let recorded = analysis(&recorded, &["--as-recorded"]);
        assert_eq!(waits(&recorded, "before", GIGAHERTZ), waits(&converted, "before", GIGAHERTZ), "{native}");
        traces.push((archive, converted));
    }
    for pattern in ["mix", "halo2d", "wavefront", "master-worker"] {
        for clock in ["ntp", "perfect"] {
            let more = format!("--pattern {pattern} --ranks 6 --events 2k --clock {clock} --seed 3 --measurements 2");
            let trace = simulated(directory.path(), &format!("{pattern}-{clock}"), &more);
            let analysis = analysis(&trace, &[]);
            if clock == "perfect" {
                // The same of the same trace in the other format.
                let native = format!("{pattern}.clct");
                clc(&format!("convert {pattern}-{clock} {native} -q"), directory.path(), 0);
                assert!(super::analysis(&directory.path().join(native), &[]) == analysis, "another format: {pattern}");
            }
            traces.push((trace, analysis));
        }
    }
    for (trace, analysis) in traces {
        let name = name(&trace);
        let corrected = directory.path().join(format!("{name}-corrected"));
        run(alone().arg(&trace).arg("-o").arg(&corrected).arg("-q")).expect(clean(&trace), &name);
        let (before, after) = (waits(&analysis, "before", GIGAHERTZ), waits(&analysis, "after", GIGAHERTZ));
        assert_eq!(before, judged(&trace), "{name} before");
        // The corrected trace itself, by libotf2.
        assert_eq!(after, judged(&corrected), "{name} after");
        kinds.iter_mut().zip(&before).for_each(|(kind, (_, count))| *kind += count);
        changed += i32::from(before != after);
    }
    assert!(kinds.iter().all(|&count| count > 0) && changed >= 4, "{kinds:?} {changed}");
}

#[test]
fn the_same_on_any_number_of_ranks_and_threads() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let more = "--pattern mix --ranks 8 --threads 2 --events 3k --clock mixed --seed 5";
    let trace = simulated(directory.path(), "trace", more);
    let one = report(with_ranks(1), &trace, &[]);
    assert!(number(&one["analysis"]["critical_path"]["after"]["changes"]) > 10.0);
    for threads in ["1", "2", "3", "8"] {
        let alone = analysis(&trace, &["--threads", threads]);
        assert!(alone == one["analysis"], "another analysis without MPI by {threads} threads");
    }
    for ranks in [2, 3, 7, 8, 9] {
        let several = report(with_ranks(ranks), &trace, &[]);
        // Not assert_eq: nobody wants to read both.
        for part in ["analysis", "violations", "matching", "clocks", "verdict"] {
            assert!(several[part] == one[part], "another {part} on {ranks} ranks");
        }
    }
    let one = analysis(&trace, &["--as-recorded"]);
    assert!(report(with_ranks(3), &trace, &["--as-recorded"])["analysis"] == one);
}

#[test]
fn times_add_up_in_all_recorded_traces() {
    for trace in fixtures() {
        let name = trace.display().to_string();
        let both = analysis(&trace, &[]);
        check_sums(&both, &name);
        assert_eq!(both["critical_path"]["after"]["broken"], 0, "{name}");
        let recorded = analysis(&trace, &["--as-recorded"]);
        check_sums(&recorded, &name);
        assert!(recorded["execution"]["after"].is_null());
        assert_eq!(waits(&recorded, "before", GIGAHERTZ), waits(&both, "before", GIGAHERTZ), "{name}");
        assert_eq!(recorded["critical_path"]["before"], both["critical_path"]["before"], "{name}");
    }
}

/// Waiting time by kind and process.
fn by_process(analysis: &Value, stage: &str) -> BTreeMap<(String, u64), f64> {
    assert_eq!(analysis["waits"]["further_processes"], 0);
    let entry = |entry: &Value| {
        let key = (entry["kind"].as_str().expect("a kind").to_owned(), entry["process"].as_u64().expect("a process"));
        (key, number(&entry["waiting"][format!("{stage}_seconds")]))
    };
    list(&analysis["waits"]["by_process"]).iter().map(entry).collect()
}

/// How far `stage` of a trace is from the truth: the sum of all differences by kind and process, over all true waiting times.
fn error(analysis: &Value, stage: &str, truth: &Value) -> f64 {
    let (found, right) = (by_process(analysis, stage), by_process(truth, "before"));
    let of = |map: &BTreeMap<(String, u64), f64>, key| map.get(key).copied().unwrap_or(0.0);
    let keys: std::collections::BTreeSet<_> = found.keys().chain(right.keys()).collect();
    keys.into_iter().map(|key| (of(&found, key) - of(&right, key)).abs()).sum::<f64>() / right.values().sum::<f64>()
}

/// A simulated run with wrong clocks, and the same run with perfect ones. No offsets are recorded.
fn wrong_and_right(directory: &Path, pattern: &str, clock: &str) -> [Value; 2] {
    [clock, "perfect"].map(|clock| {
        let more = format!("--pattern {pattern} --ranks 8 --events 4k --clock {clock} --measurements 0 --seed 3");
        analysis(&simulated(directory, &format!("{pattern}-{clock}"), &more), &[])
    })
}

#[test]
fn corrected_waiting_times_are_closer_to_the_truth() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for pattern in ["mix", "halo2d", "wavefront", "butterfly", "master-worker"] {
        let [wrong, truth] = wrong_and_right(directory.path(), pattern, "ntp");
        check_sums(&wrong, pattern);
        // Nothing to correct with perfect clocks.
        assert_eq!(waits(&truth, "before", GIGAHERTZ), waits(&truth, "after", GIGAHERTZ), "{pattern}");
        assert_eq!(number(&truth["waits"]["total"]["artefact_share"]), 0.0);
        let (before, after) = (error(&wrong, "before", &truth), error(&wrong, "after", &truth));
        assert!(before > 0.05 && after < 0.02, "{pattern}: {before} before, {after} after");
    }
}

#[test]
fn messages_in_one_direction_do_not_tell_the_offset() {
    // Whatever the sender waits less, the receiver waits more: nothing contradicts the clock condition. docs/analysis.md says so.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let [wrong, truth] = wrong_and_right(directory.path(), "pipeline", "ntp");
    let (before, after) = (error(&wrong, "before", &truth), error(&wrong, "after", &truth));
    assert!(before > 0.05 && (after - before).abs() < 0.001, "{before} before, {after} after");
}
