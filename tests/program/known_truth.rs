//! Simulated and perturbed traces: what is made is a trace that others can read, its truth is true, and `evaluate` says how far
//! a correction is from it.

use crate::common::{alone, anchor, assert_same_tree, fixture, fixtures, run, with_ranks};
use clc_archive::truth::{self, TruthReader, TruthWriter};
use clc_otf2::{ArchiveWriter, CreateOptions};
use clc_simulate::{PatternKind, Scenario};
use clc_trace::{CommId, Event, Message, RegionId, Ticks};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn tool(name: &str) -> Command {
    let mut command = Command::new(crate::common::PYTHON);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(name));
    command
}

#[track_caller]
fn clc(arguments: &str, directory: &Path, status: i32) -> crate::common::Finished {
    run(alone().args(arguments.split_whitespace()).current_dir(directory)).expect(status, arguments)
}

#[track_caller]
fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a report")).expect("JSON")
}

#[test]
fn every_pattern_is_a_trace_that_others_can_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for pattern in PatternKind::ALL {
        let name = pattern.name();
        let line = format!("simulate {name} --pattern {name} --ranks 9 --threads 2 --events 1500 --clock mixed -q");
        clc(&line, directory.path(), 0);
        let trace = directory.path().join(name);
        let printed = run(Command::new("otf2-print").arg(anchor(&trace))).expect(0, name);
        assert_eq!(printed.stderr, "", "{name}");
        assert!(printed.stdout.contains("LEAVE"), "{name}");
        // Both readers, and every record the same but for its time.
        // Nothing tells in which order locks were held.
        let status = if *pattern == PatternKind::RmaLock { 3 } else { 0 };
        clc(&format!("{name} -o {name}-clc -q"), directory.path(), status);
        let corrected = anchor(&directory.path().join(format!("{name}-clc")));
        run(tool("compare_otf2.py").args([anchor(&trace), corrected])).expect(0, name);
    }
}

#[test]
fn matching_finds_what_the_simulator_did() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for pattern in PatternKind::ALL {
        let name = pattern.name();
        let line = format!("simulate {name} --pattern {name} --ranks 12 --events 2000 --clock perfect -q");
        clc(&line, directory.path(), 0);
        // A perfect clock shows true time, and in true time nothing is received before it is sent: says the program ...
        let report = directory.path().join("report.json");
        // Nothing tells in which order locks were held.
        let status = if *pattern == PatternKind::RmaLock { 3 } else { 0 };
        clc(&format!("check {name} --report report.json -q"), directory.path(), status);
        let report = json(&report);
        let messages = report["violations"]["raw"]["point_to_point"]["checked"].as_u64().expect("messages");
        let mut sent = 0u64;
        let mut count = Counter { receives: 0, sends: 0 };
        let scenario = Scenario { ranks: 12, events: 2000, pattern: *pattern, ..Scenario::default() };
        scenario.run(&mut count).expect("a run");
        sent += count.sends;
        assert_eq!((messages, count.receives), (sent, sent), "{name}: every message has its receive");
        // ... and the independent checker.
        let trace = anchor(&directory.path().join(name));
        run(tool("check_clock_condition.py").arg(trace)).expect(0, name);
    }
}

struct Counter {
    sends: u64,
    receives: u64,
}

impl clc_simulate::EventSink for Counter {
    fn event(&mut self, _: usize, _: Ticks, _: Ticks, event: &Event) -> clc_trace::Result<()> {
        self.sends += u64::from(matches!(event, Event::MpiSend(_) | Event::MpiIsend(..)));
        self.receives += u64::from(matches!(event, Event::MpiRecv(_) | Event::MpiIrecv(..)));
        Ok(())
    }
}

#[test]
fn the_seed_makes_the_bytes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let line = "--pattern mix --ranks 6 --events 3k --clock mixed -q";
    clc(&format!("simulate a --seed 7 {line}"), directory.path(), 0);
    clc(&format!("simulate b --seed 7 {line}"), directory.path(), 0);
    clc(&format!("simulate c --seed 8 {line}"), directory.path(), 0);
    let path = |name: &str| directory.path().join(name);
    assert_same_tree(&path("a"), &path("b"), "the same seed");
    assert_ne!(crate::common::tree(&path("a")), crate::common::tree(&path("c")), "another seed");
    let truth: Vec<u64> = (0..6)
        .map(|id| TruthReader::open(&truth::path(&path("a"), clc_trace::LocationId(id))).unwrap().events())
        .collect();
    assert!(truth.iter().all(|&events| events > 1000), "{truth:?}");
}

/// Two processes; rank 1 receives one message. Times are (true, recorded) in microseconds of a 1 MHz timer.
fn hand_made(directory: &Path, times: [&[(u64, u64)]; 2]) {
    hand_made_of(directory, times, |_| ());
}

/// The same with changed events.
fn hand_made_of(directory: &Path, times: [&[(u64, u64)]; 2], change: impl Fn(&mut [[Event; 3]; 2])) {
    let scenario = Scenario {
        ranks: 2,
        ranks_per_node: 1,
        resolution: 1_000_000,
        pattern: PatternKind::Ring,
        ..Scenario::default()
    };
    let mut definitions = scenario.definitions();
    definitions.clock.global_offset = 0;
    let archive = ArchiveWriter::create(directory, "traces", CreateOptions::default()).expect("an archive");
    std::fs::create_dir(truth::directory(directory)).expect("a directory");
    let message = |peer| Message { peer, comm: CommId(0), tag: 0, length: 1 };
    let mut events = [
        [Event::Enter(RegionId(4)), Event::MpiSend(message(1)), Event::Leave(RegionId(4))],
        [Event::Enter(RegionId(5)), Event::MpiRecv(message(0)), Event::Leave(RegionId(5))],
    ];
    change(&mut events);
    for (rank, times) in times.into_iter().enumerate() {
        let id = definitions.locations[rank].id;
        let mut file = archive.events(id).expect("an event file");
        let mut truth = TruthWriter::create(&truth::path(directory, id), id, 1_000_000).expect("a truth file");
        for (&(true_time, recorded), event) in times.iter().zip(&events[rank]) {
            file.event(recorded, event).expect("an event");
            truth.push(Ticks(true_time as i64)).expect("a time");
        }
        file.finish().expect("an event file");
        truth.finish().expect("a truth file");
        archive.local_definitions(id, &[]).expect("local definitions");
    }
    archive.finish(&definitions, &Default::default()).expect("an archive");
}

#[test]
fn a_hand_made_case_is_judged_exactly() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Rank 0 is 10 us fast all the time; rank 1 is right. The message takes 5 us and seems to take -5.
    let sender: [(u64, u64); 3] = [(1000, 1010), (1020, 1030), (1021, 1031)];
    let receiver: [(u64, u64); 3] = [(980, 980), (1025, 1025), (1030, 1030)];
    hand_made(&directory.path().join("trace"), [&sender, &receiver]);
    clc("evaluate trace --truth trace --report report.json", directory.path(), 0);
    let report = json(&directory.path().join("report.json"));
    assert_eq!((report["events"].as_u64(), report["messages"].as_u64()), (Some(6), Some(1)));
    // Late Sender: entered the receive at 980, the send at 1000.
    let seconds = |value: &Value| (value.as_f64().expect("a number") * 1e9).round() / 1e3;
    assert_eq!(seconds(&report["late_sender_seconds"]), 20.0);
    let raw = &report["phases"][0];
    assert_eq!(raw["phase"], "raw");
    // Errors are 10, 10, 10, 0, 0, 0: mean 5, every one 5 away from it.
    assert_eq!(seconds(&raw["offset_seconds"]), 5.0);
    for field in ["rms_seconds", "mean_seconds", "p50_seconds", "p99_seconds", "max_seconds"] {
        assert_eq!(seconds(&raw["clock"][field]), 5.0, "{field}");
        assert_eq!(seconds(&raw["latency"][field]), 10.0, "{field}");
    }
    // Both are in one window: 5 and -5 against their mean.
    let between = &raw["between_processes"];
    assert_eq!((seconds(&between["rms_seconds"]), seconds(&between["max_seconds"])), (5.0, 5.0));
    assert_eq!((seconds(&report["window_seconds"]), between["windows"].as_u64()), (10_000.0, Some(1)));
    // The send seems to begin at 1010, but the receive ends at 1025: 30 us instead of 20.
    assert_eq!(seconds(&raw["late_sender"]["total_seconds"]), 30.0);
    assert_eq!(seconds(&raw["late_sender"]["mean_error_seconds"]), 10.0);
    assert_eq!((raw["violations"].as_u64(), raw["checked"].as_u64()), (Some(1), Some(1)));
    // Constant errors change no interval.
    assert_eq!(raw["intervals"]["classes"][0]["intervals"].as_u64(), Some(4));
    assert_eq!(raw["intervals"]["largest_slope_percent"].as_f64(), Some(0.0));
    assert_eq!(seconds(&raw["locations"][0]["mean_seconds"]), 5.0);
    assert_eq!(seconds(&raw["locations"][1]["mean_seconds"]), -5.0);

    // In windows of 20 us from 980 on: rank 1 alone, nobody, and both.
    clc("evaluate trace --truth trace --window 20us --report report.json", directory.path(), 0);
    let between = json(&directory.path().join("report.json"))["phases"][0]["between_processes"].clone();
    assert_eq!((seconds(&between["rms_seconds"]), between["windows"].as_u64()), (5.0, Some(1)));

    // The correction moves the receive to its send (1030) and the leave with it.
    clc("trace -q", directory.path(), 0);
    clc("evaluate trace-clc --truth trace --report report.json", directory.path(), 0);
    let report = json(&directory.path().join("report.json"));
    let phases: Vec<&str> = report["phases"].as_array().unwrap().iter().map(|p| p["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["raw", "presync", "forward", "final"]);
    let last = &report["phases"][3];
    assert_eq!(last["violations"].as_u64(), Some(0));
    assert_eq!(seconds(&last["latency"]["max_seconds"]), 5.0, "the latency is 0 instead of 5");
}

#[test]
fn the_forward_phase_is_shown_only_if_it_is_the_one_of_the_trace() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc("simulate out --pattern ring --ranks 4 --ranks-per-node 1 --events 5k --clock ntp -q", directory.path(), 0);
    // Clocks that leave something to correct: with estimated ones the slope has nothing to act on.
    clc("out -q --presync linear --slope 0.1", directory.path(), 0);
    let phases = |line: &str| {
        clc(line, directory.path(), 0);
        let report = json(&directory.path().join("r.json"));
        (report["phases"].as_array().unwrap().len(), report["warnings"].as_array().unwrap().len())
    };
    assert_eq!(phases("evaluate out-clc --truth out --presync linear --slope 0.1 --report r.json"), (4, 0));
    assert_eq!(phases("evaluate out-clc --truth out --presync linear --report r.json"), (3, 1));
    assert_eq!(phases("evaluate out --truth out/truth --report r.json"), (2, 0));
    // The same on several ranks, and with a picture.
    let line = "evaluate out-clc --truth out --presync linear --slope 0.1 --window 3us --plot error.svg -q --report";
    run(with_ranks(3).args(line.split_whitespace()).arg("several.json").current_dir(directory.path())).expect(0, line);
    clc("evaluate out-clc --truth out --presync linear --slope 0.1 --window 3us --report r.json", directory.path(), 0);
    // Of nearly 12,000 windows, more than are gathered at once, a thousand have events of two processes.
    assert!(json(&directory.path().join("r.json"))["phases"][3]["between_processes"]["windows"].as_u64() > Some(500));
    let read = |name: &str| std::fs::read(directory.path().join(name)).expect("a report");
    assert!(read("several.json") == read("r.json"), "reports differ");
    let svg = String::from_utf8(read("error.svg")).expect("text");
    assert!(svg.starts_with("<svg") && svg.matches("<polyline").count() >= 12, "four curves in three panels");
}

/// Error of the events' times (rms, seconds) before the replay, and after it in `form`.
fn errors(directory: &Path, form: &str) -> (f64, f64) {
    let options = format!("--presync linear --correction {form} -q");
    clc(&format!("out -o {form} {options}"), directory, 0);
    clc(&format!("evaluate {form} --truth out {options} --report r.json"), directory, 0);
    let report = json(&directory.join("r.json"));
    let of = |phase: usize| report["phases"][phase]["clock"]["rms_seconds"].as_f64().expect("an error");
    assert_eq!(report["phases"][3]["violations"], 0, "{form}");
    (of(1), of(3))
}

#[test]
fn clocks_do_not_drift_away_together() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let line =
        "simulate out --pattern butterfly --ranks 8 --ranks-per-node 1 --events 4000 --compute 1ms --clock sine -q";
    clc(line, directory.path(), 0);
    // 16.2 us; 1.5 us without the common motion, 15.3 us with it.
    let (before, after) = errors(directory.path(), "common");
    let (_, paper) = errors(directory.path(), "paper");
    assert!(after < before / 8.0 && after < paper / 8.0, "{before} {after} {paper}");
}

#[test]
fn replays_do_not_drift_away_from_the_clocks() {
    // A ring that takes a second to go round, while clocks go back and forth within one.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let ring =
        "--pattern ring --ranks 32 --ranks-per-node 1 --events 1500 --compute 40ms --clock sine=30us/1s --seed 3";
    clc(&format!("simulate trace {ring} -q"), directory.path(), 0);
    let corrected = |further: &str| {
        let line = format!("trace -o fixed --force -q --presync linear --report fixed.json {further}");
        clc(&line, directory.path(), 0);
        clc("evaluate fixed --truth trace --presync linear --report judged.json -q", directory.path(), 0);
        let phases = json(&directory.path().join("judged.json"))["phases"].clone();
        let last = phases.as_array().expect("phases").last().expect("a phase")["between_processes"].clone();
        let passes = json(&directory.path().join("fixed.json"))["replay"]["passes"].clone();
        (last["rms_seconds"].as_f64().expect("an error"), passes.as_array().expect("passes").clone())
    };
    let gammas = |passes: &[Value]| passes.iter().map(|pass| pass["gamma"].as_f64().unwrap()).collect::<Vec<_>>();
    let ((near, passes), (far, alone)) = (corrected(""), corrected("--max-passes 1"));
    assert_eq!((gammas(&passes), gammas(&alone)), (vec![0.99999, 0.9999, 0.999], vec![0.99999]));
    assert!(near < 0.75 * far, "{near} and {far}");
    let moved: Vec<f64> = passes.iter().map(|pass| pass["displacement_seconds"].as_f64().unwrap()).collect();
    assert!(moved[2] < 0.5 * moved[0], "{moved:?}");
    // Where none is near, it is the first one again.
    let (again, passes) = corrected("--max-passes 2");
    assert_eq!((again, gammas(&passes)), (far, vec![0.99999, 0.9999, 0.99999]));
}

#[test]
fn a_clock_that_fails_once_moves_little() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let line =
        "simulate out --pattern wavefront --ranks 8 --ranks-per-node 1 --events 10k --compute 1ms --clock stuck -q";
    clc(line, directory.path(), 0);
    // 0.71 us; an advance that outlives the failure makes that 1.5 us, and 12.7 us in the publication's form.
    let (before, after) = errors(directory.path(), "common");
    assert!(after < 1.05 * before, "{before} {after}");
}

#[test]
fn perturbed_traces_keep_everything_but_their_times() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for trace in fixtures() {
        let name = crate::common::name(&trace);
        let source = trace.display().to_string();
        // Recorded clocks are not perfect: their own correction is taken for the truth.
        clc(&format!("{source} -o {name} -q"), directory.path(), crate::common::clean(&trace));
        clc(
            &format!("perturb {name} {name}-p --clock mixed --per-process --seed 3 --measurements 0 -q"),
            directory.path(),
            0,
        );
        let (before, after) = (directory.path().join(&name), directory.path().join(format!("{name}-p")));
        run(tool("compare_otf2.py").args([anchor(&before), anchor(&after)])).expect(0, &name);
        // The truth is the times of the trace that was perturbed.
        clc(&format!("perturb {name} {name}-q --clock perfect --measurements 0 -q"), directory.path(), 0);
        let untouched = directory.path().join(format!("{name}-q"));
        for (path, contents) in crate::common::tree(&before) {
            if path.extension().is_some_and(|end| end == "evt") {
                assert!(std::fs::read(untouched.join(&path)).ok() == contents, "{name}: {}", path.display());
            }
        }
        clc(&format!("evaluate {name}-q --truth {name}-p --report r.json"), directory.path(), 0);
        let report = json(&directory.path().join("r.json"));
        let phases = report["phases"].as_array().expect("phases");
        assert_eq!(phases.last().unwrap()["clock"]["max_seconds"].as_f64(), Some(0.0), "{name}");
        assert!(phases[0]["clock"]["max_seconds"].as_f64().unwrap() > 1e-6, "{name}: clocks are wrong");
    }
}

#[test]
fn clock_0_can_be_wrong_as_well() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let clock = "all:offset=1ms,drift=50ppm";
    let usual = "--ranks 4 --ranks-per-node 1 --events 2k --compute 1ms --pattern halo1d -q";
    clc(&format!("simulate simulated {usual} --clock {clock}"), directory.path(), 0);
    clc(&format!("simulate base {usual} --clock perfect --measurements 0"), directory.path(), 0);
    clc(&format!("perturb base perturbed -q --per-process --clock {clock}"), directory.path(), 0);
    for trace in ["simulated", "perturbed"] {
        clc(&format!("evaluate {trace} --truth {trace} --presync linear --report r.json"), directory.path(), 0);
        let report = json(&directory.path().join("r.json"));
        let (raw, presync) = (&report["phases"][0], &report["phases"][1]);
        let seconds = |value: &Value| value.as_f64().expect("a number");
        assert!(seconds(&raw["locations"][0]["rms_seconds"]) > 1e-6, "{trace}: {}", raw["locations"][0]);
        // Offsets refer to the wrong clock 0: all agree with it, and none with the truth.
        assert!(seconds(&presync["between_processes"]["max_seconds"]) < 1e-6, "{trace}: {presync}");
        let own = |rank: usize| seconds(&presync["locations"][rank]["rms_seconds"]);
        assert!((0..4).all(|rank| own(rank) > 1e-6 && (own(rank) / own(0) - 1.0).abs() < 0.2), "{trace}: {presync}");
    }
}

#[test]
fn a_trace_with_violations_is_no_truth() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc("simulate wrong --clock jump --ranks-per-node 1 -q", directory.path(), 0);
    let refused = clc("perturb wrong out", directory.path(), 2);
    assert!(refused.stderr.contains("--anyway") && refused.stderr.lines().count() == 1, "{}", refused.stderr);
    clc("perturb wrong out --anyway -q", directory.path(), 0);
}

#[test]
fn mistakes_get_one_line_and_leave_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let trace = fixture("tracer-halo-4").display().to_string();
    let cases = [
        ("simulate out --ranks 0", "1 to 1048576"),
        ("simulate out --ranks 3 --pattern halo2d", "needs at least 4 ranks"),
        ("simulate out --pattern spiral", "halo2d"),
        ("simulate out --clock bogus", "presets: perfect"),
        ("simulate out --clock offset=5", "unit"),
        ("simulate out --latency -1us", "-1us"),
        ("simulate out --events 0", "1 to 10^12"),
        ("simulate out --imbalance 2", "0 to 1"),
        ("simulate out --measurements 20000", "0 to 10000"),
        ("simulate no/where/out", "parent directory"),
        ("simulate", "<DIR>"),
        (&format!("perturb {trace} out --nodes 0"), "1.."),
        (&format!("perturb {trace} out --nodes 2 --per-process"), "cannot be used with"),
        ("perturb missing out", "missing"),
        (&format!("evaluate {trace} --truth {trace}"), "the directory `truth`"),
        (&format!("evaluate {trace}"), "--truth"),
        (&format!("evaluate {trace} --truth {trace} --window 0s"), "contains no events"),
    ];
    for (line, part) in cases {
        let refused = clc(line, directory.path(), 2);
        assert!(refused.stderr.contains(part), "{line}: {}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{line}: {}", refused.stderr);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{line}: something is left");
    }
    // Under MPI it is one line, too, and not one per rank.
    let refused = run(with_ranks(3).args(["simulate", "out", "--ranks", "0"]).current_dir(directory.path()));
    let lines = refused.stderr.lines().filter(|line| line.contains("clc-replay: error")).count();
    assert_eq!(lines, 1, "{}", refused.stderr);
}

#[test]
fn a_truth_of_another_trace_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    clc("simulate a --ranks 4 --events 500 -q", directory.path(), 0);
    clc("simulate b --ranks 4 --events 900 -q", directory.path(), 0);
    clc("a -q", directory.path(), 0);
    let refused = clc("evaluate a-clc --truth b", directory.path(), 2);
    assert!(refused.stderr.contains("events") && refused.stderr.contains("location 0"), "{}", refused.stderr);
    // So is one with as many events, which are others.
    let times: [&[_]; 2] = [&[(10, 10), (11, 11), (12, 12)], &[(10, 10), (14, 14), (15, 15)]];
    hand_made(&directory.path().join("c"), times);
    hand_made_of(&directory.path().join("d"), times, |events| events[0].swap(0, 1));
    let refused = clc("evaluate c --truth d", directory.path(), 2);
    assert!(refused.stderr.contains("other events") && refused.stderr.contains("location 0"), "{}", refused.stderr);
    // A damaged truth file is named.
    let path = directory.path().join("a/truth/2.truth");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let refused = clc("evaluate a-clc --truth a", directory.path(), 2);
    assert!(refused.stderr.contains("2.truth") && refused.stderr.contains("damaged"), "{}", refused.stderr);
}

#[test]
fn both_formats_hold_the_same_simulation() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let line = "--pattern mix --ranks 6 --events 3k --clock mixed --threads 2 -q";
    clc(&format!("simulate a {line}"), directory.path(), 0);
    clc(&format!("simulate b.clct {line}"), directory.path(), 0);
    clc("convert a c.clct -q", directory.path(), 0);
    let path = |name: &str| directory.path().join(name);
    assert_same_tree(&path("b.clct/events"), &path("c.clct/events"), "event files");
    assert_same_tree(&path("a/truth"), &path("b.clct/truth"), "the truth");
    // It is judged like the other one.
    for trace in ["a", "b.clct"] {
        clc(&format!("{trace} -q"), directory.path(), 0);
    }
    clc("evaluate a-clc --truth a --report a.json -q", directory.path(), 0);
    clc("evaluate b-clc.clct --truth b.clct --report b.json -q", directory.path(), 0);
    let phases = |name: &str| json(&path(name))["phases"].clone();
    assert_eq!(phases("a.json"), phases("b.json"));
}
