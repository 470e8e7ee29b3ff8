//! Streams of accelerators: which work belongs to which call, what waits for what, and clocks of their own.

use crate::by_hand::{self, written};
use crate::common::{alone, found, report, run};
use crate::reference::against::write_with;
use crate::reference::model::{
    CALLSITE, COPY_TO_HOST, CU_LAUNCH, DEVICE_WAIT, EVENT_WAIT, HIP_LAUNCH, IDLE, KERNEL, PLACE_EVENT, Process,
    Recorded, STREAM_WAIT, Trace,
};
use clc_otf2::{ArchiveWriter, CreateOptions, MappingTable, Otf2Archive};
use clc_trace::{
    AcceleratorAttributes, AcceleratorReference, AttributeId, CallParameter, ClockOffset, CommId, CommMembers,
    Communicator, Event, LocationId, Message, MpiRank, ParameterId, RegionId, Window, WindowId, WindowTransfer,
};
use std::path::Path;
use std::process::Command;

const US: i64 = 1000;

/// What happens when, in microseconds of true time.
type Happens = Vec<(i64, Event)>;

fn call(id: u32, entered: i64, left: i64) -> Happens {
    vec![(entered, Event::Enter(RegionId(id))), (left, Event::Leave(RegionId(id)))]
}

/// The same with the call site, which is recorded right after the begin.
fn called_at(site: u64, id: u32, entered: i64, left: i64) -> Happens {
    let [enter, leave] = call(id, entered, left)[..] else { unreachable!() };
    let parameter = CallParameter { parameter: ParameterId(CALLSITE), value: site };
    vec![enter, (entered, Event::Parameter(parameter)), leave]
}

fn copied(to_host: bool, begin: i64, end: i64) -> Happens {
    let transfer = WindowTransfer { window: WindowId(0), remote: 0, bytes: 64, matching: 42 };
    let first = if to_host { Event::RmaPut(transfer) } else { Event::RmaGet(transfer) };
    vec![(begin, first), (end, Event::RmaOpCompleteBlocking(WindowId(0), 42))]
}

/// A process with a thread and streams (of these devices, with clocks that are ahead by so much), and another one to which it sends a message.
fn trace(host: Vec<Happens>, streams: Vec<(u32, i64, Vec<Happens>)>) -> Trace {
    let message = |peer| Message { peer, comm: CommId(0), tag: 1, length: 8 };
    let location = |happens: Vec<Happens>, ahead: i64| -> Vec<Recorded> {
        happens.into_iter().flatten().map(|(time, event)| Recorded { time: (time + ahead) * US, event }).collect()
    };
    let mut host = host;
    host.push(vec![(9000, Event::MpiSend(message(1)))]);
    let devices = streams.iter().enumerate().map(|(place, &(device, ..))| ((0, place + 1), device)).collect();
    let mut locations = vec![location(host, 0)];
    locations.extend(streams.into_iter().map(|(_, ahead, happens)| location(happens, ahead)));
    let world = Communicator {
        id: CommId(0),
        name: String::new(),
        members: CommMembers::Intra([0, 1].map(MpiRank).into()),
        global_ranks: false,
    };
    let receives = vec![vec![(9010, Event::MpiRecv(message(0)))]];
    Trace {
        processes: vec![Process { node: 0, locations }, Process { node: 1, locations: vec![location(receives, 0)] }],
        communicators: vec![world],
        streams: devices,
        ..Trace::default()
    }
}

/// A launch at 100 whose kernel runs from 110 to 200, and a wait for the device until 210.
fn one_kernel(ahead: i64) -> Trace {
    let host = vec![called_at(7, CU_LAUNCH, 100, 105), call(DEVICE_WAIT, 120, 210)];
    trace(host, vec![(0, ahead, vec![called_at(7, KERNEL, 110, 200)])])
}

const ISSUE: &str = "accelerator_issue";
const WAIT: &str = "accelerator_wait";

#[track_caller]
fn assert_corrected(trace: &Trace, kind: &str, checked: u64, violated: u64) {
    by_hand::assert_corrected(trace, kind, checked, violated, &["none", "auto"]);
}

#[test]
fn streams_in_order_are_checked_and_stay_with_their_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &one_kernel(0));
    let report = report(&path, &["check"], 0);
    assert_eq!((found(&report, ISSUE), found(&report, WAIT)), ((1, 0), (1, 0)));
    for steps in report["matching"]["threads"].as_array().expect("a list") {
        let counts = ["one_timeline", "several_timelines", "left_out"].map(|key| steps[key].as_u64());
        assert_eq!(counts, [Some(1), Some(0), Some(0)], "{steps}");
    }
    // Nothing is moved.
    let out = directory.path().join("out");
    run(alone().args(["-q", "-o"]).arg(&out).arg(&path)).expect(0, "correct");
    let print =
        |path: &Path| run(Command::new("otf2-print").arg(path.join("traces.otf2"))).expect(0, "otf2-print").stdout;
    assert_eq!(print(&out), print(&path));
}

#[test]
fn a_kernel_that_begins_before_its_launch_has_another_clock() {
    assert_corrected(&one_kernel(-50), ISSUE, 1, 1);
}

#[test]
fn a_wait_that_ends_before_the_work_has_another_clock() {
    assert_corrected(&one_kernel(50), WAIT, 1, 1);
}

/// Kernels of two streams in turns, whose launches name their streams; the last call waits for one of them only. The first stream is 40 us behind, the second one 100 us ahead.
fn two_streams() -> Trace {
    let launches = (0..4).map(|k| call(CU_LAUNCH, 100 + 10 * k, 105 + 10 * k));
    let host: Vec<Happens> = launches.chain([call(STREAM_WAIT, 150, 320)]).collect();
    let kernels = |first: i64| vec![call(KERNEL, first, first + 50), call(KERNEL, first + 60, first + 100)];
    let mut trace = trace(host, vec![(0, -40, kernels(115)), (0, 100, kernels(215))]);
    // Launches are named as they are entered, the wait as it is left: the fifth call.
    for (number, stream) in [(0, 1), (2, 2), (4, 1), (6, 2), (9, 2)] {
        trace.references.insert((0, 0, number), stream);
    }
    trace
}

#[test]
fn calls_may_name_their_streams() {
    let trace = two_streams();
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &trace);
    let before = report(&path, &["check", "--presync", "none"], 1);
    assert_eq!((found(&before, ISSUE), found(&before, WAIT)), ((4, 1), (1, 1)), "{}", before["violations"]);
    assert_corrected(&trace, ISSUE, 4, 1);
    assert_corrected(&trace, WAIT, 1, 1);
    // libotf2 reads the attributes that were written.
    let printed = run(Command::new("otf2-print").arg(path.join("traces.otf2"))).expect(0, "otf2-print").stdout;
    assert!(printed.contains("CUDA_STREAM_REF"), "{printed}");
}

/// Two kernels of a stream that is 50 us ahead. An event stands behind the first one, and the last call waits for that event: it is left while the second kernel runs.
fn waits_for_an_event() -> Trace {
    let calls = [(CU_LAUNCH, 100, 102), (PLACE_EVENT, 104, 105), (CU_LAUNCH, 106, 107), (EVENT_WAIT, 120, 205)];
    let host: Vec<Happens> = calls.map(|(id, entered, left)| call(id, entered, left)).into();
    let mut trace = trace(host, vec![(0, 50, vec![call(KERNEL, 110, 200), call(KERNEL, 201, 400)])]);
    // The launches as they are entered, the event as it is put into the stream and as it has been waited for.
    trace.references.extend([0, 3, 4].map(|number| ((0, 0, number), 1)));
    trace.event_references.extend([3, 7].map(|number| ((0, 0, number), 0xFFFF_8000_0000_0040)));
    trace
}

#[test]
fn a_wait_for_an_event_is_for_the_work_before_it() {
    assert_corrected(&waits_for_an_event(), WAIT, 1, 1);
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let path = written(at, &waits_for_an_event());
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    run(alone().current_dir(at).args(["convert", name, "native.clct", "-q"])).expect(0, "convert");
    run(alone().current_dir(at).args("convert native.clct back -q".split(' '))).expect(0, "convert");
    for trace in [&path, &at.join("native.clct"), &at.join("back")] {
        let found_in = report(trace, &["check", "--presync", "none"], 1);
        assert_eq!((found(&found_in, ISSUE), found(&found_in, WAIT)), ((2, 0), (1, 1)), "{}", trace.display());
    }
}

/// Location and time of both ends of the arrows of a kind, as Perfetto shows them.
pub(crate) fn arrows(path: &Path, kind: &str, window: &[&str]) -> Vec<[(u64, f64); 2]> {
    let said = run(alone().args(["export", "--presync", "none", "-o", "-"]).args(window).arg(path)).expect(0, "export");
    let all: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    let of = |phase: &'static str| {
        let events = all["traceEvents"].as_array().expect("a list").iter();
        let of_kind = events.filter(move |event| event["ph"] == phase && event["name"] == kind);
        of_kind.map(|event| (event["tid"].as_u64().expect("a number"), event["ts"].as_f64().expect("a number")))
    };
    of("s").zip(of("f")).map(|(from, to)| [from, to]).collect()
}

/// At the times that were recorded: the first kernel begins 25 us before its launch, and the wait is over 95 us before the last kernel.
#[test]
fn perfetto_shows_what_streams_wait_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), &two_streams());
    let issued: [[(u64, f64); 2]; 4] =
        [[(0, 25.0), (1, 0.0)], [(0, 45.0), (1, 60.0)], [(0, 35.0), (2, 240.0)], [(0, 55.0), (2, 300.0)]];
    assert_eq!(arrows(&path, ISSUE, &[]), issued);
    let waits: [[(u64, f64); 2]; 1] = [[(2, 340.0), (0, 245.0)]];
    assert_eq!(arrows(&path, WAIT, &[]), waits);
    // Both ends are in the window.
    let window = ["--window", "20us:250us"];
    assert_eq!(arrows(&path, ISSUE, &window), issued[1..3]);
    assert!(arrows(&path, WAIT, &window).is_empty());
}

#[test]
fn a_blocking_copy_to_the_host_waits_and_idle_is_no_work() {
    let host = vec![call(COPY_TO_HOST, 100, 200)];
    let stream = |ahead| (0, ahead, vec![call(IDLE, 50, 110), copied(true, 110, 190), call(IDLE, 190, 300)]);
    assert_corrected(&trace(host.clone(), vec![stream(-50)]), ISSUE, 1, 1);
    assert_corrected(&trace(host.clone(), vec![stream(50)]), WAIT, 1, 1);
    // Towards the device the call may end when everything has been read.
    let towards = vec![(0, 50, vec![copied(false, 110, 190)])];
    let directory = tempfile::tempdir().expect("a directory");
    let said = report(&written(directory.path(), &trace(host, towards)), &["check"], 0);
    assert_eq!((found(&said, ISSUE), found(&said, WAIT)), ((1, 0), (0, 0)));
}

/// What is left out of each kind, and the warnings.
fn left_out(trace: &Trace) -> (u64, u64, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = written(directory.path(), trace);
    let said = run(alone().args(["check", "--presync", "none", "--report", "-", "-q"]).arg(&path)).stdout;
    let report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let of = |kind: &str| {
        let steps = report["matching"]["threads"].as_array().and_then(|all| all.iter().find(|s| s["kind"] == kind));
        steps.and_then(|steps| steps["left_out"].as_u64()).unwrap_or(0)
    };
    assert_eq!((found(&report, ISSUE).1, found(&report, WAIT).1), (0, 0));
    (of(ISSUE), of(WAIT), report["warnings"].to_string())
}

#[test]
fn what_is_ambiguous_is_left_out_and_named() {
    let kernel = |at| call(KERNEL, at, at + 20);
    // Two streams, and nothing tells which kernel was launched by which call; both are 60 us behind.
    let launches = || vec![call(HIP_LAUNCH, 100, 105), call(HIP_LAUNCH, 106, 110)];
    let mut host = launches();
    host.push(call(DEVICE_WAIT, 120, 210));
    let (issues, waits, said) = left_out(&trace(host, vec![(0, -60, vec![kernel(110)]), (0, -60, vec![kernel(120)])]));
    assert_eq!((issues, waits), (2, 1), "{said}");
    assert!(said.contains("the calls do not name their streams, and there are several"), "{said}");
    assert!(said.contains("calls of hipDeviceSynchronize are not compared with the work"), "{said}");

    // A kernel more than there are launches.
    let (issues, _, said) =
        left_out(&trace(launches(), vec![(0, -60, (0..3).map(|k| kernel(110 + 30 * k)).collect())]));
    assert_eq!(issues, 3, "{said}");
    assert!(said.contains("their numbers differ"), "{said}");

    // A wait for some stream.
    let host = vec![called_at(7, CU_LAUNCH, 100, 105), call(STREAM_WAIT, 120, 130)];
    let (issues, waits, said) = left_out(&trace(host, vec![(0, 0, vec![called_at(7, KERNEL, 110, 200)])]));
    assert_eq!((issues, waits), (0, 1), "{said}");
    assert!(said.contains(
        "calls of cuStreamSynchronize are not compared with the work that they wait for: the trace does not name"
    ));

    // A wait for one of two devices.
    let host = vec![called_at(7, CU_LAUNCH, 100, 105), called_at(8, CU_LAUNCH, 106, 107), call(DEVICE_WAIT, 120, 130)];
    let streams = vec![(0, 0, vec![called_at(7, KERNEL, 110, 200)]), (1, 0, vec![called_at(8, KERNEL, 110, 200)])];
    let (issues, waits, said) = left_out(&trace(host, streams));
    assert_eq!((issues, waits), (0, 1), "{said}");
    assert!(said.contains("the process has several accelerators"), "{said}");
}

/// The recorded offsets of a stream are its own, and its times are in order nowhere else.
#[test]
fn recorded_offsets_of_streams_are_their_own() {
    let trace = one_kernel(300);
    let offsets = |process: usize, location: usize| {
        let offset = if (process, location) == (0, 1) { -300 * US } else { 0 };
        let at = |time| ClockOffset { time, offset, standard_deviation: 0.0 };
        vec![at(0), at(40_000_000)]
    };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    write_with(&trace, &path, offsets);
    let checked = report(&path, &["check", "--presync", "linear"], 0);
    assert_eq!((found(&checked, ISSUE), found(&checked, WAIT)), ((1, 0), (1, 0)));
    let said = checked["warnings"].to_string();
    assert!(said.contains("their own clocks"), "{said}");
    let out = directory.path().join("out");
    run(alone().args(["-q", "-o"]).arg(&out).arg(&path)).expect(0, "correct");
    let after = report(&out, &["check", "--presync", "none"], 0);
    assert_eq!((found(&after, ISSUE), found(&after, WAIT)), ((1, 0), (1, 0)));
}

/// Locks of windows are looked for wherever there are windows, also where locations have timelines of their own.
#[test]
fn a_trace_with_windows_and_clocks_of_streams_is_corrected() {
    let mut trace = one_kernel(-50);
    trace.windows.push(Window { id: WindowId(0), name: "w".into(), comm: CommId(0) });
    assert_corrected(&trace, ISSUE, 1, 1);
}

/// `check`, a correction, and `evaluate` of a simulated pattern; returns how many of `kind` were violated before, and the error after, in microseconds.
fn simulated(arguments: &str, kinds: &[&str]) -> (u64, f64) {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path();
    let line = format!("simulate in {arguments} --ranks 4 --ranks-per-node 2 --events 4k --seed 5 -q");
    run(alone().args(line.split_whitespace()).current_dir(at)).expect(0, arguments);
    let before = report(&at.join("in"), &["check", "--presync", "linear"], 1);
    run(alone().args("in -o out -q".split_whitespace()).current_dir(at)).expect(0, "correct");
    let after = report(&at.join("out"), &["check", "--presync", "none"], 0);
    let mut violated = 0;
    for kind in kinds {
        let (checked, wrong) = found(&after, kind);
        assert!(checked > 100 && wrong == 0, "{kind}: {checked}, {wrong}");
        violated += found(&before, kind).1;
    }
    let steps = after["matching"]["threads"].as_array().expect("a list");
    assert!(steps.iter().all(|steps| steps["left_out"] == 0), "{steps:?}");
    let line = "evaluate out --truth in -q --report -".split_whitespace();
    let evaluated = run(alone().args(line).current_dir(at)).expect(0, "evaluate").stdout;
    let evaluated: serde_json::Value = serde_json::from_str(&evaluated).expect("JSON");
    let phases = evaluated["phases"].as_array().expect("a list");
    let error = &phases.last().expect("a phase")["clock"]["rms_seconds"];
    (violated, error.as_f64().unwrap_or_else(|| panic!("{evaluated}")) * 1e6)
}

#[test]
fn simulated_accelerators_are_corrected() {
    let (violated, error) = simulated("--pattern offload --threads 3 --clock linear", &[ISSUE, WAIT]);
    assert!(violated > 100, "{violated}");
    assert!(error < 20.0, "{error} us");
}

#[test]
fn simulated_teams_of_threads_are_corrected() {
    let kinds = ["fork", "thread_barrier"];
    let (violated, error) = simulated("--pattern hybrid --threads 4 --clock linear --thread-clocks", &kinds);
    assert!(violated > 100, "{violated}");
    assert!(error < 20.0, "{error} us");
}

/// Clocks of streams and threads that drift: a run of seconds, where a constant is off by 5 us.
#[test]
fn drifting_clocks_of_streams_and_threads_are_followed() {
    let (violated, error) = simulated("--pattern offload --threads 3 --clock linear --compute 20ms", &[ISSUE, WAIT]);
    assert!(violated > 100, "{violated}");
    assert!(error < 1.0, "{error} us");
    let kinds = ["fork", "thread_barrier"];
    let arguments = "--pattern hybrid --threads 4 --clock linear --thread-clocks --compute 20ms";
    let (violated, error) = simulated(arguments, &kinds);
    assert!(violated > 100, "{violated}");
    assert!(error < 1.0, "{error} us");
}

/// Locations may have numbers of their own for parameters, attributes and locations.
#[test]
fn numbers_of_locations_are_mapped() {
    let here = LocationId(7 << 33);
    let stream = LocationId((7 << 33) + 1);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("trace");
    let archive = ArchiveWriter::create(&path, "traces", CreateOptions::default()).expect("an archive");
    let mut file = archive.events(here).expect("a file");
    let enter = Event::Enter(RegionId(1));
    let names = |id| AcceleratorAttributes { streams: vec![AttributeId(id)], events: vec![AttributeId(2)] };
    let refers = |id| AcceleratorReference { stream: Some(LocationId(id)), event: None };
    file.event_with_references(10, &enter, &names(1), refers(2)).expect("an event");
    let parameter = |parameter| CallParameter { parameter: ParameterId(parameter), value: 1 << 40 };
    file.event(11, &Event::Parameter(parameter(1))).expect("an event");
    // Another attribute, and one that is not in the table of locations.
    file.event_with_references(12, &enter, &names(0), refers(2)).expect("an event");
    file.event_with_references(13, &enter, &names(1), AcceleratorReference { event: Some(1 << 50), ..refers(3) })
        .expect("an event");
    let count = file.finish().expect("a file");
    let table = |kind, ids: &[(u64, u64)]| MappingTable { kind, ids: ids.to_vec() };
    let tables = [
        table(1, &[(0, 9), (1, 4), (2, 5)]),
        table(2, &[(2, stream.0)]),
        table(3, &[(1, 5)]),
        table(7, &[(0, 8), (1, 3)]),
    ];
    archive.local_definitions_with_tables(here, &tables, &[]).expect("a file");
    let trace = Trace { processes: vec![Process { node: 0, locations: vec![Vec::new()] }], ..Trace::default() };
    let mut definitions = trace.definitions();
    definitions.locations[0].id = here;
    definitions.processes[0] = here;
    archive.finish(&definitions, &[(here, count)].into()).expect("an archive");

    let archive = Otf2Archive::open(&path).expect("an archive");
    let (definitions, _) = archive.read_definitions().expect("definitions");
    assert_eq!(definitions.callsites, [ParameterId(3)]);
    let attributes = &definitions.accelerator_attributes;
    assert_eq!((&attributes.streams[..], &attributes.events[..]), (&[AttributeId(4)][..], &[AttributeId(5)][..]));
    let local = archive.local_definitions(here).expect("definitions");
    let mut seen = Vec::new();
    archive
        .scan_with_references(here, &local, attributes, |_, _, event, refers| {
            seen.push((event, refers.stream, refers.event));
            Ok(())
        })
        .expect("events");
    let enter = Event::Enter(RegionId(5));
    let parameter = Event::Parameter(parameter(3));
    let expected = [
        (enter, Some(stream), None),
        (parameter, None, None),
        (enter, None, None),
        (enter, Some(LocationId(3)), Some(1 << 50)),
    ];
    assert_eq!(seen, expected);
}
