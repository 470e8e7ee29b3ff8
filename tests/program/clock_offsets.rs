//! The linear pre-synchronisation is the correction that every reader of an archive sees: that of libotf2, within one tick (libotf2
//! computes in floating point, this program exactly).

use crate::common::{alone, anchor, fixture, more_traces, name, run, tool};
use clc_clock::Method;
use clc_otf2::{ArchiveWriter, CreateOptions, Otf2Archive};
use clc_trace::{ClockOffset, Event, RegionId, Ticks};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Times by location, in the order of the events.
type Times = BTreeMap<u64, Vec<i64>>;

/// The times that libotf2 gives out.
fn times_of_libotf2(trace: &Path) -> Times {
    let printed = run(tool("print_times.py").arg(anchor(trace))).expect(0, &name(trace)).stdout;
    let mut times = Times::new();
    for line in printed.lines() {
        let (location, time) = line.split_once(' ').expect("location and time");
        times.entry(location.parse().expect("a location")).or_default().push(time.parse().expect("a time"));
    }
    times
}

/// The times that this program uses, and the number of clock offsets of all locations.
fn own_times(trace: &Path) -> (Times, usize) {
    let archive = Otf2Archive::open(trace).unwrap();
    let (definitions, _) = archive.read_definitions().unwrap();
    let mut times = Times::new();
    let mut offsets = 0;
    for location in &definitions.locations {
        let local = archive.local_definitions(location.id).unwrap();
        offsets += local.clock_offsets.len();
        let clock = Method::Linear.clock(&local.clock_offsets).unwrap();
        let mut cursor = clock.cursor();
        let mut mapped = Vec::new();
        let visit = |_, time: u64, _| {
            let time = Ticks(i64::try_from(time).expect("a time of 63 bits"));
            assert_eq!(cursor.map(time), clock.map(time));
            mapped.push(clock.map(time).0);
            Ok(())
        };
        archive.scan_with(location.id, &local, visit).unwrap();
        if !mapped.is_empty() {
            times.insert(location.id.0, mapped);
        }
    }
    (times, offsets)
}

/// Fails unless all times differ by at most `tolerance` ticks.
#[track_caller]
fn assert_close(expected: &Times, got: &Times, tolerance: u64, what: &str) {
    assert!(!expected.is_empty(), "{what}: no events");
    let count = |times: &Times| times.iter().map(|(&location, times)| (location, times.len())).collect::<Vec<_>>();
    assert_eq!(count(expected), count(got), "{what}: other events");
    for (location, times) in expected {
        for (event, (&expected, &got)) in (1..).zip(times.iter().zip(&got[location])) {
            assert!(
                expected.abs_diff(got) <= tolerance,
                "{what}: location {location}, event {event}: {expected} according to libotf2, {got} here"
            );
        }
    }
}

#[test]
fn recorded_offsets_are_applied_as_libotf2_does() {
    let mut traces = vec![fixture("tracer-halo-4"), fixture("tracer-collectives-7")];
    // python3-otf2 cannot read what EZTrace writes; and that has no offsets.
    traces.extend(more_traces().into_iter().filter(|trace| name(trace).starts_with("scorep")));
    for trace in traces {
        let (times, offsets) = own_times(&trace);
        assert!(offsets > 0, "{} has no clock offsets", name(&trace));
        assert_close(&times_of_libotf2(&trace), &times, 1, &name(&trace));
    }
}

/// Archives with chosen offsets: events lie at, just beside and far from the measurements, before the first one and after the last one.
#[test]
fn chosen_offsets_are_applied_as_libotf2_does() {
    let cases = [
        "5000000:100,20000000:-7000,90000000:12345",
        "5000000:0,5000003:1,5000010:-1,7000000:9,7000001:10",
        "4000000000000:-3999900000000,4000500000000:-3999900000123,4003600000000:-3999899900000,4003600000007:-3999899900000",
        "1000000:777,2000000:777",
        "2000000:0,2000002:1,2000004:2,2000006:1",
    ];
    for offsets in cases {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("trace");
        run(tool("print_times.py").arg("--make").arg(&trace).arg(offsets)).expect(0, offsets);
        let (times, count) = own_times(&trace);
        assert_eq!(count, offsets.split(',').count());
        let expected = times_of_libotf2(&trace);
        assert_close(&expected, &times, 1, offsets);

        // Without messages there is nothing to check, and nothing to correct but the clocks: the program writes these very times.
        let output = directory.path().join("out");
        run(alone().arg(&trace).arg("-o").arg(&output)).expect(3, offsets);
        let written = times_of_libotf2(&output);
        assert_close(&times, &written, 0, offsets);
        assert_close(&expected, &written, 1, offsets);

        // And without pre-synchronisation the recorded ones. The second location has no offsets, and the same times.
        let output = directory.path().join("raw");
        run(alone().arg(&trace).args(["--presync", "none", "-o"]).arg(&output)).expect(3, offsets);
        let raw = times_of_libotf2(&output);
        assert_eq!(raw[&0], raw[&1], "{offsets}");
        assert_eq!(raw[&1], expected[&1], "{offsets}");
    }
}

/// Writes an archive of four processes with these offsets, 5000 events each.
fn write(trace: &Path, offsets: [&[(u64, i64)]; 4]) {
    let (definitions, _) = Otf2Archive::open(&fixture("tracer-halo-4")).unwrap().read_definitions().unwrap();
    let writer = ArchiveWriter::create(trace, "traces", CreateOptions::default()).unwrap();
    let mut counts = HashMap::new();
    for (location, offsets) in definitions.locations.iter().zip(offsets) {
        let record = |&(time, offset): &(u64, i64)| ClockOffset { time, offset, standard_deviation: 0.0 };
        let offsets: Vec<ClockOffset> = offsets.iter().map(record).collect();
        writer.local_definitions(location.id, &offsets).unwrap();
        let mut file = writer.events(location.id).unwrap();
        let region = RegionId(definitions.regions[0].id.0);
        for k in 0..5000 {
            let event = if k % 2 == 0 { Event::Enter(region) } else { Event::Leave(region) };
            file.event(500_000 + 1777 * k, &event).unwrap();
        }
        counts.insert(location.id, file.finish().unwrap());
    }
    writer.finish(&definitions, &counts).unwrap();
}

/// Every process with offsets of its own, in an archive that libotf2 did not write.
#[test]
fn every_process_has_its_own_offsets() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let offsets = [0, 1, 2, 3].map(|p| {
        [(1_000_000, 1000 + 77 * p), (2_000_001, 1000 - 333 * p), (7_000_000, 5000), (7_100_000, 4000 + 12_345 * p)]
    });
    write(&trace, [&offsets[0], &offsets[1], &offsets[2], &offsets[3]]);
    let (times, count) = own_times(&trace);
    assert_eq!(count, 16);
    assert_close(&times_of_libotf2(&trace), &times, 1, "offsets by process");
}

/// As docs/hpc.md says: one offset is a constant, without any the recorded times are global, and both are said.
#[test]
fn a_lone_offset_is_a_constant_and_none_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    write(&trace, [&[(1_000_000, 500), (9_000_000, 500)], &[(1_000_000, 700)], &[], &[(1_000_000, -300)]]);
    let output = directory.path().join("out");
    let report = directory.path().join("report.json");
    // No process communicates.
    run(alone().arg(&trace).arg("-o").arg(&output).arg("--report").arg(&report)).expect(3, "a correction");
    let written = times_of_libotf2(&output);
    assert_eq!([0, 1, 2, 3].map(|location| written[&location][0]), [500_500, 500_700, 500_000, 499_700]);
    assert_eq!([0, 1, 2, 3].map(|location| written[&location][4999] - written[&location][0]), [1777 * 4999; 4]);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["parameters"]["clocks"]["constant"], 3, "two equal offsets are one");
    assert_eq!(report["parameters"]["clocks"]["identity"], 1);
    let warnings = report["warnings"].to_string();
    for text in [
        "2 locations have only one clock offset; it is applied as a constant, whereas libotf2 ignores it: 1, 3",
        "1 of 4 locations have no clock offset; their recorded times are taken as global: 2",
    ] {
        assert!(warnings.contains(text), "{warnings}");
    }
}
